//! The files of kernels in OpenCL C.

use std::{fs, io, path::Path};

use device_codegen::OpenClKernels;

use crate::{CudaBuilderError, build_script};

/// The ending of a kernel's text, and of the reason why it has none.
const TEXT: &str = "cl";
const REFUSED: &str = "refused";

/// Writes a file a kernel, and removes those of kernels that are no more.
pub(crate) fn write(folder: &Path, kernels: &OpenClKernels) -> Result<(), CudaBuilderError> {
    let failed = |source: io::Error| CudaBuilderError::NotWritten {
        path: folder.to_owned(),
        source,
    };
    fs::create_dir_all(folder).map_err(failed)?;
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path
            .extension()
            .is_some_and(|ending| ending == TEXT || ending == REFUSED)
        {
            build_script::delete(&path)?;
        }
    }
    for (name, kernel) in kernels {
        let (ending, text) = match kernel {
            Ok(kernel) => (TEXT, kernel.source.clone()),
            Err(error) => (REFUSED, reason(error)),
        };
        let path = folder.join(format!("{name}.{ending}"));
        build_script::write_atomically(&path, text.as_bytes())?;
    }
    Ok(())
}

/// The problem and its place, without the calls that lead there.
fn reason(error: &device_codegen::Error) -> String {
    let place = error.rust_place();
    let place = place.unwrap_or_else(|| format!("{}:{}", error.file(), error.line()));
    format!("{} ({place})", error.problem())
}
