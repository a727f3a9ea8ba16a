//! Several devices that multiply one product: what each computes is the split's to say
//! ([`Split`]), and each part of it is a plan like any other.
//!
//! ```text
//!     device 0   copies     |  b1 ->  |  b2 ->  |
//!                launches   |  a0 b0  |  a0 b1  |  a0 b2  |      time ---->
//!     device 1   copies     |  b2 ->  |  b0 ->  |
//!                launches   |  a1 b1  |  a1 b2  |  a1 b0  |
//! ```
//!
//! Every device has two streams. On one, panels arrive from other devices, straight from the
//! memory in which they lie; on the other, those that have arrived are multiplied. An event
//! between the two is all the synchronization there is: a panel that is read is never written
//! while the product runs.
//!
//! `streamed.rs` begins and ends in the host's memory, and multiplies while matrices arrive.

mod streamed;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cust::context::CurrentContext;
use cust::event::{Event, EventFlags};
use cust::stream::{Stream, StreamFlags, StreamWaitEventFlags};

use super::cuda::rectangle::{Side, copy, copy_between};
use super::cuda::staged::{Direction, Job, Stage, Transfer, copy_all};
use super::cuda::status::during;
use super::cuda::{CudaDevice, CudaStream, Link, Staging};
use super::error::DeviceError;
use super::simulator::Simulator;
use crate::backend::run;
use crate::buffer::Buffer;
use crate::call::{Batch, Call, Factor, Operand, Shape, Transpose};
use crate::gpu::DeviceFacts;
use crate::launch::{Bindings, Element, Scalar};
use crate::plan::{Plan, PlanError};
use crate::split::{Block, Panel, Split};

pub use streamed::Streamed;

/// Devices of one kind, GPUs or simulators, that multiply one product together. A GPU may be
/// several of them.
pub struct Devices {
    parts: Vec<Part>,
    /// How panels travel between GPUs; of all pairs, the slowest way.
    link: Option<Link>,
    staging: Staging,
}

/// A device that can be one of several.
pub enum Member {
    Simulator(Simulator),
    Cuda(Box<CudaDevice>),
}

/// One of the devices.
struct Part {
    /// The stream on which panels arrive, of a GPU. It is dropped before its device, and so are the
    /// buffers.
    copies: Option<Stream>,
    stage: Mutex<Stage>,
    device: Member,
}

/// Where a matrix lies before the product; C also after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// On every device the panel of A or B, or the block of C, that the split gives it.
    Spread,
    /// All of it on the first device.
    First,
}

