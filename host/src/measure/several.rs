//! Times of a product on several devices, and on the first of them alone, by the wall clock: from
//! before the first launch until all devices have finished. The matrices lie spread over the
//! devices before, and C after it.

use std::time::Duration;

use gpu_gemm::device::several::Start;
use gpu_gemm::{Choice, Devices};

use super::timing::{Effort, Timing};
use super::wall_clock::{on_cpu, on_simulator};
use crate::data::{Matrix, Number, Problem};
use crate::run::RunError;
use crate::run::several::{gathered, product};

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaled<T> {
    pub timing: Timing,
    /// The same on the first GPU alone; `None` for simulators, which run one after the other.
    pub alone: Option<Timing>,
    /// The grid: devices along the rows of C, and along its columns.
    pub grid: (usize, usize),
    /// The bytes that each device receives from others in one product.
    pub received: Vec<usize>,
    /// The C of the last timed run on all devices.
    pub c: Matrix<T>,
}

/// Times the chosen kernel, or for `None` the one that suits each part.
///
/// # Errors
///
/// A device fails, or its memory is too small; it is named.
pub fn measure<T: Number>(
    devices: &Devices,
    choice: Option<Choice>,
    problem: &Problem<T>,
    effort: Effort,
) -> Result<Scaled<T>, RunError> {
    let all = times(devices, devices.count(), choice, problem, effort)?;
    let alone = match devices.gpus() {
        0 => None,
        _ => Some(times(devices, 1, choice, problem, effort)?.timing),
    };
    Ok(Scaled { alone, ..all })
}

/// Times it on the first `count` devices.
fn times<T: Number>(
    devices: &Devices,
    count: usize,
    choice: Option<Choice>,
    problem: &Problem<T>,
    effort: Effort,
) -> Result<Scaled<T>, RunError> {
    let stored = problem.stored()?;
    let spread = [Start::Spread; 3];
    let mut product = product(devices, count, choice, problem, &stored, spread)?;
    let mut received = Vec::new();
    let mut run = || -> Result<Duration, RunError> {
        if problem.beta != T::default() {
            product.write_c(problem.c.elements(), problem.c.leading())?;
        }
        let done = product.multiply(&|| ())?;
        received = done.received;
        Ok(done.time)
    };
    // The first launches load code.
    let first = run()?;
    let timing = match devices.gpu(0) {
        Some(_) => on_cpu(effort, first, run)?,
        None => on_simulator(effort, first, run)?,
    };
    Ok(Scaled {
        alone: None,
        timing,
        grid: product.split().grid(),
        received,
        c: gathered(&product, problem)?,
    })
}
