//! The shared memory of the block that a worker runs.
//!
//! ```text
//!   |<-- dynamic -->|<- guard ->|<- first array ->|<- guard ->|<- second array ->|<- guard ->|     |
//!   +---------------+-----------+-----------------+-----------+------------------+-----------+-----+
//!   0                           ^ a multiple of 16 bytes      ^ handed out as threads first name them
//! ```
//!
//! A thread that writes to a guard has written past the end of the memory before it. On a GPU,
//! where there are none, that is often the next array. Dynamic shared memory of 0 bytes is apart
//! from all that, and guard alone. So are statics that the program declares in shared memory: each
//! is where the program has it, with a guard behind.

use super::BarrierSite;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};
use std::slice;

/// The maximum for arrays: what `ptxas` accepts.
pub(super) const MOST_STATIC_BYTES: usize = 48 * 1024;
/// The maximum for arrays and dynamic shared memory together: what the largest GPU gives a block
/// (compute capability 9.0).
pub(super) const MOST_BYTES: usize = 227 * 1024;

/// The byte that a block finds in memory that it has not written: NaN in every float format.
pub(super) const POISON: u8 = 0xFF;
pub(super) const ALIGNMENT: usize = 16;
/// Bytes behind the block's memory that must stay poisoned.
const GUARD: usize = 1024;
/// The first of them, which are checked after each run of a thread; each array has as many behind
/// it.
pub(super) const NEAR: usize = 64;

/// The offset of dynamic shared memory of 0 bytes: behind all else, aligned as the arena. Alignment
/// adds no more bytes than arrays have.
const NO_DYNAMIC: usize =
    MOST_BYTES + MOST_STATIC_BYTES + MOST_STATIC_BYTES / ALIGNMENT * NEAR + 2 * GUARD;

/// The layout of the whole arena, at the greatest alignment that dynamic shared memory can have.
pub(super) const ARENA: Layout = match Layout::from_size_align(NO_DYNAMIC + GUARD, 1024) {
    Ok(layout) => layout,
    Err(_) => panic!("the arena's layout is valid"),
};

pub(super) struct SharedMemory {
    start: NonNull<u8>,
    pub dynamic_bytes: usize,
    arrays: Vec<Array>,
    statics: Vec<Static>,
    /// The end of all arrays, and of dynamic shared memory.
    end: usize,
    /// Where that is on a GPU, which has no guards.
    pub taken: usize,
    most_static_bytes: usize,
    /// Whether the block has named its dynamic shared memory although it has 0 bytes of it.
    names_no_dynamic: bool,
    /// The contents as the async proxy sees them, which TMA and wgmma use: empty if it has seen
    /// nothing of this block.
    async_proxy: Vec<u8>,
    /// If threads run at once: the contents before any of them ran, and the bytes that those have
    /// changed that have run since, by their offsets.
    before: Vec<u8>,
    changes: Vec<(usize, u8)>,
}

/// A write past the end of the last array of a block, or of its dynamic shared memory if it has no
/// array.
pub(super) struct Overrun {
    /// Where the array was first named: `None` for dynamic shared memory.
    pub array: Option<BarrierSite>,
    /// Its size, and the first byte behind it that was written, counted from its start.
    pub bytes: usize,
    pub at: usize,
}

struct Array {
    /// The address of its static.
    key: usize,
    offset: usize,
    bytes: usize,
    /// Where a thread first named it.
    site: BarrierSite,
}

/// A static that the program declares in shared memory. It is the memory of the block that runs.
#[derive(Clone, Copy)]
pub(super) struct Static {
    /// Its address, which is exposed.
    pub start: usize,
    pub bytes: usize,
    pub site: BarrierSite,
    /// Whether the block has used it.
    pub is_used: bool,
}

impl Static {
    fn at(&self, byte: usize) -> *mut u8 {
        ptr::with_exposed_provenance_mut(self.start + byte)
    }

