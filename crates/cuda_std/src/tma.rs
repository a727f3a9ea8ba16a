//! The tensor memory accelerator (TMA): one thread copies a whole tile of a matrix between global
//! and shared memory, while all go on.
//!
//! A [`TensorMap`], made before the launch, describes the matrix, the box that a copy moves, and
//! how the box lies in shared memory. A load fills what lies out of bounds with zeros, a store
//! leaves it out, so that no tile has edges, if rows end at multiples of 16 bytes: see
//! [`store_2d`]. A load arrives at an [`mbarrier`](crate::mbarrier)
//! with its bytes; stores are waited for in groups.
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
//! Rows of a box that lie straight below each other begin in the same bank of shared memory. With a
//! [`Swizzle`], each piece of 16 bytes moves to another place in its row, which depends on the row,
//! so that a column of pieces is spread over all banks. An address is swizzled by an exclusive or
//! of its bits 4, 5, 6 with bits 7, 8, 9:
//!
//! ```text
//!   128 bytes: piece p of row r lies at place p ^ (r % 8)
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

/// Describes a matrix and the boxes that copies move. A kernel takes it as `#[grid_constant]`.
///
/// For a GPU the driver makes it (`cuTensorMapEncodeTiled`), for the simulator `Tiles::simulated`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct TensorMap(
    /// Only its maker knows what they say.
    pub [u64; 16],
);

/// What a [`TensorMap`] says, for the host that makes one: a matrix in global memory, and the boxes
/// of it that copies move.
#[cfg(not(cuda_device))]
#[derive(Clone, Copy, Debug)]
pub struct Tiles {
    /// The matrix, at a multiple of 16 bytes.
    pub global: *const u8,
    /// 1, 2, 4 or 8.
    pub element_bytes: usize,
    /// Whether elements are f32 that a load rounds to tf32, as
    /// [`round_to_tf32`](crate::mma::round_to_tf32) does. Others are bits, and stay as they are.
    pub rounds_to_tf32: bool,
    /// Elements of a row, and rows.
    pub width: usize,
    pub height: usize,
    /// From a row to the next: a multiple of 16.
    pub row_bytes: usize,
    /// Matrices of this shape, for copies of three dimensions; `None` for copies of two.
    pub planes: Option<Planes>,
    /// Elements of a box's row, and its rows: up to 256 each. A row of the box has a multiple of 16
    /// bytes, at most as many as the swizzle allows.
    pub box_width: usize,
    pub box_height: usize,
    pub swizzle: Swizzle,
}

/// Matrices of one shape.
#[cfg(not(cuda_device))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planes {
    /// How many: one at least.
    pub count: usize,
    /// From the first element of a matrix to the first of the next: a multiple of 16.
    pub bytes: usize,
}

#[cfg(not(cuda_device))]
impl Tiles {
    /// What makes the driver refuse it, if anything does.
    pub fn problem(&self) -> Option<String> {
        let row_bytes_of_box = self.box_width * self.element_bytes;
        let sides = [self.box_width, self.box_height];
        if !matches!(self.element_bytes, 1 | 2 | 4 | 8) {
            Some(format!("elements of {} bytes", self.element_bytes))
        } else if self.rounds_to_tf32 && self.element_bytes != 4 {
            Some(format!(
                "elements of {} bytes to be rounded to tf32",
                self.element_bytes
            ))
        } else if !self.global.addr().is_multiple_of(16) || !self.row_bytes.is_multiple_of(16) {
            Some(format!(
                "a matrix at {:p} with rows {} bytes apart; both must be multiples of 16",
                self.global, self.row_bytes
            ))
        } else if let Some(planes) = self.planes
            && !planes.bytes.is_multiple_of(16)
        {
            Some(format!(
                "matrices {} bytes apart; that must be a multiple of 16",
                planes.bytes
            ))
        } else if self.width == 0
            || self.height == 0
            || self.planes.is_some_and(|planes| planes.count == 0)
        {
            Some("a matrix without elements".to_owned())
        } else if sides.iter().any(|side| !(1..=256).contains(side)) {
            Some(format!(
                "boxes of {} x {}; a side is from 1 to 256",
                self.box_height, self.box_width
            ))
        } else if !row_bytes_of_box.is_multiple_of(16)
            || self
                .swizzle
                .row_bytes()
                .is_some_and(|most| row_bytes_of_box > most)
        {
            Some(format!(
                "boxes whose rows have {row_bytes_of_box} bytes, with the swizzle {:?}",
                self.swizzle
            ))
        } else {
            None
        }
    }

