//! Where libNVVM is looked for, in which order.

use std::{
    ffi::OsString,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{Error, Origin, Toolkit, Wheel, cache, fetch};

/// Where to look for libNVVM; the fields are in the order of the search.
///
/// [`from_environment`](Search::from_environment) is the usual way to get one. Tests construct
/// their own.
#[derive(Clone, Debug)]
pub struct Search {
    /// `LIBNVVM_PATH`: a `libnvvm.so`, the folder that holds it, or the root of an SDK. If it is
    /// set, nothing else is searched, so that a user who sets it wrongly gets an error.
    pub libnvvm_path: Option<PathBuf>,
    /// Variables that name the root of an SDK, with what they name.
    pub sdk_variables: Vec<(&'static str, PathBuf)>,
    /// Roots where an SDK is usually installed.
    pub sdk_folders: Vec<PathBuf>,
    /// Folders where the dynamic linker looks for libraries.
    pub library_folders: Vec<PathBuf>,
    /// The folder that fetched wheels are kept in: `GEMM_CACHE_DIR`, else `rust-gemm` in
    /// `XDG_CACHE_HOME` or in `~/.cache`.
    pub cache: Option<PathBuf>,
    /// Python interpreters, which know the folders of installed wheels; the first that runs is
    /// used.
    pub pythons: Vec<OsString>,
    /// Whether PTX is wanted at all: unless `GEMM_PTX` is `none`.
    pub wanted: bool,
    /// Whether a wheel may be fetched: unless `GEMM_NO_FETCH` is set to something other than `0`.
    pub may_fetch: bool,
    /// Commands that run pip; the first that can fetch is used.
    pub pips: Vec<Vec<OsString>>,
    /// The wheel that is looked for and fetched.
    pub wheel: Wheel,
    /// A terminal, or another file, that is told what is being fetched, and where pip shows its
    /// progress; nobody is, unless it is set.
    pub terminal: Option<PathBuf>,
}

/// The environment variables that [`Search::from_environment`] reads: a build that uses libNVVM
/// is to be repeated when one of them changes.
pub const SEARCH_VARIABLES: [&str; 9] = [
    "LIBNVVM_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "LD_LIBRARY_PATH",
    "GEMM_CACHE_DIR",
    "XDG_CACHE_HOME",
    "HOME",
    "GEMM_NO_FETCH",
    "GEMM_PTX",
];

impl Search {
    /// The search according to the environment of this process.
    pub fn from_environment() -> Search {
        Search::from_variables(|name| std::env::var_os(name))
    }

    /// The search according to these environment variables.
    pub fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Search {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let path = |name: &str| variable(name).map(PathBuf::from);

        let mut sdk_folders = sdk_folders_in(Path::new("/usr/local"));
        sdk_folders.push(PathBuf::from("/opt/cuda"));

        Search {
            libnvvm_path: path("LIBNVVM_PATH"),
            sdk_variables: ["CUDA_HOME", "CUDA_PATH"]
                .into_iter()
                .filter_map(|name| Some((name, path(name)?)))
                .collect(),
            sdk_folders,
            library_folders: variable("LD_LIBRARY_PATH")
                .map(|value| std::env::split_paths(&value).collect())
                .unwrap_or_default(),
            pythons: vec!["python3".into(), "python".into()],
            cache: path("GEMM_CACHE_DIR")
                .or_else(|| Some(path("XDG_CACHE_HOME")?.join("rust-gemm")))
                .or_else(|| Some(path("HOME")?.join(".cache/rust-gemm"))),
            wanted: variable("GEMM_PTX").is_none_or(|value| value != "none"),
            may_fetch: variable("GEMM_NO_FETCH").is_none_or(|value| value == "0"),
            pips: [&["python3", "-m", "pip"][..], &["pip3"], &["pip"]]
                .map(|command| command.iter().map(OsString::from).collect())
                .to_vec(),
            wheel: Wheel::NVCC_12_9,
            terminal: None,
        }
    }

    /// Looks in every place, and never fetches.
    ///
    /// # Errors
    ///
    /// [`Error::NotAtLibnvvmPath`] if `LIBNVVM_PATH` is set to something that does not exist.
    pub fn find(&self) -> Result<Option<Toolkit>, Error> {
        if let Some(path) = &self.libnvvm_path {
            let found = at_libnvvm_path(path);
            return match found {
                Some(toolkit) => Ok(Some(toolkit)),
                None => Err(Error::NotAtLibnvvmPath { path: path.clone() }),
            };
        }
        // Python comes last: it takes a tenth of a second to say where its packages are.
        Ok(self
            .installed()
            .or_else(|| self.fetched_before())
            .or_else(|| self.installed_wheel()))
    }

    /// Looks in every place, else fetches the wheel.
    ///
    /// # Errors
    ///
    /// If libNVVM is not available or not wanted, with the reason and what to do.
    pub fn find_or_fetch(&self) -> Result<Toolkit, Error> {
        if !self.wanted {
            return Err(Error::NotWanted);
        }
        if let Some(toolkit) = self.find()? {
            return Ok(toolkit);
        }
        if !self.may_fetch {
            return Err(Error::FetchingIsOff {
                wheel: self.wheel.name_and_version(),
            });
        }
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err(Error::NoWheelForThisMachine);
        }
        let cache = self.cache.as_deref().ok_or(Error::NoCacheFolder)?;
        let folder = cache::find_or_fill(cache, &self.wheel, |partial| {
            self.announce(cache);
            fetch::fetch(&self.wheel, &self.pips, self.terminal.as_deref(), partial)
        })?;
        Ok(self.in_cache(folder))
    }

    /// Says what is about to be fetched. If that fails, nothing is wrong.
    fn announce(&self, cache: &Path) {
        let terminal = self.terminal.as_deref().and_then(fetch::opened);
        if let Some(mut terminal) = terminal {
            // Cargo's progress bar may be in this line.
            let _ = writeln!(
                terminal,
                "\r\x1b[K    Fetching {} ({} MB) with pip, once: NVIDIA's compiler from NVVM IR to PTX, kept in {}",
                self.wheel.name_and_version(),
                self.wheel.megabytes,
                cache.display()
            );
        }
    }

    /// An SDK that the user has installed.
    fn installed(&self) -> Option<Toolkit> {
        let by_variable = || {
            self.sdk_variables
                .iter()
                .find_map(|(name, root)| Toolkit::below(root, Origin::Variable(name)))
        };
        let in_usual_folder = || {
            self.sdk_folders
                .iter()
                .find_map(|root| Toolkit::below(root, Origin::Folder(root.clone())))
        };
        let in_library_folder = || {
            self.library_folders.iter().find_map(|folder| {
                Toolkit::in_library_folder(folder, Origin::Folder(folder.clone()))
            })
        };
        by_variable()
            .or_else(in_usual_folder)
            .or_else(in_library_folder)
    }

    /// The wheel where pip installs it.
    fn installed_wheel(&self) -> Option<Toolkit> {
        let name = self.wheel.requirement.split("==").next()?;
        self.python_packages().into_iter().find_map(|folder| {
            let origin = Origin::InstalledWheel {
                wheel: name.to_owned(),
                folder: folder.clone(),
            };
            Toolkit::below(&folder.join("nvidia/cuda_nvcc"), origin)
        })
    }

    /// The folders that the first Python that runs imports packages from.
    pub(crate) fn python_packages(&self) -> Vec<PathBuf> {
        let outputs = self.pythons.iter().filter_map(|python| {
            Command::new(python)
                .args(["-c", r"import sys; print('\n'.join(sys.path))"])
                .stdin(Stdio::null())
                .output()
                .ok()
        });
        let mut succeeded = outputs.filter(|output| output.status.success());
        let text = succeeded
            .next()
            .map_or_else(Vec::new, |output| output.stdout);
        let text = String::from_utf8_lossy(&text);
        let folders = text.lines().filter(|line| !line.is_empty());
        folders.map(PathBuf::from).collect()
    }

    /// The wheel where an earlier fetch has put it.
    fn fetched_before(&self) -> Option<Toolkit> {
        let folder = cache::find(self.cache.as_deref()?, &self.wheel)?;
        Some(self.in_cache(folder))
    }

    fn in_cache(&self, folder: PathBuf) -> Toolkit {
        let origin = Origin::FetchedWheel {
            wheel: self.wheel.name_and_version(),
            folder: folder.clone(),
        };
        Toolkit::around(folder.join(Wheel::LIBNVVM), origin)
    }
}

impl Toolkit {
    /// Looks for libNVVM where [`Search`] says, and never fetches it.
    ///
    /// `None` also if `LIBNVVM_PATH` is set to something that does not exist.
    pub fn find() -> Option<Toolkit> {
        Search::from_environment().find().ok().flatten()
    }

    /// Looks for libNVVM where [`Search`] says, else fetches it, once for this user.
    ///
    /// # Errors
    ///
    /// If it is not available, with the reason and what to do.
    pub fn find_or_fetch() -> Result<Toolkit, Error> {
        Search::from_environment().find_or_fetch()
    }
}

/// What `LIBNVVM_PATH` means: the file itself, its folder, or an SDK's root.
fn at_libnvvm_path(path: &Path) -> Option<Toolkit> {
    let origin = Origin::Variable("LIBNVVM_PATH");
    if path.is_file() {
        return Some(Toolkit::around(path.to_owned(), origin));
    }
    Toolkit::in_library_folder(path, origin.clone()).or_else(|| Toolkit::below(path, origin))
}

/// The SDKs installed in a folder under names such as `cuda-12.9`, newest first, a plain `cuda`
/// last.
fn sdk_folders_in(folder: &Path) -> Vec<PathBuf> {
    let mut versioned: Vec<(Vec<u32>, PathBuf)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let version = name.to_str()?.strip_prefix("cuda")?.trim_start_matches('-');
            let numbers = version.split('.').filter_map(|part| part.parse().ok());
            Some((numbers.collect(), entry.path()))
        })
        .collect();
    versioned.sort();
    versioned.into_iter().rev().map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sdks_are_taken_newest_first() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        for name in [
            "cuda",
            "cuda-9.2",
            "cuda-12.4",
            "cuda-12.10",
            "cuda-13",
            "curl",
        ] {
            fs::create_dir(folder.path().join(name))?;
        }
        let found = sdk_folders_in(folder.path());
        let names: Vec<_> = found
            .iter()
            .filter_map(|path| path.file_name()?.to_str())
            .collect();
        let expected = ["cuda-13", "cuda-12.10", "cuda-12.4", "cuda-9.2", "cuda"];
        assert_eq!(names, expected);
        Ok(())
    }
}
