//! A format string in pieces, and how values are stored for it.

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
    /// C's flags, width and precision.
    pub flags: &'static str,
    /// Whether a text is aligned to the left although no flag says so.
    pub aligns_text: bool,
    pub has_zeros: bool,
    pub has_precision: bool,
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
    /// The address of a text that ends in NUL.
    Text,
    /// The address of the digits of a number, which end in NUL.
    Digits,
}
