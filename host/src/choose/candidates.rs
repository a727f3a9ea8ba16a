//! The plans that might be the fastest, and the one that the model prefers.

use gpu_kernels::KERNELS;
use gpu_kernels::spec::{Function, Grid, Variant};

use super::model;
use super::rates::{Rates, Speed};
use crate::blas::{Call, Plan, Processor, Sharing, tiles};

/// Of the plans that need no more than `workspace` elements, the one that is predicted to be the fastest.
///
/// # Errors
///
/// The elements of workspace that the most modest plan needs, if that is more: no kernel reads the operands as they lie.
pub fn best(
    call: Call,
    processor: &Processor,
    rates: &Rates,
    workspace: usize,
) -> Result<Plan<'static>, usize> {
    let plans = candidates(call, processor);
    let affordable = plans
        .iter()
        .filter(|plan| plan.workspace_elements() <= workspace);
    let timed = affordable.filter_map(|plan| Some((plan, model::seconds(plan, processor, rates)?)));
    let best = timed.min_by(|one, other| one.1.total_cmp(&other.1));
    best.map(|(plan, _)| *plan).ok_or_else(|| {
        let needed = plans.iter().map(Plan::workspace_elements).min();
        needed.unwrap_or(usize::MAX)
    })
}

/// Every plan that might be the fastest, no two alike.
pub fn candidates(call: Call, processor: &Processor) -> Vec<Plan<'static>> {
    let variants = KERNELS.iter().flat_map(|kernel| kernel.variants);
    let mut plans: Vec<Plan<'static>> = Vec::new();
    for variant in variants.filter(|variant| is_usable(variant, processor)) {
        for sharing in sharings(variant, call, processor) {
            let Some(plan) = Plan::new(variant, call, sharing) else {
                continue;
            };
            let is_known = plans.iter().any(|known| {
                std::ptr::eq(known.variant(), variant) && known.sharing() == plan.sharing()
            });
            if !is_known {
                plans.push(plan);
            }
        }
    }
    plans
}

/// Whether a kernel can run, multiplies f32, and may be the fastest of any shape.
pub(super) fn is_usable(variant: &Variant, processor: &Processor) -> bool {
    let multiplies = match variant.function {
        Function::F32(_) | Function::Streamed(_) => true,
        Function::F64(_) | Function::I32(_) => false,
    };
    // Those that do not stream are for GPUs without asynchronous copies.
    let streams = variant.grid == Grid::Streams;
    multiplies && streams == processor.streams() && Speed::of(variant).is_some()
}

/// Parts that a tile is cut into at most, if all are cut alike: more would be more work for `fix_up` than for the kernel.
const MOST_PARTS: usize = 1024;

/// The ways to share a kernel's steps that may be worth it.
fn sharings(variant: &Variant, call: Call, processor: &Processor) -> Vec<Sharing> {
    if variant.grid != Grid::Streams {
        return vec![Sharing::NONE];
    }
    let tiles = tiles(call.shape, variant.tile);
    let at_once = processor.blocks_at_once(variant);
    let waves = tiles / (at_once as usize).max(1);
    let with = |streams: u32, whole_waves: usize| Sharing {
        streams,
        whole_waves: u32::try_from(whole_waves).unwrap_or(u32::MAX),
    };
    // Nothing, or what is left over.
    let mut sharings = vec![Sharing::NONE, with(at_once, waves)];
    if waves == 0 && tiles > 0 {
        // Fewer blocks on each multiprocessor: fewer partial sums.
        let fewer =
            (1..processor.resident(variant)).map(|blocks| processor.multiprocessors * blocks);
        sharings.extend(fewer.map(|streams| with(streams, 0)));
        // Each tile in as many equal parts, so that none is in more hands than that.
        let most = (at_once as usize / tiles).min(MOST_PARTS);
        let parts = (1..=most).filter(|parts| parts.is_power_of_two() || *parts == most);
        sharings.extend(parts.map(|parts| with((tiles * parts) as u32, 0)));
    }
    sharings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blas::Transpose;
    use crate::choose::tests::h200;
    use crate::problem::Shape;

    fn candidates_of(m: usize, n: usize, k: usize) -> Vec<Plan<'static>> {
        let call = Call::compact(Shape { m, n, k }, Transpose::No, Transpose::No);
        candidates(call, &h200())
    }

    #[test]
    fn every_kernel_that_may_be_chosen_is_a_candidate_and_no_plan_is_one_twice() {
        let plans = candidates_of(100, 200, 3000);
        let variants = KERNELS.iter().flat_map(|kernel| kernel.variants);
        for variant in variants.filter(|variant| is_usable(variant, &h200())) {
            let mut of_variant = plans
                .iter()
                .filter(|plan| std::ptr::eq(plan.variant(), variant));
            assert!(of_variant.next().is_some(), "{}", variant.name);
        }
        for (index, plan) in plans.iter().enumerate() {
            let same = |other: &&Plan<'_>| {
                std::ptr::eq(other.variant(), plan.variant()) && other.sharing() == plan.sharing()
            };
            assert_eq!(plans[..index].iter().find(same).map(Plan::sharing), None);
        }
    }

    #[test]
    fn a_few_tiles_are_cut_in_equal_parts_among_others() {
        let plans = candidates_of(16, 128, 500_000);
        // One tile: in one part, two, four, ..., and one on each multiprocessor.
        let of_flattest = plans
            .iter()
            .filter(|plan| plan.variant().name == "async-pipeline-16x128-nn");
        let streams: Vec<u32> = of_flattest
            .filter_map(|plan| Some(plan.sharing()?.streams))
            .collect();
        for expected in [1, 2, 64, 132, 264] {
            assert!(streams.contains(&expected), "{streams:?}");
        }
    }

    #[test]
    fn degenerate_products_have_candidates() {
        for (m, n, k) in [(0, 0, 0), (1, 1, 0), (0, 5, 5), (1, 1, 1)] {
            assert!(!candidates_of(m, n, k).is_empty());
        }
    }
}
