//! Values that the lanes of a warp exchange.

use cuda_std::prelude::*;
use cuda_std::warp::{self, WarpReductionOp};

#[cfg(not(cuda_device))]
use crate::probe::{Probe, of_threads, probe, scrambled};
use crate::write;

const ALL: u32 = u32::MAX;

#[cfg(not(cuda_device))]
pub(crate) static PROBES: &[Probe] = &[
    probe!(
        shuffles,
        input: scrambled,
        ptx: &["shfl.sync.up.b32", "shfl.sync.down.b32", "shfl.sync.idx.b32", "shfl.sync.bfly.b32"],
        expected: |_, input| of_threads(|i| {
            let (first, lane) = (i / 32 * 32, i % 32);
            let up = if lane >= 3 { lane - 3 } else { lane };
            let down = if lane + 5 < 32 { lane + 5 } else { lane };
            let in_eight = lane / 8 * 8 + 2;
            [up, down, in_eight, lane ^ 9].map(|source| input[first + source])
        }),
    ),
    probe!(
        wide_and_float_shuffles,
        input: scrambled,
        expected: |_, input| of_threads(|i| {
            let other = (i ^ 1) as u32;
            [(f32::from_bits(0x3F80_0000 | other)).to_bits(), input[i ^ 1], input[i ^ 1] ^ ALL]
        }),
    ),
    probe!(
        votes,
        input: scrambled,
        ptx: &["vote.sync.all.pred", "vote.sync.any.pred", "vote.sync.ballot.b32"],
        expected: |_, input| of_threads(|i| {
            let warp = &input[i / 32 * 32..][..32];
            let ballot = (0..32).filter(|&lane| warp[lane] % 3 == 0).map(|lane| 1 << lane).sum();
            [1, 0, 1, 0, ballot]
        }),
    ),
    probe!(
        halves_of_a_warp,
        input: scrambled,
        ptx: &["bar.warp.sync"],
        expected: |_, input| of_threads(|i| {
            let mask: u32 = if i % 32 < 16 { 0xFFFF } else { 0xFFFF_0000 };
            [i as u32 % 32, 1, mask, input[i ^ 15]]
        }),
    ),
    probe!(
        narrow_and_wide_shuffles,
        input: scrambled,
        expected: |_, input| of_threads(|i| {
            let word = input[i / 32 * 32 + (i + 1) % 32];
            let half = (word as i16) as u32;
            [word & 0xFF, (word as i8) as u32, word & 0xFFFF, half, word, !word, word / 3, word ^ 5]
        }),
    ),
    probe!(
        matches,
        input: scrambled,
        ptx: &["match.any.sync.b32", "match.any.sync.b64", "match.all.sync.b32", "match.all.sync.b64"],
        expected: |_, input| of_threads(|i| {
            let warp = &input[i / 32 * 32..][..32];
            let own = input[i];
            let same = |key: fn(u32) -> u32| {
                (0..32).filter(|&lane| key(warp[lane]) == key(own)).map(|lane| 1u32 << lane).sum::<u32>()
            };
            [same(|word| word >> 29), same(|word| word % 5), same(|word| word & 3), ALL, 0, ALL, 0]
        }),
    ),
    probe!(
        reductions,
        input: scrambled,
        ptx: &[
            "redux.sync.add.u32", "redux.sync.min.u32", "redux.sync.min.s32", "redux.sync.max.u32",
            "redux.sync.max.s32", "redux.sync.and.b32", "redux.sync.or.b32", "redux.sync.xor.b32",
        ],
        ptx_since: "compute_80",
        expected: |_, input| of_threads(|i| {
            let warp = &input[i / 32 * 32..][..32];
            let fold = |combine: fn(u32, u32) -> u32| warp.iter().copied().reduce(combine).unwrap_or(0);
            [
                fold(u32::wrapping_add),
                fold(u32::min),
                fold(u32::max),
                fold(|left, right| (left as i32).min(right as i32) as u32),
                fold(|left, right| (left as i32).max(right as i32) as u32),
                fold(|left, right| left & right),
                fold(|left, right| left | right),
                fold(|left, right| left ^ right),
            ]
        }),
    ),
    probe!(
        float_reductions,
        input: scrambled,
        ptx: &["shfl.sync.bfly.b32", "add.rn.f32"],
        expected: |_, input| {
            let floats = Vec::from_iter(input.iter().map(|&word| (word >> 8) as f32 * 0.1));
            (0..64usize)
                .flat_map(|i| {
                    let warp = &floats[i / 32 * 32..][..32];
                    let doubles = Vec::from_iter(warp.iter().map(|&x| f64::from(x)));
                    let same_mask = (0..32).filter(|lane| (lane % 3 == 0) == (i % 32 % 3 == 0));
                    [
                        sum_of_halves(warp),
                        warp.iter().copied().fold(f32::INFINITY, f32::min),
                        warp.iter().copied().fold(0.0, f32::max),
                        sum_of_halves(&doubles) as f32,
                        same_mask.map(|lane| warp[lane]).reduce(|sum, x| sum + x).unwrap_or(0.0),
                    ]
                })
                .map(f32::to_bits)
                .collect()
        },
    ),
    probe!(
        reduction_of_some_lanes,
        input: scrambled,
        expected: |_, input| {
            (0..64usize)
                .map(|i| {
                    let lanes = (0..32).filter(|lane| (lane % 3 == 0) == (i % 32 % 3 == 0));
                    lanes.map(|lane| input[i / 32 * 32 + lane] as i32).min().unwrap_or(0) as u32
                })
                .collect()
        },
    ),
];

