//! Where and how often to run: options that one call and a benchmark share.

use clap::Args;
use gpu_gemm::DeviceChoice;

use crate::measure::Effort;
use crate::prove::Baseline;

/// Where and how often to run: the same for one call and for a benchmark.
#[derive(Debug, Args)]
pub(super) struct Running {
    /// The seed of the random data
    #[arg(long, default_value_t = 42)]
    pub(super) seed: u64,

    /// Where to run: `auto` (a GPU if there is one), `cuda`, `cuda:NUMBER` or `sim`
    #[arg(long, default_value_t = DeviceChoice::Auto)]
    pub(super) device: DeviceChoice,

    /// Timed runs [default: up to 20 on a GPU, 1 on the simulator, up to 10 of a CPU rung]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    runs: Option<u32>,

    /// Runs before the timed ones, besides those that prove the result [default: up to 3 on a
    /// GPU, else 0]
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    warmup: Option<u32>,

    /// What to compare times with, on a GPU
    #[arg(long, value_enum, default_value_t = Baseline::Auto)]
    pub(super) baseline: Baseline,
}

impl Running {
    pub(super) fn effort(&self) -> Effort {
        Effort {
            runs: self.runs,
            warmup: self.warmup,
        }
    }
}
