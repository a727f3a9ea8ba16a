//! The product that every kernel computes, as one value: `C = alpha * A * B + beta * C`.

use crate::beyond::{global, pipeline};
use crate::element::Element;
use crate::float4::Float4;

/// The arguments of a GEMM, row-major, dimensions and leading dimensions in elements.
///
/// `A` is `m x k`, `B` is `k x n`, `C` is `m x n`. As in BLAS, `beta == 0` does not read `C`, and `alpha == 0` reads
/// neither `A` nor `B`: a NaN that is not part of the formula must not reach the result.
#[derive(Clone, Copy)]
pub struct Gemm<'a, T> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub alpha: T,
    pub a: &'a [T],
    pub lda: usize,
    pub b: &'a [T],
    pub ldb: usize,
    pub beta: T,
    pub c: *mut T,
    pub ldc: usize,
}

impl<T: Element> Gemm<'_, T> {
    /// The length of the sums to compute: `k`, or 0 where `alpha` makes them irrelevant.
    #[inline(always)]
    pub fn depth(&self) -> usize {
        if self.alpha == T::ZERO {
            0
        } else {
            self.k
        }
    }

    /// `A[row][col]`.
    ///
    /// # Safety
    ///
    /// `row < m` and `col < k`.
    #[inline(always)]
    pub unsafe fn a(&self, row: usize, col: usize) -> T {
        element(self.a, row * self.lda + col)
    }

    /// `B[row][col]`.
    ///
    /// # Safety
    ///
    /// `row < k` and `col < n`.
    #[inline(always)]
    pub unsafe fn b(&self, row: usize, col: usize) -> T {
        element(self.b, row * self.ldb + col)
    }

    /// `A[row][col]`, or zero outside of A: a zero adds nothing to a sum.
    ///
    /// # Safety
    ///
    /// `a` holds A, as [`Gemm`] describes it.
    #[inline(always)]
    pub unsafe fn a_or_zero(&self, row: usize, col: usize) -> T {
        element_or_zero(self.a, row * self.lda + col, row < self.m && col < self.k)
    }

    /// `B[row][col]`, or zero outside of B.
    ///
    /// # Safety
    ///
    /// `b` holds B, as [`Gemm`] describes it.
    #[inline(always)]
    pub unsafe fn b_or_zero(&self, row: usize, col: usize) -> T {
        element_or_zero(self.b, row * self.ldb + col, row < self.k && col < self.n)
    }

    /// `C[row][col] = alpha * sum + beta * C[row][col]`; nothing outside of C.
    ///
    /// # Safety
    ///
    /// No other thread touches `C[row][col]`.
    #[inline(always)]
    pub unsafe fn update(&self, row: usize, col: usize, sum: T) {
        if row < self.m && col < self.n {
            let c = self.c.add(row * self.ldc + col);
            let product = self.alpha.times(sum);
            *c = if self.beta == T::ZERO {
                product
            } else {
                self.beta.times_plus(*c, product)
            };
        }
    }
}

/// `matrix[index]`, checked only in a dev build for the simulator, where a mistake becomes a message with block and thread.
/// On the GPU a check is a compare and a branch for each element, and keeps loads from being issued ahead: with it,
/// `naive` runs at 1.3 instead of 4.8 TFLOP/s (4096, H200).
///
/// # Safety
///
/// `index` lies inside `matrix`.
#[inline(always)]
unsafe fn element<T: Element>(matrix: &[T], index: usize) -> T {
    debug_assert!(index < matrix.len(), "index {index} of {}", matrix.len());
    *matrix.get_unchecked(index)
}

/// `matrix[index]` if it is `inside`, else zero.
///
/// # Safety
///
/// If `inside`, `index` lies inside `matrix`.
#[inline(always)]
unsafe fn element_or_zero<T: Element>(matrix: &[T], index: usize, inside: bool) -> T {
    if inside {
        element(matrix, index)
    } else {
        T::ZERO
    }
}

/// `matrix[index..index + 4]`, zeros from the element `inside` on.
///
/// # Safety
///
/// The first `inside` of the four lie inside `matrix`.
#[inline(always)]
unsafe fn up_to_four(matrix: &[f32], index: usize, inside: usize) -> Float4 {
    Float4([
        element_or_zero(matrix, index, 0 < inside),
        element_or_zero(matrix, index.wrapping_add(1), 1 < inside),
        element_or_zero(matrix, index.wrapping_add(2), 2 < inside),
        element_or_zero(matrix, index.wrapping_add(3), 3 < inside),
    ])
}

