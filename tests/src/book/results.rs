//! Measured figures, from what the benchmark wrote into `results/`.

use gpu_kernels::KERNELS;
use gpu_kernels::spec::{Kernel, Variant};
use host::bench::{Results, Size};
use host::element::DataType;

use super::kernel;
use crate::results::h200;

/// The size, M = N = K, whose figures the text is about.
const MAIN_SIZE: usize = 4096;

/// A figure, asked for as `4096 tiled-32 tflops`, `... of-cublas` or `... over naive` (how many times as fast); or as
/// `4096 cublas`.
///
/// # Errors
///
/// There is no such figure.
pub fn figure(arguments: &str) -> Result<String, String> {
    let words: Vec<&str> = arguments.split(' ').collect();
    let [size, name, what @ ..] = words.as_slice() else {
        return Err(format!(
            "`figure {arguments}` is not `figure SIZE VARIANT WHAT`"
        ));
    };
    let results = h200()?;
    let measured = size.parse().ok().and_then(|size| at(&results, size));
    let measured = measured.ok_or_else(|| format!("nothing was measured at `{size}`"))?;
    let speed = |name: &str| {
        let tflops = match name {
            "cublas" => cublas_tflops(measured),
            name => tflops(measured, name),
        };
        tflops.ok_or_else(|| format!("`{name}` was not measured at {size}"))
    };
    let own = speed(name)?;
    match what {
        [] | ["tflops"] => Ok(format!("{own:.1}")),
        ["of-cublas"] => Ok(format!("{:.0} %", 100.0 * own / speed("cublas")?)),
        ["over", other] => Ok(format!("{:.2}", own / speed(other)?)),
        _ => Err(format!("`{}` is no figure", what.join(" "))),
    }
}

/// A kernel's variants: their speed at each size, their share of cuBLAS, and the factor over the rung before.
///
/// # Errors
///
/// There is no such kernel, or no results.
pub fn table(name: &str) -> Result<String, String> {
    let rung = kernel(name)?;
    let results = h200()?;
    let main =
        at(&results, MAIN_SIZE).ok_or_else(|| format!("nothing was measured at {MAIN_SIZE}"))?;
    let before = KERNELS
        .iter()
        .take_while(|other| other.name != name)
        .last()
        .and_then(|before| of_floats(before).next());

    let mut head = "\n| TFLOP/s on an H200 |".to_string();
    for size in &results.sizes {
        head += &format!(" {} |", size.label());
    }
    head += &format!(" of cuBLAS at {MAIN_SIZE} |");
    if let Some(before) = before {
        head += &format!(" times `{}` |", before.name);
    }
    let columns = head.matches('|').count() - 1;
    let mut table = format!("{head}\n|{}\n", " --- |".repeat(columns));
    for variant in of_floats(rung) {
        table += &format!("| `{}` |", variant.name);
        for size in &results.sizes {
            match tflops(size, variant.name) {
                Some(tflops) => table += &format!(" {tflops:.1} |"),
                None => table += " not yet |",
            }
        }
        let own = tflops(main, variant.name);
        table += &match own.zip(cublas_tflops(main)) {
            Some((own, cublas)) => format!(" {:.0} % |", 100.0 * own / cublas),
            None => " - |".to_string(),
        };
        if let Some(before) = before {
            table += &match own.zip(tflops(main, before.name)) {
                Some((own, before)) => format!(" {:.2} |", own / before),
                None => " - |".to_string(),
            };
        }
        table += "\n";
    }
    Ok(table + "\n")
}

/// The variants that multiply `f32`, in the table's order.
pub fn of_floats(kernel: &Kernel) -> impl Iterator<Item = &'static Variant> {
    kernel
        .variants
        .iter()
        .filter(|variant| DataType::of(variant) == DataType::F32)
}

/// What was measured at M = N = K = `size`.
fn at(results: &Results, size: usize) -> Option<&Size> {
    results
        .sizes
        .iter()
        .find(|measured| [measured.m, measured.n, measured.k] == [size; 3])
}

fn tflops(size: &Size, name: &str) -> Option<f64> {
    Some(size.record(name)?.flops_per_s? / 1e12)
}

fn cublas_tflops(size: &Size) -> Option<f64> {
    Some(size.cublas()?.flops_per_s / 1e12)
}
