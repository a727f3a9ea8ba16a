//! One call's work: on each number of ranks each layout multiplies, is proven right on rank 0, and
//! is timed.
//!
//! As for one machine, a result passes two gates ([`host::verify`]): exact on integers, and within
//! the bound of rounding on the data that was asked for. What is timed is compared with what was
//! proven, bit for bit.

use std::cell::Cell;
use std::collections::HashMap;
use std::time::Instant;

use gpu_gemm::gpu_kernels::spec::Tile;
use gpu_gemm::{ElementType, Shape};
use host::cpu::{self, view::View, view::ViewMut};
use host::data::{Layout as Layouts, Matrix, Placement, Problem};
use host::prove::{EvaluateError, small_integer};
use host::report::Corner;
use host::rung::Rung;
use host::select::Asked;
use host::source::Source;
use host::verify::{self, Coverage, ErrorModel, Failure, Proof};
use host::{memory, statistics};

use crate::Element;
use crate::clock::{Clock, Phase, Times};
use crate::comm::Ranks;
use crate::faults::end_the_job;
use crate::layout::{Job, Multiply, layouts};
use crate::local::{LocalProduct, Place, local_product};
use crate::machine;
use crate::model::{Case, Machine};
use crate::record::{RankRecord, Record, Scaling};
use crate::volume::{Sent, Volume};

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
    compare_with_one_rank(&mut records);
    Ok((records, result))
}

/// Speed-ups against one rank, where that was measured.
fn compare_with_one_rank(records: &mut [Record]) {
    let alone: Vec<Record> = records
        .iter()
        .filter(|record| record.ranks == 1)
        .cloned()
        .collect();
    for record in records {
        let is_same = |one: &&Record| {
            let same_shape = (one.m, one.n, one.k) == (record.m, record.n, record.k);
            one.layout == record.layout
                && one.scaling == record.scaling
                && (same_shape || record.scaling == Scaling::Weak)
        };
        let one = alone.iter().find(is_same);
        let speeds = (one.and_then(|one| one.flops_per_s), record.flops_per_s);
        if let (Some(one), Some(here)) = speeds {
            record.speedup = Some(here / one);
            record.efficiency = Some(here / one / record.ranks as f64);
        }
    }
}

/// The problems of one shape, and what is known to be right.
struct Known<T: Element> {
    shape: Shape,
    exact: Option<Problem<T>>,
    asked: Problem<T>,
    data: Option<host::data::Data>,
    coverage: Coverage,
    /// By the bits of C: those that passed a gate already need not pass it again.
    passed: HashMap<(Gate, u64), Proof>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Gate {
    Exact,
    General,
}

impl<T: Element> Known<T> {
    fn new(request: &Request, shape: Shape, source: &Source) -> Result<Self, EvaluateError> {
        memory::check_padded(shape, request.padding, size_of::<T>())?;
        let scalar = |name, scalar: f64| {
            T::from_scalar(scalar)
                .filter(|_| scalar.is_finite())
                .ok_or(EvaluateError::Scalar {
                    name,
                    scalar,
                    data_type: T::TYPE,
                })
        };
        let scalars = (
            scalar("alpha", request.alpha)?,
            scalar("beta", request.beta)?,
        );
        let layout = Layouts::padded(shape, [request.padding; 3], [0; 3]);
        let [alpha, beta] =
            [request.alpha, request.beta].map(|scalar| T::from_integer(small_integer(scalar)));
        let exact = ErrorModel::Elementwise
            .exact_data::<T>(shape)
            .map(|data| Problem::random(shape, layout, data, request.seed, alpha, beta))
            .transpose()?;
        let (asked, data) = source.problem(shape, layout, request.seed, scalars)?;
        Ok(Known {
            shape,
            exact,
            asked,
            data,
            coverage: Coverage::of(shape, request.seed),
            passed: HashMap::new(),
        })
    }

