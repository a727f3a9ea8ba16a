//! A drop-in for cuBLAS. Under `LD_PRELOAD` it has the names of cuBLAS's products, multiplies those
//! that `gpu_gemm` multiplies faster, and passes all others on to cuBLAS.
//!
//! ```text
//!  program --> cublasGemmEx --> Product --> takes? --> capture? --> gemm
//!              of this library              |          |            |
//!                                           no         unprepared   nothing launched
//!                                           '----------+------------'--> cublasGemmEx of cuBLAS
//! ```
//!
//! | module | content |
//! | --- | --- |
//! | `product` | a call as cuBLAS has it, and as `gpu_gemm` has it; which are taken |
//! | `types`, `operands` | types of matrices, and matrices in the program's memory |
//! | `lt` | the descriptions of cublasLt |
//! | `epilogue` | cublasLt's biases and activations |
//! | `multiply` | contexts by stream, captures, launches |
//! | `check` | Freivalds' check of a result |
//! | `real` | cuBLAS's functions |
//! | `lookup` | `dlsym`, by which some programs look for them |
//! | `settings`, `log` | the environment, and what was called |

mod check;
mod epilogue;
mod log;
mod lookup;
mod lt;
mod multiply;
mod operands;
mod product;
mod real;
mod settings;
mod types;

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use product::{Matrix, Origin, Product};
use real::Real;
use types::{F32, F64};

/// What a call ends with if this library does not multiply.
#[derive(Debug)]
enum Refusal {
    /// It is cuBLAS's, for this reason.
    PassedOn(&'static str),
    /// This library cannot, and nothing has been launched: cuBLAS's, too.
    Unable(String),
    /// The GPU failed, perhaps after a launch.
    Failed(String),
}

/// `CUBLAS_STATUS_NOT_INITIALIZED`, without cuBLAS, and `CUBLAS_STATUS_EXECUTION_FAILED`.
const NOT_INITIALIZED: c_int = 1;
const EXECUTION_FAILED: c_int = 13;

/// `CUBLAS_COMPUTE_32F` and `CUBLAS_COMPUTE_64F`.
const COMPUTE_32F: c_int = 68;
const COMPUTE_64F: c_int = 70;

thread_local! {
    /// Whether this thread is in a function of cuBLAS, which itself calls cublasLt.
    static IS_IN_CUBLAS: Cell<bool> = const { Cell::new(false) };
}

/// Multiplies, or passes the call on with the arguments that it came with. No panic crosses it.
fn dispatch(
    product: impl FnOnce() -> Result<Product, Refusal>,
    name: &'static str,
    pass_on: impl Fn() -> c_int,
) -> c_int {
    if IS_IN_CUBLAS.get() {
        return pass_on();
    }
    let multiplied = catch_unwind(AssertUnwindSafe(|| {
        let call = log::Call::begin(name);
        let multiplied = product().and_then(|product| multiply::multiply(&product, &call));
        call.end(&multiplied);
        multiplied
    }));
    match multiplied {
        Ok(Ok(_)) => 0,
        Ok(Err(Refusal::Failed(_))) => EXECUTION_FAILED,
        Ok(Err(_)) | Err(_) => {
            IS_IN_CUBLAS.set(true);
            let status = pass_on();
            IS_IN_CUBLAS.set(false);
            status
        }
    }
}

/// Functions with the names and arguments of cuBLAS's, each as a product.
macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $product:expr;)*) => {$(
        /// As in cuBLAS.
        ///
        /// # Safety
        ///
        /// As there.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, clippy::too_many_arguments)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            type Function = unsafe extern "C" fn($($type),*) -> c_int;
            static REAL: Real = Real::new(concat!(stringify!($name), "\0"));
            dispatch(|| $product, stringify!($name), || {
                match REAL.other_than($name as *const () as usize) {
                    // SAFETY: it is the function of this name, with the caller's arguments.
                    Some(real) => unsafe {
                        std::mem::transmute::<*mut c_void, Function>(real)($($argument),*)
                    },
                    None => NOT_INITIALIZED,
                }
            })
        }
    )*};
}

/// A product on a handle, with matrices by their start, type, leading dimension and stride.
#[allow(clippy::too_many_arguments)]
fn on_handle<Int: Into<i64>>(
    handle: *mut c_void,
    transposes: [c_int; 2],
    shape: [Int; 3],
    scalars: [*const c_void; 2],
    [a, b, c]: [(*const c_void, c_int, Int, i64); 3],
    batch: Int,
    compute: c_int,
) -> Result<Product, Refusal> {
    let matrix = |(start, data_type, leading, stride): (_, _, Int, _)| Matrix {
        start,
        data_type,
        leading: leading.into(),
        stride,
    };
    Ok(Product {
        origin: Origin::Handle(handle),
        transposes,
        shape: shape.map(Into::into),
        scalars,
        a: matrix(a),
        b: matrix(b),
        c: matrix(c),
        batch: batch.into(),
        compute,
        epilogue: None,
    })
}

