//! What is to be multiplied.

use crate::problem::Shape;

/// Whether a matrix is multiplied as it is stored, or transposed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transpose {
    #[default]
    No,
    Yes,
}

impl Transpose {
    /// Both, in the order of the usual letters N and T.
    pub const ALL: [Transpose; 2] = [Transpose::No, Transpose::Yes];

    /// The other.
    pub fn other(self) -> Transpose {
        match self {
            Transpose::No => Transpose::Yes,
            Transpose::Yes => Transpose::No,
        }
    }
}

/// How an operand lies in memory, as far as plans depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stored {
    /// `No`: A as m x k, B as k x n. `Yes`: A as k x m, B as n x k. Row-major both ways.
    pub transpose: Transpose,
    /// Whether every row begins at a multiple of 16 bytes.
    pub aligned: bool,
}

impl Stored {
    /// A matrix of f32 at `address`, its rows `leading` elements apart.
    pub fn at(address: usize, leading: usize, transpose: Transpose) -> Stored {
        Stored {
            transpose,
            aligned: address.is_multiple_of(ALIGNMENT) && leading.is_multiple_of(FLOATS),
        }
    }
}

/// Bytes, and elements of f32, that a 16-byte copy takes at a time.
const ALIGNMENT: usize = 16;
pub(super) const FLOATS: usize = 4;

/// What is to be multiplied, as far as plans depend on it: `C = op(A) * op(B)` with C `m x n` and sums of `k` products. Where alpha
/// is 0 neither A nor B is read: that is k = 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    pub shape: Shape,
    pub a: Stored,
    pub b: Stored,
}

impl Call {
    /// Matrices stored without gaps, at addresses as allocations have them.
    pub fn compact(shape: Shape, a: Transpose, b: Transpose) -> Call {
        let leading = |transpose, columns, rows| match transpose {
            Transpose::No => columns,
            Transpose::Yes => rows,
        };
        Call {
            shape,
            a: Stored::at(0, leading(a, shape.k, shape.m), a),
            b: Stored::at(0, leading(b, shape.n, shape.k), b),
        }
    }
}
