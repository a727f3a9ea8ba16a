//! Data with sums that never round, so that results can be compared for equality.

use super::lines::{integer_magnitude, largest_in_columns, largest_in_rows};
use super::outcome::Failure;
use crate::data::{Arithmetic, Data, Number, Problem};

/// Integers whose products add up exactly over `k` terms in `T`, with a factor of 4 to spare for
/// `alpha` and `beta * c`; `None` if `k` is so large that not even -1, 0 and 1 do.
///
/// A few hundred terms have a factor with more bits than a lower precision keeps (12: more than
/// TF32's 11 and bf16's 8; 27 for f64: more than f32's 24), the others are integers of up to 4.
/// Where `k` is too large for the long factors, all are small.
pub fn exact_data<T: Number>(k: usize) -> Option<Data> {
    let limit = exact_integers::<T>() / 4.0;
    let bits = match limit > 2f64.powi(32) {
        true => 27,
        false => 12,
    };
    exact_data_of_bits::<T>(k, bits)
}

/// The significant bits of TF32, more than bf16's 8.
pub const TF32_BITS: i32 = 11;

/// [`exact_data`] with `bits` bits in its longest factors.
pub fn exact_data_of_bits<T: Number>(k: usize, bits: i32) -> Option<Data> {
    let limit = exact_integers::<T>() / 4.0;
    // Half of the range for either kind. Results in f16 stay finite.
    let wide = (limit / 2.0).min(largest_element::<T>() / 4.0);
    let wide_terms = (wide / 2f64.powi(bits)) as usize;
    let fits = |largest: &i32| f64::from(largest * largest) * k as f64 <= limit / 2.0;
    let wide = (1..=4).rev().find(fits).map(|largest| Data::WideIntegers {
        largest,
        bits: bits as u32,
        every: k.div_ceil(wide_terms).max(1),
    });
    wide.or_else(|| small_integers::<T>(k))
}

/// Integers of up to 4, or fewer where `k` is large; else as [`exact_data`].
pub fn small_integers<T: Number>(k: usize) -> Option<Data> {
    small_integers_with_headroom::<T>(k, 1.0)
}

/// The largest finite element.
fn largest_element<T: Number>() -> f64 {
    match T::ARITHMETIC {
        Arithmetic::Float { largest, .. } => largest,
        Arithmetic::WrappingInteger { .. } => f64::INFINITY,
    }
}

/// The significant bits of an element type.
pub fn precision<T: Number>() -> i32 {
    match T::ARITHMETIC {
        Arithmetic::Float { exact_integers, .. } => exact_integers.log2() as i32,
        Arithmetic::WrappingInteger { bits } => bits as i32,
    }
}

/// [`small_integers`] for an algorithm whose intermediate results are up to `headroom` times as
/// large as its sums.
pub(super) fn small_integers_with_headroom<T: Number>(k: usize, headroom: f64) -> Option<Data> {
    let limit = exact_integers::<T>() / headroom;
    (1..=4)
        .rev()
        .find(|&largest| f64::from(largest * largest) * k as f64 <= limit / 4.0)
        .map(|largest| Data::SmallIntegers { largest })
}

/// Refuses data whose sums might round. Returns a magnitude that no element of the result exceeds.
pub(super) fn require_exact_sums<T: Number>(problem: &Problem<T>) -> Result<f64, Failure> {
    let refuse = |what: &str| Err(Failure::Unprovable(format!("{what}, so sums may round.")));
    let [alpha, beta] = [problem.alpha, problem.beta].map(integer_magnitude);
    if alpha + beta == f64::INFINITY {
        return refuse("alpha or beta is no integer");
    }
    let (mut sum, mut c) = (0.0, 0.0);
    if alpha != 0.0 {
        // The largest term with each index along k. Infinity times 0 would be a NaN.
        let a = largest_in_columns(&problem.a, 0.0, integer_magnitude);
        let b = largest_in_rows(&problem.b, 0.0, integer_magnitude);
        let terms = a.iter().zip(&b).map(|(&a, &b)| match a.max(b) {
            f64::INFINITY => f64::INFINITY,
            _ => a * b,
        });
        sum = terms.sum();
    }
    if beta != 0.0 {
        let rows = largest_in_rows(&problem.c, 0.0, integer_magnitude);
        c = rows.into_iter().fold(0.0, f64::max);
    }
    if sum.max(c) == f64::INFINITY {
        return refuse("an element is no integer");
    }
    let result = sum * alpha + c * beta;
    match sum.max(result) <= exact_integers::<T>() {
        true => Ok(result),
        false => refuse("the integers are too large for this k"),
    }
}

/// All integers up to this magnitude are sums without rounding.
pub(super) fn exact_integers<T: Number>() -> f64 {
    match T::SUMS {
        Arithmetic::Float { exact_integers, .. } => exact_integers,
        Arithmetic::WrappingInteger { bits } => 2f64.powi(bits as i32 - 1) - 1.0,
    }
}

