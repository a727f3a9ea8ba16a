//! Times what was proven right, and checks what was timed: the C of a launch made as those that
//! were timed has the bits of the C that was proven, or passes the second gate itself. So does
//! cuBLAS's.

use std::time::{Duration, Instant};

use gpu_gemm::gpu_kernels::spec::Tile;
use gpu_gemm::{Choice, CudaDevice, Device, Devices, OpenClDevice};

use super::baseline::Yardsticks;
use super::candidate::{Candidate, Machine};
use super::error::EvaluateError;
use super::gates::Judge;
use super::request::Request;
use crate::data::Matrix;
use crate::measure::clblast::ClBlast;
use crate::measure::cublas::{Cublas, Precision};
use crate::measure::cublas_xt::Beside;
use crate::measure::gpu::{self, Contender};
use crate::measure::limits::Limits;
use crate::measure::nvml::GpuState;
use crate::measure::{self, Effort, Timing, opencl, several};
use crate::progress::Progress;
use crate::report::Several;
use crate::run::run;
use crate::rung::{Element, Rung};
use crate::verify::{ErrorModel, Errors, Failure, Proof};

/// What is known of one yardstick.
pub(super) struct OfYardstick {
    pub name: String,
    pub timing: Timing,
    /// Of the C that its timed launches left, by the comparison that proves kernels right.
    pub errors: Option<Errors>,
}

impl OfYardstick {
    fn each<'a>(
        names: impl Iterator<Item = &'a str>,
        timings: Vec<Timing>,
        errors: Vec<Option<Errors>>,
    ) -> Vec<OfYardstick> {
        let all = names.zip(timings).zip(errors);
        all.map(|((name, timing), errors)| OfYardstick {
            name: name.to_string(),
            timing,
            errors,
        })
        .collect()
    }
}

/// The yardsticks, and what the GPU did.
#[derive(Default)]
pub(super) struct Compared {
    pub yardsticks: Vec<OfYardstick>,
    pub state: Option<GpuState>,
}

/// Times what is right, and returns what is known of the yardsticks and what the GPU did. On the
/// simulator a run that was proven counts as the first.
pub(super) fn time<T: Element>(
    machine: Machine<'_>,
    request: &Request,
    judge: &Judge<T>,
    yardsticks: &Yardsticks<'_>,
    candidates: &mut [Candidate],
    progress: &Progress,
) -> Result<Compared, EvaluateError> {
    let (native, kernels): (Vec<&mut Candidate>, Vec<&mut Candidate>) = candidates
        .iter_mut()
        .filter(|candidate| candidate.is_right())
        .partition(|candidate| candidate.rung.choice().is_none());
    if request.shape.is_empty() || (native.is_empty() && kernels.is_empty()) {
        return Ok(Compared::default());
    }
    let effort = request.effort;
    for candidate in native {
        time_native(machine, effort, judge, candidate, progress)?;
    }
    let kernels = kernels
        .into_iter()
        .filter_map(|candidate| Some((candidate.rung.choice()?, candidate)));
    match machine.device {
        Device::Simulator(_) => {
            for (choice, candidate) in kernels {
                time_simulated(machine, effort, judge, choice, candidate, progress)?;
            }
            Ok(Compared::default())
        }
        Device::OpenCl(device) => {
            let mut kernels: Vec<_> = kernels.collect();
            let yardstick = yardsticks.clblast();
            time_by_opencl(
                machine,
                device,
                effort,
                judge,
                yardstick,
                &mut kernels,
                progress,
            )
        }
        Device::Several(devices) => {
            let beside = yardsticks.cublas_xt().zip(Some(&judge.problem));
            let beside = beside.map(|(cublas, problem)| Beside::new(cublas, problem));
            let mut beside = beside.transpose()?;
            for (choice, candidate) in kernels {
                let between = &mut || beside.iter_mut().for_each(Beside::run);
                let task = (request, judge, progress);
                time_several(machine, devices, task, choice, candidate, between)?;
            }
            progress.step();
            let compared = beside.map(|beside| end_of_cublas_xt(beside, yardsticks, judge));
            Ok(compared.transpose()?.unwrap_or_default())
        }
        Device::Cuda(device) => {
            let mut kernels: Vec<_> = kernels.collect();
            time_on_gpu(
                machine,
                device,
                effort,
                judge,
                yardsticks.cublas(),
                &mut kernels,
                progress,
            )
        }
    }
}

