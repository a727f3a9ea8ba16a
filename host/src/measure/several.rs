//! Times of a product on several devices, and on the first of them alone, by the wall clock: from
//! before the first launch, or the first copy, until all devices have finished.

use std::time::{Duration, Instant};

use gpu_gemm::device::several::Start;
use gpu_gemm::{Choice, Devices};

use super::timing::{Effort, Timing};
use super::wall_clock::{on_cpu, on_simulator};
use crate::data::{Matrix, Number, Problem};
use crate::run::RunError;
use crate::run::several::{as_stored, gathered, product};

/// Where the matrices of a timed product lie before it; and C also after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// Spread over the devices, as the product is divided.
    #[default]
    Spread,
    /// B on the first device, A and C spread.
    FirstB,
    /// All on the first device.
    First,
    /// In memory of the host that is not page-locked.
    Host,
}

impl Origin {
    /// As `--start` spells it.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Spread => "spread",
            Origin::FirstB => "first-b",
            Origin::First => "first",
            Origin::Host => "host",
        }
    }

    fn starts(self) -> [Start; 3] {
        match self {
            Origin::Spread | Origin::Host => [Start::Spread; 3],
            Origin::FirstB => [Start::Spread, Start::First, Start::Spread],
            Origin::First => [Start::First; 3],
        }
    }
}

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
    origin: Origin,
    effort: Effort,
) -> Result<Scaled<T>, RunError> {
    let all = times(devices, devices.count(), choice, problem, origin, effort)?;
    let alone = match devices.gpus() {
        0 => None,
        _ => Some(times(devices, 1, choice, problem, origin, effort)?.timing),
    };
    Ok(Scaled { alone, ..all })
}

/// Times it on the first `count` devices.
fn times<T: Number>(
    devices: &Devices,
    count: usize,
    choice: Option<Choice>,
    problem: &Problem<T>,
    origin: Origin,
    effort: Effort,
) -> Result<Scaled<T>, RunError> {
    let stored = problem.stored()?;
    let starts = origin.starts();
    let mut product = product(devices, count, choice, problem, &stored, starts)?;
    let mut from_host = problem.c.clone();
    let mut received = Vec::new();
    let mut run = || -> Result<Duration, RunError> {
        if origin == Origin::Host {
            let began = Instant::now();
            product.write(&as_stored(problem, &stored))?;
            received = product.multiply(&|| ())?.received;
            let leading = from_host.leading();
            product.read_c(from_host.elements_mut(), leading)?;
            return Ok(began.elapsed());
        }
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
