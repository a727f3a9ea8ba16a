//! The program's matrices and scalars, as `gpu_gemm` takes them.

use gpu_gemm::{Element, Input, Scalar, Stored};

use crate::settings::SETTINGS;

/// The nearest number of a type.
pub fn number<T: Element>(value: f64) -> T {
    let found = T::of(Scalar::F64(value)).or_else(|| T::of(Scalar::F32(value as f32)));
    found.unwrap_or_default()
}

/// A, B or C of the program, or the first of a batch, to read.
///
/// # Safety
///
/// It is in the memory of the device, as long as its sizes say.
pub unsafe fn input<T: Element>(stored: &Stored) -> Input<'static, T> {
    let length = stored.layout.extent_of_one();
    let input = match SETTINGS.is_simulator {
        false => Input::at(stored.start.addr() as u64, length),
        true if length == 0 => Input::from(&[][..]),
        // SAFETY: as the caller vouches.
        true => unsafe { std::slice::from_raw_parts(stored.start.cast::<T>(), length) }.into(),
    };
    input.with(stored.transpose)
}
