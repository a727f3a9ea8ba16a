//! Which kernel multiplies f32 fastest on tensor cores, where its elements may be rounded to tf32.

use gpu_kernels::spec::{Grid, Rounding, Variant};
use gpu_kernels::variants;

use super::Choice;
use super::mapped::{CLOCK_HZ, fastest};
use super::model;
use crate::call::Call;
use crate::gpu::DeviceFacts;
use crate::plan::Plan;

/// The plans of kernels that round to tf32 and run on this device, with the seconds that each is
/// predicted to take, the fastest first.
pub(super) fn predictions(call: Call, facts: &DeviceFacts) -> Vec<(Plan, f64)> {
    let rounds = |one: &&Variant| one.rounding == Rounding::Tf32 && facts.runs(one);
    let mut predictions: Vec<(Plan, f64)> = variants()
        .filter(rounds)
        .filter_map(|variant| {
            let plan = Choice::even(variant).plan(call, facts).ok()?;
            let seconds = seconds(&plan, facts)?;
            Some((plan, seconds))
        })
        .collect();
    predictions.sort_by(|one, other| one.1.total_cmp(&other.1));
    predictions
}

/// By the clocks of its tiles where the copy engine brings them, else by its rate.
fn seconds(plan: &Plan, facts: &DeviceFacts) -> Option<f64> {
    let variant = plan.variant();
    if variant.grid != Grid::Persistent {
        return model::seconds(plan, facts);
    }
    let (_, clocks) = fastest(variant, plan.call().shape, facts.ctas_at_once(variant));
    let copies = plan
        .panels()
        .iter()
        .map(|panel| model::copies(panel, facts));
    let of_one = clocks / CLOCK_HZ + copies.sum::<f64>();
    Some(of_one * plan.repeats() as f64)
}
