//! Random matrices' elements.

use rand::RngExt;
use rand_distr::StandardNormal;
use rand_pcg::Pcg64;

use gpu_gemm::{Bf16, F16};

use super::number::Number;

/// What fills the matrices. For integers, `Uniform` and `Normal` cover the full range of the
/// type, so that sums wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// Integers from `-largest` to `largest`, whose sums of products stay exact.
    SmallIntegers { largest: i32 },
    /// Small integers, but at every `every`-th index along k one matrix holds odd numbers of
    /// exactly `bits` bits and the other holds 1 and -1: A and B take turns. A kernel that keeps
    /// fewer bits of an element is off by an integer.
    WideIntegers {
        largest: i32,
        bits: u32,
        every: usize,
    },
    /// Odd numbers of exactly so many bits, at least 2, of either sign.
    OddIntegers { bits: u32 },
    /// 1 and -1.
    Signs,
    /// Uniform over [-1, 1).
    Uniform,
    /// Uniform over [0, 1): nothing cancels, so rounding errors pile up.
    Positive,
    /// Normal with mean 0 and variance 1: what a benchmark should multiply.
    Normal,
}

impl Data {
    /// What fills the column of A with this index along k.
    pub fn of_a(self, index: usize) -> Data {
        self.at(index, 0)
    }

    /// What fills the row of B with this index along k.
    pub fn of_b(self, index: usize) -> Data {
        self.at(index, 1)
    }

    fn at(self, index: usize, turn: usize) -> Data {
        match self {
            Data::WideIntegers { bits, every, .. } if index.is_multiple_of(every) => {
                match index / every % 2 == turn {
                    true => Data::OddIntegers { bits },
                    false => Data::Signs,
                }
            }
            Data::WideIntegers { largest, .. } => Data::SmallIntegers { largest },
            other => other,
        }
    }

    /// An integer of this kind; `None` if this is no kind of integers.
    fn integer(self, generator: &mut Pcg64) -> Option<i32> {
        let sign = |generator: &mut Pcg64| if generator.random() { 1 } else { -1 };
        match self {
            Data::SmallIntegers { largest } | Data::WideIntegers { largest, .. } => {
                Some(generator.random_range(-largest..=largest))
            }
            Data::OddIntegers { bits } => {
                let half = generator.random_range(1 << (bits - 2)..1 << (bits - 1));
                Some(sign(generator) * (2 * half + 1))
            }
            Data::Signs => Some(sign(generator)),
            Data::Uniform | Data::Positive | Data::Normal => None,
        }
    }
}

/// A number that can be random.
pub trait Random: Number {
    /// One of random `data`.
    fn random(data: Data, generator: &mut Pcg64) -> Self;
}

impl Random for f32 {
    fn random(data: Data, generator: &mut Pcg64) -> f32 {
        match data {
            Data::Uniform => 2.0 * generator.random::<f32>() - 1.0,
            Data::Positive => generator.random(),
            Data::Normal => generator.sample::<f64, _>(StandardNormal) as f32,
            // Of at most 24 bits.
            integers => integers.integer(generator).unwrap_or_default() as f32,
        }
    }
}

impl Random for f64 {
    fn random(data: Data, generator: &mut Pcg64) -> f64 {
        match data {
            Data::Uniform => 2.0 * generator.random::<f64>() - 1.0,
            Data::Positive => generator.random(),
            Data::Normal => generator.sample(StandardNormal),
            integers => integers.integer(generator).unwrap_or_default().into(),
        }
    }
}

macro_rules! half {
    ($($half:ident),*) => {
        $(
            impl Random for $half {
                fn random(data: Data, generator: &mut Pcg64) -> $half {
                    $half::from_f32(f32::random(data, generator))
                }
            }
        )*
    };
}

half!(Bf16, F16);

impl Random for i32 {
    fn random(data: Data, generator: &mut Pcg64) -> i32 {
        match data {
            Data::Positive => generator.random_range(0..=i32::MAX),
            Data::Uniform | Data::Normal => generator.random(),
            integers => integers.integer(generator).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_pcg::rand_core::SeedableRng;

    #[test]
    fn odd_integers_have_exactly_their_bits() {
        let mut generator = Pcg64::seed_from_u64(1);
        let mut signs = [false; 2];
        for _ in 0..1000 {
            let odd = i32::random(Data::OddIntegers { bits: 12 }, &mut generator);
            assert!(odd % 2 != 0 && (2048..4096).contains(&odd.abs()), "{odd}");
            signs[usize::from(odd > 0)] = true;
        }
        assert_eq!(signs, [true; 2]);
    }

    #[test]
    fn wide_integers_are_in_a_and_b_in_turn() {
        let (largest, bits) = (3, 12);
        let data = Data::WideIntegers {
            largest,
            bits,
            every: 5,
        };
        let (odd, small) = (Data::OddIntegers { bits }, Data::SmallIntegers { largest });
        for (index, a, b) in [
            (0, odd, Data::Signs),
            (1, small, small),
            (5, Data::Signs, odd),
            (9, small, small),
            (10, odd, Data::Signs),
        ] {
            assert_eq!((data.of_a(index), data.of_b(index)), (a, b), "{index}");
        }
    }

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
