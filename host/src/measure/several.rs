//! Times of a product on several devices, and on the first of them alone, by the wall clock: from
//! before the first launch, or the first copy, until all devices have finished.

use clap::ValueEnum;
use gpu_gemm::device::several::{Done, Start};
use gpu_gemm::{Choice, Devices};

use super::pace::{ON_CPU, ON_SIMULATOR, by_clock};
use super::timing::{Effort, Timing};
use crate::data::{Matrix, Number, Problem, Stored, by_inputs};
use crate::run::RunError;
use crate::run::several::{gathered, product};

/// Where the matrices of a timed product lie before it; and C also after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Origin {
    /// Spread over the devices, as the product is divided
    #[default]
    Spread,
    /// B on the first device, A and C spread
    FirstB,
    /// All on the first device
    First,
    /// In host memory that is not page-locked
    Host,
}

impl Origin {
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
    by_inputs!(
        problem,
        measure_as::<_, T>(devices, choice, problem, origin, effort)
    )
}

fn measure_as<Input: Number, T: Number>(
    devices: &Devices,
    choice: Option<Choice>,
    problem: &Problem<T>,
    origin: Origin,
    effort: Effort,
) -> Result<Scaled<T>, RunError> {
    let stored = problem.stored_as::<Input>()?;
    let times = |count| times(devices, count, choice, (problem, &stored), origin, effort);
    let all = times(devices.count())?;
    let alone = match devices.gpus() {
        0 => None,
        _ => Some(times(1)?.timing),
    };
    Ok(Scaled { alone, ..all })
}

/// Times it on the first `count` devices.
fn times<Input: Number, T: Number>(
    devices: &Devices,
    count: usize,
    choice: Option<Choice>,
    (problem, stored): (&Problem<T>, &Stored<'_, T, Input>),
    origin: Origin,
    effort: Effort,
) -> Result<Scaled<T>, RunError> {
    // Each run begins with the same C, if it reads one.
    let reads_c = problem.beta != T::default();
    let (timed, grid, c) = if origin == Origin::Host {
        let product = (problem.shape(), problem.transposes);
        let scalars = (problem.alpha.scalar(), problem.beta.scalar());
        let planner = devices.planner(choice, problem.data_type());
        let mut product = devices.streamed::<Input, T>(product, count, scalars, &planner)?;
        let [a, b] = [&*stored.a, &*stored.b].map(|matrix| (matrix.elements(), matrix.leading()));
        let (mut c, leading) = (problem.c.clone(), problem.c.leading());
        let run = || {
            if reads_c {
                c.elements_mut().copy_from_slice(problem.c.elements());
            }
            Ok(product.multiply(a, b, (c.elements_mut(), leading))?)
        };
        (timed(devices, effort, run)?, product.split().grid(), c)
    } else {
        let starts = origin.starts();
        let mut product = product(devices, count, choice, problem, stored, starts)?;
        let run = || {
            if reads_c {
                product.write_c(problem.c.elements(), problem.c.leading())?;
            }
            Ok(product.multiply()?)
        };
        let timed = timed(devices, effort, run)?;
        let c = gathered(&product, problem)?;
        (timed, product.split().grid(), c)
    };
    let (timing, received) = timed;
    Ok(Scaled {
        timing,
        alone: None,
        grid,
        received,
        c,
    })
}

/// Times by the clock on the wall, after a run whose launches load code; and the bytes that each
/// device received in the last run.
fn timed(
    devices: &Devices,
    effort: Effort,
    mut run: impl FnMut() -> Result<Done, RunError>,
) -> Result<(Timing, Vec<usize>), RunError> {
    let mut received = Vec::new();
    let mut run = || {
        let done = run()?;
        received = done.received;
        Ok(done.time)
    };
    let first = run()?;
    let pace = devices.gpu(0).map_or(ON_SIMULATOR, |_| ON_CPU);
    let timing = by_clock(pace, effort, first, run);
    Ok((timing?, received))
}
