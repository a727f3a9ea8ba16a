//! The facts about a kernel, a shape and a GPU.

use gpu_gemm::gpu::Gpu;
use gpu_gemm::gpu_kernels::spec::{Staging, Unit, Variant};
use gpu_gemm::{Choice, DeviceFacts, Launch, Plan, PlanError, Shape};
use thiserror::Error;

use super::ceilings::Ceilings;
use super::resources::Resources;
use super::roofline::Roofline;
use crate::traffic::Traffic;

/// The question: what to explain.
#[derive(Clone, Debug)]
pub struct Question {
    pub choice: Choice,
    pub shape: Shape,
    /// Whether C is read: unless beta is zero.
    pub reads_c: bool,
    pub gpu: Gpu,
    /// Whether that GPU is present; otherwise its figures come from a data sheet.
    pub gpu_is_here: bool,
}

/// Why there is no explanation.
#[derive(Debug, Error)]
pub enum ExplainError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(
        "Kernel `{kernel}` needs tensor cores of compute capability {needed}, which `{gpu}` does not have."
    )]
    NoTensorCores {
        kernel: &'static str,
        gpu: String,
        needed: String,
    },
    #[error("No kernel multiplies {0}: no memory holds such matrices.")]
    NoChoice(Shape),
}

/// Everything about a kernel, a shape and a GPU.
#[derive(Clone, Debug)]
pub struct Explanation {
    pub(super) question: Question,
    /// For compact row-major matrices.
    pub(super) plan: Plan,
    pub(super) traffic: Traffic,
    /// Operations per byte that threads read from or write to global memory.
    pub(super) intensity: f64,
    pub(super) roofline: Roofline,
    /// The ceilings of the mainloop's instructions; known for f32 kernels.
    pub(super) ceilings: Option<Ceilings>,
    /// What ptxas reports, or why it reports nothing, and the remedy.
    pub(super) resources: Result<Resources, String>,
}

impl Explanation {
    /// Answers `question`.
    ///
    /// # Errors
    ///
    /// C is too large for any memory, or the GPU cannot run the kernel.
    pub fn of(question: &Question) -> Result<Explanation, ExplainError> {
        let capability = question.gpu.capability;
        Explanation::with(question, |variant| Resources::of(variant, capability))
    }

    /// The same with these resources, whose lookup may take long.
    pub(super) fn with(
        question: &Question,
        resources: impl Fn(&Variant) -> Result<Resources, String>,
    ) -> Result<Explanation, ExplainError> {
        let (gpu, variant) = (&question.gpu, question.choice.variant);
        let facts = DeviceFacts::of_gpu(gpu);
        if variant.unit != Unit::CudaCores && !facts.runs(variant) {
            return Err(ExplainError::NoTensorCores {
                kernel: variant.name,
                gpu: gpu.name.clone(),
                needed: DeviceFacts::needed_capability(variant),
            });
        }
        let plan = question.choice.plan_compact(question.shape, &facts)?;
        let traffic = Traffic::of_plan(&plan, question.reads_c);
        let intensity = traffic.intensity(question.shape);
        let roofline = Roofline::of(gpu, variant, intensity);
        Ok(Explanation {
            ceilings: Ceilings::of(variant, gpu, &roofline),
            resources: resources(variant),
            question: question.clone(),
            plan,
            traffic,
            intensity,
            roofline,
        })
    }

    pub(super) fn variant(&self) -> &'static Variant {
        self.question.choice.variant
    }

    /// CTAs of all launches of the kernel itself.
    pub(super) fn ctas(&self) -> u64 {
        let entry = self.variant().entry.name;
        let own = self.plan.launches().iter();
        own.filter(|launch| launch.kernel.name == entry)
            .map(Launch::ctas)
            .sum()
    }

    /// Whether tiles reach beyond C, or k-iterations beyond k: loads and stores there are
    /// predicated off, but the arithmetic is done.
    pub(super) fn is_ragged(&self) -> bool {
        let (variant, Shape { m, n, k }) = (self.variant(), self.question.shape);
        let beyond = |size: usize, tile: u32| !size.is_multiple_of(tile as usize);
        let tile = variant.tile;
        variant.staging == Staging::Tiles
            && (beyond(m, tile.m) || beyond(n, tile.n) || beyond(k, tile.k))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::explain::data_sheets;
    use gpu_gemm::DataType;

    /// A kernel on an H200, by its data sheet, at 4096 cubed, without its resources.
    pub(crate) fn explained(kernel: &str) -> Explanation {
        let names = [kernel.to_string()];
        let found = crate::select::kernels(&names, DataType::F32).unwrap();
        let question = Question {
            choice: Choice::even(found[0]),
            shape: Shape::cube(4096),
            reads_c: false,
            gpu: data_sheets::find("h200").unwrap(),
            gpu_is_here: false,
        };
        Explanation::with(&question, |_| Err("Not assembled.".to_string())).unwrap()
    }
}
