//! Hopper's additions: barriers in shared memory, barriers by number, matrices stored to shared
//! memory, products of a warpgroup, and clusters of blocks.

use cuda_std::mbarrier::{self, Mbarrier};
use cuda_std::prelude::*;
use cuda_std::tma::{self, Swizzle};
use cuda_std::wgmma::{self, Descriptor, Major, MnMajor, a_place, sum_place};
use cuda_std::{cluster, mma, shared, shared_array};

#[cfg(not(cuda_device))]
use crate::probe::{Launch, Probe, one_block, probe};

/// A probe of a warpgroup's product of elements of 8 bits, and what a product of two
/// integers is.
#[cfg(not(cuda_device))]
macro_rules! multiplies {
    ($entry:ident: $instruction:literal, $of:expr) => {
        probe!(
            $entry,
            launch: TILES,
            ptx: &[concat!("wgmma.mma_async.sync.aligned.", $instruction)],
            ptx_since: "compute_90a",
            runs_since: "compute_90a",
            expected: |_, _| product_of(128, 128, $of),
        )
    };
}

#[cfg(not(cuda_device))]
pub(crate) static PROBES: &[Probe] = &[
    probe!(
        hands_over_in_phases,
        ptx: &["mbarrier.init", "fence.mbarrier_init", "mbarrier.arrive.release", "mbarrier.try_wait"],
        ptx_since: "compute_90",
        runs_since: "compute_90",
        expected: |_, _| (0..5).flat_map(|round| (0..32).map(move |i| 100 * round + 31 - i)).collect(),
    ),
    probe!(
        half_a_block_waits,
        launch: one_block(128),
        ptx: &["bar.sync"],
        expected: |_, _| (0..64).map(|i| (i + 32) % 64).collect(),
    ),
    probe!(
        stores_matrices,
        launch: one_block(32),
        ptx: &["stmatrix.sync.aligned.m8n8.x4.shared.b16"],
        ptx_since: "compute_90",
        runs_since: "compute_90",
        // Row r of matrix i holds the pairs of the lanes 4 r to 4 r + 3.
        expected: |_, _| {
            let words = (0..4).flat_map(|i| (0..32).map(move |lane| 1000 * i + lane));
            words.collect()
        },
    ),
    probe!(
        a_warpgroup_multiplies_bf16,
        launch: TILES,
        ptx: &[
            "wgmma.fence.sync.aligned",
            "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16",
            "wgmma.commit_group.sync.aligned",
            "wgmma.wait_group.sync.aligned",
        ],
        ptx_since: "compute_90a",
        runs_since: "compute_90a",
        expected: |_, _| product(64),
    ),
    probe!(
        a_warpgroup_multiplies_tf32,
        launch: TILES,
        ptx: &["wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32"],
        ptx_since: "compute_90a",
        runs_since: "compute_90a",
        expected: |_, _| product(32),
    ),
    probe!(
        a_warpgroup_multiplies_tf32_of_registers,
        launch: TILES,
        ptx: &["wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32"],
        ptx_since: "compute_90a",
        runs_since: "compute_90a",
        expected: |_, _| product_of(32, 256, |a, b| a * b),
    ),
    probe!(
        a_warpgroup_multiplies_tiles_with_rows_along_m_and_n,
        launch: TILES,
        ptx: &["wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16"],
        ptx_since: "compute_90a",
        runs_since: "compute_90a",
        expected: |_, _| product(64),
    ),
    multiplies!(a_warpgroup_multiplies_e5m2: "m64n128k32.f32.e5m2.e5m2", |a, b| a * b),
    multiplies!(a_warpgroup_multiplies_e4m3_by_e5m2: "m64n128k32.f32.e4m3.e5m2", |a, b| a * b),
    multiplies!(a_warpgroup_multiplies_e5m2_by_e4m3: "m64n128k32.f32.e5m2.e4m3", |a, b| a * b),
    multiplies!(a_warpgroup_multiplies_u8: "m64n128k32.s32.u8.u8", |a, b| (a & 0xFF) * (b & 0xFF)),
    multiplies!(a_warpgroup_multiplies_s8_by_u8: "m64n128k32.s32.s8.u8", |a, b| a * (b & 0xFF)),
    multiplies!(a_warpgroup_multiplies_u8_by_s8: "m64n128k32.s32.u8.s8", |a, b| (a & 0xFF) * b),
    probe!(
        blocks_of_a_cluster_reach_each_other,
        launch: Launch { grid: [6, 1, 1], cluster: 2, ..one_block(32) },
        ptx: &[
            ".reqnctapercluster",
            "barrier.cluster.arrive.release.aligned",
            "barrier.cluster.wait.acquire.aligned",
            "mapa.u64",
            "mbarrier.arrive.shared::cluster.b64",
            "%cluster_ctarank",
            "%cluster_nctarank",
        ],
        ptx_since: "compute_90",
        runs_since: "compute_90",
        // The value of the opposite lane in the pair's other block.
        expected: |_, _| {
            let words = (0..6).flat_map(|block| (0..32).map(move |i| 100 * (block ^ 1) + 31 - i));
            words.collect()
        },
    ),
];

