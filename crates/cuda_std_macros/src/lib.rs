//! The `#[kernel]` and `#[address_space]` attributes of `cuda_std`, and its `print!` and
//! `println!`.
//!
//! `cuda_std` re-exports all of them; a kernel crate does not name this one. A procedural macro
//! is compiled for the host and cannot see whether its output is meant for a GPU. So each macro
//! expands to target-independent code, and `cuda_std`, which is compiled once for each target,
//! decides what it means.

use proc_macro::TokenStream;

mod address_space;
mod device_only;
mod kernel;
mod print;

/// Makes a function an entry point that the host can launch on a GPU.
///
/// The function must be `unsafe`, free (not a method), and must return nothing. On a GPU it keeps
/// its name in the PTX. On a host it stays the plain `unsafe fn` that it is, for the simulator to
/// call.
///
/// # Parameters
///
/// A parameter can have any type that is `Copy`, and a launch passes it by value, structs, arrays
/// and tuples too. A slice `&[T]` is two launch parameters, its pointer and its length in
/// elements. `cuda_std::KernelParameter` has the whole table, and says why a struct that the host
/// fills needs `#[repr(C)]`.
///
/// ```ignore
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// pub struct Shape { rows: u32, cols: u32 }
///
/// #[kernel]
/// pub unsafe fn transpose(shape: Shape, from: &[f32], to: *mut f32) { .. }
/// ```
///
/// A parameter by value is the thread's own, like any variable. `#[grid_constant]` is for those
/// whose address matters, such as tensor maps, and for tables that no thread changes: the
/// parameter is a reference `&T`, yet the launch passes the `T` itself, and the reference leads to
/// the one copy of it that all threads of the grid read.
///
/// ```ignore
/// #[kernel]
/// pub unsafe fn filter(#[grid_constant] weights: &[f32; 25], image: &[f32], out: *mut f32) { .. }
/// ```
///
/// # Launch bounds
///
/// `#[kernel(max_threads = 256, min_blocks = 2)]` promises that no launch has more than 256
/// threads a block and requires the compiler to use few enough registers for two blocks to fit on
/// a streaming multiprocessor (SM). Either may be left out; both take constant expressions. It is
/// short for `cuda_std::launch_bounds::<256, 2>()` at the head of the body.
///
/// `maxnreg = 128` limits the registers of a thread directly, to 24 at the least; values that do
/// not fit are spilled to local memory. It cannot be combined with `min_blocks`.
///
/// # Clusters
///
/// `cluster_dim = (2, 1, 1)` makes every two blocks along x a cluster, whose blocks run at the
/// same time and reach each other's shared memory. Each extent of the grid must be a multiple of
/// the cluster's; a launch says nothing of clusters. A cluster has at most 8 blocks, or 16 where
/// the host allows a size that not every GPU has. Clusters need `compute_90`: a crate that is
/// compiled for older architectures too has
/// `#[cfg(any(not(cuda_device), cuda_arch_at_least = "90"))]` on such a kernel.
///
/// # Generic kernels
///
/// The host launches a kernel by its name, so each instance of a generic function needs one:
///
/// ```ignore
/// #[kernel(max_threads = 256, instantiate(scale_f32 = scale::<f32>, scale_f64 = scale::<f64>))]
/// pub unsafe fn scale<T: Copy + Mul<Output = T>>(by: T, x: *mut T) { .. }
/// ```
///
/// Here `scale_f32` and `scale_f64` are kernels, with all of the attribute's arguments, and
/// `scale` is the generic function that they call. Constants are chosen in the same way:
/// `tile_16 = tile::<f32, 16>`.
#[proc_macro_attribute]
pub fn kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    kernel::expand(arguments.into(), item.into())
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// Places a `static` in a memory of the GPU: `#[address_space(shared)]`, `(global)` or
/// `(constant)`.
///
/// `shared` gives every block a copy of its own, which is uninitialized when the block starts: the
/// initializer has to be zeros or a `MaybeUninit`, and is ignored. `shared_array!` is the easy way
/// to get one.
///
/// The type of a `constant` static is `Copy`: an atomic or a cell could be written, and the GPU
/// only reads that memory.
///
/// In the simulator, `global` and `constant` change nothing. The memory of a `shared` static is
/// that of the block that runs: a program that has one runs one block at a time. Use it from a
/// kernel's thread only. In the simulator it cannot be used in clusters, nor by TMA and `wgmma`,
/// which take `shared_array!` or dynamic shared memory.
#[proc_macro_attribute]
pub fn address_space(space: TokenStream, item: TokenStream) -> TokenStream {
    address_space::expand(space.into(), item.into())
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// Prints to the host's standard output from a kernel. See `cuda_std::io` for the formats it
/// understands.
#[proc_macro]
pub fn print(input: TokenStream) -> TokenStream {
    print::expand(input.into(), "")
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// Prints a line to the host's standard output from a kernel. See `cuda_std::io` for the formats
/// it understands.
#[proc_macro]
pub fn println(input: TokenStream) -> TokenStream {
    print::expand(input.into(), "\n")
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// Makes a function one that only device code may call.
///
/// On a GPU the function is what it is. In the simulator its body is not compiled, and a call of
/// it panics: for functions that consist of inline PTX.
#[proc_macro_attribute]
pub fn gpu_only(_arguments: TokenStream, item: TokenStream) -> TokenStream {
    device_only::gpu_only(item.into())
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// Keeps a function in the PTX, under its own name, although no kernel calls it: for other PTX
/// that is linked with it. The function must be `#[unsafe(no_mangle)]`.
///
/// In the simulator it changes nothing.
#[proc_macro_attribute]
pub fn externally_visible(_arguments: TokenStream, item: TokenStream) -> TokenStream {
    device_only::externally_visible(item.into())
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}
