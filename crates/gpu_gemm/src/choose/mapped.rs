//! Which kernel whose tiles the copy engine brings multiplies elements of 16 bits fastest, and how
//! its CTAs divide the tiles: how long each takes follows from its tile. Constants are clocks of an
//! H200 at 1.98 GHz, fitted to 65 products of few tiles, of one or two rounds and of divided ones,
//! and to products of few rows; they predicted most of them within a tenth. Since then kernels have
//! become faster, by up to a tenth (`docs/src/tuning.md`, "On tensor cores").

use std::collections::BTreeSet;

use gpu_kernels::spec::{DataType, Grid, Variant};
use gpu_kernels::stream_k::StreamK;
use gpu_kernels::{KERNELS, fix_up};

use super::choice::Choice;
use crate::call::{Call, Factor, Shape};
use crate::gpu::DeviceFacts;
use crate::plan::Decomposition;
use crate::plan::decomposition::{splits, tiles};
use crate::plan::takes_batch;

/// The clocks of an SM in a second.
pub(super) const CLOCK_HZ: f64 = 1.98e9;

/// Threads of a warpgroup. A kernel of one alone multiplies only while it does not wait for tiles,
/// and is never the fastest.
const WARPGROUP: u32 = 128;

/// From a launch to its first product, and after its last is stored.
const LAUNCH: f64 = 6300.0;

/// A k-iteration: clocks, and sums in a clock. Of two consumers, one multiplies while the other
/// waits.
const OF_ONE_CONSUMER: (f64, f64) = (282.0, 67.0);
const OF_TWO_CONSUMERS: (f64, f64) = (66.0, 29.0);

/// By how much longer it takes if all SMs are at work.
const TOGETHER: f64 = 0.1;

/// Sums of a tile that are stored in a clock.
pub(super) const STORED: f64 = 9.0;

/// Bytes that come from memory in a clock while so many are on their way, at most and half of that;
/// of matrices that do not stay in the L2, which is so large for an SM.
const MEMORY_BYTES: f64 = 2700.0;
const HALF_ON_THEIR_WAY: f64 = 5.3e6;
const L2: f64 = 25e6;

/// The share of them that tiles of 64 columns get of a wide B, whose rows lie far apart.
const NARROW: f64 = 0.8;
const WIDE: usize = 1024;

/// What dividing the last round of several has to save at least, as predicted: where power holds
/// back a product, SMs that wait let the others run faster.
const WORTH_DIVIDING: f64 = 0.99;

/// Bytes of the rows and columns of tiles that are divided after whole ones, all of which stay in
/// the L2; of more, the part beyond comes from memory again for each CTA, as they are all elsewhere
/// along K.
const KEPT: f64 = 50e6;

/// Bytes of a matrix that is in the L2 when CTAs that are elsewhere along K read it again.
const REREAD: f64 = 10e6;

/// `fix_up`: its launch; bytes of partial sums that are written and read in a clock; and how many
/// times as long that takes where it adds in groups.
const FIX_UP: f64 = 5000.0;
const PARTIAL_BYTES: f64 = 800.0;
const IN_GROUPS: f64 = 1.4;

/// The kernels for this type that run here and read A and B as they lie, each with its fastest
/// decomposition and the seconds that it is predicted to take, the fastest first.
pub(super) fn predictions(
    data_type: DataType,
    call: &Call,
    facts: &DeviceFacts,
) -> Vec<(Choice, f64)> {
    let lies = [Factor::A, Factor::B].map(|factor| call.operand(factor).major(factor));
    let variants = KERNELS.iter().flat_map(|kernel| kernel.variants);
    let mut predictions: Vec<(Choice, f64)> = variants
        .filter(|one| one.types.data_type() == data_type && [one.a.major, one.b.major] == lies)
        .filter(|one| one.grid.is_persistent() && one.block.threads() > WARPGROUP)
        .filter(|one| facts.runs(one))
        .map(|variant| {
            let at_once = facts.ctas_at_once(variant);
            let of_batch = call.batch.count;
            let (decomposition, clocks) = fastest(variant, call.shape, 1, at_once);
            let mut best = (decomposition, clocks * of_batch as f64);
            if takes_batch(variant, call) {
                let together = fastest(variant, call.shape, of_batch, at_once);
                // Persistent CTAs that split no tiles always take all products together.
                if variant.grid == Grid::Persistent || together.1 < best.1 {
                    best = together;
                }
            }
            let (decomposition, clocks) = best;
            let is_stream_k = variant.grid == Grid::PersistentStreamK;
            let choice = Choice {
                variant,
                decomposition: is_stream_k.then_some(decomposition),
            };
            (choice, clocks / CLOCK_HZ)
        })
        .collect();
    predictions.sort_by(|one, other| one.1.total_cmp(&other.1));
    predictions
}

