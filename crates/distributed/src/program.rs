//! The program, from its command line to its report.
//!
//! All ranks read the same command line; rank 0 alone opens files, prints and judges. What only rank
//! 0 can know (the shape of the user's files) it tells the others before anything is multiplied.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use gpu_gemm::device::driver;
use gpu_gemm::text::plural;
use gpu_gemm::{Chooser, Device, DeviceChoice, DeviceError, ElementType, Opened, Shape, Transpose};
use host::cli::exit::{FAILED, PROVEN, Stop, USAGE, failed, finish, note, noted, usage};
use host::cli::matrices::{Matrices, matrices};
use host::cpu::{self, Settings, Team};
use host::data::Matrix;
use host::output::{self, Output};
use host::prove::NATIVE;
use host::rung::Rung;
use host::select::{self, Asked};
use host::source::{Filling, Source};
use host::{memory, npy};
use mpi::Threading;
use mpi::environment::{initialize_with_threading, library_version, processor_name};
use mpi::topology::Communicator;

use crate::Element;
use crate::arguments::{Arguments, ModelArguments};
use crate::comm::{LARGEST, Ranks};
use crate::evaluate::{Request, Task, evaluate};
use crate::faults::{disagreement, end_the_job, end_the_job_on_panic, say_line};
use crate::local::{Place, local_product};
use crate::machine;
use crate::model::{Case, Machine};
use crate::plots;
use crate::predict::Question;
use crate::record::{Report, Scaling};

/// m, n and k where nothing says what they are.
const SIZE: usize = 1024;

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
    let Some((universe, _)) = initialize_with_threading(Threading::Funneled) else {
        eprintln!("error: MPI has been initialized already, so this process cannot be a rank.");
        return ExitCode::from(FAILED);
    };
    end_the_job_on_panic();
    let world = Ranks::new(universe.world());
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
        Ok(arguments) => run(&world, &arguments),
        Err(error) if is_first => {
            // Nobody may be there to read it: the exit code still says it.
            let _ = error.print();
            error.exit_code() as u8
        }
        Err(_) => PROVEN,
    };
    // What is wrong for all is said, and answered for, by rank 0.
    ExitCode::from(if is_first { code } else { PROVEN })
}

