//! A reference that a GPU computed: every sum of a large product, in f64, where the host would
//! take minutes.
//!
//! It is not trusted: each of its rows is multiplied by vectors of random signs, and must agree
//! with A and B times those vectors on the host, within the rounding of f64 (after R. Freivalds,
//! as in [`super::freivalds`]). A single wrong element never passes; two that can cancel escape
//! all eight vectors with a probability of 2^-8.

use super::compensated::{Sum, is_as_fine_as_f64};
use super::expected::Expected;
use super::outcome::{Failure, check_each};
use super::signed_sums::{Accumulator, RowSums};
use crate::data::{Matrix, Number, Placement, Problem, ProblemError};
use gpu_gemm::Shape;

/// The number of vectors of signs.
const VECTORS: usize = 8;

/// The sums of every element of a problem.
pub struct ComputedReference {
    /// `sum a b`, m x n.
    product: Matrix<f64>,
    /// `sum |a||b|`, m x n.
    magnitude: Matrix<f64>,
}

/// A and B of a problem in f64, to multiply with alpha = 1 and beta = 0.
pub fn operands<T: Number>(problem: &Problem<T>) -> Result<Problem<f64>, ProblemError> {
    let shape = problem.shape();
    let (a, b) = (problem.a.converted()?, problem.b.converted()?);
    let compact = Placement::compact(shape.n);
    let c = Matrix::from_rows(shape.m, shape.n, compact, |_, _| ())?;
    Problem::new(1.0, 0.0, a, b, c)
}

/// Replaces A and B by |A| and |B|.
pub fn make_magnitudes(operands: &mut Problem<f64>) {
    operands.a.replace_each(f64::abs);
    operands.b.replace_each(f64::abs);
}

/// Checks a product of the `value`s of A and B by rows, each within `bound` of the magnitudes of
/// its terms and of its elements; `false` if that is not finite, so that it shows nothing.
fn check<T: Number, S: Accumulator>(
    problem: &Problem<T>,
    got: &Matrix<f64>,
    value: impl Fn(T) -> f64 + Sync,
    seed: u64,
    bound: impl Fn(f64, f64) -> f64 + Sync,
) -> Result<bool, Failure> {
    let row_sums = RowSums::<S, VECTORS>::new(&problem.b, &value, seed);
    let checked = check_each(problem.shape().m, |row| {
        let a = problem.a.row(row).iter().map(|a| value(*a));
        let (want, magnitude) = row_sums.expected(a);
        let got = got.row(row).iter().copied();
        let bound = bound(magnitude, got.clone().map(f64::abs).sum());
        if !bound.is_finite() {
            return Ok(false);
        }
        let mut pairs = row_sums.of(got).into_iter().zip(want);
        match pairs.all(|(sum, want)| sum.distance(want) <= bound) {
            true => Ok(true),
            false => Err(Failure::Unprovable(format!(
                "row {row} of the reference that the GPU computed is wrong."
            ))),
        }
    })?;
    Ok(checked.into_iter().all(|checked| checked))
}

