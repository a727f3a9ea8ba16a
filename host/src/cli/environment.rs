//! The environment variables that the build and the program read: for `--help`, and for the
//! table in the book's reference, which a test compares.

/// The name of a variable, and what it does.
pub type Variable = (&'static str, &'static str);

/// Every variable, those of this project first.
#[rustfmt::skip]
pub const VARIABLES: [Variable; 17] = [
    ("GEMM_CACHE_DIR",      "the folder for what builds fetch and `tune` measures; by default `rust-gemm` in the user's cache folder"),
    ("GEMM_NO_PTX",         "if set and not 0, a build compiles nothing for GPUs"),
    ("GEMM_NO_FETCH",       "if set and not 0, a build does not fetch libNVVM"),
    ("GEMM_MACHINE_CODE",   "the GPUs that a build assembles machine code for, such as sm_80,sm_90; by default those of this machine"),
    ("LIBNVVM_PATH",        "the libNVVM to compile with: the file, its folder or the root of a CUDA toolkit; nothing else is searched"),
    ("LIBCUBLAS_PATH",      "the cuBLAS to compare with: the file or its folder; nothing else is searched"),
    ("CUDA_HOME",           "the root of a CUDA toolkit, where libNVVM, its tools and cuBLAS are searched"),
    ("CUDA_PATH",           "the same"),
    ("CUDA_ROOT",           "the same, for cuBLAS alone"),
    ("LD_LIBRARY_PATH",     "folders where libNVVM is searched, too"),
    ("PATH",                "folders where Python and nvdisasm are searched"),
    ("VIRTUAL_ENV",         "a Python environment where cuBLAS is searched"),
    ("CONDA_PREFIX",        "the same"),
    ("PYTHONPATH",          "folders of Python packages where cuBLAS is searched"),
    ("XDG_CACHE_HOME",      "the user's cache folder; by default `.cache` in HOME"),
    ("HOME",                "the user's folder, for its `.cache` and its Python packages"),
    ("MATMUL_NUM_THREADS",  "the threads of the CPU rung `cpu-matrixmultiply`, up to 4"),
];

/// The table for `--help`.
pub(super) fn help() -> String {
    let lines = VARIABLES.map(|(name, effect)| format!("  {name}\n          {effect}"));
    format!("Environment variables:\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    /// The Rust files below a folder.
    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }

    /// The names of variables that a file which reads any has, without its tests and comments.
    fn read_by(text: &str) -> BTreeSet<String> {
        let code = text.split("#[cfg(test)]").next().unwrap();
        if !["env::var", "var_os", "fn from_variables"]
            .iter()
            .any(|read| code.contains(read))
        {
            return BTreeSet::new();
        }
        let lines = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        // What stands between quotation marks is every second part.
        let literals = lines.flat_map(|line| line.split('"').skip(1).step_by(2));
        let is_name = |text: &&str| {
            let is_letter = |byte: u8| byte.is_ascii_uppercase() || b"_0123456789".contains(&byte);
            text.len() > 3 && text.bytes().all(is_letter)
        };
        let by_cargo = |name: &&str| {
            ["CARGO", "DEP_", "OUT_DIR", "HOST", "TARGET"]
                .iter()
                .any(|own| name.starts_with(own))
        };
        let names = literals.filter(is_name).filter(|name| !by_cargo(name));
        names.map(String::from).collect()
    }

    #[test]
    fn every_variable_that_the_sources_read_is_in_the_table() {
        let mut files = vec![root().join("crates/gpu_gemm/build.rs")];
        for folder in ["host/src", "crates/gpu_gemm/src", "crates/nvvm/src"] {
            sources(&root().join(folder), &mut files);
        }
        for folder in ["crates/cuda_builder/src", "crates/find_cuda_helper/src"] {
            sources(&root().join(folder), &mut files);
        }
        let own = Path::new(file!()).file_name().unwrap();
        files.retain(|file| file.file_name() != Some(own));
        let read = files
            .iter()
            .map(|file| read_by(&fs::read_to_string(file).unwrap()));
        let read: BTreeSet<String> = read.flatten().collect();
        let known: BTreeSet<String> = VARIABLES.map(|(name, _)| name.to_string()).into();
        let missing: Vec<&String> = read.difference(&known).collect();
        assert!(missing.is_empty(), "not in the table: {missing:?}");
        // The crate `matrixmultiply` reads the last.
        let unread: Vec<&String> = known.difference(&read).collect();
        assert_eq!(unread, ["MATMUL_NUM_THREADS"]);
    }

    #[test]
    fn the_book_has_the_same_table() {
        let reference = fs::read_to_string(root().join("docs/src/reference.md")).unwrap();
        for (name, effect) in VARIABLES {
            let row = format!("| `{name}` | {effect} |\n");
            assert!(reference.contains(&row), "no row {row}");
        }
    }
}
