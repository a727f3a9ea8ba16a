//! Times on a GPU, from CUDA events.
//!
//! - Contenders take turns, run by run, so that clocks and temperature are the same for all: only ratios mean anything. Each round has
//!   another order: whoever comes after a kernel that draws much power finds a lower clock (an H200 at 4096: 5 % after `few-rows`).
//!   cuBLAS on tensor cores, which draws most, runs after all others.
//! - Each launch gets other copies of the matrices than the one before, together twice the L2, so that none finds its
//!   operands there.
//! - The host never waits between launches; what a run records is read when all have ended. A run of a short kernel is as
//!   many launches as take a tenth of a millisecond, so that the gaps around events do not count.

use cust::error::CudaResult;
use cust::event::{Event, EventFlags};
use cust::memory::{CopyDestination, DeviceBuffer};
use cust::stream::Stream;
use gpu_kernels::spec::{Allocation, Variant};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use thiserror::Error;

use super::{Effort, Timing};
use crate::blas::{self, Sharing};
use crate::device::DeviceError;
use crate::device::cublas::{Cublas, CublasError, Precision};
use crate::device::cuda::{CudaDevice, during};
use crate::device::planned::{Functions, Launcher, Workspace};
use crate::device::uploaded::{Operand, Operands, Pitched, Uploaded};
use crate::element::Element;
use crate::problem::Problem;

/// Runs that are made by default, before and while the clock counts.
const RUNS: u32 = 20;
const WARMUP: u32 = 3;
/// Seconds that all runs of one contender may take by default.
const BUDGET: f64 = 10.0;
/// Fewer runs than this have no median to speak of.
const FEWEST_RUNS: u32 = 3;
/// Seconds that a run lasts at least.
const SHORTEST_RUN: f64 = 1e-4;
/// Copies of the matrices at most.
const MOST_COPIES: usize = 1024;

/// Something that multiplies.
pub enum Contender<'a> {
    Kernel(&'static Variant),
    /// A kernel that streams, its steps shared like this.
    Sharing(&'static Variant, Sharing),
    Cublas(&'a Cublas<'a>),
}

/// Why nothing was measured.
#[derive(Debug, Error)]
pub enum MeasureError {
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Cublas(#[from] CublasError),
}

impl Contender<'_> {
    /// Whether it would disturb those that take their turn after it.
    fn runs_apart(&self) -> bool {
        match self {
            Contender::Kernel(_) | Contender::Sharing(..) => false,
            Contender::Cublas(cublas) => cublas.precision() == Precision::Tf32,
        }
    }

    /// How it wants its matrices.
    fn allocation(&self) -> Allocation {
        match self {
            Contender::Kernel(variant) | Contender::Sharing(variant, _) => variant.allocation,
            Contender::Cublas(_) => Allocation::Packed,
        }
    }
}

/// A contender, looked up.
struct Runner<'a, T: Element> {
    device: &'a CudaDevice,
    contender: &'a Contender<'a>,
    /// Of a kernel.
    planned: Option<(Functions<'a>, blas::Plan<'a>)>,
    problem: &'a Problem<T>,
}

impl<'a, T: Element> Runner<'a, T> {
    /// `operands` are like all those that it will be launched on.
    fn new(
        device: &'a CudaDevice,
        contender: &'a Contender<'a>,
        problem: &'a Problem<T>,
        operands: &Operands<T>,
    ) -> Result<Self, DeviceError> {
        let planned = match contender {
            Contender::Kernel(variant) => {
                let plan = device.plan(variant, problem, operands, None)?;
                Some((Functions::of(device, variant)?, plan))
            }
            Contender::Sharing(variant, sharing) => {
                let plan = device.plan(variant, problem, operands, Some(*sharing))?;
                Some((Functions::of(device, variant)?, plan))
            }
            Contender::Cublas(_) => None,
        };
        Ok(Runner {
            device,
            contender,
            planned,
            problem,
        })
    }

    /// Elements of workspace that it takes.
    fn workspace_elements(&self) -> usize {
        let planned = self.planned.as_ref();
        planned.map_or(0, |(_, plan)| plan.workspace_elements())
    }

