//! What a report says about a rung.

use gpu_gemm::gpu_kernels::spec::{ErrorScale, Kernel, Variant};
use gpu_gemm::{
    Call, Choice, DataType, Device, DeviceFacts, Devices, KERNELS, Launch, Plan, PlanError, Shape,
    Split, Transpose,
};

use super::candidate::{Candidate, Machine};
use super::request::Request;
use crate::cpu::Threads;
use crate::measure::Timing;
use crate::measure::sustained::Sustained;
use crate::report::{self, Record, Yardstick};
use crate::rung::Rung;

pub(super) fn record(
    machine: Machine<'_>,
    request: &Request,
    candidate: &Candidate,
    yardsticks: &[Yardstick],
) -> Result<Record, PlanError> {
    let Candidate {
        rung,
        proofs,
        failure,
        corner,
        timing,
        ..
    } = candidate;
    let verification = match failure {
        Some(failure) => failure.to_string(),
        None => {
            let statements: Vec<String> = proofs
                .iter()
                .map(|proof| format!("{}: {}", proof.gate, proof.statement))
                .collect();
            statements.join("; ")
        }
    };
    let bounded = proofs
        .iter()
        .find(|proof| ["proven", "sampled"].contains(&proof.gate));
    let errors = bounded.and_then(|proof| proof.errors);
    let error_model = match request.data_type {
        DataType::I32 => ErrorScale::Nothing.name(),
        _ => rung.error_model(machine.team).scale(),
    };
    let is_sampled = proofs.iter().any(|proof| proof.gate == "sampled");
    let coverage = if is_sampled { "sampled" } else { "full" };
    let median = timing.as_ref().map(Timing::median);
    // A CPU's time says nothing beside a GPU's.
    let yardsticks = match rung.choice() {
        Some(_) => yardsticks,
        None => &[],
    };
    let fastest = Yardstick::fastest(yardsticks);
    let time = fastest.map(|fastest| fastest.time_median_s);
    let sustained = candidate.sustained.as_ref();
    let sustained = sustained.and_then(|of| sustained_beside(request, of, yardsticks));
    let Shape { m, n, k } = request.shape;
    let call = request
        .storage
        .call(request.shape, request.data_type.inputs);
    let [transpose_a, transpose_b] = request.storage.transposes;
    let record = Record {
        kernel: rung.name().to_string(),
        dtype: request.data_type.to_string(),
        m,
        n,
        k,
        batch: Some(request.storage.batch).filter(|batch| *batch > 1),
        transpose_a: transpose_a == Transpose::Yes,
        transpose_b: transpose_b == Transpose::Yes,
        lda: Some(call.a.leading),
        ldb: Some(call.b.leading),
        ldc: Some(call.ldc),
        alpha: request.alpha,
        beta: request.beta,
        seed: request.seed,
        proven: failure.is_none(),
        verification,
        coverage: failure.is_none().then(|| coverage.to_string()),
        largest_error: bounded.map(|proof| proof.largest_error),
        error_bound: bounded.map(|proof| proof.bound),
        error_model: Some(error_model.to_string()),
        frobenius_error: errors.map(|errors| errors.frobenius),
        largest_error_units: errors.map(|errors| errors.units),
        runs: timing.as_ref().map(Timing::runs),
        warmup: timing.as_ref().map(|timing| timing.warmup),
        launches_per_run: timing.as_ref().map(|timing| timing.launches_per_run),
        time_median_s: median,
        time_min_s: timing.as_ref().map(Timing::min),
        time_max_s: timing.as_ref().map(Timing::max),
        time_mean_s: timing.as_ref().map(Timing::mean),
        time_stddev_s: timing.as_ref().and_then(Timing::standard_deviation),
        outliers: timing.as_ref().map(Timing::outliers),
        times_s: timing
            .as_ref()
            .map_or_else(Vec::new, |timing| timing.samples().to_vec()),
        flops_per_s: median.and_then(|seconds| request.flops_per_s(seconds)),
        compared_with: fastest.map(|fastest| fastest.name.clone()),
        cublas_time_median_s: time,
        ratio_to_cublas: time.zip(median).map(|(time, seconds)| time / seconds),
        sustained,
        chosen: rung.chosen(),
        data: Some(request.source.description()),
        corner: corner.clone(),
        several: candidate.several.clone(),
        ..Record::default()
    };
    match rung {
        Rung::Cpu(algorithm) => {
            let threads = match algorithm.threads {
                Threads::One => Some(1),
                Threads::Team | Threads::Scheduled => Some(machine.team.threads()),
                Threads::Library => None,
            };
            let scheduled = algorithm.threads == Threads::Scheduled;
            Ok(Record {
                backend: "cpu".to_string(),
                threads,
                schedule: scheduled.then(|| request.cpu.schedule.to_string()),
                ..record
            })
        }
        Rung::Gpu(choice) | Rung::Auto(choice) => {
            let plan = match machine.device {
                Device::Several(devices) => first_part(devices, request, *rung, *choice)?,
                device => choice.plan(request.call(choice.variant.types.a), &device.facts())?,
            };
            let variant = plan.variant();
            let is_own = |launch: &&Launch| launch.kernel.name == variant.entry.name;
            let own: Vec<&Launch> = plan.launches().iter().filter(is_own).collect();
            Ok(Record {
                backend: machine.device.backend().to_string(),
                grid_x: own.first().map_or(0, |launch| launch.grid.0),
                grid_y: own.iter().map(|launch| u64::from(launch.grid.1)).sum(),
                grid_z: own
                    .first()
                    .map(|launch| launch.products)
                    .filter(|products| *products > 1),
                block_x: variant.block.x,
                block_y: variant.block.y,
                launches: plan.launches().len() * plan.repeats(),
                chosen: rung.chosen().map(|_| Choice::of(&plan).description()),
                reads_in_place: match rung {
                    Rung::Auto(_) | Rung::Cpu(_) => None,
                    Rung::Gpu(_) => reads_in_place(&plan, &machine.device.facts()),
                }
                .map(str::to_string),
                ..record
            })
        }
    }
}

