//! Statics in shared memory, and the functions by which kernels find their block's shared memory.

use super::block::{Block, Thread};
use super::shared_memory::{ALIGNMENT, ARENA, NEAR, POISON, Static};
use super::{BarrierSite, Fault, current};
use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::ptr::{self, NonNull};
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    let offset = current::block()
        .shared_memory
        .borrow()
        .offset_within(address);
    current::or_fail(offset) as u32
}

/// The static of a `shared_array!`: a handle that dereferences to the current block's array.
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
            Err(static_bytes) => {
                let of = (block, current::thread());
                current::fail(too_much(of, site, size_of::<T>(), static_bytes))
            }
        }
    }
}

impl<T> Deref for SharedStatic<T> {
    type Target = T;

    #[track_caller]
    fn deref(&self) -> &T {
        // SAFETY: in the arena and aligned; the type is `SharedContent`.
        unsafe { self.current().as_ref() }
    }
}

/// A static in shared memory that kernels can name, and so take its address: its memory is that of
/// the block that runs. One block at a time runs in a program that has such statics.
#[doc(hidden)]
#[repr(C)]
pub struct NamedStatic<T> {
    memory: UnsafeCell<MaybeUninit<T>>,
    guard: UnsafeCell<[u8; NEAR]>,
}

// SAFETY: each thread of a block vouches for its uses, as on a GPU, and one block at a time runs.
unsafe impl<T> Sync for NamedStatic<T> {}

/// All of the program.
static DECLARED: Mutex<Vec<Static>> = Mutex::new(Vec::new());

/// What a launch holds that uses them.
static IN_USE: Mutex<()> = Mutex::new(());

/// The statics that the program has in shared memory, until another launch may use them.
pub(super) struct Statics {
    pub all: Vec<Static>,
    _in_use: Option<MutexGuard<'static, ()>>,
}

impl Statics {
    pub fn take() -> Self {
        let all = DECLARED.lock().unwrap_or_else(PoisonError::into_inner);
        let all = all.clone();
        let in_use = || IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        Self {
            _in_use: (!all.is_empty()).then(in_use),
            all,
        }
    }
}

impl<T> NamedStatic<T> {
    /// A static that was declared with this initial value, which no block ever sees.
    pub const fn replacing(initial: T) -> Self {
        std::mem::forget(initial);
        Self {
            memory: UnsafeCell::new(MaybeUninit::uninit()),
            guard: UnsafeCell::new([POISON; NEAR]),
        }
    }

    /// Makes known to launches that the static is declared here.
    ///
    /// # Safety
    ///
    /// It is a static.
    pub unsafe fn register(this: *const Self, site: BarrierSite) {
        let start = this.expose_provenance();
        let declared = Static {
            start,
            bytes: size_of::<T>(),
            site,
            is_used: false,
        };
        let mut all = DECLARED.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(declared);
    }

    #[track_caller]
    fn current(&self) -> *mut T {
        let start = self.memory.get();
        let is_named = |each: &Static| each.start == start.addr();
        match note_statics(current::block(), current::thread(), is_named) {
            Ok(()) => start.cast(),
            Err(fault) => current::fail(fault),
        }
    }
}

/// Counts the statics that a thread has used and no other of its block before.
pub(super) fn note_statics(
    block: &Block,
    thread: &Thread,
    is_used: impl Fn(&Static) -> bool,
) -> Result<(), Fault> {
    let newly_used = || block.shared_memory.borrow_mut().newly_used(&is_used);
    while let Some(Static { site, bytes, .. }) = newly_used() {
        if block.launch.cluster > 1 {
            return Err(Fault::SharedStaticOfCluster { site });
        }
        let taken = block.shared_memory.borrow_mut().take(bytes, ALIGNMENT);
        taken.map_err(|static_bytes| too_much((block, thread), site, bytes, static_bytes))?;
    }
    Ok(())
}

/// The fault of an array of `bytes` that does not fit.
fn too_much(
    (block, thread): (&Block, &Thread),
    site: BarrierSite,
    bytes: usize,
    static_bytes: usize,
) -> Fault {
    Fault::SharedMemory {
        block: block.index.get(),
        thread: thread.index,
        site,
        bytes,
        static_bytes,
        dynamic_bytes: block.shared_memory.borrow().dynamic_bytes,
    }
}

impl<T> Deref for NamedStatic<T> {
    type Target = T;

    #[track_caller]
    fn deref(&self) -> &T {
        // SAFETY: the static's memory. The type is `SharedContent`, or the static is mutable and
        // its user vouches for what it holds.
        unsafe { &*self.current() }
    }
}

impl<T> DerefMut for NamedStatic<T> {
    #[track_caller]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above; a mutable static is unsafe to use, and its user vouches that no other
        // thread uses it meanwhile.
        unsafe { &mut *self.current() }
    }
}
