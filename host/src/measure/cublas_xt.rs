//! cublasXt, a part of NVIDIA's cuBLAS: the opponent of several GPUs on matrices in host memory.
//!
//! It cuts C into blocks of a size that its user chooses, and its user also chooses whether it
//! page-locks the matrices while they are multiplied. Which is faster depends on machine and shape,
//! so all of [`SETTINGS`] are tried once, and the fastest is timed.

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::time::{Duration, Instant};

use gpu_gemm::{DataType, ElementType, Scalar, Shape, Transpose};

use super::Timing;
use super::cublas::{ColumnMajor, CublasError, library, succeeded, version_name};
use crate::data::{Matrix, Number, Problem, ProblemError, Stored};
use crate::run::Placed;

type Handle = *mut c_void;
type Create = unsafe extern "C" fn(handle: *mut Handle) -> c_int;
type Destroy = unsafe extern "C" fn(handle: Handle) -> c_int;
type DeviceSelect =
    unsafe extern "C" fn(handle: Handle, count: c_int, ordinals: *mut c_int) -> c_int;
/// `cublasXtSetBlockDim` and `cublasXtSetPinningMemMode`.
type Set = unsafe extern "C" fn(handle: Handle, value: c_int) -> c_int;
type GetProperty = unsafe extern "C" fn(property: c_int, value: *mut c_int) -> c_int;
/// `cublasXtSgemm` and `cublasXtDgemm`: they return when C is complete in host memory.
type Gemm<T> = unsafe extern "C" fn(
    handle: Handle,
    transpose_a: c_int,
    transpose_b: c_int,
    m: usize,
    n: usize,
    k: usize,
    alpha: *const T,
    a: *const T,
    lda: usize,
    b: *const T,
    ldb: usize,
    beta: *const T,
    c: *mut T,
    ldc: usize,
) -> c_int;

/// What its user chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Rows and columns of a block.
    block: c_int,
    /// Whether it page-locks the matrices.
    is_pinned: bool,
}

/// What is tried.
pub const SETTINGS: [Setting; 4] = [
    Setting {
        block: 2048,
        is_pinned: false,
    },
    Setting {
        block: 4096,
        is_pinned: false,
    },
    Setting {
        block: 2048,
        is_pinned: true,
    },
    Setting {
        block: 4096,
        is_pinned: true,
    },
];

/// cublasXt on some GPUs.
pub struct CublasXt {
    ordinals: Vec<c_int>,
    data_type: DataType,
    create: Create,
    destroy: Destroy,
    select: DeviceSelect,
    set_block: Set,
    set_pinning: Set,
    sgemm: Gemm<f32>,
    dgemm: Gemm<f64>,
    version: [c_int; 3],
    path: &'static Path,
}

impl CublasXt {
    /// Prepares cublasXt for the GPUs of these numbers.
    ///
    /// # Errors
    ///
    /// It is not found, has no function for the element type, or a GPU is there twice.
    pub fn load(ordinals: &[u32], data_type: DataType) -> Result<CublasXt, CublasError> {
        if !matches!(data_type, DataType::F32 | DataType::F64) {
            return Err(CublasError::XtType(data_type));
        }
        let is_twice = |(index, ordinal)| ordinals[..index].contains(ordinal);
        if ordinals.iter().enumerate().any(is_twice) {
            return Err(CublasError::OneGpuTwice);
        }
        let ordinals = ordinals.iter().map(|&ordinal| c_int::try_from(ordinal));
        let ordinals: Result<Vec<c_int>, _> = ordinals.collect();
        let library = library()?;
        // SAFETY: the types are those of `cublasXt.h` and `cublas_api.h`, unchanged since CUDA 11.
        let (mut cublas, property) = unsafe {
            let cublas = CublasXt {
                ordinals: ordinals.map_err(|_| CublasError::TooLarge)?,
                data_type,
                create: library.function("cublasXtCreate")?,
                destroy: library.function("cublasXtDestroy")?,
                select: library.function("cublasXtDeviceSelect")?,
                set_block: library.function("cublasXtSetBlockDim")?,
                set_pinning: library.function("cublasXtSetPinningMemMode")?,
                sgemm: library.function("cublasXtSgemm")?,
                dgemm: library.function("cublasXtDgemm")?,
                version: [0; 3],
                path: library.path(),
            };
            (
                cublas,
                library.function::<GetProperty>("cublasGetProperty")?,
            )
        };
        for (index, number) in (0..).zip(&mut cublas.version) {
            // SAFETY: the number outlives the call.
            succeeded("cublasGetProperty", unsafe { property(index, number) })?;
        }
        Ok(cublas)
    }

