//! What is known of GPUs beyond what the driver says: peaks, limits, and data sheets of some that are not here.

pub mod capability;
pub mod data_sheets;
pub mod occupancy;

use crate::device::driver::Properties;
use crate::element::DataType;

pub use capability::Capability;
pub use occupancy::Occupancy;

/// A GPU, as far as speed and occupancy go.
#[derive(Clone, Debug, PartialEq)]
pub struct Gpu {
    pub name: String,
    pub capability: &'static Capability,
    pub multiprocessors: u32,
    /// The highest clock of the multiprocessors.
    pub clock_mhz: u32,
    pub bandwidth_bytes_per_s: f64,
}

impl Gpu {
    /// The GPU that the driver describes, if its compute capability is known here.
    pub fn of(properties: &Properties) -> Option<Gpu> {
        Some(Gpu {
            name: properties.name.clone(),
            capability: Capability::of(properties.capability)?,
            multiprocessors: u32::try_from(properties.multiprocessors).ok()?,
            clock_mhz: u32::try_from(properties.clock_mhz).ok()?,
            bandwidth_bytes_per_s: properties.bandwidth_bytes_per_s,
        })
    }

    /// Additions and multiplications a second without tensor cores: every lane of every multiprocessor starts a fused
    /// multiply-add, which is two of them, each cycle of the highest clock.
    pub fn peak(&self, data_type: DataType) -> f64 {
        let lanes = self.capability.lanes(data_type);
        f64::from(self.multiprocessors) * f64::from(lanes) * 2.0 * f64::from(self.clock_mhz) * 1e6
    }
}
