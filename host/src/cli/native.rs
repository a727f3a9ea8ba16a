//! The options of the CPU rungs, which one call and a benchmark share.

use clap::Args;

use crate::cpu::{self, CUTOFF, Schedule};

/// How CPU rungs run: the same for one call and for a benchmark.
#[derive(Debug, Args)]
pub struct NativeArguments {
    /// Threads of the CPU rungs that share out their work [default: as many as the machine has]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// How CPU rungs share out their work [default: static]
    #[arg(long, value_enum)]
    schedule: Option<Schedule>,

    /// The least number of pieces of C that a free thread takes, unless `--schedule` is static
    /// [default: 1]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    chunk: Option<u32>,

    /// The size up to which `cpu-strassen` does not halve a product [default: 1024]
    #[arg(long)]
    cutoff: Option<usize>,
}

impl NativeArguments {
    /// The settings of the CPU rungs.
    pub fn settings(&self) -> cpu::Settings {
        cpu::Settings {
            threads: self.threads.map(usize::from),
            schedule: self.schedule.unwrap_or(Schedule::Static),
            chunk: self.chunk.map_or(1, |pieces| pieces as usize),
            cutoff: self.cutoff.unwrap_or(CUTOFF),
        }
    }
}
