//! One call's work: on each number of ranks each layout multiplies, is proven right on rank 0, and
//! is timed.
//!
//! As for one machine, a result passes two gates ([`host::verify`]): exact on integers, and within
//! the bound of rounding on the data that was asked for. What is timed is compared with what was
//! proven, bit for bit.

mod known;

use std::cell::Cell;
use std::time::Instant;

use gpu_gemm::gpu_kernels::spec::Tile;
use gpu_gemm::{ElementType, Shape};
use host::cpu::view::View;
use host::data::{Matrix, Problem};
use host::prove::EvaluateError;
use host::report::Corner;
use host::rung::Rung;
use host::select::Asked;
use host::source::Source;
use host::statistics;
use host::verify::{ErrorModel, Failure};

use known::{Gate, Known, finished};

use crate::Element;
use crate::clock::{Clock, Phase, Times};
use crate::comm::Ranks;
use crate::faults::end_the_job;
use crate::layout::{Job, Multiply, layouts};
use crate::local::{LocalProduct, Place, local_product};
use crate::machine;
use crate::model::{Case, Machine};
use crate::record::{self, RankRecord, Record, Scaling};
use crate::volume::Sent;

/// What to do: the same on all ranks.
#[derive(Clone, Debug)]
pub struct Request {
    /// Names of layouts.
    pub layouts: Vec<&'static str>,
    pub asked: Asked,
    /// What it is called.
    pub kernel: String,
    pub tasks: Vec<Task>,
    pub data_type: ElementType,
    pub alpha: f64,
    pub beta: f64,
    pub padding: usize,
    pub seed: u64,
    pub panel: usize,
    /// Timed runs, if that is given.
    pub runs: Option<u32>,
    pub corner: Option<Corner>,
    /// Whether messages travel while ranks multiply ([`Machine::offload`]).
    pub offload: bool,
}

/// A shape, and the number of ranks to multiply it on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Task {
    pub shape: Shape,
    pub ranks: usize,
    pub scaling: Scaling,
}

/// Timed runs by default, and the seconds that they may take.
const RUNS: u32 = 10;
const FEWEST_RUNS: u32 = 3;
const BUDGET: f64 = 2.0;

/// Carries out the request. All ranks call it; rank 0, which alone needs the `source`, gets the
/// records, and the last C that was proven right.
///
/// # Errors
///
/// On rank 0, where matrices cannot be read or filled; the caller ends the job.
pub fn evaluate<T: Element>(
    world: &Ranks,
    request: &Request,
    place: &Place,
    source: &Source,
) -> Result<(Vec<Record>, Option<Matrix<T>>), EvaluateError> {
    let Some(local) = local_product::<T>(request.asked, place) else {
        end_the_job(
            world,
            format!("`{}` does not multiply {}.", request.kernel, T::TYPE),
        );
    };
    let mut records = Vec::new();
    let mut result = None;
    let mut known: Option<Known<T>> = None;
    for task in &request.tasks {
        let is_in = world.rank() < task.ranks;
        let group = world.split(is_in.then_some(0));
        if let Some(group) = &group {
            if group.rank() == 0 && known.as_ref().is_none_or(|known| known.shape != task.shape) {
                known = Some(Known::new(request, task.shape, source)?);
            }
            let evaluation = Evaluation {
                group,
                request,
                task,
                local: &*local,
                threads: place.team.threads(),
                data: source.description(),
            };
            let (of_task, c) = evaluation.evaluate(&mut known);
            records.extend(of_task);
            result = c.or(result);
        }
        world.rest_until_all_are_here();
    }
    record::compare_with_one_rank(&mut records);
    Ok((records, result))
}

/// One task, on the ranks that take part in it.
struct Evaluation<'a, T> {
    group: &'a Ranks,
    request: &'a Request,
    task: &'a Task,
    local: &'a dyn LocalProduct<T>,
    threads: usize,
    data: String,
}

/// One run, as rank 0 sees it.
struct Run<T> {
    /// On rank 0.
    c: Option<Matrix<T>>,
    /// From the start until this rank is done.
    wall_s: f64,
    /// Of each rank.
    times: Vec<Times>,
    sent: Vec<Sent>,
}

