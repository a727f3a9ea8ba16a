//! Predicts how long a plan will take, as a sum of terms that are known beforehand.
//!
//! ```text
//! seconds = operand copies             bytes / memory, and a launch each
//!         + the kernel                 the largest of these:
//!                                        the k-iterations of the busiest CTA, at its fraction of
//!                                        the speed of a streaming multiprocessor (SM)
//!                                        bytes of A, B and C / memory
//!                                        bytes of tiles / L2
//!         + fix-up, if tiles are split bytes of partial sums / L2, and a wait for every few
//!                                      segments that a thread adds
//!         + a launch for each, and all that for the N remainder, if another kernel computes it
//! ```
//!
//! For a batch that is one launch, each term counts all of its products; else the time is that of
//! one product, times their number.
//!
//! The prediction need not be accurate to a percent: it only has to rank the plans correctly.
//! `rust-gemm tune` measures where the difference matters.

use gpu_kernels::fix_up;
use gpu_kernels::spec::{ElementType, Rate, Variant};

use super::copying::{LAUNCH, copies};
use super::mapped;
use crate::call::Shape;
use crate::gpu::DeviceFacts;
use crate::plan::{Panel, Plan};

/// Seconds that a CTA takes for a tile in addition to its k-iterations and to writing it: the
/// time until the first data arrive.
const TILE: f64 = 0.7e-6;
/// Seconds that the fix-up takes for each [`AT_ONCE`](fix_up::AT_ONCE) segments of a tile that a
/// group of its threads adds: the latency of loading them.
const FIX_UP_WAIT: f64 = 1.8e-6;
/// How much a kernel that waits for memory is slowed down by SMs with more CTAs than others: half
/// as many again, and it takes a twentieth longer (1 x 24576 x 1536, 192 and 384 CTAs, H200).
const UNEVENNESS: f64 = 0.1;
/// Measured over modelled time of matrix-vector kernels in 16 bits: the model knows memory by
/// operands of f32. On an H200 it was 0.76 to 1.04 in seven products of one row.
const FEW_ROW_FACTOR: f64 = 0.87;
/// Rows of tiles of a matrix-vector kernel, for each of which it reads B again: from the L2, if
/// there are few.
const MOST_TILE_ROWS: usize = 4;
/// Rows of C for which such a kernel is worth a thought: at 32 of f64 it is up to 2.4 times as fast
/// as a kernel with tiles in shared memory, and up to a fifth slower.
const MOST_ROWS: usize = 32;
/// Warp schedulers of an SM.
const SCHEDULERS: u64 = 4;

/// The seconds that a plan takes on a GPU; `None` for a kernel that is never worth choosing, or
/// not for this shape.
pub fn seconds(plan: &Plan, facts: &DeviceFacts) -> Option<f64> {
    let of_panels = plan.panels().iter().map(|panel| of_panel(panel, facts));
    let seconds: f64 = of_panels.sum::<Option<f64>>()?;
    Some(seconds * plan.repeats() as f64)
}

/// The products of a batch that a launch computes together.
fn together(panel: &Panel) -> u64 {
    match panel.is_one_launch() {
        true => panel.call().batch.count as u64,
        false => 1,
    }
}

fn of_panel(panel: &Panel, facts: &DeviceFacts) -> Option<f64> {
    let variant = panel.variant();
    // Those of f64 have rates.
    if variant.grid.is_mapped() && variant.types.a != ElementType::F64 {
        return Some(mapped::seconds(panel, facts));
    }
    let rate = variant.rate?;
    let shape = panel.call().shape;
    if shape.is_empty() {
        return Some(0.0);
    }
    let tile_rows = shape.m.div_ceil(variant.tile.m as usize);
    if variant.gemv_like && (tile_rows > MOST_TILE_ROWS || shape.m > MOST_ROWS) {
        return None;
    }
    let parts = [
        compute(panel, facts, &rate),
        memory(panel, facts),
        l2(panel, facts),
    ];
    let kernel = LAUNCH + parts.into_iter().fold(0.0, f64::max);
    let seconds = copies(panel, facts) + kernel + fix_up(panel, facts);
    Some(match variant.gemv_like && variant.types.a.bytes() == 2 {
        true => FEW_ROW_FACTOR * seconds,
        false => seconds,
    })
}

/// What one CTA does in sequence.
struct Busiest {
    k_iterations: f64,
    tiles: f64,
}

