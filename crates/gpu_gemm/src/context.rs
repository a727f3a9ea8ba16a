//! A device, a stream and a workspace to multiply with, and the library call.

use std::cell::Cell;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::Arc;

use cust::stream::Stream;
use gpu_kernels::epilogue::{Epilogue, Fused};
use gpu_kernels::spec::{DataType, Variant};

use crate::backend::{Backend, Mark, run};
use crate::buffer::Buffer;
use crate::call::{Call, MatrixLayout, Shape, Transpose};
use crate::choose::{self, Choice, Chooser, Variants};
use crate::device::{CudaDevice, CudaStream, Device};
use crate::error::DeviceError;
use crate::launch::{Element, MultipliesInto};
use crate::matrix::{GemmError, Input, Output, Span};
use crate::plan::Plan;
use crate::product::{Fusion, Product, Stored};

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
pub struct Context<'device> {
    backend: Box<dyn Backend + 'device>,
    chooser: Chooser,
    /// The elements are floats for alignment.
    workspace: Buffer<f32>,
    /// The kernel that was launched last, which the error names if the GPU crashes.
    last: Cell<Option<&'static str>>,
    /// Only one thread at a time may launch work that uses the workspace.
    not_sync: PhantomData<Cell<()>>,
}

impl<'device> Context<'device> {
    /// A context on the simulator, an OpenCL device, or the GPU's own stream, with a workspace of
    /// this many bytes, such as [`WORKSPACE`], and of at least one MiB. If the best plan for a
    /// product needs a larger workspace, the product runs with a plan that needs less, or in
    /// parts: slower and with different rounding. Elements of 16 bits need workspace if rows of A
    /// or B do not begin at multiples of 16 bytes. Products with a C of 16 bits are not cut along
    /// K, since each part would round C once more, so that [`gemm`] may refuse one with a long K.
    ///
    /// # Errors
    ///
    /// There is not enough memory for the workspace, the GPU fails, or there are several devices.
    pub fn new(
        device: &'device Device,
        workspace_bytes: usize,
    ) -> Result<Context<'device>, DeviceError> {
        let backend = device.as_backend(&|| ())?;
        Context::at(backend, Chooser::of(device).0, workspace_bytes)
    }

    /// A context on a stream of this GPU that the caller owns.
    ///
    /// # Errors
    ///
    /// As for [`Context::new`].
    pub fn on_stream(
        device: &'device CudaDevice,
        stream: &'device Stream,
        workspace_bytes: usize,
    ) -> Result<Context<'device>, DeviceError> {
        // SAFETY: the stream lives as long as the context.
        unsafe { Context::on_raw_stream(device, stream.as_inner().cast(), workspace_bytes) }
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
    /// cudarc, and is not destroyed before the context is dropped.
    pub unsafe fn on_raw_stream(
        device: &'device CudaDevice,
        stream: *mut c_void,
        workspace_bytes: usize,
    ) -> Result<Context<'device>, DeviceError> {
        // SAFETY: as the caller vouches.
        let stream = unsafe { CudaStream::from_raw(device, stream) };
        Context::at(
            Box::new(stream),
            Chooser::of_properties(device.properties()).0,
            workspace_bytes,
        )
    }

    fn at(
        backend: Box<dyn Backend + 'device>,
        chooser: Chooser,
        workspace_bytes: usize,
    ) -> Result<Context<'device>, DeviceError> {
        let entered = backend.enter()?;
        let floats = workspace_bytes.max(SMALLEST).div_ceil(size_of::<f32>());
        let workspace = Buffer::new(&*backend, floats)?;
        drop(entered);
        Ok(Context {
            workspace,
            backend,
            chooser,
            last: Cell::new(None),
            not_sync: PhantomData,
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
    pub fn allowing_split(mut self) -> Context<'device> {
        self.chooser.allow(choose::SPLIT);
        self
    }

    /// The same context, but f32 may be rounded to tf32 or split ([`Chooser::allowing_tf32`]).
    pub fn allowing_tf32(mut self) -> Context<'device> {
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
    pub fn with_kernel(mut self, choice: Choice) -> Context<'device> {
        self.chooser.fix(choice);
        self
    }

    /// The chooser of its kernels: it uses the measurements of `rust-gemm tune` on this GPU, if
    /// there are any, and otherwise a model.
    pub fn chooser(&self) -> &Chooser {
        &self.chooser
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
    /// to follow each other.
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
        batch: usize,
    ) -> Result<(), DeviceError> {
        let data_type = data_type.into();
        let one = Call::compact(shape, transpose_a, transpose_b, data_type.inputs);
        self.reserve(data_type, one.repeated(batch, data_type.inputs))?;
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

    /// Launches a grouped product.
    ///
    /// # Safety
    ///
    /// As for [`gemm_grouped`] or [`gemm_grouped_along_k`], and the matrices and `ends` have been
    /// checked.
    unsafe fn enqueue_grouped(
        &self,
        product: &Product,
        ends: Span,
        is_along_k: bool,
    ) -> Result<(), GemmError> {
        let (data_type, call) = (product.data_type, product.call());
        let facts = self.chooser.facts();
        let plan = match is_along_k {
            true => choose::grouped_along_k(data_type, call, facts)
                .ok_or(GemmError::NoGroupedKernelAlongK { data_type })?,
            false => choose::grouped(data_type, call, facts)
                .ok_or(GemmError::NoGroupedKernel { data_type })?,
        };
        // SAFETY: the caller vouches for the matrices; the kernel takes the ends for a workspace.
        unsafe { self.launch_with(&plan, product, ends.start)? };
        Ok(())
    }

    /// Launches a gated product.
    ///
    /// # Safety
    ///
    /// As for [`gemm_gated`], and the matrices have been checked.
    unsafe fn enqueue_gated(&self, product: &Product) -> Result<(), GemmError> {
        let (data_type, call) = (product.data_type, product.call());
        let (kernels, variants) = match product.epilogue {
            Some(fusion) => (fusion.kernels, fusion.variants),
            None => ("The library", &[][..]),
        };
        let plan = choose::gated(variants, data_type, call, self.chooser.facts());
        let plan = plan.ok_or(GemmError::NoGatedKernel { kernels, data_type })?;
        // SAFETY: the caller vouches for the matrices; the kernel splits no tiles.
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
    unsafe fn launch_with(
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

impl Drop for Context<'_> {
    /// Waits, so that no running kernel loses its workspace.
    fn drop(&mut self) {
        // After a crash nothing is running.
        let _ = self.synchronize();
    }
}

/// `C = alpha * op(A) * op(B) + beta * C`, on matrices in the memory of the context's device. On a
/// GPU it only launches, on the context's stream, and returns at once: it neither waits nor
/// allocates nor copies between host and GPU. Only the first call that uses a kernel also makes
/// the driver compile it, unless [`Context::prepare`] already did. On the simulator it returns
/// when C has been computed, and with OpenCL it waits for kernels that may panic.
///
/// All matrices are row-major. op(A) is `m x k`, op(B) is `k x n`, C is `m x n`;
/// [`Input::transposed`] transposes a matrix. A leading dimension is the number of elements from
/// the start of a row *as stored* to the start of the next:
///
/// | | stored as | leading dimension |
/// | --- | --- | --- |
/// | `a` | `m x k` | `lda >= k` |
/// | `a.transposed()` | `k x m` | `lda >= m` |
/// | `b` | `k x n` | `ldb >= n` |
/// | `b.transposed()` | `n x k` | `ldb >= k` |
/// | `c` | `m x n` | `ldc >= n` |
///
/// Any m, n and k, 0 included; any leading dimension and any alignment. As in BLAS, C is not read
/// if `beta` is 0 (it may hold NaNs), nor are A and B if `alpha` is 0. Repeating a call on a
/// context gives a bit-identical result.
///
/// The buffers determine `T`, the type of A and B, and `C`:
///
/// | `T` | `C` | `alpha`, `beta` and sums | devices |
/// | --- | --- | --- | --- |
/// | `f32` | `f32` | `f32` | all |
/// | `f64` | `f64` | `f64` | all except OpenCL devices without `f64` |
/// | `i32` | `i32` | `i32`, and wrap | all |
/// | [`Bf16`], [`F16`] | the same, or `f32` | `f32` | GPUs since 8.0, the simulator |
/// | `i8` | `i32` | `i32`, and wrap | GPUs of 9.0, the simulator |
/// | [`E4m3`] | [`Bf16`] or `f32` | `f32` | GPUs of 9.0, the simulator |
///
/// Elements of 16 bits are multiplied on tensor cores. A C of 16 bits is rounded once, when it is
/// written; a C of `f32` holds the sums without rounding, so that products can be added up in it.
/// Where A and B are of [`E4m3`] and have a scale each, `alpha` is the product of the two.
///
/// [`Bf16`]: crate::Bf16
/// [`F16`]: crate::F16
/// [`E4m3`]: crate::E4m3
///
/// ```
/// # use gpu_gemm::{Bf16, Context, Device, DeviceError, GemmError, gemm};
/// # let device = Device::simulator();
/// # let context = Context::new(&device, 0)?;
/// let twos = vec![Bf16::from_f32(2.0); 16 * 16];
/// let (a, b) = (context.upload(&twos)?, context.upload(&twos)?);
/// let mut c = context.upload(&twos)?;
/// // SAFETY: the buffers live until `download` has waited for the product.
/// unsafe { gemm(&context, 0.25, &a, 16, &b, 16, 1.0, &mut c, 16, 16, 16, 16)? };
/// assert_eq!(context.download(&c)?, [Bf16::from_f32(18.0); 16 * 16]);
///
/// // 257 is representable in f32, but not in bf16.
/// let mut c = context.upload(&[1.0f32; 16 * 16])?;
/// // SAFETY: as above.
/// unsafe { gemm(&context, 4.0, &a, 16, &b, 16, 1.0, &mut c, 16, 16, 16, 16)? };
/// assert_eq!(context.download(&c)?, [257.0; 16 * 16]);
/// # Ok::<(), GemmError>(())
/// ```
///
/// # Errors
///
/// A leading dimension is too small, a matrix does not fit into its memory or is in another
/// device's memory, the device has no kernel for `T`, the workspace is too small for a C of 16
/// bits, unaligned rows and a long K, or the GPU fails. In all cases but the last, nothing has
/// been launched.
///
/// # Safety
///
/// A, B and C are memory of the context's device that stays allocated until the stream has
/// completed this call. Nothing else writes A or B, or touches C, before that; C overlaps neither
/// A nor B. If the GPU or another kernel crashes, the contents of C are undefined.
#[allow(clippy::too_many_arguments)] // BLAS's own
pub unsafe fn gemm<'a, 'b, 'c, T: MultipliesInto<C>, C: Element>(
    context: &Context<'_>,
    alpha: T::Scalar,
    a: impl Into<Input<'a, T>>,
    lda: usize,
    b: impl Into<Input<'b, T>>,
    ldb: usize,
    beta: T::Scalar,
    c: impl Into<Output<'c, C>>,
    ldc: usize,
    m: usize,
    n: usize,
    k: usize,
) -> Result<(), GemmError> {
    // SAFETY: as the caller vouches.
    unsafe {
        gemm_strided_batched(
            context, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, m, n, k, 1,
        )
    }
}

/// [`gemm`] of `batch` products of one shape. The first product's matrices are at the start of A,
/// B and C; the next product's are `stride_a`, `stride_b` and `stride_c` elements further on, and
/// so on. Strides of A and B may be any number, even 0: then all products read the same matrix.
/// The matrices C may follow each other, or be side by side within `ldc`.
///
/// They are one launch, unless A or B must be copied first, or a few products have too few tiles
/// to fill the GPU and are split along K: then they are launched one after the other, without
/// waiting on the host.
///
/// # Errors
///
/// As for [`gemm`], for all products' matrices together, and if the matrices C overlap.
///
/// # Safety
///
/// As for [`gemm`], for all products' matrices.
#[allow(clippy::too_many_arguments)] // BLAS's own
pub unsafe fn gemm_strided_batched<'a, 'b, 'c, T: MultipliesInto<C>, C: Element>(
    context: &Context<'_>,
    alpha: T::Scalar,
    a: impl Into<Input<'a, T>>,
    lda: usize,
    stride_a: usize,
    b: impl Into<Input<'b, T>>,
    ldb: usize,
    stride_b: usize,
    beta: T::Scalar,
    c: impl Into<Output<'c, C>>,
    ldc: usize,
    stride_c: usize,
    m: usize,
    n: usize,
    k: usize,
    batch: usize,
) -> Result<(), GemmError> {
    // SAFETY: as the caller vouches.
    unsafe {
        multiply::<T, C>(
            context,
            None,
            Batched::Products,
            [alpha, beta],
            (a.into(), lda, stride_a),
            (b.into(), ldb, stride_b),
            (c.into(), ldc, stride_c),
            Shape::new(m, n, k),
            batch,
        )
    }
}

