//! Devices that run kernels: a GPU, an OpenCL device, the simulator on this machine's CPU, or
//! several of these.

pub mod compiled;
mod copies;
pub mod cuda;
#[cfg(feature = "opencl")]
pub mod opencl;
pub mod several;
mod simulator;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::DeviceError;
pub use copies::Copies;
pub use cuda::{CudaDevice, CudaStream, Link, driver, ptx};
#[cfg(feature = "opencl")]
pub use opencl::OpenClDevice;
pub use several::Devices;
pub use simulator::Simulator;

use gpu_kernels::spec::Variant;

use crate::backend::Backend;
use crate::gpu::DeviceFacts;

/// The device to open, as `--device` spells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The first GPU if it can be used, otherwise the simulator.
    Auto,
    /// The GPU with this number.
    Cuda(u32),
    /// The OpenCL device with this number.
    OpenCl(u32),
    /// The simulator.
    Simulator,
    /// All GPUs, joined into one device.
    AllGpus,
    /// GPUs, or simulators, joined into one device; a GPU may count several times.
    Joined(Vec<DeviceChoice>),
}

/// The spellings of devices, for errors.
const SPELLINGS: &str = "a device is auto, sim, cuda, cuda:NUMBER, cuda:all, opencl or \
                         opencl:NUMBER; several are joined into one by +, as in cuda:0+1 or sim+sim";

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((first, others)) = text.split_once('+') {
            return joined(first, others).ok_or_else(|| SPELLINGS.to_string());
        }
        match text {
            "auto" => Ok(DeviceChoice::Auto),
            "sim" | "simulator" => Ok(DeviceChoice::Simulator),
            "cuda" => Ok(DeviceChoice::Cuda(0)),
            "cuda:all" => Ok(DeviceChoice::AllGpus),
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
                numbered.ok_or_else(|| SPELLINGS.to_string())
            }
        }
    }
}

/// Devices that are joined: the first, and the others separated by `+`; a number alone is a GPU.
/// `None` if they are not of one kind, GPUs or simulators.
fn joined(first: &str, others: &str) -> Option<DeviceChoice> {
    let first: DeviceChoice = first.parse().ok()?;
    let mut choices = vec![first];
    for other in others.split('+') {
        let next = match (&choices[0], other.parse()) {
            (DeviceChoice::Cuda(_), Ok(ordinal)) => DeviceChoice::Cuda(ordinal),
            _ => other.parse().ok()?,
        };
        match (&choices[0], &next) {
            (DeviceChoice::Cuda(_), DeviceChoice::Cuda(_))
            | (DeviceChoice::Simulator, DeviceChoice::Simulator) => choices.push(next),
            _ => return None,
        }
    }
    Some(DeviceChoice::Joined(choices))
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceChoice::Auto => write!(formatter, "auto"),
            DeviceChoice::Cuda(ordinal) => write!(formatter, "cuda:{ordinal}"),
            DeviceChoice::OpenCl(ordinal) => write!(formatter, "opencl:{ordinal}"),
            DeviceChoice::Simulator => write!(formatter, "sim"),
            DeviceChoice::AllGpus => write!(formatter, "cuda:all"),
            DeviceChoice::Joined(choices) => {
                let names = choices
                    .iter()
                    .enumerate()
                    .map(|(index, choice)| match choice {
                        DeviceChoice::Cuda(ordinal) if index > 0 => ordinal.to_string(),
                        choice => choice.to_string(),
                    });
                write!(formatter, "{}", names.collect::<Vec<_>>().join("+"))
            }
        }
    }
}

/// A handle of a device that runs kernels: the simulator, a GPU, an OpenCL device, or several of
/// these. Only its methods know which one. Clones are of the same device, which stays open as long
/// as any of them, or a [`Context`](crate::Context) of one.
#[derive(Clone)]
pub struct Device(Kind);

#[derive(Clone)]
enum Kind {
    /// On the CPU, one coroutine per GPU thread.
    Simulator(Simulator),
    /// On an NVIDIA GPU, through its driver.
    Cuda(CudaDevice),
    /// On any OpenCL device.
    #[cfg(feature = "opencl")]
    OpenCl(Arc<OpenClDevice>),
    /// On several GPUs or simulators, each of which computes a part of C.
    Several(Arc<Devices>),
}

impl From<Simulator> for Device {
    fn from(simulator: Simulator) -> Device {
        Device(Kind::Simulator(simulator))
    }
}

impl From<CudaDevice> for Device {
    fn from(gpu: CudaDevice) -> Device {
        Device(Kind::Cuda(gpu))
    }
}

