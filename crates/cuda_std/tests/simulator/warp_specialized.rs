//! A whole product on tensor cores, as Hopper's kernels are built: one warpgroup loads tiles into a
//! ring of stages, another multiplies them and stores C. Each of its waits and fences is left out
//! in turn.

#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the launch's memory is made for the kernel"
)]

use cuda_std::mbarrier::{self, Mbarrier};
use cuda_std::mma;
use cuda_std::simulator::{Launch, Report, ThreadOrder};
use cuda_std::tma::{self, Swizzle, TensorMap, Tiles};
use cuda_std::wgmma::{self, Descriptor};
use cuda_std::{shared, shared_array, thread};

/// The block tile, and stages of it.
const BM: u32 = 64;
const BN: u32 = 128;
const BK: u32 = 64;
const STAGES: u32 = 2;
const A_BYTES: u32 = BM * BK * 2;
const B_BYTES: u32 = BN * BK * 2;
/// A box of C has 64 columns.
const BOX_BYTES: usize = 64 * 64 * 2;
const SHARED_BYTES: usize = (STAGES * (A_BYTES + B_BYTES)) as usize + BOX_BYTES;

/// Where the ring stands: a stage, and the parity of its phase.
struct Ring {
    stage: u32,
    parity: u32,
}

impl Ring {
    fn advance(&mut self) {
        self.stage += 1;
        if self.stage == STAGES {
            self.stage = 0;
            self.parity ^= 1;
        }
    }
}

/// Two f32 as bf16, cut off: exact for the sums of this test.
fn pair(low: f32, high: f32) -> u32 {
    low.to_bits() >> 16 | high.to_bits() & 0xFFFF_0000
}

/// C = A * B, of A as m x k and B as n x k.
unsafe fn multiply(a: &TensorMap, b: &TensorMap, c: &TensorMap, shape: [u32; 3]) {
    let [m, n, k] = shape;
    let tiles = shared::dynamic_shared_mem_aligned::<u8, 1024>();
    let stage_bytes = (A_BYTES + B_BYTES) as usize;
    let a_tile = |stage: u32| unsafe { tiles.add(stage as usize * stage_bytes) };
    let b_tile = |stage: u32| unsafe { a_tile(stage).add(A_BYTES as usize) };
    let c_box = a_tile(STAGES);
    let full = shared_array![Mbarrier; 2];
    let empty = shared_array![Mbarrier; 2];
    let [full_of, empty_of] =
        [full, empty].map(|bars| move |stage: u32| unsafe { bars.add(stage as usize) });
    let thread = thread::thread_idx_x();
    if thread == 0 {
        for stage in 0..STAGES {
            unsafe { mbarrier::init(full_of(stage), 1) };
            unsafe { mbarrier::init(empty_of(stage), 1) };
        }
        mbarrier::fence_init();
    }
    thread::sync_threads();

    let (down, across) = (m.div_ceil(BM), n.div_ceil(BN));
    let steps = k.div_ceil(BK);
    let mut tile = thread::block_idx_x();
    if thread < 128 {
        let mut ring = Ring {
            stage: 0,
            parity: 1,
        };
        while thread == 0 && tile < down * across {
            let (row, col) = (tile % down * BM, tile / down * BN);
            for step in 0..steps {
                let full = full_of(ring.stage);
                unsafe {
                    mbarrier::wait(empty_of(ring.stage), ring.parity); // the stage has been read
                    mbarrier::arrive_expect_tx(full, A_BYTES + B_BYTES);
                    tma::load_2d(a_tile(ring.stage), a, step * BK, row, full);
                    tma::load_2d(b_tile(ring.stage), b, step * BK, col, full);
                }
                ring.advance();
            }
            tile += thread::grid_dim_x();
        }
        return;
    }
    let (lane, warp) = (thread % 32, thread / 32 % 4);
    let leads = thread == 128;
    let mut ring = Ring {
        stage: 0,
        parity: 0,
    };
    while tile < down * across {
        let (row, col) = (tile % down * BM, tile / down * BN);
        let mut sums = [0.0_f32; 64];
        for step in 0..steps {
            unsafe {
                mbarrier::wait(full_of(ring.stage), ring.parity); // the tiles have landed
                let a = Descriptor::new(a_tile(ring.stage));
                let b = Descriptor::new(b_tile(ring.stage));
                wgmma::fence(); // the sums may be used
                for part in 0..4 {
                    let (a, b) = (a.further(32 * part), b.further(32 * part));
                    wgmma::m64n128k16_bf16(&mut sums, a, b, step + part > 0);
                }
                wgmma::commit();
                wgmma::wait_64::<0>(&mut sums); // the tiles have been read
                if leads {
                    mbarrier::arrive(empty_of(ring.stage));
                }
            }
            ring.advance();
        }
        let (in_box, half) = (16 * warp + lane % 16, lane / 16);
        for part in 0..2_u32 {
            if leads {
                tma::wait_group_read::<0>(); // the box before has been read
            }
            unsafe { thread::named_barrier(1, 128) }; // the box may be written
            for column in 0..4 {
                let j = (32 * part + 8 * column) as usize;
                let offset = (in_box * 128 + 16 * (2 * column + half)) as usize;
                let parts = [0, 2, 4, 6].map(|i| pair(sums[j + i], sums[j + i + 1]));
                let place = unsafe { c_box.add(Swizzle::Bytes128.place(offset)) };
                unsafe { mma::stmatrix_x4(place, parts) };
            }
            tma::fence_shared(); // copies see the box
            unsafe { thread::named_barrier(1, 128) }; // the box is complete
            if leads {
                unsafe { tma::store_2d(c, col + 64 * part, row, c_box) };
                tma::commit_group();
            }
        }
        tile += thread::grid_dim_x();
    }
    tma::wait_group_read::<0>(); // the last box has been read, which is gone when the block ends
}

