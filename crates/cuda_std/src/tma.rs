//! The tensor memory accelerator (TMA): one thread copies a whole tile of a matrix between global
//! and shared memory, while all go on.
//!
//! A [`TensorMap`], made before the launch, describes the matrix, the box that a copy moves, and
//! the box's layout in shared memory. A load fills elements out of bounds with zeros, a store
//! leaves them out, so that no tile has edges, if rows end at multiples of 16 bytes: see
//! [`store_2d`]. A load arrives at an [`mbarrier`](crate::mbarrier) with its bytes; stores are
//! waited for in groups.
//!
//! ```text
//!            matrix: height rows of width elements, row_bytes apart
//!   y = 0 +-------------------------------+
//!         |          x                    |             shared memory
//!         |       y  +---------+          |   load_2d   +---------+
//!         |          |   box   |==========|============>|   box   |  its rows one after the other,
//!         |          +---------+          |             +---------+  swizzled
//!         +-------------------------------+
//! ```
//!
//! A map may also describe several matrices of one shape, one [`Planes::bytes`] after the other:
//! [`load_3d`] and [`store_3d`] name the matrix, too, by `z`. Rows after the last one of that
//! matrix are out of bounds, even if another matrix follows.
//!
//! # Swizzles
//!
//! Rows of a box that are straight below each other begin in the same bank of shared memory. With a
//! [`Swizzle`], each piece of 16 bytes moves to another place in its row, which depends on the row,
//! so that a column of pieces is spread over all banks. An address is swizzled by an exclusive or
//! of its bits 4, 5, 6 with bits 7, 8, 9:
//!
//! ```text
//!   128 bytes: piece p of row r is at place p ^ (r % 8)
//!
//!   row 0 | 0 1 2 3 4 5 6 7 |
//!   row 1 | 1 0 3 2 5 4 7 6 |
//!   row 2 | 2 3 0 1 6 7 4 5 |
//!   ...
//!   row 7 | 7 6 5 4 3 2 1 0 |
//! ```
//!
//! The instructions require `compute_90`; compiled for an older architecture, each is a `trap`.
//!
//! The simulator lets a load land as late as it may: when a thread waits for the phase of the
//! barrier that it arrives at; until then its target is filled with the byte 0xFF. A store reads
//! shared memory when the issuing thread waits for that, or at once in some orders of the threads
//! (`ThreadOrder::Random`), and writes global memory when that thread waits for it or ends; what it
//! has not read by then is gone. What threads wrote to shared memory, a store sees only after a
//! [`fence_shared`].

use crate::by_architecture::from_compute_90;
#[cfg(all(cuda_device, cuda_arch_at_least = "90"))]
use crate::device::shared_address;
use crate::mbarrier::Mbarrier;

mod map;

#[cfg(not(cuda_device))]
pub use map::{Planes, Tiles};
pub use map::{Swizzle, TensorMap};

/// Prefetches a map, so that the first copy need not wait for it.
///
/// # Safety
///
/// The map is a `#[grid_constant]` parameter of the kernel, or is in global memory, and was made
/// for this device.
#[inline(always)]
pub unsafe fn prefetch(map: &TensorMap) {
    #[cfg(all(cuda_device, cuda_arch_at_least = "90"))]
    // SAFETY: the caller vouches for the map, which is only read.
    unsafe {
        core::arch::asm!(
            "prefetch.tensormap [{}];",
            in(reg) map, options(nostack, preserves_flags)
        );
    }
    #[cfg(not(all(cuda_device, cuda_arch_at_least = "90")))]
    let _ = map;
}

