//! The program itself, run as a user runs it, on the simulator.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_host"));
    command.args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the program starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("the report is UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A small problem on the simulator.
const SMALL: [&str; 8] = ["--device", "sim", "--m", "17", "--n", "33", "--k", "65"];

fn small(more: &[&str]) -> Output {
    run(&[&SMALL[..], more].concat())
}

#[test]
fn without_options_it_proves_the_double_buffer_kernel() {
    let output = run(&["--size", "130", "--device", "sim"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = stdout(&output);
    for part in [
        "device  simulator on ",
        "why     asked for with --device",
        "130 x 130 x 130",
        "| double-buffer",
        ": proven right",
        "exact: all 16900 elements equal on small integers",
        "proven: all 16900 elements within the bound of rounding",
        "FLOP/s",
    ] {
        assert!(report.contains(part), "no `{part}` in:\n{report}");
    }
    assert_eq!(stderr(&output), "");
}

#[test]
fn every_kernel_of_every_type_is_proven() {
    for data_type in ["f32", "f64", "i32"] {
        let scalars = ["--alpha", "-2", "--beta", "3"];
        let output =
            small(&[&["--kernel", "all,cpu", "--dtype", data_type], &scalars[..]].concat());
        assert_eq!(
            output.status.code(),
            Some(0),
            "{}{}",
            stdout(&output),
            stderr(&output)
        );
        let listed = stdout(&run(&["--list"])).matches(data_type).count();
        assert_eq!(stdout(&output).matches(": proven right").count(), listed);
    }
}

#[test]
fn auto_runs_what_suits_the_shape_and_says_what() {
    for data_type in ["f32", "f64", "i32"] {
        let output = small(&[
            "--kernel",
            "auto,tiled-16",
            "--dtype",
            data_type,
            "--beta",
            "2",
        ]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let report = stdout(&output);
        for part in [
            "| auto ",
            "auto: proven right\n    chosen: ",
            "tiled-16: proven right\n    exact",
        ] {
            assert!(report.contains(part), "no `{part}` in:\n{report}");
        }
    }
}

#[test]
fn tuning_asks_for_a_gpu() {
    let output = run(&["tune", "--device", "sim", "--sizes", "64"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).starts_with("error: `host tune` measures GPUs, "),
        "{}",
        stderr(&output)
    );
}

#[test]
fn cpu_rungs_need_no_device_and_say_what_they_ran_on() {
    let asked = ["--kernel", "cpu", "--threads", "3", "--schedule", "guided"];
    let shape = ["--m", "17", "--n", "33", "--k", "65"];
    // There is no such GPU; it is never used.
    let output = run(&[&["--device", "cuda:99"], &asked[..], &shape[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = stdout(&output);
    for part in [
        "why     CPU rungs run natively, whatever --device says",
        "| 1 thread ",
        "| 3 threads, guided |",
        "cpu-strassen: proven right",
    ] {
        assert!(report.contains(part), "no `{part}` in:\n{report}");
    }
}

#[test]
fn a_gpu_kernel_and_a_cpu_rung_stand_in_one_report() {
    let asked = ["--kernel", "naive,cpu-rows", "--threads", "2"];
    let output = small(&[&asked[..], &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("the report is JSON");
    assert_eq!(report["backend"], "simulator");
    let [kernel, rung] = [&report["results"][0], &report["results"][1]];
    assert_eq!(
        (&kernel["backend"], &rung["backend"]),
        (&"simulator".into(), &"cpu".into())
    );
    assert_eq!(
        (&kernel["threads"], &rung["threads"]),
        (&Value::Null, &2.into())
    );
    assert_eq!(
        (&rung["grid_x"], &rung["schedule"]),
        (&0.into(), &"static".into())
    );
}

#[test]
fn an_unknown_kernel_is_a_usage_error_that_lists_the_known_ones() {
    let output = small(&["--kernel", "naive,tilde"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stdout(&output), "");
    assert!(
        stderr(&output)
            .starts_with("error: There is no kernel `tilde`; did you mean `tiled`? There are: "),
        "{}",
        stderr(&output)
    );
}

#[test]
fn what_cannot_be_asked_is_a_usage_error() {
    for arguments in [
        &["--kernel", "double-buffer", "--dtype", "i32"][..],
        &["--dtype", "i32", "--kernel", "tiled", "--alpha", "0.5"],
        &["--beta", "nan"],
        &["--baseline", "cublas"],
        &["--size", "many"],
    ] {
        let output = small(arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert_eq!(stdout(&output), "");
    }
}

#[test]
fn a_problem_too_large_for_memory_is_an_error_and_not_a_crash() {
    let output = run(&[
        "--device",
        "sim",
        "--kernel",
        "naive",
        "--size",
        "1000000000000",
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).starts_with("error: "),
        "{}",
        stderr(&output)
    );
}

#[test]
fn json_holds_every_documented_field() {
    let output = small(&[
        "--kernel", "tiled-16", "--format", "json", "--beta", "0.5", "--runs", "3",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("the report is JSON");
    assert_eq!(report["schema"], 1);
    assert_eq!(report["backend"], "simulator");
    let result = &report["results"][0];
    assert_eq!(result["kernel"], "tiled-16");
    assert_eq!(
        (&result["m"], &result["n"], &result["k"]),
        (&17.into(), &33.into(), &65.into())
    );
    assert_eq!(result["beta"], 0.5);
    assert_eq!(
        (&result["grid_x"], &result["grid_y"]),
        (&3.into(), &2.into())
    );
    assert_eq!(result["proven"], true);
    assert_eq!(result["runs"], 3);
    let error = result["largest_error"].as_f64().expect("an error");
    assert!(error <= result["error_bound"].as_f64().expect("a bound"));
    let times =
        ["time_min_s", "time_median_s", "time_max_s"].map(|key| result[key].as_f64().expect(key));
    assert!(0.0 < times[0] && times.is_sorted());
    assert!(result["flops_per_s"].as_f64().expect("a speed") > 0.0);
    assert_eq!(result["ratio_to_cublas"], Value::Null);
}

#[test]
fn csv_has_a_line_a_kernel_and_the_fields_of_json_as_columns() {
    let asked = ["--kernel", "naive,tiled-16", "--format"];
    let csv = stdout(&small(&[&asked[..], &["csv"]].concat()));
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let columns: Vec<String> = reader.headers().unwrap().iter().map(String::from).collect();
    let kernels: Vec<String> = reader
        .records()
        .map(|record| record.unwrap()[0].to_string())
        .collect();
    assert_eq!(kernels, ["naive", "tiled-16"]);
    let json = stdout(&small(&[&asked[..], &["json"]].concat()));
    let report: Value = serde_json::from_str(&json).unwrap();
    let mut keys: Vec<&String> = report["results"][0].as_object().unwrap().keys().collect();
    let mut columns: Vec<&String> = columns.iter().collect();
    keys.sort();
    columns.sort();
    assert_eq!(keys, columns);
}

#[test]
fn an_empty_result_launches_nothing_and_is_proven() {
    let output = run(&[
        "--device", "sim", "--kernel", "all", "--m", "0", "--n", "5", "--k", "5",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("nothing to launch"));
}

#[test]
fn doctor_says_what_is_there_and_where_kernels_will_run() {
    let output = run(&["doctor"]);
    assert_eq!(output.status.code(), Some(0));
    let findings = stdout(&output);
    for name in ["GPU", "PTX", "libNVVM", "cuBLAS", "simulator"] {
        let says =
            |line: &str| line.starts_with('[') && line.split_whitespace().nth(1) == Some(name);
        assert!(findings.lines().any(says), "no {name} in:\n{findings}");
    }
    assert!(findings.contains("Without `--device`, kernels run on the "));
}

#[test]
fn help_is_no_error_and_documents_the_exit_codes() {
    let output = run(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("Exit codes: 0 if every result is proven right"));
}

#[test]
fn a_closed_pipe_is_no_panic() {
    let mut child = command(&[&SMALL[..], &["--kernel", "naive"]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output), "");
}

/// Whether this build has PTX; where it has none, `ptx` must say so.
fn has_ptx() -> bool {
    gpu_gemm::device::ptx::why_absent().is_none()
}

#[test]
fn ptx_shows_instructions_below_their_lines_or_says_why_there_are_none() {
    let output = run(&["ptx", "naive"]);
    if !has_ptx() {
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).starts_with("error: There is no PTX in this build. "));
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let listing = stdout(&output);
    assert!(listing.starts_with(".visible .entry naive(\n"), "{listing}");
    // The kernel multiplies and adds in one line of its file, whose text is beside the number.
    let source = include_str!("../../gpu-kernels/src/naive.rs");
    let before = listing.split("fma.rn.f32").next().unwrap_or_default();
    let place = before
        .lines()
        .rev()
        .filter_map(|line| line.strip_prefix("//"))
        .find_map(|line| line.trim_start().strip_prefix("gpu-kernels/src/naive.rs:"))
        .expect("the line is named");
    let (number, text) = place.split_once(' ').expect("its text is beside it");
    let number: usize = number.parse().expect("a line has a number");
    assert_eq!(
        source.lines().nth(number - 1).map(str::trim),
        Some(text.trim())
    );
    assert!(text.contains('*'), "{text}");
}

#[test]
fn ptx_that_is_raw_names_no_lines() {
    let output = run(&["ptx", "tiled", "--dtype", "i32", "--raw"]);
    if !has_ptx() {
        assert_eq!(output.status.code(), Some(1));
        return;
    }
    let module = stdout(&output);
    assert!(module.starts_with(".version "), "{module}");
    assert_eq!(module.matches(".entry ").count(), 1);
    assert!(
        !module.contains("//") && !module.contains(".loc"),
        "{module}"
    );
}

#[test]
fn ptx_is_the_newest_that_the_gpu_takes() {
    for (gpu, target) in [("sm_75", "sm_75"), ("sm_86", "sm_80"), ("sm_100", "sm_90")] {
        let output = run(&["ptx", "naive", "--raw", "--arch", gpu]);
        if !has_ptx() {
            assert_eq!(output.status.code(), Some(1));
            continue;
        }
        let module = stdout(&output);
        assert!(module.contains(&format!(".target {target}\n")), "{module}");
    }
}

#[test]
fn what_cannot_be_listed_is_a_usage_error() {
    for arguments in [
        &["ptx"][..],
        &["ptx", "tilde"],
        &["ptx", "double-buffer", "--dtype", "i32"],
        &["ptx", "naive", "--raw", "--sass"],
        &["ptx", "naive", "--sass", "--arch", "sm_35"],
        &["ptx", "naive", "--statistics"],
    ] {
        let output = run(arguments);
        let errors = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert_eq!(stdout(&output), "");
    }
}

#[test]
fn machine_code_is_shown_or_the_tool_that_is_missing_is_named() {
    for more in [&[][..], &["--statistics"]] {
        let output = run(&[&["ptx", "naive", "--sass", "--arch", "sm_90"], more].concat());
        match output.status.code() {
            Some(0) => assert!(stdout(&output).contains("FFMA"), "{}", stdout(&output)),
            code => {
                assert_eq!(code, Some(1), "{}", stderr(&output));
                let errors = stderr(&output);
                let missing = [
                    "There is no PTX",
                    "There is no ptxas",
                    "There is no nvdisasm",
                ];
                assert!(missing.iter().any(|tool| errors.contains(tool)), "{errors}");
                assert_eq!(stdout(&output), "");
            }
        }
    }
}

#[test]
fn a_reader_that_stops_reading_a_listing_is_no_error() {
    if !has_ptx() {
        return; // nothing is written, as another test shows
    }
    let mut child = command(&["ptx", "all"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output), "");
}
