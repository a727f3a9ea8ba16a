//! A rung's record in the report.

use gpu_gemm::gpu_kernels::kernel_of;
use gpu_gemm::gpu_kernels::spec::{ErrorScale, Variant};
use gpu_gemm::{Choice, DeviceFacts, ElementType, Launch, Plan, Shape, Transpose};

use super::candidate::{Candidate, Task};
use super::request::Request;
use crate::cpu::{Schedule, Threads};
use crate::measure::Timing;
use crate::measure::gpu::Sustained;
use crate::report::{self, Record, Yardstick};
use crate::rung::Rung;
use crate::spelled;
use crate::verify::Errors;

pub(super) fn record(task: Task<'_>, candidate: &Candidate, yardsticks: &[Yardstick]) -> Record {
    let request = task.request;
    let Candidate {
        rung,
        plan,
        verdicts,
        failure,
        corner,
        quantisation,
        timing,
        ..
    } = candidate;
    let verification = match failure {
        Some(failure) => failure.to_string(),
        None => {
            let statements: Vec<String> = verdicts
                .iter()
                .map(|verdict| format!("{}: {}", verdict.gate, verdict.statement))
                .collect();
            statements.join("; ")
        }
    };
    let bounded = verdicts
        .iter()
        .find(|verdict| ["bound", "sampled"].contains(&verdict.gate));
    let errors = bounded.and_then(|verdict| verdict.errors);
    let error_model = match request.data_type.c {
        ElementType::I32 => ErrorScale::Nothing.name(),
        _ => rung.error_model(task.team).scale(),
    };
    let is_sampled = verdicts.iter().any(|verdict| verdict.gate == "sampled");
    let coverage = if is_sampled { "sampled" } else { "full" };
    // A CPU's time is not compared with a GPU's.
    let yardsticks = match rung.choice() {
        Some(_) => yardsticks,
        None => &[],
    };
    let fastest = Yardstick::fastest(yardsticks);
    let time = fastest.map(Record::seconds);
    let sustained = candidate.sustained.as_ref();
    let most = Yardstick::fastest_sustained(yardsticks);
    let sustained = sustained.and_then(|of| self::sustained(request, of, most));
    let problem = match timing {
        Some(timing) => timed(request, timing),
        None => problem(request),
    };
    let median = problem.time_median_s;
    let record = Record {
        kernel: rung.name().to_string(),
        passed: failure.is_none(),
        verification,
        coverage: failure.is_none().then(|| coverage.to_string()),
        largest_error: bounded.map(|verdict| verdict.largest_error),
        error_bound: bounded.map(|verdict| verdict.bound),
        error_model: Some(error_model.to_string()),
        frobenius_error: errors.map(|errors| errors.frobenius),
        largest_error_units: errors.map(|errors| errors.units),
        compared_with: fastest.map(|fastest| fastest.kernel.clone()),
        cublas_time_median_s: time,
        ratio_to_cublas: time.zip(median).map(|(time, seconds)| time / seconds),
        sustained,
        chosen: rung.chosen(),
        corner: corner.clone(),
        quantisation_error_largest: quantisation.map(|errors| errors.largest),
        quantisation_error_frobenius: quantisation.map(|errors| errors.frobenius),
        quantisation_error_rows: quantisation.map(|errors| errors.rows),
        several: candidate.several.clone(),
        ..problem
    };
    match rung {
        Rung::Cpu(algorithm) => {
            let threads = match algorithm.threads {
                Threads::One => Some(1),
                Threads::Team | Threads::Scheduled => Some(task.team.threads()),
                Threads::Library => None,
            };
            let schedule = || match (request.cpu.schedule, request.cpu.chunk) {
                (schedule @ Schedule::Static, _) | (schedule, 1) => schedule.to_string(),
                // As in OpenMP's variable `OMP_SCHEDULE`.
                (schedule, chunk) => format!("{schedule},{chunk}"),
            };
            let scheduled = algorithm.threads == Threads::Scheduled;
            Record {
                backend: "cpu".to_string(),
                threads,
                schedule: scheduled.then(schedule),
                ..record
            }
        }
        Rung::Gpu(choice) | Rung::Auto(choice) => {
            let plan = plan.as_deref();
            let variant = plan.map_or(choice.variant, Plan::variant);
            let launches = plan.map_or(&[][..], Plan::launches);
            let is_own = |launch: &&Launch| launch.kernel.name == variant.entry.name;
            let own: Vec<&Launch> = launches.iter().filter(is_own).collect();
            let chosen = || plan.map_or(*choice, Choice::of).description();
            Record {
                backend: task.device.backend().to_string(),
                grid_x: own.first().map_or(0, |launch| launch.grid.0),
                grid_y: own.iter().map(|launch| u64::from(launch.grid.1)).sum(),
                grid_z: own
                    .first()
                    .map(|launch| launch.products)
                    .filter(|products| *products > 1),
                block_x: variant.block.x,
                block_y: variant.block.y,
                launches: plan.map_or(0, |plan| launches.len() * plan.repeats()),
                chosen: rung.chosen().map(|_| chosen()),
                reads_in_place: plan
                    .filter(|_| matches!(rung, Rung::Gpu(_)))
                    .and_then(|plan| reads_in_place(plan, &task.device.facts()))
                    .map(str::to_string),
                ..record
            }
        }
    }
}