/// Functions that copy a box: arguments, instruction, its operands, and what the simulator does.
macro_rules! copies {
    ($(
        $(#[$doc:meta])*
        $name:ident($($argument:ident: $ty:ty),*):
        $text:literal, ($($operand:expr),*), $simulated:expr;
    )*) => {$(
        $(#[$doc])*
        #[inline(always)]
        #[cfg_attr(not(cuda_device), track_caller)]
        pub unsafe fn $name<T>($($argument: $ty),*) {
            from_compute_90! {
                "TMA needs compute_90", ($($argument),*),
                asm($text, $(in(reg) $operand),*),
                $simulated,
            }
        }
    )*};
}

copies! {
    /// Starts to copy the box whose first element is at column `x` of row `y` to shared memory; its
    /// bytes, those out of bounds included, arrive at `barrier`.
    ///
    /// # Safety
    ///
    /// `shared` has room for the box in this block's shared memory, at a multiple of 128 bytes (of
    /// 1024 if the map has a swizzle of 128), and no thread reads or writes there until it has
    /// waited for the barrier's phase. The map describes memory that nobody writes meanwhile.
    /// `barrier` was initialized, and its phase announces these bytes.
    load_2d(shared: *mut T, map: &TensorMap, x: u32, y: u32, barrier: *mut Mbarrier):
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes \
         [{:e}], [{}, {{{:e}, {:e}}}], [{:e}];",
        (shared_address(shared), map, x, y, shared_address(barrier)),
        crate::simulator::tma_load(shared.cast(), map, &[x, y], barrier.addr());

    /// Starts to copy a box of the matrix `z` as [`load_2d`] does, of a map of several matrices.
    ///
    /// # Safety
    ///
    /// As for [`load_2d`]; the map has [`Tiles::planes`].
    load_3d(shared: *mut T, map: &TensorMap, x: u32, y: u32, z: u32, barrier: *mut Mbarrier):
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes \
         [{:e}], [{}, {{{:e}, {:e}, {:e}}}], [{:e}];",
        (shared_address(shared), map, x, y, z, shared_address(barrier)),
        crate::simulator::tma_load(shared.cast(), map, &[x, y, z], barrier.addr());

    /// Starts to copy a box as [`load_2d`] does, to each block of the cluster whose bit is set in
    /// `ranks`, at the same place of its shared memory; its bytes arrive at the barrier that the
    /// block has at the same place. The matrix is read once.
    ///
    /// # Safety
    ///
    /// As for [`load_2d`], in each of those blocks, whose threads have not ended.
    load_2d_multicast(
        shared: *mut T, map: &TensorMap, x: u32, y: u32, barrier: *mut Mbarrier, ranks: u16
    ):
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster \
         [{:e}], [{}, {{{:e}, {:e}}}], [{:e}], {:x};",
        (shared_address(shared), map, x, y, shared_address(barrier), ranks),
        crate::simulator::tma_load_multicast(shared.cast(), map, &[x, y], barrier.addr(), ranks);

    /// Starts to copy a box from shared memory to column `x` of row `y`, in the group that the next
    /// [`commit_group`] closes.
    ///
    /// # Safety
    ///
    /// `shared` holds the box, in this block's shared memory and aligned as for [`load_2d`]; the
    /// threads that wrote it have called [`fence_shared`] since, and there is a barrier between
    /// that and this. No thread writes there, and this thread does not end, until it has waited
    /// with [`wait_group_read`]. The map describes memory that nobody else reads or writes. Rows of
    /// the matrix end at multiples of 16 bytes, or boxes end before rows do: an H200 writes pieces
    /// of 16 bytes, and so also past a row that ends within one.
    store_2d(map: &TensorMap, x: u32, y: u32, shared: *const T):
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [{}, {{{:e}, {:e}}}], [{:e}];",
        (map, x, y, shared_address(shared)),
        crate::simulator::tma_store(map, &[x, y], shared.cast());

    /// Starts to copy a box to the matrix `z` as [`store_2d`] does, of a map of several matrices.
    ///
    /// # Safety
    ///
    /// As for [`store_2d`]; the map has [`Tiles::planes`].
    store_3d(map: &TensorMap, x: u32, y: u32, z: u32, shared: *const T):
        "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group \
         [{}, {{{:e}, {:e}, {:e}}}], [{:e}];",
        (map, x, y, z, shared_address(shared)),
        crate::simulator::tma_store(map, &[x, y, z], shared.cast());
}

/// Puts the stores that this thread has issued since its last `commit_group` into a group.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub fn commit_group() {
    from_compute_90! {
        "TMA needs compute_90", (),
        asm("cp.async.bulk.commit_group;"),
        crate::simulator::tma_commit(),
    }
}

/// Waits until all of this thread's groups but the `GROUPS` newest have read shared memory, which
/// may then be written again.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub fn wait_group_read<const GROUPS: u32>() {
    from_compute_90! {
        "TMA needs compute_90", (),
        asm(
            "cp.async.bulk.wait_group.read {};",
            const GROUPS
        ),
        crate::simulator::tma_wait_read(GROUPS as usize),
    }
}

/// Waits until all of this thread's groups but the `GROUPS` newest have written global memory.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub fn wait_group<const GROUPS: u32>() {
    from_compute_90! {
        "TMA needs compute_90", (),
        asm(
            "cp.async.bulk.wait_group {};",
            const GROUPS
        ),
        crate::simulator::tma_wait(GROUPS as usize),
    }
}

/// Makes what this thread has written to shared memory visible to TMA and to
/// [`wgmma`](crate::wgmma), which go another way than loads and stores of threads do.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub fn fence_shared() {
    from_compute_90! {
        "TMA needs compute_90", (),
        asm("fence.proxy.async.shared::cta;"),
        crate::simulator::tma_fence(),
    }
}
