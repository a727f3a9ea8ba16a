//! Everything that `cuda_std` offers means the same on a GPU, in the simulator, and on paper;
//! and checkers find the planted errors.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Output};

use device_kernels::PROBES;
use device_kernels::planted::misses_a_barrier;
use device_kernels::print::PRINTED;
use device_kernels::probe::Probe;
use libtest_mimic::{Failed, Trial};
use tests::built;
use tests::devices::Backend;
use tests::probes::Job;
use tests::{on_gpu, on_simulator};

fn main() -> ExitCode {
    let mut trials = Vec::new();
    for probe in PROBES.iter().copied().flatten() {
        trials.push(on_simulator(probe.entry, || {
            computes_what_it_must(probe, |job| job.run(Backend::Simulator))
        }));
        trials.push(on_gpu(probe.entry, || {
            computes_what_it_must(probe, |job| job.run(Backend::Gpu))
        }));
        // Newer GPUs run the oldest code, too.
        trials.push(on_gpu(format!("oldest::{}", probe.entry), || {
            let module = built::probes().swap_remove(0);
            computes_what_it_must(probe, |job| job.run_on_gpu(module))
        }));
    }
    trials.push(on_simulator("print_lines", || prints_its_lines("sim")));
    trials.push(on_gpu("print_lines", || prints_its_lines("cuda")));
    trials.extend(planted_errors());
    tests::run(trials)
}

fn computes_what_it_must(
    probe: &Probe,
    run: impl Fn(Job<'_>) -> Result<Vec<u32>, String>,
) -> Result<(), Failed> {
    let input = (probe.input)();
    let expected = (probe.expected)(&probe.launch, &input);
    let output = run(Job {
        entry: probe.entry,
        function: probe.function,
        launch: &probe.launch,
        input: &input,
        length: expected.len(),
        fill: true,
    })?;
    for (i, (&got, &want)) in output.iter().zip(&expected).enumerate() {
        if !agree(got, want, probe.ulps) {
            return Err(format!(
                "word {i} is {got:#x} ({}), but must be {want:#x} ({})",
                f32::from_bits(got),
                f32::from_bits(want)
            )
            .into());
        }
    }
    Ok(())
}

/// Whether two words are equal, or as floats at most `ulps` representable numbers apart.
fn agree(got: u32, want: u32, ulps: u32) -> bool {
    if ulps == 0 {
        return got == want;
    }
    // Ordered like the numbers that the bits stand for; a NaN is far from everything but a NaN.
    let ordered = |bits: u32| {
        let magnitude = i64::from(bits & 0x7FFF_FFFF);
        if bits >> 31 == 1 {
            -magnitude
        } else {
            magnitude
        }
    };
    ordered(got).abs_diff(ordered(want)) <= u64::from(ulps)
}

fn prints_its_lines(device: &str) -> Result<(), Failed> {
    let output = run_apart("print_lines", device)?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || printed != PRINTED {
        return Err(format!(
            "printed {printed:?} instead of {PRINTED:?}: {}",
            stderr(&output)
        )
        .into());
    }
    Ok(())
}

/// What the simulator itself finds, and what a GPU reports without any checker.
fn planted_errors() -> Vec<Trial> {
    let fails_with = |name: &'static str, device: &'static str, said: &'static [&'static str]| {
        move || {
            let output = run_apart(name, device)?;
            let error = stderr(&output);
            match output.status.code() {
                Some(1) if said.iter().all(|words| error.contains(words)) => Ok(()),
                code => Err(format!("exit code {code:?}, said: {error}").into()),
            }
        }
    };
    vec![
        on_simulator(
            "a_divergent_barrier_names_block_and_threads",
            fails_with(
                "waits_in_a_branch",
                "sim",
                &["block (0, 0, 0)", "sync_threads", "planted.rs"],
            ),
        ),
        on_simulator(
            "a_lane_outside_of_its_mask_is_named",
            fails_with(
                "leaves_itself_out",
                "sim",
                &["block (0, 0, 0)", "Thread (16, 0, 0)", "planted.rs"],
            ),
        ),
        on_simulator(
            "a_panic_names_block_thread_and_place",
            fails_with(
                "panics",
                "sim",
                &[
                    "block (0, 0, 0)",
                    "Thread (40, 0, 0)",
                    "planted.rs",
                    "index",
                ],
            ),
        ),
        on_gpu(
            "a_panic_fails_the_launch",
            fails_with("panics", "cuda", &["panics fails"]),
        ),
        on_simulator("a_missing_barrier_changes_the_result", || {
            // Threads run one after the other, so the mirrored word is not there yet: poison,
            // and not the input.
            let input = device_kernels::probe::scrambled();
            let job = Job {
                entry: "misses_a_barrier",
                function: misses_a_barrier,
                launch: &device_kernels::probe::one_block(64),
                input: &input,
                length: 64,
                fill: true,
            };
            let output = job.run(Backend::Simulator)?;
            if output[..32].iter().all(|&word| word == u32::MAX) {
                return Ok(());
            }
            Err("shared memory was not poisoned".into())
        }),
    ]
}

/// Runs a probe in a process of its own.
fn run_apart(name: &str, device: &str) -> Result<Output, Failed> {
    Ok(Command::new(probe_program()?)
        .args([name, device])
        .output()?)
}

/// The `probe` program: where cargo built it, or, where the tests were carried to another
/// machine, beside this one.
fn probe_program() -> Result<PathBuf, Failed> {
    let built = PathBuf::from(env!("CARGO_BIN_EXE_probe"));
    if built.exists() {
        return Ok(built);
    }
    let beside = std::env::current_exe()?.with_file_name("probe");
    if beside.exists() {
        return Ok(beside);
    }
    Err(format!(
        "the probe program is neither at {} nor at {}",
        built.display(),
        beside.display()
    )
    .into())
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
