//! What is to be done, the same on all ranks, and what is wrong with it.

use gpu_gemm::{Bf16, DataType, ElementType, F16, Shape, Transpose};
use host::cli::exit::{Stop, usage};
use host::cli::matrices::{Matrices, matrices};
use host::rung::Rung;
use host::select::{self, SelectError};
use host::source::Source;
use verification::cpu::{self, Settings};
use verification::data::Data;

use crate::Element;
use crate::arguments::{Arguments, CheckPlace};
use crate::comm::{LARGEST, Ranks};
use crate::evaluate::{Request, Task};

/// m, n and k where nothing says what they are.
const SIZE: usize = 1024;

/// What to multiply, as rank 0 finds it.
pub(super) struct Agreed {
    pub shape: Shape,
    /// Where from, which is true on rank 0 alone: it fills or reads them.
    pub matrices: Matrices,
    /// Whether rank 0 reads them from files.
    are_files: bool,
}

/// What all ranks agree on before they know whether they can do what is asked. `None` on the others
/// if rank 0 finds something wrong.
pub(super) fn agreed(world: &Ranks, arguments: &Arguments) -> Result<Option<Agreed>, Stop> {
    let mut told = [0_u64; 6];
    let found = (world.rank() == 0).then(|| {
        let found = matrices(&arguments.problem, &arguments.matrices, DataType::F32, None)?;
        match &found.source {
            Source::Files(files) if files.is_batch() => Err(usage(
                "Ranks share out one product, and these files hold a batch; multiply it by `rust-gemm`.",
            )),
            _ => Ok(found),
        }
    });
    if let Some(Ok(found)) = &found {
        let Shape { m, n, k } = arguments.problem.shape(&found.source, SIZE);
        let types = DataType::ALL;
        let index = types.iter().position(|of_all| *of_all == found.data_type);
        let [m, n, k, index] = [m, n, k, index.unwrap_or(0)].map(|size| size as u64);
        let are_files = matches!(found.source, Source::Files(_));
        told = [1, u64::from(are_files), m, n, k, index];
    }
    let [is_right, are_files, m, n, k, index] = world.from_first(told);
    let matrices = match found {
        Some(found) => found?,
        None if is_right == 0 => return Ok(None),
        None => Matrices {
            source: Source::Filled(Data::Normal),
            data_type: DataType::ALL[index as usize],
            note: None,
        },
    };
    Ok(Some(Agreed {
        shape: Shape::new(m as usize, n as usize, k as usize),
        matrices,
        are_files: are_files == 1,
    }))
}

/// One thread a rank, unless the user says otherwise: `mpirun` starts a rank for each core.
pub(super) fn settings(arguments: &Arguments) -> Settings {
    let settings = arguments.native.settings();
    Settings {
        threads: settings.threads.or(Some(1)),
        ..settings
    }
}

/// The same on all ranks, and so is what is wrong with it.
pub(super) fn request(
    world: &Ranks,
    arguments: &Arguments,
    agreed: &Agreed,
) -> Result<Request, Stop> {
    let data_type = agreed.matrices.data_type;
    if let ElementType::I8 | ElementType::E4m3 = data_type.inputs {
        return Err(usage(format!(
            "Ranks do not multiply {data_type}, which has no kernels for CPUs; multiply it by \
             `rust-gemm`."
        )));
    }
    let operands = &arguments.problem.operands;
    let names = [arguments.kernel.clone()];
    let found = select::ask(&names, of_ranks(data_type));
    let asked = match &found.map_err(|error| no_kernel(error, data_type))?[..] {
        [one] => *one,
        several => {
            let count = several.len();
            return Err(usage(format!(
                "`{}` names {count} kernels, but all ranks multiply with one; name one.",
                arguments.kernel
            )));
        }
    };
    if matches!(asked, Rung::Cpu(rung) if rung.name == cpu::strassen::RUNG.name) {
        return Err(usage(
            "`cpu-strassen` is for one machine: its error bound is that of a product which is not \
             cut into parts. Name another kernel, such as `cpu-divide`.",
        ));
    }
    if operands.batch != 1 {
        return Err(usage(
            "Ranks share out one product; leave --batch out, or multiply many by `rust-gemm`.",
        ));
    }
    if !agreed.are_files && operands.transposes() != [Transpose::No; 2] {
        return Err(usage(
            "Ranks store their parts of A and B as they are multiplied: --transpose-a and \
             --transpose-b are for matrices in files; leave them out.",
        ));
    }
    let shapes = each_once(&arguments.shapes, agreed.shape);
    let counts = each_once(&arguments.scaling, world.size());
    if let Some(many) = counts.iter().find(|count| **count > world.size()) {
        let size = world.size();
        return Err(usage(format!(
            "--scaling asks for {many} ranks, but the job has {size}; start it with `mpirun -n {many}`."
        )));
    }
    let mut tasks = Vec::new();
    for &shape in &shapes {
        tasks.extend(counts.iter().map(|&ranks| Task { shape, ranks }));
    }
    let sizes = |task: &Task| [task.shape.m, task.shape.n, task.shape.k];
    let largest = tasks.iter().flat_map(sizes).max().unwrap_or(0);
    if largest.saturating_add(operands.padding) > LARGEST {
        return Err(usage(format!(
            "A dimension of {largest} is more than MPI can count: at most {LARGEST}, with the padding."
        )));
    }
    let check = check(arguments, agreed)?;
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
        alpha: operands.alpha,
        beta: operands.beta,
        padding: operands.padding,
        seed: arguments.seed,
        panel: arguments.panel,
        runs: arguments.runs,
        corner: arguments.matrices.show,
        check,
        planted_on: arguments.plant_on_rank,
    })
}

