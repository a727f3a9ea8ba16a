//! Compiles a batch of functions: for the host by rustc, for the device by `cuda_builder`.

use std::any::Any;
use std::env;
use std::fs::{self, File};
use std::mem::ManuallyDrop;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use cuda_builder::{CudaBuilder, NvvmArch};

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

/// What a function names that uses `prelude.rs`: the 16-bit floats, what a device has of
/// `cuda_std`, and the other threads.
const USES_PRELUDE: [&str; 3] = ["f16", ".mul_add(", TOGETHER];
/// The `OUT_DIR` of the build script below an architecture's folder: in it `cuda_builder` finds the
/// one that its build scripts share.
const OUT: &str = "debug/build/functions/out";
const TOGETHER: &str = "block: &impl Together";

/// Functions, each with the kernel that runs it, in a folder of their own.
pub struct Batch {
    /// Of the crate.
    folder: PathBuf,
    /// Each architecture has a folder of its own below it, so that they are compiled at a time.
    root: PathBuf,
    names: Vec<String>,
    needs_cargo: bool,
    /// The folder, which is removed at last, or the lock on that of all batches that depend on
    /// `cuda_std`. It is compiled once for all of them, and one at a time is there.
    _place: Box<dyn Any + Send + Sync>,
}

impl Batch {
    /// A batch of functions, each a name and its Rust.
    pub fn new(functions: &[(String, String)]) -> Result<Self> {
        let uses_prelude =
            |(_, rust): &(String, String)| USES_PRELUDE.iter().any(|name| rust.contains(name));
        if !functions.iter().any(uses_prelude) {
            return Self::with_dependencies(functions, "");
        }
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let (root, lock) = free_folder(&workspace.join("target/differential"))?;
        for arch in NvvmArch::ALL {
            let out = root.join(arch.to_string()).join(OUT);
            if out.exists() {
                fs::remove_dir_all(&out)?;
            }
        }
        let dependencies = format!(
            "cuda_std = {{ package = \"stable_cuda_std\", path = {:?}, features = [\"half\"] }}",
            workspace.join("crates/cuda_std").canonicalize()?
        );
        let source = format!("{HEAD}{}", include_str!("prelude.rs"));
        let batch = Self {
            folder: root.join("functions"),
            root,
            names: Vec::new(),
            needs_cargo: true,
            _place: Box::new(lock),
        };
        batch.written(source, functions, &dependencies)
    }

    /// A batch of functions that use other crates: the lines of `[dependencies]`, in the versions
    /// that this workspace has. What such functions return on the host, [`Self::expected`] does
    /// not know.
    pub fn with_dependencies(functions: &[(String, String)], dependencies: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let batch = Self {
            folder: folder.path().join("functions"),
            root: folder.path().to_owned(),
            names: Vec::new(),
            needs_cargo: false,
            _place: Box::new(folder),
        };
        batch.written(HEAD.to_owned(), functions, dependencies)
    }

    fn written(
        mut self,
        mut source: String,
        functions: &[(String, String)],
        dependencies: &str,
    ) -> Result<Self> {
        for (name, rust) in functions {
            source.push_str(rust);
            let (block, on_host) = match rust.contains(TOGETHER) {
                true => (
                    ", &Block",
                    format!(
                        "model(inputs, outputs, |x, block| {name}(x, block))\n}}\n\
                         #[cfg(not(cuda_device))]\n#[unsafe(no_mangle)]\n\
                         pub extern \"C\" fn s_{name}(inputs: &[[u64; 8]], outputs: &mut [u64]) -> bool {{\n    \
                         simulated(inputs, outputs, |x, block| {name}(x, block))"
                    ),
                ),
                false => (
                    "",
                    format!(
                        "for (output, x) in outputs.iter_mut().zip(inputs) {{ *output = {name}(x); }}\n    true"
                    ),
                ),
            };
            source.push_str(&format!(
                "#[cfg(cuda_device)]\n#[unsafe(no_mangle)]\n#[unsafe(link_section = \".nvvm.kernel\")]\n\
                 pub unsafe fn k_{name}(input: *const [u64; 8], output: *mut u64) {{\n    \
                 let thread = __nvvm_thread_idx_x() as usize;\n    \
                 unsafe {{ *output.add(thread) = {name}(&*input.add(thread){block}) }}\n}}\n\
                 #[cfg(not(cuda_device))]\n#[unsafe(no_mangle)]\n\
                 pub extern \"C\" fn h_{name}(inputs: &[[u64; 8]], outputs: &mut [u64]) -> bool {{\n    {on_host}\n}}\n"
            ));
        }
        let manifest = format!(
            "[package]\nname = \"functions\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
             [dependencies]\n{dependencies}\n"
        );
        fs::create_dir_all(self.folder.join("src"))?;
        fs::write(self.folder.join("Cargo.toml"), manifest)?;
        fs::write(self.folder.join("src/lib.rs"), source)?;
        let versions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
        if !dependencies.is_empty() {
            fs::copy(versions, self.folder.join("Cargo.lock"))?;
        }
        self.names = functions.iter().map(|(name, _)| name.clone()).collect();
        Ok(self)
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// What each function returns on the host for each input, compiled without optimisation.
    pub fn expected(&self, inputs: &[[u64; 8]]) -> Result<Vec<Vec<u64>>> {
        let on_host = self.on_host()?;
        let names = self.names.iter();
        names.map(|name| on_host.expected(name, inputs)).collect()
    }

    /// The functions, compiled for the host.
    pub fn on_host(&self) -> Result<OnHost> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("libfunctions.so");
        self.compile_for_host(&path)?;
        // SAFETY: the library was made a moment ago of functions that touch nothing but what they
        // are given.
        let library = unsafe { libloading::Library::new(&path)? };
        Ok(OnHost(ManuallyDrop::new(library)))
    }

