//! The measurements that README and documentation speak of: what `host bench --json` wrote, on one GPU.

use std::fs;
use std::path::{Path, PathBuf};

use host::bench::Results;

/// A file of the repository.
pub fn at_root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// What was measured on an H200.
///
/// # Errors
///
/// The file is not there, or is none of `host bench`; or a kernel in it was not proven right.
pub fn h200() -> Result<Results, String> {
    read(&at_root("results/h200.json"))
}

fn read(path: &Path) -> Result<Results, String> {
    let refuse = |why: String| format!("{} holds no results: {why}", path.display());
    let text = fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    let results: Results =
        serde_json::from_str(&text).map_err(|error| refuse(error.to_string()))?;
    match results.all_proven() {
        true => Ok(results),
        false => Err(refuse("a kernel was not proven right".to_string())),
    }
}
