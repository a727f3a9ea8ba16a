//! The contenders: everything that is timed.

use gpu_gemm::gpu::{Gpu, Properties};
use gpu_gemm::gpu_kernels::spec::{Allocation, Unit};
use gpu_gemm::{DataType, ElementType, Plan};

use crate::measure::cublas::{Cublas, Precision};

/// A kernel or a library to time.
pub enum Contender<'a> {
    Kernel(&'a Plan),
    Cublas(&'a Cublas<'a>),
}

impl Contender<'_> {
    pub(super) fn name(&self) -> &str {
        match self {
            Contender::Kernel(plan) => plan.variant().name,
            Contender::Cublas(cublas) => cublas.name(),
        }
    }

    /// The operations a second that it cannot exceed, if known.
    pub(super) fn peak(&self, properties: &Properties) -> Option<f64> {
        let gpu = Gpu::of(properties)?;
        match self {
            Contender::Kernel(plan) => Some(gpu.peak_of(plan.variant())),
            Contender::Cublas(cublas) => match cublas.precision() {
                Precision::Of(DataType::F32) => Some(gpu.peak(ElementType::F32)),
                // Tensor cores multiply f64 twice as fast as CUDA cores.
                Precision::Of(DataType::F64) => Some(2.0 * gpu.peak(ElementType::F64)),
                Precision::Of(_) | Precision::Tf32 => None,
            },
        }
    }

    /// Whether it rounds to TF32: it would slow down kernels on CUDA cores after it.
    pub(super) fn is_tf32_library(&self) -> bool {
        match self {
            Contender::Kernel(_) => false,
            Contender::Cublas(cublas) => cublas.precision() == Precision::Tf32,
        }
    }

    /// Whether it is a kernel on tensor cores.
    pub(super) fn is_on_tensor_cores(&self) -> bool {
        match self {
            Contender::Kernel(plan) => plan.variant().unit != Unit::CudaCores,
            Contender::Cublas(_) => false,
        }
    }

    /// How its matrices are allocated.
    pub(super) fn allocation(&self) -> Allocation {
        match self {
            Contender::Kernel(plan) => plan.variant().allocation,
            Contender::Cublas(_) => Allocation::AsGiven,
        }
    }
}
