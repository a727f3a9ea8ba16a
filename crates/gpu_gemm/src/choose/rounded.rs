//! Which kernel multiplies f32 fastest on tensor cores, where its elements may be rounded to tf32 or
//! split into two f16.

use gpu_kernels::spec::{Grid, Rounding, Variant};
use gpu_kernels::{split, variants};

use super::choice::Choice;
use super::mapped::{CLOCK_HZ, STORED, fastest};
use super::model;
use crate::call::Call;
use crate::gpu::DeviceFacts;
use crate::plan::decomposition::tiles;
use crate::plan::{Decomposition, OperandCopy, Panel, Plan};

/// Seconds of `split-fp32` from a launch to its first product, and after its last is stored.
const LAUNCH: f64 = 3.2e-6;
/// Seconds of a k-iteration: 128 x 128 x 64 products three times over. Fitted, with what splitting
/// takes, to 1024, 2048, 4096 and 8192 on an H200 (`docs/src/tuning.md`, "On tensor cores"), of which
/// it predicts each within a twentieth.
const ITERATION: f64 = 1.13e-6;
/// Seconds in which a CTA of `split_columns` splits one element of each of its columns. It is a
/// chain of latencies: two CTAs on an SM take no longer.
const OF_COLUMNS: f64 = 18.8e-9;
const COLUMN_CTAS: usize = 2;
/// The same of a CTA of `split_rows`, which has one row.
const OF_ROW: f64 = 2.4e-9;
const ROW_CTAS: usize = 8;

/// The plans of kernels that round in one of these ways and run on this device, with the seconds
/// that each is predicted to take, the fastest first.
pub(super) fn predictions(
    call: Call,
    facts: &DeviceFacts,
    allowed: &[Rounding],
) -> Vec<(Plan, f64)> {
    let rounds = |one: &&Variant| allowed.contains(&one.rounding) && facts.runs(one);
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

/// By what its tiles take where the copy engine brings them, else by its rate.
pub(super) fn seconds(plan: &Plan, facts: &DeviceFacts) -> Option<f64> {
    let variant = plan.variant();
    if variant.grid != Grid::Persistent {
        return model::seconds(plan, facts);
    }
    let of_one: f64 = match variant.splits_operands {
        true => {
            let of_panels = plan.panels().iter().map(|panel| of_split(panel, facts));
            of_panels.sum()
        }
        false => {
            let call = plan.call();
            let products = call.batch.count / plan.repeats().max(1);
            let (_, clocks) = fastest(variant, call.shape, products, facts.ctas_at_once(variant));
            let copies = plan
                .panels()
                .iter()
                .map(|panel| model::copies(panel, facts));
            clocks / CLOCK_HZ + copies.sum::<f64>()
        }
    };
    Some(of_one * plan.repeats() as f64)
}

/// Splitting, and the k-iterations of the CTA that has the most tiles.
fn of_split(panel: &Panel, facts: &DeviceFacts) -> f64 {
    let variant = panel.variant();
    let tile = variant.tile;
    let tiles = tiles(panel.call().shape, tile);
    let rounds = Decomposition::rounds(tiles, facts.ctas_at_once(variant)).data_parallel_waves;
    let store = f64::from(tile.m * tile.n) / STORED / CLOCK_HZ;
    let of_tile = panel.k_iterations() as f64 * ITERATION + store;
    let splitting: f64 = panel.copies().map(|copy| splitting(&copy, facts)).sum();
    splitting + LAUNCH + f64::from(rounds) * of_tile
}

/// A split copy: what its bytes take, and no less than its CTAs, each of which goes through all of k.
fn splitting(copy: &OperandCopy, facts: &DeviceFacts) -> f64 {
    let (lines, depth) = copy.target;
    let (ctas, of_element, on_sm) = match copy.transposed {
        true => (lines.div_ceil(split::COLUMNS), OF_COLUMNS, COLUMN_CTAS),
        false => (lines, OF_ROW, ROW_CTAS),
    };
    let waves = ctas.div_ceil(on_sm * facts.sms as usize);
    let of_latency = (waves * depth) as f64 * of_element;
    model::LAUNCH + of_latency.max(model::copying(copy, facts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Shape, Transpose};
    use crate::tests::{h200, variant};
    use gpu_kernels::spec::ElementType;

    #[test]
    fn what_split_fp32_was_measured_to_take_is_predicted() {
        // Microseconds on an H200, splitting included.
        for (size, measured) in [(1024, 51.9), (2048, 137.1), (4096, 719.0), (8192, 5004.0)] {
            let no = Transpose::No;
            let call = Call::compact(Shape::cube(size), no, no, ElementType::F32);
            let plan = Choice::even(variant("split-fp32")).plan(call, &h200());
            let predicted = seconds(&plan.unwrap(), &h200()).unwrap() * 1e6;
            let ratio = predicted / measured;
            assert!((0.95..1.05).contains(&ratio), "{size}: {predicted}");
        }
    }

    /// Splitting B by rows, as it is stored then, takes half as long.
    #[test]
    fn a_b_that_is_stored_along_k_is_split_faster() {
        let of = |b| {
            let call = Call::compact(Shape::cube(2048), Transpose::No, b, ElementType::F32);
            let plan = Choice::even(variant("split-fp32")).plan(call, &h200());
            seconds(&plan.unwrap(), &h200()).unwrap() * 1e6
        };
        let saved = of(Transpose::No) - of(Transpose::Yes);
        assert!((20.0..40.0).contains(&saved), "{saved}");
    }
}
