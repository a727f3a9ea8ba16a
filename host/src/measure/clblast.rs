//! CLBlast, loaded at run time, as the opponent on devices of OpenCL.
//!
//! Its C interface is that of `clblast_c.h`, version 1: matrices are `cl_mem`, of rows or columns,
//! with offsets in elements.

use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{env, ptr};

use thiserror::Error;

use gpu_gemm::device::opencl::OpenClMemory;
use gpu_gemm::{DataType, DeviceError, OpenClDevice, Scalar, Shape, Transpose};

use super::library::{Loaded, Unusable};
use crate::data::{Matrix, Number, Problem};

/// Names of the library; the first belongs to the interface that is called here.
const NAMES: [&str; 2] = ["libclblast.so.1", "libclblast.so"];

/// Why CLBlast cannot be measured.
#[derive(Debug, Error, PartialEq)]
pub enum ClBlastError {
    #[error(
        "There is no CLBlast (libclblast.so.1) on this machine. Install the package libclblast1, or set LIBCLBLAST_PATH to the library."
    )]
    NotFound,
    #[error("{} cannot be used as CLBlast: {reason}.", path.display())]
    Unusable { path: PathBuf, reason: String },
    #[error("CLBlast failed in {function} with status {status}.")]
    Failed {
        function: &'static str,
        status: c_int,
    },
    #[error("CLBlast does not multiply {0}.")]
    NoSuchType(DataType),
    /// With alpha = 0, a NaN in A or B makes its C NaN.
    #[error("CLBlast takes no k of 0, and reads A and B even if alpha is 0.")]
    NoProduct,
    #[error(
        "`--baseline clblast` does not go with `--batch`: CLBlast is timed on single products only. Leave one of them out."
    )]
    NoBatch,
}

impl From<Unusable> for ClBlastError {
    fn from(Unusable { path, reason }: Unusable) -> ClBlastError {
        ClBlastError::Unusable { path, reason }
    }
}

/// `CLBlastSgemm` and `CLBlastDgemm`.
type Gemm<T> = unsafe extern "C" fn(
    layout: c_int,
    transpose_a: c_int,
    transpose_b: c_int,
    m: usize,
    n: usize,
    k: usize,
    alpha: T,
    a: *mut c_void,
    a_offset: usize,
    lda: usize,
    b: *mut c_void,
    b_offset: usize,
    ldb: usize,
    beta: T,
    c: *mut c_void,
    c_offset: usize,
    ldc: usize,
    queue: *mut *mut c_void,
    event: *mut *mut c_void,
) -> c_int;

/// `CLBlastLayoutRowMajor`.
const ROW_MAJOR: c_int = 101;
/// `CLBlastTransposeNo`.
const NOT_TRANSPOSED: c_int = 111;
/// `CLBlastTransposeYes`.
const TRANSPOSED: c_int = 112;

/// The name in reports, which begins with `clblast-`.
pub fn name(data_type: DataType) -> &'static str {
    match data_type {
        DataType::F64 => "clblast-fp64",
        _ => "clblast-fp32",
    }
}

/// CLBlast on a device's queue.
pub struct ClBlast<'device> {
    device: &'device OpenClDevice,
    data_type: DataType,
    sgemm: Gemm<f32>,
    dgemm: Gemm<f64>,
    path: &'static Path,
}

/// A problem's matrices in a device's memory, as CLBlast takes them.
pub(super) struct Operands<'device, T> {
    a: Operand<'device, T>,
    b: Operand<'device, T>,
    c: Operand<'device, T>,
}

struct Operand<'device, T> {
    memory: OpenClMemory<'device, T>,
    /// Elements before the first, and from the start of a row to the start of the next.
    offset: usize,
    leading: usize,
}

impl<'device> ClBlast<'device> {
    /// Prepares CLBlast to launch on `device`'s queue.
    ///
    /// # Errors
    ///
    /// It is not found, or has no function for the element type.
    pub fn load(device: &'device OpenClDevice, data_type: DataType) -> Result<Self, ClBlastError> {
        if !matches!(data_type, DataType::F32 | DataType::F64) {
            return Err(ClBlastError::NoSuchType(data_type));
        }
        let library = library()?;
        // SAFETY: the types are those of `clblast_c.h`.
        let (sgemm, dgemm) = unsafe {
            (
                library.function::<Gemm<f32>>("CLBlastSgemm")?,
                library.function::<Gemm<f64>>("CLBlastDgemm")?,
            )
        };
        Ok(ClBlast {
            device,
            data_type,
            sgemm,
            dgemm,
            path: library.path(),
        })
    }

