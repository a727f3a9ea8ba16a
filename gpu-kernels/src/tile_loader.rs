//! How the stream-K kernels copy tiles of A and B to shared memory: one type for each layout of an
//! operand.
//!
//! In shared memory a tile is BK rows of elements along M or N: a K-major operand is transposed by
//! the copy. `cp.async` zero-fills out-of-bounds elements, so that edge tiles need no branches.

use crate::compat::pipeline;
use crate::float4::Float4;
use crate::spec::OperandLayout;

/// The largest number of float4s of a tile that a thread copies.
const MAX_COPIES: usize = 8;

/// Copies the tiles of one operand to shared memory, k-iteration by k-iteration.
///
/// TILE is the tile's extent along M or N, BK its depth.
pub trait TileLoader: Sized {
    /// The required layout of the operand.
    const LAYOUT: OperandLayout;
    /// Elements from one row of a tile in shared memory to the next.
    const STRIDE: usize;
    /// Elements of a tile in shared memory, (BK, STRIDE).
    const STAGE: usize;

    /// The offset in a tile of the first element that `thread`, one of THREADS, copies.
    fn target(thread: usize) -> usize;

    /// The loader of the tiles from `first` on, along M or N and along K.
    ///
    /// The operand starts at `matrix`, with rows `leading` elements apart, and has `size` elements
    /// along M or N and along K. `target` is [`TileLoader::target`] of `thread`.
    fn new(
        matrix: &[f32],
        leading: usize,
        size: (usize, usize),
        first: (usize, usize),
        thread: usize,
        target: usize,
    ) -> Self;

    /// Starts this thread's copies of the next tile to `tile`.
    ///
    /// # Safety
    ///
    /// There is a next tile, and `tile` has [`TileLoader::STAGE`] elements of shared memory that
    /// no thread reads.
    unsafe fn copy(&mut self, tile: *mut f32);
}

/// Loads an MN-major operand with aligned rows: float4s of a row of the tile. `EXACT`: none is out
/// of bounds.
pub struct MnMajor<const TILE: usize, const BK: usize, const THREADS: usize, const EXACT: bool> {
    source: *const f32,
    /// Elements from a row of the matrix to the same row of the next tile.
    next_tile: usize,
    /// The offset of this thread's first float4 in a tile.
    target: usize,
    /// Bytes in bounds of each of its float4s.
    bytes: [u32; MAX_COPIES],
    /// The rows of the matrix from this thread's row on: none if negative.
    k_remaining: i32,
}

impl<const TILE: usize, const BK: usize, const THREADS: usize, const EXACT: bool>
    MnMajor<TILE, BK, THREADS, EXACT>
{
    /// The neighbouring threads that copy one row, and the float4s of each.
    const ROW_THREADS: usize = THREADS / BK;
    const COPIES: usize = TILE / 4 / Self::ROW_THREADS;

    /// Starts this thread's copies of the next tile, with all elements in bounds, and does not
    /// advance.
    ///
    /// # Safety
    ///
    /// There is a next tile, and `target` is this thread's place ([`TileLoader::target`]) in
    /// [`TileLoader::STAGE`] elements of shared memory that no thread reads.
    #[inline(always)]
    pub unsafe fn copy_exact(&self, target: *mut f32) {
        for i in 0..Self::COPIES {
            let next = i * Self::ROW_THREADS * 4;
            let source = self.source.wrapping_add(next).cast::<Float4>();
            pipeline::memcpy_async(target.add(next).cast::<Float4>(), source);
        }
    }

    /// Goes on to the next tile.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.source = self.source.wrapping_add(self.next_tile);
        self.k_remaining -= BK as i32;
    }
}

