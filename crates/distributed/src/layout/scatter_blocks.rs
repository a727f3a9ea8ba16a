//! Blocks of C: a rank gets some rows of A and some columns of B, no longer all of B.
//!
//! Over `scatter-rows`: with P = p q ranks in a grid, a rank
//!
//! ```text
//! receives      M K / p + K N / q     elements, in 1 message
//! computes    2 M N K / P             flops
//! sends         M N / P               elements, in 1 message
//! ```
//!
//! (report 003, section 2.2.1, equations 4 and 5, with all P ranks computing). On a square grid
//! rank 0 sends about sqrt(P) (M K + K N): it grows with the square root of P. p and q are those
//! for which M / p + N / q is the least; a prime P has only one row or one column of ranks.
//! Columns of B are not contiguous: they travel by an MPI vector type, and arrive as a compact
//! matrix.

use super::product::scatter_and_multiply;
use super::{Job, Layout, LayoutError, Multiply};
use crate::Element;
use crate::model::Case;
use crate::share_out::Grid;

/// See the module.
pub struct ScatterBlocks;

impl Layout for ScatterBlocks {
    fn name(&self) -> &'static str {
        "scatter-blocks"
    }

    fn idea(&self) -> &'static str {
        "one collective gives every rank some rows of A and some columns of B"
    }

    fn grid(&self, case: &Case) -> Grid {
        Grid::of(case.ranks, case.shape)
    }
}

impl<T: Element> Multiply<T> for ScatterBlocks {
    fn multiply(&self, job: &Job<'_, T>) -> Result<Option<Vec<T::Sum>>, LayoutError> {
        scatter_and_multiply(self.grid(&job.case), job)
    }
}
