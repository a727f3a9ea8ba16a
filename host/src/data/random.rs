//! Random matrices' elements.

use rand::RngExt;
use rand_distr::StandardNormal;
use rand_pcg::Pcg64;

use super::number::Number;

/// What fills the matrices. For integers, `Uniform` and `Normal` cover the full range of the
/// type, so that sums wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// Integers from `-largest` to `largest`, whose sums of products stay exact.
    SmallIntegers { largest: i32 },
    /// Uniform over [-1, 1).
    Uniform,
    /// Uniform over [0, 1): nothing cancels, so rounding errors pile up.
    Positive,
    /// Normal with mean 0 and variance 1: what a benchmark should multiply.
    Normal,
}

/// A number that can be random.
pub trait Random: Number {
    /// One of random `data`.
    fn random(data: Data, generator: &mut Pcg64) -> Self;
}

impl Random for f32 {
    fn random(data: Data, generator: &mut Pcg64) -> f32 {
        match data {
            Data::SmallIntegers { largest } => generator.random_range(-largest..=largest) as f32,
            Data::Uniform => 2.0 * generator.random::<f32>() - 1.0,
            Data::Positive => generator.random(),
            Data::Normal => generator.sample::<f64, _>(StandardNormal) as f32,
        }
    }
}

impl Random for f64 {
    fn random(data: Data, generator: &mut Pcg64) -> f64 {
        match data {
            Data::SmallIntegers { largest } => generator.random_range(-largest..=largest).into(),
            Data::Uniform => 2.0 * generator.random::<f64>() - 1.0,
            Data::Positive => generator.random(),
            Data::Normal => generator.sample(StandardNormal),
        }
    }
}

impl Random for i32 {
    fn random(data: Data, generator: &mut Pcg64) -> i32 {
        match data {
            Data::SmallIntegers { largest } => generator.random_range(-largest..=largest),
            Data::Positive => generator.random_range(0..=i32::MAX),
            Data::Uniform | Data::Normal => generator.random(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_pcg::rand_core::SeedableRng;

    #[test]
    fn normal_data_has_mean_zero_and_variance_one() {
        let mut generator = Pcg64::seed_from_u64(1);
        let samples: Vec<f64> = (0..100_000)
            .map(|_| f32::random(Data::Normal, &mut generator).to_f64())
            .collect();
        let mean = samples.iter().sum::<f64>() / 1e5;
        let variance = samples.iter().map(|x| x * x).sum::<f64>() / 1e5;
        approx::assert_abs_diff_eq!(mean, 0.0, epsilon = 0.02);
        approx::assert_abs_diff_eq!(variance, 1.0, epsilon = 0.03);
    }
}
