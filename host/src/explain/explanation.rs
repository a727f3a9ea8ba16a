//! The facts about a kernel, a shape and a GPU.

use gpu_gemm::gpu::Gpu;
use gpu_gemm::gpu::occupancy::{Occupancy, Waves};
use gpu_gemm::gpu_kernels::spec::{Unit, Variant};
use gpu_gemm::plan::Panel;
use gpu_gemm::{Choice, DeviceFacts, PlanError, Shape, Split, gpu_kernels};
use serde::Serialize;
use thiserror::Error;

use super::auto::Auto;
use super::ceilings::Ceilings;
use super::launched::{Cut, Launched};
use super::resources::{self, Resources};
use super::roofline::Roofline;
use super::split::Divided;
use super::work::{Copied, Remainder, Work};
use crate::traffic::{self, Access, Traffic};

/// The question: what to explain.
#[derive(Clone, Debug)]
pub struct Question {
    pub choice: Choice,
    /// For `auto`, the reason of its choice.
    pub auto: Option<Auto>,
    pub shape: Shape,
    /// Whether C is read: unless beta is zero.
    pub reads_c: bool,
    pub gpu: Gpu,
    /// Whether that GPU is present; otherwise its figures come from a data sheet.
    pub gpu_is_here: bool,
    /// The division of a larger product among devices, if the shape is one part of it.
    pub split: Option<Split>,
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

/// Everything about a kernel, a shape and a GPU. This is the layout of its JSON; an unknown value
/// is null.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The version of this layout: 2. Fields may be added to it; none is changed or removed.
    pub schema: u32,
    /// The kernel's variant, such as `tiled-32`, and the rung that it belongs to.
    pub kernel: &'static str,
    pub rung: &'static str,
    /// For `auto`, its choice and the reason; else null.
    pub auto: Option<Auto>,
    pub idea: &'static str,
    pub source: &'static str,
    pub dtype: &'static str,
    /// The unit that multiplies: `CUDA cores` or `tensor cores`.
    pub unit: &'static str,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// The product that this is a part of, on several devices; absent for one device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<Divided>,
    /// All launches, in order, for compact row-major matrices.
    pub launches: Vec<Launched>,
    pub cut: Cut,
    /// Copies of A and B made before the kernel runs.
    pub copies: Vec<Copied>,
    /// Whether the kernel computes the transposed product, whose few rows are the columns of C.
    pub is_transposed: bool,
    /// How CTAs divide the tiles; null for kernels that are not stream-K.
    pub stream_k: Option<Work>,
    /// The kernel of the N remainder; null where one kernel computes all columns.
    pub n_remainder: Option<Remainder>,
    pub traffic: Vec<Access>,
    /// `2 * m * n * k`.
    pub operations: f64,
    /// Operations per byte that threads read from or write to global memory.
    pub intensity: f64,
    /// Operations per byte if every element moved once.
    pub compulsory_intensity: f64,
    pub roofline: Roofline,
    /// The ceilings of the mainloop's instructions; known for f32 kernels.
    pub ceilings: Option<Ceilings>,
    /// The resources that ptxas reports.
    pub resources: Option<Resources>,
    /// If ptxas reports nothing, the reason and the remedy.
    pub no_resources: Option<String>,
    /// CTAs of the kernel on an SM.
    #[serde(serialize_with = "resources::occupancy_json")]
    pub occupancy: Option<Occupancy>,
    #[serde(serialize_with = "resources::waves_json")]
    pub waves: Option<Waves>,
    #[serde(skip)]
    pub(super) variant: &'static Variant,
}

impl Explanation {
    /// Answers `question`.
    ///
    /// # Errors
    ///
    /// C is too large for any memory, or the GPU cannot run the kernel.
    pub fn of(question: &Question) -> Result<Explanation, ExplainError> {
        let gpu = &question.gpu;
        let (variant, shape) = (question.choice.variant, question.shape);
        let data_type = variant.types.data_type();
        let facts = DeviceFacts::of_gpu(gpu);
        if variant.unit != Unit::CudaCores && !facts.runs(variant) {
            return Err(ExplainError::NoTensorCores {
                kernel: variant.name,
                gpu: gpu.name.clone(),
                needed: DeviceFacts::needed_capability(variant),
            });
        }
        let (resources, no_resources) = match Resources::of(variant, gpu.capability) {
            Ok(resources) => (Some(resources), None),
            Err(why) => (None, Some(why)),
        };
        let occupancy = resources.as_ref().map(|resources| {
            let dynamic = variant.dynamic_shared_bytes(shape.k);
            resources::occupancy(gpu.capability, variant, resources, dynamic)
        });
        let plan = (question.choice).plan_compact(shape, &facts)?;
        let cut = Cut::of(&plan);
        let traffic = Traffic::of_plan(&plan, question.reads_c);
        let intensity = traffic.intensity(shape);
        let waves = occupancy
            .as_ref()
            .and_then(|found| Waves::of(cut.ctas, found.ctas, gpu.sms));
        let kernel = gpu_kernels::kernel_of(variant);
        let roofline = Roofline::of(gpu, question.gpu_is_here, variant, intensity);
        Ok(Explanation {
            schema: 2,
            kernel: variant.name,
            auto: question.auto.clone(),
            rung: kernel.map_or(variant.name, |kernel| kernel.name),
            idea: kernel.map_or("", |kernel| kernel.idea),
            source: kernel.map_or("", |kernel| kernel.source),
            dtype: data_type.name(),
            unit: variant.unit.name(),
            m: shape.m,
            n: shape.n,
            k: shape.k,
            split: question.split.as_ref().map(|split| {
                Divided::of(split, data_type.inputs.bytes(), roofline.peak_flops_per_s)
            }),
            launches: plan.launches().iter().map(Launched::of).collect(),
            cut,
            copies: plan
                .panels()
                .iter()
                .flat_map(|panel| panel.copies().map(|copy| Copied::of(panel, copy)))
                .collect(),
            is_transposed: plan.panels().iter().any(Panel::is_transposed),
            stream_k: Work::of(&plan),
            n_remainder: Remainder::of(&plan),
            traffic: traffic.accesses,
            operations: shape.flops(),
            intensity,
            compulsory_intensity: traffic::compulsory_intensity(shape, data_type, question.reads_c),
            ceilings: Ceilings::of(variant, gpu, &roofline),
            roofline,
            resources,
            no_resources,
            occupancy,
            waves,
            variant,
        })
    }

    pub(super) fn shape(&self) -> Shape {
        Shape::new(self.m, self.n, self.k)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::explain::data_sheets;

    /// A kernel on an H200, by its data sheet, at 4096 cubed.
    pub(crate) fn explained(kernel: &str) -> Explanation {
        let names = [kernel.to_string()];
        let found =
            crate::select::kernels(gpu_kernels::KERNELS, &names, gpu_gemm::DataType::F32).unwrap();
        let question = Question {
            choice: Choice::even(found[0]),
            auto: None,
            shape: Shape::cube(4096),
            reads_c: false,
            gpu: data_sheets::find("h200").unwrap(),
            gpu_is_here: false,
            split: None,
        };
        Explanation::of(&question).unwrap()
    }
}
