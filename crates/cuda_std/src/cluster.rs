//! Clusters: blocks that run at the same time, close to each other, and reach each other's shared
//! memory.
//!
//! [`mbarrier::arrive_at`](crate::mbarrier::arrive_at) arrives at another block's barrier, and
//! [`tma::load_2d_multicast`](crate::tma::load_2d_multicast) copies a box to several blocks at a
//! time. A launch, or `#[kernel(cluster_dim = (2, 1, 1))]`, says which blocks are a cluster.
//!
//! The instructions require `compute_90`; compiled for an older architecture, each is a `trap`.

#[cfg(all(cuda_device, cuda_arch_at_least = "90"))]
use core::arch::asm;

use crate::by_architecture::from_compute_90;
#[cfg(all(cuda_device, not(cuda_arch_at_least = "90")))]
use crate::device::needs_architecture;

/// Waits until all threads of the cluster have called this. What they have written before, and the
/// barriers that they have initialized, all see after it.
///
/// A block that others of its cluster still write to, or arrive at, must not end: this is the last
/// that its threads call.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub fn sync_threads() {
    from_compute_90! {
        "clusters need compute_90", (),
        asm(
            "barrier.cluster.arrive.release.aligned;",
            "barrier.cluster.wait.acquire.aligned;"
        ),
        crate::simulator::cluster_barrier(),
    }
}

/// Defines functions that read a special register: its name, and its value on other architectures.
macro_rules! special_registers {
    ($($(#[$doc:meta])* $name:ident = $register:literal, $otherwise:literal, $simulated:tt;)*) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            #[cfg_attr(not(cuda_device), track_caller)]
            pub fn $name() -> u32 {
                #[cfg(all(cuda_device, cuda_arch_at_least = "90"))]
                // SAFETY: it reads a special register.
                unsafe {
                    let value: u32;
                    asm!(
                        concat!("mov.u32 {:e}, %", $register, ";"),
                        out(reg) value, options(pure, nomem, nostack)
                    );
                    value
                }
                #[cfg(all(cuda_device, not(cuda_arch_at_least = "90")))]
                {
                    needs_architecture!("clusters need compute_90");
                    $otherwise
                }
                #[cfg(not(cuda_device))]
                crate::simulator::cluster_place().$simulated
            }
        )*
    };
}

special_registers! {
    /// The rank of this block in its cluster, from 0 on.
    rank = "cluster_ctarank", 0, 0;
    /// The number of blocks in this block's cluster.
    blocks = "cluster_nctarank", 1, 1;
}

/// The address in block `rank` of the cluster that `shared` has in this block's shared memory. Data
/// that another block has written there may be read after a [`sync_threads`] of the cluster.
///
/// # Safety
///
/// `shared` points into this block's shared memory. The cluster has a block `rank`, whose threads
/// have not ended, and do not while the result is used.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn shared_of<T>(shared: *mut T, rank: u32) -> *mut T {
    #[cfg(all(cuda_device, cuda_arch_at_least = "90"))]
    // SAFETY: it computes an address.
    unsafe {
        let of_peer: *mut T;
        asm!(
            "mapa.u64 {}, {}, {:e};",
            out(reg) of_peer, in(reg) shared, in(reg) rank,
            options(pure, nomem, nostack)
        );
        of_peer
    }
    #[cfg(all(cuda_device, not(cuda_arch_at_least = "90")))]
    {
        needs_architecture!("clusters need compute_90", rank);
        shared
    }
    #[cfg(not(cuda_device))]
    crate::simulator::shared_of(shared.cast(), rank).cast()
}
