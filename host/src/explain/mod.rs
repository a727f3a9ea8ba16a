//! `explain`: what a kernel does for a shape, in numbers that follow from what it says of itself, and what a GPU makes of it.
//!
//! | file | what it does |
//! | --- | --- |
//! | `mod.rs` | the facts, as they are written to JSON |
//! | `resources.rs` | what ptxas says of the kernel |
//! | `sharing.rs` | how blocks share steps, and what is launched beside the kernel |
//! | `text.rs` | for people |
//! | `drawing.rs`, `canvas.rs` | matrices, tile and patch as a drawing in text |

mod canvas;
mod drawing;
mod resources;
mod sharing;
mod text;

use gpu_kernels::spec::{Kernel, Stages, Variant};
use serde::Serialize;
use thiserror::Error;

use crate::blas::{Call, Plan, Processor, Transpose};
use crate::device::launch::{self, bands};
use crate::element::DataType;
use crate::gpu::occupancy::{Needs, Occupancy, WARP, Waves};
use crate::gpu::{Gpu, data_sheets};
use crate::problem::Shape;
use crate::traffic::{self, By, Direction, Space, Traffic};

pub use resources::Resources;
pub use sharing::{Copied, Rest, Shared};
pub use text::write;

/// What to explain.
#[derive(Clone, Debug)]
pub struct Question {
    pub variant: &'static Variant,
    pub shape: Shape,
    /// Whether C is read: unless beta is zero.
    pub reads_c: bool,
    /// The data sheet to speak of, instead of the GPU that is here.
    pub gpu: Option<String>,
}

