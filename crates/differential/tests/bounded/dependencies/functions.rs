//! What kernels and the host compute with other people's crates.

#![cfg_attr(cuda_device, no_std)]

use aes::cipher::{BlockEncrypt, KeyInit, generic_array::GenericArray};
use curve25519_dalek::{constants::ED25519_BASEPOINT_POINT, scalar::Scalar};

/// A key and a block, or a scalar.
pub type Input = [u8; 32];

/// The product of Ed25519's base point and a scalar, compressed.
pub fn base_point_product(input: &Input) -> [u8; 32] {
    let scalar = Scalar::from_bytes_mod_order(*input);
    (ED25519_BASEPOINT_POINT * scalar).compress().to_bytes()
}

/// A block, encrypted with AES-128.
pub fn encrypted(input: &Input) -> [u8; 16] {
    let (key, block) = input.split_at(16);
    let mut block = GenericArray::clone_from_slice(block);
    aes::Aes128::new(GenericArray::from_slice(key)).encrypt_block(&mut block);
    block.into()
}

/// Defines kernels, as the interpreter runs them: a pointer to the input, and one to the output.
#[cfg(cuda_device)]
macro_rules! kernels {
    ($($name:ident: $function:ident -> $output:ty;)*) => {
        $(
            /// # Safety
            ///
            /// The pointers are valid.
            #[unsafe(no_mangle)]
            #[unsafe(link_section = ".nvvm.kernel")]
            pub unsafe fn $name(input: *const Input, output: *mut $output) {
                // SAFETY: the caller vouches for the pointers.
                unsafe { *output = $function(&*input) };
            }
        )*
    };
}

#[cfg(cuda_device)]
kernels! {
    k_base_point_product: base_point_product -> [u8; 32];
    k_encrypted: encrypted -> [u8; 16];
}
