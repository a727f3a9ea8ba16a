//! Runs one probe or planted error by name: `cargo run -p tests --bin probe -- NAME [sim|cuda]`.
//!
//! It is a separate process because a crashing kernel loses its process's GPU context, because
//! kernels print to their process's standard output, and for `compute-sanitizer`.

use std::error::Error;
use std::process::ExitCode;

use device_kernels::PROBES;
use device_kernels::planted::PLANTED;
use device_kernels::print::{print_lines, print_texts};
use device_kernels::probe::{ProbeFn, one_block, scrambled};
use gpu_gemm::{Context, Device, DeviceChoice, WORKSPACE, gemm};
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
    if name == RAGGED_ROWS {
        return ragged_rows(backend).map_err(|error| error.to_string());
    }
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

/// Products of few rows, with rows of B that begin at multiples of 16 bytes but do not end at one,
/// in memory of exactly B's size: a float4 at its end would be past the end.
const RAGGED_ROWS: &str = "ragged_rows";

fn ragged_rows(backend: Backend) -> Result<Vec<u32>, Box<dyn Error>> {
    let choice = match backend {
        Backend::Gpu => DeviceChoice::Cuda(0),
        Backend::Simulator => DeviceChoice::Simulator,
        Backend::OpenCl => DeviceChoice::OpenCl(0),
    };
    let opened = Device::open(choice)?;
    let context = Context::new(&opened.device, WORKSPACE)?;
    let mut words = Vec::new();
    for (m, n, ldb, k) in [(1, 2110, 2112, 513), (3, 65, 68, 1031), (1, 130, 132, 64)] {
        let a = context.upload(&vec![1.0f32; m * k])?;
        let b = context.upload(&vec![1.0f32; (k - 1) * ldb + n])?;
        let mut c = context.upload(&vec![f32::NAN; m * n])?;
        // SAFETY: the buffers live until `download` has waited for the product, and nothing else
        // touches them.
        unsafe { gemm(&context, 1.0, &a, k, &b, ldb, 0.0, &mut c, n, m, n, k)? };
        let c = context.download(&c)?;
        if let Some(wrong) = c.iter().find(|sum| **sum != k as f32) {
            return Err(format!("{m} x {n} x {k}: {wrong} instead of {k}").into());
        }
        words.extend(c.into_iter().map(f32::to_bits));
    }
    Ok(words)
}
