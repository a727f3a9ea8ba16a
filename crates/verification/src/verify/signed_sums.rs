//! Sums of the elements of a row or a column of a product, with a random sign for each: they take
//! the time of reading the matrices, not of multiplying them, and no two errors cancel for most
//! signs (after R. Freivalds, as in [`super::freivalds`], here for numbers that round).

use rand::RngExt;
use rand_pcg::Pcg64;

use super::compensated::Sum;
use super::expected::Expected;
use super::lines::fold_columns;
use crate::data::{Matrix, Number, Problem};
use crate::parallel;

/// `V` random signs for each of `count` elements.
fn signs<const V: usize>(count: usize, seed: u64) -> Vec<[f64; V]> {
    let mut generator = Pcg64::new(seed.into(), 0x519e_d5c4);
    let mut sign = || if generator.random() { 1.0 } else { -1.0 };
    (0..count).map(|_| [(); V].map(|()| sign())).collect()
}

/// A type in which signed elements are added up.
pub(super) trait Accumulator: Copy + Default + Send + Sync {
    /// Adds an element with a sign.
    fn add_signed(&mut self, element: f64, sign: f64);

    /// Adds `factor` times a sum.
    fn add_scaled(&mut self, factor: f64, sum: Self);

    /// Its distance from the expected value.
    fn distance(self, want: Self) -> f64;
}

impl Accumulator for f64 {
    fn add_signed(&mut self, element: f64, sign: f64) {
        *self += element * sign;
    }

    fn add_scaled(&mut self, factor: f64, sum: f64) {
        *self += factor * sum;
    }

    fn distance(self, want: f64) -> f64 {
        (self - want).abs()
    }
}

impl Accumulator for Sum {
    fn add_signed(&mut self, element: f64, sign: f64) {
        self.add(element, sign);
    }

    fn add_scaled(&mut self, factor: f64, sum: Sum) {
        self.add(factor, sum.rounded);
        self.correction += factor * sum.correction;
    }

    fn distance(self, want: Sum) -> f64 {
        let off = (self.rounded - want.rounded) + (self.correction - want.correction);
        // The difference itself is rounded.
        off.abs() - 2.0 * f64::EPSILON * want.rounded.abs()
    }
}

/// The sums of rows of `A B`, with `V` signs for each column.
pub(super) struct RowSums<S, const V: usize> {
    /// n x V.
    signs: Vec<[f64; V]>,
    /// `B * signs`, k x V, and `|B| * 1`.
    b: Vec<([S; V], f64)>,
}

impl<S: Accumulator, const V: usize> RowSums<S, V> {
    /// Draws the signs from `seed`, and reads the `value` of B's elements.
    pub fn new<T: Number>(b: &Matrix<T>, value: impl Fn(T) -> f64 + Sync, seed: u64) -> Self {
        let signs = signs(b.columns(), seed);
        let b = parallel::map(b.rows(), |row| {
            let elements = || b.row(row).iter().map(|element| value(*element));
            let magnitude = elements().map(f64::abs).sum();
            (signed(elements(), &signs), magnitude)
        });
        RowSums { signs, b }
    }

    /// The sums of one row.
    pub fn of(&self, row: impl Iterator<Item = f64>) -> [S; V] {
        signed(row, &self.signs)
    }

    /// The right sums of a row of `A B`, from the row of A, and `sum |a||b|` over its
    /// elements.
    pub fn expected(&self, a: impl Iterator<Item = f64>) -> ([S; V], f64) {
        let (mut sums, mut magnitude) = ([S::default(); V], 0.0);
        for (a, (b, b_magnitude)) in a.zip(&self.b) {
            for (sum, b) in sums.iter_mut().zip(b) {
                sum.add_scaled(a, *b);
            }
            magnitude += a.abs() * b_magnitude;
        }
        (sums, magnitude)
    }
}

fn signed<S: Accumulator, const V: usize>(
    elements: impl Iterator<Item = f64>,
    signs: &[[f64; V]],
) -> [S; V] {
    let mut sums = [S::default(); V];
    for (element, signs) in elements.zip(signs) {
        for (sum, sign) in sums.iter_mut().zip(signs) {
            sum.add_signed(element, *sign);
        }
    }
    sums
}

/// The sum of a row or a column of a result, and its expected value, with the sum of its elements'
/// magnitudes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LineSum {
    pub got: f64,
    pub expected: Expected,
}

/// The sums of a result, of each row and of each column.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sums {
    pub rows: Vec<f64>,
    pub columns: Vec<f64>,
}

impl Sums {
    /// The sums of `got`.
    pub fn of<T: Number>(got: &Matrix<T>, seed: u64) -> Sums {
        let signs_of_columns = signs::<1>(got.columns(), seed);
        Sums {
            rows: parallel::map(got.rows(), |row| {
                let [sum] = signed(values(got, row), &signs_of_columns);
                sum
            }),
            columns: weighted_rows(got, &signs_of_rows(got.rows(), seed))
                .into_iter()
                .map(|(sum, _)| sum)
                .collect(),
        }
    }
}

