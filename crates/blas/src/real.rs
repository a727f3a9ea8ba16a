//! The functions of cuBLAS itself, which are looked up when they are first called.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::{Refusal, lookup};

/// A function of cuBLAS or cublasLt.
pub struct Real {
    /// It ends with a 0.
    name: &'static str,
    /// Null while it has not been found.
    address: AtomicPtr<c_void>,
}

/// Where a program has opened cuBLAS by its name. Opening it once more loads nothing.
const LIBRARIES: [&CStr; 6] = [
    c"libcublas.so.13",
    c"libcublas.so.12",
    c"libcublas.so.11",
    c"libcublasLt.so.13",
    c"libcublasLt.so.12",
    c"libcublasLt.so.11",
];

impl Real {
    pub const fn new(name: &'static str) -> Real {
        let address = AtomicPtr::new(null_mut());
        Real { name, address }
    }

    /// Its address, if cuBLAS is loaded. `own` is that of the function of this name here.
    pub fn other_than(&self, own: usize) -> Option<*mut c_void> {
        let known = self.address.load(Ordering::Relaxed);
        if !known.is_null() {
            return Some(known);
        }
        let name = CStr::from_bytes_with_nul(self.name.as_bytes()).ok()?;
        let is_real = |address: &*mut c_void| !address.is_null() && address.addr() != own;
        // SAFETY: the name ends with a 0. `RTLD_NEXT` is what comes after this library.
        let next = Some(unsafe { lookup::symbol(libc::RTLD_NEXT, name.as_ptr()) }).filter(is_real);
        let found = next.or_else(|| {
            LIBRARIES.iter().find_map(|library| {
                // SAFETY: as above. The library is there already, and stays.
                let address = unsafe {
                    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
                    let library = libc::dlopen(library.as_ptr(), flags);
                    match library.is_null() {
                        true => return None,
                        false => lookup::symbol(library, name.as_ptr()),
                    }
                };
                Some(address).filter(is_real)
            })
        })?;
        self.address.store(found, Ordering::Relaxed);
        Some(found)
    }
}

/// Asks a handle for one of its values.
///
/// # Safety
///
/// The handle is cuBLAS's, and the function writes a `T`.
unsafe fn of_handle<T>(real: &Real, handle: *mut c_void, mut value: T) -> Result<T, Refusal> {
    type Get<T> = unsafe extern "C" fn(*mut c_void, *mut T) -> c_int;
    let unknown = Refusal::PassedOn("cuBLAS does not say how its handle is set");
    let Some(get) = real.other_than(0) else {
        return Err(unknown);
    };
    // SAFETY: as the caller vouches.
    let status = unsafe { std::mem::transmute::<*mut c_void, Get<T>>(get)(handle, &mut value) };
    match status {
        0 => Ok(value),
        _ => Err(unknown),
    }
}

/// The settings of a handle that change a product.
pub struct HandleSettings {
    pub stream: *mut c_void,
    /// `CUBLAS_POINTER_MODE_HOST` is 0.
    pub pointer_mode: c_int,
    pub math_mode: c_int,
}

/// The settings of a handle.
///
/// # Safety
///
/// It is cuBLAS's.
pub unsafe fn settings_of(handle: *mut c_void) -> Result<HandleSettings, Refusal> {
    static STREAM: Real = Real::new("cublasGetStream_v2\0");
    static POINTER_MODE: Real = Real::new("cublasGetPointerMode_v2\0");
    static MATH_MODE: Real = Real::new("cublasGetMathMode\0");
    // SAFETY: the types are those of `cublas_api.h`.
    unsafe {
        Ok(HandleSettings {
            stream: of_handle(&STREAM, handle, null_mut())?,
            pointer_mode: of_handle(&POINTER_MODE, handle, 0)?,
            math_mode: of_handle(&MATH_MODE, handle, 0)?,
        })
    }
}
