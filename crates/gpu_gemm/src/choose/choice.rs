//! A kernel and the decomposition of its tiles: this is what is chosen, tuned and named in
//! reports.

use gpu_kernels::spec::{Grid, Variant};

use crate::call::{Call, Shape, Transpose};
use crate::gpu::DeviceFacts;
use crate::plan::decomposition::tiles;
use crate::plan::{Decomposition, Plan, PlanError, takes_batch};
use crate::text::plural;

/// A kernel, and how its CTAs divide the tiles if it is a stream-K kernel.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    pub variant: &'static Variant,
    /// `None` for a kernel that is not stream-K, and if the tiles are divided evenly.
    pub decomposition: Option<Decomposition>,
}

impl Choice {
    /// A kernel whose tiles are divided evenly among as many CTAs as the device holds at once.
    pub fn even(variant: &'static Variant) -> Choice {
        Choice {
            variant,
            decomposition: None,
        }
    }

    /// The plan of a call by this choice.
    ///
    /// # Errors
    ///
    /// As for [`Plan::new`].
    pub fn plan(&self, call: Call, facts: &DeviceFacts) -> Result<Plan, PlanError> {
        let even = || {
            let ctas = facts.ctas_at_once(self.variant);
            match self.variant.grid {
                Grid::Persistent => Decomposition::stream_k(ctas),
                Grid::MappedTiles => Decomposition::DATA_PARALLEL,
                Grid::PersistentStreamK => {
                    let of_one = tiles(call.shape, self.variant.tile);
                    let all = of_one.saturating_mul(call.batch.count);
                    // All products in one launch, if they fill the GPU.
                    match takes_batch(self.variant, &call) && all >= ctas as usize {
                        true => Decomposition::rounds(all, ctas),
                        false => Decomposition::persistent(of_one, ctas),
                    }
                }
                _ => {
                    let (computed, _) = call.computed_by(self.variant);
                    Decomposition::even(tiles(computed.shape, self.variant.tile), ctas)
                }
            }
        };
        let decomposition = self.decomposition.unwrap_or_else(even);
        Plan::new(self.variant, call, decomposition)
    }

    /// The plan of a product of matrices that have no gaps and are not transposed. If alpha is 0,
    /// so is `shape.k`.
    ///
    /// # Errors
    ///
    /// As for [`Plan::new`].
    pub fn plan_compact(&self, shape: Shape, facts: &DeviceFacts) -> Result<Plan, PlanError> {
        let element = self.variant.types.a;
        let call = Call::compact(shape, Transpose::No, Transpose::No, element);
        self.plan(call, facts)
    }

    /// The choice that a plan runs.
    pub fn of(plan: &Plan) -> Choice {
        Choice {
            variant: plan.variant(),
            decomposition: plan.decomposition(),
        }
    }

    /// The name for users and files: `tiled-32`, or `async-pipeline (264 CTAs, 3 data-parallel
    /// waves)`.
    pub fn description(&self) -> String {
        let name = self.variant.name;
        let Some(decomposition) = self.decomposition else {
            return name.to_string();
        };
        let ctas = plural(decomposition.ctas, "CTA");
        match decomposition.data_parallel_waves {
            0 => format!("{name} ({ctas})"),
            waves => format!("{name} ({ctas}, {})", plural(waves, "data-parallel wave")),
        }
    }
}

impl PartialEq for Choice {
    /// Whether both are the same entry of the same table, with the same decomposition.
    fn eq(&self, other: &Choice) -> bool {
        std::ptr::eq(self.variant, other.variant) && self.decomposition == other.decomposition
    }
}