/// In the order in which they are named; of none the one that holds by default.
fn each_once<T: PartialEq + Copy>(named: &[T], otherwise: T) -> Vec<T> {
    let mut once = Vec::new();
    for one in named {
        if !once.contains(one) {
            once.push(*one);
        }
    }
    match once.is_empty() {
        true => vec![otherwise],
        false => once,
    }
}

/// The types of what ranks multiply: the C that they add to, and send, is of the type of sums.
fn of_ranks(data_type: DataType) -> DataType {
    match data_type.inputs {
        ElementType::F32 => f32::PRODUCT,
        ElementType::F64 => f64::PRODUCT,
        ElementType::I32 => i32::PRODUCT,
        ElementType::Bf16 => Bf16::PRODUCT,
        ElementType::F16 => F16::PRODUCT,
        // `request` refuses them.
        element @ (ElementType::I8 | ElementType::E4m3) => DataType::of(element),
    }
}

/// The error for a name of no kernel that ranks multiply with.
fn no_kernel(error: SelectError, asked: DataType) -> Stop {
    let of_ranks = of_ranks(asked);
    let is_of_type = matches!(error, SelectError::WrongType { .. });
    match is_of_type && of_ranks != asked {
        true => usage(format!(
            "{error} Ranks add up products of {asked} in {}, which rank 0 rounds once.",
            of_ranks.c
        )),
        false => usage(error),
    }
}

/// Where C is checked. Without a C on rank 0, nothing can be added to it or made of it there.
fn check(arguments: &Arguments, agreed: &Agreed) -> Result<Option<CheckPlace>, Stop> {
    let operands = &arguments.problem.operands;
    let needs_c = [
        (operands.beta != 0.0, "a beta other than 0 adds to it"),
        (arguments.matrices.out.is_some(), "--out writes it"),
        (arguments.matrices.show.is_some(), "--show shows it"),
        (
            agreed.are_files,
            "rank 0 reads the matrices from files, of which C is one",
        ),
    ];
    let why = needs_c.into_iter().find(|(needs, _)| *needs);
    let data_type = agreed.matrices.data_type;
    let is_rounded = data_type != of_ranks(data_type);
    match (arguments.check, why) {
        (Some(CheckPlace::Distributed), Some((_, why))) => Err(usage(format!(
            "--check distributed leaves C where it is computed, but {why}; leave one of them out."
        ))),
        (Some(CheckPlace::Distributed), None) if is_rounded => Err(usage(format!(
            "--check distributed compares sums of rows and columns of C, which are no longer exact \
             where each element of C was rounded to {}. Leave it out, or keep C as ranks compute \
             it, with --dtype {}.",
            data_type.c,
            of_ranks(data_type),
        ))),
        (Some(CheckPlace::Distributed), None) => Ok(Some(CheckPlace::Distributed)),
        (None, None) if !is_rounded => Ok(None),
        _ => Ok(Some(CheckPlace::Gathered)),
    }
}
