//! One call's work: on each number of ranks each layout multiplies, passes on rank 0, and
//! is timed.
//!
//! As for one machine, a result passes the gates of [`verification::verify`]: exact on integers,
//! and within the bound of rounding, and below the alarm, on the data that was asked for. What is
//! timed is compared with what passed, bit for bit. A C that fits no single rank stays where it
//! is computed: each rank says its sums, and rank 0 judges these.

mod known;
mod request;

use std::cell::Cell;
use std::iter;
use std::time::Instant;

use gpu_gemm::gpu_kernels::spec::Tile;
use gpu_gemm::{Device, Shape};
use host::rung::Rung;
use host::source::Source;
use verification::data::{Matrix, Number};
use verification::verify::Failure;
use verification::verify::summary::Summary;

use known::{Gate, Known, exact_data, finished, scalar_of_integers, summary, view};
pub use request::{Request, Task};

use crate::Element;
use crate::clock::{Clock, Phase, Times};
use crate::comm::Ranks;
use crate::constants;
use crate::faults::end_the_job;
use crate::layout::{Job, LayoutError, Multiply, layouts, panel};
use crate::local::{LocalError, LocalProduct, Place, are_all_on_gpus, local_product};
use crate::model::{Case, Machine};
use crate::record::{self, RankRecord, Record, Timing};
use crate::volume::{Bytes, Sent};

/// Timed runs by default, and the seconds that they may take.
const RUNS: u32 = 10;
const FEWEST_RUNS: u32 = 3;
const BUDGET: f64 = 2.0;

/// Carries out the request. All ranks call it; rank 0, which alone needs the `source`, gets the
/// records, and the last C if it passed. No other C and no other shape's matrices are
/// kept while a product is computed: they may fill a host's memory.
///
/// Ranks multiply elements of `T` into sums. `C` is the type of the C that is asked for: `T`, or
/// that of its sums. Only what finishes C, on rank 0 or of each rank's block, knows of it.
///
/// If rank 0 cannot read or fill the matrices, or a rank cannot do its part, it ends the job.
pub fn evaluate<T: Element, C: Element<Sum = T::Sum>>(
    world: &Ranks,
    request: &Request,
    place: &Place,
    source: &Source,
) -> (Vec<Record>, Option<Matrix<C>>) {
    let local = multiplier::<T>(request, place);
    // The three constants of the model, once.
    let shape = request
        .tasks
        .first()
        .map_or(Shape::cube(1), |task| task.shape);
    let machine = constants::measure(world, shape, &*local);
    let machine = machine.unwrap_or_else(|error| end_the_job(error));
    let mut records = Vec::new();
    let mut result = None;
    let mut known: Option<Known<T, C>> = None;
    for task in &request.tasks {
        let is_in = world.rank() < task.ranks;
        let group = world.split(is_in.then_some(0));
        if let Some(group) = &group {
            // As rank 0's memory is.
            let [gathers] = group.from_first([request.gathers(task.shape, size_of::<C>())]);
            let is_other = |known: &Known<T, C>| known.shape != task.shape;
            if group.rank() == 0 && known.as_ref().is_none_or(is_other) {
                drop(known.take());
                let new = Known::new(gathers, request, task.shape, source);
                known = Some(new.unwrap_or_else(|error| end_the_job(error)));
            }
            let evaluation = Evaluation {
                group,
                request,
                task,
                gathers,
                on_gpus: are_all_on_gpus(group, &*local),
                local: &*local,
                machine,
                device: &place.device,
                threads: place.team.threads(),
                data: source.description(),
            };
            drop(result.take());
            let (of_task, c) = evaluation.evaluate(&mut known);
            records.extend(of_task);
            result = c;
        }
        world.rest_until_all_are_here();
    }
    record::compare_with_one_rank(&mut records);
    (records, result)
}

/// What multiplies on this rank. The job ends if that cannot multiply.
pub fn multiplier<'p, T: Element>(
    request: &Request,
    place: &'p Place,
) -> Box<dyn LocalProduct<T> + 'p> {
    local_product::<T>(request.asked, place).unwrap_or_else(|error| match error {
        LocalError::WrongType => {
            let (kernel, product) = (&request.kernel, T::PRODUCT);
            end_the_job(format!("`{kernel}` does not multiply {product}."))
        }
        error => end_the_job(error),
    })
}

/// One task, on the ranks that take part in it.
struct Evaluation<'a, T: Element> {
    group: &'a Ranks,
    request: &'a Request,
    task: &'a Task,
    gathers: bool,
    /// Whether all ranks multiply on GPUs.
    on_gpus: bool,
    local: &'a dyn LocalProduct<T>,
    machine: Machine,
    device: &'a Device,
    threads: usize,
    data: String,
}

