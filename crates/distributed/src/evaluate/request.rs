//! What is asked for.

use gpu_gemm::{DataType, Shape};
use host::memory;
use host::report::Corner;
use host::rung::Asked;
use verification::data::Storage;

use crate::arguments::CheckPlace;

/// What to do: the same on all ranks.
#[derive(Clone, Debug)]
pub struct Request {
    /// Names of layouts.
    pub layouts: Vec<&'static str>,
    pub asked: Asked,
    /// What it is called.
    pub kernel: String,
    pub tasks: Vec<Task>,
    pub data_type: DataType,
    pub alpha: f64,
    pub beta: f64,
    pub padding: usize,
    pub seed: u64,
    /// If it is given.
    pub panel: Option<usize>,
    /// Timed runs, if that is given.
    pub runs: Option<u32>,
    pub corner: Option<Corner>,
    /// Where C is checked; on rank 0, if its memory holds C, where that is not given.
    pub check: Option<CheckPlace>,
    /// Adds 1 to an element of this rank's block, so that tests see that it is noticed.
    pub planted_on: Option<usize>,
}

impl Request {
    /// How its matrices are stored.
    pub(super) fn storage(&self) -> Storage {
        Storage {
            padding: [self.padding; 3],
            ..Storage::COMPACT
        }
    }

    /// Whether rank 0 collects a C of this shape.
    pub(super) fn gathers(&self, shape: Shape, element_bytes: usize) -> bool {
        match self.check {
            Some(place) => place == CheckPlace::Gathered,
            None => memory::check(shape, self.storage(), element_bytes).is_ok(),
        }
    }
}

/// A shape, and the number of ranks to multiply it on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Task {
    pub shape: Shape,
    pub ranks: usize,
}
