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
//! Memory is kept for the next product, as the host's is (`aligned.rs`): to get some from the
//! driver takes longer than a small product, and page-locked memory longer than a large one. What
//! other ranks read of it stays open, too (`peer_memory.rs`).
//!
//! Matrices in the host's memory are not page-locked. Parts of them go to the GPU, and come back,
//! by several threads ([`Stage`]).

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::marker::PhantomData;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cust::event::{Event, EventFlags};
use cust::memory::{DeviceBuffer, LockedBuffer};
use cust::stream::{Stream, StreamFlags, StreamWaitEventFlags};
use gpu_gemm::device::cuda::rectangle::{Side, copy_on};
use gpu_gemm::device::cuda::status::during;
use gpu_gemm::device::cuda::{Direction, Stage, Staging, Transfer};
use gpu_gemm::{
    Batch, Bindings, Call, Chooser, CudaDevice, CudaStream, DataType, Device, DeviceError,
    DeviceFacts, Operand, Plan, Shape, Transpose,
};
use host::cpu::view::{View, ViewMut};
use host::rung::Rung;
use host::select::Asked;

use super::peer_memory::PeerMemory;
use super::{LocalError, Place};
use crate::Element;
use crate::comm::ranks_on_these_cores;
use crate::comm::transport::Way;
use crate::nccl::{Communicator, Nccl, NcclError};

