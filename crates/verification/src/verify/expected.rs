//! The expected value of an element.

use super::compensated::Sum;
use crate::data::{Number, Problem};
use crate::epilogue::Epilogue;

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

    /// After the epilogue, if there is one; `magnitude` is that of its argument.
    pub(super) fn after(self, epilogue: Option<Epilogue>, column: usize) -> Expected {
        let Some(epilogue) = epilogue else {
            return self;
        };
        let bias = f64::from(epilogue.bias(column));
        Expected {
            want: epilogue.activation(self.want + bias),
            magnitude: self.magnitude + bias.abs(),
        }
    }
}
