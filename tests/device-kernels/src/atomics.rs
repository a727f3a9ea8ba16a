//! Atomic numbers that several threads change, within a block and across blocks.

use cuda_std::atomic::{
    AtomicF32, AtomicF64, AtomicI32, AtomicU32, AtomicU64, BlockAtomicF64, BlockAtomicI32,
    Ordering, SystemAtomicF32, SystemAtomicI64, mid,
};
use cuda_std::prelude::*;
use cuda_std::shared_array;

#[cfg(not(cuda_device))]
use crate::probe::{Launch, Probe, UNWRITTEN, one_block, probe, scrambled};

#[cfg(not(cuda_device))]
pub(crate) static PROBES: &[Probe] = &[
    probe!(
        updates_of_integers,
        input: scrambled,
        ptx: &[
            "atom.relaxed.gpu.add.u32", "atom.acquire.cta.add.s32", "atom.release.sys.and.b64",
            "atom.acq_rel.gpu.or.b32", "fence.sc.sys", "atom.relaxed.gpu.min.u64",
            "atom.relaxed.sys.max.s64", "atom.relaxed.cta.exch.b32", "atom.acq_rel.gpu.cas.b32",
            "ld.acquire.gpu.b64", "st.release.cta.b32",
        ],
        expected: |_, input| {
            let words = |results: [i128; 11]| results.into_iter().flat_map(|result| [result as u32, (result >> 32) as u32]);
            input
                .iter()
                .flat_map(|&x| {
                    let wide = i128::from(x) << 20;
                    let u32s = on_paper(i128::from(x), |x| i128::from(x as u32));
                    let i32s = on_paper(i128::from(x as i32), |x| i128::from(x as i32));
                    let u64s = on_paper(wide, |x| i128::from(x as u64));
                    let i64s = on_paper(-wide, |x| i128::from(x as i64));
                    [u32s, i32s, u64s, i64s].into_iter().flat_map(words)
                })
                .collect()
        },
    ),
    probe!(
        updates_of_floats,
        ptx: &["atom.relaxed.sys.add.f32", "atom.relaxed.cta.add.f64"],
        expected: |_, _| {
            (0..64u32)
                .flat_map(|i| {
                    let x = f64::from(i);
                    let results = [x, x + 0.5, x - 1.5, 1.5 - x, (1.5 - x).abs(), -8.0, -8.0];
                    results.map(|result| (result as f32).to_bits()).into_iter().chain(results.map(|result| (result as f32).to_bits()))
                })
                .collect()
        },
    ),
    probe!(
        sums_of_a_grid,
        launch: Launch { grid: [5, 1, 1], ..one_block(64) },
        ptx: &["atom.acq_rel.gpu.add.u32"],
        expected: |_, _| {
            let threads = 0..320_u64;
            let sum: u64 = threads.clone().sum();
            let bits = threads.clone().fold(0, |bits, i| bits ^ scramble(i));
            let wide: u64 = threads.clone().map(|i| i << 33).sum();
            let least = threads.map(|i| scramble(i) as i32).min().unwrap_or(0).min(0);
            let float = (sum as f32).to_bits();
            vec![float, bits, least as u32, (wide >> 32) as u32, float]
        },
    ),
    probe!(
        a_message_to_the_next_block,
        launch: Launch { grid: [2, 1, 1], ..one_block(64) },
        input: scrambled,
        ptx: &["fence.acq_rel.gpu"],
        expected: |_, input| [input, &input.iter().rev().copied().collect::<Vec<u32>>()].concat(),
    ),
    probe!(
        a_word_of_the_output,
        input: || vec![0],
        expected: |_, _| vec![UNWRITTEN.wrapping_sub(64 * 3)],
    ),
];

/// The results of the eleven operations of [`updates_of_integers`], with `wrap` for the type's
/// range.
#[cfg(not(cuda_device))]
fn on_paper(x: i128, wrap: fn(i128) -> i128) -> [i128; 11] {
    let added = wrap(x + 7);
    let subtracted = wrap(added - 9);
    let anded = wrap(subtracted & 0x7FFF_00FF);
    let ored = wrap(anded | 0x11);
    let xored = wrap(ored ^ 0x0F0F);
    let least = xored.min(1000);
    let greatest = least.max(900);
    [
        x, added, subtracted, anded, ored, xored, least, greatest, 5, 6, 6,
    ]
}

fn scramble(i: u64) -> u32 {
    (i as u32).wrapping_mul(2_654_435_761)
}

/// The operations of an atomic integer that no other thread uses.
macro_rules! updates {
    ($atomic:ident, $slot:expr, $x:expr) => {{
        let number = $atomic::from_ptr($slot.cast());
        number.store($x, Ordering::Release);
        let mut results = [
            number.fetch_add(7, Ordering::Relaxed),
            number.fetch_sub(9, Ordering::Acquire),
            number.fetch_and(0x7FFF_00FF, Ordering::Release),
            number.fetch_or(0x11, Ordering::AcqRel),
            number.fetch_xor(0x0F0F, Ordering::SeqCst),
            number.fetch_min(1000, Ordering::Relaxed),
            number.fetch_max(900, Ordering::Relaxed),
            number.swap(5, Ordering::Relaxed),
            0,
            0,
            0,
        ];
        let order = (Ordering::AcqRel, Ordering::Acquire);
        results[8] = number.compare_exchange(5, 6, order.0, order.1).unwrap_or(1);
        results[9] = number
            .compare_exchange(5, 8, order.0, order.1)
            .err()
            .unwrap_or(1);
        results[10] = number.load(Ordering::Acquire);
        results
    }};
}