/// The sum of each row, and its expected value.
pub(super) fn of_rows<T: Number>(problem: &Problem<T>, got: &[f64], seed: u64) -> Vec<LineSum> {
    let sums = RowSums::<f64, 1>::new(&problem.b, T::to_f64, seed);
    parallel::map(problem.shape().m, |row| {
        let product = match problem.alpha == T::default() {
            true => (0.0, 0.0),
            false => {
                let ([sum], magnitude) = sums.expected(values(&problem.a, row));
                (sum, magnitude)
            }
        };
        let [c] = sums.of(values(&problem.c, row));
        let c_magnitude = values(&problem.c, row).map(f64::abs).sum();
        line_sum(problem, got[row], product, (c, c_magnitude))
    })
}

fn values<T: Number>(matrix: &Matrix<T>, row: usize) -> impl Iterator<Item = f64> {
    matrix.row(row).iter().map(|element| element.to_f64())
}

/// The sign of each row, and the factor of its magnitude.
fn signs_of_rows(rows: usize, seed: u64) -> Vec<(f64, f64)> {
    let signs = signs::<1>(rows, seed).into_iter();
    signs.map(|[sign]| (sign, 1.0)).collect()
}

/// The sum of each column, and its expected value.
pub(super) fn of_columns<T: Number>(problem: &Problem<T>, got: &[f64], seed: u64) -> Vec<LineSum> {
    let shape = problem.shape();
    let signs = signs_of_rows(shape.m, seed);
    let product = match problem.alpha == T::default() {
        true => vec![(0.0, 0.0); shape.n],
        false => weighted_rows(&problem.b, &weighted_rows(&problem.a, &signs)),
    };
    let c = weighted_rows(&problem.c, &signs);
    got.iter()
        .zip(product.into_iter().zip(c))
        .map(|(got, (product, c))| line_sum(problem, *got, product, c))
        .collect()
}

/// A line's sum, from the sums and magnitudes of `A B` and of C.
fn line_sum<T: Number>(
    problem: &Problem<T>,
    got: f64,
    (sum, magnitude): (f64, f64),
    (c, c_magnitude): (f64, f64),
) -> LineSum {
    let mut expected = Expected::new(problem, Sum::plain(sum, magnitude), c);
    if problem.beta != T::default() {
        // The magnitude of a signed sum is not the sum of magnitudes.
        expected.magnitude =
            problem.alpha.to_f64().abs() * magnitude + problem.beta.to_f64().abs() * c_magnitude;
    }
    LineSum { got, expected }
}

/// The weighted sum of a matrix's rows, and that of their magnitudes with the weights' magnitudes.
fn weighted_rows<T: Number>(matrix: &Matrix<T>, weights: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let add = |sum: (f64, f64), row: usize, element: T| {
        let ((weight, of_magnitude), element) = (weights[row], element.to_f64());
        (
            sum.0 + weight * element,
            sum.1 + of_magnitude * element.abs(),
        )
    };
    fold_columns(matrix, (0.0, 0.0), add, |one, other| {
        (one.0 + other.0, one.1 + other.1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Data, Storage};
    use crate::verify::reference::element;
    use gpu_gemm::Shape;

    /// Compares the sums with those of a right result, added up element by element.
    #[test]
    fn the_sums_are_those_of_the_expected_elements() {
        let shape = Shape::new(5, 70, 9);
        let storage = Storage::padded([3, 1, 2], [1, 2, 3]);
        for (alpha, beta) in [(1.5, 0.0), (-2.0, 0.5), (0.0, 3.0)] {
            let problem = Problem::<f64>::random(shape, storage, Data::Normal, 1, alpha, beta);
            let problem = problem.unwrap();
            let of = |value: fn(Expected) -> f64| {
                let value = |row, col| value(element(&problem, row, col));
                Matrix::from_elements(5, 70, value).unwrap()
            };
            let (right, magnitudes) = (of(|one| one.want), of(|one| one.magnitude));
            // Rows first, then columns.
            let sums_of = |got: &Matrix<f64>| {
                let Sums { rows, columns } = Sums::of(got, 1);
                let columns = of_columns(&problem, &columns, 1);
                [of_rows(&problem, &rows, 1), columns].concat()
            };
            let of_rows = (0..5).map(|row| magnitudes.row(row).iter().sum::<f64>());
            let of_columns = (0..70).map(|col| (0..5).map(|row| magnitudes.row(row)[col]).sum());
            let (sums, expected) = (sums_of(&right), of_rows.chain(of_columns));
            assert_eq!(sums.len(), 75);
            for (sum, magnitude) in sums.into_iter().zip(expected) {
                let close = 1e-13 * magnitude;
                assert!((sum.got - sum.expected.want).abs() <= close, "{sum:?}");
                assert!(
                    (sum.expected.magnitude - magnitude).abs() <= close,
                    "{sum:?}"
                );
            }
            // A single error changes the sums of its row and its column by its full size.
            let mut wrong = right.clone();
            wrong.row_mut(2)[3] += 0.25;
            let sums = sums_of(&wrong);
            for line in [2, 5 + 3] {
                let LineSum { got, expected } = sums[line];
                let off = (got - expected.want).abs();
                approx::assert_abs_diff_eq!(off, 0.25, epsilon = 1e-12);
            }
        }
    }
}
