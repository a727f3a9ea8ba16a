//! The operations of a device: memory, copies, launches, and their times. A GPU's stream, an
//! OpenCL device and the simulator implement one trait.

use std::any::Any;
use std::time::{Duration, Instant};

use cust::event::{Event, EventStatus};

use crate::device::cuda::Entered;
use crate::device::cuda::current::InContext;
use crate::device::cuda::status::during;
use crate::error::DeviceError;
use crate::gpu::DeviceFacts;
use crate::launch::{Bindings, Launch};
use crate::plan::Plan;

/// The device that memory belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Gpu,
    /// An OpenCL device, by the address of its context: another one cannot use its memory.
    OpenCl(usize),
    Host,
}

impl Space {
    /// The name for messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Space::Gpu => "the GPU's",
            Space::OpenCl(_) => "the OpenCL device's",
            Space::Host => "the host's",
        }
    }
}

/// The direction of a copy: between host and device, or within the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    ToDevice,
    ToHost,
    Within,
}

/// Memory of a device, which is freed when this is dropped.
pub struct Allocated {
    start: *mut u8,
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: the pointer is to memory that the owner keeps.
unsafe impl Send for Allocated {}
// SAFETY: the pointer is an address; each use of it states its requirements.
unsafe impl Sync for Allocated {}

impl Allocated {
    /// Memory at `start`, which lives as long as `owner`.
    pub(crate) fn new(start: *mut u8, owner: impl Any + Send + Sync) -> Allocated {
        Allocated {
            start,
            _owner: Box::new(owner),
        }
    }

    /// The address of its first byte, in the device's memory.
    pub fn start(&self) -> *mut u8 {
        self.start
    }
}

/// The sizes of a device's memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// The cache that all launches share.
    pub cache: usize,
    /// The free memory.
    pub free: usize,
}

/// A point in a device's work, which it reaches when it has done everything launched before: on a
/// GPU an event, elsewhere the time after the host has waited.
pub struct Mark {
    event: Option<InContext<Event>>,
    at: Instant,
}

impl Mark {
    /// A point that a GPU's stream reaches with this event, or, for `None`, that is reached now.
    pub(crate) fn new(event: Option<InContext<Event>>) -> Mark {
        let at = Instant::now();
        Mark { event, at }
    }

    /// Waits until the device reaches it.
    ///
    /// # Errors
    ///
    /// The GPU fails.
    pub fn wait(&self) -> Result<(), DeviceError> {
        let Some(event) = &self.event else {
            return Ok(());
        };
        let _entered = event.enter()?;
        event.synchronize().map_err(during("Waiting for the GPU"))
    }

    /// Whether the device has reached it.
    ///
    /// # Errors
    ///
    /// The GPU fails.
    pub fn is_reached(&self) -> Result<bool, DeviceError> {
        let Some(event) = &self.event else {
            return Ok(true);
        };
        let _entered = event.enter()?;
        let status = event.query().map_err(during("Waiting for the GPU"))?;
        Ok(status == EventStatus::Ready)
    }

    /// The seconds from another mark of the same device to this one. Both have been reached.
    ///
    /// # Errors
    ///
    /// The GPU fails.
    pub fn seconds_since(&self, start: &Mark) -> Result<f64, DeviceError> {
        let (Some(from), Some(to)) = (&start.event, &self.event) else {
            return Ok((self.at - start.at).as_secs_f64());
        };
        let _entered = to.enter()?;
        let milliseconds = to.elapsed_time_f32(from);
        let milliseconds = milliseconds.map_err(during("Reading a time"))?;
        Ok((f64::from(milliseconds) / 1e3).max(0.0))
    }
}

/// A device, or a stream of one.
///
/// # Safety
///
/// Safe code relies on the methods: memory is as large as requested, and two devices that cannot
/// use each other's memory differ in their [`Space`].
pub unsafe trait Backend: Send + Sync {
    /// The facts that plans need.
    fn facts(&self) -> DeviceFacts;

    /// The memory that it uses.
    fn space(&self) -> Space;

