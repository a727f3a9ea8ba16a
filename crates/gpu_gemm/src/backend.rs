//! What a device does: memory, copies, launches, and the time that they take. One trait, which a
//! GPU's stream, a device of OpenCL and the simulator implement.

use std::any::Any;
use std::time::{Duration, Instant};

use cust::event::{Event, EventStatus};

use crate::device::cuda::status::during;
use crate::error::DeviceError;
use crate::gpu::DeviceFacts;
use crate::launch::{Bindings, Launch};
use crate::plan::Plan;

/// The device that memory belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Gpu,
    /// A device of OpenCL, by the address of its context: another one cannot use its memory.
    OpenCl(usize),
    Host,
}

impl Space {
    /// For messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Space::Gpu => "the GPU's",
            Space::OpenCl(_) => "the OpenCL device's",
            Space::Host => "the host's",
        }
    }
}

/// Between which memories a copy goes: the host's and the device's, or the device's alone.
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

// SAFETY: the pointer leads into memory that moves along.
unsafe impl Send for Allocated {}
// SAFETY: the pointer is an address; each use of it says what it needs.
unsafe impl Sync for Allocated {}

impl Allocated {
    /// Memory that begins at `start` and is there as long as its owner.
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

/// What is known of a device's memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// The cache that all launches share.
    pub cache: usize,
    /// Memory that is free.
    pub free: usize,
}

/// A point among what a device does, which it reaches when it has done all that was launched
/// before: on a GPU an event, elsewhere the time at which the host had waited for it.
pub struct Mark {
    event: Option<Event>,
    at: Instant,
}

impl Mark {
    /// A point that a GPU's stream reaches with this event, or that has been reached now.
    pub(crate) fn new(event: Option<Event>) -> Mark {
        let at = Instant::now();
        Mark { event, at }
    }

    /// Waits until the device gets there.
    ///
    /// # Errors
    ///
    /// The GPU fails.
    pub fn wait(&self) -> Result<(), DeviceError> {
        let waited = self.event.as_ref().map_or(Ok(()), Event::synchronize);
        waited.map_err(during("Waiting for the GPU"))
    }

    /// Whether the device has got there.
    ///
    /// # Errors
    ///
    /// The GPU fails.
    pub fn is_reached(&self) -> Result<bool, DeviceError> {
        let status = self
            .event
            .as_ref()
            .map_or(Ok(EventStatus::Ready), Event::query);
        let status = status.map_err(during("Waiting for the GPU"))?;
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
        let milliseconds = to.elapsed_time_f32(from);
        let milliseconds = milliseconds.map_err(during("Reading a time"))?;
        Ok((f64::from(milliseconds) / 1e3).max(0.0))
    }
}

/// A device, or a stream of one.
///
/// # Safety
///
/// Safe code relies on what the methods say: that memory is as large as was asked for, and that
/// two devices which cannot use each other's memory differ in their [`Space`].
pub unsafe trait Backend: Send + Sync {
    /// What plans need to know about it.
    fn facts(&self) -> DeviceFacts;

    /// Whose memory it uses.
    fn space(&self) -> Space;

    /// Makes a GPU's context the calling thread's, which all else that a GPU does requires.
    ///
    /// # Errors
    ///
    /// The driver fails.
    fn enter(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Memory of at least `bytes` bytes, with unspecified contents. It begins where the device's
    /// allocations do: at a multiple of 128 bytes or more.
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    fn allocate(&self, bytes: usize) -> Result<Allocated, DeviceError>;

    /// How large its memory is, as far as that limits anything.
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

    /// Copies `bytes` bytes, and waits for it.
    ///
    /// # Errors
    ///
    /// The device fails.
    ///
    /// # Safety
    ///
    /// Both sides are at least as long, in the memories that `way` names, and do not overlap;
    /// nothing writes the source or touches the target meanwhile.
    unsafe fn copy(
        &self,
        from: *const u8,
        to: *mut u8,
        bytes: usize,
        way: Way,
    ) -> Result<(), DeviceError>;

    /// Compiles a plan's kernels that have not been compiled.
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
    /// The launch is one of a [`Plan`] whose matrices and workspace are where `bindings` says, in
    /// the backend's memory, until it has ended; nothing else touches C or the workspace meanwhile,
    /// or writes A or B. The earlier launches of the plan have been run. On a GPU, the device's
    /// context is current.
    unsafe fn launch(&self, launch: &Launch, bindings: &Bindings) -> Result<(), DeviceError>;

    /// Waits for all that has been launched.
    ///
    /// # Errors
    ///
    /// The device fails, or a kernel crashed.
    fn synchronize(&self) -> Result<(), DeviceError>;

    /// The same, where `kernel` was launched last: if a kernel crashed, that is the one that is
    /// named.
    ///
    /// # Errors
    ///
    /// As for [`Backend::synchronize`].
    fn finish(&self, _kernel: &str) -> Result<(), DeviceError> {
        self.synchronize()
    }

    /// Marks the point after all that has been launched. A GPU does not wait for it.
    ///
    /// # Errors
    ///
    /// The device fails.
    fn mark(&self) -> Result<Mark, DeviceError> {
        self.synchronize()?;
        Ok(Mark::new(None))
    }

    /// How long launches of `kernel` take from the start of the first to the end of the last. It
    /// waits for them even if one could not be started.
    ///
    /// # Errors
    ///
    /// A launch fails; if one crashed, that is the kernel that is named.
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

/// Runs the launches of a plan, in order; on a GPU it does not wait for them.
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
            // SAFETY: as the caller vouches; later launches do not overwrite what an earlier one
            // leaves in the workspace for them.
            unsafe { backend.launch(launch, &bindings)? };
        }
    }
    Ok(())
}