/// Why there is no explanation.
#[derive(Debug, Error)]
pub enum ExplainError {
    #[error(transparent)]
    TooLarge(#[from] launch::TooLarge),
    #[error("There is no data sheet of `{0}`.")]
    NoSuchGpu(String),
    #[error("`{kernel}` needs copies of A or B, which for {shape} are larger than any memory.")]
    CopiesTooLarge { kernel: &'static str, shape: Shape },
}

/// Everything about a kernel, a shape and a GPU. This is the layout of its JSON; what is not known is null.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The version of this layout: 1. Fields may be added to it; none changes or goes.
    pub schema: u32,
    /// The kernel's variant, such as `tiled-32`, and the rung that it belongs to.
    pub kernel: &'static str,
    pub rung: &'static str,
    pub idea: &'static str,
    pub source: &'static str,
    pub dtype: &'static str,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub launch: Launch,
    /// Copies of A and B that are made before, of matrices that lie row by row without gaps.
    pub copies: Vec<Copied>,
    /// How blocks share their steps; null for kernels whose blocks do not.
    pub sharing: Option<Shared>,
    /// What takes the last columns of C; null where the kernel takes them all.
    pub rest: Option<Rest>,
    pub traffic: Vec<Moved>,
    /// `2 * m * n * k`.
    pub operations: f64,
    /// Operations per byte that threads read from or write to global memory.
    pub intensity: f64,
    /// Operations per byte if every element moved once.
    pub compulsory_intensity: f64,
    pub roofline: Roofline,
    /// What ptxas says.
    pub resources: Option<Resources>,
    /// Why ptxas says nothing, and what to do.
    pub no_resources: Option<String>,
    pub occupancy: Option<Occupancy>,
    pub waves: Option<Waves>,
    #[serde(skip)]
    variant: &'static Variant,
}

/// How the work is cut.
#[derive(Clone, Debug, Serialize)]
pub struct Launch {
    /// Blocks along x and y of the kernel's first launch, and its launches.
    pub grid_x: u32,
    pub grid_y: u32,
    pub launches: usize,
    /// Blocks of all of its launches.
    pub blocks: u64,
    /// Threads of a block along x and y.
    pub block_x: u32,
    pub block_y: u32,
    /// What a block computes and stages at a time.
    pub tile_m: u32,
    pub tile_n: u32,
    pub tile_k: u32,
    /// What a thread computes of a tile.
    pub patch_m: u32,
    pub patch_n: u32,
    pub dynamic_shared_bytes: u32,
    /// Whether tiles reach beyond C, or steps beyond k: what lies there is guarded, but computed.
    pub ragged: bool,
}

/// Elements of one matrix that are moved in one way.
#[derive(Clone, Debug, Serialize)]
pub struct Moved {
    /// `copy`, `kernel` or `fix_up`: which of the launches.
    pub by: &'static str,
    /// `global` or `shared`.
    pub memory: &'static str,
    /// `read` or `write`.
    pub direction: &'static str,
    /// `A`, `B` or `C`; `P` for partial sums.
    pub matrix: char,
    /// For shapes that tiles divide.
    pub formula: String,
    /// For this shape.
    pub elements: u128,
    pub bytes: u128,
}

/// Where a kernel stands below the roofs of a GPU.
#[derive(Clone, Debug, Serialize)]
pub struct Roofline {
    pub gpu: String,
    /// Whether it is here, or known from its data sheet.
    pub gpu_is_here: bool,
    pub compute_capability: String,
    pub multiprocessors: u32,
    pub clock_mhz: u32,
    pub bandwidth_bytes_per_s: f64,
    /// Without tensor cores.
    pub peak_flops_per_s: f64,
    /// The intensity from which on arithmetic is the limit.
    pub ridge: f64,
    /// `memory` or `arithmetic`: what limits the kernel if no cache helps it.
    pub bound: &'static str,
    /// The speed that memory or arithmetic allows at that intensity, if no cache helps.
    pub attainable_flops_per_s: f64,
}

impl Explanation {
    /// Answers `question`: of the GPU that is here, unless the question names one or there is none.
    ///
    /// # Errors
    ///
    /// C is larger than any memory, or no GPU of that name is known.
    pub fn of(question: &Question, here: Option<Gpu>) -> Result<Explanation, ExplainError> {
        let (gpu, gpu_is_here) = match (&question.gpu, here) {
            (None, Some(gpu)) => (gpu, true),
            (asked, _) => {
                let key = asked.as_deref().unwrap_or(data_sheets::DEFAULT);
                let no_such = || ExplainError::NoSuchGpu(key.to_string());
                (data_sheets::find(key).ok_or_else(no_such)?, false)
            }
        };
        let (variant, shape) = (question.variant, question.shape);
        let data_type = DataType::of(variant);
        let (resources, no_resources) = match Resources::of(variant, gpu.capability) {
            Ok(resources) => (Some(resources), None),
            Err(why) => (None, Some(why)),
        };
        let dynamic_shared_bytes =
            variant.dynamic_shared_elements(shape.k) * data_type.bytes() as u32;
        let occupancy = resources.as_ref().map(|resources| {
            let needs = Needs {
                threads: variant.block.threads(),
                registers: resources.registers,
                shared_bytes: resources.static_shared_bytes + dynamic_shared_bytes,
            };
            Occupancy::of(gpu.capability, needs)
        });
        let plan = plan(variant, shape, &gpu, occupancy.as_ref())?;
        let launch = Launch::of(&plan)?;
        let traffic = Traffic::of_plan(&plan, question.reads_c);
        let intensity = traffic.intensity(shape, data_type.bytes());
        let waves = occupancy
            .as_ref()
            .and_then(|found| Waves::of(launch.blocks, found.blocks, gpu.multiprocessors));
        let kernel = kernel_of(variant);
        Ok(Explanation {
            schema: 1,
            kernel: variant.name,
            rung: kernel.map_or(variant.name, |kernel| kernel.name),
            idea: kernel.map_or("", |kernel| kernel.idea),
            source: kernel.map_or("", |kernel| kernel.source),
            dtype: data_type.name(),
            m: shape.m,
            n: shape.n,
            k: shape.k,
            launch,
            copies: plan.packs().map(Copied::of).collect(),
            sharing: Shared::of(&plan),
            rest: Rest::of(&plan),
            traffic: moved(&traffic, data_type.bytes()),
            operations: shape.flops(),
            intensity,
            compulsory_intensity: traffic::compulsory_intensity(
                shape,
                data_type.bytes(),
                question.reads_c,
            ),
            roofline: Roofline::of(&gpu, gpu_is_here, data_type, intensity),
            resources,
            no_resources,
            occupancy,
            waves,
            variant,
        })
    }

