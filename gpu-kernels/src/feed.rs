//! How `async_pipeline` brings A and B to shared memory: one type for each way that an operand can be stored.

use cuda_std::prelude::*;

use crate::beyond::pipeline;
use crate::float4::Float4;

/// Fours that a thread brings of a tile's row, at most.
const MOST_FOURS: usize = 8;

/// Brings tiles of one operand to shared memory, one step after the other.
pub trait Feed: Sized {
    /// Elements from the k-th row of a tile in shared memory to the next.
    const STRIDE: usize;
    /// Elements of a tile in shared memory.
    const STAGE: usize;

    /// Where this thread's first copy goes in a tile.
    fn target() -> usize;

    /// Of the operand that starts at `matrix`: `extent` rows or columns of C, of which the tile begins with `first`, and sums of `depth`,
    /// from `k0` on.
    fn new(
        matrix: &[f32],
        leading: usize,
        extent: usize,
        depth: usize,
        first: usize,
        k0: usize,
        target: usize,
    ) -> Self;

    /// Begins to copy what this thread brings of the next tile to the one at `tile`.
    ///
    /// # Safety
    ///
    /// The next tile exists, and `tile` is [`Feed::STAGE`] elements of shared memory that nobody reads.
    unsafe fn copy(&mut self, tile: *mut f32);
}

/// From a matrix whose rows run along the tile: fours, side by side. `WHOLE`: each of them exists.
pub struct AlongTile<const TILE: usize, const DEPTH: usize, const THREADS: usize, const WHOLE: bool>
{
    source: *const f32,
    /// From a row to the row of the next step.
    step: usize,
    /// Where the first four of this thread go.
    target: usize,
    /// Bytes that there are of each of its fours.
    bytes: [u32; MOST_FOURS],
    /// Rows of the matrix from its own on: none if negative.
    rows: i32,
}

impl<const TILE: usize, const DEPTH: usize, const THREADS: usize, const WHOLE: bool>
    AlongTile<TILE, DEPTH, THREADS, WHOLE>
{
    /// Neighbours that bring one row, and fours that each brings of it.
    const ROW_THREADS: usize = THREADS / DEPTH;
    const SHARE: usize = TILE / 4 / Self::ROW_THREADS;

    /// Begins to copy what this thread brings of the next tile, every element of which exists, and does not go on to the tile after that.
    ///
    /// # Safety
    ///
    /// The next tile exists, and `target` is this thread's place ([`Feed::target`]) in [`Feed::STAGE`] elements of shared memory that nobody reads.
    #[inline(always)]
    pub unsafe fn copy_whole(&self, target: *mut f32) {
        for i in 0..Self::SHARE {
            let next = i * Self::ROW_THREADS * 4;
            let source = self.source.wrapping_add(next).cast::<Float4>();
            pipeline::memcpy_async(target.add(next).cast::<Float4>(), source);
        }
    }

    /// Goes on to the next tile.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.source = self.source.wrapping_add(self.step);
        self.rows -= DEPTH as i32;
    }
}

impl<const TILE: usize, const DEPTH: usize, const THREADS: usize, const WHOLE: bool> Feed
    for AlongTile<TILE, DEPTH, THREADS, WHOLE>
{
    const STRIDE: usize = TILE;
    const STAGE: usize = DEPTH * TILE;

    #[inline(always)]
    fn target() -> usize {
        let thread = thread::thread_idx_x() as usize;
        thread / Self::ROW_THREADS * TILE + thread % Self::ROW_THREADS * 4
    }

    #[inline(always)]
    fn new(
        matrix: &[f32],
        leading: usize,
        extent: usize,
        depth: usize,
        first: usize,
        k0: usize,
        target: usize,
    ) -> Self {
        let thread = thread::thread_idx_x() as usize;
        let (row, col) = (thread / Self::ROW_THREADS, thread % Self::ROW_THREADS * 4);
        let mut bytes = [0; MOST_FOURS];
        for i in 0..Self::SHARE {
            let columns = clamped(extent, first + col + i * Self::ROW_THREADS * 4);
            bytes[i] = if columns < 4 { 4 * columns as u32 } else { 16 };
        }
        Self {
            source: matrix
                .as_ptr()
                .wrapping_add((k0 + row) * leading + first + col),
            step: DEPTH * leading,
            target,
            bytes,
            rows: clamped(depth, k0 + row),
        }
    }

    #[inline(always)]
    unsafe fn copy(&mut self, tile: *mut f32) {
        if WHOLE {
            self.copy_whole(tile.add(self.target));
            return self.advance();
        }
        for i in 0..Self::SHARE {
            let next = i * Self::ROW_THREADS * 4;
            let source = self.source.wrapping_add(next).cast::<Float4>();
            let target = tile.add(self.target + next).cast::<Float4>();
            let bytes = if self.rows > 0 { self.bytes[i] } else { 0 };
            pipeline::memcpy_async_zfill(target, source, bytes);
        }
        self.advance();
    }
}

