//! The places to look for cuBLAS.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Names of the library, newest first.
const NAMES: [&str; 3] = ["libcublas.so.13", "libcublas.so.12", "libcublas.so"];

/// Where to look, in order: LIBCUBLAS_PATH and nothing else if it is set; the loader's own path;
/// CUDA toolkits; Python packages. `variable` reads an environment variable, and `root` is the
/// folder `/`.
pub(super) fn candidates(variable: impl Fn(&str) -> Option<OsString>, root: &Path) -> Vec<PathBuf> {
    if let Some(path) = variable("LIBCUBLAS_PATH").filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        return match path.is_dir() {
            true => NAMES.map(|name| path.join(name)).to_vec(),
            false => vec![path],
        };
    }
    let named_by = |names: &[&str]| -> Vec<PathBuf> {
        let set = names.iter().filter_map(|name| variable(name));
        set.map(PathBuf::from).collect()
    };
    let mut toolkits = named_by(&["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"]);
    toolkits.extend(["usr/local/cuda", "opt/cuda"].map(|path| root.join(path)));
    toolkits.extend(children(&root.join("usr/local"), "cuda-"));
    let libraries = ["lib64", "targets/x86_64-linux/lib"];
    let mut folders: Vec<PathBuf> = toolkits
        .iter()
        .flat_map(|toolkit| libraries.map(|library| toolkit.join(library)))
        .collect();

    let mut prefixes = named_by(&["VIRTUAL_ENV", "CONDA_PREFIX"]);
    // The Python in the user's PATH, which may be that of a virtual environment.
    let path = variable("PATH").unwrap_or_default();
    let pythons = env::split_paths(&path).filter(|folder| folder.join("python3").exists());
    prefixes.extend(pythons.filter_map(|folder| folder.parent().map(Path::to_path_buf)));
    prefixes.extend(named_by(&["HOME"]).iter().map(|home| home.join(".local")));
    prefixes.extend(["usr/local", "usr"].map(|path| root.join(path)));
    let path = variable("PYTHONPATH").unwrap_or_default();
    let mut packages: Vec<PathBuf> = env::split_paths(&path).collect();
    for prefix in prefixes {
        for python in children(&prefix.join("lib"), "python3") {
            packages.extend(["site-packages", "dist-packages"].map(|name| python.join(name)));
        }
    }
    for folder in packages {
        let nvidia = children(&folder.join("nvidia"), "");
        folders.extend(nvidia.iter().map(|package| package.join("lib")));
    }
    let found = folders
        .iter()
        .flat_map(|folder| NAMES.map(|name| folder.join(name)));
    let found = found.filter(|path| path.exists());
    NAMES.map(PathBuf::from).into_iter().chain(found).collect()
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

    #[test]
    fn it_is_looked_for_in_toolkits_and_python_packages_unless_a_path_is_set() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let libraries = [
            "asked/lib64/libcublas.so.12",
            "opt/cuda/targets/x86_64-linux/lib/libcublas.so.13",
            "usr/local/cuda-13.0/lib64/libcublas.so.13",
            "usr/local/cuda-12.9/lib64/libcublas.so.12",
            "own/nvidia/cublas/lib/libcublas.so.12",
            "venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcublas.so.13",
            "on_path/lib/python3.11/dist-packages/nvidia/cublas/lib/libcublas.so.12",
            "home/.local/lib/python3.9/site-packages/nvidia/cublas/lib/libcublas.so.12",
            "usr/lib/python3/dist-packages/nvidia/cublas/lib/libcublas.so.12",
        ]
        .map(|library| root.join(library));
        let elsewhere = [
            "not_on_path/lib/python3.11/site-packages/nvidia/cublas/lib/libcublas.so.12",
            "usr/local/other/lib64/libcublas.so.12",
            "on_path/bin/python3",
        ]
        .map(|file| root.join(file));
        for file in libraries.iter().chain(&elsewhere) {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        let at = |path: &str| Some(root.join(path).into_os_string());
        let found = candidates(
            |name| match name {
                "CUDA_PATH" => at("asked"),
                "VIRTUAL_ENV" => at("venv"),
                "PYTHONPATH" => at("own"),
                "HOME" => at("home"),
                "PATH" => {
                    env::join_paths(["not_on_path/bin", "on_path/bin"].map(|one| root.join(one)))
                        .ok()
                }
                _ => None,
            },
            root,
        );
        let (of_loader, found) = found.split_at(NAMES.len());
        assert_eq!(of_loader, NAMES.map(PathBuf::from));
        assert_eq!(found, libraries);
        let of = |path: PathBuf| candidates(|_| Some(path.clone().into_os_string()), root);
        assert_eq!(of(root.into()), NAMES.map(|name| root.join(name)));
        let missing = root.join("no/libcublas.so.12");
        assert_eq!(of(missing.clone()), [missing]);
    }
}
