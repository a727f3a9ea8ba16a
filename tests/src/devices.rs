//! The simulator and, where there is one, the GPU and a device of OpenCL.

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

/// Why tests by OpenCL cannot run here, or `None` if they can.
pub fn why_no_opencl() -> Option<&'static str> {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    REASON
        .get_or_init(|| {
            Device::open(DeviceChoice::OpenCl(0))
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
    OpenCl,
}

impl Backend {
    /// Opens the device.
    ///
    /// # Errors
    ///
    /// It cannot be used.
    pub fn open(self) -> Result<Device, String> {
        let choice = match self {
            Backend::Simulator => return Ok(Device::Simulator(Simulator::default())),
            Backend::Gpu => DeviceChoice::Cuda(0),
            Backend::OpenCl => DeviceChoice::OpenCl(0),
        };
        Device::open(choice)
            .map(|opened| opened.device)
            .map_err(|error| error.to_string())
    }
}
