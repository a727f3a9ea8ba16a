//! Compiles a crate of GPU kernels to PTX from a build script, with stable Rust.
//!
//! ```no_run
//! // build.rs
//! use cuda_builder::{CudaBuilder, CudaBuilderError, NvvmArch};
//! use std::path::Path;
//!
//! fn main() -> Result<(), CudaBuilderError> {
//!     let out = std::env::var_os("OUT_DIR").unwrap_or_default();
//!     CudaBuilder::new("../gpu-kernels")
//!         .arch(NvvmArch::Compute75)
//!         .copy_to(Path::new(&out).join("kernels.ptx"))
//!         .build()?;
//!     Ok(())
//! }
//! ```
//!
//! The interface is that of rust-cuda's `cuda_builder` 0.3.0, but the compilation path is
//! different: the installed rustc compiles the kernels for the host's triple with `--cfg
//! cuda_device`, `device_codegen` converts its LLVM IR to NVVM IR, and libNVVM compiles that to
//! PTX. It needs no nightly, no LLVM and no CUDA SDK.
//!
//! The PTX declares the lowest version of the PTX ISA that it needs, so that older drivers accept
//! it: see [`nvvm::ptx_version`].
//!
//! The driver compiles PTX when a program loads it, which takes seconds for hundreds of kernels. A
//! build script can have that done for the GPUs that it knows: [`nvvm::ptxas::assemble`] takes the
//! PTX.
//!
//! Some setters of 0.3.0 have no meaning here and do not exist: `release` (kernels are always
//! optimised; see [`nvvm_opts`](CudaBuilder::nvvm_opts)), `nvptx_32` (libNVVM 12 is 64-bit only),
//! `optix` (needs another kernel ABI), `override_libm` (what `std` takes from the C library is
//! always libdevice's), `generate_line_info` (see [`debug`](CudaBuilder::debug)) and
//! `emit_llvm_bitcode` (there is no LLVM here to write it).
//!
//! | file | what it does |
//! | --- | --- |
//! | `device_build.rs` | runs cargo on the kernels and learns what it made |
//! | `nested_cargo.rs` | starts a cargo that knows nothing of the outer one |
//! | `cargo_messages.rs` | reads what cargo reports |
//! | `dep_info.rs` | reads which files a crate was compiled from |
//! | `ptx.rs` | LLVM IR to NVVM IR to PTX |
//! | `kernels_apart.rs` | a module for each kernel, and their PTX joined |
//! | `kernel_files.rs` | a file for each kernel: PTX, OpenCL C |
//! | `on_demand.rs` | compiles a kernel when a program asks for it, outside of a build script |
//! | `record.rs` | sees that nothing has changed since the last build |
//! | `shared.rs` | what all build scripts of a workspace share: IR, and PTX compiled before |
//! | `toolchain.rs` | which rustc compiled the kernels |
//! | `build_script.rs` | what cargo tells a build script, and what that tells cargo |

mod build_script;
mod cargo_messages;
mod dep_info;
mod device_build;
mod error;
mod kernel_files;
mod kernels_apart;
mod nested_cargo;
mod on_demand;
mod ptx;
mod record;
mod shared;
mod toolchain;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use error::CudaBuilderError;
pub use nvvm::NvvmArch;
pub use ptx::DebugInfo;

use build_script::BuildScript;
use device_codegen::Contraction;
use ptx::LibNvvm;
use record::Record;
use shared::PtxCache;

/// Why there is no libNVVM, which is fetched if it is nowhere to be found; `None` if there is one.
pub fn why_no_libnvvm() -> Option<String> {
    let search = nvvm::Search {
        terminal: build_script::own_terminal(),
        ..nvvm::Search::from_environment()
    };
    search.find_or_fetch().err().map(|error| error.to_string())
}

/// Compiles one crate of kernels for one architecture; see the [crate](self).
#[derive(Clone, Debug)]
pub struct CudaBuilder {
    path_to_crate: PathBuf,
    ptx_file_copy_path: Option<PathBuf>,
    build_args: Vec<String>,
    rustflags: Vec<String>,
    arch: NvvmArch,
    nvvm_opts: bool,
    ftz: bool,
    fast_sqrt: bool,
    fast_div: bool,
    fma_contraction: bool,
    debug: DebugInfo,
    panic_messages: bool,
    emit_llvm_ir: bool,
    libnvvm_optional: bool,
    kernels_folder: Option<PathBuf>,
    opencl_folder: Option<PathBuf>,
    /// The kernels to compile; all if there are none.
    only: Vec<String>,
}

