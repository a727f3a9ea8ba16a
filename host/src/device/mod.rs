//! Where kernels run: a GPU, or the simulator on this machine's CPU.

mod ahead;
pub mod cublas;
pub mod cuda;
pub mod driver;
pub mod error;
pub mod guard;
pub mod launch;
mod pitch;
pub(crate) mod planned;
pub mod ptx;
pub mod simulator;
pub(crate) mod uploaded;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use gpu_kernels::spec::Variant;

pub use cuda::CudaDevice;
pub use error::{DeviceError, Trespass};
pub use simulator::Simulator;

use crate::blas::{Call, Plan, Processor, Sharing, Transpose};
use crate::element::{DataType, Element};
use crate::problem::{Matrix, Problem, Shape};

/// A device that was asked for, as `--device` spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The first GPU if it can be used, else the simulator.
    Auto,
    /// The GPU of this number.
    Cuda(u32),
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
            other => other
                .strip_prefix("cuda:")
                .and_then(|ordinal| ordinal.parse().ok())
                .map(DeviceChoice::Cuda)
                .ok_or_else(|| "a device is auto, sim, cuda or cuda:NUMBER".to_string()),
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceChoice::Auto => write!(formatter, "auto"),
            DeviceChoice::Cuda(ordinal) => write!(formatter, "cuda:{ordinal}"),
            DeviceChoice::Simulator => write!(formatter, "sim"),
        }
    }
}

/// Where kernels run.
pub enum Device {
    /// On the CPU, one coroutine a GPU thread.
    Simulator(Simulator),
    /// On an NVIDIA GPU, through its driver.
    Cuda(Box<CudaDevice>),
}

/// A device, and why it was taken.
pub struct Opened {
    pub device: Device,
    /// A clause such as `asked for`.
    pub reason: String,
}

/// The result of a kernel.
#[derive(Debug)]
pub struct Run<T> {
    /// C as the kernel left it.
    pub c: Matrix<T>,
    /// From the first launch's start to the last one's end.
    pub time: Duration,
}

impl Device {
    /// Opens the device that was asked for.
    ///
    /// # Errors
    ///
    /// It cannot be used. `Auto` falls back to the simulator only where there is no usable GPU, and not where one
    /// misbehaves.
    pub fn open(choice: DeviceChoice) -> Result<Opened, DeviceError> {
        let asked = "asked for with --device".to_string();
        match choice {
            DeviceChoice::Simulator => Ok(Opened {
                device: Device::Simulator(Simulator::default()),
                reason: asked,
            }),
            DeviceChoice::Cuda(ordinal) => Ok(Opened {
                device: Device::Cuda(Box::new(CudaDevice::open(ordinal)?)),
                reason: asked,
            }),
            DeviceChoice::Auto => match CudaDevice::open(0) {
                Ok(device) => Ok(Opened {
                    device: Device::Cuda(Box::new(device)),
                    reason: "the first GPU that the driver finds".to_string(),
                }),
                Err(error) if error.means_no_usable_gpu() => Ok(Opened {
                    device: Device::Simulator(Simulator::default()),
                    reason: error.to_string(),
                }),
                Err(error) => Err(error),
            },
        }
    }

    /// `cuda` or `simulator`.
    pub fn backend(&self) -> &'static str {
        match self {
            Device::Simulator(_) => "simulator",
            Device::Cuda(_) => "cuda",
        }
    }

    /// Its name and what there is of it.
    pub fn description(&self) -> String {
        match self {
            Device::Simulator(simulator) => simulator.description(),
            Device::Cuda(device) => device.properties().to_string(),
        }
    }

    /// What [`Device::run`] launches for compact matrices of this shape. Where alpha is 0, `shape.k` is, too.
    ///
    /// # Errors
    ///
    /// The copies that it would take are larger than any memory, or the device fails.
    pub fn plan<'v>(&self, variant: &'v Variant, shape: Shape) -> Result<Plan<'v>, DeviceError> {
        self.plan_shared(variant, None, shape)
    }

    /// [`Device::plan`], with the steps of a kernel that streams shared as `sharing` says, if it says.
    ///
    /// # Errors
    ///
    /// As [`Device::plan`].
    pub fn plan_shared<'v>(
        &self,
        variant: &'v Variant,
        sharing: Option<Sharing>,
        shape: Shape,
    ) -> Result<Plan<'v>, DeviceError> {
        let call = Call::compact(shape, Transpose::No, Transpose::No);
        planned::plan(variant, call, sharing, || self.processor())
    }

    /// What plans need to know of it.
    ///
    /// # Errors
    ///
    /// The device fails.
    pub fn processor(&self) -> Result<Processor, DeviceError> {
        match self {
            Device::Simulator(_) => Ok(Processor::simulator()),
            Device::Cuda(device) => {
                device.enter()?;
                device.processor().cloned()
            }
        }
    }

    /// Runs `variant` on `problem` and returns C. Each buffer lies between guard bands; what the kernel wrote into them,
    /// into A, into B or between the rows of C is an error. An empty C launches nothing.
    ///
    /// # Errors
    ///
    /// The kernel does not multiply this type, the device fails, or the kernel writes where it must not.
    pub fn run<T: Element>(
        &self,
        variant: &Variant,
        problem: &Problem<T>,
    ) -> Result<Run<T>, DeviceError> {
        self.run_observed(variant, problem, &|| ())
    }

    /// [`Device::run`], calling `block_done` after each block where that can be seen: on the simulator, from any thread.
    ///
    /// # Errors
    ///
    /// As [`Device::run`].
    pub fn run_observed<T: Element>(
        &self,
        variant: &Variant,
        problem: &Problem<T>,
        block_done: &(dyn Fn() + Sync),
    ) -> Result<Run<T>, DeviceError> {
        self.run_shared(variant, None, problem, block_done)
    }

    /// [`Device::run_observed`], with the steps of a kernel that streams shared as `sharing` says, if it says.
    ///
    /// # Errors
    ///
    /// As [`Device::run`].
    pub fn run_shared<T: Element>(
        &self,
        variant: &Variant,
        sharing: Option<Sharing>,
        problem: &Problem<T>,
        block_done: &(dyn Fn() + Sync),
    ) -> Result<Run<T>, DeviceError> {
        if T::function(variant).is_none() {
            return Err(DeviceError::WrongType {
                kernel: variant.name.to_string(),
                multiplies: vec![DataType::of(variant)],
                asked: T::TYPE,
            });
        }
        match self {
            Device::Simulator(simulator) => simulator.run(variant, sharing, problem, block_done),
            Device::Cuda(device) => device.run(variant, sharing, problem),
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
            ("cuda", DeviceChoice::Cuda(0)),
            ("cuda:7", DeviceChoice::Cuda(7)),
        ] {
            assert_eq!(text.parse(), Ok(choice));
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        for text in ["", "gpu", "cuda:", "cuda:x", "cuda:-1", "Sim"] {
            assert!(text.parse::<DeviceChoice>().is_err(), "{text}");
        }
    }
}
