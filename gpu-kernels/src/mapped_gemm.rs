//! What a kernel computes whose tiles the copy engine brings, as one value, and how it writes C: of
//! elements of 16 bits, of f32 that are rounded to tf32, and of f32 that have been split into two
//! elements of 16 bits.

use crate::compat::TensorMap;
use crate::element::Element;
use crate::half::{self, Half};

/// A GEMM of elements of 16 bits, or of f32, whose A and B the copy engine reads, as tensor maps
/// describe them. As in [`Gemm`](crate::gemm::Gemm), `beta == 0` does not read `C`, and
/// `alpha == 0` reads neither `A` nor `B`.
#[derive(Clone, Copy)]
pub struct MappedGemm<'a, C = u16> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub alpha: f32,
    pub a: &'a TensorMap,
    pub b: &'a TensorMap,
    pub beta: f32,
    pub c: *mut C,
    pub ldc: usize,
    /// C, for the copy engine, if it can write it.
    pub c_boxes: &'a TensorMap,
}

impl<C> MappedGemm<'_, C> {
    /// The depth of the product: `k`, or 0 where `alpha` makes it irrelevant.
    #[inline(always)]
    pub fn depth(&self) -> usize {
        if self.alpha == 0.0 {
            0
        } else {
            self.k
        }
    }

    /// Whether the copy engine stores C: it does not read it, and writes only rows that begin
    /// at multiples of 16 bytes.
    #[inline(always)]
    pub fn stores_boxes(&self) -> bool {
        let alignment = self.c as usize | (size_of::<C>() * self.ldc);
        self.beta == 0.0 && alignment.is_multiple_of(16)
    }
}

impl MappedGemm<'_> {
    /// `C[row][col] = alpha * sum + beta * C[row][col]`, rounded once, or nothing where C has
    /// no such element.
    ///
    /// # Safety
    ///
    /// No other thread touches `C[row][col]`.
    #[inline(always)]
    pub unsafe fn update<T: Half>(&self, row: usize, col: usize, sum: f32) {
        if row < self.m && col < self.n {
            let c = self.c.add(row * self.ldc + col);
            half::update::<T>(c, self.alpha, self.beta, sum);
        }
    }
}

impl MappedGemm<'_, f32> {
    /// As for 16 bits.
    ///
    /// # Safety
    ///
    /// No other thread touches `C[row][col]`.
    #[inline(always)]
    pub unsafe fn update(&self, row: usize, col: usize, sum: f32) {
        if row < self.m && col < self.n {
            let c = self.c.add(row * self.ldc + col);
            let product = self.alpha.times(sum);
            *c = if self.beta == 0.0 {
                product
            } else {
                self.beta.times_plus(*c, product)
            };
        }
    }
}

/// A GEMM of f32, of which `split.rs` has made two f16 each: the maps describe these, along K, and
/// the scales belong to the rows of A and the columns of B. `beta` and `alpha` as in
/// [`MappedGemm`].
#[derive(Clone, Copy)]
pub struct SplitGemm<'a> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub alpha: f32,
    pub a: &'a TensorMap,
    pub a_scales: &'a [f32],
    pub b: &'a TensorMap,
    pub b_scales: &'a [f32],
    pub beta: f32,
    pub c: *mut f32,
    pub ldc: usize,
}

impl SplitGemm<'_> {
    /// As [`MappedGemm::depth`].
    #[inline(always)]
    pub fn depth(&self) -> usize {
        if self.alpha == 0.0 {
            0
        } else {
            self.k
        }
    }

    /// `C[row][col] = alpha * sum + beta * C[row][col]`, of a sum of scaled elements, or nothing
    /// where C has no such element.
    ///
    /// # Safety
    ///
    /// No other thread touches `C[row][col]`.
    #[inline(always)]
    pub unsafe fn update(&self, row: usize, col: usize, sum: f32) {
        if row < self.m && col < self.n {
            let c = self.c.add(row * self.ldc + col);
            let sum = if self.depth() == 0 {
                sum
            } else {
                // The smaller factor first: a product with the larger one might overflow.
                let of_row = *self.a_scales.get_unchecked(row);
                let of_col = *self.b_scales.get_unchecked(col);
                sum * of_row.min(of_col) * of_row.max(of_col)
            };
            let product = self.alpha.times(sum);
            *c = if self.beta == 0.0 {
                product
            } else {
                self.beta.times_plus(*c, product)
            };
        }
    }
}
