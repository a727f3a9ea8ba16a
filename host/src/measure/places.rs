//! Where cuBLAS is looked for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Names of the library, newest first.
const NAMES: [&str; 3] = ["libcublas.so.13", "libcublas.so.12", "libcublas.so"];

/// What decides where it is looked for.
pub(super) struct Places<'a> {
    /// An environment variable.
    variable: &'a dyn Fn(&str) -> Option<OsString>,
    home: Option<PathBuf>,
    /// The folder `/`.
    root: &'a Path,
}

impl Places<'_> {
    pub(super) fn of_this_process() -> Places<'static> {
        Places {
            variable: &|name| env::var_os(name),
            home: env::home_dir(),
            root: Path::new("/"),
        }
    }

    /// Where to look, in order: LIBCUBLAS_PATH and nothing else if it is set; the loader's own
    /// path; CUDA toolkits; Python packages.
    pub(super) fn candidates(&self) -> Vec<PathBuf> {
        if let Some(path) = (self.variable)("LIBCUBLAS_PATH").filter(|path| !path.is_empty()) {
            let path = PathBuf::from(path);
            return match path.is_dir() {
                true => named_in(&path),
                false => vec![path],
            };
        }
        let mut candidates: Vec<PathBuf> = NAMES.iter().map(PathBuf::from).collect();
        for folder in self.toolkits().iter().chain(&self.python_packages()) {
            candidates.extend(named_in(folder).into_iter().filter(|path| path.exists()));
        }
        candidates
    }

    /// The folders that environment variables name.
    fn named_by(&self, variables: &[&str]) -> Vec<PathBuf> {
        let set = variables.iter().filter_map(|name| (self.variable)(name));
        set.map(PathBuf::from).collect()
    }

    /// Folders of libraries of CUDA toolkits.
    fn toolkits(&self) -> Vec<PathBuf> {
        let mut toolkits = self.named_by(&["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"]);
        toolkits.extend(["usr/local/cuda", "opt/cuda"].map(|path| self.root.join(path)));
        toolkits.extend(children(&self.root.join("usr/local"), "cuda-"));
        let libraries = ["lib64", "targets/x86_64-linux/lib"];
        let of = |toolkit: PathBuf| libraries.map(|folder| toolkit.join(folder));
        toolkits.into_iter().flat_map(of).collect()
    }

    /// The `nvidia/*/lib` folders of every Python installation in a usual place.
    fn python_packages(&self) -> Vec<PathBuf> {
        let mut prefixes = self.named_by(&["VIRTUAL_ENV", "CONDA_PREFIX"]);
        // The Python that a user calls by its name, which may be that of a virtual environment.
        let path = (self.variable)("PATH").unwrap_or_default();
        let pythons = env::split_paths(&path).filter(|folder| folder.join("python3").exists());
        prefixes.extend(pythons.filter_map(|folder| folder.parent().map(Path::to_path_buf)));
        prefixes.extend(self.home.as_ref().map(|home| home.join(".local")));
        prefixes.extend(["usr/local", "usr"].map(|path| self.root.join(path)));
        let path = (self.variable)("PYTHONPATH").unwrap_or_default();
        let mut packages: Vec<PathBuf> = env::split_paths(&path).collect();
        for prefix in prefixes {
            for python in children(&prefix.join("lib"), "python3") {
                packages.extend(["site-packages", "dist-packages"].map(|name| python.join(name)));
            }
        }
        let nvidia = packages.iter().map(|folder| folder.join("nvidia"));
        let nvidia = nvidia.flat_map(|folder| children(&folder, ""));
        nvidia.map(|folder| folder.join("lib")).collect()
    }
}

fn named_in(folder: &Path) -> Vec<PathBuf> {
    NAMES.iter().map(|name| folder.join(name)).collect()
}

/// The entries of a folder whose names start with `prefix`, the highest name first.
fn children(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where cuBLAS is looked for in `root` with these variables, without what the loader finds.
    fn candidates(root: &Path, variables: &[(&str, String)]) -> Vec<PathBuf> {
        let variable = |name: &str| {
            let mut set = variables.iter().filter(|(set, _)| *set == name);
            set.next().map(|(_, value)| value.into())
        };
        let places = Places {
            variable: &variable,
            home: Some(root.join("home")),
            root,
        };
        places.candidates()
    }

    #[test]
    fn it_is_looked_for_in_toolkits_and_python_packages_in_the_order_that_is_documented() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        // In this order; in none but the first are two of a toolkit's folders.
        let libraries = [
            "asked/lib64/libcublas.so.12",
            "asked/targets/x86_64-linux/lib/libcublas.so.13",
            "usr/local/cuda/lib64/libcublas.so",
            "opt/cuda/targets/x86_64-linux/lib/libcublas.so.13",
            "usr/local/cuda-13.0/lib64/libcublas.so.13",
            "usr/local/cuda-12.9/lib64/libcublas.so.12",
            "own/nvidia/cublas/lib/libcublas.so.12",
            "venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcublas.so.13",
            "on_path/lib/python3.11/dist-packages/nvidia/cublas/lib/libcublas.so.12",
            "home/.local/lib/python3.9/site-packages/nvidia/cublas/lib/libcublas.so.12",
            "usr/local/lib/python3.13/site-packages/nvidia/cublas/lib/libcublas.so.12",
            "usr/local/lib/python3.13/dist-packages/nvidia/cublas/lib/libcublas.so.12",
            "usr/lib/python3/dist-packages/nvidia/cublas/lib/libcublas.so.12",
        ]
        .map(|library| root.join(library));
        let elsewhere = [
            "not_on_path/lib/python3.11/site-packages/nvidia/cublas/lib/libcublas.so.12",
            "usr/local/other/lib64/libcublas.so.12",
            "usr/lib/perl/site-packages/nvidia/cublas/lib/libcublas.so.12",
            "on_path/bin/python3",
        ]
        .map(|file| root.join(file));
        for file in libraries.iter().chain(&elsewhere) {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        let at = |path: &str| root.join(path).display().to_string();
        let variables = [
            ("LIBCUBLAS_PATH", String::new()),
            ("CUDA_PATH", at("asked")),
            ("VIRTUAL_ENV", at("venv")),
            ("PYTHONPATH", at("own")),
            (
                "PATH",
                format!("{}:{}", at("not_on_path/bin"), at("on_path/bin")),
            ),
        ];

        let found = candidates(root, &variables);

        let (of_loader, found) = found.split_at(NAMES.len());
        assert_eq!(of_loader, NAMES.map(PathBuf::from));
        assert_eq!(found, libraries);
    }

    #[test]
    fn a_path_that_is_set_is_the_only_one() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        fs::create_dir_all(root.join("usr/local/cuda/lib64")).unwrap();
        fs::write(root.join("usr/local/cuda/lib64/libcublas.so"), "").unwrap();
        let of = |path: &Path| candidates(root, &[("LIBCUBLAS_PATH", path.display().to_string())]);
        assert_eq!(of(root), NAMES.map(|name| root.join(name)));
        let missing = root.join("no/libcublas.so.12");
        assert_eq!(of(&missing), [missing]);
    }
}
