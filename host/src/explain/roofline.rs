//! The position of a kernel in the roofline model.

use gpu_gemm::Variant;
use gpu_gemm::gpu::Gpu;

/// The position of a kernel in the roofline model of a GPU.
#[derive(Clone, Debug)]
pub struct Roofline {
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
    pub(super) fn of(gpu: &Gpu, variant: &Variant, intensity: f64) -> Roofline {
        let peak = gpu.peak_of(variant);
        let ridge = peak / gpu.bandwidth_bytes_per_s;
        Roofline {
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
