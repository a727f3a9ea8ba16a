//! The position of a kernel in the roofline model.

use gpu_gemm::Variant;
use gpu_gemm::gpu::Gpu;
use serde::Serialize;

/// The position of a kernel in the roofline model of a GPU.
#[derive(Clone, Debug, Serialize)]
pub struct Roofline {
    pub gpu: String,
    /// Whether it is present; otherwise its figures come from a data sheet.
    pub gpu_is_here: bool,
    pub compute_capability: String,
    pub sms: u32,
    pub clock_mhz: u32,
    pub bandwidth_bytes_per_s: f64,
    /// The peak of the unit on which the kernel multiplies.
    pub peak_flops_per_s: f64,
    /// The intensity above which arithmetic is the limit.
    pub ridge: f64,
    /// `memory` or `arithmetic`: the limit of the kernel without the help of caches.
    pub bound: &'static str,
    /// The speed that memory and arithmetic allow at that intensity, without the help of caches.
    pub attainable_flops_per_s: f64,
}

impl Roofline {
    pub(super) fn of(gpu: &Gpu, gpu_is_here: bool, variant: &Variant, intensity: f64) -> Roofline {
        let peak = gpu.peak_of(variant);
        let ridge = peak / gpu.bandwidth_bytes_per_s;
        Roofline {
            gpu: gpu.name.clone(),
            gpu_is_here,
            compute_capability: format!("{}.{}", gpu.capability.major, gpu.capability.minor),
            sms: gpu.sms,
            clock_mhz: gpu.clock_mhz,
            bandwidth_bytes_per_s: gpu.bandwidth_bytes_per_s,
            peak_flops_per_s: peak,
            ridge,
            bound: match intensity < ridge {
                true => "memory",
                false => "arithmetic",
            },
            attainable_flops_per_s: peak.min(intensity * gpu.bandwidth_bytes_per_s),
        }
    }
}