/// A warpgroup with tiles of 64 and of 128 rows of 128 bytes, or one tile of 256.
#[cfg(not(cuda_device))]
const TILES: Launch = Launch {
    dynamic_shared_bytes: 256 * 128,
    ..one_block(128)
};

/// Two barriers, for one arrival of each lane of a warp.
unsafe fn two_barriers() -> [*mut Mbarrier; 2] {
    let barriers = shared_array![Mbarrier; 2];
    if thread::thread_idx_x() == 0 {
        mbarrier::init(barriers, 32);
        mbarrier::init(barriers.add(1), 32);
        mbarrier::fence_init();
    }
    thread::sync_threads(); // the barriers may be used
    [barriers, barriers.add(1)]
}

/// The first warp writes a buffer five times, the second reads it each time.
#[kernel]
pub unsafe fn hands_over_in_phases(_: &[u32], output: *mut u32) {
    let [full, empty] = two_barriers();
    let buffer = shared_array![u32; 32];
    let lane = thread::thread_idx_x() % 32;
    for round in 0..5 {
        if thread::thread_idx_x() < 32 {
            mbarrier::wait(empty, (round + 1) % 2); // the buffer has been read
            *buffer.add(lane as usize) = 100 * round + lane;
            mbarrier::arrive(full);
        } else {
            mbarrier::wait(full, round % 2); // the buffer has been written
            *output.add((32 * round + lane) as usize) = *buffer.add(31 - lane as usize);
            mbarrier::arrive(empty);
        }
    }
}

/// Two warps exchange values at a barrier that the other two do not reach.
#[kernel]
pub unsafe fn half_a_block_waits(_: &[u32], output: *mut u32) {
    let values = shared_array![u32; 64];
    let i = thread::thread_idx_x();
    if i < 64 {
        *values.add(i as usize) = i;
        thread::named_barrier(1, 64); // both warps have written
        *output.add(i as usize) = *values.add((i as usize + 32) % 64);
    }
}

#[kernel]
pub unsafe fn stores_matrices(_: &[u32], output: *mut u32) {
    let matrices = shared_array![u32; 128];
    let lane = thread::thread_idx_x();
    let parts = core::array::from_fn(|i| 1000 * i as u32 + lane);
    mma::stmatrix_x4(matrices.add(4 * lane as usize), parts);
    thread::sync_threads(); // the matrices are complete
    for i in 0..4 {
        let i = (32 * i + lane) as usize;
        *output.add(i) = *matrices.add(i);
    }
}

/// Each block writes to the other block of its cluster and arrives at that block's barrier.
#[cfg_attr(any(not(cuda_device), cuda_arch_at_least = "90"), kernel(cluster_dim = (2, 1, 1)))]
#[cfg_attr(all(cuda_device, not(cuda_arch_at_least = "90")), kernel)]
pub unsafe fn blocks_of_a_cluster_reach_each_other(_: &[u32], output: *mut u32) {
    let arrived = shared_array![Mbarrier; 1];
    let values = shared_array![u32; 32];
    let lane = thread::thread_idx_x();
    if lane == 0 {
        mbarrier::init(arrived, 32);
        mbarrier::fence_init();
    }
    cluster::sync_threads(); // the barriers may be used
    let other = (cluster::rank() + 1) % cluster::blocks();
    let value = 100 * thread::block_idx_x() + lane;
    *cluster::shared_of(values, other).add(lane as usize) = value;
    cluster::sync_threads(); // the values may be read
    mbarrier::arrive_at(arrived, other);
    mbarrier::wait(arrived, 0); // the other block has arrived
    let i = (32 * thread::block_idx_x() + lane) as usize;
    *output.add(i) = *values.add(31 - lane as usize);
    cluster::sync_threads(); // no block arrives any more
}