    /// Its memory, while no thread runs.
    fn memory(&self) -> &'static mut [u8] {
        // SAFETY: a static that may change, poisoned or written.
        unsafe { slice::from_raw_parts_mut(self.at(0), self.bytes) }
    }

    /// Whether a thread has written to it, while none runs.
    pub fn is_written(&self) -> bool {
        self.memory().iter().any(|byte| *byte != POISON)
    }
}

// SAFETY: it owns its memory.
unsafe impl Send for SharedMemory {}

impl Default for SharedMemory {
    fn default() -> Self {
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc(ARENA) };
        Self {
            start: NonNull::new(start).unwrap_or_else(|| handle_alloc_error(ARENA)),
            dynamic_bytes: 0,
            arrays: Vec::new(),
            statics: Vec::new(),
            end: 0,
            taken: 0,
            most_static_bytes: 0,
            names_no_dynamic: false,
            async_proxy: Vec::new(),
            before: Vec::new(),
            changes: Vec::new(),
        }
    }
}

impl SharedMemory {
    /// Prepares for a launch with this many bytes of dynamic shared memory, which must be at most
    /// [`MOST_BYTES`].
    pub fn begin_launch(&mut self, dynamic_bytes: usize, statics: &[Static]) {
        self.dynamic_bytes = dynamic_bytes;
        self.statics = statics.to_vec();
        self.most_static_bytes = 0;
    }

    pub fn begin_block(&mut self) {
        self.arrays.clear();
        self.names_no_dynamic = false;
        self.async_proxy.clear();
        self.changes.clear();
        self.end = self.dynamic_bytes.next_multiple_of(ALIGNMENT);
        self.taken = self.end;
        self.poison(0, self.end + GUARD);
        for each in &mut self.statics {
            each.is_used = false;
            // SAFETY: a static, with a guard behind it, that may change.
            unsafe { each.at(0).write_bytes(POISON, each.bytes + NEAR) };
        }
    }

    fn poison(&mut self, offset: usize, bytes: usize) {
        // SAFETY: callers stay within the arena.
        unsafe { self.start.add(offset).write_bytes(POISON, bytes) };
    }

    /// The maximum that arrays have taken in one block of this launch, plus the dynamic shared
    /// memory.
    pub fn most_bytes(&self) -> usize {
        self.most_static_bytes + self.dynamic_bytes
    }

    /// The overrun by the thread that has just run, if it wrote near the end.
    #[inline]
    pub fn overrun_nearby(&self) -> Option<Overrun> {
        self.overrun::<NEAR>()
    }

    /// The overrun by any thread of the block.
    pub fn overrun_anywhere(&self) -> Option<Overrun> {
        self.overrun::<GUARD>()
    }

    /// The first of `BYTES` of a guard that has been written.
    fn written<const BYTES: usize>(guard: *const u8) -> Option<usize> {
        // SAFETY: callers give a guard of as many bytes; poisoned, or written by threads, none of
        // which runs.
        let guard = unsafe { slice::from_raw_parts(guard, BYTES) };
        (guard != [POISON; BYTES])
            .then(|| guard.iter().position(|byte| *byte != POISON))
            .flatten()
    }

    /// `BYTES` are checked behind all, and fewer behind what another array follows.
    fn overrun<const BYTES: usize>(&self) -> Option<Overrun> {
        if self.names_no_dynamic
            && let Some(at) = Self::written::<BYTES>(self.at(NO_DYNAMIC))
        {
            let (array, bytes) = (None, 0);
            return Some(Overrun { array, bytes, at });
        }
        let of_dynamic = (None, 0, self.dynamic_bytes);
        let of_dynamic = (self.dynamic_bytes > 0).then_some(of_dynamic);
        let arrays = self.arrays.iter();
        let arrays = arrays.map(|array| (Some(array.site), array.offset, array.bytes));
        of_dynamic
            .into_iter()
            .chain(arrays)
            .find_map(|(array, offset, bytes)| {
                let guard = match array {
                    Some(_) => offset + bytes,
                    None => bytes.next_multiple_of(ALIGNMENT),
                };
                let written = match guard == self.end {
                    true => Self::written::<BYTES>(self.at(guard)),
                    false => Self::written::<NEAR>(self.at(guard)),
                };
                let at = guard - offset + written?;
                Some(Overrun { array, bytes, at })
            })
            .or_else(|| {
                self.statics.iter().find_map(|each| {
                    let at = each.bytes + Self::written::<NEAR>(each.at(each.bytes))?;
                    let (array, bytes) = (Some(each.site), each.bytes);
                    Some(Overrun { array, bytes, at })
                })
            })
    }

