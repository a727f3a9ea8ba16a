//! What fits nowhere else: a clock, and marks for debuggers and profilers.

/// Stops the kernel for a debugger.
///
/// Without one, a launch that gets here fails on a GPU, and in the simulator the signal SIGTRAP
/// ends the process.
#[inline(always)]
pub fn breakpoint() {
    #[cfg(cuda_device)]
    crate::device::__nvvm_breakpoint();
    #[cfg(not(cuda_device))]
    // SAFETY: it changes nothing.
    unsafe {
        core::arch::asm!("int3", options(nostack));
    }
}

/// Counts an event in one of the hardware counters 0 to 7, which a profiler reads: once for each
/// warp that gets here.
///
/// There are no such counters in the simulator.
///
/// # Panics
///
/// If `counter` is above 7.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub fn profiler_counter(counter: u32) {
    assert!(counter < 8, "a profiler's counter is one of 0 to 7");
    #[cfg(cuda_device)]
    count_event(counter);
}

/// The instruction names its counters by a mask, which is part of it.
#[cfg(cuda_device)]
#[inline(always)]
fn count_event(counter: u32) {
    macro_rules! count {
        ($($number:literal = $mask:literal,)*) => {
            // SAFETY: it touches nothing.
            unsafe {
                match counter {
                    $($number => core::arch::asm!(
                        concat!("pmevent.mask ", $mask, ";"),
                        options(nostack, preserves_flags)
                    ),)*
                    _ => {}
                }
            }
        };
    }
    count! {
        0 = 1,
        1 = 2,
        2 = 4,
        3 = 8,
        4 = 16,
        5 = 32,
        6 = 64,
        7 = 128,
    }
}

/// A counter that grows with each clock cycle: on a GPU the SM's, which differs from that of
/// other SMs; in the simulator the CPU's time stamp counter.
#[inline(always)]
pub fn clock() -> u64 {
    #[cfg(cuda_device)]
    let cycles = crate::device::__nvvm_clock();
    #[cfg(not(cuda_device))]
    // SAFETY: every x86-64 CPU has the instruction.
    let cycles = unsafe { core::arch::x86_64::_rdtsc() };
    cycles
}
