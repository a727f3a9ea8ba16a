//! A device, a stream and a workspace to multiply with.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::Arc;

use cust::stream::Stream;
use gpu_kernels::spec::{DataType, Variant};

use crate::backend::{Backend, Mark, Space, run};
use crate::buffer::Buffer;
use crate::call::{Call, Nested, Shape, Transpose};
use crate::choose::{self, Choice, Chooser, Variants};
use crate::device::cuda::current::InContext;
use crate::device::{CudaDevice, CudaStream, Device};
use crate::error::DeviceError;
use crate::launch::Element;
use crate::matrix::GemmError;
use crate::plan::Plan;
use crate::product::{Fusion, Product};

/// The bytes of a workspace that is large enough for most products: for a copy of an 8192 x 8192
/// matrix, and for partial sums.
pub const WORKSPACE: usize = 320 << 20;

/// The bytes of the smallest workspace: enough for the smallest part of a product.
const SMALLEST: usize = 1 << 20;

/// The context of [`gemm`]: a GPU's stream, an OpenCL device or the simulator, the chooser of
/// kernels, and a workspace for operand copies and partial sums.
///
/// Products of one context share its workspace, so they run one after the other, in the order of
/// the calls. To run products concurrently, create one context per stream.
///
/// It keeps its device open, and has no lifetime: it can be stored, and sent to another thread.
/// Two threads do not share one:
///
/// ```compile_fail,E0277
/// fn share<T: Sync>() {}
/// share::<gpu_gemm::Context>();
/// ```
///
/// [`gemm`]: crate::gemm()
pub struct Context {
    /// Freed before the device is closed. The elements are floats for alignment.
    workspace: Buffer<f32>,
    backend: Box<dyn Backend>,
    chooser: Chooser,
    /// The kernel that was launched last, which the error names if the GPU crashes. A cell also
    /// keeps threads from launching work that uses the workspace at the same time.
    last: Cell<Option<&'static str>>,
    /// The stream, if it is neither the device's nor somebody else's.
    _stream: Option<InContext<Arc<Stream>>>,
}

/// It can be sent to another thread.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Context>();
};

impl Context {
    /// A context on the simulator, an OpenCL device, or the GPU's own stream, with a workspace of
    /// this many bytes, such as [`WORKSPACE`], and of at least one MiB. If the best plan for a
    /// product needs a larger workspace, the product runs with a plan that needs less, or in
    /// parts: slower and with different rounding. Elements of 16 bits need workspace if rows of A
    /// or B do not begin at multiples of 16 bytes. Products with a C of 16 bits are not cut along
    /// K, since each part would round C once more, so that [`gemm`] may refuse one with a long K.
    ///
    /// [`gemm`]: crate::gemm()
    ///
    /// # Errors
    ///
    /// There is not enough memory for the workspace, the GPU fails, or there are several devices.
    pub fn new(device: &Device, workspace_bytes: usize) -> Result<Context, DeviceError> {
        let backend = device.as_backend(&|| ())?;
        Context::at(backend, Chooser::of(device).0, workspace_bytes)
    }

    /// A context on a stream of this GPU, which it owns or, by an [`Arc`], shares.
    ///
    /// # Errors
    ///
    /// As for [`Context::new`].
    pub fn on_stream(
        device: &CudaDevice,
        stream: impl Into<Arc<Stream>>,
        workspace_bytes: usize,
    ) -> Result<Context, DeviceError> {
        let stream = stream.into();
        let handle = stream.as_inner().cast();
        // SAFETY: the context keeps the stream.
        let mut context = unsafe { Context::on_raw_stream(device, handle, workspace_bytes)? };
        context._stream = Some(device.own(stream));
        Ok(context)
    }

