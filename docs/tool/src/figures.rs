//! Measured figures, from the benchmark's files in `results/`.

use gpu_kernels::KERNELS;
use gpu_kernels::spec::{Kernel, Rounding};
use host::bench::{Results, Size};
use host::measure::cublas::lt_mark;

use crate::ladder::{kernel, of_floats};
use crate::measured::{
    Measured, h200, h200_shapes, library, library_sustained, of_any, of_kernel, passed, with_legend,
};
use crate::parts::unbroken;

/// The size, M = N = K, that most chapters quote.
pub const MAIN_SIZE: usize = 4096;

/// A figure: `4096 tiled-32 tflops`, `4096 tiled-32 of-cublas`, `4096 tiled-32 of-peak`, `4096
/// tiled-32 over naive` (how many times as fast), `4096 cublas`, or `4096 cublas-fp64`; of
/// back-to-back launches `4096 auto sustained` and `4096 auto sustained-of-cublas`. A variant is
/// compared with the faster of cuBLAS and cublasLt in its own precision, and with others of the same
/// file.
pub fn figure(arguments: &str) -> Result<String, String> {
    let words: Vec<&str> = arguments.split(' ').collect();
    let [size, name, what @ ..] = words.as_slice() else {
        return Err(format!(
            "`figure {arguments}` is not `figure SIZE VARIANT WHAT`"
        ));
    };
    let Measured { results, precision } = of_any(&[name])?;
    let measured = size.parse().ok().and_then(|size| at(&results, size));
    let measured = measured.ok_or_else(|| format!("nothing was measured at `{size}`"))?;
    let speed = |name: &str| {
        let tflops = match name {
            "cublas" => cublas_tflops(measured, precision),
            name if name.strip_prefix("cublas-") == Some(precision) => {
                cublas_tflops(measured, precision)
            }
            name => tflops(measured, name),
        };
        tflops.ok_or_else(|| format!("`{name}` was not measured at {size}"))
    };
    let own = speed(name)?;
    match what {
        [] | ["tflops"] => Ok(format!("{own:.1}")),
        ["of-peak"] => {
            let peak = results.machine.peak_flops_per_s;
            let peak = peak.ok_or("the results name no peak")?;
            Ok(unbroken(&format!("{:.1} %", 1e14 * own / peak)))
        }
        ["of-cublas"] => Ok(unbroken(&format!(
            "{:.0} %",
            100.0 * own / speed("cublas")?
        ))),
        ["sustained"] | ["sustained-of-cublas"] => {
            let missing = || format!("`{name}` was not measured back to back at {size}");
            let sustained = measured.record(name).and_then(|one| one.sustained.as_ref());
            let own = sustained.ok_or_else(missing)?.flops_per_s;
            match what {
                ["sustained"] => Ok(format!("{:.1}", own / 1e12)),
                _ => {
                    let library = library_sustained(measured, precision);
                    let (_, cublas) = library.ok_or_else(missing)?;
                    Ok(unbroken(&format!("{:.0} %", 100.0 * own / cublas)))
                }
            }
        }
        ["over", other] => Ok(format!("{:.2}", own / speed(other)?)),
        _ => Err(format!("`{}` is no figure", what.join(" "))),
    }
}

