//! A rank's GPU: parts of A, B and C in its memory, where they stay from one product to the next.
//!
//! It has two streams. On one, parts arrive and leave; on the other they are multiplied. Whoever
//! reads what the other stream writes waits for an event:
//!
//! ```text
//!     copies      | panel 0 | panel 1      | panel 2      |        time ---->
//!                           \    event     \  ^  event
//!     products               | panel 0     |--+ panel 1      | panel 2      |
//!                              reads its     event: the room of panel 0 is free for panel 2
//! ```
//!
//! Memory is kept for the next product, as the host's is (`aligned.rs`).
//!
//! Matrices in the host's memory are not page-locked. Parts of them go to the GPU, and come back,
//! by several threads ([`Stage`]).

mod block_of_c;
mod memory;
mod peer_memory;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use cust::event::{Event, EventFlags};
use cust::memory::{DeviceBuffer, LockedBuffer};
use cust::stream::{Stream, StreamFlags, StreamWaitEventFlags};
use gpu_gemm::device::cuda::rectangle::{Side, copy_on};
use gpu_gemm::device::cuda::status::during;
use gpu_gemm::device::cuda::{Direction, Stage, Staging, Transfer};
use gpu_gemm::{Call, Chooser, CudaDevice, DataType, Device, DeviceError, Plan};
use host::cpu::view::{View, ViewMut};
use host::select::Asked;

use super::Place;
use crate::Element;
use crate::comm::ranks_on_these_cores;
use crate::comm::transport::Way;
use crate::nccl::{Communicator, Nccl, NcclError};

pub use block_of_c::BlockOfC;
pub use memory::{Locked, OnGpu, Room, after};
pub use peer_memory::PeerMemory;

/// The GPU that a rank multiplies on.
pub struct Gpu {
    // Dropped in this order: what belongs to the context before the device.
    /// In the same order on all ranks: NCCL ends a communicator only when all of its ranks end it,
    /// so ranks that ended two in different orders would wait for each other forever.
    communicators: RefCell<BTreeMap<Line, Rc<Communicator>>>,
    copies: Stream,
    /// Between the GPU and memory of the host that is not page-locked.
    stage: RefCell<Stage>,
    /// Threads that copy between these.
    pub copy_threads: usize,
    /// Memory that nobody uses at the moment.
    free: RefCell<Vec<DeviceBuffer<u8>>>,
    free_locked: RefCell<Vec<LockedBuffer<u8>>>,
    peers: PeerMemory,
    plans: RefCell<HashMap<(DataType, Call), Rc<Plan>>>,
    asked: Asked,
    chooser: Arc<Chooser>,
    pub way: Way,
    nccl: Option<Nccl>,
    device: Arc<Device>,
}

/// Ranks of a job that are a communicator of NCCL's, as each of them names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Line {
    /// All of so many ranks.
    All(usize),
    /// A row of a grid of so many rows and columns.
    Row(usize, usize),
    /// A column.
    Column(usize, usize),
}

impl Gpu {
    /// The GPU of a place, if ranks multiply on GPUs there. All ranks call it.
    ///
    /// # Errors
    ///
    /// The driver fails.
    pub fn of(place: &Place, asked: Asked) -> Result<Option<Gpu>, DeviceError> {
        let (Device::Cuda(device), Some(transport)) = (&*place.device, &place.transport) else {
            return Ok(None);
        };
        device.enter()?;
        let staging = Staging::of(ranks_on_these_cores());
        let copies = Stream::new(StreamFlags::NON_BLOCKING, None);
        Ok(Some(Gpu {
            communicators: RefCell::default(),
            copies: copies.map_err(during("Making a stream"))?,
            stage: RefCell::new(Stage::new(staging)),
            copy_threads: staging.threads,
            free: RefCell::default(),
            free_locked: RefCell::default(),
            peers: PeerMemory::default(),
            plans: RefCell::default(),
            asked,
            chooser: place.chooser.clone(),
            way: transport.way,
            nccl: transport.nccl.clone(),
            device: place.device.clone(),
        }))
    }

    fn device(&self) -> &CudaDevice {
        match &*self.device {
            Device::Cuda(device) => device,
            _ => unreachable!("`of` takes no other"),
        }
    }

    /// The stream on which parts arrive and leave.
    pub fn copies(&self) -> &Stream {
        &self.copies
    }

    /// NCCL's communicator of some ranks, of which this is one. The first call for it joins them,
    /// so all of them must call it then.
    ///
    /// # Errors
    ///
    /// NCCL fails.
    pub fn communicator(
        &self,
        line: Line,
        join: impl FnOnce(&Nccl) -> Result<Communicator, NcclError>,
    ) -> Result<Rc<Communicator>, NcclError> {
        if let Some(known) = self.communicators.borrow().get(&line) {
            return Ok(known.clone());
        }
        let nccl = self.nccl.as_ref().expect("the way is NCCL");
        let joined = Rc::new(join(nccl)?);
        self.communicators.borrow_mut().insert(line, joined.clone());
        Ok(joined)
    }

    /// NCCL.
    ///
    /// # Panics
    ///
    /// If that is not the way.
    pub fn nccl(&self) -> &Nccl {
        self.nccl.as_ref().expect("the way is NCCL")
    }

    /// What other ranks read of this GPU's memory, and this rank of others'.
    pub fn peers(&self) -> &PeerMemory {
        &self.peers
    }

