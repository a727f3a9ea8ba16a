//! Sets `GEMM_COMMIT`, the commit that this program is built from, for the JSON of benchmarks:
//! with `-dirty` after it if what is compiled had changes, and not at all if this is not a git
//! checkout, or there is no `git`.
//!
//! It is found when the program is built, since an installed program is far from any checkout.
//! And it is found only when something that is compiled has changed, not at each commit: another
//! value compiles all of this package again, which takes a minute. So after a commit of what was
//! built before, or of documentation alone, the value is that of the build, whose sources it
//! still names rightly.

use std::path::Path;
use std::process::Command;

/// The packages of this repository that the program consists of, or is built by: each is a folder
/// with these of [`OF_PACKAGE`]. Tests are not compiled into it.
const PACKAGES: [&str; 9] = [
    "crates/cuda_builder",
    "crates/cuda_std",
    "crates/cuda_std_macros",
    "crates/device_codegen",
    "crates/find_cuda_helper",
    "crates/gpu_gemm",
    "crates/nvvm",
    "gpu-kernels",
    "host",
];
const OF_PACKAGE: [&str; 3] = ["src", "build.rs", "Cargo.toml"];
/// And what belongs to all of them.
const OF_WORKSPACE: [&str; 3] = ["Cargo.lock", "Cargo.toml", "rust-toolchain.toml"];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let of_packages = PACKAGES
        .iter()
        .flat_map(|package| OF_PACKAGE.map(|part| format!("{package}/{part}")));
    let of_workspace = OF_WORKSPACE.map(String::from);
    let mut sources: Vec<String> = of_packages.chain(of_workspace).collect();
    // A file that is not there would count as changed.
    sources.retain(|source| root.join(source).exists());
    for source in &sources {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
    }
    if let Some(commit) = commit(&root, &sources) {
        println!("cargo::rustc-env=GEMM_COMMIT={commit}");
    }
}

fn commit(root: &Path, sources: &[String]) -> Option<String> {
    // Not of a repository that these sources are merely somewhere in.
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

/// What `git` says in a folder, if it succeeds.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // A hook that builds has another repository in these.
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(variable);
    }
    let output = command.current_dir(folder).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_string())
}
