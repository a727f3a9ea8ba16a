//! 16 bytes of B in a thread's registers.

use core::marker::PhantomData;

use cuda_std::warp::WarpShuffleValue;

use crate::fix_up::Sum;
use crate::float4::Float4;
use crate::half::Half;

/// What a thread reads of B at a time: 16 bytes, which stay as they are until they are multiplied.
pub(super) trait Vector: Copy {
    /// What holds an element.
    type Element: Copy;
    /// What adds up products of elements.
    type Sum: Sum + WarpShuffleValue;

    /// Elements.
    const LENGTH: usize;
    const ZERO: Self;

    /// Loads 16 bytes.
    ///
    /// # Safety
    ///
    /// `source` is a multiple of 16 bytes, and valid for reading all elements.
    unsafe fn read(source: *const Self::Element) -> Self;

    /// The number at an index.
    fn get(&self, index: usize) -> Self::Sum;

    /// The number in an element.
    fn value(element: Self::Element) -> Self::Sum;
}

impl Vector for Float4 {
    type Element = f32;
    type Sum = f32;

    const LENGTH: usize = 4;
    const ZERO: Float4 = Float4::ZERO;

    #[inline(always)]
    unsafe fn read(source: *const f32) -> Float4 {
        Float4::read(source)
    }

    #[inline(always)]
    fn get(&self, index: usize) -> f32 {
        self.0[index]
    }

    #[inline(always)]
    fn value(element: f32) -> f32 {
        element
    }
}

/// Two f64.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub(super) struct Double2(pub(super) [f64; 2]);

impl Vector for Double2 {
    type Element = f64;
    type Sum = f64;

    const LENGTH: usize = 2;
    const ZERO: Double2 = Double2([0.0; 2]);

    #[inline(always)]
    unsafe fn read(source: *const f64) -> Double2 {
        // One by one, as a `Float4`.
        let source = source.cast::<Self>();
        Double2([(*source).0[0], (*source).0[1]])
    }

    #[inline(always)]
    fn get(&self, index: usize) -> f64 {
        self.0[index]
    }

    #[inline(always)]
    fn value(element: f64) -> f64 {
        element
    }
}

/// Eight numbers of 16 bits, two in a word, the first in its lower half.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub(super) struct Half8<T>(pub(super) [u32; 4], PhantomData<T>);

impl<T> Half8<T> {
    #[inline(always)]
    pub(super) fn of_words(words: [u32; 4]) -> Half8<T> {
        Half8(words, PhantomData)
    }
}

impl<T: Half> Vector for Half8<T> {
    type Element = u16;
    type Sum = f32;

    const LENGTH: usize = 8;
    const ZERO: Half8<T> = Half8([0; 4], PhantomData);

    #[inline(always)]
    unsafe fn read(source: *const u16) -> Half8<T> {
        // One by one, as a `Float4`.
        let source = source.cast::<Self>();
        let words = [
            (*source).0[0],
            (*source).0[1],
            (*source).0[2],
            (*source).0[3],
        ];
        Half8::of_words(words)
    }

    #[inline(always)]
    fn get(&self, index: usize) -> f32 {
        let word = self.0[index / 2];
        T::value(if index.is_multiple_of(2) {
            word as u16
        } else {
            (word >> 16) as u16
        })
    }

    #[inline(always)]
    fn value(element: u16) -> f32 {
        T::value(element)
    }
}

/// A vector that tensor cores multiply, at an edge put together of its elements.
pub(super) trait OfElements: Vector {
    /// An element that adds nothing.
    const NOTHING: Self::Element;

    /// The vector of these elements.
    fn of(element: impl Fn(usize) -> Self::Element) -> Self;
}

impl OfElements for Double2 {
    const NOTHING: f64 = 0.0;

    #[inline(always)]
    fn of(element: impl Fn(usize) -> f64) -> Double2 {
        Double2([element(0), element(1)])
    }
}

impl<T: Half> OfElements for Half8<T> {
    const NOTHING: u16 = 0;

    #[inline(always)]
    fn of(element: impl Fn(usize) -> u16) -> Half8<T> {
        let pair = |j: usize| joined(element(j).into(), element(j + 1).into());
        Half8::of_words([pair(0), pair(2), pair(4), pair(6)])
    }
}

/// The lower halves of two words.
#[inline(always)]
pub(super) fn joined(low: u32, high: u32) -> u32 {
    low & 0xffff | high << 16
}
