//! Barriers in shared memory that threads need not wait at, and that copies arrive at, too: PTX's
//! `mbarrier`.
//!
//! A barrier goes through phases. A phase ends when as many threads have arrived as [`init`] said,
//! and when all bytes that [`arrive_expect_tx`] announced have landed; the next phase then begins
//! by itself. Phases are told apart by their parity: 0, 1, 0, 1, ...
//!
//! ```text
//!   phase 0                         | phase 1
//!   arrive_expect_tx(bar, 4096)     |
//!   tma::load_2d(.., bar) =========>|  4096 bytes have landed, all have arrived
//!   wait(bar, 0) ...................| returns
//!   wait(bar, 1) returns at once    | wait(bar, 1) waits for the end of this phase
//! ```
//!
//! The last line is how a ring of buffers begins: to wait for parity 1 of a new barrier is to wait
//! for a phase before the first, which has ended. So a producer finds every buffer empty.
//!
//! What was written before an arrival, and what landed, is visible to a thread after its [`wait`].
//!
//! The instructions require `compute_90`; compiled for an older architecture, each is a `trap`.
//!
//! The simulator lets bytes land as late as they may: when a thread waits for the phase that they
//! belong to. In some orders of the threads (`ThreadOrder::Random`), a thread whose arrival ends a
//! phase continues after the others have got as far as they can: whatever it should have done
//! before it arrived shows. A wait that nothing can end is a fault.

use crate::by_architecture::from_compute_90;
#[cfg(all(cuda_device, not(cuda_arch_at_least = "90")))]
use crate::device::needs_architecture;
#[cfg(all(cuda_device, cuda_arch_at_least = "90"))]
use {crate::device::shared_address, core::arch::asm};

/// A barrier: 8 bytes of shared memory. It has no meaning before [`init`].
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct Mbarrier {
    /// Only the hardware knows what they say.
    _bits: u64,
}

/// Begins phase 0 of a barrier whose phases `arrivals` arrivals end.
///
/// One thread does this. Before others use the barrier, it calls [`fence_init`], and all pass a
/// [`sync_threads`](crate::thread::sync_threads).
///
/// # Safety
///
/// `barrier` points into this block's shared memory, where nothing else is stored and no barrier is
/// in use. `arrivals` is from 1 to 2^20 - 1.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn init(barrier: *mut Mbarrier, arrivals: u32) {
    from_compute_90! {
        "mbarrier needs compute_90", (barrier, arrivals),
        asm(
            "mbarrier.init.shared::cta.b64 [{:e}], {:e};",
            in(reg) shared_address(barrier),
            in(reg) arrivals
        ),
        crate::simulator::mbarrier_init(barrier.addr(), arrivals),
    }
}

/// Makes barriers that this thread has initialized known to copies (and to the other blocks of a
/// cluster).
#[inline(always)]
pub fn fence_init() {
    from_compute_90! {
        "mbarrier needs compute_90", (),
        asm("fence.mbarrier_init.release.cluster;"),
    }
}

/// Arrives: one of the arrivals that end the current phase.
///
/// # Safety
///
/// `barrier` was initialized, and the current phase lacks an arrival.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn arrive(barrier: *mut Mbarrier) {
    from_compute_90! {
        "mbarrier needs compute_90", (barrier),
        asm(
            "mbarrier.arrive.release.cta.shared::cta.b64 _, [{:e}];",
            in(reg) shared_address(barrier)
        ),
        crate::simulator::mbarrier_arrive(barrier.addr(), 0),
    }
}

/// Arrives at the barrier that block `rank` of this cluster has at the same place.
///
/// # Safety
///
/// As for [`arrive`], of that block's barrier. The cluster has a block `rank`, whose threads have
/// not ended.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn arrive_at(barrier: *mut Mbarrier, rank: u32) {
    from_compute_90! {
        "mbarrier needs compute_90", (barrier, rank),
        asm(
            "{{",
            ".reg .b32 remote;",
            "mapa.shared::cluster.u32 remote, {:e}, {:e};",
            "mbarrier.arrive.shared::cluster.b64 _, [remote];",
            "}}",
            in(reg) shared_address(barrier),
            in(reg) rank
        ),
        crate::simulator::mbarrier_arrive_at(barrier.addr(), rank),
    }
}

/// Announces `bytes` that copies will bring in the current phase, and arrives.
///
/// # Safety
///
/// As for [`arrive`]; and copies of `bytes` in all name this barrier. `bytes` is less than 2^20.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn arrive_expect_tx(barrier: *mut Mbarrier, bytes: u32) {
    from_compute_90! {
        "mbarrier needs compute_90", (barrier, bytes),
        asm(
            "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [{:e}], {:e};",
            in(reg) shared_address(barrier),
            in(reg) bytes
        ),
        crate::simulator::mbarrier_arrive(barrier.addr(), bytes),
    }
}

/// Waits until the phase of this parity, 0 or 1, has ended: the current phase, or the one before
/// it, which has.
///
/// # Safety
///
/// `barrier` was initialized.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn wait(barrier: *const Mbarrier, parity: u32) {
    #[cfg(all(cuda_device, cuda_arch_at_least = "90"))]
    // SAFETY: the caller vouches for the barrier.
    unsafe {
        let barrier = shared_address(barrier);
        loop {
            let has_ended: u32;
            asm!(
                "{{",
                ".reg .pred p;",
                "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [{1:e}], {2:e};",
                "selp.u32 {0:e}, 1, 0, p;",
                "}}",
                out(reg) has_ended, in(reg) barrier, in(reg) parity,
                options(nostack, preserves_flags)
            );
            if has_ended != 0 {
                return;
            }
        }
    }
    #[cfg(all(cuda_device, not(cuda_arch_at_least = "90")))]
    needs_architecture!("mbarrier needs compute_90", barrier, parity);
    #[cfg(not(cuda_device))]
    crate::simulator::mbarrier_wait(barrier.addr(), parity);
}

/// [`wait`] for a turn: the order of the threads changes how long they take, and no result. So a
/// report of the simulator does not have it among the waits that a test may leave out.
///
/// # Safety
///
/// As for [`wait`].
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn wait_turn(barrier: *const Mbarrier, parity: u32) {
    #[cfg(cuda_device)]
    // SAFETY: the caller vouches for the barrier.
    unsafe {
        wait(barrier, parity);
    }
    #[cfg(not(cuda_device))]
    crate::simulator::mbarrier_wait_turn(barrier.addr(), parity);
}