    /// Bytes of a box.
    pub fn box_bytes(&self) -> usize {
        self.box_width * self.box_height * self.element_bytes
    }

    /// The map for a launch in the simulator.
    ///
    /// # Errors
    ///
    /// [`Self::problem`].
    pub fn simulated(&self) -> Result<TensorMap, String> {
        if let Some(problem) = self.problem() {
            return Err(problem);
        }
        let mut words = [0; 16];
        let planes = self.planes.unwrap_or(Planes { count: 0, bytes: 0 });
        let numbers = [
            SIMULATED as usize,
            self.global.expose_provenance(),
            self.element_bytes,
            self.width,
            self.height,
            self.row_bytes,
            self.box_width,
            self.box_height,
            self.swizzle as usize,
            self.rounds_to_tf32.into(),
            planes.count,
            planes.bytes,
        ];
        for (word, number) in words.iter_mut().zip(numbers) {
            *word = number as u64;
        }
        Ok(TensorMap(words))
    }

    /// What a map of the simulator says; `None` if it is no such map.
    pub(crate) fn of(map: &TensorMap) -> Option<Self> {
        let numbers = map.0.map(|word| word as usize);
        let swizzles = [
            Swizzle::None,
            Swizzle::Bytes32,
            Swizzle::Bytes64,
            Swizzle::Bytes128,
        ];
        (map.0[0] == SIMULATED).then(|| Self {
            global: std::ptr::with_exposed_provenance(numbers[1]),
            element_bytes: numbers[2],
            width: numbers[3],
            height: numbers[4],
            row_bytes: numbers[5],
            box_width: numbers[6],
            box_height: numbers[7],
            swizzle: swizzles[numbers[8] % 4],
            rounds_to_tf32: numbers[9] == 1,
            planes: (numbers[10] > 0).then_some(Planes {
                count: numbers[10],
                bytes: numbers[11],
            }),
        })
    }
}

/// What a map of the simulator begins with.
#[cfg(not(cuda_device))]
const SIMULATED: u64 = u64::from_le_bytes(*b"of tiles");

/// How the 16-byte pieces of a box's rows lie in shared memory. The rows of a swizzled box have as
/// many bytes as its name says, or fewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Swizzle {
    #[default]
    None,
    Bytes32,
    Bytes64,
    Bytes128,
}

impl Swizzle {
    /// Where the byte lies that would lie at `address` without a swizzle.
    #[inline(always)]
    pub const fn place(self, address: usize) -> usize {
        let pieces = match self {
            Swizzle::None => 0b000,
            Swizzle::Bytes32 => 0b001,
            Swizzle::Bytes64 => 0b011,
            Swizzle::Bytes128 => 0b111,
        };
        address ^ ((address >> 7 & pieces) << 4)
    }

    /// The most bytes that a row of a box can have; a box without a swizzle has no limit.
    pub const fn row_bytes(self) -> Option<usize> {
        match self {
            Swizzle::None => None,
            Swizzle::Bytes32 => Some(32),
            Swizzle::Bytes64 => Some(64),
            Swizzle::Bytes128 => Some(128),
        }
    }
}

/// Prefetches a map, so that the first copy need not wait for it.
///
/// # Safety
///
/// The map is a `#[grid_constant]` parameter of the kernel, or lies in global memory, and was made
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

/// Starts to copy the box whose first element is at column `x` of row `y` to shared memory; its
/// bytes, those out of bounds included, arrive at `barrier`.
///
/// # Safety
///
/// `shared` has room for the box in this block's shared memory, at a multiple of 128 bytes (of 1024
/// if the map has a swizzle of 128), and no thread reads or writes there until it has waited for
/// the barrier's phase. The map describes memory that nobody writes meanwhile. `barrier` was
/// initialized, and its phase announces these bytes.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn load_2d<T>(shared: *mut T, map: &TensorMap, x: u32, y: u32, barrier: *mut Mbarrier) {
    from_compute_90! {
        "TMA needs compute_90", (shared, map, x, y, barrier),
        asm(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes \
             [{:e}], [{}, {{{:e}, {:e}}}], [{:e}];",
            in(reg) shared_address(shared),
            in(reg) map,
            in(reg) x,
            in(reg) y,
            in(reg) shared_address(barrier)
        ),
        crate::simulator::tma_load(shared.cast(), map, &[x, y], barrier.addr()),
    }
}

