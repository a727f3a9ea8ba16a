//! The program, run as a user runs it.

pub mod signals;

use std::path::Path;
use std::process::Command;

/// A run that has ended.
pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// The program in a folder. `arguments` are separated by blanks.
pub fn command(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rust-gemm"));
    command
        .current_dir(folder)
        .args(arguments.split_whitespace());
    command
}

pub fn run_in(folder: &Path, arguments: &str) -> Ended {
    Ended::of(command(folder, arguments))
}

pub fn run(arguments: &str) -> Ended {
    run_in(Path::new("."), arguments)
}

impl Ended {
    /// Runs the command to its end.
    pub fn of(mut command: Command) -> Ended {
        let output = command.output().expect("the program starts");
        Ended {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("the report is UTF-8"),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The report of a run that succeeded.
    #[track_caller]
    pub fn succeeded(self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.err);
        self.out
    }

    /// The errors of a run that failed with this exit code and without a report.
    #[track_caller]
    pub fn refused(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}{}", self.out, self.err);
        assert_eq!(self.out, "");
        self.err
    }
}

/// Checks that each part is in the text, where it may be cut into lines.
#[track_caller]
pub fn assert_contains(text: &str, parts: &[&str]) {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let line = lines.join(" ");
    for part in parts {
        let is_there = text.contains(part) || line.contains(part);
        assert!(is_there, "no `{part}` in:\n{text}");
    }
}
