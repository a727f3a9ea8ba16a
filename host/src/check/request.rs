//! The request.

use clap::ValueEnum;
use gpu_gemm::gpu_kernels::spec::Allocation;
use gpu_gemm::{Call, DataType, Shape, Variant};

use crate::cpu;
use crate::data::{Data, Granularity, Storage};
use crate::epilogue::Epilogue;
use crate::measure::{Effort, Origin};
use crate::report::Corner;
use crate::run::pitch;
use crate::rung::Rung;
use crate::source::Source;

/// The libraries to compare times with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Baseline {
    /// As `best` on a GPU where there is a cuBLAS that multiplies the element type
    Auto,
    /// Nothing
    None,
    /// cuBLAS in its default math mode, as PyTorch calls it; an error where there is none
    Cublas,
    /// cublasLt with the fastest of the first eight algorithms that its heuristics propose; an error
    /// where there is none
    #[value(name = "cublaslt")]
    CublasLt,
    /// Both, of which the faster counts; an error where there is none
    Best,
}

impl Baseline {
    /// Whether a library was requested by name, which only a GPU has.
    pub fn needs_gpu(self) -> bool {
        !matches!(self, Baseline::Auto | Baseline::None)
    }

    /// Whether it is one library alone.
    pub fn is_one(self) -> bool {
        matches!(self, Baseline::Cublas | Baseline::CublasLt)
    }
}

/// The request: what to multiply, and how to check and time it.
#[derive(Clone, Debug)]
pub struct Request {
    pub rungs: Vec<Rung>,
    pub data_type: DataType,
    pub shape: Shape,
    pub alpha: f64,
    pub beta: f64,
    /// How the matrices are stored for GPU kernels; matrices from files have no padding.
    pub storage: Storage,
    pub source: Source,
    pub seed: u64,
    /// The corner of each result to report, if any.
    pub corner: Option<Corner>,
    pub effort: Effort,
    /// Where the matrices are before a timed product on several devices.
    pub origin: Origin,
    pub baseline: Baseline,
    /// Whether cuBLAS with f32 rounded to TF32 is timed beside cuBLAS: for context, since it
    /// rounds more.
    pub tensor_cores: bool,
    /// Settings of the CPU rungs.
    pub cpu: cpu::Settings,
    /// The epilogue, which the rungs' kernels have.
    pub epilogue: Option<Epilogue>,
    /// What has a scale of its own, where A and B are quantised.
    pub scales: Option<Granularity>,
}

impl Request {
    /// `C = A * B` of normal random numbers, with defaults for everything else.
    pub fn new(
        rungs: Vec<Rung>,
        data_type: impl Into<DataType>,
        shape: Shape,
        seed: u64,
    ) -> Request {
        Request {
            rungs,
            data_type: data_type.into(),
            shape,
            alpha: 1.0,
            beta: 0.0,
            storage: Storage::COMPACT,
            source: Source::Filled(Data::Normal),
            seed,
            corner: None,
            effort: Effort::default(),
            origin: Origin::default(),
            baseline: Baseline::Auto,
            tensor_cores: false,
            cpu: cpu::Settings::default(),
            epilogue: None,
            scales: None,
        }
    }

    /// The shape, with k = 0 if alpha is 0, so that neither A nor B is read.
    pub(super) fn shape_read(&self) -> Shape {
        match self.alpha {
            0.0 => Shape { k: 0, ..self.shape },
            _ => self.shape,
        }
    }

    /// The call as a kernel executes it.
    pub(super) fn call(&self, variant: &Variant) -> Call {
        let (storage, shape, element) = (self.storage, self.shape_read(), variant.types.a);
        match variant.allocation {
            Allocation::AsGiven => storage.call(shape, element),
            Allocation::Pitched => {
                let leading = |columns| pitch(columns, element.bytes());
                let one = Call::spaced(shape, storage.transposes, element, leading);
                one.repeated(storage.batch, element)
            }
        }
    }

    /// Operations a second, for all products of a batch, if a run takes `seconds`; `None` if no
    /// product is computed, since alpha or k is 0.
    pub(super) fn flops_per_s(&self, seconds: f64) -> Option<f64> {
        let flops = self.shape_read().flops() * self.storage.batch as f64;
        (flops > 0.0).then_some(flops / seconds)
    }

    /// The shape of the array of all C: of three dimensions for a batch.
    pub(super) fn shape_of_c(&self) -> Vec<usize> {
        let (Shape { m, n, .. }, batch) = (self.shape, self.storage.batch);
        let is_batch = matches!(&self.source, Source::Files(files) if files.is_batch());
        match is_batch || batch > 1 {
            true => vec![batch, m, n],
            false => vec![m, n],
        }
    }

    /// Whether there are only CPU rungs, which need no device.
    pub fn is_native(&self) -> bool {
        self.rungs.iter().all(|rung| rung.choice().is_none())
    }
}