    fn launch(&self, operands: &Operands<T>, workspace: &Workspace<T>) -> Result<(), MeasureError> {
        let (alpha, beta) = (self.problem.alpha, self.problem.beta);
        match (self.contender, &self.planned) {
            // SAFETY: the operands are copies of the problem's matrices, which outlive `measure`'s last wait, and lie like those
            // that the plan was made for; the workspace outlives it, too, and is as large as any plan asks for.
            (_, Some((functions, plan))) => unsafe {
                let launcher = Launcher {
                    device: self.device,
                    functions,
                    stream: self.device.stream(),
                };
                launcher.launch(plan, alpha, beta, operands, workspace.start())?;
            },
            // SAFETY: as above.
            (Contender::Cublas(cublas), None) => unsafe {
                cublas.gemm(self.problem.shape(), alpha, beta, operands)?;
            },
            (Contender::Kernel(_) | Contender::Sharing(..), None) => {
                unreachable!("a kernel is looked up when it is made a runner")
            }
        }
        Ok(())
    }
}

/// Times each contender on `problem`, in the order given.
///
/// # Errors
///
/// There is no memory even for one copy of the matrices, or a launch fails.
pub fn measure<T: Element>(
    device: &CudaDevice,
    contenders: &[Contender<'_>],
    problem: &Problem<T>,
    effort: Effort,
) -> Result<Vec<Timing>, MeasureError> {
    device.enter()?;
    let copies = Copies::new(device, contenders, problem)?;
    let mut runners = Vec::new();
    for contender in contenders {
        let operands = &copies.operands(contender.allocation())[0];
        runners.push(Runner::new(device, contender, problem, operands)?);
    }
    // One launch after the other: one workspace is enough for all.
    let needed = runners.iter().map(Runner::workspace_elements).max();
    let workspace = Workspace::allocate(device, needed.unwrap_or(0))?;
    // Whatever happens below, neither copies nor workspace must be freed under a running launch.
    let result = measure_on(device, runners, effort, &copies, &workspace);
    let ended = device.stream().synchronize();
    let timings = result?;
    ended.map_err(during("Waiting for the GPU"))?;
    Ok(timings)
}

fn measure_on<T: Element>(
    device: &CudaDevice,
    runners: Vec<Runner<'_, T>>,
    effort: Effort,
    copies: &Copies<T>,
    workspace: &Workspace<T>,
) -> Result<Vec<Timing>, MeasureError> {
    let stream = device.stream();
    let mut turn = 0;
    let mut launch = |runner: &Runner<'_, T>| {
        turn += 1;
        let operands = copies.operands(runner.contender.allocation());
        runner.launch(&operands[turn % operands.len()], workspace)
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
        plans.push((runner, Plan::new(effort, span.seconds()?)));
    }

    for (runner, plan) in &plans {
        for _ in 0..plan.warmup * plan.launches_per_run {
            launch(runner)?;
        }
    }
    let most_runs = plans.iter().map(|(_, plan)| plan.runs).max().unwrap_or(0);
    let mut spans: Vec<Vec<Span>> = plans.iter().map(|_| Vec::new()).collect();
    let rounds = [false, true]
        .into_iter()
        .flat_map(|apart| (0..most_runs).map(move |run| (apart, run)));
    let mut order: Vec<usize> = (0..plans.len()).collect();
    let mut generator = Pcg64::seed_from_u64(0);
    for (apart, run) in rounds {
        order.shuffle(&mut generator);
        for &index in &order {
            let (runner, plan) = &plans[index];
            if run >= plan.runs || runner.contender.runs_apart() != apart {
                continue;
            }
            let span = Span::new()?;
            span.begin(stream)?;
            for _ in 0..plan.launches_per_run {
                launch(runner)?;
            }
            span.end(stream)?;
            spans[index].push(span);
        }
    }
    stream
        .synchronize()
        .map_err(during("Waiting for the timed launches"))?;

    let mut timings = Vec::new();
    for ((_, plan), spans) in plans.iter().zip(spans) {
        let mut samples = Vec::with_capacity(spans.len());
        for span in spans {
            samples.push(span.seconds()? / f64::from(plan.launches_per_run));
        }
        timings.push(Timing::new(samples, plan.warmup, plan.launches_per_run));
    }
    Ok(timings)
}

/// How often a contender runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    warmup: u32,
    runs: u32,
    launches_per_run: u32,
}

