//! The fake driver, cuBLAS and NVML (`library/`), compiled. The tests of `distributed` include
//! this file, too.

use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The other names of the library.
const LINKS: [&str; 2] = ["libcublas.so.12", "libnvidia-ml.so.1"];

/// A folder with the fake as `libcuda.so.1` and under [`LINKS`]: one file, and so one GPU.
/// `library` is the path of its source, relative to the tested package.
pub fn folder(library: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(library);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fake_gpu");
    fs::create_dir_all(&folder).unwrap();
    let changed = |path: &Path| fs::metadata(path).and_then(|file| file.modified());
    let sources = fs::read_dir(&source).unwrap();
    let newest = sources.map(|file| changed(&file.unwrap().path()).unwrap());
    if changed(&folder.join("libcuda.so.1")).ok() > newest.max()
        && LINKS.iter().all(|link| folder.join(link).exists())
    {
        return folder;
    }
    let building = tempfile::tempdir_in(&folder).unwrap();
    let compiled = building.path().join("libcuda.so.1");
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc
        .current_dir(&source)
        .args(["lib.rs", "--crate-name=fake_gpu", "--crate-type=cdylib"])
        .args(["--edition=2024", "-Copt-level=3", "-Dwarnings"])
        .arg("-o")
        .arg(&compiled);
    assert!(rustc.status().expect("rustc starts").success());
    fs::rename(&compiled, folder.join("libcuda.so.1")).unwrap();
    for link in LINKS.map(|link| folder.join(link)) {
        // Another process may be creating it at the same time.
        match symlink("libcuda.so.1", link) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => panic!("{error}"),
            _ => {}
        }
    }
    folder
}
