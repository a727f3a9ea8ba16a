//! Large blocks of memory start at a cache line, and stay with the process.
//!
//! The system's allocator starts them 16 bytes after a page, as it writes their length before them.
//! There every vector of 64 bytes of a matrix crosses two cache lines, and the product of a rank
//! takes up to a third longer. Whether a matrix starts there depends on earlier frees, so ranks
//! with the same work would take different times.
//!
//! It also gives large blocks back to the system as soon as they are free. A program that asks for
//! them again waits for each page: on a virtual machine that was longer than to receive the matrix.

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator, with such blocks aligned.
pub struct Aligned;

/// A cache line, which is also the longest vector.
const LINE: usize = 64;
/// Shorter blocks stay as they are.
const LARGE: usize = 1 << 12;

/// Keeps what is freed for the next who asks.
pub fn keep_memory() {
    // SAFETY: it sets parameters of the allocator, which locks itself. No block with a mapping of
    // its own; and nothing is trimmed at the end of the heap.
    unsafe {
        libc::mallopt(libc::M_MMAP_MAX, 0);
        libc::mallopt(libc::M_TRIM_THRESHOLD, -1);
    }
}

/// The layout that is asked of the system: a pure function of the caller's, so that memory is
/// given back as it was asked for.
fn aligned(layout: Layout) -> Layout {
    match layout.size() {
        LARGE.. => layout.align_to(LINE).unwrap_or(layout),
        _ => layout,
    }
}

// SAFETY: all is left to the system's allocator, with a layout of the same size and no smaller
// alignment, the same for a block whenever it is named.
unsafe impl GlobalAlloc for Aligned {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises hold for this layout, too.
        unsafe { System.alloc(aligned(layout)) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(aligned(layout)) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above; the block was asked for with this layout.
        unsafe { System.dealloc(block, aligned(layout)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_blocks_start_at_a_cache_line_and_keep_what_they_hold_as_they_grow() {
        for size in [1, 100, LARGE - 1, LARGE, LARGE + 1, 1 << 20, (1 << 25) + 24] {
            let layout = Layout::from_size_align(size, 4).unwrap();
            // SAFETY: the layouts are of the blocks' sizes, none of which is zero, and only as many
            // bytes are touched.
            unsafe {
                for block in [Aligned.alloc(layout), Aligned.alloc_zeroed(layout)] {
                    assert!(!block.is_null());
                    assert!(size < LARGE || block.addr().is_multiple_of(LINE), "{size}");
                    block.write(7);
                    block.add(size - 1).write(9);
                    let larger = Layout::from_size_align(size * 2, 4).unwrap();
                    let block = Aligned.realloc(block, layout, size * 2);
                    assert!(larger.size() < LARGE || block.addr().is_multiple_of(LINE));
                    let first = if size == 1 { 9 } else { 7 };
                    assert_eq!((block.read(), block.add(size - 1).read()), (first, 9));
                    Aligned.dealloc(block, larger);
                }
            }
        }
    }
}
