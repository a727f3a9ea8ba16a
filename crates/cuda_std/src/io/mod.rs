//! [`print!`](crate::print) and [`println!`](crate::println) from a kernel.
//!
//! A GPU has no `core::fmt`. The format string becomes a C format string while the kernel is
//! compiled, and at run time there is only one call of the device's `vprintf` with 8 bytes for
//! each value. The output of one call is not interrupted: lines of different threads do not mix.
//! The device collects up to 1 MiB of it and the host prints it when it next waits for the
//! device; what does not fit replaces the oldest.
//!
//! | format | takes | prints |
//! | --- | --- | --- |
//! | `{}` | integers, `bool` | as `std` does |
//! | `{}` | `f32`, `f64` | six significant digits, as C's `%g`: `0.1`, `1e-07`, `nan` |
//! | `{:.3}` | `f32`, `f64` | three decimals, as `std` does but for `nan` |
//! | `{:x}`, `{:X}` | integers | hexadecimal, as `std` does |
//!
//! Each format may have a width `{:8}`, zeros in front `{:08}` and alignment `{:<8}` or `{:>8}`.
//! Up to 16 values are taken, in order, by position `{0}`, by name `{name}`, or from a variable
//! `{variable}`. Any other format or type does not compile. The simulator prints the same
//! characters.
//!
//! ```
//! use cuda_std::println;
//! # let (row, sum) = (3_u32, 0.25_f32);
//! println!("row {row:4}: sum = {sum}, in bits {:08x}", sum.to_bits());
//! ```
//!
//! ```compile_fail,E0080
//! cuda_std::println!("{:.3}", 5); // a precision is for floats
//! ```
//!
//! ```compile_fail,E0080
//! cuda_std::println!("{:05}", true); // zeros are for numbers
//! ```

mod c_format;
#[cfg(not(cuda_device))]
mod text;

/// A format string, split by the macros. The code that they expand to implements this trait.
#[doc(hidden)]
pub trait Format {
    const PIECES: &'static [Piece];
}

/// Text between values, or the format of the next value.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum Piece {
    Text(&'static str),
    Value(Spec),
}

/// What follows the colon in `{:..}`.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Spec {
    pub style: Style,
    pub align: Align,
    pub zeros: bool,
    /// 0 if there is none.
    pub width: u32,
    pub precision: Option<u32>,
}

#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum Align {
    /// Aligns numbers to the right and text to the left.
    Natural,
    Left,
    Right,
}

#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum Style {
    Plain,
    LowerHex,
    UpperHex,
}

/// How a value is stored in its 8 bytes.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Sign-extended.
    Signed,
    /// Zero-extended.
    Unsigned,
    /// As an `f64`.
    Float,
    /// 0 or 1; on the device the text to print.
    Bool,
}

/// A value that a kernel can print.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be printed from a kernel",
    note = "integers up to 64 bits, f32, f64 and bool can"
)]
pub trait PrintArgument: Copy + sealed::Sealed {
    #[doc(hidden)]
    const KIND: Kind;

    #[doc(hidden)]
    fn word(self) -> u64;
}

/// An integer under `{:x}` or `{:X}`, which show as many bits as its type has.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Hexadecimal<T>(pub T);

/// A value that a kernel can print in hexadecimal.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be printed in hexadecimal from a kernel",
    note = "integers up to 64 bits can"
)]
pub trait PrintHexadecimal: PrintArgument {
    fn zero_extended(self) -> u64;
}

impl<T: PrintHexadecimal> sealed::Sealed for Hexadecimal<T> {}
impl<T: PrintHexadecimal> PrintArgument for Hexadecimal<T> {
    const KIND: Kind = Kind::Unsigned;

    #[inline(always)]
    fn word(self) -> u64 {
        self.0.zero_extended()
    }
}

macro_rules! print_hexadecimal {
    ($($ty:ty as $unsigned:ty),*) => {
        $(impl PrintHexadecimal for $ty {
            #[inline(always)]
            fn zero_extended(self) -> u64 {
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

macro_rules! print_arguments {
    ($($kind:expr => $($ty:ty)* = |$value:ident| $word:expr;)*) => {
        $($(
            impl sealed::Sealed for $ty {}
            impl PrintArgument for $ty {
                const KIND: Kind = $kind;

                #[inline(always)]
                fn word(self) -> u64 {
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
}

impl sealed::Sealed for bool {}
impl PrintArgument for bool {
    const KIND: Kind = Kind::Bool;

    #[inline(always)]
    fn word(self) -> u64 {
        #[cfg(cuda_device)]
        let word = if self { c"true" } else { c"false" }.as_ptr() as u64;
        #[cfg(not(cuda_device))]
        let word = u64::from(self);
        word
    }
}

/// The values of one print, as a tuple.
#[doc(hidden)]
pub trait Values {
    const KINDS: &'static [Kind];

    type Words: AsRef<[u64]>;

    fn words(self) -> Self::Words;
}

macro_rules! values {
    ($($($name:ident)*;)*) => {
        $(
            impl<$($name: PrintArgument),*> Values for ($($name,)*) {
                const KINDS: &'static [Kind] = &[$($name::KIND),*];

                type Words = [u64; values!(@count $($name)*)];

                #[inline(always)]
                fn words(self) -> Self::Words {
                    #[allow(non_snake_case, reason = "one name for a type parameter and its value")]
                    let ($($name,)*) = self;
                    [$($name.word()),*]
                }
            }
        )*
    };
    (@count $($name:ident)*) => { 0 $(+ values!(@one $name))* };
    (@one $name:ident) => { 1 };
}
values! {
    ;
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
    A B C D E F G H I;
    A B C D E F G H I J;
    A B C D E F G H I J K;
    A B C D E F G H I J K L;
    A B C D E F G H I J K L M;
    A B C D E F G H I J K L M N;
    A B C D E F G H I J K L M N O;
    A B C D E F G H I J K L M N O P;
}

/// The C format of a print, made while the kernel is compiled.
struct CFormat<F, const CAPACITY: usize, V>(core::marker::PhantomData<(F, V)>);

impl<F: Format, const CAPACITY: usize, V: Values> CFormat<F, CAPACITY, V> {
    const BYTES: [u8; CAPACITY] = c_format::build(F::PIECES, V::KINDS);
}

/// The function that the macros call.
#[doc(hidden)]
#[inline(always)]
pub fn print<F: Format, const CAPACITY: usize, V: Values>(values: V) {
    let format: &'static [u8; CAPACITY] = &CFormat::<F, CAPACITY, V>::BYTES;
    let words = values.words();
    let words: &[u64] = words.as_ref();
    #[cfg(cuda_device)]
    // SAFETY: the format ends in NUL and has one 8-byte conversion for each word.
    unsafe {
        crate::device::vprintf(format.as_ptr(), words.as_ptr().cast());
    }
    #[cfg(not(cuda_device))]
    {
        let _checked_at_compile_time = format;
        std::print!("{}", text::render(F::PIECES, V::KINDS, words));
    }
}

mod sealed {
    /// Restricts the trait to the types that `vprintf` can take.
    pub trait Sealed {}
}