/// Times a CPU rung by the clock on the wall.
fn time_native<T: Element>(
    machine: Machine<'_>,
    effort: Effort,
    judge: &Judge<T>,
    candidate: &mut Candidate,
    progress: &Progress,
) -> Result<(), EvaluateError> {
    let rung = candidate.rung;
    progress.doing(format!("{}: timing", rung.name()));
    let mut steps = measure::most_cpu_runs(effort);
    let mut timed = Timed::new(Duration::ZERO);
    let timing = measure::on_cpu(effort, candidate.time, || {
        steps = steps.saturating_sub(1);
        let step = || progress.step();
        let run = rung.run(machine.device, machine.team, &judge.problem, &step)?;
        Ok(timed.keep(run.c, run.time))
    })?;
    // The runs that were announced, and would have taken too long.
    (0..steps).for_each(|_| progress.step());
    timed.accept(machine, judge, candidate, timing)
}

/// Times a kernel on the simulator.
fn time_simulated<T: Element>(
    machine: Machine<'_>,
    effort: Effort,
    judge: &Judge<T>,
    choice: Choice,
    candidate: &mut Candidate,
    progress: &Progress,
) -> Result<(), EvaluateError> {
    progress.doing(format!("{}: timing", choice.variant.name));
    let mut timed = Timed::new(candidate.time);
    let timing = measure::on_simulator(effort, candidate.time, || {
        let step = || progress.step();
        let run = run(machine.device, choice, &judge.problem, &step)?;
        Ok(timed.keep(run.c, run.time))
    })?;
    timed.accept(machine, judge, candidate, timing)
}

/// The times of cublasXt, if its result is right.
fn end_of_cublas_xt<T: Element>(
    beside: Beside<'_, T>,
    yardsticks: &Yardsticks<'_>,
    judge: &Judge<T>,
) -> Result<Compared, EvaluateError> {
    let Some((name, timing, c)) = beside.end()? else {
        return Ok(Compared::default());
    };
    match judge_yardstick(judge, ErrorModel::Elementwise, &c) {
        Ok(proof) => Ok(Compared {
            yardsticks: vec![OfYardstick {
                name,
                timing,
                errors: proof.errors,
            }],
            state: None,
        }),
        Err(failure) => Err(EvaluateError::WrongYardstick {
            name,
            library: format!(
                "cuBLAS {}",
                yardsticks.description_of_cublas().unwrap_or_default()
            ),
            failure,
        }),
    }
}

/// Times a kernel on several devices, and on the first of them alone. `between` is called after each
/// run on all.
fn time_several<T: Element>(
    machine: Machine<'_>,
    devices: &Devices,
    (request, judge, progress): (&Request, &Judge<T>, &Progress),
    choice: Choice,
    candidate: &mut Candidate,
    between: &mut dyn FnMut(),
) -> Result<(), EvaluateError> {
    progress.doing(format!("{}: timing", candidate.rung.name()));
    let choice = Some(choice).filter(|_| !matches!(candidate.rung, Rung::Auto(_)));
    let mut timed = Timed::new(Duration::ZERO);
    let (origin, effort) = (request.origin, request.effort);
    let scaled = several::measure(devices, choice, &judge.problem, origin, effort, between)?;
    timed.c = Some(scaled.c);
    let all = scaled.timing.median();
    let alone = scaled.alone.as_ref().map(Timing::median);
    let (gpus, speed_up) = (devices.gpus(), alone.map(|alone| alone / all));
    candidate.several = Some(Several {
        devices: devices.count(),
        grid: scaled.grid,
        start: origin.name().to_string(),
        link: devices.link_description().to_string(),
        received_bytes: scaled.received,
        gpus,
        one_device_time_median_s: alone,
        speed_up,
        efficiency: speed_up.map(|speed_up| speed_up / gpus as f64),
    });
    timed.accept(machine, judge, candidate, scaled.timing)
}

/// Runs by the clock on the wall, one after the other.
struct Timed<T> {
    /// The result of the last, if there was one.
    c: Option<Matrix<T>>,
    began: Instant,
    /// What an earlier run took that counts.
    before: Duration,
}

