//! Figures of the same kernels by OpenCL and on the simulator, from what two runs of `rust-gemm
//! bench` wrote to `results/`.

use host::report::{Record, duration};

use crate::measured::passed;
use crate::parts::unbroken;

/// By PoCL on two cores, and on the simulator there.
const ON_CPU: [&str; 2] = [
    "results/opencl-2-cores.json",
    "results/simulator-2-cores.json",
];
/// A row for each kernel with its times on a CPU.
pub fn table() -> Result<String, String> {
    let [results, simulated] = [passed(ON_CPU[0])?, passed(ON_CPU[1])?];
    let [size] = &results.sizes[..] else {
        return Err(format!("there are {} sizes, not one", results.sizes.len()));
    };
    let mut table = format!(
        "\n| {} on 2 CPU cores | by OpenCL (PoCL) | on the simulator |\n| --- | ---: | ---: |\n",
        size.label()
    );
    let time = |record: &Record| unbroken(&record.time_median_s.map_or("-".to_string(), duration));
    for by_opencl in &size.results {
        let others = simulated.size(size.shape());
        let Some(simulated) = others.and_then(|size| size.record(&by_opencl.kernel)) else {
            continue;
        };
        let (name, by_opencl) = (&simulated.kernel, time(by_opencl));
        table += &format!("| `{name}` | {by_opencl} | {} |\n", time(simulated));
    }
    Ok(table + "\n")
}
