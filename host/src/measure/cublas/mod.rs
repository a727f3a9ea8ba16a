//! NVIDIA's cuBLAS and cublasLt, loaded at run time: the usual libraries to call instead of our
//! kernels.
//!
//! Each is called as programs call it by default. cuBLAS is `cublasGemmEx` in its default math
//! mode, which for f32 and f64 is IEEE arithmetic, and for 16 bits allows reductions in 16 bits,
//! as PyTorch does. cublasLt (`lt`) is the fastest of the first eight algorithms that its
//! heuristics propose, with a workspace of 64 MiB. It alone has epilogues.

mod column_major;
mod loaded;
mod lt;
mod precision;
mod status;

use std::env;
use std::ffi::{c_int, c_longlong, c_void};
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;

use gpu_gemm::{Backend, CudaDevice, CudaStream, Product, Scalar};

use self::column_major::ColumnMajor;
use self::loaded::Loaded;
use self::lt::{Lt, LtEpilogue, LtProduct};
use self::status::{Handle, succeeded, supported};
use super::places;
use crate::epilogue::Epilogue;
pub use precision::{Precision, is_less_accurate, is_on_tensor_cores, lt_mark, title};
pub use status::{CublasError, Interface};

/// `CUBLAS_GEMM_DEFAULT`.
const DEFAULT_ALGORITHM: c_int = -1;

type Create = unsafe extern "C" fn(handle: *mut Handle) -> c_int;
type Destroy = unsafe extern "C" fn(handle: Handle) -> c_int;
type GetVersion = unsafe extern "C" fn(handle: Handle, version: *mut c_int) -> c_int;
type SetStream = unsafe extern "C" fn(handle: Handle, stream: *mut c_void) -> c_int;
/// `cublasGemmEx`.
#[rustfmt::skip]
type Gemm = unsafe extern "C" fn(
    handle: Handle, transpose_a: c_int, transpose_b: c_int, m: c_int, n: c_int, k: c_int,
    alpha: *const c_void, a: *const c_void, a_type: c_int, lda: c_int,
    b: *const c_void, b_type: c_int, ldb: c_int,
    beta: *const c_void, c: *mut c_void, c_type: c_int, ldc: c_int,
    compute_type: c_int, algorithm: c_int,
) -> c_int;
/// `cublasGemmStridedBatchedEx`.
#[rustfmt::skip]
type GemmBatched = unsafe extern "C" fn(
    handle: Handle, transpose_a: c_int, transpose_b: c_int, m: c_int, n: c_int, k: c_int,
    alpha: *const c_void, a: *const c_void, a_type: c_int, lda: c_int, stride_a: c_longlong,
    b: *const c_void, b_type: c_int, ldb: c_int, stride_b: c_longlong,
    beta: *const c_void, c: *mut c_void, c_type: c_int, ldc: c_int, stride_c: c_longlong,
    batch_count: c_int, compute_type: c_int, algorithm: c_int,
) -> c_int;

/// cuBLAS or cublasLt on a device's stream.
pub struct Cublas {
    device: CudaDevice,
    handle: Handle,
    destroy: Destroy,
    calls: Calls,
    precision: Precision,
    name: String,
    version: c_int,
    path: &'static Path,
}

enum Calls {
    Cublas { gemm: Gemm, batched: GemmBatched },
    CublasLt(Lt),
}

