//! Large matrices of zeros.

use std::mem::MaybeUninit;
use std::thread;

use crate::layout::LayoutError;

/// Bytes of a thread at least: of fewer, it takes longer to start one.
const LEAST: usize = 1 << 22;

/// So many zeros, written by at most so many threads: the system finds memory for what a thread
/// writes first, which takes longer than to write it.
///
/// # Errors
///
/// There is no memory.
///
/// # Panics
///
/// The system starts no thread.
pub fn zeros<T: Copy + Default + Send + Sync>(
    elements: usize,
    threads: usize,
) -> Result<Vec<T>, LayoutError> {
    let mut zeros = Vec::new();
    let enough = zeros.try_reserve_exact(elements);
    enough.map_err(|_| LayoutError::OutOfMemory {
        elements,
        bytes: elements.saturating_mul(size_of::<T>()),
    })?;
    let room = &mut zeros.spare_capacity_mut()[..elements];
    let least = LEAST.div_ceil(size_of::<T>().max(1));
    let each = elements.div_ceil(threads.max(1)).max(least);
    thread::scope(|scope| {
        let mut pieces = room.chunks_mut(each);
        let own = pieces.next();
        for piece in pieces {
            scope.spawn(|| piece.fill(MaybeUninit::new(T::default())));
        }
        if let Some(own) = own {
            own.fill(MaybeUninit::new(T::default()));
        }
    });
    // SAFETY: there is room for so many, each of which a piece has covered and a thread written
    // before the scope ended.
    unsafe { zeros.set_len(elements) };
    Ok(zeros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_zero_whatever_lay_there_and_however_many_threads_write_them() {
        for elements in [0, 1, LEAST / 4 - 1, LEAST, LEAST + 3] {
            for threads in [0, 1, 2, 7] {
                drop(vec![1.0_f32; elements]);
                let zeros = zeros::<f32>(elements, threads).unwrap();
                assert_eq!(zeros.len(), elements);
                assert!(zeros.iter().all(|zero| zero.to_bits() == 0));
            }
        }
        assert!(zeros::<f64>(usize::MAX / 8, 2).is_err());
    }
}
