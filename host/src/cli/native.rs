//! The options of the CPU rungs, which one call and a benchmark share.

use clap::Args;

use crate::cpu::{self, Algorithm, CUTOFF, Schedule, Threads};
use crate::rung::Rung;
use crate::select::Asked;

/// How CPU rungs run: the same for one call and for a benchmark.
#[derive(Debug, Args)]
pub struct NativeArguments {
    /// Threads of the CPU rungs that share out their work [default: as many as the machine has]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// How CPU rungs share out their work [default: static]
    #[arg(long, value_enum)]
    schedule: Option<Schedule>,

    /// The size that `cpu-strassen` no longer halves [default: 1024]
    #[arg(long)]
    cutoff: Option<usize>,
}

impl NativeArguments {
    /// What is chosen for the CPU rungs.
    pub fn settings(&self) -> cpu::Settings {
        cpu::Settings {
            threads: self.threads.map(usize::from),
            schedule: self.schedule.unwrap_or(Schedule::Static),
            cutoff: self.cutoff.unwrap_or(CUTOFF),
        }
    }

    /// A sentence for each option that changes nothing, since no such rung is among those that
    /// run.
    pub fn without_effect(&self, asked: &[Asked]) -> Vec<String> {
        let runs = |is_such: &dyn Fn(&Algorithm) -> bool| {
            asked.iter().any(|asked| match asked {
                Asked::Rung(Rung::Cpu(algorithm)) => is_such(algorithm),
                Asked::Rung(Rung::Gpu(_) | Rung::Auto(_)) | Asked::Auto => false,
            })
        };
        let shares =
            |algorithm: &Algorithm| matches!(algorithm.threads, Threads::Team | Threads::Scheduled);
        let is_scheduled = |algorithm: &Algorithm| algorithm.threads == Threads::Scheduled;
        let is_strassen = |algorithm: &Algorithm| algorithm.name == cpu::strassen::RUNG.name;
        let sentence = |option: &str, rungs: &str| {
            format!("{option} changes nothing here: it is for {rungs}, and none of those runs.")
        };
        let sharing = "CPU rungs that share out their work";
        let options = [
            (self.threads.is_some() && !runs(&shares)).then(|| sentence("--threads", sharing)),
            (self.schedule.is_some() && !runs(&is_scheduled))
                .then(|| sentence("--schedule", sharing)),
            (self.cutoff.is_some() && !runs(&is_strassen))
                .then(|| sentence("--cutoff", "the CPU rung `cpu-strassen`")),
        ];
        options.into_iter().flatten().collect()
    }
}
