//! One call's work: run each rung, check its results, and time those that are right.
//!
//! | file | what it does |
//! | --- | --- |
//! | `request.rs` | the request |
//! | `candidate.rs` | a rung on its way through the gates |
//! | `gates.rs` | the gates, each on its own data |
//! | `timing.rs` | times the rungs that are right |
//! | `baseline.rs` | the libraries to compare with |
//! | `record.rs` | the record of the report |

mod baseline;
mod candidate;
mod error;
mod gates;
mod record;
mod request;
mod timing;

use std::any::Any;
use std::io::Write;

use gpu_gemm::{DataType, ElementType, Launch, Opened};

pub use error::EvaluateError;
pub use gates::{compute_reference, small_integer};
pub use request::{Baseline, Request};

use crate::cpu::{self, Team};
use crate::data::{Data, Number, Problem};
use crate::measure::{self, cublas::Cublas};
use crate::memory;
use crate::progress::Progress;
use crate::report::{Report, Yardstick};
use crate::run::Resident;
use candidate::{Candidate, Task};
use gates::{GATES, Judge};
use timing::Compared;
use verification::by_element;

/// Why there is no device for CPU rungs alone.
pub const NATIVE: &str = "CPU rungs run natively, whatever --device says";

/// A request, and the plans of its kernels on a device.
pub struct Planned<'a> {
    opened: &'a Opened,
    request: &'a Request,
    candidates: Vec<Candidate>,
}

impl<'a> Planned<'a> {
    /// Plans each kernel, once.
    pub fn new(opened: &'a Opened, request: &'a Request) -> Planned<'a> {
        let rungs = request.rungs.iter().copied();
        let planned = rungs.map(|rung| Candidate::new(rung, request, &opened.device));
        Planned {
            opened,
            request,
            candidates: planned.collect(),
        }
    }

    /// The steps of [`Planned::evaluate`]'s progress: on the simulator the CTAs that it will run;
    /// on a GPU, on several devices and with OpenCL the checks and the timing; the runs of CPU
    /// rungs.
    pub fn steps(&self) -> u64 {
        let effort = self.request.effort;
        let on_simulator = self.opened.device.is_simulator();
        let of_one = |one: &Candidate| match (one.rung.choice(), &one.plan) {
            (None, _) => GATES as u64 + u64::from(measure::ON_CPU.most_runs(effort)),
            (Some(_), Some(plan)) if on_simulator => {
                let ctas: u64 = plan.launches().iter().map(Launch::ctas).sum();
                let simulated = measure::ON_SIMULATOR.most_runs(effort);
                ctas * plan.repeats() as u64 * (GATES as u64 + u64::from(simulated) - 1)
            }
            (Some(_), _) => GATES as u64,
        };
        let timing = u64::from(!on_simulator && !self.request.is_native());
        timing + self.candidates.iter().map(of_one).sum::<u64>()
    }

    /// [`evaluate`] as a part of a longer operation that shows `progress`.
    pub fn evaluate(
        self,
        output: Option<&mut dyn Write>,
        progress: &Progress,
    ) -> (Report, Result<(), EvaluateError>) {
        let (opened, request) = (self.opened, self.request);
        let mut report = Report {
            schema: 4,
            backend: opened.device.backend(),
            device: opened.device.description(),
            reason: opened.reason.clone(),
            ..Report::default()
        };
        let team = match Team::new(request.cpu) {
            Ok(team) => team,
            Err(error) => return (report, Err(error.into())),
        };
        if request.is_native() {
            report.backend = "cpu";
            report.device = cpu::description(&team);
            report.reason = NATIVE.to_string();
        }
        let task = Task {
            request,
            device: &opened.device,
            team: &team,
            progress,
        };
        progress.take_stages();
        let (candidates, report_of) = (self.candidates, &mut report);
        let result = by_element!(
            request.data_type.c,
            evaluate_as(task, candidates, output, report_of)
        );
        report.stages = progress.take_stages();
        (report, result)
    }
}

