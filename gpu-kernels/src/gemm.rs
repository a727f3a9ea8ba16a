//! What every kernel computes, as one value: `C = alpha * A * B + beta * C`, and how it reads A
//! and B and writes C.

use cuda_std::prelude::*;

use crate::compat::{global, pipeline};
use crate::element::{Element, Word};
use crate::epilogue::{At, Epilogue, Identity};
use crate::float4::Float4;

/// The argument block of a GEMM, row-major, dimensions and leading dimensions in elements.
///
/// `A` is `m x k`, `B` is `k x n`, `C` is `m x n`. As in BLAS, `beta == 0` does not read `C`, and
/// `alpha == 0` reads neither `A` nor `B`: a NaN that the formula does not contain must not reach
/// the result.
///
/// `T` holds an element of A and B, `C` one of C: numbers of 16 bits are `u16` here. Whatever the
/// types, each field is one word of 8 bytes, and a slice two: its address and its length.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Gemm<'a, T, C = T, Scalar = T, E = Identity> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub alpha: Scalar,
    pub a: &'a [T],
    pub lda: usize,
    pub b: &'a [T],
    pub ldb: usize,
    pub beta: Scalar,
    pub c: *mut C,
    pub ldc: usize,
    /// From the matrices of a product of the batch to those of the next: elements of A, B and C.
    pub batch_strides: [usize; 3],
    /// Where the CTAs of a stream-K kernel leave partial sums: `2 * G` block tiles. Of a grouped
    /// product, where its groups end (`MappedGemm::group_ends`).
    pub partials: *mut Scalar,
    /// Elements from a column of C to the next: 1. Where a kernel for few rows computes the
    /// transposed product, `ldc` is 1, and this is the distance of the rows of C as it is stored.
    /// No other kernel reads it.
    pub column_stride: usize,
    /// What becomes of an element of C before it is stored.
    pub epilogue: E,
}

impl<T, C, Scalar: Element, E: Copy> Gemm<'_, T, C, Scalar, E> {
    /// The depth of the product: `k`, or 0 where `alpha` makes it irrelevant.
    #[inline(always)]
    pub fn depth(&self) -> usize {
        if self.alpha == Scalar::ZERO {
            0
        } else {
            self.k
        }
    }

    /// The same with A and B of one product of the batch, that of the CTA. They are read-only from
    /// here on.
    ///
    /// # Safety
    ///
    /// `a` and `b` hold the matrices of all products, and nothing writes them while the kernel
    /// runs.
    #[inline(always)]
    pub unsafe fn of_cta(self) -> Self {
        let [a, b, _] = self.batch_strides.map(|stride| product_of_cta() * stride);
        Gemm {
            a: global::read_only(from(self.a, a)),
            b: global::read_only(from(self.b, b)),
            ..self
        }
    }

    /// The C of the CTA's product. Asked for where C is written, and not before: an address that
    /// is kept through the products costs two registers, which `double-buffer` for compute
    /// capability 7.5 did not have.
    #[inline(always)]
    pub fn c_of_cta(&self) -> *mut C {
        self.c
            .wrapping_add(product_of_cta() * self.batch_strides[2])
    }

    /// The same with that C, for a kernel that has these two registers, but not the four in which
    /// to multiply when it is asked for.
    #[inline(always)]
    pub fn with_c_of_cta(self) -> Self {
        Gemm {
            c: self.c_of_cta(),
            batch_strides: [0; 3],
            ..self
        }
    }
}

impl<T, C, S, E: Epilogue<S>> Gemm<'_, T, C, S, E> {
    /// The elements to store for these `values`, before they are rounded to the type of C.
    ///
    /// # Safety
    ///
    /// As for [`Epilogue::apply`].
    #[inline(always)]
    pub unsafe fn finished<const N: usize>(&self, at: At, values: [S; N]) -> [S; N] {
        self.epilogue.apply(at, values)
    }

    /// Whether elements become something else before they are stored.
    #[inline(always)]
    pub fn has_epilogue(&self) -> bool {
        !E::IS_IDENTITY
    }

    /// The place, in the CTA's product, of `most` neighbours of a row. The first is at a row and a
    /// column that C may lack.
    #[inline(always)]
    pub fn at(&self, row: usize, col: usize, most: usize) -> At {
        let existing = self.n.saturating_sub(col);
        let count = match row < self.m {
            true if existing < most => existing,
            true => most,
            false => 0,
        };
        At::of(product_of_cta(), row, col, count)
    }
}

/// The product of the batch that the CTA computes: its place along z.
#[inline(always)]
pub(crate) fn product_of_cta() -> usize {
    thread::block_idx_z() as usize
}

/// `matrices[first..]`, or nothing of a matrix that is not read, whose slice is empty.
///
/// # Safety
///
/// `matrices` is empty, or `first <= matrices.len()`.
#[inline(always)]
unsafe fn from<T>(matrices: &[T], first: usize) -> &[T] {
    let length = matrices.len().saturating_sub(first);
    core::slice::from_raw_parts(matrices.as_ptr().wrapping_add(first), length)
}

