//! Which thread gets which piece of work: OpenMP's three schedules, for rungs that cut C into
//! pieces.
//!
//! All pieces of a product take the same time, so that `static`, which decides beforehand and
//! costs nothing later, should do; where threads do not run equally fast (other programs, slower
//! cores), `dynamic` and `guided` let those that finish early take over work from the others.

use std::fmt;

use clap::ValueEnum;

use crate::spelled;

/// How pieces are assigned to threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Schedule {
    /// As many chunks of equal size as threads, one each
    Static,
    /// A piece at a time, or as many as `--chunk` says, taken by whichever thread is free
    Dynamic,
    /// Half of an equal share of what remains, taken by whichever thread is free: chunks shrink
    /// towards the end, down to those of `dynamic`
    Guided,
}

impl Schedule {
    /// The number of pieces in the next chunk, when `left` of `total` remain and a chunk that is
    /// taken on demand has `least` or more.
    pub(super) fn chunk(self, total: usize, left: usize, threads: usize, least: usize) -> usize {
        match self {
            Schedule::Static => total.div_ceil(threads),
            Schedule::Dynamic => least,
            Schedule::Guided => left.div_ceil(2 * threads).max(least),
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&spelled(*self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_on_demand_has_at_least_the_pieces_that_were_asked_for() {
        let chunk = |schedule: Schedule, left, least| schedule.chunk(32, left, 2, least);
        assert_eq!(chunk(Schedule::Static, 32, 12), 16);
        assert_eq!(chunk(Schedule::Dynamic, 20, 12), 12);
        assert_eq!(chunk(Schedule::Guided, 32, 4), 8);
        assert_eq!(chunk(Schedule::Guided, 4, 4), 4);
    }
}
