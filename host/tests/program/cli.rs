//! The program itself, run as a user runs it, on the simulator.

use std::path::Path;
use std::process::Stdio;

use crate::common::{Ended, assert_contains, command, run};
use serde_json::{Value, json};

/// A small problem on the simulator.
const SMALL: &str = "--device sim --m 17 --n 33 --k 65";

fn small(more: &str) -> Ended {
    run(&format!("{SMALL} {more}"))
}

#[test]
fn without_options_it_checks_the_double_buffer_kernel() {
    let ended = run("--size 130 --device sim");
    assert_eq!(ended.err, "");
    assert_contains(
        &ended.succeeded(),
        &[
            "device  simulator on ",
            "why     chosen with --device",
            "130 x 130 x 130",
            "| double-buffer",
            ": passed",
            "exact: all 16900 elements equal on integers",
            "bound: all 16900 elements within the bound of rounding",
            "FLOP/s",
        ],
    );
}

#[test]
fn without_a_driver_of_opencl_there_is_a_sentence_and_no_kernel() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(folder.path(), "--device opencl --kernel naive --size 8");
    // Debian's loader, like others, looks for drivers there.
    command.env("OCL_ICD_VENDORS", folder.path());
    let ended = Ended::of(command);
    // The output with and without a loader.
    let said = [
        "There is no OpenCL on this machine",
        "OpenCL finds no device on this machine",
    ];
    let message = ended.refused(1);
    assert!(said.iter().any(|said| message.contains(said)), "{message}");
}

#[test]
fn every_kernel_of_every_type_passes_and_transposes_are_taken() {
    for (data_type, transposes) in [
        ("f32", "--transpose-a"),
        ("f64", "--transpose-b"),
        ("i32", "--transpose-a --transpose-b"),
    ] {
        let options =
            format!("--kernel all,cpu --dtype {data_type} --alpha -2 --beta 3 --math tf32");
        let report = small(&options).succeeded();
        // As a whole word: `tf32` does not count, nor does `bf16-f32`.
        let listed = run("--list").out;
        let words = listed.split(|letter: char| !letter.is_alphanumeric() && letter != '-');
        let listed = words.filter(|word| *word == data_type).count();
        assert_eq!(report.matches(": passed").count(), listed);
        // `tests/kernels` transposes for all kernels.
        let options = format!("--kernel tiled,auto --dtype {data_type} --padding 1 --beta 2");
        let report = small(&format!("{options} {transposes}")).succeeded();
        assert_contains(&report, &["stored transposed, lda ", ": passed"]);
    }
}

#[test]
fn a_and_b_of_16_bits_pass_with_either_type_of_c() {
    let kernels = "--kernel warp-specialized,persistent-64x64-tt,auto";
    for (data_type, data) in [
        ("bf16", "graded"),
        ("bf16", "positive"),
        ("f16", "wide"),
        ("bf16-f32", "index-sum"),
        ("f16-f32", "graded"),
        ("f16-f32", "normal"),
    ] {
        let options = format!("{kernels} --dtype {data_type} --alpha -2 --beta 3 --data {data}");
        let report = small(&options).succeeded();
        assert_eq!(report.matches(": passed").count(), 3, "{report}");
    }
}

#[test]
fn an_epilogue_passes_with_the_gates_that_it_allows() {
    for (options, gates) in [
        ("bias+relu --dtype f16 --transpose-b", "exact: all"),
        (
            "bias --kernel tensor-core-nt --dtype bf16 --batch 3",
            "exact: ",
        ),
        ("bias+gelu --alpha 2 --beta -1", "no exact gate: bias+gelu"),
        ("silu --dtype bf16 --padding 1", "no exact gate: silu"),
    ] {
        let report = small(&format!("--epilogue {options}")).succeeded();
        assert_contains(&report, &[": passed", gates, ", epilogue "]);
    }
    let mixed = small("--epilogue relu --kernel tiled-32,auto");
    let left_out = "note: not run: tiled-32: not compiled with an epilogue.\n";
    assert_contains(&mixed.err, &[left_out]);
    assert_contains(&mixed.succeeded(), &["auto: passed"]);
    for (options, error) in [
        (
            "--kernel tiled-32",
            "Kernel `tiled-32` is not compiled with an epilogue. In f32 these are: auto, async-pipeline, async-pipeline-64x64-nn,",
        ),
        ("--dtype f64", "--epilogue takes f32, bf16 and f16, not f64"),
    ] {
        let refused = small(&format!("--epilogue relu {options}")).refused(2);
        assert_contains(&refused, &[error]);
    }
    let refused = run("--epilogue relu --device sim+sim --size 40").refused(2);
    assert_contains(
        &refused,
        &["--epilogue runs on one GPU or in the simulator"],
    );
}

