//! One small kernel for each feature of `cuda_std`, each beside an independent computation of its
//! result, so that the same claim is checked on a GPU and in the simulator; and [`planted`] errors
//! that checkers must find.
#![cfg_attr(cuda_device, no_std)]
// All of a kernel is unsafe: only its launch knows which memory it may access.
#![allow(unsafe_op_in_unsafe_fn)]
#![allow(clippy::missing_safety_doc)]

pub mod addresses;
pub mod atomics;
pub mod control;
pub mod heap;
pub mod indices;
pub mod libdevice;
pub mod maths;
pub mod memory;
pub mod mma;
pub mod narrow;
#[cfg(not(cuda_device))]
mod on_paper;
pub mod pairs;
pub mod parameters;
pub mod pipeline;
pub mod planted;
pub mod print;
#[cfg(not(cuda_device))]
pub mod probe;
pub mod std_maths;
pub mod sync;
pub mod warpgroups;
pub mod warps;

/// Writes the words of a thread of a block along x: those of thread 0, then those of thread 1, and
/// so on.
#[inline(always)]
unsafe fn write<const N: usize>(words: [u32; N], output: *mut u32) {
    let start = output.add(N * cuda_std::thread::thread_idx_x() as usize);
    for (j, word) in words.into_iter().enumerate() {
        *start.add(j) = word;
    }
}

/// Every probe, by module.
#[cfg(not(cuda_device))]
pub static PROBES: &[&[probe::Probe]] = &[
    indices::PROBES,
    sync::PROBES,
    memory::PROBES,
    addresses::PROBES,
    atomics::PROBES,
    parameters::PROBES,
    pipeline::PROBES,
    warps::PROBES,
    mma::PROBES,
    warpgroups::PROBES,
    maths::PROBES,
    narrow::PROBES,
    pairs::PROBES,
    std_maths::PROBES,
    libdevice::PROBES,
    control::PROBES,
    heap::PROBES,
];