/// A problem in host memory. A and B are as stored, each with its leading dimension.
#[derive(Clone, Copy, Debug)]
pub struct HostProblem<'a, T> {
    pub shape: Shape,
    pub a: (&'a [T], usize, Transpose),
    pub b: (&'a [T], usize, Transpose),
    pub c: (&'a [T], usize),
}

/// Makes the plan of a call on the device of a number.
pub type Planner<'a> = dyn Fn(usize, Call) -> Result<Plan, PlanError> + 'a;

/// What a product did.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// From before the first launch until every device has finished.
    pub time: Duration,
    /// The bytes that each device received from others, and the first one also those of C that
    /// came back to it.
    pub received: Vec<usize>,
}

impl Devices {
    /// Connects devices that are open.
    ///
    /// # Errors
    ///
    /// There is none, they are not of one kind, or the driver fails.
    pub fn of(members: Vec<Member>) -> Result<Devices, DeviceError> {
        let staging = Staging::of(members.len());
        let mut parts = Vec::with_capacity(members.len());
        for device in members {
            let copies = match &device {
                Member::Simulator(_) => None,
                Member::Cuda(gpu) => {
                    gpu.enter()?;
                    let stream = Stream::new(StreamFlags::DEFAULT, None);
                    Some(stream.map_err(during("Making a stream"))?)
                }
            };
            parts.push(Part {
                copies,
                stage: Mutex::new(Stage::new(staging)),
                device,
            });
        }
        let gpus: Vec<&CudaDevice> = parts.iter().filter_map(Part::gpu).collect();
        if parts.is_empty() || !(gpus.is_empty() || gpus.len() == parts.len()) {
            return Err(DeviceError::NotJoined);
        }
        let mut link = None;
        for (index, one) in gpus.iter().enumerate() {
            for other in &gpus[..index] {
                link = link.max(Some(Link::connect(one, other)?));
            }
        }
        Ok(Devices {
            parts,
            link,
            staging,
        })
    }

    /// The same, with copies between GPUs and memory of the host staged in this way.
    pub fn with_staging(mut self, staging: Staging) -> Devices {
        self.parts
            .iter_mut()
            .for_each(|part| part.stage = Mutex::new(Stage::new(staging)));
        Devices { staging, ..self }
    }

    /// How many there are; at least one.
    pub fn count(&self) -> usize {
        self.parts.len()
    }

    /// How many different GPUs they are; 0 if they are simulators.
    pub fn gpus(&self) -> usize {
        let gpus = self.parts.iter().filter_map(Part::gpu);
        let ordinals: BTreeSet<u32> = gpus.map(|gpu| gpu.properties().ordinal).collect();
        ordinals.len()
    }

    /// The GPU of a number; `None` if they are simulators.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    pub fn gpu(&self, index: usize) -> Option<&CudaDevice> {
        self.parts[index].gpu()
    }

    /// What plans need to know about the device of a number.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    pub fn facts(&self, index: usize) -> DeviceFacts {
        match self.gpu(index) {
            Some(gpu) => DeviceFacts::of(gpu.properties()),
            None => DeviceFacts::simulator(),
        }
    }

    /// All of them, and how panels travel between them.
    pub fn description(&self) -> String {
        let names = self.parts.iter().map(|part| match &part.device {
            Member::Simulator(simulator) => simulator.description(),
            Member::Cuda(gpu) => gpu.properties().to_string(),
        });
        let names: Vec<String> = names.collect();
        let count = self.count();
        let link = self.link_description();
        match names.iter().all(|name| *name == names[0]) {
            true if count == 1 => names[0].clone(),
            true => format!("{count} times {}; {link}", names[0]),
            false => format!("{count} devices: {}; {link}", names.join(", ")),
        }
    }

    /// How panels travel, and why so.
    pub fn link_description(&self) -> &'static str {
        match self.link {
            None => "panels are copied in host memory",
            Some(Link::Within) => "panels are copied within the GPU",
            Some(Link::PeerToPeer) => "panels travel peer to peer",
            Some(Link::ThroughHost) => {
                "panels travel through page-locked host memory, since not all of these GPUs have \
                 peer access to each other"
            }
        }
    }

    /// Copies a problem to the first `count` devices, each matrix to where it starts, and prepares
    /// its product: `plan` makes the plan of a device's part.
    ///
    /// # Errors
    ///
    /// A device has not enough memory, or fails; it is named.
    ///
    /// # Panics
    ///
    /// If there are fewer devices, or a matrix is shorter than the shape says.
    pub fn product<T: Element>(
        &self,
        problem: HostProblem<'_, T>,
        count: usize,
        starts: [Start; 3],
        (alpha, beta): (Scalar, Scalar),
        plan: &Planner<'_>,
    ) -> Result<Product<'_, T>, DeviceError> {
        let transposes = [problem.a.2, problem.b.2];
        let product = (problem.shape, transposes);
        let mut product = self.allocated(product, count, starts, (alpha, beta))?;
        product.write(&problem)?;
        product.plan(plan, Split::blocks)?;
        Ok(product)
    }

    /// A product with memory for its matrices, and without launches.
    fn allocated<T: Element>(
        &self,
        (shape, transposes): (Shape, [Transpose; 2]),
        count: usize,
        starts: [Start; 3],
        (alpha, beta): (Scalar, Scalar),
    ) -> Result<Product<'_, T>, DeviceError> {
        assert!((1..=self.count()).contains(&count));
        // What must not be read does not travel.
        let shape = match alpha.is_zero() {
            true => Shape { k: 0, ..shape },
            false => shape,
        };
        let mut product = Product {
            devices: self,
            split: Split::of(shape, count),
            transposes,
            starts,
            alpha,
            beta,
            a: Vec::new(),
            b: Vec::new(),
            c: Vec::new(),
            received: Vec::new(),
            work: Vec::new(),
        };
        product.allocate()?;
        Ok(product)
    }

    /// Carries out copies between host and GPUs, of all GPUs at the same time; those to GPUs are on
    /// the streams for copies when it returns.
    ///
    /// # Safety
    ///
    /// As [`copy_all`]; each is of a part that is a GPU.
    unsafe fn stage(&self, transfers: Vec<(usize, Transfer)>) -> Result<(), DeviceError> {
        let mut rest = transfers;
        while !rest.is_empty() {
            // A device has one set of buffers, and so one copy after the other.
            let mut busy = BTreeSet::new();
            let (now, later): (Vec<_>, Vec<_>) = rest
                .into_iter()
                .partition(|(device, _)| busy.insert(*device));
            rest = later;
            // Buffers are as good as before even if a thread that held the lock panicked.
            let lock = |(device, _): &(usize, _)| {
                let stage = self.parts[*device].stage.lock();
                stage.unwrap_or_else(PoisonError::into_inner)
            };
            let mut stages: Vec<_> = now.iter().map(lock).collect();
            let jobs = now.iter().zip(&mut stages).filter_map(|(copy, stage)| {
                let part = &self.parts[copy.0];
                Some(Job {
                    stage,
                    gpu: part.gpu()?,
                    stream: part.copies.as_ref()?,
                    transfer: copy.1,
                })
            });
            // SAFETY: as the caller vouches.
            let failed = unsafe { copy_all(jobs.collect()) };
            if let Some((index, error)) = failed.into_iter().next() {
                return Err(self.named(now[index].0)(error));
            }
        }
        Ok(())
    }

    /// Adds which device failed.
    fn named(&self, index: usize) -> impl Fn(DeviceError) -> DeviceError {
        let name = self.parts[index].name();
        move |error| DeviceError::of_device(index, name.clone(), error)
    }
}

