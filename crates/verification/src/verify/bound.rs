//! Bounds of rounding errors.
//!
//! With unit roundoff u, a sum of k products, in any order, with FMA or without, scaled and
//! added to `beta * c`, is off by at most
//!
//! ```text
//!     gamma(k + 2) * (|alpha| * sum |a||b| + |beta||c|)  +  (k + 2) * max(1, |alpha|) * smallest
//! ```
//!
//! where `gamma(n) = n * u / (1 - n * u)` (Higham, "Accuracy and Stability of Numerical
//! Algorithms", 2nd edition, section 3.1), and the last term is for underflow. The reference is
//! computed in f64. For f32 its own error is 2^-29 of the bound and is not added. For f64 it is
//! computed in twice the precision ([`super::compensated`]); for this the bound adds one rounding
//! of the result, u times the magnitude, the squares of gamma(k + 4) (its sum, its magnitude,
//! alpha and beta), and `5 * (k + 2) * max(1, |alpha|) * smallest`.

use approx::abs_diff_eq;

use super::alarm::Alarm;
use super::compensated::is_as_fine_as_f64;
use super::expected::Expected;
use super::lines::{largest_in_columns, largest_in_rows};
use super::model::ErrorModel;
use super::outcome::{Failure, Line};
use super::signed_sums::LineSum;
use super::strassen::Growth;
use crate::data::{Arithmetic, Matrix, Number, Problem};
use crate::epilogue::{Epilogue, FunctionError};

/// How often a partial sum is rounded to 16 bits with [`ErrorModel::ReducedInHalves`]: once when
/// it is stored, and once for each addition to another, in a tree of up to 128 partial sums.
const ROUNDINGS_OF_PARTS: f64 = 8.0;

/// The error bound of one problem.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorBound {
    gamma: f64,
    underflow: f64,
    /// The part that depends only on the largest elements of A and B: 0 except for Strassen's
    /// algorithm.
    normwise: f64,
    /// The part that depends on an element's row and column, only for split elements.
    maxima: Option<Maxima>,
    unit_roundoff: f64,
    largest: f64,
    /// The relative and the absolute error of rounding a sum to an element: 0 if both have one
    /// type.
    output: (f64, f64),
    /// The error of the epilogue's function.
    function: FunctionError,
}

/// A part of a bound that is proportional to the largest elements of a row of A and a column of B.
#[derive(Clone, Debug, PartialEq)]
struct Maxima {
    factor: f64,
    rows: Vec<f64>,
    columns: Vec<f64>,
}

impl Maxima {
    /// The part for an element of C.
    fn of_element(&self, row: usize, col: usize) -> f64 {
        self.factor * self.rows[row] * self.columns[col]
    }

    /// The part for all elements of each row of C together, or of each column.
    fn of_lines(&self, line: Line) -> Vec<f64> {
        let (each, others) = match line {
            Line::Row => (&self.rows, &self.columns),
            Line::Column => (&self.columns, &self.rows),
        };
        let factor = self.factor * others.iter().sum::<f64>();
        each.iter().map(|largest| factor * largest).collect()
    }
}

/// `rounding / (1 - rounding)`: the relative error of `rounding / u` roundings of a sum at most.
fn gamma(rounding: f64, k: usize, of: impl std::fmt::Display) -> Result<f64, Failure> {
    match rounding < 1.0 {
        true => Ok(rounding / (1.0 - rounding)),
        false => Err(Failure::Unprovable(format!(
            "a sum of {k} products may lose all its digits {of}."
        ))),
    }
}

impl ErrorBound {
    /// The bound for a result that rounds as `model` says.
    ///
    /// # Errors
    ///
    /// The sums are too long for a bound (2^24 terms of f32), or the elements are integers, which
    /// do not round; or the algorithm's intermediate results may be infinite or NaN where the
    /// result is not.
    pub fn new<T: Number>(problem: &Problem<T>, model: ErrorModel) -> Result<ErrorBound, Failure> {
        let bound = ErrorBound::elementwise(problem)?;
        let k = problem.shape().k + usize::from(problem.epilogue.is_some_and(Epilogue::has_bias));
        match model {
            ErrorModel::Elementwise | ErrorModel::Compensated => Ok(bound),
            ErrorModel::Tf32 => bound.on_tensor_cores(k, 1.0 / 1024.0),
            ErrorModel::RoundedTf32 => bound.on_tensor_cores(k, 1.0 / 2048.0),
            ErrorModel::Truncated => bound.on_tensor_cores(k, 0.0),
            ErrorModel::ReducedInHalves => {
                let of_parts = ROUNDINGS_OF_PARTS * bound.output.0;
                Ok(bound.on_tensor_cores(k, 0.0)?.with_roundings(of_parts))
            }
            ErrorModel::Split => bound.on_split_elements(problem),
            ErrorModel::Promoted { interval } => bound.of_14_bits(problem, interval),
            ErrorModel::Strassen { cutoff } => bound.of_strassen(problem, cutoff),
        }
    }

