//! What shuffles and reductions do, apart from how lanes exchange values.

/// The four ways to name the lane that a shuffle reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shuffle {
    Up,
    Down,
    Idx,
    Xor,
}

impl Shuffle {
    /// PTX's operand for segments of `width` lanes: in bits 8 to 12 the bits of a lane's number
    /// that name its segment, in bits 0 to 4 the number in a segment of the last lane that can be
    /// read (of the first, for `Up`).
    #[inline(always)]
    pub(crate) fn segments(self, width: u32) -> u32 {
        let last = match self {
            Self::Up => 0,
            _ => 31,
        };
        (32 - width) << 8 | last
    }

    /// The lane that `lane` reads, or `None` if that is outside its segment (PTX ISA,
    /// `shfl.sync`).
    #[inline(always)]
    pub(crate) fn source(self, lane: u32, argument: u32, segments: u32) -> Option<u32> {
        let (segment_bits, argument) = (segments >> 8, argument & 31);
        let first = lane & segment_bits;
        let last = first | (segments & !segment_bits & 31);
        let source = match self {
            Self::Up => lane
                .checked_sub(argument)
                .filter(|&source| source >= last)?,
            Self::Down => lane + argument,
            Self::Idx => first | (argument & !segment_bits),
            Self::Xor => lane ^ argument,
        };
        (matches!(self, Self::Up) || source <= last).then_some(source)
    }
}

/// How [`warp_reduce`](super::warp_reduce) combines two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarpReductionOp {
    /// Their sum; of integers modulo 2^32.
    Add,
    /// The lesser one; of floats the other one if one is NaN.
    Min,
    /// The greater one; of floats the other one if one is NaN.
    Max,
    /// Bitwise "and", of integers only.
    And,
    /// Bitwise "or", of integers only.
    Or,
    /// Bitwise "exclusive or", of integers only.
    Xor,
}

impl WarpReductionOp {
    /// Combines two words, which stand for signed integers or not.
    #[inline(always)]
    pub(crate) fn combine(self, is_signed: bool, left: u32, right: u32) -> u32 {
        let (is_less, is_greater) = match is_signed {
            true => (
                left.cast_signed() < right.cast_signed(),
                left.cast_signed() > right.cast_signed(),
            ),
            false => (left < right, left > right),
        };
        match self {
            Self::Add => left.wrapping_add(right),
            Self::Min => {
                if is_less {
                    left
                } else {
                    right
                }
            }
            Self::Max => {
                if is_greater {
                    left
                } else {
                    right
                }
            }
            Self::And => left & right,
            Self::Or => left | right,
            Self::Xor => left ^ right,
        }
    }
}
