//! A rank's block of C, and the products that are added to it.

use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use cust::event::Event;
use gpu_gemm::device::cuda::Direction;
use gpu_gemm::device::cuda::status::during;
use gpu_gemm::{
    Batch, Bindings, Call, CudaStream, DeviceError, DeviceFacts, Operand, Plan, Shape, Transpose,
};
use host::cpu::view::ViewMut;
use host::rung::Rung;

use super::{Gpu, OnGpu, Room};
use crate::Element;
use crate::local::LocalError;

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

impl Gpu {
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
}
