//! The facts about a device for plans and predictions: the numbers that are not part of the
//! kernels' rates.
//!
//! Kernels were measured on one H200 (132 streaming multiprocessors, SMs, at 1980 MHz), see
//! [`Rate`]. Other GPUs are assumed to differ in their multiply-add rate, in their memory
//! bandwidth, and in the number of CTAs on an SM; their tensor cores are assumed to do as much per
//! clock, up to their peak.

use gpu_kernels::spec::{ElementType, Rate, Staging, Unit, Variant};

use super::capability::Capability;
use super::model::Gpu;
use super::occupancy::{Needs, Occupancy};
use super::properties::Properties;

/// A GPU, or the simulator, as plans and predictions see it.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceFacts {
    /// The compute capability, times ten.
    pub capability: u32,
    /// The number of SMs.
    pub sms: u32,
    /// The maximum number of CTAs that an SM holds, of any kernel.
    pub ctas_per_sm: u32,
    /// The other resources of an SM, if the compute capability is known here.
    pub sm: Option<&'static Capability>,
    pub speeds: Speeds,
}

impl DeviceFacts {
    /// The facts of the GPU that the driver describes.
    pub fn of(properties: &Properties) -> DeviceFacts {
        let gpu = Gpu::of(properties);
        let speeds = gpu.as_ref().map_or(Speeds::H200, Speeds::of);
        let sm = gpu.map(|gpu| gpu.capability);
        DeviceFacts {
            capability: u32::try_from(properties.architecture()).unwrap_or(0),
            sms: u32::try_from(properties.sms).unwrap_or(1).max(1),
            ctas_per_sm: sm.map_or(u32::MAX, |sm| sm.ctas),
            sm,
            speeds,
        }
    }

    /// The facts of a GPU from its data sheet.
    pub fn of_gpu(gpu: &Gpu) -> DeviceFacts {
        let capability = gpu.capability;
        DeviceFacts {
            capability: (10 * capability.major + capability.minor).cast_unsigned(),
            sms: gpu.sms,
            ctas_per_sm: capability.ctas,
            sm: Some(capability),
            speeds: Speeds::of(gpu),
        }
    }

    /// The simulator: a GPU so small that even small tests split tiles.
    pub fn simulator() -> DeviceFacts {
        DeviceFacts {
            capability: 90,
            sms: 6,
            ctas_per_sm: 1,
            sm: None,
            speeds: Speeds::H200,
        }
    }

    /// An OpenCL device. Its kernels are those for the oldest GPUs, with loads and stores as
    /// copies to shared memory. Its speed is not known, and only the plan of `auto` depends on it.
    pub fn opencl(compute_units: u32) -> DeviceFacts {
        DeviceFacts {
            capability: 75,
            sms: compute_units.max(1),
            ctas_per_sm: 1,
            sm: None,
            speeds: Speeds::H200,
        }
    }

    /// Whether it can run a kernel.
    pub fn runs(&self, variant: &Variant) -> bool {
        match variant.one_capability {
            true => variant.least_capability == self.capability,
            false => variant.least_capability <= self.capability,
        }
    }

    /// The compute capability that a kernel needs, such as `8.0 or newer`.
    pub fn needed_capability(variant: &Variant) -> String {
        let least = variant.least_capability;
        let newer = match variant.one_capability {
            true => "",
            false => " or newer",
        };
        format!("{}.{}{newer}", least / 10, least % 10)
    }

    /// The number of CTAs of a kernel that an SM holds at once: as many as on the GPU where its
    /// rate was measured, unless this GPU has room for fewer. For a kernel without a rate: one,
    /// or, with a ring of stages, as many as fit in shared memory.
    pub fn resident(&self, variant: &Variant) -> u32 {
        let needs = Needs {
            threads: variant.block.threads(),
            // Registers set no further limit: the compiler limits them to fit the measured number
            // of CTAs.
            registers: 0,
            shared_bytes: variant.static_shared_bytes + variant.ring_bytes(),
        };
        let room = self.sm.map(|sm| Occupancy::of(sm, needs).ctas);
        let measured = match (variant.rate, variant.staging) {
            (Some(rate), _) => rate.ctas_per_sm,
            (None, Staging::Ring { .. }) => room.unwrap_or(1),
            (None, _) => 1,
        };
        measured
            .min(self.ctas_per_sm)
            .min(room.unwrap_or(u32::MAX))
            .max(1)
    }

    /// The number of CTAs of a kernel that the GPU holds at once, on all SMs.
    pub fn ctas_at_once(&self, variant: &Variant) -> u32 {
        (self.resident(variant) * self.sms).max(1)
    }

