//! A GPU as its driver describes it.

use std::fmt;

use crate::text::plural;

/// The driver's description of a GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Properties {
    pub ordinal: u32,
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: (i32, i32),
    /// Streaming multiprocessors (SMs).
    pub sms: i32,
    pub memory_bytes: usize,
    pub l2_bytes: usize,
    /// The highest clock of the SMs.
    pub clock_mhz: i32,
    /// The peak memory bandwidth, from the memory's clock and width.
    pub bandwidth_bytes_per_s: f64,
    /// The newest version of CUDA that the driver supports, such as `13.0`.
    pub driver: String,
}

impl Properties {
    /// Ten times the compute capability.
    pub fn architecture(&self) -> i32 {
        10 * self.capability.0 + self.capability.1
    }
}

impl fmt::Display for Properties {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} (GPU {}, compute capability {}.{}, {} at up to {} MHz, {} GiB, driver for CUDA {})",
            self.name,
            self.ordinal,
            self.capability.0,
            self.capability.1,
            plural(self.sms, "SM"),
            self.clock_mhz,
            self.memory_bytes >> 30,
            self.driver
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::h200_properties;

    #[test]
    fn a_device_is_described_in_one_line() {
        assert_eq!(
            h200_properties().to_string(),
            "NVIDIA H200 (GPU 0, compute capability 9.0, 132 SMs at up to 1980 MHz, 139 GiB, driver for CUDA 12.4)"
        );
    }
}
