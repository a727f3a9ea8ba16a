//! A GPU: its primary context, the embedded PTX, memory, and a stream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cuda_std::panic_record;
use cuda_std::simulator::Fault;
use cust::context::Context;
use cust::device::Device;
use cust::error::CudaError;
use cust::memory::{CopyDestination, DeviceBuffer, DeviceCopy, LockedBuffer, mem_get_info};
use cust::module::Module;
use cust::stream::{Stream, StreamFlags};
use cust::sys::{CUcontext, CUfunction};

use super::current::{Entered, InContext};
use super::driver::{self, Driver};
use super::extended::LaunchKernelEx;
use super::ptx;
use super::status::{during, is_sticky};
use super::tensor_map::EncodeMap;
use crate::device::compiled::{self, Module as Kernels};
use crate::error::DeviceError;
use crate::gpu::Properties;
use crate::launch::Plain;
use crate::plan::Plan;

/// A handle of a GPU with the kernels of this build; clones are of the same. If the build has no
/// machine code for it, the driver compiles each kernel when it is first launched or looked up.
#[derive(Clone)]
pub struct CudaDevice {
    pub(super) gpu: Arc<Gpu>,
    loaded: Arc<InContext<Mutex<HashMap<String, Kernel>>>>,
    /// Kernels of other crates, of this handle and its clones alone, and so is `loaded`.
    further: Vec<Kernels>,
}

/// What all handles share.
pub(super) struct Gpu {
    stream: InContext<Stream>,
    /// Where a panic of a kernel is recorded.
    panic_record: InContext<LockedBuffer<u32>>,
    context: Arc<Context>,
    kernels: Kernels,
    properties: Properties,
    pub(super) extended: Option<LaunchKernelEx>,
    pub(super) encode_map: Option<EncodeMap>,
    /// Keeps the driver's functions loaded.
    _driver: Driver,
}

/// A kernel that the driver has loaded.
struct Kernel {
    /// Keeps the function loaded.
    _module: Module,
    function: CUfunction,
}

// SAFETY: a function handle is a number for the driver, which may be called from any thread.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

impl CudaDevice {
    /// Opens the GPU of this number.
    ///
    /// # Errors
    ///
    /// There is no driver, no such GPU or no PTX in this build, or the GPU or the driver does not
    /// accept the PTX.
    pub fn open(ordinal: u32) -> Result<CudaDevice, DeviceError> {
        let mut found = driver::probe()?;
        let count = found.len() as u32;
        if ordinal >= count {
            return Err(DeviceError::NoSuchDevice { ordinal, count });
        }
        if let Some(reason) = compiled::why_absent() {
            return Err(DeviceError::NoPtx {
                reason: reason.to_string(),
            });
        }
        let properties = found.swap_remove(ordinal as usize);
        let driver = ptx::version(&properties.driver);
        let modules = compiled::modules();
        let kernels = compiled::newest_for(&modules, properties.architecture(), driver);
        let kernels = kernels.ok_or_else(|| DeviceError::NoPtx {
            reason: String::new(),
        })?;
        // SAFETY: the modules contain the kernels of the table.
        unsafe { CudaDevice::open_with(properties, kernels) }
    }

    /// Opens a GPU with these kernels instead of the newest of this build.
    ///
    /// # Errors
    ///
    /// The GPU or the driver does not accept their PTX, as far as its head shows.
    ///
    /// # Safety
    ///
    /// An entry point with the name of a kernel of `gpu_kernels` is that kernel: it takes its
    /// argument block, and accesses the same memory.
    pub unsafe fn open_with(
        properties: Properties,
        kernels: Kernels,
    ) -> Result<CudaDevice, DeviceError> {
        let device = Device::get_device(properties.ordinal).map_err(DeviceError::DriverFails)?;
        // The call makes it current.
        let _restored = Entered::restoring()?;
        let context = Arc::new(Context::new(device).map_err(during("Opening the GPU"))?);
        let driver = Driver::load()?;
        if let Some(isa) = kernels.isa() {
            // A module without kernels compiles almost instantly, and shows whether the driver
            // accepts it.
            let head = format!(
                ".version {isa}\n.target {}\n.address_size 64\n",
                kernels.target()
            );
            Module::from_ptx(&head, &[])
                .map_err(|_| driver::explain_refusal(&head, &properties))?;
        }
        let panic_record = LockedBuffer::new(&0, panic_record::WORDS)
            .map_err(during("Allocating page-locked memory"))?;
        let stream = Stream::new(StreamFlags::DEFAULT, None).map_err(during("Making a stream"))?;
        Ok(CudaDevice {
            loaded: Arc::new(InContext::new(&context, Mutex::default())),
            further: Vec::new(),
            gpu: Arc::new(Gpu {
                stream: InContext::new(&context, stream),
                panic_record: InContext::new(&context, panic_record),
                context,
                kernels,
                extended: LaunchKernelEx::find(&driver),
                encode_map: EncodeMap::find(&driver),
                properties,
                _driver: driver,
            }),
        })
    }

