//! A reference that a GPU computed: every sum of a large product, in f64, where the host would
//! take minutes.
//!
//! It must not be trusted because a GPU computed it. So each of its rows is multiplied by vectors
//! of random signs, and must give what A and B times those vectors give on the host, within the
//! rounding of f64 (after R. Freivalds, as in [`super::freivalds`]). A single wrong element never
//! passes; of two that cancel, all eight vectors miss 2^-8.

use super::compensated::{Sum, is_as_fine_as_f64};
use super::outcome::{Failure, check_each};
use super::reference::Expected;
use super::signed_sums::{self, RowSums};
use crate::data::{Matrix, Number, Placement, Problem, ProblemError};
use crate::parallel;

/// Vectors of signs.
const VECTORS: usize = 8;

/// The sums of every element of a problem.
pub struct ComputedReference {
    /// `sum a b`, m x n.
    product: Matrix<f64>,
    /// `sum |a||b|`, m x n.
    magnitude: Matrix<f64>,
}

/// A and B of a problem in f64, to multiply with alpha = 1 and beta = 0.
///
/// # Errors
///
/// There is no memory for them.
pub fn operands<T: Number>(problem: &Problem<T>) -> Result<Problem<f64>, ProblemError> {
    let shape = problem.shape();
    let (a, b) = (problem.a.converted()?, problem.b.converted()?);
    let compact = Placement::compact(shape.n);
    let c = Matrix::from_rows(shape.m, shape.n, compact, |_, _| ())?;
    Problem::new(1.0, 0.0, a, b, c)
}

/// Makes |A| and |B| of A and B.
pub fn make_magnitudes(operands: &mut Problem<f64>) {
    operands.a.replace_each(f64::abs);
    operands.b.replace_each(f64::abs);
}

/// Of what a product is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operands {
    /// A and B.
    AsTheyAre,
    /// |A| and |B|.
    Magnitudes,
}

impl Operands {
    fn element<T: Number>(self, element: T) -> f64 {
        match self {
            Operands::AsTheyAre => element.to_f64(),
            Operands::Magnitudes => element.to_f64().abs(),
        }
    }

    /// Checks a product by rows; `false` if a sum is not finite, so that nothing can be said.
    fn check<T: Number>(
        self,
        problem: &Problem<T>,
        got: &Matrix<f64>,
        seed: u64,
    ) -> Result<bool, Failure> {
        let shape = problem.shape();
        let row_sums = RowSums::<VECTORS>::new(&problem.b, |b| self.element(b), seed);
        // Roundings on either way, each half of f64's epsilon.
        let roundings = (2 * (shape.n + shape.k) + 8) as f64;
        let checked = check_each(shape.m, |row| {
            let a = problem.a.row(row).iter();
            let (want, magnitude) = row_sums.expected(a.map(|a| self.element(*a)));
            let sums = row_sums.of(got.row(row).iter().copied());
            let bound = roundings * f64::EPSILON * magnitude;
            if !bound.is_finite() {
                return Ok(false);
            }
            match sums
                .iter()
                .zip(&want)
                .all(|(sum, want)| (sum - want).abs() <= bound)
            {
                true => Ok(true),
                false => Err(wrong(row)),
            }
        })?;
        Ok(checked.into_iter().all(|checked| checked))
    }
}

fn wrong(row: usize) -> Failure {
    Failure::Unprovable(format!(
        "row {row} of the reference that the GPU computed is wrong."
    ))
}