/// A figure of `auto` over all shapes of `rust-gemm bench --preset shapes`, as a ratio to cuBLAS:
/// the geometric `mean`, the `worst`, or that of one shape by its name; or a number of shapes: the
/// `count` of all, or of those where `auto` is `at-least` as fast. `aligned mean`, `aligned count`
/// and the same with `unaligned` are of the shapes whose n and k are multiples of 8, and of the
/// others. A shape's name with `marked` after it marks a ratio to cublasLt. On an H200, with `bf16`
/// before it in bf16; with `h100` before that on an H100.
pub fn of_shapes(what: &str) -> Result<String, String> {
    let (gpu, what) = match what.strip_prefix("h100 ") {
        Some(what) => ("h100", what),
        None => ("h200", what),
    };
    let (file, what) = match what.strip_prefix("bf16 ") {
        Some(what) => (format!("results/{gpu}-bf16-shapes.json"), what),
        None => (format!("results/{gpu}-shapes.json"), what),
    };
    let results = passed(&file)?;
    let of_alignment = what
        .split_once(' ')
        .filter(|(which, _)| ["aligned", "unaligned"].contains(which));
    if let Some((which, what)) = of_alignment {
        let is_aligned = |size: &Size| size.n.is_multiple_of(8) && size.k.is_multiple_of(8);
        let has = |size: &&Size| is_aligned(size) == (which == "aligned");
        let sizes = results.sizes.iter().filter(has);
        let ratio = |size: &Size| size.record("auto")?.ratio_to_cublas;
        let logarithms: Vec<f64> = sizes.filter_map(ratio).map(f64::ln).collect();
        let count = logarithms.len();
        return match what {
            "count" => Ok(count.to_string()),
            "mean" => {
                let mean = logarithms.iter().sum::<f64>() / count as f64;
                Ok(format!("{:.2}", mean.exp()))
            }
            "at-least" => Ok(logarithms
                .iter()
                .filter(|one| **one >= 0.0)
                .count()
                .to_string()),
            _ => Err(format!("`{what}` is no figure of {which} shapes")),
        };
    }
    let of_auto = results.summaries.iter().find(|one| one.kernel == "auto");
    let auto = of_auto.ok_or("`auto` was not measured at these shapes")?;
    match what {
        "count" => Ok(auto.shapes.to_string()),
        "at-least" => Ok(auto.at_least_as_fast.to_string()),
        "mean" => Ok(format!("{:.2}", auto.geometric_mean)),
        "worst" => Ok(format!("{:.2}", auto.worst)),
        what => {
            let (name, has_mark) = match what.strip_suffix(" marked") {
                Some(name) => (name, true),
                None => (what, false),
            };
            let mut sizes = results.sizes.iter();
            let size = sizes.find(|size| size.title() == name);
            let record = size.and_then(|size| size.record("auto"));
            let found = record.and_then(|one| one.ratio_to_cublas.zip(one.compared_with.as_ref()));
            let (ratio, with) =
                found.ok_or_else(|| format!("`{name}` is not one of these shapes"))?;
            Ok(format!(
                "{ratio:.2}{}",
                if has_mark { lt_mark(with) } else { "" }
            ))
        }
    }
}

