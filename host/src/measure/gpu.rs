//! Times on a GPU, from CUDA events.
//!
//! - Contenders alternate, run by run, so that clocks and temperature are the same for all: only
//!   ratios mean anything. The order changes from one repetition to the next: after a kernel
//!   that draws much power, the next contender gets a lower clock (an H200 at 4096: 5 % after
//!   `few-rows`). cuBLAS in tf32, which draws most, runs after all others, unless kernels on tensor
//!   cores are among these.
//! - Each launch gets different copies of the matrices from the launch before, together twice
//!   the L2, so that no launch finds its operands there.
//! - The host never waits between launches; what a run records is read when all have ended. A
//!   run of a short kernel consists of as many launches as take a tenth of a millisecond, so
//!   that the gaps around events do not count, and the GPU does not begin before all of them are
//!   queued (`Gate`): a call of cuBLAS takes the host longer than a small product takes the GPU.
//! - What is timed is checked: afterwards each contender launches once more, by the same calls, on
//!   the next copies, whose C is as it was at first; the caller gets the C that it leaves.
//! - The GPU's state ([`GpuState`]) is read while it works on the timed launches: all of them are
//!   queued by then, except those of cuBLAS on tensor cores, whose clock is another. These begin
//!   after a launch that is not timed, so that the queue is never empty in a timed run.
//! - A time that cannot be true is an error ([`Limits`]).

use std::cell::Cell;
use std::sync::mpsc::{self, Sender};
use std::time::Instant;

use cust::event::{Event, EventFlags};
use cust::memory::DeviceBuffer;
use cust::stream::Stream;
use gpu_gemm::device::cuda::status::during;
use gpu_gemm::gpu::{Gpu, Properties};
use gpu_gemm::gpu_kernels::spec::{Allocation, Unit};
use gpu_gemm::{
    Choice, CudaDevice, CudaStream, DeviceError, DeviceFacts, ElementType, Plan, PlanError,
};
use thiserror::Error;

use super::copies::Copies;
use super::cublas::{Cublas, CublasError, Precision, Product};
use super::limits::{Implausible, Limits};
use super::nvml::{GpuState, Probe};
use super::sustained::{self, Sustained};
use super::timing::{Effort, Timing, turns};
use crate::data::{Matrix, Number, Problem, ProblemError, by_inputs};
use crate::run::{self, Placed, RunError};
use crate::statistics;

/// Default numbers of runs, before and during the timing.
const RUNS: u32 = 20;
const WARMUP: u32 = 3;
/// Seconds that all runs of one contender may take by default.
const BUDGET: f64 = 10.0;
/// Fewer runs than this give no meaningful median.
const FEWEST_RUNS: u32 = 3;
/// Seconds that a run lasts at least.
const SHORTEST_RUN: f64 = 1e-4;
/// Runs of each algorithm that a library proposes, to find the fastest.
const TRIALS: u32 = 5;

/// Something that multiplies.
pub enum Contender<'a> {
    Kernel(Choice),
    Cublas(&'a Cublas<'a>),
}

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// One for each contender.
    pub timings: Vec<Timing>,
    /// One for each contender, if that was requested.
    pub sustained: Vec<Sustained>,
    /// What the GPU did meanwhile, if there is an NVML.
    pub state: Option<GpuState>,
}

