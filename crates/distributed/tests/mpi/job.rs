//! Jobs of the real program under a real `mpirun`.

use std::process::Command;

use serde_json::Value;

/// Whether there is an `mpirun`; why not, if not.
pub fn why_not() -> Option<String> {
    let tried = Command::new("mpirun").arg("--version").output();
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!("`mpirun --version` failed: {}", output.status)),
        Err(error) => Some(format!("there is no mpirun: {error}")),
    }
}

/// What a job said and how it ended.
pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub notes: String,
}

impl Ended {
    /// The report of a job that succeeded.
    pub fn report(&self) -> Value {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.notes);
        serde_json::from_str(&self.out).expect("a report as JSON")
    }

    /// Checks that the job failed, and what it said.
    pub fn assert_failed(&self, parts: &[&str]) {
        assert_ne!(self.code, Some(0), "{}", self.out);
        for part in parts {
            assert!(self.notes.contains(part), "no `{part}` in:\n{}", self.notes);
        }
    }
}

/// `mpirun` with any number of ranks on any number of cores. It gives up after two minutes, and
/// does not wait a second for the others to end where a rank has failed.
pub fn mpirun(options: &[&str]) -> Command {
    let mut command = Command::new("mpirun");
    command
        .args(["--oversubscribe", "--timeout", "120"])
        .args(["--mca", "odls_base_sigkill_timeout", "0"])
        .args(options);
    // Tests run as the user who builds, in a container often root.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
    command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command
}

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_gemm-mpi");

/// The program on this many ranks.
pub fn job(ranks: usize, arguments: &str) -> Command {
    let mut command = mpirun(&["-n", &ranks.to_string(), PROGRAM]);
    command.args(arguments.split_whitespace());
    command
}

/// Runs a job to its end.
pub fn end(mut command: Command) -> Ended {
    let output = command.output().expect("mpirun starts");
    Ended {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        notes: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
