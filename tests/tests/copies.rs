//! The operand copies, `transpose` and `pad`, on the simulator: they copy every element and put
//! zeros around them, and both barriers are needed.

use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use cuda_std::simulator::{Launch, Report, ThreadOrder};
use gpu_gemm::gpu_kernels::spec::CopyFn;
use gpu_gemm::gpu_kernels::transpose::{BLOCK_X, BLOCK_Y, TILE, pad, transpose};

const ROWS: usize = 70;
const COLS: usize = 300;
const LEADING: usize = 303;

/// Where a copy goes, and its blocks along y.
#[derive(Clone, Copy, Debug)]
struct Target {
    rows: usize,
    leading: usize,
    blocks: u32,
}

/// Two blocks along x. With fewer blocks along y than there are tiles, a block copies several, one
/// after the other.
fn targets(rows: usize, leading: usize) -> impl Iterator<Item = Target> {
    [1, 2, 5, 7].into_iter().map(move |blocks| Target {
        rows,
        leading,
        blocks,
    })
}

const ORDERS: [ThreadOrder; 3] = [
    ThreadOrder::Forward,
    ThreadOrder::Reverse,
    ThreadOrder::Random(1),
];

/// No two elements are equal, and none is zero.
fn source() -> Vec<f32> {
    (0..ROWS * LEADING)
        .map(|index| index as f32 + 1.0)
        .collect()
}

fn copied(
    kernel: CopyFn<f32>,
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
        // SAFETY: both matrices are as large as these numbers say, and the launch has the shape.
        unsafe {
            kernel(
                &source[..(ROWS - 1) * LEADING + COLS],
                ROWS,
                COLS,
                LEADING,
                start.load(Relaxed),
                target.rows,
                target.leading,
            )
        }
    });
    (elements, report.expect("no fault"))
}

/// What `target` must hold, if the element at a row and a column of it is that of the source at
/// these.
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

#[test]
fn a_transposed_copy_has_every_element_and_zeros_around_them() {
    for target in targets(COLS + 5, 72) {
        let expected = expected(target, |row, col| (col, row));
        for order in ORDERS {
            let (found, _) = copied(transpose, target, |launch| launch.thread_order(order));
            assert!(found == expected, "{target:?}, {order:?}");
        }
    }
}

#[test]
fn a_padded_copy_has_every_element_and_zeros_around_them() {
    for target in targets(ROWS + 9, 304) {
        let expected = expected(target, |row, col| (row, col));
        for order in ORDERS {
            let (found, _) = copied(pad, target, |launch| launch.thread_order(order));
            assert!(found == expected, "{target:?}, {order:?}");
        }
    }
}

#[test]
fn without_either_barrier_a_block_that_copies_several_tiles_is_wrong() {
    let target = targets(COLS + 5, 72).next().expect("a target");
    let (right, report) = copied(transpose, target, |launch| launch);
    assert_eq!(report.barriers.len(), 2);
    for site in report.barriers.keys() {
        let differs = |order: &ThreadOrder| {
            // SAFETY: what the barriers protect are elements, no addresses.
            let without =
                |launch: Launch| unsafe { launch.thread_order(*order).without_barrier(*site) };
            copied(transpose, target, without).0 != right
        };
        assert!(ORDERS.iter().any(differs), "{site}");
    }
}
