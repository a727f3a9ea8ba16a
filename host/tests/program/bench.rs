//! `rust-gemm bench`, run as a user runs it, on the simulator.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::common::signals::Started;
use crate::common::{Ended, assert_contains, command, run_in};
use host::bench::{Machine, Results};
use host::report::Record;

fn bench(folder: &Path, arguments: &str) -> Ended {
    run_in(folder, &format!("bench --device sim {arguments}"))
}

#[test]
fn what_is_computed_is_in_the_table_and_in_the_results_and_nothing_else_is_compared_with_it() {
    let folder = tempfile::tempdir().unwrap();
    type Check = fn(&Record) -> bool;
    let cases: [(&str, &str, &str, Check); 4] = [
        (
            "naive,cpu-ikj",
            "--alpha -2 --beta 0.5",
            ", alpha -2, beta 0.5\n",
            |record| (record.alpha, record.beta) == (-2.0, 0.5),
        ),
        (
            "all,auto",
            "--transpose-a",
            ", A stored transposed\n",
            |record| {
                (record.transpose_a, record.transpose_b) == (true, false)
                    && [record.lda, record.ldb] == [Some(9), Some(12)]
            },
        ),
        (
            "all,auto,cpu-ikj,cpu-rows",
            "--padding 3",
            ", lda 23, ldb 15, ldc 15\n",
            |record| [record.lda, record.ldb, record.ldc] == [23, 15, 15].map(Some),
        ),
        (
            "double-buffer,cpu-ikj",
            "--batch 3",
            ", a batch of 3\n",
            |record| {
                let flops = record.flops_per_s.unwrap() * record.time_median_s.unwrap();
                record.batch == Some(3) && (flops / (6.0 * 9.0 * 12.0 * 20.0) - 1.0).abs() < 1e-9
            },
        ),
    ];
    for (kernels, options, head, is_right) in cases {
        let what = format!("--kernel {kernels} --shape 9x12x20");
        let table = bench(folder.path(), &format!("{what} {options} {FILES}")).succeeded();
        let head = format!("9 x 12 x 20 (m x n x k) of f32{head}");
        assert_contains(&table, &[&head]);
        let results = results(folder.path());
        assert!(results.all_passed(), "{options}");
        let records = &results.sizes[0].results;
        assert!(records.iter().all(is_right), "{options}: {records:?}");
        // With other storage, scalars or batch sizes it is other work.
        let compared = |options: &str| {
            let arguments = format!("{what} {options} --compare b.json");
            let table = bench(folder.path(), &arguments).succeeded();
            !table.contains("Nothing here was measured in `b.json`, too.\n")
        };
        assert!(compared(options) && !compared(""), "{options}");
    }
    for wrong in [
        "--kernel tiled-32 --dtype i32 --sizes 8 --alpha 0.5",
        "--kernel cpu --sizes 8 --transpose-b",
        "--sizes 8 --padding -1",
    ] {
        bench(folder.path(), wrong).refused(2);
    }
}