/// Eight elements of 16 bits, at a multiple of 16 bytes.
#[derive(Clone, Copy, PartialEq)]
#[repr(align(16))]
struct Piece([u16; 8]);

/// A matrix of bf16 of which only its elements are known.
struct Matrix {
    pieces: Vec<Piece>,
    rows: usize,
    cols: usize,
}

impl Matrix {
    /// The columns are a multiple of 8.
    fn new(rows: usize, cols: usize, element: impl Fn(usize, usize) -> i32) -> Self {
        let bits = |i: usize| ((element(i / cols, i % cols) as f32).to_bits() >> 16) as u16;
        let piece = |first: usize| Piece(std::array::from_fn(|i| bits(8 * first + i)));
        let pieces = (0..rows * cols / 8).map(piece).collect();
        Self { pieces, rows, cols }
    }

    fn map(&mut self, box_height: u32) -> TensorMap {
        let tiles = Tiles {
            global: self.pieces.as_mut_ptr().cast(),
            element_bytes: 2,
            rounds_to_tf32: false,
            width: self.cols,
            height: self.rows,
            row_bytes: 2 * self.cols,
            planes: None,
            box_width: 64,
            box_height: box_height as usize,
            swizzle: Swizzle::Bytes128,
        };
        tiles.simulated().unwrap()
    }
}

/// -1, 0 or 1.
fn sign(matrix: usize, row: usize, k: usize) -> i32 {
    let hash = ((matrix + 3 * row + 1000 * k) as u32).wrapping_mul(2_654_435_761);
    (hash >> 24) as i32 % 3 - 1
}

/// Multiplies, and says whether C is right and nothing beside it was written.
fn run(launch: Launch, [m, n, k]: [usize; 3]) -> Result<(bool, Report), String> {
    let mut a = Matrix::new(m, k, |row, k| sign(1, row, k));
    let mut b = Matrix::new(n, k, |col, k| sign(2, col, k));
    let mut c = Matrix::new(m, n, |_, _| 77);
    let maps = [a.map(BM), b.map(BN), c.map(64)];
    let launch = launch.dynamic_shared_bytes(SHARED_BYTES);
    let shape = [m, n, k].map(|side| side as u32);
    let report = launch.run(|| unsafe { multiply(&maps[0], &maps[1], &maps[2], shape) });
    let product = |row, col| (0..k).map(|k| sign(1, row, k) * sign(2, col, k)).sum();
    let expected = Matrix::new(m, n, product);
    let report = report.map_err(|fault| fault.to_string())?;
    Ok((c.pieces == expected.pieces, report))
}

#[test]
fn any_shape_and_any_order_of_threads() {
    for order in [
        ThreadOrder::Forward,
        ThreadOrder::Reverse,
        ThreadOrder::Random(5),
        ThreadOrder::Random(6),
    ] {
        for shape in [[64, 128, 64], [130, 264, 328], [1, 8, 8], [65, 120, 72]] {
            let launch = Launch::new(2, 256).thread_order(order);
            let (is_right, _) = run(launch, shape).unwrap();
            assert!(is_right, "{shape:?}, {order:?}");
        }
    }
}

#[test]
fn each_wait_and_fence_that_is_left_out_shows() {
    // Two tiles a block, and four steps along K for two stages.
    const SHAPE: [usize; 3] = [128, 256, 256];
    let launch = || Launch::new(2, 256);
    let (is_right, report) = run(launch(), SHAPE).unwrap();
    assert!(is_right);
    assert_eq!(report.waits.len(), 10, "{:?}", report.waits);
    for &site in report.waits.keys() {
        let orders = [
            ThreadOrder::Forward,
            ThreadOrder::Reverse,
            ThreadOrder::Random(7),
        ];
        let shows = orders.into_iter().any(|order| {
            let launch = unsafe { launch().thread_order(order).without_wait(site) };
            !run(launch, SHAPE).is_ok_and(|(is_right, _)| is_right)
        });
        assert!(shows, "without {site}");
    }
}
