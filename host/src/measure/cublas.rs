//! NVIDIA's cuBLAS, loaded at run time, as the opponent in benchmarks.

use std::ffi::{c_int, c_longlong, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use thiserror::Error;

use gpu_gemm::{Batch, CudaDevice, DataType, ElementType, Scalar, Shape, Transpose};

use super::library::{Loaded, Unusable};
use super::places::Places;
use crate::data::{Number, Problem};
use crate::run::{Placed, call};

/// Why cuBLAS cannot be measured.
#[derive(Debug, Error, PartialEq)]
pub enum CublasError {
    #[error(
        "There is no cuBLAS (libcublas.so) on this machine. Install a CUDA toolkit or the Python package nvidia-cublas-cu12, or set LIBCUBLAS_PATH to the library or its folder."
    )]
    NotFound,
    #[error("{} cannot be used as cuBLAS: {reason}.", path.display())]
    Unusable { path: PathBuf, reason: String },
    #[error("cuBLAS failed in {function} with status {status}.")]
    Failed {
        function: &'static str,
        status: c_int,
    },
    #[error("cuBLAS does not multiply {0}.")]
    NoSuchType(DataType),
    #[error("cublasXt, the cuBLAS of several GPUs, is timed on f32 and f64, and not on {0}.")]
    XtType(DataType),
    #[error(
        "cublasXt, the cuBLAS of several GPUs, takes each GPU once, so that one that is several parts has no yardstick."
    )]
    OneGpuTwice,
    #[error("cublasXt, the cuBLAS of several GPUs, is not timed where no product is computed.")]
    XtNoProduct,
    #[error("cuBLAS takes dimensions of up to 2147483647 only.")]
    TooLarge,
    #[error("{0}")]
    Device(String),
}

impl From<Unusable> for CublasError {
    fn from(Unusable { path, reason }: Unusable) -> CublasError {
        CublasError::Unusable { path, reason }
    }
}

type Handle = *mut c_void;
type Create = unsafe extern "C" fn(handle: *mut Handle) -> c_int;
type Destroy = unsafe extern "C" fn(handle: Handle) -> c_int;
type GetVersion = unsafe extern "C" fn(handle: Handle, version: *mut c_int) -> c_int;
type SetStream = unsafe extern "C" fn(handle: Handle, stream: *mut c_void) -> c_int;
type SetMathMode = unsafe extern "C" fn(handle: Handle, mode: c_int) -> c_int;
/// `cublasSgemm` and `cublasDgemm`.
type Gemm<T> = unsafe extern "C" fn(
    handle: Handle,
    transpose_a: c_int,
    transpose_b: c_int,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: *const T,
    a: *const T,
    lda: c_int,
    b: *const T,
    ldb: c_int,
    beta: *const T,
    c: *mut T,
    ldc: c_int,
) -> c_int;

/// `cublasSgemmStridedBatched` and `cublasDgemmStridedBatched`.
type GemmBatched<T> = unsafe extern "C" fn(
    handle: Handle,
    transpose_a: c_int,
    transpose_b: c_int,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: *const T,
    a: *const T,
    lda: c_int,
    stride_a: c_longlong,
    b: *const T,
    ldb: c_int,
    stride_b: c_longlong,
    beta: *const T,
    c: *mut T,
    ldc: c_int,
    stride_c: c_longlong,
    batch_count: c_int,
) -> c_int;

/// `cublasGemmStridedBatchedEx`.
type GemmBatchedEx = unsafe extern "C" fn(
    handle: Handle,
    transpose_a: c_int,
    transpose_b: c_int,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: *const c_void,
    a: *const c_void,
    a_type: c_int,
    lda: c_int,
    stride_a: c_longlong,
    b: *const c_void,
    b_type: c_int,
    ldb: c_int,
    stride_b: c_longlong,
    beta: *const c_void,
    c: *mut c_void,
    c_type: c_int,
    ldc: c_int,
    stride_c: c_longlong,
    batch_count: c_int,
    compute_type: c_int,
    algorithm: c_int,
) -> c_int;

/// `cublasGemmEx`.
type GemmEx = unsafe extern "C" fn(
    handle: Handle,
    transpose_a: c_int,
    transpose_b: c_int,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: *const c_void,
    a: *const c_void,
    a_type: c_int,
    lda: c_int,
    b: *const c_void,
    b_type: c_int,
    ldb: c_int,
    beta: *const c_void,
    c: *mut c_void,
    c_type: c_int,
    ldc: c_int,
    compute_type: c_int,
    algorithm: c_int,
) -> c_int;

