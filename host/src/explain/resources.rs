//! What ptxas reports of a kernel, the embedded PTX assembled for a GPU's architecture, and how
//! many CTAs then fit.

use gpu_gemm::device::{compiled, ptx};
use gpu_gemm::gpu::Capability;
use gpu_gemm::gpu::occupancy::{self, Needs};
use gpu_gemm::gpu_kernels::spec::Variant;
use nvvm::{NvvmArch, Toolkit, ptxas};
use serde::Serialize;

/// What a kernel needs. The driver's own assembler may differ a little from the toolkit's ptxas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Resources {
    /// What the PTX was assembled for, such as `sm_90`.
    pub architecture: String,
    /// 32-bit registers of each thread.
    pub registers: u32,
    /// Shared memory of a CTA that is declared in the kernel.
    pub static_shared_bytes: u32,
    /// Local memory of a thread: arrays that registers cannot hold.
    pub stack_bytes: u32,
    /// Bytes of register spills of a thread: stored to local memory, and loaded back.
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

/// CTAs of the kernel on a streaming multiprocessor (SM): [`occupancy::Occupancy`], as it is
/// written to JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Occupancy {
    /// CTAs that reside on an SM; 0 if not even one fits.
    pub ctas: u32,
    /// Warps that reside on it.
    pub warps: u32,
    /// The fraction of the warps that an SM can hold: at most 1.
    pub occupancy: f64,
    /// What limits the CTAs: one or several of `warps`, `CTAs`, `registers`, `shared memory`.
    pub limited_by: Vec<&'static str>,
    /// CTAs that each of those limits would allow.
    pub by_warps: u32,
    pub by_ctas: u32,
    pub by_registers: u32,
    pub by_shared_memory: Option<u32>,
}

impl Occupancy {
    pub(super) fn of(
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
        let found = occupancy::Occupancy::of(capability, needs);
        Occupancy {
            ctas: found.ctas,
            warps: found.warps,
            occupancy: found.occupancy,
            limited_by: found.limited_by,
            by_warps: found.limits.warps,
            by_ctas: found.limits.ctas,
            by_registers: found.limits.registers,
            by_shared_memory: found.limits.shared_memory,
        }
    }
}

/// A grid on a GPU: [`occupancy::Waves`], as it is written to JSON.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Waves {
    /// CTAs that run at once on all SMs.
    pub ctas_at_once: u64,
    /// How many such waves there are; the last one may be partial.
    pub waves: u64,
    /// How full the last wave is: above 0, at most 1.
    pub last: f64,
}

impl Waves {
    pub(super) fn of(ctas: u64, resident: u32, sms: u32) -> Option<Waves> {
        let found = occupancy::Waves::of(ctas, resident, sms)?;
        Some(Waves {
            ctas_at_once: found.ctas_at_once,
            waves: found.waves,
            last: found.last,
        })
    }
}