    /// A context on a stream of this GPU by its handle, a `CUstream` or `cudaStream_t`: that of a
    /// stream of cudarc or PyTorch, or null, which is the default stream.
    ///
    /// # Errors
    ///
    /// As for [`Context::new`].
    ///
    /// # Safety
    ///
    /// The stream is of the GPU's primary context, which is also that of the CUDA runtime and of
    /// cudarc, and is not destroyed before the context is dropped. If the handle is that of another
    /// stream in each thread (`CU_STREAM_PER_THREAD`), the context stays in its thread.
    pub unsafe fn on_raw_stream(
        device: &CudaDevice,
        stream: *mut c_void,
        workspace_bytes: usize,
    ) -> Result<Context, DeviceError> {
        // SAFETY: as the caller vouches.
        let stream = unsafe { CudaStream::from_raw(device, stream) };
        let chooser = Chooser::of_properties(device.properties()).0;
        Context::at(Box::new(stream), chooser, workspace_bytes)
    }

    fn at(
        backend: Box<dyn Backend>,
        chooser: Chooser,
        workspace_bytes: usize,
    ) -> Result<Context, DeviceError> {
        let entered = backend.enter()?;
        let floats = workspace_bytes.max(SMALLEST).div_ceil(size_of::<f32>());
        let workspace = Buffer::new(&*backend, floats)?;
        drop(entered);
        Ok(Context {
            workspace,
            backend,
            chooser,
            last: Cell::new(None),
            _stream: None,
        })
    }

    /// The same context, but f32 may be split into two f16 ([`Chooser::allowing_split`]). The
    /// split copies need as much workspace as A and B, and [`Context::prepare`] provides it.
    ///
    /// ```
    /// # use gpu_gemm::{Context, Device};
    /// # let device = Device::simulator();
    /// let context = Context::new(&device, 0)?.allowing_split();
    /// # Ok::<(), gpu_gemm::DeviceError>(())
    /// ```
    pub fn allowing_split(mut self) -> Context {
        self.chooser.allow(choose::SPLIT);
        self
    }

    /// The same context, but f32 may be rounded to tf32 or split ([`Chooser::allowing_tf32`]).
    pub fn allowing_tf32(mut self) -> Context {
        self.chooser.allow(choose::TF32);
        self
    }

    /// The same context, but it uses only this kernel for matrices of the kernel's types.
    ///
    /// ```
    /// use gpu_gemm::gpu_kernels::naive;
    /// use gpu_gemm::{Choice, Context, DataType, Device, Shape};
    ///
    /// let device = Device::simulator();
    /// let naive = Choice::even(&naive::KERNEL.variants[0]);
    /// let context = Context::new(&device, 0)?.with_kernel(naive);
    /// assert_eq!(context.chooser().choose(DataType::F32, Shape::cube(4096)), Some(naive));
    /// # Ok::<(), gpu_gemm::DeviceError>(())
    /// ```
    pub fn with_kernel(mut self, choice: Choice) -> Context {
        self.chooser.fix(choice);
        self
    }

    /// The chooser of its kernels: it uses the measurements of `rust-gemm tune` on this GPU, if
    /// there are any, and otherwise a model.
    pub fn chooser(&self) -> &Chooser {
        &self.chooser
    }

    /// The memory that its matrices are in.
    pub(crate) fn space(&self) -> Space {
        self.backend.space()
    }

    /// The size of the workspace in bytes.
    pub fn workspace_bytes(&self) -> usize {
        self.workspace.len() * size_of::<f32>()
    }

    /// Prepares for products of a shape, of matrices of `data_type`: makes the driver compile
    /// their kernels, which otherwise happens at the first call, and enlarges the workspace for
    /// the fastest plan. It waits for running work. A and B are assumed to begin at multiples of
    /// 16 bytes and to have no gaps between rows.
    ///
    /// ```
    /// # use gpu_gemm::{Context, DataType, Device, Shape, Transpose};
    /// # let device = Device::simulator();
    /// # let mut context = Context::new(&device, 0)?;
    /// context.prepare(DataType::F32, Shape::cube(512), Transpose::No, Transpose::No)?;
    /// # Ok::<(), gpu_gemm::DeviceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// There is not enough memory for the workspace, the device has no kernel for the type, or the
    /// GPU fails.
    pub fn prepare(
        &mut self,
        data_type: impl Into<DataType>,
        shape: Shape,
        transpose_a: Transpose,
        transpose_b: Transpose,
    ) -> Result<(), DeviceError> {
        self.prepare_batch(data_type, shape, transpose_a, transpose_b, 1)
    }