impl Part {
    fn gpu(&self) -> Option<&CudaDevice> {
        match &self.device {
            Member::Cuda(gpu) => Some(gpu),
            Member::Simulator(_) => None,
        }
    }

    /// As `--device` spells it.
    fn name(&self) -> String {
        match self.gpu() {
            Some(gpu) => format!("cuda:{}", gpu.properties().ordinal),
            None => "sim".to_string(),
        }
    }

    /// Elements in the device's memory, whose content does not matter.
    fn allocate<T: Element>(&self, length: usize) -> Result<Allocation<T>, DeviceError> {
        let length = length.max(1);
        let buffer = match self.gpu() {
            Some(gpu) => {
                gpu.enter()?;
                Buffer::on_gpu(gpu.allocate(length)?)
            }
            None => Buffer::on_host(&vec![T::default(); length]),
        };
        Ok(Allocation::new(buffer))
    }
}

/// Memory of a device.
struct Allocation<T: Element> {
    start: *mut T,
    /// Keeps it.
    _buffer: Buffer<T>,
}

impl<T: Element> Allocation<T> {
    fn new(mut buffer: Buffer<T>) -> Allocation<T> {
        Allocation {
            start: buffer.start_mut(),
            _buffer: buffer,
        }
    }
}

/// A matrix, or a panel of one, in the memory of a device, as it is stored.
#[derive(Clone, Copy)]
struct Located<T> {
    device: usize,
    start: *mut T,
    /// Rows and columns, as stored.
    size: (usize, usize),
    leading: usize,
}

impl<T: Element> Located<T> {
    fn pitch(&self) -> usize {
        self.leading * size_of::<T>()
    }

    fn bytes(&self) -> usize {
        self.size.0 * self.size.1 * size_of::<T>()
    }

    /// The part that begins at this row and column, as stored.
    fn part(self, (row, column): (usize, usize), size: (usize, usize)) -> Located<T> {
        Located {
            start: self.start.wrapping_add(row * self.leading + column),
            size,
            ..self
        }
    }
}

/// Rows in memory of the host: where the first begins, and the bytes from there to the next.
type HostRows = (*mut u8, usize);

/// A product on several devices: the matrices where they lie, and what each device launches.
pub struct Product<'devices, T: Element> {
    devices: &'devices Devices,
    split: Split,
    transposes: [Transpose; 2],
    starts: [Start; 3],
    alpha: Scalar,
    beta: Scalar,
    /// The panels, one a device, or all of A, or of B, on the first.
    a: Vec<Allocation<T>>,
    b: Vec<Allocation<T>>,
    /// The blocks, one a device; if C starts on the first device, its own is all of C.
    c: Vec<Allocation<T>>,
    /// For each device the panels that it receives.
    received: Vec<BTreeMap<Panel, Allocation<T>>>,
    /// What each device launches, with the memory for it.
    work: Vec<(Vec<Step>, Allocation<f64>)>,
}

/// A block of C, the panels for it, and its launches.
struct Step {
    panels: [Panel; 2],
    plan: Plan,
    bindings: Bindings,
}

