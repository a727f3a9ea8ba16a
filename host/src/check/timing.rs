//! Times the rungs that passed, and checks the timed launches: the C of one more launch like them
//! has the bits of the C that passed, or passes the second gate itself. So does cuBLAS's C.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gpu_gemm::gpu_kernels::spec::Tile;
use gpu_gemm::{DataType, Devices, Plan};

use super::candidate::{Candidate, Task};
use super::error::EvaluateError;
use super::gates::Judge;
use super::record;
use crate::data::{Matrix, Number};
use crate::measure::cublas::{Cublas, Precision};
use crate::measure::gpu::{self, Contender, MeasureError};
use crate::measure::limits::Limits;
use crate::measure::nvml::GpuState;
use crate::measure::{self, Timing, several};
use crate::report::{Several, Yardstick};
use crate::run::Resident;
use crate::spelled;
use crate::verify::{ErrorModel, Failure, Verdict};

/// The tile for sampling a yardstick's C; its real tiles are not known.
const TILE_OF_YARDSTICK: Tile = Tile {
    m: 128,
    n: 128,
    k: 32,
};

/// The yardsticks, and the GPU's state.
#[derive(Default)]
pub(super) struct Compared {
    pub yardsticks: Vec<Yardstick>,
    pub state: Option<GpuState>,
}

/// Times the candidates that are right; returns the yardsticks and the state of the GPU.
pub(super) fn time<T: Number>(
    task: Task<'_>,
    judge: &Judge<'_, T>,
    resident: &mut Resident<'_, T>,
    yardsticks: &[Cublas],
    candidates: &mut [Candidate],
) -> Result<Compared, EvaluateError> {
    let Task {
        request,
        device,
        progress,
        ..
    } = task;
    let mut right: Vec<_> = candidates.iter_mut().filter(|one| one.is_right()).collect();
    if request.shape.is_empty() || right.is_empty() {
        return Ok(Compared::default());
    }
    let mut kernels = Vec::new();
    for candidate in right.drain(..) {
        match (candidate.plan.clone(), device.several()) {
            (Some(_), Some(devices)) => {
                time_several(task, devices, judge, candidate)?;
            }
            (Some(plan), None) if !device.is_simulator() => {
                kernels.push((plan, candidate));
            }
            _ => {
                time_by_clock(task, judge, resident, candidate)?;
            }
        }
    }
    if device.is_simulator() {
        return Ok(Compared::default());
    }
    progress.doing("timing".to_string());
    let mut able: Vec<&Cublas> = yardsticks.iter().collect();
    let compared = loop {
        let compared = time_in_turns(task, judge, resident, &able, &mut kernels);
        // A library that does not multiply this product is left out, unless it alone was asked for.
        let unable = match &compared {
            Err(EvaluateError::Measure(MeasureError::Cublas(error))) => error.unable(),
            _ => None,
        };
        let is_unable = |one: &&Cublas| unable == Some(one.interface());
        if request.baseline.is_one() || !able.iter().any(is_unable) {
            break compared;
        }
        able.retain(|one| !is_unable(one));
    };
    progress.step();
    compared
}

/// Times a CPU rung, or a kernel on the simulator, where the run that was checked counts as the
/// first.
fn time_by_clock<T: Number>(
    task: Task<'_>,
    judge: &Judge<'_, T>,
    resident: &mut Resident<'_, T>,
    candidate: &mut Candidate,
) -> Result<(), EvaluateError> {
    let (effort, progress) = (task.request.effort, task.progress);
    let (rung, passed) = (candidate.rung, candidate.time);
    progress.doing(format!("{}: timing", rung.name()));
    let (pace, before) = match rung.choice() {
        Some(_) => (measure::ON_SIMULATOR, passed),
        None => (measure::ON_CPU, Duration::ZERO),
    };
    let (began, mut runs, mut c) = (Instant::now(), 0, None);
    let timing = measure::by_clock(pace, effort, passed, || {
        let plan = &mut candidate.plan;
        let run = rung.run_on(resident, plan, task.team, &|| progress.step())?;
        (runs, c) = (runs + 1, Some(run.c));
        Ok(run.time)
    })?;
    if rung.choice().is_none() {
        // Skips the runs that would take too long.
        (runs..pace.most_runs(effort)).for_each(|_| progress.step());
    }
    let timed = (timing, began.elapsed() + before);
    accept(judge, candidate, timed, c)
}

/// Times a kernel on several devices, and on the first of them alone.
fn time_several<T: Number>(
    task: Task<'_>,
    devices: &Devices,
    judge: &Judge<'_, T>,
    candidate: &mut Candidate,
) -> Result<(), EvaluateError> {
    task.progress
        .doing(format!("{}: timing", candidate.rung.name()));
    let choice = candidate.rung.fixed_choice();
    let began = Instant::now();
    let (origin, effort) = (task.request.origin, task.request.effort);
    let (all, alone) = several::measure(devices, choice, judge.problem, origin, effort)?;
    let (timing, received_bytes) = all.outcome;
    let alone = alone.as_ref().map(Timing::median);
    let (gpus, speed_up) = (devices.gpus(), alone.map(|alone| alone / timing.median()));
    candidate.several = Some(Several {
        devices: devices.count(),
        grid: all.grid,
        start: spelled(origin),
        link: devices.link_description().to_string(),
        received_bytes,
        gpus,
        one_device_time_median_s: alone,
        speed_up,
        efficiency: speed_up.map(|speed_up| speed_up / gpus as f64),
    });
    let timed = (timing, began.elapsed());
    accept(judge, candidate, timed, Some(all.c))
}

