//! What ptxas reports for a kernel: it assembles the embedded PTX for a GPU's architecture. And
//! how many CTAs then fit on an SM.

use gpu_gemm::gpu::Capability;
use gpu_gemm::gpu::occupancy::{Needs, Occupancy};
use gpu_gemm::gpu_kernels::spec::Variant;

use crate::listing::assembled;

/// A kernel's resources. The driver's assembler may differ a little from the toolkit's ptxas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resources {
    /// The target of ptxas, such as `sm_90`.
    pub architecture: String,
    /// 32-bit registers of each thread.
    pub registers: u32,
    /// Shared memory of a CTA, as declared in the kernel.
    pub static_shared_bytes: u32,
    /// Local memory of a thread: arrays that registers cannot hold.
    pub stack_bytes: u32,
    /// Register spills of a thread: bytes stored to local memory, and loaded back.
    pub spill_store_bytes: u32,
    pub spill_load_bytes: u32,
}

impl Resources {
    /// Runs ptxas. An error is a sentence that says what to do.
    pub(super) fn of(variant: &Variant, capability: &Capability) -> Result<Resources, String> {
        let sm = format!("sm_{}{}", capability.major, capability.minor);
        let arch = assembled::architecture(&sm);
        let arch = arch.ok_or_else(|| format!("ptxas is not known to take {sm}."))?;
        let assembled = assembled::of(&assembled::module(variant.entry.name, arch)?, arch)?;
        let found = assembled
            .kernels
            .iter()
            .find(|kernel| kernel.entry == variant.entry.name)
            .ok_or_else(|| format!("ptxas reports nothing about `{}`.", variant.entry.name))?;
        Ok(Resources {
            architecture: assembled.sm.clone(),
            registers: found.registers,
            static_shared_bytes: found.shared_bytes,
            stack_bytes: found.stack_bytes,
            spill_store_bytes: found.spill_store_bytes,
            spill_load_bytes: found.spill_load_bytes,
        })
    }
}

/// How many CTAs of the kernel fit on a streaming multiprocessor (SM).
pub(super) fn occupancy(
    capability: &Capability,
    variant: &Variant,
    resources: &Resources,
    dynamic_shared_bytes: u32,
) -> Occupancy {
    let needs = Needs {
        threads: variant.block.threads(),
        registers: resources.registers,
        shared_bytes: resources.static_shared_bytes + dynamic_shared_bytes,
    };
    Occupancy::of(capability, needs)
}