#[kernel]
pub unsafe fn updates_of_integers(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let slot = shared_array![u64; 64].add(i);
    let (x, wide) = (input[i], i64::from(input[i]) << 20);
    let u32s = updates!(AtomicU32, slot, x).map(i64::from);
    let i32s = updates!(BlockAtomicI32, slot, x as i32).map(i64::from);
    let u64s = updates!(AtomicU64, slot, wide as u64).map(|result| result as i64);
    let i64s = updates!(SystemAtomicI64, slot, -wide);
    let start = output.add(4 * 11 * 2 * i);
    for (j, results) in [u32s, i32s, u64s, i64s].into_iter().enumerate() {
        for (k, result) in results.into_iter().enumerate() {
            let start = start.add(2 * (11 * j + k));
            *start = result as u32;
            *start.add(1) = (result >> 32) as u32;
        }
    }
}

/// The operations of an atomic float that no other thread uses.
macro_rules! float_updates {
    ($atomic:ident, $float:ty, $slot:expr, $x:expr) => {{
        let number = $atomic::from_ptr($slot.cast());
        number.store($x, Ordering::Relaxed);
        let magnitude = <$float>::from_bits(!(-0.0 as $float).to_bits());
        [
            number.fetch_add(0.5, Ordering::Relaxed),
            number.fetch_sub(2.0, Ordering::Relaxed),
            number.fetch_xor(-0.0, Ordering::Relaxed),
            number.fetch_and(magnitude, Ordering::Relaxed),
            number.swap(-8.0, Ordering::Relaxed),
            number.fetch_or(-0.0, Ordering::Relaxed),
            number.load(Ordering::Relaxed),
        ]
    }};
}

#[kernel]
pub unsafe fn updates_of_floats(_input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x();
    let slot = shared_array![u64; 64].add(i as usize);
    let singles = float_updates!(SystemAtomicF32, f32, slot, i as f32);
    let doubles = float_updates!(BlockAtomicF64, f64, slot, f64::from(i));
    let start = output.add(14 * i as usize);
    for j in 0..7 {
        *start.add(j) = singles[j].to_bits();
        *start.add(7 + j) = (doubles[j] as f32).to_bits();
    }
}

static SUM: AtomicF32 = AtomicF32::new(0.0);
static DOUBLE: AtomicF64 = AtomicF64::new(0.0);
static BITS: AtomicU32 = AtomicU32::new(0);
static LEAST: AtomicI32 = AtomicI32::new(0);
static WIDE: AtomicU64 = AtomicU64::new(0);
static FINISHED: AtomicU32 = AtomicU32::new(0);

/// The last thread of the grid writes the sum of all threads, and leaves zeros.
#[kernel]
pub unsafe fn sums_of_a_grid(_input: &[u32], output: *mut u32) {
    let i = thread::index_1d();
    SUM.fetch_add(i as f32, Ordering::Relaxed);
    DOUBLE.fetch_sub(-f64::from(i), Ordering::Relaxed);
    BITS.fetch_xor(scramble(i.into()), Ordering::Relaxed);
    LEAST.fetch_min(scramble(i.into()) as i32, Ordering::Relaxed);
    WIDE.fetch_add(u64::from(i) << 33, Ordering::Relaxed);
    if FINISHED.fetch_add(1, Ordering::AcqRel) == 319 {
        *output = SUM.swap(0.0, Ordering::Relaxed).to_bits();
        *output.add(1) = BITS.swap(0, Ordering::Relaxed);
        *output.add(2) = LEAST.swap(0, Ordering::Relaxed) as u32;
        *output.add(3) = (WIDE.swap(0, Ordering::Relaxed) >> 32) as u32;
        *output.add(4) = (DOUBLE.swap(0.0, Ordering::Relaxed) as f32).to_bits();
        FINISHED.store(0, Ordering::Relaxed);
    }
}

static IS_WRITTEN: AtomicU32 = AtomicU32::new(0);

/// The first block writes; the second waits for it, and reads.
#[kernel]
pub unsafe fn a_message_to_the_next_block(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    if thread::block_idx_x() == 0 {
        *output.add(i) = input[i];
        thread::sync_threads(); // every word is written
        if i == 0 {
            mid::device_thread_fence(Ordering::Release);
            IS_WRITTEN.store(1, Ordering::Relaxed);
        }
    } else {
        if i == 0 {
            while IS_WRITTEN.load(Ordering::Relaxed) == 0 {
                thread::nanosleep(100);
            }
            mid::device_thread_fence(Ordering::Acquire);
            IS_WRITTEN.store(0, Ordering::Relaxed);
        }
        thread::sync_threads(); // thread 0 has seen the flag
        *output.add(64 + i) = *output.add(63 - i);
    }
}

#[kernel]
pub unsafe fn a_word_of_the_output(_input: &[u32], output: *mut u32) {
    AtomicU32::from_ptr(output).fetch_sub(3, Ordering::Relaxed);
}
