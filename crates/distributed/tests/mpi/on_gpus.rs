//! Ranks with a GPU, without a GPU: on the fake driver of `host/tests/devices/library`. All ranks
//! share its one GPU, in processes of their own.

use std::path::PathBuf;
use std::sync::LazyLock;

use gpu_gemm::device::compiled;
use serde_json::Value;

use crate::fake_gpu;
use crate::job::{Ended, PROGRAM, end, mpirun};

/// Why these tests cannot run here, if they cannot.
pub fn why_not() -> Option<&'static str> {
    compiled::why_absent()
}

static FOLDER: LazyLock<PathBuf> =
    LazyLock::new(|| fake_gpu::folder("../../host/tests/devices/library"));

/// Runs the program on `with` ranks that have a GPU and `without` ranks that find no driver.
/// `settings` are those of the fake (`library/gpu.rs`).
fn ranks((with, without): (usize, usize), settings: &str, arguments: &str) -> Ended {
    let nowhere = "LD_LIBRARY_PATH=/nowhere";
    let [with, others] = [with, without].map(|ranks| ranks.to_string());
    let mut options = vec![
        "-n",
        &with,
        "-x",
        "LD_LIBRARY_PATH",
        "-x",
        "FAKE_GPU",
        PROGRAM,
    ];
    options.extend(arguments.split_whitespace());
    if without > 0 {
        options.extend([":", "-n", &others, "-x", nowhere, PROGRAM]);
        options.extend(arguments.split_whitespace());
    }
    let mut command = mpirun(&options);
    command
        .env("LD_LIBRARY_PATH", &*FOLDER)
        .env("FAKE_GPU", format!("waits=0 {settings}"));
    end(command)
}

/// Checks that each record passed, and that what was sent is what the formula says.
fn check(ended: &Ended, expected: usize, name: &str) {
    let report = ended.report();
    let device = report["device"].as_str().unwrap();
    assert!(!device.contains("simulator"), "{device}");
    let records = report["records"].as_array().unwrap();
    assert_eq!(records.len(), expected, "{name}");
    for record in records {
        let said: &Value = &record["verification"];
        let name = format!("{name} {} on {}", record["layout"], record["ranks"]);
        assert_eq!(record["passed"], true, "{name}: {said}");
        assert_eq!(record["sent_bytes"], record["formula_bytes"], "{name}");
    }
}

pub fn every_layout_is_exact_on_gpus_in_every_order_of_streams() {
    const SHAPES: &str = "33x65x17,7x5x3,1x9x4,2x3x40,2x2x0,0x3x2";
    // At once, or as late as events allow: the copies first, the products first, or products as
    // early as they may.
    for order in 0..=4 {
        let arguments = format!(
            "--layout all --scaling 1,2,4 --shapes {SHAPES} --panel 4 --kernel naive --runs 1 \
             --format json"
        );
        let ended = ranks((4, 0), &format!("deferred={order}"), &arguments);
        check(&ended, 5 * 3 * 6, &format!("deferred={order}"));
    }
}

pub fn other_types_are_exact_on_gpus() {
    for options in [
        "--dtype f64 --kernel tiled",
        "--dtype i32 --kernel tiled --check distributed",
        "--dtype bf16 --kernel warp-specialized --alpha -2 --beta 3",
        "--dtype f16-f32 --kernel warp-specialized --alpha -2 --beta 3",
    ] {
        let arguments =
            format!("--layout all --shapes 33x65x17 --panel 4 --runs 1 --format json {options}");
        check(&ranks((3, 0), "deferred=1", &arguments), 5, options);
    }
}

pub fn ranks_without_a_gpu_multiply_beside_those_with_one() {
    let arguments = "--layout all --size 16 --kernel naive --runs 1 --format json";
    check(
        &ranks((2, 1), "", arguments),
        5,
        "two ranks with a GPU and one without",
    );
}

pub fn a_gpu_that_fails_ends_the_job_with_the_rank_and_the_reason() {
    let small = "--size 16 --panel 4 --kernel naive --runs 1 --layout summa";
    for (settings, part) in [
        ("launch=701", "`naive` cannot be launched"),
        ("memory_bytes=100", "The GPU is out of memory"),
    ] {
        ranks((2, 0), settings, small).assert_failed(&["error: rank ", part]);
    }
}