impl<T: Element, C, Scalar, E> Gemm<'_, T, C, Scalar, E> {
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

    /// `A[row][col]`, or zero where A has no such element: zeros add nothing to a sum.
    ///
    /// # Safety
    ///
    /// `a` holds A, as [`Gemm`] describes it.
    #[inline(always)]
    pub unsafe fn a_or_zero(&self, row: usize, col: usize) -> T {
        element_or_zero(self.a, row * self.lda + col, row < self.m && col < self.k)
    }

    /// `B[row][col]`, or zero where B has no such element.
    ///
    /// # Safety
    ///
    /// `b` holds B, as [`Gemm`] describes it.
    #[inline(always)]
    pub unsafe fn b_or_zero(&self, row: usize, col: usize) -> T {
        element_or_zero(self.b, row * self.ldb + col, row < self.k && col < self.n)
    }
}

impl<T, C: Element, E: Epilogue<C>> Gemm<'_, T, C, C, E> {
    /// `C[row][col] = alpha * sum + beta * C[row][col]`, or nothing where C has no such element.
    ///
    /// # Safety
    ///
    /// No other thread touches `C[row][col]`.
    #[inline(always)]
    pub unsafe fn update(&self, row: usize, col: usize, sum: C) {
        if row < self.m && col < self.n {
            let at = At::one(product_of_cta(), row, col);
            self.update_element(row * self.ldc + col, at, sum);
        }
    }

    /// The same for the element of C at an index, whose place is `at`.
    ///
    /// # Safety
    ///
    /// C has the element, and no other thread touches it.
    #[inline(always)]
    pub unsafe fn update_element(&self, index: usize, at: At, sum: C) {
        let c = self.c_of_cta().add(index);
        let product = self.alpha.times(sum);
        let value = if self.beta == C::ZERO {
            product
        } else {
            self.beta.times_plus(*c, product)
        };
        [*c] = self.finished(at, [value]);
    }
}

/// `matrix[index]`, checked only in a dev build for the simulator, where a mistake becomes a
/// message with block and thread. On the GPU a check is a compare and a branch for each element,
/// and keeps loads from being issued early: with it the first `naive` ran at a quarter of its
/// speed.
///
/// # Safety
///
/// `index < matrix.len()`.
#[inline(always)]
unsafe fn element<T: Element>(matrix: &[T], index: usize) -> T {
    debug_assert!(index < matrix.len(), "index {index} of {}", matrix.len());
    *matrix.get_unchecked(index)
}

/// `matrix[index]` if it is `in_bounds`, else zero.
///
/// # Safety
///
/// If `in_bounds`, `index < matrix.len()`.
#[inline(always)]
unsafe fn element_or_zero<T: Element>(matrix: &[T], index: usize, in_bounds: bool) -> T {
    if in_bounds {
        element(matrix, index)
    } else {
        T::ZERO
    }
}

/// `matrix[index..index + 4]`, the first `valid` of them, and zeros for the others.
///
/// # Safety
///
/// `index + valid.min(4) <= matrix.len()`.
#[inline(always)]
unsafe fn float4_or_zeros<T: Word>(matrix: &[T], index: usize, valid: usize) -> Float4<T> {
    Float4([
        element_or_zero(matrix, index, 0 < valid),
        element_or_zero(matrix, index.wrapping_add(1), 1 < valid),
        element_or_zero(matrix, index.wrapping_add(2), 2 < valid),
        element_or_zero(matrix, index.wrapping_add(3), 3 < valid),
    ])
}

