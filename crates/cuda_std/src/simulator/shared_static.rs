//! Statics in shared memory, and the functions by which kernels find their block's shared memory.

use super::shared_memory::{ARENA, POISON};
use super::{Fault, current};
use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};

#[track_caller]
pub(crate) fn dynamic_shared_memory() -> *mut u8 {
    current::block().shared_memory.borrow_mut().dynamic()
}

/// The bytes of dynamic shared memory that the launch has requested.
#[track_caller]
pub(crate) fn dynamic_shared_bytes() -> u32 {
    current::block().shared_memory.borrow().dynamic_bytes as u32
}

/// The bytes of shared memory that the block takes so far.
#[track_caller]
pub(crate) fn shared_bytes() -> u32 {
    current::block().shared_memory.borrow().taken as u32
}

/// The offset of an address in the block's shared memory: what the address is on a GPU.
#[track_caller]
pub(crate) fn shared_offset(address: *const u8) -> u32 {
    current::block().shared_memory.borrow().offset(address) as u32
}

/// A static in shared memory: a handle that dereferences to the current block's copy.
#[doc(hidden)]
pub struct SharedStatic<T> {
    /// Occupies space, so that no two statics have the same address.
    _address: u8,
    _content: PhantomData<fn() -> T>,
}

impl<T> SharedStatic<T> {
    /// A static that was declared with this initial value, which no block ever sees.
    ///
    /// # Safety
    ///
    /// The result is a static of its own: its address is the key of an array.
    pub const unsafe fn replacing(initial: T) -> Self {
        const { assert!(align_of::<T>() <= ARENA.align()) };
        std::mem::forget(initial);
        Self {
            _address: 0,
            _content: PhantomData,
        }
    }

    #[track_caller]
    fn current(&self) -> NonNull<T> {
        let block = current::block();
        let key = ptr::from_ref(self).addr();
        let site = Location::caller().into();
        let mut memory = block.shared_memory.borrow_mut();
        let array = memory.array(key, Layout::new::<T>(), site);
        drop(memory);
        match array {
            Ok(array) => array.cast(),
            Err(static_bytes) => current::fail(Fault::SharedMemory {
                block: block.index.get(),
                thread: current::thread().index,
                site,
                bytes: size_of::<T>(),
                static_bytes,
                dynamic_bytes: block.shared_memory.borrow().dynamic_bytes,
            }),
        }
    }
}

impl<T> Deref for SharedStatic<T> {
    type Target = T;

    #[track_caller]
    fn deref(&self) -> &T {
        // SAFETY: in the arena and aligned. The type is `SharedContent`, or the static is mutable
        // and its user vouches for what it holds.
        unsafe { self.current().as_ref() }
    }
}

impl<T> DerefMut for SharedStatic<T> {
    #[track_caller]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above; a mutable static is unsafe to use, and its user vouches that no other
        // thread uses it meanwhile.
        unsafe { self.current().as_mut() }
    }
}

/// A [`SharedStatic`] that kernels can name, and so take its address instead of what it
/// dereferences to. There is memory behind that address, which nobody may write.
#[doc(hidden)]
#[repr(C)]
pub struct NamedStatic<T> {
    memory: UnsafeCell<MaybeUninit<T>>,
    content: SharedStatic<T>,
}

// SAFETY: the memory is never used, and the content is the block's.
unsafe impl<T> Sync for NamedStatic<T> {}

/// Where the memory of each [`NamedStatic`] of the program is, how long it is, and where it is
/// declared.
static NAMED: Mutex<Vec<(usize, usize, &str)>> = Mutex::new(Vec::new());

impl<T> NamedStatic<T> {
    /// As [`SharedStatic::replacing`].
    ///
    /// # Safety
    ///
    /// As there.
    pub const unsafe fn replacing(initial: T) -> Self {
        Self {
            memory: UnsafeCell::new(MaybeUninit::uninit()),
            // SAFETY: as the caller vouches.
            content: unsafe { SharedStatic::replacing(initial) },
        }
    }

    /// Poisons the memory of this static, which is declared at `place`.
    ///
    /// # Safety
    ///
    /// It is a static, and no kernel runs yet.
    pub unsafe fn register(this: *const Self, place: &'static str) {
        // SAFETY: the first field of a static, which may change.
        let memory = unsafe { UnsafeCell::raw_get(&raw const (*this).memory) }.cast::<T>();
        // SAFETY: as above.
        unsafe { memory.write_bytes(POISON, 1) };
        NAMED.lock().unwrap_or_else(PoisonError::into_inner).push((
            memory.expose_provenance(),
            size_of::<T>(),
            place,
        ));
    }
}

/// The static, if there is one, whose address a thread has written to.
pub(super) fn written_by_address() -> Option<&'static str> {
    let named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_written = |&&(start, bytes, _): &&(usize, usize, &str)| {
        (0..bytes).any(|byte| {
            // SAFETY: a byte of a static, poisoned or written.
            let byte = unsafe { ptr::with_exposed_provenance::<u8>(start + byte).read_volatile() };
            byte != POISON
        })
    };
    named.iter().find(is_written).map(|&(.., place)| place)
}

impl<T> Deref for NamedStatic<T> {
    type Target = T;

    #[track_caller]
    fn deref(&self) -> &T {
        &self.content
    }
}

impl<T> DerefMut for NamedStatic<T> {
    #[track_caller]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.content
    }
}
