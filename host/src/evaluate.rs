//! One call's work: run each kernel, prove its results, and time those that are right.

use std::io::{self, Write};
use std::time::Duration;

use thiserror::Error;

use crate::choose::Choice;
use crate::cpu::{self, Team, TeamError, Threads};
use crate::device::cublas::{Cublas, CublasError, Precision};
use crate::device::launch::bands;
use crate::device::{CudaDevice, Device, DeviceError, Opened};
use crate::element::{DataType, Element};
use crate::measure::gpu::{self, Contender, MeasureError};
use crate::measure::{self, Effort, Timing};
use crate::memory::{self, TooLarge};
use crate::npy::{self, NpyError, ReadError};
use crate::output::clause;
use crate::problem::{Data, Layout, Matrix, Problem, ProblemError, Shape};
use crate::progress::Progress;
use crate::report::{Corner, Record, Report, Yardstick};
use crate::rung::Rung;
use crate::source::Source;
use crate::verify::{self, Coverage, Failure, Proof};

/// What to compare times with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Baseline {
    /// cuBLAS, where there is a GPU, a cuBLAS, and a function of it for the element type.
    Auto,
    /// Nothing.
    None,
    /// cuBLAS; an error where there is none.
    Cublas,
}

/// What to do.
#[derive(Clone, Debug)]
pub struct Request {
    pub rungs: Vec<Rung>,
    pub data_type: DataType,
    pub shape: Shape,
    pub alpha: f64,
    pub beta: f64,
    pub source: Source,
    pub seed: u64,
    /// How much of each result to report, if any.
    pub corner: Option<Corner>,
    pub effort: Effort,
    pub baseline: Baseline,
    /// Whether cuBLAS on tensor cores is timed, too, where cuBLAS is: for context, since it rounds more.
    pub tensor_cores: bool,
    /// What was chosen for the CPU rungs.
    pub cpu: cpu::Settings,
}

/// Why a call ended before its report was complete.
#[derive(Debug, Error)]
pub enum EvaluateError {
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    #[error(transparent)]
    Problem(#[from] ProblemError),
    #[error(transparent)]
    File(#[from] NpyError),
    #[error("C cannot be written: {}.", clause(.0))]
    Output(io::Error),
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Cublas(#[from] CublasError),
    #[error(transparent)]
    Team(#[from] TeamError),
    #[error("`--baseline cublas` needs a GPU: the simulator's times mean nothing beside cuBLAS's.")]
    BaselineWithoutGpu,
    #[error("{scalar} is no {data_type} that alpha or beta can be.")]
    Scalar { scalar: f64, data_type: DataType },
}

impl From<MeasureError> for EvaluateError {
    fn from(error: MeasureError) -> Self {
        match error {
            MeasureError::Device(error) => error.into(),
            MeasureError::Cublas(error) => error.into(),
        }
    }
}

impl From<ReadError> for EvaluateError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::File(error) => error.into(),
            ReadError::Matrix(error) => error.into(),
        }
    }
}

impl Request {
    /// The shape, without depth if alpha says that neither A nor B is read.
    fn shape_read(&self) -> Shape {
        match self.alpha {
            0.0 => Shape { k: 0, ..self.shape },
            _ => self.shape,
        }
    }

    /// Whether nothing is asked of a device: CPU rungs need none.
    pub fn is_native(&self) -> bool {
        self.rungs.iter().all(|rung| rung.variant().is_none())
    }
}

/// Where rungs run: GPU kernels on the device, CPU rungs by the team.
#[derive(Clone, Copy)]
struct Machine<'a> {
    device: &'a Device,
    team: &'a Team,
}

/// Does what is asked. The report holds what was known when an error, if any, ended it.
pub fn evaluate(opened: &Opened, request: &Request) -> (Report, Result<(), EvaluateError>) {
    evaluate_into(opened, request, None)
}

/// [`evaluate`], as a part of something longer whose progress is shown: takes as many steps as [`steps`] says.
pub fn evaluate_observed(
    opened: &Opened,
    request: &Request,
    progress: &Progress,
) -> (Report, Result<(), EvaluateError>) {
    run(opened, request, None, progress)
}

/// [`evaluate`], and writes C, as the first rung that is proven right computed it, to `output` as a .npy file. What was
/// written is worth something only if there is no error and that rung is the only one.
pub fn evaluate_into(
    opened: &Opened,
    request: &Request,
    output: Option<&mut dyn Write>,
) -> (Report, Result<(), EvaluateError>) {
    // Without a number of steps there is no bar; what is wrong with the request shows below.
    let progress = Progress::start(steps(&opened.device, request).unwrap_or(0));
    run(opened, request, output, &progress)
}

