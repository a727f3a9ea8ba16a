//! Splits f32 into two f16: `x = (hi + lo * 2^-11) * scale`, for tensor cores that multiply f16.
//!
//! Not a rung: nothing is multiplied. Each row of A, and each column of B, has one scale, a power
//! of two, so that its largest finite magnitude is in [2^14, 2^15): f16 ends at 65504. `hi` is the
//! scaled element, rounded to 11 bits; `lo` is the rounding error times 2^11, again rounded to 11
//! bits. For an infinity or a NaN, `hi` is the element and `lo` is 0. `hi` is 0 only for 0: for
//! elements that are too small it is the smallest f16, 2^-24, which `lo` subtracts again.
//!
//! ```text
//!   hi + lo * 2^-11 is off by at most 2^-23 of the element, and 2^-49 of the largest one
//!
//!   f32    | 24 bits                   |
//!   hi     | 11 bits    |                         exact: what is left of 24 bits
//!   lo                   | 11 bits    | .. 1 or 2 bits are lost
//! ```
//!
//! Both operands are written along K, whatever their layout, with zeros up to full tiles:
//!
//! ```text
//!             k = 0 ..                    target_depth ..
//!   row 0   | hi hi hi hi ... 0 0 0     | lo lo lo lo ... 0 0 0   |
//!   row 1   | ...
//! ```

use cuda_std::mma;
use cuda_std::prelude::*;
use cuda_std::shared_array;
use cuda_std::warp::{self, WarpReductionOp};

use crate::compat::{global, launch_bounds};
use crate::spec::{entry, EntryPoint};

