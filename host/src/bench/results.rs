//! The results of a benchmark. This is the layout of the JSON that `bench --json` writes, the
//! source of the figures in README and documentation: field names are its keys. A value that does
//! not apply or is not known is null.

use std::collections::HashSet;
use std::io::{self, Write};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::measure::nvml::GpuState;
use crate::progress::Stage;
use crate::report::{Record, Yardstick, folded};
use gpu_gemm::device::driver;
use gpu_gemm::gpu::Gpu;
use gpu_gemm::{DataType, Device, Shape};

/// The version of this layout. Fields may be added; none is changed or removed. In version 1 there
/// could be several devices, with a label each; in version 2 there were a `comparison`
/// and, in records, `outliers`; in version 3 records had `proven` for `passed`.
pub const SCHEMA: u32 = 4;

/// Everything that one `bench` found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA`].
    pub schema: u32,
    /// `None` in files of older versions.
    pub provenance: Option<Provenance>,
    pub machine: Machine,
    /// One for each shape, in the requested order.
    pub sizes: Vec<Size>,
    /// Summaries of the ratios to cuBLAS, where shapes have names; else empty.
    #[serde(default)]
    pub summaries: Vec<Summary>,
}

/// When, where and with which program it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// When the benchmark began, such as `2026-11-23T08:05:00Z`.
    pub date: String,
    /// The version of this program.
    pub version: String,
    /// The commit that the program was built from, with `-dirty` if it had changes; null if it
    /// was not built in a git checkout, and in older files. See `build.rs`.
    pub commit: Option<String>,
    /// The machine's name in its network.
    pub host: String,
    /// The command, as arguments of the program; files of older versions lack it.
    #[serde(default)]
    pub command: Vec<String>,
}

impl Provenance {
    /// The provenance of a benchmark that begins now.
    pub fn now() -> Self {
        let date = humantime::format_rfc3339_seconds(SystemTime::now());
        let system = rustix::system::uname();
        Self {
            date: date.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("GEMM_COMMIT").map(String::from),
            host: system.nodename().to_string_lossy().into_owned(),
            command: std::env::args().skip(1).collect(),
        }
    }

    /// The date without the time of day.
    pub fn day(&self) -> &str {
        self.date.split('T').next().unwrap_or_default()
    }
}

/// A summary of a kernel's ratios to cuBLAS, over all shapes where both were measured. Above 1
/// the kernel is faster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub kernel: String,
    /// The number of shapes.
    pub shapes: usize,
    pub geometric_mean: f64,
    /// The smallest ratio, and the shape's name or dimensions.
    pub worst: f64,
    pub worst_shape: String,
    /// Shapes where the kernel is at least as fast.
    pub at_least_as_fast: usize,
}

/// Where it was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// `cuda`, `opencl` or `simulator`; `cpu` if there are only CPU rungs.
    pub backend: String,
    /// The GPU's name, or the simulator and its threads, or the CPU's name.
    pub device: String,
    /// Such as `9.0`.
    pub compute_capability: Option<String>,
    pub multiprocessors: Option<u32>,
    /// The highest clock of the streaming multiprocessors (SMs); the clock that they ran at is
    /// that of [`Size::gpu_state`].
    pub clock_mhz: Option<u32>,
    /// The peak bandwidth of the GPU's memory, from its clock and bus width.
    pub bandwidth_bytes_per_s: Option<f64>,
    /// Multiply-adds of the element type on all lanes at that clock, without tensor cores; two
    /// operations each.
    pub peak_flops_per_s: Option<f64>,
    /// The newest CUDA that the driver supports, such as `13.0`.
    pub cuda: Option<String>,
    /// The driver's release, such as `580.159.04`.
    pub driver: Option<String>,
    /// The version of cuBLAS, and where it was loaded from.
    pub cublas: Option<String>,
}

/// The measurements at one shape, with the runs of all contenders alternating.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Size {
    /// The name of a shape of `--preset shapes`, and which programs multiply such matrices.
    pub name: Option<String>,
    pub origin: Option<String>,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// The clocks, power and temperature of the GPU during the runs; null for other devices,
    /// without NVML and in older files.
    pub gpu_state: Option<GpuState>,
    /// cuBLAS and cublasLt, if they were measured.
    pub yardsticks: Vec<Yardstick>,
    /// One for each kernel, in the requested order.
    pub results: Vec<Record>,
    /// How long each stage of checking and timing took, of all contenders together; empty in older
    /// files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
}

impl Machine {
    /// The description of `device`, with its peak for an element type. cuBLAS is filled in when it
    /// has been measured.
    pub fn of(device: &Device, data_type: DataType) -> Machine {
        let machine = Machine {
            backend: device.backend().to_string(),
            device: device.description(),
            ..Machine::default()
        };
        let Some(gpu) = device.one_gpu() else {
            return machine;
        };
        let properties = gpu.properties();
        let (major, minor) = properties.capability;
        Machine {
            device: properties.name.clone(),
            compute_capability: Some(format!("{major}.{minor}")),
            multiprocessors: u32::try_from(properties.sms).ok(),
            clock_mhz: u32::try_from(properties.clock_mhz).ok(),
            bandwidth_bytes_per_s: Some(properties.bandwidth_bytes_per_s),
            peak_flops_per_s: Gpu::of(properties).map(|gpu| gpu.peak(data_type.inputs)),
            cuda: Some(properties.driver.clone()),
            driver: driver::release(),
            ..machine
        }
    }