#[cfg(test)]
mod tests {
    use gpu_gemm::F16;

    use super::*;
    use crate::data::Matrix;

    #[test]
    fn small_integers_get_smaller_and_wide_ones_rarer_as_sums_get_longer() {
        let small = |largest| Some(Data::SmallIntegers { largest });
        for (k, largest) in [(0, 4), (1 << 18, 4), (1 << 20, 2), (1 << 22, 1)] {
            assert_eq!(small_integers::<f32>(k), small(largest));
        }
        assert_eq!(small_integers::<f32>((1 << 22) + 1), None);
        let wide = |largest, bits, every| {
            Some(Data::WideIntegers {
                largest,
                bits,
                every,
            })
        };
        for (k, largest, every) in [(0, 4, 1), (513, 4, 2), (16_384, 4, 32), (1 << 21, 1, 4096)] {
            assert_eq!(exact_data::<f32>(k), wide(largest, 12, every));
        }
        assert_eq!(exact_data::<f32>((1 << 21) + 1), small(1));
        assert_eq!(exact_data::<f32>((1 << 22) + 1), None);
        // More bits than f32 keeps.
        let of_f64 = exact_data::<f64>(1 << 20);
        assert!(matches!(of_f64, Some(Data::WideIntegers { bits: 27, .. })));
        // 65504 / 4 of f16 has room for seven of up to 2^11.
        for (k, every) in [(1, 1), (7, 1), (5000, 715)] {
            assert_eq!(exact_data_of_bits::<F16>(k, 11), wide(4, 11, every));
        }
    }

    /// A column of `a` times a row of `b`, added up over `k`, and a C.
    fn outer(k: usize, [a, b, c]: [f32; 3], [alpha, beta]: [f32; 2]) -> Problem<f32> {
        let matrix =
            |rows, columns, element| Matrix::from_elements(rows, columns, |_, _| element).unwrap();
        let (a, b, c) = (matrix(2, k, a), matrix(k, 3, b), matrix(2, 3, c));
        Problem::new(alpha, beta, a, b, c).unwrap()
    }

    /// Sums of up to 2^24 are exact; larger ones may round.
    #[test]
    fn the_largest_integer_of_a_result_is_what_its_terms_add_up_to_or_the_reason_is_told() {
        let (half, most) = (8_388_608.0, 16_777_216.0);
        let (element, scalar) = ("an element is no integer", "alpha or beta is no integer");
        let large = "the integers are too large for this k";
        for (k, elements, scalars, largest) in [
            (5, [3.0, -7.0, 11.0], [-2.0, 3.0], Ok(243.0)),
            (5, [3.0, -7.0, 11.0], [0.0, -3.0], Ok(33.0)),
            (5, [-3.0, 7.0, 11.0], [4.0, 0.0], Ok(420.0)),
            (5, [3.0, 0.0, 0.0], [1.0, 1.0], Ok(0.0)),
            (0, [3.0, 7.0, 11.0], [1.0, 1.0], Ok(11.0)),
            (1, [half, 2.0, 0.0], [1.0, 0.0], Ok(most)),
            (1, [half, 1.0, 0.0], [-2.0, 0.0], Ok(most)),
            (1, [half, 1.0, half], [1.0, -1.0], Ok(most)),
            (1, [half, 2.0, 1.0], [1.0, 1.0], Err(large)),
            (1, [half, 1.0, 1.0], [2.0, 1.0], Err(large)),
            (1, [half, 1.0, 0.0], [3.0, 0.0], Err(large)),
            (2, [1e8, 1.0, 1.0], [1.0, 0.0], Err(large)),
            (2, [0.5, 1.0, 1.0], [1.0, 0.0], Err(element)),
            (2, [f32::NAN, 0.0, 1.0], [1.0, 0.0], Err(element)),
            (2, [1.0, f32::INFINITY, 1.0], [1.0, 0.0], Err(element)),
            (2, [1.0, 1.0, 0.5], [1.0, 1.0], Err(element)),
            (2, [1.0; 3], [1.5, 0.0], Err(scalar)),
            (2, [1.0; 3], [1.0, 0.5], Err(scalar)),
            // Matrices that are not read may hold anything.
            (2, [f32::NAN; 3], [0.0, 0.0], Ok(0.0)),
        ] {
            let refused = |why| Failure::Unprovable(format!("{why}, so sums may round."));
            let found = require_exact_sums(&outer(k, elements, scalars));
            assert_eq!(
                found,
                largest.map_err(refused),
                "{k} {elements:?} {scalars:?}"
            );
        }
        // The largest elements count of each column of A and row of B, wherever they are.
        let mut problem = outer(200, [1.0, -1.0, 0.0], [1.0, 0.0]);
        problem.a.row_mut(1)[199] = -5.0;
        problem.b.row_mut(199)[2] = 4.0;
        problem.b.row_mut(130)[0] = 9.0;
        assert_eq!(require_exact_sums(&problem), Ok(198.0 + 20.0 + 9.0));
    }
}