fn run(
    opened: &Opened,
    request: &Request,
    output: Option<&mut dyn Write>,
    progress: &Progress,
) -> (Report, Result<(), EvaluateError>) {
    let mut report = Report {
        schema: 1,
        backend: opened.device.backend(),
        device: opened.device.description(),
        reason: opened.reason.clone(),
        cublas: None,
        output: None,
        results: Vec::new(),
        yardsticks: Vec::new(),
    };
    let team = match Team::new(request.cpu) {
        Ok(team) => team,
        Err(error) => return (report, Err(error.into())),
    };
    if request.is_native() {
        report.backend = "cpu";
        report.device = cpu::description(&team);
        report.reason = "CPU rungs run natively, whatever --device says".to_string();
    }
    let machine = Machine {
        device: &opened.device,
        team: &team,
    };
    let result = match request.data_type {
        DataType::F32 => evaluate_as::<f32>(machine, request, output, progress, &mut report),
        DataType::F64 => evaluate_as::<f64>(machine, request, output, progress, &mut report),
        DataType::I32 => evaluate_as::<i32>(machine, request, output, progress, &mut report),
    };
    (report, result)
}

/// A rung on its way through the gates.
struct Candidate {
    rung: Rung,
    proofs: Vec<Proof>,
    failure: Option<Failure>,
    corner: Option<Vec<Vec<f64>>>,
    /// What its last run took.
    time: Duration,
    timing: Option<Timing>,
}

impl Candidate {
    fn is_right(&self) -> bool {
        self.failure.is_none()
    }

    fn judge(&mut self, outcome: Result<Proof, Failure>) {
        match outcome {
            Ok(proof) => self.proofs.push(proof),
            Err(failure) => self.failure = Some(failure),
        }
    }

    /// Runs it, and returns C.
    fn run<T: Element>(
        &mut self,
        machine: Machine<'_>,
        problem: &Problem<T>,
        progress: &Progress,
    ) -> Result<Matrix<T>, DeviceError> {
        let name = self.rung.name();
        progress.doing(format!("{name}: running"));
        let Machine { device, team } = machine;
        let run = self.rung.run(device, team, problem, &|| progress.step())?;
        self.time = run.time;
        progress.doing(format!("{name}: checking"));
        Ok(run.c)
    }
}

fn evaluate_as<T: Element>(
    machine: Machine<'_>,
    request: &Request,
    output: Option<&mut dyn Write>,
    progress: &Progress,
    report: &mut Report,
) -> Result<(), EvaluateError> {
    let scalar = |scalar: f64| {
        T::from_scalar(scalar)
            .filter(|_| scalar.is_finite())
            .ok_or(EvaluateError::Scalar {
                scalar,
                data_type: T::TYPE,
            })
    };
    let (alpha, beta) = (scalar(request.alpha)?, scalar(request.beta)?);
    memory::check(request.shape, size_of::<T>())?;
    let yardsticks = match request.is_native() && request.baseline == Baseline::Auto {
        true => Vec::new(),
        false => yardsticks::<T>(machine.device, request)?,
    };
    report.cublas = yardsticks.first().map(Cublas::description);
    let mut candidates: Vec<Candidate> = request
        .rungs
        .iter()
        .map(|&rung| Candidate {
            rung,
            proofs: Vec::new(),
            failure: None,
            corner: None,
            time: Duration::ZERO,
            timing: None,
        })
        .collect();
    let scalars = (alpha, beta);
    let outcome = prove::<T>(machine, request, scalars, output, &mut candidates, progress)
        .and_then(|proven| {
            let problem = match request.source {
                // A benchmark multiplies normal numbers.
                Source::Suitable => {
                    drop(proven);
                    problem(request, Data::Normal, scalars)?.0
                }
                _ => proven,
            };
            time::<T>(
                machine,
                request,
                &problem,
                &yardsticks,
                &mut candidates,
                progress,
            )
        });
    let (timings, result) = match outcome {
        Ok(timings) => (timings, Ok(())),
        Err(error) => (Vec::new(), Err(error)),
    };
    report.yardsticks = yardsticks
        .iter()
        .zip(&timings)
        .map(|(yardstick, timing)| Yardstick {
            name: yardstick.precision().name().to_string(),
            runs: timing.runs(),
            time_median_s: timing.median(),
            time_min_s: Some(timing.min()),
            time_max_s: Some(timing.max()),
            flops_per_s: request.shape.flops() / timing.median(),
        })
        .collect();
    for candidate in candidates {
        // After an error, a kernel of which nothing is known has no line in the report.
        if result.is_ok() || candidate.failure.is_some() || candidate.proofs.len() == GATES {
            let record = record(machine, request, &candidate, timings.first())?;
            report.results.push(record);
        }
    }
    result
}

