//! How long a plan will take: a sum of what can be known beforehand.
//!
//! ```text
//! seconds = copies of A and B          bytes / memory, and a launch each
//!         + the kernel                 the larger of: the steps of the busiest block, at the speed that it has of a multiprocessor
//!                                                     bytes of A, B and C / memory, bytes of tiles / L2
//!         + fix_up, if tiles are split bytes of partial sums / L2, and a wait for every few parts that a thread adds
//!         + a launch for each, and all that for the columns that the kernel leaves to another
//! ```
//!
//! It need not be right to a percent: it has to put the plans in the right order. `host tune` measures where that matters.

use gpu_kernels::fix_up;
use gpu_kernels::spec::{Grid, Stages};

use super::rates::{LAUNCH, PACKING, ROUND, Rates, SATURATION, Speed, TILE};
use crate::blas::{Plan, Processor};
use crate::problem::Shape;

/// Bytes of an element.
const ELEMENT: f64 = size_of::<f32>() as f64;

/// Seconds that a plan takes on a GPU; none for a kernel that is never worth choosing, or not for this shape.
pub fn seconds(plan: &Plan<'_>, processor: &Processor, rates: &Rates) -> Option<f64> {
    let speed = Speed::of(plan.variant())?;
    if plan.call().shape.is_empty() {
        return Some(0.0);
    }
    // What keeps nothing of B reads it again for each row of tiles: for one, it is made.
    let variant = plan.variant();
    let keeps_nothing = variant.grid == Grid::Streams && variant.stages == Stages::Nothing;
    if keeps_nothing && plan.call().shape.m > variant.tile.m as usize {
        return None;
    }
    let kernel = LAUNCH
        + compute(plan, processor, rates, speed)
            .max(memory(plan, processor, rates))
            .max(l2(plan, rates));
    let rest = match plan.rest() {
        Some(rest) => seconds(&rest, processor, rates)?,
        None => 0.0,
    };
    Some(packing(plan, rates) + kernel + fix_up(plan, rates) + rest)
}

/// The copies of A and B: read once, written once.
fn packing(plan: &Plan<'_>, rates: &Rates) -> f64 {
    let copies = plan.packs().map(|pack| {
        let elements = pack.source.0 as f64 * pack.source.1 as f64 + pack.elements() as f64;
        LAUNCH + elements * ELEMENT / (rates.memory_bytes_per_s * PACKING)
    });
    copies.sum()
}

/// What one block has to do, one after the other.
struct Busiest {
    steps: f64,
    tiles: f64,
}

/// Arithmetic: as long as the busiest block of each round takes.
fn compute(plan: &Plan<'_>, processor: &Processor, rates: &Rates, speed: Speed) -> f64 {
    let tile = plan.variant().tile;
    let steps_of_tile = plan.steps_per_tile() as f64;
    let (blocks, busiest) = match plan.streams() {
        Some(streams) => {
            let shared = (streams.shared() as f64) * steps_of_tile / streams.streams as f64;
            // A share that is not so many tiles begins in one and ends in another.
            let parts = match streams.streams.is_multiple_of(streams.shared()) {
                true => 1.0,
                false => 2.0 + (shared / steps_of_tile.max(1.0)).floor(),
            };
            let busiest = Busiest {
                steps: streams.whole_waves as f64 * steps_of_tile + shared.ceil(),
                tiles: streams.whole_waves as f64 + parts,
            };
            (streams.streams as u64, busiest)
        }
        None => {
            let busiest = Busiest {
                steps: steps_of_tile,
                tiles: 1.0,
            };
            (plan.tiles() as u64, busiest)
        }
    };
    let products = f64::from(tile.m) * f64::from(tile.n) * f64::from(tile.k);
    let resident = u64::from(processor.resident(plan.variant()).max(1));
    let multiprocessors = u64::from(processor.multiprocessors.max(1));
    let full_speed = rates.of_multiprocessor(speed);
    let warps = u64::from(plan.variant().block.threads().div_ceil(32));
    let written = f64::from(tile.m) * f64::from(tile.n) * ELEMENT;
    let of_tile =
        TILE + written * f64::from(processor.multiprocessors.max(1)) / rates.memory_bytes_per_s;
    // A round of blocks, as many on the fullest multiprocessor.
    let round = |on_one: u64| {
        let speed = full_speed * speed.share(on_one, resident, warps);
        busiest.steps * 2.0 * products / speed + busiest.tiles * of_tile
    };
    let at_once = resident * multiprocessors;
    let (full, rest) = (blocks / at_once, blocks % at_once);
    let last = match rest {
        0 => 0.0,
        rest => round(rest.div_ceil(multiprocessors)),
    };
    full as f64 * round(resident) + last
}

