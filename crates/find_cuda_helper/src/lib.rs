//! Lets `cust` build without a CUDA SDK and start without a CUDA driver.
//!
//! `cust` and `cust_raw` call [`include_cuda`] from their build scripts, to link the driver's
//! library, `libcuda`. The published crate of this name looks for that library in an installed
//! SDK and links it: then nothing builds without an SDK, and nothing starts without a driver.
//! This crate links trampolines of the same names instead, which open `libcuda.so.1` at the first
//! call.
//!
//! Without a driver, `cust::init` returns `CudaError::SharedObjectInitFailed`, and if the driver
//! lacks a function, a call of it returns `CudaError::SharedObjectSymbolNotFound`; both display
//! as a sentence.
//!
//! `trampolines.c` has the picture. `symbols.txt` lists the functions: all that `cust_raw` 0.11.3
//! declares.

use std::{env, fs, path::Path};

/// The functions of the driver that get a trampoline, one a line.
const SYMBOLS: &str = include_str!("symbols.txt");

const TRAMPOLINES: &str = include_str!("trampolines.c");

/// Links the crate whose build script calls this with trampolines to the CUDA driver.
///
/// # Panics
///
/// Outside of a build script, for a target other than x86-64 Linux, or where there is no C
/// compiler.
pub fn include_cuda() {
    println!("cargo:rerun-if-changed=build.rs");

    let variable = |name: &str| {
        env::var(name).unwrap_or_else(|_| {
            panic!(
                "{name} is not set; call include_cuda from a build script, for which cargo sets it"
            )
        })
    };
    let (os, arch) = (
        variable("CARGO_CFG_TARGET_OS"),
        variable("CARGO_CFG_TARGET_ARCH"),
    );
    assert!(
        os == "linux" && arch == "x86_64",
        "cust can be built for x86-64 Linux only, not for {arch} {os}: find_cuda_helper has no trampolines to the \
         CUDA driver for it; launch with the crate cudarc, which needs none, or write them in its trampolines.c"
    );

    let out_dir = variable("OUT_DIR");
    let out_dir = Path::new(&out_dir);
    let source = out_dir.join("cuda_trampolines.c");
    for (path, text) in [
        (out_dir.join("cuda_symbols.h"), symbol_list()),
        (source.clone(), TRAMPOLINES.to_owned()),
    ] {
        if let Err(error) = fs::write(&path, text) {
            panic!("{} cannot be written: {error}", path.display());
        }
    }
    cc::Build::new()
        .file(source)
        .include(out_dir)
        .compile("cuda_trampolines");
    // Before glibc 2.34, dlopen was in a separate library.
    println!("cargo:rustc-link-lib=dylib=dl");
}

/// The list that `trampolines.c` includes wherever it has something for each function.
fn symbol_list() -> String {
    SYMBOLS
        .lines()
        .enumerate()
        .map(|(index, symbol)| format!("SYMBOL({index}, {symbol})\n"))
        .collect()
}