/// A kernel's variants: speed at each size, percentage of cuBLAS, and speedup over the rung
/// before. A kernel that does not compensate its sums is compared with one that does not either.
pub fn table(name: &str) -> Result<String, String> {
    let rung = kernel(name)?;
    let measured = of_kernel(rung)?;
    let (results, precision) = (&measured.results, measured.precision);
    let main =
        at(results, MAIN_SIZE).ok_or_else(|| format!("nothing was measured at {MAIN_SIZE}"))?;
    let compensates = |one: &Kernel| {
        let mut variants = of_floats(one);
        variants.any(|variant| variant.rounding == Rounding::Compensated)
    };
    let before = KERNELS
        .iter()
        .take_while(|other| other.name != name)
        .filter(|other| compensates(rung) || !compensates(other))
        .last()
        .and_then(|before| of_floats(before).next())
        .filter(|before| tflops(main, before.name).is_some());

    let mut head = format!("\n| TFLOP/s on an {} |", measured.gpu());
    // Where at least one of the variants was measured.
    let is_measured = |size: &&Size| of_floats(rung).any(|one| tflops(size, one.name).is_some());
    let sizes: Vec<&Size> = results.sizes.iter().filter(is_measured).collect();
    for size in &sizes {
        head += &format!(" {} |", size.label());
    }
    let of_precision = match precision {
        "fp32" => String::new(),
        other => format!(" {other}"),
    };
    head += &format!(" of cuBLAS{of_precision} at {MAIN_SIZE} |");
    let is_sustained = of_floats(rung).any(|one| sustained(main, one.name).is_some());
    if is_sustained {
        head += &format!(" sustained at {MAIN_SIZE} | of cuBLAS, sustained |");
    }
    if let Some(before) = before {
        head += &format!(" times `{}` |", before.name);
    }
    let columns = head.matches('|').count() - 1;
    let mut table = format!("{head}\n|{}\n", " --- |".repeat(columns));
    let is_there = |name: &str| sizes.iter().any(|size| tflops(size, name).is_some());
    for variant in of_floats(rung).filter(|variant| is_there(variant.name)) {
        table += &format!("| `{}` |", variant.name);
        for size in &sizes {
            match tflops(size, variant.name) {
                Some(tflops) => table += &format!(" {tflops:.1} |"),
                None => table += " - |",
            }
        }
        let own = tflops(main, variant.name);
        table += &match own.zip(cublas_tflops(main, precision)) {
            Some((own, cublas)) => format!(" {:.0}\u{a0}% |", 100.0 * own / cublas),
            None => " - |".to_string(),
        };
        if is_sustained {
            let own = sustained(main, variant.name);
            table += &match own.zip(library_sustained(main, precision)) {
                Some((own, (_, cublas))) => {
                    format!(" {:.1} | {:.0}\u{a0}% |", own / 1e12, 100.0 * own / cublas)
                }
                None => " - | - |".to_string(),
            };
        }
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

/// The shapes of `rust-gemm bench --preset shapes` for which `auto` chose a kernel: the time, that
/// of cuBLAS, and how fast B was read.
pub fn chosen(name: &str) -> Result<String, String> {
    let rung = kernel(name)?;
    let results = h200_shapes()?;
    let mut table = "\n| m × n × k | µs | cuBLAS, µs | times as fast | B, TB/s |\n".to_string();
    table += "| --- | --- | --- | --- | --- |\n";
    for size in &results.sizes {
        let record = size.record("auto").filter(|record| {
            let choice = record.chosen.as_deref().unwrap_or_default();
            let chosen = choice.split(' ').next();
            of_floats(rung).any(|variant| chosen == Some(variant.name))
        });
        let of_kernel = record.and_then(|record| record.time_median_s);
        let Some((seconds, cublas)) = of_kernel.zip(size.cublas()) else {
            continue;
        };
        table += &format!(
            "| {}\u{a0}×\u{a0}{}\u{a0}×\u{a0}{} | {:.1} | {:.1}{} | {:.2} | {:.1} |\n",
            size.m,
            size.n,
            size.k,
            seconds * 1e6,
            cublas.seconds() * 1e6,
            lt_mark(&cublas.kernel),
            cublas.seconds() / seconds,
            (size.k * size.n * size_of::<f32>()) as f64 / seconds / 1e12,
        );
    }
    Ok(with_legend(table))
}

/// The speed of a variant at [`MAIN_SIZE`], as a share of the GPU's peak.
pub fn of_peak(name: &str) -> Result<f64, String> {
    let results = h200()?;
    let peak = results.machine.peak_flops_per_s;
    let peak = peak.ok_or("the results name no peak")?;
    let speed = at(&results, MAIN_SIZE).and_then(|size| size.record(name)?.flops_per_s);
    let speed = speed.ok_or_else(|| format!("`{name}` was not measured at {MAIN_SIZE}"))?;
    Ok(speed / peak)
}

/// The measurements at M = N = K = `size`.
pub fn at(results: &Results, size: usize) -> Option<&Size> {
    results
        .sizes
        .iter()
        .find(|measured| [measured.m, measured.n, measured.k] == [size; 3])
}

fn tflops(size: &Size, name: &str) -> Option<f64> {
    Some(size.record(name)?.flops_per_s? / 1e12)
}

fn cublas_tflops(size: &Size, precision: &str) -> Option<f64> {
    Some(library(size, precision)?.flops_per_s? / 1e12)
}

/// In flop/s.
fn sustained(size: &Size, name: &str) -> Option<f64> {
    Some(size.record(name)?.sustained.as_ref()?.flops_per_s)
}
