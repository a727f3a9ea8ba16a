//! The program while it runs, and signals to it.

use std::io::{BufRead, BufReader, read_to_string};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use host::interrupt;

use super::command;

/// The program while it runs. It is ended with the test, even if the test fails.
pub struct Started {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Started {
    pub fn new(mut command: Command) -> Started {
        for signal in interrupt::SIGNALS {
            // A program ignores what its parent ignores, and these tests may run in the
            // background or under `nohup`. A handler, in their own process, prevents that.
            if interrupt::is_ignored(signal) {
                signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false))).unwrap();
            }
        }
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Started { child, stdout }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn send(&self, signal: &str) {
        send(signal, self.id());
    }

    /// Waits for its end.
    pub fn ended(&mut self) -> ExitStatus {
        wait_until("ended", || self.child.try_wait().unwrap().is_some());
        self.child.wait().unwrap()
    }

    /// Waits for a line that starts like this.
    pub fn wait_for_line(&mut self, start: &str) {
        loop {
            let mut line = String::new();
            let length = self.stdout.read_line(&mut line).unwrap();
            assert!(length > 0, "it ended without a line `{start}`");
            if line.starts_with(start) {
                return;
            }
        }
    }

    pub fn rest_of_stdout(&mut self) -> String {
        read_to_string(&mut self.stdout).unwrap()
    }

    pub fn stderr(&mut self) -> String {
        read_to_string(self.child.stderr.as_mut().unwrap()).unwrap()
    }
}

/// Sends a signal to a process.
pub fn send(signal: &str, process: u32) {
    // `kill` is a command of every shell, even where there is no such program.
    let sent = Command::new("sh")
        .args(["-c", "kill -s \"$0\" \"$1\"", signal, &process.to_string()])
        .status();
    assert!(sent.expect("a shell").success());
}

/// A shell that runs the script, whose "$@" is the program with these arguments.
pub fn in_shell(script: &str, folder: &Path, arguments: &str) -> Command {
    let program = command(folder, arguments);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script, "sh"])
        .arg(program.get_program())
        .args(program.get_args())
        .current_dir(folder);
    shell
}

/// Waits until `ready`, at most a minute.
pub fn wait_until(what: &str, mut ready: impl FnMut() -> bool) {
    let start = Instant::now();
    while !ready() {
        assert!(start.elapsed() < Duration::from_secs(60), "never {what}");
        thread::yield_now();
    }
}