/// Elements of a part begin at a multiple of so many elements: of at least 256 bytes, as an
/// allocation does.
const ALIGNMENT: usize = 128;

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

    /// Room for a part in the GPU's memory.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn room<T: Element>(&self, elements: usize) -> Result<Room<'_, T>, DeviceError> {
        let bytes = (elements * size_of::<T>()).max(1);
        let place = |free: &DeviceBuffer<u8>| (free.len(), addresses(free).start);
        let kept = smallest(&mut self.free.borrow_mut(), bytes, place);
        let memory = match kept {
            Some(memory) => memory,
            // What is free is too small, and would only be in the way; but other ranks may read it.
            None => {
                let is_open = |free: &DeviceBuffer<u8>| self.peers.may_read(addresses(free));
                self.free.borrow_mut().retain(is_open);
                self.device().allocate(bytes)?
            }
        };
        Ok(Room {
            start: memory.as_device_ptr().as_ptr().cast_mut().cast(),
            memory: Some(memory),
            gpu: self,
            elements: PhantomData,
        })
    }

    /// What other ranks read of this GPU's memory, and this rank of others'.
    pub fn peers(&self) -> &PeerMemory {
        &self.peers
    }

    /// Room for a part in page-locked memory of the host, from and to which the GPU copies by
    /// itself.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn locked<T: Element>(&self, elements: usize) -> Result<Locked<'_, T>, DeviceError> {
        let bytes = (elements * size_of::<T>()).max(1);
        let place = |free: &LockedBuffer<u8>| (free.len(), free.as_ptr().addr());
        let kept = smallest(&mut self.free_locked.borrow_mut(), bytes, place);
        let mut memory = match kept {
            Some(memory) => memory,
            None => {
                self.free_locked.borrow_mut().clear();
                // SAFETY: whatever the memory holds is a number.
                unsafe { LockedBuffer::uninitialized(bytes) }
                    .map_err(during("Allocating page-locked memory"))?
            }
        };
        Ok(Locked {
            start: memory.as_mut_slice().as_mut_ptr().cast(),
            memory: Some(memory),
            gpu: self,
            elements: PhantomData,
        })
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

    /// A block of C, to which nothing has been added yet.
    ///
    /// # Errors
    ///
    /// The GPU has no memory for it.
    pub fn block_of_c<T: Element>(
        &self,
        rows: usize,
        columns: usize,
    ) -> Result<BlockOfC<'_, T>, DeviceError> {
        Ok(BlockOfC {
            room: self.room(rows * columns)?,
            rows,
            columns,
            done: 0,
            workspaces: Vec::new(),
            timed: Vec::new(),
            kernel: "",
        })
    }

    /// A block of C that has the host's elements, which products are added to. All copies are done
    /// when it returns.
    ///
    /// # Errors
    ///
    /// The GPU has no memory for it, or the driver fails.
    pub fn block_from<T: Element>(
        &self,
        mut c: ViewMut<'_, T>,
    ) -> Result<BlockOfC<'_, T>, DeviceError> {
        let mut block = self.block_of_c(c.rows(), c.columns())?;
        let host = (c.as_mut_ptr().cast(), c.leading() * size_of::<T>());
        let part = OnGpu::compact(block.room.start, c.rows(), c.columns());
        // SAFETY: a view has its rows, the block its own, and the copy is waited for.
        unsafe { self.copy_staged(host, part, Direction::ToDevice)? };
        self.finish_copies()?;
        block.done = c.columns();
        Ok(block)
    }

    /// Launches `C += A * B` for these columns of a rank's block of C, which is of sums. Their
    /// first product is `C = A * B`, so C is never zeroed. It does not wait.
    ///
    /// # Errors
    ///
    /// No kernel multiplies the parts, or the GPU fails.
    ///
    /// # Panics
    ///
    /// If the three do not fit each other, or a product of columns further left is missing.
    ///
    /// # Safety
    ///
    /// A and B live, and nothing writes them, until the stream of products has done it.
    pub unsafe fn multiply<T: Element>(
        &self,
        a: OnGpu<T>,
        b: OnGpu<T>,
        c: &mut BlockOfC<'_, T::Sum>,
        columns: Range<usize>,
    ) -> Result<(), LocalError> {
        let shape = Shape::new(c.rows, columns.len(), a.columns);
        assert_eq!((a.rows, b.rows, b.columns), (c.rows, a.columns, shape.n));
        assert!(columns.end <= c.columns);
        if shape.is_empty() || shape.k == 0 {
            return Ok(());
        }
        let device = self.device();
        let adds = columns.end <= c.done;
        assert!(adds || columns.start == c.done);
        let plan = self.plan::<T>(a, b, shape, c.columns)?;
        let room = c.workspaces.last().map_or(0, |(_, bytes)| *bytes);
        if c.workspaces.is_empty() || room < plan.workspace_bytes() {
            // An earlier product may still use the smaller one.
            let bytes = plan.workspace_bytes();
            let room = c.room.gpu.room(bytes.div_ceil(size_of::<f64>()))?;
            c.workspaces.push((room, bytes));
        }
        let workspace = c.workspaces.last().map(|(room, _)| room.start);
        let factor = |number| T::from_integer(number).scalar();
        let bindings = Bindings {
            alpha: factor(1),
            beta: factor(i32::from(adds)),
            a: a.start.cast(),
            b: b.start.cast(),
            c: c.room.start.wrapping_add(columns.start).cast(),
            workspace: workspace.map_or(std::ptr::null_mut(), <*mut f64>::cast),
        };
        c.kernel = plan.variant().name;
        let started = self.multiplied()?;
        // SAFETY: the plan is that of these matrices, C and the workspace live as long as `c`,
        // which waits when it is dropped, and the caller vouches for A and B.
        unsafe { gpu_gemm::run(&CudaStream::of(device), &plan, &bindings) }?;
        c.timed.push((started, self.multiplied()?));
        c.done = c.done.max(columns.end);
        Ok(())
    }

    /// The plan of a product, which is made and compiled once.
    fn plan<T: Element>(
        &self,
        a: OnGpu<T>,
        b: OnGpu<T>,
        shape: Shape,
        ldc: usize,
    ) -> Result<Rc<Plan>, LocalError> {
        let operand =
            |part: OnGpu<T>| Operand::at(part.start as usize, part.leading, T::TYPE, Transpose::No);
        let call = Call {
            shape,
            a: operand(a),
            b: operand(b),
            ldc,
            batch: Batch::ONE,
        };
        if let Some(known) = self.plans.borrow().get(&(T::PRODUCT, call)) {
            return Ok(known.clone());
        }
        let rung = self.asked.rung(&self.chooser, T::PRODUCT, call);
        let choice = rung.and_then(Rung::choice);
        let choice = choice.ok_or(LocalError::NoKernel(shape))?;
        if let Some(error) = self.device.lacks_tensor_cores(choice.variant) {
            return Err(error.into());
        }
        let facts = DeviceFacts::of(self.device().properties());
        let plan = choice.plan(call, &facts).map_err(DeviceError::from)?;
        self.device().compile(&plan)?;
        let plan = Rc::new(plan);
        let mut plans = self.plans.borrow_mut();
        plans.insert((T::PRODUCT, call), plan.clone());
        Ok(plan)
    }

    /// Waits for all products so far.
    ///
    /// # Errors
    ///
    /// A kernel crashed, or the driver fails.
    pub fn wait_for<T: Element>(&self, c: &BlockOfC<'_, T>) -> Result<(), DeviceError> {
        let waited = self.device().stream().synchronize();
        waited.map_err(self.device().after(c.kernel))
    }

    /// How long the GPU has multiplied, of products that were waited for.
    ///
    /// # Errors
    ///
    /// The driver fails.
    pub fn multiplied_for<T: Element>(&self, c: &BlockOfC<'_, T>) -> Result<Duration, DeviceError> {
        let mut milliseconds = 0.0;
        for (started, ended) in &c.timed {
            let time = ended.elapsed_time_f32(started);
            milliseconds += f64::from(time.map_err(during("Reading a time"))?);
        }
        Ok(Duration::from_secs_f64((milliseconds / 1e3).max(0.0)))
    }

    /// Copies a block that was waited for to the host. Without a product, the host's elements stay
    /// as they are.
    ///
    /// # Errors
    ///
    /// The driver fails.
    ///
    /// # Panics
    ///
    /// If they are not of the same size, or only some columns have a product.
    pub fn fetch<T: Element>(
        &self,
        c: &BlockOfC<'_, T>,
        to: ViewMut<'_, T>,
    ) -> Result<(), DeviceError> {
        if c.done == 0 {
            return Ok(());
        }
        assert_eq!(c.done, c.columns);
        self.download(OnGpu::compact(c.room.start, c.rows, c.columns), to)
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

/// Takes the smallest of what has so much room. Each has its bytes and its address; of two of the same
/// size it is always the same one, so that a product gets what the one before had.
fn smallest<M>(free: &mut Vec<M>, bytes: usize, place: impl Fn(&M) -> (usize, usize)) -> Option<M> {
    let places = free.iter().map(place).enumerate();
    let suits = places.filter(|(_, (room, _))| *room >= bytes);
    let (index, _) = suits.min_by_key(|(_, place)| *place)?;
    Some(free.swap_remove(index))
}

/// Where an allocation lies.
fn addresses(memory: &DeviceBuffer<u8>) -> Range<usize> {
    let start = memory.as_device_ptr().as_raw() as usize;
    start..start + memory.len()
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

/// Memory of a GPU. When it is dropped, another part may get it: so no stream may still use it.
pub struct Room<'g, T> {
    start: *mut T,
    memory: Option<DeviceBuffer<u8>>,
    gpu: &'g Gpu,
    elements: PhantomData<T>,
}

impl<T: Element> Room<'_, T> {
    /// A compact matrix at its beginning.
    pub fn part(&self, rows: usize, columns: usize) -> OnGpu<T> {
        self.part_at(0, rows, columns)
    }

    /// A compact matrix whose first element is one of the room's.
    ///
    /// # Panics
    ///
    /// If it does not fit.
    pub fn part_at(&self, first: usize, rows: usize, columns: usize) -> OnGpu<T> {
        let bytes = (first + rows * columns) * size_of::<T>();
        assert!(
            self.memory
                .as_ref()
                .is_some_and(|memory| bytes <= memory.len())
        );
        OnGpu::compact(self.start.wrapping_add(first), rows, columns)
    }
}