    /// Operations a second of a kernel with this rate on one fully occupied SM.
    pub fn flops_of_sm(&self, variant: &Variant, rate: &Rate) -> f64 {
        let measured = rate.flops_per_s / SMS;
        match variant.unit {
            Unit::CudaCores => measured * self.speeds.sm,
            Unit::TensorCores { .. } => {
                let as_measured = measured * self.speeds.clock;
                let peak = |sm: &Capability| {
                    let clock_hz = self.speeds.clock * CLOCK_MHZ * 1e6;
                    2.0 * f64::from(sm.multiply_adds(variant)) * clock_hz
                };
                as_measured.min(self.sm.map_or(f64::INFINITY, peak))
            }
        }
    }
}

/// The speed of a GPU relative to the measured GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speeds {
    /// The multiply-adds a second of an SM's CUDA cores, relative to those of an H200's.
    pub sm: f64,
    /// The highest clock of the SMs, relative to an H200's.
    pub clock: f64,
    /// Bytes a second that kernels get from memory and from the L2, for all SMs together.
    pub memory_bytes_per_s: f64,
    pub l2_bytes_per_s: f64,
}

/// The figures of an H200: lanes and clock of an SM, and the memory bandwidth from its data
/// sheet.
const LANES: f64 = 128.0;
const CLOCK_MHZ: f64 = 1980.0;
const SHEET_BYTES_PER_S: f64 = 4.8e12;
const SMS: f64 = 132.0;

impl Speeds {
    /// The measured speeds.
    pub const H200: Speeds = Speeds {
        sm: 1.0,
        clock: 1.0,
        memory_bytes_per_s: 4.0e12,
        l2_bytes_per_s: 5.5e12,
    };

    /// The figures of another GPU: an H200's, scaled by the two data sheets.
    pub fn of(gpu: &Gpu) -> Speeds {
        let lanes = f64::from(gpu.capability.lanes(ElementType::F32)) / LANES;
        let clock = f64::from(gpu.clock_mhz) / CLOCK_MHZ;
        let memory = gpu.bandwidth_bytes_per_s / SHEET_BYTES_PER_S;
        let size = f64::from(gpu.sms) / SMS;
        Speeds {
            sm: lanes * clock,
            clock,
            memory_bytes_per_s: Speeds::H200.memory_bytes_per_s * memory,
            l2_bytes_per_s: Speeds::H200.l2_bytes_per_s * size * clock,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{gpu, h200, t4, variant};

    #[test]
    fn another_gpu_is_as_fast_as_its_lanes_its_clock_and_its_memory() {
        let of_h200 = gpu(((9, 0), 132, 1980), 4.8e12);
        assert_eq!(Speeds::of(&of_h200), Speeds::H200);
        // An A100 has half the lanes.
        let a100 = Speeds::of(&gpu(((8, 0), 108, 1410), 2.4e12));
        assert!((a100.sm - 0.5 * 1410.0 / 1980.0).abs() < 1e-12);
        assert_eq!(a100.memory_bytes_per_s, 2.0e12);
    }

    #[test]
    fn tensor_cores_are_as_busy_a_clock_as_where_they_were_measured_up_to_their_peak() {
        let flops = |name: &str, of: ((i32, i32), u32, u32)| {
            let facts = DeviceFacts::of_gpu(&gpu(of, 1e12));
            let variant = variant(name);
            let of_sm = facts.flops_of_sm(variant, &variant.rate.unwrap());
            (of_sm * f64::from(facts.sms) / 1e12).round()
        };
        // TFLOP/s. The first variant of this name rounds to tf32; its rate is 150.
        let (h200, a100) = (((9, 0), 132, 1980), ((8, 0), 108, 1410));
        assert_eq!(
            [h200, a100].map(|gpu| flops("tensor-core", gpu)),
            [150.0, 87.0]
        );
        // An RTX 4090 has 82.6 by its data sheet, and would have 185 at the rate of an H200.
        assert_eq!(flops("tensor-core", ((8, 9), 128, 2520)), 83.0);
        // A rate on CUDA cores follows from the lanes.
        let rate = variant("async-pipeline").rate.unwrap().flops_per_s;
        assert_eq!(flops("async-pipeline", h200), (rate / 1e12).round());
    }

    #[test]
    fn an_sm_holds_what_it_held_where_it_was_measured_or_what_there_is_room_for() {
        let small = variant("async-pipeline-64x64");
        assert_eq!(h200().resident(small), 6);
        // 64 KiB of shared memory: three times 16 KiB, plus the static arrays.
        assert_eq!(t4().resident(small), 4);
        assert_eq!(DeviceFacts::simulator().resident(small), 1);
        assert!(!t4().runs(small) && h200().runs(small));
    }
}
