//! Times on a device of OpenCL, by the clock on the wall: not every device has a clock of its own
//! that is worth reading.
//!
//! As on a GPU by CUDA ([`gpu`](super::gpu)), contenders alternate, run by run, in an order that
//! changes; each launch gets other copies of the matrices than the launch before, together twice
//! the cache that the device names, if eight are enough; and what is timed is checked. A run has as
//! many launches as take a millisecond, since the host waits at its end.

use std::any::Any;
use std::time::{Duration, Instant};

use gpu_gemm::device::opencl::OpenClBuffer;
use gpu_gemm::gpu_kernels::spec::Allocation;
use gpu_gemm::{Choice, DeviceError, OpenClDevice, Plan};

use super::copies::number_of_copies;
use super::gpu::MeasureError;
use super::limits::Limits;
use super::timing::{Effort, Timing, turns};
use crate::data::{Matrix, Number, Problem, Stored, by_inputs};
use crate::run::{self, Placed};

/// Default numbers of runs, before and during the timing; a slow kernel gets fewer.
const RUNS: u32 = 10;
const WARMUP: u32 = 3;
/// Seconds that all runs of one contender may take by default.
const BUDGET: f64 = 3.0;
/// Fewer runs than this give no meaningful median.
const FEWEST_RUNS: u32 = 3;
/// Seconds that a run lasts at least.
const SHORTEST_RUN: f64 = 1e-3;
/// Copies of the matrices at most: some CPUs share a cache of hundreds of megabytes.
const MOST_COPIES: usize = 8;

/// Whether the rows of a kernel's matrices are padded.
fn is_pitched(choice: &Choice) -> bool {
    choice.variant.allocation == Allocation::Pitched
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
        let runs = RUNS.min(affordable.max(FEWEST_RUNS));
        Repeats {
            // What proved the result has warmed up a kernel that takes long.
            warmup: effort.warmup.unwrap_or(WARMUP.min(affordable / RUNS)),
            runs: effort.runs.unwrap_or(runs).max(1),
            launches_per_run: (SHORTEST_RUN / seconds.max(1e-6)).ceil() as u32,
        }
    }
}

/// Times each kernel on `problem`, in the order given, and hands the C of a launch of each, made as
/// those that were timed, to `check`, with the kernel's number.
///
/// # Errors
///
/// There is no memory even for one copy of the matrices, a launch fails, or a time cannot be true.
pub fn measure<T: Number>(
    device: &OpenClDevice,
    choices: &[Choice],
    problem: &Problem<T>,
    effort: Effort,
    check: &mut dyn FnMut(usize, Matrix<T>),
) -> Result<Vec<Timing>, MeasureError> {
    let began = Instant::now();
    let pitched = choices
        .iter()
        .any(is_pitched)
        .then(|| run::pitched(problem))
        .transpose()?;
    let mut runners = Vec::new();
    for &choice in choices {
        let pitched = pitched.as_ref().filter(|_| is_pitched(&choice));
        let given = pitched.unwrap_or(problem);
        let memory = device.properties().memory_bytes / choices.len();
        runners.push(Runner::new(device, choice, problem, given, memory)?);
    }
    let result = measure_each(device, &mut runners, effort, check);
    // Whatever has happened, no memory must be freed under a running launch.
    let ended = device.synchronize();
    let timings = result?;
    ended?;
    for (choice, timing) in choices.iter().zip(&timings) {
        let limits = Limits {
            peak_flops_per_s: None,
            bandwidth_bytes_per_s: 0.0,
            elapsed: began.elapsed(),
        };
        limits.check(choice.variant.name, problem, timing)?;
    }
    Ok(timings)
}

fn measure_each<T: Number>(
    device: &OpenClDevice,
    runners: &mut [Runner<'_, T>],
    effort: Effort,
    check: &mut dyn FnMut(usize, Matrix<T>),
) -> Result<Vec<Timing>, MeasureError> {
    let mut plans = Vec::new();
    for runner in runners.iter_mut() {
        // The first launch compiles what is not compiled; the second is timed.
        runner.run(device, 1)?;
        let seconds = runner.run(device, 1)?.as_secs_f64();
        let plan = Repeats::new(effort, seconds);
        for _ in 0..plan.warmup {
            runner.run(device, plan.launches_per_run)?;
        }
        plans.push(plan);
    }
    let mut samples: Vec<Vec<f64>> = plans.iter().map(|_| Vec::new()).collect();
    let runs: Vec<u32> = plans.iter().map(|plan| plan.runs).collect();
    for index in turns(&runs) {
        let launches = plans[index].launches_per_run;
        let took = runners[index].run(device, launches)?;
        samples[index].push(took.as_secs_f64() / f64::from(launches));
    }
    for (index, runner) in runners.iter_mut().enumerate() {
        let c = runner.run_afresh(device)?;
        check(index, c);
    }
    let timings = samples.into_iter().zip(&plans);
    Ok(timings
        .map(|(samples, plan)| Timing::new(samples, plan.warmup, plan.launches_per_run))
        .collect())
}

/// A contender, ready to run.
struct Runner<'a, T: Number> {
    /// As it is given to the contender.
    problem: &'a Problem<T>,
    /// As the result is to be.
    c: &'a Matrix<T>,
    plan: Box<Plan>,
    copies: Vec<Copies<T>>,
    workspace: OpenClBuffer<u8>,
    launches: usize,
}