    /// The bound if each product and each addition is rounded once.
    fn elementwise<T: Number>(problem: &Problem<T>) -> Result<ErrorBound, Failure> {
        let (
            Arithmetic::Float {
                unit_roundoff,
                smallest,
                ..
            },
            Arithmetic::Float {
                largest,
                unit_roundoff: of_element,
                smallest: smallest_element,
                ..
            },
        ) = (T::SUMS, T::ARITHMETIC)
        else {
            let why = "integers have no error bound.";
            return Err(Failure::Unprovable(why.to_string()));
        };
        let k = problem.shape().k;
        // A bias is one more term.
        let terms = k + usize::from(problem.epilogue.is_some_and(Epilogue::has_bias));
        let operations = terms as f64 + 2.0;
        let mut gamma = gamma(
            operations * unit_roundoff,
            k,
            format_args!("in {}", T::TYPE),
        )?;
        let mut underflow = operations * problem.alpha.to_f64().abs().max(1.0) * smallest;
        if is_as_fine_as_f64::<T>() {
            let reference = (operations + 2.0) * unit_roundoff;
            gamma += unit_roundoff + 2.0 * (reference / (1.0 - reference)).powi(2);
            underflow *= 6.0;
        }
        Ok(ErrorBound {
            gamma,
            underflow,
            normwise: 0.0,
            maxima: None,
            unit_roundoff,
            largest,
            output: match T::rounds_sums() {
                true => (of_element, 0.5 * smallest_element),
                false => (0.0, 0.0),
            },
            function: problem
                .epilogue
                .map_or(FunctionError::NONE, Epilogue::error),
        })
    }

    /// The bound where the result or its reference has a further relative error of `rounding`.
    fn with_roundings(self, rounding: f64) -> ErrorBound {
        let gamma = self.gamma + rounding * (1.0 + self.gamma);
        ErrorBound { gamma, ..self }
    }

    /// The bound for a reference that was rounded once, to a type as precise as the result's. The
    /// rounding of an f64 reference for f32 is negligible, and not counted.
    pub fn with_rounded_reference(self) -> ErrorBound {
        match self.unit_roundoff <= 0.5 * f64::EPSILON {
            true => {
                let once = self.unit_roundoff;
                self.with_roundings(once)
            }
            false => self,
        }
    }

    /// The bound of Strassen's algorithm, whose intermediate results must be finite.
    fn of_strassen<T: Number>(
        self,
        problem: &Problem<T>,
        cutoff: usize,
    ) -> Result<ErrorBound, Failure> {
        let alpha = problem.alpha.to_f64().abs();
        let Arithmetic::Float { smallest, .. } = T::ARITHMETIC else {
            return Ok(self);
        };
        if alpha == 0.0 {
            return Ok(self);
        }
        let growth = Growth::new(problem.shape(), cutoff, self.unit_roundoff);
        let norms = largest_magnitude(&problem.a) * largest_magnitude(&problem.b);
        let intermediate = growth.intermediate * norms;
        if !(intermediate.max(alpha * intermediate) <= self.largest && growth.error.is_finite()) {
            let why = "Strassen's algorithm spreads infinities and NaNs, and these matrices may lead to some.";
            return Err(Failure::Unprovable(why.to_string()));
        }
        // The error of the product, scaled by alpha; gamma(k + 2) covers alpha, beta and the sum
        // of the two.
        let normwise = alpha * (growth.error * norms + growth.underflows * smallest);
        Ok(ErrorBound {
            normwise: normwise * (1.0 + self.gamma),
            ..self
        })
    }

