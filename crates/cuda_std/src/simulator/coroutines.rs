//! The stacks of a block's threads, and switching to them.

use super::block::{StackAddresses, Thread};
use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The stack size of one simulated thread; only the pages that it touches take memory.
const STACK_BYTES: usize = 256 * 1024;

/// One coroutine for each thread of a block that has started and not returned.
///
/// A thread gets its stack when it starts and gives it back when it returns. The threads of a
/// kernel without barriers so run one after the other on one stack, which stays in the cache.
pub(super) struct Coroutines {
    /// By the thread's number.
    suspended: Vec<Option<Coroutine<(), (), ()>>>,
    stacks: Vec<DefaultStack>,
}

impl Coroutines {
    /// The coroutines for blocks of this many threads, reusing the stacks of earlier blocks.
    pub fn new(threads: usize, stacks: Vec<DefaultStack>) -> Self {
        let mut suspended = Vec::new();
        suspended.resize_with(threads, || None);
        Self { suspended, stacks }
    }

    /// The stacks of all threads, which must have returned.
    pub fn into_stacks(self) -> Vec<DefaultStack> {
        self.stacks
    }

    /// Runs a thread, starting it first if necessary, until it suspends itself or returns.
    /// Returns whether the thread has returned.
    ///
    /// A panic in the thread propagates.
    ///
    /// # Errors
    ///
    /// The system provides no memory for a stack.
    ///
    /// # Safety
    ///
    /// `thread` and `kernel` stay where they are until the thread has returned or
    /// [`Self::unwind`] was called.
    #[inline]
    pub unsafe fn resume(
        &mut self,
        thread: &Thread,
        kernel: &(dyn Fn() + Sync),
    ) -> io::Result<bool> {
        let slot = &mut self.suspended[thread.number as usize];
        let coroutine = match slot {
            Some(coroutine) => coroutine,
            None => {
                let stack = match self.stacks.pop() {
                    Some(stack) => stack,
                    None => DefaultStack::new(STACK_BYTES)?,
                };
                thread.stack.set(StackAddresses {
                    limit: stack.limit().get(),
                    base: stack.base().get(),
                });
                let body = move |yielder: &Yielder<(), ()>, ()| {
                    thread.yielder.set(yielder);
                    kernel();
                };
                // SAFETY: the caller keeps what the body borrows.
                slot.insert(unsafe { Coroutine::with_stack_unchecked(stack, body) })
            }
        };
        match coroutine.resume(()) {
            CoroutineResult::Yield(()) => Ok(false),
            CoroutineResult::Return(()) => {
                let stack = slot.take().map(Coroutine::into_stack);
                self.stacks.extend(stack);
                Ok(true)
            }
        }
    }

    /// Ends all threads where they are and runs the destructors of what they hold; calls `enter`
    /// before each.
    pub fn unwind(&mut self, mut enter: impl FnMut(usize)) {
        for (number, slot) in self.suspended.iter_mut().enumerate() {
            if let Some(mut coroutine) = slot.take() {
                enter(number);
                // A thread may catch this and panic anew. The launch has failed already: the
                // first fault is reported.
                let _ = catch_unwind(AssertUnwindSafe(|| coroutine.force_unwind()));
                self.stacks.push(coroutine.into_stack());
            }
        }
    }
}