/// Starts to copy a box of the matrix `z` as [`load_2d`] does, of a map of several matrices.
///
/// # Safety
///
/// As for [`load_2d`]; the map has [`Tiles::planes`].
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn load_3d<T>(
    shared: *mut T,
    map: &TensorMap,
    x: u32,
    y: u32,
    z: u32,
    barrier: *mut Mbarrier,
) {
    from_compute_90! {
        "TMA needs compute_90", (shared, map, x, y, z, barrier),
        asm(
            "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes \
             [{:e}], [{}, {{{:e}, {:e}, {:e}}}], [{:e}];",
            in(reg) shared_address(shared),
            in(reg) map,
            in(reg) x,
            in(reg) y,
            in(reg) z,
            in(reg) shared_address(barrier)
        ),
        crate::simulator::tma_load(shared.cast(), map, &[x, y, z], barrier.addr()),
    }
}

/// Starts to copy a box as [`load_2d`] does, to each block of the cluster whose bit is set in
/// `ranks`, at the same place of its shared memory; its bytes arrive at the barrier that the block
/// has at the same place. The matrix is read once.
///
/// # Safety
///
/// As for [`load_2d`], in each of those blocks, whose threads have not ended.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn load_2d_multicast<T>(
    shared: *mut T,
    map: &TensorMap,
    x: u32,
    y: u32,
    barrier: *mut Mbarrier,
    ranks: u16,
) {
    from_compute_90! {
        "TMA needs compute_90", (shared, map, x, y, barrier, ranks),
        asm(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster \
             [{:e}], [{}, {{{:e}, {:e}}}], [{:e}], {:x};",
            in(reg) shared_address(shared),
            in(reg) map,
            in(reg) x,
            in(reg) y,
            in(reg) shared_address(barrier),
            in(reg) ranks
        ),
        crate::simulator::tma_load_multicast(shared.cast(), map, &[x, y], barrier.addr(), ranks),
    }
}

/// Starts to copy a box from shared memory to column `x` of row `y`, in the group that the next
/// [`commit_group`] closes.
///
/// # Safety
///
/// `shared` holds the box, in this block's shared memory and aligned as for [`load_2d`]; the
/// threads that wrote it have called [`fence_shared`] since, and a barrier lies between that and
/// this. No thread writes there, and this thread does not end, until it has waited with
/// [`wait_group_read`]. The map describes memory that nobody else reads or writes. Rows of the
/// matrix end at multiples of 16 bytes, or boxes end before rows do: an H200 writes pieces of 16
/// bytes, and so also what lies behind a row that ends within one.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn store_2d<T>(map: &TensorMap, x: u32, y: u32, shared: *const T) {
    from_compute_90! {
        "TMA needs compute_90", (map, x, y, shared),
        asm(
            "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [{}, {{{:e}, {:e}}}], [{:e}];",
            in(reg) map,
            in(reg) x,
            in(reg) y,
            in(reg) shared_address(shared)
        ),
        crate::simulator::tma_store(map, &[x, y], shared.cast()),
    }
}

/// Starts to copy a box to the matrix `z` as [`store_2d`] does, of a map of several matrices.
///
/// # Safety
///
/// As for [`store_2d`]; the map has [`Tiles::planes`].
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn store_3d<T>(map: &TensorMap, x: u32, y: u32, z: u32, shared: *const T) {
    from_compute_90! {
        "TMA needs compute_90", (map, x, y, z, shared),
        asm(
            "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group \
             [{}, {{{:e}, {:e}, {:e}}}], [{:e}];",
            in(reg) map,
            in(reg) x,
            in(reg) y,
            in(reg) z,
            in(reg) shared_address(shared)
        ),
        crate::simulator::tma_store(map, &[x, y, z], shared.cast()),
    }
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
