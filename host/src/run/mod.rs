//! A kernel on a problem, once: each buffer between guard bands, and what the kernel wrote where
//! it must not is an error.

pub mod error;
mod gpu;
pub mod guard;
mod layout;
mod opencl;
mod pitch;
mod pitched;
pub mod several;
mod simulated;
mod simulator;
mod uploaded;

use gpu_gemm::{Choice, Device};

pub use error::{RunError, Trespass};
pub use layout::Run;
pub(crate) use layout::{Placed, bindings, call};
pub(crate) use pitch::Rows;
pub(crate) use pitched::{as_given, pitched};
pub(crate) use uploaded::placed_at;

use crate::data::{Number, Problem};

/// Runs the chosen kernel on `problem` and returns C. Each buffer lies between guard bands; what
/// the kernel wrote into them, into A, into B or between the rows of C is an error. An empty C
/// launches nothing. `cta_done` is called after each CTA where that can be seen: on the
/// simulator, from any thread; by OpenCL it is called once.
///
/// # Errors
///
/// The kernel does not multiply this type, the device fails, or the kernel writes where it must
/// not.
pub fn run<T: Number>(
    device: &Device,
    choice: Choice,
    problem: &Problem<T>,
    cta_done: &(dyn Fn() + Sync),
) -> Result<Run<T>, RunError> {
    let (multiplies, asked) = (choice.variant.types.data_type(), problem.data_type());
    if multiplies != asked {
        return Err(RunError::WrongType {
            kernel: choice.variant.name.to_string(),
            multiplies: vec![multiplies],
            asked,
        });
    }
    if let Some(error) = device.lacks_tensor_cores(choice.variant) {
        return Err(error.into());
    }
    match device {
        Device::Simulator(simulator) => simulator::run(simulator, choice, problem, cta_done),
        Device::Cuda(device) => gpu::run(device, choice, problem),
        Device::Several(devices) => several::run(devices, Some(choice), problem, cta_done),
        Device::OpenCl(device) => {
            let run = opencl::run(device, choice, problem)?;
            cta_done();
            Ok(run)
        }
    }
}
