//! Kernels that tests plant: wrong on purpose, to check that the errors are found.

use gpu_gemm::Choice;
use gpu_gemm::gpu_kernels::spec::{Block, EntryPoint, Function, GemmFn, Tile, Variant};

/// A kernel of f32 with one thread for all of a small C, called `planted`.
pub(crate) fn kernel(function: GemmFn<f32>) -> Choice {
    named("planted", Tile { m: 64, n: 64, k: 1 }, function)
}

/// The same, with a given name and tile.
pub(crate) fn named(name: &'static str, tile: Tile, function: GemmFn<f32>) -> Choice {
    let entry = EntryPoint {
        name,
        function: Function::GemmF32(function),
    };
    let block = Block { x: 1, y: 1 };
    // SAFETY: the planted kernels write no element but those of C.
    let variant = unsafe { Variant::new(name, entry, block, tile) };
    Choice::even(Box::leak(Box::new(variant)))
}
