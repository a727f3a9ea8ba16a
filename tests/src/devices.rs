//! The simulator and, where there is one, the GPU.

use std::sync::OnceLock;

use gpu_gemm::{Device, DeviceChoice, Simulator};

/// Why tests on a GPU cannot run here, or `None` if they can.
pub fn why_no_gpu() -> Option<&'static str> {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    REASON
        .get_or_init(|| {
            Device::open(DeviceChoice::Cuda(0))
                .err()
                .map(|error| error.to_string())
        })
        .as_deref()
}

/// Where a test runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Simulator,
    Gpu,
}

impl Backend {
    /// Opens the device.
    ///
    /// # Errors
    ///
    /// It cannot be used.
    pub fn open(self) -> Result<Device, String> {
        match self {
            Backend::Simulator => Ok(Device::Simulator(Simulator::default())),
            Backend::Gpu => Device::open(DeviceChoice::Cuda(0))
                .map(|opened| opened.device)
                .map_err(|error| error.to_string()),
        }
    }
}
