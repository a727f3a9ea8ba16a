//! cuBLAS's functions, as `cublas_api.h` documents them. Matrices are column-major.

use crate::gemm::{Element, Gemm, Matrix};
use crate::gpu::{self, Gpu, LAUNCH_FAILED, Outcome, call, put};

const INVALID_VALUE: u32 = 7;
const EXECUTION_FAILED: u32 = 13;

/// `CUBLAS_TF32_TENSOR_OP_MATH`.
const TF32: i32 = 3;

/// What a handle stands for.
#[derive(Default)]
pub struct Handle {
    stream: usize,
    math_mode: i32,
    has_run: bool,
}

/// [`call`] with a status of cuBLAS.
fn cublas(body: impl FnOnce(&mut Gpu) -> Outcome) -> u32 {
    match call(body) {
        LAUNCH_FAILED => EXECUTION_FAILED,
        status => status,
    }
}

fn with_handle(handle: usize, change: impl FnOnce(&mut Handle)) -> u32 {
    cublas(|gpu| {
        change(gpu.cublas_handles.get_mut(&handle).expect("a handle"));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cublasCreate_v2(handle: *mut usize) -> u32 {
    cublas(|gpu| {
        let new = gpu.new_handle();
        gpu.cublas_handles.insert(new, Handle::default());
        gpu.log(format_args!("create handle={new}"));
        put(handle, new)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cublasDestroy_v2(handle: usize) -> u32 {
    gpu::log_even_if_lost(format_args!("destroy handle={handle}"));
    cublas(|gpu| {
        assert!(gpu.cublas_handles.remove(&handle).is_some());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cublasGetVersion_v2(_handle: usize, version: *mut i32) -> u32 {
    cublas(|_| put(version, 120_901))
}

#[unsafe(no_mangle)]
extern "C" fn cublasSetStream_v2(handle: usize, stream: usize) -> u32 {
    with_handle(handle, |handle| handle.stream = stream)
}

#[unsafe(no_mangle)]
extern "C" fn cublasSetMathMode(handle: usize, mode: i32) -> u32 {
    with_handle(handle, |handle| handle.math_mode = mode)
}

/// Exports `cublasSgemm` or `cublasDgemm`, and the same for batches.
macro_rules! gemm {
    ($function:ident, $batched:ident, $name:literal, $type:ty, $to_tf32:expr) => {
        #[unsafe(no_mangle)]
        extern "C" fn $function(
            handle: usize,
            transpose_a: i32,
            transpose_b: i32,
            m: i32,
            n: i32,
            k: i32,
            alpha: *const $type,
            a: u64,
            lda: i32,
            b: u64,
            ldb: i32,
            beta: *const $type,
            c: u64,
            ldc: i32,
        ) -> u32 {
            $batched(
                handle, transpose_a, transpose_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc,
                0, 1,
            )
        }

        #[unsafe(no_mangle)]
        extern "C" fn $batched(
            handle: usize,
            transpose_a: i32,
            transpose_b: i32,
            m: i32,
            n: i32,
            k: i32,
            alpha: *const $type,
            a: u64,
            lda: i32,
            stride_a: i64,
            b: u64,
            ldb: i32,
            stride_b: i64,
            beta: *const $type,
            c: u64,
            ldc: i32,
            stride_c: i64,
            products: i32,
        ) -> u32 {
            // SAFETY: the function's documentation asks for scalars that can be read.
            let (alpha, beta) = unsafe { (alpha.read(), beta.read()) };
            let rows = |transpose, rows: i32, columns: i32| match transpose {
                0 => rows,
                1 => columns,
                other => panic!("operation {other} is not known"),
            };
            let rows_stored = [rows(transpose_a, m, k), rows(transpose_b, k, n), m];
            let leading = ([lda, ldb, ldc], rows_stored);
            let is_long_enough = |(leading, rows): (i32, i32)| leading >= rows.max(1);
            let has_shape = [m, n, k].into_iter().all(|size| size >= 0);
            if !has_shape || !leading.0.into_iter().zip(leading.1).all(is_long_enough) {
                return INVALID_VALUE;
            }
            let matrix = |start, leading: i32, transpose| match transpose {
                0 => Matrix::column_major(start, leading as usize),
                _ => Matrix::row_major(start, leading as usize),
            };
            let gemm = Gemm {
                m: m as usize,
                n: n as usize,
                k: k as usize,
                alpha,
                a: matrix(a, lda, transpose_a),
                b: matrix(b, ldb, transpose_b),
                beta,
                c: matrix(c, ldc, 0),
                is_wrong: false,
            };
            let shape = format!(
                "m={m} n={n} k={k} a={a} lda={lda} b={b} ldb={ldb} c={c} ldc={ldc} products={products}"
            );
            let strides = [stride_a, stride_b, stride_c].map(|stride| stride as usize);
            cublas(|gpu| {
                multiply(
                    gpu,
                    handle,
                    (gemm, products as usize, strides),
                    &format!("name={} {shape}", $name),
                    $to_tf32,
                )
            })
        }
    };
}

gemm!(cublasSgemm_v2, cublasSgemmStridedBatched, "sgemm", f32, to_tf32);
gemm!(cublasDgemm_v2, cublasDgemmStridedBatched, "dgemm", f64, |element| element);

/// The nearest number with 10 bits of mantissa.
fn to_tf32(element: f32) -> f32 {
    f32::from_bits((element.to_bits() + (1 << 12)) & !((1 << 13) - 1))
}

fn multiply<T: Element>(
    gpu: &mut Gpu,
    handle: usize,
    (mut first, products, strides): (Gemm<T>, usize, [usize; 3]),
    description: &str,
    to_tf32: impl Fn(T) -> T + Copy,
) -> Outcome {
    gpu.status("cublas")?;
    gpu.cublas_launches += 1;
    first.is_wrong = gpu.is_wrong("wrong_cublas_from", gpu.cublas_launches);
    let known = gpu.cublas_handles.get_mut(&handle).expect("a handle");
    let (stream, math_mode) = (known.stream, known.math_mode);
    let is_first = !std::mem::replace(&mut known.has_run, true);
    gpu.log(format_args!(
        "cublas {description} mode={math_mode} stream={stream}"
    ));
    gpu.run_pending();
    let time = match math_mode {
        TF32 => {
            first.batch(products, strides).for_each(|gemm| gemm.compute(gpu, to_tf32));
            gpu.setting("tf32_ns")
        }
        _ => {
            let batch = first.batch(products, strides);
            batch.for_each(|gemm| gemm.compute(gpu, |element| element));
            gpu.setting("cublas_ns")
        }
    };
    gpu.work(stream, time, is_first);
    Ok(())
}
