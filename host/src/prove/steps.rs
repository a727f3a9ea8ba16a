//! How long a call will take, in progress steps.

use gpu_gemm::{Device, Launch, PlanError};

use super::gates::GATES;
use super::request::Request;
use crate::measure;

/// Progress steps of [`evaluate_observed`](super::evaluate_observed): on the simulator the CTAs
/// that it will run; on a GPU, on several devices and by OpenCL the results to prove, and the
/// timing; runs of CPU rungs.
pub fn steps(device: &Device, request: &Request) -> Result<u64, PlanError> {
    let simulated = measure::ON_SIMULATOR.most_runs(request.effort);
    let on_simulator = device.is_simulator();
    let mut steps = u64::from(!on_simulator && !request.is_native());
    for rung in &request.rungs {
        steps += match rung.choice() {
            None => GATES as u64 + u64::from(measure::ON_CPU.most_runs(request.effort)),
            Some(choice) if on_simulator => {
                let plan = choice.plan(request.call(choice.variant.types.a), &device.facts())?;
                let ctas: u64 = plan.launches().iter().map(Launch::ctas).sum();
                ctas * plan.repeats() as u64 * (GATES as u64 + u64::from(simulated) - 1)
            }
            Some(_) => GATES as u64,
        };
    }
    Ok(steps)
}
