//! Kernels that tests plant: wrong on purpose, to check that the errors are found.

use gpu_gemm::Choice;
use gpu_gemm::gpu_kernels::gemm::Gemm;
use gpu_gemm::gpu_kernels::spec::{Block, DataType, EntryFn, EntryPoint, Tile, Variant};

/// The argument block of a launch of a planted kernel.
#[derive(Clone, Copy)]
pub struct OfLaunch(*const u8);

impl OfLaunch {
    /// # Safety
    ///
    /// A launch of a kernel of f32 passes this block, and its matrices outlive the use of this.
    pub unsafe fn new(block: *const u8) -> OfLaunch {
        OfLaunch(block)
    }

    fn batch(self) -> Gemm<'static, f32> {
        // SAFETY: a launch passes this type, and its matrices outlive it.
        unsafe { self.0.cast::<Gemm<'static, f32>>().read() }
    }
}

/// The CTA's product.
pub fn gemm(block: OfLaunch) -> Gemm<'static, f32> {
    // SAFETY: a kernel calls this, in its CTA.
    unsafe { block.batch().of_cta().with_c_of_cta() }
}

/// The index of the CTA's product in its batch.
pub fn product(block: OfLaunch) -> usize {
    let batch = block.batch();
    let bytes = gemm(block).c.addr() - batch.c.addr();
    let stride = batch.batch_strides[2] * size_of::<f32>();
    bytes.checked_div(stride).unwrap_or(0)
}

/// Sets each element of C to `of(product, row, column)`.
pub fn write_each(block: OfLaunch, of: impl Fn(&Gemm<'_, f32>, usize, usize) -> f32) {
    let gemm = gemm(block);
    for row in 0..gemm.m {
        for col in 0..gemm.n {
            // SAFETY: C has m rows of n elements, ldc apart, and there is only one thread.
            unsafe { *gemm.c.add(row * gemm.ldc + col) = of(&gemm, row, col) };
        }
    }
}

/// The sum of `term(a, b)` over the elements of a row of A and a column of B.
pub fn sum(gemm: &Gemm<'_, f32>, row: usize, col: usize, term: impl Fn(f32, f32) -> f32) -> f32 {
    let terms = (0..gemm.k).map(|i| term(gemm.a[row * gemm.lda + i], gemm.b[i * gemm.ldb + col]));
    terms.sum()
}

/// An f32 kernel, called `planted`, with one thread for all of a small C.
pub fn kernel(function: EntryFn) -> Choice {
    named("planted", Tile { m: 64, n: 64, k: 1 }, function)
}

/// [`kernel`] with a given name and tile.
pub fn named(name: &'static str, tile: Tile, function: EntryFn) -> Choice {
    let entry = EntryPoint {
        name,
        argument_bytes: size_of::<Gemm<'_, f32>>(),
        function,
    };
    let block = Block { x: 1, y: 1 };
    // SAFETY: the planted kernels write only elements of C.
    let variant = unsafe { Variant::new(name, entry, DataType::F32, block, tile) };
    Choice::even(Box::leak(Box::new(variant)))
}
