//! A kernel's PTX, and what ptxas makes of it. Errors are sentences that say what to do.

use gpu_gemm::device::{compiled, ptx};
use nvvm::ptxas::{self, Assembled};
use nvvm::{NvvmArch, Toolkit};

/// The architecture of this name, such as `sm_90`.
pub fn architecture(sm: &str) -> Option<NvvmArch> {
    NvvmArch::ALL.into_iter().find(|arch| arch.sm() == sm)
}

/// The PTX of one kernel for an architecture.
pub fn module(entry: &'static str, arch: NvvmArch) -> Result<String, String> {
    if let Some(reason) = compiled::why_absent() {
        return Err(format!("There is no PTX in this build. {reason}"));
    }
    let number = ptx::architecture(&arch.sm()).unwrap_or_default();
    let module = compiled::module_for(number).and_then(|module| module.kernel(entry));
    module.map_err(|error| error.to_string())
}

/// Assembles PTX.
pub fn of(module: &str, arch: NvvmArch) -> Result<Assembled, String> {
    let toolkit = Toolkit::find().ok_or(
        "There is no ptxas here to make machine code from PTX; install a CUDA toolkit or the Python package \
         nvidia-cuda-nvcc-cu12.",
    )?;
    ptxas::assemble(&toolkit, module, arch).map_err(|error| error.to_string())
}