impl CudaBuilder {
    /// A builder for the crate in this folder, relative to that of the build script's crate.
    pub fn new(path_to_crate_root: impl AsRef<Path>) -> Self {
        Self {
            path_to_crate: path_to_crate_root.as_ref().to_owned(),
            ptx_file_copy_path: None,
            build_args: Vec::new(),
            rustflags: Vec::new(),
            arch: NvvmArch::Compute75,
            nvvm_opts: true,
            ftz: false,
            fast_sqrt: false,
            fast_div: false,
            fma_contraction: true,
            debug: DebugInfo::None,
            panic_messages: true,
            emit_llvm_ir: false,
            libnvvm_optional: false,
            kernels_folder: None,
            opencl_folder: None,
            only: Vec::new(),
        }
    }

    /// The architecture to compile for; [`NvvmArch::Compute75`] unless set.
    ///
    /// PTX runs on GPUs of this compute capability and newer ones. For code that depends on it,
    /// `cfg(cuda_arch_at_least = "80")` holds from `compute_80` on, and `"90"` from `compute_90`
    /// on. So does `cfg(target_feature = "compute_86")` from `compute_86` on, as in rust-cuda,
    /// for all architectures; the one for `"compute_90a"` holds only in a build for that
    /// architecture, and the one for `"compute_100f"` in builds of that family (`compute_100f`,
    /// `compute_100a`, `compute_103f`, `compute_103a`). For a CPU none of them holds, and rustc
    /// requires such a feature to be listed in the check-cfg of the lint `unexpected_cfgs`.
    pub fn arch(mut self, arch: NvvmArch) -> Self {
        self.arch = arch;
        self
    }

    /// Compiles the kernels of these names alone, which takes less time than all of the crate.
    /// Their PTX is the same.
    pub fn only(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.only = names.into_iter().map(Into::into).collect();
        self
    }

    /// Where to put the PTX; into `OUT_DIR` unless set.
    pub fn copy_to(mut self, path: impl AsRef<Path>) -> Self {
        self.ptx_file_copy_path = Some(path.as_ref().to_owned());
        self
    }

