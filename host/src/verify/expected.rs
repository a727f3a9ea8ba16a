//! The expected value of an element.

use super::compensated::Sum;
use crate::data::{Number, Problem};

/// The right value of an element, and the magnitude of its terms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expected {
    /// `alpha * sum a b + beta * c`.
    pub want: f64,
    /// `|alpha| * sum |a||b| + |beta||c|`.
    pub magnitude: f64,
}

impl Expected {
    /// The expected element, from `sum a b` with `sum |a||b|`.
    pub(super) fn new<T: Number>(problem: &Problem<T>, sum: Sum, c: f64) -> Expected {
        let (alpha, beta) = (problem.alpha.to_f64(), problem.beta.to_f64());
        let mut total = match alpha {
            0.0 => Sum::default(),
            alpha => sum.scaled(alpha),
        };
        if beta != 0.0 {
            total.add(beta, c);
        }
        Expected {
            want: total.value(),
            magnitude: total.magnitude,
        }
    }
}