/// Arithmetic: each wave takes as long as its busiest CTA.
fn compute(panel: &Panel, facts: &DeviceFacts, rate: &Rate) -> f64 {
    let variant = panel.variant();
    let tile = variant.tile;
    let k_iterations = panel.k_iterations() as f64;
    let (ctas, busiest) = match panel.stream_k() {
        Some(stream_k) => {
            let waves = stream_k.data_parallel_waves as f64;
            let divided = stream_k.stream_k_tiles() as f64 * k_iterations / stream_k.ctas as f64;
            // If the number of CTAs is not a multiple of the number of tiles, some CTA begins in
            // one tile and ends in another.
            let segments = match stream_k.ctas.is_multiple_of(stream_k.stream_k_tiles()) {
                true => 1.0,
                false => 2.0 + (divided / k_iterations.max(1.0)).floor(),
            };
            let busiest = Busiest {
                k_iterations: waves * k_iterations + divided.ceil(),
                tiles: waves + segments,
            };
            (stream_k.ctas as u64 * together(panel), busiest)
        }
        None => {
            let busiest = Busiest {
                k_iterations,
                tiles: 1.0,
            };
            (panel.tiles() as u64 * together(panel), busiest)
        }
    };
    let products = f64::from(tile.m) * f64::from(tile.n) * f64::from(tile.k);
    let resident = u64::from(facts.resident(variant));
    let sms = u64::from(facts.sms);
    let full_speed = facts.flops_of_sm(variant, rate);
    let warps = u64::from(variant.block.threads().div_ceil(32));
    let written = f64::from(tile.m) * f64::from(tile.n) * variant.types.c.bytes() as f64;
    let of_tile = TILE + written * f64::from(facts.sms) / facts.speeds.memory_bytes_per_s;
    // A wave of CTAs, with this many on the fullest SM.
    let wave = |on_one: u64| {
        let speed = full_speed * speed_fraction(rate, on_one, resident, warps);
        busiest.k_iterations * 2.0 * products / speed + busiest.tiles * of_tile
    };
    let at_once = resident * sms;
    let (full, remaining) = (ctas / at_once, ctas % at_once);
    let last = match remaining {
        0 => 0.0,
        remaining => wave(remaining.div_ceil(sms)),
    };
    full as f64 * wave(resident) + last
}

/// The fraction of an SM's speed that each of `ctas` CTAs with this many warps gets, on an SM
/// that holds at most `resident` CTAs.
fn speed_fraction(rate: &Rate, ctas: u64, resident: u64, warps: u64) -> f64 {
    let resident = resident.max(1);
    let ctas = ctas.clamp(1, resident);
    // Each further CTA uses the same fraction of the issue slots that are still free.
    let filled = |ctas: u64| 1.0 - (1.0 - rate.one_cta).powf(ctas as f64);
    let together = filled(ctas) / filled(resident);
    // All CTAs wait for the warps on the scheduler that has the most.
    let on_scheduler = (ctas * warps).div_ceil(SCHEDULERS);
    together * warps as f64 / (on_scheduler * SCHEDULERS) as f64
}

/// The traffic of A, B and C, each once.
fn memory(panel: &Panel, facts: &DeviceFacts) -> f64 {
    let Shape { m, n, k } = panel.call().shape;
    let [m, n, k] = [m, n, k].map(|size| size as f64);
    let types = panel.variant().types;
    let [a, b, c] = [types.a, types.b, types.c].map(|element| element.bytes() as f64);
    let bytes = (m * k * a + k * n * b + m * n * c) * together(panel) as f64;
    let ctas = match panel.stream_k() {
        Some(stream_k) => stream_k.ctas,
        None => panel.tiles(),
    };
    let ctas = ctas * together(panel) as usize;
    let sms = facts.sms as usize;
    // CTAs of the fullest SM, for one of the average.
    let fullest = (ctas.div_ceil(sms) * sms) as f64 / ctas.max(1) as f64;
    let unevenness = 1.0 + UNEVENNESS * (fullest.min(2.0) - 1.0);
    bytes * unevenness / facts.speeds.memory_bytes_per_s
}

/// The tiles of A and B, counted each time they are staged.
fn l2(panel: &Panel, facts: &DeviceFacts) -> f64 {
    let Variant { tile, types, .. } = panel.variant();
    let a = f64::from(tile.m) * types.a.bytes() as f64;
    let b = f64::from(tile.n) * types.b.bytes() as f64;
    let of_iteration = (a + b) * f64::from(tile.k);
    let iterations = panel.tiles() as f64 * panel.k_iterations() as f64 * together(panel) as f64;
    iterations * of_iteration / facts.speeds.l2_bytes_per_s
}

