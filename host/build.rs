//! Sets `GEMM_COMMIT`, the commit that this program is built from, for the JSON of benchmarks:
//! with `-dirty` after it if compiled files had changes. It is not set outside of a git checkout,
//! or without `git`.
//!
//! It is determined when the program is built, since an installed program is far from any
//! checkout, and only when a compiled file has changed, not at each commit: a new value compiles
//! the whole package again, which takes a minute. So after a commit of files that were already
//! built, or of documentation alone, the value is still that of the build, and still names the
//! right sources.

use std::env;
use std::path::Path;
use std::process::Command;

/// The packages of this repository that are compiled into the program or build it: each is a
/// folder with the files of [`OF_PACKAGE`]. Tests are not compiled into it.
const PACKAGES: [&str; 10] = [
    "crates/cuda_builder",
    "crates/cuda_std",
    "crates/cuda_std_macros",
    "crates/device_codegen",
    "crates/find_cuda_helper",
    "crates/gpu_gemm",
    "crates/nvvm",
    "crates/verification",
    "gpu-kernels",
    "host",
];
const OF_PACKAGE: [&str; 3] = ["src", "build.rs", "Cargo.toml"];
/// The files that belong to all packages.
const OF_WORKSPACE: [&str; 3] = ["Cargo.lock", "Cargo.toml", "rust-toolchain.toml"];

fn main() {
    // As cargo says when it runs this: after a checkout has moved, the folder of this file's build
    // is another one.
    let folder = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    let root = Path::new(&folder).join("..");
    let of_packages = PACKAGES
        .iter()
        .flat_map(|package| OF_PACKAGE.map(|part| format!("{package}/{part}")));
    let of_workspace = OF_WORKSPACE.map(String::from);
    let mut sources: Vec<String> = of_packages.chain(of_workspace).collect();
    // A missing file would count as changed.
    sources.retain(|source| root.join(source).exists());
    for source in &sources {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
    }
    if let Some(commit) = commit(&root, &sources) {
        println!("cargo::rustc-env=GEMM_COMMIT={commit}");
    }
}

fn commit(root: &Path, sources: &[String]) -> Option<String> {
    // Not the commit of another repository that contains these sources.
    let top = git(root, &["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    let commit = git(root, &["rev-parse", "--verify", "HEAD"])?;
    let mut status = vec!["--no-optional-locks", "status", "--porcelain", "--"];
    status.extend(sources.iter().map(String::as_str));
    let changes = git(root, &status)?;
    Some(match changes.is_empty() {
        true => commit,
        false => commit + "-dirty",
    })
}

/// The output of `git` in a folder, if it succeeds.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // In a git hook these name another repository.
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(variable);
    }
    let output = command.current_dir(folder).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_string())
}
