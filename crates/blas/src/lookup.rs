//! `dlsym`, for programs that open cuBLAS themselves and look its functions up in that handle, as
//! cudarc, candle and `ctypes` do: a handle does not know what was preloaded.
//!
//! Of all lookups, only those of this library's functions of cuBLAS have another result. The
//! others reach the C library's `dlsym` by a jump: it sees who asked by the return address, on
//! which `RTLD_NEXT` depends.

use std::ffi::{CStr, c_char, c_void};
use std::mem::{MaybeUninit, transmute};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

type Lookup = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

/// Two registers.
#[repr(C)]
struct Answer {
    /// Null if `next` has to answer.
    found: *mut c_void,
    next: *mut c_void,
}

/// As in the C library, but for this library's functions of cuBLAS: they are found in the place of
/// those that the handle's library has.
///
/// # Safety
///
/// As there.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void {
    std::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8", // calls align the stack to 16 bytes
        "call {answer}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jne 2f",
        "jmp rdx",
        "2: ret",
        answer = sym answer,
    )
}

/// Called when a process starts, too: it allocates nothing.
unsafe extern "C" fn answer(library: *mut c_void, name: *const c_char) -> Answer {
    // SAFETY: as the caller of `dlsym` vouches.
    let found = unsafe { in_place_of(library, name) };
    Answer {
        found: found.unwrap_or(null_mut()),
        next: next().map_or(null_mut(), |next| next as *mut c_void),
    }
}

/// This library's function of a name, if the handle's library has one, too.
unsafe fn in_place_of(library: *mut c_void, name: *const c_char) -> Option<*mut c_void> {
    // The loader finds these in order, as it should.
    if library == libc::RTLD_DEFAULT || library == libc::RTLD_NEXT || name.is_null() {
        return None;
    }
    // SAFETY: the caller's name ends with a 0.
    let is_of_cublas = unsafe { CStr::from_ptr(name) }
        .to_bytes()
        .starts_with(b"cublas");
    if !is_of_cublas {
        return None;
    }
    // SAFETY: as the caller vouches.
    let (own, theirs) = unsafe { (symbol(libc::RTLD_DEFAULT, name), symbol(library, name)) };
    (is_here(own) && !theirs.is_null()).then_some(own)
}

/// Whether this library has an address.
fn is_here(address: *mut c_void) -> bool {
    let base = |address: *const c_void| {
        let mut of = MaybeUninit::<libc::Dl_info>::uninit();
        // SAFETY: it is written if the result is not 0.
        unsafe { (libc::dladdr(address, of.as_mut_ptr()) != 0).then(|| of.assume_init().dli_fbase) }
    };
    !address.is_null() && base(address) == base(is_here as *const c_void)
}

/// As the C library's `dlsym`. Null without one.
///
/// # Safety
///
/// As there.
pub unsafe fn symbol(library: *mut c_void, name: *const c_char) -> *mut c_void {
    match next() {
        // SAFETY: as the caller vouches.
        Some(next) => unsafe { next(library, name) },
        None => null_mut(),
    }
}

/// The C library's `dlsym`, or that of a library that was preloaded after this one.
fn next() -> Option<Lookup> {
    static NEXT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    let mut next = NEXT.load(Ordering::Relaxed);
    if next.is_null() {
        // The version of x86-64's first C library, which all have.
        // SAFETY: both end with a 0.
        next = unsafe { dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), c"GLIBC_2.2.5".as_ptr()) };
        NEXT.store(next, Ordering::Relaxed);
    }
    // SAFETY: it is null, and so `None`, or a `dlsym`.
    unsafe { transmute::<*mut c_void, Option<Lookup>>(next) }
}

unsafe extern "C" {
    fn dlvsym(library: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
}
