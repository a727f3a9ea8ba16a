//! How blocks share steps, and what is launched beside the kernel.

use serde::Serialize;

use crate::blas::{Pack, Plan, Role};
use crate::traffic::Partials;

/// A copy of an operand, made before the kernel runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Copied {
    /// `A` or `B`.
    pub matrix: char,
    /// Whether rows become columns.
    pub transposed: bool,
    /// Of the copy.
    pub rows: usize,
    pub columns: usize,
    /// Whether it is larger than the matrix, with zeros.
    pub padded: bool,
}

impl Copied {
    pub(super) fn of(pack: Pack) -> Copied {
        let (rows, columns) = pack.target;
        let unpadded = match pack.transposed {
            true => (pack.source.1, pack.source.0),
            false => pack.source,
        };
        Copied {
            matrix: match pack.role {
                Role::A => 'A',
                Role::B => 'B',
            },
            transposed: pack.transposed,
            rows,
            columns,
            padded: pack.target != unpadded,
        }
    }
}

/// Who does which steps, of a kernel whose blocks share them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shared {
    /// Blocks of a row of the grid.
    pub streams: u32,
    /// Rows whose blocks compute a tile each.
    pub whole_rounds: u32,
    /// Tiles that the blocks of the last row share, and steps of each.
    pub shared_tiles: usize,
    pub steps_of_tile: usize,
    /// Steps of each of those blocks, on average: none has one more or less than another.
    pub steps_of_block: f64,
    /// Tiles that are in several hands, and the parts that those are in.
    pub split_tiles: usize,
    pub parts: usize,
    /// For copies of A and B, and for partial sums.
    pub workspace_bytes: u128,
}

impl Shared {
    /// None for a kernel whose blocks share nothing.
    pub(super) fn of(plan: &Plan<'_>) -> Option<Shared> {
        let (sharing, streams) = (plan.sharing()?, plan.streams()?);
        let partials = Partials::of(plan).unwrap_or_default();
        let shared = streams.shared();
        Some(Shared {
            streams: sharing.streams,
            whole_rounds: sharing.whole_waves,
            shared_tiles: shared,
            steps_of_tile: streams.steps,
            steps_of_block: shared as f64 * streams.steps as f64 / streams.streams as f64,
            split_tiles: partials.tiles,
            parts: partials.parts,
            workspace_bytes: plan.workspace_elements() as u128 * size_of::<f32>() as u128,
        })
    }
}

/// The columns of C that a kernel leaves to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rest {
    /// The variant that takes them.
    pub kernel: &'static str,
    pub columns: usize,
    /// Blocks of that.
    pub blocks: u64,
}

impl Rest {
    /// None for a kernel that leaves none.
    pub(super) fn of(plan: &Plan<'static>) -> Option<Rest> {
        let rest = plan.rest()?;
        let (x, y) = rest.grid()?;
        Some(Rest {
            kernel: rest.variant().name,
            columns: rest.call().shape.n,
            blocks: u64::from(x) * u64::from(y),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::explain::{ExplainError, Explanation, Question, tests::explained};
    use crate::problem::Shape;
    use crate::traffic::By;

    #[test]
    fn the_tiles_of_the_last_round_are_shared_after_whole_ones() {
        let gpu = crate::gpu::data_sheets::find("h200").unwrap();
        let variant = &gpu_kernels::async_pipeline::KERNEL.variants[0];
        let plan = crate::explain::plan(variant, Shape::cube(4096), &gpu, None).unwrap();
        let shared = super::Shared::of(&plan).unwrap();
        // 1024 tiles on 132 blocks: 7 rounds, and 100 tiles that are shared.
        assert_eq!((shared.streams, shared.whole_rounds), (132, 7));
        assert_eq!((shared.shared_tiles, shared.steps_of_tile), (100, 512));
        assert!((shared.steps_of_block - 100.0 * 512.0 / 132.0).abs() < 1e-9);
        // All but those that a block begins and ends with are whole, and each cut makes two parts.
        assert!(shared.split_tiles < 132 && shared.parts >= 2 * shared.split_tiles);
        let traffic = crate::traffic::Traffic::of_plan(&plan, false).accesses;
        assert!(traffic.iter().any(|access| access.by == By::FixUp));
    }

    #[test]
    fn a_transposition_is_told_and_a_kernel_that_shares_nothing_says_nothing() {
        let streaming = explained("async-pipeline");
        assert_eq!(streaming.copies.len(), 1);
        assert!(streaming.copies[0].transposed && !streaming.copies[0].padded);
        let mut text = Vec::new();
        crate::explain::write(&streaming, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for part in [
            "\nbefore     A is transposed to 4096 x 4096\n",
            "\nsharing    rows of ",
            "\nafter      fix_up adds the ",
            "\n| fix_up | global | read  | P ",
        ] {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
        let tiled = explained("tiled-32");
        assert!(tiled.sharing.is_none() && tiled.copies.is_empty());
    }

    #[test]
    fn copies_that_no_memory_holds_are_an_error() {
        let question = Question {
            variant: &gpu_kernels::async_pipeline::KERNEL.variants[0],
            shape: Shape::cube(i32::MAX as usize),
            reads_c: false,
            gpu: Some("h200".to_string()),
        };
        let found = Explanation::of(&question, None);
        let is_right = matches!(found, Err(ExplainError::CopiesTooLarge { .. }));
        assert!(is_right, "{:?}", found.err());
    }
}
