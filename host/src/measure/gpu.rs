//! Times on a GPU, from CUDA events.
//!
//! - Contenders alternate, run by run, so that clocks and temperature are the same for all: only
//!   ratios mean anything. The order changes from one repetition to the next: after a kernel
//!   that draws much power, the next contender gets a lower clock (an H200 at 4096: 5 % after
//!   `few-rows`). cuBLAS on tensor cores, which draws most, runs after all others.
//! - Each launch gets different copies of the matrices from the launch before, together twice
//!   the L2, so that no launch finds its operands there.
//! - The host never waits between launches; what a run records is read when all have ended. A
//!   run of a short kernel consists of as many launches as take a tenth of a millisecond, so
//!   that the gaps around events do not count.
//! - What is timed is checked: afterwards each contender launches once more, by the same calls, on
//!   the next copies, whose C is as it was at first; the caller gets the C that it leaves.
//! - The GPU's state ([`GpuState`]) is read while it works on the timed launches: all of them are
//!   queued by then, except those of cuBLAS on tensor cores, whose clock is another. These begin
//!   after a launch that is not timed, so that the queue is never empty in a timed run.
//! - A time that cannot be true is an error ([`Limits`]).

use std::cell::Cell;
use std::time::Instant;

use cust::error::CudaResult;
use cust::event::{Event, EventFlags};
use cust::memory::{CopyDestination, DeviceBuffer};
use cust::stream::Stream;
use gpu_gemm::device::cuda::status::during;
use gpu_gemm::gpu::{Gpu, Properties};
use gpu_gemm::gpu_kernels::spec::Allocation;
use gpu_gemm::{
    Choice, CudaDevice, CudaStream, DeviceError, DeviceFacts, ElementType, Plan, PlanError,
};
use thiserror::Error;

use super::clblast::ClBlastError;
use super::cublas::{Cublas, CublasError, Precision};
use super::limits::{Implausible, Limits};
use super::nvml::{GpuState, Probe};
use super::timing::{Effort, Timing, turns};
use crate::data::{Matrix, Number, Problem, ProblemError, Stored, by_inputs};
use crate::run::{self, Pitched, Placed, RunError, Uploaded, placed_at};

