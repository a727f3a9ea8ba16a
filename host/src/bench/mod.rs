//! `bench`: many kernels at many sizes, checked and timed, beside cuBLAS; as a table, as files,
//! as plots.
//!
//! | file | what it does |
//! | --- | --- |
//! | `results.rs` | what a benchmark finds, as written to JSON and read back |
//! | `ladder.rs` | a table's rows: shares of cuBLAS and of the peak, speed-up over a rung |
//! | `table.rs`, `markdown.rs` | for the terminal, and an overview for documents |
//! | `pictures/` | the plots: speed against size, a roofline, bars of the ladder and of ratios |
//! | `preset.rs` | the table of the report that the ladder follows, beside ours |
//! | `shapes.rs`, `ratios.rs` | shapes from real programs, and their ratios to cuBLAS |
//! | `compare.rs` | the times of an earlier benchmark beside ours |
//! | `export.rs` | the requested files, which always hold the finished results |

mod compare;
pub mod export;
mod ladder;
pub mod markdown;
pub mod pictures;
pub mod preset;
pub mod ratios;
pub mod results;
#[cfg(test)]
pub(crate) mod samples;
pub mod shapes;
pub mod table;

pub use compare::Earlier;
pub use results::{Machine, Provenance, Results, Size};
pub use shapes::Target;

use clap::ValueEnum;

use crate::check::{EvaluateError, Planned, Request};
use crate::epilogue::Epilogue;
use crate::progress::Progress;
use crate::rung::Asked;
use gpu_gemm::{Chooser, Device, Opened, Shape};

/// A set of kernels and shapes, with a table and plots of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// The measured table of the report that the ladder follows (2048 cubed, ten rows), beside
    /// its own figures
    Report,
    /// Shapes of DeepBench and of large language models, and odd ones: each kernel's ratio to
    /// cuBLAS, their geometric mean, and the worst
    Shapes,
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The kernels, in the order of the rows.
    pub asked: Vec<Asked>,
    pub targets: Vec<Target>,
    /// The other settings of each product; its shape and its rungs are replaced.
    pub request: Request,
}

impl Plan {
    fn request(&self, chooser: &Chooser, shape: Shape) -> Request {
        let data_type = self.request.data_type;
        let call = self.request.storage.call(shape, data_type.inputs);
        let fused = self.request.epilogue.map(Epilogue::variants);
        let rung = |asked: &Asked| asked.rung(chooser, data_type, call, fused);
        Request {
            rungs: self.asked.iter().filter_map(rung).collect(),
            shape,
            ..self.request.clone()
        }
    }
}

/// The default sizes: large enough to fill a GPU, or small enough to simulate on a CPU.
pub fn default_sizes(device: &Device) -> [usize; 3] {
    match device.gpu() {
        Some(_) => [1024, 2048, 4096],
        None => [128, 256, 512],
    }
}

/// Checks and times every kernel at every shape. After an error, the results hold everything up to
/// it. `finished` is called after each shape that succeeds, with the results so far.
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
    let planned: Vec<(&Target, Planned<'_>)> = requests
        .iter()
        .map(|(target, request)| (*target, Planned::new(opened, request)))
        .collect();
    let progress = Progress::start(planned.iter().map(|(_, planned)| planned.steps()).sum());
    let mut results = Results {
        schema: results::SCHEMA,
        provenance: Some(Provenance::now()),
        machine: Machine::of(&opened.device, plan.request.data_type),
        ..Results::default()
    };
    for (target, planned) in planned {
        let (report, outcome) = planned.evaluate(None, &progress);
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
            stages: report.stages,
            ..Size::of(target.shape)
        });
        if target.name.is_some() {
            results.summaries = ratios::summaries(&results);
        }
        if outcome.is_err() {
            return (results, outcome);
        }
        finished(&results, &progress);
    }
    (results, Ok(()))
}
