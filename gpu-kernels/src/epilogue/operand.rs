//! What an epilogue reads and writes beside C: vectors and matrices of f32 or of 16 bits.

use cuda_std::pipeline;

use super::{Alignment, At};
use crate::float4::Float4;
use crate::half::Half;
pub use crate::half::{Bf16, F16};
use crate::mapped_gemm::Float2;

/// A type of numbers in memory: f32, or [`Bf16`] or [`F16`], held as u16.
pub trait Number: Copy {
    /// What holds a number.
    type Bits: Copy + core::fmt::Debug;

    /// The number with these bits.
    fn value(bits: Self::Bits) -> f32;

    /// The bits of the nearest number.
    fn nearest(value: f32) -> Self::Bits;

    /// Loads four neighbours at once.
    ///
    /// # Safety
    ///
    /// `source` is a multiple of their size, and valid for reading them.
    unsafe fn load4(source: *const Self::Bits) -> [f32; 4];

    /// Loads two neighbours at once.
    ///
    /// # Safety
    ///
    /// As for [`Number::load4`].
    unsafe fn load2(source: *const Self::Bits) -> [f32; 2];

    /// Stores two neighbours at once.
    ///
    /// # Safety
    ///
    /// `target` is a multiple of their size, and valid for writing them.
    unsafe fn store2(target: *mut Self::Bits, values: [f32; 2]);
}

impl Number for f32 {
    type Bits = f32;

    #[inline(always)]
    fn value(bits: f32) -> f32 {
        bits
    }

    #[inline(always)]
    fn nearest(value: f32) -> f32 {
        value
    }

    #[inline(always)]
    unsafe fn load4(source: *const f32) -> [f32; 4] {
        Float4::read(source).0
    }

    #[inline(always)]
    unsafe fn load2(source: *const f32) -> [f32; 2] {
        Float2::read(source).0
    }

    #[inline(always)]
    unsafe fn store2(target: *mut f32, values: [f32; 2]) {
        Float2(values).write(target);
    }
}

/// Four numbers of 16 bits, two in a word, the first in its lower half.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Half4([u32; 2]);

macro_rules! half {
    ($($type:ty),*) => {$(
        impl Number for $type {
            type Bits = u16;

            #[inline(always)]
            fn value(bits: u16) -> f32 {
                <$type as Half>::value(bits)
            }

            #[inline(always)]
            fn nearest(value: f32) -> u16 {
                <$type as Half>::pair(value, 0.0) as u16
            }

            #[inline(always)]
            unsafe fn load4(source: *const u16) -> [f32; 4] {
                let words = source.cast::<Half4>();
                let (low, high) = ((*words).0[0], (*words).0[1]);
                [low, low >> 16, high, high >> 16].map(|bits| <Self as Half>::value(bits as u16))
            }

            #[inline(always)]
            unsafe fn load2(source: *const u16) -> [f32; 2] {
                let word = *source.cast::<u32>();
                [word, word >> 16].map(|bits| <Self as Half>::value(bits as u16))
            }

            #[inline(always)]
            unsafe fn store2(target: *mut u16, values: [f32; 2]) {
                *target.cast::<u32>() = <Self as Half>::pair(values[0], values[1]);
            }
        }
    )*};
}

half!(Bf16, F16);

/// The alignment of the rows of a tile: the first is at `first`, and the others are an even number
/// of elements further on, or not.
#[inline(always)]
fn alignment<T: Number>(first: *const T::Bits, are_even: bool) -> Alignment {
    match are_even && (first as usize).is_multiple_of(2 * size_of::<T::Bits>()) {
        true => Alignment::Pairs,
        false => Alignment::Less,
    }
}

impl At {
    /// The numbers of a vector with one for each column of C: those of the neighbours' columns,
    /// and 0 where C has no column.
    ///
    /// # Safety
    ///
    /// The vector has a number for each column of C, and nothing writes it while the kernel runs.
    #[inline(always)]
    pub unsafe fn of_columns<T: Number, const N: usize>(self, vector: *const T::Bits) -> [f32; N] {
        self.neighbours::<T, N>(vector.wrapping_add(self.col))
    }

    /// [`At::of_columns`], or -0 for each, which a sum ignores, if the pointer is null.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(always)]
    pub(super) unsafe fn of_columns_or_none<const N: usize>(self, vector: *const f32) -> [f32; N] {
        // Outside of the branch, neighbours in other rows share it.
        let first = vector.wrapping_add(self.col);
        match vector.is_null() {
            true => [-0.0; N],
            false => self.neighbours::<f32, N>(first),
        }
    }

