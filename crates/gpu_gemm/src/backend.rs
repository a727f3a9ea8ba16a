//! What a device does: memory, copies, launches, and the time that they take. One trait, which a
//! GPU's stream, a device of OpenCL and the simulator implement.

use std::any::Any;
use std::time::{Duration, Instant};

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
    /// The launch is one of a [`Plan`] whose matrices and workspace lie where `bindings` says, in
    /// the backend's memory, until it has ended; nothing else touches C or the workspace
    /// meanwhile, or writes A or B. The earlier launches of the plan have been run. On a GPU, the
    /// device's context is current.
    unsafe fn launch(&self, launch: &Launch, bindings: &Bindings) -> Result<(), DeviceError>;

    /// Waits for all that has been launched.
    ///
    /// # Errors
    ///
    /// The device fails, or a kernel crashed.
    fn synchronize(&self) -> Result<(), DeviceError>;

    /// How long launches of `kernel` take from the start of the first to the end of the last. It
    /// waits for them even if one could not be started.
    ///
    /// # Errors
    ///
    /// A launch fails; if one crashed, that is the kernel that is named.
    fn time(
        &self,
        _kernel: &str,
        launch: &mut dyn FnMut() -> Result<(), DeviceError>,
    ) -> Result<Duration, DeviceError> {
        let start = Instant::now();
        let launched = launch();
        let ended = self.synchronize();
        let time = start.elapsed();
        launched.and(ended).map(|()| time)
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
