//! cuBLAS's functions, as `cublas_api.h` documents them. Matrices are column-major.

use crate::gemm::{self, Element, Gemm, Matrix};
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

/// The arguments of all these functions.
struct Arguments<T: Element> {
    name: &'static str,
    handle: usize,
    transposes: [i32; 2],
    shape: [i32; 3],
    alpha: *const T::Scalar,
    beta: *const T::Scalar,
    /// Addresses of A, B and C, their leading dimensions, and their strides.
    starts: [u64; 3],
    leading: [i32; 3],
    strides: [i64; 3],
    products: i32,
}

impl<T: Element> Arguments<T> {
    fn run(self, to_tf32: impl Fn(T::Input) -> T::Input + Copy) -> u32 {
        let [m, n, k] = self.shape;
        let scalars = [self.alpha, self.beta];
        let gemm = product::<T, _>(self.transposes, self.shape, scalars, self.starts, self.leading);
        let Some(gemm) = gemm else {
            return INVALID_VALUE;
        };
        let ([a, b, c], [lda, ldb, ldc]) = (self.starts, self.leading);
        let (name, products) = (self.name, self.products);
        let description = format!(
            "name={name} m={m} n={n} k={k} a={a} lda={lda} b={b} ldb={ldb} c={c} ldc={ldc} products={products}"
        );
        let strides = self.strides.map(|stride| stride as usize);
        let batch = (gemm, products as usize, strides);
        cublas(|gpu| multiply(gpu, self.handle, batch, &description, to_tf32))
    }
}

/// The product of column-major matrices, with alpha and beta as `scalars`; `None` if there are no
/// matrices of these dimensions and leading dimensions.
fn product<T: Element, N: TryInto<usize>>(
    [transpose_a, transpose_b]: [i32; 2],
    shape: [N; 3],
    [alpha, beta]: [*const T::Scalar; 2],
    starts: [u64; 3],
    leading: [N; 3],
) -> Option<Gemm<T>> {
    let [m, n, k] = sizes(shape)?;
    let leading = sizes(leading)?;
    let rows = |transpose, rows, columns| match transpose {
        0 => rows,
        1 => columns,
        other => panic!("operation {other} is not known"),
    };
    let rows_stored: [usize; 3] = [rows(transpose_a, m, k), rows(transpose_b, k, n), m];
    if leading.iter().zip(rows_stored).any(|(leading, rows)| *leading < rows.max(1)) {
        return None;
    }
    let matrix = |index: usize, transpose| match transpose {
        0 => Matrix::column_major(starts[index], leading[index]),
        _ => Matrix::row_major(starts[index], leading[index]),
    };
    Some(Gemm {
        m,
        n,
        k,
        // SAFETY: the functions' documentation asks for scalars that can be read.
        alpha: unsafe { alpha.read() },
        a: matrix(0, transpose_a),
        b: matrix(1, transpose_b),
        // SAFETY: the same.
        beta: unsafe { beta.read() },
        c: matrix(2, 0),
        is_wrong: false,
    })
}

/// None if one is negative.
fn sizes<N: TryInto<usize>>(numbers: [N; 3]) -> Option<[usize; 3]> {
    let [one, two, three] = numbers.map(|number| number.try_into().ok());
    Some([one?, two?, three?])
}

/// Exports `cublasSgemm` or `cublasDgemm`, and the same for batches.
macro_rules! gemm {
    ($function:ident $name:literal, $batched:ident $batched_name:literal, $type:ty, $to_tf32:expr) => {
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
            Arguments::<$type> {
                name: $name,
                handle,
                transposes: [transpose_a, transpose_b],
                shape: [m, n, k],
                alpha,
                beta,
                starts: [a, b, c],
                leading: [lda, ldb, ldc],
                strides: [0; 3],
                products: 1,
            }
            .run($to_tf32)
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
            Arguments::<$type> {
                name: $batched_name,
                handle,
                transposes: [transpose_a, transpose_b],
                shape: [m, n, k],
                alpha,
                beta,
                starts: [a, b, c],
                leading: [lda, ldb, ldc],
                strides: [stride_a, stride_b, stride_c],
                products,
            }
            .run($to_tf32)
        }
    };
}

gemm!(cublasSgemm_v2 "sgemm", cublasSgemmStridedBatched "sgemm_batched", f32, to_tf32);
gemm!(cublasDgemm_v2 "dgemm", cublasDgemmStridedBatched "dgemm_batched", f64, |element| element);

