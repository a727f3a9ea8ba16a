//! Finding and calling nvdisasm, which writes machine code as text.
//!
//! It is not in the wheel that contains libNVVM: a CUDA SDK has it, and so does a separate Python
//! wheel.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{Error, Search};

/// The path of nvdisasm in its wheels, relative to a folder of Python packages.
const IN_PYTHON_PACKAGES: [&str; 3] = [
    "nvidia/cu13/bin/nvdisasm",
    "nvidia/cuda_nvdisasm/bin/nvdisasm",
    "nvidia/cuda_nvcc/bin/nvdisasm",
];

/// Looks for nvdisasm: in the SDKs that [`Search`] knows, in `PATH`, among installed Python
/// packages.
pub fn find() -> Option<PathBuf> {
    let search = Search::from_environment();
    let roots = search.sdk_variables.iter().map(|(_, root)| root);
    let in_sdks = roots
        .chain(&search.sdk_folders)
        .map(|root| root.join("bin/nvdisasm"));
    let path = env::var_os("PATH").unwrap_or_default();
    let in_path: Vec<PathBuf> = env::split_paths(&path)
        .map(|folder| folder.join("nvdisasm"))
        .collect();
    in_sdks
        .chain(in_path)
        .find(|file| file.is_file())
        .or_else(|| in_python_packages(&search))
}

fn in_python_packages(search: &Search) -> Option<PathBuf> {
    let folders = search.python_packages();
    let files = folders
        .iter()
        .flat_map(|folder| IN_PYTHON_PACKAGES.map(|path| folder.join(path)));
    files.into_iter().find(|file| file.is_file())
}

/// Writes a cubin's machine code as text, with the source lines that it knows, those of inlined
/// calls included.
///
/// # Errors
///
/// [`Error::NvdisasmNotRun`], or [`Error::NvdisasmRejected`] with its words if it does not accept
/// the cubin.
pub fn disassemble(nvdisasm: &Path, cubin: &[u8]) -> Result<String, Error> {
    let output = run(nvdisasm, cubin).map_err(|source| Error::NvdisasmNotRun {
        program: nvdisasm.to_owned(),
        source,
    })?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(Error::NvdisasmRejected {
            log: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        }),
    }
}

fn run(nvdisasm: &Path, cubin: &[u8]) -> io::Result<std::process::Output> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("kernels.cubin");
    fs::write(&file, cubin)?;
    Command::new(nvdisasm)
        .args(["--print-code", "--print-line-info-inline"])
        .arg(&file)
        .stdin(Stdio::null())
        .output()
}
