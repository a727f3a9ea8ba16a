//! A rank's GPU: its block of C stays in the GPU's memory while products are added to it; factors
//! come from the host's memory, to where MPI has brought them.
//!
//! There is room for two panels of each factor. A launch returns at once, so while the GPU multiplies
//! one panel, the host waits for the next in MPI and copies it to the other room:
//!
//! ```text
//!     host    | MPI, copy 0 | MPI, copy 1 | MPI,  copy 2 |            time ---->
//!     GPU                   | product 0   | product 1    | product 2 |
//!                                         ^ copy 2 overwrites panel 0: it waits for product 0
//! ```
//!
//! Memory is kept for the next product: to get it from the driver takes longer than a small product.

use std::cell::RefCell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cust::event::{Event, EventFlags};
use cust::memory::DeviceBuffer;
use cust::stream::{Stream, StreamFlags, StreamWaitEventFlags};
use gpu_gemm::device::cuda::status::during;
use gpu_gemm::device::cuda::{Direction, Stage, Staging, Transfer};
use gpu_gemm::{
    Bindings, Call, Chooser, CudaDevice, CudaStream, DataType, Device, DeviceError, DeviceFacts,
    Plan, Shape, Transpose,
};
use host::cpu::view::{View, ViewMut};
use host::rung::Rung;
use host::select::Asked;

use super::{LocalError, Place};
use crate::Element;
use crate::clock::{Clock, Phase};
use crate::comm::Ranks;

/// The GPU that a rank multiplies on.
pub struct Gpu {
    // Dropped in this order: what belongs to the context before the device.
    copies: Stream,
    /// Between the GPU and memory of the host that is not page-locked.
    stage: RefCell<Stage>,
    /// Memory that nobody uses at the moment.
    free: RefCell<Vec<DeviceBuffer<u8>>>,
    plans: RefCell<HashMap<(DataType, Call), Rc<Plan>>>,
    asked: Asked,
    chooser: Arc<Chooser>,
    device: Arc<Device>,
}

/// Whether all ranks have a GPU, so that they agree on what is good for GPUs. All ranks call it.
pub fn all_have_one(ranks: &Ranks, own: Option<&Gpu>) -> bool {
    let all = ranks.all_gather(&[u8::from(own.is_some())]);
    all.into_iter().all(|has_one| has_one == 1)
}

impl Gpu {
    /// The GPU of a place, if ranks multiply on GPUs there. All ranks call it.
    ///
    /// # Errors
    ///
    /// The driver fails.
    pub fn of(place: &Place, asked: Asked) -> Result<Option<Gpu>, DeviceError> {
        // All ranks ask MPI, those without a GPU as well.
        let staging = Staging::of(Ranks::on_this_host().on_these_cores());
        let device = match &*place.device {
            Device::Cuda(device) if !asked.is_native() => device,
            _ => return Ok(None),
        };
        device.enter()?;
        let copies = Stream::new(StreamFlags::NON_BLOCKING, None);
        Ok(Some(Gpu {
            copies: copies.map_err(during("Making a stream"))?,
            stage: RefCell::new(Stage::new(staging)),
            free: RefCell::default(),
            plans: RefCell::default(),
            asked,
            chooser: place.chooser.clone(),
            device: place.device.clone(),
        }))
    }

    fn device(&self) -> &CudaDevice {
        match &*self.device {
            Device::Cuda(device) => device,
            _ => unreachable!("`of` takes no other"),
        }
    }

    /// Memory of at least `bytes`: the smallest that is free, or else new memory.
    fn memory(&self, bytes: usize) -> Result<DeviceBuffer<u8>, DeviceError> {
        let mut free = self.free.borrow_mut();
        let suits = free.iter().enumerate();
        let suits = suits.filter(|(_, memory)| memory.len() >= bytes.max(1));
        let smallest = suits.min_by_key(|(_, memory)| memory.len());
        if let Some(index) = smallest.map(|(index, _)| index) {
            return Ok(free.swap_remove(index));
        }
        // What is free is too small, and would only be in the way.
        free.clear();
        self.device().allocate(bytes.max(1))
    }

    /// Copies a matrix in the host's memory to, or from, a compact one on the GPU, and waits for it.
    ///
    /// # Safety
    ///
    /// `host` is the start of the first row and the bytes from one row to the next. The rows exist,
    /// and the copy may write them if it goes to the host. `device` has room for all of them, and
    /// no other stream uses it.
    unsafe fn copy(
        &self,
        (host, device): ((*mut u8, usize), u64),
        (height, width): (usize, usize),
        direction: Direction,
    ) -> Result<(), DeviceError> {
        let transfer = Transfer {
            direction,
            host,
            device: (device, width.max(1)),
            width,
            height,
        };
        let on = (self.device(), &self.copies);
        // SAFETY: the caller vouches for both sides, and the buffers are this GPU's.
        unsafe { self.stage.borrow_mut().copy(on, transfer)? };
        let waited = self.copies.synchronize();
        waited.map_err(during("Copying a part of a matrix"))
    }

