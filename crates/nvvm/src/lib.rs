//! Finds, fetches and calls libNVVM, NVIDIA's compiler from NVVM IR to PTX.
//!
//! libNVVM is one shared library. It comes with every CUDA SDK and, on its own, with a Python
//! wheel of 40 MB; nothing else of the SDK is needed, and no GPU. So:
//!
//! ```no_run
//! use nvvm::{Compiler, NvvmArch, Toolkit};
//!
//! # fn main() -> Result<(), nvvm::Error> {
//! let toolkit = Toolkit::find_or_fetch()?; // an installed one, else the wheel's, fetched once
//! // SAFETY: what was found, or came with the wheel, is a libNVVM.
//! let compiler = unsafe { Compiler::load(&toolkit)? };
//! let ir = std::fs::read("kernels.ll").unwrap_or_default();
//! let ptx = compiler.compile(&[("kernels.ll", &ir)], NvvmArch::Compute75, &["-opt=3"])?;
//! let assembled = nvvm::ptxas::assemble(&toolkit, &ptx, NvvmArch::Compute75)?;
//! # let _ = assembled; Ok(())
//! # }
//! ```
//!
//! | file | what it does |
//! | --- | --- |
//! | `arch.rs` | the virtual architectures that libNVVM compiles for |
//! | `version.rs` | versions of libNVVM's interface and of PTX |
//! | `origin.rs` | where a libNVVM was found |
//! | `toolkit.rs` | what a found libNVVM consists of |
//! | `search.rs` | where it is looked for, in which order |
//! | `wheel.rs` | the wheel that is fetched: version, checksums, contents |
//! | `fetch.rs` | fetching that wheel with pip |
//! | `cache.rs` | keeping it, complete or not at all, also with concurrent builds |
//! | `compiler.rs` | calling libNVVM |
//! | `process.rs` | a process of its own for each compilation |
//! | `ptx_version.rs` | lowering the version of PTX to what it needs, for older drivers |
//! | `gpus.rs` | the GPUs of this machine |
//! | `ptxas.rs` | calling ptxas, which compiles PTX to machine code and counts its registers |
//! | `nvdisasm.rs` | finding and calling nvdisasm, which writes machine code as text |

mod arch;
mod cache;
mod compiler;
mod error;
mod fetch;
pub mod gpus;
pub mod nvdisasm;
mod origin;
mod process;
pub mod ptx_version;
pub mod ptxas;
mod search;
mod toolkit;
mod version;
mod wheel;

pub use arch::{NvvmArch, UnknownArch};
pub use compiler::Compiler;
pub use error::Error;
pub use origin::Origin;
pub use search::{SEARCH_VARIABLES, Search};
pub use toolkit::Toolkit;
pub use version::Version;
pub use wheel::{Member, Wheel};
