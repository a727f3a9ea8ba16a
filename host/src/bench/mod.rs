//! `bench`: many kernels at many sizes, proven and timed, beside cuBLAS; as a table, as files,
//! as plots.
//!
//! | file | what it does |
//! | --- | --- |
//! | `results.rs` | what a benchmark finds, as written to JSON and read back |
//! | `ladder.rs` | a table's rows: shares of cuBLAS and of the peak, gain over the rung before |
//! | `table.rs`, `markdown.rs` | for the terminal, and an overview for documents |
//! | `lines.rs` | a line of CSV for each result |
//! | `pictures/` | the plots: speed against size, a roofline, bars of the ladder and of ratios |
//! | `preset.rs` | the table of the report that the ladder follows, beside ours |
//! | `shapes.rs`, `ratios.rs` | shapes that programs multiply, and their ratios to cuBLAS |
//! | `compare/` | what has changed since an earlier benchmark |
//! | `export.rs` | the requested files, which always hold what is finished |

pub mod compare;
pub mod export;
mod ladder;
mod lines;
pub mod markdown;
pub mod pictures;
pub mod preset;
pub mod ratios;
pub mod results;
#[cfg(test)]
mod samples;
pub mod shapes;
pub mod table;

pub use compare::Earlier;
pub use export::Layout;
pub use results::{Machine, Provenance, Results, Size};
pub use shapes::Target;

use crate::cpu;
use crate::data::Storage;
use crate::measure::{Effort, Origin};
use crate::progress::Progress;
use crate::prove::{self, Baseline, EvaluateError, Request};
use crate::select::Asked;
use gpu_gemm::{Chooser, DataType, Device, Opened, Shape};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// In the order of the rows.
    pub asked: Vec<Asked>,
    pub data_type: DataType,
    pub targets: Vec<Target>,
    /// The factors of A * B and of the C that was there.
    pub alpha: f64,
    pub beta: f64,
    /// How the matrices are stored.
    pub storage: Storage,
    /// Where matrices lie before a timed product on several devices that are joined.
    pub origin: Origin,
    pub baseline: Baseline,
    pub seed: u64,
    pub effort: Effort,
    /// What was chosen for the CPU rungs.
    pub cpu: cpu::Settings,
    /// What to compare with what is found.
    pub earlier: Option<Earlier>,
}

impl Plan {
    fn request(&self, chooser: &Chooser, shape: Shape) -> Request {
        let call = self.storage.call(shape, self.data_type.inputs);
        let rung = |asked: &Asked| asked.rung(chooser, self.data_type, call);
        let rungs = self.asked.iter().filter_map(rung);
        Request {
            alpha: self.alpha,
            beta: self.beta,
            storage: self.storage,
            effort: self.effort,
            origin: self.origin,
            baseline: self.baseline,
            tensor_cores: true,
            cpu: self.cpu,
            ..Request::new(rungs.collect(), self.data_type, shape, self.seed)
        }
    }
}

/// The sizes that are measured by default: those that fill a GPU, or those that a CPU can simulate.
pub fn default_sizes(device: &Device) -> [usize; 3] {
    match device.gpu() {
        Some(_) => [1024, 2048, 4096],
        None => [128, 256, 512],
    }
}

/// Proves and times every kernel at every shape. The results hold what was known when an error, if
/// any, ended it. `finished` is called after each shape that no error ended, with the results so
/// far.
pub fn run(
    opened: &Opened,
    chooser: &Chooser,
    plan: &Plan,
    finished: &mut dyn FnMut(&Results, &Progress),
) -> (Results, Result<(), EvaluateError>) {
    let targets = plan.targets.iter();
    let requests: Vec<(&Target, Request)> = targets
        .map(|target| (target, plan.request(chooser, target.shape)))
        .collect();
    // A problem too large to launch has no progress steps, and is refused when it is reached.
    let steps = requests.iter();
    let steps = steps.map(|(_, request)| prove::steps(&opened.device, request).unwrap_or(0));
    let progress = Progress::start(steps.sum());
    let mut results = Results {
        schema: results::SCHEMA,
        provenance: Some(Provenance::now()),
        machine: Machine::of(&opened.device, plan.data_type),
        ..Results::default()
    };
    for (target, request) in &requests {
        let (report, outcome) = prove::evaluate_observed(opened, request, &progress);
        results.machine.cublas = report.cublas;
        if report.backend == "cpu" {
            results.machine.backend = report.backend.to_string();
            results.machine.device = report.device;
        }
        results.sizes.push(Size {
            name: target.name.map(String::from),
            origin: target.origin.map(String::from),
            gpu_state: report.gpu_state,
            yardsticks: report.yardsticks,
            results: report.results,
            ..Size::of(target.shape)
        });
        if target.name.is_some() {
            results.summaries = ratios::summaries(&results);
        }
        if let Some(earlier) = &plan.earlier {
            results.comparison = compare::compare(&earlier.results, &results);
        }
        if outcome.is_err() {
            return (results, outcome);
        }
        finished(&results, &progress);
    }
    (results, Ok(()))
}