/// [`gemm_strided_batched`] with an epilogue: `C = epilogue(alpha * op(A) * op(B) + beta * C)`, in
/// the kernels that multiply, by those of `kernels` that are for the matrices' types. Which of them
/// runs, the context's chooser decides. Sums are f32, and a C of 16 bits is rounded once, after the
/// epilogue.
///
/// `kernels` are written by [`gpu_kernels::fused!`], and a GPU runs them if its device has them
/// ([`Device::with_kernels`]). The first call compiles them. The workspace is as large as it is
/// ([`Context::prepare`] is for calls without an epilogue), and [`Context::with_kernel`] and what
/// was tuned have no effect.
///
/// The library's own kernels are compiled with a bias, and with a bias and an activation
/// (`gpu_kernels::epilogue::Compiled`):
///
/// ```
/// # #[cfg(feature = "epilogues")] {
/// # use gpu_gemm::{Context, Device, gemm_fused};
/// use gpu_gemm::gpu_kernels::epilogue::{Bias, Compiled, Relu, Then};
///
/// # let device = Device::simulator();
/// # let context = Context::new(&device, 0)?;
/// let (a, b) = (context.upload(&[1.0f32, 2.0])?, context.upload(&[3.0f32, -4.0])?);
/// let bias = context.upload(&[-1.0f32, 1.0])?;
/// let mut c = context.allocate(4)?;
/// let relu = Then(Bias(bias.start()), Relu);
/// let kernels = Compiled::kernels();
/// // SAFETY: the buffers live until `download` has waited for the product.
/// unsafe {
///     gemm_fused(
///         &context, kernels, relu, 1.0, &a, 1, 0, &b, 2, 0, 0.0, &mut c, 2, 0, 2, 2, 1, 1,
///     )?;
/// }
/// assert_eq!(context.download(&c)?, [2.0, 0.0, 5.0, 0.0]);
/// # }
/// # Ok::<(), gpu_gemm::GemmError>(())
/// ```
///
/// # Errors
///
/// As for [`gemm_strided_batched`], and if no kernel of `kernels` multiplies the types on this
/// device. A product is never cut along K, so a workspace may be too small for copies of A and B.
///
/// # Safety
///
/// As for [`gemm_strided_batched`], and the pointers in `epilogue` are to memory of the context's
/// device that is valid, and stays so until the stream has completed this call, for what the
/// epilogue reads and writes at each place of C. Nothing else writes what it reads, or touches what
/// it writes, which overlaps none of A, B, C and the workspace.
#[allow(clippy::too_many_arguments)] // BLAS's own
pub unsafe fn gemm_fused<'a, 'b, 'c, T, C, E>(
    context: &Context<'_>,
    kernels: &'static Fused<E>,
    epilogue: E,
    alpha: f32,
    a: impl Into<Input<'a, T>>,
    lda: usize,
    stride_a: usize,
    b: impl Into<Input<'b, T>>,
    ldb: usize,
    stride_b: usize,
    beta: f32,
    c: impl Into<Output<'c, C>>,
    ldc: usize,
    stride_c: usize,
    m: usize,
    n: usize,
    k: usize,
    batch: usize,
) -> Result<(), GemmError>
where
    T: MultipliesInto<C, Scalar = f32>,
    C: Element<Scalar = f32>,
    E: Epilogue,
{
    const { assert!(!E::IS_GATE, "`gemm_gated` multiplies with a gate") }
    // SAFETY: as the caller vouches.
    unsafe {
        multiply::<T, C>(
            context,
            Some(Fusion::of(kernels, epilogue)),
            Batched::Products,
            [alpha, beta],
            (a.into(), lda, stride_a),
            (b.into(), ldb, stride_b),
            (c.into(), ldc, stride_c),
            Shape::new(m, n, k),
            batch,
        )
    }
}