/// What is reported of back-to-back launches; none if no product is computed.
pub(super) fn sustained(request: &Request, of: &Sustained) -> Option<report::Sustained> {
    let flops_per_s = request.flops_per_s(of.seconds_per_launch())?;
    Some(report::Sustained {
        seconds: of.seconds,
        turns: of.turns,
        launches: of.launches,
        flops_per_s,
        ratio_to_cublas: None,
        sm_clock_mhz: of.sm_clock_mhz,
        power_w: of.power_w,
        joules_per_tflop: of.power_w.map(|power| power / (flops_per_s / 1e12)),
    })
}

/// The same, with the ratio to the library that was fastest so.
fn sustained_beside(
    request: &Request,
    of: &Sustained,
    yardsticks: &[Yardstick],
) -> Option<report::Sustained> {
    let own = sustained(request, of)?;
    let ratio = Yardstick::fastest_sustained(yardsticks).map(|most| own.flops_per_s / most);
    Some(report::Sustained {
        ratio_to_cublas: ratio,
        ..own
    })
}

/// The variant of a plan's kernel that reads A and B as they lie, if the plan copies one of them.
fn reads_in_place(plan: &Plan, facts: &DeviceFacts) -> Option<&'static str> {
    let copies = |plan: &Plan| {
        plan.panels()
            .iter()
            .any(|panel| panel.copies().next().is_some())
    };
    if !copies(plan) {
        return None;
    }
    let entry = plan.variant().entry.name;
    let is_of = |kernel: &&&Kernel| kernel.variants.iter().any(|one| one.entry.name == entry);
    let kernel = KERNELS.iter().find(is_of)?;
    let in_place = |one: &&'static Variant| {
        let has_types = one.types == plan.variant().types;
        let other = Choice::even(one).plan(*plan.call(), facts);
        has_types && other.is_ok_and(|other| !copies(&other))
    };
    let variant = kernel.variants.iter().find(in_place)?;
    Some(variant.name)
}

