//! Measured figures, from what the benchmark wrote into `results/`.

use gpu_kernels::KERNELS;
use gpu_kernels::spec::{Function, Kernel, Variant};
use serde_json::Value;

use super::{at_root, kernel, read};

/// The sizes, M = N = K, that the ladder was measured at.
const SIZES: [u32; 3] = [2048, 4096, 8192];

/// The size whose figures the text is about.
const MAIN_SIZE: u32 = 4096;

/// A figure, asked for as `4096 tiled-32 tflops`, `... of-cublas`, `... milliseconds` or `... over naive` (how many times
/// as fast).
///
/// # Errors
///
/// There is no such figure.
pub fn figure(arguments: &str) -> Result<String, String> {
    let words: Vec<&str> = arguments.split(' ').collect();
    let [size, variant, what @ ..] = words.as_slice() else {
        return Err(format!(
            "`figure {arguments}` is not `figure SIZE VARIANT WHAT`"
        ));
    };
    let size: u32 = size.parse().map_err(|_| format!("`{size}` is no size"))?;
    let run = run(size)?;
    let get = |name: &str| {
        measurement(&run, name).ok_or_else(|| format!("`{name}` was not measured at {size}"))
    };
    if *variant == "cublas" {
        return Ok(format!("{:.1}", cublas_tflops(&run)?));
    }
    let measured = get(variant)?;
    match what {
        ["tflops"] => Ok(format!("{:.1}", measured.tflops)),
        ["of-cublas"] => Ok(format!(
            "{:.0} %",
            100.0 * measured.tflops / cublas_tflops(&run)?
        )),
        ["over", other] => Ok(format!("{:.2}", measured.tflops / get(other)?.tflops)),
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
    let before = KERNELS
        .iter()
        .copied()
        .take_while(|other| other.name != name)
        .last();
    let factor = match before.and_then(first) {
        Some(variant) => format!(" times `{}` |", variant.name),
        None => String::new(),
    };
    let sizes = SIZES.map(|size| format!(" {size} |")).concat();
    let columns = 3 + SIZES.len() - usize::from(factor.is_empty());
    let mut table = format!(
        "\n| TFLOP/s on an H200 |{sizes} of cuBLAS at {MAIN_SIZE} |{factor}\n|{}\n",
        " --- |".repeat(columns)
    );
    let runs = SIZES.map(run);
    for variant in of_floats(rung) {
        let speed = |run: &Result<Vec<Value>, String>, name: &str| {
            let measured = measurement(run.as_ref().ok()?, name)?;
            Some(measured.tflops)
        };
        let cells = runs.each_ref().map(|run| match speed(run, variant.name) {
            Some(tflops) => format!(" {tflops:.1} |"),
            None => " not yet |".to_string(),
        });
        let main = SIZES
            .iter()
            .position(|&size| size == MAIN_SIZE)
            .unwrap_or(0);
        let run = &runs[main];
        let share = speed(run, variant.name)
            .zip(run.as_ref().ok().and_then(|run| cublas_tflops(run).ok()))
            .map_or(" - |".to_string(), |(own, cublas)| {
                format!(" {:.0} % |", 100.0 * own / cublas)
            });
        let over = match before.and_then(first) {
            Some(other) => match speed(run, variant.name).zip(speed(run, other.name)) {
                Some((own, other)) => format!(" {:.2} |", own / other),
                None => " - |".to_string(),
            },
            None => String::new(),
        };
        table += &format!("| `{}` |{}{share}{over}\n", variant.name, cells.concat());
    }
    Ok(table + "\n")
}

/// The variants that multiply `f32`, in the table's order.
pub fn of_floats(kernel: &Kernel) -> impl Iterator<Item = &'static Variant> {
    kernel
        .variants
        .iter()
        .filter(|variant| matches!(variant.function, Function::F32(_)))
}

fn first(kernel: &Kernel) -> Option<&'static Variant> {
    of_floats(kernel).next()
}

struct Measurement {
    tflops: f64,
}

fn measurement(run: &[Value], name: &str) -> Option<Measurement> {
    let record = run
        .iter()
        .find(|record| record["kernel"] == name && record["dtype"] == "f32")?;
    let tflops = record["flops_per_s"].as_f64()? / 1e12;
    Some(Measurement { tflops })
}

fn cublas_tflops(run: &[Value]) -> Result<f64, String> {
    let number = |key: &str| run.first().and_then(|record| record[key].as_f64());
    let all = number("m").zip(number("n")).zip(number("k"));
    all.zip(number("cublas_time_median_s"))
        .map(|(((m, n), k), seconds)| 2.0 * m * n * k / seconds / 1e12)
        .ok_or_else(|| "cuBLAS was not measured".to_string())
}

/// The records of the run at a size.
fn run(size: u32) -> Result<Vec<Value>, String> {
    let path = at_root(&format!("results/h200-{size}.json"));
    let report: Value = serde_json::from_str(&read(&path)?).map_err(|e| e.to_string())?;
    let records = report["results"].as_array();
    records
        .cloned()
        .ok_or_else(|| format!("{} has no results", path.display()))
}