/// `CUDA_R_32F`, `CUDA_R_16F` and `CUDA_R_16BF`.
const CUDA_F32: c_int = 0;
const CUDA_F16: c_int = 2;
const CUDA_BF16: c_int = 14;
/// `CUBLAS_COMPUTE_32F` and `CUBLAS_GEMM_DEFAULT`.
const COMPUTE_F32: c_int = 68;
const DEFAULT_ALGORITHM: c_int = -1;

/// What cuBLAS multiplies, and how precisely it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// `f32`, computed as `f32` in every step, so without tensor cores: what `f32` kernels are
    /// compared with.
    Single,
    /// `f64`, computed as `f64` in every step.
    Double,
    /// `f32`, on tensor cores, which round A and B to 10 bits of mantissa (TF32): faster, with a
    /// different result.
    Tf32,
    /// `bf16` with sums in `f32`, on tensor cores.
    Bf16,
    /// `f16` with sums in `f32`, on tensor cores.
    F16,
    /// The same two with C in `f32`.
    Bf16F32,
    F16F32,
}

impl Precision {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Precision::Single => "cublas-fp32",
            Precision::Double => "cublas-fp64",
            Precision::Tf32 => "cublas-tf32",
            Precision::Bf16 => "cublas-bf16",
            Precision::F16 => "cublas-f16",
            Precision::Bf16F32 => "cublas-bf16-f32",
            Precision::F16F32 => "cublas-f16-f32",
        }
    }

    /// A `cublasMath_t`: `CUBLAS_PEDANTIC_MATH`, `CUBLAS_TF32_TENSOR_OP_MATH` or
    /// `CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION`.
    fn math_mode(self) -> c_int {
        match self {
            Precision::Single | Precision::Double => 2,
            Precision::Tf32 => 3,
            Precision::Bf16 | Precision::F16 | Precision::Bf16F32 | Precision::F16F32 => 16,
        }
    }
}

/// `CUBLAS_OP_N`.
const NOT_TRANSPOSED: c_int = 0;
/// `CUBLAS_OP_T`.
const TRANSPOSED: c_int = 1;

/// cuBLAS on a device's stream.
pub struct Cublas<'device> {
    device: &'device CudaDevice,
    handle: Handle,
    sgemm: Gemm<f32>,
    dgemm: Gemm<f64>,
    sgemm_batched: GemmBatched<f32>,
    dgemm_batched: GemmBatched<f64>,
    /// Of A and B of 16 bits.
    gemm_ex: Option<(GemmEx, GemmBatchedEx)>,
    destroy: Destroy,
    version: c_int,
    precision: Precision,
    path: &'static Path,
}

impl<'device> Cublas<'device> {
    /// Prepares cuBLAS to launch on `device`'s stream.
    ///
    /// # Errors
    ///
    /// It is not found, or does not start.
    pub fn load(device: &'device CudaDevice, precision: Precision) -> Result<Self, CublasError> {
        device
            .enter()
            .map_err(|error| CublasError::Device(error.to_string()))?;
        let library = library()?;
        // SAFETY: the types are those of cuBLAS's header, unchanged since CUDA 11.
        let (create, destroy, get_version, set_stream, set_math_mode, sgemm, dgemm) = unsafe {
            (
                library.function::<Create>("cublasCreate_v2")?,
                library.function::<Destroy>("cublasDestroy_v2")?,
                library.function::<GetVersion>("cublasGetVersion_v2")?,
                library.function::<SetStream>("cublasSetStream_v2")?,
                library.function::<SetMathMode>("cublasSetMathMode")?,
                library.function::<Gemm<f32>>("cublasSgemm_v2")?,
                library.function::<Gemm<f64>>("cublasDgemm_v2")?,
            )
        };
        // SAFETY: as above.
        let (sgemm_batched, dgemm_batched) = unsafe {
            (
                library.function::<GemmBatched<f32>>("cublasSgemmStridedBatched")?,
                library.function::<GemmBatched<f64>>("cublasDgemmStridedBatched")?,
            )
        };
        let gemm_ex = match precision {
            // SAFETY: as above.
            Precision::Bf16 | Precision::F16 | Precision::Bf16F32 | Precision::F16F32 => unsafe {
                Some((
                    library.function::<GemmEx>("cublasGemmEx")?,
                    library.function::<GemmBatchedEx>("cublasGemmStridedBatchedEx")?,
                ))
            },
            Precision::Single | Precision::Double | Precision::Tf32 => None,
        };
        let mut handle = std::ptr::null_mut();
        // SAFETY: the device's primary context, which cuBLAS uses, is current.
        succeeded("cublasCreate", unsafe { create(&mut handle) })?;
        let mut cublas = Cublas {
            device,
            handle,
            sgemm,
            dgemm,
            sgemm_batched,
            dgemm_batched,
            gemm_ex,
            destroy,
            version: 0,
            precision,
            path: library.path(),
        };
        // SAFETY: the handle is valid, and the stream lives as long as the device that is
        // borrowed.
        unsafe {
            succeeded("cublasGetVersion", get_version(handle, &mut cublas.version))?;
            let stream = device.stream().as_inner().cast();
            succeeded("cublasSetStream", set_stream(handle, stream))?;
            let mode = precision.math_mode();
            succeeded("cublasSetMathMode", set_math_mode(handle, mode))?;
        }
        Ok(cublas)
    }