/// [`Operands::check`] of a product of f64 whose elements were added up in twice the precision and
/// rounded once.
fn check_rounded_once<T: Number>(
    problem: &Problem<T>,
    got: &Matrix<f64>,
    seed: u64,
) -> Result<bool, Failure> {
    /// Half of f64's epsilon.
    const U: f64 = 0.5 * f64::EPSILON;
    let shape = problem.shape();
    let signs = signed_sums::signs::<VECTORS>(shape.n, seed);
    let signed = |elements: &mut dyn Iterator<Item = f64>| {
        let mut sums = [Sum::default(); VECTORS];
        for (element, signs) in elements.zip(&signs) {
            for (sum, sign) in sums.iter_mut().zip(signs) {
                sum.add(element, *sign);
            }
        }
        sums
    };
    let b: Vec<[Sum; VECTORS]> = parallel::map(shape.k, |row| {
        signed(&mut problem.b.row(row).iter().map(|b| b.to_f64()))
    });
    // The sums here, and those of each element, are off by gamma(terms)^2 of their magnitudes, and
    // what underflows.
    let terms = (shape.n + shape.k + 4) as f64;
    let gamma = 2.0 * terms * U;
    let underflow = 10.0 * terms * (shape.n + 1) as f64 * f64::from_bits(1);
    let checked = check_each(shape.m, |row| {
        let mut want = [Sum::default(); VECTORS];
        let mut magnitude = 0.0;
        for (a, b) in problem.a.row(row).iter().zip(&b) {
            let a = a.to_f64();
            for (want, b) in want.iter_mut().zip(b) {
                want.add(a, b.rounded);
                want.correction += a * b.correction;
            }
            magnitude += a.abs() * b[0].magnitude;
        }
        let sums = signed(&mut got.row(row).iter().copied());
        let rounded_once = U * (1.0 + 4.0 * U * terms) * sums[0].magnitude;
        let bound = rounded_once + 4.0 * gamma * gamma * magnitude + underflow;
        if !bound.is_finite() {
            return Ok(false);
        }
        match sums.iter().zip(&want).all(|(sum, want)| {
            let off = (sum.rounded - want.rounded) + (sum.correction - want.correction);
            // The difference itself is rounded.
            off.abs() <= bound + 4.0 * U * want.rounded.abs()
        }) {
            true => Ok(true),
            false => Err(wrong(row)),
        }
    })?;
    Ok(checked.into_iter().all(|checked| checked))
}

impl ComputedReference {
    /// Takes the products of a problem's [`operands`] and of their magnitudes for its reference;
    /// `None` if they hold a NaN or an infinity, and so cannot be checked.
    ///
    /// # Errors
    ///
    /// A row of them is wrong.
    pub fn checked<T: Number>(
        problem: &Problem<T>,
        product: Matrix<f64>,
        magnitude: Matrix<f64>,
        seed: u64,
    ) -> Result<Option<ComputedReference>, Failure> {
        let is_product = match is_as_fine_as_f64::<T>() {
            true => check_rounded_once(problem, &product, seed)?,
            false => Operands::AsTheyAre.check(problem, &product, seed)?,
        };
        let is_known = is_product && Operands::Magnitudes.check(problem, &magnitude, seed)?;
        Ok(is_known.then_some(ComputedReference { product, magnitude }))
    }

    /// What the elements of a row must be.
    pub(super) fn row<T: Number>(
        &self,
        problem: &Problem<T>,
        row: usize,
    ) -> impl Iterator<Item = Expected> {
        let sums = self.product.row(row).iter().zip(self.magnitude.row(row));
        sums.zip(problem.c.row(row))
            .map(|((rounded, magnitude), c)| {
                let sum = Sum {
                    rounded: *rounded,
                    correction: 0.0,
                    magnitude: *magnitude,
                };
                Expected::new(problem, sum, c.to_f64())
            })
    }
}

#[cfg(test)]
mod tests {
    use gpu_gemm::gpu_kernels::spec::Tile;
    use gpu_gemm::gpu_kernels::{reference, tiled};
    use gpu_gemm::{Choice, Device, DeviceChoice, ElementType, Shape};

    use super::*;
    use crate::data::{Data, Layout};
    use crate::run::run;
    use crate::verify::{Coverage, proven};

    const TILE: Tile = Tile { m: 8, n: 8, k: 8 };

    /// A problem, and what the kernel of f64 makes of it and of its magnitudes.
    fn computed(data: Data, beta: f32) -> (Problem<f32>, [Matrix<f64>; 2]) {
        let shape = Shape::new(35, 33, 50);
        let layout = Layout::padded(shape, [3, 1, 2], [1, 2, 3]);
        let problem = Problem::random(shape, layout, data, 1, -1.5, beta).unwrap();
        let device = Device::open(DeviceChoice::Simulator).unwrap().device;
        let mut variants = tiled::KERNEL.variants.iter();
        let kernel = variants.find(|variant| variant.types.c == ElementType::F64);
        let choice = Choice::even(kernel.unwrap());
        let mut operands = operands(&problem).unwrap();
        let product = run(&device, choice, &operands, &|| ()).unwrap().c;
        make_magnitudes(&mut operands);
        let magnitude = run(&device, choice, &operands, &|| ()).unwrap().c;
        (problem, [product, magnitude])
    }

