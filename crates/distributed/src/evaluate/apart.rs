//! A C that no rank holds: each rank keeps its block, says its sums and some of its elements, and
//! rank 0, which has A and B, judges these. Only vectors travel.

use gpu_gemm::Shape;
use gpu_gemm::gpu_kernels::spec::Tile;
use host::cpu::view::View;
use host::data::{Data, Matrix, Placement, Problem, ProblemError};
use host::memory;
use host::prove::EvaluateError;
use host::source::Source;
use host::verify::summary::{Summary, judge_exact, judge_general};
use host::verify::{Failure, Proof};
use thiserror::Error;

use super::Request;
use super::known::{Gate, Inputs, error_model, exact_data, scalar, scalar_of_integers};
use crate::Element;
use crate::share_out::Block;

/// A and B, on rank 0.
struct Factors<T, C> {
    alpha: C,
    a: Matrix<C>,
    b: Matrix<C>,
    inputs: Inputs<T>,
}

impl<T: Element, C: Element> Factors<T, C> {
    fn new(alpha: C, a: Matrix<C>, b: Matrix<C>) -> Result<Self, ProblemError> {
        let inputs = Inputs::of(&a, &b)?;
        Ok(Factors {
            alpha,
            a,
            b,
            inputs,
        })
    }
}

/// The products of one shape, without C.
pub(super) struct Apart<T, C> {
    pub shape: Shape,
    exact: Option<Factors<T, C>>,
    asked: Factors<T, C>,
    data: Option<Data>,
    seed: u64,
}

/// Why the blocks are not proven right.
#[derive(Debug, Error)]
pub(super) enum BlockFailure {
    #[error(
        "rank {rank}, whose block begins at C[{row}][{column}] and is judged by its sums: {why}"
    )]
    Wrong {
        rank: usize,
        row: usize,
        column: usize,
        why: Failure,
    },
    #[error(transparent)]
    Problem(#[from] ProblemError),
}

impl<T: Element, C: Element> Apart<T, C> {
    /// Fills A and B as they would be beside a C.
    pub fn new(request: &Request, shape: Shape, source: &Source) -> Result<Self, EvaluateError> {
        let Shape { m, n, k } = shape;
        // The matrices of two problems, whose C has no elements.
        let halves = [Shape::new(m, 0, k), Shape::new(0, n, k)];
        for half in halves {
            memory::check_padded(half, request.padding, size_of::<C>())?;
        }
        let storage = request.storage();
        let alpha = scalar("alpha", request.alpha)?;
        let exact = match exact_data::<T, C>(shape) {
            None => None,
            Some(data) => {
                let alpha = scalar_of_integers(request.alpha);
                let fill = |shape| {
                    let (layout, scalars) = (storage.layout(shape), (alpha, C::default()));
                    let (inputs, seed) = (T::TYPE, request.seed);
                    Problem::random_batch_of(inputs, 1, shape, layout, data, seed, scalars)
                };
                let [of_a, of_b] = halves.map(fill);
                Some(Factors::new(alpha, of_a?.a, of_b?.b)?)
            }
        };
        let fill = |shape| {
            let scalars = (alpha, C::default());
            source.problem_of(T::TYPE, shape, storage, request.seed, scalars)
        };
        let [of_a, of_b] = halves.map(fill);
        let ((of_a, data), (of_b, _)) = (of_a?, of_b?);
        Ok(Apart {
            shape,
            exact,
            asked: Factors::new(alpha, of_a.a, of_b.b)?,
            data,
            seed: request.seed,
        })
    }

    fn factors(&self, gate: Gate) -> &Factors<T, C> {
        match (gate, &self.exact) {
            (Gate::Exact, Some(exact)) => exact,
            _ => &self.asked,
        }
    }

    /// A and B as ranks multiply them.
    pub fn operands(&self, gate: Gate) -> (View<'_, T>, View<'_, T>) {
        let Factors { a, b, inputs, .. } = self.factors(gate);
        inputs.views(a, b)
    }

    /// Judges the blocks of all ranks by what each says of its own. Returns what was shown.
    pub fn judge(
        &self,
        gate: Gate,
        blocks: &[Block],
        summaries: &[Summary],
        tile: Tile,
    ) -> Result<String, BlockFailure> {
        let mut count = 0;
        let mut worst: Option<Proof> = None;
        for (rank, (block, summary)) in blocks.iter().zip(summaries).enumerate() {
            if block.is_empty() {
                continue;
            }
            let proof = self.judge_block(gate, block, summary, tile)?;
            let proof = proof.map_err(|why| BlockFailure::Wrong {
                rank,
                row: block.rows.start,
                column: block.columns.start,
                why,
            })?;
            count += 1;
            let share = |proof: &Proof| proof.largest_error / proof.bound.max(f64::MIN_POSITIVE);
            if worst
                .as_ref()
                .is_none_or(|worst| share(worst) < share(&proof))
            {
                worst = Some(proof);
            }
        }
        Ok(match worst {
            None => "there is no element to be wrong".to_string(),
            Some(Proof {
                gate, statement, ..
            }) => {
                let which = match count {
                    1 => "the one block, where it lies",
                    _ => "each block, where it lies, and of the worst",
                };
                format!("{gate}: {which}: {statement}")
            }
        })
    }

    /// The outcome for one block, which is the product of rows of A and columns of B.
    fn judge_block(
        &self,
        gate: Gate,
        block: &Block,
        summary: &Summary,
        tile: Tile,
    ) -> Result<Result<Proof, Failure>, ProblemError> {
        let Factors { alpha, a, b, .. } = self.factors(gate);
        let Block { rows, columns } = block;
        let of_a = Matrix::from_rows(rows.len(), a.columns(), compact(a.columns()), |row, to| {
            to.copy_from_slice(a.row(rows.start + row));
        })?;
        let of_b = Matrix::from_rows(
            b.rows(),
            columns.len(),
            compact(columns.len()),
            |row, to| {
                to.copy_from_slice(&b.row(row)[columns.clone()]);
            },
        )?;
        let c = Matrix::from_rows(rows.len(), columns.len(), compact(columns.len()), |_, _| ())?;
        let problem = Problem::new(*alpha, C::default(), of_a, of_b, c)?;
        let model = error_model::<T>();
        Ok(match (gate, &self.exact) {
            (Gate::Exact, Some(_)) => judge_exact(&problem, summary, tile, self.seed),
            _ => judge_general(&problem, summary, tile, self.data, self.seed, model),
        })
    }
}

fn compact(columns: usize) -> Placement {
    Placement::compact(columns)
}

/// What a rank says of its block: all ranks the same way.
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