/// The decomposition of the tiles of `products` among persistent CTAs that is predicted to be the
/// fastest, and its clocks: tiles of several products are not split. `at_once` CTAs fit the GPU.
pub(super) fn fastest(
    variant: &Variant,
    shape: Shape,
    products: usize,
    at_once: u32,
) -> (Decomposition, f64) {
    let all = tiles(shape, variant.tile).saturating_mul(products);
    let at_once = at_once.max(1);
    let rounds = Decomposition::rounds(all, at_once);
    let mut best = (rounds, clocks(variant, shape, products, rounds, at_once));
    if variant.grid != Grid::PersistentStreamK || all == 0 || products > 1 {
        return best;
    }
    let waves = all / at_once as usize;
    // The same number of CTAs for each tile, if there are fewer tiles; or all CTAs.
    let each = at_once as usize / all;
    let divisions = (2..=each).map(|each| ((all * each) as u32, 0));
    let most = (at_once, u32::try_from(waves).unwrap_or(u32::MAX));
    for (ctas, data_parallel_waves) in divisions.chain([most]) {
        let divided = Decomposition {
            ctas,
            data_parallel_waves,
        };
        let divided = divided.limited(shape, variant.tile);
        let clocks = clocks(variant, shape, 1, divided, at_once);
        let enough = match divided.data_parallel_waves {
            0 => 1.0,
            _ => WORTH_DIVIDING,
        };
        if clocks < enough * best.1 {
            best = (divided, clocks);
        }
    }
    best
}

/// The clocks that `products` of one shape take in one launch.
fn clocks(
    variant: &Variant,
    shape: Shape,
    products: usize,
    decomposition: Decomposition,
    at_once: u32,
) -> f64 {
    let tile = variant.tile;
    let stream_k = decomposition.of(shape, tile);
    let (ctas, waves) = (stream_k.ctas, stream_k.data_parallel_waves);
    let (divided, k_iterations) = (stream_k.stream_k_tiles(), stream_k.k_iterations);
    let sums = f64::from(tile.m * tile.n);
    let (iteration, of_sums) = match variant.block.threads() > 2 * WARPGROUP {
        true => OF_TWO_CONSUMERS,
        false => OF_ONE_CONSUMER,
    };
    let together = 1.0 + TOGETHER * ctas as f64 / f64::from(at_once);
    let multiply = |iterations: usize| {
        let clocks = iteration + sums / of_sums;
        iterations as f64 * clocks * together
    };
    // CTAs that share rows or columns are at the same k if each tile has as many.
    let is_in_step = divided == 0 || ctas.is_multiple_of(divided);
    let memory = memory(variant, shape, products, ctas, is_in_step || waves > 0);
    let rest = multiply((divided * k_iterations).div_ceil(ctas.max(1)));
    let rest = match is_in_step || waves == 0 {
        true => rest,
        false => rest.max(reread(variant, shape, &stream_k)),
    };
    let multiply = multiply(waves * k_iterations) + rest;
    let whole = LAUNCH + multiply.max(memory) + waves as f64 * sums / STORED;
    if divided == 0 || !splits(&stream_k) {
        return whole;
    }
    // Each CTA leaves a segment, and another one if it ends in the middle of a tile.
    let segments = match ctas % divided {
        0 => ctas,
        _ => ctas + divided,
    };
    let elements = (tile.m * tile.n) as usize;
    let adds_in_groups = fix_up::groups(elements, stream_k.max_segments()) > 1;
    let partials = FIX_UP + segments as f64 * sums * 4.0 / PARTIAL_BYTES;
    whole + partials * if adds_in_groups { IN_GROUPS } else { 1.0 }
}

/// The clocks in which A and B of all `products` come from memory.
fn memory(variant: &Variant, shape: Shape, products: usize, ctas: usize, is_in_step: bool) -> f64 {
    let tile = variant.tile;
    let element = variant.types.a.bytes() as f64;
    let [m, n, k] = [shape.m, shape.n, shape.k].map(|size| size as f64);
    let (tile_m, tile_n) = (f64::from(tile.m), f64::from(tile.n));
    let of = |bytes: f64, times: f64| match bytes > REREAD && !is_in_step {
        true => bytes * times,
        false => bytes * products as f64,
    };
    let a = of(m * k * element, (n / tile_n).ceil());
    let b = of(k * n * element, (m / tile_m).ceil());
    if a + b <= L2 {
        return 0.0;
    }
    let bytes = bytes_a_clock(variant, shape, ctas);
    let is_narrow = tile.n == 64 && shape.n > WIDE;
    (a + b) / if is_narrow { NARROW * bytes } else { bytes }
}

/// The clocks in which what does not stay in the L2 comes from memory for tiles that are divided
/// after whole ones.
fn reread(variant: &Variant, shape: Shape, stream_k: &StreamK) -> f64 {
    let tile = variant.tile;
    let tiles = stream_k.first_stream_k_tile()..stream_k.tile_rows * stream_k.tile_cols;
    let divided = tiles.len();
    let (rows, cols): (BTreeSet<_>, BTreeSet<_>) =
        tiles.map(|tile| stream_k.tile_position(tile)).unzip();
    let bytes_of = |rows: usize, cols: usize| {
        let along_k = rows * tile.m as usize + cols * tile.n as usize;
        (along_k * shape.k * variant.types.a.bytes()) as f64
    };
    let beyond = (1.0 - KEPT / bytes_of(rows.len(), cols.len())).max(0.0);
    beyond * divided as f64 * bytes_of(1, 1) / bytes_a_clock(variant, shape, stream_k.ctas)
}