/// Accepts times if they are possible, given that all runs together took `elapsed`, and if the
/// last result, if there is one, is right.
fn accept<T: Number>(
    judge: &Judge<'_, T>,
    candidate: &mut Candidate,
    (timing, elapsed): (Timing, Duration),
    c: Option<Matrix<T>>,
) -> Result<(), EvaluateError> {
    let limits = Limits {
        peak_flops_per_s: None,
        bandwidth_bytes_per_s: 0.0,
        elapsed,
    };
    limits.check(candidate.rung.name(), judge.problem, &timing)?;
    candidate.timing = Some(timing);
    if let Some(c) = c {
        check_timed(judge, candidate, &c);
    }
    Ok(())
}

/// Compares the result of a timed run with the one that passed; if it is wrong, it has no
/// times.
fn check_timed<T: Number>(judge: &Judge<'_, T>, candidate: &mut Candidate, c: &Matrix<T>) {
    if candidate.passed_bits == Some(c.hash_of_bits()) {
        let statement = "a launch like the timed ones gives the same bits".to_string();
        candidate.judge(Ok(Verdict::exact("timed", statement)));
        return;
    }
    match judge.judge_rung(c, candidate.rung) {
        Ok(verdict) => candidate.judge(Ok(Verdict {
            gate: "timed",
            statement: format!("of a launch like the timed ones, {}", verdict.statement),
            ..verdict
        })),
        Err(failure) => {
            candidate.failure = Some(Failure::Timed(Box::new(failure)));
            candidate.timing = None;
            candidate.sustained = None;
            candidate.several = None;
        }
    }
}

/// Times kernels on a GPU or with OpenCL, alternating with each other and with the yardsticks.
/// Returns the yardsticks' times and the GPU's state.
fn time_in_turns<T: Number>(
    task: Task<'_>,
    judge: &Judge<'_, T>,
    resident: &mut Resident<'_, T>,
    able: &[&Cublas],
    kernels: &mut [(Arc<Plan>, &mut Candidate)],
) -> Result<Compared, EvaluateError> {
    let plans: Vec<Arc<Plan>> = kernels.iter().map(|(plan, _)| Arc::clone(plan)).collect();
    let contenders: Vec<Contender<'_>> = plans
        .iter()
        .map(|plan| Contender::Kernel(plan))
        .chain(able.iter().map(|cublas| Contender::Cublas(cublas)))
        .collect();
    if contenders.is_empty() {
        return Ok(Compared::default());
    }
    // The outcomes for the yardsticks, in their order.
    let mut judged = Vec::new();
    let mut check = |index: usize, c: Matrix<T>| match kernels.get_mut(index) {
        Some((_, candidate)) => check_timed(judge, candidate, &c),
        None => {
            let model = match able[index - kernels.len()].precision() {
                Precision::Tf32 => ErrorModel::Tf32,
                Precision::Of(DataType::F32 | DataType::F64 | DataType::I8) => {
                    ErrorModel::Elementwise
                }
                Precision::Of(DataType::BF16_F32 | DataType::F16_F32) => ErrorModel::Truncated,
                // It does not say how often it promotes.
                Precision::Of(DataType::E4M3 | DataType::E4M3_BF16) | Precision::FastE4m3(_) => {
                    ErrorModel::NOT_PROMOTED
                }
                Precision::Of(_) => ErrorModel::ReducedInHalves,
            };
            judged.push(judge.judge(&c, (TILE_OF_YARDSTICK, model)));
        }
    };
    let (request, doing) = (task.request, |what| task.progress.doing(what));
    let mut measured = gpu::measure(resident, &contenders, request.effort, &doing, &mut check)?;
    let mut sustained = measured.sustained.into_iter();
    let of_yardsticks = measured.timings.split_off(kernels.len());
    for ((_, candidate), timing) in kernels.iter_mut().zip(measured.timings) {
        let sustained = sustained.next();
        candidate.timing = Some(timing).filter(|_| candidate.is_right());
        candidate.sustained = sustained.filter(|_| candidate.is_right());
    }
    let mut yardsticks = Vec::new();
    for ((cublas, timing), judged) in able.iter().zip(of_yardsticks).zip(judged) {
        let (name, sustained) = (cublas.name(), sustained.next());
        let verdict = judged.map_err(|failure| EvaluateError::WrongYardstick {
            name: name.to_string(),
            library: format!("cuBLAS {}", cublas.description()),
            failure,
        })?;
        let of = sustained.as_ref();
        yardsticks.push(record::yardstick(
            request,
            name,
            &timing,
            verdict.errors,
            of,
        ));
    }
    Ok(Compared {
        yardsticks,
        state: measured.state,
    })
}
