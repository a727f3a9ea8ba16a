//! Times what was proven right, and checks what was timed: the C of a launch made as those that
//! were timed has the bits of the C that was proven, or passes the second gate itself. So does
//! cuBLAS's.

use std::time::{Duration, Instant};

use gpu_gemm::gpu_kernels::spec::Tile;
use gpu_gemm::{Choice, DataType, Device, Devices};

use super::candidate::{Candidate, Machine};
use super::error::EvaluateError;
use super::gates::Judge;
use super::request::{Baseline, Request};
use crate::data::Matrix;
use crate::measure::cublas::{Cublas, CublasError, Precision};
use crate::measure::gpu::{self, Contender};
use crate::measure::limits::Limits;
use crate::measure::nvml::GpuState;
use crate::measure::sustained::Sustained;
use crate::measure::{self, Effort, Timing, several};
use crate::progress::Progress;
use crate::report::Several;
use crate::rung::{Element, Rung};
use crate::spelled;
use crate::verify::{ErrorModel, Errors, Failure, Proof};

/// What is known of one yardstick.
pub(super) struct OfYardstick {
    pub name: String,
    pub timing: Timing,
    /// Of back-to-back launches, if they were requested.
    pub sustained: Option<Sustained>,
    /// Of the C that its timed launches left, by the comparison that proves kernels right.
    pub errors: Option<Errors>,
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
    yardsticks: &[Cublas<'_>],
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
        time_by_clock(machine, effort, judge, candidate, progress)?;
    }
    let kernels = kernels
        .into_iter()
        .filter_map(|candidate| Some((candidate.rung.choice()?, candidate)));
    match machine.device {
        Device::Simulator(_) => {
            for (_, candidate) in kernels {
                time_by_clock(machine, effort, judge, candidate, progress)?;
            }
            Ok(Compared::default())
        }
        Device::Several(devices) => {
            for (choice, candidate) in kernels {
                let task = (request, judge, progress);
                time_several(machine, devices, task, choice, candidate)?;
            }
            progress.step();
            Ok(Compared::default())
        }
        Device::Cuda(_) | Device::OpenCl(_) => {
            let mut kernels: Vec<_> = kernels.collect();
            let task = (request, judge, progress);
            time_in_turns(machine, task, yardsticks, &mut kernels)
        }
    }
}

/// Times a CPU rung, or a kernel on the simulator, by the clock on the wall.
fn time_by_clock<T: Element>(
    machine: Machine<'_>,
    effort: Effort,
    judge: &Judge<T>,
    candidate: &mut Candidate,
    progress: &Progress,
) -> Result<(), EvaluateError> {
    let (rung, is_native) = (candidate.rung, candidate.rung.choice().is_none());
    progress.doing(format!("{}: timing", rung.name()));
    let mut steps = match is_native {
        true => measure::most_cpu_runs(effort),
        false => 0,
    };
    let before = if is_native {
        Duration::ZERO
    } else {
        candidate.time
    };
    let mut timed = Timed::new(before);
    let run = || {
        steps = steps.saturating_sub(1);
        let step = || progress.step();
        let run = rung.run(machine.device, machine.team, &judge.problem, &step)?;
        Ok(timed.keep(run.c, run.time))
    };
    let timing = match is_native {
        true => measure::on_cpu(effort, candidate.time, run)?,
        false => measure::on_simulator(effort, candidate.time, run)?,
    };
    // The runs that were announced, and would have taken too long.
    (0..steps).for_each(|_| progress.step());
    timed.accept(machine, judge, candidate, timing)
}

/// Times a kernel on several devices, and on the first of them alone.
fn time_several<T: Element>(
    machine: Machine<'_>,
    devices: &Devices,
    (request, judge, progress): (&Request, &Judge<T>, &Progress),
    choice: Choice,
    candidate: &mut Candidate,
) -> Result<(), EvaluateError> {
    progress.doing(format!("{}: timing", candidate.rung.name()));
    let choice = Some(choice).filter(|_| !matches!(candidate.rung, Rung::Auto(_)));
    let mut timed = Timed::new(Duration::ZERO);
    let (origin, effort) = (request.origin, request.effort);
    let scaled = several::measure(devices, choice, &judge.problem, origin, effort)?;
    timed.c = Some(scaled.c);
    let all = scaled.timing.median();
    let alone = scaled.alone.as_ref().map(Timing::median);
    let (gpus, speed_up) = (devices.gpus(), alone.map(|alone| alone / all));
    candidate.several = Some(Several {
        devices: devices.count(),
        grid: scaled.grid,
        start: spelled(origin),
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
            candidate.sustained = None;
            candidate.several = None;
        }
    }
}