    #[test]
    fn what_it_says_of_each_element_is_what_the_host_computes() {
        for beta in [0.0, 0.5] {
            let (problem, [product, magnitude]) = computed(Data::Normal, beta);
            let reference = ComputedReference::checked(&problem, product, magnitude, 1);
            let reference = reference.unwrap().unwrap();
            for row in 0..35 {
                for (col, found) in reference.row(&problem, row).enumerate() {
                    let host = crate::verify::reference::element(&problem, row, col);
                    let close = 1e-14 * host.magnitude;
                    assert!((found.want - host.want).abs() <= close);
                    assert!((found.magnitude - host.magnitude).abs() <= close);
                }
            }
        }
    }

    #[test]
    fn a_wrong_element_of_it_is_noticed_and_one_that_cannot_be_checked_is_not_used() {
        let (mut problem, [product, magnitude]) = computed(Data::Uniform, 0.0);
        let checked = |problem: &Problem<f32>, product: &Matrix<f64>, magnitude: &Matrix<f64>| {
            ComputedReference::checked(problem, product.clone(), magnitude.clone(), 1)
        };
        assert!(checked(&problem, &product, &magnitude).unwrap().is_some());
        for wrong in [&product, &magnitude] {
            let mut changed = wrong.clone();
            changed.row_mut(34)[32] += 1e-10;
            let outcome = match std::ptr::eq(wrong, &product) {
                true => checked(&problem, &changed, &magnitude),
                false => checked(&problem, &product, &changed),
            };
            let Err(Failure::Unprovable(why)) = outcome else {
                panic!("not noticed");
            };
            assert!(why.starts_with("row 34 "), "{why}");
        }
        problem.a.row_mut(3)[4] = f32::INFINITY;
        assert!(checked(&problem, &product, &magnitude).unwrap().is_none());
    }

    #[test]
    fn every_element_of_a_result_is_compared_with_it() {
        let (problem, [product, magnitude]) = computed(Data::Uniform, 0.0);
        let right = Matrix::from_elements(35, 33, |row, col| {
            crate::verify::reference::element(&problem, row, col).want as f32
        });
        let right = right.unwrap();
        let reference = ComputedReference::checked(&problem, product, magnitude, 1);
        let reference = reference.unwrap().unwrap();
        let judge = |got: &Matrix<f32>| {
            proven(&problem, got, TILE, Data::Uniform, Coverage::By(&reference))
        };
        let proof = judge(&right).unwrap();
        assert_eq!(proof.gate, "proven");
        assert!(proof.statement.starts_with("all 1155 elements "));
        for (row, col) in (0..35).flat_map(|row| (0..33).map(move |col| (row, col))) {
            let mut wrong = right.clone();
            wrong.row_mut(row)[col] = 0.0;
            let Err(Failure::Element(found)) = judge(&wrong) else {
                panic!("not noticed at {row}, {col}");
            };
            assert_eq!((found.row, found.col), (row, col));
        }
    }

    /// A problem of f64, the product as the kernel that is accurate computes it, and as the one
    /// that is not, and the magnitudes.
    fn computed_f64(data: Data) -> (Problem<f64>, [Matrix<f64>; 3]) {
        let shape = Shape::new(35, 33, 500);
        let layout = Layout::padded(shape, [3, 1, 2], [1, 2, 3]);
        let problem = Problem::random(shape, layout, data, 1, -1.5, 0.5).unwrap();
        let device = Device::open(DeviceChoice::Simulator).unwrap().device;
        let mut variants = tiled::KERNEL.variants.iter();
        let plain = variants.find(|variant| variant.types.c == ElementType::F64);
        let plain = Choice::even(plain.unwrap());
        let accurate = Choice::even(&reference::KERNEL.variants[0]);
        let mut operands = operands(&problem).unwrap();
        let multiplied = |choice| run(&device, choice, &operands, &|| ()).unwrap().c;
        let (product, rounded) = (multiplied(accurate), multiplied(plain));
        make_magnitudes(&mut operands);
        let magnitude = run(&device, plain, &operands, &|| ()).unwrap().c;
        (problem, [product, rounded, magnitude])
    }