/// The results that `--json b.json` has written.
fn results(folder: &Path) -> Results {
    let text = fs::read_to_string(folder.join("b.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The options for every file.
const FILES: &str = "--json b.json --markdown b.md --plots new/plots";

#[test]
fn a_table_for_each_shape_and_every_requested_file_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let what = "--kernel naive,tiled-16 --sizes 16,32 --shape 3x40x5";
    let before = SystemTime::now();
    let table = bench(folder.path(), &format!("{what} {FILES}")).succeeded();
    let heads = table.lines().filter(|line| line.ends_with("of f32"));
    let expected = ["16 x 16 x 16", "32 x 32 x 32", "3 x 40 x 5"];
    let expected = expected.map(|shape| format!("{shape} (m x n x k) of f32"));
    assert_eq!(heads.collect::<Vec<_>>(), expected);
    let results = results(folder.path());
    assert!(results.all_passed());
    assert_eq!(results.kernels(), ["naive", "tiled-16"]);
    assert_eq!(results.sizes.len(), 3);
    let made = results.provenance.as_ref().unwrap();
    assert_eq!(made.version, env!("CARGO_PKG_VERSION"));
    let commit = made.commit.as_deref().unwrap_or_default();
    let hash = commit.trim_end_matches("-dirty");
    let is_hash = hash.chars().all(|digit| digit.is_ascii_hexdigit());
    assert!(is_hash && [0, 40, 64].contains(&hash.len()), "{commit}");
    // The date has no fractions of seconds.
    let date = humantime::parse_rfc3339(&made.date).unwrap() + Duration::from_secs(1);
    assert!(before < date && date <= SystemTime::now() + Duration::from_secs(1));
    assert_contains(&read("b.md"), &["| kernel | 16 | 32 | 3 x 40 x 5 |\n"]);
    for plot in ["ladder", "speed", "roofline"] {
        let svg = read(&format!("new/plots/{plot}.svg"));
        let is_whole = svg.starts_with("<svg ") && svg.ends_with("</svg>\n");
        assert!(is_whole, "{plot}");
    }
    let names = fs::read_dir(folder.path()).unwrap();
    assert_eq!(names.count(), 3, "a temporary file was left behind");
}

#[test]
fn starts_are_compared_by_two_runs() {
    let folder = tempfile::tempdir().unwrap();
    let what = "bench --device sim+sim --kernel naive,cpu-ikj --sizes 24 --runs 5";
    let bench = |options: &str| run_in(folder.path(), &format!("{what} {options}")).succeeded();
    bench("--json a.json");
    let table = bench("--start host --compare a.json --json b.json");
    let parts = [
        "naive: 2 simulated devices, 2 x 1, from host memory and back: ",
        "compared with `a.json` (2 times simulator on ",
    ];
    assert_contains(&table, &parts);
    let results = results(folder.path());
    let several = results.sizes[0].results[0].several.as_ref().unwrap();
    assert_eq!(several.start, "host");
    let refused = crate::common::run("bench --device sim --start host --kernel naive").refused(2);
    assert_contains(&refused, &["--start needs several devices"]);
    let refused = crate::common::run("bench --device sim,opencl").refused(2);
    assert_contains(&refused, &["a device is auto, sim, cuda"]);
}

#[test]
fn an_earlier_benchmark_is_compared_where_it_timed_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name| folder.path().join(name);
    let what = "--kernel naive,tiled-16 --sizes 8,16 --runs 8";
    bench(folder.path(), &format!("{what} --json b.json")).succeeded();
    let before = results(folder.path());
    let (wide, few) = ([1e-12, 1e-12, 1e6, 1e6].to_vec(), vec![1e6; 3]);
    for (times, is_noise) in [(vec![1e6; 4], false), (wide, true), (few, true)] {
        let mut earlier = before.clone();
        earlier.machine.device = "another".to_string();
        for record in earlier.sizes.iter_mut().flat_map(|size| &mut size.results) {
            (record.times_s, record.time_median_s) = (times.clone(), Some(1e6));
        }
        earlier.sizes[0].results[0].alpha = 2.0;
        earlier.sizes[1].results[1].kernel = "pitched".to_string();
        let json = serde_json::to_string(&earlier).unwrap();
        fs::write(path("b.json"), json).unwrap();
        // A file may be both compared with and replaced.
        let options = "--compare b.json --json b.json --markdown b.md";
        let table = bench(folder.path(), &format!("{what} {options}")).succeeded();
        let (_, compared) = table.split_once("\ncompared with ").unwrap();
        assert!(compared.starts_with("`b.json` (another):\n"), "{compared}");
        assert_contains(&fs::read_to_string(path("b.md")).unwrap(), &[compared]);
        let rows = compared.lines().filter(|line| line.contains(" | x "));
        let [tiled, naive] = rows.collect::<Vec<_>>()[..] else {
            panic!("{compared}");
        };
        assert!(tiled.starts_with("| tiled-16 | 8 "), "{tiled}");
        assert!(
            naive.starts_with("| naive    | 16    | 1000000.0 s | "),
            "{naive}"
        );
        assert_eq!([tiled, naive].map(|row| row.contains('~')), [is_noise; 2]);
        let now = results(folder.path()).sizes[1].results[0].seconds();
        let speed_up = naive.trim_end_matches([' ', '|', '~']).rsplit(' ').next();
        let speed_up: f64 = speed_up.unwrap().parse().unwrap();
        assert!((speed_up * now / 1e6 - 1.0).abs() < 1e-2, "{naive}");
    }
}

#[test]
fn what_is_no_earlier_benchmark_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("b.md"), "| kernel |\n").unwrap();
    let later = serde_json::json!({"schema": 99, "machine": Machine::default(), "sizes": []});
    fs::write(folder.path().join("later.json"), later.to_string()).unwrap();
    for (file, why) in [
        (
            "missing.json",
            "`missing.json` cannot be read: no such file",
        ),
        ("b.md", "`b.md` is no benchmark: "),
        (
            "later.json",
            "`later.json` has the layout of a later version, 99",
        ),
    ] {
        // More than any memory holds: it would fail otherwise if it ran.
        let arguments = format!("--sizes 1000000000 --compare {file}");
        let error = bench(folder.path(), &arguments).refused(1);
        let advice = "--compare reads a file that `bench --json` wrote.";
        assert_contains(&error, &[why, advice]);
    }
}