/// Times kernels on a GPU or by OpenCL, alternating with each other and with the yardsticks, whose
/// times it returns, with what the GPU did. cublasLt is left out where it proposes no algorithm,
/// unless it alone was asked for.
fn time_in_turns<T: Element>(
    machine: Machine<'_>,
    (request, judge, progress): (&Request, &Judge<T>, &Progress),
    yardsticks: &[Cublas<'_>],
    kernels: &mut [(Choice, &mut Candidate)],
) -> Result<Compared, EvaluateError> {
    progress.doing("timing".to_string());
    let task = (request.effort, judge, progress);
    let all: Vec<&Cublas<'_>> = yardsticks.iter().collect();
    let compared = match time_beside(machine, task, &all, kernels) {
        Err(EvaluateError::Cublas(CublasError::NoAlgorithm))
            if request.baseline != Baseline::CublasLt =>
        {
            let others: Vec<_> = all.into_iter().filter(|one| !one.is_lt()).collect();
            time_beside(machine, task, &others, kernels)
        }
        other => other,
    };
    progress.step();
    compared
}

/// [`time_in_turns`], with these yardsticks.
fn time_beside<T: Element>(
    machine: Machine<'_>,
    (effort, judge, progress): (Effort, &Judge<T>, &Progress),
    able: &[&Cublas<'_>],
    kernels: &mut [(Choice, &mut Candidate)],
) -> Result<Compared, EvaluateError> {
    let contenders: Vec<Contender<'_>> = kernels
        .iter()
        .map(|(choice, _)| Contender::Kernel(*choice))
        .chain(able.iter().map(|cublas| Contender::Cublas(cublas)))
        .collect();
    if contenders.is_empty() {
        return Ok(Compared::default());
    }
    let mut wrong_yardstick = None;
    let mut errors = vec![None; able.len()];
    let mut check = |index: usize, c: Matrix<T>| match kernels.get_mut(index) {
        Some((_, candidate)) => check_timed(machine, judge, candidate, &c),
        None => {
            let index = index - kernels.len();
            let yardstick = able[index];
            let model = match yardstick.precision() {
                Precision::Tf32 => ErrorModel::Tf32,
                Precision::Of(DataType::F32 | DataType::F64) => ErrorModel::Elementwise,
                Precision::Of(DataType::BF16_F32 | DataType::F16_F32) => ErrorModel::Truncated,
                Precision::Of(_) => ErrorModel::ReducedInHalves,
            };
            match judge_yardstick(judge, model, &c) {
                Ok(proof) => errors[index] = proof.errors,
                Err(failure) => {
                    wrong_yardstick.get_or_insert((yardstick, failure));
                }
            }
        }
    };
    let doing = |what| progress.doing(what);
    let problem = &judge.problem;
    let mut measured = match machine.device {
        Device::Cuda(device) => {
            gpu::measure(device, &contenders, problem, effort, &doing, &mut check)?
        }
        Device::OpenCl(device) => {
            gpu::measure_by_opencl(device, &contenders, problem, effort, &mut check)?
        }
        Device::Simulator(_) | Device::Several(_) => return Ok(Compared::default()),
    };
    if let Some((yardstick, failure)) = wrong_yardstick {
        return Err(EvaluateError::WrongYardstick {
            name: yardstick.name().to_string(),
            library: format!("cuBLAS {}", yardstick.description()),
            failure,
        });
    }
    let mut sustained = measured.sustained.into_iter();
    let of_yardsticks = measured.timings.split_off(kernels.len());
    for ((_, candidate), timing) in kernels.iter_mut().zip(measured.timings) {
        let sustained = sustained.next();
        candidate.timing = Some(timing).filter(|_| candidate.is_right());
        candidate.sustained = sustained.filter(|_| candidate.is_right());
    }
    let each = able.iter().zip(of_yardsticks).zip(errors);
    let yardsticks = each.map(|((yardstick, timing), errors)| OfYardstick {
        name: yardstick.name().to_string(),
        timing,
        sustained: sustained.next(),
        errors,
    });
    Ok(Compared {
        yardsticks: yardsticks.collect(),
        state: measured.state,
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
            time_by_clock(machine, effort, &judge, &mut candidate, &progress).unwrap();
            assert_eq!(candidate.timing.unwrap().runs(), runs);
            assert_eq!(progress.steps_done(), 10);
        }
    }
}
