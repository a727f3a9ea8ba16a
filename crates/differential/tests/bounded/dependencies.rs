//! Kernels may depend on crates from a registry that have code of a CPU, if a `cfg` chooses other
//! code: their PTX, run on this CPU and on a GPU, returns what the host returns.

use std::error::Error;
use std::fs;
use std::path::Path;

use cuda_builder::{CudaBuilder, NvvmArch};
use cust::memory::{CopyDestination, DeviceBuffer};
use cust::stream::{Stream, StreamFlags};
use differential::ptx::{Approximate, Module, run};
use libtest_mimic::{Failed, Trial};

#[path = "dependencies/functions.rs"]
mod functions;

use functions::{Input, base_point_product, encrypted};

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

/// libNVVM takes these crates ten seconds, so without a GPU they belong to the exhaustive tier.
pub fn trials(is_missing: bool) -> Vec<Trial> {
    let name = "aes_and_curve25519_dalek_return_what_the_host_returns";
    let no_gpu = cust::quick_init().err();
    if let Some(error) = &no_gpu {
        eprintln!("The test on a GPU is ignored: there is none ({error}).");
    }
    vec![
        Trial::test(format!("exhaustive::{name}"), || {
            compare(on_cpu, &[true, false])
        })
        .with_ignored_flag(true),
        Trial::test(format!("gpu::{name}"), || compare(on_gpu, &[true, false]))
            .with_ignored_flag(is_missing || no_gpu.is_some()),
    ]
}

/// What runs a kernel of some PTX with an input: it returns that many bytes.
type Run = fn(ptx: &str, kernel: &str, input: &Input, length: usize) -> Result<Vec<u8>, Failed>;

/// Their PTX, optimised or not.
fn ptx(optimized: bool) -> Result<String, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::create_dir(folder.path().join("src"))?;
    fs::copy(
        own.join("tests/bounded/dependencies/functions.rs"),
        folder.path().join("src/lib.rs"),
    )?;
    fs::copy(
        own.join("../../Cargo.lock"),
        folder.path().join("Cargo.lock"),
    )?;
    fs::write(folder.path().join("Cargo.toml"), MANIFEST)?;
    compiled_in(folder.path(), optimized)
}

/// The PTX of the functions in a folder.
fn compiled_in(folder: &Path, optimized: bool) -> Result<String, Box<dyn Error>> {
    let ptx = CudaBuilder::new(folder)
        .arch(NvvmArch::Compute90)
        .cfg("aes_force_soft")
        .cfg("curve25519_dalek_backend=\"serial\"")
        .nvvm_opts(optimized)
        .copy_to(folder.join("functions.ptx"))
        .build_now(folder)?;
    Ok(fs::read_to_string(ptx)?)
}

/// Compares what kernels return, optimised or not, with what the host returns.
fn compare(run: Run, optimized: &[bool]) -> Result<(), Failed> {
    for optimized in optimized {
        let ptx = ptx(*optimized).map_err(|error| error.to_string())?;
        // The second is beyond the order of the base point.
        for input in [
            [0x5A; 32],
            [0xFF; 32],
            std::array::from_fn(|at| 7 * at as u8),
        ] {
            assert_eq!(run(&ptx, "k_encrypted", &input, 16)?, encrypted(&input));
            let product = run(&ptx, "k_base_point_product", &input, 32)?;
            assert_eq!(product, base_point_product(&input));
        }
    }
    Ok(())
}

fn on_cpu(ptx: &str, kernel: &str, input: &Input, length: usize) -> Result<Vec<u8>, Failed> {
    let module = Module::parse(ptx)?;
    Ok(run(&module, kernel, input, length, 1, Approximate(0))?)
}

fn on_gpu(ptx: &str, kernel: &str, input: &Input, length: usize) -> Result<Vec<u8>, Failed> {
    let _context = cust::quick_init()?;
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    let module = cust::module::Module::from_ptx(ptx, &[])?;
    let function = module.get_function(kernel)?;
    let input = DeviceBuffer::from_slice(input)?;
    let mut found = vec![0; length];
    let output = DeviceBuffer::from_slice(&found)?;
    // SAFETY: the kernel reads an input and writes an output of this length, by one thread.
    unsafe {
        cust::launch!(function<<<1, 1, 0, stream>>>(input.as_device_ptr(), output.as_device_ptr()))?;
    }
    stream.synchronize()?;
    output.copy_to(&mut found)?;
    Ok(found)
}
