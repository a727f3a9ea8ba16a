//! Figures of the same kernels by OpenCL and otherwise, from what two runs of `rust-gemm bench`
//! wrote to `results/`.

use host::bench::{Results, Size};
use host::report::{Record, duration};

use crate::measured::{h200, proven};
use crate::parts::unbroken;
use crate::repository::at_root;

/// By PoCL on two cores, and on the simulator there.
const ON_CPU: [&str; 2] = [
    "results/opencl-2-cores.json",
    "results/simulator-2-cores.json",
];
/// On an H200. Absent until it was measured.
const ON_GPU: &str = "results/h200-opencl.json";

/// `cpu`: a row for each kernel with its times on a CPU. `gpu`: a section with a row
/// for each kernel by CUDA and by OpenCL on a GPU, or nothing as long as there are no results.
///
/// # Errors
///
/// There is no such table, or the results are not right.
pub fn table(what: &str) -> Result<String, String> {
    match what {
        "cpu" => on_cpu(&proven(ON_CPU[0])?, &proven(ON_CPU[1])?),
        "gpu" if !at_root(ON_GPU).exists() => Ok("\n".to_string()),
        "gpu" => on_gpu(&proven(ON_GPU)?, &h200()?),
        _ => Err(format!("`by-opencl {what}` is not `cpu` or `gpu`")),
    }
}

/// The only size.
fn only(results: &Results) -> Result<&Size, String> {
    match &results.sizes[..] {
        [size] => Ok(size),
        sizes => Err(format!("there are {} sizes, not one", sizes.len())),
    }
}

/// The records by OpenCL, each with that of the same kernel at the same size otherwise.
fn pairs<'a>(by_opencl: &'a Size, others: &'a Results) -> Vec<(&'a Record, &'a Record)> {
    let of_size = others.size(by_opencl.shape());
    let pair = |record: &'a Record| Some((record, of_size?.record(&record.kernel)?));
    by_opencl.results.iter().filter_map(pair).collect()
}

fn time(record: &Record) -> String {
    unbroken(&record.time_median_s.map_or("-".to_string(), duration))
}

fn on_cpu(results: &Results, simulated: &Results) -> Result<String, String> {
    let size = only(results)?;
    let mut table = format!(
        "\n| {} on 2 CPU cores | by OpenCL (PoCL) | on the simulator |\n| --- | ---: | ---: |\n",
        size.label()
    );
    for (by_opencl, simulated) in pairs(size, simulated) {
        let (name, by_opencl) = (&simulated.kernel, time(by_opencl));
        table += &format!("| `{name}` | {by_opencl} | {} |\n", time(simulated));
    }
    Ok(table + "\n")
}

fn on_gpu(results: &Results, by_cuda: &Results) -> Result<String, String> {
    let size = only(results)?;
    let machine = &results.machine;
    let driver = machine.driver.as_deref().unwrap_or("unknown");
    let mut text = format!(
        "\n## On an NVIDIA GPU\n\nThe same kernels at {} through CUDA and through NVIDIA's own OpenCL ({}, driver \
         {driver}):\n\n",
        size.label(),
        machine.device
    );
    text +=
        "| kernel | CUDA, TFLOP/s | OpenCL, TFLOP/s | of CUDA |\n| --- | ---: | ---: | ---: |\n";
    let speed = |record: &Record| {
        let speed = record.flops_per_s;
        speed.map_or("-".to_string(), |speed| format!("{:.1}", speed / 1e12))
    };
    for (by_opencl, by_cuda) in pairs(size, by_cuda) {
        let times = by_cuda.time_median_s.zip(by_opencl.time_median_s);
        let ratio = times.map(|(by_cuda, by_opencl)| by_cuda / by_opencl);
        let ratio = ratio.map_or("-".to_string(), |ratio| format!("{:.0} %", 100.0 * ratio));
        let name = &by_cuda.kernel;
        let (cuda, opencl) = (speed(by_cuda), speed(by_opencl));
        let ratio = unbroken(&ratio);
        text += &format!("| `{name}` | {cuda} | {opencl} | {ratio} |\n");
    }
    Ok(text + "\n")
}