    /// In one line, for people.
    pub fn description(&self) -> String {
        let named = |name, fact: &Option<String>| Some(format!("{name} {}", fact.as_ref()?));
        let sms = self.multiprocessors.zip(self.clock_mhz);
        let facts = [
            named("compute capability", &self.compute_capability),
            sms.map(|(count, clock)| format!("{count} SMs at up to {clock} MHz")),
            (self.peak_flops_per_s).map(|peak| format!("peak {:.1} TFLOP/s", peak / 1e12)),
            (self.bandwidth_bytes_per_s).map(|bandwidth| format!("{:.2} TB/s", bandwidth / 1e12)),
            named("driver", &self.driver),
            named("cuBLAS", &self.cublas),
        ];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        match facts.is_empty() {
            true => self.device.clone(),
            false => format!("{} ({})", self.device, facts.join(", ")),
        }
    }
}

impl Size {
    /// An empty record for this shape.
    pub fn of(Shape { m, n, k }: Shape) -> Size {
        Size {
            m,
            n,
            k,
            ..Size::default()
        }
    }

    /// The dimensions.
    pub fn shape(&self) -> Shape {
        Shape::new(self.m, self.n, self.k)
    }

    /// `2048` for a cube, `3 x 40 x 5` for another shape (m x n x k).
    pub fn label(&self) -> String {
        match self.m == self.n && self.n == self.k {
            true => self.m.to_string(),
            false => self.shape().to_string(),
        }
    }

    /// Its name, or else [`Size::label`].
    pub fn title(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.label())
    }

    /// The result of a kernel.
    pub fn record(&self, kernel: &str) -> Option<&Record> {
        self.results.iter().find(|record| record.kernel == kernel)
    }

    /// The cuBLAS or cublasLt that kernels are compared with, if any was measured.
    pub fn cublas(&self) -> Option<&Yardstick> {
        Yardstick::fastest(&self.yardsticks)
    }

    /// The kernels, and then the yardsticks; each with whether it is a yardstick, which is not
    /// checked.
    pub(super) fn contenders(&self) -> impl Iterator<Item = (&Record, bool)> {
        let kernels = self.results.iter().map(|record| (record, false));
        kernels.chain(self.yardsticks.iter().map(|record| (record, true)))
    }

    /// The times of a library, by its name.
    pub fn yardstick(&self, name: &str) -> Option<&Yardstick> {
        self.yardsticks.iter().find(|one| one.kernel == name)
    }
}

impl Results {
    /// Whether every kernel passes at every shape, and there is one.
    pub fn all_passed(&self) -> bool {
        let passed = |size: &Size| {
            !size.results.is_empty() && size.results.iter().all(|record| record.passed)
        };
        !self.sizes.is_empty() && self.sizes.iter().all(passed)
    }

    /// Writes the device, and why it was chosen.
    pub(super) fn write_device(&self, why: &str, out: &mut dyn Write) -> io::Result<()> {
        let device = format!("device  {}", self.machine.description());
        writeln!(out, "{}", folded(&device))?;
        writeln!(out, "{}", folded(&format!("why     {why}")))
    }

    /// The results at a shape.
    pub fn size(&self, shape: Shape) -> Option<&Size> {
        self.sizes.iter().find(|size| size.shape() == shape)
    }

    /// The names of all kernels that were measured, in order, each once.
    pub fn kernels(&self) -> Vec<&str> {
        let records = self.sizes.iter().flat_map(|size| &size.results);
        once_each(records.map(|record| record.kernel.as_str()))
    }

    /// The names of all yardsticks that were measured, in order, each once.
    pub fn yardsticks(&self) -> Vec<&str> {
        let yardsticks = self.sizes.iter().flat_map(|size| &size.yardsticks);
        once_each(yardsticks.map(|yardstick| yardstick.kernel.as_str()))
    }
}

fn once_each<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = HashSet::new();
    names.filter(|name| seen.insert(*name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::samples::sample;

    #[test]
    fn what_is_written_is_read_again() {
        let text = serde_json::to_string(&sample()).unwrap();
        assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), sample());
    }

    #[test]
    fn one_wrong_kernel_is_not_all_passed() {
        let mut results = sample();
        assert!(!results.all_passed());
        for size in &mut results.sizes {
            size.results.retain(|record| record.passed);
        }
        assert!(results.all_passed());
        results.sizes[0].results.clear();
        assert!(!results.all_passed());
        results.sizes.clear();
        assert!(!results.all_passed());
    }
}
