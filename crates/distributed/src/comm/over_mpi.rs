//! Ranks of a job that `mpirun` started, over an MPI library.

use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ptr;
use std::rc::Rc;
use std::time::Duration;

use mpi::Rank;
use mpi::Threading;
pub use mpi::datatype::Equivalence;
use mpi::environment::{self, Universe};
use mpi::ffi::{self, MPI_Datatype};
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::{AsRaw, Communicator, CommunicatorCollectives, Destination, Root, Source};

use host::cpu::view::{View, ViewMut};

use super::Transmissible;
use super::message::Message;
use super::pending::{Broadcasting, Incoming, Outgoing, OutgoingCopy, Panel};
use crate::volume::Volume;

/// Why this process is the only rank, if nobody started it as one of several; to be asked before
/// MPI starts.
pub fn alone_because() -> Option<&'static str> {
    // Of Open MPI, of launchers that speak PMI (MPICH, Intel MPI, Slurm), and of PMIx.
    let launchers = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"];
    let is_launched = launchers
        .iter()
        .any(|variable| std::env::var_os(variable).is_some());
    (!is_launched).then_some(
        "started without mpirun, this is the only rank; `mpirun -n 4 gemm-mpi ...` starts four.",
    )
}

/// MPI, from its start to its end.
pub struct Job(Universe);

/// Starts MPI; `None` if something else has.
pub fn start() -> Option<Job> {
    let (universe, _) = environment::initialize_with_threading(Threading::Funneled)?;
    Some(Job(universe))
}

impl Job {
    /// All ranks.
    pub fn ranks(&self) -> Ranks {
        Ranks::new(self.0.world())
    }
}

/// The library and its version.
pub fn library() -> String {
    let version = environment::library_version().unwrap_or_default();
    version.split(',').next().unwrap_or_default().to_string()
}

/// The name of this host.
pub fn host_name() -> String {
    environment::processor_name().unwrap_or_default()
}

/// This process's number among all, and how many there are.
pub fn rank_of_all() -> (usize, usize) {
    number_and_size(&SimpleCommunicator::world())
}

/// The same among those on this host. All ranks must call it.
pub fn rank_on_host() -> (usize, usize) {
    number_and_size(&SimpleCommunicator::world().split_shared(0))
}

/// How many ranks of this host may run on the same cores as this one, itself among them. All ranks
/// must call it.
pub fn ranks_on_these_cores() -> usize {
    let here = SimpleCommunicator::world().split_shared(0);
    let own = allowed_cores();
    let mut all = vec![0_u64; here.size() as usize];
    here.all_gather_into(&own, &mut all);
    all.iter().filter(|cores| **cores == own).count()
}

/// A number for the cores that this process may run on, such as those that `mpirun` binds it to.
fn allowed_cores() -> u64 {
    // SAFETY: the set is plain bits, of which the call writes at most as many as it is told.
    let (set, status) = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let status = libc::sched_getaffinity(0, size_of_val(&set), &mut set);
        (set, status)
    };
    // More cores than the set has bits for: all alike.
    if status != 0 {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    for core in 0..libc::CPU_SETSIZE as usize {
        // SAFETY: the set has so many bits.
        unsafe { libc::CPU_ISSET(core, &set) }.hash(&mut hasher);
    }
    hasher.finish()
}

fn number_and_size(communicator: &SimpleCommunicator) -> (usize, usize) {
    (communicator.rank() as usize, communicator.size() as usize)
}

/// Ends all ranks.
pub fn abort() -> ! {
    SimpleCommunicator::world().abort(1)
}

/// How long a rank that has nothing to do sleeps between looks: waiting inside MPI takes a core.
const NAP: Duration = Duration::from_millis(2);

/// A group of ranks, and what this one has sent to others.
pub struct Ranks {
    communicator: SimpleCommunicator,
    sent: Rc<Cell<Volume>>,
}

