//! What the lanes of a warp do together.

use super::mma::Multiplication;
use crate::warp::{Shuffle, WarpReductionOp};

/// A lane's part of a warp operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct WarpCall {
    pub operation: WarpOperation,
    pub mask: u32,
    /// The value that the lane contributes.
    pub word: u32,
}

/// The operation that the lanes of a warp execute.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WarpOperation {
    Sync,
    VoteAll,
    VoteAny,
    Ballot,
    /// With the requested lane and PTX's operand for the segments.
    Shuffle(Shuffle, u32, u32),
    MatchAny,
    MatchAll,
    /// Of signed integers or not.
    Reduce(WarpReductionOp, bool),
    Multiply(Multiplication),
    LoadMatrices {
        count: usize,
        is_transposed: bool,
    },
    StoreMatrices,
}
