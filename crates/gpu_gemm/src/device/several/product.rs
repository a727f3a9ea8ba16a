//! A product on several devices: the place of each part, the launches of each device, and the
//! transfers of panels.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use gpu_kernels::spec::{DataType, ElementType};

use super::{Devices, Done, Start};
use crate::backend::Allocated;
use crate::call::{MatrixLayout, Shape, Transpose};
use crate::choose::Choice;
use crate::context::Context;
use crate::device::cuda::rectangle::{Side, copy_between};
use crate::error::DeviceError;
use crate::launch::{Element, Scalar};
use crate::plan::{Plan, PlanError};
use crate::product::{self, Stored};
use crate::split::{Block, Panel, Split};

/// The indices of A, B and C in arrays of three.
pub(super) const A: usize = 0;
pub(super) const B: usize = 1;
pub(super) const C: usize = 2;

/// The alignment of rows in a device's matrices, in bytes: that of kernels' vector accesses.
const ROW_ALIGNMENT: usize = 16;

/// A product on several devices: the matrices in place, and each device's launches. A and B are of
/// `T`.
pub struct Product<'devices, T: Element, S: Element> {
    pub(super) devices: &'devices Devices,
    pub(super) split: Split,
    starts: [Start; 3],
    pub(super) transposes: [Transpose; 3],
    alpha: Scalar,
    pub(super) beta: Scalar,
    /// The memory of each device for its rows of A, its columns of B and its block of C; on the
    /// first, for the whole of a matrix that starts there.
    memory: Vec<[Allocated; 3]>,
    /// The launches of each device, and the context that launches them.
    pub(super) work: Vec<(Vec<Step>, Context)>,
    types: PhantomData<(T, S)>,
}

/// A block of C as a product, its plan, and the panels that it reads.
pub(super) struct Step {
    panels: [Panel; 2],
    plan: Arc<Plan>,
    product: product::Product,
}

/// A rectangle of a matrix, with rows and columns as multiplied, not as stored.
#[derive(Clone, Debug)]
pub(super) struct Area {
    pub(super) matrix: usize,
    rows: Range<usize>,
    columns: Range<usize>,
}

impl Devices {
    /// Prepares a product of this shape, A and B stored transposed or not, on the first `count`
    /// devices: with the chosen kernel, or for `None` with the one that suits each part. The
    /// contents of its matrices are undefined ([`Product::write`]).
    ///
    /// # Errors
    ///
    /// A device has not enough memory, or fails; it is named.
    ///
    /// # Panics
    ///
    /// If there are fewer devices, or the kernel is not for these types.
    pub fn product<T: Element, S: Element>(
        &self,
        product: (Shape, [Transpose; 2]),
        count: usize,
        starts: [Start; 3],
        scalars: (Scalar, Scalar),
        choice: Option<Choice>,
    ) -> Result<Product<'_, T, S>, DeviceError> {
        let mut product = Product::allocated(self, product, count, starts, scalars)?;
        product.plan(choice, Split::blocks)?;
        Ok(product)
    }
}