#[cfg(feature = "opencl")]
impl From<OpenClDevice> for Device {
    fn from(device: OpenClDevice) -> Device {
        Device(Kind::OpenCl(Arc::new(device)))
    }
}

impl From<Devices> for Device {
    fn from(devices: Devices) -> Device {
        Device(Kind::Several(Arc::new(devices)))
    }
}

/// A device, and the reason why it was chosen.
pub struct Opened {
    pub device: Device,
    /// A clause such as `chosen with --device`, or a sentence.
    pub reason: String,
}

impl Device {
    /// The simulator, which every machine has.
    pub fn simulator() -> Device {
        Simulator::default().into()
    }

    /// Opens the requested device.
    ///
    /// # Errors
    ///
    /// The device cannot be used. `Auto` falls back to the simulator only if there is no usable
    /// GPU, not if a GPU misbehaves.
    pub fn open(choice: DeviceChoice) -> Result<Opened, DeviceError> {
        let simulator = |reason| Opened {
            device: Device::simulator(),
            reason,
        };
        let gpu = |ordinal, reason| {
            let device = CudaDevice::open(ordinal)?.into();
            Ok(Opened { device, reason })
        };
        let chosen = "chosen with --device".to_string();
        match choice {
            DeviceChoice::Simulator => Ok(simulator(chosen)),
            DeviceChoice::Cuda(ordinal) => gpu(ordinal, chosen),
            #[cfg(not(feature = "opencl"))]
            DeviceChoice::OpenCl(_) => Err(DeviceError::NoOpenClSource {
                reason: "it is one without the feature `opencl` of gpu_gemm.".to_string(),
            }),
            #[cfg(feature = "opencl")]
            DeviceChoice::OpenCl(ordinal) => Ok(Opened {
                device: OpenClDevice::open(ordinal)?.into(),
                reason: chosen,
            }),
            DeviceChoice::AllGpus => {
                let count = driver::probe()?.len() as u32;
                let all: Vec<DeviceChoice> = (0..count).map(DeviceChoice::Cuda).collect();
                Ok(Opened {
                    device: Device::join(&all)?,
                    reason: chosen,
                })
            }
            DeviceChoice::Joined(choices) => Ok(Opened {
                device: Device::join(&choices)?,
                reason: chosen,
            }),
            DeviceChoice::Auto => match gpu(0, "the first GPU that the driver finds".to_string()) {
                Err(error) if DeviceError::means_no_usable_gpu(&error) => Ok(simulator(
                    DeviceError::without_simulator(&error.to_string()),
                )),
                opened => opened,
            },
        }
    }

    /// Opens these devices and joins them into one.
    ///
    /// # Errors
    ///
    /// A device, which the error names, cannot be used; or they are not of one kind.
    pub fn join(choices: &[DeviceChoice]) -> Result<Device, DeviceError> {
        let mut members = Vec::with_capacity(choices.len());
        for (index, choice) in choices.iter().enumerate() {
            let opened = Device::open(choice.clone());
            let named = |error| DeviceError::of_device(index, choice.to_string(), error);
            members.push(opened.map_err(named)?.device);
        }
        Ok(Devices::of(members)?.into())
    }

