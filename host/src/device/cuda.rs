//! Kernels on an NVIDIA GPU: a device's primary context with the embedded PTX in it, memory, and launches.

use std::sync::OnceLock;
use std::time::Duration;

use cust::context::{Context, CurrentContext};
use cust::device::Device;
use cust::error::CudaError;
use cust::event::{Event, EventFlags};
use cust::function::Function;
use cust::launch;
use cust::memory::{CopyDestination, DeviceBuffer, DevicePointer, mem_get_info};
use cust::module::Module;
use cust::stream::{Stream, StreamFlags};
use gpu_kernels::spec::{Allocation, Variant};

use super::Run;
use super::ahead::LaunchAhead;
use super::driver::{self, Properties};
use super::error::DeviceError;
use super::launch::bands;
use super::planned::{self, Functions, Launcher};
use super::ptx;
use super::uploaded::{Guarded, Operands, Pitched, Uploaded};
use crate::blas::{Plan, Processor, Sharing};
use crate::element::Element;
use crate::problem::{Matrix, Problem, Shape};

/// A GPU with the embedded kernels loaded.
pub struct CudaDevice {
    // Dropped in this order: what lives in the context before the context.
    stream: Stream,
    module: Module,
    context: Context,
    properties: Properties,
    processor: OnceLock<Processor>,
    ahead: Option<LaunchAhead>,
}

impl CudaDevice {
    /// Opens the GPU of this number and loads the kernels.
    ///
    /// # Errors
    ///
    /// No driver, no such GPU, no PTX in this build, or PTX that the driver does not take.
    pub fn open(ordinal: u32) -> Result<CudaDevice, DeviceError> {
        let mut found = driver::probe()?;
        let count = found.len() as u32;
        if ordinal >= count {
            return Err(DeviceError::NoSuchDevice { ordinal, count });
        }
        if let Some(reason) = ptx::why_absent() {
            return Err(DeviceError::NoPtx {
                reason: reason.to_string(),
            });
        }
        let properties = found.swap_remove(ordinal as usize);
        let driver = ptx::version(&properties.driver);
        let ptx = ptx::newest_for(ptx::EMBEDDED, properties.architecture(), driver);
        CudaDevice::open_with(properties, ptx)
    }

    /// Opens a GPU and loads `ptx` instead of what is embedded.
    ///
    /// # Errors
    ///
    /// The driver does not take it.
    pub fn open_with(properties: Properties, ptx: &str) -> Result<CudaDevice, DeviceError> {
        let device = Device::get_device(properties.ordinal).map_err(DeviceError::DriverFails)?;
        let context = Context::new(device).map_err(during("Opening the GPU"))?;
        let module =
            Module::from_ptx(ptx, &[]).map_err(|_| driver::explain_refusal(ptx, &properties))?;
        let stream = Stream::new(StreamFlags::DEFAULT, None).map_err(during("Making a stream"))?;
        Ok(CudaDevice {
            stream,
            module,
            context,
            ahead: LaunchAhead::of(&properties),
            properties,
            processor: OnceLock::new(),
        })
    }

    /// What the driver says of this GPU.
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// The stream that everything is launched on.
    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Makes this device's context the calling thread's.
    pub(crate) fn enter(&self) -> Result<(), DeviceError> {
        CurrentContext::set_current(&self.context).map_err(during("Entering the GPU's context"))
    }

    /// Free and total bytes of the GPU's memory.
    pub(crate) fn memory(&self) -> Result<(usize, usize), DeviceError> {
        mem_get_info().map_err(during("Asking for free memory"))
    }

    /// How to launch a kernel before the one before it has ended, if that is possible.
    pub(super) fn ahead(&self) -> Option<&LaunchAhead> {
        self.ahead.as_ref()
    }

    /// What is known of it for plans, if anything has been asked.
    pub(super) fn known_processor(&self) -> &OnceLock<Processor> {
        &self.processor
    }

