//! Shuffles of values: of up to 32 bits in one word, of more bits in several.

use super::WarpShuffleValue;

/// Implements the trait by another type's implementation.
macro_rules! shuffle_as {
    ($($(#[$feature:meta])? $ty:ty as $other:ty: |$value:ident| $to:expr, |$result:ident| $from:expr;)*) => {
        $(
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
    i32 as u32: |value| value.cast_unsigned(), |bits| bits.cast_signed();
    i64 as u64: |value| value.cast_unsigned(), |bits| bits.cast_signed();
    f32 as u32: |value| value.to_bits(), |bits| f32::from_bits(bits);
    f64 as u64: |value| value.to_bits(), |bits| f64::from_bits(bits);
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

impl WarpShuffleValue for u32 {
    #[inline(always)]
    fn exchange(self, shuffle: impl Fn(u32) -> u32) -> Self {
        shuffle(self)
    }
}

/// Implements the trait by that of each half.
macro_rules! shuffle_halves {
    ($($ty:ident of $half:ident)*) => {
        $(
            impl WarpShuffleValue for $ty {
                #[inline(always)]
                fn exchange(self, shuffle: impl Fn(u32) -> u32) -> Self {
                    let low = (self as $half).exchange(&shuffle);
                    let high = ((self >> $half::BITS) as $half).exchange(&shuffle);
                    $ty::from(high) << $half::BITS | $ty::from(low)
                }
            }
        )*
    };
}
shuffle_halves!(u64 of u32 u128 of u64);
