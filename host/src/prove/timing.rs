//! Times what was proven right.

use gpu_gemm::Device;

use super::candidate::{Candidate, Machine};
use super::error::EvaluateError;
use super::request::Request;
use crate::data::Problem;
use crate::measure::cublas::Cublas;
use crate::measure::gpu::{self, Contender};
use crate::measure::{self, Effort, Timing};
use crate::progress::Progress;
use crate::run::run;
use crate::rung::Element;

/// Times what is right, and returns the yardsticks' times. On the simulator a run that was
/// proven counts as the first.
pub(super) fn time<T: Element>(
    machine: Machine<'_>,
    request: &Request,
    problem: &Problem<T>,
    yardsticks: &[Cublas<'_>],
    candidates: &mut [Candidate],
    progress: &Progress,
) -> Result<Vec<Timing>, EvaluateError> {
    let (native, kernels): (Vec<&mut Candidate>, Vec<&mut Candidate>) = candidates
        .iter_mut()
        .filter(|candidate| candidate.is_right())
        .partition(|candidate| candidate.rung.choice().is_none());
    if request.shape.is_empty() || (native.is_empty() && kernels.is_empty()) {
        return Ok(Vec::new());
    }
    time_native(machine, request.effort, problem, native, progress)?;
    time_kernels(
        machine.device,
        request.effort,
        problem,
        yardsticks,
        kernels,
        progress,
    )
}

/// Times CPU rungs, one after the other.
fn time_native<T: Element>(
    machine: Machine<'_>,
    effort: Effort,
    problem: &Problem<T>,
    candidates: Vec<&mut Candidate>,
    progress: &Progress,
) -> Result<(), EvaluateError> {
    for candidate in candidates {
        let rung = candidate.rung;
        progress.doing(format!("{}: timing", rung.name()));
        let mut steps = measure::most_cpu_runs(effort);
        let timing = measure::on_cpu(effort, candidate.time, || {
            steps = steps.saturating_sub(1);
            let step = || progress.step();
            Ok(rung.run(machine.device, machine.team, problem, &step)?.time)
        })?;
        // The runs that were announced, and would have taken too long.
        (0..steps).for_each(|_| progress.step());
        candidate.timing = Some(timing);
    }
    Ok(())
}

/// Times GPU kernels: on the simulator one after the other, on a GPU alternating with each other
/// and with the yardsticks.
fn time_kernels<T: Element>(
    device: &Device,
    effort: Effort,
    problem: &Problem<T>,
    yardsticks: &[Cublas<'_>],
    candidates: Vec<&mut Candidate>,
    progress: &Progress,
) -> Result<Vec<Timing>, EvaluateError> {
    let kernels = candidates
        .into_iter()
        .filter_map(|candidate| Some((candidate.rung.choice()?, candidate)));
    match device {
        Device::Simulator(_) => {
            for (choice, candidate) in kernels {
                progress.doing(format!("{}: timing", choice.variant.name));
                let cta_done = || progress.step();
                let again = || Ok(run(device, choice, problem, &cta_done)?.time);
                let timing = measure::on_simulator(effort, candidate.time, again);
                candidate.timing = Some(timing?);
            }
            Ok(Vec::new())
        }
        Device::Cuda(device) => {
            progress.doing("timing".to_string());
            let mut kernels: Vec<_> = kernels.collect();
            let contenders: Vec<Contender<'_>> = kernels
                .iter()
                .map(|(choice, _)| Contender::Kernel(*choice))
                .chain(yardsticks.iter().map(Contender::Cublas))
                .collect();
            if contenders.is_empty() {
                return Ok(Vec::new());
            }
            let mut timings = gpu::measure(device, &contenders, problem, effort)?;
            progress.step();
            let yardstick_timings = timings.split_off(kernels.len());
            for ((_, candidate), timing) in kernels.iter_mut().zip(timings) {
                candidate.timing = Some(timing);
            }
            Ok(yardstick_timings)
        }
    }
}