/// The fields that describe the problem, for kernels and libraries.
fn problem(request: &Request) -> Record {
    let Shape { m, n, k } = request.shape;
    let call = request
        .storage
        .call(request.shape, request.data_type.inputs);
    let [transpose_a, transpose_b] = request.storage.transposes;
    Record {
        dtype: request.data_type.to_string(),
        m,
        n,
        k,
        batch: Some(request.storage.batch).filter(|batch| *batch > 1),
        groups: request
            .storage
            .groups
            .map(|groups| groups.sizes().collect()),
        transpose_a: transpose_a == Transpose::Yes,
        transpose_b: transpose_b == Transpose::Yes,
        lda: Some(call.a.leading),
        ldb: Some(call.b.leading),
        ldc: Some(call.ldc),
        alpha: request.alpha,
        beta: request.beta,
        epilogue: request.epilogue.map(spelled),
        scales: request.scales.map(spelled),
        seed: request.seed,
        data: Some(request.source.description()),
        ..Record::default()
    }
}

/// The same with times.
fn timed(request: &Request, timing: &Timing) -> Record {
    Record {
        runs: Some(timing.runs()),
        warmup: Some(timing.warmup),
        launches_per_run: Some(timing.launches_per_run),
        time_median_s: Some(timing.median()),
        time_min_s: Some(timing.min()),
        time_max_s: Some(timing.max()),
        time_mean_s: Some(timing.mean()),
        time_stddev_s: timing.standard_deviation(),
        times_s: timing.samples().to_vec(),
        flops_per_s: request.flops_per_s(timing.median()),
        ..problem(request)
    }
}

/// The record of a library that kernels are compared with.
pub(super) fn yardstick(
    request: &Request,
    name: &str,
    timing: &Timing,
    errors: Option<Errors>,
    of: Option<&Sustained>,
) -> Yardstick {
    Record {
        kernel: name.to_string(),
        backend: "cuda".to_string(),
        frobenius_error: errors.map(|errors| errors.frobenius),
        largest_error_units: errors.map(|errors| errors.units),
        sustained: of.and_then(|of| sustained(request, of, None)),
        ..timed(request, timing)
    }
}

/// The record of back-to-back launches, compared with the library that is fastest back to back;
/// `None` if no product is computed.
fn sustained(request: &Request, of: &Sustained, most: Option<f64>) -> Option<report::Sustained> {
    let flops_per_s = request.flops_per_s(of.seconds_per_launch())?;
    Some(report::Sustained {
        seconds: of.seconds,
        turns: of.turns,
        launches: of.launches,
        flops_per_s,
        ratio_to_cublas: most.map(|most| flops_per_s / most),
        sm_clock_mhz: of.sm_clock_mhz,
        power_w: of.power_w,
        joules_per_tflop: of.power_w.map(|power| power / (flops_per_s / 1e12)),
    })
}

