//! What ptxas reports for a kernel: it assembles the embedded PTX for a GPU's architecture. And
//! how many CTAs then fit on an SM.

use gpu_gemm::device::{compiled, ptx};
use gpu_gemm::gpu::Capability;
use gpu_gemm::gpu::occupancy::{Needs, Occupancy, Waves};
use gpu_gemm::gpu_kernels::spec::Variant;
use nvvm::{NvvmArch, Toolkit, ptxas};
use serde::{Serialize, Serializer};
use serde_json::json;

/// A kernel's resources. The driver's assembler may differ a little from the toolkit's ptxas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
        if let Some(reason) = compiled::why_absent() {
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
        let number = ptx::architecture(&sm).unwrap_or_default();
        let alone = compiled::module_for(number)
            .and_then(|module| module.kernel(variant.entry.name))
            .map_err(|error| error.to_string())?;
        let assembled =
            ptxas::assemble(&toolkit, &alone, arch).map_err(|error| error.to_string())?;
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

/// Writes an occupancy to JSON, with the limit of each resource as a field.
pub(super) fn occupancy_json<S: Serializer>(
    occupancy: &Option<Occupancy>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let of = |of: &Occupancy| {
        json!({
            "ctas": of.ctas,
            "warps": of.warps,
            "occupancy": of.occupancy,
            "limited_by": of.limited_by,
            "by_warps": of.limits.warps,
            "by_ctas": of.limits.ctas,
            "by_registers": of.limits.registers,
            "by_shared_memory": of.limits.shared_memory,
        })
    };
    occupancy.as_ref().map(of).serialize(serializer)
}

/// Writes the waves of a grid to JSON.
pub(super) fn waves_json<S: Serializer>(
    waves: &Option<Waves>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let of =
        |of: &Waves| json!({ "ctas_at_once": of.ctas_at_once, "waves": of.waves, "last": of.last });
    waves.as_ref().map(of).serialize(serializer)
}
