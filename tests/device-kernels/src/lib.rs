//! One small kernel for each thing that `cuda_std` offers, each beside an independent account of
//! what it must compute, so that the same claim is checked on a GPU and in the simulator; and
//! [`planted`] errors that checkers must find.
#![cfg_attr(cuda_device, no_std)]
// All of a kernel is unsafe: only its launch knows what it may access.
#![allow(unsafe_op_in_unsafe_fn)]
#![allow(clippy::missing_safety_doc)]

pub mod control;
pub mod indices;
pub mod maths;
pub mod memory;
pub mod pipeline;
pub mod planted;
pub mod print;
#[cfg(not(cuda_device))]
pub mod probe;
pub mod sync;
pub mod warps;

/// Every probe, by module.
#[cfg(not(cuda_device))]
pub static PROBES: &[&[probe::Probe]] = &[
    indices::PROBES,
    sync::PROBES,
    memory::PROBES,
    pipeline::PROBES,
    warps::PROBES,
    maths::PROBES,
    control::PROBES,
];
