//! Elements of 16 bits.

use std::fmt;

use cust::memory::DeviceCopy;

/// Defines a type from one of the crate `half`, which a GPU's buffer cannot hold itself.
macro_rules! half {
    ($($(#[$about:meta])* $name:ident, $half:ty, $smallest:expr;)*) => {
        $(
            $(#[$about])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
            #[repr(transparent)]
            pub struct $name(pub $half);

            // SAFETY: it is 16 bits, and any bits are a valid value.
            unsafe impl DeviceCopy for $name {}

            impl $name {
                /// The smallest positive number.
                pub const SMALLEST: f64 = $smallest;

                /// The nearest to `value`; ties go to even.
                pub fn from_f32(value: f32) -> $name {
                    $name(<$half>::from_f32(value))
                }

                /// The nearest to `value`, rounded once.
                pub fn from_f64(value: f64) -> $name {
                    $name(<$half>::from_f64(value))
                }

                pub fn to_f32(self) -> f32 {
                    self.0.to_f32()
                }

                pub const fn from_bits(bits: u16) -> $name {
                    $name(<$half>::from_bits(bits))
                }

                pub const fn to_bits(self) -> u16 {
                    self.0.to_bits()
                }
            }

            impl From<$half> for $name {
                fn from(value: $half) -> $name {
                    $name(value)
                }
            }

            impl From<$name> for $half {
                fn from(value: $name) -> $half {
                    value.0
                }
            }

            impl fmt::Display for $name {
                fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                    self.to_f32().fmt(formatter)
                }
            }
        )*
    };
}

half! {
    /// bfloat16: f32 without its lower 16 bits.
    Bf16, half::bf16, f32::MIN_POSITIVE as f64 / 128.0;
    /// IEEE binary16.
    F16, half::f16, 1.0 / (1 << 24) as f64;
}