/// `C = alpha * A * op(B[g]) + beta * C` for the rows of each of `groups` groups, in one launch: a
/// mixture of experts, where rows are tokens, sorted by expert, and each expert has a B. A is
/// `m x k`, C is `m x n`, and the matrices `op(B[g])` are `k x n`, each `stride_b` elements after
/// the one before it.
///
/// `ends` has the row after the last of each group, in the context's memory, where another kernel
/// may have written them: the host does not read them. The first group begins at row 0, and each
/// other where the one before it ends. A group may be empty. Rows of C after the last group are not
/// touched. (`offs` of PyTorch's `_grouped_mm` are such ends.)
///
/// There are kernels of [`Bf16`] and [`F16`], with a C of the same type, for Hopper, which the
/// simulator runs, too: for an A that is not transposed, and rows of A and B that begin at
/// multiples of 16 bytes. The workspace is not used.
///
/// [`Bf16`]: crate::Bf16
/// [`F16`]: crate::F16
///
/// ```
/// # use gpu_gemm::{Bf16, Context, Device, GemmError, gemm_grouped};
/// # let device = Device::simulator();
/// # let context = Context::new(&device, 0)?;
/// let numbers = |count| (0..count).map(|i| Bf16::from_f32((i / 64) as f32)).collect::<Vec<_>>();
/// let a = context.upload(&vec![Bf16::from_f32(1.0); 3 * 8])?; // three rows
/// let b = context.upload(&numbers(2 * 64))?; // a matrix of zeros, and one of ones
/// let mut c = context.allocate::<Bf16>(3 * 8)?;
/// let ends = context.upload(&[1, 3])?; // the first row is multiplied by zeros, two by ones
/// // SAFETY: the buffers live until `download` has waited for the product.
/// unsafe { gemm_grouped(&context, 1.0, &a, 8, &b, 8, 64, 0.0, &mut c, 8, &ends, 3, 8, 8, 2)? };
/// let c = context.download(&c)?;
/// assert_eq!([0, 8, 16].map(|first| c[first].to_f32()), [0.0, 8.0, 8.0]);
/// # Ok::<(), GemmError>(())
/// ```
///
/// # Errors
///
/// As for [`gemm`]; errors call the ends E, a matrix of one row. No kernel multiplies the type or
/// the layout of A and B, or this device does not run it.
///
/// # Safety
///
/// As for [`gemm`], for all matrices B, and for `ends` as for A. Each end is no less than the one
/// before it, and no more than `m`.
#[allow(clippy::too_many_arguments)] // BLAS's own
pub unsafe fn gemm_grouped<'a, 'b, 'c, 'e, T, C>(
    context: &Context<'_>,
    alpha: f32,
    a: impl Into<Input<'a, T>>,
    lda: usize,
    b: impl Into<Input<'b, T>>,
    ldb: usize,
    stride_b: usize,
    beta: f32,
    c: impl Into<Output<'c, C>>,
    ldc: usize,
    ends: impl Into<Input<'e, i32>>,
    m: usize,
    n: usize,
    k: usize,
    groups: usize,
) -> Result<(), GemmError>
where
    T: MultipliesInto<C, Scalar = f32>,
    C: Element<Scalar = f32>,
{
    // SAFETY: as the caller vouches.
    unsafe {
        multiply::<T, C>(
            context,
            None,
            Batched::Groups(ends.into().span),
            [alpha, beta],
            (a.into(), lda, 0),
            (b.into(), ldb, stride_b),
            (c.into(), ldc, 0),
            Shape::new(m, n, k),
            groups,
        )
    }
}

