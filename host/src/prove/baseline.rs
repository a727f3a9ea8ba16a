//! The libraries that times are compared with.

use gpu_gemm::{CudaDevice, DataType, Device};

use super::error::EvaluateError;
use super::request::{Baseline, Request};
use crate::measure::cublas::{Cublas, CublasError, Interface, Precision};

/// The libraries to compare with, each in the precision of the kernels and then, if requested, on
/// f32 rounded to TF32.
pub(super) fn yardsticks<'device>(
    device: &'device Device,
    request: &Request,
) -> Result<Vec<Cublas<'device>>, EvaluateError> {
    let interfaces: &[Interface] = match request.baseline {
        Baseline::None => return Ok(Vec::new()),
        Baseline::Auto | Baseline::Best => &Interface::ALL,
        Baseline::Cublas => &[Interface::Cublas],
        Baseline::CublasLt => &[Interface::CublasLt],
    };
    match device {
        Device::Cuda(device) => match load(device, interfaces, request) {
            Err(_) if request.baseline == Baseline::Auto => Ok(Vec::new()),
            loaded => Ok(loaded?),
        },
        _ if request.baseline == Baseline::Auto => Ok(Vec::new()),
        device if device.gpu().is_some() => Err(EvaluateError::BaselineOfSeveral),
        _ => Err(EvaluateError::BaselineWithoutGpu),
    }
}

fn load<'device>(
    device: &'device CudaDevice,
    interfaces: &[Interface],
    request: &Request,
) -> Result<Vec<Cublas<'device>>, CublasError> {
    let own = Precision::of(request.data_type)?;
    let mut precisions = vec![own];
    if request.tensor_cores && own == Precision::Of(DataType::F32) {
        precisions.push(Precision::Tf32);
    }
    let mut loaded = Vec::new();
    for precision in precisions {
        for &interface in interfaces {
            loaded.push(Cublas::load(device, interface, precision)?);
        }
    }
    Ok(loaded)
}
