//! Compiles the kernels to PTX, which `src/device/ptx.rs` embeds, and lists the Rust files it came from, which
//! `src/listing/sources.rs` embeds.

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use cuda_builder::{CudaBuilder, DebugInfo, NvvmArch};

fn main() -> Result<(), Box<dyn Error>> {
    // cargo sets OUT_DIR for every build script.
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let ptx = CudaBuilder::new("../gpu-kernels")
        .arch(NvvmArch::Compute75)
        .copy_to(out.join("kernels.ptx"))
        .debug(DebugInfo::LineTables)
        .libnvvm_optional(true)
        .build()?;
    list_sources(&ptx, &out.join("sources.rs"))?;
    Ok(())
}

/// Writes a Rust expression: the files of this workspace that the line tables of the PTX name, and their text.
fn list_sources(ptx: &Path, list: &Path) -> io::Result<()> {
    let workspace = Path::new("..").canonicalize()?;
    // There is no PTX where the kernels do not compile for the CPU either, which cargo is about to say.
    let ptx = fs::read_to_string(ptx).unwrap_or_default();
    let mut text = String::from("&[\n");
    for name in ptx.lines().filter_map(named_file) {
        let path = workspace.join(name);
        if path.starts_with(&workspace) && path.is_file() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "    ({name:?}, include_str!({path:?})),");
        }
    }
    text.push_str("]\n");
    fs::write(list, text)
}

/// The name in a line `.file 7 "gpu-kernels/src/tiled.rs"`.
fn named_file(line: &str) -> Option<&str> {
    let (_, name) = line.trim().strip_prefix(".file")?.split_once('"')?;
    name.strip_suffix('"')
}
