//! Times of a product on several devices, and on the first of them alone, by the wall clock: from
//! before the first launch, or the first copy, until all devices have finished.

use gpu_gemm::{Choice, Devices};

use super::pace::{ON_CPU, ON_SIMULATOR, by_clock};
use super::timing::{Effort, Timing};
use crate::data::{Number, Problem};
use crate::run::RunError;
pub use crate::run::several::Origin;
use crate::run::several::{Multiplied, Multiply, multiply};

/// A product with its times, and the bytes that each device receives from others.
pub type Timed<T> = Multiplied<T, (Timing, Vec<usize>)>;

/// Times the chosen kernel, or for `None` the one that suits each part: on all devices, and
/// on the first GPU alone; `None` for simulators, which run one after the other.
///
/// # Errors
///
/// A device, which the error names, fails or has too little memory.
pub fn measure<T: Number>(
    devices: &Devices,
    choice: Option<Choice>,
    problem: &Problem<T>,
    origin: Origin,
    effort: Effort,
) -> Result<(Timed<T>, Option<Timing>), RunError> {
    let times = |count| {
        let on = (devices, count);
        multiply(on, choice, problem, origin, |multiply| {
            timed(devices, effort, multiply)
        })
    };
    let all = times(devices.count())?;
    let alone = match devices.gpus() {
        0 => None,
        _ => Some(times(1)?.outcome.0),
    };
    Ok((all, alone))
}

/// Times by the wall clock, after a run that loads the code; and the bytes that each device
/// received in the last run.
fn timed(
    devices: &Devices,
    effort: Effort,
    multiply: Multiply<'_>,
) -> Result<(Timing, Vec<usize>), RunError> {
    let mut received = Vec::new();
    let mut run = || {
        let done = multiply()?;
        received = done.received;
        Ok(done.time)
    };
    let first = run()?;
    let pace = devices.gpu(0).map_or(ON_SIMULATOR, |_| ON_CPU);
    let timing = by_clock(pace, effort, first, run);
    Ok((timing?, received))
}