impl<T: Element> Product<'_, T> {
    /// How it is divided.
    pub fn split(&self) -> &Split {
        &self.split
    }

    /// The launches of each device.
    pub fn plans(&self, device: usize) -> impl Iterator<Item = &Plan> {
        self.work[device].0.iter().map(|step| &step.plan)
    }

    /// Makes room for the matrices, and for what travels.
    fn allocate(&mut self) -> Result<(), DeviceError> {
        let (devices, Shape { m, n, k }) = (self.devices, self.split.shape());
        for device in 0..self.split.devices() {
            let named = devices.named(device);
            let allocate = |elements| devices.parts[device].allocate(elements).map_err(&named);
            let whole = |start, elements: usize, part| match (start, device) {
                (Start::Spread, _) => part,
                (Start::First, 0) => elements,
                (Start::First, _) => 0,
            };
            let (rows, columns) = self.split.block_of_c(device);
            let of_a = self.split.elements(Panel::A(device));
            let of_b = self.split.elements(Panel::B(device));
            self.a.push(allocate(whole(self.starts[0], m * k, of_a))?);
            self.b.push(allocate(whole(self.starts[1], k * n, of_b))?);
            let is_whole = self.starts[2] == Start::First && device == 0;
            let block = rows.len() * columns.len();
            self.c.push(allocate(if is_whole { m * n } else { block })?);
            let needed = self.panels_of(device).into_iter();
            let elsewhere = needed.filter(|&panel| self.origin(panel).device != device);
            let received =
                elsewhere.map(|panel| Ok((panel, allocate(self.split.elements(panel))?)));
            let received: Result<_, DeviceError> = received.collect();
            self.received.push(received?);
        }
        Ok(())
    }

    /// Copies a problem's matrices, of the same shape and stored alike, to where they start.
    ///
    /// # Errors
    ///
    /// A device fails; it is named.
    ///
    /// # Panics
    ///
    /// If a matrix is shorter than the shape says.
    pub fn write(&mut self, problem: &HostProblem<'_, T>) -> Result<(), DeviceError> {
        let (a, b) = ((problem.a.0, problem.a.1), (problem.b.0, problem.b.1));
        self.write_factors(a, b)?;
        self.write_c(problem.c.0, problem.c.1)
    }

    /// Copies A and B to where they start.
    fn write_factors(&self, a: (&[T], usize), b: (&[T], usize)) -> Result<(), DeviceError> {
        for (panel, matrix) in [(Panel::A as fn(usize) -> Panel, a), (Panel::B, b)] {
            let panels = (0..self.split.devices()).map(panel);
            let copies = panels.map(|panel| {
                let (target, (row, column)) = (self.origin(panel), self.position(panel));
                (target, source(matrix, (row, column), target.size))
            });
            // SAFETY: `source` has found the rows in the slice, which nothing writes meanwhile.
            unsafe { self.exchange(copies.collect(), Direction::ToDevice)? };
        }
        Ok(())
    }

    /// The panels that a device reads.
    fn panels_of(&self, device: usize) -> Vec<Panel> {
        let mut panels = Vec::new();
        for block in self.split.blocks(device) {
            for panel in [Panel::A(block.a), Panel::B(block.b)] {
                if !panels.contains(&panel) {
                    panels.push(panel);
                }
            }
        }
        panels
    }

    /// The rows and columns of a panel, as stored.
    fn size(&self, panel: Panel) -> (usize, usize) {
        let k = self.split.shape().k;
        match panel {
            Panel::A(of) => self.transposes[0].of((self.split.rows_of_a(of).len(), k)),
            Panel::B(of) => self.transposes[1].of((k, self.split.columns_of_b(of).len())),
        }
    }

    /// Where a panel begins in its matrix, as stored: row and column.
    fn position(&self, panel: Panel) -> (usize, usize) {
        match panel {
            Panel::A(of) => self.transposes[0].of((self.split.rows_of_a(of).start, 0)),
            Panel::B(of) => self.transposes[1].of((0, self.split.columns_of_b(of).start)),
        }
    }

    /// The part of a panel, which lies there, with these rows of A or columns of B.
    fn lines_of(&self, located: Located<T>, panel: Panel, lines: &Range<usize>) -> Located<T> {
        let k = self.split.shape().k;
        let (first, size) = match panel {
            Panel::A(of) => {
                let first = lines.start - self.split.rows_of_a(of).start;
                ((first, 0), (lines.len(), k))
            }
            Panel::B(of) => {
                let first = lines.start - self.split.columns_of_b(of).start;
                ((0, first), (k, lines.len()))
            }
        };
        let transpose = match panel {
            Panel::A(_) => self.transposes[0],
            Panel::B(_) => self.transposes[1],
        };
        located.part(transpose.of(first), transpose.of(size))
    }

    /// Where a panel lies before the product.
    fn origin(&self, panel: Panel) -> Located<T> {
        let Shape { m, n, k } = self.split.shape();
        let (index, memory, start, whole) = match panel {
            Panel::A(of) => (of, &self.a, self.starts[0], self.transposes[0].of((m, k))),
            Panel::B(of) => (of, &self.b, self.starts[1], self.transposes[1].of((k, n))),
        };
        let size = self.size(panel);
        match start {
            // While memory is made, that of a later device does not exist yet.
            Start::Spread => Located {
                device: index,
                start: memory
                    .get(index)
                    .map_or(std::ptr::null_mut(), |memory| memory.start),
                size,
                leading: size.1.max(1),
            },
            Start::First => Located {
                device: 0,
                start: memory[0].start,
                size: whole,
                leading: whole.1.max(1),
            }
            .part(self.position(panel), size),
        }
    }

    /// Where a device reads a panel: where it lies, or where it arrives.
    fn seen_from(&self, device: usize, panel: Panel) -> Located<T> {
        match self.received[device].get(&panel) {
            None => self.origin(panel),
            Some(memory) => {
                let size = self.size(panel);
                Located {
                    device,
                    start: memory.start,
                    size,
                    leading: size.1.max(1),
                }
            }
        }
    }

    /// Where a device computes its block of C.
    fn c_of(&self, device: usize) -> Located<T> {
        if device == 0 && self.starts[2] == Start::First {
            return self.c_at_first(0);
        }
        let (rows, columns) = self.split.block_of_c(device);
        Located {
            device,
            start: self.c[device].start,
            size: (rows.len(), columns.len()),
            leading: columns.len().max(1),
        }
    }

    /// The block of a device in the C that lies on the first.
    fn c_at_first(&self, device: usize) -> Located<T> {
        let Shape { m, n, .. } = self.split.shape();
        let (rows, columns) = self.split.block_of_c(device);
        let whole = Located {
            device: 0,
            start: self.c[0].start,
            size: (m, n),
            leading: n.max(1),
        };
        whole.part((rows.start, columns.start), (rows.len(), columns.len()))
    }

    /// Where the block of a device lies before and after the product.
    fn home_of_c(&self, device: usize) -> Located<T> {
        match self.starts[2] {
            Start::Spread => self.c_of(device),
            Start::First => self.c_at_first(device),
        }
    }

    /// Chooses a plan for every block that a device multiplies, makes room for their workspaces, and
    /// has their kernels compiled.
    fn plan(
        &mut self,
        plan: &Planner<'_>,
        blocks: impl Fn(&Split, usize) -> Vec<Block>,
    ) -> Result<(), DeviceError> {
        for device in 0..self.split.devices() {
            let part = &self.devices.parts[device];
            let named = self.devices.named(device);
            let mut steps = Vec::new();
            let c = self.c_of(device);
            let (rows, columns) = self.split.block_of_c(device);
            for block in blocks(&self.split, device) {
                let panels = [Panel::A(block.a), Panel::B(block.b)];
                let [a, b] = [(panels[0], &block.rows), (panels[1], &block.columns)].map(
                    |(panel, lines)| self.lines_of(self.seen_from(device, panel), panel, lines),
                );
                let first = (
                    block.rows.start - rows.start,
                    block.columns.start - columns.start,
                );
                let c = c.part(first, (block.rows.len(), block.columns.len()));
                let operand = |located: Located<T>, factor: Factor| {
                    let transpose = self.transposes[factor as usize];
                    Operand::at(located.start as usize, located.leading, T::TYPE, transpose)
                };
                let call = Call {
                    shape: Shape::new(c.size.0, c.size.1, self.split.shape().k),
                    a: operand(a, Factor::A),
                    b: operand(b, Factor::B),
                    ldc: c.leading,
                    batch: Batch::ONE,
                };
                let plan = plan(device, call).map_err(|error| named(error.into()))?;
                let facts = self.devices.facts(device);
                if let Some(error) = DeviceError::lacks_tensor_cores(&facts, plan.variant()) {
                    return Err(named(error));
                }
                steps.push(Step {
                    panels,
                    plan,
                    bindings: Bindings {
                        alpha: self.alpha,
                        beta: self.beta,
                        a: a.start.cast(),
                        b: b.start.cast(),
                        c: c.start.cast(),
                        workspace: std::ptr::null_mut(),
                    },
                });
            }
            let most = steps.iter().map(|step| step.plan.workspace_bytes()).max();
            // One block after the other: one workspace is enough for all.
            let words = most.unwrap_or(0).div_ceil(size_of::<f64>());
            let workspace = part.allocate::<f64>(words).map_err(&named)?;
            for step in &mut steps {
                step.bindings.workspace = workspace.start.cast();
                if let Some(gpu) = part.gpu() {
                    gpu.compile(&step.plan).map_err(&named)?;
                }
            }
            self.work.push((steps, workspace));
        }
        Ok(())
    }

    /// Runs the product, and waits for it. It may run again: then it starts from the C that it
    /// left. `cta_done` is called after each CTA on a simulator, from any thread.
    ///
    /// # Errors
    ///
    /// A device fails; it is named.
    pub fn multiply(&mut self, cta_done: &(dyn Fn() + Sync)) -> Result<Done, DeviceError> {
        let began = Instant::now();
        let enqueued = self.enqueue(cta_done);
        // Whatever happened, nothing may lose its memory while it is used.
        let ended = self.finish_all();
        let time = began.elapsed();
        let received = enqueued?;
        ended.map(|()| Done { time, received })
    }

    /// Waits for everything that all devices do.
    fn finish_all(&self) -> Result<(), DeviceError> {
        let mut ended = Ok(());
        for device in 0..self.split.devices() {
            let waited = self.finish(device);
            ended = ended.and(waited.map_err(self.devices.named(device)));
        }
        ended
    }

    /// Waits for everything that a device does.
    fn finish(&self, device: usize) -> Result<(), DeviceError> {
        let part = &self.devices.parts[device];
        let last = self.work[device].0.last();
        match (part.gpu(), last) {
            (Some(gpu), Some(step)) => {
                let crashed = gpu.after(step.plan.variant().name);
                match gpu.enter() {
                    Err(DeviceError::ContextLost(error)) => Err(crashed(error)),
                    Err(error) => Err(error),
                    Ok(()) => CurrentContext::synchronize().map_err(crashed),
                }
            }
            _ => part.synchronize(),
        }
    }

    /// Starts everything, on all devices in turn: what is launched is short beside what it
    /// computes. Returns the bytes that each device receives.
    fn enqueue(&self, cta_done: &(dyn Fn() + Sync)) -> Result<Vec<usize>, DeviceError> {
        let count = self.split.devices();
        let mut received = vec![0; count];
        let mut arrived: Vec<Vec<Panel>> = vec![Vec::new(); count];
        let reads_c = !self.beta.is_zero();
        for (device, received) in received.iter_mut().enumerate() {
            let (home, local) = (self.home_of_c(device), self.c_of(device));
            if reads_c && home.device != device {
                self.send(home, local, device)
                    .and_then(|()| self.devices.parts[device].arrived())
                    .map_err(self.devices.named(device))?;
                *received += home.bytes();
            }
        }
        let most = self.work.iter().map(|(steps, _)| steps.len()).max();
        for index in 0..most.unwrap_or(0) {
            for device in 0..count {
                let Some(step) = self.work[device].0.get(index) else {
                    continue;
                };
                let bytes = self.multiply_block(device, step, &mut arrived[device], cta_done);
                received[device] += bytes.map_err(self.devices.named(device))?;
            }
        }
        for device in 0..count {
            let (home, local) = (self.home_of_c(device), self.c_of(device));
            if home.device != device {
                self.devices.parts[device]
                    .computed()
                    .and_then(|()| self.send(local, home, device))
                    .map_err(self.devices.named(device))?;
                received[home.device] += home.bytes();
            }
        }
        Ok(received)
    }

    /// Starts to copy the panels that a block needs and that are not on their way yet, and the
    /// launches that wait for them. Returns the bytes that are copied.
    fn multiply_block(
        &self,
        device: usize,
        step: &Step,
        arrived: &mut Vec<Panel>,
        cta_done: &(dyn Fn() + Sync),
    ) -> Result<usize, DeviceError> {
        let part = &self.devices.parts[device];
        let mut received = 0;
        for panel in step.panels {
            let origin = self.origin(panel);
            if origin.device == device || arrived.contains(&panel) {
                continue;
            }
            self.send(origin, self.seen_from(device, panel), device)?;
            part.arrived()?; // launches from here on wait for this copy
            arrived.push(panel);
            received += origin.bytes();
        }
        part.launch(step, cta_done)?;
        Ok(received)
    }

    /// Starts a copy, on the stream for copies of device `of`, which is one of the two.
    fn send(&self, from: Located<T>, to: Located<T>, of: usize) -> Result<(), DeviceError> {
        let (width, height) = (from.size.1 * size_of::<T>(), from.size.0);
        let gpus = (self.devices.gpu(from.device), self.devices.gpu(to.device));
        let (source, target) = (from.start.cast::<u8>(), to.start.cast::<u8>());
        let part = &self.devices.parts[of];
        if let ((Some(one), Some(other)), Some(stream)) = (gpus, &part.copies) {
            part.enter()?;
            let (one, other) = ((one, source, from.pitch()), (other, target, to.pitch()));
            // SAFETY: both lie in memory of this product, which outlives `multiply`'s last wait,
            // and which has room for that many rows; the stream is of this device.
            return unsafe { copy_between(one, other, (width, height), stream) };
        }
        for row in 0..height {
            let (from, to) = (
                source.wrapping_add(row * from.pitch()),
                target.wrapping_add(row * to.pitch()),
            );
            // SAFETY: both rows lie in memory of this product, and simulators run one launch
            // after the other.
            unsafe { std::ptr::copy_nonoverlapping(from, to, width) };
        }
        Ok(())
    }

    /// Copies a new C, as it is stored in host memory, to where it starts.
    ///
    /// # Errors
    ///
    /// A device fails; it is named.
    ///
    /// # Panics
    ///
    /// If it is shorter than the shape says.
    pub fn write_c(&mut self, c: &[T], ldc: usize) -> Result<(), DeviceError> {
        let copies = (0..self.split.devices()).map(|device| {
            let (rows, columns) = self.split.block_of_c(device);
            let target = self.home_of_c(device);
            (
                target,
                source((c, ldc), (rows.start, columns.start), target.size),
            )
        });
        // SAFETY: `source` has found the rows in the slice, which nothing writes meanwhile.
        unsafe { self.exchange(copies.collect(), Direction::ToDevice)? };
        // A GPU may still be writing what it was sent, and the others do not wait for its stream.
        self.synchronize()
    }

    /// Waits for all devices.
    fn synchronize(&self) -> Result<(), DeviceError> {
        for device in 0..self.split.devices() {
            let waited = self.devices.parts[device].synchronize();
            waited.map_err(self.devices.named(device))?;
        }
        Ok(())
    }

    /// Copies C to host memory; what lies between its rows stays as it is.
    ///
    /// # Errors
    ///
    /// A device fails; it is named.
    ///
    /// # Panics
    ///
    /// If there is less room than the shape needs.
    pub fn read_c(&self, c: &mut [T], ldc: usize) -> Result<(), DeviceError> {
        let copies = (0..self.split.devices()).map(|device| {
            let (rows, columns) = self.split.block_of_c(device);
            let home = self.home_of_c(device);
            (
                home,
                target((&mut *c, ldc), (rows.start, columns.start), home.size),
            )
        });
        // SAFETY: `target` has found the rows in the slice, and blocks do not overlap.
        unsafe { self.exchange(copies.collect(), Direction::ToHost) }
    }

    /// Copies from host memory, or to it, on all devices at the same time; small matrices one after
    /// the other. To the host they are done when it returns.
    ///
    /// # Safety
    ///
    /// The side of the host has as many rows of as many elements; nothing writes what is read, and
    /// for a copy to the host no one else uses them. Sources of GPUs are complete, or the streams
    /// for copies wait for them.
    unsafe fn exchange(
        &self,
        copies: Vec<(Located<T>, HostRows)>,
        direction: Direction,
    ) -> Result<(), DeviceError> {
        let mut staged = Vec::new();
        for (located, host) in copies {
            if located.bytes() == 0 {
                continue;
            }
            let is_gpu = self.devices.gpu(located.device).is_some();
            if is_gpu && located.bytes() >= self.devices.staging.least_bytes {
                staged.push((located.device, transfer(located, host, direction)));
                continue;
            }
            // SAFETY: as the caller vouches.
            let copied = unsafe { self.exchange_directly(located, host, direction) };
            copied.map_err(self.devices.named(located.device))?;
        }
        // SAFETY: the same; the memory of devices is this product's, which waits before it is freed.
        unsafe { self.devices.stage(staged) }
    }

    /// Copies `located` from host memory, or to it, and waits.
    ///
    /// # Safety
    ///
    /// As [`Product::exchange`].
    unsafe fn exchange_directly(
        &self,
        located: Located<T>,
        (host, host_pitch): HostRows,
        direction: Direction,
    ) -> Result<(), DeviceError> {
        let (height, width) = (located.size.0, located.size.1 * size_of::<T>());
        let part = &self.devices.parts[located.device];
        part.enter()?;
        if part.gpu().is_some() {
            let device = Side::Device(located.start as u64, located.pitch());
            let host = Side::Host(host, host_pitch);
            let (from, to) = match direction {
                Direction::ToDevice => (host, device),
                Direction::ToHost => (device, host),
            };
            // SAFETY: as the caller vouches; the device's context is current.
            return unsafe { copy(from, to, width, height) };
        }
        let own = (located.start.cast::<u8>(), located.pitch());
        for row in 0..height {
            let at = |(start, pitch): HostRows| start.wrapping_add(row * pitch);
            let (from, to) = match direction {
                Direction::ToDevice => (at((host, host_pitch)), at(own)),
                Direction::ToHost => (at(own), at((host, host_pitch))),
            };
            // SAFETY: the caller vouches for the host's rows; the others are this product's.
            unsafe { std::ptr::copy_nonoverlapping(from, to, width) };
        }
        Ok(())
    }
}

