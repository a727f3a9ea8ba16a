//! Compiles the kernels to PTX for several architectures, which `src/device/cuda/ptx.rs` embeds
//! with the Rust files that it came from.

use std::collections::BTreeSet;
use std::error::Error;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::{fs, io, thread};

use cuda_builder::{CudaBuilder, DebugInfo, NvvmArch};

/// The architectures that PTX is compiled for, oldest first. A GPU runs the newest that it
/// supports.
const ARCHITECTURES: [NvvmArch; 3] = [
    NvvmArch::Compute75,
    NvvmArch::Compute80, // copies from global to shared memory that run on their own
    NvvmArch::Compute90, // kernels that begin before the one before them has ended
];

fn main() -> Result<(), Box<dyn Error>> {
    // cargo sets OUT_DIR for every build script.
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    // libNVVM uses one core.
    let builds: Vec<_> = thread::scope(|scope| {
        let threads = ARCHITECTURES.map(|arch| {
            let builder = CudaBuilder::new("../../gpu-kernels")
                .arch(arch)
                .copy_to(out.join(format!("kernels.{arch}.ptx")))
                .debug(DebugInfo::LineTables)
                .libnvvm_optional(true);
            scope.spawn(|| builder.build())
        });
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    let mut modules = Vec::new();
    let mut sources = BTreeSet::new();
    for build in builds {
        let path = build.unwrap_or_else(|panic| resume_unwind(panic))?;
        // The file is missing if the kernels do not compile for the CPU either; cargo is about to
        // report that.
        let ptx = fs::read_to_string(&path).unwrap_or_default();
        if ptx.is_empty() {
            break; // nor would there be for the next
        }
        sources.extend(ptx.lines().filter_map(named_file).map(str::to_owned));
        modules.push(format!("include_str!({path:?})"));
    }
    write_list(&out.join("modules.rs"), &modules)?;
    write_list(&out.join("sources.rs"), &texts(&sources)?)?;
    Ok(())
}

/// The files that belong to this workspace, as Rust expressions: name and text.
fn texts(files: &BTreeSet<String>) -> io::Result<Vec<String>> {
    let workspace = Path::new("../..").canonicalize()?;
    let texts = files.iter().filter_map(|name| {
        let path = workspace.join(name);
        let is_of_workspace = path.starts_with(&workspace) && path.is_file();
        is_of_workspace.then(|| format!("({name:?}, include_str!({path:?}))"))
    });
    Ok(texts.collect())
}

/// Writes a slice of these as a Rust expression.
fn write_list(file: &Path, expressions: &[String]) -> io::Result<()> {
    fs::write(file, format!("&[\n{}]\n", expressions.join(",\n")))
}

/// The name in a line `.file 7 "gpu-kernels/src/tiled.rs"`.
fn named_file(line: &str) -> Option<&str> {
    let (_, name) = line.trim().strip_prefix(".file")?.split_once('"')?;
    name.strip_suffix('"')
}
