//! What cargo tells a build script, and what the build script tells cargo.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::OsString,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use nvvm::Search;

use crate::CudaBuilderError;

/// The build script that this code runs in. Tests construct their own.
pub(crate) struct BuildScript {
    /// All environment variables.
    pub(crate) variables: BTreeMap<OsString, OsString>,
    /// The folder that only this build script writes to.
    pub(crate) out_dir: PathBuf,
    /// The target triple of this machine.
    pub(crate) host: String,
    /// The cargo that runs the build script.
    pub(crate) cargo: PathBuf,
    /// Tells this compiler of kernels from another. None if it cannot be told.
    pub(crate) compiler: Option<String>,
    /// Where libNVVM is looked for.
    pub(crate) search: Search,
    /// What to tell cargo.
    pub(crate) instructions: BTreeSet<String>,
    /// Whether the next build must compile again even if nothing has changed: see
    /// [`Record`](crate::record::Record).
    pub(crate) keeps_no_record: bool,
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
            search: Search {
                terminal: terminal_of_cargo(),
                ..Search::from_environment()
            },
            instructions: BTreeSet::new(),
            compiler: env::current_exe().ok().and_then(|exe| identity(&exe)),
            keeps_no_record: false,
        })
    }

    /// What a build script would know, for a program that compiles kernels while it runs, into this
    /// folder.
    pub(crate) fn of_a_program(folder: &Path) -> Self {
        let cargo = env::var_os("CARGO").or_else(|| option_env!("CARGO").map(OsString::from));
        let cargo = PathBuf::from(cargo.unwrap_or_else(|| "cargo".into()));
        let mut variables: BTreeMap<_, _> = env::vars_os().collect();
        // The rustc of that cargo, whatever PATH says.
        let rustc = cargo.with_file_name("rustc");
        if rustc.is_file() {
            variables.insert("RUSTC".into(), rustc.into());
        }
        variables.insert("CARGO".into(), cargo.clone().into());
        BuildScript {
            variables,
            out_dir: folder.to_owned(),
            host: HOST.to_owned(),
            cargo,
            search: Search {
                terminal: own_terminal(),
                ..Search::from_environment()
            },
            instructions: BTreeSet::new(),
            // Many programs ask for the same kernels.
            compiler: Some(env!("COMPILER").to_owned()),
            keeps_no_record: false,
        }
    }

    /// Notes an instruction, such as `rerun-if-env-changed=CUDA_HOME`.
    pub(crate) fn instruct(&mut self, instruction: String) {
        self.instructions.insert(instruction);
    }

    pub(crate) fn rerun_if_changed(&mut self, path: &Path) {
        self.instruct(format!("rerun-if-changed={}", path.display()));
    }

    /// Makes every following build run this build script again, until it succeeds without this
    /// request.
    pub(crate) fn rerun_always(&mut self) {
        // Cargo treats a missing file as changed.
        let never_there = self.out_dir.join("run-the-build-script-again");
        self.rerun_if_changed(&never_there);
    }

    /// Tells the user, unless it is by wish, and the crate being built, why there is no PTX.
    pub(crate) fn tell_there_is_no_ptx(&mut self, error: &nvvm::Error) {
        let reason = error.to_string();
        let reason = reason.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        if matches!(error, nvvm::Error::NotWanted) {
            self.instruct(format!("rustc-env=CUDA_BUILDER_NO_PTX={reason}"));
            return;
        }
        let sentence = if stays_without_a_change_of_variables(error) {
            let package = self
                .variables
                .get(&OsString::from("CARGO_PKG_NAME"))
                .map_or_else(String::new, |name| format!(" -p {}", name.display()));
            format!(
                "The kernels were not compiled for the GPU. {reason} After that, run `cargo clean{package}` and \
                 build again."
            )
        } else {
            self.rerun_always();
            format!(
                "The kernels were not compiled for the GPU; every build tries again, and GEMM_NO_FETCH=1 keeps it \
                 from fetching. {reason}"
            )
        };
        self.instruct(format!("warning={sentence}"));
        self.instruct(format!("rustc-env=CUDA_BUILDER_NO_PTX={sentence}"));
    }

    /// Passes the instructions to cargo, which reads them from standard output.
    pub(crate) fn print_instructions(&self) {
        for instruction in &self.instructions {
            println!("cargo::{instruction}");
        }
    }
}