/// Why nothing was measured.
#[derive(Debug, Error)]
pub enum MeasureError {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Cublas(#[from] CublasError),
    #[error(transparent)]
    Implausible(#[from] Implausible),
}

impl From<DeviceError> for MeasureError {
    fn from(error: DeviceError) -> Self {
        MeasureError::Run(error.into())
    }
}

impl From<ProblemError> for MeasureError {
    fn from(error: ProblemError) -> Self {
        MeasureError::Run(error.into())
    }
}

impl From<PlanError> for MeasureError {
    fn from(error: PlanError) -> Self {
        MeasureError::Run(error.into())
    }
}

impl Contender<'_> {
    fn name(&self) -> &str {
        match self {
            Contender::Kernel(choice) => choice.variant.name,
            Contender::Cublas(cublas) => cublas.name(),
        }
    }

    /// Operations a second that it cannot exceed, if that is known.
    fn peak(&self, properties: &Properties) -> Option<f64> {
        let gpu = Gpu::of(properties)?;
        match self {
            Contender::Kernel(choice) => Some(gpu.peak_of(choice.variant)),
            Contender::Cublas(cublas) => match cublas.precision() {
                Precision::Single => Some(gpu.peak(ElementType::F32)),
                // Tensor cores multiply f64 twice as fast as CUDA cores.
                Precision::Double => Some(2.0 * gpu.peak(ElementType::F64)),
                Precision::Tf32
                | Precision::Bf16
                | Precision::F16
                | Precision::Bf16F32
                | Precision::F16F32 => None,
            },
        }
    }

    /// Whether it would disturb kernels on CUDA cores that run after it.
    fn is_tf32_library(&self) -> bool {
        match self {
            Contender::Kernel(_) => false,
            Contender::Cublas(cublas) => cublas.precision() == Precision::Tf32,
        }
    }

    /// Whether it is a kernel on tensor cores.
    fn is_on_tensor_cores(&self) -> bool {
        match self {
            Contender::Kernel(choice) => choice.variant.unit != Unit::CudaCores,
            Contender::Cublas(_) => false,
        }
    }

    /// How its matrices are allocated.
    fn allocation(&self) -> Allocation {
        match self {
            Contender::Kernel(choice) => choice.variant.allocation,
            Contender::Cublas(_) => Allocation::AsGiven,
        }
    }
}

/// A contender, ready to run.
pub(super) struct Runner<'a, T: Number> {
    device: &'a CudaDevice,
    problem: &'a Problem<T>,
    allocation: Allocation,
    runs_apart: bool,
    work: Work<'a>,
}

enum Work<'a> {
    Kernel(Plan),
    Cublas(Product<'a>),
}

impl<'a, T: Number> Runner<'a, T> {
    /// `matrices` lie like all those that it will be launched on.
    fn new(
        device: &'a CudaDevice,
        contender: &Contender<'a>,
        problem: &'a Problem<T>,
        matrices: &[Placed; 3],
        runs_apart: bool,
    ) -> Result<Self, MeasureError> {
        let work = match contender {
            Contender::Kernel(choice) => {
                let facts = DeviceFacts::of(device.properties());
                Work::Kernel(choice.plan(run::call(problem, *matrices), &facts)?)
            }
            Contender::Cublas(cublas) => Work::Cublas(cublas.product(problem, matrices)?),
        };
        Ok(Runner {
            device,
            problem,
            allocation: contender.allocation(),
            runs_apart,
            work,
        })
    }

    /// Bytes of workspace that it needs.
    fn workspace_bytes(&self) -> usize {
        match &self.work {
            Work::Kernel(plan) => plan.workspace_bytes(),
            Work::Cublas(_) => 0,
        }
    }

    /// How many algorithms there are to choose from.
    fn algorithms(&self) -> usize {
        match &self.work {
            Work::Kernel(_) => 1,
            Work::Cublas(product) => product.algorithms(),
        }
    }

    fn choose(&mut self, algorithm: usize) {
        if let Work::Cublas(product) = &mut self.work {
            product.choose(algorithm);
        }
    }

    fn launch(
        &self,
        matrices: &[Placed; 3],
        workspace: &DeviceBuffer<u8>,
    ) -> Result<(), MeasureError> {
        let problem = self.problem;
        match &self.work {
            Work::Kernel(plan) => {
                let workspace = workspace.as_device_ptr().as_ptr().cast_mut();
                let bindings = run::bindings(problem, *matrices, workspace);
                let stream = CudaStream::of(self.device);
                // SAFETY: these are copies of the problem's matrices, which outlive `measure`'s
                // last wait, and lie like those that the plan was made for; the workspace
                // outlives it, too, and is as large as any plan requires.
                unsafe { gpu_gemm::run(&stream, plan, &bindings)? };
            }
            // SAFETY: as above.
            Work::Cublas(product) => unsafe { product.launch(matrices)? },
        }
        Ok(())
    }
}

