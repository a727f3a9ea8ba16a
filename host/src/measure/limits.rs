//! Times that are impossible: a sum of launches longer than the wall clock shows, more operations
//! a second than the GPU's peak, or a launch too short for its matrices to pass through memory. A
//! figure beyond these limits is a mistake in the measurement.

// A NaN must be refused, so each condition is the negation of what must hold.
#![allow(clippy::neg_cmp_op_on_partial_ord)]

use std::time::Duration;

use gpu_gemm::ElementType;
use thiserror::Error;

use super::timing::Timing;
use crate::data::{Number, Problem};

/// The share of the memory traffic that may stay in the L2, although launches use copies of the
/// matrices in turn, together twice the L2.
const IN_L2: f64 = 0.5;

/// The accuracy of clocks and events.
const SLACK: f64 = 1.02;

/// The limits of a GPU, and the time in which all launches ran.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// `None` where it is not known.
    pub peak_flops_per_s: Option<f64>,
    /// 0 where it is not known.
    pub bandwidth_bytes_per_s: f64,
    /// From before the first launch to after the last.
    pub elapsed: Duration,
}

/// A time that cannot be true.
#[derive(Clone, Debug, Error, PartialEq)]
#[error(
    "The measurement is wrong: {name} took {seconds:.3e} s a launch, {why}. Please report this with `rust-gemm doctor`'s output."
)]
pub struct Implausible {
    name: String,
    seconds: f64,
    why: String,
}

impl Limits {
    /// Checks the times of a contender on `problem`.
    pub fn check<T: Number>(
        &self,
        name: &str,
        problem: &Problem<T>,
        timing: &Timing,
    ) -> Result<(), Implausible> {
        let name = name.to_owned();
        let refuse = |seconds, why| Err(Implausible { name, seconds, why });
        let total = timing.total();
        let elapsed = self.elapsed.as_secs_f64();
        if !(total <= elapsed * SLACK) {
            let why = format!("{total:.3e} s in all, but only {elapsed:.3e} s went by");
            return refuse(timing.max(), why);
        }
        let is_read = problem.alpha != T::default();
        let seconds = timing.median();
        let flops = match is_read {
            true => problem.shape().flops() * problem.batch as f64,
            false => 0.0,
        };
        if let Some(peak) = self.peak_flops_per_s
            && !(flops / seconds <= peak * SLACK)
        {
            let (rate, peak) = (flops / seconds / 1e12, peak / 1e12);
            let why = format!("{rate:.2} TFLOP/s, but the GPU's peak is {peak:.2} TFLOP/s");
            return refuse(seconds, why);
        }
        let of = |rows: usize, columns: usize, element: ElementType| {
            (rows * columns * element.bytes()) as f64
        };
        let shape = problem.shape();
        let operands = match is_read {
            true => of(shape.m, shape.k, problem.inputs) + of(shape.k, shape.n, problem.inputs),
            false => 0.0,
        };
        let bytes = (operands + of(shape.m, shape.n, T::TYPE)) * problem.batch as f64;
        let least = bytes * (1.0 - IN_L2) / self.bandwidth_bytes_per_s;
        if self.bandwidth_bytes_per_s > 0.0 && !(seconds * SLACK >= least) {
            let why = format!("but its matrices cannot pass through memory in {least:.3e} s");
            return refuse(seconds, why);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Data, Storage};
    use gpu_gemm::Shape;

    const SECOND: Duration = Duration::from_secs(1);

    /// Why `timing` is impossible for `batch` products of this shape within one second, with this
    /// peak and this bandwidth (0: no limit).
    fn refusal(
        (batch, shape, alpha): (usize, Shape, f32),
        (peak, bandwidth_bytes_per_s): (f64, f64),
        timing: Timing,
    ) -> Option<String> {
        let storage = Storage {
            batch,
            ..Storage::COMPACT
        };
        let problem = Problem::random(shape, storage, Data::Normal, 1, alpha, 0.0);
        let limits = Limits {
            peak_flops_per_s: Some(peak).filter(|peak| *peak > 0.0),
            bandwidth_bytes_per_s,
            elapsed: SECOND,
        };
        let checked = limits.check("some-kernel", &problem.unwrap(), &timing);
        checked.err().map(|error| error.to_string())
    }

    /// One launch.
    fn once(seconds: f64) -> Timing {
        Timing::new(vec![seconds], 0, 1)
    }

    #[test]
    fn what_is_at_a_limit_is_possible_and_what_is_beyond_is_not() {
        let (one, column) = (Shape::new(1, 1, 1), Shape::new(51, 1, 1));
        assert_eq!((100.0 * SLACK, 102.0 / 100.0), (102.0, SLACK));
        // The peak for 2 * 51 operations a second, and the bandwidth for the 204 bytes of C alone,
        // half of which may stay in the L2; all products of a batch count.
        for (problem, limits, at, beyond) in [
            ((1, one, 1.0), (0.0, 0.0), SLACK, SLACK.next_up()),
            ((1, column, 1.0), (100.0, 0.0), 1.0, 1.0_f64.next_down()),
            ((3, column, 1.0), (300.0, 0.0), 1.0, 1.0_f64.next_down()),
            ((1, column, 0.0), (0.0, 100.0), 1.0, 0.99),
            ((3, column, 0.0), (0.0, 300.0), 1.0, 0.99),
        ] {
            assert_eq!(refusal(problem, limits, once(at)), None, "{problem:?}");
            assert!(
                refusal(problem, limits, once(beyond)).is_some(),
                "{problem:?}"
            );
        }
        for seconds in [f64::NAN, 0.0, -1.0] {
            let refused = refusal((1, column, 1.0), (1e12, 1e12), once(seconds));
            assert!(refused.is_some(), "{seconds}");
        }
    }
}
