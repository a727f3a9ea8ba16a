//! The problems that rank 0 knows, and how results are checked: C, or if it is not gathered,
//! what each rank says of its block. Then only vectors travel.

use std::cell::Cell;
use std::collections::HashMap;
use std::marker::PhantomData;

use gpu_gemm::gpu_kernels::spec::Tile;
use gpu_gemm::{Device, Shape};
use host::check::{EvaluateError, compute_reference, scalars, small_integer};
use host::memory;
use host::progress::Progress;
use host::source::Source;
use thiserror::Error;
use verification::cpu::{self, view::View, view::ViewMut};
use verification::data::{Data, Matrix, Number, Placement, Problem, ProblemError, Storage};
use verification::verify::computed::ComputedReference;
use verification::verify::summary::{Summary, judge_exact, judge_general};
use verification::verify::{self, Coverage, ErrorModel, Failure, Verdict};

use super::request::Request;
use crate::Element;
use crate::layout::LayoutError;
use crate::share_out::Block;

/// How results round, of A and B in `T`. Whatever a kernel carries along within a panel, panels are
/// added plainly.
///
/// All kernels for elements of 16 bits are of tensor cores. Their bound allows 4 units for each of
/// k products, and 8 more, and holds of sums of panels, too: tensor cores add four products or more
/// at a time, to a sum that is 0 at first, so a panel of W products loses no more than 3 W + 1
/// units, and f32 one more for each panel.
pub(super) fn error_model<T: Element>() -> ErrorModel {
    match T::rounds_sums() {
        true => ErrorModel::Truncated,
        false => ErrorModel::Elementwise,
    }
}

