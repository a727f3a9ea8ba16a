//! The contenders, everything that is timed; and their launches, each on the next copies of the
//! matrices.

use std::cell::Cell;

use gpu_gemm::gpu::{Gpu, Properties};
use gpu_gemm::{
    Allocated, Backend, CudaDevice, DataType, DeviceError, ElementType, Mark, Plan, Variant,
};
use thiserror::Error;

use crate::data::Number;
use crate::measure::cublas::{Cublas, CublasError, Precision, Prepared};
use crate::measure::limits::Implausible;
use crate::measure::nvml::Probe;
use crate::measure::pace::Pace;
use crate::run::{Resident, RunError};

/// Why nothing was measured.
#[derive(Debug, Error)]
pub enum MeasureError {
    #[error(transparent)]
    Run(RunError),
    #[error(transparent)]
    Cublas(#[from] CublasError),
    #[error(transparent)]
    Implausible(#[from] Implausible),
}

impl<E: Into<RunError>> From<E> for MeasureError {
    fn from(error: E) -> Self {
        MeasureError::Run(error.into())
    }
}

/// A kernel or a library to time.
pub enum Contender<'a> {
    Kernel(&'a Plan),
    Cublas(&'a Cublas),
}

impl Contender<'_> {
    pub(super) fn name(&self) -> &str {
        match self {
            Contender::Kernel(plan) => plan.variant().name,
            Contender::Cublas(cublas) => cublas.name(),
        }
    }

    /// The kernel; none for a library.
    pub(super) fn variant(&self) -> Option<&'static Variant> {
        match self {
            Contender::Kernel(plan) => Some(plan.variant()),
            Contender::Cublas(_) => None,
        }
    }

    /// Whether it rounds to TF32: it would slow down kernels on CUDA cores after it.
    pub(super) fn is_tf32_library(&self) -> bool {
        matches!(self, Contender::Cublas(cublas) if cublas.precision() == Precision::Tf32)
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
                Precision::Of(_) | Precision::Tf32 | Precision::FastE4m3(_) => None,
            },
        }
    }
}

/// A contender, ready to run.
pub(in crate::measure) struct Runner<'a> {
    pub(super) name: &'a str,
    /// The index of its set of copies.
    pub(super) copies: usize,
    pub(super) runs_apart: bool,
    pub(super) work: Work<'a>,
}

pub(super) enum Work<'a> {
    Kernel(&'a Plan),
    Cublas(Prepared<'a>),
}

impl Runner<'_> {
    pub(super) fn choose(&mut self, algorithm: usize) {
        if let Work::Cublas(prepared) = &mut self.work {
            prepared.choose(algorithm);
        }
    }
}

/// State that the launches of all contenders share.
pub(in crate::measure) struct Bench<'a, 'r, T: Number> {
    pub(super) resident: &'a mut Resident<'r, T>,
    pub(super) backend: &'a dyn Backend,
    pub gpu: Option<&'a CudaDevice>,
    pub(super) pace: Pace,
    pub probe: Option<Probe>,
    pub(super) workspace: Allocated,
    /// The number of copies of the matrices, which launches use in turn.
    pub(super) count: usize,
    pub(super) launches: Cell<usize>,
}

impl<T: Number> Bench<'_, '_, T> {
    /// Launches a contender on the least recently used copies.
    pub fn launch(&self, runner: &Runner<'_>) -> Result<(), MeasureError> {
        self.launches.set(self.launches.get() + 1);
        let number = self.launches.get() % self.count;
        let copies = self.resident.copies(runner.copies);
        let product = copies.product(number);
        match &runner.work {
            Work::Kernel(plan) => {
                let bindings = product.bindings(copies.workspace(self.workspace.start()));
                // SAFETY: the copies have the layout for which the plan was made, and outlive
                // `measure`'s last wait; so does the workspace, which is as large as any plan
                // requires, or has the ends of the groups.
                unsafe { gpu_gemm::run(self.backend, plan, &bindings)? };
            }
            // SAFETY: as above.
            Work::Cublas(prepared) => unsafe { prepared.launch(&product)? },
        }
        Ok(())
    }

    /// Marks the end of everything launched so far.
    pub fn mark(&self) -> Result<Mark, DeviceError> {
        self.backend.mark()
    }
}