/// The target of a program that compiles kernels, as far as their IR depends on it.
const HOST: &str = match cfg!(target_env = "musl") {
    true => "x86_64-unknown-linux-musl",
    false => "x86_64-unknown-linux-gnu",
};

/// The terminal where the cargo that runs this build script shows its progress. What a build
/// script prints, cargo shows only if it fails; but the first build fetches libNVVM, and its user
/// should know what takes so long. Nothing, if cargo's own messages go elsewhere: to a file, or to
/// an editor.
fn terminal_of_cargo() -> Option<PathBuf> {
    #[cfg(target_os = "linux")]
    return terminal_of(&std::os::unix::process::parent_id().to_string());
    #[cfg(not(target_os = "linux"))]
    None
}

/// The terminal that this program writes its messages to.
pub(crate) fn own_terminal() -> Option<PathBuf> {
    terminal_of("self")
}

/// The terminal that a process writes its messages to.
fn terminal_of(process: &str) -> Option<PathBuf> {
    let stderr = PathBuf::from(format!("/proc/{process}/fd/2"));
    let file = fs::File::options().append(true).open(&stderr).ok()?;
    io::IsTerminal::is_terminal(&file).then_some(stderr)
}

/// Whether libNVVM stays unavailable until a variable changes or the user installs it: then a
/// build need not look again each time, which would mean compiling the crate again.
fn stays_without_a_change_of_variables(error: &nvvm::Error) -> bool {
    use nvvm::Error::{FetchingIsOff, NoCacheFolder, NoWheelForThisMachine};
    matches!(
        error,
        FetchingIsOff { .. } | NoCacheFolder | NoWheelForThisMachine
    )
}

/// Deletes a file if it exists.
pub(crate) fn delete(path: &Path) -> Result<(), CudaBuilderError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(CudaBuilderError::NotWritten {
                path: path.to_owned(),
                source,
            })
        }
        _ => Ok(()),
    }
}

/// A file's name, length and time.
pub(crate) fn identity(path: &Path) -> Option<String> {
    let data = fs::metadata(path).ok()?;
    Some(format!(
        "{path:?} {} {:?}",
        data.len(),
        data.modified().ok()?
    ))
}

/// Writes a file atomically: others see all of it or none, also after a loss of power.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), CudaBuilderError> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let write = || {
        let mut builder = tempfile::Builder::new();
        // The usual permissions of a written file, rather than private to this user.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = builder.tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)
    };
    write()
        .map(drop)
        .map_err(|source| CudaBuilderError::NotWritten {
            path: path.to_owned(),
            source,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What cargo is told about the error, by a build script of the package `outer`.
    fn told(error: &nvvm::Error) -> String {
        let mut script = BuildScript {
            variables: BTreeMap::from([("CARGO_PKG_NAME".into(), "outer".into())]),
            out_dir: "/out".into(),
            host: String::new(),
            cargo: PathBuf::new(),
            search: Search::from_variables(|_| None),
            instructions: BTreeSet::new(),
            compiler: None,
            keeps_no_record: false,
        };
        script.tell_there_is_no_ptx(error);
        Vec::from_iter(script.instructions).join("\n")
    }

    #[test]
    fn a_forbidden_fetch_is_not_tried_again() {
        let told = told(&nvvm::Error::FetchingIsOff {
            wheel: "made-up 1.0".to_owned(),
        });
        assert!(!told.contains("rerun-if-changed"), "{told}");
        assert!(told.contains("`cargo clean -p outer`"), "{told}");
    }
}
