//! The current context of a thread: a call makes the GPU's current, and then again the one that
//! the caller had.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use cust::context::Context;
use cust::sys::{CUcontext, cuCtxGetCurrent, cuCtxSetCurrent};

use super::status::{checked, during};
use crate::error::DeviceError;

/// A GPU's context is current in this thread until this is dropped. Then the one that was current
/// before is again.
#[must_use = "the context is current only until this is dropped"]
pub struct Entered {
    /// What was current, if it must be restored.
    before: Option<CUcontext>,
    /// Contexts are current in one thread.
    not_send: PhantomData<*const ()>,
}

impl Entered {
    /// For a device without contexts.
    pub(crate) const NOTHING: Entered = Entered {
        before: None,
        not_send: PhantomData,
    };

    /// Restores what is current now, whatever becomes current meanwhile.
    pub(super) fn restoring() -> Result<Entered, DeviceError> {
        let before = Some(current()?);
        Ok(Entered {
            before,
            ..Entered::NOTHING
        })
    }

    /// Asks the driver once, and changes nothing where `context` is current already.
    pub(super) fn of(context: &Context) -> Result<Entered, DeviceError> {
        let (before, context) = (current()?, context.as_raw());
        if before == context {
            return Ok(Entered::NOTHING);
        }
        // SAFETY: the caller's context exists.
        checked(unsafe { cuCtxSetCurrent(context) } as u32)
            .map_err(during("Entering the GPU's context"))?;
        Ok(Entered {
            before: Some(before),
            ..Entered::NOTHING
        })
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // After a crash this may fail, and nothing else can be done.
            // SAFETY: the context was current before, or it is null, which is none.
            let _ = unsafe { cuCtxSetCurrent(before) };
        }
    }
}

/// The context of this thread, or null.
fn current() -> Result<CUcontext, DeviceError> {
    let mut context = std::ptr::null_mut();
    // SAFETY: the pointer outlives the call.
    let status = unsafe { cuCtxGetCurrent(&mut context) };
    checked(status as u32).map_err(during("Asking for the thread's context"))?;
    Ok(context)
}

/// Something of a context that is dropped while this is current, whichever thread drops it. The
/// context lives at least as long.
pub(crate) struct InContext<T> {
    content: ManuallyDrop<T>,
    context: Arc<Context>,
}

impl<T> InContext<T> {
    pub(super) fn new(context: &Arc<Context>, content: T) -> InContext<T> {
        InContext {
            content: ManuallyDrop::new(content),
            context: Arc::clone(context),
        }
    }

    /// Makes its context current.
    pub fn enter(&self) -> Result<Entered, DeviceError> {
        Entered::of(&self.context)
    }
}

impl<T> Deref for InContext<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.content
    }
}

impl<T> DerefMut for InContext<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.content
    }
}

impl<T> Drop for InContext<T> {
    fn drop(&mut self) {
        // After a crash even this fails.
        let _entered = self.enter();
        // SAFETY: it is not used again.
        unsafe { ManuallyDrop::drop(&mut self.content) };
    }
}