/// Proofs that make a result right.
const GATES: usize = 2;

/// Both gates, each on its own data, for all candidates. Returns the problem of the second.
fn prove<T: Element>(
    machine: Machine<'_>,
    request: &Request,
    scalars: (T, T),
    mut output: Option<&mut dyn Write>,
    candidates: &mut [Candidate],
    progress: &Progress,
) -> Result<Problem<T>, EvaluateError> {
    prove_exact::<T>(machine, request, candidates, progress)?;
    progress.doing("reading or filling the matrices".to_string());
    let coverage = Coverage::of(request.shape);
    let (problem, data) = problem(request, Data::Uniform, scalars)?;
    for candidate in candidates
        .iter_mut()
        .filter(|candidate| candidate.is_right())
    {
        let c = candidate.run(machine, &problem, progress)?;
        let (tile, rounding) = (candidate.rung.tile(), candidate.rung.rounding(machine.team));
        candidate.judge(verify::general(
            &problem, &c, tile, data, coverage, rounding,
        ));
        if candidate.is_right() {
            candidate.corner = request.corner.map(|corner| corner.of(&c));
            if let Some(output) = output.take() {
                npy::write(&c, output).map_err(EvaluateError::Output)?;
            }
        }
    }
    Ok(problem)
}

/// The exact gate: random integers, whatever the request's data is, since no other has a proof that hides nothing.
fn prove_exact<T: Element>(
    machine: Machine<'_>,
    request: &Request,
    candidates: &mut [Candidate],
    progress: &Progress,
) -> Result<(), EvaluateError> {
    let shape = request.shape;
    let coverage = Coverage::of(shape);
    let integer = |scalar| T::from_integer(small_integer(scalar));
    let (alpha, beta) = (integer(request.alpha), integer(request.beta));
    // One candidate after the other, on data that suits it: the same for most.
    let mut last: Option<(Data, Problem<T>)> = None;
    for candidate in candidates {
        let Some(data) = candidate.rung.rounding(machine.team).exact_data::<T>(shape) else {
            let why = format!("sums of {} products are too long to be exact.", shape.k);
            candidate.judge(Err(Failure::Unprovable(why)));
            continue;
        };
        let problem = match last.take() {
            Some((known, problem)) if known == data => problem,
            _ => {
                let layout = Layout::compact(shape);
                Problem::random(shape, layout, data, request.seed, alpha, beta)?
            }
        };
        let c = candidate.run(machine, &problem, progress)?;
        candidate.judge(verify::exact(&problem, &c, candidate.rung.tile(), coverage));
        last = Some((data, problem));
    }
    Ok(())
}

/// The matrices that the request asks for, or `suitable` ones if it does not say.
fn problem<T: Element>(
    request: &Request,
    suitable: Data,
    scalars: (T, T),
) -> Result<(Problem<T>, Option<Data>), ReadError> {
    let Request {
        source,
        shape,
        seed,
        ..
    } = request;
    source.problem(suitable, *shape, *seed, scalars)
}

/// Times what is right, and returns the yardsticks' times. On the simulator a run that was proven counts as the first.
fn time<T: Element>(
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
        .partition(|candidate| candidate.rung.variant().is_none());
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
        // The runs that were promised, and would have taken too long.
        (0..steps).for_each(|_| progress.step());
        candidate.timing = Some(timing);
    }
    Ok(())
}

