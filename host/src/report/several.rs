//! The fields of a record for several devices.

use gpu_gemm::text::plural;
use serde::{Deserialize, Serialize};

use super::format::{duration, percent};

/// Several devices that multiplied one product together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Several {
    pub devices: usize,
    /// Devices along the rows of C, and along its columns.
    pub grid: (usize, usize),
    /// Where the matrices were before a timed product: a value of `--start`.
    pub start: String,
    /// How panels were transferred, and why.
    pub link: String,
    /// The bytes that each device received from others in one product.
    pub received_bytes: Vec<usize>,
    /// How many of the devices are different GPUs; 0 for simulators.
    pub gpus: usize,
    /// The median time of the same product on the first device alone; null for simulators, which
    /// run one after the other.
    pub one_device_time_median_s: Option<f64>,
    /// That time over the record's median.
    pub speed_up: Option<f64>,
    /// The speed-up over the number of different GPUs.
    pub efficiency: Option<f64>,
}

impl Several {
    /// A sentence for people.
    pub fn sentence(&self) -> String {
        let (p, q) = self.grid;
        let most = self.received_bytes.iter().max().copied().unwrap_or(0);
        let devices = match (self.gpus, self.devices) {
            (0, devices) => plural(devices, "simulated device"),
            (gpus, devices) if gpus == devices => plural(devices, "GPU"),
            (gpus, devices) => format!("{} on {}", plural(devices, "part"), plural(gpus, "GPU")),
        };
        let alone = self.one_device_time_median_s.map(duration);
        let speed = match (alone, self.speed_up, self.efficiency) {
            (Some(alone), Some(speed_up), Some(efficiency)) => format!(
                "{speed_up:.2} times as fast as one part on one GPU ({alone}), efficiency {}",
                percent(efficiency)
            ),
            _ => "they run one after the other, so that no speed-up is measured".to_string(),
        };
        let bytes = plural(most, "byte");
        let start = match self.start.as_str() {
            "first-b" => ", B on the first",
            "first" => ", from the first and back",
            "host" => ", from host memory and back",
            _ => "",
        };
        format!("{devices}, {p} x {q}{start}: {speed}; each receives up to {bytes}")
    }
}
