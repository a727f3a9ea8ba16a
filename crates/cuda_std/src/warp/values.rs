//! Shuffles of values that are not 32 or 64 bits wide: narrow ones take a word each, wide ones
//! several.

use super::WarpShuffleValue;
use super::sealed::Sealed;

/// Implements the trait by another type's implementation.
macro_rules! shuffle_as {
    ($($(#[$feature:meta])? $ty:ty as $other:ty: |$value:ident| $to:expr, |$result:ident| $from:expr;)*) => {
        $(
            $(#[$feature])?
            impl Sealed for $ty {}

            $(#[$feature])?
            impl WarpShuffleValue for $ty {
                #[inline(always)]
                fn exchange(self, shuffle: impl Fn(u32) -> u32) -> Self {
                    let $value = self;
                    let $result = <$other as WarpShuffleValue>::exchange($to, shuffle);
                    $from
                }
            }
        )*
    };
}

shuffle_as! {
    u8 as u32: |value| u32::from(value), |word| word as u8;
    i8 as u8: |value| value.cast_unsigned(), |bits| bits.cast_signed();
    u16 as u32: |value| u32::from(value), |word| word as u16;
    i16 as u16: |value| value.cast_unsigned(), |bits| bits.cast_signed();
    i128 as u128: |value| value.cast_unsigned(), |bits| bits.cast_signed();
    #[cfg(feature = "half")]
    half::f16 as u16: |value| value.to_bits(), |bits| half::f16::from_bits(bits);
    #[cfg(feature = "half")]
    half::bf16 as u16: |value| value.to_bits(), |bits| half::bf16::from_bits(bits);
    #[cfg(feature = "half")]
    crate::f16x2 as u32: |value| value.to_bits(), |bits| crate::f16x2::from_bits(bits);
    #[cfg(feature = "half")]
    crate::bf16x2 as u32: |value| value.to_bits(), |bits| crate::bf16x2::from_bits(bits);
}

impl Sealed for u128 {}
impl WarpShuffleValue for u128 {
    #[inline(always)]
    fn exchange(self, shuffle: impl Fn(u32) -> u32) -> Self {
        let low = (self as u64).exchange(&shuffle);
        let high = ((self >> 64) as u64).exchange(&shuffle);
        u128::from(high) << 64 | u128::from(low)
    }
}