impl<T: Element> Evaluation<'_, T> {
    fn case(&self) -> Case {
        let shape = match self.request.alpha {
            0.0 => Shape {
                k: 0,
                ..self.task.shape
            },
            _ => self.task.shape,
        };
        Case {
            shape,
            ranks: self.task.ranks,
            panel: self.request.panel,
        }
    }

    /// The records on rank 0, and nothing on the others.
    fn evaluate(&self, known: &mut Option<Known<T>>) -> (Vec<Record>, Option<Matrix<T>>) {
        let case = self.case();
        let machine = machine::measure(self.group, &case, self.local, self.request.offload);
        let machine = machine.unwrap_or_else(|error| end_the_job(self.group, error));
        let mut records = Vec::new();
        let mut result = None;
        let asked = |layout: &&dyn Multiply<T>| self.request.layouts.contains(&layout.name());
        for layout in layouts::<T>().into_iter().filter(asked) {
            let (record, c) = self.evaluate_layout(layout, known, machine);
            records.extend(record);
            result = c.or(result);
        }
        (records, result)
    }

    fn evaluate_layout(
        &self,
        layout: &dyn Multiply<T>,
        known: &mut Option<Known<T>>,
        machine: Machine,
    ) -> (Option<Record>, Option<Matrix<T>>) {
        let mut statements = Vec::new();
        let mut proven = true;
        let mut first = None;
        // The same on all ranks.
        if ErrorModel::Elementwise
            .exact_data::<T>(self.task.shape)
            .is_none()
        {
            let k = self.task.shape.k;
            let why = format!("sums of {k} products are too long to be exact.");
            statements.push(Failure::Unprovable(why).to_string());
            proven = false;
        }
        for gate in [Gate::Exact, Gate::General] {
            if !proven {
                break;
            }
            let run = self.run(layout, known.as_ref().and_then(|known| known.problem(gate)));
            let mut verdict = [1_u8];
            if let (Some(known), Some(c)) = (known.as_mut(), &run.c) {
                match known.judge(gate, c, self.tile()) {
                    Ok(proof) => statements.push(format!("{}: {}", proof.gate, proof.statement)),
                    Err(failure) => {
                        statements.push(failure.to_string());
                        verdict = [0];
                    }
                }
            }
            // Rank 0 may compare for minutes.
            self.group.rest_until_all_are_here();
            self.group.from_first(&mut verdict);
            proven = verdict == [1];
            first = Some(run);
        }
        let mut runs = Vec::new();
        let bits = first
            .as_ref()
            .and_then(|run| run.c.as_ref())
            .map(Matrix::hash_of_bits);
        if let Some(first) = first.as_ref().filter(|_| proven) {
            for _ in 0..self.number_of_runs(first.wall_s) {
                let run = self.run(layout, known.as_ref().map(|known| &known.asked));
                let of_run = run.c.as_ref().map(Matrix::hash_of_bits);
                if of_run != bits {
                    proven = false;
                    let why = "A timed run gave other bits than the one that was proven.";
                    statements.push(why.to_string());
                }
                runs.push(Run { c: None, ..run });
            }
        }
        if self.group.rank() != 0 {
            return (None, None);
        }
        let c = first.and_then(|run| run.c).filter(|_| proven);
        if proven {
            let runs = runs.len();
            statements.push(format!("timed: {runs} runs gave the same bits"));
        }
        let mut record = self.record(layout, machine, &runs);
        record.proven = proven;
        record.verification = statements.join("; ");
        record.corner = self
            .request
            .corner
            .and_then(|corner| c.as_ref().map(|c| corner.of(c)));
        (Some(record), c)
    }

    fn tile(&self) -> Tile {
        match self.request.asked {
            Asked::Rung(rung) => Rung::tile(rung),
            Asked::Auto => Tile {
                m: 128,
                n: 128,
                k: 32,
            },
        }
    }

    /// The same on all ranks.
    fn number_of_runs(&self, first_s: f64) -> u32 {
        let affordable = (BUDGET / first_s.max(1e-9)) as u32;
        let mut runs = [self
            .request
            .runs
            .unwrap_or(RUNS.min(affordable.max(FEWEST_RUNS)))];
        self.group.from_first(&mut runs);
        runs[0]
    }

    /// Multiplies once. `problem` is rank 0's.
    fn run(&self, layout: &dyn Multiply<T>, problem: Option<&Problem<T>>) -> Run<T> {
        let case = self.case();
        let clock = Clock::default();
        let sent = Cell::default();
        let operands = problem.map(|problem| {
            let Shape { m, n, k } = case.shape;
            (
                View::new(problem.a.elements(), m, k, problem.a.leading()),
                View::new(problem.b.elements(), k, n, problem.b.leading()),
            )
        });
        let job = Job {
            ranks: self.group,
            case,
            operands,
            local: self.local,
            clock: &clock,
            sent: &sent,
        };
        self.group.take_sent();
        self.group.barrier();
        let started = Instant::now();
        let product = layout
            .multiply(&job)
            .unwrap_or_else(|error| end_the_job(self.group, error));
        let c = problem
            .zip(product)
            .map(|(problem, product)| clock.time(Phase::Collect, || finished(problem, product)));
        let wall_s = started.elapsed().as_secs_f64();
        let c = c
            .transpose()
            .unwrap_or_else(|error| end_the_job(self.group, error));
        let times = self.group.all_gather(&clock.times().to_array());
        let (times, _) = times.as_chunks();
        let sent = self.group.all_gather(&Sent::to_array(sent.get()));
        let (sent, _) = sent.as_chunks();
        Run {
            c,
            wall_s,
            times: times.iter().copied().map(Times::from_array).collect(),
            sent: sent.iter().copied().map(Sent::from_array).collect(),
        }
    }

    fn record(&self, layout: &dyn Multiply<T>, machine: Machine, runs: &[Run<T>]) -> Record {
        let (request, case) = (self.request, self.case());
        let Shape { m, n, k } = self.task.shape;
        let times_s: Vec<f64> = runs.iter().map(|run| run.wall_s).collect();
        let median = (!times_s.is_empty()).then(|| statistics::median(&times_s));
        let typical = median.and_then(|median| {
            let distance = |run: &&Run<T>| (run.wall_s - median).abs();
            runs.iter()
                .min_by(|one, other| distance(one).total_cmp(&distance(other)))
        });
        let blocks = layout.blocks(&case);
        let per_rank: Vec<RankRecord> = blocks
            .iter()
            .enumerate()
            .map(|(rank, block)| RankRecord {
                rows: block.rows.len(),
                columns: block.columns.len(),
                times: typical.map_or_else(Times::default, |run| run.times[rank]),
                sent: typical.map_or_else(Sent::default, |run| run.sent[rank]),
                formula: layout.sent(&case, rank),
            })
            .collect();
        let bytes = |sent: &dyn Fn(&RankRecord) -> Sent| {
            let elements = per_rank.iter().map(|rank| sent(rank).total().elements);
            elements.sum::<u64>() * size_of::<T>() as u64
        };
        let flops = case.shape.flops();
        Record {
            layout: layout.name().to_string(),
            kernel: request.kernel.clone(),
            dtype: T::TYPE.to_string(),
            m,
            n,
            k,
            alpha: request.alpha,
            beta: request.beta,
            seed: request.seed,
            data: self.data.clone(),
            ranks: self.task.ranks,
            scaling: self.task.scaling,
            grid: Some(layout.grid(&case)),
            threads: self.threads,
            panel: request.panel,
            time_median_s: median,
            flops_per_s: median.filter(|_| flops > 0.0).map(|median| flops / median),
            times_s,
            slowest_of_runs: runs
                .iter()
                .map(|run| slowest(run.times.iter().copied()))
                .collect(),
            slowest: slowest(per_rank.iter().map(|rank| rank.times)),
            predicted: Some(layout.cost(&case, &machine, size_of::<T>())),
            machine: Some(machine),
            sent_bytes: bytes(&|rank| rank.sent),
            formula_bytes: bytes(&|rank| rank.formula),
            per_rank,
            ..Record::default()
        }
    }
}

/// The largest time of any rank, phase by phase.
fn slowest(times: impl Iterator<Item = Times>) -> Times {
    let largest = times
        .map(Times::to_array)
        .fold([0.0; Times::COUNT], |largest, times| {
            std::array::from_fn(|phase| f64::max(largest[phase], times[phase]))
        });
    Times::from_array(largest)
}
