//! One collective: every rank, rank 0 among them, gets its rows of A and all of B in one message.
//!
//! Over `point-to-point`: half the messages, all ranks multiply, and MPI orders the transfers. A
//! derived datatype describes rows of A and B in place, so that nothing is copied together first
//! (the report's buffer holds B once for each rank). With P ranks, a rank
//!
//! ```text
//! receives      M K / P + K N     elements, in 1 message
//! computes    2 M N K / P         flops
//! sends         M N / P           elements, in 1 message
//! ```
//!
//! (report 003, section 2.2.1, equations 2 and 3, with all P ranks computing). Rank 0 sends
//! (P-1)/P M K + (P-1) K N: all of B to every other rank, whatever their number.

use super::product::scatter_and_multiply;
use super::{Job, Layout, LayoutError, Multiply};
use crate::Element;
use crate::model::Case;
use crate::share_out::Grid;

/// See the module.
pub struct ScatterRows;

impl Layout for ScatterRows {
    fn name(&self) -> &'static str {
        "scatter-rows"
    }

    fn idea(&self) -> &'static str {
        "one collective gives every rank its rows of A and all of B in one message"
    }

    fn grid(&self, case: &Case) -> Grid {
        Grid::column(case.ranks)
    }
}

impl<T: Element> Multiply<T> for ScatterRows {
    fn multiply(&self, job: &Job<'_, T>) -> Result<Option<Vec<T::Sum>>, LayoutError> {
        scatter_and_multiply(self.grid(&job.case), job)
    }
}
