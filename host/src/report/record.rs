//! The record of a run.

use gpu_gemm::Shape;
use gpu_gemm::text::plural;
use serde::{Deserialize, Serialize};

use super::several::Several;
use crate::measure::nvml::GpuState;
use crate::progress::Stage;

/// Everything about one call of the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The version of this layout: 3. Fields may be added to it; none is changed or removed. In
    /// version 1 records had a label of their device, and yardsticks a `name`, but no element
    /// type; in version 2 records had `outliers`.
    pub schema: u32,
    /// `cuda`, `opencl` or `simulator`; `cpu` if there are only CPU rungs.
    pub backend: &'static str,
    /// The device's name and size.
    pub device: String,
    /// Why this device was chosen.
    pub reason: String,
    /// The cuBLAS that was measured, with its version and path.
    pub cublas: Option<String>,
    /// The clocks, power and temperature of the GPU while it was measured; null for other devices
    /// and without NVML.
    pub gpu_state: Option<GpuState>,
    /// The file that C was written to, if that was requested and C passes.
    pub output: Option<String>,
    /// One for each kernel, in the requested order.
    pub results: Vec<Record>,
    /// The yardsticks, whose runs alternated with those of the kernels.
    pub yardsticks: Vec<Yardstick>,
    /// How long each stage of checking and timing took, of all kernels together.
    pub stages: Vec<Stage>,
}

/// One kernel's result. Times are in seconds. A value that was not measured or does not apply is
/// null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// The kernel's variant or the CPU rung, such as `tiled-32` or `cpu-ikj`; the library of a
    /// [`Yardstick`], which was `name` in version 1.
    #[serde(alias = "name")]
    pub kernel: String,
    /// The element type, such as `f32`.
    pub dtype: String,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// The batch size: products of this shape, with their matrices one after the other; null for
    /// one product, and in older reports.
    pub batch: Option<usize>,
    /// The rows of each group of a grouped product, which add up to `m`; else null.
    pub groups: Option<Vec<usize>>,
    /// Whether kernels got A as `k x m`, and B as `n x k`; false in older reports.
    pub transpose_a: bool,
    pub transpose_b: bool,
    /// Leading dimensions: elements from the start of a row, as stored, to the start of the next.
    /// Null in older reports, where rows have no padding.
    pub lda: Option<usize>,
    pub ldb: Option<usize>,
    pub ldc: Option<usize>,
    pub alpha: f64,
    pub beta: f64,
    pub seed: u64,
    /// `cuda`, `opencl`, `simulator` or `cpu`.
    pub backend: String,
    /// CTAs along x (columns of C) of a launch; 0 if there was nothing to launch, as for CPU
    /// rungs.
    pub grid_x: u32,
    /// CTAs along y (rows of C) of all launches together.
    pub grid_y: u64,
    /// CTAs along z of a launch: products of a batch; null if there is one.
    pub grid_z: Option<u32>,
    /// Threads of a CTA along x.
    pub block_x: u32,
    /// Threads of a CTA along y.
    pub block_y: u32,
    /// The number of launches: more than 1 if a grid cannot have `grid_y` CTAs along y, for
    /// operand copies and a fix-up, and where each product of a batch has a launch of its own.
    pub launches: usize,
    /// Whether the result passed every gate.
    #[serde(alias = "proven")] // its name up to version 3
    pub passed: bool,
    /// What passed, or what is wrong: a sentence.
    pub verification: String,
    /// The largest error of an element in units of rounding, and the bound for that element.
    pub largest_error: Option<f64>,
    pub error_bound: Option<f64>,
    /// Timed runs, warm-up runs, and launches in a run, whose mean is its time.
    pub runs: Option<usize>,
    pub warmup: Option<u32>,
    pub launches_per_run: Option<u32>,
    pub time_median_s: Option<f64>,
    pub time_min_s: Option<f64>,
    pub time_max_s: Option<f64>,
    pub time_mean_s: Option<f64>,
    /// The sample standard deviation; null for one run.
    pub time_stddev_s: Option<f64>,
    /// `2 * m * n * k`, for each product of a batch, over the median time; null if no product is
    /// computed, since alpha or k is 0.
    pub flops_per_s: Option<f64>,
    /// The faster of cuBLAS and cublasLt on the same problem, in the same process: its name, and its
    /// median time; null for CPU rungs.
    pub compared_with: Option<String>,
    pub cublas_time_median_s: Option<f64>,
    /// That time over the kernel's: above 1 the kernel is faster.
    pub ratio_to_cublas: Option<f64>,
    /// Threads that a CPU rung ran on; null for a library that does not tell.
    pub threads: Option<usize>,
    /// How a CPU rung assigned its work to them, if it did.
    pub schedule: Option<String>,
    /// The epilogue, such as `bias+gelu`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epilogue: Option<String>,
    /// What has a scale of its own, where A and B were quantised: a value of `--scales`. And what
    /// that costs: the Frobenius norm of the errors beside the product of the operands as given,
    /// over that of this product; the largest error of an element over the sum of its terms'
    /// magnitudes; and the number of rows that were compared. Absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scales: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantisation_error_frobenius: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantisation_error_largest: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantisation_error_rows: Option<usize>,
    /// For `auto`, the chosen variant and the division of its work.
    pub chosen: Option<String>,
    /// The data of the matrices: a value of `--data`, or files. Null in older reports, which
    /// checked uniform numbers and timed normal ones.
    pub data: Option<String>,
    /// `full` if every element was compared, or its row by Freivalds' check; `sampled` if some
    /// were; null for a result that did not pass.
    pub coverage: Option<String>,
    /// What errors are proportional to, for any data: `elementwise` (the sum of the magnitudes of
    /// an element's terms), `row-column` (that, and the largest elements of its row of A and its
    /// column of B), `matrix` (the largest of A and of B) or `exact` (none). Null in older
    /// reports.
    pub error_model: Option<String>,
    /// The Frobenius norm of the errors over that of the exact result, and the largest error of an
    /// element in units of rounding of the sum of its terms' magnitudes; null if not every element
    /// was compared with a number.
    pub frobenius_error: Option<f64>,
    pub largest_error_units: Option<f64>,
    /// The time of each run, in the order of running; absent if it was not timed, and in older
    /// files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub times_s: Vec<f64>,
    /// The speed of back-to-back launches, if it was requested; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sustained: Option<Sustained>,
    /// The variant of the same kernel that reads A and B in place, where this one copies one of
    /// them first; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads_in_place: Option<String>,
    /// The fields of several devices that multiply together; absent for one device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub several: Option<Several>,
    /// The rows of the corner of C that `--show` requested, if C passes; absent
    /// otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corner: Option<Vec<Vec<f64>>>,
}

