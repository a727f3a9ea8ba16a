//! Messages under way: started, and not yet complete.

use std::marker::PhantomData;

use host::cpu::view::View;

use super::Request;

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

    #[cfg(feature = "mpi")]
    pub(super) fn new(request: Request) -> Self {
        Outgoing {
            request,
            borrowed: PhantomData,
        }
    }

    /// Without the borrow: for a caller that keeps the buffers until the request is complete.
    #[cfg(feature = "mpi")]
    pub(super) fn into_request(self) -> Request {
        self.request
    }
}

/// A copy that is being sent, in a buffer of its own.
pub(crate) struct OutgoingCopy<T> {
    // Dropped before the buffer is.
    request: Request,
    buffer: Vec<T>,
}

impl<T> OutgoingCopy<T> {
    #[cfg(feature = "mpi")]
    pub(super) fn new(request: Request, buffer: Vec<T>) -> Self {
        OutgoingCopy { request, buffer }
    }

    /// Lets MPI work; whether the buffer can be used again.
    pub fn test(&mut self) -> bool {
        self.request.test()
    }

    /// Waits until the buffer can be used again.
    pub fn wait(mut self) -> Vec<T> {
        self.request.wait();
        self.buffer
    }
}

/// A compact matrix that is being received, and the buffer that it comes into.
pub(crate) struct Incoming<T> {
    // Dropped before the buffer is.
    request: Request,
    buffer: Vec<T>,
}

impl<T> Incoming<T> {
    #[cfg(feature = "mpi")]
    pub(super) fn new(request: Request, buffer: Vec<T>) -> Self {
        Incoming { request, buffer }
    }

    /// Lets MPI work; whether all is there.
    pub fn test(&mut self) -> bool {
        self.request.test()
    }

    /// Waits for the matrix.
    pub fn wait(mut self) -> Vec<T> {
        self.request.wait();
        self.buffer
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