impl<T> Drop for Room<'_, T> {
    fn drop(&mut self) {
        self.gpu.free.borrow_mut().extend(self.memory.take());
    }
}

/// Page-locked memory of the host, for which the same holds.
pub struct Locked<'g, T> {
    pub start: *mut T,
    memory: Option<LockedBuffer<u8>>,
    gpu: &'g Gpu,
    elements: PhantomData<T>,
}

impl<T> Drop for Locked<'_, T> {
    fn drop(&mut self) {
        self.gpu.free_locked.borrow_mut().extend(self.memory.take());
    }
}

/// Where the second of two parts begins that lie in one room.
pub fn after(elements: usize) -> usize {
    elements.next_multiple_of(ALIGNMENT)
}

/// A part of a matrix in a GPU's memory, row by row.
#[derive(Debug)]
pub struct OnGpu<T> {
    pub start: *mut T,
    pub rows: usize,
    pub columns: usize,
    /// Elements from the start of a row to the start of the next.
    leading: usize,
}

impl<T> Clone for OnGpu<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for OnGpu<T> {}

impl<T> OnGpu<T> {
    /// A matrix without gaps between its rows.
    pub fn compact(start: *mut T, rows: usize, columns: usize) -> OnGpu<T> {
        OnGpu {
            start,
            rows,
            columns,
            leading: columns.max(1),
        }
    }