/// A small integer for each element of a matrix, from -8 to 7.
fn small(matrix: u32, row: u32, k: u32) -> i32 {
    let hash = (matrix + 3 * row + 1000 * k).wrapping_mul(2_654_435_761) >> 28;
    hash as i32 - 8
}

/// A times the transpose of B, `(64, 128)`, plus 1000.
#[cfg(not(cuda_device))]
fn product(depth: u32) -> Vec<u32> {
    product_of(depth, 128, |a, b| a * b)
}

/// The same for `(64, columns)`, with products as this function says.
#[cfg(not(cuda_device))]
fn product_of(depth: u32, columns: u32, of: fn(i32, i32) -> i32) -> Vec<u32> {
    let places = (0..64).flat_map(|row| (0..columns).map(move |col| (row, col)));
    let sum = |(row, col)| -> i32 {
        let products = (0..depth).map(|k| of(small(1, row, k), small(77, col, k)));
        products.sum::<i32>() + 1000
    };
    places.map(|place| sum(place) as u32).collect()
}

/// Fills tiles of rows of 128 bytes, multiplies, and writes the sums as integers.
macro_rules! multiply {
    ($($entry:ident: $function:ident, $word:ty, $bits_of_a:ident, $bits_of_b:ident, $sum:ty, $wait:ident;)*) => {
        $(
            #[kernel]
            pub unsafe fn $entry(_: &[u32], output: *mut u32) {
                const BYTES: u32 = size_of::<$word>() as u32;
                let thread = thread::thread_idx_x();
                let a = shared::dynamic_shared_mem_aligned::<u8, 1024>(); // (64, 128 bytes)
                let b = a.add(64 * 128); // (128, 128 bytes)
                for k in 0..128 / BYTES {
                    let at = Swizzle::Bytes128.place((thread * 128 + k * BYTES) as usize);
                    if thread < 64 {
                        *a.add(at).cast::<$word>() = $bits_of_a(small(1, thread, k));
                    }
                    *b.add(at).cast::<$word>() = $bits_of_b(small(77, thread, k));
                }
                tma::fence_shared(); // the written data may be multiplied
                thread::sync_threads(); // the tiles are complete
                let (a, b) = (Descriptor::new(a), Descriptor::new(b));
                let mut sums = [1000 as $sum; 64];
                wgmma::fence();
                wgmma::$function(&mut sums, a, b, true);
                wgmma::$function(&mut sums, a.further(32), b.further(32), true);
                wgmma::$function(&mut sums, a.further(64), b.further(64), true);
                wgmma::$function(&mut sums, a.further(96), b.further(96), true);
                wgmma::commit();
                wgmma::$wait::<0>(&mut sums);
                for i in 0..64 {
                    let (row, col) = sum_place(thread, i as u32);
                    *output.add((128 * row + col) as usize) = sums[i] as i32 as u32;
                }
            }
        )*
    };
}

multiply! {
    a_warpgroup_multiplies_bf16: m64n128k16_bf16, u16, bf16, bf16, f32, wait_64;
    a_warpgroup_multiplies_tf32: m64n128k8_tf32, u32, tf32, tf32, f32, wait_64;
    a_warpgroup_multiplies_e5m2: m64n128k32_e5m2, u8, e5m2, e5m2, f32, wait_64;
    a_warpgroup_multiplies_e4m3_by_e5m2: m64n128k32_e4m3_e5m2, u8, e4m3, e5m2, f32, wait_64;
    a_warpgroup_multiplies_e5m2_by_e4m3: m64n128k32_e5m2_e4m3, u8, e5m2, e4m3, f32, wait_64;
    a_warpgroup_multiplies_u8: m64n128k32_u8, u8, low_byte, low_byte, i32, wait_64_s32;
    a_warpgroup_multiplies_s8_by_u8: m64n128k32_s8_u8, u8, low_byte, low_byte, i32, wait_64_s32;
    a_warpgroup_multiplies_u8_by_s8: m64n128k32_u8_s8, u8, low_byte, low_byte, i32, wait_64_s32;
}

