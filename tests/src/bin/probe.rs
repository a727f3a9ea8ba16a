//! Runs one probe or planted error by name: `cargo run -p tests --bin probe -- NAME [sim|cuda]`.
//!
//! Apart from the tests, because a kernel that crashes takes its process's GPU context with it,
//! because what a kernel prints goes to its process's standard output, and for
//! `compute-sanitizer` to watch.

use std::process::ExitCode;

use device_kernels::PROBES;
use device_kernels::planted::PLANTED;
use device_kernels::print::print_lines;
use device_kernels::probe::{Launch, one_block, scrambled};
use tests::devices::Backend;
use tests::probes::Job;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (name, backend) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [name] | [name, "cuda"] => (name, Backend::Gpu),
        [name, "sim"] => (name, Backend::Simulator),
        _ => {
            eprintln!("error: usage: probe NAME [sim|cuda]");
            return ExitCode::from(2);
        }
    };
    match run(name, backend) {
        Ok(words) => {
            eprintln!("{name}: {} words", words.len());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(name: &str, backend: Backend) -> Result<Vec<u32>, String> {
    let input = scrambled();
    let job = |entry, function, launch: &Launch, fill| {
        Job {
            entry,
            function,
            launch,
            input: &input,
            length: 64,
            fill,
        }
        .run(backend)
    };
    if name == "print_lines" {
        return job("print_lines", print_lines, &one_block(2), true);
    }
    if let Some(&(entry, function, tool)) = PLANTED.iter().find(|(entry, ..)| *entry == name) {
        return job(entry, function, &one_block(64), tool != Some("initcheck"));
    }
    let probe = PROBES
        .iter()
        .copied()
        .flatten()
        .find(|probe| probe.entry == name)
        .ok_or_else(|| format!("There is no probe named {name}."))?;
    let input = (probe.input)();
    Job {
        entry: probe.entry,
        function: probe.function,
        launch: &probe.launch,
        input: &input,
        length: (probe.expected)(&probe.launch, &input).len(),
        fill: true,
    }
    .run(backend)
}
