//! The precision of a library, and the names of both in reports.

use std::ffi::c_int;

use gpu_gemm::{DataType, ElementType};

use super::status::CublasError;

/// The element types, and the precision that the library may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// `f32` and `f64`, computed as such in every step, without tensor cores for `f32`; `bf16` and
    /// `f16` and `e4m3` with sums in `f32`, on tensor cores, and `i8` with sums in `i32`.
    Of(DataType),
    /// `f32`, on tensor cores, which round A and B to 10 bits of mantissa (TF32): faster, with a
    /// different result.
    Tf32,
    /// `e4m3` with fast accumulation: sums have the 14 bits of the tensor cores.
    FastE4m3(DataType),
}

/// The suffix of the names of yardsticks that round f32 to TF32, and of those that accumulate
/// `e4m3` fast.
const TF32: &str = "tf32";
const FAST: &str = "fast";

/// Whether a yardstick of this name, such as `cublaslt-tf32`, is less accurate than others: rounds
/// f32 to TF32, or does not promote sums of e4m3.
pub fn is_less_accurate(name: &str) -> bool {
    [TF32, FAST].map(Some).contains(&name.rsplit('-').next())
}

/// Whether a yardstick of this name multiplies on tensor cores: all but `cublas-fp32` and
/// `cublaslt-fp32`.
pub fn is_on_tensor_cores(name: &str) -> bool {
    name.starts_with("cublas") && !name.ends_with("-fp32")
}

/// For people: `cuBLAS fp32` for `cublas-fp32`, `cublasLt tf32 (tensor cores)` for TF32.
pub fn title(name: &str) -> String {
    let (library, precision) = name.split_once('-').unwrap_or((name, ""));
    let library = match library {
        "cublas" => "cuBLAS",
        "cublaslt" => "cublasLt",
        other => other,
    };
    let unit = match precision {
        TF32 => " (tensor cores)",
        _ => "",
    };
    format!("{library} {precision}{unit}")
}

/// A mark behind a speed or a time of the faster library in a table: ` (Lt)` if that is cublasLt.
pub fn lt_mark(name: &str) -> &'static str {
    match name.starts_with("cublaslt") {
        true => " (Lt)",
        false => "",
    }
}

impl Precision {
    /// The default precision of a type.
    pub fn of(data_type: DataType) -> Result<Precision, CublasError> {
        match data_type.inputs {
            ElementType::I32 => Err(CublasError::NoSuchType(data_type)),
            _ => Ok(Precision::Of(data_type)),
        }
    }

    /// The types of A, B and C.
    fn data_type(self) -> DataType {
        match self {
            Precision::Of(data_type) | Precision::FastE4m3(data_type) => data_type,
            Precision::Tf32 => DataType::F32,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Precision::FastE4m3(DataType::E4M3_BF16) => "e4m3-bf16-fast",
            Precision::FastE4m3(_) => "e4m3-fast",
            Precision::Of(DataType::F32) => "fp32",
            Precision::Of(DataType::F64) => "fp64",
            Precision::Of(data_type) => data_type.name(),
            Precision::Tf32 => TF32,
        }
    }

    /// A `cublasComputeType_t`: `CUBLAS_COMPUTE_32F`, `_64F`, `_32I` or `_32F_FAST_TF32`.
    pub(super) fn compute_type(self) -> c_int {
        match self {
            Precision::Of(DataType::F64) => 70,
            Precision::Of(DataType::I8) => 72,
            Precision::Of(_) | Precision::FastE4m3(_) => 68,
            Precision::Tf32 => 77,
        }
    }

    /// The `cudaDataType_t`s of A and B, of C, and of alpha and beta.
    pub(super) fn data_types(self) -> [c_int; 3] {
        let DataType { inputs, c } = self.data_type();
        let scalars = match inputs {
            ElementType::F64 => ElementType::F64,
            ElementType::I8 => ElementType::I32,
            _ => ElementType::F32,
        };
        [inputs, c, scalars].map(cuda_data_type)
    }
}

/// `CUDA_R_32F`, `CUDA_R_64F`, `CUDA_R_16F`, `CUDA_R_16BF`, `CUDA_R_32I`, `CUDA_R_8I` and
/// `CUDA_R_8F_E4M3`.
fn cuda_data_type(element: ElementType) -> c_int {
    match element {
        ElementType::F32 => 0,
        ElementType::F64 => 1,
        ElementType::F16 => 2,
        ElementType::Bf16 => 14,
        ElementType::I32 => 10,
        ElementType::I8 => 3,
        ElementType::E4m3 => 28,
    }
}