    /// How it computes.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Such as `12.9.1 from /usr/local/cuda/lib64/libcublas.so.12`.
    pub fn description(&self) -> String {
        format!(
            "{} from {}",
            version_name(self.version),
            self.path.display()
        )
    }

    /// Launches `C = alpha * A * B + beta * C`, of all products of a batch, and does not wait.
    ///
    /// # Errors
    ///
    /// There is no such function for the element type, the shape is too large, or cuBLAS fails.
    ///
    /// # Safety
    ///
    /// `matrices` hold A, B and C of the problem, as kernels get them, until the launch has ended.
    pub(crate) unsafe fn gemm<T: Number>(
        &self,
        problem: &Problem<T>,
        matrices: &[Placed; 3],
    ) -> Result<(), CublasError> {
        let product = (problem.shape(), problem.transposes);
        let batch = call(problem, *matrices).batch;
        let is_batch = batch.count > 1;
        let types = problem.data_type();
        let are_halves = types.inputs.bytes() == 2;
        match (problem.alpha.scalar(), problem.beta.scalar()) {
            (Scalar::F32(alpha), Scalar::F32(beta)) if is_batch && are_halves => {
                // SAFETY: the elements are of these types, in memory that the caller vouches for.
                succeeded("cublasGemmStridedBatchedEx", unsafe {
                    self.halves_batched(types, product, batch, [alpha, beta], matrices)?
                })
            }
            (Scalar::F32(alpha), Scalar::F32(beta)) if is_batch => {
                let (gemm, scalars) = (self.sgemm_batched, [alpha, beta]);
                // SAFETY: the elements are f32, in memory that the caller vouches for.
                succeeded("cublasSgemmStridedBatched", unsafe {
                    row_major_batched(gemm, self.handle, product, batch, scalars, matrices)?
                })
            }
            (Scalar::F64(alpha), Scalar::F64(beta)) if is_batch => {
                let (gemm, scalars) = (self.dgemm_batched, [alpha, beta]);
                // SAFETY: as above, with f64.
                succeeded("cublasDgemmStridedBatched", unsafe {
                    row_major_batched(gemm, self.handle, product, batch, scalars, matrices)?
                })
            }
            (Scalar::F32(alpha), Scalar::F32(beta)) if are_halves => {
                // SAFETY: the elements are of these types, in memory that the caller vouches for.
                succeeded("cublasGemmEx", unsafe {
                    self.halves(types, product, [alpha, beta], matrices)?
                })
            }
            // SAFETY: the elements are f32, in memory that the caller vouches for.
            (Scalar::F32(alpha), Scalar::F32(beta)) => succeeded("cublasSgemm", unsafe {
                row_major(self.sgemm, self.handle, product, alpha, beta, matrices)?
            }),
            // SAFETY: as above, with f64.
            (Scalar::F64(alpha), Scalar::F64(beta)) => succeeded("cublasDgemm", unsafe {
                row_major(self.dgemm, self.handle, product, alpha, beta, matrices)?
            }),
            _ => Err(CublasError::NoSuchType(types)),
        }
    }
}