#[test]
fn groups_pass_each_with_its_own_b() {
    let division = "6 groups of up to ";
    for (options, shown) in [
        ("70,0,5,66 --n 136 --k 72", "shape   141 x 136 x 72"),
        (
            "6 --m 90 --n 72 --k 40 --transpose-b --beta 2 --dtype f16",
            division,
        ),
        (
            "1 --m 3 --n 64 --k 64 --padding 8 --data graded",
            "1 group of up to 3 rows",
        ),
    ] {
        let report = run(&format!("--device sim --groups {options}")).succeeded();
        let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_exact = [
            "auto: passed",
            "chosen: grouped-64x128",
            "exact: in each of ",
        ];
        assert_contains(&report, &is_exact);
        assert_contains(&report, &[&shown]);
    }
    let json = run("--groups 3,4 --n 64 --k 64 --device sim --format json").succeeded();
    assert_contains(&json, &["\"groups\": [\n        3,\n        4\n      ]"]);
    let reason = "A, B and C must be of bf16 or f16";
    for (options, error) in [
        ("3,4 --dtype f32 --size 64", reason),
        ("3,4 --dtype bf16-f32 --size 64", reason),
        (
            "3,4 --n 63 --k 64",
            "the rows of A and B at multiples of 16 bytes",
        ),
        ("3,4 --m 8", "The groups have 7 rows in all, but --m is 8"),
        ("3,-4", "a size is a whole number"),
        ("0,0", "The groups have no rows."),
        ("3,4 --kernel persistent", "cannot be used with"),
        (
            "3,4 --device sim+sim --size 64",
            "--groups runs on one GPU or in the simulator",
        ),
        ("3,4 --baseline cublas --size 64", "leave out --baseline"),
    ] {
        let refused = run(&format!("--groups {options}")).refused(2);
        assert_contains(&refused, &[error]);
    }
}

#[test]
fn several_devices_multiply_a_and_b_of_16_bits_into_either_type_of_c() {
    for data_type in ["bf16", "f16", "bf16-f32", "f16-f32"] {
        let options = format!(
            "--kernel warp-specialized,auto --dtype {data_type} --device sim+sim+sim --m 70 --n 50 --k 40 \
             --transpose-b --beta 2"
        );
        let report = run(&options).succeeded();
        assert_eq!(report.matches(": passed").count(), 2, "{report}");
    }
}

#[test]
fn nobody_gets_fewer_bits_than_ieee_754_without_asking_for_it() {
    for (kernel, named, pattern, skipped, allowed) in [
        (
            "tensor-core",
            "rounds f32 to tf32, which has 11 of its 24 bits: allow it with `--math tf32`.",
            "t*",
            "which rounds f32 to tf32",
            &["tf32"][..],
        ),
        (
            "split-fp32",
            "splits f32 into two f16, with an error bound of its own: allow it with `--math split`.",
            "s*,tiled-32",
            "which splits f32 into two f16, with an error bound of its own; `--math split` allows it",
            &["split", "tf32"],
        ),
    ] {
        let refused = small(&format!("--kernel tiled-32,{}", kernel.to_uppercase())).refused(2);
        assert_contains(&refused, &[&format!("Kernel `{kernel}` {named}")]);
        let matched = small(&format!("--kernel {pattern}"));
        assert_contains(&matched.err, &[&format!("not run: {kernel}, {skipped}")]);
        let report = matched.succeeded();
        assert!(report.contains("tiled-32: passed") && !report.contains(kernel));
        for math in ["tf32", "split"] {
            let ended = small(&format!("--kernel {kernel} --math {math}"));
            match allowed.contains(&math) {
                true => {
                    let passed = format!("{kernel}: passed\n    exact: all");
                    assert_contains(&ended.succeeded(), &[&passed]);
                }
                false => drop(ended.refused(2)),
            }
        }
    }
}