impl<const TILE: usize, const BK: usize, const THREADS: usize, const EXACT: bool> TileLoader
    for MnMajor<TILE, BK, THREADS, EXACT>
{
    const LAYOUT: OperandLayout = OperandLayout::MN_MAJOR_ALIGNED;
    const STRIDE: usize = TILE;
    const STAGE: usize = BK * Self::STRIDE;

    #[inline(always)]
    fn target(thread: usize) -> usize {
        thread / Self::ROW_THREADS * TILE + thread % Self::ROW_THREADS * 4
    }

    #[inline(always)]
    fn new(
        matrix: &[f32],
        leading: usize,
        (extent, depth): (usize, usize),
        (first, k0): (usize, usize),
        thread: usize,
        target: usize,
    ) -> Self {
        const {
            assert!(Self::ROW_THREADS * BK == THREADS, "rows split evenly");
            assert!(
                Self::COPIES * Self::ROW_THREADS * 4 == TILE,
                "float4s split evenly"
            );
            assert!(Self::COPIES <= MAX_COPIES, "the tile is too large");
        }
        let (row, col) = (thread / Self::ROW_THREADS, thread % Self::ROW_THREADS * 4);
        let mut bytes = [0; MAX_COPIES];
        for i in 0..Self::COPIES {
            let columns = distance(first + col + i * Self::ROW_THREADS * 4, extent);
            bytes[i] = if columns < 4 { 4 * columns as u32 } else { 16 };
        }
        Self {
            source: matrix
                .as_ptr()
                .wrapping_add((k0 + row) * leading + first + col),
            next_tile: BK * leading,
            target,
            bytes,
            k_remaining: distance(k0 + row, depth),
        }
    }

    #[inline(always)]
    unsafe fn copy(&mut self, tile: *mut f32) {
        if EXACT {
            self.copy_exact(tile.add(self.target));
            return self.advance();
        }
        for i in 0..Self::COPIES {
            let next = i * Self::ROW_THREADS * 4;
            let source = self.source.wrapping_add(next).cast::<Float4>();
            let target = tile.add(self.target + next).cast::<Float4>();
            let bytes = if self.k_remaining > 0 {
                self.bytes[i]
            } else {
                0
            };
            pipeline::memcpy_async_zfill(target, source, bytes);
        }
        self.advance();
    }
}

/// Loads an MN-major operand at any address: element by element.
pub struct Unaligned<const TILE: usize, const BK: usize, const THREADS: usize, const EXACT: bool> {
    source: *const f32,
    /// Elements from a row of the matrix to the next that this thread copies from.
    next_row: usize,
    target: usize,
    /// Whether this thread's column is in bounds.
    in_bounds: bool,
    /// The rows of the matrix from this thread's first row on: none if negative.
    k_remaining: i32,
}

impl<const TILE: usize, const BK: usize, const THREADS: usize, const EXACT: bool>
    Unaligned<TILE, BK, THREADS, EXACT>
{
    /// The rows that the threads copy at once, and the elements of a tile that each copies.
    const ROWS: usize = THREADS / TILE;
    const COPIES: usize = BK / Self::ROWS;
}

impl<const TILE: usize, const BK: usize, const THREADS: usize, const EXACT: bool> TileLoader
    for Unaligned<TILE, BK, THREADS, EXACT>
{
    const LAYOUT: OperandLayout = OperandLayout::MN_MAJOR;
    const STRIDE: usize = TILE;
    const STAGE: usize = BK * Self::STRIDE;

    #[inline(always)]
    fn target(thread: usize) -> usize {
        thread
    }

    #[inline(always)]
    fn new(
        matrix: &[f32],
        leading: usize,
        (extent, depth): (usize, usize),
        (first, k0): (usize, usize),
        thread: usize,
        target: usize,
    ) -> Self {
        const {
            assert!(Self::ROWS * TILE == THREADS, "full rows at a time");
            assert!(Self::COPIES * Self::ROWS == BK, "elements split evenly");
        }
        let (row, col) = (thread / TILE, thread % TILE);
        Self {
            source: matrix
                .as_ptr()
                .wrapping_add((k0 + row) * leading + first + col),
            next_row: Self::ROWS * leading,
            target,
            in_bounds: first + col < extent,
            k_remaining: distance(k0 + row, depth),
        }
    }

    #[inline(always)]
    unsafe fn copy(&mut self, tile: *mut f32) {
        for i in 0..Self::COPIES {
            let in_bounds = self.in_bounds && self.k_remaining > (i * Self::ROWS) as i32;
            pipeline::memcpy_async_zfill(
                tile.add(self.target + i * Self::ROWS * TILE),
                self.source.wrapping_add(i * self.next_row),
                if in_bounds { 4 } else { 0 },
            );
        }
        self.source = self.source.wrapping_add(Self::COPIES * self.next_row);
        self.k_remaining -= BK as i32;
    }
}

