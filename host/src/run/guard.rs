//! Guard bands: poison before and after every buffer that a kernel gets, checked bit for bit
//! afterwards.
//!
//! ```text
//!     | guard | offset | row 0 | padding | row 1 | padding | ... | guard |
//!             ^ the matrix's buffer                              ^ its end
//! ```

use super::error::Trespass;
use crate::data::{Matrix, Number};

/// Elements of a guard band: a multiple of every vector access's width, and wider than a row of
/// the widest tile.
pub const GUARD: usize = 1024;

/// `buffer` between two guard bands.
pub fn surround<T: Number>(buffer: &[T]) -> Vec<T> {
    let mut guarded = Vec::with_capacity(buffer.len() + 2 * GUARD);
    guarded.resize(GUARD, T::POISON);
    guarded.extend_from_slice(buffer);
    guarded.resize(buffer.len() + 2 * GUARD, T::POISON);
    guarded
}

/// Checks the two guard bands of a buffer of matrix `name`.
///
/// # Errors
///
/// The element nearest to the buffer, of those that were written.
pub fn check_bands<T: Number>(name: char, before: &[T], after: &[T]) -> Result<(), Trespass> {
    let written = |element: &T| element.bits() != T::POISON.bits();
    let distance = match after.iter().position(written) {
        Some(distance) => distance.cast_signed(),
        None => match before.iter().rev().position(written) {
            Some(distance) => -1 - distance.cast_signed(),
            None => return Ok(()),
        },
    };
    Err(Trespass::Guard {
        matrix: name,
        distance,
    })
}

/// Checks that matrix `name`, read back from `start` of its buffer on, is what it was.
///
/// # Errors
///
/// The first element that was written.
pub fn check_input<T: Number>(
    name: char,
    before: &[T],
    after: &[T],
    start: usize,
) -> Result<(), Trespass> {
    match before
        .iter()
        .zip(after)
        .position(|(before, after)| before.bits() != after.bits())
    {
        None => Ok(()),
        Some(index) => Err(Trespass::Input {
            matrix: name,
            index: start + index,
        }),
    }
}

/// Checks that what is not C in C's buffer is what it was.
///
/// # Errors
///
/// The first element that was written.
pub fn check_padding<T: Number>(before: &Matrix<T>, after: &[T]) -> Result<(), Trespass> {
    match before.first_padding_difference(after) {
        None => Ok(()),
        Some(index) => Err(Trespass::Padding { index }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(write: impl Fn(&mut [f32])) -> Result<(), Trespass> {
        let mut guarded = surround(&[1.0f32, 2.0, 3.0]);
        write(&mut guarded);
        check_bands('A', &guarded[..GUARD], &guarded[GUARD + 3..])
    }

    #[test]
    fn a_write_next_to_the_buffer_is_found_on_either_side() {
        let guard = |distance| {
            Err(Trespass::Guard {
                matrix: 'A',
                distance,
            })
        };
        assert_eq!(checked(|guarded| guarded[GUARD] = 7.0), Ok(()));
        assert_eq!(checked(|guarded| guarded[GUARD - 1] = 7.0), guard(-1));
        assert_eq!(checked(|guarded| guarded[GUARD + 3] = 7.0), guard(0));
        assert_eq!(
            checked(|guarded| guarded[0] = f32::NAN),
            guard(-(GUARD as isize))
        );
    }

    #[test]
    fn an_input_that_changed_sign_of_zero_is_found() {
        assert_eq!(
            check_input('B', &[1.0f32, 0.0], &[1.0, -0.0], 10),
            Err(Trespass::Input {
                matrix: 'B',
                index: 11
            })
        );
        assert_eq!(check_input('B', &[f32::NAN], &[f32::NAN], 0), Ok(()));
    }
}