/// Where a part of a matrix of the host begins, with rows and columns as stored.
///
/// # Panics
///
/// If the matrix has not so many rows.
fn source<T>(
    (elements, leading): (&[T], usize),
    (row, column): (usize, usize),
    (rows, columns): (usize, usize),
) -> HostRows {
    let pitch = leading * size_of::<T>();
    if rows == 0 || columns == 0 {
        return (std::ptr::null_mut(), pitch);
    }
    let first = row * leading + column;
    let part = &elements[first..first + (rows - 1) * leading + columns];
    (part.as_ptr().cast_mut().cast(), pitch)
}

/// The same of a matrix that is written.
fn target<T>(
    (elements, leading): (&mut [T], usize),
    (row, column): (usize, usize),
    (rows, columns): (usize, usize),
) -> HostRows {
    let pitch = leading * size_of::<T>();
    if rows == 0 || columns == 0 {
        return (std::ptr::null_mut(), pitch);
    }
    let first = row * leading + column;
    let part = &mut elements[first..first + (rows - 1) * leading + columns];
    (part.as_mut_ptr().cast(), pitch)
}

/// A copy between memory of a GPU and of the host.
fn transfer<T: Element>(device: Located<T>, host: HostRows, direction: Direction) -> Transfer {
    Transfer {
        direction,
        host,
        device: (device.start as u64, device.pitch()),
        width: device.size.1 * size_of::<T>(),
        height: device.size.0,
    }
}

