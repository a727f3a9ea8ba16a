//! The measurements that the book and the README show: what `rust-gemm bench --json` wrote, on one
//! GPU. `results/measure.sh` has the commands.

use gpu_kernels::spec::Kernel;
use host::bench::{Results, Size};
use host::report::Yardstick;

use crate::ladder::of_floats;
use crate::repository::{at_root, read};

/// Where kernels were measured at M = N = K, and the precision of the libraries that they are
/// compared with there.
const FILES: [(&[&str], &str); 4] = [
    (LADDER, "fp32"),
    (&["results/h200-fp64.json"], "fp64"),
    (&["results/h200-split.json"], "fp32"),
    (&["results/h200-tf32.json"], "tf32"),
];

/// All kernels up to 4096, and the fast ones above.
const LADDER: &[&str] = &["results/h200.json", "results/h200-large.json"];

/// The measurements on one GPU.
pub struct Measured {
    pub results: Results,
    /// The precision of the libraries: `fp32`, for example.
    pub precision: &'static str,
}

impl Measured {
    /// The GPU, without its maker and its memory: `H200`.
    pub fn gpu(&self) -> &str {
        let device = &self.results.machine.device;
        let mut words = device.split(' ').filter(|word| *word != "NVIDIA");
        words.next().unwrap_or(device)
    }
}

/// cuBLAS and cublasLt in a precision, such as `fp32` or `bf16-f32`.
pub fn libraries<'a>(size: &'a Size, precision: &str) -> impl Iterator<Item = &'a Yardstick> {
    let is_of = move |name: &str| name.split_once('-').is_some_and(|(_, of)| of == precision);
    size.yardsticks.iter().filter(move |one| is_of(&one.kernel))
}

/// The faster of cuBLAS and cublasLt in a precision.
pub fn library<'a>(size: &'a Size, precision: &str) -> Option<&'a Yardstick> {
    libraries(size, precision).min_by(|one, other| one.seconds().total_cmp(&other.seconds()))
}

/// The library that is fastest in back-to-back launches, in a precision: its name and its speed.
pub fn library_sustained<'a>(size: &'a Size, precision: &str) -> Option<(&'a str, f64)> {
    let speeds = libraries(size, precision)
        .filter_map(|one| Some((one.kernel.as_str(), one.sustained.as_ref()?.flops_per_s)));
    speeds.max_by(|(_, one), (_, other)| one.total_cmp(other))
}

/// A table, and below it what its marks of [`lt_mark`](host::measure::cublas::lt_mark) mean.
pub fn with_legend(table: String) -> String {
    let legend = match table.contains(" (Lt)") {
        true => "\n(Lt): cublasLt was the faster of the two.\n",
        false => "",
    };
    table + legend + "\n"
}

/// Where a kernel was measured; for one that was not, the ladder's file.
pub fn of_kernel(kernel: &Kernel) -> Result<Measured, String> {
    let names: Vec<&str> = of_floats(kernel).map(|one| one.name).collect();
    of_any(&names)
}

/// Where the first of these names was measured: of variants, or `cublas-fp64`.
pub fn of_any(names: &[&str]) -> Result<Measured, String> {
    for (files, precision) in FILES {
        let results = joined(files)?;
        let is_there = |name: &&str| {
            let mut sizes = results.sizes.iter();
            name.strip_prefix("cublas-") == Some(precision)
                || sizes.any(|size| size.record(name).is_some())
        };
        if names.iter().any(is_there) {
            return Ok(Measured { results, precision });
        }
    }
    let results = h200()?;
    let [(_, precision), ..] = FILES;
    Ok(Measured { results, precision })
}

/// The ladder at M = N = K, on an H200.
pub fn h200() -> Result<Results, String> {
    joined(LADDER)
}

/// The first file's results, with the sizes of the others after its own.
fn joined(files: &[&str]) -> Result<Results, String> {
    let mut all: Option<Results> = None;
    for file in files {
        let results = passed(file)?;
        match &mut all {
            Some(all) => all.sizes.extend(results.sizes),
            None => all = Some(results),
        }
    }
    all.ok_or_else(|| "no file".to_string())
}

/// `auto` at the shapes that programs multiply, on an H200.
pub fn h200_shapes() -> Result<Results, String> {
    passed("results/h200-shapes.json")
}

/// Results in a file.
pub fn passed(file: &str) -> Result<Results, String> {
    let results: Results = serde_json::from_str(&read(&at_root(file))?)
        .map_err(|error| format!("{file} holds no results: {error}"))?;
    match results.all_passed() {
        true => Ok(results),
        false => Err(format!("{file}: a kernel did not pass")),
    }
}