/// `C[g] = alpha * A[g]^T * B[g] + beta * C[g]` for each of `groups` groups of rows of A and B, in
/// one launch: the gradients of the weights in a mixture of experts, where rows are tokens, sorted
/// by expert, of A the inputs, and of B the gradients of the outputs. A is stored as `k x m` and so
/// transposed, B is `k x n`, and each C is `m x n`, `stride_c` elements after the one before it.
///
/// `ends` has the row after the last of each group, as for [`gemm_grouped`]; each may be any number
/// of rows. The C of an empty group is `beta * C`, and zero if `beta` is 0. Rows after the last
/// group are not read. (`offs` of PyTorch's `_grouped_mm` of two matrices are such ends.)
///
/// There are kernels of [`Bf16`] and [`F16`], with a C of the same type or of `f32`, for Hopper,
/// which the simulator runs, too: for rows of A and B that begin at multiples of 16 bytes. The
/// workspace is not used.
///
/// [`Bf16`]: crate::Bf16
/// [`F16`]: crate::F16
///
/// ```
/// # use gpu_gemm::{Bf16, Context, Device, GemmError, Input, gemm_grouped_along_k};
/// # let device = Device::simulator();
/// # let context = Context::new(&device, 0)?;
/// let ones = vec![Bf16::from_f32(1.0); 5 * 8]; // five rows
/// let (a, b) = (context.upload(&ones)?, context.upload(&ones)?);
/// let a = Input::from(&a).transposed();
/// let mut c = context.allocate::<f32>(3 * 64)?;
/// let ends = context.upload(&[2, 2, 5])?; // two rows, none, and three
/// // SAFETY: the buffers live until `download` has waited for the product.
/// unsafe {
///     gemm_grouped_along_k(
///         &context, 1.0, a, 8, &b, 8, 0.0, &mut c, 8, 64, &ends, 8, 8, 5, 3,
///     )?;
/// }
/// let c = context.download(&c)?;
/// assert_eq!([0, 64, 128].map(|first| c[first]), [2.0, 0.0, 3.0]);
/// # Ok::<(), GemmError>(())
/// ```
///
/// # Errors
///
/// As for [`gemm_grouped`], and if the matrices C overlap.
///
/// # Safety
///
/// As for [`gemm`], for all matrices C, and for `ends` as for A. Each end is no less than the one
/// before it, and no more than `k`.
#[allow(clippy::too_many_arguments)] // BLAS's own
pub unsafe fn gemm_grouped_along_k<'a, 'b, 'c, 'e, T, C>(
    context: &Context<'_>,
    alpha: f32,
    a: impl Into<Input<'a, T>>,
    lda: usize,
    b: impl Into<Input<'b, T>>,
    ldb: usize,
    beta: f32,
    c: impl Into<Output<'c, C>>,
    ldc: usize,
    stride_c: usize,
    ends: impl Into<Input<'e, i32>>,
    m: usize,
    n: usize,
    k: usize,
    groups: usize,
) -> Result<(), GemmError>
where
    T: MultipliesInto<C, Scalar = f32>,
    C: Element<Scalar = f32>,
{
    // SAFETY: as the caller vouches.
    unsafe {
        multiply::<T, C>(
            context,
            None,
            Batched::GroupsAlongK(ends.into().span),
            [alpha, beta],
            (a.into(), lda, 0),
            (b.into(), ldb, 0),
            (c.into(), ldc, stride_c),
            Shape::new(m, n, k),
            groups,
        )
    }
}