    /// Whether this many bytes from `start` on belong to the block.
    pub fn contains(&self, start: *const u8, bytes: usize) -> bool {
        let is_in = |first: usize, size| {
            let offset = start.addr().wrapping_sub(first);
            offset.saturating_add(bytes) <= size
        };
        self.has_offset(start, bytes)
            || (self.statics.iter()).any(|each| is_in(each.start, each.bytes))
    }

    /// Whether they do, and have an [`offset`](Self::offset): those of statics have none.
    pub fn has_offset(&self, start: *const u8, bytes: usize) -> bool {
        self.offset(start).saturating_add(bytes) <= self.end
    }

    /// The offset of an address from the start.
    pub fn offset(&self, address: *const u8) -> usize {
        address.addr().wrapping_sub(self.start.addr().get())
    }

    /// The same of an address in the arena.
    ///
    /// # Errors
    ///
    /// Why there is none, to continue a sentence.
    pub fn offset_within(&self, address: *const u8) -> Result<usize, String> {
        match self.has_offset(address, 0) {
            true => Ok(self.offset(address)),
            false => Err(format!(
                "at {address:p}, which is not in the block's shared memory, or is in a static: take `shared_array!`."
            )),
        }
    }

    /// The address at an offset from the start.
    pub fn at(&self, offset: usize) -> *mut u8 {
        self.start.as_ptr().wrapping_add(offset)
    }

    /// What the block has, but for statics, while none of its threads runs.
    fn contents(&mut self) -> &mut [u8] {
        // SAFETY: within the arena; poisoned, or written by the block.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.end) }
    }

    /// Statics, and then the [`contents`](Self::contents), which may become longer.
    fn regions(&mut self) -> Vec<&mut [u8]> {
        let statics = self.statics.iter().map(Static::memory).collect::<Vec<_>>();
        statics.into_iter().chain([self.contents()]).collect()
    }

    /// Makes the writes of threads visible to the async proxy.
    pub fn fence_async_proxy(&mut self) {
        let mut seen = std::mem::take(&mut self.async_proxy);
        seen.clear();
        seen.extend_from_slice(self.contents());
        self.async_proxy = seen;
    }

    /// Before threads run at once.
    pub fn begin_at_once(&mut self) {
        let mut before = std::mem::take(&mut self.before);
        before.clear();
        self.regions()
            .iter()
            .for_each(|region| before.extend_from_slice(region));
        self.before = before;
    }

    /// Takes back what the thread has written that has just run: the others run as before.
    pub fn take_back(&mut self) {
        let (mut before, mut changes) = (
            std::mem::take(&mut self.before),
            std::mem::take(&mut self.changes),
        );
        let regions = self.regions();
        before.resize(regions.iter().map(|region| region.len()).sum(), POISON);
        const CHUNK: usize = 64;
        let mut start = 0;
        for region in regions {
            for now in region.chunks_mut(CHUNK) {
                let before = &before[start..][..now.len()];
                if now != before {
                    let bytes = now.iter_mut().zip(before).enumerate();
                    for (byte, (now, before)) in bytes.filter(|(_, (now, before))| now != before) {
                        changes.push((start + byte, *now));
                        *now = *before;
                    }
                }
                start += before.len();
            }
        }
        (self.before, self.changes) = (before, changes);
    }

