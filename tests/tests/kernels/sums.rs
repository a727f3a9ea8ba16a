//! What tests of products with sums in f32 share.

use std::fmt::{Debug, Display};

use gpu_gemm::{Element, Scalar};
use libtest_mimic::Failed;

pub type Tested = Result<(), Failed>;

/// The number in a type, rounded.
pub fn of<T: Element>(number: f32) -> T {
    T::of(Scalar::F32(number)).expect("a type with sums in f32")
}

pub fn number<T: Element<Scalar = f32>>(of: &T) -> f64 {
    f64::from(f32::of(of.scalar()).expect("an f32"))
}

/// Checks each case; an error says which.
pub fn each<T: Copy + Debug>(
    cases: impl IntoIterator<Item = T>,
    check: impl Fn(T) -> Tested,
) -> Tested {
    cases.into_iter().try_for_each(|case| {
        let wrong = check(case);
        wrong.map_err(|error| format!("{case:?}: {}", error.message().unwrap_or_default()).into())
    })
}

/// An element of C is what it must be.
pub fn same<C: Element<Scalar = f32>>(got: &C, expected: &C, place: impl Display) -> Tested {
    match got == expected {
        true => Ok(()),
        false => Err(format!("C{place} is {}, not {}", number(got), number(expected)).into()),
    }
}
