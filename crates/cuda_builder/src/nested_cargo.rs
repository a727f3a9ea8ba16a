//! Starts a cargo on the kernels' crate that is independent of the outer cargo, which runs this
//! build script.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use crate::{CudaBuilderError, build_script::BuildScript, shared};

/// The arguments that make a compiling cargo report as
/// [`Messages`](crate::cargo_messages::Messages) reads it.
pub(crate) const REPORTING: [&str; 3] = ["--quiet", "--color=never", "--message-format=json"];

/// The folder that it compiles to, which all build scripts share. It is not the outer build's
/// folder, whose lock is held as long as this script runs.
pub(crate) fn target_dir(script: &BuildScript) -> PathBuf {
    shared::folder(&script.out_dir)
}

/// A cargo in the folder of a package, without the variables that the outer cargo has set for
/// this build script.
pub(crate) fn cargo(folder: &Path, script: &BuildScript) -> Command {
    let mut command = Command::new(&script.cargo);
    command
        .current_dir(folder)
        .stdin(Stdio::null())
        .env_clear()
        .envs(inherited(&script.variables))
        // Empty means no wrapper, even if a configuration file names one. A caching wrapper does
        // not know about the IR in addition to the usual outputs, and clippy's wrapper would
        // check the kernels a second time.
        .env("RUSTC_WRAPPER", "")
        .env("RUSTC_WORKSPACE_WRAPPER", "")
        // With one codegen unit, incremental compilation saves nothing and keeps a second copy of
        // everything.
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_TARGET_DIR", target_dir(script))
        // Otherwise a globally configured build folder would be the outer build's, which is
        // locked.
        .env("CARGO_BUILD_BUILD_DIR", target_dir(script));
    command
}

/// The variables that a nested cargo is to see: the user's own, and the outer cargo's toolchain
/// and job server, but nothing that the outer cargo says about the package or the profile that it
/// is building.
fn inherited(
    variables: &BTreeMap<OsString, OsString>,
) -> impl Iterator<Item = (&OsString, &OsString)> {
    const PREFIXES: &str =
        "CARGO_CFG_ CARGO_FEATURE_ CARGO_MANIFEST_ CARGO_PKG_ CARGO_PROFILE_DEV_ DEP_";
    const NAMES: &str = "CARGO_BUILD_TARGET CARGO_PRIMARY_PACKAGE CARGO_TARGET_DIR DEBUG HOST NUM_JOBS OPT_LEVEL \
         OUT_DIR PROFILE RUSTC_LINKER RUSTDOC RUSTFLAGS TARGET";
    let is_outer = |name: &OsStr| {
        let name = name.to_string_lossy();
        let mut prefixes = PREFIXES.split(' ');
        NAMES.split(' ').any(|outer| outer == name)
            || prefixes.any(|prefix| name.starts_with(prefix))
    };
    variables.iter().filter(move |(name, _)| !is_outer(name))
}

/// Runs it to its end.
pub(crate) fn run(command: &mut Command) -> Result<Output, CudaBuilderError> {
    command
        .output()
        .map_err(|source| CudaBuilderError::CargoNotRun {
            command: command.get_program().to_string_lossy().into_owned(),
            source,
        })
}
