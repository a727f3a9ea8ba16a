//! Passes this folder, as `DEP_GPU_KERNELS_FOLDER`, to the build scripts of dependent crates,
//! which compile these kernels for the GPU.

use std::env;

fn main() {
    let folder = env::var("CARGO_MANIFEST_DIR").expect("Cargo sets it");
    // As an absolute path: where the checkout has been moved, it is not there, so this runs again.
    println!("cargo::rerun-if-changed={folder}/build.rs");
    println!("cargo::metadata=folder={folder}");
}