/// Carries out the request, and writes the C of the first rung that passes to `output` as
/// a .npy file, which is valid only if there is no error and only one rung. After an error, the
/// report holds everything up to it.
pub fn evaluate(
    opened: &Opened,
    request: &Request,
    output: Option<&mut dyn Write>,
) -> (Report, Result<(), EvaluateError>) {
    let planned = Planned::new(opened, request);
    let progress = Progress::start(planned.steps());
    planned.evaluate(output, &progress)
}

/// Alpha and beta, as the type of C has them; an error names `data_type`.
pub fn scalars<T: Number>(
    alpha: f64,
    beta: f64,
    data_type: impl Into<DataType> + Copy,
) -> Result<(T, T), EvaluateError> {
    let scalar = |name, scalar: f64| {
        let finite = T::from_scalar(scalar).filter(|_| scalar.is_finite());
        finite.ok_or(EvaluateError::Scalar {
            name,
            scalar,
            data_type: data_type.into(),
        })
    };
    Ok((scalar("alpha", alpha)?, scalar("beta", beta)?))
}

fn evaluate_as<T: Number>(
    task: Task<'_>,
    mut candidates: Vec<Candidate>,
    output: Option<&mut dyn Write>,
    report: &mut Report,
) -> Result<(), EvaluateError> {
    let (request, device) = (task.request, task.device);
    let scalars = scalars::<T>(request.alpha, request.beta, request.data_type)?;
    // With scales, the operands as given are kept in f64: once, where others are three times.
    let as_given = if request.scales.is_some() { 3 } else { 0 };
    memory::check(request.shape, request.storage, size_of::<T>() + as_given)?;
    if request.storage.batch > 1 && device.several().is_some() {
        return Err(EvaluateError::BatchOnSeveral);
    }
    let yardsticks = match request.is_native() && request.baseline == Baseline::Auto {
        true => Vec::new(),
        false => baseline::yardsticks(device, request)?,
    };
    report.cublas = yardsticks.first().map(Cublas::description);
    let outcome = check_and_time::<T>(task, scalars, output, &yardsticks, &mut candidates);
    let (compared, result) = match outcome {
        Ok(measured) => (measured, Ok(())),
        Err(error) => (Compared::default(), Err(error)),
    };
    report.gpu_state = compared.state;
    report.yardsticks = Yardstick::with_ratios(compared.yardsticks);
    for candidate in candidates {
        // After an error, a kernel without any result has no line in the report.
        if result.is_ok() || candidate.failure.is_some() || candidate.verdicts.len() >= GATES {
            let record = record::record(task, &candidate, &report.yardsticks);
            report.results.push(record);
        }
    }
    result
}

