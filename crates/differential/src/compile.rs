//! Compiles a batch of functions: for the host by rustc alone, for the device by `cuda_builder`,
//! as a build script does.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use cuda_builder::{CudaBuilder, NvvmArch};
use tempfile::TempDir;

/// Set for a process that plays a build script, to the folder of the kernels' crate.
const PLAYS_BUILD_SCRIPT: &str = "DIFFERENTIAL_CRATE";

/// The target of the PTX, and how it is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    pub arch: NvvmArch,
    /// Whether libNVVM optimises.
    pub optimized: bool,
}

impl std::fmt::Display for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} opt {}",
            self.arch,
            if self.optimized { 3 } else { 0 }
        )
    }
}

/// Both optimisation levels for each architecture.
pub fn configs(archs: &[NvvmArch]) -> Vec<Config> {
    let levels = |arch: &NvvmArch| {
        [true, false].map(|optimized| Config {
            arch: *arch,
            optimized,
        })
    };
    archs.iter().flat_map(levels).collect()
}

const HEAD: &str = r#"#![cfg_attr(cuda_device, no_std)]
#![allow(warnings)]

#[inline(always)]
fn bits32(value: f32) -> u32 {
    if value.is_nan() { 0x7fc0_0000 } else { value.to_bits() }
}

#[inline(always)]
fn bits64(value: f64) -> u64 {
    if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits() }
}

#[cfg(cuda_device)]
unsafe extern "C" {
    safe fn __nvvm_thread_idx_x() -> i32;
}
"#;

/// Functions, each with the kernel that runs it, in a folder of their own.
pub struct Batch {
    folder: TempDir,
    names: Vec<String>,
}

impl Batch {
    /// A batch of functions, each a name and its Rust.
    ///
    /// # Errors
    ///
    /// If the folder cannot be written.
    pub fn new(functions: &[(String, String)]) -> Result<Self> {
        Self::with_dependencies(functions, "")
    }

    /// A batch of functions that use other crates: the lines of `[dependencies]`, in the versions
    /// that this workspace has. What such functions return on the host, [`Self::expected`] does
    /// not know.
    ///
    /// # Errors
    ///
    /// If the folder cannot be written.
    pub fn with_dependencies(functions: &[(String, String)], dependencies: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut source = HEAD.to_owned();
        for (name, rust) in functions {
            source.push_str(rust);
            source.push_str(&format!(
                "#[cfg(cuda_device)]\n#[unsafe(no_mangle)]\n#[unsafe(link_section = \".nvvm.kernel\")]\n\
                 pub unsafe fn k_{name}(input: *const [u64; 8], output: *mut u64) {{\n    \
                 let thread = __nvvm_thread_idx_x() as usize;\n    \
                 unsafe {{ *output.add(thread) = {name}(&*input.add(thread)) }}\n}}\n\
                 #[cfg(not(cuda_device))]\n#[unsafe(no_mangle)]\n\
                 pub unsafe extern \"C\" fn h_{name}(input: *const [u64; 8]) -> u64 {{\n    unsafe {{ {name}(&*input) }}\n}}\n"
            ));
        }
        let manifest = format!(
            "[package]\nname = \"functions\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
             [dependencies]\n{dependencies}\n"
        );
        let root = folder.path();
        fs::create_dir_all(root.join("functions/src"))?;
        fs::create_dir_all(root.join("out"))?;
        fs::write(root.join("functions/Cargo.toml"), manifest)?;
        fs::write(root.join("functions/src/lib.rs"), source)?;
        let versions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
        if !dependencies.is_empty() {
            fs::copy(versions, root.join("functions/Cargo.lock"))?;
        }
        let names = functions.iter().map(|(name, _)| name.clone()).collect();
        Ok(Self { folder, names })
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// What each function returns on the host for each input, compiled without optimisation.
    ///
    /// # Errors
    ///
    /// If rustc does not take the functions.
    pub fn expected(&self, inputs: &[[u64; 8]]) -> Result<Vec<Vec<u64>>> {
        let library = self.folder.path().join("libfunctions.so");
        let output = Command::new("rustc")
            .args([
                "--edition=2024",
                "--crate-type=cdylib",
                "-Copt-level=0",
                "-Cdebuginfo=0",
                "-Coverflow-checks=off",
            ])
            .arg("-o")
            .arg(&library)
            .arg(self.folder.path().join("functions/src/lib.rs"))
            .stdin(Stdio::null())
            .output()
            .context("rustc cannot be started")?;
        if !output.status.success() {
            bail!("rustc: {}", String::from_utf8_lossy(&output.stderr));
        }
        // SAFETY: the library was made a moment ago of functions that touch nothing but what they
        // are given.
        let library = unsafe { libloading::Library::new(&library)? };
        let run = |name: &String| -> Result<Vec<u64>> {
            // SAFETY: `Batch::new` declares it so.
            let function = unsafe {
                library.get::<unsafe extern "C" fn(*const [u64; 8]) -> u64>(
                    format!("h_{name}").as_bytes(),
                )?
            };
            // SAFETY: it reads one input.
            Ok(inputs
                .iter()
                .map(|input| unsafe { function(input) })
                .collect())
        };
        self.names.iter().map(run).collect()
    }

    /// The PTX of all functions: the kernel of `name` is `k_name`.
    ///
    /// # Errors
    ///
    /// If a function is refused, with the reason.
    pub fn ptx(&self, config: Config) -> Result<String> {
        let root = self.folder.path();
        let file = root
            .join("out")
            .join(format!("{}.{}.ptx", config.arch, config.optimized));
        let output = Command::new(env::current_exe()?)
            .env(PLAYS_BUILD_SCRIPT, root.join("functions"))
            .env("DIFFERENTIAL_PTX", &file)
            .env("DIFFERENTIAL_ARCH", config.arch.to_string())
            .env("DIFFERENTIAL_OPTIMIZED", config.optimized.to_string())
            .env("OUT_DIR", root.join("out"))
            .env("HOST", host()?)
            .env("TARGET", host()?)
            .env("CARGO", "cargo")
            .env("CARGO_PKG_NAME", "differential")
            .stdin(Stdio::null())
            .output()?;
        if !output.status.success() {
            bail!(
                "{config}: {}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(fs::read_to_string(file)?)
    }
}

fn host() -> Result<String> {
    let output = Command::new("rustc")
        .arg("-vV")
        .output()
        .context("rustc cannot be started")?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc names no host")?.to_owned())
}

/// Does a build script's work, if this process is to play one. To be called first in `main`.
pub fn play_build_script() -> Option<ExitCode> {
    let folder = env::var_os(PLAYS_BUILD_SCRIPT)?;
    Some(match build(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    })
}

fn build(folder: &Path) -> Result<()> {
    let variable = |name: &str| env::var(name).with_context(|| format!("{name} is not set"));
    CudaBuilder::new(folder)
        .arch(variable("DIFFERENTIAL_ARCH")?.parse()?)
        .nvvm_opts(variable("DIFFERENTIAL_OPTIMIZED")? == "true")
        // The host has no fused operation where the source has two.
        .fma_contraction(false)
        .copy_to(PathBuf::from(variable("DIFFERENTIAL_PTX")?))
        .build()?;
    Ok(())
}
