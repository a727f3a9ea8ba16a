//! Jobs whose ranks find a fake driver, and a fake NCCL unless they are not to: those of
//! `host/tests/fake_gpu/library`.

use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::{env, fs};

use crate::job::{Ended, PROGRAM, end, mpirun};

/// A folder with both, and one with the driver alone.
static FOLDERS: LazyLock<[PathBuf; 2]> = LazyLock::new(|| {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../host/tests/fake_gpu/library");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fake_gpu_of_ranks");
    let folders = ["with", "without"].map(|name| folder.join(name));
    for folder in &folders {
        fs::create_dir_all(folder).unwrap();
    }
    let building = tempfile::tempdir_in(&folder).unwrap();
    let compiled = building.path().join(DRIVER);
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc
        .current_dir(&source)
        .args(["lib.rs", "--crate-name=fake_gpu", "--crate-type=cdylib"])
        .args(["--edition=2024", "-Copt-level=3", "-Dwarnings"])
        .arg("-o")
        .arg(&compiled);
    assert!(rustc.status().expect("rustc starts").success());
    fs::copy(&compiled, folders[1].join(DRIVER)).unwrap();
    fs::rename(&compiled, folders[0].join(DRIVER)).unwrap();
    // Another process may be making it, too.
    match symlink(DRIVER, folders[0].join("libnccl.so.2")) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => panic!("{error}"),
        _ => {}
    }
    folders
});

const DRIVER: &str = "libcuda.so.1";

/// What ranks find.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Nccl {
    Here,
    Missing,
}

/// How a job ended, and what its GPUs did.
pub struct Ran {
    pub ended: Ended,
    pub log: Vec<String>,
}

/// Runs the program on so many ranks with GPUs. `settings` are those of the fake
/// (`library/gpu.rs`); with `mpi=1`, MPI says that it takes GPUs' memory.
pub fn ranks(number: usize, nccl: Nccl, settings: &str, arguments: &str) -> Ran {
    beside(0, number, nccl, settings, arguments)
}

/// The same beside so many ranks that find no driver, after them.
pub fn beside(without: usize, number: usize, nccl: Nccl, settings: &str, arguments: &str) -> Ran {
    let folder = &FOLDERS[usize::from(nccl == Nccl::Missing)];
    let messages = tempfile::tempdir().unwrap();
    let log = messages.path().join("log");
    let number = number.to_string();
    let mut options = vec!["-n", &number, "-x", "LD_LIBRARY_PATH", "-x", "FAKE_GPU"];
    let preload = format!("LD_PRELOAD={}", folder.join(DRIVER).display());
    // Only a library that is loaded before it can speak for MPI.
    if settings.contains("mpi=1") {
        options.extend(["-x", &preload]);
    }
    options.push(PROGRAM);
    let mut command = mpirun(&options);
    let settings = format!(
        "waits=0 {settings} log={} ranks={}",
        log.display(),
        messages.path().display()
    );
    command.args(arguments.split_whitespace());
    if without > 0 {
        let nowhere = format!("LD_LIBRARY_PATH={}", messages.path().display());
        command
            .args([":", "-n", &without.to_string(), "-x", &nowhere, PROGRAM])
            .args(arguments.split_whitespace());
    }
    command
        .env("LD_LIBRARY_PATH", folder)
        .env("FAKE_GPU", settings);
    let ended = end(command);
    let text = fs::read_to_string(log).unwrap_or_default();
    Ran {
        ended,
        log: text.lines().map(String::from).collect(),
    }
}

/// A number in a line of the log, such as 5 in `nccl from=0 bytes=5`.
pub fn number(line: &str, name: &str) -> u64 {
    let mut words = line.split(' ').filter_map(|word| word.split_once('='));
    let (_, value) = words.find(|(known, _)| *known == name).expect(name);
    value.parse().expect("a number")
}