impl<'devices, T: Element, S: Element> Product<'devices, T, S> {
    /// A product with memory for its matrices, and without launches.
    pub(super) fn allocated(
        devices: &'devices Devices,
        (shape, [a, b]): (Shape, [Transpose; 2]),
        count: usize,
        starts: [Start; 3],
        (alpha, beta): (Scalar, Scalar),
    ) -> Result<Product<'devices, T, S>, DeviceError> {
        assert!((1..=devices.count()).contains(&count));
        // Matrices that must not be read are not sent.
        let shape = match alpha.is_zero() {
            true => Shape { k: 0, ..shape },
            false => shape,
        };
        let mut product = Product {
            devices,
            split: Split::of(shape, count),
            starts,
            transposes: [a, b, Transpose::No],
            alpha,
            beta,
            memory: Vec::new(),
            work: Vec::new(),
            types: PhantomData,
        };
        for device in 0..count {
            let allocate = |matrix| {
                let (rows, columns) = product.held(device, matrix);
                let (rows, _) = product.transposes[matrix].of((rows.len(), columns.len()));
                devices.parts[device].allocate(rows * product.pitch(device, matrix))
            };
            let memory = || Ok([allocate(A)?, allocate(B)?, allocate(C)?]);
            let memory = memory().map_err(devices.named(device))?;
            product.memory.push(memory);
        }
        Ok(product)
    }

    /// The split of the product.
    pub fn split(&self) -> &Split {
        &self.split
    }

    /// The plan of the first product on the first device, unless C is empty.
    pub fn first_plan(&self) -> Option<&Arc<Plan>> {
        let (steps, _) = self.work.first()?;
        Some(&steps.first()?.plan)
    }

    fn data_type(&self) -> DataType {
        DataType {
            inputs: T::TYPE,
            c: S::TYPE,
        }
    }

    fn element(&self, matrix: usize) -> ElementType {
        match matrix {
            C => S::TYPE,
            _ => T::TYPE,
        }
    }

    /// The rows and columns of a matrix for which a device has memory.
    fn held(&self, device: usize, matrix: usize) -> (Range<usize>, Range<usize>) {
        let Shape { m, n, k } = self.split.shape();
        let (rows, columns) = match device == 0 && self.starts[matrix] == Start::First {
            true => (0..m, 0..n),
            false => self.split.block_of_c(device),
        };
        match matrix {
            A => (rows, 0..k),
            B => (0..k, columns),
            _ => (rows, columns),
        }
    }

    /// Bytes from a row to the next in a device's memory.
    fn pitch(&self, device: usize, matrix: usize) -> usize {
        let (rows, columns) = self.held(device, matrix);
        let (_, columns) = self.transposes[matrix].of((rows.len(), columns.len()));
        (columns * self.element(matrix).bytes()).next_multiple_of(ROW_ALIGNMENT)
    }

    /// The bytes of a row of an area, as stored, and its rows.
    pub(super) fn size(&self, area: &Area) -> (usize, usize) {
        let size = (area.rows.len(), area.columns.len());
        let (height, columns) = self.transposes[area.matrix].of(size);
        (columns * self.element(area.matrix).bytes(), height)
    }

    /// The address of an area, where the element at `origin` is the first of `matrix`.
    fn within(&self, area: &Area, matrix: Side, origin: (usize, usize)) -> Side {
        let first = (area.rows.start - origin.0, area.columns.start - origin.1);
        let (row, column) = self.transposes[area.matrix].of(first);
        matrix.from((row, column * self.element(area.matrix).bytes()))
    }

    /// The address of an area in a device's memory.
    pub(super) fn at(&self, device: usize, area: &Area) -> Side {
        let (rows, columns) = self.held(device, area.matrix);
        let matrix = Side {
            start: self.memory[device][area.matrix].start(),
            pitch: self.pitch(device, area.matrix),
        };
        self.within(area, matrix, (rows.start, columns.start))
    }

    /// The address of an area in the host's memory, where the matrix is there.
    pub(super) fn in_host(&self, area: &Area, matrix: Side) -> Side {
        self.within(area, matrix, (0, 0))
    }

    /// The area of a panel, and the device on which it starts.
    pub(super) fn panel(&self, panel: Panel) -> (usize, Area) {
        let (of, lines) = match panel {
            Panel::A(of) => (of, self.split.rows_of_a(of)),
            Panel::B(of) => (of, self.split.columns_of_b(of)),
        };
        let area = self.lines(panel, lines);
        (self.home(area.matrix, of), area)
    }

    /// An area of rows of A, or of columns of B.
    pub(super) fn lines(&self, panel: Panel, lines: Range<usize>) -> Area {
        let k = self.split.shape().k;
        let (matrix, rows, columns) = match panel {
            Panel::A(_) => (A, lines, 0..k),
            Panel::B(_) => (B, 0..k, lines),
        };
        Area {
            matrix,
            rows,
            columns,
        }
    }

    /// The area of a block of C.
    pub(super) fn block(&self, (rows, columns): (Range<usize>, Range<usize>)) -> Area {
        Area {
            matrix: C,
            rows,
            columns,
        }
    }

    /// The device that holds a device's part of a matrix before the product, and for C also after
    /// it.
    pub(super) fn home(&self, matrix: usize, device: usize) -> usize {
        match self.starts[matrix] {
            Start::Spread => device,
            Start::First => 0,
        }
    }

    /// Chooses a plan for every block that a device multiplies, enlarges the workspaces, and has
    /// the kernels compiled.
    pub(super) fn plan(
        &mut self,
        choice: Option<Choice>,
        blocks: impl Fn(&Split, usize) -> Vec<Block>,
    ) -> Result<(), DeviceError> {
        let types = choice.map(|choice| choice.variant.types.data_type());
        assert!(types.is_none_or(|types| types == self.data_type()));
        for device in 0..self.split.devices() {
            let blocks = blocks(&self.split, device);
            let work = self.plan_device(device, choice, blocks);
            self.work.push(work.map_err(self.devices.named(device))?);
        }
        Ok(())
    }

    fn plan_device(
        &self,
        device: usize,
        choice: Option<Choice>,
        blocks: Vec<Block>,
    ) -> Result<(Vec<Step>, Context), DeviceError> {
        let mut context = Context::new(self.devices.device(device), 0)?;
        if let Some(choice) = choice {
            context = context.with_kernel(choice);
        }
        let stored = |area: Area| {
            let (rows, transpose) = (self.at(device, &area), self.transposes[area.matrix]);
            let size = transpose.of((area.rows.len(), area.columns.len()));
            let leading = rows.pitch / self.element(area.matrix).bytes();
            Stored {
                start: rows.start,
                layout: MatrixLayout::one(size, leading),
                transpose,
            }
        };
        let mut steps = Vec::new();
        for block in blocks {
            let panels = [Panel::A(block.a), Panel::B(block.b)];
            let product = product::Product {
                data_type: self.data_type(),
                alpha: self.alpha,
                beta: self.beta,
                a: stored(self.lines(panels[A], block.rows.clone())),
                b: stored(self.lines(panels[B], block.columns.clone())),
                c: stored(self.block((block.rows, block.columns))),
                epilogue: None,
                first: [0; 3],
            };
            let plan = context.reserve(product.data_type, product.call())?;
            let too_large = || PlanError::CopiesTooLarge {
                kernel: choice.map_or("auto", |choice| choice.variant.name),
                shape: product.shape(),
            };
            steps.push(Step {
                panels,
                plan: plan.ok_or_else(too_large)?,
                product,
            });
        }
        Ok((steps, context))
    }

    /// Runs the product, and waits for it. It may run again: then it starts from the resulting C.
    ///
    /// # Errors
    ///
    /// A device fails; it is named.
    pub fn multiply(&mut self) -> Result<Done, DeviceError> {
        let began = Instant::now();
        let enqueued = self.enqueue();
        // Even after an error, memory must not be freed while it is used.
        let ended = self.finish();
        let time = began.elapsed();
        let received = enqueued?;
        ended.map(|()| Done { time, received })
    }

    /// Starts everything, on all devices in turn: launching takes little time beside computing.
    /// Returns the bytes that each device receives.
    fn enqueue(&self) -> Result<Vec<usize>, DeviceError> {
        let count = self.split.devices();
        let mut received = vec![0; count];
        let mut arrived: Vec<Vec<Panel>> = vec![Vec::new(); count];
        let away = || (0..count).filter(|&device| self.home(C, device) != device);
        let block = |device| self.block(self.split.block_of_c(device));
        if !self.beta.is_zero() {
            for device in away() {
                let sent = self.send((self.home(C, device), device), &block(device), device);
                let waits = sent.and_then(|bytes| {
                    self.devices.parts[device].arrived()?;
                    Ok(bytes)
                });
                received[device] += waits.map_err(self.devices.named(device))?;
            }
        }
        let most = self.work.iter().map(|(steps, _)| steps.len()).max();
        for index in 0..most.unwrap_or(0) {
            for device in 0..count {
                if let Some(step) = self.work[device].0.get(index) {
                    let bytes = self.multiply_block(device, step, &mut arrived[device]);
                    received[device] += bytes.map_err(self.devices.named(device))?;
                }
            }
        }
        for device in away() {
            let home = self.home(C, device);
            let computed = self.devices.parts[device].computed();
            let sent = computed.and_then(|()| self.send((device, home), &block(device), device));
            received[home] += sent.map_err(self.devices.named(device))?;
        }
        Ok(received)
    }

    /// Starts to copy the panels that a block needs and that are not in flight yet, and the
    /// launches that wait for them. Returns the bytes that are copied.
    pub(super) fn multiply_block(
        &self,
        device: usize,
        step: &Step,
        arrived: &mut Vec<Panel>,
    ) -> Result<usize, DeviceError> {
        let part = &self.devices.parts[device];
        let mut received = 0;
        for panel in step.panels {
            let (home, area) = self.panel(panel);
            if home == device || arrived.contains(&panel) {
                continue;
            }
            received += self.send((home, device), &area, device)?;
            part.arrived()?; // later launches wait for this copy
            arrived.push(panel);
        }
        // SAFETY: the panels and the block of C are in memory of this product that outlives
        // `multiply`'s last wait, and the plan belongs to them. Panels have arrived, or the stream
        // waits for them.
        unsafe { self.work[device].1.launch(&step.plan, &step.product)? };
        Ok(received)
    }

    /// Starts to copy an area from one device to another, on the stream for copies of device `of`,
    /// one of the two. Returns its bytes.
    fn send(
        &self,
        (from, to): (usize, usize),
        area: &Area,
        of: usize,
    ) -> Result<usize, DeviceError> {
        let (source, target) = (self.at(from, area), self.at(to, area));
        let (width, height) = self.size(area);
        let gpus = (self.devices.gpu(from), self.devices.gpu(to));
        let part = &self.devices.parts[of];
        if let ((Some(from), Some(to)), Some(stream)) = (gpus, part.copies.stream()) {
            let _entered = part.enter()?;
            // SAFETY: both are in memory of this product, which outlives the last wait of
            // `multiply`, and which has room for that many rows; the stream is of this device.
            unsafe { copy_between((from, source), (to, target), (width, height), stream)? };
        } else {
            // SAFETY: both are in memory of this product, and simulators run one launch after the
            // other.
            unsafe { copy_in_host(source, target, (width, height)) };
        }
        Ok(width * height)
    }

    /// Waits for all work of all devices.
    pub(super) fn finish(&self) -> Result<(), DeviceError> {
        let mut ended = Ok(());
        for device in 0..self.split.devices() {
            let part = &self.devices.parts[device];
            // After a crash even this fails; the wait below names the kernel.
            let _entered = part.enter();
            let launched = match self.work.get(device) {
                Some((_, context)) => context.synchronize(),
                None => Ok(()),
            };
            let waited = launched.and_then(|()| part.synchronize());
            ended = ended.and(waited.map_err(self.devices.named(device)));
        }
        ended
    }
}

/// # Safety
///
/// Both sides are memory of this process with these rows, and do not overlap; nothing else uses
/// them meanwhile.
unsafe fn copy_in_host(from: Side, to: Side, (width, height): (usize, usize)) {
    for row in 0..height {
        let (from, to) = (from.from((row, 0)).start, to.from((row, 0)).start);
        // SAFETY: as the caller vouches.
        unsafe { std::ptr::copy_nonoverlapping(from, to, width) };
    }
}

impl<T: Element, S: Element> Drop for Product<'_, T, S> {
    /// Waits, so that no running kernel or copy loses its memory.
    fn drop(&mut self) {
        // After a crash nothing is running.
        let _ = self.finish();
    }
}
