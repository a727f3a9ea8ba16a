//! Runs the tests that reach a mutant on it, several mutants at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

use crate::mutant::Mutant;
use crate::process::attempt;
use crate::suite::{Suite, Test};
use crate::tree::Built;

/// A test that computes for so many times as long as without a mutant, and at least so long, will
/// not end.
const PATIENCE: f64 = 4.0;
const PATIENCE_AT_LEAST: Duration = Duration::from_secs(5);

/// What became of a mutant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    pub mutant: Mutant,
    pub caught: Option<Caught>,
}

/// How a mutant was caught.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Caught {
    /// The test program, and its test.
    pub by: String,
    /// What became of it.
    pub how: String,
}

/// Runs the tests of `suite` that reach them on each of `mutants`, `jobs` at a time. `report` is
/// called with what became of each.
///
/// The slow tests come when the fast ones have been tried on all, and are not tried on mutants of
/// which `may_live` is true.
///
/// # Errors
///
/// A test cannot be started, or `report` fails.
pub fn run(
    built: &Built,
    suite: &Suite,
    mutants: &[Mutant],
    jobs: usize,
    may_live: &(dyn Fn(&Mutant) -> bool + Sync),
    report: &mut dyn FnMut(&Outcome) -> Result<()>,
) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    let mut survivors = Vec::new();
    let fast = bar(mutants.len(), "mutants");
    let work = |mutant: &Mutant| attempt_all(built, suite.fast(mutant.entry), mutant);
    each(mutants, jobs, &work, &mut |outcome: Outcome| {
        fast.inc(1);
        if outcome.caught.is_none() && !may_live(&outcome.mutant) {
            let say = || eprintln!("not noticed by fast tests: {}", outcome.mutant);
            fast.suspend(say); // without a terminal, `println` would say nothing
            survivors.push(outcome.mutant);
            return Ok(());
        }
        report(&outcome)?;
        outcomes.push(outcome);
        Ok(())
    })?;
    fast.finish_and_clear();
    let slow = bar(survivors.len(), "mutants that the fast tests do not notice");
    let work = |mutant: &Mutant| attempt_all(built, suite.slow(mutant.entry), mutant);
    each(&survivors, jobs, &work, &mut |outcome: Outcome| {
        slow.inc(1);
        if outcome.caught.is_none() {
            slow.suspend(|| eprintln!("survived: {}", outcome.mutant));
        }
        report(&outcome)?;
        outcomes.push(outcome);
        Ok(())
    })?;
    slow.finish_and_clear();
    Ok(outcomes)
}

/// Tries `tests` on `mutant`, one after the other, until one notices it.
fn attempt_all<'a>(
    built: &Built,
    tests: impl Iterator<Item = &'a Test>,
    mutant: &Mutant,
) -> Result<Outcome> {
    let mut caught = None;
    for test in tests {
        let limit = Duration::from_secs_f64(test.seconds * PATIENCE).max(PATIENCE_AT_LEAST);
        let program = &built.programs[test.program];
        if let Some(how) = attempt(program, &test.name, mutant.id, limit)? {
            let by = format!("{} {}", program.target, test.name);
            caught = Some(Caught { by, how });
            break;
        }
    }
    Ok(Outcome {
        mutant: mutant.clone(),
        caught,
    })
}

pub fn bar(length: usize, of: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}, {eta} left");
    let bar = ProgressBar::new(length as u64).with_message(of);
    bar.set_style(style.expect("the template is one"));
    bar
}

/// `work` for each of `items` on `jobs` threads, and `done` with each result on this one.
pub fn each<T: Sync, R: Send>(
    items: &[T],
    jobs: usize,
    work: &(dyn Fn(&T) -> Result<R> + Sync),
    done: &mut dyn FnMut(R) -> Result<()>,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..jobs {
            let sender = sender.clone();
            let next = &next;
            scope.spawn(move || {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if sender.send(work(item)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        for result in receiver {
            if let Err(error) = result.and_then(&mut *done) {
                next.store(items.len(), Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    })
}