    /// Looks an entry point up.
    pub(crate) fn function(&self, entry: &str) -> Result<Function<'_>, DeviceError> {
        self.module
            .get_function(entry)
            .map_err(|error| match error {
                CudaError::NotFound => DeviceError::NoSuchEntry {
                    entry: entry.to_string(),
                },
                error => during("Looking a kernel up")(error),
            })
    }

    /// Launches `variant`, which does not stream, on matrices in the GPU's memory, in as many launches as it takes, and does not wait.
    ///
    /// # Safety
    ///
    /// `operands` hold the matrices of a problem of this shape until the launches have ended.
    #[allow(clippy::too_many_arguments)] // a launch and a product
    pub(super) unsafe fn launch<T: Element>(
        &self,
        function: &Function<'_>,
        stream: &Stream,
        variant: &Variant,
        shape: Shape,
        alpha: T,
        beta: T,
        operands: &Operands<T>,
    ) -> Result<(), DeviceError> {
        let Shape { n, k, .. } = shape;
        let (a, b, c) = (operands.a, operands.b, operands.c);
        for band in bands(variant, shape)? {
            let skipped = band.first_row * a.leading;
            let a_pointer = a.pointer.wrapping_add(skipped);
            let a_length = a.extent.saturating_sub(skipped);
            let c_pointer = c.pointer.wrapping_add(band.first_row * c.leading);
            let (grid, block) = (band.grid, (variant.block.x, variant.block.y));
            let shared_bytes = variant.dynamic_shared_elements(k) * size_of::<T>() as u32;
            // SAFETY: these are the parameters of every kernel, in order and type; the caller vouches for the memory.
            unsafe {
                launch!(function<<<grid, block, shared_bytes, stream>>>(
                    band.rows,
                    n,
                    k,
                    alpha,
                    a_pointer,
                    a_length,
                    a.leading,
                    b.pointer,
                    b.extent,
                    b.leading,
                    beta,
                    c_pointer,
                    c.leading
                ))
            }
            .map_err(|error| launch_error(variant, error))?;
        }
        Ok(())
    }

    /// Waits for everything on the stream.
    ///
    /// # Errors
    ///
    /// A kernel crashed.
    pub(crate) fn wait_for(&self, variant: &Variant) -> Result<(), DeviceError> {
        self.stream
            .synchronize()
            .map_err(|error| launch_error(variant, error))
    }

    /// Allocates `length` elements.
    ///
    /// # Errors
    ///
    /// There is no memory for them.
    pub(crate) fn allocate<T: Element>(
        &self,
        length: usize,
    ) -> Result<DeviceBuffer<T>, DeviceError> {
        // SAFETY: a buffer of plain numbers; whoever asks for it writes it before a kernel reads it.
        unsafe { DeviceBuffer::uninitialized(length) }.map_err(|error| match error {
            CudaError::OutOfMemory => self.out_of_memory(length.saturating_mul(size_of::<T>())),
            error => during("Allocating the GPU's memory")(error),
        })
    }

    /// Copies numbers to the GPU, into memory of their own.
    pub(crate) fn upload<T: Element>(&self, numbers: &[T]) -> Result<DeviceBuffer<T>, DeviceError> {
        let buffer = self.allocate(numbers.len())?;
        buffer
            .index(0..numbers.len())
            .copy_from(numbers)
            .map_err(during("Copying to the GPU"))?;
        Ok(buffer)
    }

    /// Copies numbers from the GPU.
    pub(crate) fn download<T: Element>(
        &self,
        buffer: &DeviceBuffer<T>,
    ) -> Result<Vec<T>, DeviceError> {
        let mut numbers = vec![T::default(); buffer.len()];
        buffer
            .copy_to(&mut numbers[..])
            .map_err(during("Copying from the GPU"))?;
        Ok(numbers)
    }

    /// That there is no memory for `asked` bytes.
    pub(crate) fn out_of_memory(&self, asked: usize) -> DeviceError {
        let (free, total) = mem_get_info().unwrap_or((0, self.properties.memory_bytes));
        DeviceError::OutOfMemory { asked, free, total }
    }

    /// See [`super::Device::run_shared`].
    pub(super) fn run<T: Element>(
        &self,
        variant: &Variant,
        sharing: Option<Sharing>,
        problem: &Problem<T>,
    ) -> Result<Run<T>, DeviceError> {
        self.enter()?;
        match variant.allocation {
            Allocation::Packed => self.run_on::<T, Guarded<T>>(variant, sharing, problem),
            Allocation::Pitched => self.run_on::<T, Pitched<T>>(variant, sharing, problem),
        }
    }

    /// The plan by which `variant` multiplies the matrices of `problem`, at `operands`; it shares its steps evenly unless told
    /// otherwise.
    pub(crate) fn plan<'v, T: Element>(
        &self,
        variant: &'v Variant,
        problem: &Problem<T>,
        operands: &Operands<T>,
        sharing: Option<Sharing>,
    ) -> Result<Plan<'v>, DeviceError> {
        let call = planned::call_of(problem.shape(), problem.alpha, operands);
        planned::plan(variant, call, sharing, || self.processor())
    }

    fn run_on<T: Element, U: Uploaded<T>>(
        &self,
        variant: &Variant,
        sharing: Option<Sharing>,
        problem: &Problem<T>,
    ) -> Result<Run<T>, DeviceError> {
        let functions = Functions::of(self, variant)?;
        let a = U::upload(self, &problem.a)?;
        let b = U::upload(self, &problem.b)?;
        let c = U::upload(self, &problem.c)?;
        let operands = Operands {
            a: a.operand(&problem.a),
            b: b.operand(&problem.b),
            c: c.operand(&problem.c),
        };
        let plan = self.plan(variant, problem, &operands, sharing)?;
        let poison = Matrix::poison(plan.workspace_elements());
        let workspace = match poison.buffer().len() {
            0 => None,
            _ => Some(Guarded::upload(self, &poison)?),
        };
        let launcher = Launcher {
            device: self,
            functions: &functions,
            stream: &self.stream,
        };
        let event = || Event::new(EventFlags::DEFAULT).map_err(during("Making an event"));
        let (start, end) = (event()?, event()?);
        start
            .record(&self.stream)
            .map_err(during("Recording an event"))?;
        let start_of_workspace = match &workspace {
            Some(workspace) => workspace.operand(&poison).pointer,
            None => DevicePointer::null(),
        };
        // SAFETY: the matrices and the workspace live until the stream has been waited for, and the plan is that of this problem.
        let launched = unsafe {
            launcher.launch(
                &plan,
                problem.alpha,
                problem.beta,
                &operands,
                start_of_workspace,
            )
        };
        let recorded = end.record(&self.stream);
        self.wait_for(variant)?;
        launched?;
        recorded.map_err(during("Recording an event"))?;
        let time = end
            .elapsed_time_f32(&start)
            .map_err(during("Reading a time"))?;

        let trespass = |what| DeviceError::Trespass {
            kernel: variant.name.to_string(),
            what,
        };
        if let Some(workspace) = &workspace {
            workspace.check_bands('W')?.map_err(trespass)?;
        }
        a.check_unchanged('A', &problem.a)?.map_err(trespass)?;
        b.check_unchanged('B', &problem.b)?.map_err(trespass)?;
        let c = c.result('C', &problem.c)?.map_err(trespass)?;
        Ok(Run {
            c,
            time: Duration::from_secs_f64(f64::from(time) / 1e3),
        })
    }
}

/// Says what was being done when the driver failed.
pub(crate) fn during(doing: &'static str) -> impl Fn(CudaError) -> DeviceError {
    move |error| match is_sticky(error) {
        true => DeviceError::ContextLost(error),
        false => DeviceError::Cuda { doing, error },
    }
}

/// Tells a kernel that crashed from a launch that the driver refuses.
pub(super) fn launch_error(variant: &Variant, error: CudaError) -> DeviceError {
    let kernel = variant.name.to_string();
    match is_sticky(error) {
        true => DeviceError::Crashed { kernel, error },
        false => DeviceError::Launch {
            kernel,
            threads: variant.block.threads(),
            error,
        },
    }
}

/// Whether an error leaves the context unusable, so that every later call returns it, too.
fn is_sticky(error: CudaError) -> bool {
    matches!(
        error,
        CudaError::IllegalAddress
            | CudaError::LaunchTimeout
            | CudaError::AssertError
            | CudaError::HardwareStackError
            | CudaError::IllegalInstruction
            | CudaError::MisalignedAddress
            | CudaError::InvalidAddressSpace
            | CudaError::InvalidProgramCounter
            | CudaError::LaunchFailed
            | CudaError::EccUncorrectable
    )
}
