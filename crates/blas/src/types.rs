//! The types of matrices, as cuBLAS and as `gpu_gemm` name them.

use std::ffi::c_int;

use gpu_gemm::{DataType, ElementType};

/// `CUDA_R_32F`, `CUDA_R_64F`, `CUDA_R_16F` and `CUDA_R_16BF`.
pub const F32: c_int = 0;
pub const F64: c_int = 1;
pub const F16: c_int = 2;
pub const BF16: c_int = 14;

/// The types of A and B, and of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Types {
    F32,
    F64,
    Bf16,
    Bf16F32,
    F16,
    F16F32,
}

impl Types {
    pub fn data_type(self) -> DataType {
        let (inputs, c) = match self {
            Types::F32 => (ElementType::F32, ElementType::F32),
            Types::F64 => (ElementType::F64, ElementType::F64),
            Types::Bf16 => (ElementType::Bf16, ElementType::Bf16),
            Types::Bf16F32 => (ElementType::Bf16, ElementType::F32),
            Types::F16 => (ElementType::F16, ElementType::F16),
            Types::F16F32 => (ElementType::F16, ElementType::F32),
        };
        DataType { inputs, c }
    }
}
