//! How large the rounding errors of Strassen's algorithm can be.
//!
//! Its sums of quarters mix unrelated elements, so errors are bounded against the largest
//! elements, `max|A| * max|B|`, not against the terms of each sum. For n = 2^j * n0, with cutoff
//! n0, the bound is, to first order in u,
//!
//! ```text
//!     ((n / n0)^log2(12) * (n0^2 + 5 * n0) - 5 * n) * u * max|A| * max|B|
//! ```
//!
//! (R. P. Brent, 1970; N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd
//! edition, section 23.2.2). [`Growth`] follows the same recursion for any shape, odd sizes
//! peeled off, and keeps the terms of higher order.

use gpu_gemm::Shape;

/// What becomes of errors and magnitudes, in units of `max|A| * max|B|`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// The largest error of an element of the product.
    pub error: f64,
    /// Products whose underflow an element of the product gathers.
    pub underflows: f64,
    /// The largest magnitude that any intermediate result can have.
    pub intermediate: f64,
    /// Levels of the recursion.
    pub levels: u32,
}

impl Growth {
    /// For a product of this shape, whose factors are halved until a dimension is at most
    /// `cutoff`, in arithmetic of unit roundoff `u`.
    pub fn new(shape: Shape, cutoff: usize, u: f64) -> Growth {
        let Shape { m, n, k } = shape;
        let terms = k as f64;
        if m.min(n).min(k) <= cutoff.max(1) {
            let rounding = terms * u;
            return Growth {
                // gamma(k) of a sum of k products; a sum too long for gamma has no bound.
                error: match rounding < 1.0 {
                    true => rounding / (1.0 - rounding) * terms,
                    false => f64::INFINITY,
                },
                underflows: terms,
                intermediate: terms,
                levels: 0,
            };
        }
        let half = Shape::new(m / 2, n / 2, k / 2);
        let inner = Growth::new(half, cutoff, u);
        let half_terms = half.k as f64;
        // A sum of two quarters is at most twice as large as they are, and rounded. Of the four
        // products that make up an element of C11 (or C22), two multiply two such sums, two only
        // one.
        let product = |largest: f64, rounding: f64| {
            let size = largest * half_terms;
            let error = inner.error * largest * (1.0 + rounding) + size * rounding;
            (size, error)
        };
        let two_sums = product(4.0, u * (2.0 + u));
        let one_sum = product(2.0, u);
        let (mut size, mut error) = (two_sums.0 + two_sums.1, two_sums.1);
        for (added, added_error) in [one_sum, one_sum, two_sums] {
            size += added + added_error;
            error += added_error + u * size;
            size *= 1.0 + u;
        }
        if k % 2 == 1 {
            // The last term is multiplied and added.
            error += u * (terms + error + 2.0);
        }
        Growth {
            error,
            underflows: 4.0 * inner.underflows + 1.0,
            intermediate: (4.0 * inner.intermediate).max(12.0 * half_terms + 1.0),
            levels: inner.levels + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_at_most_highams_and_no_smaller_than_nine_tenths_of_it() {
        for u in [2f64.powi(-53), 2f64.powi(-40)] {
            for (cutoff, levels) in [(1, 1), (8, 3), (64, 4), (256, 2)] {
                let size = cutoff << levels;
                let growth = Growth::new(Shape::cube(size), cutoff, u);
                let (n, n0) = (size as f64, cutoff as f64);
                let higham = (n / n0).powf(12f64.log2()) * (n0 * n0 + 5.0 * n0) - 5.0 * n;
                assert_eq!(growth.levels, levels);
                let share = growth.error / (higham * u);
                assert!(
                    (0.9..1.0 + 1e-6).contains(&share),
                    "{cutoff}, {levels}: {share}"
                );
            }
        }
    }

    /// In fractions, from the standard model of C11 = M1 + M4 - M5 + M7: with u so large that each
    /// rounding shows.
    #[test]
    fn it_is_what_the_recursion_gives_in_exact_fractions() {
        let (coarse, fine) = (2f64.powi(-3), 2f64.powi(-6));
        for (shape, cutoff, u, error, underflows, intermediate, levels) in [
            // Sums of an even number of terms, and with one that is peeled off.
            ([4, 4, 4], 2, coarse, 26.545_898_437_5, 9.0, 25.0, 1),
            ([4, 4, 5], 2, coarse, 30.739_135_742_187_5, 9.0, 25.0, 1),
            ([3, 3, 3], 1, coarse, 11.495_343_889_508_929, 5.0, 13.0, 1),
            ([2, 2, 2], 0, coarse, 9.662_527_901_785_714, 5.0, 13.0, 1),
            ([9, 9, 9], 2, coarse, 598.737_293_168_902_4, 37.0, 100.0, 2),
            // It ends at the smallest dimension, whichever that is.
            ([8, 40, 41], 4, fine, 133.214_177_230_881, 81.0, 241.0, 1),
            ([40, 9, 40], 4, fine, 130.503_189_888_867_47, 81.0, 241.0, 1),
            ([40, 41, 11], 4, fine, 35.489_316_858_766_09, 37.0, 100.0, 2),
            (
                [31, 30, 29],
                3,
                fine,
                784.619_285_460_658_1,
                213.0,
                592.0,
                3,
            ),
            // f32.
            (
                [100, 100, 1023],
                12,
                2f64.powi(-24),
                1.723_817_036_518_425_5,
                8149.0,
                24_400.0,
                3,
            ),
            (
                [4096; 3],
                512,
                2f64.powi(-24),
                27.242_297_707_667_96,
                32_789.0,
                98_320.0,
                3,
            ),
        ] {
            let [m, n, k] = shape;
            let growth = Growth::new(Shape::new(m, n, k), cutoff, u);
            let off = (growth.error / error - 1.0).abs();
            assert!(off < 1e-13, "{shape:?}: {} {error}", growth.error);
            assert_eq!(growth.underflows, underflows, "{shape:?}");
            assert_eq!(growth.intermediate, intermediate, "{shape:?}");
            assert_eq!(growth.levels, levels, "{shape:?}");
        }
    }

    #[test]
    fn inner_sums_too_long_for_a_bound_leave_none() {
        for size in [16, 18, 34] {
            let growth = Growth::new(Shape::cube(size), 9, 0.125);
            assert_eq!(growth.error, f64::INFINITY, "{size}");
        }
    }

    #[test]
    fn without_recursion_it_is_the_bound_of_a_plain_sum() {
        let u = 2f64.powi(-24);
        let growth = Growth::new(Shape::new(9, 500, 500), 9, u);
        assert_eq!(growth.error, 500.0 * 500.0 * u / (1.0 - 500.0 * u));
        assert_eq!((growth.levels, growth.intermediate), (0, 500.0));
    }
}