impl Cublas<'_> {
    /// [`row_major`] of A and B of 16 bits.
    ///
    /// # Safety
    ///
    /// As [`Cublas::gemm`], of elements of these types.
    unsafe fn halves(
        &self,
        types: DataType,
        (shape, transposes): (Shape, [Transpose; 2]),
        [alpha, beta]: [f32; 2],
        matrices: &[Placed; 3],
    ) -> Result<c_int, CublasError> {
        let (gemm_ex, _) = self.gemm_ex.ok_or(CublasError::NoSuchType(types))?;
        let [inputs, type_of_c] = [types.inputs, types.c].map(cuda_data_type);
        let product = ColumnMajor::of(shape, transposes, matrices)?;
        let ColumnMajor {
            sides,
            operations,
            leading,
            first,
            second,
            result,
        } = product;
        // SAFETY: as for `row_major`.
        Ok(unsafe {
            gemm_ex(
                self.handle,
                operations[0],
                operations[1],
                sides[0],
                sides[1],
                sides[2],
                (&raw const alpha).cast(),
                first.cast(),
                inputs,
                leading[0],
                second.cast(),
                inputs,
                leading[1],
                (&raw const beta).cast(),
                result.cast(),
                type_of_c,
                leading[2],
                COMPUTE_F32,
                DEFAULT_ALGORITHM,
            )
        })
    }

    /// [`row_major_batched`] of A and B of 16 bits.
    ///
    /// # Safety
    ///
    /// As [`Cublas::gemm`], of elements of these types.
    unsafe fn halves_batched(
        &self,
        types: DataType,
        (shape, transposes): (Shape, [Transpose; 2]),
        batch: Batch,
        [alpha, beta]: [f32; 2],
        matrices: &[Placed; 3],
    ) -> Result<c_int, CublasError> {
        let (_, gemm_ex) = self.gemm_ex.ok_or(CublasError::NoSuchType(types))?;
        let [inputs, type_of_c] = [types.inputs, types.c].map(cuda_data_type);
        let ColumnMajor {
            sides,
            operations,
            leading,
            first,
            second,
            result,
        } = ColumnMajor::of(shape, transposes, matrices)?;
        let ColumnMajorBatch { count, strides } = ColumnMajorBatch::of(batch)?;
        // SAFETY: as for `row_major`.
        Ok(unsafe {
            gemm_ex(
                self.handle,
                operations[0],
                operations[1],
                sides[0],
                sides[1],
                sides[2],
                (&raw const alpha).cast(),
                first.cast(),
                inputs,
                leading[0],
                strides[0],
                second.cast(),
                inputs,
                leading[1],
                strides[1],
                (&raw const beta).cast(),
                result.cast(),
                type_of_c,
                leading[2],
                strides[2],
                count,
                COMPUTE_F32,
                DEFAULT_ALGORITHM,
            )
        })
    }
}

/// A `cudaDataType_t` of what is multiplied as 16 bits, or of its C.
fn cuda_data_type(element: ElementType) -> c_int {
    match element {
        ElementType::Bf16 => CUDA_BF16,
        ElementType::F16 => CUDA_F16,
        _ => CUDA_F32,
    }
}

/// [`row_major`] for a batch.
///
/// # Safety
///
/// As for [`row_major`], for all products.
unsafe fn row_major_batched<E>(
    gemm: GemmBatched<E>,
    handle: Handle,
    (shape, transposes): (Shape, [Transpose; 2]),
    batch: Batch,
    [alpha, beta]: [E; 2],
    matrices: &[Placed; 3],
) -> Result<c_int, CublasError> {
    let ColumnMajor {
        sides,
        operations,
        leading,
        first,
        second,
        result,
    } = ColumnMajor::of(shape, transposes, matrices)?;
    let ColumnMajorBatch { count, strides } = ColumnMajorBatch::of(batch)?;
    // SAFETY: as for `row_major`.
    Ok(unsafe {
        gemm(
            handle,
            operations[0],
            operations[1],
            sides[0],
            sides[1],
            sides[2],
            &alpha,
            first.cast(),
            leading[0],
            strides[0],
            second.cast(),
            leading[1],
            strides[1],
            &beta,
            result.cast(),
            leading[2],
            strides[2],
            count,
        )
    })
}

