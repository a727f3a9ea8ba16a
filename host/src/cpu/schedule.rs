//! Which thread gets which piece of work: OpenMP's three schedules, for rungs that cut C into pieces.
//!
//! All pieces of a product take the same time, so that `static`, which decides beforehand and costs nothing later, should do;
//! where threads do not run equally fast (other programs, slower cores), those that are done early take over work from the
//! others with `dynamic` and `guided`.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::team::Team;

/// How pieces are dealt out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Schedule {
    /// As many chunks of equal size as threads, one each
    Static,
    /// A piece at a time, taken by whoever is free
    Dynamic,
    /// Half of an equal share of what is left, taken by whoever is free: chunks shrink as the end comes near
    Guided,
}

impl Schedule {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Schedule::Static => "static",
            Schedule::Dynamic => "dynamic",
            Schedule::Guided => "guided",
        }
    }

    /// Pieces of the next chunk, of `total` of which some are `left`.
    fn chunk(self, total: usize, left: usize, threads: usize) -> usize {
        match self {
            Schedule::Static => total.div_ceil(threads),
            Schedule::Dynamic => 1,
            Schedule::Guided => left.div_ceil(2 * threads),
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Has `team` do `work` on every piece, and returns when all are done.
pub fn share_out<P: Send>(team: &Team, pieces: Vec<P>, work: impl Fn(P) + Sync) {
    let (threads, schedule, total) = (team.threads(), team.settings().schedule, pieces.len());
    let pieces = Mutex::new(pieces.into_iter());
    let take = || -> Vec<P> {
        // The iterator is whole whatever a thread that panicked was doing: that was not in here.
        let mut pieces = pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let count = schedule.chunk(total, pieces.len(), threads);
        pieces.by_ref().take(count).collect()
    };
    team.pool().scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|_| {
                loop {
                    let chunk = take();
                    let done = chunk.is_empty() || schedule == Schedule::Static;
                    chunk.into_iter().for_each(&work);
                    if done {
                        break;
                    }
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Settings;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// The sizes of the chunks that `total` pieces are dealt out in.
    fn chunks(schedule: Schedule, total: usize, threads: usize) -> Vec<usize> {
        let mut left = total;
        let mut chunks = Vec::new();
        while left > 0 {
            let chunk = schedule.chunk(total, left, threads).min(left);
            chunks.push(chunk);
            left -= chunk;
        }
        chunks
    }

    #[test]
    fn static_chunks_are_equal_dynamic_ones_single_and_guided_ones_shrink() {
        assert_eq!(chunks(Schedule::Static, 10, 4), [3, 3, 3, 1]);
        assert_eq!(chunks(Schedule::Static, 3, 4), [1, 1, 1]);
        assert_eq!(chunks(Schedule::Dynamic, 3, 2), [1, 1, 1]);
        assert_eq!(chunks(Schedule::Guided, 16, 2), [4, 3, 3, 2, 1, 1, 1, 1]);
    }

    #[test]
    fn every_piece_is_worked_on_once_however_many_threads_there_are() {
        for schedule in [Schedule::Static, Schedule::Dynamic, Schedule::Guided] {
            for (threads, total) in [(1, 5), (3, 0), (3, 2), (3, 100)] {
                let settings = Settings {
                    threads: Some(threads),
                    schedule,
                    ..Settings::default()
                };
                let team = Team::new(settings).unwrap();
                let worked: Vec<AtomicU32> = (0..total).map(|_| AtomicU32::new(0)).collect();
                share_out(&team, (0..total).collect(), |piece: usize| {
                    worked[piece].fetch_add(1, Ordering::Relaxed);
                });
                let worked: Vec<u32> = worked.into_iter().map(AtomicU32::into_inner).collect();
                assert_eq!(worked, vec![1; total], "{schedule}, {threads} threads");
            }
        }
    }
}
