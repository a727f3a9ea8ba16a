//! Kernels may depend on crates from a registry that have code of a CPU, if a `cfg` chooses other
//! code: their PTX, run on this CPU, returns what the host returns.
//!
//! Where no libNVVM is found the tests are shown as ignored.

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use cuda_builder::{CudaBuilder, NvvmArch};
use differential::ptx::{Approximate, Module, run};
use libtest_mimic::{Arguments, Failed, Trial};

#[path = "dependencies/functions.rs"]
mod functions;

use functions::{Input, base_point_product, encrypted};

/// Set for a process that plays a build script, to whether libNVVM optimises.
const OPTIMIZED: &str = "DEPENDENCIES_OPTIMIZED";

/// Of the crates that this package's own tests depend on, the versions in the workspace's
/// `Cargo.lock`, so that nothing is fetched.
const MANIFEST: &str = r#"
[package]
name = "functions"
version = "0.1.0"
edition = "2024"

[dependencies]
aes = { version = "0.8", default-features = false }
curve25519-dalek = { version = "4.1", default-features = false }

[workspace]
"#;

fn main() -> ExitCode {
    if let Some(optimized) = env::var_os(OPTIMIZED) {
        return match build(optimized == "true") {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    let arguments = Arguments::from_args();
    let missing = nvvm::Toolkit::find_or_fetch().err();
    if let Some(error) = &missing {
        eprintln!("The tests are ignored. {error}");
    }
    let name = "aes_and_curve25519_dalek_return_what_the_host_returns";
    let trial = Trial::test(name, dependencies).with_ignored_flag(missing.is_some());
    libtest_mimic::run(&arguments, vec![trial]).exit_code()
}

/// What the build script of a user says. It runs in the folder of the kernels.
fn build(optimized: bool) -> Result<(), Box<dyn Error>> {
    CudaBuilder::new(".")
        .arch(NvvmArch::Compute90)
        .cfg("aes_force_soft")
        .cfg("curve25519_dalek_backend=\"serial\"")
        .nvvm_opts(optimized)
        .copy_to("functions.ptx")
        .build()?;
    Ok(())
}

/// Compiles the functions in a folder of their own, optimised and not, and runs them.
fn dependencies() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::create_dir(folder.path().join("src"))?;
    fs::copy(
        own.join("tests/dependencies/functions.rs"),
        folder.path().join("src/lib.rs"),
    )?;
    fs::copy(
        own.join("../../Cargo.lock"),
        folder.path().join("Cargo.lock"),
    )?;
    fs::write(folder.path().join("Cargo.toml"), MANIFEST)?;
    let host = Command::new("rustc")
        .args(["--print", "host-tuple"])
        .output()?;
    let host = String::from_utf8(host.stdout)?;
    for optimized in ["true", "false"] {
        run_from(folder.path(), host.trim(), optimized)?;
    }
    Ok(())
}

fn run_from(folder: &Path, host: &str, optimized: &str) -> Result<(), Failed> {
    let output = Command::new(env::current_exe()?)
        .current_dir(folder)
        .env(OPTIMIZED, optimized)
        .env("OUT_DIR", folder)
        .env("HOST", host)
        .env("TARGET", host)
        .env("CARGO", env!("CARGO"))
        .env("CARGO_PKG_NAME", "differential")
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let module = Module::parse(&fs::read_to_string(folder.join("functions.ptx"))?)?;
    // The second is beyond the order of the base point.
    for input in [
        [0x5A; 32],
        [0xFF; 32],
        std::array::from_fn(|at| 7 * at as u8),
    ] {
        let on_device = |name, length| run(&module, name, &input, length, 1, Approximate(0));
        let input: &Input = &input;
        assert_eq!(
            on_device("k_encrypted", 16)?,
            encrypted(input),
            "{optimized}"
        );
        assert_eq!(
            on_device("k_base_point_product", 32)?,
            base_point_product(input)
        );
    }
    Ok(())
}
