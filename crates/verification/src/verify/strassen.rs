//! Bounds of the rounding errors of Strassen's algorithm.
//!
//! Its sums of quarters mix unrelated elements, so errors are bounded relative to the largest
//! elements, `max|A| * max|B|`, not to the terms of each sum. For n = 2^j * n0, with cutoff n0,
//! the bound is, to first order in u,
//!
//! ```text
//!     ((n / n0)^log2(12) * (n0^2 + 5 * n0) - 5 * n) * u * max|A| * max|B|
//! ```
//!
//! (R. P. Brent, 1970; N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd
//! edition, section 23.2.2). [`Growth`] follows the same recursion for any shape, with odd sizes
//! peeled off, and keeps terms of higher order.

use gpu_gemm::Shape;

/// How errors and magnitudes grow, in units of `max|A| * max|B|`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// The largest error of an element of the product.
    pub error: f64,
    /// The number of products that can underflow into an element of the product.
    pub underflows: f64,
    /// The largest magnitude that any intermediate result can have.
    pub intermediate: f64,
    /// Levels of the recursion.
    pub levels: u32,
}

impl Growth {
    /// The growth for a product of this shape, halved until a dimension is at most `cutoff`, in
    /// arithmetic of unit roundoff `u`.
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
        // A sum of two quarters is at most twice as large as a quarter, and rounded. An element of
        // C11 (or C22) is the sum of four products: two multiply two such sums, two only one.
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

    /// Computed with fractions from the standard model of C11 = M1 + M4 - M5 + M7, with u so large
    /// that each rounding is visible.
    #[test]
    fn it_is_what_the_recursion_gives_in_exact_fractions() {
        let [coarse, fine, f32] = [-3, -6, -24].map(|power| 2f64.powi(power));
        for (shape, cutoff, u, error, underflows, intermediate, levels) in [
            // Sums of an even number of terms, and with one that is peeled off.
            ([4, 4, 4], 2, coarse, 26.545_898_437_5, 9, 25, 1),
            ([4, 4, 5], 2, coarse, 30.739_135_742_187_5, 9, 25, 1),
            ([3, 3, 3], 1, coarse, 11.495343889508929, 5, 13, 1),
            ([2, 2, 2], 0, coarse, 9.662527901785714, 5, 13, 1),
            ([9, 9, 9], 2, coarse, 598.7372931689024, 37, 100, 2),
            // The recursion ends at the smallest dimension, whichever that is.
            ([8, 40, 41], 4, fine, 133.214177230881, 81, 241, 1),
            ([40, 9, 40], 4, fine, 130.50318988886747, 81, 241, 1),
            ([40, 41, 11], 4, fine, 35.48931685876609, 37, 100, 2),
            ([31, 30, 29], 3, fine, 784.6192854606581, 213, 592, 3),
            ([4096; 3], 512, f32, 27.24229770766796, 32_789, 98_320, 3),
        ] {
            let [m, n, k] = shape;
            let growth = Growth::new(Shape::new(m, n, k), cutoff, u);
            assert!((growth.error / error - 1.0).abs() < 1e-13, "{shape:?}");
            let found = [growth.underflows, growth.intermediate];
            assert_eq!(found, [underflows, intermediate].map(f64::from));
            assert_eq!(growth.levels, levels, "{shape:?}");
        }
    }

    #[test]
    fn inner_sums_too_long_for_a_bound_leave_none() {
        let of = |size| Growth::new(Shape::cube(size), 9, 0.125).error;
        assert_eq!([16, 18, 34].map(of), [f64::INFINITY; 3]);
    }
}