/// Default numbers of runs, before and during the timing.
const RUNS: u32 = 20;
const WARMUP: u32 = 3;
/// Seconds that all runs of one contender may take by default.
const BUDGET: f64 = 10.0;
/// Fewer runs than this give no meaningful median.
const FEWEST_RUNS: u32 = 3;
/// Seconds that a run lasts at least.
const SHORTEST_RUN: f64 = 1e-4;
/// Copies of the matrices at most.
const MOST_COPIES: usize = 1024;

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
    ClBlast(#[from] ClBlastError),
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
    fn name(&self) -> &'static str {
        match self {
            Contender::Kernel(choice) => choice.variant.name,
            Contender::Cublas(cublas) => cublas.precision().name(),
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

    /// Whether it would disturb the contenders that run after it.
    fn runs_apart(&self) -> bool {
        match self {
            Contender::Kernel(_) => false,
            Contender::Cublas(cublas) => cublas.precision() == Precision::Tf32,
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
struct Runner<'a, T: Number> {
    device: &'a CudaDevice,
    problem: &'a Problem<T>,
    allocation: Allocation,
    runs_apart: bool,
    work: Work<'a>,
}

enum Work<'a> {
    Kernel(Plan),
    Cublas(&'a Cublas<'a>),
}

impl<'a, T: Number> Runner<'a, T> {
    /// `matrices` lie like all those that it will be launched on.
    fn new(
        device: &'a CudaDevice,
        contender: &Contender<'a>,
        problem: &'a Problem<T>,
        matrices: &[Placed; 3],
    ) -> Result<Self, PlanError> {
        let work = match contender {
            Contender::Kernel(choice) => {
                let facts = DeviceFacts::of(device.properties());
                Work::Kernel(choice.plan(run::call(problem, *matrices), &facts)?)
            }
            Contender::Cublas(cublas) => Work::Cublas(cublas),
        };
        Ok(Runner {
            device,
            problem,
            allocation: contender.allocation(),
            runs_apart: contender.runs_apart(),
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
            Work::Cublas(cublas) => unsafe {
                cublas.gemm(problem, matrices)?;
            },
        }
        Ok(())
    }
}

/// Times each contender on `problem`, in the order given, and hands the C of a launch of each,
/// made as those that were timed, to `check`, with the contender's number.
///
/// # Errors
///
/// There is no memory even for one copy of the matrices, a launch fails, or a time cannot be true.
pub fn measure<T: Number>(
    device: &CudaDevice,
    contenders: &[Contender<'_>],
    problem: &Problem<T>,
    effort: Effort,
    check: &mut dyn FnMut(usize, Matrix<T>),
) -> Result<Measured, MeasureError> {
    by_inputs!(
        problem,
        measure_as::<_, T>(device, contenders, problem, effort, check)
    )
}

/// [`measure`], by the type in which kernels get A and B.
fn measure_as<Input: Number, T: Number>(
    device: &CudaDevice,
    contenders: &[Contender<'_>],
    problem: &Problem<T>,
    effort: Effort,
    check: &mut dyn FnMut(usize, Matrix<T>),
) -> Result<Measured, MeasureError> {
    let began = Instant::now();
    device.enter()?;
    let copies = Copies::<Input, T>::new(device, contenders, problem)?;
    let mut runners = Vec::new();
    for contender in contenders {
        let matrices = &copies.matrices(contender.allocation())[0];
        runners.push(Runner::new(device, contender, problem, matrices)?);
    }
    // One launch after the other: one workspace is enough for all.
    let needed = runners
        .iter()
        .map(Runner::workspace_bytes)
        .fold(1, usize::max);
    let workspace = device.allocate(needed)?;
    // Whatever happens below, neither copies nor workspace must be freed under a running launch.
    let result = measure_on(device, runners, effort, &copies, &workspace, check);
    let ended = device.stream().synchronize();
    let measured = result?;
    ended.map_err(during("Waiting for the GPU"))?;
    let properties = device.properties();
    for (contender, timing) in contenders.iter().zip(&measured.timings) {
        let limits = Limits {
            peak_flops_per_s: contender.peak(properties),
            bandwidth_bytes_per_s: properties.bandwidth_bytes_per_s,
            elapsed: began.elapsed(),
        };
        limits.check(contender.name(), problem, timing)?;
    }
    Ok(measured)
}

fn measure_on<Input: Number, T: Number>(
    device: &CudaDevice,
    runners: Vec<Runner<'_, T>>,
    effort: Effort,
    copies: &Copies<Input, T>,
    workspace: &DeviceBuffer<u8>,
    check: &mut dyn FnMut(usize, Matrix<T>),
) -> Result<Measured, MeasureError> {
    let probe = Probe::new(device.properties().ordinal);
    let stream = device.stream();
    let launches = Cell::new(0);
    let launch = |runner: &Runner<'_, T>| {
        launches.set(launches.get() + 1);
        let matrices = copies.matrices(runner.allocation);
        runner.launch(&matrices[launches.get() % matrices.len()], workspace)
    };

    let mut plans = Vec::new();
    for runner in runners {
        // The first launch loads code; the second is timed.
        launch(&runner)?;
        let span = Span::new()?;
        span.begin(stream)?;
        launch(&runner)?;
        span.end(stream)?;
        stream
            .synchronize()
            .map_err(during("Waiting for the first launch"))?;
        plans.push((runner, Repeats::new(effort, span.seconds()?)));
    }

    for (runner, plan) in &plans {
        for _ in 0..plan.warmup * plan.launches_per_run {
            launch(runner)?;
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
            let span = Span::new()?;
            span.begin(stream)?;
            for _ in 0..plan.launches_per_run {
                launch(runner)?;
            }
            span.end(stream)?;
            spans[index].push(span);
        }
        if let Some(probe) = probe.as_ref().filter(|_| !apart) {
            state = Some(probe.sample());
            for (runner, _) in plans.iter().filter(|(runner, _)| runner.runs_apart) {
                launch(runner)?;
            }
        }
    }
    stream
        .synchronize()
        .map_err(during("Waiting for the timed launches"))?;

    for (index, (runner, _)) in plans.iter().enumerate() {
        let next = (launches.get() + 1) % copies.matrices(runner.allocation).len();
        copies.reset_c(runner, next)?;
        launch(runner)?;
        stream
            .synchronize()
            .map_err(during("Waiting for the launch after the timed ones"))?;
        check(index, copies.c(runner, next)?);
    }

    let mut timings = Vec::new();
    for ((_, plan), spans) in plans.iter().zip(spans) {
        let mut samples = Vec::with_capacity(spans.len());
        for span in spans {
            samples.push(span.seconds()? / f64::from(plan.launches_per_run));
        }
        timings.push(Timing::new(samples, plan.warmup, plan.launches_per_run));
    }
    Ok(Measured { timings, state })
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
            launches_per_run: (SHORTEST_RUN / seconds.max(1e-6)).ceil() as u32,
        }
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

/// Copies of a problem's matrices in the GPU's memory, in the allocations that the contenders
/// take.
struct Copies<Input: Number, T: Number> {
    as_given: Vec<[Placed; 3]>,
    pitched: Vec<[Placed; 3]>,
    /// What those point into: A and B, and C.
    buffers: Vec<([DeviceBuffer<Input>; 2], DeviceBuffer<T>)>,
    pitched_matrices: Vec<([Pitched<Input>; 2], Pitched<T>)>,
}

impl<Input: Number, T: Number> Copies<Input, T> {
    /// As many as together are twice the L2, in half of the free memory; at least one.
    fn new(
        device: &CudaDevice,
        contenders: &[Contender<'_>],
        problem: &Problem<T>,
    ) -> Result<Self, RunError> {
        let is_taken = |allocation| {
            contenders
                .iter()
                .any(|contender| contender.allocation() == allocation)
        };
        let allocated = match is_taken(Allocation::Pitched) {
            true => pitched_bytes(problem),
            false => problem.bytes(),
        };
        let (free, _) = device.memory()?;
        let l2_bytes = device.properties().l2_bytes;
        let count = number_of_copies(l2_bytes, free, problem.bytes(), allocated);
        let mut copies = Copies {
            as_given: Vec::new(),
            pitched: Vec::new(),
            buffers: Vec::new(),
            pitched_matrices: Vec::new(),
        };
        let stored = problem.stored_as::<Input>()?;
        if is_taken(Allocation::AsGiven) {
            copies.add_as_given(device, &stored, count)?;
        }
        if is_taken(Allocation::Pitched) {
            copies.add_pitched(device, &stored, count)?;
        }
        Ok(copies)
    }

    fn matrices(&self, allocation: Allocation) -> &[[Placed; 3]] {
        match allocation {
            Allocation::AsGiven => &self.as_given,
            Allocation::Pitched => &self.pitched,
        }
    }

    /// Makes C of the copies with this number, in the runner's allocation, what it was at first.
    fn reset_c(&self, runner: &Runner<'_, T>, number: usize) -> Result<(), RunError> {
        let c = &runner.problem.c;
        match runner.allocation {
            Allocation::AsGiven => {
                let copied = upload(&self.buffers[number].1, c.buffer());
                Ok(copied.map_err(during("Copying C to the GPU"))?)
            }
            Allocation::Pitched => Ok(self.pitched_matrices[number].1.write(c)?),
        }
    }

    /// That C, as it is now.
    fn c(&self, runner: &Runner<'_, T>, number: usize) -> Result<Matrix<T>, RunError> {
        let c = &runner.problem.c;
        match runner.allocation {
            Allocation::AsGiven => {
                let mut elements = vec![T::default(); c.buffer().len()];
                let buffer = &self.buffers[number].1;
                let copied = buffer.index(0..elements.len()).copy_to(&mut elements[..]);
                copied.map_err(during("Copying C from the GPU"))?;
                Ok(c.with_buffer(elements))
            }
            Allocation::Pitched => Ok(self.pitched_matrices[number].1.read(c)?),
        }
    }

    fn add_as_given(
        &mut self,
        device: &CudaDevice,
        stored: &Stored<'_, T, Input>,
        count: usize,
    ) -> Result<(), RunError> {
        let buffers = &mut self.buffers;
        for _ in 0..count {
            let first = buffers.first();
            let a = copied(device, &stored.a, first.map(|([a, _], _)| a))?;
            let b = copied(device, &stored.b, first.map(|([_, b], _)| b))?;
            let c = copied(device, stored.c, first.map(|(_, c)| c))?;
            self.as_given.push([
                placed_at(a.as_device_ptr(), &stored.a),
                placed_at(b.as_device_ptr(), &stored.b),
                placed_at(c.as_device_ptr(), stored.c),
            ]);
            buffers.push(([a, b], c));
        }
        Ok(())
    }

    fn add_pitched(
        &mut self,
        device: &CudaDevice,
        stored: &Stored<'_, T, Input>,
        count: usize,
    ) -> Result<(), RunError> {
        for _ in 0..count {
            let a = Pitched::upload(device, &stored.a)?;
            let b = Pitched::upload(device, &stored.b)?;
            let c = Pitched::upload(device, stored.c)?;
            self.pitched
                .push([a.placed(&stored.a), b.placed(&stored.b), c.placed(stored.c)]);
            self.pitched_matrices.push(([a, b], c));
        }
        Ok(())
    }
}

/// As many copies as together have twice the bytes of the L2, in a quarter of the free memory.
pub(super) fn number_of_copies(
    l2_bytes: usize,
    free: usize,
    read: usize,
    allocated: usize,
) -> usize {
    let enough = (2 * l2_bytes).div_ceil(read.max(1)) + 1;
    enough
        .min(free / 4 / allocated.max(1))
        .clamp(1, MOST_COPIES)
}

/// The bytes of the matrices where each row begins at a multiple of 512 bytes, as drivers allocate
/// them: a single column takes 128 times its f32 elements.
fn pitched_bytes<T: Number>(problem: &Problem<T>) -> usize {
    let [a, b] = problem.transposes;
    let size = |matrix: &Matrix<T>| (matrix.rows(), matrix.columns());
    let stored = [
        (a.of(size(&problem.a)), problem.inputs),
        (b.of(size(&problem.b)), problem.inputs),
        (size(&problem.c), T::TYPE),
    ];
    stored
        .iter()
        .map(|((rows, columns), element)| {
            let row = (columns * element.bytes()).max(1);
            (rows + 2) * row.next_multiple_of(512)
        })
        .sum()
}

/// A copy of a matrix's buffer in the GPU's memory: of the first such copy, if there is one.
fn copied<T: Number>(
    device: &CudaDevice,
    matrix: &Matrix<T>,
    first: Option<&DeviceBuffer<T>>,
) -> Result<DeviceBuffer<T>, RunError> {
    let mut buffer = device.allocate(matrix.buffer().len().max(1))?;
    match first {
        None => upload(&buffer, matrix.buffer()),
        Some(first) => buffer.copy_from(first),
    }
    .map_err(during("Copying matrices to the GPU"))?;
    Ok(buffer)
}

fn upload<T: Number>(buffer: &DeviceBuffer<T>, elements: &[T]) -> CudaResult<()> {
    buffer.index(0..elements.len()).copy_from(elements)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Data, Layout};
    use gpu_gemm::{Shape, Transpose};

    const DEFAULT: Effort = Effort {
        runs: None,
        warmup: None,
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
    fn copies_exceed_the_l2_and_fit_into_memory() {
        let (kib, mib) = (1 << 10, 1 << 20);
        assert_eq!(number_of_copies(50 * mib, 1 << 36, 48 * mib, 48 * mib), 4);
        assert_eq!(number_of_copies(50 * mib, 1 << 36, 1 << 34, 1 << 34), 1);
        // Half a MiB of columns that take 64 MiB each: memory decides.
        assert_eq!(number_of_copies(50 * mib, 1 << 30, 512 * kib, 64 * mib), 4);
        // Bytes, of which the L2 or the memory decides.
        assert_eq!(number_of_copies(100, 1 << 30, 1, 1), 201);
        assert_eq!(number_of_copies(100, 400, 1, 1), 100);
        assert_eq!(number_of_copies(mib, 1 << 30, 1, 1), MOST_COPIES);
    }

    #[test]
    fn a_pitched_column_takes_a_row_of_memory_for_each_element() {
        let shape = Shape {
            m: 3,
            n: 1,
            k: 1000,
        };
        let layout = Layout::compact(shape);
        let problem = Problem::random(shape, layout, Data::Normal, 1, 1.0_f32, 0.0).unwrap();
        // A: 3 rows of 4000 bytes; B: 1000 of 4; C: 3 of 4; and two rows of poison each.
        assert_eq!(pitched_bytes(&problem), 5 * 4096 + 1002 * 512 + 5 * 512);
        // A: 1000 rows of 12 bytes; B: 1 of 4000.
        let transposed = Problem {
            transposes: [Transpose::Yes; 2],
            ..problem
        };
        assert_eq!(pitched_bytes(&transposed), 1002 * 512 + 3 * 4096 + 5 * 512);
    }

    #[test]
    fn requested_runs_are_done_however_slow_they_are_and_at_least_one() {
        for (runs, done) in [(50, 50), (1, 1), (0, 1)] {
            let asked = Effort {
                runs: Some(runs),
                warmup: Some(0),
            };
            let plan = Repeats::new(asked, 100.0);
            assert_eq!((plan.runs, plan.warmup), (done, 0));
        }
    }
}
