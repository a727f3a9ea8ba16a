//! What the lanes of a warp tell each other.

use cuda_std::prelude::*;
use cuda_std::warp;

#[cfg(not(cuda_device))]
use crate::probe::{Probe, probe, scrambled};

const ALL: u32 = u32::MAX;

#[cfg(not(cuda_device))]
pub(crate) static PROBES: &[Probe] = &[
    probe!(
        shuffles,
        input: scrambled,
        ptx: &["shfl.sync.up.b32", "shfl.sync.down.b32", "shfl.sync.idx.b32", "shfl.sync.bfly.b32"],
        expected: |_, input| {
            (0..64usize)
                .flat_map(|i| {
                    let (first, lane) = (i / 32 * 32, i % 32);
                    let up = if lane >= 3 { lane - 3 } else { lane };
                    let down = if lane + 5 < 32 { lane + 5 } else { lane };
                    let in_eight = lane / 8 * 8 + 2;
                    [up, down, in_eight, lane ^ 9].map(|source| input[first + source])
                })
                .collect()
        },
    ),
    probe!(
        wide_and_float_shuffles,
        input: scrambled,
        expected: |_, input| {
            (0..64usize)
                .flat_map(|i| {
                    let other = (i ^ 1) as u32;
                    [(f32::from_bits(0x3F80_0000 | other)).to_bits(), input[i ^ 1], input[i ^ 1] ^ ALL]
                })
                .collect()
        },
    ),
    probe!(
        votes,
        input: scrambled,
        ptx: &["vote.sync.all.pred", "vote.sync.any.pred", "vote.sync.ballot.b32"],
        expected: |_, input| {
            (0..64usize)
                .flat_map(|i| {
                    let warp = &input[i / 32 * 32..][..32];
                    let ballot = (0..32).filter(|&lane| warp[lane] % 3 == 0).map(|lane| 1 << lane).sum();
                    [1, 0, 1, 0, ballot]
                })
                .collect()
        },
    ),
    probe!(
        halves_of_a_warp,
        input: scrambled,
        ptx: &["bar.warp.sync"],
        expected: |_, input| {
            (0..64usize)
                .flat_map(|i| {
                    let mask: u32 = if i % 32 < 16 { 0xFFFF } else { 0xFFFF_0000 };
                    [i as u32 % 32, 1, mask, input[i ^ 15]]
                })
                .collect()
        },
    ),
];

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
    // Which other lanes are active is up to the device, but this lane is active.
    *start.add(1) = warp::activemask() >> lane & 1;
    if lane < 16 {
        *start.add(2) = warp::warp_vote_ballot(0xFFFF, true);
    } else {
        *start.add(2) = warp::warp_vote_ballot(0xFFFF_0000, true);
    }
    warp::sync_warp(mask);
    *start.add(3) = warp::warp_shuffle_xor(mask, input[i], 15, 32).0;
}
