//! The types that a kernel can print, and how each becomes the 8 bytes that `vprintf` takes.

use super::format::Kind;
use super::storage::Text;

/// A value that a kernel can print.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be printed from a kernel",
    note = "integers, f32, f64, bool and &str can"
)]
pub trait PrintArgument: Copy + crate::sealed::Sealed {
    #[doc(hidden)]
    const KIND: Kind;

    /// Where the text is that the word is the address of.
    #[doc(hidden)]
    type Storage;

    #[doc(hidden)]
    const EMPTY: Self::Storage;

    #[doc(hidden)]
    fn word(self, storage: &mut Self::Storage) -> u64;

    /// The same under `{:?}`.
    #[doc(hidden)]
    #[inline(always)]
    fn debug_word(self, storage: &mut Self::Storage) -> u64 {
        self.word(storage)
    }
}

/// An integer under `{:x}`, which shows as many bits as its type has.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Hexadecimal<T>(pub T);

/// An integer under `{:X}`.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct UpperHexadecimal<T>(pub T);

/// A value under `{:?}`.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Debug<T>(pub T);

/// A value that a kernel can print in hexadecimal.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be printed in hexadecimal from a kernel",
    note = "integers can"
)]
pub trait PrintHexadecimal: PrintArgument {
    const KIND: Kind;

    /// `ten` is the digit of 10.
    fn hexadecimal(self, storage: &mut Self::Storage, ten: u8) -> u64;
}

macro_rules! wrappers {
    ($($wrapper:ident: $bound:ident, $word:ident($($ten:literal)?);)*) => {
        $(
            impl<T: $bound> crate::sealed::Sealed for $wrapper<T> {}
            impl<T: $bound> PrintArgument for $wrapper<T> {
                const KIND: Kind = <T as $bound>::KIND;

                type Storage = T::Storage;

                const EMPTY: Self::Storage = T::EMPTY;

                #[inline(always)]
                fn word(self, storage: &mut Self::Storage) -> u64 {
                    self.0.$word(storage $(, $ten)?)
                }
            }
        )*
    };
}
wrappers! {
    Hexadecimal: PrintHexadecimal, hexadecimal(b'a');
    UpperHexadecimal: PrintHexadecimal, hexadecimal(b'A');
    Debug: PrintArgument, debug_word();
}

macro_rules! print_arguments {
    ($($kind:expr => $($ty:ty)* = |$value:ident| $word:expr;)*) => {
        $($(
            impl PrintArgument for $ty {
                const KIND: Kind = $kind;

                type Storage = ();

                const EMPTY: () = ();

                #[inline(always)]
                fn word(self, _storage: &mut ()) -> u64 {
                    let $value = self;
                    $word
                }
            }
        )*)*
    };
}
print_arguments! {
    Kind::Signed => i8 i16 i32 i64 isize = |value| value as i64 as u64;
    Kind::Unsigned => u8 u16 u32 u64 usize = |value| value as u64;
    Kind::Float => f32 f64 = |value| (value as f64).to_bits();
    Kind::Text => bool = |value| {
        if value { c"true" } else { c"false" }.as_ptr().expose_provenance() as u64
    };
}

macro_rules! print_hexadecimal {
    ($($ty:ty as $unsigned:ty),*) => {
        $(impl PrintHexadecimal for $ty {
            const KIND: Kind = Kind::Unsigned;

            #[inline(always)]
            fn hexadecimal(self, _storage: &mut (), _ten: u8) -> u64 {
                self as $unsigned as u64
            }
        })*
    };
}
print_hexadecimal!(
    i8 as u8,
    i16 as u16,
    i32 as u32,
    i64 as u64,
    isize as usize,
    u8 as u8,
    u16 as u16,
    u32 as u32,
    u64 as u64,
    usize as usize
);

/// Types that become a text on the device.
macro_rules! print_texts {
    ($($kind:expr, $bytes:expr => $ty:ty = |$value:ident, $text:ident| $write:expr $(, $debug:expr)?;)*) => {
        $(
            impl PrintArgument for $ty {
                const KIND: Kind = $kind;

                type Storage = Text<{ $bytes }>;

                const EMPTY: Self::Storage = Text::EMPTY;

                #[inline(always)]
                fn word(self, $text: &mut Self::Storage) -> u64 {
                    let $value = self;
                    $write;
                    $text.address()
                }

                $(
                    #[inline(always)]
                    fn debug_word(self, $text: &mut Self::Storage) -> u64 {
                        let $value = self;
                        $debug;
                        $text.address()
                    }
                )?
            }
        )*
    };
}

/// A sign, 39 digits and the NUL.
const WIDE: usize = 41;

/// 255 bytes and the NUL.
const LONG: usize = 256;

print_texts! {
    Kind::Digits, WIDE => i128 = |value, text| text.push_decimal(value < 0, value.unsigned_abs());
    Kind::Digits, WIDE => u128 = |value, text| text.push_decimal(false, value);
    Kind::Text, LONG => &str = |value, text| text.push_text(value), text.push_quoted(value);
}

macro_rules! print_wide_hexadecimal {
    ($($ty:ty)*) => {
        $(impl PrintHexadecimal for $ty {
            const KIND: Kind = Kind::Digits;

            #[inline(always)]
            fn hexadecimal(self, storage: &mut Self::Storage, ten: u8) -> u64 {
                storage.push_hexadecimal(self as u128, ten);
                storage.address()
            }
        })*
    };
}
print_wide_hexadecimal!(i128 u128);
