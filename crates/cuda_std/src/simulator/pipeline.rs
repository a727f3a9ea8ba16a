//! Asynchronous copies of a thread: they are issued, put into groups, and performed as late as a
//! GPU may.

use super::BarrierSite;
use super::block::Block;
use super::call::SiteCounts;
use super::current;
use super::shared_memory::POISON;
use std::collections::VecDeque;
use std::ops::Range;
use std::panic::Location;

/// A copy that has been issued and not yet performed.
#[derive(Debug)]
struct PendingCopy {
    shared: *mut u8,
    global: *const u8,
    bytes: usize,
    /// The number of bytes that are read; the remaining bytes are zero-filled.
    valid_bytes: usize,
}

impl PendingCopy {
    /// # Safety
    ///
    /// What the kernel vouched for when it issued the copy still holds for both pointers.
    unsafe fn make(&self) {
        // SAFETY: as above; what is not valid is not read.
        unsafe {
            self.shared.write_bytes(0, self.bytes);
            self.shared
                .copy_from_nonoverlapping(self.global, self.valid_bytes);
        }
    }
}

/// The copies of one thread that have not been performed.
#[derive(Debug, Default)]
pub(super) struct PendingCopies {
    /// Oldest first: the copies of all groups, then those that are not in a group yet.
    copies: VecDeque<PendingCopy>,
    /// The number of copies in each group, oldest first.
    groups: VecDeque<usize>,
    /// The number of copies that are in a group.
    in_groups: usize,
}

impl PendingCopies {
    /// Drops all copies: no thread may rely on what has not arrived when the issuing thread ends.
    pub fn drop_all(&mut self) {
        self.copies.clear();
        self.groups.clear();
        self.in_groups = 0;
    }

    fn commit(&mut self) {
        self.groups.push_back(self.copies.len() - self.in_groups);
        self.in_groups = self.copies.len();
    }

    /// Removes and returns the copies of all groups but the newest.
    fn arrived(&mut self, but_newest: usize) -> impl Iterator<Item = PendingCopy> {
        let arrived_groups = self.groups.len().saturating_sub(but_newest);
        let copies: usize = self.groups.drain(..arrived_groups).sum();
        self.in_groups -= copies;
        self.copies.drain(..copies)
    }
}

/// Issues a copy of a `T` whose first `valid_bytes` bytes are read; the remaining bytes are
/// zero-filled.
#[track_caller]
pub(crate) fn copy_async<T: Copy>(shared: *mut T, global: *const T, valid_bytes: u32) {
    let Some((block, thread)) = current::running() else {
        return;
    };
    let copy = PendingCopy {
        shared: shared.cast(),
        global: global.cast(),
        bytes: size_of::<T>(),
        valid_bytes: valid_bytes as usize,
    };
    if let Some(problem) = problem_of(&copy, block) {
        current::refuse_copy(problem);
    }
    // SAFETY: in the block's shared memory.
    unsafe { copy.shared.write_bytes(POISON, copy.bytes) };
    thread.pending_copies.borrow_mut().copies.push_back(copy);
}

/// What would be a fault or undefined on a GPU.
fn problem_of(copy: &PendingCopy, block: &Block) -> Option<String> {
    let PendingCopy {
        shared,
        global,
        bytes,
        valid_bytes,
    } = *copy;
    if valid_bytes > bytes {
        Some(format!(
            "a copy of {bytes} bytes of which {valid_bytes} are to be valid."
        ))
    } else if !block.shared_memory.borrow().contains(shared, bytes) {
        Some(format!(
            "a copy to {shared:p}, which is not in the block's shared memory."
        ))
    } else if !shared.addr().is_multiple_of(bytes) || !global.addr().is_multiple_of(bytes) {
        Some(format!(
            "a copy of {bytes} bytes from {global:p} to {shared:p}; both must be multiples of {bytes}."
        ))
    } else if !is_readable(global.addr(), valid_bytes, block) {
        Some(format!(
            "a copy that reads {valid_bytes} bytes from {global:p}, not all of which it may read."
        ))
    } else {
        None
    }
}

/// Whether all bytes that a copy reads lie in one memory that the launch lets copies read.
pub(super) fn is_readable(global: usize, valid_bytes: usize, block: &Block) -> bool {
    let Some(memories) = &block.readable_by_copies else {
        return true;
    };
    let contains = |memory: &Range<usize>| {
        global >= memory.start && global <= memory.end && valid_bytes <= memory.end - global
    };
    valid_bytes == 0 || memories.iter().any(contains)
}

/// Closes the current thread's group of copies.
#[track_caller]
pub(crate) fn commit_copies() {
    current::thread().pending_copies.borrow_mut().commit();
}

/// Performs the copies of all of the current thread's groups but the newest.
#[track_caller]
pub(crate) fn wait_for_copies(but_newest: usize) {
    let Some((_, thread)) = current::waits_here() else {
        return;
    };
    for copy in thread.pending_copies.borrow_mut().arrived(but_newest) {
        // SAFETY: the kernel has vouched for both pointers until this wait.
        unsafe { copy.make() };
    }
}

/// The waits of a block's threads for their copies.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// The waits that the launch leaves out.
    left_out: Vec<BarrierSite>,
    /// How often threads have waited at each site, over all blocks.
    passed: SiteCounts,
}

impl Waits {
    pub fn new(left_out: &[BarrierSite]) -> Self {
        Self {
            left_out: left_out.to_vec(),
            passed: SiteCounts::default(),
        }
    }

    /// Whether a thread need not wait here; counts it if it must.
    pub fn is_left_out(&self, site: &'static Location<'static>) -> bool {
        if !self.left_out.is_empty() && self.left_out.contains(&site.into()) {
            return true;
        }
        self.passed.note(site);
        false
    }

    /// How often threads have waited at each site.
    pub fn into_passed(self) -> Vec<(BarrierSite, u64)> {
        self.passed.into_vec()
    }
}