/// Partial sums, written and read: one tile for each CTA that computes a segment, and one more if
/// a tile ends within the CTA's work.
fn fix_up(panel: &Panel, facts: &DeviceFacts) -> f64 {
    let Some(stream_k) = panel.stream_k().filter(|_| panel.is_split()) else {
        return 0.0;
    };
    let Variant { tile, types, .. } = panel.variant();
    let segments = (stream_k.ctas + stream_k.stream_k_tiles().min(stream_k.ctas)) as f64;
    let of_tile = f64::from(tile.m) * f64::from(tile.n) * types.accumulator.bytes() as f64;
    let bytes = 2.0 * segments * of_tile;
    // The CTAs on a GPU add up the segments of tiles at the same time, and each thread waits for
    // the segments of its group.
    let of_group = stream_k.max_segments().div_ceil(panel.fix_up_groups());
    let waits = of_group.div_ceil(fix_up::AT_ONCE) as f64;
    LAUNCH + FIX_UP_WAIT * waits + bytes / facts.speeds.l2_bytes_per_s
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Call, Transpose};
    use crate::plan::Decomposition;
    use crate::tests::{h200, variant};

    fn predicted(name: &str, shape: Shape, decomposition: Decomposition) -> f64 {
        let call = Call::compact(shape, Transpose::No, Transpose::No, ElementType::F32);
        let plan = Plan::new(variant(name), call, decomposition).unwrap();
        seconds(&plan, &h200()).unwrap()
    }

    #[test]
    fn a_large_cube_takes_what_its_kernel_takes_at_full_speed_and_a_little_more() {
        let shape = Shape::cube(8192);
        let rate = variant("async-pipeline").rate.unwrap();
        let at_full_speed = shape.flops() / rate.flops_per_s;
        let predicted = predicted("async-pipeline", shape, Decomposition::even(64 * 64, 264));
        let ratio = predicted / at_full_speed;
        assert!((1.0..1.05).contains(&ratio), "{ratio}");
    }

    #[test]
    fn a_last_wave_of_a_few_tiles_costs_as_much_as_a_full_one_unless_it_is_divided() {
        // 17 x 16 tiles for 264 CTAs at once: one wave and 8 tiles.
        let shape = Shape::new(17 * 128, 16 * 128, 4096);
        let undivided = predicted("async-pipeline", shape, Decomposition::DATA_PARALLEL);
        let divided = predicted("async-pipeline", shape, Decomposition::even(272, 264));
        assert!(divided < 0.75 * undivided, "{divided} of {undivided}");
    }

    #[test]
    fn a_single_row_takes_a_few_times_what_the_memory_takes() {
        // 2048 x 16384 f32 values from memory at 4 TB/s; the tile computes 16 rows to produce
        // one.
        let shape = Shape::new(1, 2048, 16384);
        let predicted = predicted(
            "async-pipeline-16x128-nn",
            shape,
            Decomposition::even(16, 132 * 6),
        );
        let by_memory = 2048.0 * 16384.0 * 4.0 / 4e12;
        assert!((1.0..3.0).contains(&(predicted / by_memory)), "{predicted}");
    }

    #[test]
    fn an_empty_product_takes_no_time() {
        let shape = Shape { m: 0, n: 5, k: 3 };
        assert_eq!(
            predicted("async-pipeline", shape, Decomposition::DATA_PARALLEL),
            0.0
        );
    }

    #[test]
    fn ctas_divide_an_sm_and_one_alone_does_not_fill_it() {
        let rate = Rate::h200(54.0, 0.6, 2);
        assert!((speed_fraction(&rate, 1, 2, 4) - 0.6 / 0.84).abs() < 1e-12);
        assert_eq!(speed_fraction(&rate, 2, 2, 4), 0.5);
        assert_eq!(speed_fraction(&rate, 1, 1, 4), 1.0);
        // No more CTAs than fit.
        assert_eq!(speed_fraction(&rate, 5, 2, 4), 0.5);
        // Five CTAs of two warps: on two of the four schedulers there are three.
        assert_eq!(speed_fraction(&rate, 5, 5, 2), 1.0 / 6.0);
    }
}