    /// [`Context::prepare`] for batches of `batch` products of a shape. Their matrices are assumed
    /// to follow each other. Batches of batches, `(outer, inner)`, are prepared for any strides.
    ///
    /// # Errors
    ///
    /// As for [`Context::prepare`].
    pub fn prepare_batch(
        &mut self,
        data_type: impl Into<DataType>,
        shape: Shape,
        transpose_a: Transpose,
        transpose_b: Transpose,
        batch: impl Into<Nested>,
    ) -> Result<(), DeviceError> {
        let data_type = data_type.into();
        let one = Call::compact(shape, transpose_a, transpose_b, data_type.inputs);
        let (outer, inner) = batch.into().counts();
        // What `Product::batches` launches: all of them, or one for each of the smaller count.
        for count in [outer.saturating_mul(inner), outer.max(inner)] {
            self.reserve(data_type, one.repeated(count, data_type.inputs))?;
        }
        Ok(())
    }

    /// The fastest plan of a call, with its kernels compiled and a large enough workspace; `None`
    /// if no product of this size can exist.
    ///
    /// # Errors
    ///
    /// As for [`Context::prepare`].
    pub(crate) fn reserve(
        &mut self,
        data_type: DataType,
        call: Call,
    ) -> Result<Option<Arc<Plan>>, DeviceError> {
        let Ok(plan) = self.chooser.plan(data_type, call, usize::MAX) else {
            return Ok(None);
        };
        self.check(&plan)?;
        let _entered = self.backend.enter()?;
        self.backend.compile(&plan)?;
        if plan.workspace_bytes() > self.workspace_bytes() {
            self.synchronize()?;
            let floats = plan.workspace_bytes().div_ceil(size_of::<f32>());
            self.workspace = Buffer::new(&*self.backend, floats)?;
        }
        Ok(Some(plan))
    }

