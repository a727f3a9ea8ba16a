//! How many CTAs share a tile where the CTAs of a cluster split its k-iterations, and how long that
//! takes: clocks of an H200 that power does not hold back, from the slopes and the intercepts of
//! products of few tiles (`docs/src/tuning.md`, "On tensor cores").

use gpu_kernels::spec::Variant;

use super::decomposition::tiles;
use crate::call::Shape;

/// CTAs of a cluster, at most.
pub(super) const MOST_PARTS: u32 = 8;

/// The share of the CTAs that the GPU holds which it holds in clusters: a cluster needs SMs of one
/// part of the GPU. On an H200 there are 132 without; 14 clusters of 8 run at once, and 16 do not.
const IN_CLUSTERS: f64 = 0.85;

/// Bytes that arrive at an SM in a clock, and at all together, from the L2 cache.
const SM_BYTES: f64 = 54.0;
const L2_BYTES: f64 = 5200.0;

/// Clocks from a launch to its first product and after its last.
const LAUNCH: f64 = 7000.0;

/// Clocks in which a cluster of one CTA, if there were one, would add its sums; and those for each
/// further one.
const ADDING: f64 = 6700.0;
const ADDING_EACH: f64 = 700.0;

/// The CTAs that share a tile, of which `ctas` fit the GPU at once: as many as make the product
/// fastest.
pub(crate) fn parts(variant: &Variant, shape: Shape, ctas: u32) -> u32 {
    let clocks = |parts: &u32| clocks_in_parts(variant, shape, ctas, *parts);
    let most = variant.cluster.min(MOST_PARTS);
    let fit = |parts: &u32| {
        let all = tiles(shape, variant.tile) as f64 * f64::from(*parts);
        *parts == 1 || *parts <= most && all <= IN_CLUSTERS * f64::from(ctas)
    };
    let candidates = [1, 2, 4, 8].into_iter().filter(fit);
    let fastest = candidates.min_by(|one, other| clocks(one).total_cmp(&clocks(other)));
    fastest.unwrap_or(1)
}

/// The clocks that a product takes.
pub(crate) fn clocks(variant: &Variant, shape: Shape, ctas: u32) -> f64 {
    clocks_in_parts(variant, shape, ctas, parts(variant, shape, ctas))
}

fn clocks_in_parts(variant: &Variant, shape: Shape, ctas: u32, parts: u32) -> f64 {
    let tile = variant.tile;
    let tiles = tiles(shape, tile) as f64 * f64::from(parts);
    let rounds = (tiles / f64::from(ctas)).ceil();
    let iterations = shape.k.div_ceil(tile.k as usize).div_ceil(parts as usize) as f64;
    let elements = f64::from(tile.m * tile.n);
    let bytes = f64::from((tile.m + tile.n) * tile.k) * variant.types.a.bytes() as f64;
    // What the tensor cores need for the products, and what two consumers wait for each other.
    let multiply = match variant.block.threads() {
        384 => elements / 32.0 + 180.0,
        _ => elements / 32.0,
    };
    let load = (bytes / SM_BYTES).max(bytes * tiles.min(f64::from(ctas)) / L2_BYTES);
    let add = match parts {
        1 => 0.0,
        _ => ADDING + ADDING_EACH * f64::from(parts - 1),
    };
    LAUNCH + rounds * (iterations * multiply.max(load) + elements / 8.0) + add
}