/// Times each contender on `problem`, in the order given, and hands the C of a launch of each,
/// made as those that were timed, to `check`, with the contender's number. `doing` is told what
/// takes long.
///
/// # Errors
///
/// There is no memory even for one copy of the matrices, a launch fails, or a time cannot be true.
pub fn measure<T: Number>(
    device: &CudaDevice,
    contenders: &[Contender<'_>],
    problem: &Problem<T>,
    effort: Effort,
    doing: &dyn Fn(String),
    check: &mut dyn FnMut(usize, Matrix<T>),
) -> Result<Measured, MeasureError> {
    by_inputs!(
        problem,
        measure_as::<_, T>(device, contenders, problem, effort, doing, check)
    )
}

/// [`measure`], by the type in which kernels get A and B.
fn measure_as<Input: Number, T: Number>(
    device: &CudaDevice,
    contenders: &[Contender<'_>],
    problem: &Problem<T>,
    effort: Effort,
    doing: &dyn Fn(String),
    check: &mut dyn FnMut(usize, Matrix<T>),
) -> Result<Measured, MeasureError> {
    let began = Instant::now();
    device.enter()?;
    let allocations: Vec<Allocation> = contenders.iter().map(Contender::allocation).collect();
    let copies = Copies::<Input, T>::new(device, &allocations, problem)?;
    // Beside kernels on tensor cores it is what these are compared with.
    let has_apart = !contenders.iter().any(Contender::is_on_tensor_cores);
    let mut runners = Vec::new();
    for contender in contenders {
        let matrices = &copies.matrices(contender.allocation())[0];
        let runs_apart = has_apart && contender.is_tf32_library();
        let runner = Runner::new(device, contender, problem, matrices, runs_apart)?;
        runners.push(runner);
    }
    // One launch after the other: one workspace is enough for all.
    let needed = runners
        .iter()
        .map(Runner::workspace_bytes)
        .fold(1, usize::max);
    let workspace = device.allocate(needed)?;
    let bench = Bench {
        device,
        probe: Probe::new(device.properties().ordinal),
        copies: &copies,
        workspace: &workspace,
        launches: Cell::new(0),
    };
    let names: Vec<&str> = contenders.iter().map(Contender::name).collect();
    // Whatever happens below, neither copies nor workspace must be freed under a running launch.
    let result = bench.measure(runners, effort, (&names, doing), check);
    let ended = device.stream().synchronize();
    let measured = result?;
    ended.map_err(during("Waiting for the GPU"))?;
    let properties = device.properties();
    for (index, contender) in contenders.iter().enumerate() {
        let limits = Limits {
            peak_flops_per_s: contender.peak(properties),
            bandwidth_bytes_per_s: properties.bandwidth_bytes_per_s,
            elapsed: began.elapsed(),
        };
        limits.check(contender.name(), problem, &measured.timings[index])?;
        if let Some(sustained) = measured.sustained.get(index) {
            limits.check(contender.name(), problem, &sustained.timing())?;
        }
    }
    Ok(measured)
}

/// What launches of all contenders share.
pub(super) struct Bench<'a, Input: Number, T: Number> {
    pub device: &'a CudaDevice,
    pub probe: Option<Probe>,
    copies: &'a Copies<Input, T>,
    workspace: &'a DeviceBuffer<u8>,
    launches: Cell<usize>,
}

impl<Input: Number, T: Number> Bench<'_, Input, T> {
    /// Launches a contender on the copies that were not used for the longest time.
    pub fn launch(&self, runner: &Runner<'_, T>) -> Result<(), MeasureError> {
        self.launches.set(self.launches.get() + 1);
        let matrices = self.copies.matrices(runner.allocation);
        runner.launch(
            &matrices[self.launches.get() % matrices.len()],
            self.workspace,
        )
    }

    /// Launches it so often, between two events.
    fn launch_timed(&self, runner: &Runner<'_, T>, launches: u32) -> Result<Span, MeasureError> {
        let stream = self.device.stream();
        let span = Span::new()?;
        let gate = (launches > 1).then(|| Gate::close(stream)).transpose()?;
        span.begin(stream)?;
        for _ in 0..launches {
            self.launch(runner)?;
        }
        span.end(stream)?;
        drop(gate);
        Ok(span)
    }

    fn wait(&self, what: &'static str) -> Result<(), DeviceError> {
        self.device.stream().synchronize().map_err(during(what))
    }

    fn measure(
        &self,
        runners: Vec<Runner<'_, T>>,
        effort: Effort,
        (names, doing): (&[&str], &dyn Fn(String)),
        check: &mut dyn FnMut(usize, Matrix<T>),
    ) -> Result<Measured, MeasureError> {
        let mut plans = Vec::new();
        for mut runner in runners {
            self.choose_fastest(&mut runner)?;
            // The first launch loads code; the second is timed.
            self.launch(&runner)?;
            let span = self.launch_timed(&runner, 1)?;
            self.wait("Waiting for the first launch")?;
            plans.push((runner, Repeats::new(effort, span.seconds()?)));
        }
        let (timings, state) = self.in_turns(&plans)?;
        let mut sustained = Vec::new();
        if let Some(seconds) = effort.sustained {
            let runners: Vec<&Runner<'_, T>> = plans.iter().map(|(runner, _)| runner).collect();
            let medians: Vec<f64> = timings.iter().map(Timing::median).collect();
            let doing = |index: usize| doing(format!("{}: back to back", names[index]));
            sustained = sustained::measure(self, &runners, &medians, seconds, &doing)?;
        }
        for (index, (runner, _)) in plans.iter().enumerate() {
            let (allocation, c) = (runner.allocation, &runner.problem.c);
            let next = (self.launches.get() + 1) % self.copies.matrices(allocation).len();
            self.copies.write_c(allocation, next, c)?;
            self.launch(runner)?;
            self.wait("Waiting for the launch after the timed ones")?;
            check(index, self.copies.read_c(allocation, next, c)?);
        }
        Ok(Measured {
            timings,
            sustained,
            state,
        })
    }

    /// Makes the fastest of the algorithms that a library proposes the one that is launched. One
    /// that does not run is left out.
    fn choose_fastest(&self, runner: &mut Runner<'_, T>) -> Result<(), MeasureError> {
        let algorithms = runner.algorithms();
        if algorithms == 1 {
            return Ok(());
        }
        let mut fitting = Vec::new();
        for algorithm in 0..algorithms {
            runner.choose(algorithm);
            if self.launch(runner).is_err() {
                continue;
            }
            let span = self.launch_timed(runner, 1)?;
            self.wait("Waiting for an algorithm of cublasLt")?;
            fitting.push((algorithm, span.seconds()?, Vec::new()));
        }
        // In turns, so that they have the same clocks.
        for _ in 0..TRIALS {
            for (algorithm, seconds, spans) in &mut fitting {
                runner.choose(*algorithm);
                spans.push(self.launch_timed(runner, launches_per_run(*seconds))?);
            }
        }
        self.wait("Waiting for the algorithms of cublasLt")?;
        let mut fastest: Option<(usize, f64)> = None;
        for (algorithm, seconds, spans) in fitting {
            let times: Result<Vec<f64>, DeviceError> = spans.iter().map(Span::seconds).collect();
            let median = statistics::median(&times?) / f64::from(launches_per_run(seconds));
            if fastest.is_none_or(|(_, time)| median < time) {
                fastest = Some((algorithm, median));
            }
        }
        let (algorithm, _) = fastest.ok_or(CublasError::NoAlgorithm)?;
        runner.choose(algorithm);
        Ok(())
    }

    /// Times the contenders, alternating run by run, and says what the GPU did meanwhile.
    fn in_turns(
        &self,
        plans: &[(Runner<'_, T>, Repeats)],
    ) -> Result<(Vec<Timing>, Option<GpuState>), MeasureError> {
        for (runner, plan) in plans {
            for _ in 0..plan.warmup * plan.launches_per_run {
                self.launch(runner)?;
            }
        }
        let mut spans: Vec<Vec<Span>> = plans.iter().map(|_| Vec::new()).collect();
        let mut state = None;
        for apart in [false, true] {
            let runs = plans.iter().map(|(runner, plan)| {
                let has_any = runner.runs_apart == apart;
                if has_any { plan.runs } else { 0 }
            });
            for index in turns(&runs.collect::<Vec<_>>()) {
                let (runner, plan) = &plans[index];
                spans[index].push(self.launch_timed(runner, plan.launches_per_run)?);
            }
            if let Some(probe) = self.probe.as_ref().filter(|_| !apart) {
                state = Some(probe.sample());
                for (runner, _) in plans.iter().filter(|(runner, _)| runner.runs_apart) {
                    self.launch(runner)?;
                }
            }
        }
        self.wait("Waiting for the timed launches")?;
        let mut timings = Vec::new();
        for ((_, plan), spans) in plans.iter().zip(spans) {
            let mut samples = Vec::with_capacity(spans.len());
            for span in spans {
                samples.push(span.seconds()? / f64::from(plan.launches_per_run));
            }
            timings.push(Timing::new(samples, plan.warmup, plan.launches_per_run));
        }
        Ok((timings, state))
    }
}

/// How many launches make a run, if one takes `seconds`.
fn launches_per_run(seconds: f64) -> u32 {
    (SHORTEST_RUN / seconds.max(1e-6)).ceil() as u32
}

/// How often a contender runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Repeats {
    warmup: u32,
    runs: u32,
    launches_per_run: u32,
}

impl Repeats {
    /// For launches of about `seconds`.
    fn new(effort: Effort, seconds: f64) -> Repeats {
        // More than a u32 holds becomes the largest, even an infinity.
        let affordable = (BUDGET / seconds) as u32;
        Repeats {
            warmup: effort.warmup.unwrap_or(WARMUP.min(affordable.max(1))),
            runs: effort
                .runs
                .unwrap_or(RUNS.min(affordable.max(FEWEST_RUNS)))
                .max(1),
            launches_per_run: launches_per_run(seconds),
        }
    }
}

/// Keeps a stream from what is queued on it, until it is dropped.
struct Gate {
    _is_closed: Sender<()>,
}

impl Gate {
    fn close(stream: &Stream) -> Result<Gate, DeviceError> {
        let (is_closed, opens) = mpsc::channel::<()>();
        // Nothing is ever sent: the wait ends when the other side is dropped.
        let wait = move || opens.recv().unwrap_or_default();
        let added = stream.add_callback(Box::new(wait));
        added.map_err(during("Queueing a wait for the host"))?;
        Ok(Gate {
            _is_closed: is_closed,
        })
    }
}

/// Two events around some launches.
struct Span {
    start: Event,
    end: Event,
}

impl Span {
    fn new() -> Result<Span, DeviceError> {
        let event = || Event::new(EventFlags::DEFAULT).map_err(during("Making an event"));
        Ok(Span {
            start: event()?,
            end: event()?,
        })
    }

    fn begin(&self, stream: &Stream) -> Result<(), DeviceError> {
        self.start
            .record(stream)
            .map_err(during("Recording an event"))
    }

    fn end(&self, stream: &Stream) -> Result<(), DeviceError> {
        self.end
            .record(stream)
            .map_err(during("Recording an event"))
    }

    /// Once both events have happened.
    fn seconds(&self) -> Result<f64, DeviceError> {
        let milliseconds = self
            .end
            .elapsed_time_f32(&self.start)
            .map_err(during("Reading a time"))?;
        Ok(f64::from(milliseconds) / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: Effort = Effort {
        runs: None,
        warmup: None,
        sustained: None,
    };

    #[test]
    fn a_short_kernel_is_launched_many_times_a_run() {
        let plan = Repeats::new(DEFAULT, 1e-5);
        assert_eq!((plan.runs, plan.warmup, plan.launches_per_run), (20, 3, 10));
    }

    #[test]
    fn a_slow_kernel_runs_less_often_and_never_less_than_thrice() {
        let plan = |seconds| Repeats::new(DEFAULT, seconds);
        assert_eq!((plan(1.0).runs, plan(1.0).warmup), (10, 3));
        assert_eq!((plan(60.0).runs, plan(60.0).warmup), (3, 1));
        assert_eq!(plan(60.0).launches_per_run, 1);
    }

    #[test]
    fn launches_too_short_for_the_clock_run_as_often_as_those_of_a_microsecond() {
        let plan = Repeats::new(DEFAULT, 0.0);
        assert_eq!(plan, Repeats::new(DEFAULT, 1e-6));
        assert_eq!((plan.runs, plan.warmup), (20, 3));
    }

    #[test]
    fn requested_runs_are_done_however_slow_they_are_and_at_least_one() {
        for (runs, done) in [(50, 50), (1, 1), (0, 1)] {
            let asked = Effort {
                runs: Some(runs),
                warmup: Some(0),
                sustained: None,
            };
            let plan = Repeats::new(asked, 100.0);
            assert_eq!((plan.runs, plan.warmup), (done, 0));
        }
    }
}
