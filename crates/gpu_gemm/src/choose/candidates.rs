//! The plans that might be the fastest, and the one that the model predicts to be the fastest.

use gpu_kernels::spec::{DataType, ElementType, Grid, Types, Unit, Variant};
use gpu_kernels::variants;

use super::choice::Choice;
use super::model;
use crate::call::{Call, Factor};
use crate::gpu::DeviceFacts;
use crate::plan::{Decomposition, Plan, decomposition};

/// The plan that is predicted to be the fastest of those that need no more than
/// `workspace_bytes`.
///
/// # Errors
///
/// The bytes of workspace that the smallest plan needs, if even that is more than
/// `workspace_bytes`: no kernel can read the operands in place.
pub fn best(call: Call, facts: &DeviceFacts, workspace_bytes: usize) -> Result<Plan, usize> {
    let plans = candidates(call, facts);
    let needed = plans.iter().map(Plan::workspace_bytes).min();
    let affordable = plans
        .into_iter()
        .filter(|plan| plan.workspace_bytes() <= workspace_bytes);
    let best = timed(affordable, facts).min_by(|one, other| one.1.total_cmp(&other.1));
    best.map(|(plan, _)| plan)
        .ok_or(needed.unwrap_or(usize::MAX))
}

/// Plans that may be worth choosing, each with the seconds that it is predicted to take.
fn timed(
    plans: impl IntoIterator<Item = Plan>,
    facts: &DeviceFacts,
) -> impl Iterator<Item = (Plan, f64)> {
    plans.into_iter().filter_map(|plan| {
        let seconds = model::seconds(&plan, facts)?;
        Some((plan, seconds))
    })
}

/// Every plan that might be the fastest, with the seconds that it is predicted to take, the
/// fastest first. The first is that of [`best`] without a limit to the workspace.
pub fn predictions(call: Call, facts: &DeviceFacts) -> Vec<(Plan, f64)> {
    let mut plans: Vec<(Plan, f64)> = timed(candidates(call, facts), facts).collect();
    plans.sort_by(|one, other| one.1.total_cmp(&other.1));
    plans
}

/// Every plan that might be the fastest, without duplicates.
pub fn candidates(call: Call, facts: &DeviceFacts) -> Vec<Plan> {
    let mut plans: Vec<Plan> = Vec::new();
    let usable = |variant: &&Variant| is_usable(variant, &call, facts);
    for variant in variants().filter(usable) {
        for decomposition in decompositions(variant, call, facts) {
            let Ok(plan) = Plan::new(variant, call, decomposition) else {
                continue;
            };
            let choice = Choice::of(&plan);
            if !plans.iter().any(|known| Choice::of(known) == choice) {
                plans.push(plan);
            }
        }
    }
    plans
}

/// Whether a kernel can run, multiplies f32 on CUDA cores, and may be the fastest for some shape.
pub(super) fn is_usable(variant: &Variant, call: &Call, facts: &DeviceFacts) -> bool {
    let multiplies =
        variant.types == Types::all(ElementType::F32) && variant.unit == Unit::CudaCores;
    let may_win = |variant: &Variant| variant.rate.is_some() && facts.runs(variant);
    // The other kernels are for GPUs that cannot run stream-K kernels because they lack
    // asynchronous copies.
    let is_stream_k = variant.grid == Grid::StreamK;
    let runs_stream_k = || variants().any(|other| other.grid == Grid::StreamK && may_win(other));
    // One launch for many small products beats a better kernel for one after the other.
    let is_for_batches = call.batch.count > 1 && variant.takes_batches();
    multiplies && may_win(variant) && (is_stream_k || is_for_batches || !runs_stream_k())
}

/// The kernels of a type other than f32 that have rates, one CTA for each tile, with the seconds
/// that each is predicted to take, the fastest first.
pub(super) fn of_undivided_tiles(
    element: ElementType,
    call: Call,
    facts: &DeviceFacts,
) -> Vec<(Choice, f64)> {
    let of_type = variants().filter(|one| one.types == Types::all(element) && facts.runs(one));
    let mut predictions: Vec<(Choice, f64)> = of_type
        .filter_map(|variant| {
            let choice = Choice::even(variant);
            let plan = choice.plan(call, facts).ok()?;
            Some((choice, model::seconds(&plan, facts)?))
        })
        .collect();
    predictions.sort_by(|one, other| one.1.total_cmp(&other.1));
    predictions
}

/// What few rows of 16 bits take, of what the model says: it knows memory by operands of f32. On an
/// H200 it was 0.76 to 1.04 in seven products of one row.
const OF_16_BITS: f64 = 0.87;
/// Seconds for each of their CTAs, of which the model says nothing: 1 x 2112 x 7168 takes 11.2 us
/// on 264 and 16.5 on 396.
const OF_CTA: f64 = 1e-9;

/// The matrix-vector kernels of elements of 16 bits, each with its fastest decomposition and the
/// seconds that it is predicted to take.
pub(super) fn of_few_rows(
    data_type: DataType,
    call: Call,
    facts: &DeviceFacts,
) -> impl Iterator<Item = (Choice, f64)> {
    fastest_divisions(data_type, call, facts, |one| one.gemv_like).map(|(plan, seconds)| {
        let ctas = plan.decomposition().map_or(0, |of| of.ctas);
        let seconds = OF_16_BITS * seconds + OF_CTA * f64::from(ctas);
        (Choice::of(&plan), seconds)
    })
}

