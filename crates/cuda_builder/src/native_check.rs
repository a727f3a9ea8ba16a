//! Finds the errors in the kernels that the outer cargo shows anyway, so that they are reported
//! once.
//!
//! A package that also runs its kernels on a CPU has their crate as an ordinary dependency. Cargo
//! then compiles that crate for the CPU, at the same time as or after this build script, and
//! shows the errors that occur there.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{CudaBuilderError, build_script::BuildScript, cargo_messages::Messages, nested_cargo};

/// Which of these errors, in rustc's own words, the outer cargo does not show when it compiles
/// the crate in `folder` for the CPU: all of them if it does not compile that crate.
pub(crate) fn errors_shown_nowhere_else(
    mut errors: Vec<String>,
    folder: &Path,
    build_args: &[String],
    script: &BuildScript,
) -> Result<Vec<String>, CudaBuilderError> {
    // With its own arguments the device build may have features that the outer build lacks.
    if !build_args.is_empty() || !outer_package_depends_on(folder, script)? {
        return Ok(errors);
    }
    let mut command = nested_cargo::cargo(folder, script);
    command
        .args(["check", "--lib"])
        .args(nested_cargo::REPORTING);
    let output = nested_cargo::run(&mut command)?;
    let native_errors = Messages::parse(&output.stdout).errors;
    errors.retain(|error| {
        native_errors
            .iter()
            .all(|native_error| !are_the_same(error, native_error))
    });
    Ok(errors)
}

/// Whether two errors say the same about the same place. Their help texts may differ: without
/// `std`, rustc proposes other names.
pub(crate) fn are_the_same(one: &str, other: &str) -> bool {
    fn up_to_the_place(error: &str) -> Vec<&str> {
        let mut lines: Vec<&str> = error.lines().map(str::trim).collect();
        if let Some(place) = lines.iter().position(|line| line.starts_with("-->")) {
            lines.truncate(place + 1);
        }
        lines
    }
    up_to_the_place(one) == up_to_the_place(other)
}

/// Whether the package whose build script this is always depends on the crate in `folder`, with
/// the features that it has by default.
fn outer_package_depends_on(folder: &Path, script: &BuildScript) -> Result<bool, CudaBuilderError> {
    let Some(outer) = script
        .variables
        .get(OsStr::new("CARGO_MANIFEST_DIR"))
        .and_then(|folder| Path::new(folder).canonicalize().ok())
    else {
        return Ok(false);
    };
    let mut command = nested_cargo::cargo(&outer, script);
    command.args(["metadata", "--no-deps", "--offline", "--format-version=1"]);
    let output = nested_cargo::run(&mut command)?;
    // Null if cargo has failed: then the errors are shown here.
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let manifest = outer.join("Cargo.toml");
    Ok(elements(&metadata["packages"])
        .filter(|package| package["manifest_path"].as_str().map(Path::new) == Some(&manifest))
        .flat_map(|package| elements(&package["dependencies"]))
        .any(|dependency| {
            is_unconditional(dependency) && path_of(dependency).as_deref() == Some(folder)
        }))
}

/// Whether a dependency, as `cargo metadata` has it, is a normal one (not for a build script or
/// tests), is not optional and does not select features.
fn is_unconditional(dependency: &Value) -> bool {
    dependency["kind"].is_null()
        && dependency["target"].is_null()
        && dependency["optional"] == false
        && dependency["uses_default_features"] == true
        && elements(&dependency["features"]).next().is_none()
}

/// The folder of a dependency that lies on this machine.
fn path_of(dependency: &Value) -> Option<PathBuf> {
    Path::new(dependency["path"].as_str()?).canonicalize().ok()
}

fn elements(array: &Value) -> impl Iterator<Item = &Value> {
    array.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_the_same_when_text_and_place_are() {
        let error = "error[E0412]: cannot find type `Duration`\n --> src/lib.rs:9:8\n  |\n9 | use core::..\n";
        let other_help = "error[E0412]: cannot find type `Duration`\n   --> src/lib.rs:9:8\n  |\n9 | use std::..\n";
        assert!(are_the_same(error, other_help));
        assert!(!are_the_same(error, &other_help.replace("9:8", "9:9")));
        assert!(!are_the_same(error, &other_help.replace("type", "value")));
        assert!(!are_the_same(
            "error: linking failed\n",
            "error: linking worked\n"
        ));
    }
}
