//! Lets a kernel begin before the previous kernel on the stream has ended: CUDA's programmatic
//! dependent launch.
//!
//! A kernel launched with the corresponding attribute begins as soon as every block of the
//! previous kernel has called [`launch_dependents`] or has ended, and there is room. The second
//! kernel must not read what the first writes after that until it knows that the data are there,
//! through [`wait`] or otherwise: for example by a flag that the first kernel sets after a
//! [`device_fence`](crate::thread::device_fence).
//!
//! The instructions require `compute_90`. Compiled for an older architecture they do nothing; nor
//! do they in a kernel that is launched without the attribute, which begins when the previous
//! kernel has ended. In the simulator every launch is of that kind.

/// Declares that, as far as this block is concerned, the next kernel on the stream may begin.
#[inline(always)]
pub fn launch_dependents() {
    #[cfg(all(cuda_device, cuda_arch_at_least = "90"))]
    // SAFETY: it touches nothing.
    unsafe {
        core::arch::asm!(
            "griddepcontrol.launch_dependents;",
            options(nostack, preserves_flags)
        );
    }
}

/// Waits until the previous kernel has ended and everything that it wrote is visible.
///
/// A kernel launched with the attribute must call this at some point in every block. Only then is
/// the first kernel certain to have ended when the second has, so that the third may begin.
#[inline(always)]
pub fn wait() {
    #[cfg(all(cuda_device, cuda_arch_at_least = "90"))]
    // SAFETY: it touches nothing.
    unsafe {
        core::arch::asm!("griddepcontrol.wait;", options(nostack, preserves_flags));
    }
}
