//! The libraries that times are compared with.

use gpu_gemm::{CudaDevice, DataType, Device, ElementType};

use super::error::EvaluateError;
use super::request::{Baseline, Request};
use crate::measure::cublas::{Cublas, CublasError, Interface, Precision};

/// The libraries to compare with, each in the precision of the kernels and then, if requested,
/// with f32 rounded to TF32; of e4m3 with accurate sums and with fast ones.
pub(super) fn yardsticks(device: &Device, request: &Request) -> Result<Vec<Cublas>, EvaluateError> {
    let interfaces: &[Interface] = match request.baseline {
        Baseline::None => return Ok(Vec::new()),
        // Neither library has them.
        _ if request.storage.groups.is_some() || request.scales.is_some() => return Ok(Vec::new()),
        // cuBLAS has none.
        Baseline::Auto | Baseline::Best if request.epilogue.is_some() => &[Interface::CublasLt],
        Baseline::Auto | Baseline::Best => &Interface::ALL,
        Baseline::Cublas => &[Interface::Cublas],
        Baseline::CublasLt => &[Interface::CublasLt],
    };
    let loaded = match device.one_gpu() {
        Some(gpu) => load(gpu, interfaces, request).map_err(EvaluateError::from),
        None if device.gpu().is_some() => Err(EvaluateError::BaselineOfSeveral),
        None => Err(EvaluateError::BaselineWithoutGpu),
    };
    match request.baseline {
        Baseline::Auto => Ok(loaded.unwrap_or_default()),
        _ => loaded,
    }
}

fn load(
    device: &CudaDevice,
    interfaces: &[Interface],
    request: &Request,
) -> Result<Vec<Cublas>, CublasError> {
    let own = Precision::of(request.data_type)?;
    let mut precisions = vec![own];
    if request.tensor_cores && own == Precision::Of(DataType::F32) {
        precisions.push(Precision::Tf32);
    }
    let is_of_e4m3 = request.data_type.inputs == ElementType::E4m3;
    if is_of_e4m3 {
        precisions.push(Precision::FastE4m3(request.data_type));
    }
    let mut loaded = Vec::new();
    for precision in precisions {
        for &interface in interfaces {
            // cuBLAS itself has no e4m3.
            if is_of_e4m3 && interface == Interface::Cublas {
                continue;
            }
            loaded.push(Cublas::load(device, interface, precision)?);
        }
    }
    match loaded.is_empty() {
        true => Err(CublasError::NoSuchType(request.data_type)),
        false => Ok(loaded),
    }
}
