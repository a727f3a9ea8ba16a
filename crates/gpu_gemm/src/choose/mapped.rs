//! The cost model of kernels in 16 and 8 bits that the copy engine feeds: how long each takes, and
//! how its CTAs divide the tiles, by the size of its tile. Constants are clocks of an H200 at 1.98
//! GHz, fitted to 65 products of few tiles, of one or two rounds and of divided ones, and to
//! products of few rows; they predicted most of them within a tenth. Since then kernels have
//! become faster, by up to a tenth (`docs/src/tuning.md`, "On tensor cores"). Those of kernels that
//! promote are fitted to seven products, which the test has.

use std::collections::BTreeSet;

use gpu_kernels::spec::{Rounding, Variant};
use gpu_kernels::stream_k::StreamK;
use gpu_kernels::{fix_up, split};

use super::copying;
use crate::call::{Call, Shape};
use crate::gpu::DeviceFacts;
use crate::plan::decomposition::{splits, tiles};
use crate::plan::{Decomposition, OperandCopy, Panel};

/// The clocks of an SM in a second.
const CLOCK_HZ: f64 = 1.98e9;

/// Threads of a warpgroup.
const WARPGROUP: u32 = 128;

/// From a launch to its first product, and after its last is stored.
const LAUNCH: f64 = 6300.0;

/// A k-iteration: clocks, and sums in a clock. Of two consumers, one multiplies while the other
/// waits.
const OF_ONE_CONSUMER: (f64, f64) = (282.0, 67.0);
const OF_TWO_CONSUMERS: (f64, f64) = (66.0, 29.0);
/// The same of consumers that promote, which limits one of them more.
const OF_ONE_PROMOTING: (f64, f64) = (214.0, 25.0);
const OF_TWO_PROMOTING: (f64, f64) = (52.0, 23.6);

/// Sums of a tile that are stored in a clock.
const STORED: f64 = 9.0;

/// Peak bytes a clock from memory; bytes in flight at half of that; and bytes of A and B that the
/// L2 keeps, so that memory is no limit.
const MEMORY_BYTES: f64 = 2700.0;
const IN_FLIGHT_AT_HALF: f64 = 5.3e6;
const L2: f64 = 25e6;

/// The share of that bandwidth which tiles of 64 columns get from a wide B, whose rows are far
/// apart.
const NARROW: f64 = 0.8;
const WIDE: usize = 1024;

/// Bytes of the rows and columns of tiles that are divided after whole ones, all of which stay in
/// the L2; of more, the part beyond comes from memory again for each CTA, as they are all elsewhere
/// along K.
const L2_RESIDENT_BYTES: f64 = 50e6;

/// Bytes of a matrix that is still in the L2 when CTAs at another k read it again.
const REREAD: f64 = 10e6;

/// `fix_up`: its launch; bytes of partial sums that are written and read in a clock; and how many
/// times as long that takes where it adds in groups.
const FIX_UP: f64 = 5000.0;
const PARTIAL_BYTES: f64 = 800.0;
const IN_GROUPS: f64 = 1.4;

/// Seconds of `split-fp32` from a launch to its first product, and after its last is stored.
const SPLIT_LAUNCH: f64 = 4.6e-6;
/// Seconds of a k-iteration: 128 x 128 x 64 products three times over. Fitted, with what splitting
/// takes, to 1024, 2048, 4096 and 8192 on an H200 (`docs/src/tuning.md`, "On tensor cores"), of
/// which it predicts each within a twentieth.
const SPLIT_ITERATION: f64 = 1.13e-6;
/// Seconds in which a CTA of `split_columns`, alone on its SM, splits one element of each of its
/// columns.
const OF_COLUMNS: f64 = 4.9e-9;
const COLUMN_CTAS: usize = 1;
/// The same of a CTA of `split_rows`, which has one row.
const OF_ROW: f64 = 2.4e-9;
const ROW_CTAS: usize = 8;

/// The seconds that a panel takes by a kernel which the copy engine feeds.
pub(super) fn seconds(panel: &Panel, facts: &DeviceFacts) -> f64 {
    let variant = panel.variant();
    if variant.splits_operands {
        return of_split(panel, facts);
    }
    let Call { shape, batch, .. } = *panel.call();
    let products = if panel.is_one_launch() {
        batch.count
    } else {
        1
    };
    let at_once = facts.ctas_at_once(variant);
    let rounds = || Decomposition::rounds(panel.tiles().saturating_mul(products), at_once);
    let decomposition = panel.decomposition().unwrap_or_else(rounds);
    let clocks = clocks(variant, shape, products, decomposition);
    clocks / CLOCK_HZ + copying::copies(panel, facts)
}

