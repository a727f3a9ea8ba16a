//! The program, from its command line to its report.
//!
//! All ranks read the same command line; rank 0 alone opens files, prints and judges. What only
//! rank 0 can know (the shape of the user's files) it tells the others before anything is
//! multiplied.

mod asked;
mod files;
mod place;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::Parser;
use gpu_gemm::{Bf16, DataType, ElementType, F16};
use host::bench::Provenance;
use host::cli::exit::{FAILED, PASSED, Stop, USAGE, failed, finish, note, usage};
use host::cli::matrices::Matrices;
use host::memory;
use host::output::{self, make_folder};
use verification::cpu;

use asked::{agreed, request, settings};
use files::Files;
use place::{hosts, place};

use crate::Element;
use crate::arguments::{Arguments, Format, ModelArguments};
use crate::comm::{self, Ranks};
use crate::constants;
use crate::evaluate::{Request, evaluate, multiplier};
use crate::faults::{disagreement, end_the_job, end_the_job_on_panic, say_line};
use crate::layout::panel;
use crate::local::Place;
use crate::model::Machine;
use crate::plots;
use crate::predict::Question;
use crate::record::Report;
use crate::table;

/// Runs this process as one rank of the job that `mpirun` started, or as the only one.
pub fn main() -> ExitCode {
    let command: Vec<OsString> = std::env::args_os().collect();
    let arguments = Arguments::try_parse_from(&command);
    if let Ok(arguments) = &arguments {
        // The library that this variable is for uses all cores by default, and so would each rank.
        const VARIABLE: &str = "MATMUL_NUM_THREADS";
        if std::env::var_os(VARIABLE).is_none() {
            let threads = settings(arguments).threads.unwrap_or(1).to_string();
            // SAFETY: this process has no other thread yet.
            unsafe { std::env::set_var(VARIABLE, threads) };
        }
    }
    let is_launched = comm::is_launched();
    let Some(_job) = comm::start() else {
        eprintln!("error: MPI has been initialized already, so this process cannot be a rank.");
        return ExitCode::from(FAILED);
    };
    end_the_job_on_panic();
    let world = Ranks::all();
    let command: Vec<String> = command
        .iter()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let is_first = world.rank() == 0;
    if let Some(why) = disagreement(&world, &command) {
        if is_first {
            eprintln!("error: {why}");
        }
        return ExitCode::from(USAGE);
    }
    let code = match arguments {
        Ok(arguments) => run(&world, &arguments, is_launched),
        Err(error) if is_first => {
            // Nobody may be there to read it: the exit code still says it.
            let _ = error.print();
            error.exit_code() as u8
        }
        Err(_) => PASSED,
    };
    // What is wrong for all is said, and answered for, by rank 0.
    ExitCode::from(if is_first { code } else { PASSED })
}

fn run(world: &Ranks, arguments: &Arguments, is_launched: bool) -> u8 {
    if arguments.show_ranks {
        let host = comm::host_name();
        let (rank, size, process) = (world.rank(), world.size(), std::process::id());
        say_line(&format!(
            "rank {rank} of {size} is process {process} on {host}"
        ));
        world.barrier();
    }
    if arguments.panic_on_rank == Some(world.rank()) {
        panic!("as --panic-on-rank asks");
    }
    let is_first = world.rank() == 0;
    let stop = |stop: Stop| match is_first {
        true => stop.tell(&mut io::stderr()),
        false => FAILED,
    };
    let agreed = match agreed(world, arguments) {
        Ok(Some(agreed)) => agreed,
        Ok(None) => return FAILED,
        Err(why) => return stop(why),
    };
    let request = match request(world, arguments, &agreed) {
        Ok(request) => request,
        Err(why) => return stop(why),
    };
    let matrices = agreed.matrices;
    if is_first {
        let mut notes = io::stderr();
        // A prediction from a description needs no other rank.
        if !is_launched && !arguments.model.predict {
            let text = "started without mpirun, this is the only rank; `mpirun -n 4 gemm-mpi ...` starts four.";
            note(&mut notes, text);
        }
        if let Some(text) = &matrices.note {
            note(&mut notes, text);
        }
    }
    let (place, reason) = match place(world, arguments, &request) {
        Ok(placed) => placed,
        Err(why) => return stop(why),
    };
    let DataType { inputs, c } = request.data_type;
    let multiply = match inputs {
        ElementType::F32 => multiply::<f32, f32>,
        ElementType::F64 => multiply::<f64, f64>,
        ElementType::I32 => multiply::<i32, i32>,
        ElementType::Bf16 if c == inputs => multiply::<Bf16, Bf16>,
        ElementType::Bf16 => multiply::<Bf16, f32>,
        ElementType::F16 if c == inputs => multiply::<F16, F16>,
        ElementType::F16 => multiply::<F16, f32>,
        ElementType::I8 | ElementType::E4m3 => return FAILED, // `request` has refused them
    };
    multiply(world, arguments, &request, &place, reason, &matrices)
}