    /// Makes a GPU's context current in the calling thread, which its other methods require, until
    /// the result is dropped.
    ///
    /// # Errors
    ///
    /// The driver fails.
    fn enter(&self) -> Result<Entered, DeviceError> {
        Ok(Entered::NOTHING)
    }

    /// Memory of at least `bytes` bytes, with unspecified contents. It has the alignment of the
    /// device's allocations: at least 128 bytes.
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    fn allocate(&self, bytes: usize) -> Result<Allocated, DeviceError>;

    /// The size of its memory, as far as it is a limit.
    ///
    /// # Errors
    ///
    /// The driver fails.
    fn capacity(&self) -> Result<Capacity, DeviceError> {
        Ok(Capacity {
            cache: 0,
            free: usize::MAX,
        })
    }

    /// Copies `bytes` bytes, and waits for the copy.
    ///
    /// # Errors
    ///
    /// The device fails.
    ///
    /// # Safety
    ///
    /// Both sides are at least as long, in the memories that `way` names, and do not overlap;
    /// until the end nothing writes the source or touches the target.
    unsafe fn copy(
        &self,
        from: *const u8,
        to: *mut u8,
        bytes: usize,
        way: Way,
    ) -> Result<(), DeviceError>;

    /// Compiles those kernels of a plan that are not compiled yet.
    ///
    /// # Errors
    ///
    /// A kernel cannot run on this device.
    fn compile(&self, _plan: &Plan) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Runs a launch, or starts it.
    ///
    /// # Errors
    ///
    /// The device refuses the launch, or fails.
    ///
    /// # Safety
    ///
    /// The launch is one of a [`Plan`], and `bindings` has the addresses of its matrices and
    /// workspace in the backend's memory, until it has ended; nothing else touches C or the
    /// workspace meanwhile, or writes A or B. If the plan's kernel has an epilogue, `bindings` has
    /// the parameters of that one, valid at every place of C. The earlier launches of the plan have
    /// been run. On a GPU, the device's context is current.
    unsafe fn launch(&self, launch: &Launch, bindings: &Bindings) -> Result<(), DeviceError>;

    /// Waits for everything launched so far.
    ///
    /// # Errors
    ///
    /// The device fails, or a kernel crashed.
    fn synchronize(&self) -> Result<(), DeviceError>;

    /// The same after a launch of `kernel`: if a kernel crashed, the error names this one.
    ///
    /// # Errors
    ///
    /// As for [`Backend::synchronize`].
    fn finish(&self, _kernel: &str) -> Result<(), DeviceError> {
        self.synchronize()
    }

    /// Marks the end of everything launched so far. On a GPU this does not wait.
    ///
    /// # Errors
    ///
    /// The device fails.
    fn mark(&self) -> Result<Mark, DeviceError> {
        self.synchronize()?;
        Ok(Mark::new(None))
    }

    /// The time of launches of `kernel`, from the start of the first to the end of the last. It
    /// waits for them even if one could not be started.
    ///
    /// # Errors
    ///
    /// A launch fails; if one crashed, the error names `kernel`.
    fn time(
        &self,
        kernel: &str,
        launch: &mut dyn FnMut() -> Result<(), DeviceError>,
    ) -> Result<Duration, DeviceError> {
        let start = self.mark()?;
        let launched = launch();
        let end = self.mark();
        self.finish(kernel)?;
        launched?;
        Ok(Duration::from_secs_f64(end?.seconds_since(&start)?))
    }
}

/// Runs the launches of a plan in order; on a GPU it does not wait for them.
///
/// # Errors
///
/// The device refuses a launch, or fails.
///
/// # Safety
///
/// As for [`Backend::launch`], for all of the plan's launches.
pub unsafe fn run(
    backend: &dyn Backend,
    plan: &Plan,
    bindings: &Bindings,
) -> Result<(), DeviceError> {
    for product in 0..plan.repeats() {
        let bindings = plan.bindings_of(product, bindings);
        for launch in plan.launches() {
            // SAFETY: as the caller vouches; launches do not overwrite data in the workspace that
            // later ones need.
            unsafe { backend.launch(launch, &bindings)? };
        }
    }
    Ok(())
}
