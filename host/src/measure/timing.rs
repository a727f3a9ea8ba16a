//! The times of one contender.

/// How often to run. What is not given is chosen, for a GPU by a first timing, so that a slow
/// kernel does not take minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Timed runs.
    pub runs: Option<u32>,
    /// Runs before the timed ones, besides those that prove the result.
    pub warmup: Option<u32>,
}

/// The times of one contender.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// Seconds for one launch, of each run, in the order of running. Not empty.
    samples: Vec<f64>,
    /// Runs before the first that counts.
    pub warmup: u32,
    /// Launches whose mean is one sample.
    pub launches_per_run: u32,
}

impl Timing {
    /// Takes samples in seconds.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub fn new(samples: Vec<f64>, warmup: u32, launches_per_run: u32) -> Timing {
        assert!(!samples.is_empty());
        Timing {
            samples,
            warmup,
            launches_per_run,
        }
    }

    /// How many runs counted.
    pub fn runs(&self) -> usize {
        self.samples.len()
    }

    /// The middle one in seconds; the mean of the two in the middle of an even number.
    pub fn median(&self) -> f64 {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            (sorted[middle - 1] + sorted[middle]) / 2.0
        }
    }

    /// Seconds of all timed launches together.
    pub fn total(&self) -> f64 {
        self.samples.iter().sum::<f64>() * f64::from(self.launches_per_run)
    }

    /// The shortest, in seconds.
    pub fn min(&self) -> f64 {
        self.samples.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The longest, in seconds.
    pub fn max(&self) -> f64 {
        self.samples
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(samples: &[f64]) -> Timing {
        Timing::new(samples.to_vec(), 0, 1)
    }

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        assert_eq!(timing(&[5.0, 1.0, 3.0]).median(), 3.0);
        assert_eq!(timing(&[4.0, 1.0, 100.0, 2.0]).median(), 3.0);
        assert_eq!(timing(&[7.0]).median(), 7.0);
    }

    #[test]
    fn the_spread_is_from_the_shortest_to_the_longest() {
        let timing = timing(&[5.0, 1.0, 3.0]);
        assert_eq!((timing.min(), timing.max()), (1.0, 5.0));
    }

    #[test]
    fn one_outlier_does_not_move_the_median() {
        assert_eq!(timing(&[1.0, 1.0, 1.0, 1.0, 1e9]).median(), 1.0);
    }
}
