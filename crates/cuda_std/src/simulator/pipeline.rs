//! Asynchronous copies of a thread: they are issued, put into groups, and performed as late as a
//! GPU may.

use super::block::Block;
use super::current;
use super::extensions::Extension;
use super::groups::Groups;
use super::shared_memory::POISON;

/// A copy that has been issued and not yet performed.
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

/// Copies that no wait has covered are never performed: no thread may rely on them.
impl Extension for Groups<PendingCopy> {
    fn begin_block(&mut self) {
        self.clear();
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
    thread.extensions.get::<Groups<PendingCopy>>().issue(copy);
}

/// Why the copy would be a fault or undefined on a GPU, if it would.
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
    } else if !block.copies_may_read(global.addr(), valid_bytes) {
        Some(format!(
            "a copy that reads {valid_bytes} bytes from {global:p}, not all of which it may read."
        ))
    } else {
        None
    }
}

/// Closes the current thread's group of copies.
#[track_caller]
pub(crate) fn commit_copies() {
    current::thread()
        .extensions
        .get::<Groups<PendingCopy>>()
        .commit();
}

/// Performs the copies of all of the current thread's groups but the newest.
#[track_caller]
pub(crate) fn wait_for_copies(pending_groups: usize) {
    let Some((_, thread)) = current::waits_here() else {
        return;
    };
    let mut copies = thread.extensions.get::<Groups<PendingCopy>>();
    for copy in copies.take_all_but_newest(pending_groups) {
        // SAFETY: the kernel has vouched for both pointers until this wait.
        unsafe { copy.make() };
    }
}