/// Times GPU kernels: on the simulator one after the other, on a GPU in turn, and the yardsticks with them.
fn time_kernels<T: Element>(
    device: &Device,
    effort: Effort,
    problem: &Problem<T>,
    yardsticks: &[Cublas<'_>],
    candidates: Vec<&mut Candidate>,
    progress: &Progress,
) -> Result<Vec<Timing>, EvaluateError> {
    let kernels = candidates.into_iter().filter_map(|candidate| {
        Some((
            candidate.rung.variant()?,
            candidate.rung.sharing(),
            candidate,
        ))
    });
    match device {
        Device::Simulator(simulator) => {
            for (variant, sharing, candidate) in kernels {
                progress.doing(format!("{}: timing", variant.name));
                let block_done = || progress.step();
                candidate.timing = Some(measure::on_simulator(
                    simulator,
                    variant,
                    sharing,
                    problem,
                    effort,
                    candidate.time,
                    &block_done,
                )?);
            }
            Ok(Vec::new())
        }
        Device::Cuda(device) => {
            progress.doing("timing".to_string());
            let mut kernels: Vec<_> = kernels.collect();
            let contenders: Vec<Contender<'_>> = kernels
                .iter()
                .map(|&(variant, sharing, _)| match sharing {
                    Some(sharing) => Contender::Sharing(variant, sharing),
                    None => Contender::Kernel(variant),
                })
                .chain(yardsticks.iter().map(Contender::Cublas))
                .collect();
            if contenders.is_empty() {
                return Ok(Vec::new());
            }
            let mut timings = gpu::measure(device, &contenders, problem, effort)?;
            progress.step();
            let yardstick_timings = timings.split_off(kernels.len());
            for ((_, _, candidate), timing) in kernels.iter_mut().zip(timings) {
                candidate.timing = Some(timing);
            }
            Ok(yardstick_timings)
        }
    }
}

/// What to compare with: nothing, or cuBLAS as it is to be compared with and then, if asked for, on tensor cores.
fn yardsticks<'device, T: Element>(
    device: &'device Device,
    request: &Request,
) -> Result<Vec<Cublas<'device>>, EvaluateError> {
    let asked = request.baseline == Baseline::Cublas;
    let load = |device: &'device CudaDevice| {
        let precision = match T::TYPE {
            DataType::F32 => Precision::Single,
            DataType::F64 => Precision::Double,
            DataType::I32 => return Err(CublasError::NoSuchType(T::TYPE)),
        };
        let mut loaded = vec![Cublas::load(device, precision)?];
        if request.tensor_cores && precision == Precision::Single {
            loaded.push(Cublas::load(device, Precision::Tf32)?);
        }
        Ok(loaded)
    };
    match (device, request.baseline) {
        (_, Baseline::None) => Ok(Vec::new()),
        (Device::Simulator(_), _) if asked => Err(EvaluateError::BaselineWithoutGpu),
        (Device::Simulator(_), _) => Ok(Vec::new()),
        (Device::Cuda(device), _) => match load(device) {
            Ok(loaded) => Ok(loaded),
            Err(error) if asked => Err(error.into()),
            Err(_) => Ok(Vec::new()),
        },
    }
}

/// Steps of the progress of [`evaluate_observed`]: on the simulator the blocks that it will run; on a GPU the results to
/// prove, and the timing; runs of CPU rungs.
///
/// # Errors
///
/// C is too large to launch for.
pub fn steps(device: &Device, request: &Request) -> Result<u64, DeviceError> {
    let runs = request.effort.runs.unwrap_or(1).max(1) + request.effort.warmup.unwrap_or(0);
    let mut steps = match device {
        Device::Cuda(_) if !request.is_native() => 1,
        _ => 0,
    };
    for rung in &request.rungs {
        steps += match (rung, device) {
            (Rung::Cpu(_), _) => GATES as u64 + u64::from(measure::most_cpu_runs(request.effort)),
            (Rung::Gpu(_) | Rung::Auto(_), Device::Cuda(_)) => GATES as u64,
            (Rung::Gpu(_) | Rung::Auto(_), Device::Simulator(_)) => {
                let Some(variant) = rung.variant() else {
                    continue;
                };
                let plan = device.plan_shared(variant, rung.sharing(), request.shape_read())?;
                let grids = plan.grids()?;
                let blocks = grids.iter().map(|&(x, y)| u64::from(x) * u64::from(y));
                let blocks: u64 = blocks.sum();
                blocks * (GATES as u64 + u64::from(runs) - 1)
            }
        };
    }
    Ok(steps)
}

/// The integer that takes a scalar's place where nothing may round: between -2 and 2, and zero only for zero.
fn small_integer(scalar: f64) -> i32 {
    match scalar {
        0.0 => 0,
        scalar if scalar.abs() < 1.0 => scalar.signum() as i32,
        scalar => scalar.round().clamp(-2.0, 2.0) as i32,
    }
}