impl Plan {
    /// For launches of about `seconds`.
    fn new(effort: Effort, seconds: f64) -> Plan {
        let affordable = (BUDGET / seconds.max(1e-9)) as u32;
        Plan {
            warmup: effort.warmup.unwrap_or(WARMUP.min(affordable.max(1))),
            runs: effort
                .runs
                .unwrap_or(RUNS.min(affordable.max(FEWEST_RUNS)))
                .max(1),
            launches_per_run: (SHORTEST_RUN / seconds.max(1e-6)).ceil().max(1.0) as u32,
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

/// Copies of a problem's matrices in the GPU's memory, in the allocations that the contenders want.
struct Copies<T: Element> {
    packed: Vec<Operands<T>>,
    pitched: Vec<Operands<T>>,
    /// What the operands point into.
    packed_buffers: Vec<[DeviceBuffer<T>; 3]>,
    pitched_matrices: Vec<[Pitched<T>; 3]>,
}

impl<T: Element> Copies<T> {
    /// As many as together are twice the L2, in half of the free memory; at least one.
    fn new(
        device: &CudaDevice,
        contenders: &[Contender<'_>],
        problem: &Problem<T>,
    ) -> Result<Self, DeviceError> {
        let wanted = |allocation| {
            contenders
                .iter()
                .any(|contender| contender.allocation() == allocation)
        };
        let bytes = problem.bytes().max(1);
        let (free, _) = device.memory()?;
        let enough = (2 * device.properties().l2_bytes).div_ceil(bytes) + 1;
        let count = enough.min(free / 4 / bytes).clamp(1, MOST_COPIES);
        let mut copies = Copies {
            packed: Vec::new(),
            pitched: Vec::new(),
            packed_buffers: Vec::new(),
            pitched_matrices: Vec::new(),
        };
        if wanted(Allocation::Packed) {
            copies.add_packed(device, problem, count)?;
        }
        if wanted(Allocation::Pitched) {
            copies.add_pitched(device, problem, count)?;
        }
        Ok(copies)
    }

    fn operands(&self, allocation: Allocation) -> &[Operands<T>] {
        match allocation {
            Allocation::Packed => &self.packed,
            Allocation::Pitched => &self.pitched,
        }
    }

    fn add_packed(
        &mut self,
        device: &CudaDevice,
        problem: &Problem<T>,
        count: usize,
    ) -> Result<(), DeviceError> {
        let buffers = &mut self.packed_buffers;
        for _ in 0..count {
            let matrices = [&problem.a, &problem.b, &problem.c].map(|matrix| matrix.buffer());
            let [mut a, mut b, mut c] = [
                device.allocate(matrices[0].len().max(1))?,
                device.allocate(matrices[1].len().max(1))?,
                device.allocate(matrices[2].len().max(1))?,
            ];
            for (index, (buffer, matrix)) in [&mut a, &mut b, &mut c]
                .into_iter()
                .zip(matrices)
                .enumerate()
            {
                match buffers.first() {
                    None => upload(buffer, matrix),
                    Some(first) => buffer.copy_from(&first[index]),
                }
                .map_err(during("Copying matrices to the GPU"))?;
            }
            self.packed.push(Operands {
                a: Operand::at(a.as_device_ptr(), &problem.a),
                b: Operand::at(b.as_device_ptr(), &problem.b),
                c: Operand::at(c.as_device_ptr(), &problem.c),
            });
            buffers.push([a, b, c]);
        }
        Ok(())
    }

    fn add_pitched(
        &mut self,
        device: &CudaDevice,
        problem: &Problem<T>,
        count: usize,
    ) -> Result<(), DeviceError> {
        for _ in 0..count {
            let [a, b, c] = [
                Pitched::upload(device, &problem.a)?,
                Pitched::upload(device, &problem.b)?,
                Pitched::upload(device, &problem.c)?,
            ];
            self.pitched.push(Operands {
                a: a.operand(&problem.a),
                b: b.operand(&problem.b),
                c: c.operand(&problem.c),
            });
            self.pitched_matrices.push([a, b, c]);
        }
        Ok(())
    }
}

fn upload<T: Element>(buffer: &mut DeviceBuffer<T>, elements: &[T]) -> CudaResult<()> {
    buffer.index(0..elements.len()).copy_from(elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: Effort = Effort {
        runs: None,
        warmup: None,
    };

    #[test]
    fn a_short_kernel_is_launched_many_times_a_run() {
        let plan = Plan::new(DEFAULT, 1e-5);
        assert_eq!((plan.runs, plan.warmup, plan.launches_per_run), (20, 3, 10));
    }

    #[test]
    fn a_slow_kernel_runs_less_often_and_never_less_than_thrice() {
        let plan = |seconds| Plan::new(DEFAULT, seconds);
        assert_eq!((plan(1.0).runs, plan(1.0).warmup), (10, 3));
        assert_eq!((plan(60.0).runs, plan(60.0).warmup), (3, 1));
        assert_eq!(plan(60.0).launches_per_run, 1);
    }

    #[test]
    fn what_is_asked_for_is_done_however_slow() {
        let asked = Effort {
            runs: Some(50),
            warmup: Some(0),
        };
        let plan = Plan::new(asked, 100.0);
        assert_eq!((plan.runs, plan.warmup), (50, 0));
    }
}
