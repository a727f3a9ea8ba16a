//! What ptxas says of a kernel: the embedded PTX, assembled for a GPU's architecture.

use gpu_kernels::spec::Variant;
use nvvm::{NvvmArch, Toolkit, ptxas};
use serde::Serialize;

use crate::device::ptx;
use crate::gpu::Capability;

/// What a kernel needs. The driver's own assembler may differ a little from the toolkit's ptxas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Resources {
    /// What the PTX was assembled for, such as `sm_90`.
    pub architecture: String,
    /// 32-bit registers of each thread.
    pub registers: u32,
    /// Shared memory of a block that is part of the kernel.
    pub static_shared_bytes: u32,
    /// Local memory of a thread: arrays that registers cannot hold.
    pub stack_bytes: u32,
    /// Registers that a thread saves to local memory for want of registers, and loads back, in bytes.
    pub spill_store_bytes: u32,
    pub spill_load_bytes: u32,
}

impl Resources {
    /// Asks ptxas; what fails is a sentence that says what to do.
    pub(super) fn of(variant: &Variant, capability: &Capability) -> Result<Resources, String> {
        if let Some(reason) = ptx::why_absent() {
            return Err(format!("There is no PTX in this build. {reason}"));
        }
        let install = "install a CUDA toolkit or the Python package nvidia-cuda-nvcc-cu12";
        let toolkit = Toolkit::find()
            .ok_or_else(|| format!("There is no ptxas on this machine: {install}."))?;
        let sm = format!("sm_{}{}", capability.major, capability.minor);
        let arch = NvvmArch::ALL
            .into_iter()
            .find(|arch| arch.sm() == sm)
            .ok_or_else(|| format!("ptxas is not known to take {sm}."))?;
        let module = ptx::architecture(&sm)
            .map(|number| ptx::newest_for(ptx::EMBEDDED, number, None))
            .unwrap_or_default();
        let assembled = ptxas::assemble_entry(&toolkit, module, arch, variant.entry)
            .map_err(|error| error.to_string())?;
        let found = assembled
            .kernels
            .iter()
            .find(|kernel| kernel.entry == variant.entry)
            .ok_or_else(|| format!("ptxas says nothing of `{}`.", variant.entry))?;
        Ok(Resources {
            architecture: sm,
            registers: found.registers,
            static_shared_bytes: found.shared_bytes,
            stack_bytes: found.stack_bytes,
            spill_store_bytes: found.spill_store_bytes,
            spill_load_bytes: found.spill_load_bytes,
        })
    }
}
