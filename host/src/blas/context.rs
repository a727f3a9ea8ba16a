//! A GPU, a stream and a workspace to multiply with.

use std::io;

use cust::memory::DeviceBuffer;
use cust::stream::Stream;
use gpu_kernels::KERNELS;

use super::call::{Call, Transpose};
use super::job::Job;
use super::operand::{BlasError, Operand, Target, extent};
use super::plan::Plan;
use crate::choose::Chooser;
use crate::device::planned::{Functions, Launcher, Workspace};
use crate::device::uploaded::{self, Operands};
use crate::device::{CudaDevice, DeviceError};
use crate::problem::Shape;

/// Bytes of a workspace that suits most products: a copy of a matrix of 8192 x 8192, and partial sums.
pub const WORKSPACE: usize = 320 << 20;

/// Bytes of the smallest workspace: enough for the smallest part that a product is cut into.
const SMALLEST: usize = 1 << 20;

/// What [`gemm`] multiplies with: the kernels, looked up, a stream to launch them on, and a workspace for copies of operands and
/// for partial sums.
///
/// Products of one context share its workspace, so they run one after the other, in the order of the calls. For products at the
/// same time take a context for each stream.
pub struct Context<'device> {
    device: &'device CudaDevice,
    stream: &'device Stream,
    functions: Functions<'device>,
    chooser: Chooser,
    workspace: Workspace<f32>,
    workspace_elements: usize,
}

impl<'device> Context<'device> {
    /// A context on the device's own stream with a workspace of so many bytes, such as [`WORKSPACE`]; at least of one MiB. With fewer
    /// than the best plan for a product takes, it gets one that takes less, or is done in parts: slower, and with other
    /// rounding, but done.
    ///
    /// # Errors
    ///
    /// There is no memory for the workspace, or the GPU fails.
    pub fn new(
        device: &'device CudaDevice,
        workspace_bytes: usize,
    ) -> Result<Context<'device>, DeviceError> {
        Context::on_stream(device, device.stream(), workspace_bytes)
    }

    /// A context on a stream of the caller's.
    ///
    /// # Errors
    ///
    /// As [`Context::new`].
    pub fn on_stream(
        device: &'device CudaDevice,
        stream: &'device Stream,
        workspace_bytes: usize,
    ) -> Result<Context<'device>, DeviceError> {
        device.enter()?;
        let chooser = Chooser::of_gpu(device, &mut io::sink())?;
        let variants = KERNELS.iter().flat_map(|kernel| kernel.variants);
        let usable = variants.filter(|variant| chooser.may_choose(variant));
        let workspace_elements = workspace_bytes.max(SMALLEST) / size_of::<f32>();
        Ok(Context {
            device,
            stream,
            functions: Functions::load(device, usable)?,
            workspace: Workspace::allocate(device, workspace_elements)?,
            chooser,
            workspace_elements,
        })
    }

    /// The GPU.
    pub fn device(&self) -> &'device CudaDevice {
        self.device
    }

    /// The stream that everything is launched on.
    pub fn stream(&self) -> &'device Stream {
        self.stream
    }

    /// What chooses its kernels: by what `host tune` measured on this GPU, if it did, else by a model.
    pub fn chooser(&self) -> &Chooser {
        &self.chooser
    }

    /// Bytes of the workspace.
    pub fn workspace_bytes(&self) -> usize {
        self.workspace_elements * size_of::<f32>()
    }

    /// Makes the workspace as large as the fastest plan of a product likes it, if it is smaller; waits for what is running. A and
    /// B are taken to begin at multiples of 16 bytes, with rows that lie side by side.
    ///
    /// # Errors
    ///
    /// There is no memory for it, or the GPU fails.
    pub fn reserve(
        &mut self,
        shape: Shape,
        transpose_a: Transpose,
        transpose_b: Transpose,
    ) -> Result<(), DeviceError> {
        let call = Call::compact(shape, transpose_a, transpose_b);
        let Ok(plan) = self.chooser.plan(call, usize::MAX) else {
            // No such product can exist.
            return Ok(());
        };
        let elements = plan.workspace_elements();
        if elements > self.workspace_elements {
            self.device.enter()?;
            self.synchronize()?;
            self.workspace = Workspace::allocate(self.device, elements)?;
            self.workspace_elements = elements;
        }
        Ok(())
    }

    /// Waits for everything on the stream.
    ///
    /// # Errors
    ///
    /// A kernel crashed.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.stream
            .synchronize()
            .map_err(crate::device::cuda::during("Waiting for the GPU"))
    }

    /// Copies numbers to the GPU, into memory of their own.
    ///
    /// # Errors
    ///
    /// There is no memory for them, or the GPU fails.
    pub fn upload(&self, numbers: &[f32]) -> Result<DeviceBuffer<f32>, DeviceError> {
        self.device.enter()?;
        self.device.upload(numbers)
    }

    /// Copies numbers from the GPU, after everything on the stream.
    ///
    /// # Errors
    ///
    /// The GPU fails.
    pub fn download(&self, buffer: &DeviceBuffer<f32>) -> Result<Vec<f32>, DeviceError> {
        self.device.enter()?;
        self.synchronize()?;
        self.device.download(buffer)
    }

    /// The plan by which a call of this context is done.
    ///
    /// # Errors
    ///
    /// The workspace is too small for any: the call is done in parts.
    pub fn plan(&self, call: Call) -> Result<Plan<'static>, BlasError> {
        let plan = self.chooser.plan(call, self.workspace_elements);
        plan.map_err(|elements| BlasError::Workspace {
            needed: elements.saturating_mul(size_of::<f32>()),
            available: self.workspace_bytes(),
        })
    }
}