impl<T: Element> Drop for Product<'_, T> {
    /// Waits, so that no kernel and no copy loses its memory while it runs; then frees the memory
    /// of each device in that device's context.
    fn drop(&mut self) {
        for part in &self.devices.parts {
            // After a crash nothing can still be running.
            let _ = part.synchronize();
        }
        for device in (0..self.split.devices()).rev() {
            let _ = self.devices.parts[device].enter();
            self.a.truncate(device);
            self.b.truncate(device);
            self.c.truncate(device);
            self.received.truncate(device);
            self.work.truncate(device);
        }
    }
}

impl Drop for Part {
    /// Page-locked memory is freed in the context that it was allocated in.
    fn drop(&mut self) {
        let _ = self.enter();
    }
}

impl Part {
    /// Makes the device's context current.
    fn enter(&self) -> Result<(), DeviceError> {
        self.gpu().map_or(Ok(()), CudaDevice::enter)
    }

    /// Waits for everything that the device does.
    fn synchronize(&self) -> Result<(), DeviceError> {
        if self.gpu().is_none() {
            return Ok(());
        }
        self.enter()?;
        CurrentContext::synchronize().map_err(during("Waiting for the GPU"))
    }

    /// What is launched from now on waits for the copies that were started.
    fn arrived(&self) -> Result<(), DeviceError> {
        match (self.gpu(), &self.copies) {
            (Some(gpu), Some(copies)) => self.order(copies, gpu.stream()),
            _ => Ok(()),
        }
    }

