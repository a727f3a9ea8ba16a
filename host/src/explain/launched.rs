//! Launches and the division into tiles, as written to JSON.

use gpu_gemm::gpu::occupancy::WARP;
use gpu_gemm::gpu_kernels::spec::Staging;
use gpu_gemm::launch::Waits;
use gpu_gemm::{Launch, Plan};
use serde::Serialize;

/// A launch.
#[derive(Clone, Debug, Serialize)]
pub struct Launched {
    /// The entry point in the PTX.
    pub kernel: &'static str,
    /// CTAs along x and y.
    pub grid_x: u32,
    pub grid_y: u32,
    /// Threads of a CTA along x and y.
    pub block_x: u32,
    pub block_y: u32,
    pub dynamic_shared_bytes: u32,
    /// Whether it may begin before the previous launch has ended, and waits for that launch in
    /// the kernel.
    pub begins_early: bool,
}

/// The division of the work into tiles.
#[derive(Clone, Debug, Serialize)]
pub struct Cut {
    /// CTAs of all launches of the kernel itself.
    pub ctas: u64,
    /// Threads of a CTA.
    pub threads: u32,
    /// The block tile: what a CTA computes and stages at once.
    pub tile_m: u32,
    pub tile_n: u32,
    pub tile_k: u32,
    /// The thread tile.
    pub thread_m: u32,
    pub thread_n: u32,
    pub dynamic_shared_bytes: u32,
    /// Whether tiles reach beyond C, or k-iterations beyond k: loads and stores there are
    /// predicated off, but the arithmetic is done.
    pub ragged: bool,
}

impl Launched {
    pub(super) fn of(launch: &Launch) -> Launched {
        Launched {
            kernel: launch.kernel.name,
            grid_x: launch.grid.0,
            grid_y: launch.grid.1,
            block_x: launch.block.0,
            block_y: launch.block.1,
            dynamic_shared_bytes: launch.dynamic_shared_bytes,
            begins_early: launch.waits == Waits::InTheKernel,
        }
    }
}

impl Cut {
    pub(super) fn of(plan: &Plan) -> Cut {
        let (variant, shape) = (plan.variant(), plan.call().shape);
        let (tile, (thread_m, thread_n)) = (variant.tile, variant.thread_tile);
        let is_own = |launch: &&Launch| launch.kernel.name == variant.entry.name;
        let beyond = |size: usize, tile: u32| !size.is_multiple_of(tile as usize);
        Cut {
            ctas: plan
                .launches()
                .iter()
                .filter(is_own)
                .map(Launch::ctas)
                .sum(),
            threads: variant.block.threads(),
            tile_m: tile.m,
            tile_n: tile.n,
            tile_k: tile.k,
            thread_m,
            thread_n,
            dynamic_shared_bytes: variant.dynamic_shared_bytes(shape.k),
            ragged: variant.staging == Staging::Tiles
                && (beyond(shape.m, tile.m) || beyond(shape.n, tile.n) || beyond(shape.k, tile.k)),
        }
    }

    /// Warps of a CTA.
    pub(super) fn warps(&self) -> u32 {
        self.threads.div_ceil(WARP)
    }
}