#[test]
fn where_a_kernel_copies_b_its_variant_that_does_not_is_named() {
    let note = "copies A or B first, since it cannot read them in place; `";
    let multiplied = |options: &str| run(&format!("--device sim --size 64 {options}")).succeeded();
    // No type is given: it is the kernel's.
    let text = multiplied("--kernel warp-specialized --transpose-b");
    let expected = format!("{note}warp-specialized-nt` can");
    assert_contains(&text, &[" of bf16,", &expected]);
    for options in [
        "--kernel warp-specialized-nt --transpose-b",
        "--kernel warp-specialized",
        "--kernel auto --transpose-b",
    ] {
        let text = multiplied(options);
        assert!(!text.contains(note), "{text}");
    }
    let text = run("bench --device sim --sizes 64 --kernel warp-specialized --transpose-b");
    let expected = format!("\nwarp-specialized: {note}");
    assert_contains(&text.succeeded(), &[&expected]);
}

#[test]
fn cpu_rungs_need_no_device_and_say_what_they_ran_on() {
    // There is no such GPU; it is never used.
    let options = "--device cuda:99 --kernel cpu --threads 3 --schedule guided";
    let ended = run(&format!("{options} --m 17 --n 33 --k 65"));
    assert_contains(
        &ended.succeeded(),
        &[
            "why     CPU rungs run natively, whatever --device says",
            " 1 thread; 10 runs: ",
            " 3 threads, guided; 10 runs: ",
            "cpu-strassen: passed",
        ],
    );
}

fn report(more: &str) -> Value {
    let report = small(&format!("--format json {more}")).succeeded();
    serde_json::from_str(&report).expect("the report is JSON")
}

#[test]
fn a_gpu_kernel_and_a_cpu_rung_stand_in_one_report() {
    let report = report("--kernel naive,cpu-rows --threads 2");
    assert_eq!(report["backend"], "simulator");
    let [kernel, rung] = [&report["results"][0], &report["results"][1]];
    assert_eq!(kernel["backend"], "simulator");
    assert_eq!(kernel["threads"], Value::Null);
    assert_eq!(rung["backend"], "cpu");
    assert_eq!(rung["threads"], 2);
    assert_eq!(rung["grid_x"], 0);
    assert_eq!(rung["schedule"], "static");
}

#[test]
fn a_request_that_makes_no_sense_is_a_usage_error_that_says_why() {
    for (arguments, why) in [
        (
            "--kernel naive,tilde",
            "error: There is no kernel `tilde`; did you mean `tiled`? `rust-gemm --list` shows all.\n",
        ),
        ("--kernel sync*", "There is no kernel `sync*`. "),
        ("--kernel warp-tiled --dtype i32", "does not multiply i32"),
        (
            "--dtype i32 --kernel tiled-32 --alpha -1.3",
            "error: alpha is -1.3, but for matrices of i32 it must be a whole number that i32 can represent.\n",
        ),
        (
            "--kernel naive --beta nan",
            "error: beta is NaN, but for matrices of f32 it must be a finite number ",
        ),
        (
            "--device sim --kernel naive --size 8 --baseline cublas",
            "cuBLAS",
        ),
        (
            "--size 1.5k",
            "a size is a whole number such as 1000, or 4k for 4096",
        ),
        (
            "--batch 0",
            "0 is not in 1..=1048576: a batch has at least one product",
        ),
        ("--batch 1025k", "1049600 is not in 1..=1048576"),
        (
            "--batch 2 --device sim+sim --size 8",
            "`--batch` needs one device",
        ),
        ("bench --preset report --batch 2", "leave `--batch` out"),
        ("--a a.npy --b b.npy --padding 3", "--padding"),
        ("--a a.npy", "--b"),
        ("--runs 0", "0 is not in 1..=100000"),
        ("--schedule fair", "fair"),
        ("--show 0", "a corner is ROWS or ROWSxCOLUMNS"),
        ("doctor --size 3", "--size"),
        ("bench --kernel tilde", "There is no kernel `tilde`"),
        ("bench --shape 3x4", "a shape is three numbers"),
        ("bench --preset report --sizes 8", "cannot be used with"),
        (
            "bench --preset report --kernel naive",
            "has its own kernels and type",
        ),
        ("bench --device sim --sizes 8 --baseline cublas", "cuBLAS"),
        ("--kernel cpu-ikj --size 8 --transpose-a", "--transpose-a"),
        ("--kernel cpu-ikj --size 8 --transpose-b", "--transpose-b"),
        (
            "tune --device sim --sizes 64",
            "`rust-gemm tune` measures GPUs, ",
        ),
        ("ptx", "<KERNEL>"),
        ("ptx tilde", "There is no kernel `tilde`"),
        ("ptx naive --raw --sass", "cannot be used with"),
        ("ptx naive --sass --arch sm_35", "sm_35"),
        ("ptx naive --statistics", "--sass"),
    ] {
        assert_contains(&run(arguments).refused(2), &[why]);
    }
}