    /// Copies that are started from now on wait for what was launched.
    fn computed(&self) -> Result<(), DeviceError> {
        match (self.gpu(), &self.copies) {
            (Some(gpu), Some(copies)) => self.order(gpu.stream(), copies),
            _ => Ok(()),
        }
    }

    /// `after` waits for what is on `before` now.
    fn order(&self, before: &Stream, after: &Stream) -> Result<(), DeviceError> {
        let event = self.event_on(before)?;
        let waits = after.wait_event(event, StreamWaitEventFlags::DEFAULT);
        waits.map_err(during("Ordering two streams"))
    }

    /// An event after what is on a stream of this device now.
    fn event_on(&self, stream: &Stream) -> Result<Event, DeviceError> {
        self.enter()?;
        let event = Event::new(EventFlags::DISABLE_TIMING).map_err(during("Making an event"))?;
        let recorded = event.record(stream);
        recorded.map_err(during("Recording an event"))?;
        Ok(event)
    }

    /// An event after what has been launched; none on a simulator, where that has ended.
    fn after_launches(&self) -> Result<Option<Event>, DeviceError> {
        self.gpu()
            .map(|gpu| self.event_on(gpu.stream()))
            .transpose()
    }

    /// The same after the copies that were started.
    fn after_copies(&self) -> Result<Option<Event>, DeviceError> {
        self.copies
            .as_ref()
            .map(|copies| self.event_on(copies))
            .transpose()
    }

    /// Copies that are started from now on wait for an event, of this device or another.
    fn copies_wait_for(&self, event: Option<Event>) -> Result<(), DeviceError> {
        let (Some(copies), Some(event)) = (&self.copies, event) else {
            return Ok(());
        };
        self.enter()?;
        let waits = copies.wait_event(event, StreamWaitEventFlags::DEFAULT);
        waits.map_err(during("Ordering two streams"))
    }

    /// Runs the launches of a step, or starts them.
    fn launch(&self, step: &Step, cta_done: &(dyn Fn() + Sync)) -> Result<(), DeviceError> {
        self.enter()?;
        let (plan, bindings) = (&step.plan, &step.bindings);
        // SAFETY: the panels, the block of C and the workspace lie in memory of this product that
        // outlives `multiply`'s last wait, and the plan is theirs. Panels have arrived, or the
        // stream waits for them. Blocks of one device run one after the other, on one workspace.
        unsafe {
            match &self.device {
                Member::Simulator(simulator) => run(&simulator.observed(cta_done), plan, bindings),
                Member::Cuda(gpu) => run(&CudaStream::of(gpu), plan, bindings),
            }
        }
    }
}
