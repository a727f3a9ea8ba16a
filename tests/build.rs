//! Gives the tests a folder, `OUT_DIR`, for the kernels that they compile.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