impl Cublas {
    /// Prepares it to launch on `device`'s stream.
    ///
    /// # Errors
    ///
    /// The library is not found, or cannot be initialised.
    pub fn load(
        device: &CudaDevice,
        interface: Interface,
        precision: Precision,
    ) -> Result<Self, CublasError> {
        let of_device = |error: gpu_gemm::DeviceError| CublasError::Device(error.to_string());
        let _entered = device.enter().map_err(of_device)?;
        let library = library()?;
        // SAFETY: the types are those of cuBLAS's header, unchanged since CUDA 11.
        let (create, destroy, get_version, set_stream) = unsafe {
            (
                library.function::<Create>("cublasCreate_v2")?,
                library.function::<Destroy>("cublasDestroy_v2")?,
                library.function::<GetVersion>("cublasGetVersion_v2")?,
                library.function::<SetStream>("cublasSetStream_v2")?,
            )
        };
        let calls = match interface {
            // SAFETY: as above.
            Interface::Cublas => unsafe {
                Calls::Cublas {
                    gemm: library.function::<Gemm>("cublasGemmEx")?,
                    batched: library.function::<GemmBatched>("cublasGemmStridedBatchedEx")?,
                }
            },
            Interface::CublasLt => {
                let workspace = CudaStream::of(device).allocate(lt::WORKSPACE_BYTES);
                let workspace = workspace.map_err(of_device)?;
                Calls::CublasLt(Lt::load(library, workspace)?)
            }
        };
        let mut handle = ptr::null_mut();
        // SAFETY: the device's primary context, which cuBLAS uses, is current.
        succeeded("cublasCreate", unsafe { create(&mut handle) })?;
        let mut cublas = Cublas {
            device: device.clone(),
            handle,
            destroy,
            calls,
            precision,
            name: format!("{}-{}", interface.name(), precision.name()),
            version: 0,
            path: library.path(),
        };
        // SAFETY: the handle is valid, and the stream lives as long as the device.
        unsafe {
            succeeded("cublasGetVersion", get_version(handle, &mut cublas.version))?;
            let stream = device.stream().as_inner().cast();
            succeeded("cublasSetStream", set_stream(handle, stream))?;
        }
        Ok(cublas)
    }

    /// Its precision.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// The name in reports: `cublas-fp32`, or `cublaslt-bf16-f32`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its version and path, such as `12.9.1 from /usr/local/cuda/lib64/libcublas.so.12`.
    pub fn description(&self) -> String {
        let version = version_name(self.version);
        format!("{version} from {}", self.path.display())
    }

    /// Which of the two it is.
    pub fn interface(&self) -> Interface {
        match self.calls {
            Calls::Cublas { .. } => Interface::Cublas,
            Calls::CublasLt(_) => Interface::CublasLt,
        }
    }

    /// A product, ready to be launched on matrices with the same layout and alignment; with an
    /// epilogue, whose bias is at this address.
    ///
    /// # Errors
    ///
    /// There is no function or no algorithm for it, or it is too large.
    pub(crate) fn prepare(
        &self,
        product: &Product,
        epilogue: Option<(Epilogue, *const c_void)>,
    ) -> Result<Prepared<'_>, CublasError> {
        let column_major = ColumnMajor::new(product)?;
        let lt = match &self.calls {
            Calls::Cublas { .. } if epilogue.is_some() => {
                return Err(CublasError::NoSuchEpilogue(Interface::Cublas));
            }
            Calls::Cublas { .. } => None,
            Calls::CublasLt(lt) => {
                let matrices = [product.b, product.a, product.c];
                let alignments = matrices.map(|stored| lt::alignment(stored.start as usize));
                let epilogue = epilogue.map(|(epilogue, bias)| LtEpilogue::new(epilogue, bias));
                let product = (&column_major, epilogue.transpose()?);
                Some(lt.product(self.handle, self.precision, product, alignments)?)
            }
        };
        Ok(Prepared {
            cublas: self,
            column_major,
            scalars: [product.alpha, product.beta],
            lt,
        })
    }
}

/// A product that cuBLAS is ready to launch.
pub(crate) struct Prepared<'a> {
    cublas: &'a Cublas,
    column_major: ColumnMajor,
    /// Alpha and beta.
    scalars: [Scalar; 2],
    lt: Option<LtProduct<'a>>,
}

/// The address of a scalar.
fn pointer(scalar: &Scalar) -> *const c_void {
    match scalar {
        Scalar::F32(scalar) => ptr::from_ref(scalar).cast(),
        Scalar::F64(scalar) => ptr::from_ref(scalar).cast(),
        Scalar::I32(scalar) => ptr::from_ref(scalar).cast(),
    }
}

