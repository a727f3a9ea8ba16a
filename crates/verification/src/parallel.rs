//! Loops on all cores.
//!
//! They use rayon through one function that is compiled once: each of rayon's own parallel
//! iterators is compiled anew for each closure and each type, and two dozen of them were half of
//! this crate's machine code. These functions call closures by reference for the same reason.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

/// The largest number of tasks of a loop: many more than cores, so that all cores finish at about
/// the same time.
const TASKS: usize = 1024;

/// Calls `work` with each number below `count`, and returns the results in order.
pub fn map<R: Send>(count: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    map_by(count, &work)
}

fn map_by<R: Send>(count: usize, work: &(dyn Fn(usize) -> R + Sync)) -> Vec<R> {
    let mut results = Vec::new();
    results.resize_with(count, || None);
    pieces_by(&mut results, 1, &|index, result| {
        result[0] = Some(work(index))
    });
    results.into_iter().flatten().collect()
}

/// Calls `work` with each piece of `length` elements and its number. The last may be shorter.
///
/// # Panics
///
/// If `length` is 0.
pub fn pieces<T: Send>(elements: &mut [T], length: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    pieces_by(elements, length, &work);
}

fn pieces_by<T: Send>(elements: &mut [T], length: usize, work: &(dyn Fn(usize, &mut [T]) + Sync)) {
    let of_task = elements.len().div_ceil(length).div_ceil(TASKS).max(1);
    let tasks: Vec<Mutex<&mut [T]>> = elements
        .chunks_mut(of_task.saturating_mul(length))
        .map(Mutex::new)
        .collect();
    let run = |task: usize| {
        // No other thread takes this task.
        let mut elements = tasks[task].lock().unwrap_or_else(PoisonError::into_inner);
        for (index, piece) in elements.chunks_mut(length).enumerate() {
            work(task * of_task + index, piece);
        }
    };
    let run: &(dyn Fn(usize) + Sync) = &run;
    (0..tasks.len()).into_par_iter().for_each(run);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order() {
        for count in [0, 1, 1023, 1025, 5000] {
            let expected: Vec<usize> = (0..count).map(|index| index * 3).collect();
            assert_eq!(map(count, |index| index * 3), expected);
        }
    }

    #[test]
    fn every_piece_is_taken_once_with_its_number() {
        for length in [1, 10, 4099, 20_000] {
            let mut elements = vec![0; 10_007];
            pieces(&mut elements, length, |number, piece| {
                for element in piece {
                    *element += number + 1;
                }
            });
            for (index, element) in elements.iter().enumerate() {
                assert_eq!(*element, index / length + 1);
            }
        }
        pieces(&mut [] as &mut [u8], 4, |_, _| unreachable!());
    }

    #[test]
    #[should_panic(expected = "at 7")]
    fn a_panic_goes_on() {
        map(10, |index| assert_ne!(index, 7, "at 7"));
    }
}
