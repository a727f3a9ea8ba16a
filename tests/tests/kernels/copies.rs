//! The operand copies, `transpose` and `pad`, on the simulator: they copy every element and write
//! zeros around them, and both barriers are needed. The same for `split.rs`'s copies.

use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use cuda_std::simulator::{Launch, Report, ThreadOrder};
use gpu_gemm::F16;
use gpu_gemm::gpu_kernels::split::{
    COLUMN_THREADS, COLUMNS, ROW_THREADS, Split, split_columns, split_rows,
};
use gpu_gemm::gpu_kernels::transpose::{BLOCK_X, BLOCK_Y, Matrices, TILE, pad, transpose};
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    tests::simulated!(
        "copies",
        copies_have_every_element_and_zeros_around_them,
        without_either_barrier_a_block_that_copies_several_tiles_is_wrong,
        halves_and_scales_give_each_element_to_2_to_the_minus_23,
        the_largest_element_of_a_row_counts_wherever_it_stands,
        without_a_barrier_halves_are_wrong
    )
}

const ROWS: usize = 70;
const COLS: usize = 300;
const LEADING: usize = 303;

/// The target of a copy, and its blocks along y.
#[derive(Clone, Copy, Debug)]
struct Target {
    rows: usize,
    leading: usize,
    blocks: u32,
}

/// Two blocks along x. If there are fewer blocks along y than tiles, a block copies several tiles.
fn targets(rows: usize, leading: usize) -> impl Iterator<Item = Target> {
    [1, 2, 5, 7].into_iter().map(move |blocks| Target {
        rows,
        leading,
        blocks,
    })
}

/// A matrix of different elements, none of them zero.
fn source() -> Vec<f32> {
    (0..ROWS * LEADING)
        .map(|index| index as f32 + 1.0)
        .collect()
}

