//! `bench`: many kernels at many sizes, proven and timed, beside cuBLAS; as a table, as files,
//! as plots.
//!
//! | file | what it does |
//! | --- | --- |
//! | `devices.rs` | the device or devices that it runs on |
//! | `results.rs` | what a benchmark finds, as written to JSON and read back |
//! | `ladder.rs` | a table's rows: shares of cuBLAS and of the peak, gain over the rung before |
//! | `table.rs`, `markdown.rs` | for the terminal and for documents |
//! | `lines.rs` | a line of CSV for each result |
//! | `pictures/` | the plots: speed against size, a roofline, bars of the ladder and of ratios |
//! | `preset.rs` | the table of the report that the ladder follows, beside ours |
//! | `shapes.rs`, `ratios.rs` | shapes that programs multiply, and their ratios to cuBLAS |
//! | `compare/` | what has changed since an earlier benchmark |
//! | `export.rs` | the requested files, which always hold what is finished |

pub mod compare;
mod devices;
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
pub use devices::{OnDevice, labels};
pub use export::Layout;
pub use ladder::Sort;
pub use results::{Machine, Provenance, Results, Size};
pub use shapes::Target;

use crate::cpu;
use crate::data::Storage;
use crate::measure::Effort;
use crate::progress::Progress;
use crate::prove::{self, EvaluateError, Request};
use crate::select::Asked;
use gpu_gemm::{DataType, Shape};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// In the order of the rows; what runs on a device is in its [`OnDevice`].
    pub asked: Vec<Asked>,
    pub data_type: DataType,
    pub targets: Vec<Target>,
    /// The factors of A * B and of the C that was there.
    pub alpha: f64,
    pub beta: f64,
    /// How the matrices are stored.
    pub storage: Storage,
    pub seed: u64,
    pub effort: Effort,
    /// What was chosen for the CPU rungs.
    pub cpu: cpu::Settings,
    /// What to compare with what is found.
    pub earlier: Option<Earlier>,
}

impl Plan {
    fn request(&self, on: &OnDevice, shape: Shape) -> Request {
        let call = self.storage.call(shape, self.data_type.inputs);
        let rung = |asked: &Asked| asked.rung(&on.chooser, self.data_type, call);
        let rungs = on.asked.iter().filter_map(rung);
        Request {
            alpha: self.alpha,
            beta: self.beta,
            storage: self.storage,
            effort: self.effort,
            origin: on.origin,
            baseline: on.baseline,
            tensor_cores: true,
            cpu: self.cpu,
            ..Request::new(rungs.collect(), self.data_type, shape, self.seed)
        }
    }
}

/// The sizes that are measured by default: those that fill a GPU, or, if there is any other
/// device, those that a CPU can simulate.
pub fn default_sizes(devices: &[OnDevice]) -> [usize; 3] {
    let is_gpu = |on: &OnDevice| on.opened.device.gpu().is_some();
    match devices.iter().all(is_gpu) {
        true => [1024, 2048, 4096],
        false => [128, 256, 512],
    }
}

/// Proves and times every kernel at every shape, on one device after the other. The results hold
/// what was known when an error, if any, ended it. `finished` is called after each shape that no
/// error ended, with the results so far.
pub fn run(
    devices: &[OnDevice],
    plan: &Plan,
    finished: &mut dyn FnMut(&Results, &Progress),
) -> (Results, Result<(), EvaluateError>) {
    let requests = |target: &Target| {
        let requests = devices.iter().map(|on| plan.request(on, target.shape));
        devices.iter().zip(requests.collect::<Vec<Request>>())
    };
    // A problem too large to launch has no progress steps, and is refused when it is reached.
    let steps = plan.targets.iter().flat_map(requests);
    let steps = steps.map(|(on, request)| prove::steps(&on.opened.device, &request).unwrap_or(0));
    let progress = Progress::start(steps.sum());
    let machines = devices.iter().map(|on| on.machine(plan.data_type));
    let machines: Vec<Machine> = machines.collect();
    let mut results = Results {
        schema: results::SCHEMA,
        provenance: Some(Provenance::now()),
        machine: machines.first().cloned().unwrap_or_default(),
        machines: match machines.len() {
            0 | 1 => Vec::new(),
            _ => machines,
        },
        ..Results::default()
    };
    for target in &plan.targets {
        let mut size = Size {
            name: target.name.map(String::from),
            origin: target.origin.map(String::from),
            ..Size::of(target.shape)
        };
        let mut outcome = Ok(());
        for (index, (on, request)) in requests(target).enumerate() {
            let (report, ended) = prove::evaluate_observed(&on.opened, &request, &progress);
            let first = (index == 0).then_some(&mut results.machine);
            for machine in first.into_iter().chain(results.machines.get_mut(index)) {
                machine.cublas = report.cublas.clone();
                if report.backend == "cpu" {
                    machine.backend = report.backend.to_string();
                    machine.device = report.device.clone();
                }
            }
            on.add(report, &mut size);
            outcome = ended;
            if outcome.is_err() {
                break;
            }
        }
        let first = results.machine.device_label.as_deref();
        devices::side_by_side(&mut size, &plan.asked, first);
        results.sizes.push(size);
        if plan.targets.iter().any(|target| target.name.is_some()) {
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
