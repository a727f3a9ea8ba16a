//! Ranks of a job that `mpirun` started, over an MPI library.

use std::cell::Cell;
use std::fmt::Display;
use std::fs;
use std::marker::PhantomData;
use std::ptr;
use std::rc::Rc;
use std::time::Duration;

use mpi::datatype::Equivalence;
use mpi::environment::{self, Universe};
use mpi::ffi::{self, MPI_Datatype};
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::{AsRaw, Communicator, CommunicatorCollectives, Destination, Root, Source};
use mpi::{Rank, Threading};

use verification::cpu::view::{View, ViewMut};

use super::Transmissible;
use super::message::Message;
use super::under_way::{Compact, Panel, Request, UnderWay};
use crate::volume::Volume;

/// Whether a launcher started this process; to be asked before MPI starts.
pub fn is_launched() -> bool {
    // Of Open MPI, of launchers that speak PMI (MPICH, Intel MPI, Slurm), and of PMIx.
    let launchers = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"];
    let is_there = |variable: &&str| std::env::var_os(variable).is_some();
    launchers.iter().any(is_there)
}

/// Starts MPI, which ends when the result is dropped; `None` if something else has started it.
pub fn start() -> Option<Universe> {
    Some(environment::initialize_with_threading(Threading::Funneled)?.0)
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

/// Ends all ranks.
pub fn abort() -> ! {
    SimpleCommunicator::world().abort(1)
}

/// How long a rank that has nothing to do sleeps between looks: waiting inside MPI takes a core.
const NAP: Duration = Duration::from_millis(2);

/// Elements of matrices have one tag: MPI keeps messages between two ranks in order.
const TAG: i32 = 1;
/// What is no element has another.
const TAG_OF_WORDS: i32 = 2;

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

    /// All ranks of the job.
    pub fn all() -> Ranks {
        Ranks::new(SimpleCommunicator::world())
    }

    /// Those on this host. All ranks must call it.
    pub fn on_this_host() -> Ranks {
        Ranks::new(SimpleCommunicator::world().split_shared(0))
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
    /// without one. What is sent among them is counted here, too. All ranks must call it.
    pub fn split(&self, color: Option<usize>) -> Option<Ranks> {
        let color = color.map_or(Color::undefined(), |color| Color::with_value(color as i32));
        Some(Ranks {
            communicator: self.communicator.split_by_color(color)?,
            sent: self.sent.clone(),
        })
    }

    /// Sends parts as one message, and returns when their buffers can be used again.
    pub fn send<T: Transmissible>(&self, parts: &[View<'_, T>], to: usize) {
        self.start_send(parts, to).wait();
    }

    /// Receives what [`Ranks::send`] sent, into parts of the same sizes.
    pub fn receive<T: Transmissible>(&self, mut parts: Vec<ViewMut<'_, T>>, from: usize) {
        let message = Message::writing(&mut parts);
        UnderWay::new(self.receiving(message, from), parts).wait();
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
    fn sending<T: Transmissible>(&self, parts: &[View<'_, T>], to: usize) -> Request {
        let message = Message::reading(parts);
        if let Some(message) = &message {
            self.count(message.elements, 1);
        }
        Request::start(message, |datatype, request| {
            // SAFETY: the datatype describes elements that the caller keeps until the request is
            // complete.
            unsafe {
                ffi::MPI_Isend(
                    ptr::null(), // MPI_BOTTOM
                    1,
                    datatype,
                    to as Rank,
                    TAG,
                    self.communicator.as_raw(),
                    request,
                )
            };
        })
    }

    /// Starts to receive a message. The caller keeps its elements until the request is complete.
    fn receiving(&self, message: Option<Message>, from: usize) -> Request {
        Request::start(message, |datatype, request| {
            // SAFETY: as above; the elements are borrowed exclusively.
            unsafe {
                ffi::MPI_Irecv(
                    ptr::null_mut(),
                    1,
                    datatype,
                    from as Rank,
                    TAG,
                    self.communicator.as_raw(),
                    request,
                )
            };
        })
    }

    /// Starts to send parts as one message.
    pub(crate) fn start_send<'a, T: Transmissible>(
        &self,
        parts: &[View<'a, T>],
        to: usize,
    ) -> UnderWay<PhantomData<&'a [T]>> {
        UnderWay::new(self.sending(parts, to), PhantomData)
    }

    /// Starts to send a part as one contiguous message: a copy in `buffer`.
    ///
    /// # Panics
    ///
    /// If the buffer is shorter than the part.
    pub(crate) fn start_send_of_copy<T: Transmissible + Copy>(
        &self,
        part: View<'_, T>,
        buffer: Vec<T>,
        to: usize,
    ) -> UnderWay<Compact<T>> {
        let mut copy = Compact::new(buffer, part.rows(), part.columns());
        for row in 0..part.rows() {
            copy.view_mut().row_mut(row).copy_from_slice(part.row(row));
        }
        let request = self.sending(&[copy.view()], to);
        UnderWay::new(request, copy)
    }

    /// Starts to receive a matrix.
    ///
    /// # Panics
    ///
    /// If the buffer is shorter than the matrix.
    pub(crate) fn start_receive<T: Transmissible>(
        &self,
        mut matrix: Compact<T>,
        from: usize,
    ) -> UnderWay<Compact<T>> {
        let message = Message::writing(&mut [matrix.view_mut()]);
        UnderWay::new(self.receiving(message, from), matrix)
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
    ) -> UnderWay<Panel<'a, T>> {
        let message = match &mut panel {
            Panel::Own(view) => Message::reading(&[*view]),
            Panel::Copy(copy) => Message::writing(&mut [copy.view_mut()]),
        };
        let others = self.size() as u64 - 1;
        let message = message.filter(|_| others > 0);
        if let (Some(message), Panel::Own(_)) = (&message, &panel) {
            self.count(others * message.elements, others);
        }
        let request = Request::start(message, |datatype, request| {
            // SAFETY: the elements stay borrowed, or in a buffer on the heap that the result owns,
            // until the request is complete. The root's are only read.
            unsafe {
                ffi::MPI_Ibcast(
                    ptr::null_mut(),
                    1,
                    datatype,
                    root as Rank,
                    self.communicator.as_raw(),
                    request,
                )
            };
        });
        UnderWay::new(request, panel)
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
    pub fn from_first<T: Equivalence, const N: usize>(&self, mut values: [T; N]) -> [T; N] {
        let first = self.communicator.process_at_rank(0);
        first.broadcast_into(&mut values[..]);
        values
    }

    /// What each rank says, in the order of ranks. All of them must call it.
    pub fn all_texts(&self, own: &str) -> Vec<String> {
        let lengths = self.all_gather(&[own.len() as u64]);
        // MPI refuses to gather nothing.
        let longest = lengths.iter().copied().max().unwrap_or(0).max(1) as usize;
        let mut bytes = own.as_bytes().to_vec();
        bytes.resize(longest, 0);
        let all = self.all_gather(&bytes);
        let text = |(text, length): (&[u8], &u64)| {
            String::from_utf8_lossy(&text[..*length as usize]).into_owned()
        };
        all.chunks(longest).zip(&lengths).map(text).collect()
    }

    /// The first rank that could not do something, and why, without a full stop. All ranks call it,
    /// and all get the same answer.
    pub fn first_failure(&self, own: Option<impl Display>) -> Option<(usize, String)> {
        let own = own.map_or(String::new(), |why| why.to_string());
        let reasons = self.all_texts(&own);
        let rank = reasons.iter().position(|reason| !reason.is_empty())?;
        Some((rank, reasons[rank].trim_end_matches('.').to_string()))
    }

    /// How many of these ranks may run on the same cores as this one, itself among them. All must
    /// call it.
    pub fn on_these_cores(&self) -> usize {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mut lines = status.lines();
        let cores = lines.find(|line| line.starts_with("Cpus_allowed:"));
        let own = cores.unwrap_or_default();
        let all = self.all_texts(own);
        all.iter().filter(|cores| *cores == own).count()
    }
}

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
