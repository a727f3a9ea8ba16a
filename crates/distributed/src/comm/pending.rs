//! Messages under way: started, and not yet complete.

use std::marker::PhantomData;

use host::cpu::view::View;
use mpi::ffi::{self, MPI_Request};

use super::message::Message;

/// A request, with the datatype that it uses. It is complete when this is gone.
pub(super) struct Request {
    request: MPI_Request,
    /// `None` where nothing travels.
    _message: Option<Message>,
}

impl Request {
    pub fn new(request: MPI_Request, message: Option<Message>) -> Request {
        Request {
            request,
            _message: message,
        }
    }

    /// Of nothing.
    pub fn complete() -> Request {
        // SAFETY: a constant of the library.
        Request::new(unsafe { ffi::RSMPI_REQUEST_NULL }, None)
    }

    /// Lets MPI work on this and all other messages; whether this one is complete.
    pub fn test(&mut self) -> bool {
        let mut is_complete = 0;
        // SAFETY: the request is one of ours or null, which is complete; MPI makes it null when it
        // has completed.
        unsafe {
            ffi::MPI_Test(
                &mut self.request,
                &mut is_complete,
                ffi::RSMPI_STATUS_IGNORE,
            )
        };
        is_complete != 0
    }

    pub fn wait(&mut self) {
        // SAFETY: as above.
        unsafe { ffi::MPI_Wait(&mut self.request, ffi::RSMPI_STATUS_IGNORE) };
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        // MPI must no longer touch the buffers when they can be used again.
        self.wait();
    }
}

/// A message that is being sent from borrowed matrices. It is complete when this is gone, so it
/// must not be forgotten: that would end the borrow, and not the message.
pub(crate) struct Outgoing<'a, T> {
    request: Request,
    borrowed: PhantomData<&'a [T]>,
}

impl<T> Outgoing<'_, T> {
    /// Lets MPI work; whether the buffers can be used again.
    pub fn test(&mut self) -> bool {
        self.request.test()
    }

    pub(super) fn new(request: Request) -> Self {
        Outgoing {
            request,
            borrowed: PhantomData,
        }
    }
}

/// Compact matrices that are being received, and the buffers that they come into.
pub(crate) struct Incoming<T> {
    // Dropped before the buffers are.
    request: Request,
    buffers: Vec<Vec<T>>,
}

impl<T> Incoming<T> {
    pub(super) fn new(request: Request, buffers: Vec<Vec<T>>) -> Self {
        Incoming { request, buffers }
    }

    /// Lets MPI work; whether all is there.
    pub fn test(&mut self) -> bool {
        self.request.test()
    }

    /// Waits for the matrices.
    pub fn wait(mut self) -> Vec<Vec<T>> {
        self.request.wait();
        self.buffers
    }
}

/// A part that is broadcast: the root's own, or a compact copy of it.
pub(crate) enum Panel<'a, T> {
    Own(View<'a, T>),
    Copy {
        buffer: Vec<T>,
        rows: usize,
        columns: usize,
    },
}

impl<T> Panel<'_, T> {
    /// Its elements.
    pub fn view(&self) -> View<'_, T> {
        match self {
            Panel::Own(view) => *view,
            Panel::Copy {
                buffer,
                rows,
                columns,
            } => View::new(buffer, *rows, *columns, *columns),
        }
    }

    /// The buffer of a copy, to be used again.
    pub fn into_buffer(self) -> Option<Vec<T>> {
        match self {
            Panel::Own(_) => None,
            Panel::Copy { buffer, .. } => Some(buffer),
        }
    }
}

/// A panel that is being broadcast. The root must not forget it, as with [`Outgoing`].
pub(crate) struct Broadcasting<'a, T> {
    // Dropped before the panel is.
    request: Request,
    panel: Panel<'a, T>,
}

impl<'a, T> Broadcasting<'a, T> {
    pub(super) fn new(request: Request, panel: Panel<'a, T>) -> Self {
        Broadcasting { request, panel }
    }

    /// Lets MPI work; whether the panel is there.
    pub fn test(&mut self) -> bool {
        self.request.test()
    }

    /// Waits for the panel.
    pub fn wait(mut self) -> Panel<'a, T> {
        self.request.wait();
        self.panel
    }
}