/// The plan of the part that the first of several devices multiplies first.
fn first_part(
    devices: &Devices,
    request: &Request,
    rung: Rung,
    choice: Choice,
) -> Result<Plan, PlanError> {
    let element = choice.variant.types.a;
    let whole = request.call(element);
    let split = Split::of(whole.shape, devices.count());
    let shape = split.blocks(0).first().map(|block| Shape {
        m: block.rows.len(),
        n: block.columns.len(),
        ..whole.shape
    });
    let shape = shape.unwrap_or(whole.shape);
    let call = Call::compact(shape, whole.a.transpose, whole.b.transpose, element);
    let choice = Some(choice).filter(|_| !matches!(rung, Rung::Auto(_)));
    devices.planner(choice, request.data_type)(0, call)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::{Settings, Team};
    use crate::data::Storage;
    use crate::verify::{Errors, Proof};
    use gpu_gemm::DeviceChoice;
    use gpu_gemm::gpu_kernels::{naive, tiled};

    #[test]
    fn speed_and_ratio_follow_from_the_median_times() {
        let device = Device::open(DeviceChoice::Simulator).unwrap().device;
        let team = Team::new(Settings::default()).unwrap();
        let machine = Machine {
            device: &device,
            team: &team,
        };
        let rung = Rung::Gpu(Choice::even(&naive::KERNEL.variants[0]));
        let request = Request::new(vec![rung], DataType::F32, Shape::new(10, 20, 30), 1);
        let mut candidate = Candidate::new(rung);
        candidate.timing = Some(Timing::new(vec![4.0, 2.0, 1.0], 0, 5));
        let library = |name: &str, seconds: f64| Yardstick {
            name: name.to_string(),
            device_label: None,
            runs: 1,
            time_median_s: seconds,
            time_min_s: None,
            time_max_s: None,
            time_mean_s: None,
            time_stddev_s: None,
            outliers: None,
            times_s: Vec::new(),
            frobenius_error: None,
            largest_error_units: None,
            flops_per_s: 1.0,
            sustained: Some(report::Sustained {
                seconds: 5.0,
                turns: 5,
                launches: 10,
                flops_per_s: 12e3 / seconds,
                ratio_to_cublas: None,
                sm_clock_mhz: None,
                power_w: None,
                joules_per_tflop: None,
            }),
        };
        // TF32 is another operation.
        let cublas = [
            library("cublas-fp32", 2.0),
            library("cublaslt-fp32", 1.0),
            library("cublas-tf32", 0.5),
        ];
        candidate.sustained = Some(Sustained {
            turns: 5,
            launches: 4,
            seconds: 6.0,
            sm_clock_mhz: Some(1500.0),
            power_w: Some(700.0),
        });
        let record = record(machine, &request, &candidate, &cublas).unwrap();
        assert_eq!(record.flops_per_s, Some(2.0 * 10.0 * 20.0 * 30.0 / 2.0));
        assert_eq!(record.ratio_to_cublas, Some(0.5));
        assert_eq!(record.cublas_time_median_s, Some(1.0));
        assert_eq!(record.compared_with.as_deref(), Some("cublaslt-fp32"));
        let sustained = record.sustained.clone().unwrap();
        // 12,000 operations in 1.5 s.
        assert_eq!(sustained.flops_per_s, 8e3);
        assert_eq!(sustained.ratio_to_cublas, Some(8e3 / 12e3));
        let joules = sustained.joules_per_tflop.unwrap();
        approx::assert_relative_eq!(joules * 8e3 / 1e12, 700.0, max_relative = 1e-12);
        assert_eq!((record.runs, record.launches_per_run), (Some(3), Some(5)));
        let times = [record.time_min_s, record.time_median_s, record.time_max_s];
        assert_eq!(times, [1.0, 2.0, 4.0].map(Some));
        assert_eq!(record.times_s, [4.0, 2.0, 1.0]);
        assert_eq!(
            (record.time_mean_s, record.outliers),
            (Some(7.0 / 3.0), Some(0))
        );
        assert_eq!(
            record.time_stddev_s,
            Timing::standard_deviation(&Timing::new(vec![4.0, 2.0, 1.0], 0, 1))
        );
        assert_eq!(record.coverage.as_deref(), Some("full"));
        // With alpha 0 no product is computed, and so there is no speed of one.
        let scaled = Request {
            alpha: 0.0,
            beta: 1.0,
            ..request.clone()
        };
        let idle = super::record(machine, &scaled, &candidate, &cublas).unwrap();
        assert_eq!((idle.flops_per_s, idle.time_median_s), (None, Some(2.0)));
        // An empty C takes no launch.
        let empty = Request::new(vec![rung], DataType::F32, Shape::new(0, 20, 30), 1);
        let empty = super::record(machine, &empty, &Candidate::new(rung), &[]).unwrap();
        assert_eq!((empty.grid_x, empty.grid_y, empty.launches), (0, 0, 0));
        // Of a batch of two, by one launch.
        let of_batch = |batch| {
            let storage = Storage {
                batch,
                ..Storage::default()
            };
            let tiled = Rung::Gpu(Choice::even(&tiled::KERNEL.variants[0]));
            let request = Request {
                storage,
                ..Request::new(vec![tiled], DataType::F32, Shape::new(10, 20, 30), 1)
            };
            let record = super::record(machine, &request, &Candidate::new(tiled), &[]).unwrap();
            (record.batch, record.grid_z, record.launches)
        };
        assert_eq!(of_batch(1), (None, None, 1));
        assert_eq!(of_batch(2), (Some(2), Some(2), 1));
        let mut native = Candidate::new(Rung::Cpu(&crate::cpu::ijk::RUNG));
        native.timing = candidate.timing.take();
        let beside = super::record(machine, &request, &native, &cublas).unwrap();
        assert_eq!(
            (beside.ratio_to_cublas, beside.cublas_time_median_s),
            (None, None)
        );
        assert!(beside.flops_per_s.is_some());
        candidate.proofs = vec![Proof {
            gate: "sampled",
            statement: "2 of 3 elements".to_string(),
            largest_error: 1.0,
            bound: 2.0,
            errors: None,
        }];
        let sampled = super::record(machine, &request, &candidate, &[]).unwrap();
        assert_eq!(sampled.verdict(), "sampled");
        assert_eq!(sampled.error_bound, Some(2.0));
        assert_eq!(sampled.error_model.as_deref(), Some("elementwise"));
        assert_eq!(sampled.frobenius_error, None);
        candidate.proofs[0].gate = "proven";
        candidate.proofs[0].errors = Some(Errors {
            frobenius: 0.5,
            units: 3.0,
        });
        let full = super::record(machine, &request, &candidate, &[]).unwrap();
        assert_eq!(
            (full.frobenius_error, full.largest_error_units),
            (Some(0.5), Some(3.0))
        );
    }
}