    #[test]
    fn a_reference_of_f64_is_rounded_once_and_one_that_is_rounded_at_each_step_is_noticed() {
        for data in [Data::Normal, Data::Positive] {
            let (problem, [product, rounded, magnitude]) = computed_f64(data);
            let check = |product: &Matrix<f64>| {
                ComputedReference::checked(&problem, product.clone(), magnitude.clone(), 1)
            };
            let reference = check(&product).unwrap().unwrap();
            for row in 0..35 {
                for (col, found) in reference.row(&problem, row).enumerate() {
                    let host = crate::verify::reference::element(&problem, row, col);
                    // Twice half of the epsilon, of the product and of the result.
                    let close = f64::EPSILON * (host.want.abs() + 2.0);
                    assert!((found.want - host.want).abs() <= close, "{row}, {col}");
                    assert!((found.magnitude - host.magnitude).abs() <= 1e-13 * host.magnitude);
                }
            }
            assert!(matches!(check(&rounded), Err(Failure::Unprovable(_))));
            let mut changed = product.clone();
            changed.row_mut(34)[32] *= 1.0 + 1e-12;
            assert!(matches!(check(&changed), Err(Failure::Unprovable(_))));
        }
    }

    fn matrix<T: Number>(rows: usize, elements: &[T]) -> Matrix<T> {
        let columns = elements.len() / rows;
        Matrix::from_elements(rows, columns, |row, col| elements[row * columns + col]).unwrap()
    }

    /// A row of A, and B.
    fn row_times<T: Number>(a: &[T], b: &[T]) -> Problem<T> {
        let b = matrix(a.len(), b);
        let c = Matrix::from_elements(1, b.columns(), |_, _| T::default()).unwrap();
        Problem::new(T::from_integer(1), T::default(), matrix(1, a), b, c).unwrap()
    }

    /// 2 (n + k) + 8 of them, where the sum of magnitudes is 1.
    #[test]
    fn a_row_may_be_off_by_as_many_epsilons_as_there_are_roundings_and_no_more() {
        let (one_column, three_columns) = (&[1f32, 0.0][..], &[1f32, 0.0, 0.0][..]);
        for (a, b, roundings) in [
            (&[-1f32, 0.0][..], one_column, 14.0),
            (&[-1f32][..], three_columns, 16.0),
            (&[-1f32][..], &one_column[..1], 12.0),
        ] {
            let problem = row_times(a, b);
            for (operands, right) in [(Operands::AsTheyAre, -1.0), (Operands::Magnitudes, 1.0)] {
                let check = |epsilons: f64| {
                    let mut got = vec![0.0; problem.shape().n];
                    got[0] = right * (1.0 + epsilons * f64::EPSILON);
                    operands.check(&problem, &matrix(1, &got), 1)
                };
                assert_eq!(check(roundings), Ok(true), "{operands:?} {roundings}");
                assert_eq!(check(roundings + 1.0), Err(wrong(0)), "{operands:?}");
            }
        }
    }

    /// [`check_rounded_once`] of a row.
    fn rounded_once(problem: &Problem<f64>, got: &[f64]) -> Result<bool, Failure> {
        check_rounded_once(problem, &matrix(1, got), 1)
    }

    #[test]
    fn a_reference_of_f64_that_is_not_finite_is_not_used_and_no_error() {
        let problem = row_times(&[1.0, 2.0], &[3.0, 4.0, 5.0, 6.0]);
        let checked = |product: &[f64]| {
            let (product, magnitude) = (matrix(1, product), matrix(1, &[13.0, 16.0]));
            ComputedReference::checked(&problem, product, magnitude, 1)
        };
        assert!(checked(&[13.0, 16.0]).unwrap().is_some());
        for element in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(checked(&[13.0, element]).unwrap().is_none(), "{element}");
            let infinite = row_times(&[1.0, element], &[3.0, 4.0, 5.0, 6.0]);
            assert_eq!(rounded_once(&infinite, &[13.0, 16.0]), Ok(false));
        }
    }
}
