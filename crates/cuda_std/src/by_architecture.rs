//! Functions that have one body on a GPU, or on some GPUs, and another in the simulator.

/// The body of a function that is an instruction of the architectures in brackets, whose operands
/// follow `asm`. Compiled for another architecture it is a trap, whose comment says why; in the
/// simulator it is the expression at the end, if there is one.
macro_rules! by_architecture {
    (
        [$($has:tt)*], $why:literal, ($($argument:ident),*),
        asm($($asm:tt)*) $(, $simulated:expr)? $(,)?
    ) => {
        #[cfg(all(cuda_device, $($has)*))]
        // SAFETY: the caller vouches for what the arguments name; without arguments it touches
        // nothing that is the program's.
        unsafe {
            core::arch::asm!($($asm)*, options(nostack, preserves_flags));
        }
        #[cfg(all(cuda_device, not($($has)*)))]
        crate::device::needs_architecture!($why $(, $argument)*);
        $(
            #[cfg(not(cuda_device))]
            {
                $simulated;
            }
        )?
    };
}

/// The same of `compute_90` and newer.
macro_rules! from_compute_90 {
    ($($body:tt)*) => {
        crate::by_architecture::by_architecture! { [cuda_arch_at_least = "90"], $($body)* }
    };
}

/// One expression on a GPU, and another in the simulator.
macro_rules! gpu_or_simulated {
    ($gpu:expr, $simulated:expr $(,)?) => {{
        #[cfg(cuda_device)]
        let value = $gpu;
        #[cfg(not(cuda_device))]
        let value = $simulated;
        value
    }};
}

pub(crate) use {by_architecture, from_compute_90, gpu_or_simulated};
