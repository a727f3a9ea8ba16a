//! Kernels that tests plant: wrong on purpose, to check that the errors are found.

use gpu_gemm::Choice;
use gpu_gemm::gpu_kernels::gemm::Gemm;
use gpu_gemm::gpu_kernels::spec::{Block, DataType, EntryFn, EntryPoint, Tile, Variant};

/// The argument block of a kernel of f32: the CTA's product.
pub(crate) fn gemm(block: *const u8) -> Gemm<'static, f32> {
    // SAFETY: planted kernels are of f32, so that this is what a launch passes, and its matrices
    // outlive it.
    unsafe {
        let gemm = block.cast::<Gemm<'static, f32>>().read();
        gemm.of_cta().with_c_of_cta()
    }
}

/// The number of that product in its batch.
pub(crate) fn product(block: *const u8) -> usize {
    // SAFETY: as above.
    let batch = unsafe { block.cast::<Gemm<'static, f32>>().read() };
    let bytes = gemm(block).c.addr() - batch.c.addr();
    let stride = batch.batch_strides[2] * size_of::<f32>();
    bytes.checked_div(stride).unwrap_or(0)
}

/// Writes each element of C: what `of` makes of the product, a row and a column.
pub(crate) fn write_each(block: *const u8, of: impl Fn(&Gemm<'_, f32>, usize, usize) -> f32) {
    let gemm = gemm(block);
    for row in 0..gemm.m {
        for col in 0..gemm.n {
            // SAFETY: within the m rows of n elements, ldc apart, that C has; there is one thread.
            unsafe { *gemm.c.add(row * gemm.ldc + col) = of(&gemm, row, col) };
        }
    }
}

/// The sum of what `term` makes of the elements of a row of A and a column of B.
pub(crate) fn sum(
    gemm: &Gemm<'_, f32>,
    row: usize,
    col: usize,
    term: impl Fn(f32, f32) -> f32,
) -> f32 {
    let terms = (0..gemm.k).map(|i| term(gemm.a[row * gemm.lda + i], gemm.b[i * gemm.ldb + col]));
    terms.sum()
}

/// A kernel of f32 with one thread for all of a small C, called `planted`.
pub(crate) fn kernel(function: EntryFn) -> Choice {
    named("planted", Tile { m: 64, n: 64, k: 1 }, function)
}

/// The same, with a given name and tile.
pub(crate) fn named(name: &'static str, tile: Tile, function: EntryFn) -> Choice {
    let entry = EntryPoint {
        name,
        argument_bytes: size_of::<Gemm<'_, f32>>(),
        function,
    };
    let block = Block { x: 1, y: 1 };
    // SAFETY: the planted kernels write no element but those of C.
    let variant = unsafe { Variant::new(name, entry, DataType::F32, block, tile) };
    Choice::even(Box::leak(Box::new(variant)))
}
