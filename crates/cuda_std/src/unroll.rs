//! Controls, at the loop, how often its body is repeated in the machine code.

use core::ops::Range;

/// Iterates over `range` in a loop whose body the compiler repeats `COUNT` times for each jump: 1
/// keeps the loop as it is written, 0 unrolls it fully, which requires constant bounds.
///
/// Full unrolling makes an index a constant, so that an array indexed by it stays in registers;
/// keeping a long loop rolled keeps the code in the instruction cache. A plain `for` with
/// constant bounds is fully unrolled too, unless it is very long.
///
/// ```
/// # use cuda_std::unroll;
/// let mut sum = 0;
/// for i in unroll::<4>(0..100) {
///     sum += i;
/// }
/// assert_eq!(sum, 4950);
/// ```
#[inline(always)]
pub const fn unroll<const COUNT: u32>(range: Range<usize>) -> Unroll<usize, COUNT> {
    Unroll(range)
}

/// [`unroll`](fn@unroll) with a 32-bit counter, which takes one register instead of two where the
/// bounds are not constant.
#[inline(always)]
pub const fn unroll_u32<const COUNT: u32>(range: Range<u32>) -> Unroll<u32, COUNT> {
    Unroll(range)
}

/// The iterator of [`unroll`](fn@unroll) and [`unroll_u32`].
///
/// On a GPU two optimizers see the loop. The first, rustc's own, fully unrolls every loop that it
/// knows to be short: that is all `COUNT` 0 needs. For another `COUNT` each next index is opaque
/// to it, so that neither the bounds nor an indexed array reveal how short the loop is, and each
/// iteration marks the loop for the second optimizer, libNVVM, which sees through the opaque
/// index and follows the mark.
#[derive(Clone, Debug)]
pub struct Unroll<Index, const COUNT: u32>(Range<Index>);

macro_rules! unroll_iterator {
    ($index:ty, $word:ty, $opaque:ident) => {
        impl<const COUNT: u32> Iterator for Unroll<$index, COUNT> {
            type Item = $index;

            #[inline(always)]
            fn next(&mut self) -> Option<$index> {
                let index = self.0.start;
                let next = index.wrapping_add(1);
                #[cfg(cuda_device)]
                let next = match COUNT {
                    0 => next,
                    _ => crate::device::$opaque(next as $word) as $index,
                };
                // Also after the last index: a second value of it would keep rustc from rotating
                // the loop.
                self.0.start = next;
                if index >= self.0.end {
                    return None;
                }
                #[cfg(cuda_device)]
                if COUNT != 0 {
                    crate::device::__nvvm_unroll(COUNT);
                }
                Some(index)
            }

            #[inline(always)]
            fn size_hint(&self) -> (usize, Option<usize>) {
                self.0.size_hint()
            }
        }

        impl<const COUNT: u32> ExactSizeIterator for Unroll<$index, COUNT> {}
    };
}
unroll_iterator!(usize, u64, __nvvm_opaque_u64);
unroll_iterator!(u32, u32, __nvvm_opaque_u32);
