//! The fastest of the libraries that kernels are compared with.

use super::record::{Record, Yardstick};
use crate::measure::cublas::is_less_accurate;

impl Yardstick {
    /// The library that kernels are compared with: the fastest of those that are as accurate.
    pub fn fastest(yardsticks: &[Yardstick]) -> Option<&Yardstick> {
        let same = yardsticks
            .iter()
            .filter(|one| !is_less_accurate(&one.kernel));
        let timed = same.filter(|one| one.time_median_s.is_some());
        timed.min_by(|one, other| one.seconds().total_cmp(&other.seconds()))
    }

    /// The operations a second of the library that is fastest in back-to-back launches.
    pub fn fastest_sustained(yardsticks: &[Yardstick]) -> Option<f64> {
        let same = yardsticks
            .iter()
            .filter(|one| !is_less_accurate(&one.kernel));
        let speeds = same.filter_map(|one| Some(one.sustained.as_ref()?.flops_per_s));
        speeds.max_by(f64::total_cmp)
    }

    /// The yardsticks, each with its ratio to the fastest.
    pub fn with_ratios(yardsticks: Vec<Yardstick>) -> Vec<Yardstick> {
        let fastest = Yardstick::fastest(&yardsticks).map(Record::seconds);
        let with = |one: Yardstick| Record {
            ratio_to_cublas: fastest.map(|fastest| fastest / one.seconds()),
            ..one
        };
        yardsticks.into_iter().map(with).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_to_the_faster_library_of_the_same_arithmetic() {
        let timed = |kernel: &str, seconds| Record {
            kernel: kernel.into(),
            time_median_s: Some(seconds),
            ..Record::default()
        };
        let libraries = vec![
            timed("cublas-fp32", 2.0),
            timed("cublaslt-fp32", 1.0),
            timed("cublas-tf32", 0.5),
        ];
        assert_eq!(
            Yardstick::fastest(&libraries).unwrap().kernel,
            "cublaslt-fp32"
        );
        let ratios = Yardstick::with_ratios(libraries).into_iter();
        let ratios: Vec<Option<f64>> = ratios.map(|one| one.ratio_to_cublas).collect();
        assert_eq!(ratios, [0.5, 1.0, 2.0].map(Some));
    }
}