/// Calls `gemm`, whose matrices are column-major, for row-major ones. Returns its status.
///
/// # Safety
///
/// `gemm` multiplies elements `E`, and takes the handle; otherwise as [`Cublas::gemm`].
unsafe fn row_major<E>(
    gemm: Gemm<E>,
    handle: Handle,
    (shape, [transpose_a, transpose_b]): (Shape, [Transpose; 2]),
    alpha: E,
    beta: E,
    matrices: &[Placed; 3],
) -> Result<c_int, CublasError> {
    let product = ColumnMajor::of(shape, [transpose_a, transpose_b], matrices)?;
    let ColumnMajor {
        sides,
        operations,
        leading,
        first,
        second,
        result,
    } = product;
    // SAFETY: the pointers are those of the memory that the caller vouches for; cuBLAS copies the
    // scalars.
    Ok(unsafe {
        gemm(
            handle,
            operations[0],
            operations[1],
            sides[0],
            sides[1],
            sides[2],
            &alpha,
            first.cast(),
            leading[0],
            second.cast(),
            leading[1],
            &beta,
            result.cast(),
            leading[2],
        )
    })
}

/// A product of row-major matrices as one of column-major matrices.
pub(super) struct ColumnMajor {
    /// Rows and columns of the result, and the depth.
    pub sides: [c_int; 3],
    pub operations: [c_int; 2],
    pub leading: [c_int; 3],
    pub first: *mut u8,
    pub second: *mut u8,
    pub result: *mut u8,
}

impl ColumnMajor {
    /// A row-major matrix is its transpose's column-major form, and C^T = B^T * A^T: so B goes
    /// first, and m and n change places. What is stored transposed by rows is stored transposed by
    /// columns, too.
    pub fn of(
        shape: Shape,
        [transpose_a, transpose_b]: [Transpose; 2],
        [a, b, c]: &[Placed; 3],
    ) -> Result<ColumnMajor, CublasError> {
        let int = |value: usize| c_int::try_from(value).map_err(|_| CublasError::TooLarge);
        let operation = |transpose| match transpose {
            Transpose::No => NOT_TRANSPOSED,
            Transpose::Yes => TRANSPOSED,
        };
        let leading = |placed: &Placed| int(placed.leading.max(1));
        Ok(ColumnMajor {
            sides: [int(shape.n)?, int(shape.m)?, int(shape.k)?],
            operations: [operation(transpose_b), operation(transpose_a)],
            leading: [leading(b)?, leading(a)?, leading(c)?],
            first: b.start,
            second: a.start,
            result: c.start,
        })
    }
}

/// The batch of such a product.
struct ColumnMajorBatch {
    count: c_int,
    /// Of the first matrix, the second and the result.
    strides: [c_longlong; 3],
}

impl ColumnMajorBatch {
    fn of(batch: Batch) -> Result<ColumnMajorBatch, CublasError> {
        let wide = |stride| c_longlong::try_from(stride).map_err(|_| CublasError::TooLarge);
        let [a, b, c] = batch.strides;
        Ok(ColumnMajorBatch {
            count: c_int::try_from(batch.count).map_err(|_| CublasError::TooLarge)?,
            strides: [wide(b)?, wide(a)?, wide(c)?],
        })
    }
}

impl Drop for Cublas<'_> {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            // SAFETY: the handle is valid and not used again.
            unsafe { (self.destroy)(self.handle) };
        }
    }
}

pub(super) fn succeeded(function: &'static str, status: c_int) -> Result<(), CublasError> {
    match status {
        0 => Ok(()),
        status => Err(CublasError::Failed { function, status }),
    }
}

/// `120901` is 12.9.1.
pub(super) fn version_name(version: c_int) -> String {
    let (major, minor, patch) = (version / 10_000, version / 100 % 100, version % 100);
    format!("{major}.{minor}.{patch}")
}

/// The cuBLAS that would be loaded, with its path, for people to read.
pub fn find() -> Option<&'static Path> {
    library().ok().map(Loaded::path)
}