fn record(
    machine: Machine<'_>,
    request: &Request,
    candidate: &Candidate,
    cublas: Option<&Timing>,
) -> Result<Record, DeviceError> {
    let Candidate {
        rung,
        proofs,
        failure,
        corner,
        timing,
        ..
    } = candidate;
    let verification = match failure {
        Some(failure) => failure.to_string(),
        None => {
            let statements: Vec<String> = proofs
                .iter()
                .map(|proof| format!("{}: {}", proof.gate, proof.statement))
                .collect();
            statements.join("; ")
        }
    };
    let bounded = proofs.iter().find(|proof| proof.gate == "proven");
    let median = timing.as_ref().map(Timing::median);
    let Shape { m, n, k } = request.shape;
    let record = Record {
        kernel: rung.name().to_string(),
        dtype: request.data_type.to_string(),
        m,
        n,
        k,
        alpha: request.alpha,
        beta: request.beta,
        seed: request.seed,
        proven: failure.is_none(),
        verification,
        largest_error: bounded.map(|proof| proof.largest_error),
        error_bound: bounded.map(|proof| proof.bound),
        runs: timing.as_ref().map(Timing::runs),
        warmup: timing.as_ref().map(|timing| timing.warmup),
        launches_per_run: timing.as_ref().map(|timing| timing.launches_per_run),
        time_median_s: median,
        time_min_s: timing.as_ref().map(Timing::min),
        time_max_s: timing.as_ref().map(Timing::max),
        flops_per_s: median.map(|seconds| request.shape.flops() / seconds),
        cublas_time_median_s: cublas.map(Timing::median),
        ratio_to_cublas: cublas
            .zip(median)
            .map(|(cublas, seconds)| cublas.median() / seconds),
        chosen: rung.chosen(),
        data: request.source.description(),
        corner: corner.clone(),
        ..Record::default()
    };
    match rung {
        Rung::Cpu(algorithm) => {
            let threads = match algorithm.threads {
                Threads::One => Some(1),
                Threads::Team | Threads::Scheduled => Some(machine.team.threads()),
                Threads::Library => None,
            };
            let scheduled = algorithm.threads == Threads::Scheduled;
            Ok(Record {
                backend: "cpu".to_string(),
                threads,
                schedule: scheduled.then(|| request.cpu.schedule.to_string()),
                ..record
            })
        }
        Rung::Gpu(variant) | Rung::Auto(Choice { variant, .. }) => {
            let shape = request.shape_read();
            let plan = machine.device.plan_shared(variant, rung.sharing(), shape)?;
            let multiplying = match plan.grid() {
                Some(grid) => vec![grid],
                None => bands(variant, request.shape)?
                    .iter()
                    .map(|band| band.grid)
                    .collect(),
            };
            Ok(Record {
                backend: machine.device.backend().to_string(),
                grid_x: multiplying.first().map_or(0, |grid| grid.0),
                grid_y: multiplying.iter().map(|grid| u64::from(grid.1)).sum(),
                block_x: variant.block.x,
                block_y: variant.block.y,
                launches: plan.grids()?.len(),
                ..record
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceChoice;
    use gpu_kernels::spec::{Block, Function, Tile, Variant};

    /// Leaves C as it is.
    #[allow(clippy::too_many_arguments)] // BLAS's own
    unsafe fn lazy(
        _m: usize,
        _n: usize,
        _k: usize,
        _alpha: f32,
        _a: &[f32],
        _lda: usize,
        _b: &[f32],
        _ldb: usize,
        _beta: f32,
        _c: *mut f32,
        _ldc: usize,
    ) {
    }

    static LAZY: Variant = Variant::new(
        "lazy",
        "lazy",
        Block { x: 1, y: 1 },
        Tile { m: 8, n: 8, k: 1 },
        Function::F32(lazy),
    );

    /// Right on integers, and wrong on all else: drops what comes after the point. One block for all of a small C.
    #[allow(clippy::too_many_arguments)] // BLAS's own
    unsafe fn truncating(
        m: usize,
        n: usize,
        k: usize,
        alpha: f32,
        a: &[f32],
        lda: usize,
        b: &[f32],
        ldb: usize,
        _beta: f32,
        c: *mut f32,
        ldc: usize,
    ) {
        for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let products = (0..k).map(|index| a[row * lda + index] * b[index * ldb + column]);
            let sum: f32 = products.map(f32::trunc).sum();
            // SAFETY: within the m rows of n elements, ldc apart, that C has; there is one thread.
            unsafe { *c.add(row * ldc + column) = alpha * sum };
        }
    }

    static TRUNCATING: Variant = Variant::new(
        "truncating",
        "truncating",
        Block { x: 1, y: 1 },
        Tile { m: 16, n: 16, k: 1 },
        Function::F32(truncating),
    );

    /// Evaluates with corners of one element, and returns what was written, too.
    fn evaluated(rungs: Vec<Rung>) -> (Report, Vec<u8>) {
        let opened = Device::open(DeviceChoice::Simulator).unwrap();
        let request = Request {
            rungs,
            data_type: DataType::F32,
            shape: Shape { m: 9, n: 8, k: 7 },
            alpha: 1.0,
            beta: 0.0,
            source: Source::Suitable,
            seed: 1,
            corner: Some(Corner {
                rows: 1,
                columns: 1,
            }),
            effort: Effort::default(),
            baseline: Baseline::Auto,
            tensor_cores: false,
            cpu: cpu::Settings::default(),
        };
        let mut written = Vec::new();
        let (report, result) = evaluate_into(&opened, &request, Some(&mut written));
        result.unwrap();
        (report, written)
    }

    #[test]
    fn a_wrong_kernel_is_reported_wrong_and_not_timed_and_a_right_one_is() {
        let right = &gpu_kernels::naive::KERNEL.variants[0];
        let (report, _) = evaluated(vec![Rung::Gpu(&LAZY), Rung::Gpu(right)]);
        let [lazy, naive] = &report.results[..] else {
            panic!("{report:?}");
        };
        assert!(!lazy.proven && lazy.time_median_s.is_none());
        assert!(
            lazy.verification
                .starts_with("C[0][0] is NaN, but must be "),
            "{}",
            lazy.verification
        );
        assert!(naive.proven && naive.time_median_s.is_some());
        assert_eq!((lazy.grid_x, lazy.grid_y, lazy.launches), (1, 2, 1));
    }

    #[test]
    fn cpu_rungs_are_reported_with_their_threads_and_without_a_grid() {
        let (report, _) = evaluated(vec![
            Rung::Cpu(&cpu::ijk::RUNG),
            Rung::Cpu(&cpu::rows::RUNG),
        ]);
        assert_eq!(report.backend, "cpu");
        let [serial, threaded] = &report.results[..] else {
            panic!("{report:?}");
        };
        assert!(serial.proven && threaded.proven && threaded.time_median_s.is_some());
        assert_eq!(
            (serial.launches, serial.threads, &serial.schedule),
            (0, Some(1), &None)
        );
        assert_eq!(threaded.threads, Some(rayon::current_num_threads()));
        assert_eq!(threaded.schedule.as_deref(), Some("static"));
        // Beside a kernel, the report is that of the device.
        let right = &gpu_kernels::naive::KERNEL.variants[0];
        let (report, _) = evaluated(vec![Rung::Gpu(right), Rung::Cpu(&cpu::ijk::RUNG)]);
        assert_eq!(report.backend, "simulator");
        assert_eq!(report.results[1].backend, "cpu");
        assert!(report.all_proven());
    }

    #[test]
    fn only_what_passes_both_gates_is_written_and_shown() {
        let (report, written) = evaluated(vec![Rung::Gpu(&TRUNCATING)]);
        let [truncating] = &report.results[..] else {
            panic!("{report:?}");
        };
        // The exact gate it passes.
        assert!(!truncating.proven && truncating.verification.contains(" within "));
        assert_eq!(truncating.corner, None);
        assert!(written.is_empty());

        let right = &gpu_kernels::naive::KERNEL.variants[0];
        let (report, written) = evaluated(vec![Rung::Gpu(&TRUNCATING), Rung::Gpu(right)]);
        let corner = report.results[1].corner.as_ref().unwrap()[0][0];
        let elements = &written[written.len() - 9 * 8 * 4..];
        let first = f32::from_le_bytes(elements[..4].try_into().unwrap());
        assert_eq!(first.to_string(), corner.to_string());
    }

    #[test]
    fn a_scalar_becomes_a_small_integer_and_zero_only_if_it_is_zero() {
        for (scalar, integer) in [
            (0.0, 0),
            (1.0, 1),
            (0.1, 1),
            (-0.1, -1),
            (1.6, 2),
            (-7.5, -2),
            (1e30, 2),
            (-0.0, 0),
        ] {
            assert_eq!(small_integer(scalar), integer, "{scalar}");
        }
    }
}