/// The products of one type, by the type of sizes.
macro_rules! of_type {
    ($int:ty, $type:ty, $number:ident, $compute:ident: $gemm:ident $batched:ident) => {
        functions! {
            fn $gemm(
                handle: *mut c_void, ta: c_int, tb: c_int, m: $int, n: $int, k: $int,
                alpha: *const $type, a: *const $type, lda: $int, b: *const $type, ldb: $int,
                beta: *const $type, c: *mut $type, ldc: $int,
            ) on_handle(
                handle, [ta, tb], [m, n, k], [alpha.cast(), beta.cast()],
                [(a.cast(), $number, lda, 0), (b.cast(), $number, ldb, 0), (c.cast_const().cast(), $number, ldc, 0)],
                1, $compute,
            );
            fn $batched(
                handle: *mut c_void, ta: c_int, tb: c_int, m: $int, n: $int, k: $int,
                alpha: *const $type, a: *const $type, lda: $int, stride_a: i64,
                b: *const $type, ldb: $int, stride_b: i64,
                beta: *const $type, c: *mut $type, ldc: $int, stride_c: i64, batch: $int,
            ) on_handle(
                handle, [ta, tb], [m, n, k], [alpha.cast(), beta.cast()],
                [
                    (a.cast(), $number, lda, stride_a),
                    (b.cast(), $number, ldb, stride_b),
                    (c.cast_const().cast(), $number, ldc, stride_c),
                ],
                batch, $compute,
            );
        }
    };
}

/// All products on a handle, by the type of sizes.
macro_rules! of_sizes {
    ($int:ty: $sgemm:ident $dgemm:ident $ex:ident $s_batched:ident $d_batched:ident $ex_batched:ident) => {
        of_type!($int, f32, F32, COMPUTE_32F: $sgemm $s_batched);
        of_type!($int, f64, F64, COMPUTE_64F: $dgemm $d_batched);
        functions! {
            fn $ex(
                handle: *mut c_void, ta: c_int, tb: c_int, m: $int, n: $int, k: $int,
                alpha: *const c_void, a: *const c_void, a_type: c_int, lda: $int,
                b: *const c_void, b_type: c_int, ldb: $int,
                beta: *const c_void, c: *mut c_void, c_type: c_int, ldc: $int,
                compute: c_int, algorithm: c_int,
            ) on_handle(
                handle, [ta, tb], [m, n, k], [alpha, beta],
                [(a, a_type, lda, 0), (b, b_type, ldb, 0), (c.cast_const(), c_type, ldc, 0)],
                1, compute,
            );
            fn $ex_batched(
                handle: *mut c_void, ta: c_int, tb: c_int, m: $int, n: $int, k: $int,
                alpha: *const c_void, a: *const c_void, a_type: c_int, lda: $int, stride_a: i64,
                b: *const c_void, b_type: c_int, ldb: $int, stride_b: i64,
                beta: *const c_void, c: *mut c_void, c_type: c_int, ldc: $int, stride_c: i64,
                batch: $int, compute: c_int, algorithm: c_int,
            ) on_handle(
                handle, [ta, tb], [m, n, k], [alpha, beta],
                [
                    (a, a_type, lda, stride_a),
                    (b, b_type, ldb, stride_b),
                    (c.cast_const(), c_type, ldc, stride_c),
                ],
                batch, compute,
            );
        }
    };
}

of_sizes!(c_int: cublasSgemm_v2 cublasDgemm_v2 cublasGemmEx
    cublasSgemmStridedBatched cublasDgemmStridedBatched cublasGemmStridedBatchedEx);
of_sizes!(i64: cublasSgemm_v2_64 cublasDgemm_v2_64 cublasGemmEx_64
    cublasSgemmStridedBatched_64 cublasDgemmStridedBatched_64 cublasGemmStridedBatchedEx_64);

functions! {
    fn cublasLtMatmul(
        handle: *mut c_void, operation: *mut c_void,
        alpha: *const c_void, a: *const c_void, a_layout: *mut c_void,
        b: *const c_void, b_layout: *mut c_void,
        beta: *const c_void, c: *const c_void, c_layout: *mut c_void,
        d: *mut c_void, d_layout: *mut c_void,
        algorithm: *const c_void, workspace: *mut c_void, workspace_bytes: usize,
        stream: *mut c_void,
    ) {
        let starts = [a, b, c, d.cast_const()];
        let layouts = [a_layout, b_layout, c_layout, d_layout];
        // SAFETY: the caller's descriptions and scalars.
        unsafe { lt::product(operation, [alpha, beta], starts, layouts, stream) }
    };
}

/// The numbers of calls that this library has multiplied and has passed on.
///
/// # Safety
///
/// Each pointer is null or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gemm_blas_calls(multiplied: *mut u64, passed_on: *mut u64) {
    for (pointer, count) in [multiplied, passed_on].into_iter().zip(log::counts()) {
        if !pointer.is_null() {
            // SAFETY: the caller vouches for it.
            unsafe { pointer.write(count) };
        }
    }
}
