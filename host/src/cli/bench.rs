//! `host bench`: kernels x sizes, as a table and as files.

use std::io::Write;
use std::str::FromStr;

use clap::{Args, ValueEnum};

use super::{FAILED, PROVEN, Running, USAGE, fail, finish};
use crate::bench::export::Exports;
use crate::bench::{self, Plan, Sort, preset, table};
use crate::device::Device;
use crate::element::DataType;
use crate::evaluate::EvaluateError;
use crate::problem::Shape;
use crate::select;

/// Proves and times kernels at several sizes, in turn with cuBLAS where there is a GPU.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Kernels or variants to run, or `all`; `--list` shows them
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "all"
    )]
    kernel: Vec<String>,

    /// Values of m = n = k [default: 1024,2048,4096 on a GPU, 128,256,512 on the simulator]
    #[arg(long, value_name = "SIZE", value_delimiter = ',')]
    sizes: Vec<usize>,

    /// Shapes, as 4096x64x512 (m x n x k), after the sizes
    #[arg(long, value_name = "MxNxK", value_delimiter = ',', value_parser = shape)]
    shape: Vec<Shape>,

    /// A set of kernels and sizes, with a table of its own
    #[arg(long, value_enum, conflicts_with_all = ["kernel", "sizes", "shape", "dtype", "sort"])]
    preset: Option<Preset>,

    /// The type of the elements
    #[arg(long, value_enum, default_value_t = DataType::F32)]
    dtype: DataType,

    /// The order of the table's rows
    #[arg(long, value_enum, default_value_t = Sort::Ladder)]
    sort: Sort,

    #[command(flatten)]
    running: Running,

    #[command(flatten)]
    exports: Exports,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Preset {
    /// The measured table of the report that the ladder follows (2048 cubed, ten rows), beside its own figures
    Report,
}

/// A shape as the command line spells it.
fn shape(text: &str) -> Result<Shape, String> {
    let sizes: Result<Vec<usize>, _> = text.split('x').map(usize::from_str).collect();
    match sizes.as_deref() {
        Ok(&[m, n, k]) => Ok(Shape { m, n, k }),
        _ => Err("a shape is three numbers, m x n x k, as in 4096x64x512".to_string()),
    }
}

pub(super) fn bench(arguments: &Arguments, out: &mut dyn Write, notes: &mut dyn Write) -> u8 {
    let kernels: Vec<String> = match arguments.preset {
        Some(Preset::Report) => preset::kernels().map(String::from).collect(),
        None => arguments.kernel.clone(),
    };
    let variants = match select::kernels(gpu_kernels::KERNELS, &kernels, arguments.dtype) {
        Ok(variants) => variants,
        Err(error) => return fail(notes, &error, USAGE),
    };
    let opened = match Device::open(arguments.running.device) {
        Ok(opened) => opened,
        Err(error) => return fail(notes, &error, FAILED),
    };
    let files = match arguments.exports.open() {
        Ok(files) => files,
        Err(error) => return fail(notes, &error, FAILED),
    };
    let plan = Plan {
        variants,
        data_type: arguments.dtype,
        shapes: shapes(arguments, &opened.device),
        seed: arguments.running.seed,
        effort: arguments.running.effort(),
        baseline: arguments.running.baseline,
    };
    let (results, outcome) = bench::run(&opened, &plan);
    let report = arguments.preset == Some(Preset::Report);
    let written = if results.kernels().is_empty() {
        // An error before the first result leaves nothing to show.
        Ok(())
    } else if report && results.all_proven() {
        let machine = results.machine.description();
        write!(out, "{machine}\n\n{}", preset::table(&results))
    } else {
        table::write(&results, &opened.reason, arguments.sort, out)
    };
    let code = match outcome {
        // What is not whole replaces no file.
        Err(error) => {
            let usage = matches!(error, EvaluateError::BaselineWithoutGpu);
            fail(notes, &error, if usage { USAGE } else { FAILED })
        }
        Ok(()) => match files.write(&results, arguments.sort, report) {
            Err(error) => fail(notes, &error, FAILED),
            Ok(()) if results.all_proven() => PROVEN,
            Ok(()) => FAILED,
        },
    };
    finish(written, notes, code)
}

/// What to measure: the preset's shape, or the sizes and shapes that were asked for, or the device's own.
fn shapes(arguments: &Arguments, device: &Device) -> Vec<Shape> {
    if arguments.preset == Some(Preset::Report) {
        return vec![preset::SHAPE];
    }
    let sizes = arguments.sizes.iter().copied().map(Shape::cube);
    let asked: Vec<Shape> = sizes.chain(arguments.shape.iter().copied()).collect();
    match asked.is_empty() {
        true => bench::default_sizes(device).map(Shape::cube).to_vec(),
        false => asked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_three_numbers() {
        assert_eq!(
            shape("4096x64x512"),
            Ok(Shape {
                m: 4096,
                n: 64,
                k: 512
            })
        );
        for text in ["", "4096", "1x2", "1x2x3x4", "1x2x", "1X2X3", "-1x2x3"] {
            assert!(shape(text).is_err(), "{text}");
        }
    }
}
