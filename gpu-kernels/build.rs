//! Passes this folder, as `DEP_GPU_KERNELS_FOLDER`, to the build scripts of dependent crates,
//! which compile these kernels for the GPU.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::metadata=folder={}", env!("CARGO_MANIFEST_DIR"));
}