/// A, B and C once, by as many multiprocessors as have something to do.
fn memory(plan: &Plan<'_>, processor: &Processor, rates: &Rates) -> f64 {
    let Shape { m, n, k } = plan.call().shape;
    let [m, n, k] = [m, n, k].map(|size| size as f64);
    let bytes = (m * k + k * n + m * n) * ELEMENT;
    let blocks = match plan.streams() {
        Some(streams) => streams.streams,
        None => plan.tiles(),
    };
    let busy = (blocks as f64 / f64::from(processor.multiprocessors.max(1))).min(1.0);
    bytes / (rates.memory_bytes_per_s * (busy / SATURATION).min(1.0))
}

/// The tiles of A and B, as often as they are staged.
fn l2(plan: &Plan<'_>, rates: &Rates) -> f64 {
    let tile = plan.variant().tile;
    let of_step = f64::from(tile.m + tile.n) * f64::from(tile.k) * ELEMENT;
    plan.tiles() as f64 * plan.steps_per_tile() as f64 * of_step / rates.l2_bytes_per_s
}

/// Partial sums, written and read: a tile for each block that has a part of one, and one more where a tile ends inside its share.
fn fix_up(plan: &Plan<'_>, rates: &Rates) -> f64 {
    let Some(streams) = plan.streams().filter(|_| plan.is_split()) else {
        return 0.0;
    };
    let tile = plan.variant().tile;
    let parts = (streams.streams + streams.shared().min(streams.streams)) as f64;
    let bytes = 2.0 * parts * f64::from(tile.m) * f64::from(tile.n) * ELEMENT;
    // The blocks of a GPU add up a tile's parts at the same time, and each thread waits for those of its group.
    let parts_of_group = streams.most_parts().div_ceil(plan.fix_up_groups());
    let rounds = parts_of_group.div_ceil(fix_up::AT_ONCE) as f64;
    LAUNCH + ROUND * rounds + bytes / rates.l2_bytes_per_s
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blas::{Call, Sharing, Transpose};
    use crate::choose::tests::{h200, variant};

    fn predicted(name: &str, shape: Shape, sharing: Sharing) -> f64 {
        let call = Call::compact(shape, Transpose::No, Transpose::No);
        let plan = Plan::new(variant(name), call, sharing).unwrap();
        seconds(&plan, &h200(), &Rates::H200).unwrap()
    }

    #[test]
    fn a_large_cube_takes_what_its_kernel_takes_at_full_speed_and_a_little_more() {
        let shape = Shape::cube(8192);
        let speed = Speed::of(variant("async-pipeline")).unwrap();
        let at_full_speed = shape.flops() / speed.flops_per_s;
        let predicted = predicted("async-pipeline", shape, Sharing::even(64 * 64, 264));
        let ratio = predicted / at_full_speed;
        assert!((1.0..1.05).contains(&ratio), "{ratio}");
    }

    #[test]
    fn a_last_round_of_a_few_tiles_costs_as_much_as_a_full_one_unless_it_is_shared() {
        // 17 x 16 tiles for 264 blocks at once: one round and 8 tiles.
        let shape = Shape {
            m: 17 * 128,
            n: 16 * 128,
            k: 4096,
        };
        let whole = predicted("async-pipeline", shape, Sharing::NONE);
        let shared = predicted("async-pipeline", shape, Sharing::even(272, 264));
        assert!(shared < 0.75 * whole, "{shared} of {whole}");
    }

    #[test]
    fn a_single_row_takes_a_few_times_what_the_memory_takes() {
        // 2048 x 16384 of f32 from memory at 4 TB/s; the tile computes 16 rows for one.
        let shape = Shape {
            m: 1,
            n: 2048,
            k: 16384,
        };
        let predicted = predicted(
            "async-pipeline-16x128-nn",
            shape,
            Sharing::even(16, 132 * 6),
        );
        let by_memory = 2048.0 * 16384.0 * 4.0 / 4e12;
        assert!((1.0..3.0).contains(&(predicted / by_memory)), "{predicted}");
    }

    #[test]
    fn an_empty_product_takes_no_time() {
        let shape = Shape { m: 0, n: 5, k: 3 };
        assert_eq!(predicted("async-pipeline", shape, Sharing::NONE), 0.0);
    }
}
