//! Tells the build script of a crate that depends on this one, which compiles these kernels for the
//! GPU, where they are: `DEP_GPU_KERNELS_FOLDER`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::metadata=folder={}", env!("CARGO_MANIFEST_DIR"));
}
