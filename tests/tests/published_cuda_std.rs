//! The ladder is written with rust-cuda: its kernels type-check, as they stand, against the
//! published `cuda_std` 0.2.2 instead of ours.

use std::path::Path;
use std::process::Command;

/// A package of its own around the kernels' sources, outside the workspace and so without its
/// `[patch]`.
fn manifest(sources: &Path) -> String {
    format!(
        r#"
[package]
name = "gpu-kernels"
version = "0.1.0"
edition = "2021"

[lib]
path = {library:?}

[dependencies]
cuda_std = "=0.2.2"

[workspace]
"#,
        library = sources.join("src/lib.rs")
    )
}

#[test]
fn kernels_type_check_against_the_published_cuda_std() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpu-kernels");
    if !sources.exists() {
        panic!(
            "the sources are not at {}: run this test where it was built",
            sources.display()
        );
    }
    let package = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(package.path().join("Cargo.toml"), manifest(&sources)).expect("a manifest");
    let output = Command::new(env!("CARGO"))
        .args(["check", "--quiet"])
        .current_dir(package.path())
        .env("RUSTFLAGS", "--cfg published_cuda_std -A warnings")
        .env(
            "CARGO_TARGET_DIR",
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("published"),
        )
        .output()
        .expect("cargo");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