#[test]
fn cpu_rungs_are_measured_beside_kernels_and_alone() {
    let folder = tempfile::tempdir().unwrap();
    let beside = "--kernel naive,cpu-ikj,cpu-rows --sizes 16 --threads 2";
    let ended = bench(folder.path(), &format!("{beside} {FILES}"));
    assert_eq!(ended.err, "");
    let table = ended.succeeded();
    assert_contains(
        &table,
        &["device  simulator", "| naive", "| cpu-ikj", "| cpu-rows"],
    );
    let results = results(folder.path());
    let records = &results.sizes[0].results;
    assert_eq!((records[1].threads, records[2].threads), (Some(1), Some(2)));
    assert!(
        records
            .iter()
            .all(|record| record.ratio_to_cublas.is_none())
    );
    // There is no such GPU; it is never used.
    let alone = run_in(
        folder.path(),
        "bench --device cuda:99 --kernel cpu --sizes 16",
    );
    let table = alone.succeeded();
    let why = "why     CPU rungs run natively, whatever --device says\n";
    assert_contains(&table, &["| cpu-strassen", why]);
    assert!(!table.contains("simulator"), "{table}");
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_anything_runs() {
    let error = bench(Path::new("."), "--sizes 8 --json /no/such/folder/b.json").refused(1);
    let why = "error: `/no/such/folder/b.json` cannot be written: ";
    assert!(error.starts_with(why), "{error}");
}

/// Checks that the files hold the first size, although the run ended before the second.
fn assert_first_size(folder: &Path) {
    let read = |name| fs::read_to_string(folder.join(name)).unwrap();
    let results = results(folder);
    assert!(results.all_passed());
    assert_eq!(results.sizes.len(), 1);
    assert_contains(&read("b.md"), &["| kernel | 8 |\n"]);
    assert!(read("new/plots/speed.svg").ends_with("</svg>\n"));
    let names = fs::read_dir(folder).unwrap();
    assert_eq!(names.count(), 3, "a temporary file was left behind");
}

#[test]
fn a_run_that_fails_keeps_the_sizes_that_are_finished() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("b.json"), "before").unwrap();
    // The second size is more than any memory holds.
    let arguments = |sizes: &str| format!("--kernel naive --sizes {sizes} {FILES}");
    let ended = bench(folder.path(), &arguments("1000000000"));
    assert_eq!(ended.code, Some(1));
    let json = fs::read_to_string(folder.path().join("b.json")).unwrap();
    assert_eq!(json, "before", "nothing is finished");
    let ended = bench(folder.path(), &arguments("8,1000000000"));
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.starts_with("error: "), "{}", ended.err);
    assert_contains(&ended.out, &["8 x 8 x 8"]);
    assert_first_size(folder.path());
}

#[test]
fn an_interrupt_keeps_the_sizes_that_are_finished() {
    let folder = tempfile::tempdir().unwrap();
    // The second size takes minutes.
    let arguments = format!("bench --device sim --kernel naive --sizes 8,4096 {FILES}");
    let mut program = Started::new(command(folder.path(), &arguments));
    program.wait_for_line("| naive ");
    program.send("INT");
    assert_eq!(program.ended().signal(), Some(2));
    assert_eq!(program.stderr(), "interrupted\n");
    assert_first_size(folder.path());
}

#[test]
fn kernels_with_an_epilogue_are_those_of_auto_by_default() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = format!("--sizes 20,40 --dtype bf16 --epilogue bias+gelu {FILES}");
    let table = bench(folder.path(), &arguments).succeeded();
    assert_contains(
        &table,
        &["20 x 20 x 20 (m x n x k) of bf16, epilogue bias+gelu"],
    );
    let results = results(folder.path());
    assert!(results.all_passed());
    assert_eq!(results.kernels(), ["auto"]);
    let epilogue = results.sizes[1].results[0].epilogue.as_deref();
    assert_eq!(epilogue, Some("bias+gelu"));
}

#[test]
fn a_file_on_standard_output_is_alone_there() {
    let ended = bench(
        Path::new("."),
        "--kernel naive --sizes 8 --json /dev/stdout",
    );
    assert_contains(&ended.err, &["8 x 8 x 8 (m x n x k) of f32"]);
    let results: Results = serde_json::from_str(&ended.succeeded()).unwrap();
    assert!(results.all_passed());
}

#[test]
fn the_shapes_that_a_simulator_can_do_pass_by_the_kernels_that_suit_them() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name| fs::read_to_string(folder.path().join(name)).unwrap();
    let ended = bench(folder.path(), &format!("--preset shapes {FILES}"));
    assert!(ended.err.starts_with("note: "), "{}", ended.err);
    assert_contains(
        &ended.succeeded(),
        &[
            "| odd-small",
            "| auto: ",
            "Nothing was measured beside cuBLAS.",
        ],
    );
    let results = results(folder.path());
    assert!(results.all_passed());
    assert_eq!(results.kernels(), ["auto"]);
    for size in &results.sizes {
        assert!(size.name.is_some() && size.origin.is_some());
        assert!(size.results[0].chosen.is_some());
    }
    assert_contains(&read("b.md"), &["| odd-small"]);
    assert!(!read("new/plots/ratios.svg").is_empty());
}
