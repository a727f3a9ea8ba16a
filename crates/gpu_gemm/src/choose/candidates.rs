//! The plans that might be the fastest, with the seconds that each is predicted to take.

use gpu_kernels::spec::{DataType, ElementType, Grid, Rounding, Unit, Variant};

use super::choice::Choice;
use super::model;
use super::variants::Variants;
use crate::call::{Call, Factor, Shape};
use crate::gpu::DeviceFacts;
use crate::plan::decomposition::tiles;
use crate::plan::{Decomposition, Plan, takes_batch};

/// The plans of f32 that round as IEEE 754 says, the fastest first.
pub fn predictions(call: Call, facts: &DeviceFacts) -> Vec<(Plan, f64)> {
    candidates(Variants::LIBRARY, DataType::F32, call, facts, &[])
}

/// Every plan that might be the fastest for matrices of these types, without duplicates, with the
/// seconds that it is predicted to take, the fastest first; none where no kernel can multiply the
/// type. f32 may also be rounded in the ways that are `allowed`.
pub(super) fn candidates(
    variants: Variants,
    data_type: DataType,
    call: Call,
    facts: &DeviceFacts,
    allowed: &[Rounding],
) -> Vec<(Plan, f64)> {
    let mut plans: Vec<(Plan, f64)> = Vec::new();
    let is_of_type = |one: &&Variant| one.types.data_type() == data_type && facts.runs(one);
    let of_type = || variants.iter().filter(is_of_type);
    let is_mapped = |one: &Variant| one.grid.is_mapped();
    // Beside tiles that the copy engine brings, warps that read A and B themselves are slower.
    let has_mapped = data_type.inputs.bytes() == 2 && of_type().any(is_mapped);
    let reads_in_place_by_copy_engine =
        has_mapped && of_type().any(|one| is_mapped(one) && reads_in_place(one, &call));
    let is_candidate = |one: &&Variant| match data_type {
        _ if variants != Variants::LIBRARY => {
            !reads_in_place_by_copy_engine || is_mapped(one) || one.gemv_like
        }
        _ if one.rounding == Rounding::NotPromoted => false, // only by its name
        DataType::F32 => is_usable(one, &call, facts) || allowed.contains(&one.rounding),
        _ if data_type.inputs.bytes() != 2 || one.gemv_like => true,
        _ if is_mapped(one) => reads_in_place(one, &call) && !one.is_lesson,
        _ => reads_in_place(one, &call) && (!has_mapped || call.batch.count > 1),
    };
    for variant in of_type().filter(is_candidate) {
        for decomposition in decompositions(variant, &call, facts) {
            let Ok(plan) = Plan::new(variant, call, decomposition) else {
                continue;
            };
            let choice = Choice::of(&plan);
            if plans.iter().any(|(known, _)| Choice::of(known) == choice) {
                continue;
            }
            let seconds = model::seconds(&plan, facts);
            // Kernels without a rate, which no GPU runs fastest.
            // Those for few rows have none for many.
            let is_own = variants != Variants::LIBRARY && !variant.gemv_like;
            let seconds = seconds.or(is_own.then_some(f64::INFINITY));
            plans.extend(seconds.map(|seconds| (plan, seconds)));
        }
    }
    plans.sort_by(|one, other| one.1.total_cmp(&other.1));
    plans
}

/// The plan of a grouped product, whose groups are the call's batch; `None` if no kernel reads A
/// and B as they are stored.
pub(crate) fn grouped(data_type: DataType, call: Call, facts: &DeviceFacts) -> Option<Plan> {
    // SAFETY: `Context::enqueue_grouped` launches the plan with the ends of the groups.
    let variants = unsafe { gpu_kernels::grouped_variants() };
    let rows = call.shape.m.div_ceil(call.batch.count);
    by_tile(variants, data_type, call, (rows, call.batch.count), facts)
}

/// The same of groups along K.
pub(crate) fn grouped_along_k(
    data_type: DataType,
    call: Call,
    facts: &DeviceFacts,
) -> Option<Plan> {
    // SAFETY: as above.
    let variants = unsafe { gpu_kernels::grouped_along_k_variants() };
    by_tile(
        variants,
        data_type,
        call,
        (call.shape.m, call.batch.count),
        facts,
    )
}

/// The plan of a gated product by one of these kernels, whose matrices B are the call's batch;
/// `None` if none of them reads A and B as they are stored.
pub(crate) fn gated(
    variants: &'static [Variant],
    data_type: DataType,
    call: Call,
    facts: &DeviceFacts,
) -> Option<Plan> {
    by_tile(variants, data_type, call, (call.shape.m, 1), facts)
}

/// The plan of a call that is one launch: with the largest tile, unless half of its rows are more
/// than each of `count` parts of C has on average, or there would be fewer tiles than fit the
/// device at once; then with the smallest.
fn by_tile(
    variants: &'static [Variant],
    data_type: DataType,
    call: Call,
    (rows, count): (usize, usize),
    facts: &DeviceFacts,
) -> Option<Plan> {
    let is_for = |one: &&Variant| one.types.data_type() == data_type && reads_in_place(one, &call);
    let able = || variants.iter().filter(is_for);
    let elements = |one: &&Variant| one.tile.m * one.tile.n;
    let (large, small) = (able().max_by_key(elements)?, able().min_by_key(elements)?);
    let of_part = Shape {
        m: rows,
        ..call.shape
    };
    let tiles = tiles(of_part, large.tile).saturating_mul(count);
    let fits = 2 * rows > large.tile.m as usize && tiles >= facts.ctas_at_once(large) as usize;
    let plan = Choice::even(if fits { large } else { small }).plan(call, facts);
    // The kernel counts all tiles, and parts of which A or B is copied would be launches each.
    plan.ok().filter(|plan| plan.launches().len() == 1)
}