/// Loads a K-major operand at any address: element by element, which transposes it.
pub struct KMajor<const TILE: usize, const BK: usize, const THREADS: usize, const EXACT: bool> {
    source: *const f32,
    /// Elements from a row of the matrix to the next that this thread copies from.
    next_row: usize,
    target: usize,
    /// Rows of the matrix from this thread's first on.
    rows_remaining: i32,
    /// The columns of the matrix from this thread's column on: none if negative.
    k_remaining: i32,
}

impl<const TILE: usize, const BK: usize, const THREADS: usize, const EXACT: bool>
    KMajor<TILE, BK, THREADS, EXACT>
{
    /// The rows of the matrix that the threads copy from at once, and the elements of a tile that
    /// each copies.
    const ROWS: usize = THREADS / BK;
    const COPIES: usize = TILE / Self::ROWS;
}

impl<const TILE: usize, const BK: usize, const THREADS: usize, const EXACT: bool> TileLoader
    for KMajor<TILE, BK, THREADS, EXACT>
{
    const LAYOUT: OperandLayout = OperandLayout::K_MAJOR;
    /// 4 more than a row has: neighbours write to different rows, and so to different banks.
    const STRIDE: usize = TILE + 4;
    const STAGE: usize = BK * Self::STRIDE;

    #[inline(always)]
    fn target(thread: usize) -> usize {
        thread % BK * Self::STRIDE + thread / BK
    }

    #[inline(always)]
    fn new(
        matrix: &[f32],
        leading: usize,
        (extent, depth): (usize, usize),
        (first, k0): (usize, usize),
        thread: usize,
        target: usize,
    ) -> Self {
        const {
            assert!(Self::ROWS * BK == THREADS, "full columns at a time");
            assert!(Self::COPIES * Self::ROWS == TILE, "elements split evenly");
        }
        let (row, k) = (thread / BK, thread % BK);
        Self {
            source: matrix
                .as_ptr()
                .wrapping_add((first + row) * leading + k0 + k),
            next_row: Self::ROWS * leading,
            target,
            rows_remaining: distance(first + row, extent),
            k_remaining: distance(k0 + k, depth),
        }
    }

    #[inline(always)]
    unsafe fn copy(&mut self, tile: *mut f32) {
        for i in 0..Self::COPIES {
            let in_bounds = self.k_remaining > 0 && self.rows_remaining > (i * Self::ROWS) as i32;
            pipeline::memcpy_async_zfill(
                tile.add(self.target + i * Self::ROWS),
                self.source.wrapping_add(i * self.next_row),
                if in_bounds { 4 } else { 0 },
            );
        }
        self.source = self.source.wrapping_add(BK);
        self.k_remaining -= BK as i32;
    }
}

/// The distance from `start` to `end`: 0 if `end` is before `start`, and at most 2^30, more than
/// the depth of any segment.
#[inline(always)]
pub fn distance(start: usize, end: usize) -> i32 {
    let distance = end.saturating_sub(start);
    if distance < 1 << 30 {
        distance as i32
    } else {
        1 << 30
    }
}
