//! Runs one probe or planted error by name: `cargo run -p tests --bin probe -- NAME [sim|cuda]`.
//!
//! Apart from the tests, because a kernel that crashes takes its process's GPU context with it,
//! because what a kernel prints goes to its process's standard output, and for
//! `compute-sanitizer` to watch.

use std::process::ExitCode;

use device_kernels::PROBES;
use device_kernels::planted::PLANTED;
use device_kernels::print::print_lines;
use device_kernels::print_texts::print_texts;
use device_kernels::probe::{ProbeFn, one_block, scrambled};
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
    let mut probes = PROBES.iter().copied().flatten();
    if let Some(probe) = probes.find(|probe| probe.entry == name) {
        let input = (probe.input)();
        let expected = (probe.expected)(&probe.launch, &input);
        return Job::of(probe, &input, expected.len()).run(backend);
    }
    let mut planted = PLANTED.iter().copied();
    let (entry, function, threads, fill) = match planted.find(|(entry, ..)| *entry == name) {
        Some((entry, function, tool)) => (entry, function, 64, tool != Some("initcheck")),
        None if name == "print_lines" => ("print_lines", print_lines as ProbeFn, 2, true),
        None if name == "print_texts" => ("print_texts", print_texts as ProbeFn, 1, true),
        None => return Err(format!("There is no probe named {name}.")),
    };
    Job {
        entry,
        function,
        launch: &one_block(threads),
        input: &scrambled(),
        length: 64,
        fill,
    }
    .run(backend)
}