    /// The place in the stream of products that is reached when all so far are done.
    fn multiplied(&self) -> Result<Event, DeviceError> {
        let event = Event::new(EventFlags::DEFAULT).map_err(during("Making an event"))?;
        let recorded = event.record(self.device().stream());
        recorded.map_err(during("Recording an event"))?;
        Ok(event)
    }

    /// The plan of a product, which is made and compiled once.
    fn plan(&self, data_type: DataType, call: Call) -> Result<Rc<Plan>, LocalError> {
        if let Some(known) = self.plans.borrow().get(&(data_type, call)) {
            return Ok(known.clone());
        }
        let rung = self.asked.rung(&self.chooser, data_type, call);
        let choice = rung.and_then(Rung::choice);
        let choice = choice.ok_or(LocalError::NoKernel(call.shape))?;
        if let Some(error) = self.device.lacks_tensor_cores(choice.variant) {
            return Err(error.into());
        }
        let facts = DeviceFacts::of(self.device().properties());
        let plan = choice.plan(call, &facts).map_err(DeviceError::from)?;
        self.device().compile(&plan)?;
        let plan = Rc::new(plan);
        let mut plans = self.plans.borrow_mut();
        plans.insert((data_type, call), plan.clone());
        Ok(plan)
    }

    /// A block of C, to which nothing has been added yet.
    ///
    /// # Errors
    ///
    /// The GPU has no memory for it.
    pub fn block_of_c<S: Element>(
        &self,
        rows: usize,
        columns: usize,
    ) -> Result<BlockOfC<'_, S>, DeviceError> {
        Ok(BlockOfC {
            gpu: self,
            memory: vec![self.memory(rows * columns * size_of::<S>())?],
            rows,
            columns,
            has_sums: false,
            a: Factor::default(),
            b: Factor::default(),
            workspace: None,
            timed: Vec::new(),
            kernel: "",
            element: PhantomData,
        })
    }
}

/// Room for two panels of A, or of B: one is multiplied while the next is copied.
#[derive(Default)]
struct Factor {
    rooms: [Option<DeviceBuffer<u8>>; 2],
    /// Reached when the last product that reads the room is done.
    read: [Option<Event>; 2],
    current: usize,
}

/// A rank's block of C, of sums, while products are added to it: compact, in the GPU's memory.
pub struct BlockOfC<'g, S: Element> {
    gpu: &'g Gpu,
    /// C is the first of them; the others were replaced by larger ones.
    memory: Vec<DeviceBuffer<u8>>,
    rows: usize,
    columns: usize,
    /// Whether there are sums to add to; if not, what C holds is undefined.
    has_sums: bool,
    a: Factor,
    b: Factor,
    workspace: Option<DeviceBuffer<u8>>,
    /// Before and after each product.
    timed: Vec<(Event, Event)>,
    /// Of the last product.
    kernel: &'static str,
    element: PhantomData<S>,
}

impl<S: Element> Drop for BlockOfC<'_, S> {
    fn drop(&mut self) {
        // Nobody may get its memory while a product uses it. A GPU that has failed uses none.
        let _ = self.gpu.device().stream().synchronize();
        let factors = [&mut self.a, &mut self.b];
        let rooms = factors
            .into_iter()
            .flat_map(|factor| factor.rooms.iter_mut());
        let rooms = rooms.chain([&mut self.workspace]);
        let mut free = self.gpu.free.borrow_mut();
        free.extend(rooms.filter_map(Option::take));
        free.append(&mut self.memory);
    }
}

