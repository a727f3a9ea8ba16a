//! The problems that rank 0 knows, and how results are proven right.

use std::any::Any;
use std::collections::HashMap;

use gpu_gemm::gpu_kernels::spec::Tile;
use gpu_gemm::{Device, Shape};
use host::cpu::{self, view::View, view::ViewMut};
use host::data::{Data, Matrix, Number, Placement, Problem, ProblemError, Storage};
use host::memory;
use host::progress::Progress;
use host::prove::{EvaluateError, compute_reference, small_integer};
use host::source::Source;
use host::verify::computed::ComputedReference;
use host::verify::{self, Coverage, ErrorModel, Failure, Proof};
use thiserror::Error;

use super::Request;
use crate::Element;
use crate::layout::LayoutError;

/// How results round, of A and B in `T`. Whatever a kernel carries along within a panel, panels are
/// added plainly.
///
/// All kernels for elements of 16 bits are of tensor cores. Their bound allows 4 units for each of
/// k products, and 8 more, and holds of sums of panels, too: tensor cores add four products or more
/// at a time, to a sum that is 0 at first, so a panel of W products loses no more than 3 W + 1
/// units, and f32 one more for each panel.
pub(super) fn error_model<T: Element>() -> ErrorModel {
    match verify::rounds_sums::<T>() {
        true => ErrorModel::Truncated,
        false => ErrorModel::Elementwise,
    }
}

/// Why C is not known to be right.
#[derive(Debug, Error)]
pub(super) enum KnownError {
    #[error(transparent)]
    Wrong(#[from] Failure),
    #[error(transparent)]
    NoReference(#[from] EvaluateError),
}

/// A and B as ranks multiply them, in `T`: copies, where a problem has them in another type, that
/// of C.
pub(super) struct Inputs<T> {
    copies: Option<[Matrix<T>; 2]>,
}

impl<T: Number> Inputs<T> {
    pub fn of<C: Number>(a: &Matrix<C>, b: &Matrix<C>) -> Result<Self, ProblemError> {
        let copies = match T::TYPE == C::TYPE {
            true => None,
            false => Some([a.converted()?, b.converted()?]),
        };
        Ok(Inputs { copies })
    }

    /// Of the matrices that these are `of`.
    pub fn views<'a, C: Number>(
        &'a self,
        a: &'a Matrix<C>,
        b: &'a Matrix<C>,
    ) -> (View<'a, T>, View<'a, T>) {
        let [a, b] = match &self.copies {
            Some(copies) => copies.each_ref(),
            None => [a, b].map(|matrix| {
                let matrix: &dyn Any = matrix;
                matrix
                    .downcast_ref()
                    .expect("without copies, the types are the same")
            }),
        };
        (view(a), view(b))
    }
}

fn view<T: Number>(matrix: &Matrix<T>) -> View<'_, T> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    View::new(matrix.elements(), rows, columns, matrix.leading())
}

/// A problem of a C in `C`, and A and B as ranks multiply them.
struct Posed<T, C> {
    problem: Problem<C>,
    inputs: Inputs<T>,
}

impl<T: Element, C: Element> Posed<T, C> {
    fn new(problem: Problem<C>) -> Result<Self, ProblemError> {
        let inputs = Inputs::of(&problem.a, &problem.b)?;
        Ok(Posed { problem, inputs })
    }
}

/// The problems of one shape, and what is known to be right.
pub(super) struct Known<T, C: Element> {
    pub shape: Shape,
    exact: Option<Posed<T, C>>,
    asked: Posed<T, C>,
    data: Option<Data>,
    coverage: Coverage,
    /// Of each gate's problem, once it was needed, where elements have fewer bits than their sums:
    /// rows cannot be checked by their sums then.
    references: HashMap<Gate, ComputedReference>,
    /// By the bits of C: those that passed a gate already need not pass it again.
    passed: HashMap<(Gate, u64), Proof>,
}