    /// Such as `12.9.1 from /usr/local/cuda/lib64/libcublas.so.12, cublasXt`.
    pub fn description(&self) -> String {
        let [major, minor, patch] = self.version;
        let version = version_name(major * 10_000 + minor * 100 + patch);
        format!("{version} from {}, cublasXt", self.path.display())
    }

    /// The name in reports, such as `cublasxt-fp32 (block 4096, pinned)`.
    pub fn name(&self, setting: Setting) -> String {
        let precision = match self.data_type {
            DataType::F64 => "fp64",
            _ => "fp32",
        };
        let pinned = if setting.is_pinned { ", pinned" } else { "" };
        format!("cublasxt-{precision} (block {}{pinned})", setting.block)
    }

    /// The time of a product, by the clock on the wall, after one that is not timed, in which
    /// memory is allocated and page-locked. `c` becomes its C.
    fn time<T: Number>(
        &self,
        setting: Setting,
        problem: &Problem<T>,
        stored: &Stored<'_, T>,
        c: &mut Matrix<T>,
    ) -> Result<Duration, CublasError> {
        // The caller's memory is page-locked no longer than this lives, so that others find it as
        // they would find it without cublasXt.
        let handle = Open::new(self, setting)?;
        let mut time = Duration::ZERO;
        for _ in 0..2 {
            c.elements_mut().copy_from_slice(problem.c.elements());
            let began = Instant::now();
            handle.multiply(problem, stored, c)?;
            time = began.elapsed();
        }
        Ok(time)
    }
}

/// A handle of cublasXt.
struct Open<'a> {
    cublas: &'a CublasXt,
    handle: Handle,
}

impl<'a> Open<'a> {
    fn new(cublas: &'a CublasXt, setting: Setting) -> Result<Open<'a>, CublasError> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the place of the handle outlives the call.
        succeeded("cublasXtCreate", unsafe { (cublas.create)(&mut handle) })?;
        let open = Open { cublas, handle };
        let mut ordinals = cublas.ordinals.clone();
        let count = c_int::try_from(ordinals.len()).map_err(|_| CublasError::TooLarge)?;
        // SAFETY: the handle is valid, and there are so many ordinals.
        unsafe {
            let selected = (cublas.select)(handle, count, ordinals.as_mut_ptr());
            succeeded("cublasXtDeviceSelect", selected)?;
            let set = (cublas.set_block)(handle, setting.block);
            succeeded("cublasXtSetBlockDim", set)?;
            let set = (cublas.set_pinning)(handle, c_int::from(setting.is_pinned));
            succeeded("cublasXtSetPinningMemMode", set)?;
        }
        Ok(open)
    }

