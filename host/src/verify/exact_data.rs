//! Data whose sums never round, so that a result can be compared for equality.

use crate::data::{Arithmetic, Data, Number};

/// Integers of up to 4, or fewer where `k` is large, whose products add up exactly over `k`
/// terms in `T`, with a factor of 4 to spare for `alpha` and `beta * c`; `None` if `k` is so
/// large that not even -1, 0 and 1 do.
pub fn exact_data<T: Number>(k: usize) -> Option<Data> {
    exact_data_with_headroom::<T>(k, 1.0)
}

/// [`exact_data`] for an algorithm whose intermediate results are up to `headroom` times as
/// large as its sums.
pub(super) fn exact_data_with_headroom<T: Number>(k: usize, headroom: f64) -> Option<Data> {
    let limit = exact_integers::<T>() / headroom;
    (1..=4)
        .rev()
        .find(|&largest| f64::from(largest * largest) * k as f64 <= limit / 4.0)
        .map(|largest| Data::SmallIntegers { largest })
}

/// All integers up to this magnitude are elements.
pub(super) fn exact_integers<T: Number>() -> f64 {
    match T::ARITHMETIC {
        Arithmetic::Float { exact_integers, .. } => exact_integers,
        Arithmetic::WrappingInteger { bits } => 2f64.powi(bits as i32 - 1) - 1.0,
    }
}
