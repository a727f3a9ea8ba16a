//! What ranks say to each other, and how much: the only place that sends elements of matrices,
//! so the only one that counts them.
//!
//! A message is counted by the rank that it starts from, when it is sent. A broadcast to `s` ranks
//! counts as `s - 1` messages of its root's: so many elements arrive whatever tree MPI forwards
//! them along. Messages without elements are not sent at all. What ranks agree on besides (times,
//! digests, whether a result is right) is some bytes for each rank, and is not counted.
//!
//! | file | what it does |
//! | --- | --- |
//! | `message.rs` | parts of matrices as one derived datatype |
//! | `pending.rs` | messages under way |

mod message;
mod pending;

use std::cell::Cell;
use std::ptr;
use std::rc::Rc;
use std::time::Duration;

use mpi::Rank;
use mpi::datatype::Equivalence;
use mpi::ffi::{self, MPI_Datatype};
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::{AsRaw, Communicator, CommunicatorCollectives, Root};

use host::cpu::view::{View, ViewMut};

use crate::volume::Volume;
pub use message::LARGEST;
use message::Message;
use pending::Request;
pub(crate) use pending::{Broadcasting, Incoming, Outgoing, Panel};

/// How long a rank that has nothing to do sleeps between looks: waiting inside MPI takes a core.
const NAP: Duration = Duration::from_millis(2);

/// A group of ranks, and what this one has sent to others.
pub struct Ranks {
    communicator: SimpleCommunicator,
    sent: Rc<Cell<Volume>>,
}

impl Ranks {
    /// A group whose tally is zero.
    pub fn new(communicator: SimpleCommunicator) -> Ranks {
        Ranks {
            communicator,
            sent: Rc::default(),
        }
    }

    /// This one's number.
    pub fn rank(&self) -> usize {
        self.communicator.rank() as usize
    }

    /// How many there are.
    pub fn size(&self) -> usize {
        self.communicator.size() as usize
    }

    /// What this rank has sent since the last call.
    pub fn take_sent(&self) -> Volume {
        self.sent.take()
    }

    fn count(&self, elements: u64, messages: u64) {
        self.sent
            .set(self.sent.get() + Volume { elements, messages });
    }

    /// The ranks that give the same `color`, in the order of their ranks here; none for those
    /// without one. What is sent among them is counted here, too.
    pub fn split(&self, color: Option<usize>) -> Option<Ranks> {
        let color = match color {
            Some(color) => Color::with_value(color as i32),
            None => Color::undefined(),
        };
        let communicator = self.communicator.split_by_color(color)?;
        Some(Ranks {
            communicator,
            sent: self.sent.clone(),
        })
    }