    /// Bytes that are moved in one way.
    fn bytes(&self, memory: &str, direction: &str) -> u128 {
        self.traffic
            .iter()
            .filter(|moved| moved.memory == memory && moved.direction == direction)
            .map(|moved| moved.bytes)
            .sum()
    }

    fn shape(&self) -> Shape {
        Shape {
            m: self.m,
            n: self.n,
            k: self.k,
        }
    }
}

/// What a product of matrices without gaps takes, its steps shared by as many blocks as the GPU holds at once: as far as is known, and
/// else by one of each multiprocessor.
fn plan(
    variant: &'static Variant,
    shape: Shape,
    gpu: &Gpu,
    occupancy: Option<&Occupancy>,
) -> Result<Plan<'static>, ExplainError> {
    let capability = gpu.capability;
    let resident = occupancy.map(|occupancy| (variant.entry, occupancy.blocks));
    let processor = Processor::new(
        10 * capability.major + capability.minor,
        gpu.multiprocessors,
        resident.into_iter().collect(),
    );
    let call = Call::compact(shape, Transpose::No, Transpose::No);
    Plan::new(variant, call, processor.even(variant, call)).ok_or(ExplainError::CopiesTooLarge {
        kernel: variant.name,
        shape,
    })
}

/// The rung of a variant.
fn kernel_of(variant: &Variant) -> Option<&'static Kernel> {
    let has = |kernel: &&&Kernel| {
        let mut variants = kernel.variants.iter();
        variants.any(|other| std::ptr::eq(other, variant))
    };
    gpu_kernels::KERNELS.iter().find(has).copied()
}

fn moved(traffic: &Traffic, element_bytes: usize) -> Vec<Moved> {
    let accesses = traffic.accesses.iter();
    let of = |access: &traffic::Access| Moved {
        by: match access.by {
            By::Copy => "copy",
            By::Kernel => "kernel",
            By::FixUp => gpu_kernels::fix_up::FIX_UP,
            By::Rest => "rest",
        },
        memory: match access.space {
            Space::Global => "global",
            Space::Shared => "shared",
        },
        direction: match access.direction {
            Direction::Read => "read",
            Direction::Write => "write",
        },
        matrix: access.matrix,
        formula: access.formula.clone(),
        elements: access.elements,
        bytes: access.elements * element_bytes as u128,
    };
    accesses.map(of).collect()
}

impl Launch {
    fn of(plan: &Plan<'_>) -> Result<Launch, launch::TooLarge> {
        let (variant, shape) = (plan.variant(), plan.call().shape);
        let grids: Vec<(u32, u32)> = match plan.grid() {
            Some(grid) => vec![grid],
            None => bands(variant, shape)?
                .iter()
                .map(|band| band.grid)
                .collect(),
        };
        let (grid_x, grid_y) = grids.first().copied().unwrap_or_default();
        let blocks = |&(x, y): &(u32, u32)| u64::from(x) * u64::from(y);
        let (block, tile) = (variant.block, variant.tile);
        let (patch_m, patch_n) = variant.patch();
        let beyond = |size: usize, tile: u32| !size.is_multiple_of(tile as usize);
        let element_bytes = DataType::of(variant).bytes() as u32;
        Ok(Launch {
            grid_x,
            grid_y,
            launches: grids.len(),
            blocks: grids.iter().map(blocks).sum(),
            block_x: block.x,
            block_y: block.y,
            tile_m: tile.m,
            tile_n: tile.n,
            tile_k: tile.k,
            patch_m,
            patch_n,
            dynamic_shared_bytes: variant.dynamic_shared_elements(shape.k) * element_bytes,
            ragged: variant.stages == Stages::Tiles
                && (beyond(shape.m, tile.m) || beyond(shape.n, tile.n) || beyond(shape.k, tile.k)),
        })
    }