/// `C = gate(alpha * A * op(B1), alpha * A * op(B2)) + beta * C` in one launch: the gated unit of a
/// feed-forward layer, such as `silu(A * B1) * (A * B2)`, which is a SwiGLU. A is `m x k`, C is
/// `m x n`, op(B1) and op(B2) are `k x n`, the second `stride_b` elements after the first.
///
/// Most checkpoints have both in one matrix, `gate_up_proj`: of `2 * n` rows of `k` (`b`
/// transposed, `ldb = k`, `stride_b = n * k`), or of `k` rows of `2 * n` (`ldb = 2 * n`,
/// `stride_b = n`).
/// Sums and the gate are in f32; C is rounded once.
///
/// The library's own kernels (`gpu_kernels::epilogue::Compiled`) are compiled with `Gated<Silu>`,
/// and those of bf16 with a transposed B with `Gated<GeluTanh>`; others are written by
/// [`gpu_kernels::fused!`] with the bases in `gpu_kernels::gated`, as for [`gemm_fused`]. They are
/// of [`Bf16`] and [`F16`], with a C of the same type, for Hopper, and the simulator runs them,
/// too: for an A that is not transposed, and rows of A and B, and a `stride_b`, at multiples of 16
/// bytes. The workspace is not used.
///
/// [`Bf16`]: crate::Bf16
/// [`F16`]: crate::F16
///
/// ```
/// # #[cfg(feature = "epilogues")] {
/// # use gpu_gemm::{Bf16, Context, Device, gemm_gated};
/// use gpu_gemm::gpu_kernels::epilogue::{Compiled, Gated, Silu};
///
/// # let device = Device::simulator();
/// # let context = Context::new(&device, 0)?;
/// let a = context.upload(&[Bf16::from_f32(1.0); 8])?; // a row
/// let b = context.upload(&[0.25, 3.0].map(|x| [Bf16::from_f32(x); 64]).concat())?;
/// let mut c = context.allocate::<Bf16>(8)?;
/// let (swiglu, silu) = (Compiled::kernels(), Gated(Silu));
/// // SAFETY: the buffers live until `download` has waited for the product.
/// unsafe { gemm_gated(&context, swiglu, silu, 1.0, &a, 8, &b, 8, 64, 0.0, &mut c, 8, 1, 8, 8)? };
/// let right = 2.0 / (1.0 + (-2.0f32).exp()) * 24.0;
/// assert_eq!(context.download(&c)?, [Bf16::from_f32(right); 8]);
/// # }
/// # Ok::<(), gpu_gemm::GemmError>(())
/// ```
///
/// # Errors
///
/// As for [`gemm`]. No kernel of `kernels` multiplies the type or the layout of A and B, or this
/// device does not run it.
///
/// # Safety
///
/// As for [`gemm_fused`], for both matrices B.
#[allow(clippy::too_many_arguments)] // BLAS's own
pub unsafe fn gemm_gated<'a, 'b, 'c, T, C, E>(
    context: &Context<'_>,
    kernels: &'static Fused<E>,
    gate: E,
    alpha: f32,
    a: impl Into<Input<'a, T>>,
    lda: usize,
    b: impl Into<Input<'b, T>>,
    ldb: usize,
    stride_b: usize,
    beta: f32,
    c: impl Into<Output<'c, C>>,
    ldc: usize,
    m: usize,
    n: usize,
    k: usize,
) -> Result<(), GemmError>
where
    T: MultipliesInto<C, Scalar = f32>,
    C: Element<Scalar = f32>,
    E: Epilogue,
{
    const { assert!(E::IS_GATE, "`gemm_fused` multiplies with another epilogue") }
    // SAFETY: as the caller vouches.
    unsafe {
        multiply::<T, C>(
            context,
            Some(Fusion::of(kernels, gate)),
            Batched::Gate,
            [alpha, beta],
            (a.into(), lda, 0),
            (b.into(), ldb, stride_b),
            (c.into(), ldc, 0),
            Shape::new(m, n, k),
            2,
        )
    }
}