/// For a K-major operand.
pub static SPLIT_ROWS: EntryPoint = entry!(split_rows(Split<'_>));
/// For an MN-major operand.
pub static SPLIT_COLUMNS: EntryPoint = entry!(split_columns(Split<'_>));

/// The argument block: an operand, and the targets for two f16 for each f32 and for a scale for
/// each row.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Split<'a> {
    pub source: &'a [f32],
    pub rows: usize,
    pub depth: usize,
    pub leading: usize,
    pub target: *mut u32,
    pub target_depth: usize,
    pub scales: *mut f32,
}

/// The threads of a CTA of [`split_rows`], which splits a row.
pub const ROW_THREADS: usize = 256;
/// The columns that a CTA of [`split_columns`] splits, its threads along x: 32 bytes of a row,
/// which memory reads at a time. More columns would be fewer CTAs, each of which goes through all
/// of k.
pub const COLUMNS: usize = 8;
/// Its threads along y.
pub const COLUMN_THREADS: usize = 128;
/// Elements of a column in shared memory at a time, and from a row to the next there: one more
/// than a row has, so that a column covers half of the banks.
const CHUNK: usize = 1024;
const STRIDE: usize = COLUMNS + 1;
/// Reads of a thread in flight.
const READS: usize = CHUNK / COLUMN_THREADS;
/// The warps that write a column, of 32 pairs at a time.
const WARPS: usize = COLUMN_THREADS / 32;

/// The scale of the elements of a row or a column.
#[derive(Clone, Copy)]
struct Scale {
    /// The factor, and its reciprocal.
    up: f32,
    down: f32,
}

impl Scale {
    /// The scale for elements with this largest finite magnitude, given as bits. Both factors are
    /// normal numbers: a magnitude below 2^-112 counts as 2^-112.
    #[inline(always)]
    fn of(largest: u32) -> Scale {
        let exponent = (largest >> 23).max(15);
        Scale {
            up: f32::from_bits((268 - exponent) << 23),
            down: f32::from_bits((exponent - 14) << 23),
        }
    }
}

/// The bits of a finite magnitude, which are ordered as the magnitudes; 0 for infinities and NaNs.
#[inline(always)]
fn finite_magnitude(element: f32) -> u32 {
    let bits = element.to_bits() & 0x7FFF_FFFF;
    if bits < 0x7F80_0000 {
        bits
    } else {
        0
    }
}

/// Writes the `hi` and `lo` of two neighbours along K.
#[inline(always)]
unsafe fn write_pair(hi: *mut u32, lo: *mut u32, elements: [f32; 2], scale: Scale) {
    let scaled = elements.map(|element| element * scale.up);
    let pair = mma::pair_of_f16(scaled[0], scaled[1]);
    // An infinity times this `hi` keeps its sign; times 0 it would be a NaN.
    let upper = |element: f32, hi: u32| {
        if element != 0.0 && hi & 0x7FFF == 0 {
            hi | 1
        } else {
            hi
        }
    };
    let pair = upper(elements[0], pair & 0xFFFF) | upper(elements[1], pair >> 16) << 16;
    *hi = pair;
    let rest = |element: f32, scaled: f32, hi: u32| {
        if element.to_bits() & 0x7F80_0000 == 0x7F80_0000 {
            0.0
        } else {
            (scaled - mma::of_f16(hi as u16)) * 2048.0
        }
    };
    *lo = mma::pair_of_f16(
        rest(elements[0], scaled[0], pair),
        rest(elements[1], scaled[1], pair >> 16),
    );
}

/// Splits `rows` rows of `depth` elements, `leading` elements apart. `target` gets `rows` rows of
/// `2 * target_depth` f16, `scales` a factor for each.
///
/// A launch has a CTA of `ROW_THREADS` for each row.
///
/// # Safety
///
/// `source` holds `(rows - 1) * leading + depth` elements, `target` and `scales` are valid for
/// these writes, and nothing else touches them; `target_depth` is even, and no less than `depth`;
/// the launch has the shape above.
#[cfg(any(not(cuda_device), feature = "entry-points"))]
#[kernel]
pub unsafe fn split_rows(split: Split<'_>) {
    launch_bounds::<{ ROW_THREADS as u32 }, 1>();
    let (source, leading) = (global::read_only(split.source), split.leading);
    let (rows, depth, target_depth) = (split.rows, split.depth, split.target_depth);
    let maxima = shared_array![u32; ROW_THREADS / 32];
    let thread = thread::thread_idx_x() as usize;
    let row = thread::block_idx_x() as usize;
    if row >= rows {
        return;
    }
    let element = |k: usize| {
        if k < depth {
            *source.get_unchecked(row * leading + k)
        } else {
            0.0
        }
    };
    let mut largest = 0;
    let mut k = thread;
    while k < depth {
        // Four loads in flight.
        for i in 0..4 {
            largest = largest.max(finite_magnitude(element(k + i * ROW_THREADS)));
        }
        k += 4 * ROW_THREADS;
    }
    let largest = warp::warp_reduce(u32::MAX, largest, WarpReductionOp::Max);
    *maxima.add(thread / 32) = largest;
    thread::sync_threads(); // the maxima of all warps are stored
    let mut largest = 0;
    for warp in 0..ROW_THREADS / 32 {
        largest = largest.max(*maxima.add(warp));
    }
    let scale = Scale::of(largest);
    if thread == 0 {
        *split.scales.add(row) = scale.down;
    }
    let hi = split.target.add(row * target_depth);
    let lo = hi.add(target_depth / 2);
    let mut pair = thread;
    while pair < target_depth / 2 {
        let elements = [element(2 * pair), element(2 * pair + 1)];
        write_pair(hi.add(pair), lo.add(pair), elements, scale);
        pair += ROW_THREADS;
    }
}

/// [`split_rows`] of the transpose: `source` has `depth` rows, `leading` elements apart, and its
/// columns become the rows of `target`.
///
/// A launch has a CTA of `COLUMNS x COLUMN_THREADS` threads for each `COLUMNS` columns.
///
/// # Safety
///
/// As for [`split_rows`], but `source` holds `(depth - 1) * leading + rows` elements.
#[cfg(any(not(cuda_device), feature = "entry-points"))]
#[kernel]
pub unsafe fn split_columns(split: Split<'_>) {
    launch_bounds::<{ (COLUMNS * COLUMN_THREADS) as u32 }, 1>();
    let (source, leading) = (global::read_only(split.source), split.leading);
    let (rows, depth, target_depth) = (split.rows, split.depth, split.target_depth);
    let maxima = shared_array![u32; COLUMN_THREADS * STRIDE]; // (COLUMN_THREADS, COLUMNS)
    let staged = shared_array![f32; CHUNK * STRIDE]; // (CHUNK, COLUMNS)
    let (x, y) = (
        thread::thread_idx_x() as usize,
        thread::thread_idx_y() as usize,
    );
    let first = thread::block_idx_x() as usize * COLUMNS;
    let element = |k: usize| {
        if k < depth && first + x < rows {
            *source.get_unchecked(k * leading + first + x)
        } else {
            0.0
        }
    };
    let mut largest = 0;
    let mut k = y;
    while k < depth {
        for i in 0..READS {
            largest = largest.max(finite_magnitude(element(k + i * COLUMN_THREADS)));
        }
        k += CHUNK;
    }
    *maxima.add(y * STRIDE + x) = largest;
    thread::sync_threads(); // the maxima are stored

    // From here on `WARPS` warps have a column.
    let (warp, lane) = ((y * COLUMNS + x) / 32, x + y * COLUMNS % 32);
    let (in_group, part) = (warp / WARPS, warp % WARPS);
    let mut largest = 0;
    for i in 0..COLUMN_THREADS / 32 {
        largest = largest.max(*maxima.add((lane + 32 * i) * STRIDE + in_group));
    }
    let scale = Scale::of(warp::warp_reduce(u32::MAX, largest, WarpReductionOp::Max));
    let column = first + in_group;
    if part == 0 && lane == 0 && column < rows {
        *split.scales.add(column) = scale.down;
    }
    let mut k0 = 0;
    while k0 < target_depth {
        for i in 0..READS {
            let in_chunk = y + i * COLUMN_THREADS;
            *staged.add(in_chunk * STRIDE + x) = element(k0 + in_chunk);
        }
        thread::sync_threads(); // the chunk is complete
        for i in 0..CHUNK / 64 / WARPS {
            let in_chunk = 2 * (lane + 32 * (part + i * WARPS));
            if column < rows && k0 + in_chunk < target_depth {
                let hi = split
                    .target
                    .add(column * target_depth + (k0 + in_chunk) / 2);
                let lo = hi.add(target_depth / 2);
                let elements =
                    [0, 1].map(|next| *staged.add((in_chunk + next) * STRIDE + in_group));
                write_pair(hi, lo, elements, scale);
            }
        }
        thread::sync_threads(); // every thread has finished reading the chunk
        k0 += CHUNK;
    }
}
