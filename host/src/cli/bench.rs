//! `rust-gemm bench`: kernels x sizes, as a table and as files.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;

use super::exit::{FAILED, PASSED, Stop, failed, finish, note, noted, usage};
use super::fused::EpilogueArguments;
use super::native::NativeArguments;
use super::operands::OperandArguments;
use super::running::{self, Running};
use super::sizes::{self, Sizes, shape};
use super::values;
use crate::bench::export::Exports;
use crate::bench::table::{self, Tables};
use crate::bench::{self, Earlier, Plan, Preset, Results, Target, preset, shapes};
use crate::check::{NATIVE, Request};
use crate::measure::Effort;
use crate::rung::{AUTO, Asked};
use crate::select;
use gpu_gemm::{Chooser, DataType, Device, Shape};

/// Checks and times kernels at several sizes; on a GPU, their runs alternate with those of cuBLAS.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Kernels, variants or CPU rungs to run, `all`, `cpu`, a pattern such as `async-*`, or `auto`
    /// for the kernel that suits each shape; `--list` shows them [default: all; auto with
    /// `--preset shapes` and with `--epilogue`]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    kernel: Vec<String>,

    /// Values of m = n = k: numbers such as 1000 or 4k (k is 1024), and ranges FROM:TO:STEP such
    /// as 2k:8k:2k [default: 1024,2048,4096 on a GPU, 128,256,512 on the simulator]
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    sizes: Vec<Sizes>,

    /// Shapes, as 4096x64x512 (m x n x k), after the sizes
    #[arg(long, value_name = "MxNxK", value_delimiter = ',', value_parser = shape)]
    shape: Vec<Shape>,

    /// A set of kernels and sizes, with a table of its own
    #[arg(long, value_enum, conflicts_with_all = ["sizes", "shape"])]
    preset: Option<Preset>,

    /// The type of the elements [default: f32, or the first that the kernels multiply]
    #[arg(long, value_name = "TYPE", value_parser = values::data_type())]
    dtype: Option<DataType>,

    #[command(flatten)]
    operands: OperandArguments,

    #[command(flatten)]
    fused: EpilogueArguments,

    #[command(flatten)]
    running: Running,

    /// On a GPU, also launch each contender back to back for SECONDS, a second at a time, in turns:
    /// the speed at the power limit, with clock, power and energy
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    sustained: Option<u32>,

    #[command(flatten)]
    native: NativeArguments,

    /// Compare the median times with those in this file, which an earlier `bench --json` wrote:
    /// the speed-up of each kernel and shape that is in both, with a mark where it may be noise
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,

    #[command(flatten)]
    files: Exports,
}