/// Integers of which no sum rounds, if there are any: of A and B in `T` and a C of `C`.
pub(super) fn exact_data<T: Element, C: Element>(shape: Shape) -> Option<Data> {
    error_model::<T>().exact_data_of::<C>(T::TYPE, shape)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Gate {
    Exact,
    General,
}

impl<T: Element, C: Element> Known<T, C> {
    pub(super) fn new(
        request: &Request,
        shape: Shape,
        source: &Source,
    ) -> Result<Self, EvaluateError> {
        memory::check_padded(shape, request.padding, size_of::<C>())?;
        let scalars = (
            scalar("alpha", request.alpha)?,
            scalar("beta", request.beta)?,
        );
        let storage = request.storage();
        let layout = storage.layout(shape);
        let [alpha, beta] = [request.alpha, request.beta].map(scalar_of_integers);
        let exact = exact_data::<T, C>(shape)
            .map(|data| {
                let (seed, scalars) = (request.seed, (alpha, beta));
                let problem =
                    Problem::random_batch_of(T::TYPE, 1, shape, layout, data, seed, scalars);
                Posed::new(problem?)
            })
            .transpose()?;
        let (asked, data) = source.problem_of(T::TYPE, shape, storage, request.seed, scalars)?;
        let asked = Posed::new(asked)?;
        Ok(Known {
            shape,
            exact,
            asked,
            data,
            coverage: Coverage::of(shape, request.seed),
            references: HashMap::new(),
            passed: HashMap::new(),
        })
    }

    pub(super) fn judge(
        &mut self,
        gate: Gate,
        c: &Matrix<C>,
        tile: Tile,
        device: &Device,
    ) -> Result<Proof, KnownError> {
        let key = (gate, c.hash_of_bits());
        if let Some(proof) = self.passed.get(&key) {
            return Ok(proof.clone());
        }
        let (data, model) = (self.data, error_model::<T>());
        let (problem, is_exact) = match (gate, &self.exact) {
            (Gate::Exact, Some(exact)) => (&exact.problem, true),
            (Gate::Exact, None) | (Gate::General, _) => (&self.asked.problem, false),
        };
        let by_reference = verify::rounds_sums::<C>() && self.coverage != Coverage::Full;
        let storage = Storage::default();
        let fits = memory::check_stored(self.shape, storage, size_of::<f64>()).is_ok();
        let is_missing = by_reference && !self.references.contains_key(&gate);
        if is_missing && fits && device.gpu().is_some() {
            let computed = compute_reference(device, problem, 1, &Progress::start(0))?;
            self.references.extend(computed?.map(|found| (gate, found)));
        }
        let proof = match (is_exact, self.references.get(&gate)) {
            (true, Some(reference)) => verify::exact_by(problem, c, reference),
            (false, Some(reference)) => verify::proven_by(problem, c, reference, data, model),
            (true, None) if by_reference => verify::exact(problem, c, tile, Coverage::Full),
            (true, None) => verify::exact(problem, c, tile, self.coverage),
            (false, None) => verify::general(problem, c, tile, data, self.coverage, model),
        }?;
        self.passed.insert(key, proof.clone());
        Ok(proof)
    }

    pub(super) fn problem(&self, gate: Gate) -> Option<&Problem<C>> {
        Some(&self.posed(gate)?.problem)
    }

    /// A and B as ranks multiply them.
    pub(super) fn operands(&self, gate: Gate) -> Option<(View<'_, T>, View<'_, T>)> {
        let Posed { problem, inputs } = self.posed(gate)?;
        Some(inputs.views(&problem.a, &problem.b))
    }

    fn posed(&self, gate: Gate) -> Option<&Posed<T, C>> {
        match gate {
            Gate::Exact => self.exact.as_ref(),
            Gate::General => Some(&self.asked),
        }
    }
}

/// Alpha or beta, as the type of the elements has it.
pub(super) fn scalar<T: Element>(name: &'static str, scalar: f64) -> Result<T, EvaluateError> {
    T::from_scalar(scalar)
        .filter(|_| scalar.is_finite())
        .ok_or(EvaluateError::Scalar {
            name,
            scalar,
            data_type: T::TYPE.into(),
        })
}

/// What stands for it in the exact gate.
pub(super) fn scalar_of_integers<T: Element>(scalar: f64) -> T {
    T::from_integer(small_integer(scalar))
}

/// `alpha * product + beta * C`, computed in the type of sums and rounded once to that of C; in the
/// memory of the product where that is the same.
pub(super) fn finished<C: Element>(
    problem: &Problem<C>,
    mut product: Vec<C::Sum>,
    threads: usize,
) -> Result<Matrix<C>, LayoutError> {
    let Shape { m, n, .. } = problem.shape();
    let (alpha, beta) = (problem.alpha.as_sum(), problem.beta.as_sum());
    if alpha != C::Sum::from_integer(1) || beta != C::Sum::default() {
        let mut row_of_c = vec![C::Sum::default(); n];
        for (row, sums) in product.chunks_mut(n.max(1)).enumerate() {
            for (sum, element) in row_of_c.iter_mut().zip(problem.c.row(row)) {
                *sum = element.as_sum();
            }
            let of_row = ViewMut::new(&mut row_of_c, 1, n, n);
            cpu::scale_and_add(alpha, View::new(sums, 1, n, n), beta, of_row);
            sums.copy_from_slice(&row_of_c);
        }
    }
    let elements = C::rounded(product, threads)?;
    Ok(Matrix::new(elements, m, n, Placement::compact(n))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_gemm::{Bf16, F16, KERNELS};

    #[test]
    fn all_kernels_for_16_bits_round_as_the_gates_expect() {
        let variants = KERNELS.iter().flat_map(|kernel| kernel.variants);
        let models = variants
            .filter(|variant| variant.types.c.bytes() == 2)
            .map(|variant| ErrorModel::of(variant.rounding));
        let models: Vec<ErrorModel> = models.collect();
        assert!(!models.is_empty());
        let expected = [error_model::<Bf16>(), error_model::<F16>()];
        assert!(models.iter().all(|model| expected == [*model; 2]));
    }

    #[test]
    fn alpha_and_beta_are_applied_to_the_c_that_was_there() {
        let matrix =
            |elements: &[i32]| Matrix::new(elements.to_vec(), 1, 2, Placement::compact(2)).unwrap();
        let ones = Matrix::new(vec![1, 1], 2, 1, Placement::compact(1)).unwrap();
        let padded = Placement {
            offset: 1,
            leading: 3,
        };
        let c = Matrix::new(vec![-1, 100, 200, -1, 300, 400], 2, 2, padded).unwrap();
        let problem = Problem::new(2, 3, ones, matrix(&[5, 7]), c).unwrap();
        let product = vec![5, 7, 5, 7];
        let start = product.as_ptr();
        let c = finished(&problem, product, 1).unwrap();
        assert_eq!([c.row(0), c.row(1)], [[310, 614], [910, 1214]]);
        assert_eq!(c.buffer().as_ptr(), start, "no second C");
    }

    #[test]
    fn a_sum_is_rounded_once_after_alpha_and_beta() {
        let matrix = |elements: &[f64], rows, columns| {
            let elements = elements
                .iter()
                .map(|element| Bf16::from_f64(*element))
                .collect();
            Matrix::new(elements, rows, columns, Placement::compact(columns)).unwrap()
        };
        let (three, one) = (Bf16::from_f64(3.0), Bf16::from_f64(1.0));
        let factor = matrix(&[1.0], 1, 1);
        let problem =
            Problem::new(three, one, factor.clone(), factor, matrix(&[-768.0], 1, 1)).unwrap();
        // As bf16, 257 is 256, and 3 of these are C.
        let c = finished(&problem, vec![257.0_f32], 1).unwrap();
        assert_eq!(c.row(0)[0].to_f64(), 3.0);
    }

    #[test]
    fn ranks_get_a_and_b_in_their_own_type_and_copies_only_of_another_one() {
        let of_c = Matrix::new(vec![1.5_f32, -2.0], 1, 2, Placement::compact(2)).unwrap();
        let same = Inputs::<f32>::of(&of_c, &of_c).unwrap();
        let (a, _) = same.views(&of_c, &of_c);
        assert_eq!(a.elements().as_ptr(), of_c.elements().as_ptr());
        let other = Inputs::<Bf16>::of(&of_c, &of_c).unwrap();
        let (_, b) = other.views(&of_c, &of_c);
        assert_eq!(b.row(0), [1.5, -2.0].map(Bf16::from_f64));
    }
}