    /// The bound where tensor cores multiply f32 as TF32. They read 10 bits after the point of
    /// each element, so an element has a relative error of up to `input`: 2^-10 if it is
    /// truncated, 2^-11 if it was rounded; a product of up to `(1 + input)^2 - 1`. They truncate
    /// sums (M. Fasi, N. J. Higham, M. Mikaitis, S. Pranesh, "Numerical behavior of NVIDIA tensor
    /// cores", PeerJ Computer Science 7, 2021). An addition of s products and a sum, all aligned
    /// to the largest, loses less than 2u of the largest from each of the s + 1, even if no more
    /// bits than f32's are kept, and then less than 2u of the sum: 2u * (s + 2) for s products, so
    /// 4u a product if s is two or more. Since A100, s is four or more, and at least one more bit
    /// is kept.
    fn on_tensor_cores(self, k: usize, input: f64) -> Result<ErrorBound, Failure> {
        let product = (2.0 + input) * input;
        let sum = gamma(
            4.0 * (k as f64 + 2.0) * self.unit_roundoff,
            k,
            "on tensor cores",
        )?;
        let gamma = product + (1.0 + product) * sum;
        Ok(ErrorBound { gamma, ..self })
    }

    /// The bound where f32 is multiplied as two f16 (`split.rs`), with scales for rows and columns
    /// (Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores while
    /// surpassing the FP32 theoretical peak performance", IJHPCA 36, 2022, on the same scheme).
    /// These parts of a term `a * b` may be lost:
    ///
    /// - 2^-22, since hi + lo is off by 2^-23 of an element; and 2^-22, the product of both lo,
    ///   which is not computed;
    /// - 4u * (128 + 2), as in [`ErrorBound::on_tensor_cores`], from sums of hi * hi over an
    ///   interval of 128, or over k if that is less; hi may be 2^-11 larger than the element;
    /// - 2^-10 * 4u * (2k + 2), likewise, from the 2k products with lo, which is 2^-11 of the
    ///   element;
    /// - u for each addition that promotes an interval, and 4u for adding the products with lo, and
    ///   for alpha, beta and the sum of the two.
    ///
    /// Let R be the largest finite element of the row of A, and C that of the column of B. For an
    /// element below 2^-28 of R or C, f16 has too few exponents. Then lo is off by up to 2^-49 of
    /// R, and may itself be 2^-38 of it: a term loses 2^-48 R C by the former, 2^-49 R C by the
    /// product of both lo, and at most 2^-49 R C by truncation of hi * hi; the 2k products with
    /// such lo lose 4u * (2k + 2) of 2^-38 R C each. In all that is less than 2^-47 + k * 2^-57 of
    /// R C for each term. Scaling back may underflow by 2^-52 R C. R and C count as at least
    /// 2^-112, the limit of the scales.
    fn on_split_elements<T: Number>(self, problem: &Problem<T>) -> Result<ErrorBound, Failure> {
        /// The k-extent of an interval: 2 tiles of 64.
        const INTERVAL: usize = 128;
        /// The limit of the scales: a largest element below it counts as this.
        const LEAST: f64 = 1.0 / (1u128 << 112) as f64;
        let (k, u) = (problem.shape().k, self.unit_roundoff);
        let split = 2.0 * 2f64.powi(-22);
        let interval = 4.0 * (k.min(INTERVAL) as f64 + 2.0) * u * (1.0 + 2f64.powi(-9));
        let cross = 2f64.powi(-10) * 4.0 * (2.0 * k as f64 + 2.0) * u;
        let promotions = (k.div_ceil(INTERVAL) as f64 + 4.0) * u;
        let gamma = gamma(split + interval + cross + promotions, k, "on tensor cores")?;
        let of_term = 2f64.powi(-47) + k as f64 * 2f64.powi(-57);
        let of_terms = k as f64 * of_term + 2f64.powi(-52);
        // An infinity or a NaN has no scale.
        let finite = |element: T| Some(element.to_f64().abs()).filter(|one| one.is_finite());
        let magnitude = |element| finite(element).unwrap_or(0.0);
        let maxima = Maxima {
            factor: problem.alpha.to_f64().abs() * of_terms * (1.0 + gamma),
            rows: largest_in_rows(&problem.a, LEAST, magnitude),
            columns: largest_in_columns(&problem.b, LEAST, magnitude),
        };
        Ok(ErrorBound {
            gamma,
            maxima: Some(maxima),
            ..self
        })
    }

