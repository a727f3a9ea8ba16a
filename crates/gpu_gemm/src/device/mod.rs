//! Where kernels run: a GPU, a device of OpenCL, or the simulator on this machine's CPU.

pub mod cuda;
pub(crate) mod error;
pub mod opencl;
mod simulator;

use std::fmt;
use std::str::FromStr;

pub use cuda::{CudaDevice, CudaStream, driver, ptx};
pub use error::DeviceError;
pub use opencl::OpenClDevice;
pub use simulator::Simulator;

use gpu_kernels::spec::{Unit, Variant};

use crate::gpu::DeviceFacts;

/// The device to open, as `--device` spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The first GPU if it can be used, otherwise the simulator.
    Auto,
    /// The GPU of this number.
    Cuda(u32),
    /// The device of OpenCL of this number.
    OpenCl(u32),
    /// The simulator.
    Simulator,
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(DeviceChoice::Auto),
            "sim" => Ok(DeviceChoice::Simulator),
            "cuda" => Ok(DeviceChoice::Cuda(0)),
            "opencl" => Ok(DeviceChoice::OpenCl(0)),
            other => {
                let numbered = other.split_once(':').and_then(|(kind, ordinal)| {
                    let ordinal = ordinal.parse().ok()?;
                    match kind {
                        "cuda" => Some(DeviceChoice::Cuda(ordinal)),
                        "opencl" => Some(DeviceChoice::OpenCl(ordinal)),
                        _ => None,
                    }
                });
                numbered.ok_or_else(|| {
                    "a device is auto, sim, cuda, cuda:NUMBER, opencl or opencl:NUMBER".to_string()
                })
            }
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceChoice::Auto => write!(formatter, "auto"),
            DeviceChoice::Cuda(ordinal) => write!(formatter, "cuda:{ordinal}"),
            DeviceChoice::OpenCl(ordinal) => write!(formatter, "opencl:{ordinal}"),
            DeviceChoice::Simulator => write!(formatter, "sim"),
        }
    }
}

/// Where kernels run.
pub enum Device {
    /// On the CPU, one coroutine per GPU thread.
    Simulator(Simulator),
    /// On an NVIDIA GPU, through its driver.
    Cuda(Box<CudaDevice>),
    /// On any device of OpenCL.
    OpenCl(Box<OpenClDevice>),
}

/// A device, and why it was chosen.
pub struct Opened {
    pub device: Device,
    /// A clause such as `chosen with --device`, or a sentence.
    pub reason: String,
}

impl Device {
    /// Opens the requested device.
    ///
    /// # Errors
    ///
    /// The device cannot be used. `Auto` falls back to the simulator only if there is no usable
    /// GPU, not if a GPU misbehaves.
    pub fn open(choice: DeviceChoice) -> Result<Opened, DeviceError> {
        let simulator = |reason| Opened {
            device: Device::Simulator(Simulator::default()),
            reason,
        };
        let gpu = |ordinal, reason| {
            let device = Device::Cuda(Box::new(CudaDevice::open(ordinal)?));
            Ok(Opened { device, reason })
        };
        let chosen = "chosen with --device".to_string();
        match choice {
            DeviceChoice::Simulator => Ok(simulator(chosen)),
            DeviceChoice::Cuda(ordinal) => gpu(ordinal, chosen),
            DeviceChoice::OpenCl(ordinal) => Ok(Opened {
                device: Device::OpenCl(Box::new(OpenClDevice::open(ordinal)?)),
                reason: chosen,
            }),
            DeviceChoice::Auto => match gpu(0, "the first GPU that the driver finds".to_string()) {
                Err(error) if DeviceError::means_no_usable_gpu(&error) => {
                    Ok(simulator(error.to_string()))
                }
                opened => opened,
            },
        }
    }

    /// `cuda`, `opencl` or `simulator`.
    pub fn backend(&self) -> &'static str {
        match self {
            Device::Simulator(_) => "simulator",
            Device::Cuda(_) => "cuda",
            Device::OpenCl(_) => "opencl",
        }
    }

    /// Its name and its resources.
    pub fn description(&self) -> String {
        match self {
            Device::Simulator(simulator) => simulator.description(),
            Device::Cuda(device) => device.properties().to_string(),
            Device::OpenCl(device) => device.properties().to_string(),
        }
    }

    /// Why a kernel cannot run on it, as far as that is known before it is compiled.
    pub fn why_not(&self, variant: &Variant) -> Option<DeviceError> {
        if let Some(error) = self.lacks_tensor_cores(variant) {
            return Some(error);
        }
        match self {
            Device::OpenCl(device) => device.why_not(variant),
            Device::Simulator(_) | Device::Cuda(_) => None,
        }
    }

    /// The error that a kernel for tensor cores is on a device without them. Other kernels run on
    /// all devices, if not always as they were meant to.
    pub fn lacks_tensor_cores(&self, variant: &Variant) -> Option<DeviceError> {
        let needs_them = variant.unit != Unit::CudaCores;
        let lacks_them = needs_them && !self.facts().runs(variant);
        lacks_them.then(|| DeviceError::NoTensorCores {
            kernel: variant.name.to_owned(),
            needed: capability(variant.least_capability),
        })
    }

    /// What plans and predictions need to know about it.
    pub fn facts(&self) -> DeviceFacts {
        match self {
            Device::Simulator(_) => DeviceFacts::simulator(),
            Device::Cuda(device) => DeviceFacts::of(device.properties()),
            Device::OpenCl(device) => device.facts(),
        }
    }
}

/// A compute capability as people write it: 8.0 for 80.
fn capability(times_ten: u32) -> String {
    format!("{}.{}", times_ten / 10, times_ten % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_spelled_as_documented() {
        for (text, choice) in [
            ("auto", DeviceChoice::Auto),
            ("sim", DeviceChoice::Simulator),
            ("cuda", DeviceChoice::Cuda(0)),
            ("cuda:7", DeviceChoice::Cuda(7)),
            ("opencl", DeviceChoice::OpenCl(0)),
            ("opencl:1", DeviceChoice::OpenCl(1)),
        ] {
            assert_eq!(text.parse(), Ok(choice));
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        for text in [
            "", "gpu", "cuda:", "cuda:x", "cuda:-1", "opencl:", "ocl:1", "Sim",
        ] {
            assert!(text.parse::<DeviceChoice>().is_err(), "{text}");
        }
    }
}
