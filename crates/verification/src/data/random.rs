//! Random data.

use clap::ValueEnum;
use rand::RngExt;
use rand_pcg::Pcg64;

/// What fills the matrices: the values of `--data`, and integers of some kinds. For integers,
/// `Uniform` and `Normal` cover the full range of the type, so that sums wrap.
// `Number::LARGEST_POWER` limits the powers of `Graded` and `Wide`. Powers of two do not round, so
// no element of graded data is less accurate than one of normal data. In wide data all terms are
// as large as those of normal data: no product of large elements hides an error in small ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Data {
    /// Random, normal with mean 0 and variance 1
    Normal,
    /// Random, uniform over [-1, 1)
    Uniform,
    /// Random, uniform over [0, 1)
    Positive,
    /// Random, normal, each row of A and each column of B times a power of two of its own, 2^-40
    /// to 2^40 (f16: 2^-2 to 2^2; integers: none)
    Graded,
    /// Random, normal, each column of A times a power of two of its own, 2^-20 to 2^20 (f16: 2^-1
    /// to 2; integers: none), by which the row of B that it meets is divided: a wide range within
    /// rows of A and columns of B, of terms of one size
    Wide,
    /// Random integers from -4 to 4, or fewer where k is so large that their sums would round
    Integers,
    /// The sum of an element's row and column, counted from 0
    IndexSum,
    /// Integers from `-largest` to `largest`, with exact sums of products.
    #[value(skip)]
    SmallIntegers { largest: i32 },
    /// Small integers, but at every `every`-th index along k one matrix holds odd numbers of
    /// exactly `bits` bits and the other holds 1 and -1, A and B in turn. A kernel that keeps
    /// fewer bits of an element makes an error of at least 1.
    #[value(skip)]
    WideIntegers {
        largest: i32,
        bits: u32,
        every: usize,
    },
    /// Odd numbers of exactly `bits` bits, at least 2, of either sign.
    #[value(skip)]
    OddIntegers { bits: u32 },
    /// 1 and -1.
    #[value(skip)]
    Signs,
    /// This integer everywhere.
    #[value(skip)]
    Constant(i32),
}

impl Data {
    /// The data of an element of A, by its row and its index along k.
    pub(super) fn of_a(self, row: usize, index: usize) -> Data {
        self.at(index, 0).of_c(row, index)
    }

    /// The data of an element of B.
    pub(super) fn of_b(self, index: usize, column: usize) -> Data {
        self.at(index, 1).of_c(index, column)
    }

    /// The data of an element of C.
    pub(super) fn of_c(self, row: usize, column: usize) -> Data {
        match self {
            Data::IndexSum => Data::Constant((row + column) as i32),
            other => other,
        }
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

    /// An integer of this kind.
    pub(super) fn integer(self, generator: &mut Pcg64) -> i32 {
        let sign = |generator: &mut Pcg64| if generator.random() { 1 } else { -1 };
        match self {
            Data::SmallIntegers { largest } | Data::WideIntegers { largest, .. } => {
                generator.random_range(-largest..=largest)
            }
            Data::OddIntegers { bits } => {
                let half = generator.random_range(1 << (bits - 2)..1 << (bits - 1));
                sign(generator) * (2 * half + 1)
            }
            Data::Integers => generator.random_range(-4..=4),
            Data::Constant(integer) => integer,
            _ => sign(generator),
        }
    }
}

/// The powers of two that scale the rows of A, the columns of B, and, in both, each index along k.
/// They depend only on the seed and the index, whatever part of a matrix is filled.
#[derive(Default)]
pub(super) struct Powers {
    rows: Vec<i32>,
    columns: Vec<i32>,
    along_k: Vec<i32>,
}

impl Powers {
    /// The powers of `data`, limited by [`super::Number::LARGEST_POWER`], for this many rows of
    /// A, columns of B, and indices along k.
    pub fn new(largest_power: i32, data: Data, seed: u64, [m, n, k]: [usize; 3]) -> Powers {
        let random = |largest: i32, count: usize, of: u64| {
            let mut generator = Pcg64::new(seed.into(), 0x9a3d_ed00 | u128::from(of));
            let power = |_| generator.random_range(-largest..=largest);
            (0..count).map(power).collect()
        };
        match data {
            Data::Graded => Powers {
                rows: random(largest_power, m, 0),
                columns: random(largest_power, n, 1),
                along_k: Vec::new(),
            },
            Data::Wide => Powers {
                along_k: random(largest_power / 2, k, 2),
                ..Powers::default()
            },
            _ => Powers::default(),
        }
    }

    /// The power of an element of A.
    pub fn of_a(&self, row: usize, index: usize) -> i32 {
        power(&self.rows, row) + power(&self.along_k, index)
    }

    /// The power of an element of B.
    pub fn of_b(&self, index: usize, column: usize) -> i32 {
        power(&self.columns, column) - power(&self.along_k, index)
    }

    /// The power of an element of C.
    pub fn of_c(&self, row: usize, column: usize) -> i32 {
        power(&self.rows, row) + power(&self.columns, column)
    }
}

/// The power of an index; 0 where the data is not scaled.
fn power(powers: &[i32], index: usize) -> i32 {
    powers.get(index).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Number;
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
            assert_eq!(
                (data.of_a(3, index), data.of_b(index, 3)),
                (a, b),
                "{index}"
            );
        }
    }
}