    /// Further arguments for the cargo that compiles the kernels, such as
    /// `--features=tensor-cores`.
    pub fn build_args(mut self, args: &[impl AsRef<str>]) -> Self {
        self.build_args
            .extend(args.iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// One more argument for the rustc that compiles the kernels and all crates that they depend
    /// on, unchanged: `-Aunused`, for example. It comes after the builder's own.
    ///
    /// `RUSTFLAGS` and the `rustflags` of configuration files are for the host, and do not reach
    /// device code. Procedural macros and build scripts are compiled without the argument; build
    /// scripts see a `cfg` as `CARGO_CFG_..`.
    pub fn rustflag(mut self, flag: impl Into<String>) -> Self {
        self.rustflags.push(flag.into());
        self
    }

    /// Sets a `cfg` for the kernels and all crates that they depend on, by which many crates choose
    /// code without instructions of a CPU: `.cfg("aes_force_soft")`, or
    /// `.cfg("curve25519_dalek_backend=\"serial\"")`.
    pub fn cfg(self, cfg: impl AsRef<str>) -> Self {
        self.rustflag(format!("--cfg={}", cfg.as_ref()))
    }

    /// Whether libNVVM optimises; `true` unless set. rustc always does.
    pub fn nvvm_opts(mut self, nvvm_opts: bool) -> Self {
        self.nvvm_opts = nvvm_opts;
        self
    }

    /// Whether f32 operations flush subnormal numbers to zero; `false` unless set.
    pub fn ftz(mut self, ftz: bool) -> Self {
        self.ftz = ftz;
        self
    }

    /// Whether f32 square roots are approximate; `false` unless set.
    pub fn fast_sqrt(mut self, fast_sqrt: bool) -> Self {
        self.fast_sqrt = fast_sqrt;
        self
    }

    /// Whether f32 divisions are approximate; `false` unless set.
    pub fn fast_div(mut self, fast_div: bool) -> Self {
        self.fast_div = fast_div;
        self
    }

    /// Whether `a * b + c` becomes one fused operation, rounded once; `true` unless set.
    pub fn fma_contraction(mut self, fma_contraction: bool) -> Self {
        self.fma_contraction = fma_contraction;
        self
    }

    /// What the PTX says about the source; [`DebugInfo::None`] unless set.
    ///
    /// File names are relative to the root of the kernels' workspace, or begin with `cargo/` for
    /// packages from a registry; those of Rust's own libraries are as rustc has them. So the PTX
    /// is the same wherever it is built. Files of a package elsewhere on this machine have
    /// absolute names.
    pub fn debug(mut self, debug: DebugInfo) -> Self {
        self.debug = debug;
        self
    }

    /// Whether a panic tells the host what happened, where, and in which thread; `true` unless
    /// set.
    ///
    /// The trap that ends a panic destroys the GPU's context, so a host that wants to know gives
    /// the kernels some of its own memory before: see `cuda_std::panic_record`. Without it, or
    /// with `false`, a panic is only a trap. A kernel that cannot panic is the same in either
    /// case; one that can jumps to a block of code behind all others, which passes on a number and
    /// up to three integers. Messages and places are comments at the end of the PTX.
    pub fn panic_messages(mut self, panic_messages: bool) -> Self {
        self.panic_messages = panic_messages;
        self
    }

    /// Whether the IR is kept too, next to the PTX: for a `kernels.ptx`, the NVVM IR in
    /// `kernels.ll`, and rustc's LLVM IR of the kernels' crate, without the crates that it uses, in
    /// `kernels.rustc.ll`.
    pub fn emit_llvm_ir(mut self, emit_llvm_ir: bool) -> Self {
        self.emit_llvm_ir = emit_llvm_ir;
        self
    }

    /// Whether the build succeeds if libNVVM is not available; `false` unless set.
    ///
    /// It then writes an empty PTX file, warns, and sets `CUDA_BUILDER_NO_PTX`, which the crate
    /// being built reads with `option_env!`, to one sentence with the reason and what to do. If
    /// there is PTX, the variable is not set.
    ///
    /// Every following build tries again, unless that is futile because `GEMM_NO_FETCH` forbids
    /// fetching or there is nothing to fetch: then only a change of a variable that says where to
    /// look triggers another attempt.
    pub fn libnvvm_optional(mut self, libnvvm_optional: bool) -> Self {
        self.libnvvm_optional = libnvvm_optional;
        self
    }

    /// Also writes the kernels in OpenCL C into this folder, for devices that are not NVIDIA's:
    /// `NAME.cl` for each, a program of its own, or `NAME.refused` with the reason why the kernel
    /// has none, such as a warp's shuffle. Not unless set.
    ///
    /// The text is made of the same IR as the PTX, for the same architecture; of an older one it
    /// has the least that OpenCL lacks. Its second line has the options that `clBuildProgram`
    /// needs. The parameters are those of the Rust function, a slice being a pointer and a length;
    /// behind them follow, where the kernel has them, `dynamic_local` for
    /// `shared::dynamic_shared_mem` and `panic_record`, 64 bytes of global memory that a panic is
    /// written to, as `cuda_std::panic_record` reads it.
    ///
    /// It needs no libNVVM: without one, and with [`libnvvm_optional`](Self::libnvvm_optional), it
    /// is written all the same, unless `GEMM_PTX` is `none`: no device code is wanted.
    pub fn opencl_to(mut self, folder: impl AsRef<Path>) -> Self {
        self.opencl_folder = Some(folder.as_ref().to_owned());
        self
    }

    /// Writes the PTX of each kernel into this folder, as `NAME.ptx`, a module of its own, instead
    /// of one file for all. Functions and constants are in the module of each kernel that uses
    /// them. If kernels share a `static` that they can write, each file has all kernels. Not unless
    /// set.
    pub fn kernels_to(mut self, folder: impl AsRef<Path>) -> Self {
        self.kernels_folder = Some(folder.as_ref().to_owned());
        self
    }

    /// Compiles, and returns the path of the PTX file, or of the folder of
    /// [`kernels_to`](Self::kernels_to).
    ///
    /// Cargo is told to repeat the build script only when a file that the kernels were compiled
    /// from, libNVVM, or a variable that says where to find it has changed. If the files only have
    /// new times and the same contents, nothing is compiled.
    ///
    /// # Errors
    ///
    /// If this is not a build script, if libNVVM is not available, or if the kernels do not
    /// compile: then with rustc's own words. `Debug` writes what `Display` does, so that `?` in a
    /// build script's `main` shows it.
    pub fn build(self) -> Result<PathBuf, CudaBuilderError> {
        let mut script = BuildScript::from_environment()?;
        let built = self.build_in(&mut script);
        let path = built.map_err(|error| toolchain::explain(error, &script))?;
        // Only here: cargo repeats a failed build script in any case, and shows what it has
        // printed.
        script.print_instructions();
        Ok(path)
    }

    fn build_in(&self, script: &mut BuildScript) -> Result<PathBuf, CudaBuilderError> {
        let crate_folder = self.crate_folder()?;
        let crate_name = crate_folder
            .file_name()
            .map_or_else(|| "kernels".into(), |name| name.to_string_lossy())
            .into_owned();
        let ptx_file = || {
            let name = format!("{crate_name}.{}.ptx", self.arch);
            let chosen = self.ptx_file_copy_path.clone();
            chosen.unwrap_or_else(|| script.out_dir.join(name))
        };
        let ptx_path = self.kernels_folder.clone().unwrap_or_else(ptx_file);
        let mut outputs = vec![ptx_path.clone()];
        outputs.extend(self.opencl_folder.clone());
        if self.emit_llvm_ir {
            outputs.extend(["ll", "rustc.ll"].map(|ending| ptx_path.with_extension(ending)));
        }
        let record = Record::new(script, format!("{self:?} {crate_folder:?}"), outputs);
        if record.holds(script) {
            return Ok(ptx_path);
        }

        for variable in nvvm::SEARCH_VARIABLES {
            script.instruct(format!("rerun-if-env-changed={variable}"));
        }
        let libnvvm = match self.libnvvm(script) {
            Ok(found) => found,
            Err(CudaBuilderError::Nvvm(error)) if self.libnvvm_optional => {
                match &self.kernels_folder {
                    Some(folder) => kernel_files::write_ptx(folder, &BTreeMap::new())?,
                    None => build_script::write_atomically(&ptx_path, b"")?,
                }
                script.tell_there_is_no_ptx(&error);
                if let Some(folder) = &self.opencl_folder {
                    let kernels = match error {
                        nvvm::Error::NotWanted => Vec::new(),
                        _ => {
                            let options = self.cargo_options();
                            let crates = device_build::build(&crate_folder, options, script)?;
                            ptx::lower_opencl(&crates, self.contraction())?
                        }
                    };
                    kernel_files::write_opencl(folder, &kernels)?;
                }
                return Ok(ptx_path);
            }
            Err(error) => return Err(error),
        };
        let crates = device_build::build(&crate_folder, self.cargo_options(), script)?;
        let opencl = self.opencl_folder.as_ref().map(|_| self.contraction());
        let (module, kernels) =
            ptx::lower(&crates, self.arch, self.debug, self.panic_messages, opencl)?;
        if let Some(folder) = &self.opencl_folder {
            kernel_files::write_opencl(folder, &kernels)?;
        }
        if module.kernels.is_empty() {
            return Err(CudaBuilderError::NoKernels { path: crate_folder });
        }
        if self.emit_llvm_ir {
            let path = ptx_path.with_extension("ll");
            build_script::write_atomically(&path, module.ir.as_bytes())?;
            // Cargo compiles the crate after those that it uses.
            let rustc_ir = crates.last().map_or("", |kernels| &kernels.ir);
            let path = ptx_path.with_extension("rustc.ll");
            build_script::write_atomically(&path, rustc_ir.as_bytes())?;
        }
        let kept_ir = script
            .out_dir
            .join(format!("{crate_name}.{}.ll", self.arch));
        let options = self.nvvm_options();
        match &self.kernels_folder {
            Some(folder) => {
                let kernels = libnvvm.compile_kernels(&module, self.arch, &options, &kept_ir)?;
                kernel_files::write_ptx(folder, &kernels)?;
            }
            None => {
                let ptx = libnvvm.compile(&module, self.arch, &options, &kept_ir)?;
                build_script::write_atomically(&ptx_path, ptx.as_bytes())?;
            }
        }
        record.write(script)?;
        Ok(ptx_path)
    }

    /// Finds or fetches libNVVM, and tells cargo to watch it.
    fn libnvvm(&self, script: &mut BuildScript) -> Result<LibNvvm, CudaBuilderError> {
        let libnvvm = LibNvvm::load(&script.search, PtxCache::new(&script.out_dir))?;
        for file in [
            Some(&libnvvm.toolkit.libnvvm),
            libnvvm.toolkit.libdevice.as_ref(),
        ]
        .into_iter()
        .flatten()
        {
            script.rerun_if_changed(file);
        }
        Ok(libnvvm)
    }

    /// The folder of the kernels' crate, absolute.
    fn crate_folder(&self) -> Result<PathBuf, CudaBuilderError> {
        self.path_to_crate
            .canonicalize()
            .ok()
            .filter(|folder| folder.join("Cargo.toml").is_file())
            .ok_or_else(|| CudaBuilderError::NoCrate {
                path: self.path_to_crate.clone(),
            })
    }

    fn cargo_options(&self) -> device_build::Options<'_> {
        device_build::Options {
            arch: self.arch,
            build_args: &self.build_args,
            rustflags: &self.rustflags,
            only: &self.only,
        }
    }

    fn contraction(&self) -> Contraction {
        match self.fma_contraction {
            true => Contraction::Allowed,
            false => Contraction::Forbidden,
        }
    }

    /// The setters as options of libNVVM, which include only those that differ from its defaults.
    fn nvvm_options(&self) -> Vec<&'static str> {
        let mut options = vec![if self.nvvm_opts { "-opt=3" } else { "-opt=0" }];
        for (is_set, option) in [
            (self.ftz, "-ftz=1"),
            (self.fast_sqrt, "-prec-sqrt=0"),
            (self.fast_div, "-prec-div=0"),
            (!self.fma_contraction, "-fma=0"),
            (self.debug == DebugInfo::LineTables, "-generate-line-info"),
        ] {
            if is_set {
                options.push(option);
            }
        }
        options
    }
}
