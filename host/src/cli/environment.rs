//! The environment variables that the build and the program read: for `--help`, and for the
//! table in the book's reference, which a test compares.

/// The name of a variable, and what it does.
pub type Variable = (&'static str, &'static str);

/// Every variable, those of this project first.
#[rustfmt::skip]
pub const VARIABLES: [Variable; 18] = [
    ("GEMM_CACHE_DIR",      "the folder for files that builds fetch and measurements of `tune`; by default `rust-gemm` in the user's cache folder"),
    ("GEMM_PTX",            "the architectures that a build compiles all kernels for, such as sm_80,sm_90a; `all`, or `none`, and then the program compiles none either; by default all in a release build, and in a dev build none until the program needs a kernel"),
    ("GEMM_NO_FETCH",       "if set and not 0, a build does not fetch libNVVM"),
    ("GEMM_MACHINE_CODE",   "the GPUs that a build assembles machine code for, such as sm_80,sm_90; by default those of this machine"),
    ("LIBNVVM_PATH",        "the libNVVM to compile with: the file, its folder or the root of a CUDA toolkit; nothing else is searched"),
    ("LIBNVVM_TIME_LIMIT",  "the seconds that libNVVM may take for a kernel, 600 by default; 0 is any number"),
    ("LIBCUBLAS_PATH",      "the cuBLAS to compare with: the file or its folder; nothing else is searched"),
    ("CUDA_HOME",           "the root of a CUDA toolkit, which is searched for libNVVM, its tools and cuBLAS"),
    ("CUDA_PATH",           "the same"),
    ("CUDA_ROOT",           "the same, for cuBLAS alone"),
    ("LD_LIBRARY_PATH",     "folders that are also searched for libNVVM"),
    ("PATH",                "folders that are searched for Python and nvdisasm"),
    ("VIRTUAL_ENV",         "a Python environment that is searched for cuBLAS"),
    ("CONDA_PREFIX",        "the same"),
    ("PYTHONPATH",          "folders of Python packages that are searched for cuBLAS"),
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

    #[test]
    fn the_book_has_the_same_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/reference.md");
        let reference = std::fs::read_to_string(path).unwrap();
        for (name, effect) in VARIABLES {
            let row = format!("| `{name}` | {effect} |\n");
            assert!(reference.contains(&row), "no row {row}");
        }
    }
}
