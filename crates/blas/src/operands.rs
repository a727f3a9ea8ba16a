//! The program's matrices and scalars, as `gpu_gemm` takes them.

use gpu_gemm::{Element, Input, Output, Scalar};

use crate::product::Stored;
use crate::settings::SETTINGS;

/// The nearest number of a type.
pub fn number<T: Element>(value: f64) -> T {
    let found = T::of(Scalar::F64(value)).or_else(|| T::of(Scalar::F32(value as f32)));
    found.unwrap_or_default()
}

/// A or B of the program.
///
/// # Safety
///
/// It is in the memory of the device, as long as its sizes say.
pub unsafe fn input<T: Element>(stored: &Stored, count: usize) -> Input<'static, T> {
    let length = stored.extent(count);
    let input = match SETTINGS.is_simulator {
        false => Input::at(stored.start.addr() as u64, length),
        true if length == 0 => Input::from(&[][..]),
        // SAFETY: as the caller vouches.
        true => unsafe { std::slice::from_raw_parts(stored.start.cast::<T>(), length) }.into(),
    };
    input.with(stored.transpose)
}

/// C of the program.
///
/// # Safety
///
/// As for [`input`], and nothing else refers to it.
pub unsafe fn output<C: Element>(stored: &Stored, count: usize) -> Output<'static, C> {
    let (start, length) = (stored.start.cast::<C>().cast_mut(), stored.extent(count));
    match SETTINGS.is_simulator {
        false => Output::at(start.addr() as u64, length),
        true if length == 0 => Output::from(&mut [][..]),
        // SAFETY: as the caller vouches.
        true => unsafe { std::slice::from_raw_parts_mut(start, length) }.into(),
    }
}
