//! Kernels that begin before the one before them on the stream has ended: CUDA's programmatic dependent launch.
//!
//! A kernel that is launched with the attribute for it begins as soon as every block of the one before has said
//! [`launch_dependents`], or has ended, and there is room. What the first writes after that the second must not read before it has
//! been told that it is there, by [`wait`] or otherwise: a flag that the first sets behind a
//! [`device_fence`](crate::thread::device_fence), say.
//!
//! The instructions are those of `compute_90`. Compiled for less they are nothing, as they are for a kernel that is launched without the
//! attribute, which begins when the one before has ended. In the simulator every launch is such a one.

/// Says that, as far as this block is concerned, the next kernel on the stream may begin.
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

/// Waits until the kernel before has ended, and all that it wrote is there.
///
/// A kernel launched with the attribute must pass this at some time in every block: only so is the first kernel sure to have ended when
/// the second has, and with it the third may begin.
#[inline(always)]
pub fn wait() {
    #[cfg(all(cuda_device, cuda_arch_at_least = "90"))]
    // SAFETY: it touches nothing.
    unsafe {
        core::arch::asm!("griddepcontrol.wait;", options(nostack, preserves_flags));
    }
}