impl Context<'_> {
    /// Launches a product by the best plan that the workspace is enough for; where it is enough for none, in parts.
    ///
    /// # Safety
    ///
    /// As [`gemm`], and the operands have been checked; the device's context is current.
    unsafe fn enqueue(&self, job: &Job) -> Result<(), BlasError> {
        let plan = match self.plan(job.call()) {
            Ok(plan) => plan,
            Err(error) => {
                let [first, second] = job.halves().ok_or(error)?;
                // SAFETY: they are parts of the product, one after the other.
                return unsafe {
                    self.enqueue(&first)?;
                    self.enqueue(&second)
                };
            }
        };
        let launcher = Launcher {
            device: self.device,
            functions: &self.functions,
            stream: self.stream,
        };
        let start = self.workspace.start();
        // SAFETY: the caller vouches for the matrices; the workspace is as large as the plan's, and what uses it runs one after the other
        // on this stream.
        unsafe { launcher.launch(&plan, job.alpha, job.beta, &job.operands, start)? };
        Ok(())
    }
}

impl Drop for Context<'_> {
    /// Waits, so that no kernel is left without its workspace.
    fn drop(&mut self) {
        // After a crash there is nothing left that could run.
        let _ = self.device.enter().and_then(|()| self.synchronize());
    }
}

/// `C = alpha * op(A) * op(B) + beta * C`, on matrices in the GPU's memory. It only launches, on the context's stream, and
/// returns at once: it neither waits nor allocates nor copies between host and GPU.
///
/// All matrices are row-major. op(A) is `m x k`, op(B) is `k x n`, C is `m x n`; a matrix is transposed by
/// [`Operand::transposed`]. A leading dimension is the number of elements from the start of a row *as stored* to the start of the next:
///
/// | | stored as | leading dimension |
/// | --- | --- | --- |
/// | `a` | `m x k` | `lda >= k` |
/// | `a.transposed()` | `k x m` | `lda >= m` |
/// | `b` | `k x n` | `ldb >= n` |
/// | `b.transposed()` | `n x k` | `ldb >= k` |
/// | `c` | `m x n` | `ldc >= n` |
///
/// Any m, n and k, 0 included; any leading dimension and any alignment. As in BLAS, C is not read where `beta` is 0 (it may hold
/// NaNs), nor are A and B where `alpha` is 0. The same call of a context gives the same result, bit for bit.
///
/// # Errors
///
/// A leading dimension is too short, a matrix does not fit into its memory, or the GPU fails. Only in the last case may anything have been
/// launched.
///
/// # Safety
///
/// A, B and C are memory of the context's GPU that stays allocated until the stream has come past this call. Nothing else writes A or B, or
/// touches C, before that; C overlaps neither A nor B. What a crash of the GPU or of another kernel leaves in C is anybody's guess.
#[allow(clippy::too_many_arguments)] // BLAS's own
pub unsafe fn gemm<'a, 'b, 'c>(
    context: &Context<'_>,
    alpha: f32,
    a: impl Into<Operand<'a>>,
    lda: usize,
    b: impl Into<Operand<'b>>,
    ldb: usize,
    beta: f32,
    c: impl Into<Target<'c>>,
    ldc: usize,
    m: usize,
    n: usize,
    k: usize,
) -> Result<(), BlasError> {
    let (a, b, c) = (a.into(), b.into(), c.into());
    let stored = |rows, columns, transpose| match transpose {
        Transpose::No => (rows, columns),
        Transpose::Yes => (columns, rows),
    };
    let a_extent = extent('A', "lda", stored(m, k, a.transpose), lda, a.length)?;
    let b_extent = extent('B', "ldb", stored(k, n, b.transpose), ldb, b.length)?;
    let c_extent = extent('C', "ldc", (m, n), ldc, c.length)?;
    if c_extent == 0 || (beta == 1.0 && (alpha == 0.0 || k == 0)) {
        return Ok(());
    }

    let operand = |pointer, extent, leading| uploaded::Operand {
        pointer,
        extent,
        leading,
    };
    let job = Job {
        shape: Shape {
            m,
            n,
            k: if alpha == 0.0 { 0 } else { k },
        },
        alpha,
        beta,
        transpose_a: a.transpose,
        transpose_b: b.transpose,
        operands: Operands {
            a: operand(a.pointer, a_extent, lda),
            b: operand(b.pointer, b_extent, ldb),
            c: operand(c.pointer, c_extent, ldc),
        },
    };
    context.device.enter()?;
    // SAFETY: the caller vouches for the matrices, whose extents have been checked.
    unsafe { context.enqueue(&job) }
}