    fn judge(&mut self, gate: Gate, c: &Matrix<T>, tile: Tile) -> Result<Proof, Failure> {
        let key = (gate, c.hash_of_bits());
        if let Some(proof) = self.passed.get(&key) {
            return Ok(proof.clone());
        }
        let proof = match (gate, &self.exact) {
            (Gate::Exact, Some(problem)) => verify::exact(problem, c, tile, self.coverage)?,
            // Whatever the kernel carries along within a panel, panels are added plainly.
            (Gate::Exact, None) | (Gate::General, _) => {
                let model = ErrorModel::Elementwise;
                verify::general(&self.asked, c, tile, self.data, self.coverage, model)?
            }
        };
        self.passed.insert(key, proof.clone());
        Ok(proof)
    }

    fn problem(&self, gate: Gate) -> Option<&Problem<T>> {
        match gate {
            Gate::Exact => self.exact.as_ref(),
            Gate::General => Some(&self.asked),
        }
    }
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
        let sent = self.group.all_gather(&to_array(sent.get()));
        let (sent, _) = sent.as_chunks();
        Run {
            c,
            wall_s,
            times: times.iter().copied().map(Times::from_array).collect(),
            sent: sent.iter().copied().map(from_array).collect(),
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

/// `alpha * product + beta * C`.
fn finished<T: Element>(
    problem: &Problem<T>,
    product: Vec<T>,
) -> Result<Matrix<T>, host::data::ProblemError> {
    let Shape { m, n, .. } = problem.shape();
    let (alpha, beta) = (problem.alpha, problem.beta);
    let compact = Placement::compact(n);
    if alpha == T::from_integer(1) && beta == T::default() {
        return Matrix::new(product, m, n, compact);
    }
    let mut c = problem.c.moved_to(compact)?;
    let product = View::new(&product, m, n, n);
    cpu::scale_and_add(
        alpha,
        product,
        beta,
        ViewMut::new(c.elements_mut(), m, n, n),
    );
    Ok(c)
}

fn to_array(sent: Sent) -> [u64; 6] {
    let Sent {
        distribute,
        multiply,
        collect,
    } = sent;
    let of = |volume: Volume| [volume.elements, volume.messages];
    let ([a, b], [c, d], [e, f]) = (of(distribute), of(multiply), of(collect));
    [a, b, c, d, e, f]
}

fn from_array([a, b, c, d, e, f]: [u64; 6]) -> Sent {
    let of = |elements, messages| Volume { elements, messages };
    Sent {
        distribute: of(a, b),
        multiply: of(c, d),
        collect: of(e, f),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_survives_the_way_to_rank_0() {
        let numbers = [1, 2, 3, 4, 5, 6];
        assert_eq!(to_array(from_array(numbers)), numbers);
    }

    #[test]
    fn speed_ups_are_against_the_same_layout_on_one_rank() {
        let record = |layout: &str, ranks, scaling, m, flops_per_s| Record {
            layout: layout.to_string(),
            ranks,
            scaling,
            m,
            flops_per_s: Some(flops_per_s),
            ..Record::default()
        };
        let mut records = [
            record("one", 1, Scaling::Strong, 8, 10.0),
            record("one", 4, Scaling::Strong, 8, 30.0),
            record("one", 4, Scaling::Strong, 9, 30.0),
            record("other", 4, Scaling::Strong, 8, 30.0),
            record("one", 1, Scaling::Weak, 8, 10.0),
            record("one", 8, Scaling::Weak, 16, 60.0),
        ];
        compare_with_one_rank(&mut records);
        let found = records.map(|record| record.speedup.zip(record.efficiency));
        let expected = [
            Some((1.0, 1.0)),
            Some((3.0, 0.75)),
            None,
            None,
            Some((1.0, 1.0)),
            Some((6.0, 0.75)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn alpha_and_beta_are_applied_to_the_c_that_was_there() {
        let matrix =
            |elements: &[i32]| Matrix::new(elements.to_vec(), 1, 2, Placement::compact(2)).unwrap();
        let one = Matrix::new(vec![1], 1, 1, Placement::compact(1)).unwrap();
        let problem = Problem::new(2, 3, one, matrix(&[5, 7]), matrix(&[100, 200])).unwrap();
        let c = finished(&problem, vec![5, 7]).unwrap();
        assert_eq!(c.row(0), [310, 614]);
    }
}
