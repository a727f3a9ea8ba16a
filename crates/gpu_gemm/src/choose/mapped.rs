//! Which kernel multiplies elements of 16 bits fastest: how long each takes follows from its tile.

use gpu_kernels::KERNELS;
use gpu_kernels::spec::ElementType;

use super::Choice;
use crate::call::{Call, Factor};
use crate::gpu::DeviceFacts;
use crate::plan::clusters::clocks;

/// The clocks of an SM in a second.
pub(super) const CLOCK_HZ: f64 = 1.98e9;

/// Threads of a warpgroup. A kernel of one alone multiplies only while it does not wait for tiles,
/// and is never the fastest.
const WARPGROUP: u32 = 128;

/// The kernels for this type that read A and B as they lie, with the seconds that each is predicted
/// to take, the fastest first.
pub(super) fn predictions(
    element: ElementType,
    call: &Call,
    facts: &DeviceFacts,
) -> Vec<(Choice, f64)> {
    let lies = [Factor::A, Factor::B].map(|factor| call.operand(factor).major(factor));
    let variants = KERNELS.iter().flat_map(|kernel| kernel.variants);
    let mut predictions: Vec<(Choice, f64)> = variants
        .filter(|one| one.types.c == element && [one.a.major, one.b.major] == lies)
        .filter(|one| one.block.threads() > WARPGROUP)
        .map(|one| {
            let clocks = clocks(one, call.shape, facts.ctas_at_once(one));
            (Choice::even(one), clocks / CLOCK_HZ)
        })
        .collect();
    predictions.sort_by(|one, other| one.1.total_cmp(&other.1));
    predictions
}