    /// Warps of a block.
    fn warps(&self) -> u32 {
        (self.block_x * self.block_y).div_ceil(WARP)
    }
}

impl Roofline {
    fn of(gpu: &Gpu, gpu_is_here: bool, data_type: DataType, intensity: f64) -> Roofline {
        let peak = gpu.peak(data_type);
        let ridge = peak / gpu.bandwidth_bytes_per_s;
        Roofline {
            gpu: gpu.name.clone(),
            gpu_is_here,
            compute_capability: format!("{}.{}", gpu.capability.major, gpu.capability.minor),
            multiprocessors: gpu.multiprocessors,
            clock_mhz: gpu.clock_mhz,
            bandwidth_bytes_per_s: gpu.bandwidth_bytes_per_s,
            peak_flops_per_s: peak,
            ridge,
            bound: match intensity < ridge {
                true => "memory",
                false => "arithmetic",
            },
            attainable_flops_per_s: peak.min(intensity * gpu.bandwidth_bytes_per_s),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of an H200's data sheet, at 4096 cubed.
    pub(super) fn explained(kernel: &str) -> Explanation {
        let names = [kernel.to_string()];
        let found = crate::select::kernels(gpu_kernels::KERNELS, &names, DataType::F32).unwrap();
        let question = Question {
            variant: found[0],
            shape: Shape::cube(4096),
            reads_c: false,
            gpu: Some("h200".to_string()),
        };
        Explanation::of(&question, None).unwrap()
    }

    #[test]
    fn a_kernel_of_little_intensity_is_bound_by_memory_and_one_of_much_by_arithmetic() {
        let naive = explained("naive");
        assert_eq!(naive.roofline.bound, "memory");
        // A quarter operation a byte (and C), 4.8 TB/s.
        let attainable = naive.roofline.attainable_flops_per_s / 1e12;
        assert!((attainable - 1.2).abs() < 0.01, "{attainable}");
        let double = explained("double-buffer-sn8");
        assert_eq!(double.roofline.bound, "arithmetic");
        assert_eq!(
            double.roofline.attainable_flops_per_s,
            double.roofline.peak_flops_per_s
        );
    }

    #[test]
    fn the_gpu_that_is_here_is_spoken_of_unless_another_is_named() {
        let here = data_sheets::find("t4");
        let mut question = Question {
            variant: &gpu_kernels::naive::KERNEL.variants[0],
            shape: Shape::cube(16),
            reads_c: false,
            gpu: None,
        };
        let of = |question: &Question, here| Explanation::of(question, here).unwrap().roofline;
        let found = of(&question, here.clone());
        assert_eq!((found.gpu.as_str(), found.gpu_is_here), ("NVIDIA T4", true));
        let found = of(&question, None);
        assert_eq!(
            (found.gpu.as_str(), found.gpu_is_here),
            ("NVIDIA H200", false)
        );
        question.gpu = Some("a100".to_string());
        let found = of(&question, here);
        assert!(found.gpu.contains("A100") && !found.gpu_is_here);
    }

    #[test]
    fn every_kernel_is_explained_at_any_shape() {
        for variant in gpu_kernels::KERNELS
            .iter()
            .flat_map(|kernel| kernel.variants)
        {
            for (m, n, k) in [
                (1, 1, 1),
                (100_000, 3, 7),
                (3, 1 << 20, 5),
                (130, 257, 9000),
            ] {
                let shape = Shape { m, n, k };
                let gpu = data_sheets::find("h200").unwrap();
                let launch = Launch::of(&plan(variant, shape, &gpu, None).unwrap()).unwrap();
                assert!(launch.blocks > 0, "{}", variant.name);
                let drawn = drawing::draw(variant, shape);
                let widest = drawn.lines().map(|line| line.chars().count()).max();
                assert!(widest <= Some(118), "{} is {widest:?} wide", variant.name);
            }
        }
    }
}