/// Copies of a problem's matrices, and where these begin in them.
struct Copies<T> {
    /// A and B, in elements of their own.
    _inputs: Box<dyn Any>,
    c: OpenClBuffer<T>,
    placed: [Placed; 3],
}

impl<T: Number> Copies<T> {
    fn upload<Input: Number>(
        device: &OpenClDevice,
        stored: &Stored<'_, T, Input>,
    ) -> Result<Self, DeviceError> {
        let a = OpenClBuffer::upload(device, stored.a.buffer())?;
        let b = OpenClBuffer::upload(device, stored.b.buffer())?;
        let c = OpenClBuffer::upload(device, stored.c.buffer())?;
        let placed = [
            placed(&a, &stored.a),
            placed(&b, &stored.b),
            placed(&c, stored.c),
        ];
        Ok(Copies {
            _inputs: Box::new((a, b)),
            c,
            placed,
        })
    }
}

/// Where a matrix begins in a copy of its buffer.
fn placed<T: Number>(buffer: &OpenClBuffer<T>, matrix: &Matrix<T>) -> Placed {
    let start = buffer.start().wrapping_add(matrix.placement().offset);
    Placed {
        start: start.cast(),
        leading: matrix.leading(),
    }
}

/// So many copies of a problem's matrices, A and B in elements of type `Input`.
fn copies_as<Input: Number, T: Number>(
    device: &OpenClDevice,
    problem: &Problem<T>,
    count: usize,
) -> Result<Vec<Copies<T>>, MeasureError> {
    let stored = problem.stored_as::<Input>()?;
    let copies = (0..count).map(|_| Copies::upload(device, &stored));
    Ok(copies.collect::<Result<_, DeviceError>>()?)
}

impl<'a, T: Number> Runner<'a, T> {
    /// Of a kernel that gets the problem as it is `given`, and may use a quarter of `memory` bytes.
    fn new(
        device: &OpenClDevice,
        choice: Choice,
        problem: &'a Problem<T>,
        given: &'a Problem<T>,
        memory: usize,
    ) -> Result<Self, MeasureError> {
        let (cache, bytes) = (device.properties().cache_bytes, given.bytes());
        let count = number_of_copies(cache, memory, bytes, bytes).min(MOST_COPIES);
        let copies = by_inputs!(given, copies_as::<_, T>(device, given, count))?;
        let call = run::call(given, copies[0].placed);
        let plan = choice.plan(call, &device.facts())?;
        let workspace = OpenClBuffer::allocate(device, plan.workspace_bytes().max(1))?;
        Ok(Runner {
            problem: given,
            c: &problem.c,
            plan: Box::new(plan),
            copies,
            workspace,
            launches: 0,
        })
    }

    /// Launches so often, and waits.
    fn run(&mut self, device: &OpenClDevice, launches: u32) -> Result<Duration, MeasureError> {
        let start = Instant::now();
        for _ in 0..launches {
            self.launch(device)?;
        }
        device.synchronize()?;
        Ok(start.elapsed())
    }

    /// The copies for the next launch.
    fn next(&self) -> usize {
        self.launches % self.copies.len()
    }

    fn launch(&mut self, device: &OpenClDevice) -> Result<(), MeasureError> {
        let matrices = self.copies[self.next()].placed;
        let bindings = run::bindings(self.problem, matrices, self.workspace.start());
        // SAFETY: these are copies of the problem's matrices, which lie like those that the plan
        // was made for and, like the workspace, outlive the last wait.
        unsafe { gpu_gemm::run(device, &self.plan, &bindings)? };
        self.launches += 1;
        Ok(())
    }

    /// The C of one more launch, on matrices that are as they were at first.
    fn run_afresh(&mut self, device: &OpenClDevice) -> Result<Matrix<T>, MeasureError> {
        let next = self.next();
        self.copies[next].c.write(self.problem.c.buffer())?;
        self.launch(device)?;
        device.synchronize()?;
        let elements = self.copies[next].c.download()?;
        let c = self.problem.c.with_buffer(elements);
        Ok(run::as_given(self.c, c))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_launch_is_repeated_and_a_long_one_is_not_warmed_up() {
        let repeats = |seconds| {
            let Repeats {
                warmup,
                runs,
                launches_per_run,
            } = Repeats::new(Effort::default(), seconds);
            (warmup, runs, launches_per_run)
        };
        assert_eq!(repeats(1e-5), (3, 10, 100));
        assert_eq!(repeats(0.0), repeats(1e-6));
        assert_eq!(repeats(0.1), (3, 10, 1));
        assert_eq!(repeats(0.2), (1, 10, 1));
        assert_eq!(repeats(0.5), (0, 6, 1));
        assert_eq!(repeats(10.0), (0, 3, 1));
        for (runs, least) in [(50, 50), (1, 1), (0, 1)] {
            let asked = Effort {
                runs: Some(runs),
                warmup: Some(2),
                sustained: None,
            };
            let plan = Repeats::new(asked, 10.0);
            assert_eq!((plan.warmup, plan.runs), (2, least));
        }
    }
}