    /// This handle, and its later clones, with your own kernels ([`gpu_kernels::fused!`]), as PTX
    /// for several architectures: a GPU takes the newest that it runs. Compute capability 9.0 needs
    /// that for `compute_90a`. The simulator runs kernels as functions, and ignores PTX; so does
    /// OpenCL, which has no epilogues.
    ///
    /// # Errors
    ///
    /// No PTX is for this GPU, one of its kernels has the name of another on this device, or
    /// several devices are joined.
    ///
    /// # Safety
    ///
    /// Each entry point is the compiled form of the Rust function of that name in this program.
    pub unsafe fn with_kernels(mut self, modules: &[&'static str]) -> Result<Device, DeviceError> {
        match &mut self.0 {
            // SAFETY: as the caller vouches.
            Kind::Cuda(device) => unsafe { device.add_kernels(modules)? },
            Kind::Several(_) => return Err(DeviceError::SeveralForOne),
            _ => (),
        }
        Ok(self)
    }

    /// The backend that allocates, copies and launches on it; for a GPU, on the device's own
    /// stream. `cta_done` is called after each CTA on the simulator, from any thread.
    ///
    /// # Errors
    ///
    /// There are several devices.
    pub fn as_backend<'a>(
        &self,
        cta_done: &'a (dyn Fn() + Sync),
    ) -> Result<Box<dyn Backend + 'a>, DeviceError> {
        match &self.0 {
            Kind::Simulator(simulator) => Ok(Box::new(simulator.observed(cta_done))),
            Kind::Cuda(device) => Ok(Box::new(CudaStream::of(device))),
            #[cfg(feature = "opencl")]
            Kind::OpenCl(device) => Ok(Box::new(Arc::clone(device))),
            Kind::Several(_) => Err(DeviceError::SeveralForOne),
        }
    }

    /// The device itself, or the first of several.
    pub fn first(&self) -> &Device {
        self.several().map_or(self, |devices| devices.device(0))
    }

    /// The GPU, or the first of several; `None` for other devices.
    pub fn gpu(&self) -> Option<&CudaDevice> {
        self.first().one_gpu()
    }

    /// The GPU, if it is a single one.
    pub fn one_gpu(&self) -> Option<&CudaDevice> {
        match &self.0 {
            Kind::Cuda(gpu) => Some(gpu),
            _ => None,
        }
    }

    /// The joined devices, if there are several.
    pub fn several(&self) -> Option<&Devices> {
        match &self.0 {
            Kind::Several(devices) => Some(devices),
            _ => None,
        }
    }

    /// Whether it is a single simulator.
    pub fn is_simulator(&self) -> bool {
        matches!(self.0, Kind::Simulator(_))
    }

    /// `cuda`, `opencl` or `simulator`.
    pub fn backend(&self) -> &'static str {
        match &self.0 {
            Kind::Simulator(_) => "simulator",
            Kind::Cuda(_) => "cuda",
            #[cfg(feature = "opencl")]
            Kind::OpenCl(_) => "opencl",
            Kind::Several(_) if self.gpu().is_some() => "cuda",
            Kind::Several(_) => "simulator",
        }
    }

    /// Its name and its resources.
    pub fn description(&self) -> String {
        match &self.0 {
            Kind::Simulator(simulator) => simulator.description(),
            Kind::Cuda(device) => device.properties().to_string(),
            #[cfg(feature = "opencl")]
            Kind::OpenCl(device) => device.properties().to_string(),
            Kind::Several(devices) => devices.description(),
        }
    }

    /// Why a kernel cannot run on it, as far as that is known before it is compiled.
    pub fn why_not(&self, variant: &Variant) -> Option<DeviceError> {
        if let Some(error) = self.lacks_tensor_cores(variant) {
            return Some(error);
        }
        match &self.0 {
            #[cfg(feature = "opencl")]
            Kind::OpenCl(device) => device.why_not(variant),
            _ => None,
        }
    }

    /// The error for a kernel for tensor cores on a device without them. Other kernels run on all
    /// devices, if not always as intended.
    pub fn lacks_tensor_cores(&self, variant: &Variant) -> Option<DeviceError> {
        DeviceError::lacks_tensor_cores(&self.facts(), variant)
    }

    /// The facts for plans and predictions; for several devices, those of the first.
    pub fn facts(&self) -> DeviceFacts {
        match &self.0 {
            Kind::Several(devices) => devices.device(0).facts(),
            Kind::Simulator(_) => DeviceFacts::simulator(),
            Kind::Cuda(device) => DeviceFacts::of(device.properties()),
            #[cfg(feature = "opencl")]
            Kind::OpenCl(device) => device.facts(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_spelled_as_documented() {
        for (text, choice) in [
            ("auto", DeviceChoice::Auto),
            ("sim", DeviceChoice::Simulator),
            ("simulator", DeviceChoice::Simulator),
            ("cuda", DeviceChoice::Cuda(0)),
            ("cuda:7", DeviceChoice::Cuda(7)),
            ("opencl", DeviceChoice::OpenCl(0)),
            ("opencl:1", DeviceChoice::OpenCl(1)),
            ("cuda:all", DeviceChoice::AllGpus),
            (
                "cuda:0+0+3",
                DeviceChoice::Joined([0, 0, 3].map(DeviceChoice::Cuda).into()),
            ),
            (
                "sim+sim",
                DeviceChoice::Joined(vec![DeviceChoice::Simulator; 2]),
            ),
        ] {
            assert_eq!(text.parse(), Ok(choice.clone()));
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        let joined: DeviceChoice = "cuda:0+cuda:1".parse().unwrap();
        assert_eq!(joined.to_string(), "cuda:0+1");
        let wrong = " sim+ +sim sim+1 sim+cuda auto+auto cuda:all+0 gpu cuda:x cuda:-1 ocl:1 Sim";
        for text in wrong.split(' ') {
            assert!(text.parse::<DeviceChoice>().is_err(), "{text}");
        }
    }
}
