//! All features of `cuda_std` behave the same on a GPU, in the simulator, and on paper; and
//! checkers find the planted errors.

use std::path::PathBuf;
use std::process::{Command, Output};

use device_kernels::PROBES;
use device_kernels::planted::{misses_a_barrier, misses_an_mbarrier_wait, overwrites_a_stage};
use device_kernels::print::{PRINTED, PRINTED_TEXTS};
use device_kernels::probe::{Probe, ProbeFn, one_block, scrambled};
use libtest_mimic::{Failed, Trial};
use tests::built;
use tests::devices::Backend;
use tests::probes::Job;
use tests::{on_gpu, on_simulator};

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for probe in PROBES.iter().copied().flatten() {
        trials.push(on_simulator(format!("probes::{}", probe.entry), || {
            computes_what_it_must(probe, |job| job.run_in_all_orders())
        }));
        trials.push(on_gpu(format!("probes::{}", probe.entry), || {
            computes_what_it_must(probe, |job| job.run(Backend::Gpu))
        }));
        // Newer GPUs run the oldest code, too.
        if probe.runs_since != built::OLDEST {
            continue;
        }
        trials.push(on_gpu(format!("probes::oldest::{}", probe.entry), || {
            let module = built::probes().swap_remove(0);
            computes_what_it_must(probe, |job| job.run_on_gpu(module))
        }));
    }
    for (name, printed) in [("print_lines", PRINTED), ("print_texts", PRINTED_TEXTS)] {
        trials.push(on_simulator(name, move || prints(name, printed, "sim")));
        trials.push(on_gpu(name, move || prints(name, printed, "cuda")));
    }
    trials.extend(planted_errors());
    trials
}

fn computes_what_it_must(
    probe: &Probe,
    run: impl Fn(Job<'_>) -> Result<Vec<u32>, String>,
) -> Result<(), Failed> {
    let input = (probe.input)();
    let expected = (probe.expected)(&probe.launch, &input);
    let output = run(Job::of(probe, &input, expected.len()))?;
    for (i, (&got, &want)) in output.iter().zip(&expected).enumerate() {
        let [got_float, want_float] = [got, want].map(f32::from_bits);
        assert!(
            agree(got, want, probe.ulps),
            "word {i} is {got:#x} ({got_float}), but must be {want:#x} ({want_float})"
        );
    }
    Ok(())
}

/// Whether two words are equal, or, as floats, at most `ulps` representable numbers apart.
fn agree(got: u32, want: u32, ulps: u32) -> bool {
    if ulps == 0 {
        return got == want;
    }
    // Ordered like the numbers that the bits represent; a NaN is far from everything but a NaN.
    let ordered = |bits: u32| {
        let magnitude = i64::from(bits & 0x7FFF_FFFF);
        match bits >> 31 {
            1 => -magnitude,
            _ => magnitude,
        }
    };
    ordered(got).abs_diff(ordered(want)) <= u64::from(ulps)
}

fn prints(name: &str, expected: &str, device: &str) -> Result<(), Failed> {
    let output = run_apart(name, device)?;
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(printed, expected, "{}", stderr(&output));
    assert!(output.status.success(), "{}", stderr(&output));
    Ok(())
}

/// Errors that the simulator finds, and that a GPU reports without any checker.
fn planted_errors() -> Vec<Trial> {
    let fails_with = |name: &'static str, device: &'static str, said: &'static str| {
        move || {
            let output = run_apart(name, device)?;
            let error = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{error}");
            for words in said.split("; ") {
                assert!(error.contains(words), "no `{words}` in: {error}");
            }
            Ok(())
        }
    };
    let diverges = "block (0, 0, 0); sync_threads; planted.rs";
    let is_outside = "block (0, 0, 0); Thread (16, 0, 0); planted.rs";
    let panics = "Thread (40, 0, 0) of block (0, 0, 0) panicked at; planted.rs:; \
                  index out of bounds: the len is 64 but the index is 64";
    vec![
        on_simulator(
            "a_divergent_barrier_names_block_and_threads",
            fails_with("waits_in_a_branch", "sim", diverges),
        ),
        on_simulator(
            "a_lane_outside_of_its_mask_is_named",
            fails_with("leaves_itself_out", "sim", is_outside),
        ),
        on_simulator(
            "a_panic_names_block_thread_and_place",
            fails_with("panics", "sim", panics),
        ),
        on_gpu(
            "a_panic_names_block_thread_and_place",
            fails_with("panics", "cuda", panics),
        ),
        on_simulator(
            "an_assertion_shows_both_values",
            fails_with(
                "asserts",
                "sim",
                "block (0, 0, 0); Thread (40, 0, 0); planted.rs; left; right",
            ),
        ),
        on_gpu(
            "an_assertion_fails_the_launch",
            fails_with("asserts", "cuda", "asserts fails"),
        ),
        on_simulator("a_missing_barrier_changes_the_result", || {
            // Threads run one after the other, so the mirrored word is not written yet: it is
            // poison, not the input.
            let output = simulate("misses_a_barrier", misses_a_barrier)?;
            assert_eq!(output[..32], [u32::MAX; 32]);
            Ok(())
        }),
        on_simulator("without_a_wait_the_first_words_are_read_twice", || {
            let output = simulate("misses_an_mbarrier_wait", misses_an_mbarrier_wait)?;
            assert_eq!(output, twice_mirrored(&scrambled()[..32]));
            Ok(())
        }),
        on_simulator("an_overwritten_stage_has_the_last_words_twice", || {
            let output = simulate("overwrites_a_stage", overwrites_a_stage)?;
            assert_eq!(output, twice_mirrored(&scrambled()[32..]));
            Ok(())
        }),
    ]
}

/// The output of a planted error in the simulator.
fn simulate(entry: &'static str, function: ProbeFn) -> Result<Vec<u32>, Failed> {
    let job = Job {
        entry,
        function,
        launch: &one_block(64),
        input: &scrambled(),
        length: 64,
        fill: true,
    };
    Ok(job.run(Backend::Simulator)?)
}

fn twice_mirrored(words: &[u32]) -> Vec<u32> {
    [words, words]
        .into_iter()
        .flat_map(|words| words.iter().rev().copied())
        .collect()
}

/// Runs a probe in a process of its own.
fn run_apart(name: &str, device: &str) -> Result<Output, Failed> {
    Ok(Command::new(probe_program()?)
        .args([name, device])
        .output()?)
}

/// The `probe` program: where cargo built it, or beside this program if the tests were copied to
/// another machine.
fn probe_program() -> Result<PathBuf, Failed> {
    let built = PathBuf::from(env!("CARGO_BIN_EXE_probe"));
    let places = [built, std::env::current_exe()?.with_file_name("probe")];
    let found = places.iter().find(|path| path.exists()).cloned();
    found.ok_or_else(|| format!("the probe program is at none of {places:?}").into())
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
