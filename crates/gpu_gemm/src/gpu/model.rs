//! A GPU model: its resources, whether the GPU is installed here or known from a data sheet.

use gpu_kernels::spec::{ElementType, Variant};

use super::capability::Capability;
use super::properties::Properties;

/// A GPU, as far as speed and occupancy are concerned.
#[derive(Clone, Debug, PartialEq)]
pub struct Gpu {
    pub name: String,
    pub capability: &'static Capability,
    /// Streaming multiprocessors (SMs).
    pub sms: u32,
    /// The highest clock of the SMs.
    pub clock_mhz: u32,
    pub bandwidth_bytes_per_s: f64,
}

impl Gpu {
    /// The GPU that the driver describes, if its compute capability is known here.
    pub fn of(properties: &Properties) -> Option<Gpu> {
        Some(Gpu {
            name: properties.name.clone(),
            capability: Capability::of(properties.capability)?,
            sms: u32::try_from(properties.sms).ok()?,
            clock_mhz: u32::try_from(properties.clock_mhz).ok()?,
            bandwidth_bytes_per_s: properties.bandwidth_bytes_per_s,
        })
    }

    /// Additions and multiplications a second on CUDA cores: in each cycle at the highest clock,
    /// every lane of every SM starts a fused multiply-add, which counts as two operations.
    pub fn peak(&self, element: ElementType) -> f64 {
        self.operations(self.capability.lanes(element))
    }

    /// The same on the unit on which a kernel multiplies.
    pub fn peak_of(&self, variant: &Variant) -> f64 {
        self.operations(self.capability.multiply_adds(variant))
    }

    /// Operations a second at this many multiply-adds per cycle and SM.
    fn operations(&self, multiply_adds: u32) -> f64 {
        f64::from(self.sms) * f64::from(multiply_adds) * 2.0 * f64::from(self.clock_mhz) * 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{gpu, variant};

    #[test]
    fn peaks_are_those_of_the_data_sheets() {
        let (f32, f64) = (ElementType::F32, ElementType::F64);
        for (name, element, of, data_sheet) in [
            ("T4", f32, ((7, 5), 40, 1590), 8.1),
            ("A100", f32, ((8, 0), 108, 1410), 19.5),
            ("RTX 3090", f32, ((8, 6), 82, 1695), 35.6),
            ("RTX 4070", f32, ((8, 9), 46, 2475), 29.1),
            ("RTX 4090", f32, ((8, 9), 128, 2520), 82.6),
            ("H100 SXM", f32, ((9, 0), 132, 1980), 67.0),
            ("A100", f64, ((8, 0), 108, 1410), 9.7),
            ("H100 SXM", f64, ((9, 0), 132, 1980), 33.5),
        ] {
            let peak = gpu(of, 0.0).peak(element) / 1e12;
            assert!(
                (peak - data_sheet).abs() < 0.1,
                "{name} {element:?}: {peak}"
            );
        }
    }

    #[test]
    fn tensor_cores_multiply_f64_twice_as_fast_where_they_do() {
        for (capability, faster) in [((8, 0), 2.0), ((8, 9), 1.0), ((9, 0), 2.0)] {
            let gpu = gpu((capability, 100, 1000), 0.0);
            let peak = faster * gpu.peak(ElementType::F64);
            assert_eq!(gpu.peak_of(variant("fp64-tensor")), peak);
        }
    }
}
