//! The fake driver, cuBLAS and NVML (`library/`), compiled, and programs run on them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::{env, fs};

use tempfile::TempDir;

use crate::common::{self, Ended};
use crate::{built, fake_gpu};

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| built::folder("tests/devices/library"));

/// A run of the program on the fake GPU.
pub struct Ran {
    pub ended: Ended,
    pub log: Vec<Line>,
    /// The folder in which it ran.
    pub folder: TempDir,
}

/// Runs the program. `library/gpu.rs` lists the settings.
pub fn host(settings: &str, arguments: &str) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let program = common::command(folder.path(), arguments);
    let (ended, log) = run(program, settings, folder.path());
    Ran { ended, log, folder }
}

/// Whether this process has the fake GPU.
pub fn is_loaded() -> bool {
    env::var_os(SETTINGS).is_some()
}

/// Runs a test of this program in a process that has the fake GPU: the search path of libraries is
/// fixed when a process starts.
pub fn again(settings: &str, test: &str) -> Vec<Line> {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Command::new(env::current_exe().unwrap());
    program.args(["--exact", test]);
    let (ended, log) = run(program, settings, folder.path());
    let out = ended.succeeded();
    assert!(out.contains("1 passed"), "{out}");
    log
}

const SETTINGS: &str = "FAKE_GPU";

fn run(mut program: Command, settings: &str, folder: &Path) -> (Ended, Vec<Line>) {
    fake_gpu::prepare();
    let log = folder.join("log");
    program
        .env("LD_LIBRARY_PATH", &*FOLDER)
        .env("LIBCUBLAS_PATH", &*FOLDER)
        .env(SETTINGS, format!("{settings} log={}", log.display()));
    let ended = Ended::of(program);
    // Without a call of the driver there is no log.
    let text = fs::read_to_string(log).unwrap_or_default();
    (ended, text.lines().map(Line::parse).collect())
}

/// A line of the fake GPU's log, such as `record stream=1 ns=5`.
pub struct Line {
    pub kind: String,
    words: HashMap<String, String>,
}

impl Line {
    fn parse(line: &str) -> Line {
        let (kind, words) = line.split_once(' ').unwrap();
        let word = |word: &str| {
            let (name, value) = word.split_once('=').unwrap();
            (name.to_string(), value.to_string())
        };
        Line {
            kind: kind.to_string(),
            words: words.split(' ').map(word).collect(),
        }
    }

    pub fn text(&self, name: &str) -> &str {
        &self.words[name]
    }

    pub fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap()
    }

    pub fn numbers<const N: usize>(&self, names: [&str; N]) -> [u64; N] {
        names.map(|name| self.number(name))
    }

    /// Whether it is a launch, of a kernel or of cuBLAS.
    pub fn is_launch(&self) -> bool {
        ["launch", "cublas"].contains(&self.kind.as_str())
    }

    /// The kernel, or cuBLAS's function and mode.
    pub fn contender(&self) -> String {
        match self.kind.as_str() {
            "cublas" => format!("{} in mode {}", self.text("name"), self.text("mode")),
            _ => self.text("name").to_string(),
        }
    }
}

/// The launches between two consecutive events, for each pair of events.
pub fn spans(log: &[Line]) -> Vec<Vec<&Line>> {
    let between = log.split(|line| line.kind == "record").skip(1).step_by(2);
    between
        .map(|lines| lines.iter().filter(|line| line.is_launch()).collect())
        .collect()
}
