//! Gives the tool a folder, `OUT_DIR`, for the kernels that it compiles.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
