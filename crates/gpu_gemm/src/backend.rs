//! The backends that run a list of launches.

use crate::device::error::DeviceError;
use crate::launch::{Bindings, Launch};
use crate::plan::Plan;

/// Runs launches.
pub trait Backend {
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
    backend: &impl Backend,
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
