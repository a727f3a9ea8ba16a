//! Runs the pieces of a product on threads, as a schedule assigns them.

use std::sync::{Mutex, PoisonError};

use super::schedule::Schedule;
use super::team::{Settings, Team};

/// Runs `work` on every piece with `team`, and returns when all are done.
pub fn share_out<P: Send>(team: &Team, pieces: Vec<P>, work: impl Fn(P) + Sync) {
    let (threads, total) = (team.threads(), pieces.len());
    let Settings {
        schedule, chunk, ..
    } = *team.settings();
    let pieces = Mutex::new(pieces.into_iter());
    let take = || -> Vec<P> {
        // The iterator is intact even if a thread panicked: no thread panics in here.
        let mut pieces = pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let count = schedule.chunk(total, pieces.len(), threads, chunk);
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
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn every_piece_is_worked_on_once_however_many_threads_there_are() {
        for schedule in [Schedule::Static, Schedule::Dynamic, Schedule::Guided] {
            for (threads, total, chunk) in [(1, 5, 1), (3, 0, 2), (3, 2, 7), (3, 100, 7)] {
                let settings = Settings {
                    threads: Some(threads),
                    schedule,
                    chunk,
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
