//! Runs one test in a process of its own.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::scope::TOO_SLOW;
use crate::tree::Program;

/// A test that only waits will not end. Not less, for the machine may have other things to do.
const WAIT: Duration = Duration::from_secs(300);
/// A mutant may want any amount of memory. In KiB, for `ulimit`.
const MEMORY: &str = "16000000";

/// Runs one test of `program` with the mutant `id` on; `limit` is for what it computes. `None` if
/// it passes, else how it did not.
pub fn attempt(program: &Program, test: &str, id: u32, limit: Duration) -> Result<Option<String>> {
    let mut shell = shell(program, limit);
    shell.args(["--exact", test]).env("MUTANT", id.to_string());
    watch(start(shell)?)
}

/// Runs one test of `program` without a mutant; the entries of the functions that it calls are
/// written to `trace`.
pub fn trace(program: &Program, test: &str, trace: &Path) -> Result<Option<String>> {
    let mut shell = shell(program, WAIT);
    shell
        .args(["--exact", test])
        .env("MUTANT", u32::MAX.to_string())
        .env("MUTANT_TRACE", trace);
    watch(start(shell)?)
}

/// The names of the tests of `program` that are run here.
pub fn names(program: &Program) -> Result<Vec<String>> {
    let list = |more: &[&str]| -> Result<Vec<String>> {
        let mut shell = shell(program, WAIT);
        shell.args(["--list", "--format", "terse"]).args(more);
        let output = start(shell)?.wait_with_output()?;
        if !output.status.success() {
            bail!("{} lists no tests", program.executable.display());
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(names.map(str::to_owned).collect())
    };
    let ignored: HashSet<String> = list(&["--ignored"])?.into_iter().collect();
    let mut names = list(&[])?;
    names.retain(|name| {
        name.starts_with(&program.begin)
            && !ignored.contains(name)
            && !TOO_SLOW.iter().any(|slow| name.contains(slow))
    });
    Ok(names)
}

fn shell(program: &Program, limit: Duration) -> Command {
    let mut shell = Command::new("sh");
    shell
        .current_dir(&program.folder)
        // As cargo sets it, for tests that look for their files.
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env_remove("UPDATE_EXPECT")
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
    shell
}

fn start(mut shell: Command) -> Result<Child> {
    shell
        // What it starts ends with it.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("sh cannot be started")
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