    /// Some rows and columns of it.
    ///
    /// # Panics
    ///
    /// If it does not have them.
    pub fn part(self, rows: Range<usize>, columns: Range<usize>) -> OnGpu<T> {
        assert!(rows.end <= self.rows && columns.end <= self.columns);
        let first = rows.start * self.leading + columns.start;
        OnGpu {
            start: self.start.wrapping_add(first),
            rows: rows.len(),
            columns: columns.len(),
            leading: self.leading,
        }
    }

    /// Whether no elements of others lie between its rows.
    pub fn is_compact(self) -> bool {
        self.rows <= 1 || self.leading == self.columns
    }

    pub fn elements(self) -> usize {
        self.rows * self.columns
    }

    fn width(self) -> usize {
        self.columns * size_of::<T>()
    }

    fn side(self) -> Side {
        Side::Device(self.start as u64, self.leading * size_of::<T>())
    }
}

/// This rank's block of C while products are added to it: compact, in the GPU's memory.
pub struct BlockOfC<'g, T: Element> {
    room: Room<'g, T>,
    rows: usize,
    columns: usize,
    /// So many columns, from the left, have a sum to add to; the elements of others are not numbers
    /// yet.
    done: usize,
    /// For the kernels, each with its bytes.
    workspaces: Vec<(Room<'g, f64>, usize)>,
    /// Before and after each product.
    timed: Vec<(Event, Event)>,
    /// Of the last product.
    kernel: &'static str,
}

impl<T: Element> BlockOfC<'_, T> {
    /// From now on it is as if nothing had been added yet.
    pub fn start_again(&mut self) {
        self.done = 0;
    }
}

impl<T: Element> Drop for BlockOfC<'_, T> {
    fn drop(&mut self) {
        // Its rooms must not be used any longer. If the GPU has failed, it does not use them.
        let _ = self.room.gpu.device().stream().synchronize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_that_suits_is_taken_and_of_two_always_the_same() {
        let all = [(8, 30), (8, 10), (16, 0), (4, 0)];
        for shift in 0..all.len() {
            let mut free = all.to_vec();
            free.rotate_left(shift);
            let mut take = |bytes| smallest(&mut free, bytes, |place| *place);
            assert_eq!(take(5), Some((8, 10)));
            assert_eq!(take(8), Some((8, 30)));
            assert_eq!(take(17), None);
            assert_eq!(take(0), Some((4, 0)));
            assert_eq!(free, [(16, 0)]);
        }
    }
}
