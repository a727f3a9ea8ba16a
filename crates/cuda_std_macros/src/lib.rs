//! The `#[kernel]` and `#[address_space]` attributes of `cuda_std`, and its `print!` and
//! `println!`.
//!
//! `cuda_std` re-exports all of them; a kernel crate does not name this one. A procedural macro
//! is compiled for the host and cannot see whether its output is meant for a GPU. So each macro
//! expands to target-independent code, and `cuda_std`, which is compiled once for each target,
//! decides what it means.

use proc_macro::TokenStream;

mod address_space;
mod kernel;
mod print;

/// Makes a function an entry point that the host can launch on a GPU.
///
/// The function must be `unsafe`, free (not a method), not generic, and must return nothing. Its
/// parameters must be `Copy` and of a kind that a launch can pass: integers, floats, `bool`, raw
/// pointers, `&T` and `&[T]` (see `cuda_std::KernelParameter`). A slice is two launch parameters,
/// its pointer and its length in elements.
///
/// On a GPU the function keeps its name in the PTX. On a host it stays the plain `unsafe fn` that
/// it is, for the simulator to call.
///
/// # Launch bounds
///
/// `#[kernel(max_threads = 256, min_blocks = 2)]` promises that no launch has more than 256
/// threads a block and requires the compiler to use few enough registers for two blocks to fit on
/// a streaming multiprocessor (SM). Either may be left out; both take constant expressions. It is
/// short for `cuda_std::launch_bounds::<256, 2>()` at the head of the body.
#[proc_macro_attribute]
pub fn kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    kernel::expand(arguments.into(), item.into())
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// Places a `static` in a memory of the GPU: `#[address_space(shared)]`, `(global)` or
/// `(constant)`.
///
/// `shared` gives every block a copy of its own; the initializer is type-checked and then
/// ignored, because shared memory starts uninitialized. `shared_array!` is the easy way to get
/// one.
///
/// In the simulator, `global` and `constant` change nothing. A `shared` static becomes a handle
/// that dereferences to the current block's copy; use it only from a kernel's thread.
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
