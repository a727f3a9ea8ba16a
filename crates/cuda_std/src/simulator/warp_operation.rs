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
    LoadMatrices(MatrixLoad),
    /// With the function's name.
    StoreMatrices(&'static str),
}

/// A load of `count` matrices from shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatrixLoad {
    pub function: &'static str,
    pub count: usize,
    pub is_transposed: bool,
}

impl WarpOperation {
    pub fn function(self) -> &'static str {
        match self {
            Self::Sync => "sync_warp",
            Self::VoteAll => "warp_vote_all",
            Self::VoteAny => "warp_vote_any",
            Self::Ballot => "warp_vote_ballot",
            Self::Shuffle(Shuffle::Up, ..) => "warp_shuffle_up",
            Self::Shuffle(Shuffle::Down, ..) => "warp_shuffle_down",
            Self::Shuffle(Shuffle::Idx, ..) => "warp_shuffle_idx",
            Self::Shuffle(Shuffle::Xor, ..) => "warp_shuffle_xor",
            Self::MatchAny => "warp_match_any",
            Self::MatchAll => "warp_match_all",
            Self::Reduce(..) => "warp_reduce",
            Self::Multiply(multiplication) => multiplication.function,
            Self::LoadMatrices(load) => load.function,
            Self::StoreMatrices(function) => function,
        }
    }
}