/// From a matrix whose rows run along the tile and begin anywhere: element by element.
pub struct AnyRows<const TILE: usize, const DEPTH: usize, const THREADS: usize, const WHOLE: bool> {
    source: *const f32,
    /// From a row to the next that this thread brings an element of.
    next: usize,
    target: usize,
    /// Whether the matrix has this thread's column.
    exists: bool,
    /// Rows of the matrix from this thread's first on: none if negative.
    rows: i32,
}

impl<const TILE: usize, const DEPTH: usize, const THREADS: usize, const WHOLE: bool>
    AnyRows<TILE, DEPTH, THREADS, WHOLE>
{
    /// Rows that the threads bring at a time.
    const ROWS: usize = THREADS / TILE;
    const SHARE: usize = DEPTH / Self::ROWS;
}

impl<const TILE: usize, const DEPTH: usize, const THREADS: usize, const WHOLE: bool> Feed
    for AnyRows<TILE, DEPTH, THREADS, WHOLE>
{
    const STRIDE: usize = TILE;
    const STAGE: usize = DEPTH * TILE;

    #[inline(always)]
    fn target() -> usize {
        thread::thread_idx_x() as usize
    }

    #[inline(always)]
    fn new(
        matrix: &[f32],
        leading: usize,
        extent: usize,
        depth: usize,
        first: usize,
        k0: usize,
        target: usize,
    ) -> Self {
        let thread = thread::thread_idx_x() as usize;
        let (row, col) = (thread / TILE, thread % TILE);
        Self {
            source: matrix
                .as_ptr()
                .wrapping_add((k0 + row) * leading + first + col),
            next: Self::ROWS * leading,
            target,
            exists: first + col < extent,
            rows: clamped(depth, k0 + row),
        }
    }

    #[inline(always)]
    unsafe fn copy(&mut self, tile: *mut f32) {
        for i in 0..Self::SHARE {
            let exists = self.exists && self.rows > (i * Self::ROWS) as i32;
            pipeline::memcpy_async_zfill(
                tile.add(self.target + i * Self::ROWS * TILE),
                self.source.wrapping_add(i * self.next),
                if exists { 4 } else { 0 },
            );
        }
        self.source = self.source.wrapping_add(Self::SHARE * self.next);
        self.rows -= DEPTH as i32;
    }
}

/// From a matrix whose rows run along the sums: element by element, and so transposed.
pub struct AlongSums<const TILE: usize, const DEPTH: usize, const THREADS: usize, const WHOLE: bool>
{
    source: *const f32,
    /// From a row of the matrix to the next that this thread brings.
    next: usize,
    target: usize,
    /// Rows of the matrix from this thread's first on.
    rows: i32,
    /// Products of the sums from this thread's own on: none if negative.
    products: i32,
}

impl<const TILE: usize, const DEPTH: usize, const THREADS: usize, const WHOLE: bool>
    AlongSums<TILE, DEPTH, THREADS, WHOLE>
{
    /// Rows of the matrix that the threads bring at a time.
    const ROWS: usize = THREADS / DEPTH;
    const SHARE: usize = TILE / Self::ROWS;
}

impl<const TILE: usize, const DEPTH: usize, const THREADS: usize, const WHOLE: bool> Feed
    for AlongSums<TILE, DEPTH, THREADS, WHOLE>
{
    /// 4 more than it holds: what neighbours bring lies in different rows, and so in different banks.
    const STRIDE: usize = TILE + 4;
    const STAGE: usize = DEPTH * (TILE + 4);

    #[inline(always)]
    fn target() -> usize {
        let thread = thread::thread_idx_x() as usize;
        thread % DEPTH * Self::STRIDE + thread / DEPTH
    }

    #[inline(always)]
    fn new(
        matrix: &[f32],
        leading: usize,
        extent: usize,
        depth: usize,
        first: usize,
        k0: usize,
        target: usize,
    ) -> Self {
        let thread = thread::thread_idx_x() as usize;
        let (row, k) = (thread / DEPTH, thread % DEPTH);
        Self {
            source: matrix
                .as_ptr()
                .wrapping_add((first + row) * leading + k0 + k),
            next: Self::ROWS * leading,
            target,
            rows: clamped(extent, first + row),
            products: clamped(depth, k0 + k),
        }
    }

    #[inline(always)]
    unsafe fn copy(&mut self, tile: *mut f32) {
        for i in 0..Self::SHARE {
            let exists = self.products > 0 && self.rows > (i * Self::ROWS) as i32;
            pipeline::memcpy_async_zfill(
                tile.add(self.target + i * Self::ROWS),
                self.source.wrapping_add(i * self.next),
                if exists { 4 } else { 0 },
            );
        }
        self.source = self.source.wrapping_add(DEPTH);
        self.products -= DEPTH as i32;
    }
}

/// How far it is from `start` to `end`: 0 if that is before it, and at most 2^30, which is further than a tile or a part goes.
#[inline(always)]
fn clamped(end: usize, start: usize) -> i32 {
    let distance = end.saturating_sub(start);
    if distance < 1 << 30 {
        distance as i32
    } else {
        1 << 30
    }
}