    /// The bound where tensor cores add up products of e4m3 with 14 bits, and each `interval` of
    /// them is added in f32. An instruction adds 32 products and the sum so far. Of each it cuts
    /// off less than 2^-13 of the largest one's power of two, and then as much of the result
    /// (`cuda_std::wgmma`): 2^-13 * (n + 2 n / 32) for n products. All of it is toward zero, so no
    /// sum is larger than that of the magnitudes, and the error at most twice that.
    ///
    /// The power of two of a product is at most the product, but for a subnormal factor, which is
    /// below 2^-6 and aligned as that: then it is at most 2^-6 of the largest other factor, R or C,
    /// of the row of A or the column of B.
    ///
    /// Scales take two roundings, and all that is in units of them: an element of 1 counts as its
    /// scale, so R and C are at least the largest scale of the row or column.
    fn of_14_bits<T: Number>(
        self,
        problem: &Problem<T>,
        interval: usize,
    ) -> Result<ErrorBound, Failure> {
        let (k, u) = (problem.shape().k, self.unit_roundoff);
        let cut_off = |products: usize| {
            let instructions = products.div_ceil(32);
            (products + 2 * instructions) as f64 * 2f64.powi(-13)
        };
        let sum = cut_off(k.min(interval));
        let sum = if sum < 0.5 { sum / (1.0 - sum) } else { 2.0 };
        let scales = problem.scales.as_deref();
        let of_scales = if scales.is_some() { 2.0 } else { 0.0 };
        let promotions = (k.div_ceil(interval) as f64 + 4.0 + of_scales) * u;
        let gamma = sum + (1.0 + sum) * gamma(promotions, k, "on tensor cores")?;
        // A NaN has no bound.
        let finite = |element: T| Some(element.to_f64().abs()).filter(|one| one.is_finite());
        let magnitude = |element| finite(element).unwrap_or(0.0);
        let least = if scales.is_some() { 0.0 } else { 1.0 };
        let mut maxima = Maxima {
            factor: problem.alpha.to_f64().abs() * cut_off(k) * 2f64.powi(-6) * (1.0 + gamma),
            rows: largest_in_rows(&problem.a, least, magnitude),
            columns: largest_in_columns(&problem.b, least, magnitude),
        };
        if let Some(scales) = scales {
            for (row, largest) in maxima.rows.iter_mut().enumerate() {
                *largest = largest.max(scales.a.largest_of_row(row));
            }
            for (column, largest) in maxima.columns.iter_mut().enumerate() {
                *largest = largest.max(scales.b.largest_of_column(column));
            }
        }
        Ok(ErrorBound {
            gamma,
            maxima: Some(maxima),
            ..self
        })
    }

    /// The bound for a sum of terms with magnitudes that add up to `magnitude`.
    pub fn of(&self, magnitude: f64) -> f64 {
        self.gamma * magnitude + self.underflow + self.normwise
    }

    /// The bound for an element: for its sum, for its row and column, and for rounding the sum.
    pub fn of_element(&self, row: usize, col: usize, expected: Expected) -> f64 {
        let maxima = self.maxima.as_ref();
        let of_maxima = maxima.map_or(0.0, |maxima| maxima.of_element(row, col));
        let sum = self.of(expected.magnitude) + of_maxima;
        let value = self.function.slope * sum + self.function.of(expected.want);
        value + self.of_rounding(expected.want.abs() + value)
    }

    /// The largest error of rounding a sum to an element.
    fn of_rounding(&self, sum: f64) -> f64 {
        let (relative, absolute) = self.output;
        (relative * sum).max(absolute)
    }

    /// Whether `got` is right for an element that must be `want`. Infinities and NaNs must be the
    /// same; a result that may overflow may also be an infinity of its sign.
    pub fn accepts(&self, got: f64, want: f64, bound: f64) -> bool {
        if want.is_nan() {
            return got.is_nan();
        }
        if want.is_infinite() || (got.is_infinite() && want.abs() + bound > self.largest) {
            return got.is_infinite() && got.signum() == want.signum();
        }
        // False if `got` is a NaN.
        abs_diff_eq!(got, want, epsilon = bound)
    }