/// Runs both gates, each on its own data, for all candidates, and then times those that are right
/// on the matrices of the second gate, which are still on the device.
fn check_and_time<T: Number>(
    task: Task<'_>,
    scalars: (T, T),
    output: Option<&mut dyn Write>,
    yardsticks: &[Cublas],
    candidates: &mut [Candidate],
) -> Result<Compared, EvaluateError> {
    let request = task.request;
    gates::check_exact::<T>(task, candidates)?;
    if !candidates.iter().any(Candidate::is_right) {
        return Ok(Compared::default());
    }
    task.progress
        .doing("reading or filling matrices".to_string());
    let (inputs, storage) = (request.data_type.inputs, request.storage);
    let (source, shape, seed) = (&request.source, request.shape, request.seed);
    let (mut problem, data, as_given) = match request.scales {
        None => {
            let (problem, data) = source.problem_of(inputs, shape, storage, seed, scalars)?;
            (problem, data, None)
        }
        Some(granularity) => {
            let scalars = (request.alpha, request.beta);
            let (as_given, data) =
                source.problem_of(ElementType::F64, shape, storage, seed, scalars)?;
            // Quantised, some elements of such data have few bits: their errors are not known.
            let data = data.filter(|data| !matches!(data, Data::Graded | Data::Wide));
            // Quantising is compiled for the one type that C has then.
            let quantised: Box<dyn Any> = Box::new(as_given.quantised(granularity)?);
            let Ok(problem) = quantised.downcast::<Problem<T>>() else {
                unreachable!("the command line chooses a C of f32 where there are scales")
            };
            (*problem, data, Some(as_given))
        }
    };
    problem.epilogue = request.epilogue;
    let judge = &Judge::new(task, &problem, false, data)?;
    let resident = &mut Resident::new(task.device, &problem);
    gates::check_general(judge, resident, as_given.as_ref(), output, candidates)?;
    timing::time(task, judge, resident, yardsticks, candidates)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::epilogue::Epilogue;
    use crate::measure::Effort;
    use crate::rung::Rung;
    use gpu_gemm::gpu_kernels::spec::{EntryFn, Tile};
    use gpu_gemm::{Choice, Device, DeviceChoice, Shape, Transpose, gpu_kernels};
    use verification::planted;

    /// A kernel that computes all of a small C with one CTA.
    fn planted(name: &'static str, function: EntryFn) -> Rung {
        Rung::Gpu(planted::named(name, Tile { m: 16, n: 16, k: 1 }, function))
    }

    fn naive() -> Rung {
        Rung::Gpu(Choice::even(&gpu_kernels::naive::KERNEL.variants[0]))
    }

    fn request(rungs: Vec<Rung>) -> Request {
        Request::new(rungs, DataType::F32, Shape::new(9, 8, 7), 1)
    }

    /// Evaluates on the simulator.
    fn evaluated(request: &Request) -> Report {
        let opened = Device::open(DeviceChoice::Simulator).unwrap();
        let (report, result) = evaluate(&opened, request, None);
        result.unwrap();
        report
    }

    #[test]
    fn a_wrong_kernel_is_reported_wrong_and_not_timed_and_a_right_one_is() {
        let tile = Tile { m: 8, n: 8, k: 1 };
        let leaves_c = Rung::Gpu(planted::named("lazy", tile, |_| ()));
        let report = evaluated(&request(vec![leaves_c, naive()]));
        let [lazy, naive] = &report.results[..] else {
            panic!("{report:?}");
        };
        assert!(!lazy.passed && lazy.time_median_s.is_none());
        let why = &lazy.verification;
        assert!(why.starts_with("C[0][0] is NaN, but must be "), "{why}");
        assert!(naive.passed && naive.time_median_s.is_some());
        let coverage = [lazy, naive].map(|record| record.coverage.as_deref());
        assert_eq!(coverage, [None, Some("full")]);
        assert_eq!((lazy.grid_x, lazy.grid_y, lazy.launches), (1, 2, 1));
    }

    /// A rung that is off by the last bit, far less than the rounding bound, where the condition
    /// on alpha and beta holds.
    macro_rules! off_by_a_bit {
        ($where:expr) => {
            planted("off", |block| {
                // SAFETY: the block is that of a launch of this kernel.
                let block = unsafe { planted::OfLaunch::new(block) };
                planted::write_each(block, |gemm, row, col| {
                    let sum = planted::sum(gemm, row, col, |a, b| a * b);
                    // SAFETY: as in `write_each`.
                    let old = || unsafe { *gemm.c.add(row * gemm.ldc + col) };
                    let (alpha, beta) = (gemm.alpha, gemm.beta);
                    let right = alpha * sum + if beta == 0.0 { 0.0 } else { beta * old() };
                    let is_off: fn(f32, f32) -> bool = $where;
                    match is_off(alpha, beta) {
                        true => right.next_up(),
                        false => right,
                    }
                })
            })
        };
    }

    #[test]
    fn the_exact_gate_refuses_a_wrong_bit_with_the_scalars_of_the_request() {
        for (rung, alpha, beta, is_right) in [
            (off_by_a_bit!(|_, _| false), 2.0, 1.0, true),
            (off_by_a_bit!(|_, _| true), 1.0, 0.0, false),
            (off_by_a_bit!(|_, beta| beta != 0.0), 1.0, 0.0, true),
            (off_by_a_bit!(|_, beta| beta != 0.0), 1.0, 1.0, false),
            (off_by_a_bit!(|alpha, _| alpha != 1.0), 1.0, 1.0, true),
            (off_by_a_bit!(|alpha, _| alpha != 1.0), 2.0, 1.0, false),
        ] {
            let report = evaluated(&Request {
                alpha,
                beta,
                ..request(vec![rung])
            });
            let record = &report.results[0];
            let why = &record.verification;
            assert_eq!(record.passed, is_right, "{why}");
            assert_eq!(record.time_median_s.is_some(), is_right);
            // The exact gate, not the one with a bound.
            let is_exact = why.starts_with("C[") && !why.contains(" within ");
            assert!(is_right || is_exact, "{why}");
        }
    }

    /// Kernels with these functions of each sum, by which the gate refuses them.
    #[test]
    fn elements_are_judged_after_the_epilogue() {
        macro_rules! kernel {
            ($function:expr) => {
                planted("function", |block| {
                    // SAFETY: the block is that of a launch of this kernel.
                    let block = unsafe { planted::OfLaunch::new(block) };
                    let function: fn(f32) -> f32 = $function;
                    planted::write_each(block, |gemm, row, col| {
                        function(gemm.alpha * planted::sum(gemm, row, col, |a, b| a * b))
                    });
                })
            };
        }
        let gelu = Some(Epilogue::Gelu);
        for (rung, epilogue, refused_by) in [
            (kernel!(|x| x.max(0.0)), Some(Epilogue::Relu), None),
            (kernel!(|x| x), Some(Epilogue::Relu), Some("C[")),
            (
                kernel!(|x| x.max(0.0)),
                Some(Epilogue::BiasRelu),
                Some("C["),
            ),
            (
                kernel!(|x| Epilogue::Gelu.activation(x.into()) as f32),
                gelu,
                None,
            ),
            (
                kernel!(|x| 1.001 * Epilogue::Gelu.activation(x.into()) as f32),
                gelu,
                Some(" within "),
            ),
            (kernel!(|x| x.max(0.0)), None, Some("C[")),
        ] {
            let report = evaluated(&Request {
                epilogue,
                ..request(vec![rung])
            });
            let record = &report.results[0];
            let why = &record.verification;
            assert_eq!(record.passed, refused_by.is_none(), "{epilogue:?}: {why}");
            assert!(why.contains(refused_by.unwrap_or("bound: ")), "{why}");
        }
    }

    /// One rung keeps as many bits of A and B as tensor cores do in tf32.
    #[test]
    fn each_rung_passes_on_the_integers_that_suit_it_whatever_ran_before() {
        let low_precision = planted("low-precision", |block| {
            // SAFETY: the block is that of a launch of this kernel.
            let block = unsafe { planted::OfLaunch::new(block) };
            let cut = |element: f32| f32::from_bits(element.to_bits() & !((1 << 13) - 1));
            planted::write_each(block, |gemm, row, col| {
                gemm.alpha * planted::sum(gemm, row, col, |a, b| cut(a) * cut(b))
            })
        });
        let strassen = Rung::Cpu(&cpu::strassen::RUNG);
        let rungs = vec![naive(), strassen, low_precision, naive()];
        let report = evaluated(&request(rungs));
        let passed: Vec<bool> = report.results.iter().map(|record| record.passed).collect();
        assert_eq!(passed, [true, true, false, true], "{report:?}");
        let why = &report.results[2].verification;
        assert!(why.starts_with("C[") && !why.contains(" within "), "{why}");
    }

    #[test]
    fn a_wrong_element_in_any_product_of_a_batch_is_found_and_its_product_named() {
        static WRONG: AtomicUsize = AtomicUsize::new(0);
        const BATCH: usize = 5;
        let rung = planted("wrong-in-one", |block| {
            // SAFETY: the block is that of a launch of this kernel.
            let block = unsafe { planted::OfLaunch::new(block) };
            let is_product = planted::product(block) == WRONG.load(Ordering::Relaxed);
            planted::write_each(block, |gemm, row, col| {
                let is_wrong = is_product && (row, col) == (gemm.m - 1, gemm.n - 1);
                let right = gemm.alpha * planted::sum(gemm, row, col, |a, b| a * b);
                right + f32::from(u8::from(is_wrong))
            });
        });
        let mut request = request(vec![rung]);
        request.storage.batch = BATCH;
        // There is no product with the last index.
        for product in 0..=BATCH {
            WRONG.store(product, Ordering::Relaxed);
            let report = evaluated(&request);
            let record = &report.results[0];
            let why = &record.verification;
            assert_eq!(record.passed, product == BATCH, "{why}");
            assert_eq!((record.batch, record.launches), (Some(BATCH), 1));
            if product < BATCH {
                let named = format!("Product {product} of the batch, counted from 0: C[8][7] is ");
                assert!(why.starts_with(&named), "{why}");
                continue;
            }
            assert!(why.contains("in each of 5 products"), "{why}");
            let flops = 5.0 * 2.0 * 9.0 * 8.0 * 7.0;
            let (speed, median) = (record.flops_per_s.unwrap(), record.time_median_s.unwrap());
            approx::assert_relative_eq!(speed * median, flops, max_relative = 1e-9);
        }
    }

    #[test]
    fn the_plan_that_is_made_before_anything_is_uploaded_is_the_one_that_runs() {
        let device = &Device::simulator();
        let team = &Team::new(cpu::Settings::default()).unwrap();
        for kernel in [&gpu_kernels::naive::KERNEL, &gpu_kernels::pitched::KERNEL] {
            for (padding, batch, transpose) in [(0, 1, 0), (3, 1, 1), (1, 2, 0)] {
                let rung = Rung::Gpu(Choice::even(&kernel.variants[0]));
                let mut request = request(vec![rung]);
                request.storage.padding = [padding; 3];
                request.storage.batch = batch;
                request.storage.transposes = [Transpose::ALL[transpose], Transpose::No];
                let mut candidates = [Candidate::new(rung, &request, device)];
                let planned = candidates[0].plan.clone().unwrap();
                let task = Task {
                    request: &request,
                    device,
                    team,
                    progress: &Progress::start(0),
                };
                gates::check_exact::<f32>(task, &mut candidates).unwrap();
                let ran = candidates[0].plan.as_ref().unwrap();
                assert!(Arc::ptr_eq(&planned, ran), "{planned:?} {ran:?}");
            }
        }
    }

    /// A kernel that is right in both gates, and wrong after that.
    #[test]
    fn a_kernel_that_is_wrong_only_while_it_is_timed_is_refused() {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        let late = planted("late", |block| {
            // SAFETY: the block is that of a launch of this kernel.
            let block = unsafe { planted::OfLaunch::new(block) };
            let passes = CALLS.fetch_add(1, Ordering::Relaxed) < GATES;
            planted::write_each(block, |gemm, row, col| match passes {
                true => gemm.alpha * planted::sum(gemm, row, col, |a, b| a * b),
                false => 0.0,
            });
        });
        let report = evaluated(&Request {
            effort: Effort::of(3, None),
            ..request(vec![late, naive()])
        });
        let [late, naive] = &report.results[..] else {
            panic!("{report:?}");
        };
        assert!(!report.all_passed() && naive.passed && naive.runs == Some(3));
        let same = "; timed: a launch like the timed ones gives the same bits";
        assert!(naive.verification.ends_with(same), "{}", naive.verification);
        assert!(!late.passed && late.time_median_s.is_none());
        let why =
            "The result was right, but that of a launch like the timed ones is not: C[0][0] is 0";
        assert!(late.verification.starts_with(why), "{}", late.verification);
    }
}
