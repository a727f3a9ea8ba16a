//! `COMPILER` is a hash of what compiles kernels, by which a program knows whether the kernels that
//! another program has compiled are those that it would compile.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::{fs, io};

fn main() -> io::Result<()> {
    let mut hasher = DefaultHasher::new();
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    // In a registry's copy the others are not beside it: a version of this crate has one of theirs.
    for name in ["src", "../device_codegen/src", "../nvvm/src"] {
        let folder = Path::new(name);
        if folder.exists() {
            println!("cargo::rerun-if-changed={name}");
            hash(folder, &mut hasher)?;
        }
    }
    println!("cargo::rustc-env=COMPILER={:016x}", hasher.finish());
    Ok(())
}

/// Names and contents of all files.
fn hash(folder: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut paths = entries.collect::<io::Result<Vec<PathBuf>>>()?;
    paths.sort();
    for path in paths {
        path.hash(hasher);
        match path.is_dir() {
            true => hash(&path, hasher)?,
            false => fs::read(&path)?.hash(hasher),
        }
    }
    Ok(())
}