    /// After threads have run at once: all that they have written.
    pub fn end_at_once(&mut self) {
        let mut changes = std::mem::take(&mut self.changes);
        let mut regions = self.regions();
        for (mut offset, byte) in changes.drain(..) {
            for region in &mut regions {
                if let Some(target) = region.get_mut(offset) {
                    *target = byte;
                    break;
                }
                offset -= region.len();
            }
        }
        self.changes = changes;
    }

    /// What the async proxy reads at an offset.
    pub fn read_async<const BYTES: usize>(&self, offset: usize) -> [u8; BYTES] {
        let seen = self.async_proxy.get(offset..offset + BYTES);
        seen.and_then(|seen| seen.try_into().ok())
            .unwrap_or([POISON; BYTES])
    }

    /// Writes bytes by the async proxy, which threads see, too. The offset is one of the block's.
    pub fn write_async(&mut self, offset: usize, bytes: &[u8; 16]) {
        if self.async_proxy.len() < self.end {
            self.async_proxy.resize(self.end, POISON);
        }
        self.async_proxy[offset..offset + bytes.len()].copy_from_slice(bytes);
        // SAFETY: the slice above would have been too short, were it outside of the block's memory.
        unsafe {
            let to = self.start.as_ptr().add(offset);
            to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    /// This block's array of the static at `key`, which is named at `site`.
    ///
    /// # Errors
    ///
    /// The bytes that all arrays would take, if that is more than a block can have.
    pub fn array(
        &mut self,
        key: usize,
        layout: Layout,
        site: BarrierSite,
    ) -> Result<NonNull<u8>, usize> {
        if let Some(array) = self.arrays.iter().find(|array| array.key == key) {
            // SAFETY: the offset is within the arena.
            return Ok(unsafe { self.start.add(array.offset) });
        }
        let align = layout.align().max(ALIGNMENT);
        let guard = if self.end == 0 { 0 } else { NEAR };
        let offset = (self.end + guard).next_multiple_of(align);
        let bytes = layout.size();
        self.take(bytes, align)?;
        self.poison(offset, bytes + GUARD);
        self.arrays.push(Array {
            key,
            offset,
            bytes,
            site,
        });
        self.end = offset + bytes;
        // SAFETY: as above.
        Ok(unsafe { self.start.add(offset) })
    }

    /// Counts an array of the block.
    ///
    /// # Errors
    ///
    /// The bytes that all arrays would take, if that is more than a block can have.
    pub fn take(&mut self, bytes: usize, align: usize) -> Result<(), usize> {
        let taken = self.taken.next_multiple_of(align) + bytes;
        let static_bytes = taken - self.dynamic_bytes.next_multiple_of(ALIGNMENT);
        if static_bytes > MOST_STATIC_BYTES || static_bytes + self.dynamic_bytes > MOST_BYTES {
            return Err(static_bytes);
        }
        self.taken = taken;
        self.most_static_bytes = self.most_static_bytes.max(static_bytes);
        Ok(())
    }

    /// A static of which this is the first use by the block, if there is one.
    pub fn newly_used(&mut self, is_used: impl Fn(&Static) -> bool) -> Option<Static> {
        let mut statics = self.statics.iter_mut();
        let each = statics.find(|each| !each.is_used && is_used(each))?;
        each.is_used = true;
        Some(*each)
    }

    /// The start of the dynamic shared memory.
    pub fn dynamic(&mut self) -> *mut u8 {
        if self.dynamic_bytes > 0 {
            return self.at(0);
        }
        if !self.names_no_dynamic {
            self.names_no_dynamic = true;
            self.poison(NO_DYNAMIC, GUARD);
        }
        self.at(NO_DYNAMIC)
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and no block runs any more.
        unsafe { dealloc(self.start.as_ptr(), ARENA) };
    }
}
