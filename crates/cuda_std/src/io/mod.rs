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
//! | `{}` | `&str` | its first 255 bytes, up to a NUL and to a whole character |
//! | `{:?}` | integers, `bool`, `f32`, `f64` | as `{}` |
//! | `{:?}` | `&str` | as `{}`, in quotes, with escapes `\"`, `\\`, `\n`, `\u{7f}` |
//! | `{:.3}` | `f32`, `f64` | three decimals, as `std` does but for `nan` |
//! | `{:x}`, `{:X}` | integers | hexadecimal, as `std` does |
//!
//! Each format may have a width `{:8}` (of a `&str`, in bytes), zeros in front `{:08}` (of numbers
//! up to 64 bits) and alignment `{:<8}` or `{:>8}`.
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
//!
//! ```compile_fail,E0080
//! cuda_std::println!("{:05}", 1_u128); // of up to 64 bits
//! ```

mod arguments;
mod c_format;
#[cfg(not(cuda_device))]
mod c_print;
mod format;
mod runtime;
mod storage;

pub use arguments::{Debug, Hexadecimal, PrintArgument, UpperHexadecimal};
#[doc(hidden)]
pub use format::{Format, Kind, Piece, Spec, Style};
#[doc(hidden)]
pub use runtime::are_equal;
pub use runtime::{__assertfail, vprintf};
#[cfg(cuda_device)]
#[doc(hidden)]
pub use runtime::{assertion_failed, c_str};

/// The values of one print, as a tuple.
#[doc(hidden)]
pub trait Values: crate::sealed::Sealed {
    const KINDS: &'static [Kind];

    type Words: AsRef<[u64]>;

    /// Where the texts are that words are addresses of.
    type Storage;

    const EMPTY: Self::Storage;

    fn words(self, storage: &mut Self::Storage) -> Self::Words;
}

macro_rules! values {
    ($($($name:ident $index:tt)*;)*) => {
        $(
            impl<$($name: PrintArgument),*> crate::sealed::Sealed for ($($name,)*) {}

            impl<$($name: PrintArgument),*> Values for ($($name,)*) {
                const KINDS: &'static [Kind] = &[$($name::KIND),*];

                type Words = [u64; values!(@count $($name)*)];

                type Storage = ($($name::Storage,)*);

                const EMPTY: Self::Storage = ($($name::EMPTY,)*);

                #[inline(always)]
                fn words(self, _storage: &mut Self::Storage) -> Self::Words {
                    [$(self.$index.word(&mut _storage.$index)),*]
                }
            }
        )*
    };
    (@count $($name:ident)*) => { 0 $(+ values!(@one $name))* };
    (@one $name:ident) => { 1 };
}
values! {
    ;
    A 0;
    A 0 B 1;
    A 0 B 1 C 2;
    A 0 B 1 C 2 D 3;
    A 0 B 1 C 2 D 3 E 4;
    A 0 B 1 C 2 D 3 E 4 F 5;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12 N 13;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12 N 13 O 14;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12 N 13 O 14 P 15;
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
    let mut storage = V::EMPTY;
    let words = values.words(&mut storage);
    let words: &[u64] = words.as_ref();
    // SAFETY: the format ends in NUL and has one 8-byte conversion for each word, and texts whose
    // addresses are words are in static memory or in the storage.
    unsafe { vprintf(format.as_ptr(), words.as_ptr().cast()) };
}