    fn multiply<T: Number>(
        &self,
        problem: &Problem<T>,
        stored: &Stored<'_, T>,
        c: &mut Matrix<T>,
    ) -> Result<(), CublasError> {
        let read = |matrix: &Matrix<T>| Placed {
            start: matrix.elements().as_ptr().cast_mut().cast(),
            leading: matrix.leading(),
        };
        let written = Placed {
            leading: c.leading(),
            start: c.elements_mut().as_mut_ptr().cast(),
        };
        let matrices = [read(&stored.a), read(&stored.b), written];
        let product = (problem.shape(), problem.transposes);
        match (problem.alpha.scalar(), problem.beta.scalar()) {
            (Scalar::F32(alpha), Scalar::F32(beta)) if T::TYPE == ElementType::F32 => {
                let scalars = [alpha, beta];
                // SAFETY: the matrices are f32, and C is borrowed for this alone.
                succeeded("cublasXtSgemm", unsafe {
                    row_major(self.cublas.sgemm, self.handle, product, scalars, &matrices)?
                })
            }
            (Scalar::F64(alpha), Scalar::F64(beta)) => {
                let scalars = [alpha, beta];
                // SAFETY: as above, with f64.
                succeeded("cublasXtDgemm", unsafe {
                    row_major(self.cublas.dgemm, self.handle, product, scalars, &matrices)?
                })
            }
            _ => Err(CublasError::XtType(problem.data_type())),
        }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is valid and not used again.
        unsafe { (self.cublas.destroy)(self.handle) };
    }
}

/// Calls `gemm` on row-major matrices. Returns its status.
///
/// # Safety
///
/// `matrices` hold A, B and C of the product in host memory, and nothing else uses C.
unsafe fn row_major<T>(
    gemm: Gemm<T>,
    handle: Handle,
    (shape, transposes): (Shape, [Transpose; 2]),
    [alpha, beta]: [T; 2],
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
    let wide = |int: c_int| usize::try_from(int).map_err(|_| CublasError::TooLarge);
    // SAFETY: the pointers are those of the memory that the caller vouches for.
    Ok(unsafe {
        gemm(
            handle,
            operations[0],
            operations[1],
            wide(sides[0])?,
            wide(sides[1])?,
            wide(sides[2])?,
            &alpha,
            first.cast(),
            wide(leading[0])?,
            second.cast(),
            wide(leading[1])?,
            &beta,
            result.cast(),
            wide(leading[2])?,
        )
    })
}

/// Times of cublasXt on a problem, each taken between runs of something else.
pub struct Beside<'a, T: Number> {
    cublas: &'a CublasXt,
    problem: &'a Problem<T>,
    stored: Stored<'a, T>,
    /// The C of the last run, and of the last run with the fastest setting.
    c: [Matrix<T>; 2],
    fastest: Option<Setting>,
    /// Seconds, with the fastest setting.
    samples: Vec<f64>,
    error: Option<CublasError>,
}

impl<'a, T: Number> Beside<'a, T> {
    /// Before the first run.
    ///
    /// # Errors
    ///
    /// There is no memory for the matrices as they are stored.
    pub fn new(cublas: &'a CublasXt, problem: &'a Problem<T>) -> Result<Self, ProblemError> {
        Ok(Beside {
            cublas,
            problem,
            stored: problem.stored()?,
            c: [problem.c.clone(), problem.c.clone()],
            fastest: None,
            samples: Vec::new(),
            error: None,
        })
    }

    /// Runs once: the first time with each setting, from then on with the fastest. An error shows
    /// at the end.
    pub fn run(&mut self) {
        if self.error.is_none() {
            self.error = self.try_run().err();
        }
    }

    fn try_run(&mut self) -> Result<(), CublasError> {
        let fastest = self.fastest;
        let settings = SETTINGS.into_iter();
        let mut least = f64::INFINITY;
        for setting in settings.filter(|one| fastest.is_none_or(|fastest| fastest == *one)) {
            let c = &mut self.c[0];
            let time = self.cublas.time(setting, self.problem, &self.stored, c)?;
            if time.as_secs_f64() < least {
                least = time.as_secs_f64();
                self.fastest = Some(setting);
                self.c.swap(0, 1);
            }
        }
        self.samples.push(least);
        Ok(())
    }

    /// Its name, times and C; none if it has not run.
    ///
    /// # Errors
    ///
    /// cublasXt has failed.
    pub fn end(self) -> Result<Option<(String, Timing, Matrix<T>)>, CublasError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let [_, c] = self.c;
        let fastest = self.fastest.filter(|_| !self.samples.is_empty());
        Ok(fastest.map(|setting| {
            let name = self.cublas.name(setting);
            (name, Timing::new(self.samples, 1, 1), c)
        }))
    }
}