    fn compile_for_host(&self, library: &Path) -> Result<()> {
        let target = self.folder.with_file_name("host");
        let flags = ["-Copt-level=0", "-Cdebuginfo=0", "-Coverflow-checks=off"];
        let mut command = Command::new(if self.needs_cargo { "cargo" } else { "rustc" });
        if self.needs_cargo {
            command
                .current_dir(&self.folder)
                .args([
                    "rustc",
                    "--quiet",
                    "--offline",
                    "--lib",
                    "--crate-type=cdylib",
                ])
                .env("CARGO_TARGET_DIR", &target)
                .env_remove("CARGO_BUILD_TARGET")
                .env_remove("CARGO_ENCODED_RUSTFLAGS")
                .arg("--")
                .args(flags);
        } else {
            command
                .args(["--edition=2024", "--crate-type=cdylib"])
                .args(flags)
                .arg("-o")
                .arg(library)
                .arg(self.folder.join("src/lib.rs"));
        }
        let output = command.stdin(Stdio::null()).output();
        let output = output.context("rustc cannot be started")?;
        if !output.status.success() {
            bail!("rustc: {}", String::from_utf8_lossy(&output.stderr));
        }
        if self.needs_cargo {
            fs::copy(target.join("debug/libfunctions.so"), library)?;
        }
        Ok(())
    }

    /// The PTX of all functions: the kernel of `name` is `k_name`.
    pub fn ptx(&self, config: Config) -> Result<String> {
        let out = self.root.join(config.arch.to_string()).join(OUT);
        fs::create_dir_all(&out)?;
        let file = out.join(format!("{}.ptx", config.optimized));
        CudaBuilder::new(&self.folder)
            .arch(config.arch)
            .nvvm_opts(config.optimized)
            // The host has no fused operation where the source has two.
            .fma_contraction(false)
            .copy_to(&file)
            .build_now(&out)
            .with_context(|| config.to_string())?;
        Ok(fs::read_to_string(file)?)
    }
}

/// Functions of a [`Batch`]. They are not unloaded, for the simulator's threads stay.
pub struct OnHost(ManuallyDrop<libloading::Library>);

impl OnHost {
    /// What the function returns for each input, compiled without optimisation.
    pub fn expected(&self, name: &str, inputs: &[[u64; 8]]) -> Result<Vec<u64>> {
        let run = |prefix: &str| -> Result<Option<Vec<u64>>> {
            // SAFETY: `Batch::written` declares it so, for the compiler that compiles this.
            let function = unsafe {
                self.0
                    .get::<extern "C" fn(&[[u64; 8]], &mut [u64]) -> bool>(
                        format!("{prefix}_{name}").as_bytes(),
                    )
            };
            let Ok(function) = function else {
                return Ok(None);
            };
            let mut outputs = vec![0; inputs.len()];
            ensure!(function(inputs, &mut outputs), "{prefix}_{name} fails");
            Ok(Some(outputs))
        };
        let expected = run("h")?.with_context(|| format!("no function h_{name}"))?;
        if let Some(simulated) = run("s")?
            && simulated != expected
        {
            bail!("the simulator says {simulated:x?} for `{name}`, the model {expected:x?}");
        }
        Ok(expected)
    }
}

/// A folder in which no other batch is compiled, with its lock: of a few, in which `cuda_std` is
/// compiled once for all batches.
fn free_folder(folders: &Path) -> Result<(PathBuf, File)> {
    let several = std::thread::available_parallelism().map_or(1, NonZero::get);
    let open = |number: usize| -> Result<(PathBuf, File)> {
        let root = folders.join(number.to_string());
        fs::create_dir_all(&root)?;
        let lock = File::create(root.join("lock"))?;
        Ok((root, lock))
    };
    for number in 0..several {
        let (root, lock) = open(number)?;
        if lock.try_lock().is_ok() {
            return Ok((root, lock));
        }
    }
    let (root, lock) = open(0)?;
    lock.lock()?;
    Ok((root, lock))
}