pub(super) fn bench(
    arguments: &Arguments,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<u8, Stop> {
    let names_its_own =
        !arguments.kernel.is_empty() || arguments.dtype.is_some_and(|asked| asked != DataType::F32);
    if arguments.preset == Some(Preset::Report) && names_its_own {
        return Err(usage(
            "`--preset report` has its own kernels and type: leave `--kernel` and `--dtype` out.",
        ));
    }
    let kernels: Vec<String> = match (arguments.preset, &arguments.kernel[..]) {
        (Some(Preset::Report), _) => preset::kernels().map(String::from).collect(),
        (Some(Preset::Shapes), []) => vec![AUTO.to_string()],
        (None, []) if arguments.fused.epilogue.is_some() => vec![AUTO.to_string()],
        (None, []) => vec!["all".to_string()],
        (_, names) => names.to_vec(),
    };
    let data_type = select::type_for(arguments.dtype, &kernels);
    let asked = select::ask(&kernels, data_type).map_err(usage)?;
    let asked = running::allowed(asked, &kernels, arguments.running.math, notes)?;
    bench_asked(arguments, (asked, data_type), out, notes)
}

/// Measures these rungs on matrices of this type. The exit code says whether all pass.
fn bench_asked(
    arguments: &Arguments,
    (asked, data_type): (Vec<Asked>, DataType),
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<u8, Stop> {
    if arguments.preset.is_some() && arguments.operands.batch > 1 {
        return Err(usage(
            "`--preset` has a table of single products: leave `--batch` out, or name the shapes with `--shape`.",
        ));
    }
    let storage = arguments.operands.storage(&asked)?;
    let (exports, preset) = (&arguments.files, arguments.preset);
    let earlier = arguments.compare.as_deref().map(Earlier::read);
    let earlier = earlier.transpose().map_err(failed)?;
    let (choice, is_native) = arguments.running.device_for(&asked);
    let mut opened = Device::open(choice).map_err(failed)?;
    if is_native {
        opened.reason = NATIVE.to_string();
    }
    let device = &opened.device;
    if arguments.sustained.is_some() && (is_native || device.one_gpu().is_none()) {
        return Err(usage(
            "`--sustained` launches kernels on a GPU until they reach its power limit, and there is no GPU here: leave it out, or choose `--device cuda`.",
        ));
    }
    let chooser = noted(Chooser::of(device), notes);
    let chooser = arguments.running.math.chooser(chooser);
    let files = exports.open(preset).map_err(failed)?;
    let asked = arguments
        .fused
        .able(asked, &arguments.kernel, (data_type, device), notes)?;
    let plan = Plan {
        asked: running::runnable(asked, device, notes)?,
        targets: targets(arguments, device, notes),
        request: Request {
            alpha: arguments.operands.alpha,
            beta: arguments.operands.beta,
            storage,
            effort: Effort {
                sustained: arguments.sustained,
                ..arguments.running.effort()
            },
            origin: arguments.running.origin(device)?,
            baseline: arguments.running.baseline,
            tensor_cores: true,
            cpu: arguments.native.settings(),
            epilogue: arguments.fused.epilogue,
            ..Request::new(
                Vec::new(),
                data_type,
                Shape::cube(0),
                arguments.running.seed,
            )
        },
    };
    let is_aside = exports.take_stdout(preset);
    let is_on_terminal = match is_aside {
        true => io::stderr().is_terminal(),
        false => io::stdout().is_terminal(),
    };
    let report: &mut dyn Write = match is_aside {
        true => &mut *notes,
        false => out,
    };
    let why = &opened.reason;
    let text_of = |results: &Results| table::report(results, preset, why, earlier.as_ref());
    let (mut written, mut kept) = (Ok(()), Ok(()));
    let mut tables = Tables::new(why, preset);
    let (results, outcome) = bench::run(&opened, &chooser, &plan, &mut |results, progress| {
        if kept.is_ok() {
            kept = files.write(results, &text_of(results));
        }
        if preset.is_some() || written.is_err() {
            return;
        }
        written = match is_on_terminal {
            true => progress.suspend(|| tables.write_new(results, report)),
            // Writing to a pipe may take long, and the progress bar is not on it.
            false => tables.write_new(results, report),
        };
    });
    let earlier = earlier.as_ref().filter(|_| outcome.is_ok());
    let written = written.and_then(|()| table::write_end(&mut tables, &results, earlier, report));
    let kept = kept.and_then(|()| files.write_streams(&results, &text_of(&results)));
    let finished = outcome
        .map_err(Stop::from)
        .and_then(|()| kept.map_err(failed));
    let code = match finished {
        Err(stop) => stop.tell(notes),
        Ok(()) if !results.all_passed() => FAILED,
        Ok(()) => PASSED,
    };
    Ok(finish(written, notes, code))
}

/// What to measure: the preset's shapes, or the requested sizes and shapes, or the device's
/// defaults.
fn targets(arguments: &Arguments, device: &Device, notes: &mut dyn Write) -> Vec<Target> {
    match (arguments.preset, device.gpu()) {
        (Some(Preset::Report), _) => return vec![preset::SHAPE.into()],
        (Some(Preset::Shapes), Some(_)) => {
            return shapes::SHAPES.to_vec();
        }
        (Some(Preset::Shapes), None) => {
            let targets: Vec<Target> = shapes::simulated().collect();
            let (some, all) = (targets.len(), shapes::SHAPES.len());
            let why = "the others would take the simulator days";
            note(notes, format!("{some} of the {all} shapes: {why}."));
            return targets;
        }
        (None, _) => {}
    }
    let asked = sizes::shapes(&arguments.sizes, &arguments.shape);
    let shapes = match asked.is_empty() {
        true => bench::default_sizes(device).map(Shape::cube).to_vec(),
        false => asked,
    };
    shapes.into_iter().map(Target::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::arguments::{self, Command};
    use crate::rung::Rung;
    use clap::Parser;
    use gpu_gemm::Choice;
    use gpu_gemm::gpu_kernels::{naive, spec::Tile};
    use verification::planted;

    #[test]
    fn a_wrong_kernel_among_right_ones_is_an_exit_code() {
        let wrong = || {
            let tile = Tile { m: 64, n: 64, k: 1 };
            let lazy = planted::named("lazy", tile, |_| ());
            Rung::Gpu(lazy)
        };
        let right = || Rung::Gpu(Choice::even(&naive::KERNEL.variants[0]));
        let benched = |asked| {
            let line = ["rust-gemm", "bench", "--device", "sim", "--sizes", "8"];
            let parsed = arguments::Arguments::try_parse_from(line).unwrap();
            let Some(Command::Bench(arguments)) = parsed.command else {
                panic!("not bench");
            };
            let (mut out, mut notes) = (Vec::new(), Vec::new());
            let asked = (asked, DataType::F32);
            let Ok(code) = bench_asked(&arguments, asked, &mut out, &mut notes) else {
                panic!("{}", String::from_utf8_lossy(&notes));
            };
            (code, String::from_utf8(out).unwrap().contains("FAILED"))
        };
        assert_eq!(benched(vec![right()]), (PASSED, false));
        assert_eq!(benched(vec![wrong()]), (FAILED, true));
        assert_eq!(benched(vec![wrong(), right()]), (FAILED, true));
        assert_eq!(benched(vec![right(), wrong()]), (FAILED, true));
    }

    #[test]
    fn a_shape_is_three_numbers() {
        assert_eq!(shape("4096x64x512"), Ok(Shape::new(4096, 64, 512)));
        assert_eq!(shape("4kx64x512"), shape("4096x64x512"));
        for text in ["", "4096", "1x2", "1x2x3x4", "1x2x", "1X2X3", "-1x2x3"] {
            assert!(shape(text).is_err(), "{text}");
        }
    }
}