/// The times of a library on the same problem, in the same process, with runs that alternated with
/// those of the kernels. Its `kernel` is the library and the precision, such as `cublas-fp32` or
/// `cublaslt-bf16`; gates do not check it. Kernels are compared with the faster library; not with
/// f32 rounded to TF32, `cublas-tf32` and `cublaslt-tf32`.
pub type Yardstick = Record;

/// Speed at the power limit, of seconds of back-to-back launches: see
/// [`crate::measure::gpu::Sustained`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sustained {
    /// The counted seconds of all turns together.
    pub seconds: f64,
    pub turns: u32,
    /// Launches in these seconds.
    pub launches: u64,
    /// The speed, as in the record.
    pub flops_per_s: f64,
    /// This speed over that of the library that is fastest back to back; null for a library, and
    /// without one.
    pub ratio_to_cublas: Option<f64>,
    /// The mean clock of the SMs, and the mean power; null where they are not known.
    pub sm_clock_mhz: Option<f64>,
    pub power_w: Option<f64>,
    /// The power over the speed: joules for 10^12 operations.
    pub joules_per_tflop: Option<f64>,
}

impl Record {
    /// The leading dimensions of A, B and C.
    pub fn leading_dimensions(&self) -> [usize; 3] {
        let [a, b, c] = self.columns();
        [
            self.lda.unwrap_or(a),
            self.ldb.unwrap_or(b),
            self.ldc.unwrap_or(c),
        ]
    }

    /// The elements of a row of A, B and C, as stored.
    fn columns(&self) -> [usize; 3] {
        let a = if self.transpose_a { self.m } else { self.k };
        let b = if self.transpose_b { self.k } else { self.n };
        [a, b, self.n]
    }

