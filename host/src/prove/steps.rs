//! How long a call will take, in progress steps.

use gpu_gemm::{Device, Launch, PlanError};

use super::gates::GATES;
use super::request::Request;
use crate::measure;

/// Progress steps of [`evaluate_observed`](super::evaluate_observed): on the simulator the CTAs
/// that it will run; on a GPU, on several devices and by OpenCL the results to prove, and the
/// timing; runs of CPU rungs.
///
/// # Errors
///
/// C is too large to launch for.
pub fn steps(device: &Device, request: &Request) -> Result<u64, PlanError> {
    let runs = request.effort.runs.unwrap_or(1).max(1) + request.effort.warmup.unwrap_or(0);
    let mut steps = match device {
        Device::Cuda(_) | Device::OpenCl(_) | Device::Several(_) if !request.is_native() => 1,
        _ => 0,
    };
    for rung in &request.rungs {
        steps += match (rung.choice(), device) {
            (None, _) => GATES as u64 + u64::from(measure::most_cpu_runs(request.effort)),
            (Some(_), Device::Cuda(_) | Device::OpenCl(_) | Device::Several(_)) => GATES as u64,
            (Some(choice), Device::Simulator(_)) => {
                let plan = choice.plan(request.call(choice.variant.types.a), &device.facts())?;
                let ctas: u64 = plan.launches().iter().map(Launch::ctas).sum();
                let ctas = ctas * plan.repeats() as u64;
                ctas * (GATES as u64 + u64::from(runs) - 1)
            }
        };
    }
    Ok(steps)
}
