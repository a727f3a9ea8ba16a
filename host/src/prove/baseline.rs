//! What times are compared with.

use gpu_gemm::{CudaDevice, DataType, Device, Devices, OpenClDevice};

use super::error::EvaluateError;
use super::request::{Baseline, Request};
use crate::measure::Origin;
use crate::measure::clblast::{ClBlast, ClBlastError};
use crate::measure::cublas::{Cublas, CublasError, Precision};
use crate::measure::cublas_xt::CublasXt;

/// What to compare with: nothing, or the library of the device's vendor or API.
pub(super) enum Yardsticks<'device> {
    None,
    /// The yardstick and then, if requested, cuBLAS on tensor cores. Not empty.
    Cublas(Vec<Cublas<'device>>),
    ClBlast(ClBlast<'device>),
    CublasXt(CublasXt),
}

impl<'device> Yardsticks<'device> {
    /// cuBLAS on a GPU.
    pub(super) fn cublas(&self) -> &[Cublas<'device>] {
        match self {
            Yardsticks::Cublas(all) => all,
            Yardsticks::None | Yardsticks::ClBlast(_) | Yardsticks::CublasXt(_) => &[],
        }
    }

    /// cublasXt on several GPUs.
    pub(super) fn cublas_xt(&self) -> Option<&CublasXt> {
        match self {
            Yardsticks::CublasXt(cublas) => Some(cublas),
            _ => None,
        }
    }

    /// Which cuBLAS it is.
    pub(super) fn description_of_cublas(&self) -> Option<String> {
        let of_one = self.cublas().first().map(Cublas::description);
        of_one.or_else(|| self.cublas_xt().map(CublasXt::description))
    }

    /// CLBlast on a device of OpenCL.
    pub(super) fn clblast(&self) -> Option<&ClBlast<'device>> {
        match self {
            Yardsticks::ClBlast(clblast) => Some(clblast),
            Yardsticks::None | Yardsticks::Cublas(_) | Yardsticks::CublasXt(_) => None,
        }
    }
}

pub(super) fn yardsticks<'device>(
    device: &'device Device,
    request: &Request,
) -> Result<Yardsticks<'device>, EvaluateError> {
    match (device, request.baseline) {
        (_, Baseline::None) => Ok(Yardsticks::None),
        (Device::Cuda(device), Baseline::Cublas) => Ok(cublas(device, request)?),
        (Device::Cuda(device), Baseline::Auto) => {
            Ok(cublas(device, request).unwrap_or(Yardsticks::None))
        }
        (Device::OpenCl(device), Baseline::ClBlast) => Ok(clblast(device, request)?),
        (Device::OpenCl(device), Baseline::Auto) => {
            Ok(clblast(device, request).unwrap_or(Yardsticks::None))
        }
        (Device::Several(devices), Baseline::Cublas) => match (devices.gpus(), request.origin) {
            (0, _) => Err(EvaluateError::BaselineWithoutGpu),
            (_, Origin::Host) => Ok(cublas_xt(devices, request)?),
            _ => Err(EvaluateError::BaselineOfSeveral),
        },
        (Device::Several(devices), Baseline::Auto)
            if devices.gpus() > 0 && request.origin == Origin::Host =>
        {
            Ok(cublas_xt(devices, request).unwrap_or(Yardsticks::None))
        }
        (Device::Simulator(_) | Device::OpenCl(_), Baseline::Cublas) => {
            Err(EvaluateError::BaselineWithoutGpu)
        }
        (Device::Simulator(_) | Device::Cuda(_) | Device::Several(_), Baseline::ClBlast) => {
            Err(EvaluateError::BaselineWithoutOpenCl)
        }
        (Device::Simulator(_) | Device::Several(_), Baseline::Auto) => Ok(Yardsticks::None),
    }
}

fn cublas<'device>(
    device: &'device CudaDevice,
    request: &Request,
) -> Result<Yardsticks<'device>, CublasError> {
    let precision = match request.data_type {
        DataType::F32 => Precision::Single,
        DataType::F64 => Precision::Double,
        DataType::BF16 => Precision::Bf16,
        DataType::F16 => Precision::F16,
        DataType::BF16_F32 => Precision::Bf16F32,
        DataType::F16_F32 => Precision::F16F32,
        other => return Err(CublasError::NoSuchType(other)),
    };
    let mut loaded = vec![Cublas::load(device, precision)?];
    if request.tensor_cores && precision == Precision::Single {
        loaded.push(Cublas::load(device, Precision::Tf32)?);
    }
    Ok(Yardsticks::Cublas(loaded))
}

fn cublas_xt<'device>(
    devices: &Devices,
    request: &Request,
) -> Result<Yardsticks<'device>, CublasError> {
    if request.shape_read().k == 0 {
        return Err(CublasError::XtNoProduct);
    }
    let gpus = (0..devices.count()).filter_map(|index| devices.gpu(index));
    let ordinals: Vec<u32> = gpus.map(|gpu| gpu.properties().ordinal).collect();
    let loaded = CublasXt::load(&ordinals, request.data_type)?;
    Ok(Yardsticks::CublasXt(loaded))
}

fn clblast<'device>(
    device: &'device OpenClDevice,
    request: &Request,
) -> Result<Yardsticks<'device>, ClBlastError> {
    if request.shape_read().k == 0 {
        return Err(ClBlastError::NoProduct);
    }
    if request.storage.batch > 1 {
        return Err(ClBlastError::NoBatch);
    }
    let loaded = ClBlast::load(device, request.data_type)?;
    Ok(Yardsticks::ClBlast(loaded))
}
