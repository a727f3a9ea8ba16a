//! Figures of the same kernels by OpenCL and otherwise, from what `rust-gemm bench` of two devices
//! wrote to `results/`.

use host::bench::{Results, Size};
use host::report::{Record, duration};

use crate::measured::proven;
use crate::parts::unbroken;
use crate::repository::at_root;

/// `bench --device sim,opencl --sizes 1024`, by PoCL on two cores.
const ON_CPU: &str = "results/opencl-2-cores.json";
/// `bench --device cuda,opencl --sizes 4096`, on an H200. Absent until it was measured.
const ON_GPU: &str = "results/h200-opencl.json";

/// `cpu`: a row for each kernel with its times on a CPU. `gpu`: a section with a row
/// for each kernel by CUDA and by OpenCL on a GPU, or nothing as long as there are no results.
///
/// # Errors
///
/// There is no such table, or the results are not right.
pub fn table(what: &str) -> Result<String, String> {
    match what {
        "cpu" => on_cpu(&proven(ON_CPU)?),
        "gpu" if !at_root(ON_GPU).exists() => Ok("\n".to_string()),
        "gpu" => on_gpu(&proven(ON_GPU)?),
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

/// The records of the first device, each with that of the same kernel on the second.
fn pairs(size: &Size) -> impl Iterator<Item = (&Record, Option<&Record>)> {
    let label = |record: &Record| record.device_label.clone();
    let first = size.results.first().and_then(label);
    let of_first = size.results.iter();
    let of_first = of_first.filter(move |record| label(record) == first);
    of_first.map(|record| {
        let mut others = size.results.iter();
        let is_same = |other: &&Record| {
            other.kernel == record.kernel && other.device_label != record.device_label
        };
        (record, others.find(is_same))
    })
}

fn time(record: &Record) -> String {
    unbroken(&record.time_median_s.map_or("-".to_string(), duration))
}

fn on_cpu(results: &Results) -> Result<String, String> {
    let size = only(results)?;
    let mut table = format!(
        "\n| {} on 2 CPU cores | by OpenCL (PoCL) | on the simulator |\n| --- | ---: | ---: |\n",
        size.label()
    );
    for (simulated, by_opencl) in pairs(size) {
        let by_opencl = by_opencl.ok_or_else(|| format!("{ON_CPU}: {}", simulated.kernel))?;
        let (name, by_opencl) = (&simulated.kernel, time(by_opencl));
        table += &format!("| `{name}` | {by_opencl} | {} |\n", time(simulated));
    }
    Ok(table + "\n")
}

fn on_gpu(results: &Results) -> Result<String, String> {
    let size = only(results)?;
    let machine = &results.machine;
    let driver = machine.driver.as_deref().unwrap_or("unknown");
    let mut text = format!(
        "\n## On an NVIDIA GPU\n\nThe same kernels at {} in one process, first through CUDA and then through NVIDIA's own \
         OpenCL ({}, driver {driver}):\n\n",
        size.label(),
        machine.device
    );
    text +=
        "| kernel | CUDA, TFLOP/s | OpenCL, TFLOP/s | of CUDA |\n| --- | ---: | ---: | ---: |\n";
    let speed = |record: &Record| {
        let speed = record.flops_per_s;
        speed.map_or("-".to_string(), |speed| format!("{:.1}", speed / 1e12))
    };
    for (by_cuda, by_opencl) in pairs(size) {
        let Some(by_opencl) = by_opencl else { continue };
        let ratio = by_opencl.ratio_to_first_device;
        let ratio = ratio.map_or("-".to_string(), |ratio| format!("{:.0} %", 100.0 * ratio));
        let name = &by_cuda.kernel;
        let (cuda, opencl) = (speed(by_cuda), speed(by_opencl));
        let ratio = unbroken(&ratio);
        text += &format!("| `{name}` | {cuda} | {opencl} | {ratio} |\n");
    }
    Ok(text + "\n")
}