    /// Adds the newest of these modules that this GPU runs.
    ///
    /// # Errors
    ///
    /// There is none, or it has a kernel of a name that this device has already.
    ///
    /// # Safety
    ///
    /// As for [`Device::with_kernels`](crate::Device::with_kernels).
    pub(in crate::device) unsafe fn add_kernels(
        &mut self,
        modules: &[&'static str],
    ) -> Result<(), DeviceError> {
        let modules = modules.iter().filter(|ptx| !ptx.is_empty());
        let mut modules: Vec<Kernels> = modules.map(|ptx| Kernels::of_text(ptx)).collect();
        // That of one architecture alone, such as sm_90a, comes after that of it and later ones.
        let is_of_one = |module: &Kernels| module.target().ends_with('a');
        modules.sort_by_key(|module| (ptx::architecture(module.target()), is_of_one(module)));
        let driver = ptx::version(&self.gpu.properties.driver);
        let architecture = self.gpu.properties.architecture();
        let newest = compiled::newest_for(&modules, architecture, driver);
        // No other module of Hopper's has its tensor cores.
        let is_hopper = architecture == 90;
        let suits = |module: &Kernels| {
            ptx::runs_on(module.target(), architecture) && (is_of_one(module) || !is_hopper)
        };
        let newest = newest.filter(suits).ok_or(DeviceError::NoPtxOfKernels {
            target: match is_hopper {
                true => "compute_90a".to_owned(),
                false => format!("compute_{architecture}"),
            },
        })?;
        let mut entries = newest.entries();
        if let Some(twice) = entries.find(|entry| self.module_of(entry).is_some()) {
            return Err(DeviceError::KernelTwice {
                entry: twice.to_owned(),
            });
        }
        self.further.push(newest);
        self.loaded = Arc::new(self.own(Mutex::default()));
        Ok(())
    }

    /// The module with a kernel.
    fn module_of(&self, entry: &str) -> Option<&Kernels> {
        let mut modules = self.further.iter().chain([&self.gpu.kernels]);
        modules.find(|module| module.has(entry))
    }

    /// The driver's description of this GPU.
    pub fn properties(&self) -> &Properties {
        &self.gpu.properties
    }

    /// The stream for all launches, unless the caller provides one.
    pub fn stream(&self) -> &Stream {
        &self.gpu.stream
    }

    /// Makes this device's context current in the calling thread, until the result is dropped.
    ///
    /// # Errors
    ///
    /// The driver fails.
    pub fn enter(&self) -> Result<Entered, DeviceError> {
        Entered::of(&self.gpu.context)
    }

    /// Something of its context, to be dropped while that is current.
    pub(crate) fn own<T>(&self, content: T) -> InContext<T> {
        InContext::new(&self.gpu.context, content)
    }

    /// The handle of its context, which all devices that were opened for the same GPU share.
    pub(super) fn raw_context(&self) -> CUcontext {
        self.gpu.context.as_raw()
    }

    /// Free and total bytes of the GPU's memory. The device's context is current.
    ///
    /// # Errors
    ///
    /// The driver fails.
    pub fn memory(&self) -> Result<(usize, usize), DeviceError> {
        mem_get_info().map_err(during("Asking for free memory"))
    }

    /// Looks up a kernel; the first time, the driver compiles it. The device's context is current.
    ///
    /// # Errors
    ///
    /// There is no kernel of this name, or the driver does not accept its PTX.
    pub fn function(&self, entry: &str) -> Result<CUfunction, DeviceError> {
        self.function_unless(entry, || Ok(()))
    }

    /// The same, but no kernel is compiled if `may_compile` fails, which is asked only then.
    pub(super) fn function_unless(
        &self,
        entry: &str,
        may_compile: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<CUfunction, DeviceError> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = loaded.get(entry) {
            return Ok(kernel.function);
        }
        may_compile()?;
        let architecture = self.gpu.properties.architecture();
        let kernels = self.module_of(entry).ok_or_else(|| DeviceError::NotGiven {
            entry: entry.to_owned(),
        })?;
        let code = kernels.machine_code(entry, architecture);
        let ptx = ptx::without_lines(&kernels.kernel(entry)?);
        // A driver older than ptxas may refuse the machine code, and still take the PTX.
        let module = match code.and_then(|code| Module::from_cubin(code, &[]).ok()) {
            Some(module) => module,
            None => Module::from_ptx(&ptx, &[])
                .map_err(|_| driver::explain_refusal(&ptx, &self.gpu.properties))?,
        };
        record_panics(&ptx, &module, &self.gpu.panic_record)?;
        let function = module.get_function(entry);
        let function = function.map_err(during("Looking up a kernel"))?.to_raw();
        let kernel = Kernel {
            _module: module,
            function,
        };
        loaded.insert(entry.to_owned(), kernel);
        Ok(function)
    }

    /// The first panic of a kernel on this device, if there was one: its message, its place, and
    /// its thread. To be called after a driver call failed with [`CudaError::LaunchFailed`].
    pub fn panic(&self) -> Option<Fault> {
        let start = self.gpu.panic_record.as_ptr();
        // SAFETY: the buffer has `WORDS` words. A kernel may write them at any time.
        let record: [u32; panic_record::WORDS] =
            std::array::from_fn(|word| unsafe { start.add(word).read_volatile() });
        // The library's kernels have no messages. Panics are numbered in each module, so where
        // several crates have kernels with messages, the message may be that of another crate's.
        let further = self.further.iter().map(Kernels::panics);
        let texts: String = further.chain([self.gpu.kernels.panics()]).collect();
        panic_record::read(&texts, &record)
    }

    /// The error after waiting for a kernel: an error that loses the context means that the
    /// kernel crashed.
    pub fn after(&self, kernel: &str) -> impl Fn(CudaError) -> DeviceError {
        move |error| match is_sticky(error) {
            true => DeviceError::Crashed {
                kernel: kernel.to_string(),
                error,
                panic: self.panic().map(Box::new),
            },
            false => during("Waiting for the GPU")(error),
        }
    }

    /// Makes the driver compile the kernels of a plan now, so that its launches need not wait for
    /// that.
    ///
    /// # Errors
    ///
    /// The driver does not accept their PTX.
    pub fn compile(&self, plan: &Plan) -> Result<(), DeviceError> {
        let _entered = self.enter()?;
        let kernels: Vec<&str> = plan
            .launches()
            .iter()
            .map(|launch| launch.kernel.name)
            .filter(|name| !self.further.iter().any(|module| module.has(name)))
            .collect();
        self.gpu.kernels.prepare(&kernels)?;
        for launch in plan.launches() {
            self.function(launch.kernel.name)?;
        }
        Ok(())
    }

    /// Allocates `length` elements with unspecified contents. The device's context is current.
    ///
    /// # Errors
    ///
    /// There is not enough memory for them.
    pub fn allocate<T: Plain + DeviceCopy>(
        &self,
        length: usize,
    ) -> Result<DeviceBuffer<T>, DeviceError> {
        // SAFETY: any bits in the memory are a valid number.
        unsafe { DeviceBuffer::uninitialized(length) }.map_err(|error| match error {
            CudaError::OutOfMemory => self.out_of_memory(length.saturating_mul(size_of::<T>())),
            error => during("Allocating the GPU's memory")(error),
        })
    }

    /// The error for a failed allocation of `bytes` bytes.
    fn out_of_memory(&self, bytes: usize) -> DeviceError {
        let (free, total) = mem_get_info().unwrap_or((0, self.gpu.properties.memory_bytes));
        DeviceError::OutOfMemory { bytes, free, total }
    }
}

/// Tells the module compiled from `ptx` where to record a panic.
fn record_panics(
    ptx: &str,
    module: &Module,
    record: &LockedBuffer<u32>,
) -> Result<(), DeviceError> {
    if !panic_record::is_in(ptx) {
        return Ok(());
    }
    let address = record.as_ptr().expose_provenance() as u64;
    let variable = module.get_global::<u64>(panic_record::ADDRESS);
    variable
        .map_err(during("Looking up a variable"))?
        .copy_from(&address)
        .map_err(during("Copying to the GPU"))
}
