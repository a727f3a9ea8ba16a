//! Memory with fences: inaccessible pages beside it. An access to them ends the process; with one
//! thread (`--test-threads 1`), the failing test is the last that was named.
//!
//! ```text
//!   | fence ........ | poison  elements | fence ........ |      Edge::End
//!   | fence ........ | elements  poison | fence ........ |      Edge::Start
//! ```

use std::{io, ptr, slice};

use verification::data::Number;

/// The bytes of a fence: many rows of any tested matrix.
const FENCE_BYTES: usize = 4 << 20;

/// The end of the elements that is at a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Nothing is accessible before the first element.
    Start,
    /// Nothing is accessible after the last element, if its address allows that.
    End,
}

/// Elements between fences.
#[derive(Debug)]
pub struct Fenced<T: Number> {
    /// The whole mapping, fences included.
    map: *mut u8,
    map_bytes: usize,
    /// The pages between the fences.
    pages: *mut T,
    pages_length: usize,
    /// The index of the first given element in the pages.
    first: usize,
    length: usize,
}

impl<T: Number> Fenced<T> {
    /// A copy of these elements that begins at a multiple of `alignment` bytes.
    ///
    /// # Panics
    ///
    /// If `alignment` is not a multiple of an element's size, or more than a page.
    pub fn new(elements: &[T], edge: Edge, alignment: usize) -> io::Result<Fenced<T>> {
        let size = size_of::<T>();
        // SAFETY: the call reads no memory.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.cast_unsigned() as usize;
        assert!(alignment.is_multiple_of(size) && page.is_multiple_of(alignment));
        let pages_bytes = size_of_val(elements).next_multiple_of(page);
        let map_bytes = pages_bytes + 2 * FENCE_BYTES;

        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping, wherever there is room.
        let map = unsafe { libc::mmap(ptr::null_mut(), map_bytes, libc::PROT_NONE, flags, -1, 0) };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let map = map.cast::<u8>();
        let pages = map.wrapping_add(FENCE_BYTES);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: they are pages of the new mapping.
        if unsafe { libc::mprotect(pages.cast(), pages_bytes, access) } != 0 {
            return Err(io::Error::last_os_error());
        }

        let pages_length = pages_bytes / size;
        let first = match edge {
            Edge::Start => 0,
            Edge::End => {
                let last_possible = pages_bytes - size_of_val(elements);
                last_possible / alignment * alignment / size
            }
        };
        let mut fenced = Fenced {
            map,
            map_bytes,
            pages: pages.cast(),
            pages_length,
            first,
            length: elements.len(),
        };
        let memory = fenced.memory_mut();
        memory.fill(T::POISON);
        memory[first..first + elements.len()].copy_from_slice(elements);
        Ok(fenced)
    }

    fn memory(&self) -> &[T] {
        // SAFETY: the pages are mapped as long as `self` lives, and any bits are a valid element.
        unsafe { slice::from_raw_parts(self.pages, self.pages_length) }
    }

    fn memory_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `self` is borrowed as a whole.
        unsafe { slice::from_raw_parts_mut(self.pages, self.pages_length) }
    }

    /// The elements.
    pub fn elements(&self) -> &[T] {
        &self.memory()[self.first..self.first + self.length]
    }

    /// A pointer to the first element, valid for writes as long as `self` lives.
    pub fn start(&mut self) -> *mut u8 {
        self.pages.wrapping_add(self.first).cast()
    }

    /// Whether the bytes between the fences and the elements are unchanged.
    pub fn surroundings_are_unchanged(&self) -> bool {
        let (before, others) = self.memory().split_at(self.first);
        let is_poison = |element: &T| element.bits() == T::POISON.bits();
        before.iter().all(is_poison) && others[self.length..].iter().all(is_poison)
    }
}

impl<T: Number> Drop for Fenced<T> {
    fn drop(&mut self) {
        // SAFETY: it is the mapping of `new`, and no borrow of it is left.
        unsafe { libc::munmap(self.map.cast(), self.map_bytes) };
    }
}
