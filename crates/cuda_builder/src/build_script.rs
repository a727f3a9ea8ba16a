//! What cargo tells a build script, and what that tells cargo.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::OsString,
    fs::Permissions,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use nvvm::Search;

use crate::CudaBuilderError;

/// The build script that this runs in. Tests make their own.
pub(crate) struct BuildScript {
    /// The whole environment.
    pub(crate) variables: BTreeMap<OsString, OsString>,
    /// The folder that this build script may write to, and nobody else does.
    pub(crate) out_dir: PathBuf,
    /// The triple of this machine.
    pub(crate) host: String,
    /// The cargo that runs the build script.
    pub(crate) cargo: PathBuf,
    /// Where libNVVM is looked for.
    pub(crate) search: Search,
    /// What to tell cargo.
    pub(crate) instructions: BTreeSet<String>,
}

impl BuildScript {
    pub(crate) fn from_environment() -> Result<Self, CudaBuilderError> {
        let variable = |variable: &'static str| {
            env::var_os(variable).ok_or(CudaBuilderError::NotInABuildScript { variable })
        };
        Ok(BuildScript {
            variables: env::vars_os().collect(),
            out_dir: variable("OUT_DIR")?.into(),
            host: variable("HOST")?.to_string_lossy().into_owned(),
            cargo: variable("CARGO")?.into(),
            search: Search::from_environment(),
            instructions: BTreeSet::new(),
        })
    }

    /// Notes an instruction, such as `rerun-if-env-changed=CUDA_HOME`.
    pub(crate) fn instruct(&mut self, instruction: String) {
        self.instructions.insert(instruction);
    }

    pub(crate) fn rerun_if_changed(&mut self, path: &Path) {
        self.instruct(format!("rerun-if-changed={}", path.display()));
    }

    /// Tells the user, and the crate that is built, why there is no PTX.
    pub(crate) fn tell_there_is_no_ptx(&mut self, error: &nvvm::Error) {
        let package = self
            .variables
            .get(&OsString::from("CARGO_PKG_NAME"))
            .map_or_else(String::new, |name| format!(" -p {}", name.display()));
        let reason = error.to_string();
        let reason = reason.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        let sentence = format!(
            "The kernels were not compiled for the GPU. {reason} After that, run `cargo clean{package}` and build \
             again."
        );
        self.instruct(format!("warning={sentence}"));
        self.instruct(format!("rustc-env=CUDA_BUILDER_NO_PTX={sentence}"));
    }

    /// Hands the instructions over to cargo, which reads them from standard output.
    pub(crate) fn print_instructions(&self) {
        for instruction in &self.instructions {
            println!("cargo::{instruction}");
        }
    }
}

/// Writes a file that others see whole or not at all.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), CudaBuilderError> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let write = || {
        // As of any file that is written, and not for this user's eyes only.
        let permissions = Permissions::from_mode(0o666);
        let mut file = tempfile::Builder::new()
            .permissions(permissions)
            .tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.persist(path).map_err(|error| error.error)
    };
    write()
        .map(drop)
        .map_err(|source| CudaBuilderError::NotWritten {
            path: path.to_owned(),
            source,
        })
}