/// Whether a kernel reads A and B as they are stored.
fn reads_in_place(variant: &Variant, call: &Call) -> bool {
    let stored = [Factor::A, Factor::B].map(|factor| call.operand(factor).major(factor));
    [variant.a.major, variant.b.major] == stored
}

/// Whether a kernel multiplies f32 on CUDA cores, and may be the fastest for some shape.
fn is_usable(variant: &Variant, call: &Call, facts: &DeviceFacts) -> bool {
    let may_win = |variant: &Variant| {
        let is_of_f32 = variant.types.a == ElementType::F32 && variant.unit == Unit::CudaCores;
        is_of_f32 && variant.rate.is_some() && facts.runs(variant)
    };
    // The other kernels are for GPUs that cannot run stream-K kernels because they lack
    // asynchronous copies.
    let is_stream_k = variant.grid == Grid::StreamK;
    let runs_stream_k =
        || gpu_kernels::variants().any(|other| other.grid == Grid::StreamK && may_win(other));
    // One launch for many small products beats a better kernel for one after the other.
    let is_for_batches = call.batch.count > 1 && variant.takes_batches();
    may_win(variant) && (is_stream_k || is_for_batches || !runs_stream_k())
}

/// The maximum number of CTAs per tile, if all tiles are divided alike: with more, the fix-up
/// would do more work than the kernel.
const MOST_CTAS_A_TILE: usize = 1024;

/// The decompositions of a kernel's tiles that may be worth trying.
fn decompositions(variant: &Variant, call: &Call, facts: &DeviceFacts) -> Vec<Decomposition> {
    let of_one = tiles(call.computed_by(variant).0.shape, variant.tile);
    let at_once = facts.ctas_at_once(variant);
    let with = |ctas: u32, waves: usize| Decomposition {
        ctas,
        data_parallel_waves: u32::try_from(waves).unwrap_or(u32::MAX),
    };
    // The same number of CTAs for each tile, so that no tile is split among more.
    let each = |ctas: usize| with((of_one * ctas) as u32, 0);
    let waves = of_one / at_once as usize;
    match variant.grid {
        Grid::StreamK => {
            // Divide no tiles, or only the tiles that do not fill a wave.
            let mut decompositions = vec![Decomposition::DATA_PARALLEL, with(at_once, waves)];
            if waves == 0 && of_one > 0 {
                // Fewer CTAs on each SM give fewer partial sums.
                let fewer = (1..facts.resident(variant)).map(|ctas| facts.sms * ctas);
                decompositions.extend(fewer.map(|ctas| with(ctas, 0)));
                let most = (at_once as usize / of_one).min(MOST_CTAS_A_TILE);
                let worth = |ctas: &usize| ctas.is_power_of_two() || *ctas == most;
                decompositions.extend((1..=most).filter(worth).map(each));
            }
            decompositions
        }
        Grid::PersistentStreamK => {
            let mut decompositions = vec![Decomposition::rounds(of_one, at_once)];
            let most = (at_once as usize).checked_div(of_one).unwrap_or(0);
            decompositions.extend((2..=most).map(each));
            decompositions.push(with(at_once, waves));
            if takes_batch(variant, call) {
                let all = of_one.saturating_mul(call.batch.count);
                decompositions.push(Decomposition::rounds(all, at_once));
            }
            decompositions
        }
        Grid::Persistent => vec![Decomposition::stream_k(at_once)],
        _ => vec![Decomposition::DATA_PARALLEL],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Shape, Transpose};
    use crate::tests::h200;

    fn of_f32(m: usize, n: usize, k: usize) -> Vec<(Plan, f64)> {
        let (shape, no) = (Shape { m, n, k }, Transpose::No);
        predictions(Call::compact(shape, no, no, ElementType::F32), &h200())
    }

    #[test]
    fn a_few_tiles_are_divided_evenly_among_others_and_no_plan_is_one_twice() {
        let plans = of_f32(16, 128, 500_000);
        // One tile: one CTA, two, four, ..., and one CTA on each SM.
        let of_flattest = plans
            .iter()
            .filter(|(plan, _)| plan.variant().name == "async-pipeline-16x128-nn");
        let mut ctas: Vec<u32> = of_flattest
            .map(|(plan, _)| plan.decomposition().unwrap().ctas)
            .collect();
        for expected in [1, 2, 64, 132, 264] {
            assert!(ctas.contains(&expected), "{ctas:?}");
        }
        let count = ctas.len();
        ctas.sort_unstable();
        ctas.dedup();
        assert_eq!(ctas.len(), count);
        assert!(plans.is_sorted_by_key(|(_, seconds)| *seconds));
    }

    #[test]
    fn what_is_there_to_be_read_is_no_candidate() {
        let no = Transpose::No;
        let call = Call::compact(Shape::cube(4096), no, no, ElementType::Bf16);
        let plans = candidates(Variants::LIBRARY, DataType::BF16, call, &h200(), &[]);
        let mut variants = plans.iter().map(|(plan, _)| plan.variant());
        assert!(variants.clone().any(|one| one.name == "warp-specialized"));
        assert!(variants.all(|one| !one.is_lesson));
    }

    #[test]
    fn degenerate_products_have_candidates() {
        for (m, n, k) in [(0, 0, 0), (1, 1, 0), (0, 5, 5), (1, 1, 1)] {
            assert!(!of_f32(m, n, k).is_empty());
        }
    }
}