/// Bytes that so many CTAs get from memory in a clock.
fn bytes_a_clock(variant: &Variant, shape: Shape, ctas: usize) -> f64 {
    let [m, n] = [shape.m, shape.n].map(|size| size as f64);
    let (tile_m, tile_n) = (f64::from(variant.tile.m), f64::from(variant.tile.n));
    // What lies outside of a matrix does not come from memory.
    let inside = (m.min(tile_m) + n.min(tile_n)) / (tile_m + tile_n);
    let on_their_way = ctas as f64 * f64::from(variant.ring_bytes()) * inside;
    MEMORY_BYTES * on_their_way / (on_their_way + HALF_ON_THEIR_WAY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Transpose;
    use crate::tests::h200;

    /// The fastest kernel for a B stored `n x k`, its CTAs and its data-parallel waves; and the
    /// microseconds that are predicted.
    fn fastest_for(m: usize, n: usize, k: usize) -> (&'static str, u32, u32, f64) {
        let data_type = DataType::BF16;
        let call = Call::compact(
            Shape::new(m, n, k),
            Transpose::No,
            Transpose::Yes,
            data_type.inputs,
        );
        let (choice, seconds) = predictions(data_type, &call, &h200()).remove(0);
        let of = choice.plan(call, &h200()).unwrap().decomposition();
        let (ctas, waves) = of.map_or((0, 0), |of| (of.ctas, of.data_parallel_waves));
        (choice.variant.name, ctas, waves, seconds * 1e6)
    }

    #[test]
    fn large_tiles_for_a_large_c_and_few_tiles_are_divided_where_k_is_long() {
        // 512 tiles: four rounds of 132 CTAs.
        let (name, ..) = fastest_for(4096, 4096, 4096);
        assert_eq!(name, "warp-specialized-nt");
        // Of 15.5 and 6.8 rounds the last is divided, but not where each CTA would read rows and
        // columns from memory that others have read before.
        let (name, _, waves, _) = fastest_for(8192, 8192, 8192);
        assert_eq!((name, waves), ("persistent-nt", 15));
        let (name, ..) = fastest_for(4096, 7168, 16_384);
        assert_eq!(name, "warp-specialized-nt");
        let (name, ctas, ..) = fastest_for(16, 4096, 4096);
        assert_eq!((name, ctas), ("persistent-64x128-nt", 96));
        let (name, ctas, _, _) = fastest_for(8, 512, 500_000);
        assert_eq!((name, ctas), ("persistent-64x128-nt", 132));
        // Each tile has three CTAs, so that those that share columns read them together.
        let (name, ctas, _, _) = fastest_for(128, 2112, 7168);
        assert_eq!((name, ctas), ("persistent-64x128-nt", 102));
        // So short a K that adding would take longer.
        let (_, _, waves, _) = fastest_for(704, 768, 1024);
        assert_eq!(waves, 1);
    }

    #[test]
    fn what_was_measured_is_predicted() {
        let variant = |name: &str| {
            let variants = KERNELS.iter().flat_map(|kernel| kernel.variants);
            let of_type = |one: &&Variant| one.types.data_type() == DataType::BF16;
            variants
                .filter(of_type)
                .find(|one| one.name == name)
                .unwrap()
        };
        // CTAs and data-parallel waves, and microseconds on an H200.
        for (name, (m, n, k), (ctas, waves), measured) in [
            ("persistent-nt", (1408, 3072, 4096), (132, 1), 47.6),
            ("persistent-nt", (1408, 6144, 8192), (132, 2), 180.8),
            ("persistent-nt", (1408, 4608, 8192), (132, 1), 149.3),
            ("persistent-nt", (128, 2048, 8192), (64, 0), 21.7),
            ("persistent-128x128-nt", (128, 1024, 8192), (8, 1), 44.9),
            ("persistent-128x128-nt", (768, 1408, 8192), (132, 0), 32.9),
            ("persistent-128x128-nt", (128, 1024, 32_768), (132, 0), 34.1),
            ("persistent-64x128-nt", (704, 1536, 4096), (132, 1), 17.7),
            ("persistent-64x128-nt", (64, 128, 32_768), (132, 0), 10.8),
            ("persistent-64x64-nt", (704, 768, 4096), (132, 1), 14.9),
            ("persistent-64x64-nt", (384, 704, 8192), (132, 0), 17.2),
            ("persistent-64x64-nt", (1, 512, 500_000), (72, 0), 177.9),
            ("persistent-64x128-nt", (128, 2112, 7168), (132, 0), 21.6),
        ] {
            let decomposition = Decomposition {
                ctas,
                data_parallel_waves: waves,
            };
            let clocks = clocks(variant(name), Shape::new(m, n, k), 1, decomposition, 132);
            let ratio = clocks / CLOCK_HZ * 1e6 / measured;
            assert!(
                (0.88..1.14).contains(&ratio),
                "{name}, {m} x {n} x {k}: {ratio}"
            );
        }
    }
}