fn run(world: &Ranks, arguments: &Arguments) -> u8 {
    if arguments.show_ranks {
        let host = processor_name().unwrap_or_default();
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
    let (matrices, shape) = match agreed_matrices(world, arguments) {
        Ok(Some(agreed)) => agreed,
        Ok(None) => return FAILED,
        Err(why) => return stop(why),
    };
    let request = match request(world, arguments, &matrices, shape) {
        Ok(request) => request,
        Err(why) => return stop(why),
    };
    if is_first {
        let mut notes = io::stderr();
        for text in arguments.native.without_effect(&[request.asked]) {
            note(&mut notes, text);
        }
        if let Some(text) = &matrices.note {
            note(&mut notes, text);
        }
    }
    let (place, reason) = place(world, arguments, &request);
    match request.data_type {
        ElementType::F32 => multiply::<f32>(world, arguments, &request, &place, reason, &matrices),
        ElementType::F64 => multiply::<f64>(world, arguments, &request, &place, reason, &matrices),
        ElementType::I32 => multiply::<i32>(world, arguments, &request, &place, reason, &matrices),
    }
}

/// What to multiply, as rank 0 finds it, and its shape. `None` on the others if it finds something
/// wrong.
fn agreed_matrices(
    world: &Ranks,
    arguments: &Arguments,
) -> Result<Option<(Matrices, Shape)>, Stop> {
    let mut told = [0_u64; 5];
    let found = (world.rank() == 0).then(|| matrices(&arguments.problem, &arguments.matrices));
    if let Some(Ok(found)) = &found {
        let Shape { m, n, k } = arguments.problem.shape(&found.source, SIZE);
        let types = ElementType::ALL;
        let index = types.iter().position(|of_all| *of_all == found.data_type);
        let [m, n, k, index] = [m, n, k, index.unwrap_or(0)].map(|size| size as u64);
        told = [1, m, n, k, index];
    }
    world.from_first(&mut told);
    let [is_right, m, n, k, index] = told;
    let shape = Shape::new(m as usize, n as usize, k as usize);
    match found {
        Some(Err(stop)) => Err(stop),
        Some(Ok(found)) => Ok(Some((found, shape))),
        None if is_right == 0 => Ok(None),
        None => {
            let matrices = Matrices {
                source: Source::Filled(Filling::Normal), // only rank 0 fills or reads any
                data_type: ElementType::ALL[index as usize],
                note: None,
            };
            Ok(Some((matrices, shape)))
        }
    }
}

/// One thread a rank, unless the user says otherwise: `mpirun` starts a rank for each core.
fn settings(arguments: &Arguments) -> Settings {
    let settings = arguments.native.settings();
    Settings {
        threads: settings.threads.or(Some(1)),
        ..settings
    }
}

/// The same on all ranks, and so is what is wrong with it.
fn request(
    world: &Ranks,
    arguments: &Arguments,
    matrices: &Matrices,
    shape: Shape,
) -> Result<Request, Stop> {
    let (kernels, rungs) = (gpu_gemm::KERNELS, cpu::RUNGS);
    let data_type = matrices.data_type;
    let names = [arguments.kernel.clone()];
    let asked = match &select::ask(kernels, rungs, &names, data_type).map_err(usage)?[..] {
        [one] => *one,
        several => {
            let count = several.len();
            return Err(usage(format!(
                "`{}` stands for {count} kernels, but all ranks multiply with one; name one.",
                arguments.kernel
            )));
        }
    };
    if matches!(asked, Asked::Rung(Rung::Cpu(rung)) if rung.name == cpu::strassen::RUNG.name) {
        return Err(usage(
            "`cpu-strassen` is for one machine: its error bound is that of a product which is not \
             cut into parts. Name another kernel, such as `cpu-divide`.",
        ));
    }
    let is_filled = matches!(matrices.source, Source::Filled(_));
    if is_filled && arguments.problem.operands.transposes() != [Transpose::No; 2] {
        return Err(usage(
            "Ranks store their parts of A and B as they are multiplied: --transpose-a and \
             --transpose-b are for matrices in files; leave them out.",
        ));
    }
    let shapes: Vec<Shape> = match &arguments.shapes[..] {
        [] => vec![shape],
        shapes => shapes.iter().map(|shape| shape.0).collect(),
    };
    let counts = match &arguments.scaling.scaling[..] {
        [] => vec![world.size()],
        counts => counts.to_vec(),
    };
    if let Some(many) = counts.iter().find(|count| **count > world.size()) {
        let size = world.size();
        return Err(usage(format!(
            "--scaling asks for {many} ranks, but the job has {size}; start it with `mpirun -n {many}`."
        )));
    }
    if arguments.scaling.weak && matches!(matrices.source, Source::Files(_)) {
        return Err(usage(
            "--weak needs matrices of other sizes than those of the files; leave it out.",
        ));
    }
    let mut tasks = Vec::new();
    for &shape in &shapes {
        tasks.extend(counts.iter().map(|&ranks| Task {
            shape,
            ranks,
            scaling: Scaling::Strong,
        }));
        if arguments.scaling.weak {
            tasks.extend(counts.iter().map(|&ranks| Task {
                shape: grown(shape, ranks),
                ranks,
                scaling: Scaling::Weak,
            }));
        }
    }
    let sizes = |task: &Task| [task.shape.m, task.shape.n, task.shape.k];
    let largest = tasks.iter().flat_map(sizes).max().unwrap_or(0);
    if largest.saturating_add(arguments.problem.operands.padding) > LARGEST {
        return Err(usage(format!(
            "A dimension of {largest} is more than MPI can count: at most {LARGEST}, with the padding."
        )));
    }
    let layouts = arguments.layouts();
    if arguments.matrices.out.is_some() && (tasks.len() != 1 || layouts.len() != 1) {
        let count = tasks.len() * layouts.len();
        return Err(usage(format!(
            "--out takes one C, but {count} are computed; name one layout, one shape and one number of ranks."
        )));
    }
    Ok(Request {
        layouts,
        asked,
        kernel: arguments.kernel.clone(),
        tasks,
        data_type,
        alpha: arguments.problem.operands.alpha,
        beta: arguments.problem.operands.beta,
        padding: arguments.problem.operands.padding,
        seed: arguments.seed,
        panel: arguments.panel,
        runs: arguments.runs,
        corner: arguments.matrices.show,
        offload: false,
    })
}

/// The shape with so many times as many flops, but for rounding.
fn grown(shape: Shape, ranks: usize) -> Shape {
    let factor = (ranks as f64).cbrt();
    let [m, n, k] = [shape.m, shape.n, shape.k].map(|size| (size as f64 * factor).round() as usize);
    Shape::new(m, n, k)
}

/// Where this rank multiplies, and why there. A rank that cannot ends the job.
fn place(world: &Ranks, arguments: &Arguments, request: &Request) -> (Place, String) {
    let is_native = request.asked.is_native();
    let opened = match is_native {
        true => Device::open(DeviceChoice::Simulator).map(|opened| Opened {
            reason: NATIVE.to_string(),
            ..opened
        }),
        false => open_device(arguments.device),
    };
    let opened = opened.unwrap_or_else(|error| end_the_job(world, error));
    let team = Team::new(settings(arguments)).unwrap_or_else(|error| end_the_job(world, error));
    let mut unheard = Vec::new();
    let chooser = noted(Chooser::of(&opened.device), &mut unheard);
    if world.rank() == 0 {
        // Nobody may be there to read it.
        let _ = io::stderr().write_all(&unheard);
    }
    let place = Place {
        device: Arc::new(opened.device),
        chooser: Arc::new(chooser),
        team: Arc::new(team),
    };
    (place, opened.reason)
}

/// Opens a device; by default the GPU with this rank's number on its host. GPUs are shared where
/// there are fewer than ranks.
fn open_device(choice: DeviceChoice) -> Result<Opened, DeviceError> {
    let gpus = match choice {
        DeviceChoice::Auto => driver::probe().map_or(0, |gpus| gpus.len()),
        DeviceChoice::Cuda(_) | DeviceChoice::Simulator | DeviceChoice::OpenCl(_) => 0,
    };
    if gpus == 0 {
        return Device::open(choice);
    }
    let on_host = mpi::topology::SimpleCommunicator::world().split_shared(0);
    let (rank, ranks) = (on_host.rank() as usize, on_host.size() as usize);
    let opened = Device::open(DeviceChoice::Cuda((rank % gpus) as u32))?;
    let reason = match ranks > gpus {
        true => format!(
            "the rank's number on its host, modulo the number of GPUs: {} share {}",
            plural(ranks, "rank"),
            plural(gpus, "GPU")
        ),
        false => "the GPU with the rank's number on its host".to_string(),
    };
    Ok(Opened { reason, ..opened })
}

/// The names of the hosts, each once, in the order of ranks.
fn hosts(world: &Ranks) -> Vec<String> {
    const LENGTH: usize = 256; // at least MPI_MAX_PROCESSOR_NAME
    let mut name = processor_name().unwrap_or_default().into_bytes();
    name.resize(LENGTH, 0);
    let all = world.all_gather(&name);
    let mut hosts: Vec<String> = Vec::new();
    for name in all.chunks(LENGTH) {
        let name = String::from_utf8_lossy(name)
            .trim_end_matches('\0')
            .to_string();
        if !hosts.contains(&name) {
            hosts.push(name);
        }
    }
    hosts
}

fn multiply<T: Element>(
    world: &Ranks,
    arguments: &Arguments,
    request: &Request,
    place: &Place,
    reason: String,
    matrices: &Matrices,
) -> u8 {
    let hosts = hosts(world);
    let request = Request {
        offload: hosts.len() > 1,
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
    let mut is_ready = [u8::from(files.is_ok())];
    world.from_first(&mut is_ready);
    let mut files = match files {
        Ok(files) if is_ready == [1] => files,
        Ok(_) => return FAILED,
        Err(stop) => return stop.tell(&mut io::stderr()),
    };
    let evaluated = evaluate::<T>(world, &request, place, &matrices.source);
    let (records, c) = evaluated.unwrap_or_else(|error| end_the_job(world, error));
    if world.rank() != 0 {
        return PROVEN;
    }
    let mut report = Report {
        schema: 1,
        mpi: library_version()
            .unwrap_or_default()
            .split(',')
            .next()
            .unwrap_or_default()
            .to_string(),
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
    // There the report would follow the bytes of C.
    let written = match on_stdout {
        true => report.write(arguments.format, &mut io::stderr()),
        false => report.write(arguments.format, &mut io::stdout().lock()),
    };
    finish(written, &mut io::stderr(), code)
}

/// What the report goes to besides the terminal.
#[derive(Default)]
struct Files {
    c: Option<Output>,
    json: Option<Output>,
}

impl Files {
    fn open(arguments: &Arguments) -> Result<Files, Stop> {
        let open = |path: &Option<std::path::PathBuf>| {
            path.as_deref()
                .map(Output::open)
                .transpose()
                .map_err(failed)
        };
        if let Some(folder) = &arguments.files.plots {
            fs::create_dir_all(folder).map_err(|error| {
                failed(format!(
                    "The folder `{}` cannot be made: {error}.",
                    folder.display()
                ))
            })?;
        }
        Ok(Files {
            c: open(&arguments.matrices.out)?,
            json: open(&arguments.files.json)?,
        })
    }

    /// Writes everything, and returns the exit code.
    fn write<T: Element>(
        &mut self,
        arguments: &Arguments,
        report: &mut Report,
        c: Option<&Matrix<T>>,
    ) -> u8 {
        let written = self.try_write(arguments, report, c);
        let code = written.map_or_else(|stop| stop.tell(&mut io::stderr()), |()| PROVEN);
        match report.all_proven() {
            true => code,
            false => FAILED,
        }
    }

    fn try_write<T: Element>(
        &mut self,
        arguments: &Arguments,
        report: &mut Report,
        c: Option<&Matrix<T>>,
    ) -> Result<(), Stop> {
        if let (Some(mut output), Some(c), true) = (self.c.take(), c, report.all_proven()) {
            let path = output.path().display().to_string();
            let written = npy::write(c, &mut output);
            written.map_err(|error| failed(format!("`{path}` cannot be written: {error}.")))?;
            output.commit().map_err(failed)?;
            report.output = Some(path);
        }
        if let Some(folder) = &arguments.files.plots {
            plots::write(report, folder).map_err(failed)?;
        }
        if let Some(mut output) = self.json.take() {
            let path = output.path().display().to_string();
            let written = report.write(host::report::Format::Json, &mut output);
            written.map_err(|error| failed(format!("`{path}` cannot be written: {error}.")))?;
            output.commit().map_err(failed)?;
        }
        Ok(())
    }
}

/// The parts of a product that is timed for a prediction are at most so large.
const PROBE: usize = 1024;

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
    let given = latency.zip(bandwidth).zip(flops);
    let machine = match given {
        Some(((latency, bandwidth), flops)) => Machine {
            latency_s: latency * 1e-6,
            bytes_per_s: bandwidth * 1e9,
            flops_per_s: flops * 1e9,
            // Whoever describes a machine describes a cluster.
            offload: true,
        },
        None if world.size() == 1 => {
            let why = "One rank cannot measure a network: start `mpirun -n 2`, or describe the machine \
                       with --latency, --bandwidth and --flops.";
            return usage(why).tell(&mut io::stderr());
        }
        None => {
            let Some(local) = local_product::<T>(request.asked, place) else {
                end_the_job(
                    world,
                    format!("`{}` does not multiply {}.", request.kernel, T::TYPE),
                );
            };
            let case = Case {
                shape: Shape::new(shape.m.min(PROBE), shape.n.min(PROBE), shape.k.min(PROBE)),
                ranks: world.size(),
                panel: request.panel,
            };
            let measured = machine::measure(world, &case, &*local, request.offload);
            let measured = measured.unwrap_or_else(|error| end_the_job(world, error));
            Machine {
                latency_s: latency.map_or(measured.latency_s, |latency| latency * 1e-6),
                bytes_per_s: bandwidth.map_or(measured.bytes_per_s, |bandwidth| bandwidth * 1e9),
                flops_per_s: flops.map_or(measured.flops_per_s, |flops| flops * 1e9),
                ..measured
            }
        }
    };
    if world.rank() != 0 {
        return PROVEN;
    }
    let on_host = (world.size() / hosts).max(1) as f64;
    let of_rank = memory::total().map_or(f64::INFINITY, |bytes| bytes as f64 / on_host);
    let question = Question {
        shape,
        data_type: request.data_type,
        panel: request.panel,
        machine,
        memory_bytes: memory.map_or(of_rank, |gibibytes| gibibytes * f64::from(1 << 30)),
    };
    finish(
        question.write(&mut io::stdout().lock()),
        &mut io::stderr(),
        PROVEN,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weak_shape_has_as_many_flops_for_each_rank() {
        let shape = Shape::new(1000, 2000, 500);
        assert_eq!(grown(shape, 1), shape);
        assert_eq!(grown(shape, 8), Shape::new(2000, 4000, 1000));
        let ratio = grown(shape, 3).flops() / shape.flops();
        assert!((ratio / 3.0 - 1.0).abs() < 1e-2);
    }
}