impl Ranks {
    /// A group whose tally is zero.
    fn new(communicator: SimpleCommunicator) -> Ranks {
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
    pub fn send<T: Transmissible>(&self, parts: &[View<'_, T>], to: usize) {
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
    pub fn receive<T: Transmissible>(&self, mut parts: Vec<ViewMut<'_, T>>, from: usize) {
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
    pub fn exchange<T: Transmissible>(
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
    pub(crate) fn start_send<'a, T: Transmissible>(
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

    /// Starts to send a part as one message whose elements lie together: a copy in `buffer`.
    ///
    /// # Panics
    ///
    /// If the buffer is shorter than the part.
    pub(crate) fn start_send_of_copy<T: Transmissible + Copy>(
        &self,
        part: View<'_, T>,
        mut buffer: Vec<T>,
        to: usize,
    ) -> OutgoingCopy<T> {
        let (rows, columns) = (part.rows(), part.columns());
        let mut below = ViewMut::new(&mut buffer, rows, columns, columns);
        for row in 0..rows {
            below.row_mut(row).copy_from_slice(part.row(row));
        }
        let copy = View::new(&buffer, rows, columns, columns);
        let request = self.start_send(&[copy], to).into_request();
        OutgoingCopy::new(request, buffer)
    }

    /// Starts to receive a compact matrix.
    ///
    /// # Panics
    ///
    /// If the buffer is shorter than the matrix.
    pub(crate) fn start_receive<T: Transmissible>(
        &self,
        mut buffer: Vec<T>,
        rows: usize,
        columns: usize,
        from: usize,
    ) -> Incoming<T> {
        let matrix = ViewMut::new(&mut buffer, rows, columns, columns);
        let Some(message) = Message::writing(&mut [matrix]) else {
            return Incoming::new(Request::complete(), buffer);
        };
        // SAFETY: a constant of the library.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: the elements are in a buffer on the heap that the result owns, and hands out or
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
        Incoming::new(Request::new(request, Some(message)), buffer)
    }

    /// Starts a broadcast from `root`, whose panel is its own, to all ranks, whose panels are
    /// copies of the same size. All ranks start theirs in the same order.
    ///
    /// # Panics
    ///
    /// If a buffer is shorter than its panel.
    pub(crate) fn start_broadcast<'a, T: Transmissible>(
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

    /// Says numbers to rank 0, which are not elements of matrices, and so are not counted.
    pub fn tell_first<T: Equivalence>(&self, numbers: &[T]) {
        self.communicator
            .process_at_rank(0)
            .send_with_tag(numbers, TAG_OF_WORDS);
    }

    /// What a rank said by [`Ranks::tell_first`], on rank 0, in the order in which it did.
    pub fn hear<T: Equivalence>(&self, from: usize) -> Vec<T> {
        let rank = self.communicator.process_at_rank(from as Rank);
        rank.receive_vec_with_tag(TAG_OF_WORDS).0
    }

    /// Rank 0's values, on all ranks.
    pub fn from_first<T: Equivalence>(&self, values: &mut [T]) {
        self.communicator.process_at_rank(0).broadcast_into(values);
    }
}

/// A request, with the datatype that it uses. It is complete when this is gone.
pub(crate) struct Request {
    request: ffi::MPI_Request,
    /// `None` where nothing travels.
    _message: Option<Message>,
}

impl Request {
    fn new(request: ffi::MPI_Request, message: Option<Message>) -> Request {
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

/// Elements of matrices have one tag: MPI keeps messages between two ranks in order.
const TAG: i32 = 1;
/// What is no element has another.
const TAG_OF_WORDS: i32 = 2;

/// One side of an exchange: an entry for each rank.
struct Sides {
    counts: Vec<i32>,
    displacements: Vec<i32>,
    types: Vec<MPI_Datatype>,
    /// What the types belong to.
    messages: Vec<Message>,
}

impl Sides {
    fn new<T: Transmissible>(
        ranks: usize,
        messages: impl Iterator<Item = (usize, Option<Message>)>,
    ) -> Sides {
        let mut sides = Sides {
            counts: vec![0; ranks],
            displacements: vec![0; ranks],
            types: vec![T::As::equivalent_datatype().as_raw(); ranks],
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