impl ComputedReference {
    /// A reference from the products of a problem's [`operands`] and of their magnitudes, if they
    /// pass the check; `None` if they hold a NaN or an infinity, and so cannot be checked.
    pub fn checked<T: Number>(
        problem: &Problem<T>,
        product: Matrix<f64>,
        magnitude: Matrix<f64>,
        seed: u64,
    ) -> Result<Option<ComputedReference>, Failure> {
        /// Half of f64's epsilon.
        const U: f64 = 0.5 * f64::EPSILON;
        let Shape { n, k, .. } = problem.shape();
        // The roundings of both sums, each of half an epsilon.
        let roundings = (2 * (n + k) + 8) as f64;
        let rounded = |magnitude: f64, _| roundings * f64::EPSILON * magnitude;
        // Where each element is summed in twice the precision and rounded once: these sums, and
        // each element's, have errors of gamma(terms)^2 of their magnitudes, and of underflow.
        let terms = (n + k + 4) as f64;
        let gamma = 2.0 * terms * U;
        let underflow = 10.0 * terms * (n + 1) as f64 * f64::from_bits(1);
        let rounded_once = |magnitude: f64, of_elements: f64| {
            U * (1.0 + 4.0 * U * terms) * of_elements + 4.0 * gamma * gamma * magnitude + underflow
        };
        let is_product = match is_as_fine_as_f64::<T>() {
            true => check::<_, Sum>(problem, &product, T::to_f64, seed, rounded_once)?,
            false => check::<_, f64>(problem, &product, T::to_f64, seed, rounded)?,
        };
        let of_magnitude = |element: T| element.to_f64().abs();
        let is_known =
            is_product && check::<_, f64>(problem, &magnitude, of_magnitude, seed, rounded)?;
        Ok(is_known.then_some(ComputedReference { product, magnitude }))
    }

    /// The right elements of a row.
    pub(super) fn row<T: Number>(
        &self,
        problem: &Problem<T>,
        row: usize,
    ) -> impl Iterator<Item = Expected> {
        let sums = self.product.row(row).iter().zip(self.magnitude.row(row));
        sums.zip(problem.c.row(row))
            .enumerate()
            .map(|(col, ((product, magnitude), c))| {
                Expected::new(problem, Sum::plain(*product, *magnitude), c.to_f64())
                    .after(problem.epilogue, col)
            })
    }
}

#[cfg(test)]
mod tests {
    use gpu_gemm::gpu_kernels::spec::Tile;
    use gpu_gemm::gpu_kernels::{reference, tiled};
    use gpu_gemm::{Choice, Device, DeviceChoice, ElementType};

    use super::*;
    use crate::data::{Data, Storage};
    use crate::run::run;
    use crate::verify::reference::element;
    use crate::verify::{Coverage, within_bound};

    const M: usize = 35;
    const N: usize = 33;
    const K: usize = 500;

    /// A problem, and its products by the accurate f64 kernel and by the plain one, and that of
    /// the magnitudes.
    fn computed<T: Number>(data: Data) -> (Problem<T>, [Matrix<f64>; 3]) {
        let shape = Shape::new(M, N, K);
        let storage = Storage::padded([3, 1, 2], [1, 2, 3]);
        let [alpha, beta] = [-3, 2].map(T::from_integer);
        let problem = Problem::random(shape, storage, data, 1, alpha, beta).unwrap();
        let device = Device::open(DeviceChoice::Simulator).unwrap().device;
        let mut variants = tiled::KERNEL.variants.iter();
        let plain = variants.find(|variant| variant.types.c == ElementType::F64);
        let plain = Choice::even(plain.unwrap());
        let accurate = Choice::even(&reference::KERNEL.variants[0]);
        let mut operands = operands(&problem).unwrap();
        let multiplied = |choice, operands: &_| run(&device, choice, operands, &|| ()).unwrap().c;
        let products = [accurate, plain].map(|choice| multiplied(choice, &operands));
        make_magnitudes(&mut operands);
        let [product, rounded] = products;
        (problem, [product, rounded, multiplied(plain, &operands)])
    }

    fn checked<T: Number>(
        problem: &Problem<T>,
        product: &Matrix<f64>,
        magnitude: &Matrix<f64>,
    ) -> Result<Option<ComputedReference>, Failure> {
        ComputedReference::checked(problem, product.clone(), magnitude.clone(), 1)
    }