/// Access four elements at a time. `GUARDED` false promises what makes one 16-byte access right: `col` is a multiple of 4 in
/// a tile of which [`Gemm::tile_is_whole`], and [`Gemm::rows_are_float4_aligned`].
impl Gemm<'_, f32> {
    /// Whether a block's `tile x tile` patch of C lies inside C, and A and B end with a step of `depth`. The same for every
    /// thread of a block, so that its barriers stay together where the answer decides the path.
    #[inline(always)]
    pub fn tile_is_whole(&self, row: usize, col: usize, tile: usize, depth: usize) -> bool {
        row + tile <= self.m && col + tile <= self.n && self.k.is_multiple_of(depth)
    }

    /// Whether a `rows x cols` tile lies inside C.
    #[inline(always)]
    pub fn tile_is_inside(&self, row: usize, col: usize, rows: usize, cols: usize) -> bool {
        row + rows <= self.m && col + cols <= self.n
    }

    /// Whether every row of C starts at a multiple of 16 bytes.
    #[inline(always)]
    pub fn c_is_float4_aligned(&self) -> bool {
        (self.c as usize).is_multiple_of(16) && self.ldc.is_multiple_of(4)
    }

    /// Whether every row of A, B and C starts at a multiple of 16 bytes. (Asked apart from [`Gemm::tile_is_whole`]: as one
    /// condition, `double_buffer_sn16` came out with 8 registers more and ran at 43 instead of 47 TFLOP/s.)
    #[inline(always)]
    pub fn rows_are_float4_aligned(&self) -> bool {
        let addresses = self.a.as_ptr() as usize | self.b.as_ptr() as usize | self.c as usize;
        addresses.is_multiple_of(16) && (self.lda | self.ldb | self.ldc).is_multiple_of(4)
    }

    /// `A[row][col..col + 4]`, zeros outside of A.
    ///
    /// # Safety
    ///
    /// What `GUARDED` false promises.
    #[inline(always)]
    pub unsafe fn a4<const GUARDED: bool>(&self, row: usize, col: usize) -> Float4 {
        if GUARDED {
            let inside = if row < self.m {
                self.k.saturating_sub(col)
            } else {
                0
            };
            up_to_four(self.a, row * self.lda + col, inside)
        } else {
            Float4::read(self.a.as_ptr().add(row * self.lda + col))
        }
    }

    /// `B[row][col..col + 4]`, zeros outside of B.
    ///
    /// # Safety
    ///
    /// What `GUARDED` false promises.
    #[inline(always)]
    pub unsafe fn b4<const GUARDED: bool>(&self, row: usize, col: usize) -> Float4 {
        if GUARDED {
            let inside = if row < self.k {
                self.n.saturating_sub(col)
            } else {
                0
            };
            up_to_four(self.b, row * self.ldb + col, inside)
        } else {
            Float4::read(self.b.as_ptr().add(row * self.ldb + col))
        }
    }

    /// Begins to copy `B[row][col..col + 4]`, zeros outside of B, to `target` in shared memory, one by one.
    ///
    /// # Safety
    ///
    /// What [`pipeline::memcpy_async`] asks of `target`.
    #[inline(always)]
    pub unsafe fn copy_b4_guarded(&self, row: usize, col: usize, target: *mut f32) {
        let first = self.b.as_ptr().wrapping_add(row * self.ldb + col);
        let inside = match row < self.k {
            true => self.n.saturating_sub(col).min(4) as u32,
            false => 0,
        };
        for i in 0..4 {
            let bytes = if (i as u32) < inside { 4 } else { 0 };
            pipeline::memcpy_async_zfill(target.add(i), first.wrapping_add(i), bytes);
        }
    }

    /// [`Gemm::update`] of `C[row][col..col + 4]`.
    ///
    /// # Safety
    ///
    /// What `GUARDED` false promises, and no other thread touches these elements.
    #[inline(always)]
    pub unsafe fn update4<const GUARDED: bool>(&self, row: usize, col: usize, sums: Float4) {
        if GUARDED {
            for i in 0..4 {
                self.update(row, col + i, sums.0[i]);
            }
            return;
        }
        let c = self.c.add(row * self.ldc + col);
        let mut result = sums.0.map(|sum| self.alpha * sum);
        if self.beta != 0.0 {
            let old = Float4::read(c);
            for i in 0..4 {
                result[i] += self.beta * old.0[i];
            }
        }
        global::store4(c, result);
    }
}

/// Writes the entry point of a kernel: the `#[kernel]` function with the signature that `naive` spells out, which
/// hands its arguments to the body as one [`Gemm`]. A kernel that streams has a place for partial sums, too:
/// `fn async_pipeline(gemm: f32, partials)`.
///
/// ```ignore
/// gemm_kernel! {
///     fn tiled_16(gemm: f32) {
///         multiply::<f32, 16>(gemm, shared_array![f32; 256], shared_array![f32; 256])
///     }
/// }
/// ```
macro_rules! gemm_kernel {
    ($(#[$attribute:meta])* fn $entry:ident($gemm:ident: $element:ty $(, $partials:ident)?) $body:block) => {
        $(#[$attribute])*
        #[cuda_std::kernel]
        #[allow(clippy::too_many_arguments)] // BLAS's own
        pub unsafe fn $entry(
            m: usize,
            n: usize,
            k: usize,
            alpha: $element,
            a: &[$element],
            lda: usize,
            b: &[$element],
            ldb: usize,
            beta: $element,
            c: *mut $element,
            ldc: usize,
            $($partials: *mut $element,)?
        ) {
            let $gemm = $crate::gemm::Gemm { m, n, k, alpha, a, lda, b, ldb, beta, c, ldc };
            $body
        }
    };
}
pub(crate) use gemm_kernel;