impl<T: Element> Timed<T> {
    fn new(before: Duration) -> Timed<T> {
        Timed {
            c: None,
            began: Instant::now(),
            before,
        }
    }

    fn keep(&mut self, c: Matrix<T>, time: Duration) -> Duration {
        self.c = Some(c);
        time
    }

    /// Takes the times if they can be true and the last result is right.
    fn accept(
        self,
        machine: Machine<'_>,
        judge: &Judge<T>,
        candidate: &mut Candidate,
        timing: Timing,
    ) -> Result<(), EvaluateError> {
        let limits = Limits {
            peak_flops_per_s: None,
            bandwidth_bytes_per_s: 0.0,
            elapsed: self.began.elapsed() + self.before,
        };
        let name = candidate.rung.name();
        limits
            .check(name, &judge.problem, &timing)
            .map_err(EvaluateError::Implausible)?;
        candidate.timing = Some(timing);
        if let Some(c) = self.c {
            check_timed(machine, judge, candidate, &c);
        }
        Ok(())
    }
}

/// Compares the result of a timed run with the one that was proven; if it is wrong, it has no
/// times.
fn check_timed<T: Element>(
    machine: Machine<'_>,
    judge: &Judge<T>,
    candidate: &mut Candidate,
    c: &Matrix<T>,
) {
    if candidate.proven_bits == Some(c.hash_of_bits()) {
        let statement = "a launch like the timed ones gives the same bits".to_string();
        candidate.judge(Ok(Proof::exact("timed", statement)));
        return;
    }
    let model = candidate.rung.error_model(machine.team);
    match judge.judge(c, candidate.rung.tile(), model) {
        Ok(proof) => candidate.judge(Ok(Proof {
            gate: "timed",
            statement: format!("of a launch like the timed ones, {}", proof.statement),
            ..proof
        })),
        Err(failure) => {
            candidate.failure = Some(Failure::Timed(Box::new(failure)));
            candidate.timing = None;
            candidate.several = None;
        }
    }
}

