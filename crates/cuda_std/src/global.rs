//! Accesses of global memory: four floats in one 16-byte instruction (a float4), guaranteed, and
//! reads of what nothing writes.
//!
//! libNVVM joins four adjacent accesses into one if it sees that they begin at a multiple of 16
//! bytes, and it loses track of that in about half of all places: for every second pointer
//! through which the kernels of this workspace store C. These functions are the instruction
//! itself.
//!
//! ```
//! use cuda_std::global;
//! use cuda_std::prelude::*;
//!
//! /// # Safety
//! ///
//! /// Both hold four floats for each thread of the launch, and begin at a multiple of 16 bytes.
//! #[kernel]
//! pub unsafe fn twice(input: *const f32, output: *mut f32) {
//!     let first = 4 * thread::index_1d() as usize;
//!     unsafe {
//!         let four = global::load4(input.add(first));
//!         global::store4(output.add(first), four.map(|float| 2.0 * float));
//!     }
//! }
//! ```

#[cfg(cuda_device)]
use core::arch::asm;

/// The same elements, which are read-only: the kernel's loads may go by way of the read-only data
/// cache (`ld.global.nc`, CUDA's `__ldg`), and be moved past other memory operations.
///
/// The compiler knows that of a parameter `&[T]` of a kernel; for a slice that is a field of a
/// parameter this says it.
///
/// # Safety
///
/// The elements are in global memory, and nothing writes them while the kernel runs.
#[inline(always)]
pub unsafe fn read_only<T>(elements: &[T]) -> &[T] {
    #[cfg(cuda_device)]
    // SAFETY: it is the same memory.
    unsafe {
        let start = crate::device::__nvvm_read_only(elements.as_ptr().cast());
        core::slice::from_raw_parts(start.cast(), elements.len())
    }
    #[cfg(not(cuda_device))]
    elements
}

/// Defines loads of four floats.
macro_rules! loads {
    ($($(#[$doc:meta])* $name:ident = $instruction:literal, ($($option:ident),*);)*) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            pub unsafe fn $name(source: *const f32) -> [f32; 4] {
                #[cfg(cuda_device)]
                {
                    let (x, y, z, w): (f32, f32, f32, f32);
                    // SAFETY: the caller vouches for the pointer.
                    unsafe {
                        asm!(
                            concat!($instruction, " {{{}, {}, {}, {}}}, [{}];"),
                            out(xmm_reg) x, out(xmm_reg) y, out(xmm_reg) z, out(xmm_reg) w,
                            in(reg) source,
                            options($($option),*)
                        );
                    }
                    [x, y, z, w]
                }
                #[cfg(not(cuda_device))]
                // SAFETY: as above.
                unsafe {
                    debug_assert!(
                        source.addr().is_multiple_of(16),
                        "{source:?} is not a multiple of 16"
                    );
                    source.cast::<[f32; 4]>().read()
                }
            }
        )*
    };
}

loads! {
    /// `source[0..4]`.
    ///
    /// # Safety
    ///
    /// `source` points into global memory, at a multiple of 16 bytes, and is valid for reading
    /// four floats.
    load4 = "ld.global.v4.f32", (nostack, preserves_flags, readonly);
    /// `source[0..4]`, by way of the read-only data cache.
    ///
    /// # Safety
    ///
    /// As for [`load4`], and nothing writes these floats while the kernel runs.
    load4_read_only = "ld.global.nc.v4.f32", (pure, readonly, nostack, preserves_flags);
}

/// `target[0..4] = four`.
///
/// # Safety
///
/// `target` points into global memory, at a multiple of 16 bytes, and is valid for writing four
/// floats.
#[inline(always)]
pub unsafe fn store4(target: *mut f32, four: [f32; 4]) {
    #[cfg(cuda_device)]
    // SAFETY: the caller vouches for the pointer.
    unsafe {
        let [x, y, z, w] = four;
        asm!(
            "st.global.v4.f32 [{}], {{{}, {}, {}, {}}};",
            in(reg) target, in(xmm_reg) x, in(xmm_reg) y, in(xmm_reg) z, in(xmm_reg) w,
            options(nostack, preserves_flags)
        );
    }
    #[cfg(not(cuda_device))]
    // SAFETY: as above.
    unsafe {
        debug_assert!(
            target.addr().is_multiple_of(16),
            "{target:?} is not a multiple of 16"
        );
        target.cast::<[f32; 4]>().write(four);
    }
}