/// Adds the second half to the first until one number is left.
#[cfg(not(cuda_device))]
pub(crate) fn sum_of_halves<T: Copy + std::ops::Add<Output = T>>(numbers: &[T]) -> T {
    if let [number] = numbers {
        return *number;
    }
    let (left, right) = numbers.split_at(numbers.len() / 2);
    sum_of_halves(&Vec::from_iter(
        left.iter().zip(right).map(|(&x, &y)| x + y),
    ))
}

#[kernel]
pub unsafe fn shuffles(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let start = output.add(4 * i);
    *start = warp::warp_shuffle_up(ALL, input[i], 3, 32).0;
    *start.add(1) = warp::warp_shuffle_down(ALL, input[i], 5, 32).0;
    *start.add(2) = warp::warp_shuffle_idx(ALL, input[i], 2, 8).0;
    *start.add(3) = warp::warp_shuffle_xor(ALL, input[i], 9, 32).0;
}

#[kernel]
pub unsafe fn wide_and_float_shuffles(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let start = output.add(3 * i);
    let number = f32::from_bits(0x3F80_0000 | i as u32);
    let wide = u64::from(input[i]) << 32 | u64::from(input[i] ^ ALL);
    let other = warp::warp_shuffle_xor(ALL, wide, 1, 32).0;
    *start = warp::warp_shuffle_xor(ALL, number, 1, 32).0.to_bits();
    *start.add(1) = (other >> 32) as u32;
    *start.add(2) = other as u32;
}

#[kernel]
pub unsafe fn votes(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x();
    let start = output.add(5 * i as usize);
    *start = u32::from(warp::warp_vote_all(ALL, i < 64));
    *start.add(1) = u32::from(warp::warp_vote_all(ALL, i % 32 != 7));
    *start.add(2) = u32::from(warp::warp_vote_any(ALL, i % 32 == 7));
    *start.add(3) = u32::from(warp::warp_vote_any(ALL, i >= 64));
    *start.add(4) = warp::warp_vote_ballot(ALL, input[i as usize].is_multiple_of(3));
}

#[kernel]
pub unsafe fn halves_of_a_warp(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let lane = warp::lane_id();
    let mask = if lane < 16 { 0xFFFF } else { 0xFFFF_0000 };
    let start = output.add(4 * i);
    *start = lane;
    // The device decides which other lanes are active, but this lane is.
    *start.add(1) = warp::activemask() >> lane & 1;
    if lane < 16 {
        *start.add(2) = warp::warp_vote_ballot(0xFFFF, true);
    } else {
        *start.add(2) = warp::warp_vote_ballot(0xFFFF_0000, true);
    }
    warp::sync_warp(mask);
    *start.add(3) = warp::warp_shuffle_xor(mask, input[i], 15, 32).0;
}