/// The library, loaded on first use and kept: a GPU's context holds its code.
pub(super) fn library() -> Result<&'static Loaded, CublasError> {
    static LIBRARY: OnceLock<Option<Loaded>> = OnceLock::new();
    let found = LIBRARY.get_or_init(|| {
        // SAFETY: loading NVIDIA's library has no requirements of its own.
        unsafe { Loaded::first_of(Places::of_this_process().candidates()) }
    });
    found.as_ref().ok_or(CublasError::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Data, Layout, Matrix, Problem};
    use crate::verify::{self, Coverage};
    use gpu_gemm::gpu_kernels::spec::Tile;

    /// What cuBLAS documents of `cublasSgemm`, on memory of the host.
    unsafe extern "C" fn column_major(
        handle: Handle,
        transpose_a: c_int,
        transpose_b: c_int,
        m: c_int,
        n: c_int,
        k: c_int,
        alpha: *const f32,
        a: *const f32,
        lda: c_int,
        b: *const f32,
        ldb: c_int,
        beta: *const f32,
        c: *mut f32,
        ldc: c_int,
    ) -> c_int {
        let rows = |transpose, (rows, columns)| match transpose {
            NOT_TRANSPOSED => rows,
            TRANSPOSED => columns,
            other => panic!("no operation is {other}"),
        };
        assert!(handle.is_null() && ldc >= m);
        assert!(lda >= rows(transpose_a, (m, k)) && ldb >= rows(transpose_b, (k, n)));
        let at = |row: c_int, column: c_int, leading: c_int| (row + column * leading) as usize;
        let of = |transpose, (row, column), leading| match transpose {
            TRANSPOSED => at(column, row, leading),
            _ => at(row, column, leading),
        };
        for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
            // SAFETY: the matrices are as large as the numbers say.
            unsafe {
                let product = |l| {
                    *a.add(of(transpose_a, (row, l), lda))
                        * *b.add(of(transpose_b, (l, column), ldb))
                };
                let c = c.add(at(row, column, ldc));
                *c = *alpha * (0..k).map(product).sum::<f32>() + *beta * *c;
            }
        }
        0
    }

    /// Multiplies matrices whose rows have so many elements between them.
    fn check_product(shape: Shape, padding: [usize; 3]) {
        for transposes in [[0, 0], [0, 1], [1, 0], [1, 1]] {
            check_transposed(
                shape,
                padding,
                transposes.map(|index| Transpose::ALL[index]),
            );
        }
    }

    fn check_transposed(shape: Shape, padding: [usize; 3], transposes: [Transpose; 2]) {
        let layout = Layout::padded(shape, padding, [0; 3]);
        let data = Data::SmallIntegers { largest: 4 };
        let problem = Problem {
            transposes,
            ..Problem::<f32>::random(shape, layout, data, 1, 2.0, -1.0).unwrap()
        };
        let mut computed = problem.c.clone();
        let stored = problem.stored().unwrap();
        let placed = |start: *mut f32, leading| Placed {
            start: start.cast(),
            leading,
        };
        let read =
            |matrix: &Matrix<f32>| placed(matrix.row(0).as_ptr().cast_mut(), matrix.leading());
        let c = placed(computed.row_mut(0).as_mut_ptr(), layout.c.leading);
        let matrices = [read(&stored.a), read(&stored.b), c];
        let (handle, product) = (std::ptr::null_mut(), (shape, transposes));
        // SAFETY: the matrices are those of the problem; the function uses no handle.
        let status =
            unsafe { row_major(column_major, handle, product, 2.0, -1.0, &matrices).unwrap() };
        assert_eq!(status, 0);
        let tile = Tile { m: 1, n: 1, k: 1 };
        verify::exact(&problem, &computed, tile, Coverage::Full).unwrap();
    }

    #[test]
    fn a_column_major_gemm_computes_the_row_major_product() {
        check_product(Shape::new(3, 5, 7), [2, 3, 1]);
        // Columns, one element after the other.
        check_product(Shape::new(3, 1, 7), [0; 3]);
        check_product(Shape::new(3, 5, 1), [0; 3]);
    }

    /// What cuBLAS documents of `cublasSgemmStridedBatched`, on memory of the host.
    unsafe extern "C" fn column_major_batched(
        handle: Handle,
        transpose_a: c_int,
        transpose_b: c_int,
        m: c_int,
        n: c_int,
        k: c_int,
        alpha: *const f32,
        a: *const f32,
        lda: c_int,
        stride_a: c_longlong,
        b: *const f32,
        ldb: c_int,
        stride_b: c_longlong,
        beta: *const f32,
        c: *mut f32,
        ldc: c_int,
        stride_c: c_longlong,
        batch_count: c_int,
    ) -> c_int {
        for product in 0..c_longlong::from(batch_count) {
            let [a_at, b_at, c_at] =
                [stride_a, stride_b, stride_c].map(|stride| (product * stride) as usize);
            // SAFETY: the matrices of the product lie there.
            let status = unsafe {
                column_major(
                    handle,
                    transpose_a,
                    transpose_b,
                    m,
                    n,
                    k,
                    alpha,
                    a.add(a_at),
                    lda,
                    b.add(b_at),
                    ldb,
                    beta,
                    c.add(c_at),
                    ldc,
                )
            };
            assert_eq!(status, 0);
        }
        0
    }

    #[test]
    fn a_column_major_batch_computes_the_row_major_products() {
        for transposes in [[0, 0], [0, 1], [1, 0], [1, 1]] {
            let transposes = transposes.map(|index| Transpose::ALL[index]);
            let shape = Shape::new(3, 5, 7);
            let layout = Layout::padded(shape, [2, 3, 1], [0; 3]);
            let data = Data::SmallIntegers { largest: 4 };
            let random = Problem::<f32>::random_batch(4, shape, layout, data, 1, (2.0, -1.0));
            let problem = Problem {
                transposes,
                ..random.unwrap()
            };
            let mut computed = problem.c.clone();
            let stored = problem.stored().unwrap();
            let read = |matrix: &Matrix<f32>| Placed {
                start: matrix.row(0).as_ptr().cast_mut().cast(),
                leading: matrix.leading(),
            };
            let c = Placed {
                start: computed.row_mut(0).as_mut_ptr().cast(),
                leading: layout.c.leading,
            };
            let matrices = [read(&stored.a), read(&stored.b), c];
            let (handle, product) = (std::ptr::null_mut(), (shape, transposes));
            let batch = call(&problem, matrices).batch;
            assert_eq!((batch.count, batch.strides[2]), (4, 3 * 6));
            let gemm = column_major_batched;
            // SAFETY: the matrices are those of the problem; the function uses no handle.
            let status = unsafe {
                row_major_batched(gemm, handle, product, batch, [2.0, -1.0], &matrices).unwrap()
            };
            assert_eq!(status, 0);
            let tile = Tile { m: 1, n: 1, k: 1 };
            verify::each_product(&problem, &computed, |_, problem, c| {
                verify::exact(problem, c, tile, Coverage::Full)
            })
            .unwrap();
        }
    }

    #[test]
    fn more_products_than_an_int_holds_are_an_error() {
        let batch = |count, stride| {
            ColumnMajorBatch::of(Batch {
                count,
                strides: [stride; 3],
            })
        };
        assert!(batch(i32::MAX as usize, i64::MAX as usize).is_ok());
        assert!(matches!(batch(1 << 31, 1), Err(CublasError::TooLarge)));
        assert!(matches!(batch(1, 1 << 63), Err(CublasError::TooLarge)));
    }

    #[test]
    fn a_side_that_an_int_cannot_hold_is_an_error() {
        let placed = Placed {
            start: std::ptr::null_mut(),
            leading: 1,
        };
        for shape in [(1 << 31, 1, 1), (1, 1 << 31, 1), (1, 1, 1 << 31)] {
            let shape = Shape::new(shape.0, shape.1, shape.2);
            let (handle, product) = (std::ptr::null_mut(), (shape, [Transpose::No; 2]));
            // SAFETY: it is not called.
            let status =
                unsafe { row_major(column_major, handle, product, 1.0, 0.0, &[placed; 3]) };
            assert!(matches!(status, Err(CublasError::TooLarge)));
        }
    }

    /// As `cublas_api.h` has them: `CUBLAS_PEDANTIC_MATH` and `CUBLAS_TF32_TENSOR_OP_MATH`.
    #[test]
    fn only_tf32_may_use_tensor_cores() {
        let modes =
            [Precision::Single, Precision::Double, Precision::Tf32].map(Precision::math_mode);
        assert_eq!(modes, [2, 2, 3]);
    }

    #[test]
    fn versions_read_as_people_write_them() {
        assert_eq!(version_name(120_901), "12.9.1");
        assert_eq!(version_name(130_000), "13.0.0");
    }

    #[test]
    fn a_status_is_an_error_that_names_the_function() {
        assert_eq!(succeeded("cublasSgemm", 0), Ok(()));
        assert_eq!(
            succeeded("cublasSgemm", 13).unwrap_err().to_string(),
            "cuBLAS failed in cublasSgemm with status 13."
        );
    }
}