    /// The largest finite element.
    pub fn largest(&self) -> f64 {
        self.largest
    }

    /// An error in units of rounding of the sum of magnitudes, less the largest error of rounding
    /// the sum to an element.
    pub fn units(&self, err: f64, expected: Expected) -> f64 {
        let of_function = self.function.of(expected.want);
        let allowed = self.underflow + of_function + self.of_rounding(expected.want.abs());
        if err <= allowed {
            return 0.0;
        }
        (err - allowed) / (self.unit_roundoff * expected.magnitude)
    }

    /// Checks the sums of `lines` (rows, or columns) of `count` elements, with random signs,
    /// within the bounds of their elements together, and below the alarm where there is one.
    /// Returns how many lines have a finite bound.
    pub(super) fn check_sums(
        &self,
        line: Line,
        lines: &[LineSum],
        count: usize,
        terms: usize,
        alarm: Option<Alarm>,
    ) -> Result<usize, Failure> {
        // The reference sums have this many roundings, in f64, of two units each.
        let reference = (terms + 3) as f64 * f64::EPSILON;
        let limit = alarm.and_then(|alarm| alarm.limit_of_sum(count));
        let units = limit.map_or(f64::INFINITY, |limit| limit * self.unit_roundoff);
        let of_maxima = self.maxima.as_ref().map(|maxima| maxima.of_lines(line));
        let mut checked = 0;
        for (index, &LineSum { got, expected }) in lines.iter().enumerate() {
            let Expected { want, magnitude } = expected;
            if !(want.is_finite() && magnitude <= self.largest) {
                // The line holds a NaN, an infinity or an overflow: only its samples are compared.
                continue;
            }
            let (output, smallest) = self.output;
            let of_each = self.underflow + self.normwise + smallest;
            let rounding = self.gamma.min(units) + output + reference;
            let of_maxima = of_maxima.as_ref().map_or(0.0, |lines| lines[index]);
            let bound = rounding * magnitude + count as f64 * of_each + of_maxima;
            if !abs_diff_eq!(got, want, epsilon = bound) {
                return Err(Failure::Sum {
                    line,
                    index,
                    got,
                    want,
                    bound,
                });
            }
            checked += 1;
        }
        Ok(checked)
    }
}

