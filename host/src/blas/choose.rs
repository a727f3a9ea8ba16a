//! Which plan a call gets if none is asked for.

use gpu_kernels::KERNELS;
use gpu_kernels::spec::{Function, Grid, Variant};

use super::plan::{Call, Plan};
use super::processor::Processor;
use super::sharing::Sharing;

/// The plan of `call` that needs no more than `workspace` elements and seems to be the fastest.
///
/// # Errors
///
/// The elements of workspace that the most modest plan needs, if that is more: no kernel reads the operands as they lie.
pub fn choose(call: Call, processor: &Processor, workspace: usize) -> Result<Plan<'static>, usize> {
    let plans: Vec<Plan<'static>> = candidates(call, processor).collect();
    let affordable = plans
        .iter()
        .filter(|plan| plan.workspace_elements() <= workspace);
    let best =
        affordable.min_by(|one, other| cost(one, processor).total_cmp(&cost(other, processor)));
    best.copied().ok_or_else(|| {
        let needed = plans.iter().map(Plan::workspace_elements).min();
        needed.unwrap_or(usize::MAX)
    })
}

/// Every plan that might be the fastest.
pub fn candidates(call: Call, processor: &Processor) -> impl Iterator<Item = Plan<'static>> {
    let variants = KERNELS.iter().flat_map(|kernel| kernel.variants);
    let usable = variants.filter(|variant| is_usable(variant, processor));
    usable.flat_map(move |variant| {
        let even = even(variant, call, processor);
        let all = [
            Some(even),
            (variant.grid == Grid::Streams).then_some(Sharing::NONE),
        ];
        all.into_iter()
            .flatten()
            .filter_map(move |sharing| Plan::new(variant, call, sharing))
    })
}

/// How a kernel shares its steps if nothing else is known.
pub fn even(variant: &Variant, call: Call, processor: &Processor) -> Sharing {
    let tiles = |size: usize, tile: u32| size.div_ceil(tile as usize);
    let tiles =
        tiles(call.shape.m, variant.tile.m).saturating_mul(tiles(call.shape.n, variant.tile.n));
    Sharing::even(tiles, processor.blocks_at_once(variant))
}

/// Kernels that stream live on asynchronous copies, which there are from compute capability 8.0 on.
pub fn is_usable(variant: &Variant, processor: &Processor) -> bool {
    match variant.function {
        Function::F32(_) => true,
        Function::Streamed(_) => processor.architecture >= 80,
        Function::F64(_) | Function::I32(_) => false,
    }
}

/// Products that a plan computes, edges and idle blocks included, each as costly as its tile is small, and some for each element
/// that is copied.
fn cost(plan: &Plan<'_>, processor: &Processor) -> f64 {
    let variant = plan.variant();
    let tile = variant.tile;
    let [m, n, k] = [tile.m, tile.n, tile.k].map(f64::from);
    // A tile of 128 x 128 reads an element for each 64 products.
    let (patch_m, patch_n) = variant.patch();
    let intensity = (m * n / (m + n)).min(f64::from(patch_m * patch_n)) / 64.0;
    let work = m * n * k * plan.steps_per_tile() as f64;
    let at_once = f64::from(processor.blocks_at_once(variant)).max(1.0);
    let tiles = plan.tiles() as f64;
    let waves = match plan.is_split() {
        true => tiles / at_once,
        false => (tiles / at_once).ceil(),
    };
    let copied: usize = plan.packs().map(|pack| pack.elements()).sum();
    waves * at_once * work / intensity.min(1.0) + 50.0 * copied as f64
}
