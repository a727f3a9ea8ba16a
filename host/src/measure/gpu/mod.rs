//! Times on a GPU, from CUDA events, and on an OpenCL device, by the wall clock: not every such
//! device has usable timers.
//!
//! - Contenders alternate, run by run, so that clocks and temperature are the same for all: only
//!   ratios are meaningful. The order changes from one repetition to the next: after a kernel that
//!   draws much power, the next contender runs at a lower clock (an H200 at 4096: 5 % after
//!   `few-rows`). cuBLAS in tf32, which draws the most, runs after all others, unless some of
//!   these are kernels on tensor cores.
//! - Launches use copies of the matrices in turn, together twice the L2, so that no launch finds
//!   its operands there.
//! - On a GPU the host never waits between launches; events are read after all runs. A run of a
//!   short kernel has enough launches to take a tenth of a millisecond, so that the gaps around
//!   events do not count, and the GPU begins only when all of them are queued (`Gate`): a call of
//!   cuBLAS takes longer on the host than a small product on the GPU.
//! - Timed results are checked: afterwards each contender launches once more, with the same calls,
//!   on the next copies, with C restored; the caller gets the resulting C.
//! - The GPU's state ([`GpuState`]) is read while it works on the timed launches: all of them are
//!   queued by then, except cuBLAS on tensor cores, which runs at another clock. It begins after
//!   an untimed launch, so that the queue is never empty in a timed run.
//! - With OpenCL the host waits at the end of a run, so a run takes at least a millisecond.
//! - A time that cannot be true is an error ([`Limits`]).

mod bench;
mod gate;
mod room;
mod sustained;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Instant;

use gpu_gemm::gpu_kernels::spec::{Allocation, Unit};
use gpu_gemm::{CudaDevice, DeviceError, Mark};

use super::cublas::CublasError;
use super::limits::Limits;
use super::nvml::{GpuState, Probe};
use super::pace::{BY_OPENCL, ON_GPU, Repeats};
use super::timing::{Effort, Timing, turns};
use crate::data::{Matrix, Number};
use crate::run::Resident;
use crate::statistics;
use bench::Work;
pub(super) use bench::{Bench, Runner};
pub use bench::{Contender, MeasureError};
use gate::Gate;
use room::copies;
pub use sustained::Sustained;

/// Runs of each algorithm that a library proposes, to find the fastest.
const TRIALS: u32 = 5;

/// The results of a measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// One for each contender.
    pub timings: Vec<Timing>,
    /// One for each contender, if that was requested.
    pub sustained: Vec<Sustained>,
    /// The state of the GPU during the runs, if there is an NVML.
    pub state: Option<GpuState>,
}

