//! Large vectors, filled by several threads: the system finds memory for what a thread writes
//! first, which takes longer than to write it.

use std::iter::repeat_n;
use std::ops::Range;
use std::thread;

use thiserror::Error;

/// Bytes of a thread at least: of fewer, it takes longer to start one.
const LEAST: usize = 1 << 22;

/// The host has too little.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("There is no memory for a part of {elements} elements ({bytes} bytes).")]
pub struct OutOfMemory {
    pub elements: usize,
    pub bytes: usize,
}

/// So many elements, written by at most so many threads; `values` are those of a range.
///
/// # Errors
///
/// There is no memory.
///
/// # Panics
///
/// The system starts no thread, or a range has fewer values than elements.
pub fn filled<T: Send, I: Iterator<Item = T>>(
    elements: usize,
    threads: usize,
    values: impl Fn(Range<usize>) -> I + Sync,
) -> Result<Vec<T>, OutOfMemory> {
    let mut filled = Vec::new();
    let enough = filled.try_reserve_exact(elements);
    enough.map_err(|_| OutOfMemory {
        elements,
        bytes: elements.saturating_mul(size_of::<T>()),
    })?;
    let room = &mut filled.spare_capacity_mut()[..elements];
    let least = LEAST.div_ceil(size_of::<T>().max(1));
    let each = elements.div_ceil(threads.max(1)).max(least);
    thread::scope(|scope| {
        let mut pieces = room.chunks_mut(each).enumerate().map(|(index, piece)| {
            let first = index * each;
            let values = &values;
            move || {
                let range = first..first + piece.len();
                let pairs = piece.iter_mut().zip(values(range));
                let written = pairs.fold(0, |written, (room, value)| {
                    room.write(value);
                    written + 1
                });
                assert_eq!(written, piece.len(), "a value for each element");
            }
        });
        let own = pieces.next();
        for piece in pieces {
            scope.spawn(piece);
        }
        if let Some(mut own) = own {
            own();
        }
    });
    // SAFETY: there is room for so many. The pieces cover them, each was written whole, or its
    // thread would have panicked and so the scope, which ends after all threads.
    unsafe { filled.set_len(elements) };
    Ok(filled)
}

/// So many zeros.
///
/// # Errors
///
/// As for [`filled`].
///
/// # Panics
///
/// The system starts no thread.
pub fn zeros<T: Copy + Default + Send + Sync>(
    elements: usize,
    threads: usize,
) -> Result<Vec<T>, OutOfMemory> {
    filled(elements, threads, |range| {
        repeat_n(T::default(), range.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 4 bytes each: some that one thread writes, and some that several do.
    const LENGTHS: [usize; 5] = [0, 1, LEAST / 4 - 1, LEAST, LEAST + 3];

    #[test]
    fn all_are_zero_whatever_lay_there_and_however_many_threads_write_them() {
        for elements in LENGTHS {
            for threads in [0, 1, 2, 7] {
                drop(vec![1.0_f32; elements]);
                let zeros = zeros::<f32>(elements, threads).unwrap();
                assert_eq!(zeros.len(), elements);
                assert!(zeros.iter().all(|zero| zero.to_bits() == 0));
            }
        }
        assert!(zeros::<f64>(usize::MAX / 8, 2).is_err());
    }

    #[test]
    fn each_element_is_that_of_its_place() {
        for elements in LENGTHS {
            for threads in [1, 3, 8] {
                let places = filled(elements, threads, |range| range.map(|place| place as u32));
                assert!(places.unwrap().into_iter().eq(0..elements as u32));
            }
        }
    }

    #[test]
    #[should_panic]
    fn a_range_with_too_few_values_is_no_vector() {
        let values = |range: Range<usize>| repeat_n(1_u8, range.len() - 1);
        let _ = filled(3 * LEAST, 3, values);
    }
}