/// A and B of `T`, and a C of `C`.
fn multiply<T: Element, C: Element<Sum = T::Sum>>(
    world: &Ranks,
    arguments: &Arguments,
    request: &Request,
    place: &Place,
    reason: String,
    matrices: &Matrices,
) -> u8 {
    let hosts = hosts(world);
    // A factor that the type of C rounds to 0 is 0, so that A and B are not read.
    let is_zero = C::from_scalar(request.alpha).is_some_and(|alpha| alpha == C::default());
    let request = Request {
        alpha: if is_zero { 0.0 } else { request.alpha },
        ..request.clone()
    };
    if arguments.model.predict {
        return predict::<T>(world, arguments, &request, place, hosts.len());
    }
    // Before anything that takes long, so that a file that cannot be written is known at once.
    let files = match world.rank() {
        0 => Files::open(arguments),
        _ => Ok(Files::default()),
    };
    let [is_ready] = world.from_first([files.is_ok()]);
    let mut files = match files {
        Ok(files) if is_ready => files,
        Ok(_) => return FAILED,
        Err(stop) => return stop.tell(&mut io::stderr()),
    };
    let (records, c) = evaluate::<T, C>(world, &request, place, &matrices.source);
    if world.rank() != 0 {
        return PASSED;
    }
    let mut report = Report {
        schema: 5,
        provenance: Some(Provenance::now()),
        mpi: comm::library(),
        ranks: world.size(),
        hosts,
        device: match request.asked.is_native() {
            true => cpu::description(&place.team),
            false => place.device.description(),
        },
        reason,
        records,
        output: None,
    };
    let code = files.write(arguments, &mut report, c.as_ref());
    let on_stdout = arguments
        .matrices
        .out
        .as_deref()
        .is_some_and(output::is_stdout);
    let write = |out: &mut dyn io::Write| match arguments.format {
        Format::Table => table::write(&report, out),
        Format::Json => report.write_json(out),
    };
    // On standard output the report would follow the bytes of C.
    let written = match on_stdout {
        true => write(&mut io::stderr()),
        false => write(&mut io::stdout().lock()),
    };
    finish(written, &mut io::stderr(), code)
}

/// Prints what the model says, of the machine that is given or else measured.
fn predict<T: Element>(
    world: &Ranks,
    arguments: &Arguments,
    request: &Request,
    place: &Place,
    hosts: usize,
) -> u8 {
    let Some(task) = request.tasks.first() else {
        return FAILED;
    };
    let shape = task.shape;
    let ModelArguments {
        latency,
        bandwidth,
        flops,
        memory,
        ..
    } = arguments.model;
    let is_described = latency.is_some() && bandwidth.is_some() && flops.is_some();
    let is_on_gpu = place.device.gpu().is_some() && !request.asked.is_native();
    let measured = match (is_described, world.size()) {
        (true, _) => Machine::default(),
        (false, 1) => {
            let why = "One rank cannot measure a network: start `mpirun -n 2`, or describe the machine \
                       with --latency, --bandwidth and --flops.";
            return usage(why).tell(&mut io::stderr());
        }
        (false, _) => {
            let local = multiplier::<T>(request, place);
            let measured = constants::measure(world, shape, &*local);
            measured.unwrap_or_else(|error| end_the_job(error))
        }
    };
    let machine = Machine {
        latency_s: latency.map_or(measured.latency_s, |latency| latency * 1e-6),
        bytes_per_s: bandwidth.map_or(measured.bytes_per_s, |bandwidth| bandwidth * 1e9),
        flops_per_s: flops.map_or(measured.flops_per_s, |flops| flops * 1e9),
    };
    if world.rank() != 0 {
        return PASSED;
    }
    let on_host = (world.size() / hosts).max(1) as f64;
    let of_rank = memory::total() as f64 / on_host;
    let question = Question {
        shape,
        data_type: request.data_type,
        panel: panel(request.panel, shape, is_on_gpu),
        machine,
        memory_bytes: memory.map_or(of_rank, |gibibytes| gibibytes * f64::from(1 << 30)),
    };
    if let Some(folder) = &arguments.files.plots
        && let Err(stop) = (make_folder(folder).map_err(failed))
            .and_then(|()| plots::write_prediction(&question, folder).map_err(failed))
    {
        return stop.tell(&mut io::stderr());
    }
    let written = question.write(&mut io::stdout().lock());
    finish(written, &mut io::stderr(), PASSED)
}