    /// Sends parts as one message, and returns when their buffers can be used again.
    pub fn send<T: Equivalence>(&self, parts: &[View<'_, T>], to: usize) {
        let Some(message) = Message::reading(parts) else {
            return;
        };
        self.count(message.elements, 1);
        // SAFETY: the datatype describes elements that are borrowed until this returns.
        unsafe {
            ffi::MPI_Send(
                ptr::null(), // MPI_BOTTOM
                1,
                message.datatype.as_raw(),
                to as Rank,
                TAG,
                self.communicator.as_raw(),
            )
        };
    }

    /// Receives what [`Ranks::send`] sent, into parts of the same sizes.
    pub fn receive<T: Equivalence>(&self, mut parts: Vec<ViewMut<'_, T>>, from: usize) {
        let Some(message) = Message::writing(&mut parts) else {
            return;
        };
        // SAFETY: as above, and the borrow is exclusive.
        unsafe {
            ffi::MPI_Recv(
                ptr::null_mut(),
                1,
                message.datatype.as_raw(),
                from as Rank,
                TAG,
                self.communicator.as_raw(),
                ffi::RSMPI_STATUS_IGNORE,
            )
        };
    }

    /// One collective in which each rank sends parts to some ranks and receives some: all must
    /// call it. No rank is named twice in one list, and what goes to a rank has the sizes that
    /// it expects.
    pub fn exchange<T: Equivalence>(
        &self,
        outgoing: &[(usize, Vec<View<'_, T>>)],
        incoming: Vec<(usize, Vec<ViewMut<'_, T>>)>,
    ) {
        let of_sends = outgoing
            .iter()
            .map(|(to, parts)| (*to, Message::reading(parts)));
        let sends = Sides::new::<T>(self.size(), of_sends);
        let of_receives = incoming
            .into_iter()
            .map(|(from, mut parts)| (from, Message::writing(&mut parts)));
        let receives = Sides::new::<T>(self.size(), of_receives);
        let elements = sends.messages.iter().map(|message| message.elements).sum();
        self.count(elements, sends.messages.len() as u64);
        // SAFETY: the datatypes describe elements that are borrowed until this returns, those to
        // receive exclusively; each array has an element for each rank.
        unsafe {
            ffi::MPI_Alltoallw(
                ptr::null(), // MPI_BOTTOM
                sends.counts.as_ptr(),
                sends.displacements.as_ptr(),
                sends.types.as_ptr(),
                ptr::null_mut(),
                receives.counts.as_ptr(),
                receives.displacements.as_ptr(),
                receives.types.as_ptr(),
                self.communicator.as_raw(),
            )
        };
    }

    /// Starts to send parts as one message.
    pub(crate) fn start_send<'a, T: Equivalence>(
        &self,
        parts: &[View<'a, T>],
        to: usize,
    ) -> Outgoing<'a, T> {
        let Some(message) = Message::reading(parts) else {
            return Outgoing::new(Request::complete());
        };
        self.count(message.elements, 1);
        // SAFETY: a constant of the library.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: the datatype describes elements that stay borrowed until the request, and with
        // it the datatype, is dropped.
        unsafe {
            ffi::MPI_Isend(
                ptr::null(),
                1,
                message.datatype.as_raw(),
                to as Rank,
                TAG,
                self.communicator.as_raw(),
                &mut request,
            )
        };
        Outgoing::new(Request::new(request, Some(message)))
    }

    /// Starts to receive compact matrices of `sizes` (rows and columns), as one message.
    ///
    /// # Panics
    ///
    /// If a buffer is shorter than its matrix.
    pub(crate) fn start_receive<T: Equivalence>(
        &self,
        mut buffers: Vec<Vec<T>>,
        sizes: &[(usize, usize)],
        from: usize,
    ) -> Incoming<T> {
        let parts = buffers.iter_mut().zip(sizes);
        let mut parts: Vec<ViewMut<'_, T>> = parts
            .map(|(buffer, &(rows, columns))| ViewMut::new(buffer, rows, columns, columns))
            .collect();
        let Some(message) = Message::writing(&mut parts) else {
            return Incoming::new(Request::complete(), buffers);
        };
        // SAFETY: a constant of the library.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: the elements are in buffers on the heap that the result owns, and hands out or
        // frees only after the request is complete.
        unsafe {
            ffi::MPI_Irecv(
                ptr::null_mut(),
                1,
                message.datatype.as_raw(),
                from as Rank,
                TAG,
                self.communicator.as_raw(),
                &mut request,
            )
        };
        Incoming::new(Request::new(request, Some(message)), buffers)
    }

    /// Starts a broadcast from `root`, whose panel is its own, to all ranks, whose panels are
    /// copies of the same size. All ranks start theirs in the same order.
    ///
    /// # Panics
    ///
    /// If a buffer is shorter than its panel.
    pub(crate) fn start_broadcast<'a, T: Equivalence>(
        &self,
        root: usize,
        mut panel: Panel<'a, T>,
    ) -> Broadcasting<'a, T> {
        let message = match &mut panel {
            Panel::Own(view) => Message::reading(&[*view]),
            Panel::Copy {
                buffer,
                rows,
                columns,
            } => Message::writing(&mut [ViewMut::new(buffer, *rows, *columns, *columns)]),
        };
        let others = self.size() as u64 - 1;
        let Some(message) = message.filter(|_| others > 0) else {
            return Broadcasting::new(Request::complete(), panel);
        };
        if let Panel::Own(_) = panel {
            self.count(others * message.elements, others);
        }
        // SAFETY: a constant of the library.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: the elements stay borrowed, or in a buffer on the heap that the result owns,
        // until the request is complete. The root's are only read.
        unsafe {
            ffi::MPI_Ibcast(
                ptr::null_mut(),
                1,
                message.datatype.as_raw(),
                root as Rank,
                self.communicator.as_raw(),
                &mut request,
            )
        };
        Broadcasting::new(Request::new(request, Some(message)), panel)
    }

    /// Waits for all ranks, as fast as MPI can.
    pub fn barrier(&self) {
        self.communicator.barrier();
    }

    /// Waits for all ranks, and leaves the core to others meanwhile.
    pub fn rest_until_all_are_here(&self) {
        let mut barrier = self.communicator.immediate_barrier();
        while let Err(still_waiting) = barrier.test() {
            barrier = still_waiting;
            std::thread::sleep(NAP);
        }
    }

    /// Each rank's `value`, in the order of ranks.
    pub fn all_gather<T: Equivalence + Clone + Default>(&self, value: &[T]) -> Vec<T> {
        let mut all = vec![T::default(); value.len() * self.size()];
        self.communicator.all_gather_into(value, &mut all[..]);
        all
    }

    /// Rank 0's values, on all ranks.
    pub fn from_first<T: Equivalence>(&self, values: &mut [T]) {
        self.communicator.process_at_rank(0).broadcast_into(values);
    }

    /// Ends the job.
    pub fn abort(&self) -> ! {
        self.communicator.abort(1)
    }
}

/// Elements of matrices have one tag: MPI keeps messages between two ranks in order.
const TAG: i32 = 1;

/// One side of an exchange: an entry for each rank.
struct Sides {
    counts: Vec<i32>,
    displacements: Vec<i32>,
    types: Vec<MPI_Datatype>,
    /// What the types belong to.
    messages: Vec<Message>,
}

impl Sides {
    fn new<T: Equivalence>(
        ranks: usize,
        messages: impl Iterator<Item = (usize, Option<Message>)>,
    ) -> Sides {
        let mut sides = Sides {
            counts: vec![0; ranks],
            displacements: vec![0; ranks],
            types: vec![T::equivalent_datatype().as_raw(); ranks],
            messages: Vec::new(),
        };
        for (rank, message) in messages {
            if let Some(message) = message {
                sides.counts[rank] = 1;
                sides.types[rank] = message.datatype.as_raw();
                sides.messages.push(message);
            }
        }
        sides
    }
}