/// `CUDA_R_32F`, `CUDA_R_16F` and `CUDA_R_16BF`.
const F32: i32 = 0;
const F16: i32 = 2;
const BF16: i32 = 14;

/// `CUBLAS_COMPUTE_32F` and `CUBLAS_GEMM_DEFAULT`.
const AS_COMPUTED: (i32, i32) = (68, -1);

/// A and B of 16 bits, with sums and scalars in `f32`, and C in either.
fn of_halves(
    (name, handle): (&'static str, usize),
    (transposes, shape): ([i32; 2], [i32; 3]),
    [alpha, beta]: [*const f32; 2],
    (starts, leading, types): ([u64; 3], [i32; 3], [i32; 3]),
    (strides, products): ([i64; 3], i32),
    computed: (i32, i32),
) -> u32 {
    if computed != AS_COMPUTED {
        return INVALID_VALUE;
    }
    macro_rules! run {
        ($type:ty) => {
            Arguments::<$type> {
                name,
                handle,
                transposes,
                shape,
                alpha,
                beta,
                starts,
                leading,
                strides,
                products,
            }
            .run(|element| element)
        };
    }
    match types {
        [F16, F16, F16] => run!(gemm::F16),
        [BF16, BF16, BF16] => run!(gemm::Bf16),
        [F16, F16, F32] => run!(gemm::Of<gemm::F16>),
        [BF16, BF16, F32] => run!(gemm::Of<gemm::Bf16>),
        _ => INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
extern "C" fn cublasGemmEx(
    handle: usize,
    transpose_a: i32,
    transpose_b: i32,
    m: i32,
    n: i32,
    k: i32,
    alpha: *const f32,
    a: u64,
    a_type: i32,
    lda: i32,
    b: u64,
    b_type: i32,
    ldb: i32,
    beta: *const f32,
    c: u64,
    c_type: i32,
    ldc: i32,
    compute_type: i32,
    algorithm: i32,
) -> u32 {
    of_halves(
        ("gemm_ex", handle),
        ([transpose_a, transpose_b], [m, n, k]),
        [alpha, beta],
        ([a, b, c], [lda, ldb, ldc], [a_type, b_type, c_type]),
        ([0; 3], 1),
        (compute_type, algorithm),
    )
}

#[unsafe(no_mangle)]
extern "C" fn cublasGemmStridedBatchedEx(
    handle: usize,
    transpose_a: i32,
    transpose_b: i32,
    m: i32,
    n: i32,
    k: i32,
    alpha: *const f32,
    a: u64,
    a_type: i32,
    lda: i32,
    stride_a: i64,
    b: u64,
    b_type: i32,
    ldb: i32,
    stride_b: i64,
    beta: *const f32,
    c: u64,
    c_type: i32,
    ldc: i32,
    stride_c: i64,
    products: i32,
    compute_type: i32,
    algorithm: i32,
) -> u32 {
    of_halves(
        ("gemm_ex_batched", handle),
        ([transpose_a, transpose_b], [m, n, k]),
        [alpha, beta],
        ([a, b, c], [lda, ldb, ldc], [a_type, b_type, c_type]),
        ([stride_a, stride_b, stride_c], products),
        (compute_type, algorithm),
    )
}

/// The nearest number with 10 bits of mantissa.
fn to_tf32(element: f32) -> f32 {
    f32::from_bits((element.to_bits() + (1 << 12)) & !((1 << 13) - 1))
}

fn multiply<T: Element>(
    gpu: &mut Gpu,
    handle: usize,
    (mut first, products, strides): (Gemm<T>, usize, [usize; 3]),
    description: &str,
    to_tf32: impl Fn(T::Input) -> T::Input + Copy,
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

/// What a handle of cublasXt stands for.
#[derive(Default)]
pub struct XtHandle {
    devices: Vec<i32>,
    block: i32,
    pinned: i32,
}

fn with_xt(handle: usize, change: impl FnOnce(&mut XtHandle) -> Outcome) -> u32 {
    cublas(|gpu| change(gpu.cublas_xt_handles.get_mut(&handle).expect("a handle of cublasXt")))
}

#[unsafe(no_mangle)]
extern "C" fn cublasGetProperty(property: i32, value: *mut i32) -> u32 {
    let version = [12, 9, 1];
    cublas(|_| put(value, version[property as usize]))
}

#[unsafe(no_mangle)]
extern "C" fn cublasXtCreate(handle: *mut usize) -> u32 {
    cublas(|gpu| {
        let new = gpu.new_handle();
        gpu.cublas_xt_handles.insert(new, XtHandle::default());
        put(handle, new)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cublasXtDestroy(handle: usize) -> u32 {
    gpu::log_even_if_lost(format_args!("destroy handle={handle}"));
    cublas(|gpu| {
        assert!(gpu.cublas_xt_handles.remove(&handle).is_some());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cublasXtDeviceSelect(handle: usize, count: i32, devices: *const i32) -> u32 {
    cublas(|gpu| {
        // SAFETY: the function's documentation asks for so many numbers.
        let devices = unsafe { std::slice::from_raw_parts(devices, count as usize) }.to_vec();
        let gpus = 0..gpu.setting("gpus") as i32;
        let is_twice = |(index, device)| devices[..index].contains(device);
        let are_there = devices.iter().all(|device| gpus.contains(device));
        if devices.is_empty() || !are_there || devices.iter().enumerate().any(is_twice) {
            return Err(INVALID_VALUE);
        }
        gpu.cublas_xt_handles.get_mut(&handle).expect("a handle of cublasXt").devices = devices;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cublasXtSetBlockDim(handle: usize, block: i32) -> u32 {
    with_xt(handle, |handle| {
        handle.block = block;
        if block > 0 { Ok(()) } else { Err(INVALID_VALUE) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cublasXtSetPinningMemMode(handle: usize, mode: i32) -> u32 {
    with_xt(handle, |handle| {
        handle.pinned = mode;
        if [0, 1].contains(&mode) { Ok(()) } else { Err(INVALID_VALUE) }
    })
}

/// The product of matrices in host memory, which is complete when this returns.
struct XtArguments<T: Element> {
    name: &'static str,
    handle: usize,
    transposes: [i32; 2],
    shape: [usize; 3],
    alpha: *const T,
    beta: *const T,
    starts: [u64; 3],
    leading: [usize; 3],
}

impl<T: Element<Scalar = T>> XtArguments<T> {
    fn run(self) -> u32 {
        let [m, n, k] = self.shape;
        let scalars = [self.alpha, self.beta];
        let gemm = product::<T, _>(self.transposes, self.shape, scalars, self.starts, self.leading);
        let Some(gemm) = gemm else {
            return INVALID_VALUE;
        };
        cublas(|gpu| {
            gpu.status("cublas")?;
            gpu.cublas_launches += 1;
            if gpu.cublas_launches <= gpu.setting("xt_failures") {
                return Err(EXECUTION_FAILED);
            }
            let XtHandle { devices, block, pinned } = &gpu.cublas_xt_handles[&self.handle];
            assert!(!devices.is_empty() && *block > 0, "cublasXt has not been told all");
            let devices: Vec<String> = devices.iter().map(i32::to_string).collect();
            let ([lda, ldb, ldc], name, handle) = (self.leading, self.name, self.handle);
            let line = format!(
                "xt name={name} m={m} n={n} k={k} lda={lda} ldb={ldb} ldc={ldc} block={block} pinned={pinned} \
                 devices={} handle={handle}",
                devices.join("+")
            );
            gpu.log(line);
            let mut gemm: Gemm<T> = gemm;
            gemm.is_wrong = gpu.is_wrong("wrong_cublas_from", gpu.cublas_launches);
            let host = |start: u64, _| std::ptr::with_exposed_provenance_mut(start as usize);
            gemm.compute_in(host, |element| element);
            Ok(())
        })
    }
}

/// Exports `cublasXtSgemm` or `cublasXtDgemm`.
macro_rules! xt_gemm {
    ($function:ident $name:literal $type:ty) => {
        #[unsafe(no_mangle)]
        extern "C" fn $function(
            handle: usize,
            transpose_a: i32,
            transpose_b: i32,
            m: usize,
            n: usize,
            k: usize,
            alpha: *const $type,
            a: u64,
            lda: usize,
            b: u64,
            ldb: usize,
            beta: *const $type,
            c: u64,
            ldc: usize,
        ) -> u32 {
            XtArguments::<$type> {
                name: $name,
                handle,
                transposes: [transpose_a, transpose_b],
                shape: [m, n, k],
                alpha,
                beta,
                starts: [a, b, c],
                leading: [lda, ldb, ldc],
            }
            .run()
        }
    };
}

xt_gemm!(cublasXtSgemm "sgemm" f32);
xt_gemm!(cublasXtDgemm "dgemm" f64);