    /// The name in reports.
    pub fn name(&self) -> &'static str {
        name(self.data_type)
    }

    /// Where it was loaded from; it does not say its version.
    pub fn description(&self) -> String {
        format!("from {}", self.path.display())
    }

    /// Copies of a problem's matrices.
    pub(super) fn upload<T: Number>(
        &self,
        [a, b, c]: [&Matrix<T>; 3],
    ) -> Result<Operands<'device, T>, DeviceError> {
        let operand = |matrix: &Matrix<T>| -> Result<Operand<'device, T>, DeviceError> {
            Ok(Operand {
                memory: OpenClMemory::upload(self.device, matrix.buffer())?,
                offset: matrix.placement().offset,
                leading: matrix.leading(),
            })
        };
        Ok(Operands {
            a: operand(a)?,
            b: operand(b)?,
            c: operand(c)?,
        })
    }

    /// Launches `C = alpha * A * B + beta * C` and does not wait.
    ///
    /// # Errors
    ///
    /// There is no such function for the element type, or CLBlast fails.
    pub(super) fn gemm<T: Number>(
        &self,
        problem: &Problem<T>,
        operands: &Operands<'_, T>,
    ) -> Result<(), ClBlastError> {
        let product = (problem.shape(), problem.transposes);
        let queue = self.device.queue_handle();
        match (problem.alpha.scalar(), problem.beta.scalar()) {
            // SAFETY: the function multiplies f32, of which the operands are, on their queue.
            (Scalar::F32(alpha), Scalar::F32(beta)) => succeeded("CLBlastSgemm", unsafe {
                row_major(self.sgemm, queue, product, (alpha, beta), operands)
            }),
            // SAFETY: as above, with f64.
            (Scalar::F64(alpha), Scalar::F64(beta)) => succeeded("CLBlastDgemm", unsafe {
                row_major(self.dgemm, queue, product, (alpha, beta), operands)
            }),
            _ => Err(ClBlastError::NoSuchType(problem.data_type())),
        }
    }
}

impl<T: Number> Operands<'_, T> {
    /// Makes C what it was at first.
    pub(super) fn reset_c(&mut self, c: &Matrix<T>) -> Result<(), DeviceError> {
        self.c.memory.write(c.buffer())
    }

    /// C as it is now, in a matrix like `c`.
    pub(super) fn c(&self, c: &Matrix<T>) -> Result<Matrix<T>, DeviceError> {
        Ok(c.with_buffer(self.c.memory.download()?))
    }
}

/// Calls `gemm`. Returns its status.
///
/// # Safety
///
/// `gemm` multiplies elements `T` in memory of the queue's context.
unsafe fn row_major<E, T: Number>(
    gemm: Gemm<E>,
    mut queue: *mut c_void,
    (shape, [transpose_a, transpose_b]): (Shape, [Transpose; 2]),
    (alpha, beta): (E, E),
    Operands { a, b, c }: &Operands<'_, T>,
) -> c_int {
    let Shape { m, n, k } = shape;
    let operation = |transpose| match transpose {
        Transpose::No => NOT_TRANSPOSED,
        Transpose::Yes => TRANSPOSED,
    };
    // SAFETY: as the caller vouches. CLBlast compares sizes, offsets and leading dimensions with
    // those of the memory, and wants no event if it gets no place for one.
    unsafe {
        gemm(
            ROW_MAJOR,
            operation(transpose_a),
            operation(transpose_b),
            m,
            n,
            k,
            alpha,
            a.memory.handle(),
            a.offset,
            a.leading.max(1),
            b.memory.handle(),
            b.offset,
            b.leading.max(1),
            beta,
            c.memory.handle(),
            c.offset,
            c.leading.max(1),
            &mut queue,
            ptr::null_mut(),
        )
    }
}

fn succeeded(function: &'static str, status: c_int) -> Result<(), ClBlastError> {
    match status {
        0 => Ok(()),
        status => Err(ClBlastError::Failed { function, status }),
    }
}

/// The CLBlast that would be loaded, with its path, for people to read.
pub fn find() -> Option<&'static Path> {
    library().ok().map(Loaded::path)
}

/// The library, loaded on first use and kept: it keeps what it has compiled.
fn library() -> Result<&'static Loaded, ClBlastError> {
    static LIBRARY: OnceLock<Option<Loaded>> = OnceLock::new();
    let found = LIBRARY.get_or_init(|| {
        let named = env::var_os("LIBCLBLAST_PATH").map(PathBuf::from);
        // SAFETY: loading CLBlast has no requirements of its own.
        unsafe { Loaded::first_of(candidates(named)) }
    });
    found.as_ref().ok_or(ClBlastError::NotFound)
}

/// Where it is looked for: at `named` and nowhere else, or on the loader's own path.
fn candidates(named: Option<PathBuf>) -> impl Iterator<Item = PathBuf> {
    let named = named.filter(|path| !path.as_os_str().is_empty());
    let by_name = named.is_none().then(|| NAMES.map(PathBuf::from));
    named.into_iter().chain(by_name.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::CLBLAST;

    #[test]
    fn a_path_that_is_named_is_the_only_one() {
        let all = |named: Option<&str>| candidates(named.map(PathBuf::from)).collect::<Vec<_>>();
        assert_eq!(all(Some("/x/y.so")), [PathBuf::from("/x/y.so")]);
        for none in [None, Some("")] {
            assert_eq!(all(none), NAMES.map(PathBuf::from));
        }
    }

    #[test]
    fn names_are_those_by_which_reports_know_it() {
        for data_type in [DataType::F32, DataType::F64] {
            assert!(name(data_type).starts_with(CLBLAST));
        }
        assert_eq!(name(DataType::F64), "clblast-fp64");
    }
}
