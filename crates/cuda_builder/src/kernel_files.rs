//! The files of single kernels: PTX, and OpenCL C.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

use device_codegen::OpenClKernels;

use crate::{CudaBuilderError, build_script};

/// The ending of a kernel's PTX, of its OpenCL C, and of the reason why it has none.
const PTX: &str = "ptx";
const OPENCL: &str = "cl";
const REFUSED: &str = "refused";

/// Writes the PTX of each kernel.
pub(crate) fn write_ptx(
    folder: &Path,
    kernels: &BTreeMap<String, String>,
) -> Result<(), CudaBuilderError> {
    let files = kernels.iter();
    let files = files.map(|(name, ptx)| (format!("{name}.{PTX}"), ptx.clone()));
    replace(folder, &[PTX], files)
}

/// The PTX of a kernel.
pub(crate) fn read_ptx(folder: &Path, name: &str) -> Option<String> {
    fs::read_to_string(folder.join(format!("{name}.{PTX}"))).ok()
}

/// A kernel in OpenCL C, or why it has none.
pub(crate) fn read_opencl(folder: &Path, name: &str) -> Option<Result<String, String>> {
    let read = |ending| fs::read_to_string(folder.join(format!("{name}.{ending}")));
    let refused = || read(REFUSED).ok().map(Err);
    read(OPENCL).ok().map(Ok).or_else(refused)
}

/// Writes each kernel in OpenCL C.
pub(crate) fn write_opencl(folder: &Path, kernels: &OpenClKernels) -> Result<(), CudaBuilderError> {
    let files = kernels.iter().map(|(name, kernel)| match kernel {
        Ok(kernel) => (format!("{name}.{OPENCL}"), kernel.source.clone()),
        Err(error) => (format!("{name}.{REFUSED}"), reason(error)),
    });
    replace(folder, &[OPENCL, REFUSED], files)
}

/// Writes these files, and removes those of kernels that are no more, by their endings.
fn replace(
    folder: &Path,
    endings: &[&str],
    files: impl Iterator<Item = (String, String)>,
) -> Result<(), CudaBuilderError> {
    let failed = |source: io::Error| CudaBuilderError::NotWritten {
        path: folder.to_owned(),
        source,
    };
    fs::create_dir_all(folder).map_err(failed)?;
    let mut written = BTreeSet::new();
    for (name, text) in files {
        let path = folder.join(name);
        build_script::write_atomically(&path, text.as_bytes())?;
        written.insert(path);
    }
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        if !written.contains(&path) && ending.is_some_and(|ending| endings.contains(&ending)) {
            build_script::delete(&path)?;
        }
    }
    Ok(())
}

/// The problem and its place, without the calls that lead there.
fn reason(error: &device_codegen::Error) -> String {
    let place = error.rust_place();
    let place = place.unwrap_or_else(|| format!("{}:{}", error.file(), error.line()));
    format!("{} ({place})", error.problem())
}