    /// Waits for everything on the stream.
    ///
    /// # Errors
    ///
    /// A kernel crashed: the error names the one that was launched last.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        let _entered = self.backend.enter()?;
        match self.last.get() {
            Some(kernel) => self.backend.finish(kernel),
            None => self.backend.synchronize(),
        }
    }

    /// Marks the point after everything on the stream.
    ///
    /// # Errors
    ///
    /// The GPU fails.
    pub fn mark(&self) -> Result<Mark, DeviceError> {
        let _entered = self.backend.enter()?;
        self.backend.mark()
    }

    /// Memory of the context's device for `length` numbers, with unspecified values.
    ///
    /// # Errors
    ///
    /// There is not enough memory for them.
    pub fn allocate<T: Element>(&self, length: usize) -> Result<Buffer<T>, DeviceError> {
        let _entered = self.backend.enter()?;
        Buffer::new(&*self.backend, length)
    }

    /// Copies numbers to memory of the context's device.
    ///
    /// # Errors
    ///
    /// There is not enough memory for them, or the GPU fails.
    pub fn upload<T: Element>(&self, numbers: &[T]) -> Result<Buffer<T>, DeviceError> {
        let _entered = self.backend.enter()?;
        let mut buffer = self.allocate(numbers.len())?;
        buffer.write(&*self.backend, 0, numbers)?;
        Ok(buffer)
    }

    /// Memory of the context's device for `length` zeros.
    ///
    /// # Errors
    ///
    /// As for [`Context::upload`].
    pub fn zeros<T: Element>(&self, length: usize) -> Result<Buffer<T>, DeviceError> {
        self.upload(&vec![T::default(); length])
    }

    /// Copies numbers to the start of a buffer, after everything on the stream.
    ///
    /// # Errors
    ///
    /// The GPU fails.
    ///
    /// # Panics
    ///
    /// If the buffer is shorter, or another device's.
    pub fn upload_into<T: Element>(
        &self,
        numbers: &[T],
        buffer: &mut Buffer<T>,
    ) -> Result<(), DeviceError> {
        let _entered = self.backend.enter()?;
        self.synchronize()?;
        buffer.write(&*self.backend, 0, numbers)
    }

    /// Copies numbers from memory of the context's device, after everything on the stream.
    ///
    /// # Errors
    ///
    /// The GPU fails.
    pub fn download<T: Element>(&self, buffer: &Buffer<T>) -> Result<Vec<T>, DeviceError> {
        let mut numbers = vec![T::default(); buffer.len()];
        self.download_into(buffer, &mut numbers)?;
        Ok(numbers)
    }

    /// [`Context::download`] of the first elements of a buffer, as many as `numbers` has.
    ///
    /// ```
    /// # use gpu_gemm::{Context, Device};
    /// # let device = Device::simulator();
    /// # let context = Context::new(&device, 0)?;
    /// let mut buffer = context.zeros::<f32>(3)?;
    /// context.upload_into(&[1.0, 2.0], &mut buffer)?;
    /// let mut numbers = [f32::NAN; 3];
    /// context.download_into(&buffer, &mut numbers)?;
    /// assert_eq!(numbers, [1.0, 2.0, 0.0]);
    /// # Ok::<(), gpu_gemm::DeviceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The GPU fails.
    ///
    /// # Panics
    ///
    /// If the buffer is shorter, or another device's.
    pub fn download_into<T: Element>(
        &self,
        buffer: &Buffer<T>,
        numbers: &mut [T],
    ) -> Result<(), DeviceError> {
        let _entered = self.backend.enter()?;
        self.synchronize()?;
        buffer.read_into(&*self.backend, 0, numbers)
    }

    /// The plan that a call of this context on matrices of `data_type` runs.
    ///
    /// # Errors
    ///
    /// The workspace is too small for any plan: the call runs in parts.
    pub fn plan(&self, data_type: impl Into<DataType>, call: Call) -> Result<Arc<Plan>, GemmError> {
        self.plan_among(Variants::LIBRARY, data_type.into(), call)
    }

    /// [`Context::plan`] of a product with its epilogue, for [`Context::launch`].
    ///
    /// # Errors
    ///
    /// As there, and no kernel of this device has the epilogue.
    pub fn plan_of(&self, product: &Product) -> Result<Arc<Plan>, GemmError> {
        let (data_type, facts) = (product.data_type, self.chooser.facts());
        let is_for = |one: &Variant| one.types.data_type() == data_type && facts.runs(one);
        if let Some(Fusion {
            kernels, variants, ..
        }) = product.epilogue
            && !variants.iter().any(is_for)
        {
            return Err(GemmError::NoFusedKernel { kernels, data_type });
        }
        self.plan_among(Context::variants_for(product), data_type, product.call())
    }

    /// The library's own, or those with the product's epilogue.
    fn variants_for(product: &Product) -> Variants {
        let fused = product
            .epilogue
            .map(|fusion| Variants::fused(fusion.variants));
        fused.unwrap_or(Variants::LIBRARY)
    }

    fn plan_among(
        &self,
        variants: Variants,
        data_type: DataType,
        call: Call,
    ) -> Result<Arc<Plan>, GemmError> {
        let bytes = self.workspace_bytes();
        let plan = self.chooser.plan_among(variants, data_type, call, bytes);
        plan.map_err(|needed| GemmError::Workspace {
            data_type,
            needed,
            available: self.workspace_bytes(),
        })
    }

    /// Checks that the device has the tensor cores that a plan's kernel needs.
    fn check(&self, plan: &Plan) -> Result<(), DeviceError> {
        match DeviceError::lacks_tensor_cores(self.chooser.facts(), plan.variant()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Launches a product with the best plan that fits the workspace; if none fits, in parts. For
    /// callers that know the types only now, and so have no use for [`gemm`].
    ///
    /// # Errors
    ///
    /// As for [`gemm`], except that nothing is checked about the matrices.
    ///
    /// # Safety
    ///
    /// As for [`gemm`] and [`gemm_fused`], and the matrices, as the product describes them, are in
    /// memory of the device. Alpha and beta are of the type of sums.
    ///
    /// [`gemm`]: crate::gemm()
    /// [`gemm_fused`]: crate::gemm_fused
    pub unsafe fn enqueue(&self, product: &Product) -> Result<(), GemmError> {
        let plan = match self.plan_of(product) {
            Ok(plan) => plan,
            Err(error @ GemmError::Workspace { .. }) => {
                let Some([first, second]) = product.halves() else {
                    // If no kernel runs at all, that is the error, not the workspace.
                    let (data_type, call) = (product.data_type, product.call());
                    let variants = Context::variants_for(product);
                    let plan = self
                        .chooser
                        .plan_among(variants, data_type, call, usize::MAX);
                    if let Ok(plan) = plan {
                        self.check(&plan)?;
                    }
                    return Err(error);
                };
                // SAFETY: they are parts of the product, launched one after the other.
                return unsafe {
                    self.enqueue(&first)?;
                    self.enqueue(&second)
                };
            }
            Err(error) => return Err(error),
        };
        // SAFETY: the caller vouches for the matrices; the plan fits the workspace.
        unsafe { self.launch(&plan, product)? };
        Ok(())
    }

    /// Launches a product with its plan.
    ///
    /// # Errors
    ///
    /// The device has no kernel for the type, refuses a launch, or fails.
    ///
    /// # Safety
    ///
    /// As for [`Context::enqueue`], and the plan is the product's, of this context
    /// ([`Context::plan_of`]), so that the workspace is large enough.
    pub unsafe fn launch(&self, plan: &Plan, product: &Product) -> Result<(), DeviceError> {
        // SAFETY: the caller vouches for the matrices; the workspace is as large as the plan
        // requires, and launches use it one after the other.
        unsafe { self.launch_with(plan, product, self.workspace.start().cast()) }
    }

    /// [`Context::launch`] with another workspace.
    ///
    /// # Safety
    ///
    /// As there, of this workspace.
    pub(crate) unsafe fn launch_with(
        &self,
        plan: &Plan,
        product: &Product,
        workspace: *mut u8,
    ) -> Result<(), DeviceError> {
        self.check(plan)?;
        let _entered = self.backend.enter()?;
        self.last.set(Some(match plan.variant() {
            variant if variant.epilogue_bytes.is_some() => variant.entry.name,
            variant => variant.name,
        }));
        // SAFETY: as the caller vouches.
        unsafe { run(&*self.backend, plan, &product.bindings(workspace)) }
    }
}

impl Drop for Context {
    /// Waits, so that no running kernel loses its workspace.
    fn drop(&mut self) {
        // After a crash nothing is running.
        let _ = self.synchronize();
    }
}

#[cfg(test)]
mod tests {
    use gpu_kernels::spec::ElementType;

    use super::*;
    use crate::gemm;

    /// As a program keeps them: in a struct, without a lifetime.
    struct Model {
        weights: Buffer<f32>,
        context: Context,
    }

    #[test]
    fn contexts_of_one_device_outlive_its_handle_and_multiply_in_threads_of_their_own() {
        let device = Device::simulator();
        let models = [1.0, 2.0].map(|weight| {
            let context = Context::new(&device, 0).unwrap();
            let weights = context.upload(&[weight]).unwrap();
            Model { weights, context }
        });
        drop(device);
        let multiply = |Model { weights, context }: Model| {
            let mut c = context.zeros::<f32>(1).unwrap();
            // SAFETY: the simulator is done when the call returns.
            let done = unsafe {
                gemm(
                    &context, 3.0, &weights, 1, &weights, 1, 0.0, &mut c, 1, 1, 1, 1,
                )
            };
            done.unwrap();
            context.download(&c).unwrap()
        };
        let threads = models.map(|model| std::thread::spawn(move || multiply(model)));
        let products = threads.map(|thread| thread.join().unwrap());
        assert_eq!(products, [[3.0], [12.0]]);
    }

    #[test]
    fn a_context_splits_f32_or_rounds_it_to_tf32_only_where_that_is_allowed() {
        let device = Device::simulator();
        let context = || Context::new(&device, 0).unwrap();
        let name = |context: Context| {
            let choice = context
                .chooser()
                .choose(ElementType::F32, Shape::cube(4096));
            choice.unwrap().variant.name
        };
        assert_eq!(name(context()), "wide-thread-tile");
        assert_eq!(name(context().allowing_split()), "split-fp32");
        assert_eq!(name(context().allowing_tf32()), "warp-specialized-tf32");
    }
}
