//! A 128-bit vector of four floats, or of four integers of 32 bits: one load or store instead of
//! four.
//!
//! The elements are read and written one by one on purpose. If a `Float4` is copied as a whole,
//! LLVM puts it in local memory and leaves it there. One by one, the elements are in registers
//! from the start, and the alignment lets libNVVM join the four accesses into one `ld.v4.f32` or
//! `st.v4.f32`.

use crate::compat::global;
use crate::element::Word;

/// Four consecutive elements of a row, at a multiple of 16 bytes.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct Float4<T = f32>(pub [T; 4]);

impl<T: Word> Float4<T> {
    pub const ZERO: Self = Self([T::ZERO; 4]);

    /// Loads 16 bytes of A or B, which are not written while the kernel runs: libNVVM joins only
    /// about half of such loads by itself.
    ///
    /// # Safety
    ///
    /// As for [`Self::read`], and `source` is in global memory.
    #[inline(always)]
    pub unsafe fn read_only(source: *const T) -> Self {
        Self(global::load4_read_only(source.cast()).map(T::of_bits))
    }
}

/// Four f64 are two accesses of 16 bytes.
impl<T: Copy> Float4<T> {
    /// Loads four elements.
    ///
    /// # Safety
    ///
    /// `source` is a multiple of 16 bytes, and valid for reading four elements.
    #[inline(always)]
    pub unsafe fn read(source: *const T) -> Self {
        let source = source.cast::<Self>();
        Self([
            (*source).0[0],
            (*source).0[1],
            (*source).0[2],
            (*source).0[3],
        ])
    }

    /// Stores four elements.
    ///
    /// # Safety
    ///
    /// `target` is a multiple of 16 bytes, and valid for writing four elements.
    #[inline(always)]
    pub unsafe fn write(self, target: *mut T) {
        let target = target.cast::<Self>();
        (*target).0[0] = self.0[0];
        (*target).0[1] = self.0[1];
        (*target).0[2] = self.0[2];
        (*target).0[3] = self.0[3];
    }
}
