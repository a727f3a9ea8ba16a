//! Random functions, on the host and as PTX.
//!
//!     differential check --functions 200         PTX on this CPU, all dialects; it reduces
//!                                                what differs
//!     differential pack --functions 10000 FILE   for a machine with a GPU
//!     differential run FILE --minutes 30         there: no Rust, no CUDA but the driver

use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Parser, Subcommand};
use cuda_builder::NvvmArch;
use differential::check::Fault;
use differential::compile::{Config, configs};
use differential::{check, generate, gpu, pack, reduce};

#[derive(Parser)]
#[command(about = "Runs random Rust functions on the host and as PTX, and compares")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compares PTX, run on this CPU, with the host
    Check {
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// The number of the first function of the seed
        #[arg(long, default_value_t = 0)]
        first: u64,
        #[arg(long, default_value_t = 100)]
        functions: u64,
        /// Functions that are compiled at a time
        #[arg(long, default_value_t = 50)]
        batch: u64,
        #[arg(long, value_delimiter = ',', default_values_t = [NvvmArch::Compute75, NvvmArch::Compute90, NvvmArch::Compute100])]
        archs: Vec<NvvmArch>,
        /// Show functions that differ as they are
        #[arg(long)]
        no_reduce: bool,
    },
    /// Compiles functions for a machine with a GPU
    Pack {
        file: PathBuf,
        #[arg(long, default_value_t = 1)]
        seed: u64,
        #[arg(long, default_value_t = 1000)]
        functions: u64,
        #[arg(long, default_value_t = 50)]
        batch: u64,
        #[arg(long, value_delimiter = ',', default_values_t = [NvvmArch::Compute75, NvvmArch::Compute90, NvvmArch::Compute100])]
        archs: Vec<NvvmArch>,
    },
    /// Runs packed functions on the GPU
    Run {
        file: PathBuf,
        #[arg(long, default_value_t = 60)]
        minutes: u64,
    },
}

fn main() -> Result<ExitCode> {
    match Arguments::parse().command {
        Command::Check {
            seed,
            first,
            functions,
            batch,
            archs,
            no_reduce,
        } => check_on_cpu(seed, first..first + functions, batch, &archs, !no_reduce),
        Command::Pack {
            file,
            seed,
            functions,
            batch,
            archs,
        } => {
            let mut writer = pack::Writer::create(&file)?;
            let mut refused = 0;
            for first in (0..functions).step_by(batch.max(1) as usize) {
                refused +=
                    writer.add(seed, first..functions.min(first + batch), &configs(&archs))?;
                println!(
                    "{} of {functions} functions, {refused} refused",
                    functions.min(first + batch)
                );
            }
            writer.finish()?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Run { file, minutes } => {
            let total = gpu::run(&file, Duration::from_secs(60 * minutes))?;
            println!(
                "{} functions x {} inputs, {}: {} differences",
                total.functions,
                total.inputs,
                total.configs.join(", "),
                total.differences
            );
            Ok(if total.differences == 0 {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            })
        }
    }
}

fn check_on_cpu(
    seed: u64,
    functions: Range<u64>,
    batch: u64,
    archs: &[NvvmArch],
    reduces: bool,
) -> Result<ExitCode> {
    let (mut compared, mut refused, mut different) = (0, 0, 0);
    for first in functions.clone().step_by(batch.max(1) as usize) {
        let last = functions.end.min(first + batch);
        let outcome = check::random(seed, first..last, &configs(archs))?;
        compared += outcome.compared;
        refused += outcome.refused.len();
        let show = |name: &str, fault, configs: &[Config]| -> Result<()> {
            let mut function = generate::function(seed, name.trim_start_matches('f').parse()?);
            if reduces {
                function = reduce::reduce(function, fault, &generate::inputs(seed), configs)?;
            }
            println!("{}", function.rust(name));
            Ok(())
        };
        for (name, reason) in &outcome.refused {
            println!("REFUSED: seed {seed}, {name}: {reason}");
            show(name, Fault::IsRefused, &configs(archs))?;
        }
        let mut seen = Vec::new();
        for difference in outcome.differences {
            different += 1;
            println!(
                "DIFFERENT: seed {seed}, {}, {}; for {:x?} the PTX says {:x?}, the host {:#x} {}",
                difference.name,
                difference.config,
                difference.input,
                difference.found,
                difference.expected,
                difference.problem
            );
            if difference.found.is_some() && !seen.contains(&difference.name) {
                show(&difference.name, Fault::Differs, &[difference.config])?;
                seen.push(difference.name);
            }
        }
    }
    let configs: Vec<String> = configs(archs).iter().map(ToString::to_string).collect();
    println!(
        "{compared} functions x 64 inputs, {}: {different} differences, {refused} refused",
        configs.join(", ")
    );
    Ok(if different == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
