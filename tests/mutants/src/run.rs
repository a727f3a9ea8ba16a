//! Runs tests on mutants, several at a time.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

use crate::mutant::Mutant;
use crate::scope::{TOO_SLOW, Test, tests_of};
use crate::tree::Built;

/// A test that computes for so many times as long as without a mutant, and at least so long, will
/// not end.
const PATIENCE: u32 = 4;
const PATIENCE_AT_LEAST: Duration = Duration::from_secs(10);
/// One that waits will not end either. Not less, for the machine may have other things to do.
const WAIT: Duration = Duration::from_secs(900);
/// A mutant may want any amount of memory. In KiB, for `ulimit`.
const MEMORY: &str = "16000000";

/// What became of a mutant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    pub mutant: Mutant,
    pub caught: Option<Caught>,
}

/// How a mutant was caught.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Caught {
    /// The test program.
    pub by: String,
    /// What it said, or that it did not end.
    pub how: String,
}

/// Runs the tests of `mutants` on each, `jobs` at a time. `report` is called with what became of
/// each.
///
/// # Errors
///
/// A test fails without a mutant, or cannot be started.
pub fn run(
    built: &Built,
    mutants: &[Mutant],
    jobs: usize,
    report: &mut dyn FnMut(&Outcome) -> Result<()>,
) -> Result<Vec<Outcome>> {
    let limits = Limits::default();
    let bar = bar(mutants.len(), "mutants");
    let mut outcomes = Vec::new();
    let work = |mutant: &Mutant| {
        for test in tests_of(&mutant.file) {
            let limit = limits.of(built, &test)?;
            if let Some(how) = attempt(built, &test, mutant.id, limit)? {
                let by = format!("{} {}", test.target, test.filter)
                    .trim_end()
                    .to_owned();
                let caught = Some(Caught { by, how });
                return Ok(Outcome {
                    mutant: mutant.clone(),
                    caught,
                });
            }
        }
        Ok(Outcome {
            mutant: mutant.clone(),
            caught: None,
        })
    };
    each(mutants, jobs, &work, &mut |outcome: Outcome| {
        let mutant = &outcome.mutant;
        if outcome.caught.is_none() {
            bar.println(format!("survived: line {}: {}", mutant.line, mutant.name()));
        }
        bar.inc(1);
        report(&outcome)?;
        outcomes.push(outcome);
        Ok(())
    })?;
    bar.finish_and_clear();
    Ok(outcomes)
}

/// How long each test may compute: it is run without a mutant when it is first needed.
#[derive(Default)]
struct Limits(Mutex<HashMap<Test, Arc<Mutex<Option<Duration>>>>>);

impl Limits {
    fn of(&self, built: &Built, test: &Test) -> Result<Duration> {
        let limit = {
            let mut limits = self.0.lock().expect("no thread panics with it");
            Arc::clone(limits.entry(test.clone()).or_default())
        };
        // Other threads that need the same wait here.
        let mut limit = limit.lock().expect("no thread panics with it");
        if let Some(limit) = *limit {
            return Ok(limit);
        }
        let began = Instant::now();
        if let Some(how) = attempt(built, test, 0, WAIT)? {
            bail!(
                "`{} {}` fails without a mutant: {how}",
                test.target,
                test.filter
            );
        }
        Ok(*limit.insert((began.elapsed() * PATIENCE).max(PATIENCE_AT_LEAST)))
    }
}

fn bar(length: usize, of: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}, {eta} left");
    let bar = ProgressBar::new(length as u64).with_message(of);
    bar.set_style(style.expect("the template is one"));
    bar
}

/// `work` for each of `items` on `jobs` threads, and `done` with each result on this one.
fn each<T: Sync, R: Send>(
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

/// Runs a test with a mutant on; `limit` is for what it computes. `None` if it passes, else how it
/// did not.
fn attempt(built: &Built, test: &Test, id: u32, limit: Duration) -> Result<Option<String>> {
    let program = built.program(test).context("the program was built")?;
    let mut shell = Command::new("sh");
    shell
        .current_dir(&program.folder)
        .args([
            "-c",
            &format!(
                "ulimit -v {MEMORY}; ulimit -c 0; ulimit -S -t {}; exec \"$@\" 2>&1",
                limit.as_secs()
            ),
            "sh",
        ])
        .arg(&program.executable)
        .args(["--test-threads", "1"]);
    for name in TOO_SLOW {
        shell.args(["--skip", name]);
    }
    if !test.filter.is_empty() {
        shell.arg(&test.filter);
    }
    let child = shell
        .env("MUTANT", id.to_string())
        // What it starts ends with it.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("sh cannot be started")?;
    watch(child)
}

/// Reads what a test says until it fails, ends, or has taken too long.
fn watch(mut child: Child) -> Result<Option<String>> {
    let output = BufReader::new(child.stdout.take().context("its output is piped")?);
    let group = -(child.id() as libc::pid_t);
    let ended = Arc::new(AtomicBool::new(false));
    let (end, over) = mpsc::channel::<()>();
    let guard = {
        let ended = Arc::clone(&ended);
        thread::spawn(move || {
            if over.recv_timeout(WAIT) == Err(mpsc::RecvTimeoutError::Timeout) {
                ended.store(true, Ordering::Relaxed);
                // SAFETY: a signal to processes started here; none of this process's memory is
                // concerned.
                unsafe { libc::kill(group, libc::SIGKILL) };
            }
        })
    };
    let mut failed = None;
    for line in output.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        if line.starts_with("test ") && line.ends_with("FAILED") {
            failed = Some(
                line.trim_start_matches("test ")
                    .trim_end_matches("FAILED")
                    .trim_end_matches([' ', '.'])
                    .to_owned(),
            );
            break;
        }
    }
    if failed.is_some() {
        // SAFETY: as above; the group's first process was not yet waited for, so the number is
        // still its own.
        unsafe { libc::kill(group, libc::SIGKILL) };
    }
    let status = child.wait()?;
    drop(end);
    guard.join().ok().context("the guard does not panic")?;
    Ok(match failed {
        Some(test) => Some(format!("{test} failed")),
        None if status.success() => None,
        None if ended.load(Ordering::Relaxed) || status.signal() == Some(libc::SIGXCPU) => {
            Some("it did not end".into())
        }
        None => Some(format!("it ended with {status}")),
    })
}