/// Times each contender on the problem, and passes to `check` its index and the C of one more
/// launch like the timed ones. The results are in the order given. `doing` is told the current
/// stage. With OpenCL nothing is launched back to back.
///
/// # Errors
///
/// There is no memory even for one copy of the matrices, a launch fails or writes where it must
/// not, a time cannot be true, or the device is neither one GPU nor an OpenCL device.
///
/// # Panics
///
/// If a plan belongs to another product.
pub fn measure<T: Number>(
    resident: &mut Resident<'_, T>,
    contenders: &[Contender<'_>],
    effort: Effort,
    doing: &dyn Fn(String),
    check: &mut dyn FnMut(usize, Matrix<T>),
) -> Result<Measured, MeasureError> {
    let began = Instant::now();
    let (device, problem) = (resident.device, resident.problem);
    let backend = &*device.as_backend(&|| ())?;
    let _entered = backend.enter()?;
    let gpu = device.one_gpu();
    let pace = if gpu.is_some() { ON_GPU } else { BY_OPENCL };
    let mut numbers = Vec::new();
    for contender in contenders {
        let variant = contender.variant();
        let allocation = variant.map_or(Allocation::AsGiven, |variant| variant.allocation);
        numbers.push(resident.allocated(backend, allocation)?);
    }
    let largest = numbers
        .iter()
        .map(|&number| resident.copies(number).bytes())
        .max();
    let count = copies(backend.capacity()?, problem.bytes(), largest.unwrap_or(0));
    // Some CPUs share a cache of hundreds of megabytes.
    let count = count.min(if gpu.is_some() { 1024 } else { 8 });
    for &number in &numbers {
        resident.copies_mut(number).make(backend, count)?;
    }
    // cuBLAS in tf32 runs apart unless kernels on tensor cores are compared with it.
    let mut variants = contenders.iter().filter_map(Contender::variant);
    let has_apart = variants.all(|variant| variant.unit == Unit::CudaCores);
    let mut runners = Vec::new();
    for (contender, &copies) in contenders.iter().zip(&numbers) {
        let product = resident.copies(copies).product(0);
        let work = match contender {
            Contender::Kernel(plan) => {
                assert_eq!(*plan.call(), product.call(), "a plan of this product");
                Work::Kernel(plan)
            }
            Contender::Cublas(cublas) => {
                let bias = resident.copies(copies).bias_of_c();
                let epilogue = problem.epilogue.map(|epilogue| (epilogue, bias));
                Work::Cublas(cublas.prepare(&product, epilogue)?)
            }
        };
        runners.push(Runner {
            name: contender.name(),
            copies,
            runs_apart: has_apart && contender.is_tf32_library(),
            work,
        });
    }
    // Launches run one after the other, so one workspace is enough.
    let needed = runners.iter().map(|runner| match &runner.work {
        Work::Kernel(plan) => plan.workspace_bytes(),
        Work::Cublas(_) => 0,
    });
    let mut bench = Bench {
        resident,
        backend,
        gpu,
        pace,
        probe: gpu.and_then(|gpu| Probe::new(gpu.properties().ordinal)),
        workspace: backend.allocate(needed.max().unwrap_or(0).max(1))?,
        count,
        launches: Cell::new(0),
    };
    // Even after an error, copies and workspace must not be freed while a launch runs.
    let result = bench.measure(runners, effort, doing, check);
    let ended = backend.synchronize();
    let measured = result?;
    ended?;
    for (index, contender) in contenders.iter().enumerate() {
        let properties = gpu.map(CudaDevice::properties);
        let limits = Limits {
            peak_flops_per_s: properties.and_then(|properties| contender.peak(properties)),
            bandwidth_bytes_per_s: properties.map_or(0.0, |gpu| gpu.bandwidth_bytes_per_s),
            elapsed: began.elapsed(),
        };
        limits.check(contender.name(), problem, &measured.timings[index])?;
        if let Some(sustained) = measured.sustained.get(index) {
            limits.check(contender.name(), problem, &sustained.timing())?;
        }
    }
    Ok(measured)
}

/// Seconds from one mark to another, once both have been reached.
fn seconds((start, end): &(Mark, Mark)) -> Result<f64, DeviceError> {
    end.seconds_since(start)
}

impl<T: Number> Bench<'_, '_, T> {
    /// The marks before and after this many launches.
    fn launch_timed(
        &self,
        runner: &Runner<'_>,
        launches: u32,
    ) -> Result<(Mark, Mark), MeasureError> {
        let gated = self.gpu.filter(|_| launches > 1);
        let gate = gated.map(|gpu| Gate::close(gpu.stream())).transpose()?;
        let start = self.mark()?;
        for _ in 0..launches {
            self.launch(runner)?;
        }
        let end = self.mark()?;
        drop(gate);
        Ok((start, end))
    }

    fn measure(
        &mut self,
        runners: Vec<Runner<'_>>,
        effort: Effort,
        doing: &dyn Fn(String),
        check: &mut dyn FnMut(usize, Matrix<T>),
    ) -> Result<Measured, MeasureError> {
        let mut plans = Vec::new();
        for mut runner in runners {
            self.choose_fastest(&mut runner)?;
            // The first launch loads code; the second is timed.
            self.launch(&runner)?;
            let span = self.launch_timed(&runner, 1)?;
            self.backend.synchronize()?;
            plans.push((runner, self.pace.repeats(effort, seconds(&span)?)));
        }
        let (timings, state) = self.in_turns(&plans)?;
        let mut sustained = Vec::new();
        if let Some(seconds) = effort.sustained.filter(|_| self.gpu.is_some()) {
            let runners: Vec<&Runner<'_>> = plans.iter().map(|(runner, _)| runner).collect();
            let medians: Vec<f64> = timings.iter().map(Timing::median).collect();
            let doing = |index: usize| doing(format!("{}: back to back", runners[index].name));
            sustained = sustained::measure(self, &runners, &medians, seconds, &doing)?;
        }
        // All use the same copies, so that A and B are read back only once.
        let next = (self.launches.get() + 1) % self.count;
        let mut launched: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for (index, (runner, _)) in plans.iter().enumerate() {
            let copies = self.resident.copies_mut(runner.copies);
            copies.restore_c(self.backend, next)?;
            self.launches.set(next + self.count - 1);
            self.launch(runner)?;
            self.backend.synchronize()?;
            let copies = self.resident.copies(runner.copies);
            check(index, copies.result(self.backend, runner.name, next)?);
            launched.entry(runner.copies).or_default().push(runner.name);
        }
        for (copies, names) in launched {
            let copies = self.resident.copies(copies);
            copies.check_inputs(self.backend, &names.join("` or `"), next)?;
        }
        Ok(Measured {
            timings,
            sustained,
            state,
        })
    }

    /// Selects the fastest of the algorithms that a library proposes. Those that do not run are
    /// left out.
    fn choose_fastest(&self, runner: &mut Runner<'_>) -> Result<(), MeasureError> {
        let algorithms = match &runner.work {
            Work::Cublas(prepared) if prepared.algorithms() > 1 => prepared.algorithms(),
            _ => return Ok(()),
        };
        let mut fitting = Vec::new();
        for algorithm in 0..algorithms {
            runner.choose(algorithm);
            if self.launch(runner).is_err() {
                continue;
            }
            let span = self.launch_timed(runner, 1)?;
            self.backend.synchronize()?;
            fitting.push((algorithm, seconds(&span)?, Vec::new()));
        }
        // They alternate, so that they run at the same clocks.
        for _ in 0..TRIALS {
            for (algorithm, seconds, spans) in &mut fitting {
                runner.choose(*algorithm);
                spans.push(self.launch_timed(runner, self.pace.launches_per_run(*seconds))?);
            }
        }
        self.backend.synchronize()?;
        let mut fastest: Option<(usize, f64)> = None;
        for (algorithm, seconds, spans) in fitting {
            let times: Result<Vec<f64>, DeviceError> = spans.iter().map(self::seconds).collect();
            let median =
                statistics::median(&times?) / f64::from(self.pace.launches_per_run(seconds));
            if fastest.is_none_or(|(_, time)| median < time) {
                fastest = Some((algorithm, median));
            }
        }
        let (algorithm, _) = fastest.ok_or(CublasError::NoAlgorithm)?;
        runner.choose(algorithm);
        Ok(())
    }

    /// Times the contenders, alternating run by run, and records the GPU's state during the runs.
    fn in_turns(
        &self,
        plans: &[(Runner<'_>, Repeats)],
    ) -> Result<(Vec<Timing>, Option<GpuState>), MeasureError> {
        for (runner, plan) in plans {
            for _ in 0..plan.warmup * plan.launches_per_run {
                self.launch(runner)?;
            }
        }
        let mut spans: Vec<Vec<(Mark, Mark)>> = plans.iter().map(|_| Vec::new()).collect();
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
        self.backend.synchronize()?;
        let mut timings = Vec::new();
        for ((_, plan), spans) in plans.iter().zip(spans) {
            let mut samples = Vec::with_capacity(spans.len());
            for span in spans {
                samples.push(seconds(&span)? / f64::from(plan.launches_per_run));
            }
            timings.push(Timing::new(samples, plan.warmup, plan.launches_per_run));
        }
        Ok((timings, state))
    }
}