/// The variant of a plan's kernel that reads A and B in place, if the plan copies one of them.
fn reads_in_place(plan: &Plan, facts: &DeviceFacts) -> Option<&'static str> {
    let copies = |plan: &Plan| {
        plan.panels()
            .iter()
            .any(|panel| panel.copies().next().is_some())
    };
    if !copies(plan) {
        return None;
    }
    let kernel = kernel_of(plan.variant())?;
    let in_place = |one: &&'static Variant| {
        let has_types = one.types == plan.variant().types;
        let other = Choice::even(one).plan(*plan.call(), facts);
        has_types && other.is_ok_and(|other| !copies(&other))
    };
    let variant = kernel.variants.iter().find(in_place)?;
    Some(variant.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::{Settings, Team, ijk};
    use crate::progress::Progress;
    use crate::verify::Verdict;
    use gpu_gemm::gpu_kernels::{naive, spec::Kernel};
    use gpu_gemm::{DataType, Device};

    /// A library's times: each launch of 12,000 operations takes `seconds`, alone or in ten.
    fn library(name: &str, seconds: f64) -> Yardstick {
        let (timing, runs) = (Timing::new(vec![seconds], 0, 1), Some((10, seconds)));
        yardstick(
            &request(),
            name,
            &timing,
            None,
            runs.map(sustained_of).as_ref(),
        )
    }

    fn sustained_of((launches, seconds_per_launch): (u64, f64)) -> Sustained {
        Sustained {
            turns: 5,
            launches,
            seconds: launches as f64 * seconds_per_launch,
            sm_clock_mhz: Some(1500.0),
            power_w: Some(700.0),
        }
    }

    fn gpu(kernel: &'static Kernel) -> Rung {
        Rung::Gpu(Choice::even(&kernel.variants[0]))
    }

    fn request() -> Request {
        let shape = Shape::new(10, 20, 30);
        Request::new(vec![gpu(&naive::KERNEL)], DataType::F32, shape, 1)
    }

    fn recorded(request: &Request, candidate: &Candidate, libraries: &[Yardstick]) -> Record {
        let device = &Device::simulator();
        let team = &Team::new(Settings::default()).unwrap();
        let progress = &Progress::start(0);
        let task = Task {
            request,
            device,
            team,
            progress,
        };
        record(task, candidate, libraries)
    }

    #[test]
    fn speed_and_ratio_follow_from_the_median_times() {
        let samples = vec![4.0, 2.0, 1.0];
        let timed = |rung| Candidate {
            timing: Some(Timing::new(samples.clone(), 0, 5)),
            sustained: Some(sustained_of((4, 1.5))),
            ..Candidate::new(rung, &request(), &Device::simulator())
        };
        let candidate = timed(gpu(&naive::KERNEL));
        // TF32 is not compared: it rounds more.
        let cublas = [
            library("cublas-fp32", 2.0),
            library("cublaslt-fp32", 1.0),
            library("cublas-tf32", 0.5),
        ];
        let record = recorded(&request(), &candidate, &cublas);
        assert_eq!(record.flops_per_s, Some(12e3 / 2.0));
        assert_eq!(record.ratio_to_cublas, Some(0.5));
        assert_eq!(record.cublas_time_median_s, Some(1.0));
        assert_eq!(record.compared_with.as_deref(), Some("cublaslt-fp32"));
        let sustained = record.sustained.clone().unwrap();
        assert_eq!(sustained.flops_per_s, 12e3 / 1.5);
        assert_eq!(sustained.ratio_to_cublas, Some(1.0 / 1.5));
        let joules = sustained.joules_per_tflop.unwrap();
        approx::assert_relative_eq!(joules * 8e3 / 1e12, 700.0, max_relative = 1e-12);
        assert_eq!((record.runs, record.launches_per_run), (Some(3), Some(5)));
        let times = [record.time_min_s, record.time_median_s, record.time_max_s];
        assert_eq!(times, [1.0, 2.0, 4.0].map(Some));
        assert_eq!(record.times_s, samples);
        assert_eq!(record.time_mean_s, Some(7.0 / 3.0));
        let deviation = record.time_stddev_s.unwrap();
        approx::assert_relative_eq!(deviation, (14.0f64 / 3.0 / 2.0).sqrt());
        assert_eq!(record.coverage.as_deref(), Some("full"));
        // With alpha 0 no product is computed, so there is no speed.
        let scaled = Request {
            alpha: 0.0,
            beta: 1.0,
            ..request()
        };
        let idle = recorded(&scaled, &candidate, &cublas);
        assert_eq!((idle.flops_per_s, idle.time_median_s), (None, Some(2.0)));
        // A CPU is not compared with a GPU.
        let native = recorded(&request(), &timed(Rung::Cpu(&ijk::RUNG)), &cublas);
        let compared = (native.ratio_to_cublas, native.cublas_time_median_s);
        assert_eq!(compared, (None, None));
        assert!(native.flops_per_s.is_some());
    }

    #[test]
    fn errors_are_those_of_the_gate_that_has_a_bound() {
        let (frobenius, units) = (0.5, 3.0);
        for (gate, errors, verdict) in [
            ("sampled", None, "sampled"),
            ("bound", Some(Errors { frobenius, units }), "passed"),
        ] {
            let mut candidate =
                Candidate::new(gpu(&naive::KERNEL), &request(), &Device::simulator());
            candidate.verdicts = vec![Verdict {
                largest_error: 1.0,
                bound: 2.0,
                errors,
                ..Verdict::exact(gate, "2 of 3 elements".to_string())
            }];
            let record = recorded(&request(), &candidate, &[]);
            assert_eq!(record.verdict(), verdict);
            assert_eq!(
                (record.largest_error, record.error_bound),
                (Some(1.0), Some(2.0))
            );
            assert_eq!(record.error_model.as_deref(), Some("elementwise"));
            let found = (record.frobenius_error, record.largest_error_units);
            assert_eq!(found, (errors.map(|_| frobenius), errors.map(|_| units)));
        }
    }
}
