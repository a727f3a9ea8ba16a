//! A cuBLAS that multiplies nothing: it writes down each call with its arguments.

#![allow(non_snake_case)] // NVIDIA's names

use std::ffi::{c_char, c_int, c_void};
use std::sync::Mutex;

static CALLS: Mutex<String> = Mutex::new(String::new());

unsafe extern "C" {
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// What a test gives as a handle.
#[repr(C)]
struct Handle {
    stream: usize,
    pointer_mode: c_int,
    math_mode: c_int,
}

/// What a test gives as a description: each attribute, and its bytes, or 0 for one that is unknown.
#[repr(C)]
struct Description {
    values: [i64; 32],
    bytes: [usize; 32],
}

/// Copies the calls since the last time, as text that ends with a 0.
#[unsafe(no_mangle)]
unsafe extern "C" fn fake_calls(text: *mut u8, room: usize) {
    let calls = std::mem::take(&mut *CALLS.lock().unwrap());
    assert!(calls.len() < room);
    unsafe {
        text.copy_from(calls.as_ptr(), calls.len());
        text.add(calls.len()).write(0);
    }
}

macro_rules! recorded {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $type),*) -> c_int {
            let arguments = [$(format!("{:?}", $argument)),*].join(" ");
            *CALLS.lock().unwrap() += &format!("{} {arguments}\n", stringify!($name));
            0
        }
    )*};
}

type P = *const c_void;

recorded! {
    cublasSgemm_v2(h: P, ta: i32, tb: i32, m: i32, n: i32, k: i32, x: P, a: P, lda: i32, b: P, ldb: i32, y: P, c: P, ldc: i32);
    cublasDgemm_v2_64(h: P, ta: i32, tb: i32, m: i64, n: i64, k: i64, x: P, a: P, lda: i64, b: P, ldb: i64, y: P, c: P, ldc: i64);
    cublasGemmStridedBatchedEx(
        h: P, ta: i32, tb: i32, m: i32, n: i32, k: i32, x: P, a: P, at: i32, lda: i32, sa: i64, b: P, bt: i32, ldb: i32,
        sb: i64, y: P, c: P, ct: i32, ldc: i32, sc: i64, batch: i32, compute: i32, algorithm: i32
    );
    cublasLtMatmul(
        h: P, o: P, x: P, a: P, al: P, b: P, bl: P, y: P, c: P, cl: P, d: P, dl: P, algorithm: P, w: P, bytes: usize, s: P
    );
}

/// As cuBLAS, it calls cublasLt, by way of the symbol that all libraries share.
#[unsafe(no_mangle)]
unsafe extern "C" fn cublasGemmEx(
    h: P, ta: i32, tb: i32, m: i32, n: i32, k: i32, x: P, a: P, at: i32, lda: i32, b: P, bt: i32, ldb: i32, y: P, c: P,
    ct: i32, ldc: i32, compute: i32, algorithm: i32,
) -> c_int {
    let arguments = format!(
        "cublasGemmEx {h:?} {ta} {tb} {m} {n} {k} {x:?} {a:?} {at} {lda} {b:?} {bt} {ldb} {y:?} {c:?} {ct} {ldc} {compute} \
         {algorithm}\n"
    );
    *CALLS.lock().unwrap() += &arguments;
    type Matmul = extern "C" fn(P, P, P, P, P, P, P, P, P, P, P, P, P, P, usize, P) -> c_int;
    let null = std::ptr::null();
    unsafe {
        let matmul = dlsym(std::ptr::null_mut(), c"cublasLtMatmul".as_ptr());
        let matmul: Matmul = std::mem::transmute(matmul);
        matmul(null, null, x, a, null, b, null, y, c, null, c, null, null, null, 0, null)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasGetStream_v2(handle: *const Handle, stream: *mut usize) -> c_int {
    unsafe { stream.write((*handle).stream) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasGetPointerMode_v2(handle: *const Handle, mode: *mut c_int) -> c_int {
    unsafe { mode.write((*handle).pointer_mode) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasGetMathMode(handle: *const Handle, mode: *mut c_int) -> c_int {
    unsafe { mode.write((*handle).math_mode) };
    0
}

macro_rules! attributes {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            description: *const Description, attribute: c_int, value: *mut u8, room: usize, written: *mut usize,
        ) -> c_int {
            unsafe {
                let Description { values, bytes } = &*description;
                let bytes = bytes[attribute as usize];
                if bytes == 0 || bytes > room {
                    return 7;
                }
                value.copy_from(values[attribute as usize].to_le_bytes().as_ptr(), bytes);
                written.write(bytes);
            }
            0
        }
    )*};
}

attributes!(cublasLtMatmulDescGetAttribute cublasLtMatrixLayoutGetAttribute);