/// The same of those that multiply elements of 16 bits by the tensor cores that there were before
/// Hopper, and read A and B as they lie.
pub(super) fn on_warps(
    data_type: DataType,
    call: Call,
    facts: &DeviceFacts,
) -> impl Iterator<Item = (Choice, f64)> {
    let lies = [Factor::A, Factor::B].map(|factor| call.operand(factor).major(factor));
    let is_one = move |one: &Variant| !one.gemv_like && [one.a.major, one.b.major] == lies;
    fastest_divisions(data_type, call, facts, is_one)
        .map(|(plan, seconds)| (Choice::of(&plan), seconds))
}

/// The stream-K kernels of a type that `are_meant`, each with its fastest decomposition.
fn fastest_divisions(
    data_type: DataType,
    call: Call,
    facts: &DeviceFacts,
    are_meant: impl Fn(&Variant) -> bool,
) -> impl Iterator<Item = (Plan, f64)> {
    let of_type = variants().filter(move |one| {
        one.grid == Grid::StreamK && one.types.data_type() == data_type && facts.runs(one)
    });
    let meant = of_type.filter(move |one| are_meant(one));
    meant.filter_map(move |variant| {
        let decompositions = decompositions(variant, call, facts).into_iter();
        let plans = decompositions.filter_map(|one| Plan::new(variant, call, one).ok());
        timed(plans, facts).min_by(|one, other| one.1.total_cmp(&other.1))
    })
}

/// The maximum number of CTAs per tile, if all tiles are divided alike: with more, the fix-up
/// would do more work than the kernel.
const MOST_CTAS_A_TILE: usize = 1024;

/// The decompositions of a kernel's tiles that may be worth trying.
fn decompositions(variant: &Variant, call: Call, facts: &DeviceFacts) -> Vec<Decomposition> {
    if variant.grid != Grid::StreamK {
        return vec![Decomposition::DATA_PARALLEL];
    }
    let tiles = decomposition::tiles(call.shape, variant.tile);
    let at_once = facts.ctas_at_once(variant);
    let waves = tiles / at_once as usize;
    let with = |ctas: u32, waves: usize| Decomposition {
        ctas,
        data_parallel_waves: u32::try_from(waves).unwrap_or(u32::MAX),
    };
    // Divide no tiles, or only the tiles that do not fill a wave.
    let mut decompositions = vec![Decomposition::DATA_PARALLEL, with(at_once, waves)];
    if waves == 0 && tiles > 0 {
        // Fewer CTAs on each SM give fewer partial sums.
        let fewer = (1..facts.resident(variant)).map(|ctas| facts.sms * ctas);
        decompositions.extend(fewer.map(|ctas| with(ctas, 0)));
        // The same number of CTAs for each tile, so that no tile is split among more.
        let most = (at_once as usize / tiles).min(MOST_CTAS_A_TILE);
        let each = (1..=most).filter(|ctas| ctas.is_power_of_two() || *ctas == most);
        decompositions.extend(each.map(|ctas| with((tiles * ctas) as u32, 0)));
    }
    decompositions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Shape, Transpose};
    use crate::tests::h200;

    fn candidates_of(m: usize, n: usize, k: usize) -> Vec<Plan> {
        let (shape, no) = (Shape { m, n, k }, Transpose::No);
        candidates(Call::compact(shape, no, no, ElementType::F32), &h200())
    }

    #[test]
    fn every_kernel_that_may_be_chosen_is_a_candidate_and_no_plan_is_one_twice() {
        let plans = candidates_of(100, 200, 3000);
        let usable = |variant: &&Variant| is_usable(variant, plans[0].call(), &h200());
        for variant in variants().filter(usable) {
            let is_of_variant = |plan: &Plan| std::ptr::eq(plan.variant(), variant);
            assert!(plans.iter().any(is_of_variant), "{}", variant.name);
        }
        for (index, plan) in plans.iter().enumerate() {
            let choice = Choice::of(plan);
            let again = plans[..index].iter().any(|plan| Choice::of(plan) == choice);
            assert!(!again, "{}", choice.description());
        }
    }

    #[test]
    fn a_few_tiles_are_divided_evenly_among_others() {
        let plans = candidates_of(16, 128, 500_000);
        // One tile: one CTA, two, four, ..., and one CTA on each SM.
        let of_flattest = plans
            .iter()
            .filter(|plan| plan.variant().name == "async-pipeline-16x128-nn");
        let ctas: Vec<u32> = of_flattest
            .map(|plan| plan.decomposition().unwrap().ctas)
            .collect();
        for expected in [1, 2, 64, 132, 264] {
            assert!(ctas.contains(&expected), "{ctas:?}");
        }
    }

    #[test]
    fn the_first_prediction_is_the_best_plan() {
        let (shape, no) = (Shape::new(100, 300, 2000), Transpose::No);
        let call = Call::compact(shape, no, no, ElementType::F32);
        let predicted = predictions(call, &h200());
        let best = best(call, &h200(), usize::MAX).unwrap();
        assert!(Choice::of(&predicted[0].0) == Choice::of(&best));
        assert!(predicted.is_sorted_by_key(|(_, seconds)| *seconds));
    }

    #[test]
    fn degenerate_products_have_candidates() {
        for (m, n, k) in [(0, 0, 0), (1, 1, 0), (0, 5, 5), (1, 1, 1)] {
            assert!(!candidates_of(m, n, k).is_empty());
        }
    }
}
