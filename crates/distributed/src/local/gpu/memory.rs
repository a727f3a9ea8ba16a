//! Memory of a rank's GPU, and page-locked memory of its host, which parts of matrices lie in. It is
//! kept for the next product: to get some from the driver takes longer than a small product, and
//! page-locked memory longer than a large one.

use std::marker::PhantomData;
use std::ops::Range;

use cust::memory::{DeviceBuffer, LockedBuffer};
use gpu_gemm::DeviceError;
use gpu_gemm::device::cuda::rectangle::Side;
use gpu_gemm::device::cuda::status::during;

use super::Gpu;
use crate::Element;

/// Elements of a part begin at a multiple of so many elements: of at least 256 bytes, as an
/// allocation does.
const ALIGNMENT: usize = 128;

impl Gpu {
    /// Room for a part in the GPU's memory.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn room<T: Element>(&self, elements: usize) -> Result<Room<'_, T>, DeviceError> {
        let bytes = (elements * size_of::<T>()).max(1);
        let place = |free: &DeviceBuffer<u8>| (free.len(), addresses(free).start);
        let kept = smallest(&mut self.free.borrow_mut(), bytes, place);
        let memory = match kept {
            Some(memory) => memory,
            // What is free is too small, and would only be in the way; but other ranks may read it.
            None => {
                let is_shared = |free: &DeviceBuffer<u8>| self.peers.is_shared(addresses(free));
                self.free.borrow_mut().retain(is_shared);
                self.device().allocate(bytes)?
            }
        };
        Ok(Room {
            start: memory.as_device_ptr().as_ptr().cast_mut().cast(),
            memory: Some(memory),
            gpu: self,
            elements: PhantomData,
        })
    }

    /// Room for a part in page-locked memory of the host, from and to which the GPU copies by
    /// itself.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn locked<T: Element>(&self, elements: usize) -> Result<Locked<'_, T>, DeviceError> {
        let bytes = (elements * size_of::<T>()).max(1);
        let place = |free: &LockedBuffer<u8>| (free.len(), free.as_ptr().addr());
        let kept = smallest(&mut self.free_locked.borrow_mut(), bytes, place);
        let mut memory = match kept {
            Some(memory) => memory,
            None => {
                self.free_locked.borrow_mut().clear();
                // SAFETY: whatever the memory holds is a number.
                unsafe { LockedBuffer::uninitialized(bytes) }
                    .map_err(during("Allocating page-locked memory"))?
            }
        };
        Ok(Locked {
            start: memory.as_mut_slice().as_mut_ptr().cast(),
            memory: Some(memory),
            gpu: self,
            elements: PhantomData,
        })
    }
}

/// Takes the smallest of what has so much room. Each has its bytes and its address; of two of the same
/// size it is always the same one, so that a product gets what the one before had.
fn smallest<M>(free: &mut Vec<M>, bytes: usize, place: impl Fn(&M) -> (usize, usize)) -> Option<M> {
    let places = free.iter().map(place).enumerate();
    let suits = places.filter(|(_, (room, _))| *room >= bytes);
    let (index, _) = suits.min_by_key(|(_, place)| *place)?;
    Some(free.swap_remove(index))
}

/// Where an allocation lies.
fn addresses(memory: &DeviceBuffer<u8>) -> Range<usize> {
    let start = memory.as_device_ptr().as_raw() as usize;
    start..start + memory.len()
}

/// Memory of a GPU. When it is dropped, another part may get it: so no stream may still use it.
pub struct Room<'g, T> {
    pub(super) start: *mut T,
    memory: Option<DeviceBuffer<u8>>,
    pub(super) gpu: &'g Gpu,
    elements: PhantomData<T>,
}

impl<T: Element> Room<'_, T> {
    /// A compact matrix at its beginning.
    pub fn part(&self, rows: usize, columns: usize) -> OnGpu<T> {
        self.part_at(0, rows, columns)
    }

    /// A compact matrix whose first element is one of the room's.
    ///
    /// # Panics
    ///
    /// If it does not fit.
    pub fn part_at(&self, first: usize, rows: usize, columns: usize) -> OnGpu<T> {
        let bytes = (first + rows * columns) * size_of::<T>();
        assert!(
            self.memory
                .as_ref()
                .is_some_and(|memory| bytes <= memory.len())
        );
        OnGpu::compact(self.start.wrapping_add(first), rows, columns)
    }
}

impl<T> Drop for Room<'_, T> {
    fn drop(&mut self) {
        self.gpu.free.borrow_mut().extend(self.memory.take());
    }
}

/// Page-locked memory of the host, for which the same holds.
pub struct Locked<'g, T> {
    pub start: *mut T,
    memory: Option<LockedBuffer<u8>>,
    gpu: &'g Gpu,
    elements: PhantomData<T>,
}

impl<T> Drop for Locked<'_, T> {
    fn drop(&mut self) {
        self.gpu.free_locked.borrow_mut().extend(self.memory.take());
    }
}

/// Where the second of two parts begins that lie in one room.
pub fn after(elements: usize) -> usize {
    elements.next_multiple_of(ALIGNMENT)
}

/// A part of a matrix in a GPU's memory, row by row.
#[derive(Debug)]
pub struct OnGpu<T> {
    pub start: *mut T,
    pub rows: usize,
    pub columns: usize,
    /// Elements from the start of a row to the start of the next.
    pub(super) leading: usize,
}

impl<T> Clone for OnGpu<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for OnGpu<T> {}

impl<T> OnGpu<T> {
    /// A matrix without gaps between its rows.
    pub fn compact(start: *mut T, rows: usize, columns: usize) -> OnGpu<T> {
        OnGpu {
            start,
            rows,
            columns,
            leading: columns.max(1),
        }
    }

    /// Some rows and columns of it.
    ///
    /// # Panics
    ///
    /// If it does not have them.
    pub fn part(self, rows: Range<usize>, columns: Range<usize>) -> OnGpu<T> {
        assert!(rows.end <= self.rows && columns.end <= self.columns);
        let first = rows.start * self.leading + columns.start;
        OnGpu {
            start: self.start.wrapping_add(first),
            rows: rows.len(),
            columns: columns.len(),
            leading: self.leading,
        }
    }

    /// Whether no elements of others lie between its rows.
    pub fn is_compact(self) -> bool {
        self.rows <= 1 || self.leading == self.columns
    }

    pub fn elements(self) -> usize {
        self.rows * self.columns
    }

    pub(super) fn width(self) -> usize {
        self.columns * size_of::<T>()
    }

    pub(super) fn side(self) -> Side {
        Side::Device(self.start as u64, self.leading * size_of::<T>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_that_suits_is_taken_and_of_two_always_the_same() {
        let all = [(8, 30), (8, 10), (16, 0), (4, 0)];
        for shift in 0..all.len() {
            let mut free = all.to_vec();
            free.rotate_left(shift);
            let mut take = |bytes| smallest(&mut free, bytes, |place| *place);
            assert_eq!(take(5), Some((8, 10)));
            assert_eq!(take(8), Some((8, 30)));
            assert_eq!(take(17), None);
            assert_eq!(take(0), Some((4, 0)));
            assert_eq!(free, [(16, 0)]);
        }
    }
}