fn copied(
    kernel: unsafe fn(Matrices<'_, f32>),
    target: Target,
    configure: impl Fn(Launch) -> Launch,
) -> (Vec<f32>, Report) {
    let source = source();
    let mut elements = vec![f32::NAN; target.rows * target.leading];
    // Each thread writes to elements of its own.
    let start = AtomicPtr::new(elements.as_mut_ptr());
    let columns = target.leading.div_ceil(TILE) as u32;
    let launch = Launch::new((columns, target.blocks), (BLOCK_X as u32, BLOCK_Y as u32));
    let report = configure(launch).run(|| {
        // SAFETY: both matrices have these sizes, and the launch has the required shape.
        unsafe {
            kernel(Matrices {
                source: &source[..(ROWS - 1) * LEADING + COLS],
                rows: ROWS,
                cols: COLS,
                leading: LEADING,
                target: start.load(Relaxed),
                target_rows: target.rows,
                target_leading: target.leading,
            })
        }
    });
    (elements, report.expect("no fault"))
}

/// The expected `target`, if `of` maps its rows and columns to those of the source.
fn expected(target: Target, of: impl Fn(usize, usize) -> (usize, usize)) -> Vec<f32> {
    let source = source();
    let elements = (0..target.rows * target.leading).map(|index| {
        let (row, col) = of(index / target.leading, index % target.leading);
        match row < ROWS && col < COLS {
            true => source[row * LEADING + col],
            false => 0.0,
        }
    });
    elements.collect()
}

fn copies_have_every_element_and_zeros_around_them() {
    type Kernel = unsafe fn(Matrices<'_, f32>);
    type Place = fn(usize, usize) -> (usize, usize);
    let kernels: [(Kernel, _, _, Place); 2] = [
        (transpose, COLS + 5, 72, |row, col| (col, row)),
        (pad, ROWS + 9, 304, |row, col| (row, col)),
    ];
    for (kernel, rows, leading, place) in kernels {
        for target in targets(rows, leading) {
            let expected = expected(target, place);
            for order in ThreadOrder::ALL {
                let (found, _) = copied(kernel, target, |launch| launch.thread_order(order));
                assert!(found == expected, "{target:?}, {order:?}");
            }
        }
    }
}

fn without_either_barrier_a_block_that_copies_several_tiles_is_wrong() {
    let target = targets(COLS + 5, 72).next().expect("a target");
    let (right, report) = copied(transpose, target, |launch| launch);
    assert_eq!(report.barriers.len(), 2);
    // SAFETY: the barriers protect elements.
    unsafe {
        tests::assert_barriers_are_needed(&report, |change| {
            copied(transpose, target, change).0 != right
        });
    }
}

/// The rows to split, and their depth: more than a chunk, and no multiple of any tile.
const SPLIT: (usize, usize) = (35, 1301);
const SPLIT_DEPTH: usize = SPLIT.1.next_multiple_of(64);

/// Elements of all magnitudes, and special values, as rows along K.
fn to_split() -> Vec<f32> {
    let (rows, depth) = SPLIT;
    let mut elements: Vec<f32> = (0..rows * depth)
        .map(|index| {
            let fraction = (index * 7919 % 10_007) as f32 / 10_007.0 - 0.4;
            fraction * 2f32.powi((index / depth * 8) as i32 - 140)
        })
        .collect();
    elements[5] = f32::INFINITY;
    elements[depth + 7] = f32::NAN;
    elements[2 * depth + 1] = f32::MAX;
    elements[2 * depth + 2] = -f32::from_bits(1);
    elements[3 * depth..4 * depth].fill(0.0);
    elements
}

/// The halves of each row, and the scales; `None` if a kernel panics.
fn split(
    (kernel, is_transposed): (unsafe fn(Split<'_>), bool),
    (rows, depth): (usize, usize),
    elements: Vec<f32>,
    configure: impl Fn(Launch) -> Launch,
) -> Option<(Vec<F16>, Vec<f32>, Report)> {
    let target_depth = depth.next_multiple_of(64);
    let source: Vec<f32> = match is_transposed {
        false => elements,
        true => (0..rows * depth)
            .map(|index| elements[index % rows * depth + index / rows])
            .collect(),
    };
    let (launch, leading) = match is_transposed {
        false => (Launch::new(rows as u32, ROW_THREADS as u32), depth),
        true => {
            let ctas = rows.div_ceil(COLUMNS) as u32;
            (
                Launch::new(ctas, (COLUMNS as u32, COLUMN_THREADS as u32)),
                rows,
            )
        }
    };
    // With extra elements after them, which must stay unchanged.
    let mut pairs = vec![u32::MAX; rows * target_depth + BESIDE];
    let mut scales = vec![f32::NAN; rows + BESIDE];
    // Each thread writes to elements of its own.
    let targets = (
        AtomicPtr::new(pairs.as_mut_ptr()),
        AtomicPtr::new(scales.as_mut_ptr()),
    );
    let report = configure(launch).run(|| {
        let (pairs, scales) = (targets.0.load(Relaxed), targets.1.load(Relaxed));
        // SAFETY: all have these sizes, and the launch has the required shape.
        unsafe {
            kernel(Split {
                source: &source,
                rows,
                depth,
                leading,
                target: pairs,
                target_depth,
                scales,
            })
        }
    });
    let beside = (pairs.split_off(rows * target_depth), scales.split_off(rows));
    assert!(beside.0.iter().all(|pair| *pair == u32::MAX));
    assert!(beside.1.iter().all(|scale| scale.is_nan()));
    let halves = pairs
        .iter()
        .flat_map(|pair| [*pair as u16, (pair >> 16) as u16]);
    let halves = halves.map(F16::from_bits).collect();
    Some((halves, scales, report.ok()?))
}

/// The number of elements after the written ones.
const BESIDE: usize = 64;

const SPLITS: [(unsafe fn(Split<'_>), bool); 2] = [(split_rows, false), (split_columns, true)];

fn halves_and_scales_give_each_element_to_2_to_the_minus_23() {
    let ((rows, depth), elements) = (SPLIT, to_split());
    for (kernel, is_transposed) in SPLITS {
        let done = split((kernel, is_transposed), SPLIT, elements.clone(), |launch| {
            launch
        });
        let (halves, scales, _) = done.expect("no fault");
        for row in 0..rows {
            let (hi, lo) = halves[2 * row * SPLIT_DEPTH..][..2 * SPLIT_DEPTH].split_at(SPLIT_DEPTH);
            let of_row = &elements[row * depth..][..depth];
            let magnitudes = of_row.iter().map(|one| f64::from(one.abs()));
            let largest = magnitudes.filter(|one| one.is_finite()).fold(0.0, f64::max);
            let scale = f64::from(scales[row]);
            assert_eq!(scale.log2().fract(), 0.0);
            let scaled = largest / scale;
            assert!(scaled < 32768.0 && (scaled >= 16384.0 || scale == 2f64.powi(-126)));
            for k in 0..SPLIT_DEPTH {
                let (hi, lo) = (f64::from(hi[k].to_f32()), f64::from(lo[k].to_f32()));
                let element = of_row.get(k).copied().map_or(0.0, f64::from);
                if !element.is_finite() {
                    assert!(hi == element || hi.is_nan() && element.is_nan());
                    assert_eq!(lo, 0.0);
                    continue;
                }
                assert_eq!(
                    hi == 0.0,
                    element == 0.0,
                    "row {row}, {k}: {element} is {hi}"
                );
                let error = ((hi + lo / 2048.0) * scale - element).abs();
                let floor = largest.max(2f64.powi(-112)) * 2f64.powi(-49);
                let bound = (element.abs() * 2f64.powi(-23)).max(floor);
                assert!(
                    error <= bound,
                    "row {row}, {k}: {hi} and {lo} for {element}"
                );
            }
        }
    }
}

/// The scale is that of the row's largest element, whichever thread reads it, in any order.
fn the_largest_element_of_a_row_counts_wherever_it_stands() {
    for (kernel, is_transposed) in SPLITS {
        // Threads read four or eight elements at a time.
        let at_a_time = match is_transposed {
            true => 8 * COLUMN_THREADS,
            false => 4 * ROW_THREADS,
        };
        let depth = 2 * at_a_time + at_a_time / 2;
        let places: Vec<usize> = (0..depth).step_by(31).chain([depth - 1]).collect();
        let mut elements = vec![1.0; places.len() * depth];
        for (row, place) in places.iter().enumerate() {
            elements[row * depth + place] = 1024.0;
        }
        let shape = (places.len(), depth);
        let done = split((kernel, is_transposed), shape, elements, |launch| launch);
        let (_, scales, _) = done.expect("no fault");
        let expected = 1024.0 * 2f32.powi(-14);
        for (place, scale) in places.iter().zip(scales) {
            assert_eq!(scale, expected, "the largest at {place} of {depth}");
        }
    }
}

fn without_a_barrier_halves_are_wrong() {
    for (kernel, is_transposed) in SPLITS {
        let bits = |(halves, scales, _): (Vec<F16>, Vec<f32>, Report)| {
            let halves = halves.iter().map(|half| u32::from(half.to_bits()));
            let scales = scales.iter().map(|scale| scale.to_bits());
            halves.chain(scales).collect::<Vec<u32>>()
        };
        let of = (kernel, is_transposed);
        let right = split(of, SPLIT, to_split(), |launch| launch).expect("no fault");
        let report = right.2.clone();
        let right = Some(bits(right));
        assert_eq!(report.barriers.len(), if is_transposed { 3 } else { 1 });
        // SAFETY: the barriers protect elements.
        unsafe {
            tests::assert_barriers_are_needed(&report, |change| {
                split(of, SPLIT, to_split(), change).map(bits) != right
            });
        }
    }
}
