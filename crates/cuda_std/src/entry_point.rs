//! What `#[kernel]` and `#[address_space]` expand to, and the properties of a kernel.

/// Promises that no launch of the calling kernel has more than `MAX_THREADS` threads a block, and
/// requests that the compiler use few enough registers for `MIN_BLOCKS` blocks to fit on a
/// streaming multiprocessor (SM) at a time. 0 leaves either bound open.
///
/// `#[kernel(max_threads = .., min_blocks = ..)]` expands to a call of this. Call it yourself,
/// first thing in the kernel, where the source must also compile with rust-cuda's `cuda_std`,
/// whose `#[kernel]` takes no such arguments.
///
/// A launch that breaks the promise is refused by the driver, and in the simulator is a fault. A
/// bound beyond what any GPU allows does not compile:
///
/// ```compile_fail,E0080
/// cuda_std::launch_bounds::<2048, 0>(); // a block has at most 1024 threads
/// ```
#[inline(always)]
pub fn launch_bounds<const MAX_THREADS: u32, const MIN_BLOCKS: u32>() {
    const {
        assert!(
            MAX_THREADS <= 1024,
            "max_threads is above 1024, the most threads that a block can have"
        );
        assert!(
            MIN_BLOCKS <= 32,
            "min_blocks is above 32, the most blocks that a multiprocessor holds at a time"
        );
    }
    #[cfg(cuda_device)]
    crate::device::__nvvm_launch_bounds(MAX_THREADS, MIN_BLOCKS);
    #[cfg(not(cuda_device))]
    crate::simulator::check_launch_bounds(MAX_THREADS);
}

/// `#[kernel(maxnreg = REGISTERS)]`
///
/// ```compile_fail,E0080
/// cuda_std::__max_registers::<16>(); // ptxas takes no less than 24
/// ```
#[doc(hidden)]
#[inline(always)]
pub fn __max_registers<const REGISTERS: u32>() {
    const {
        assert!(
            REGISTERS >= 24 && REGISTERS <= 255,
            "maxnreg is not within 24 and 255, the registers that a thread can be limited to"
        );
    }
    #[cfg(cuda_device)]
    crate::device::__nvvm_max_registers(REGISTERS);
}

/// `#[kernel(cluster_dim = (X, Y, Z))]`
///
/// ```compile_fail,E0080
/// cuda_std::__cluster_dim::<4, 4, 2>(); // a cluster has at most 16 blocks
/// ```
#[doc(hidden)]
#[inline(always)]
pub fn __cluster_dim<const X: u32, const Y: u32, const Z: u32>() {
    const {
        assert!(
            X > 0 && Y > 0 && Z > 0,
            "each extent of cluster_dim must be at least 1"
        );
        assert!(
            X as u64 * Y as u64 * Z as u64 <= 16,
            "cluster_dim has more than 16 blocks, the most that a cluster can have"
        );
        assert!(
            cfg!(any(not(cuda_device), cuda_arch_at_least = "90")),
            "clusters need compute_90; put #[cfg(any(not(cuda_device), cuda_arch_at_least = \"90\"))] on the kernel"
        );
    }
    #[cfg(cuda_device)]
    crate::device::__nvvm_cluster_dim(X, Y, Z);
    #[cfg(not(cuda_device))]
    crate::simulator::check_cluster_dim(X, Y, Z);
}

/// A kernel's function, where `cuda_std` is compiled for a GPU. The second of the three takes its
/// parameters as a launch passes them; the third, without a body, takes its place where
/// `cuda_builder` compiles other kernels alone.
#[cfg(cuda_device)]
#[doc(hidden)]
#[macro_export]
macro_rules! __entry_point {
    ({ $($for_cpu:tt)* } { $for_gpu:item } { $left_out:item }) => {
        #[unsafe(no_mangle)]
        #[unsafe(link_section = ".nvvm.kernel")]
        $for_gpu
        #[inline]
        $left_out
    };
}

/// A kernel's function, where `cuda_std` is compiled for a CPU.
#[cfg(not(cuda_device))]
#[doc(hidden)]
#[macro_export]
macro_rules! __entry_point {
    ({ $for_cpu:item } { $($for_gpu:tt)* } { $($left_out:tt)* }) => {
        $for_cpu
    };
}

/// Of `#[address_space(constant)]`: what is `Copy` has no interior mutability, so that safe code
/// cannot write to memory that a GPU only reads.
#[doc(hidden)]
pub const fn __assert_constant<T: Copy>() {}

/// A static in an address space of the GPU.
#[cfg(cuda_device)]
#[doc(hidden)]
#[macro_export]
macro_rules! __static_in {
    (unnamed, $name:ident, $ty:ty, $initial:expr) => {
        $crate::__static_in! { shared, [static], $name, $ty, $initial }
    };
    (global, $($rest:tt)*) => { $crate::__static_in! { ".nvvm.addrspace.1", $($rest)* } };
    (shared, $($rest:tt)*) => { $crate::__static_in! { ".nvvm.addrspace.3", $($rest)* } };
    (constant, $($rest:tt)*) => { $crate::__static_in! { ".nvvm.addrspace.4", $($rest)* } };
    ($section:literal, [$($head:tt)*], $name:ident, $ty:ty, $initial:expr) => {
        #[unsafe(link_section = $section)]
        $($head)* $name: $ty = $initial;
    };
}

/// A static that would be in an address space of the GPU.
#[cfg(not(cuda_device))]
#[doc(hidden)]
#[macro_export]
macro_rules! __static_in {
    (shared, [$($head:tt)*], $name:ident, $ty:ty, $initial:expr) => {
        $($head)* $name: $crate::simulator::NamedStatic<$ty> =
            $crate::simulator::NamedStatic::replacing($initial);
        const _: () = {
            extern "C" fn register() {
                let (file, line, column) = (file!(), line!(), column!());
                let site = $crate::simulator::BarrierSite { file, line, column };
                // SAFETY: only the address of the static is used.
                unsafe { $crate::simulator::NamedStatic::register(&raw const $name, site) };
            }
            // Called before `main`.
            #[used]
            #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
            #[cfg_attr(windows, unsafe(link_section = ".CRT$XCU"))]
            #[cfg_attr(
                not(any(target_vendor = "apple", windows)),
                unsafe(link_section = ".init_array")
            )]
            static REGISTER: extern "C" fn() = register;
        };
    };
    (unnamed, $name:ident, $ty:ty, $initial:expr) => {
        static $name: $crate::simulator::SharedStatic<$ty> = {
            let initial = $initial;
            // SAFETY: this is the only handle of its place.
            unsafe { $crate::simulator::SharedStatic::replacing(initial) }
        };
    };
    ($space:ident, [$($head:tt)*], $name:ident, $ty:ty, $initial:expr) => {
        $($head)* $name: $ty = $initial;
    };
}