/// Why C is not known to be right.
#[derive(Debug, Error)]
pub(super) enum KnownError {
    #[error(transparent)]
    Wrong(#[from] Failure),
    #[error(
        "rank {rank}, whose block begins at C[{row}][{column}] and is judged by its sums: {why}"
    )]
    WrongBlock {
        rank: usize,
        row: usize,
        column: usize,
        why: Failure,
    },
    #[error(transparent)]
    NoReference(#[from] EvaluateError),
    #[error(transparent)]
    Problem(#[from] ProblemError),
}

pub(super) fn view<T: Number>(matrix: &Matrix<T>) -> View<'_, T> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    View::new(matrix.elements(), rows, columns, matrix.leading())
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

/// The problems of one shape, and what is known to be right. If C is not gathered, it has no
/// columns in these. Ranks multiply A and B in `T`.
pub(super) struct Known<T, C: Element> {
    pub shape: Shape,
    exact: Option<Problem<C>>,
    asked: Problem<C>,
    data: Option<Data>,
    seed: u64,
    coverage: Coverage<'static>,
    /// Of each gate's problem, once it was needed, where elements have fewer bits than their sums:
    /// rows cannot be checked by their sums then.
    references: HashMap<Gate, ComputedReference>,
    /// By the bits of C: those that passed a gate already need not pass it again.
    passed: HashMap<(Gate, u64), Verdict>,
    inputs: PhantomData<T>,
}

impl<T: Element, C: Element> Known<T, C> {
    /// Fills or reads the matrices: a C only if it is gathered.
    pub(super) fn new(
        gathers: bool,
        request: &Request,
        shape: Shape,
        source: &Source,
    ) -> Result<Self, EvaluateError> {
        // Without C, the matrices are of two problems, whose C has no elements.
        let shapes = match gathers {
            true => [shape; 2],
            false => [Shape { n: 0, ..shape }, Shape { m: 0, ..shape }],
        };
        for shape in shapes {
            memory::check(shape, request.storage(), size_of::<C>())?;
        }
        let filled = |fill: &dyn Fn(Shape) -> Result<Problem<C>, EvaluateError>| {
            let mut problem = fill(shapes[0])?;
            if !gathers {
                problem.b = fill(shapes[1])?.b;
            }
            Ok::<_, EvaluateError>(problem)
        };
        let storage = request.storage();
        let exact = exact_data::<T, C>(shape).map(|data| {
            let scalars = [request.alpha, request.beta].map(scalar_of_integers);
            filled(&|shape| {
                let (seed, scalars) = (request.seed, scalars.into());
                let problem = Problem::random_as(T::TYPE, shape, storage, data, seed, scalars);
                Ok(problem?)
            })
        });
        let scalars = scalars(request.alpha, request.beta, C::TYPE)?;
        let data = Cell::new(None);
        let asked = filled(&|shape| {
            let found = source.problem_of(T::TYPE, shape, storage, request.seed, scalars)?;
            data.set(found.1);
            Ok(found.0)
        })?;
        Ok(Known {
            shape,
            exact: exact.transpose()?,
            asked,
            data: data.get(),
            seed: request.seed,
            coverage: Coverage::of(shape, request.seed),
            references: HashMap::new(),
            passed: HashMap::new(),
            inputs: PhantomData,
        })
    }

    pub(super) fn problem(&self, gate: Gate) -> &Problem<C> {
        match (gate, &self.exact) {
            (Gate::Exact, Some(exact)) => exact,
            _ => &self.asked,
        }
    }

    /// Whether the gate's problem is of integers of which no sum rounds.
    fn is_exact(&self, gate: Gate) -> bool {
        gate == Gate::Exact && self.exact.is_some()
    }

    /// Judges a C that was gathered.
    pub(super) fn judge(
        &mut self,
        gate: Gate,
        c: &Matrix<C>,
        tile: Tile,
        device: &Device,
    ) -> Result<String, KnownError> {
        let key = (gate, c.hash_of_bits());
        if let Some(verdict) = self.passed.get(&key) {
            return Ok(format!("{}: {}", verdict.gate, verdict.statement));
        }
        let (data, model) = (self.data, error_model::<T>());
        let by_reference = C::rounds_sums() && self.coverage.is_sampled();
        let storage = Storage::COMPACT;
        let fits = memory::check(self.shape, storage, size_of::<f64>()).is_ok();
        let is_missing = by_reference && !self.references.contains_key(&gate);
        if is_missing && fits && device.gpu().is_some() {
            let problem = self.problem(gate);
            let computed = compute_reference(device, problem, 1, &Progress::start(0))?;
            self.references.extend(computed?.map(|found| (gate, found)));
        }
        let problem = self.problem(gate);
        let coverage = self.references.get(&gate).map(Coverage::By);
        let coverage = coverage.unwrap_or(self.coverage);
        let verdict = match self.is_exact(gate) {
            true => verify::exact(problem, c, tile, coverage),
            false => verify::general(problem, c, tile, data, coverage, model),
        }?;
        let statement = format!("{}: {}", verdict.gate, verdict.statement);
        self.passed.insert(key, verdict);
        Ok(statement)
    }

    /// Judges the blocks of all ranks by what each says of its own. Returns what was shown.
    pub(super) fn judge_blocks(
        &self,
        gate: Gate,
        blocks: &[Block],
        summaries: &[Summary],
        tile: Tile,
    ) -> Result<String, KnownError> {
        let mut verdicts = Vec::new();
        for (rank, (block, summary)) in blocks.iter().zip(summaries).enumerate() {
            if block.is_empty() {
                continue;
            }
            let problem = self.problem_of(gate, block)?;
            let verdict = match self.is_exact(gate) {
                true => judge_exact(&problem, summary, tile, self.seed),
                false => {
                    let model = error_model::<T>();
                    judge_general(&problem, summary, tile, self.data, self.seed, model)
                }
            };
            verdicts.push(verdict.map_err(|why| KnownError::WrongBlock {
                rank,
                row: block.rows.start,
                column: block.columns.start,
                why,
            })?);
        }
        let share =
            |verdict: &Verdict| verdict.largest_error / verdict.bound.max(f64::MIN_POSITIVE);
        let which = match verdicts.len() {
            1 => "the one block, where it is",
            _ => "each block, where it is, and of the worst",
        };
        let worst = verdicts
            .iter()
            .max_by(|one, other| share(one).total_cmp(&share(other)));
        Ok(match worst {
            None => "there is no element to be wrong".to_string(),
            Some(worst) => format!("{}: {which}: {}", worst.gate, worst.statement),
        })
    }

    /// The product of a block's rows of A and columns of B.
    fn problem_of(&self, gate: Gate, block: &Block) -> Result<Problem<C>, ProblemError> {
        let Problem { alpha, a, b, .. } = self.problem(gate);
        let Block { rows, columns } = block;
        let compact = Placement::compact;
        let of_a = Matrix::from_rows(rows.len(), a.columns(), compact(a.columns()), |row, to| {
            to.copy_from_slice(a.row(rows.start + row));
        })?;
        let width = columns.len();
        let of_b = Matrix::from_rows(b.rows(), width, compact(width), |row, to| {
            to.copy_from_slice(&b.row(row)[columns.clone()]);
        })?;
        let c = Matrix::from_rows(rows.len(), width, compact(width), |_, _| ())?;
        Problem::new(*alpha, C::default(), of_a, of_b, c)
    }
}

/// A rank's verdict on its own block.
pub(super) fn summary<T: Element, C: Element>(
    gate: Gate,
    shape: Shape,
    block: &Matrix<C>,
    tile: Tile,
    seed: u64,
) -> Summary {
    let is_exact = exact_data::<T, C>(shape).is_some();
    match (block.rows() * block.columns(), gate) {
        (0, _) => Summary::default(),
        (_, Gate::Exact) if is_exact => Summary::exact(block, tile, seed),
        _ => Summary::general(block, tile, seed),
    }
}

/// The integer that replaces it in the exact gate.
pub(super) fn scalar_of_integers<T: Element>(scalar: f64) -> T {
    T::from_integer(small_integer(scalar))
}

/// `alpha * product + beta * C`, computed in the type of sums and rounded once to that of C; in the
/// memory of the product where that is the same. Without a `C`, nothing is added.
pub(super) fn finished<C: Element>(
    alpha: C,
    mut product: Vec<C::Sum>,
    (rows, columns): (usize, usize),
    added: Option<(C, &Matrix<C>)>,
) -> Result<Matrix<C>, LayoutError> {
    let (alpha, zero) = (alpha.as_sum(), C::Sum::default());
    let beta = added.map_or(zero, |(beta, _)| beta.as_sum());
    if alpha != C::Sum::from_integer(1) || beta != zero {
        let mut row_of_c = vec![zero; columns];
        for (row, sums) in product.chunks_mut(columns.max(1)).enumerate() {
            if let Some((_, c)) = added {
                for (sum, element) in row_of_c.iter_mut().zip(c.row(row)) {
                    *sum = element.as_sum();
                }
            }
            let of_row = ViewMut::new(&mut row_of_c, 1, columns, columns);
            cpu::scale_and_add(alpha, View::new(sums, 1, columns, columns), beta, of_row);
            sums.copy_from_slice(&row_of_c);
        }
    }
    let count = product.len();
    let elements = C::rounded(product).map_err(|_| LayoutError::OutOfMemory(count))?;
    Ok(Matrix::new(elements, rows, columns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_gemm::{Bf16, F16, KERNELS};

    #[test]
    fn all_kernels_for_16_bits_round_as_the_gates_expect() {
        let variants = KERNELS.iter().flat_map(|kernel| kernel.variants);
        let models = variants
            .filter(|variant| variant.types.a.bytes() == 2 && variant.types.c.bytes() == 2)
            .map(|variant| ErrorModel::of(variant.rounding));
        let models: Vec<ErrorModel> = models.collect();
        assert!(!models.is_empty());
        let expected = [error_model::<Bf16>(), error_model::<F16>()];
        assert!(models.iter().all(|model| expected == [*model; 2]));
    }
}