    /// The epilogue or the scales, for people, after a comma; else empty.
    pub fn epilogue_note(&self) -> String {
        match (&self.epilogue, &self.scales) {
            (Some(epilogue), _) => format!(", epilogue {epilogue}"),
            (None, Some(scales)) => format!(", scales {scales}"),
            (None, None) => String::new(),
        }
    }

    /// The transposes, leading dimensions, batch size and groups that are not the defaults, for
    /// people, after a comma; else empty.
    pub fn layout(&self) -> String {
        let transposed = match (self.transpose_a, self.transpose_b) {
            (false, false) => "",
            (true, false) => ", A stored transposed",
            (false, true) => ", B stored transposed",
            (true, true) => ", A and B stored transposed",
        };
        let batch = match (self.batch, &self.groups) {
            (_, Some(groups)) => {
                let most = groups.iter().max().unwrap_or(&0);
                format!(", {} of up to {most} rows", plural(groups.len(), "group"))
            }
            (Some(batch), None) => format!(", a batch of {batch}"),
            (None, None) => String::new(),
        };
        match self.leading_dimensions() {
            dimensions if dimensions == self.columns() => format!("{batch}{transposed}"),
            [lda, ldb, ldc] => format!("{batch}{transposed}, lda {lda}, ldb {ldb}, ldc {ldc}"),
        }
    }

    /// The shape of each product.
    pub fn shape(&self) -> Shape {
        Shape::new(self.m, self.n, self.k)
    }

    /// The median time; infinite if it was not timed.
    pub fn seconds(&self) -> f64 {
        self.time_median_s.unwrap_or(f64::INFINITY)
    }

    /// Its errors as a clause, if every element was compared.
    pub fn errors(&self) -> Option<String> {
        let (frobenius, units) = self.frobenius_error.zip(self.largest_error_units)?;
        Some(format!(
            "{frobenius:.2e} in the Frobenius norm, at most {units:.1} units of rounding"
        ))
    }

    /// What quantising costs, as a clause.
    pub fn quantisation(&self) -> Option<String> {
        let errors = (self.quantisation_error_frobenius).zip(self.quantisation_error_largest);
        let ((frobenius, largest), rows) = errors.zip(self.quantisation_error_rows)?;
        let rows = match rows == self.m {
            true => "all rows".to_string(),
            false => format!("{rows} of {} rows", self.m),
        };
        Some(format!(
            "{frobenius:.2e} in the Frobenius norm, at most {largest:.2e} of the sum of an element's terms' magnitudes (in {rows})"
        ))
    }

    /// A note if it copies A or B first, but another variant does not.
    pub(crate) fn copies_note(&self) -> Option<String> {
        let variant = self.reads_in_place.as_ref()?;
        Some(format!(
            "copies A or B first, since it cannot read them in place; `{variant}` can"
        ))
    }

    /// Whether it is a GPU kernel that was launched once for each product of a batch.
    pub fn is_one_after_the_other(&self) -> bool {
        let batch = self.batch.filter(|_| !self.is_native());
        batch.is_some_and(|count| count > 0 && self.launches >= count)
    }

    /// Whether it is the record of a CPU rung, which needs no device.
    pub fn is_native(&self) -> bool {
        self.backend == "cpu"
    }

    /// The shortest and the longest time, if there are several.
    pub fn extremes(&self) -> Option<(f64, f64)> {
        let extremes = self.time_min_s.zip(self.time_max_s);
        extremes.filter(|_| self.runs > Some(1))
    }

    /// Whether it passed, for tables.
    pub fn verdict(&self) -> &'static str {
        match (self.passed, self.is_sampled()) {
            (true, false) => "passed",
            (true, true) => "sampled",
            (false, _) => "FAILED",
        }
    }

    /// Whether only a sample of its elements was compared.
    pub fn is_sampled(&self) -> bool {
        self.coverage.as_deref() == Some("sampled")
    }
}

impl Report {
    /// Whether every kernel passes, and there is one.
    pub fn all_passed(&self) -> bool {
        !self.results.is_empty() && self.results.iter().all(|record| record.passed)
    }
}
