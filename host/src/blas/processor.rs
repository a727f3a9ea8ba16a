//! What choosing a plan needs to know of where it will run.

use gpu_kernels::spec::Variant;

use super::call::Call;
use super::sharing::{Sharing, tiles};

/// A GPU, or the simulator, as plans see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Processor {
    /// Ten times the compute capability.
    pub architecture: i32,
    pub multiprocessors: u32,
    /// Blocks that a multiprocessor holds at once, by entry point.
    resident: Vec<(&'static str, u32)>,
}

/// Blocks that the simulator is taken to hold at once: few enough that tiles are split in small tests.
const SIMULATED: u32 = 6;

impl Processor {
    /// A GPU on which a multiprocessor holds so many blocks of kernels at once, by entry point.
    pub fn new(
        architecture: i32,
        multiprocessors: u32,
        resident: Vec<(&'static str, u32)>,
    ) -> Processor {
        Processor {
            architecture,
            multiprocessors,
            resident,
        }
    }

    /// The simulator.
    pub fn simulator() -> Processor {
        Processor::new(90, SIMULATED, Vec::new())
    }

    /// Blocks of a multiprocessor at once; one of a kernel that was not asked about.
    pub fn resident(&self, variant: &Variant) -> u32 {
        let mut resident = self.resident.iter();
        resident
            .find(|(entry, _)| *entry == variant.entry)
            .map_or(1, |(_, blocks)| *blocks)
    }

    /// Whether it runs kernels that stream: they live on asynchronous copies, which there are from compute capability 8.0 on.
    pub fn streams(&self) -> bool {
        self.architecture >= 80
    }

    /// How a kernel shares its steps if nothing else is known.
    pub fn even(&self, variant: &Variant, call: Call) -> Sharing {
        let tiles = tiles(call.shape, variant.tile);
        Sharing::even(tiles, self.blocks_at_once(variant))
    }

    /// Blocks of the whole GPU at once.
    pub fn blocks_at_once(&self, variant: &Variant) -> u32 {
        (self.resident(variant) * self.multiprocessors).max(1)
    }
}