    /// Starts to copy a part from the host's memory, on the stream of copies. Of a large part the
    /// last buffers at most are still on their way when it returns.
    ///
    /// # Errors
    ///
    /// The driver fails.
    ///
    /// # Panics
    ///
    /// If they are not of the same size.
    ///
    /// # Safety
    ///
    /// Until the stream has done it, the matrix lives and does not change, and nothing else uses
    /// the part.
    pub unsafe fn upload<T: Element>(
        &self,
        from: View<'_, T>,
        to: OnGpu<T>,
    ) -> Result<(), DeviceError> {
        assert_eq!((from.rows(), from.columns()), (to.rows, to.columns));
        let start = from.elements().as_ptr().cast_mut().cast();
        let host = (start, from.leading() * size_of::<T>());
        // SAFETY: a view has its rows, a part its own; the caller vouches for the rest.
        unsafe { self.copy_staged(host, to, Direction::ToDevice) }
    }

    /// Copies a part from, or to, the host's memory: where its first row begins, and the bytes from
    /// there to the next.
    ///
    /// # Safety
    ///
    /// As for [`Stage::copy`].
    unsafe fn copy_staged<T: Element>(
        &self,
        host: (*mut u8, usize),
        part: OnGpu<T>,
        direction: Direction,
    ) -> Result<(), DeviceError> {
        let transfer = Transfer {
            direction,
            host,
            device: (part.start as u64, part.leading * size_of::<T>()),
            width: part.width(),
            height: part.rows,
        };
        let on = (self.device(), &self.copies);
        // SAFETY: the caller vouches for both sides, and the buffers are this GPU's.
        unsafe { self.stage.borrow_mut().copy(on, transfer) }
    }

    /// Starts to copy a part to, or from, a compact matrix in page-locked memory, on the stream of
    /// copies.
    ///
    /// # Errors
    ///
    /// The driver fails.
    ///
    /// # Safety
    ///
    /// The memory has room for it. Until the stream has done it, nothing writes the source or uses
    /// the target.
    pub unsafe fn copy_locked<T: Element>(
        &self,
        locked: *mut T,
        part: OnGpu<T>,
        direction: Direction,
    ) -> Result<(), DeviceError> {
        let host = Side::Host(locked.cast(), part.width());
        let (from, to) = match direction {
            Direction::ToDevice => (host, part.side()),
            Direction::ToHost => (part.side(), host),
        };
        // SAFETY: the caller vouches for both.
        unsafe { copy_on(&self.copies, from, to, part.width(), part.rows) }
    }

    /// Starts to copy a part, of this GPU's memory or of another rank's, to one of the same size, on
    /// the stream of copies.
    ///
    /// # Errors
    ///
    /// The driver fails.
    ///
    /// # Safety
    ///
    /// As for [`Gpu::upload`].
    pub unsafe fn pack<T: Element>(&self, from: OnGpu<T>, to: OnGpu<T>) -> Result<(), DeviceError> {
        assert_eq!((from.rows, from.columns), (to.rows, to.columns));
        // SAFETY: the caller vouches for both.
        unsafe { copy_on(&self.copies, from.side(), to.side(), to.width(), to.rows) }
    }

    /// Products that are launched from now on wait for the copies so far.
    ///
    /// # Errors
    ///
    /// The driver fails.
    pub fn products_wait_for_copies(&self) -> Result<(), DeviceError> {
        let arrived = recorded(&self.copies)?;
        wait_on(self.device().stream(), arrived)
    }

    /// Copies that are started from now on wait for a place in the stream of products.
    ///
    /// # Errors
    ///
    /// The driver fails.
    pub fn copies_wait_for(&self, products: Event) -> Result<(), DeviceError> {
        wait_on(&self.copies, products)
    }

    /// The place in the stream of copies that is reached when all so far are done.
    ///
    /// # Errors
    ///
    /// The driver fails.
    pub fn copied(&self) -> Result<Event, DeviceError> {
        recorded(&self.copies)
    }

    /// The place in the stream of products that is reached when all so far are done.
    ///
    /// # Errors
    ///
    /// The driver fails.
    pub fn multiplied(&self) -> Result<Event, DeviceError> {
        recorded(self.device().stream())
    }

    /// Waits on the host for all copies so far.
    ///
    /// # Errors
    ///
    /// The driver fails.
    pub fn finish_copies(&self) -> Result<(), DeviceError> {
        let waited = self.copies.synchronize();
        waited.map_err(during("Waiting for parts of matrices"))
    }

    /// Copies a part to the host, and waits for it.
    ///
    /// # Errors
    ///
    /// The driver fails.
    ///
    /// # Panics
    ///
    /// If they are not of the same size.
    pub fn download<T: Element>(
        &self,
        part: OnGpu<T>,
        mut to: ViewMut<'_, T>,
    ) -> Result<(), DeviceError> {
        assert_eq!((to.rows(), to.columns()), (part.rows, part.columns));
        let target = (to.as_mut_ptr().cast(), to.leading() * size_of::<T>());
        // SAFETY: both have these rows, the view exclusively; the copy is done when it returns.
        unsafe { self.copy_staged(target, part, Direction::ToHost) }
    }
}

/// The place that a stream has been told of so far.
fn recorded(stream: &Stream) -> Result<Event, DeviceError> {
    let event = Event::new(EventFlags::DEFAULT).map_err(during("Making an event"))?;
    let recorded = event.record(stream);
    recorded.map_err(during("Recording an event"))?;
    Ok(event)
}

/// Lets a stream wait for a place in another.
fn wait_on(stream: &Stream, event: Event) -> Result<(), DeviceError> {
    let told = stream.wait_event(event, StreamWaitEventFlags::DEFAULT);
    told.map_err(during("Letting a stream wait"))
}

/// Waits on the host until a stream is there.
///
/// # Errors
///
/// The driver fails.
pub fn wait_on_host(event: Event) -> Result<(), DeviceError> {
    event.synchronize().map_err(during("Waiting for an event"))
}