/// 128-bit accesses. Those that are not `PREDICATED` promise what makes one such access right:
/// [`Gemm::rows_are_float4_aligned`], and `col` is a multiple of 4 in a tile for which
/// [`Gemm::tile_is_exact`].
impl<T: Word, C, Scalar, E> Gemm<'_, T, C, Scalar, E> {
    /// Whether the block tile of `tile x tile` elements at `(row, col)` is in bounds of C, and `k`
    /// a multiple of `depth`. The same for every thread of a block, so that all take the same
    /// path, and meet at the same barriers.
    #[inline(always)]
    pub fn tile_is_exact(&self, row: usize, col: usize, tile: usize, depth: usize) -> bool {
        row + tile <= self.m && col + tile <= self.n && self.k.is_multiple_of(depth)
    }

    /// Whether the tile of `rows x cols` elements at `(row, col)` is in bounds of C.
    #[inline(always)]
    pub fn tile_is_in_bounds(&self, row: usize, col: usize, rows: usize, cols: usize) -> bool {
        row + rows <= self.m && col + cols <= self.n
    }

    /// Whether every row of A, B and C starts at a multiple of 16 bytes; A and B are already those
    /// of this CTA's product. A function apart from [`Gemm::tile_is_exact`]: with both as one
    /// condition, `double_buffer_k16` took 8 registers more and was a tenth slower.
    #[inline(always)]
    pub fn rows_are_float4_aligned(&self) -> bool {
        let addresses = self.a.as_ptr() as usize | self.b.as_ptr() as usize | self.c as usize;
        let distances = self.lda | self.ldb | self.ldc | self.batch_strides[2];
        addresses.is_multiple_of(16) && distances.is_multiple_of(4)
    }

    /// `A[row][col..col + 4]`, with zeros where A has no such elements.
    ///
    /// # Safety
    ///
    /// What an access that is not `PREDICATED` promises.
    #[inline(always)]
    pub unsafe fn a4<const PREDICATED: bool>(&self, row: usize, col: usize) -> Float4<T> {
        if PREDICATED {
            let valid = if row < self.m {
                self.k.saturating_sub(col)
            } else {
                0
            };
            float4_or_zeros(self.a, row * self.lda + col, valid)
        } else {
            Float4::read_only(self.a.as_ptr().add(row * self.lda + col))
        }
    }

    /// `B[row][col..col + 4]`, with zeros where B has no such elements.
    ///
    /// # Safety
    ///
    /// What an access that is not `PREDICATED` promises.
    #[inline(always)]
    pub unsafe fn b4<const PREDICATED: bool>(&self, row: usize, col: usize) -> Float4<T> {
        if PREDICATED {
            let valid = if row < self.k {
                self.n.saturating_sub(col)
            } else {
                0
            };
            float4_or_zeros(self.b, row * self.ldb + col, valid)
        } else {
            Float4::read_only(self.b.as_ptr().add(row * self.ldb + col))
        }
    }

    /// Starts to copy `B[row][col..col + 4]`, with zeros where B has no such elements, to `target`
    /// in shared memory, each element by a copy of its own.
    ///
    /// # Safety
    ///
    /// `target` is as [`pipeline::memcpy_async`] requires.
    #[inline(always)]
    pub unsafe fn copy_b4_predicated(&self, row: usize, col: usize, target: *mut T) {
        let first = self.b.as_ptr().wrapping_add(row * self.ldb + col);
        let valid = match row < self.k {
            true => self.n.saturating_sub(col).min(4) as u32,
            false => 0,
        };
        for i in 0..4 {
            let bytes = if (i as u32) < valid { 4 } else { 0 };
            pipeline::memcpy_async_zfill(target.add(i), first.wrapping_add(i), bytes);
        }
    }
}

/// The same of C, whatever A and B are.
impl<T, C: Word, E: Epilogue<C>> Gemm<'_, T, C, C, E> {
    /// Whether every row of C starts at a multiple of 16 bytes, in each product.
    #[inline(always)]
    pub fn c_is_float4_aligned(&self) -> bool {
        let distances = self.ldc | self.batch_strides[2];
        (self.c as usize).is_multiple_of(16) && distances.is_multiple_of(4)
    }

    /// [`Gemm::update`] of `C[row][col..col + 4]`.
    ///
    /// # Safety
    ///
    /// No other thread touches these elements; and without a fused epilogue, what an access that is
    /// not `PREDICATED` promises. (With one, C need not have them.)
    #[inline(always)]
    pub unsafe fn update4<const PREDICATED: bool>(&self, row: usize, col: usize, sums: Float4<C>) {
        if !E::IS_IDENTITY {
            self.finish4(row, col, sums);
            return;
        }
        if PREDICATED {
            for i in 0..4 {
                self.update(row, col + i, sums.0[i]);
            }
            return;
        }
        let c = self.c_of_cta().add(row * self.ldc + col);
        let mut result = sums.0.map(|sum| self.alpha.times(sum));
        if self.beta != C::ZERO {
            let old = Float4::read(c);
            for i in 0..4 {
                result[i] = self.beta.times_plus(old.0[i], result[i]);
            }
        }
        global::store4(c.cast(), result.map(C::bits));
    }

    /// [`Gemm::update4`] with an epilogue, of those elements that C has. It finds out itself how it
    /// may access them: an epilogue is long, and a thread has up to 48 float4s, so that two copies
    /// were too long to be unrolled, and the sums went through memory.
    #[inline(always)]
    unsafe fn finish4(&self, row: usize, col: usize, sums: Float4<C>) {
        let at = self.at(row, col, 4);
        let is_whole = at.count == 4 && self.c_is_float4_aligned() && col.is_multiple_of(4);
        let c = self.c_of_cta().wrapping_add(row * self.ldc + col);
        let mut result = sums.0.map(|sum| self.alpha.times(sum));
        for i in 0..4 {
            if self.beta != C::ZERO && i < at.count {
                result[i] = self.beta.times_plus(*c.add(i), result[i]);
            }
        }
        let result = self.finished(at, result);
        if is_whole {
            global::store4(c.cast(), result.map(C::bits));
            return;
        }
        for i in 0..4 {
            if i < at.count {
                *c.add(i) = result[i];
            }
        }
    }
}