/// What a batch is.
#[derive(Clone, Copy)]
enum Batched {
    Products,
    /// Groups of rows of one A and one C, which end there.
    Groups(Span),
    /// Groups of rows of one A and one B, stored so, which end there.
    GroupsAlongK(Span),
    /// The two matrices B of one A and one C, for a gate.
    Gate,
}

/// [`gemm_strided_batched`], [`gemm_fused`], [`gemm_grouped`], [`gemm_grouped_along_k`] and
/// [`gemm_gated`]. Each matrix has a leading dimension and a stride.
///
/// # Safety
///
/// As for them.
#[allow(clippy::too_many_arguments)]
unsafe fn multiply<T: MultipliesInto<C>, C: Element>(
    context: &Context<'_>,
    epilogue: Option<Fusion>,
    batched: Batched,
    [alpha, beta]: [T::Scalar; 2],
    (a, lda, stride_a): (Input<'_, T>, usize, usize),
    (b, ldb, stride_b): (Input<'_, T>, usize, usize),
    (c, ldc, stride_c): (Output<'_, C>, usize, usize),
    Shape { m, n, k }: Shape,
    count: usize,
) -> Result<(), GemmError> {
    let [alpha, beta] = [alpha.scalar(), beta.scalar()];
    let space = context.backend.space();
    let one = count.min(1);
    let [count_a, count_b, count_c] = match batched {
        Batched::Products => [count; 3],
        Batched::Groups(_) | Batched::Gate => [one, count, one],
        Batched::GroupsAlongK(_) => [one, one, count],
    };
    let checked = |name, span: Span, transpose: Transpose, size, leading, (count, stride)| {
        let layout = MatrixLayout::one(transpose.of(size), leading).batched(count, stride);
        span.check(name, layout, space)?;
        Ok::<_, GemmError>(Stored {
            start: span.start,
            layout,
            transpose,
        })
    };
    let product = Product {
        data_type: T::DATA_TYPE,
        alpha,
        beta,
        a: checked('A', a.span, a.transpose, (m, k), lda, (count_a, stride_a))?,
        b: checked('B', b.span, b.transpose, (k, n), ldb, (count_b, stride_b))?,
        c: checked('C', c.span, Transpose::No, (m, n), ldc, (count_c, stride_c))?,
        epilogue,
        first: [0; 2],
    };
    let layout = product.c.layout;
    if layout.overlaps() {
        return Err(GemmError::Overlap { layout });
    }
    if let Batched::Groups(ends) | Batched::GroupsAlongK(ends) = batched {
        checked('E', ends, Transpose::No, (1, count), count.max(1), (1, 0))?;
    }
    let changes_nothing = beta.is_one() && product.shape().k == 0 && epilogue.is_none();
    if layout.extent() == 0 || changes_nothing {
        return Ok(());
    }
    // SAFETY: the caller vouches for the matrices, and their extents have been checked.
    unsafe {
        match batched {
            Batched::Products => context.enqueue(&product),
            Batched::Groups(ends) => context.enqueue_grouped(&product, ends, false),
            Batched::GroupsAlongK(ends) => context.enqueue_grouped(&product, ends, true),
            Batched::Gate => context.enqueue_gated(&product),
        }
    }
}

#[cfg(test)]
mod tests {
    use gpu_kernels::spec::ElementType;

    use super::*;

    #[test]
    fn a_context_splits_f32_or_rounds_it_to_tf32_only_where_that_is_allowed() {
        let device = Device::simulator();
        let context = || Context::new(&device, 0).unwrap();
        let name = |context: Context<'_>| {
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