    /// Prefetches the numbers of a vector for `count` columns, and says how they are aligned. Each
    /// thread takes 128 bytes.
    ///
    /// # Safety
    ///
    /// As for [`At::of_columns`].
    #[inline(always)]
    pub unsafe fn prefetch_columns<T: Number>(
        self,
        vector: *const T::Bits,
        thread: usize,
    ) -> Alignment {
        let first = vector.wrapping_add(self.col);
        let of_thread = thread * (128 / size_of::<T::Bits>());
        if of_thread < self.count {
            pipeline::prefetch_l1(first.wrapping_add(of_thread));
        }
        alignment::<T>(first, true)
    }

    /// The number for the neighbours' row, of a vector with one for each row of C, or 0 where C has
    /// no such row.
    ///
    /// # Safety
    ///
    /// The vector has a number for each row of C, and nothing writes it while the kernel runs.
    #[inline(always)]
    pub unsafe fn of_row<T: Number>(self, vector: *const T::Bits) -> f32 {
        let is_there = self.count > 0;
        if is_there {
            T::value(*vector.wrapping_add(self.row))
        } else {
            0.0
        }
    }

    /// The numbers at the neighbours' places in a matrix of the shape of C, and 0 where C has no
    /// such elements.
    ///
    /// # Safety
    ///
    /// The matrix has a number for each element of C, and nothing else writes these places.
    #[inline(always)]
    pub unsafe fn of_matrix<T: Number, const N: usize>(self, matrix: Matrix<T>) -> [f32; N] {
        self.neighbours::<T, N>(matrix.place(self))
    }

    /// Stores numbers at the neighbours' places in a matrix of the shape of C.
    ///
    /// # Safety
    ///
    /// As for [`At::of_matrix`], and nothing else reads these places.
    #[inline(always)]
    pub unsafe fn store<T: Number, const N: usize>(self, matrix: Matrix<T>, values: [f32; N]) {
        let target = matrix.place(self).cast_mut();
        let is_aligned = (target as usize).is_multiple_of(2 * size_of::<T::Bits>());
        if N.is_multiple_of(2) && (self.is_aligned || N == self.count && is_aligned) {
            for i in 0..N / 2 {
                let two = [values[2 * i], values[2 * i + 1]];
                T::store2(target.wrapping_add(2 * i), two);
            }
            return;
        }
        for i in 0..N {
            if i < self.count {
                *target.wrapping_add(i) = T::nearest(values[i]);
            }
        }
    }

    /// The numbers from an address on, as many as exist, and zeros.
    #[inline(always)]
    unsafe fn neighbours<T: Number, const N: usize>(self, first: *const T::Bits) -> [f32; N] {
        let mut numbers = [0.0; N];
        let address = first as usize;
        let is_aligned = |numbers: usize| address.is_multiple_of(numbers * size_of::<T::Bits>());
        // One access for four neighbours, or for two, where they are aligned.
        if N.is_multiple_of(4) && N == self.count && is_aligned(4) {
            for i in 0..N / 4 {
                let four = T::load4(first.wrapping_add(4 * i));
                for j in 0..4 {
                    numbers[4 * i + j] = four[j];
                }
            }
            return numbers;
        }
        if N.is_multiple_of(2) && (self.is_aligned || N == self.count && is_aligned(2)) {
            for i in 0..N / 2 {
                [numbers[2 * i], numbers[2 * i + 1]] = T::load2(first.wrapping_add(2 * i));
            }
            return numbers;
        }
        for i in 0..N {
            if i < self.count {
                numbers[i] = T::value(*first.wrapping_add(i));
            }
        }
        numbers
    }
}

/// A matrix of the shape of C, or one for each product of a batch.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Matrix<T: Number> {
    pub start: *const T::Bits,
    /// Elements from the start of a row to the start of the next.
    pub leading: usize,
    /// Elements from a product's matrix to the next.
    pub stride: usize,
}

impl<T: Number> Matrix<T> {
    /// The alignment of a tile that begins at `at`.
    #[inline(always)]
    pub(super) fn alignment(self, at: At) -> Alignment {
        let are_even = (self.leading | self.stride).is_multiple_of(2);
        alignment::<T>(self.start.wrapping_add(at.col), are_even)
    }

    #[inline(always)]
    fn place(self, at: At) -> *const T::Bits {
        let index = at.product * self.stride + at.row * self.leading + at.col;
        self.start.wrapping_add(index)
    }
}
