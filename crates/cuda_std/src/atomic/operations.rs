//! What the types of this module are made of: atomic operations through a pointer, at a scope.

use super::Ordering;

/// The threads of a block.
pub(super) struct Block;
/// The threads of a GPU.
pub(super) struct Device;
/// The threads of all GPUs and of the host.
pub(super) struct System;

/// Fences of one scope.
pub(super) trait Fence {
    /// Orders the accesses of this thread around it; nothing if `order` is `Relaxed`.
    fn fence(order: Ordering);
}

/// Operations on integers, at one scope. Those that change a number return what it was before.
///
/// `Release` and `AcqRel` are no orderings for a load, nor `Acquire` and `AcqRel` for a store:
/// they panic.
///
/// The pointers of all functions are valid for reads and writes, and aligned to the number's
/// size; while another thread of the scope accesses the number, all accesses are atomic.
pub(super) trait Integer<T> {
    unsafe fn load(pointer: *mut T, order: Ordering) -> T;
    unsafe fn store(pointer: *mut T, value: T, order: Ordering);
    unsafe fn swap(pointer: *mut T, value: T, order: Ordering) -> T;
    /// Stores `new` if the number is `expected`; returns what it was, which tells.
    unsafe fn compare_exchange(
        pointer: *mut T,
        expected: T,
        new: T,
        success: Ordering,
        failure: Ordering,
    ) -> T;
    /// Adds, modulo 2 to the power of its bits.
    unsafe fn add(pointer: *mut T, value: T, order: Ordering) -> T;
    unsafe fn and(pointer: *mut T, value: T, order: Ordering) -> T;
    unsafe fn or(pointer: *mut T, value: T, order: Ordering) -> T;
    unsafe fn xor(pointer: *mut T, value: T, order: Ordering) -> T;
    unsafe fn min(pointer: *mut T, value: T, order: Ordering) -> T;
    unsafe fn max(pointer: *mut T, value: T, order: Ordering) -> T;
}

/// What floats have beyond operations on their bits; the contract is that of [`Integer`].
pub(super) trait Float<T> {
    unsafe fn add(pointer: *mut T, value: T, order: Ordering) -> T;
}
