//! What times are compared with.

use gpu_gemm::{CudaDevice, Device, ElementType};

use super::error::EvaluateError;
use super::request::{Baseline, Request};
use crate::measure::cublas::{Cublas, CublasError, Precision};

/// What to compare with: nothing, or cuBLAS as the yardstick and then, if requested, cuBLAS on
/// tensor cores.
pub(super) fn yardsticks<'device>(
    device: &'device Device,
    request: &Request,
) -> Result<Vec<Cublas<'device>>, EvaluateError> {
    let asked = request.baseline == Baseline::Cublas;
    let load = |device: &'device CudaDevice| {
        let precision = match request.data_type {
            ElementType::F32 => Precision::Single,
            ElementType::F64 => Precision::Double,
            ElementType::Bf16 => Precision::Bf16,
            ElementType::F16 => Precision::F16,
            ElementType::I32 => return Err(CublasError::NoSuchType(request.data_type)),
        };
        let mut loaded = vec![Cublas::load(device, precision)?];
        if request.tensor_cores && precision == Precision::Single {
            loaded.push(Cublas::load(device, Precision::Tf32)?);
        }
        Ok(loaded)
    };
    match (device, request.baseline) {
        (_, Baseline::None) => Ok(Vec::new()),
        (Device::Several(_), _) if asked => Err(EvaluateError::BaselineOfSeveral),
        (Device::Simulator(_) | Device::OpenCl(_), _) if asked => {
            Err(EvaluateError::BaselineWithoutGpu)
        }
        (Device::Simulator(_) | Device::OpenCl(_) | Device::Several(_), _) => Ok(Vec::new()),
        (Device::Cuda(device), _) => match load(device) {
            Ok(loaded) => Ok(loaded),
            Err(error) if asked => Err(error.into()),
            Err(_) => Ok(Vec::new()),
        },
    }
}