/// One run, as a rank sees it.
struct Run<C> {
    /// All of it on rank 0, or each rank's block.
    c: Option<Matrix<C>>,
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
            panel: panel(self.request.panel, self.task.shape, self.on_gpus),
            gathers: self.gathers,
        }
    }

    /// The records on rank 0, and nothing on the others.
    fn evaluate<C: Element<Sum = T::Sum>>(
        &self,
        known: &mut Option<Known<T, C>>,
    ) -> (Vec<Record>, Option<Matrix<C>>) {
        let asked = |layout: &&dyn Multiply<T>| self.request.layouts.contains(&layout.name());
        let mut records = Vec::new();
        let mut result = None;
        for layout in layouts::<T>().into_iter().filter(asked) {
            drop(result.take());
            let (record, c) = self.evaluate_layout(layout, known);
            records.extend(record);
            result = c;
        }
        (records, result)
    }

    fn evaluate_layout<C: Element<Sum = T::Sum>>(
        &self,
        layout: &dyn Multiply<T>,
        known: &mut Option<Known<T, C>>,
    ) -> (Option<Record>, Option<Matrix<C>>) {
        let mut statements = Vec::new();
        let mut passed = true;
        let mut first = None;
        // The same on all ranks.
        if exact_data::<T, C>(self.task.shape).is_none() {
            let k = self.task.shape.k;
            let why = format!("sums of {k} products are too long to be exact.");
            statements.push(Failure::Unprovable(why).to_string());
            passed = false;
        }
        for gate in [Gate::Exact, Gate::General] {
            if !passed {
                break;
            }
            drop(first.take());
            let run = self.run(layout, known.as_ref(), gate);
            let mut is_right = true;
            if let Some(judged) = self.judge(layout, known.as_mut(), gate, &run) {
                is_right = judged.is_ok();
                statements.push(judged.unwrap_or_else(|failure| failure));
            }
            // Rank 0 may compare for minutes.
            self.group.rest_until_all_are_here();
            [passed] = self.group.from_first([is_right]);
            first = Some(run);
        }
        let mut runs = Vec::new();
        if let Some(first) = first.as_mut().filter(|_| passed) {
            let bits = self.hash_of_bits(first);
            for _ in 0..self.number_of_runs(first.wall_s) {
                // The next C has the same bits.
                drop(first.c.take());
                let mut run = self.run(layout, known.as_ref(), Gate::General);
                if self.hash_of_bits(&run) != bits {
                    passed = false;
                    let why = "A timed run gave other bits than the one that passed.";
                    statements.push(why.to_string());
                }
                first.c = run.c.take();
                runs.push(run);
            }
        }
        if self.group.rank() != 0 {
            return (None, None);
        }
        let c = first
            .and_then(|run| run.c)
            .filter(|_| passed && self.gathers);
        if passed {
            let runs = runs.len();
            statements.push(format!("timed: {runs} runs gave the same bits"));
        }
        let mut record = self.record(layout, &runs);
        record.passed = passed;
        record.verification = statements.join("; ");
        record.corner = self
            .request
            .corner
            .and_then(|corner| c.as_ref().map(|c| corner.of(c)));
        (Some(record), c)
    }

    /// What rank 0 makes of C, or of what all ranks say of their blocks; nothing on the others.
    fn judge<C: Element>(
        &self,
        layout: &dyn Multiply<T>,
        known: Option<&mut Known<T, C>>,
        gate: Gate,
        run: &Run<C>,
    ) -> Option<Result<String, String>> {
        let c = run.c.as_ref()?;
        let judged = match (self.gathers, known) {
            (true, known) => known?.judge(gate, c, self.tile(), self.device),
            (false, known) => {
                let seed = self.request.seed;
                let own = summary::<T, C>(gate, self.task.shape, c, self.tile(), seed);
                let Some(known) = known else {
                    self.group.tell_first(&own.words);
                    self.group.tell_first(&own.numbers);
                    return None;
                };
                let others = (1..self.task.ranks).map(|rank| Summary {
                    words: self.group.hear(rank),
                    numbers: self.group.hear(rank),
                });
                let summaries: Vec<Summary> = iter::once(own).chain(others).collect();
                let blocks = layout.blocks(&self.case());
                known.judge_blocks(gate, &blocks, &summaries, self.tile())
            }
        };
        Some(judged.map_err(|failure| failure.to_string()))
    }

    /// Of all of C, wherever it is: the same on all ranks.
    fn hash_of_bits<C: Element>(&self, run: &Run<C>) -> Vec<u64> {
        let own = run.c.as_ref().map_or(0, Matrix::hash_of_bits);
        match self.gathers {
            true => vec![own],
            false => self.group.all_gather(&[own]),
        }
    }

    fn tile(&self) -> Tile {
        match self.request.asked {
            Rung::Gpu(choice) => choice.variant.tile,
            Rung::Cpu(algorithm) => algorithm.tile,
            Rung::Auto(()) => Tile {
                m: 128,
                n: 128,
                k: 32,
            },
        }
    }

    /// The same on all ranks.
    fn number_of_runs(&self, first_s: f64) -> u32 {
        let affordable = (BUDGET / first_s.max(1e-9)) as u32;
        let asked = self.request.runs;
        let runs = asked.unwrap_or(RUNS.min(affordable.max(FEWEST_RUNS)));
        let [runs] = self.group.from_first([runs]);
        runs
    }

    /// Multiplies once, what a gate is for. `known` is rank 0's.
    fn run<C: Element<Sum = T::Sum>>(
        &self,
        layout: &dyn Multiply<T>,
        known: Option<&Known<T, C>>,
        gate: Gate,
    ) -> Run<C> {
        let case = self.case();
        let clock = Clock::default();
        let sent = Cell::default();
        let factors = known.map(|known| known.problem(gate).factors_as::<T>());
        let factors = factors
            .transpose()
            .unwrap_or_else(|error| end_the_job(error));
        // Alpha may be 0.
        let operands = factors.as_ref().map(|[a, b]| {
            let Shape { m, n, k } = case.shape;
            (view(a).part(0..m, 0..k), view(b).part(0..k, 0..n))
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
            .unwrap_or_else(|error| end_the_job(error));
        let c = clock.time(Phase::Collect, || match (self.gathers, known) {
            (true, Some(known)) => product.map(|product| {
                let (problem, Shape { m, n, .. }) = (known.problem(gate), self.task.shape);
                let added = Some((problem.beta, &problem.c));
                finished(problem.alpha, product, (m, n), added)
            }),
            (true, None) => None,
            (false, _) => product.map(|product| self.finished_block(layout, gate, product)),
        });
        let wall_s = started.elapsed().as_secs_f64();
        let c = c.transpose().unwrap_or_else(|error| end_the_job(error));
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

    /// `alpha * product`, of this rank's block, which has the whole sums: so it is rounded once.
    fn finished_block<C: Element<Sum = T::Sum>>(
        &self,
        layout: &dyn Multiply<T>,
        gate: Gate,
        mut product: Vec<T::Sum>,
    ) -> Result<Matrix<C>, LayoutError> {
        let rank = self.group.rank();
        let block = &layout.blocks(&self.case())[rank];
        let alpha = match gate {
            Gate::Exact => scalar_of_integers::<C>(self.request.alpha),
            // Rank 0 has rejected invalid scalars.
            Gate::General => C::from_scalar(self.request.alpha).unwrap_or_default(),
        };
        if self.request.planted_on == Some(rank) {
            let (middle, one) = (product.len() / 2, T::Sum::from_integer(1));
            if let Some(element) = product.get_mut(middle) {
                *element = one.times_plus(*element, one);
            }
        }
        let size = (block.rows.len(), block.columns.len());
        finished(alpha, product, size, None)
    }

    fn record<C: Element>(&self, layout: &dyn Multiply<T>, runs: &[Run<C>]) -> Record {
        let (request, case) = (self.request, self.case());
        let Shape { m, n, k } = self.task.shape;
        let flops = case.shape.flops();
        let whole = Timing::new(runs.iter().map(|run| run.wall_s).collect(), flops);
        let resident = |run: &Run<C>| run.times.iter().map(Times::resident).fold(0.0, f64::max);
        let of_resident = runs.iter().filter(|_| layout.is_resident());
        let resident = Timing::new(of_resident.map(resident).collect(), flops);
        let typical = whole.median_s.and_then(|median| {
            let distance = |run: &&Run<C>| (run.wall_s - median).abs();
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
            let of_rank = |rank| sent(rank).bytes(Bytes::of(T::TYPE));
            per_rank.iter().map(of_rank).sum::<u64>()
        };
        Record {
            layout: layout.name().to_string(),
            kernel: request.kernel.clone(),
            dtype: request.data_type.to_string(),
            m,
            n,
            k,
            alpha: request.alpha,
            beta: request.beta,
            seed: request.seed,
            data: self.data.clone(),
            ranks: self.task.ranks,
            grid: Some(layout.grid(&case)),
            threads: self.threads,
            panel: case.panel,
            gathered: self.gathers,
            whole,
            resident,
            slowest: slowest(per_rank.iter().map(|rank| rank.times)),
            predicted: Some(layout.cost(&case, &self.machine, Bytes::of(T::TYPE))),
            machine: Some(self.machine),
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