#[kernel]
pub unsafe fn narrow_and_wide_shuffles(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let (word, next) = (input[i], (warp::lane_id() + 1) % 32);
    let wide = u128::from(word) << 96 | u128::from(!word) << 64 | u128::from(word / 3) << 32;
    let wide = warp::warp_shuffle_idx(ALL, wide | u128::from(word ^ 5), next, 32).0;
    let results = [
        u32::from(warp::warp_shuffle_idx(ALL, word as u8, next, 32).0),
        warp::warp_shuffle_idx(ALL, word as i8, next, 32).0 as u32,
        u32::from(warp::warp_shuffle_idx(ALL, word as u16, next, 32).0),
        warp::warp_shuffle_idx(ALL, word as i16, next, 32).0 as u32,
        (wide >> 96) as u32,
        (wide >> 64) as u32,
        (wide >> 32) as u32,
        wide as u32,
    ];
    write(results, output);
}

#[kernel]
pub unsafe fn matches(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let (word, warp_number) = (input[i], i as u64 / 32);
    let results = [
        warp::warp_match_any(ALL, word >> 29),
        warp::warp_match_any(ALL, u64::from(word % 5) << 32),
        warp::warp_match_any(ALL, (word & 3) as f32),
        warp::warp_match_all(ALL, warp_number as i32).unwrap_or(0),
        warp::warp_match_all(ALL, word).unwrap_or(0),
        warp::warp_match_all(ALL, warp_number << 40 | 1).unwrap_or(0),
        warp::warp_match_all(ALL, u64::from(word % 2) << 40).unwrap_or(0),
    ];
    write(results, output);
}

#[kernel]
pub unsafe fn reductions(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let (word, signed) = (input[i], input[i] as i32);
    let results = [
        warp::warp_reduce(ALL, word, WarpReductionOp::Add),
        warp::warp_reduce(ALL, word, WarpReductionOp::Min),
        warp::warp_reduce(ALL, word, WarpReductionOp::Max),
        warp::warp_reduce(ALL, signed, WarpReductionOp::Min) as u32,
        warp::warp_reduce(ALL, signed, WarpReductionOp::Max) as u32,
        warp::warp_reduce(ALL, word, WarpReductionOp::And),
        warp::warp_reduce(ALL, word, WarpReductionOp::Or),
        warp::warp_reduce(ALL, signed, WarpReductionOp::Xor) as u32,
    ];
    write(results, output);
}

#[kernel]
pub unsafe fn float_reductions(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    // The sum must not be fused with this product.
    let x = (input[i] >> 8) as f32 * 0.1;
    const THIRDS: u32 = 0x4924_9249;
    let mask = if warp::lane_id().is_multiple_of(3) {
        THIRDS
    } else {
        !THIRDS
    };
    let results = [
        warp::warp_reduce(ALL, x, WarpReductionOp::Add),
        warp::warp_reduce(ALL, x, WarpReductionOp::Min),
        warp::warp_reduce(ALL, x, WarpReductionOp::Max),
        warp::warp_reduce(ALL, f64::from(x), WarpReductionOp::Add) as f32,
        warp::warp_reduce(mask, x, WarpReductionOp::Add),
    ];
    write(results.map(f32::to_bits), output);
}

#[kernel]
pub unsafe fn reduction_of_some_lanes(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    const THIRDS: u32 = 0x4924_9249;
    let signed = input[i] as i32;
    let least = if warp::lane_id().is_multiple_of(3) {
        warp::warp_reduce(THIRDS, signed, WarpReductionOp::Min)
    } else {
        warp::warp_reduce(!THIRDS, signed, WarpReductionOp::Min)
    };
    *output.add(i) = least as u32;
}