#[test]
fn a_problem_too_large_for_memory_is_an_error_and_not_a_crash() {
    let error = run("--device sim --kernel naive --size 1000000000000").refused(1);
    assert!(error.starts_with("error: "), "{error}");
    let error = run("--device sim --size 18446744073709551615").refused(1);
    assert_contains(&error, &[" needs about 1.1e31 GiB of memory"]);
}

#[test]
fn every_product_of_a_batch_passes_and_counts() {
    let what = "--kernel tiled-32,auto,cpu-ikj --m 9 --n 12 --k 20 --batch 7 --device sim";
    for more in [
        "--beta 2 --alpha -1 --padding 3",
        "--dtype f64 --data index-sum",
    ] {
        let table = run(&format!("{what} {more}")).succeeded();
        assert_contains(
            &table,
            &[", a batch of 7", "exact: in each of 7 products: all 108 "],
        );
        assert_eq!(
            table.matches("once for each product of the batch").count(),
            0
        );
        let report = run(&format!("{what} {more} --format json")).succeeded();
        let report: Value = serde_json::from_str(&report).unwrap();
        for (index, record) in report["results"].as_array().unwrap().iter().enumerate() {
            assert_eq!(
                [&record["passed"], &record["batch"]],
                [&true.into(), &json!(7)]
            );
            let figure = |key: &str| record[key].as_f64().unwrap();
            let flops = figure("flops_per_s") * figure("time_median_s");
            approx::assert_relative_eq!(flops, 7.0 * 2.0 * 9.0 * 12.0 * 20.0, max_relative = 1e-9);
            // One launch for all.
            if index == 0 {
                assert_eq!([&record["grid_z"], &record["launches"]], [7, 1]);
            }
        }
    }
    let what = "--kernel tiled-32 --m 9 --n 12 --k 20 --batch 3 --device sim --transpose-b";
    let after = "tiled-32: passed\n    launched once for each product of the batch";
    assert_contains(&run(what).succeeded(), &[after]);
    let report = run(&format!("{what} --format json")).succeeded();
    let report: Value = serde_json::from_str(&report).unwrap();
    // B is copied for each product.
    assert_eq!(report["results"][0]["launches"], 6);
    // `--show` shows the first product.
    let what = "--kernel naive --m 2 --n 3 --k 4 --batch 3 --device sim --data index-sum --show 4";
    let shown = run(&format!("{what} --format json")).succeeded();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let corner = json!([[14.0, 20.0, 26.0], [20.0, 30.0, 40.0]]);
    assert_eq!(shown["results"][0]["corner"], corner);
    // A single product is no batch.
    assert_eq!(
        self::report("--kernel naive --batch 1")["results"][0]["batch"],
        Value::Null
    );
}

#[test]
fn without_a_product_there_is_no_speed() {
    for options in ["--alpha 0 --beta 2", "--k 0"] {
        let run = |format: &str| {
            let rest = format!("--device sim --kernel naive,cpu-ijk --size 9 {options}");
            run(&format!("{rest} --format {format}")).succeeded()
        };
        let report: Value = serde_json::from_str(&run("json")).unwrap();
        for result in report["results"].as_array().unwrap() {
            assert_eq!(result["flops_per_s"], Value::Null, "{options}");
            assert!(result["time_median_s"].as_f64() > Some(0.0) || options == "--k 0");
        }
        assert!(!run("table").contains("FLOP/s"), "{options}");
    }
}

#[test]
fn an_empty_result_launches_nothing_and_passes() {
    let report = run("--device sim --kernel all --m 0 --n 5 --k 5").succeeded();
    assert_contains(&report, &["nothing to launch"]);
}

#[test]
fn doctor_says_what_is_there_and_where_kernels_will_run() {
    let findings = run("doctor").succeeded();
    for name in ["GPU", "PTX", "libNVVM", "cuBLAS", "simulator"] {
        let says =
            |line: &str| line.starts_with('[') && line.split_whitespace().nth(1) == Some(name);
        assert!(findings.lines().any(says), "no {name} in:\n{findings}");
    }
    assert_contains(&findings, &["Without `--device`, kernels run on the "]);
}