/// Times GPU kernels, alternating with each other and with the yardsticks, whose times it returns,
/// with what the GPU did.
fn time_on_gpu<T: Element>(
    machine: Machine<'_>,
    device: &CudaDevice,
    effort: Effort,
    judge: &Judge<T>,
    yardsticks: &[Cublas<'_>],
    kernels: &mut [(Choice, &mut Candidate)],
    progress: &Progress,
) -> Result<Compared, EvaluateError> {
    progress.doing("timing".to_string());
    let contenders: Vec<Contender<'_>> = kernels
        .iter()
        .map(|(choice, _)| Contender::Kernel(*choice))
        .chain(yardsticks.iter().map(Contender::Cublas))
        .collect();
    if contenders.is_empty() {
        return Ok(Compared::default());
    }
    let mut wrong_yardstick = None;
    let mut errors = vec![None; yardsticks.len()];
    let mut check = |index: usize, c: Matrix<T>| match kernels.get_mut(index) {
        Some((_, candidate)) => check_timed(machine, judge, candidate, &c),
        None => {
            let index = index - kernels.len();
            let yardstick = &yardsticks[index];
            let model = match yardstick.precision() {
                Precision::Single | Precision::Double => ErrorModel::Elementwise,
                Precision::Tf32 => ErrorModel::Tf32,
                Precision::Bf16 | Precision::F16 | Precision::Bf16F32 | Precision::F16F32 => {
                    ErrorModel::Truncated
                }
            };
            match judge_yardstick(judge, model, &c) {
                Ok(proof) => errors[index] = proof.errors,
                Err(failure) => {
                    wrong_yardstick.get_or_insert((yardstick, failure));
                }
            }
        }
    };
    let mut measured = gpu::measure(device, &contenders, &judge.problem, effort, &mut check)?;
    progress.step();
    if let Some((yardstick, failure)) = wrong_yardstick {
        return Err(EvaluateError::WrongYardstick {
            name: yardstick.precision().name().to_string(),
            library: format!("cuBLAS {}", yardstick.description()),
            failure,
        });
    }
    let of_yardsticks = measured.timings.split_off(kernels.len());
    for ((_, candidate), timing) in kernels.iter_mut().zip(measured.timings) {
        candidate.timing = Some(timing).filter(|_| candidate.is_right());
    }
    let names = yardsticks.iter().map(|one| one.precision().name());
    Ok(Compared {
        yardsticks: OfYardstick::each(names, of_yardsticks, errors),
        state: measured.state,
    })
}

/// Times kernels and, if there is one, CLBlast, whose C must be right, too. Returns CLBlast's
/// times.
fn time_by_opencl<T: Element>(
    machine: Machine<'_>,
    device: &OpenClDevice,
    effort: Effort,
    judge: &Judge<T>,
    yardstick: Option<&ClBlast<'_>>,
    kernels: &mut [(Choice, &mut Candidate)],
    progress: &Progress,
) -> Result<Compared, EvaluateError> {
    if kernels.is_empty() && yardstick.is_none() {
        return Ok(Compared::default());
    }
    progress.doing("timing".to_string());
    let chosen = kernels.iter().map(|(choice, _)| *choice);
    let contenders: Vec<opencl::Contender<'_>> = chosen
        .map(opencl::Contender::Kernel)
        .chain(yardstick.map(opencl::Contender::ClBlast))
        .collect();
    let (mut wrong, mut errors) = (None, None);
    let mut check = |index: usize, c: Matrix<T>| match kernels.get_mut(index) {
        Some((_, candidate)) => check_timed(machine, judge, candidate, &c),
        None => match judge_yardstick(judge, ErrorModel::Elementwise, &c) {
            Ok(proof) => errors = proof.errors,
            Err(failure) => wrong = Some(failure),
        },
    };
    let mut timings = opencl::measure(device, &contenders, &judge.problem, effort, &mut check)?;
    progress.step();
    if let Some((failure, yardstick)) = wrong.zip(yardstick) {
        return Err(EvaluateError::WrongYardstick {
            name: yardstick.name().to_string(),
            library: format!("CLBlast {}", yardstick.description()),
            failure,
        });
    }
    let of_yardsticks = timings.split_off(kernels.len());
    for ((_, candidate), timing) in kernels.iter_mut().zip(timings) {
        candidate.timing = Some(timing).filter(|_| candidate.is_right());
    }
    let names = yardstick.into_iter().map(ClBlast::name);
    Ok(Compared {
        yardsticks: OfYardstick::each(names, of_yardsticks, vec![errors]),
        state: None,
    })
}

/// Compares a library's C as that of a kernel, on tensor cores with what these may round.
fn judge_yardstick<T: Element>(
    judge: &Judge<T>,
    model: ErrorModel,
    c: &Matrix<T>,
) -> Result<Proof, Failure> {
    /// How it cuts C is not known.
    const TILE: Tile = Tile {
        m: 128,
        n: 128,
        k: 32,
    };
    judge.judge(c, TILE, model)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::{self, Settings, Team};
    use crate::prove::gates;
    use gpu_gemm::{DeviceChoice, ElementType, Shape};

    #[test]
    fn runs_of_a_cpu_rung_that_would_take_too_long_are_steps_that_are_done() {
        let device = Device::open(DeviceChoice::Simulator).unwrap().device;
        let team = Team::new(Settings::default()).unwrap();
        let machine = Machine {
            device: &device,
            team: &team,
        };
        let rung = Rung::Cpu(&cpu::ijk::RUNG);
        let request = Request::new(vec![rung], ElementType::F32, Shape::new(4, 5, 6), 1);
        for (seconds, runs) in [(60, 3), (0, 10)] {
            let mut candidates = [Candidate::new(rung)];
            let proving = Progress::start(0);
            let (scalars, all) = ((1.0, 0.0), &mut candidates);
            let judge = gates::prove::<f32>(machine, &request, scalars, None, all, &proving);
            let [mut candidate] = candidates;
            candidate.time = Duration::from_secs(seconds);
            let progress = Progress::start(0);
            let (judge, effort) = (judge.unwrap(), request.effort);
            time_native(machine, effort, &judge, &mut candidate, &progress).unwrap();
            assert_eq!(candidate.timing.unwrap().runs(), runs);
            assert_eq!(progress.steps_done(), 10);
        }
    }
}
