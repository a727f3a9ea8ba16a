//! The places of a multiplication's elements in shared memory and in the registers of threads.

/// A tile as a [`Descriptor`](super::Descriptor) describes it.
#[cfg(not(cuda_device))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tile {
    pub descriptor: u64,
    pub is_transposed: bool,
}

#[cfg(not(cuda_device))]
impl Tile {
    /// Where two bytes of a row of A (a column of B) are in shared memory: those at `2 * half` and
    /// after it, in bytes along K. Only elements of two bytes are transposed.
    pub fn place(self, row: u32, half: u32) -> usize {
        let field = |first: u32| (self.descriptor >> first & 0x3FFF) as u32 * 16;
        let offset = if self.is_transposed {
            let (of_box, col) = (row / 64 * field(16), row % 64);
            of_box + half / 8 * field(32) + half % 8 * 128 + col * 2
        } else {
            row / 8 * field(32) + row % 8 * 128 + half * 2
        };
        crate::tma::Swizzle::Bytes128.place((field(0) + offset) as usize)
    }
}

/// Row and column, in a tile of 64 rows, of sum `i` of the thread with this number in its
/// warpgroup.
///
/// Each warp has 16 rows. They are those of [`Layout::c`](crate::mma::Layout::c), once for every
/// eight columns:
///
/// ```text
///   col = 0 .. 7               8 .. 15
///       +--------------------+--------------------+
///   row | lane / 4:          |                    |   warp 0: rows 0 to 15
///       |  s[0] s[1]         |  s[4] s[5]         |   warp 1: rows 16 to 31
///       +- - - - - - - - - - + - - - - - - - - - -+   ...
///       |  s[2] s[3]  (+ 8)  |  s[6] s[7]         |
///       +--------------------+--------------------+
/// ```
#[inline(always)]
pub const fn sum_place(thread: u32, i: u32) -> (u32, u32) {
    let (warp, lane) = (thread / 32, thread % 32);
    let row = 16 * warp + lane / 4 + 8 * (i / 2 % 2);
    (row, 8 * (i / 4) + 2 * (lane % 4) + i % 2)
}

/// Row and k, in A of 64 x 8 elements of 32 bits, of the element in register `i` of the four that
/// the thread with this number in its warpgroup has of it.
///
/// Each warp has 16 rows. They are those of [`Layout::a`](crate::mma::Layout::a) for tf32:
///
/// ```text
///   k = 0 .. 3          4 .. 7
///       +---------------+---------------+
///   row | lane / 4:     |               |   warp 0: rows 0 to 15
///       |  a[0]         |  a[2]         |   warp 1: rows 16 to 31
///       +- - - - - - - -+- - - - - - - -+   ...
///       |  a[1]  (+ 8)  |  a[3]         |
///       +---------------+---------------+
/// ```
#[inline(always)]
pub const fn a_place(thread: u32, i: u32) -> (u32, u32) {
    let (warp, lane) = (thread / 32, thread % 32);
    (16 * warp + lane / 4 + 8 * (i % 2), lane % 4 + 4 * (i / 2))
}
