//! Which rustc compiled the kernels, and whether this crate is tested with it.

use std::{ffi::OsStr, process::Command};

use crate::{CudaBuilderError, build_script::BuildScript};

/// The version of Rust that this crate is tested with, which is also the oldest that cargo
/// accepts for it.
const TESTED: &str = env!("CARGO_PKG_RUST_VERSION");

/// The version of its LLVM.
const TESTED_LLVM: &str = "22";

/// The error, with the versions of rustc if another one than the tested may be its cause: LLVM's
/// IR and passes change with each of its versions.
pub(crate) fn explain(error: CudaBuilderError, script: &BuildScript) -> CudaBuilderError {
    if !may_be_of_the_toolchain(&error) {
        return error;
    }
    match version(script).filter(|version| !version.is_tested()) {
        Some(version) => CudaBuilderError::UntestedRust {
            error: Box::new(error),
            used: format!("{} (LLVM {})", version.release, version.llvm),
            tested: TESTED,
            tested_llvm: TESTED_LLVM,
        },
        None => error,
    }
}

/// Not if the error is at a place in the source, or concerns files or libNVVM itself.
fn may_be_of_the_toolchain(error: &CudaBuilderError) -> bool {
    match error {
        CudaBuilderError::KernelsDoNotCompile { diagnostics } => {
            diagnostics.iter().any(|error| !error.contains("--> "))
        }
        CudaBuilderError::Codegen(_)
        | CudaBuilderError::IrRejected { .. }
        | CudaBuilderError::NoIr { .. }
        | CudaBuilderError::CargoFailed { .. } => true,
        _ => false,
    }
}

/// A version of rustc.
#[derive(Debug, PartialEq, Eq)]
struct Version {
    /// Such as `1.95.0`.
    release: String,
    /// Such as `22.1.2`.
    llvm: String,
}

impl Version {
    /// Reads what `rustc -vV` prints.
    fn parse(text: &str) -> Option<Version> {
        let after = |start: &str| text.lines().find_map(|line| line.strip_prefix(start));
        Some(Version {
            release: after("release: ")?.to_owned(),
            llvm: after("LLVM version: ")?.to_owned(),
        })
    }

    fn is_tested(&self) -> bool {
        self.release.starts_with(&format!("{TESTED}."))
            && self.llvm.starts_with(&format!("{TESTED_LLVM}."))
    }
}

/// The rustc that cargo runs, if it says what it is.
fn version(script: &BuildScript) -> Option<Version> {
    let rustc = script.variables.get(OsStr::new("RUSTC"));
    let rustc = rustc.map_or(OsStr::new("rustc"), |path| path);
    let output = Command::new(rustc).arg("-vV").output().ok()?;
    Version::parse(&String::from_utf8_lossy(&output.stdout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_release_or_another_llvm_is_not_the_tested_one() {
        let version = |release: &str, llvm: &str| {
            let text = format!("rustc {release}\nrelease: {release}\nLLVM version: {llvm}\n");
            Version::parse(&text)
        };
        let is_tested = |release: &str, llvm: &str| {
            version(release, llvm).is_some_and(|version| version.is_tested())
        };
        assert!(is_tested(&format!("{TESTED}.3"), "22.1.2"));
        assert!(!is_tested(&format!("{TESTED}0.0"), "22.1.2"));
        assert!(!is_tested(&format!("{TESTED}.0"), "23.1.0"));
        assert_eq!(Version::parse("rustc 1.95.0"), None);
    }
}