fn bf16(value: i32) -> u16 {
    ((value as f32).to_bits() >> 16) as u16
}

fn tf32(value: i32) -> u32 {
    (value as f32).to_bits()
}

fn e4m3(value: i32) -> u8 {
    mma::pair_of_e4m3(value as f32, 0.0) as u8
}

fn e5m2(value: i32) -> u8 {
    mma::pair_of_e5m2(value as f32, 0.0) as u8
}

fn low_byte(value: i32) -> u8 {
    value as u8
}

/// The same with A in registers, and B of 256 columns.
#[kernel]
pub unsafe fn a_warpgroup_multiplies_tf32_of_registers(_: &[u32], output: *mut u32) {
    let thread = thread::thread_idx_x();
    let b = shared::dynamic_shared_mem_aligned::<u8, 1024>(); // (256, 128 bytes)
    for col in [thread, thread + 128] {
        for k in 0..32 {
            let at = Swizzle::Bytes128.place((col * 128 + k * 4) as usize);
            *b.add(at).cast::<f32>() = small(77, col, k) as f32;
        }
    }
    tma::fence_shared(); // the written data may be multiplied
    let of_step = |step: u32| -> [f32; 4] {
        core::array::from_fn(|i| {
            let (row, k) = a_place(thread, i as u32);
            small(1, row, 8 * step + k) as f32
        })
    };
    let a = [0, 1, 2, 3].map(of_step);
    thread::sync_threads(); // the tile is complete
    let b = Descriptor::new(b);
    let mut sums = [1000.0_f32; 128];
    wgmma::fence(); // the sums, and A, may be used
    for (step, a) in (0..).zip(a) {
        wgmma::m64n256k8_tf32_of_registers(&mut sums, a, b.further(32 * step), true);
    }
    wgmma::commit();
    wgmma::wait_128::<0>(&mut sums);
    for (i, sum) in (0..).zip(sums) {
        let (row, col) = sum_place(thread, i);
        *output.add((256 * row + col) as usize) = sum as i32 as u32;
    }
}

/// The same with MN-major tiles: A in one box of 64 columns, B in two.
#[kernel]
pub unsafe fn a_warpgroup_multiplies_tiles_with_rows_along_m_and_n(_: &[u32], output: *mut u32) {
    const BOX: u32 = 64 * 128; // 64 rows of 128 bytes
    let thread = thread::thread_idx_x();
    let a = shared::dynamic_shared_mem_aligned::<u8, 1024>(); // (k: 64, 128 bytes)
    let b = a.add(BOX as usize); // (2, k: 64, 128 bytes)
    for (tile, matrix, columns) in [(a, 1, 64), (b, 77, 128)] {
        if thread < columns {
            for k in 0..64 {
                let value = small(matrix, thread, k) as f32;
                let at = (thread / 64 * BOX + k * 128 + thread % 64 * 2) as usize;
                let pair = mma::pair_of_f16(value, 0.0);
                *tile.add(Swizzle::Bytes128.place(at)).cast::<u16>() = pair as u16;
            }
        }
    }
    tma::fence_shared(); // the written data may be multiplied
    thread::sync_threads(); // the tiles are complete
    let (a, b) = (Descriptor::of_boxes(a, BOX), Descriptor::of_boxes(b, BOX));
    let mut sums = [1000.0_f32; 64];
    wgmma::fence();
    for step in 0..4 {
        let bytes = step * MnMajor::BYTES_OF_16;
        wgmma::m64n128k16_f16(&mut sums, a.further(bytes), b.further(bytes), true);
    }
    wgmma::commit();
    wgmma::wait_64::<0>(&mut sums);
    for (i, sum) in (0..).zip(sums) {
        let (row, col) = sum_place(thread, i);
        *output.add((128 * row + col) as usize) = sum as i32 as u32;
    }
}