    /// Checks that the reference equals the host's, within `rounding` of the magnitude, and that a
    /// wrong element in it is noticed: for f64, even one that was rounded at each step.
    fn check<T: Number>(data: Data, rounding: f64) {
        let (problem, [product, rounded, magnitude]) = computed::<T>(data);
        let reference = checked(&problem, &product, &magnitude).unwrap().unwrap();
        for row in 0..M {
            for (col, found) in reference.row(&problem, row).enumerate() {
                let host = element(&problem, row, col);
                assert!((found.want - host.want).abs() <= rounding * host.magnitude);
                let off = (found.magnitude - host.magnitude).abs();
                assert!(off <= 1e-13 * host.magnitude, "{row}, {col}");
            }
        }
        let changed = |matrix: &Matrix<f64>, part: f64| {
            let mut changed = matrix.clone();
            changed.row_mut(M - 1)[N - 1] *= 1.0 + part;
            changed
        };
        let assert_noticed = |product: &_, magnitude: &_, row: &str| {
            let outcome = checked(&problem, product, magnitude);
            assert!(matches!(outcome, Err(Failure::Unprovable(why)) if why.starts_with(row)));
        };
        for part in [1e-9, -1e-9] {
            assert_noticed(&changed(&product, part), &magnitude, "row 34 ");
            assert_noticed(&product, &changed(&magnitude, part), "row 34 ");
        }
        if T::TYPE == ElementType::F64 {
            assert_noticed(&rounded, &magnitude, "row ");
            assert_noticed(&changed(&product, 1e-12), &magnitude, "row 34 ");
        }
    }

    #[test]
    fn it_is_what_the_host_computes_and_a_wrong_element_of_it_is_noticed() {
        check::<f32>(Data::Normal, 1e-14);
        check::<f64>(Data::Normal, f64::EPSILON);
        check::<f64>(Data::Positive, f64::EPSILON);
    }

    #[test]
    fn every_element_of_a_result_is_compared_with_it() {
        const TILE: Tile = Tile { m: 8, n: 8, k: 8 };
        let (problem, [product, _, magnitude]) = computed::<f32>(Data::Uniform);
        let right = |row, col| element(&problem, row, col).want as f32;
        let right = Matrix::from_elements(M, N, right).unwrap();
        let reference = checked(&problem, &product, &magnitude).unwrap().unwrap();
        let by = Coverage::By(&reference);
        let judge = |got: &Matrix<f32>| within_bound(&problem, got, TILE, Data::Uniform, by);
        let verdict = judge(&right).unwrap();
        assert_eq!(verdict.gate, "bound");
        assert!(verdict.statement.starts_with("all 1155 elements "));
        for (row, col) in (0..M).flat_map(|row| (0..N).map(move |col| (row, col))) {
            let mut wrong = right.clone();
            wrong.row_mut(row)[col] = 1e4;
            let Err(Failure::Element(found)) = judge(&wrong) else {
                panic!("not noticed at {row}, {col}");
            };
            assert_eq!((found.row, found.col), (row, col));
        }
    }

    #[test]
    fn a_reference_that_is_not_finite_is_not_used_and_no_error() {
        fn check<T: Number>(of: impl Fn(f64) -> T + Sync) {
            let row = |values: [f64; 2]| Matrix::from_elements(1, 2, |_, col| values[col]).unwrap();
            let is_used = |element: f64, product: f64| {
                let a = Matrix::from_elements(1, 2, |_, l| of([1.0, element][l])).unwrap();
                let b = Matrix::from_elements(2, 2, |l, col| of((3 + 2 * l + col) as f64)).unwrap();
                let c = Matrix::from_elements(1, 2, |_, _| T::default()).unwrap();
                let problem = Problem::new(of(1.0), of(0.0), a, b, c).unwrap();
                let found = checked(&problem, &row([13.0, product]), &row([13.0, 16.0]));
                found.unwrap().is_some()
            };
            assert!(is_used(2.0, 16.0));
            for element in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                assert!(!is_used(element, 16.0), "{element}");
            }
            // For f64 the check reads the magnitudes of the product itself.
            if T::TYPE == ElementType::F64 {
                assert!(!is_used(2.0, f64::INFINITY) && !is_used(2.0, f64::NAN));
            }
        }
        check::<f32>(|value| value as f32);
        check::<f64>(|value| value);
    }
}