/// The clocks that `products` of one shape take in one launch.
fn clocks(variant: &Variant, shape: Shape, products: usize, decomposition: Decomposition) -> f64 {
    let tile = variant.tile;
    let stream_k = decomposition.of(shape, tile);
    let (ctas, waves) = (stream_k.ctas, stream_k.data_parallel_waves);
    let (divided, k_iterations) = (stream_k.stream_k_tiles(), stream_k.k_iterations);
    let sums = f64::from(tile.m * tile.n);
    let promotes = variant.rounding == Rounding::Promoted;
    let (iteration, of_sums) = match (variant.block.threads() > 2 * WARPGROUP, promotes) {
        (true, false) => OF_TWO_CONSUMERS,
        (false, false) => OF_ONE_CONSUMER,
        (true, true) => OF_TWO_PROMOTING,
        (false, true) => OF_ONE_PROMOTING,
    };
    let multiply = |iterations: usize| iterations as f64 * (iteration + sums / of_sums);
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
    let beyond = (1.0 - L2_RESIDENT_BYTES / bytes_of(rows.len(), cols.len())).max(0.0);
    beyond * divided as f64 * bytes_of(1, 1) / bytes_a_clock(variant, shape, stream_k.ctas)
}

/// Bytes that `ctas` CTAs get from memory in a clock.
fn bytes_a_clock(variant: &Variant, shape: Shape, ctas: usize) -> f64 {
    let [m, n] = [shape.m, shape.n].map(|size| size as f64);
    let (tile_m, tile_n) = (f64::from(variant.tile.m), f64::from(variant.tile.n));
    // What is outside of a matrix does not come from memory.
    let inside = (m.min(tile_m) + n.min(tile_n)) / (tile_m + tile_n);
    let in_flight = ctas as f64 * f64::from(variant.ring_bytes()) * inside;
    MEMORY_BYTES * in_flight / (in_flight + IN_FLIGHT_AT_HALF)
}

/// Splitting, and the k-iterations of the CTA that has the most tiles.
fn of_split(panel: &Panel, facts: &DeviceFacts) -> f64 {
    let variant = panel.variant();
    let tile = variant.tile;
    let tiles = tiles(panel.call().shape, tile);
    let rounds = Decomposition::rounds(tiles, facts.ctas_at_once(variant)).data_parallel_waves;
    let store = f64::from(tile.m * tile.n) / STORED / CLOCK_HZ;
    let of_tile = panel.k_iterations() as f64 * SPLIT_ITERATION + store;
    let splitting: f64 = panel.copies().map(|copy| splitting(&copy, facts)).sum();
    splitting + SPLIT_LAUNCH + f64::from(rounds) * of_tile
}

/// A split copy: what its bytes take, and no less than its CTAs, each of which goes through all of
/// k.
fn splitting(copy: &OperandCopy, facts: &DeviceFacts) -> f64 {
    let (lines, depth) = copy.target;
    let (ctas, of_element, on_sm) = match copy.transposed {
        true => (lines.div_ceil(split::COLUMNS), OF_COLUMNS, COLUMN_CTAS),
        false => (lines, OF_ROW, ROW_CTAS),
    };
    let waves = ctas.div_ceil(on_sm * facts.sms as usize);
    let of_latency = (waves * depth) as f64 * of_element;
    copying::LAUNCH + of_latency.max(copying::copying(copy, facts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Transpose;
    use crate::choose::Choice;
    use crate::tests::{h200, variant};
    use gpu_kernels::spec::ElementType;

    #[test]
    fn what_was_measured_is_predicted() {
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
            ("warp-specialized-fp8", (2048, 2048, 2048), (128, 1), 16.6),
            ("warp-specialized-fp8", (2048, 2048, 7168), (128, 1), 45.7),
            (
                "warp-specialized-fp8-128x128",
                (2048, 2048, 2048),
                (128, 2),
                17.2,
            ),
            (
                "warp-specialized-fp8-128x128",
                (512, 4096, 14_336),
                (128, 1),
                46.1,
            ),
            (
                "warp-specialized-fp8-64x128",
                (1024, 1024, 1024),
                (128, 1),
                6.0,
            ),
            (
                "warp-specialized-fp8-64x128",
                (256, 4096, 7168),
                (128, 1),
                18.7,
            ),
            (
                "warp-specialized-fp8-64x64",
                (128, 4096, 4096),
                (128, 1),
                9.5,
            ),
        ] {
            let decomposition = Decomposition {
                ctas,
                data_parallel_waves: waves,
            };
            let clocks = clocks(variant(name), Shape::new(m, n, k), 1, decomposition);
            let ratio = clocks / CLOCK_HZ * 1e6 / measured;
            assert!(
                (0.88..1.14).contains(&ratio),
                "{name}, {m} x {n} x {k}: {ratio}"
            );
        }
    }

    #[test]
    fn what_split_fp32_was_measured_to_take_is_predicted() {
        let no = Transpose::No;
        let of = |size, b| {
            let call = Call::compact(Shape::cube(size), no, b, ElementType::F32);
            let plan = Choice::even(variant("split-fp32")).plan(call, &h200());
            seconds(&plan.unwrap().panels()[0], &h200()) * 1e6
        };
        // Microseconds on an H200, splitting included.
        for (size, measured) in [(1024, 38.1), (2048, 121.4), (4096, 709.7), (8192, 5015.0)] {
            let ratio = of(size, no) / measured;
            assert!((0.95..1.05).contains(&ratio), "{size}: {ratio}");
        }
        // Splitting B by rows, as it is stored then, takes half as long.
        let saved = of(2048, no) - of(2048, Transpose::Yes);
        assert!((7.0..14.0).contains(&saved), "{saved}");
    }
}
