//! The calls that simulated threads wait in.

use super::mma::Multiplication;
use super::{BarrierSite, Place};
use crate::warp::{Shuffle, WarpReductionOp};
use std::cell::RefCell;
use std::panic::Location;
use std::ptr;

/// A thread's call of a function that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub function: &'static str,
    pub site: &'static Location<'static>,
    pub awaits: Awaits,
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Awaits {
    /// Nothing but that the others have run.
    Turn,
    /// All threads of the block.
    Block,
    /// Lanes of its warp.
    Warp(WarpCall),
    /// The threads of its warpgroup, and all their groups but this many.
    Warpgroup { but_newest: usize },
    /// A phase of a barrier in shared memory.
    Mbarrier { address: usize, parity: u32 },
    /// This many threads of the block, at the barrier of this number.
    NamedBarrier { number: u32, threads: u32 },
    /// All threads of the cluster.
    Cluster,
}

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

impl Call {
    pub fn place(self) -> Place {
        Place::Waits {
            function: self.function,
            site: self.site.into(),
            mask: match self.awaits {
                Awaits::Warp(call) => Some(call.mask),
                _ => None,
            },
        }
    }

    /// Whether both are calls of one function at one place.
    #[inline]
    pub fn is_same(&self, other: &Self) -> bool {
        // One call site can have several `Location`s, one in each part of the program that it was
        // compiled into; most have one.
        (ptr::eq(self.site, other.site) || self.site == other.site)
            && (ptr::eq(self.function, other.function) || self.function == other.function)
    }
}

/// How often something has happened at each place in the source.
#[derive(Debug, Default)]
pub(super) struct SiteCounts(RefCell<Vec<(&'static Location<'static>, u64)>>);

impl SiteCounts {
    pub fn note(&self, site: &'static Location<'static>) {
        let mut counts = self.0.borrow_mut();
        match counts.iter_mut().find(|(other, _)| *other == site) {
            Some((_, count)) => *count += 1,
            None => counts.push((site, 1)),
        }
    }

    pub fn into_vec(self) -> Vec<(BarrierSite, u64)> {
        let counts = self.0.into_inner().into_iter();
        counts.map(|(site, count)| (site.into(), count)).collect()
    }
}
