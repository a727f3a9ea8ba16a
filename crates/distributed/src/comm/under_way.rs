//! Messages under way: started, and not yet complete.

use mpi::ffi::{self, MPI_Datatype};
use mpi::traits::AsRaw;
use verification::cpu::view::{View, ViewMut};

use super::message::Message;

/// A request of MPI's, with the datatype that it uses. It is complete when this is gone.
pub(super) struct Request {
    request: ffi::MPI_Request,
    /// `None` where nothing travels.
    _message: Option<Message>,
}

impl Request {
    /// Starts to send or receive a message by a call of MPI's; without one, nothing is to be done.
    pub fn start(
        message: Option<Message>,
        call: impl FnOnce(MPI_Datatype, &mut ffi::MPI_Request),
    ) -> Request {
        // SAFETY: a constant of the library.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        if let Some(message) = &message {
            call(message.datatype.as_raw(), &mut request);
        }
        Request {
            request,
            _message: message,
        }
    }

    fn wait(&mut self) {
        // SAFETY: the request is ours, or null, which is complete.
        unsafe { ffi::MPI_Wait(&mut self.request, ffi::RSMPI_STATUS_IGNORE) };
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        // MPI must no longer touch the buffers when they can be used again.
        self.wait();
    }
}

/// A message under way, and the buffer that it uses: a vector, or the borrow of a matrix. It is
/// complete when this is gone, so it must not be forgotten: that would end the borrow, and not the
/// message.
pub(crate) struct UnderWay<B> {
    // Dropped before the buffer is.
    request: Request,
    buffer: B,
}

impl<B> UnderWay<B> {
    /// Wraps a request that uses no other buffer than this one, which is a borrow or on the heap.
    pub(super) fn new(request: Request, buffer: B) -> Self {
        UnderWay { request, buffer }
    }

    /// Lets MPI work on this and all other messages.
    pub fn progress(&mut self) {
        let mut is_complete = 0;
        // SAFETY: the request is ours, or null, which is complete; MPI makes it null when it has
        // completed.
        unsafe {
            ffi::MPI_Test(
                &mut self.request.request,
                &mut is_complete,
                ffi::RSMPI_STATUS_IGNORE,
            )
        };
    }

    /// Waits until the buffer can be used again.
    pub fn wait(mut self) -> B {
        self.request.wait();
        self.buffer
    }
}

/// A matrix without gaps, in a buffer that may be longer.
pub(crate) struct Compact<T> {
    pub buffer: Vec<T>,
    rows: usize,
    columns: usize,
}

impl<T> Compact<T> {
    pub fn new(buffer: Vec<T>, rows: usize, columns: usize) -> Self {
        Compact {
            buffer,
            rows,
            columns,
        }
    }

    pub fn view(&self) -> View<'_, T> {
        View::new(&self.buffer, self.rows, self.columns, self.columns)
    }

    pub fn view_mut(&mut self) -> ViewMut<'_, T> {
        ViewMut::new(&mut self.buffer, self.rows, self.columns, self.columns)
    }
}

/// A part that is broadcast: the root's own, or a copy of it.
pub(crate) enum Panel<'a, T> {
    Own(View<'a, T>),
    Copy(Compact<T>),
}

impl<T> Panel<'_, T> {
    /// Its elements.
    pub fn view(&self) -> View<'_, T> {
        match self {
            Panel::Own(view) => *view,
            Panel::Copy(copy) => copy.view(),
        }
    }

    /// The buffer of a copy, to be used again.
    pub fn into_buffer(self) -> Option<Vec<T>> {
        match self {
            Panel::Own(_) => None,
            Panel::Copy(copy) => Some(copy.buffer),
        }
    }
}