/// The largest magnitude in a matrix; infinite if it holds a NaN.
fn largest_magnitude<T: Number>(matrix: &Matrix<T>) -> f64 {
    let magnitude = |element: T| match element.to_f64().abs() {
        nan if nan.is_nan() => f64::INFINITY,
        magnitude => magnitude,
    };
    let rows = largest_in_rows(matrix, 0.0, magnitude);
    rows.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Data, Storage};
    use gpu_gemm::{Bf16, Shape};

    const INFINITY: f64 = f64::INFINITY;
    /// The unit roundoff of f32, and its smallest number.
    const U: f64 = 1.0 / (1 << 24) as f64;
    const SMALLEST: f64 = f32::from_bits(1) as f64;

    /// A bound for empty matrices, so that k may have any size: most bounds depend on no element.
    fn of_sums<T: Number>(k: usize, alpha: T, model: ErrorModel) -> Result<ErrorBound, Failure> {
        let shape = Shape::new(0, 0, k);
        let (compact, zero) = (Storage::COMPACT, T::default());
        let problem = Problem::random(shape, compact, Data::Uniform, 1, alpha, zero);
        ErrorBound::new(&problem.unwrap(), model)
    }

    fn bound(k: usize, alpha: f32) -> ErrorBound {
        of_sums(k, alpha, ErrorModel::Elementwise).unwrap()
    }

    /// `alpha * A * B` without C, with elements `a(row, column)` and `b(row, column)`.
    fn product(
        (m, n, k): (usize, usize, usize),
        alpha: f32,
        a: impl Fn(usize, usize) -> f32 + Sync,
        b: impl Fn(usize, usize) -> f32 + Sync,
    ) -> Problem<f32> {
        let a = Matrix::from_elements(m, k, a).unwrap();
        let b = Matrix::from_elements(k, n, b).unwrap();
        let c = Matrix::from_elements(m, n, |_, _| 0.0).unwrap();
        Problem::new(alpha, 0.0, a, b, c).unwrap()
    }

    /// Checks that `got` is `want`, even if both are tiny: without `epsilon`, 2^-52 would equal 0.
    #[track_caller]
    fn assert_close(got: f64, want: f64, max_relative: f64) {
        approx::assert_relative_eq!(got, want, epsilon = 0.0, max_relative = max_relative);
    }

    #[test]
    fn the_bound_is_the_documented_formula() {
        let nu = 16.0 * U;
        let expected = nu / (1.0 - nu) * 10.0 + 48.0 * SMALLEST;
        assert_close(bound(14, -3.0).of(10.0), expected, 1e-15);
        assert_eq!(bound(14, -3.0).of(0.0), 48.0 * SMALLEST);
        // With a small alpha, beta * c and the addition underflow as with alpha = 1.
        assert_eq!(bound(14, 0.25).of(0.0), 16.0 * SMALLEST);
        // The bound of f64 allows for one rounding of its reference.
        let of_f64 = of_sums(14, 1.0f64, ErrorModel::Elementwise).unwrap();
        assert_close(of_f64.of(10.0), 17.0 * 2f64.powi(-53) * 10.0, 1e-14);
        assert_eq!(of_f64.of(0.0), 6.0 * 16.0 * f64::from_bits(1));
    }

    /// On tensor cores: p + (1 + p) * gamma(4 * (k + 2)) with p = (1 + 2^-10)^2 - 1, or with 2^-11,
    /// computed with fractions. Sums that are too long have no bound.
    #[test]
    fn on_tensor_cores_elements_lose_bits_and_each_step_is_off_by_four_units() {
        let longest = ErrorModel::Elementwise;
        for (k, model, gamma) in [
            (1, ErrorModel::Tf32, Some(1.954_795_328_232_284_7e-3)),
            (1 << 20, ErrorModel::Tf32, Some(0.335_939_620_933_291_7)),
            (1, ErrorModel::RoundedTf32, Some(9.775_168_734_909_583e-4)),
            (14, ErrorModel::Truncated, Some(64.0 * U / (1.0 - 64.0 * U))),
            (
                (1 << 22) - 3,
                ErrorModel::Truncated,
                Some((1.0 - 4.0 * U) / (4.0 * U)),
            ),
            ((1 << 22) - 2, ErrorModel::Truncated, None),
            ((1 << 24) - 3, longest, Some((1.0 - U) / U)),
            ((1 << 24) - 2, longest, None),
        ] {
            match (of_sums(k, 1.0f32, model), gamma) {
                (Ok(bound), Some(gamma)) => assert_close(bound.gamma, gamma, 1e-9),
                (found, gamma) => {
                    let is_none = matches!(found, Err(Failure::Unprovable(_)));
                    assert!(is_none && gamma.is_none(), "{k} {model:?} {found:?}");
                }
            }
        }
        // Partial sums are also rounded to bf16 eight times.
        let [whole, reduced] = [ErrorModel::Truncated, ErrorModel::ReducedInHalves]
            .map(|model| of_sums(14, Bf16::from_f32(1.0), model).unwrap().gamma);
        assert_close(reduced, whole + 8.0 / 256.0 * (1.0 + whole), 1e-14);
    }

    #[test]
    fn strassen_passes_up_to_the_largest_number_before_alpha_and_after() {
        for (alpha, a, b, expected) in [
            (1.0, f32::MAX, 1.0, true),
            (1.0, f32::MAX, 1.0f32.next_up(), false),
            // Too large only after rounding, and only before.
            (2.0, 0.75 * f32::MAX, 1.0, false),
            (0.5, 0.75 * f32::MAX, 2.0, false),
            (1.0, f32::NAN, 1.0, false),
            (1.0, f32::NAN, 0.0, false),
        ] {
            let problem = product((1, 1, 1), alpha, |_, _| a, |_, _| b);
            let bound = ErrorBound::new(&problem, ErrorModel::Strassen { cutoff: 1 });
            assert_eq!(bound.is_ok(), expected, "{alpha} {a} {b}");
        }
    }

    #[test]
    fn only_a_result_that_may_overflow_may_be_an_infinity_of_its_sign() {
        let (bound, largest, nan) = (bound(4, 1.0), f64::from(f32::MAX), f64::NAN);
        for (got, want, allowed, is_right) in [
            (-INFINITY, -INFINITY, 1.0, true),
            (1.0, INFINITY, 1e30, false),
            (nan, INFINITY, 1e30, false),
            (INFINITY, largest, 1e32, true),
            (INFINITY, 1e39, 1e32, true),
            (largest, largest, 1e32, true),
            (-INFINITY, 1e39, 1e32, false),
            (INFINITY, 1e38, 1e32, false),
            (nan, 1e39, 1e32, false),
            // A sum equal to the largest number does not overflow.
            (INFINITY, largest, 0.0, false),
            // At the bound, and just beyond it.
            (1.5, 1.0, 0.5, true),
            (1.5 + f64::EPSILON, 1.0, 0.5, false),
            (0.5 - f64::EPSILON, 1.0, 0.5, false),
        ] {
            let accepted = bound.accepts(got, want, allowed);
            assert_eq!(accepted, is_right, "{got} for {want}");
        }
    }

    /// A bound of round numbers, all different.
    const BOUND: ErrorBound = ErrorBound {
        gamma: 0.25,
        underflow: 3.0,
        normwise: 5.0,
        maxima: None,
        unit_roundoff: 0.125,
        largest: 1000.0,
        output: (0.0, 0.0),
        function: FunctionError::NONE,
    };

    #[test]
    fn an_element_of_16_bits_is_off_by_its_sum_and_by_one_rounding_of_it() {
        // 0.25 * 16 + 3 + 5 for the sum; and the absolute error of a small number.
        for (output, want, expected) in [
            ((0.125, 1.0), -20.0, 12.0 + 0.125 * 32.0),
            ((0.125, 5.0), 0.0, 17.0),
        ] {
            let (bound, magnitude) = (ErrorBound { output, ..BOUND }, 16.0);
            let found = bound.of_element(0, 0, Expected { want, magnitude });
            assert_eq!(found, expected);
        }
        // The roundings of f32, and one to an element: bf16 keeps 8 bits.
        let bound = of_sums(14, Bf16::from_f32(1.0), ErrorModel::Truncated).unwrap();
        assert_eq!(bound.unit_roundoff, U);
        assert_eq!(
            bound.output,
            (2f64.powi(-8), 0.5 * Bf16::from_bits(1).to_f64())
        );
        assert_eq!(super::tests::bound(14, 1.0).output, (0.0, 0.0));
    }

    const fn line_sum(got: f64, want: f64, magnitude: f64) -> LineSum {
        let expected = Expected { want, magnitude };
        LineSum { got, expected }
    }

    /// The roundings of seven terms, and three more, of two units each; and what four elements may
    /// be off by. Sums that may overflow or are not finite are not compared.
    #[test]
    fn a_sum_may_be_off_by_what_its_elements_may_and_by_its_own_roundings() {
        let own = 20.0 * 2f64.powi(-53) * 16.0;
        let exact = ErrorBound {
            gamma: 0.0,
            underflow: 0.0,
            normwise: 0.0,
            ..BOUND
        };
        let output = (0.125, 0.5);
        let rounded = ErrorBound {
            output,
            ..exact.clone()
        };
        for (bound, expected) in [
            (BOUND, 0.25 * 16.0 + own + 4.0 * (3.0 + 5.0)),
            (exact, own),
            (rounded, 0.125 * 16.0 + own + 4.0 * 0.5),
        ] {
            let wrong = [line_sum(900.0, 0.0, 16.0)];
            match bound.check_sums(Line::Row, &wrong, 4, 7, None) {
                Err(Failure::Sum { bound, .. }) => assert_close(bound, expected, 1e-15),
                other => panic!("not a wrong sum: {other:?}"),
            }
        }
        let largest = BOUND.largest;
        let passed_over = [
            (0.0, largest.next_up()),
            (f64::NAN, 1.0),
            (INFINITY, 1.0),
            (0.0, f64::NAN),
        ];
        let mut sums = passed_over
            .map(|(want, magnitude)| line_sum(900.0, want, magnitude))
            .to_vec();
        let check = |sums: &[LineSum]| BOUND.check_sums(Line::Column, sums, 4, 7, None);
        assert_eq!(check(&sums), Ok(0));
        sums.push(line_sum(900.0, 0.0, largest));
        assert!(matches!(check(&sums), Err(Failure::Sum { index: 4, .. })));
    }
}