#[test]
fn help_documents_exit_codes_and_long_help_variables_too() {
    let [help, brief] = ["--help", "-h"].map(|option| run(option).succeeded());
    for text in [&help, &brief] {
        assert_contains(text, &["Exit codes: 0 if every result passes"]);
    }
    assert!(help.contains("GEMM_CACHE_DIR") && !brief.contains("GEMM_CACHE_DIR"));
}

#[test]
fn a_list_comes_in_every_format() {
    assert_contains(
        &run("--list").succeeded(),
        &["double-buffer: ", "cpu-ikj: "],
    );
    let json = run("--list --format json").succeeded();
    let json: Value = serde_json::from_str(&json).expect("the list is JSON");
    let of_rungs = verification::cpu::RUNGS
        .iter()
        .map(|rung| rung.types().len());
    let of_gpu = gpu_gemm::gpu_kernels::variants().count();
    let all = of_gpu + of_rungs.sum::<usize>();
    assert_eq!(json["variants"].as_array().map(Vec::len), Some(all));
}

#[test]
fn a_reader_that_goes_away_at_once_is_no_error() {
    let arguments = format!("{SMALL} --kernel naive");
    let mut child = command(Path::new("."), &arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// Whether this build has PTX; where it has none, `ptx` must say so.
fn has_ptx() -> bool {
    gpu_gemm::device::compiled::why_absent().is_none()
}

/// The output of `ptx`; `None` if this build has no PTX, which is then an error.
fn listed(arguments: &str) -> Option<String> {
    let ended = run(&format!("ptx {arguments}"));
    if has_ptx() {
        return Some(ended.succeeded());
    }
    let error = ended.refused(1);
    let why = "error: There is no PTX in this build. ";
    assert!(error.starts_with(why), "{error}");
    None
}

#[test]
fn ptx_shows_instructions_below_their_lines_or_says_why_there_are_none() {
    let Some(listing) = listed("naive") else {
        return;
    };
    assert!(listing.starts_with(".visible .entry naive(\n"), "{listing}");
    // The kernel multiplies and adds in one line of its file; its text is beside the number.
    let source = include_str!("../../../gpu-kernels/src/naive.rs");
    let before = listing.split("fma.rn.f32").next().unwrap_or_default();
    let place = before
        .lines()
        .rev()
        .filter_map(|line| line.strip_prefix("//"))
        .find_map(|line| line.trim_start().strip_prefix("gpu-kernels/src/naive.rs:"))
        .expect("the line is named");
    let (number, text) = place.split_once(' ').expect("its text is beside it");
    let number: usize = number.parse().expect("a line has a number");
    let line = source.lines().nth(number - 1);
    assert_eq!(line.map(str::trim), Some(text.trim()));
    assert!(text.contains('*'), "{text}");
}

#[test]
fn ptx_that_is_raw_names_no_lines() {
    let Some(module) = listed("naive --raw") else {
        return;
    };
    assert!(module.starts_with(".version "), "{module}");
    assert_eq!(module.matches(".entry ").count(), 1);
    let has_lines = module.contains("//") || module.contains(".loc");
    assert!(!has_lines, "{module}");
}

#[test]
fn ptx_is_the_newest_that_the_gpu_takes() {
    // It does not take that of sm_90a.
    if let Some(module) = listed("naive --raw --arch sm_100") {
        assert_contains(&module, &[".target sm_90\n"]);
    }
}

#[test]
fn machine_code_is_shown_or_the_tool_that_is_missing_is_named() {
    for more in ["", "--statistics"] {
        let ended = run(&format!("ptx naive --sass --arch sm_90 {more}"));
        if ended.code == Some(0) {
            assert_contains(&ended.out, &["FFMA"]);
            continue;
        }
        let error = ended.refused(1);
        let missing = ["PTX", "ptxas", "nvdisasm"].map(|tool| format!("There is no {tool}"));
        assert!(missing.iter().any(|why| error.contains(why)), "{error}");
    }
}

#[test]
fn completions_name_every_subcommand_and_the_kernels() {
    for shell in ["bash", "fish"] {
        let text = run(&format!("completions {shell}")).succeeded();
        // After `--kernel`, of the program itself and of `bench`.
        for name in ["double-buffer-k8", "cpu-matrixmultiply", "auto"] {
            assert!(text.matches(name).count() >= 2, "{shell} lacks {name}");
        }
        for subcommand in ["bench", "explain", "tune", "doctor", "ptx", "completions"] {
            assert!(text.contains(subcommand), "{shell} lacks {subcommand}");
        }
    }
}
