//! Measures the plans that might be the fastest at a shape, alternating their runs, and checks
//! the fastest.

use gpu_gemm::choose::predictions;
use gpu_gemm::text::plural;
use gpu_gemm::{
    Call, Choice, Chooser, CudaDevice, DataType, DeviceError, ElementType, Opened, Plan, Shape,
    Transpose,
};
use std::error::Error;

use crate::check::{Baseline, Planned, Request};
use crate::data::{Data, Problem, Storage};
use crate::measure::gpu::{self, Contender};
use crate::measure::{Effort, Timing};
use crate::memory;
use crate::progress::Progress;
use crate::run::Resident;
use crate::rung::Rung;

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The largest number of plans to measure; those predicted to be the fastest come first.
    pub most: usize,
    pub effort: Effort,
    pub seed: u64,
}

/// The measurements at a shape.
#[derive(Clone, Debug)]
pub struct Measured {
    pub call: Call,
    pub choice: Choice,
    /// Median seconds.
    pub seconds: f64,
    /// The plan that the model chooses, and its seconds.
    pub model: (Choice, f64),
    /// The number of plans that were measured.
    pub plans: usize,
}

/// Why nothing was measured, as a sentence.
type Failed = Box<dyn Error>;

/// The reason why there is no GPU, without the advice to use the simulator.
fn for_gpus(why: &str) -> String {
    let why = DeviceError::without_simulator(why);
    why.trim_end_matches('.').to_string()
}

/// The GPU that was opened.
///
/// # Errors
///
/// There is none, or there are several: a sentence.
pub fn gpu_of(opened: &Opened) -> Result<&CudaDevice, String> {
    let device = &opened.device;
    device.one_gpu().ok_or_else(|| match device.several() {
        Some(_) => "`rust-gemm tune` measures one GPU at a time: name it, as in `--device cuda:1`."
            .to_string(),
        None => format!(
            "`rust-gemm tune` measures GPUs, and this is not one ({}): {}.",
            device.backend(),
            for_gpus(&opened.reason)
        ),
    })
}

/// Steps of the progress of [`shape`]: the measurement, two gates and a last run.
pub const STEPS: u64 = 4;

/// Measures at a shape: f32 matrices without gaps, not transposed. `chooser` has no tuned
/// results.
///
/// # Errors
///
/// There is no memory, the GPU fails, or the fastest plan gives a wrong result.
pub fn shape(
    opened: &Opened,
    chooser: &Chooser,
    shape: Shape,
    settings: Settings,
    progress: &Progress,
) -> Result<Measured, Failed> {
    gpu_of(opened)?;
    memory::check(shape, Storage::COMPACT, size_of::<f32>())?;
    let call = Call::compact(shape, Transpose::No, Transpose::No, ElementType::F32);
    let plans = contenders(chooser, call, settings.most);
    let Some(of_model) = plans.first().map(Choice::of) else {
        return Err(format!("No kernel multiplies {shape}.").into());
    };
    progress.doing(format!("{shape}: timing {}", plural(plans.len(), "plan")));
    let compact = Storage::COMPACT;
    let problem = Problem::<f32>::random(shape, compact, Data::Normal, settings.seed, 1.0, 0.0)?;
    let contenders: Vec<Contender<'_>> = plans.iter().map(Contender::Kernel).collect();
    // The fastest is checked below.
    let measured = gpu::measure(
        &mut Resident::new(&opened.device, &problem),
        &contenders,
        settings.effort,
        &|_| (),
        &mut |_, _| (),
    )?;
    drop(problem);
    progress.step();
    let timings = measured.timings;
    let timed = plans.iter().zip(timings.iter().map(Timing::median));
    let fastest = timed.min_by(|one, other| one.1.total_cmp(&other.1));
    let (Some((fastest, seconds)), Some(first)) = (fastest, timings.first()) else {
        return Err(format!("No kernel multiplies {shape}.").into());
    };
    let choice = Choice::of(fastest);
    check(opened, choice, shape, settings.seed, progress)?;
    Ok(Measured {
        call,
        choice,
        seconds,
        model: (of_model, first.median()),
        plans: plans.len(),
    })
}

/// The plans worth measuring: those that the model predicts to be the fastest, best first.
fn contenders(chooser: &Chooser, call: Call, most: usize) -> Vec<Plan> {
    let expected = predictions(call, chooser.facts()).into_iter();
    let plans = expected.map(|(plan, _)| plan);
    plans.take(most.max(1)).collect()
}

/// Runs both gates on every result, without cuBLAS beside it.
fn check(
    opened: &Opened,
    choice: Choice,
    shape: Shape,
    seed: u64,
    progress: &Progress,
) -> Result<(), Failed> {
    let request = Request {
        effort: Effort::of(1, 0),
        baseline: Baseline::None,
        ..Request::new(vec![Rung::Auto(choice)], DataType::F32, shape, seed)
    };
    let (report, result) = Planned::new(opened, &request).evaluate(None, progress);
    result?;
    match report.results.iter().find(|record| !record.passed) {
        None => Ok(()),
        Some(wrong) => {
            let (choice, why) = (choice.description(), &wrong.verification);
            Err(format!("{choice} at {shape} is wrong: {why}").into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_gemm::{Device, DeviceChoice, DeviceFacts};

    #[test]
    fn what_the_model_chooses_is_measured_first_and_no_more_plans_than_requested() {
        let chooser = Chooser::untuned(DeviceFacts::simulator());
        let shape = Shape::new(100, 300, 2000);
        let call = Call::compact(shape, Transpose::No, Transpose::No, ElementType::F32);
        let plans = contenders(&chooser, call, 5);
        assert_eq!(plans.len(), 5);
        let of_model = Some(Choice::of(&plans[0]));
        assert_eq!(of_model, chooser.choose(DataType::F32, shape));
        assert_eq!(contenders(&chooser, call, 0).len(), 1);
    }

    #[test]
    fn who_has_no_gpu_is_not_sent_to_the_simulator() {
        let opened = Opened {
            device: Device::open(DeviceChoice::Simulator).unwrap().device,
            reason: DeviceError::NoDriver.to_string(),
        };
        let error = gpu_of(&opened).err().unwrap();
        assert!(!error.contains("--device sim"), "{error}");
        assert!(error.ends_with("Install one."), "{error}");
    }

    #[test]
    fn a_choice_passes_before_it_is_kept() {
        let opened = Device::open(DeviceChoice::Simulator).unwrap();
        let shape = Shape::new(20, 30, 40);
        let chooser = Chooser::untuned(DeviceFacts::simulator());
        let choice = chooser.choose(DataType::F32, shape).unwrap();
        check(&opened, choice, shape, 1, &Progress::start(0)).unwrap();
    }
}