impl<S: Element> BlockOfC<'_, S> {
    /// Copies the factors to the GPU, and launches `C += A * B`; the first product is `C = A * B`,
    /// so C is never zeroed. The factors may change when it returns. The copies count as `phase`.
    ///
    /// # Errors
    ///
    /// No kernel multiplies the parts, or the GPU fails.
    ///
    /// # Panics
    ///
    /// If the three do not fit each other.
    pub fn add<T: Element<Sum = S>>(
        &mut self,
        clock: &Clock,
        phase: Phase,
        a: View<'_, T>,
        b: View<'_, T>,
    ) -> Result<(), LocalError> {
        let shape = Shape::new(self.rows, self.columns, a.columns());
        let factors = (a.rows(), b.rows(), b.columns());
        assert_eq!(factors, (shape.m, shape.k, shape.n));
        if shape.is_empty() || shape.k == 0 {
            return Ok(());
        }
        let (gpu, replaced) = (self.gpu, &mut self.memory);
        let (a, b) = clock.time(phase, || {
            let a = self.a.upload(gpu, replaced, a)?;
            Ok::<_, DeviceError>((a, self.b.upload(gpu, replaced, b)?))
        })?;
        clock.time(Phase::Compute, || self.launch::<T>(shape, (a, b)))
    }

    /// Launches the product of compact factors at these addresses.
    fn launch<T: Element<Sum = S>>(
        &mut self,
        shape: Shape,
        (a, b): (u64, u64),
    ) -> Result<(), LocalError> {
        let call = Call::compact(shape, Transpose::No, Transpose::No, T::TYPE);
        let gpu = self.gpu;
        let plan = gpu.plan(T::PRODUCT, call)?;
        let bytes = plan.workspace_bytes();
        if self
            .workspace
            .as_ref()
            .is_none_or(|room| room.len() < bytes)
        {
            // An earlier product may still use the smaller one.
            self.memory.extend(self.workspace.take());
            self.workspace = Some(gpu.memory(bytes)?);
        }
        let workspace = self.workspace.as_ref().map_or(0, start);
        let factor = |number| T::from_integer(number).scalar();
        let c = start(&self.memory[0]);
        let bindings = Bindings {
            alpha: factor(1),
            beta: factor(i32::from(self.has_sums)),
            a: a as *mut _,
            b: b as *mut _,
            c: c as *mut _,
            workspace: workspace as *mut _,
        };
        self.kernel = plan.variant().name;
        let started = gpu.multiplied()?;
        // SAFETY: the plan is that of these matrices. All of them and the workspace live as long as
        // this block, which waits when it is dropped; factors are not overwritten before `read`.
        unsafe { gpu_gemm::run(&CudaStream::of(gpu.device()), &plan, &bindings) }?;
        self.timed.push((started, gpu.multiplied()?));
        for factor in [&mut self.a, &mut self.b] {
            factor.read[factor.current] = Some(gpu.multiplied()?);
        }
        self.has_sums = true;
        Ok(())
    }

    /// Waits for all products, and says how long the GPU has multiplied. The time that it has
    /// multiplied while the host copied or waited for a panel counts as computing.
    ///
    /// # Errors
    ///
    /// A kernel crashed, or the driver fails.
    pub fn wait(&mut self, clock: &Clock) -> Result<Duration, DeviceError> {
        let device = self.gpu.device();
        let waited = clock.time(Phase::Compute, || device.stream().synchronize());
        waited.map_err(device.after(self.kernel))?;
        let mut milliseconds = 0.0;
        for (started, ended) in self.timed.drain(..) {
            let time = ended.elapsed_time_f32(&started);
            milliseconds += f64::from(time.map_err(during("Reading a time"))?);
        }
        let multiplied = Duration::from_secs_f64((milliseconds / 1e3).max(0.0));
        clock.raise_compute_to(multiplied);
        Ok(multiplied)
    }

    /// Waits for all products, and copies the block to the host. Without a product, the host's
    /// elements stay as they are.
    ///
    /// # Errors
    ///
    /// A kernel crashed, or the driver fails.
    ///
    /// # Panics
    ///
    /// If they are not of the same size.
    pub fn fetch(&mut self, clock: &Clock, mut to: ViewMut<'_, S>) -> Result<(), DeviceError> {
        if !self.has_sums {
            return Ok(());
        }
        self.wait(clock)?;
        assert_eq!((to.rows(), to.columns()), (self.rows, self.columns));
        let host = (to.as_mut_ptr().cast(), to.leading() * size_of::<S>());
        let size = (self.rows, self.columns * size_of::<S>());
        let sides = (host, start(&self.memory[0]));
        // SAFETY: the view has these rows exclusively, and all products are done.
        clock.time(Phase::Collect, || unsafe {
            self.gpu.copy(sides, size, Direction::ToHost)
        })
    }
}

impl Factor {
    /// Copies a panel to the room that the last but one was in, when no product reads that any
    /// longer; returns where it begins.
    fn upload<T: Element>(
        &mut self,
        gpu: &Gpu,
        replaced: &mut Vec<DeviceBuffer<u8>>,
        panel: View<'_, T>,
    ) -> Result<u64, DeviceError> {
        self.current = 1 - self.current;
        let (rows, width) = (panel.rows(), panel.columns() * size_of::<T>());
        let room = &mut self.rooms[self.current];
        if room.as_ref().is_none_or(|room| room.len() < rows * width) {
            // A product may still read it.
            replaced.extend(room.take());
            *room = Some(gpu.memory(rows * width)?);
        }
        let to = room.as_ref().map_or(0, start);
        if let Some(read) = self.read[self.current].take() {
            let told = gpu.copies.wait_event(read, StreamWaitEventFlags::DEFAULT);
            told.map_err(during("Letting a stream wait"))?;
        }
        let from = panel.elements().as_ptr().cast_mut().cast();
        let host = (from, panel.leading() * size_of::<T>());
        // SAFETY: the view has these rows, which are only read; the room is large enough, and the
        // stream of copies waits for the product that reads it.
        unsafe { gpu.copy((host, to), (rows, width), Direction::ToDevice)? };
        Ok(to)
    }
}

fn start(memory: &DeviceBuffer<u8>) -> u64 {
    memory.as_device_ptr().as_raw()
}
