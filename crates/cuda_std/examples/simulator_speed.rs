//! Measures the simulator: how fast threads start, and how fast they switch at barriers.
//!
//!     cargo run --release -p stable_cuda_std --example simulator_speed

use cuda_std::prelude::*;
use cuda_std::shared_array;
use cuda_std::simulator::{Fault, Launch};
use std::time::{Duration, Instant};

const N: usize = 512;
const TILE: usize = 16;

/// C = A * B, one thread an element, no barriers.
///
/// # Safety
///
/// `a` and `b` hold N * N elements, `c` has room for the same number.
#[kernel]
unsafe fn naive(a: &[f32], b: &[f32], c: *mut f32) {
    let (row, col) = (thread::index_2d().y as usize, thread::index_2d().x as usize);
    let mut sum = 0.0;
    for k in 0..N {
        sum += a[row * N + k] * b[k * N + col];
    }
    // SAFETY: the grid covers N x N elements, one for each thread.
    unsafe { *c.add(row * N + col) = sum };
}

/// C = A * B in tiles of 16 x 16: two barriers for 16 multiply-adds.
///
/// # Safety
///
/// As for `naive`.
#[kernel]
unsafe fn tiled(a: &[f32], b: &[f32], c: *mut f32) {
    let a_tile = shared_array![f32; TILE * TILE];
    let b_tile = shared_array![f32; TILE * TILE];
    let (x, y) = (
        thread::thread_idx_x() as usize,
        thread::thread_idx_y() as usize,
    );
    let (row, col) = (thread::index_2d().y as usize, thread::index_2d().x as usize);
    let mut sum = 0.0;
    for start in (0..N).step_by(TILE) {
        // SAFETY: each thread writes one element of each tile.
        unsafe {
            *a_tile.add(y * TILE + x) = a[row * N + start + x];
            *b_tile.add(y * TILE + x) = b[(start + y) * N + col];
        }
        thread::sync_threads(); // both tiles are complete
        for k in 0..TILE {
            // SAFETY: the tiles are complete, and no thread writes to them before the next
            // barrier.
            sum += unsafe { *a_tile.add(y * TILE + k) * *b_tile.add(k * TILE + x) };
        }
        thread::sync_threads(); // everyone has read them
    }
    // SAFETY: the grid covers N x N elements, one for each thread.
    unsafe { *c.add(row * N + col) = sum };
}

/// Nothing but barriers.
///
/// # Safety
///
/// Always safe.
#[kernel]
unsafe fn barriers(count: u32) {
    for _ in 0..count {
        thread::sync_threads();
    }
}

/// The address of C, for threads that each write elements of their own.
#[derive(Clone, Copy)]
struct Output(*mut f32);

// SAFETY: no two simulated threads write the same element.
unsafe impl Sync for Output {}

fn main() -> Result<(), Fault> {
    let value = |i: usize| (i * 7919 % 1000) as f32 / 1000.0 - 0.5;
    let a: Vec<f32> = (0..N * N).map(value).collect();
    let b: Vec<f32> = (0..N * N).map(|i| value(i + 13)).collect();
    let mut c = vec![0.0; N * N];
    let output = Output(c.as_mut_ptr());
    let tiles = (N / TILE) as u32;
    let gemm = Launch::new((tiles, tiles), (TILE as u32, TILE as u32));

    let time = fastest(|| {
        gemm.run(|| {
            let Output(c) = { output };
            // SAFETY: the matrices are N x N.
            unsafe { naive(&a, &b, c) }
        })
    })?;
    report("naive 512 x 512 x 512", time, N * N, "threads");

    let time = fastest(|| {
        gemm.run(|| {
            let Output(c) = { output };
            // SAFETY: the matrices are N x N.
            unsafe { tiled(&a, &b, c) }
        })
    })?;
    report(
        "tiled 512 x 512 x 512",
        time,
        N * N * (2 * N / TILE),
        "switches",
    );

    for threads in [32, 256, 1024] {
        let launch = Launch::new(16, threads);
        // SAFETY: the kernel touches no memory.
        let time = fastest(|| launch.run(|| unsafe { barriers(1000) }))?;
        let name = format!("barriers, {threads} threads a block");
        report(&name, time, 16 * 1000 * threads as usize, "switches");
    }
    Ok(())
}

/// The shortest of five runs.
fn fastest<T>(run: impl Fn() -> Result<T, Fault>) -> Result<Duration, Fault> {
    let mut least = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        run()?;
        least = least.min(start.elapsed());
    }
    Ok(least)
}

fn report(name: &str, time: Duration, count: usize, what: &str) {
    let nanoseconds = time.as_secs_f64() * 1e9 / count as f64;
    std::println!("{name:<32} {time:>10.1?}  {count:>9} {what} of {nanoseconds:.1} ns");
}
