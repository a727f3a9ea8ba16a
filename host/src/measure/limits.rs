//! What no time can be: a sum of launches longer than the clock on the wall shows, more operations
//! a second than the GPU has lanes for, or a launch shorter than its matrices take to pass through
//! memory. A figure beyond is a mistake in the measurement, whatever was measured.

// A NaN must fail every comparison, so they are written as what must hold, negated.
#![allow(clippy::neg_cmp_op_on_partial_ord)]

use std::time::Duration;

use gpu_gemm::ElementType;
use thiserror::Error;

use super::timing::Timing;
use crate::data::{Number, Problem};

/// Part of the memory traffic that may stay in the L2, though each launch gets copies of the
/// matrices that were not used just before, together twice the L2.
const IN_L2: f64 = 0.5;

/// Clocks and events are so exact.
const SLACK: f64 = 1.02;

/// The limits of a GPU, and of the time in which it did everything.
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
    /// Checks the times of what multiplied `problem`.
    ///
    /// # Errors
    ///
    /// They cannot be true.
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
    use crate::data::{Data, Layout};
    use gpu_gemm::Shape;

    /// 1 TFLOP/s and 1 TB/s, for a second.
    const LIMITS: Limits = Limits {
        peak_flops_per_s: Some(1e12),
        bandwidth_bytes_per_s: 1e12,
        elapsed: Duration::from_secs(1),
    };

    /// Of a product of this shape in so many seconds, with 10 runs of 2 launches.
    fn refusal(shape: Shape, alpha: f32, seconds: f64) -> Option<String> {
        let timing = Timing::new(vec![seconds; 10], 0, 2);
        refusal_by(LIMITS, shape, alpha, timing)
    }

    fn refusal_by(limits: Limits, shape: Shape, alpha: f32, timing: Timing) -> Option<String> {
        let layout = Layout::compact(shape);
        let problem = Problem::random(shape, layout, Data::Normal, 1, alpha, 0.0).unwrap();
        let checked = limits.check("some-kernel", &problem, &timing);
        checked.err().map(|error| error.to_string())
    }

    /// No limits but the clock on the wall, which shows a second.
    const A_SECOND: Limits = Limits {
        peak_flops_per_s: None,
        bandwidth_bytes_per_s: 0.0,
        elapsed: Duration::from_secs(1),
    };

    /// One launch.
    fn once(seconds: f64) -> Timing {
        Timing::new(vec![seconds], 0, 1)
    }

    #[test]
    fn what_is_exactly_at_a_limit_is_not_refused() {
        let one = Shape::new(1, 1, 1);
        assert_eq!(refusal_by(A_SECOND, one, 1.0, once(SLACK)), None);
        assert!(refusal_by(A_SECOND, one, 1.0, once(SLACK.next_up())).is_some());
        // 2 * 51 operations in a second.
        let shape = Shape::new(51, 1, 1);
        let of_peak = |peak| Limits {
            peak_flops_per_s: Some(peak),
            ..A_SECOND
        };
        assert_eq!(100.0 * SLACK, 102.0);
        assert_eq!(refusal_by(of_peak(100.0), shape, 1.0, once(1.0)), None);
        assert!(refusal_by(of_peak(99.99), shape, 1.0, once(1.0)).is_some());
        // The 204 bytes of C alone, of which half may stay in the L2.
        let of_bandwidth = |bytes_per_s| Limits {
            bandwidth_bytes_per_s: bytes_per_s,
            ..A_SECOND
        };
        assert_eq!(102.0 / 100.0, SLACK);
        assert_eq!(refusal_by(of_bandwidth(100.0), shape, 0.0, once(1.0)), None);
        assert!(refusal_by(of_bandwidth(99.99), shape, 0.0, once(1.0)).is_some());
    }

    #[test]
    fn of_a_batch_all_products_count() {
        let (shape, data) = (Shape::new(51, 1, 1), Data::Normal);
        let layout = Layout::compact(shape);
        let refusal = |batch, limits: Limits, alpha: f32| {
            let scalars = (alpha, 0.0);
            let problem = Problem::random_batch(batch, shape, layout, data, 1, scalars).unwrap();
            limits.check("some-kernel", &problem, &once(1.0)).is_err()
        };
        let of_peak = Limits {
            peak_flops_per_s: Some(300.0),
            ..A_SECOND
        };
        assert!(!refusal(3, of_peak, 1.0) && refusal(4, of_peak, 1.0));
        let of_bandwidth = Limits {
            bandwidth_bytes_per_s: 300.0,
            ..A_SECOND
        };
        assert!(!refusal(3, of_bandwidth, 0.0) && refusal(4, of_bandwidth, 0.0));
    }

    #[test]
    fn a_speed_above_the_peak_is_refused_and_the_peak_is_not() {
        // 2^21 operations: 2.1 us at the peak.
        let shape = Shape::new(128, 64, 128);
        assert_eq!(refusal(shape, 1.0, 2.1e-6), None);
        let refused = refusal(shape, 1.0, 2e-6 / 1.1).unwrap();
        assert!(
            refused.contains("1.15 TFLOP/s, but the GPU's peak is 1.00"),
            "{refused}"
        );
        // Nothing is multiplied.
        assert_eq!(refusal(shape, 0.0, 1e-6), None);
    }

    #[test]
    fn a_launch_shorter_than_its_bytes_take_is_refused() {
        // 4 (1 + 2 * 10^4) bytes: 80 ns at 1 TB/s, of which the L2 may save half.
        let shape = Shape::new(1, 1, 10_000);
        assert_eq!(refusal(shape, 1.0, 41e-9), None);
        let refused = refusal(shape, 1.0, 38e-9).unwrap();
        assert!(
            refused.contains("cannot pass through memory in 4.000e-8 s"),
            "{refused}"
        );
        assert_eq!(refusal(shape, 0.0, 38e-9), None);
    }

    #[test]
    fn launches_that_take_longer_than_the_clock_on_the_wall_says_are_refused() {
        let shape = Shape::new(1, 1, 1);
        assert_eq!(refusal(shape, 1.0, 0.05), None);
        let refused = refusal(shape, 1.0, 0.06).unwrap();
        assert!(
            refused.contains("1.200e0 s in all, but only 1.000e0 s went by"),
            "{refused}"
        );
    }

    #[test]
    fn a_time_that_is_not_a_number_is_refused() {
        let shape = Shape::new(1, 1, 1);
        for seconds in [f64::NAN, 0.0, -1.0] {
            assert!(refusal(shape, 1.0, seconds).is_some(), "{seconds}");
        }
    }
}
