//! Shared by the test programs: this machine's devices, the compiled PTX, the two tiers of tests,
//! and tests that cannot run here.

pub mod built;
pub mod devices;
pub mod pages;
pub mod probes;

use std::process::ExitCode;

use cuda_std::simulator::{Launch, Report, ThreadOrder};
use devices::Backend;
use gpu_gemm::ElementType;
use gpu_gemm::gpu_kernels::kernel_of;
use gpu_gemm::gpu_kernels::spec::{DataType, Grid, Major, Unit, Variant};
use libtest_mimic::{Arguments, Failed, Trial};
use verification::data::Number;

/// The number of its cases that a test tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Run by `cargo test`, while someone waits: each value of each dimension of a grid of cases.
    Quick,
    /// Run by `cargo test -- --ignored exhaustive`: the whole grid.
    Exhaustive,
}

impl Tier {
    /// The step through a grid of cases: the quick tier tries one of `quick`. A number that is
    /// coprime to the grid's inner dimensions reaches each of their values.
    pub fn step(self, quick: usize) -> usize {
        match self {
            Tier::Quick => quick,
            Tier::Exhaustive => 1,
        }
    }
}

/// A test of a tier. In the quick tier it is reported as ignored if its device is missing. An
/// exhaustive one is ignored unless requested, so without its device it is left out.
pub fn trial(
    tier: Tier,
    backend: Backend,
    name: impl std::fmt::Display,
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Option<Trial> {
    let is_missing = match backend {
        Backend::Simulator => false,
        Backend::Gpu => devices::why_no_gpu().is_some(),
        Backend::OpenCl => devices::why_no_opencl().is_some(),
    };
    let name = format!("{backend}::{name}");
    match tier {
        Tier::Quick => Some(Trial::test(name, test).with_ignored_flag(is_missing)),
        Tier::Exhaustive => (!is_missing).then(|| exhaustive(name, test)),
    }
}

/// A test of the exhaustive tier that needs no device.
pub fn exhaustive(
    name: impl std::fmt::Display,
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    Trial::test(format!("exhaustive::{name}"), test).with_ignored_flag(true)
}

/// A test on the simulator, which every machine has.
pub fn on_simulator(
    name: impl std::fmt::Display,
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    Trial::test(format!("simulator::{name}"), test)
}

/// Whether the simulator runs this variant, and not another that represents it. Products of
/// warpgroups are slow there. Two of their eight variants of 16 bits cover every layout of A and
/// B, and both types; square stream-K tiles have the same code as those twice as wide. A C of f32
/// changes only how C is stored: one variant of each grid has it. Warps whose tensor cores
/// multiply 16 bits have a variant for each layout and type; four of the sixteen cover each once.
/// Steps that are there to be read are represented by the kernel to which they lead.
pub fn is_representative(variant: &Variant) -> bool {
    if variant.is_lesson && !is_first(variant, |other| other.types == variant.types) {
        return false;
    }
    let (inputs, c) = (variant.types.a, variant.types.c);
    let of_16_bits = inputs.bytes() == 2;
    let is_first = match variant.a.major {
        _ if !of_16_bits => true,
        Major::K => inputs == ElementType::Bf16 && variant.b.major == Major::Mn,
        Major::Mn => inputs == ElementType::F16 && variant.b.major == Major::K,
    };
    let is_square = variant.tile.m == variant.tile.n;
    match variant.grid {
        Grid::StreamK if of_16_bits && variant.unit != Unit::CudaCores => {
            let of_layout = match (variant.a.major, variant.b.major) {
                (Major::K, Major::Mn) => DataType::BF16,
                (Major::K, Major::K) => DataType::F16,
                (Major::Mn, Major::Mn) => DataType::BF16_F32,
                (Major::Mn, Major::K) => DataType::F16_F32,
            };
            variant.types.data_type() == of_layout
        }
        Grid::Persistent if of_16_bits && inputs != c => is_first && inputs == ElementType::Bf16,
        Grid::PersistentStreamK if inputs != c => {
            is_first && inputs == ElementType::F16 && variant.tile.m == 64 && is_square
        }
        Grid::Persistent => is_first,
        Grid::PersistentStreamK => is_first && is_square,
        _ => true,
    }
}

/// Whether a variant is the first of its kernel that is like it.
pub fn is_first(variant: &Variant, is_alike: impl Fn(&Variant) -> bool) -> bool {
    let variants = kernel_of(variant).into_iter().flat_map(|of| of.variants);
    let first = variants.into_iter().find(|other| is_alike(other));
    first.is_some_and(|first| std::ptr::eq(first, variant))
}

/// A test on the GPU, reported as ignored where there is none.
pub fn on_gpu(
    name: impl std::fmt::Display,
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    Trial::test(format!("gpu::{name}"), test).with_ignored_flag(devices::why_no_gpu().is_some())
}

/// Makes tests on the simulator from functions that panic on failure, with their names.
#[macro_export]
macro_rules! simulated {
    ($module:literal, $($test:ident),* $(,)?) => {
        vec![$($crate::on_simulator(concat!($module, "::", stringify!($test)), || {
            $test();
            Ok(())
        })),*]
    };
}

/// Asserts that, without any one barrier of a launch, some order of the threads changes the
/// result. `differs` tells whether a launch with a configuration changes it.
///
/// # Safety
///
/// No address depends on what the barriers protect.
pub unsafe fn assert_barriers_are_needed(
    report: &Report,
    differs: impl Fn(&dyn Fn(Launch) -> Launch) -> bool,
) {
    for site in report.barriers.keys() {
        let is_seen = ThreadOrder::ALL.into_iter().any(|order| {
            // SAFETY: the caller vouches for it.
            differs(&move |launch| unsafe { launch.thread_order(order).without_barrier(*site) })
        });
        assert!(is_seen, "nothing changes without the barrier at {site}");
    }
}

/// The elements as bits, for a comparison that includes NaNs.
pub fn bits<T: Number>(elements: &[T]) -> Vec<u64> {
    elements.iter().map(|element| element.bits()).collect()
}

/// Runs the tests: first those on the GPU, one by one on this thread, so that they share the
/// device ([`devices::Backend::run`]); then the others on all cores.
pub fn run(trials: Vec<Trial>) -> ExitCode {
    if devices::why_no_gpu().is_some() {
        return run_on(None, trials);
    }
    let is_on_gpu = |trial: &Trial| trial.name().split("::").any(|part| part == "gpu");
    let (on_gpu, others) = trials.into_iter().partition(is_on_gpu);
    match (run_in_turn(on_gpu), run_on(None, others)) {
        (ExitCode::SUCCESS, others) => others,
        (failed, _) => failed,
    }
}

/// Runs the tests one at a time.
pub fn run_in_turn(trials: Vec<Trial>) -> ExitCode {
    run_on(Some(1), trials)
}

fn run_on(threads: Option<usize>, trials: Vec<Trial>) -> ExitCode {
    if trials
        .iter()
        .any(|trial| trial.name().starts_with("exhaustive::"))
    {
        println!("tests named exhaustive:: are run by `cargo test -- --ignored exhaustive`");
    }
    if let Some(reason) = devices::why_no_gpu() {
        println!("tests named gpu:: are ignored here: {reason}");
    }
    let by_opencl = trials
        .iter()
        .any(|trial| trial.name().starts_with("opencl::"));
    if by_opencl && let Some(reason) = devices::why_no_opencl() {
        println!("tests named opencl:: are ignored here: {reason}");
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads = threads.or(arguments.test_threads);
    libtest_mimic::run(&arguments, trials).exit_code()
}