impl Prepared<'_> {
    /// The number of algorithms to choose from: one for cuBLAS, which chooses itself.
    pub fn algorithms(&self) -> usize {
        self.lt.as_ref().map_or(1, LtProduct::algorithms)
    }

    /// Selects the algorithm with this number for later launches.
    pub fn choose(&mut self, algorithm: usize) {
        if let Some(lt) = &mut self.lt {
            lt.choose(algorithm);
        }
    }

    /// Launches `C = alpha * A * B + beta * C`, of all products of a batch, and does not wait.
    ///
    /// # Safety
    ///
    /// The matrices of `product` live until the launch has ended, and have the layout and
    /// alignment for which this was prepared.
    pub unsafe fn launch(&self, product: &Product) -> Result<(), CublasError> {
        let Prepared {
            cublas,
            column_major,
            scalars,
            lt,
        } = self;
        let [a, b, c] =
            [product.a, product.b, product.c].map(|stored| stored.start.cast::<c_void>());
        let [alpha, beta] = scalars.each_ref().map(pointer);
        let precision = cublas.precision;
        let ([inputs, output, _], compute) = (precision.data_types(), precision.compute_type());
        let ColumnMajor {
            sides: [m, n, k],
            operations: [first, second],
            leading: [ld_first, ld_second, ld_result],
            products,
            strides: [from, by, to],
        } = *column_major;
        match &cublas.calls {
            Calls::Cublas { gemm, .. } if products == 1 => {
                // SAFETY: the caller vouches for the memory behind the pointers; cuBLAS copies the
                // scalars.
                #[rustfmt::skip]
                let status = unsafe {
                    gemm(
                        cublas.handle, first, second, m, n, k, alpha, b, inputs, ld_first, a, inputs, ld_second,
                        beta, c, output, ld_result, compute, DEFAULT_ALGORITHM,
                    )
                };
                supported("cublasGemmEx", status)
            }
            Calls::Cublas { batched, .. } => {
                // SAFETY: as above.
                #[rustfmt::skip]
                let status = unsafe {
                    batched(
                        cublas.handle, first, second, m, n, k, alpha, b, inputs, ld_first, from,
                        a, inputs, ld_second, by, beta, c, output, ld_result, to,
                        products, compute, DEFAULT_ALGORITHM,
                    )
                };
                supported("cublasGemmStridedBatchedEx", status)
            }
            Calls::CublasLt(_) => {
                let lt = lt.as_ref().ok_or(CublasError::NoAlgorithm)?;
                let stream = cublas.device.stream().as_inner().cast();
                // SAFETY: as above.
                unsafe { lt.launch(cublas.handle, [alpha, beta], [b, a], c, stream) }
            }
        }
    }
}

impl Drop for Cublas {
    fn drop(&mut self) {
        if let Ok(_entered) = self.device.enter() {
            // SAFETY: the handle is valid and not used again.
            unsafe { (self.destroy)(self.handle) };
        }
    }
}

/// `120901` is 12.9.1.
fn version_name(version: c_int) -> String {
    let (major, minor, patch) = (version / 10_000, version / 100 % 100, version % 100);
    format!("{major}.{minor}.{patch}")
}

/// The path of the cuBLAS that would be loaded.
pub fn find() -> Option<&'static Path> {
    library().ok().map(Loaded::path)
}

/// The library, loaded on first use and kept: a GPU's context holds its code. cublasLt is loaded
/// with it, since cuBLAS depends on it.
fn library() -> Result<&'static Loaded, CublasError> {
    static LIBRARY: OnceLock<Option<Loaded>> = OnceLock::new();
    let found = LIBRARY.get_or_init(|| {
        // SAFETY: loading NVIDIA's library has no requirements of its own.
        unsafe { Loaded::first_of(places::candidates(|name| env::var_os(name), Path::new("/"))) }
    });
    found.as_ref().ok_or(CublasError::NotFound)
}
