//! `host bench`, run as a user runs it, on the simulator.

use std::fs;
use std::process::{Command, Output};

use host::bench::Results;

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_host"))
        .args(["bench", "--device", "sim"])
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_table_for_each_shape_and_every_file_that_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (json, csv, markdown, plots) = (
        file("b.json"),
        file("b.csv"),
        file("b.md"),
        file("new/plots"),
    );
    let output = bench(&[
        "--kernel",
        "naive,tiled-16",
        "--sizes",
        "16,32",
        "--shape",
        "3x40x5",
        "--json",
        &json,
        "--csv",
        &csv,
        "--markdown",
        &markdown,
        "--plots",
        &plots,
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let table = stdout(&output);
    let heads: Vec<&str> = table
        .lines()
        .filter(|line| line.ends_with("of f32"))
        .collect();
    assert_eq!(
        heads,
        [
            "16 x 16 x 16 (m x n x k) of f32",
            "32 x 32 x 32 (m x n x k) of f32",
            "3 x 40 x 5 (m x n x k) of f32"
        ]
    );
    let results: Results = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert!(results.all_proven());
    assert_eq!(results.kernels(), ["naive", "tiled-16"]);
    assert_eq!(results.sizes.len(), 3);
    // Two kernels at three shapes, after the names of the columns.
    assert_eq!(fs::read_to_string(&csv).unwrap().lines().count(), 7);
    let markdown = fs::read_to_string(&markdown).unwrap();
    assert!(
        markdown.contains("| kernel | 16 | 32 | 3 x 40 x 5 |\n"),
        "{markdown}"
    );
    for plot in ["speed.svg", "roofline.svg"] {
        let svg = fs::read_to_string(format!("{plots}/{plot}")).unwrap();
        assert!(
            svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
            "{plot}"
        );
    }
    let names = fs::read_dir(folder.path()).unwrap();
    assert_eq!(names.count(), 4, "a temporary file was left behind");
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_anything_runs() {
    let output = bench(&["--sizes", "8", "--json", "/no/such/folder/b.json"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    let error = stderr(&output);
    assert!(
        error.starts_with("error: `/no/such/folder/b.json` cannot be written: "),
        "{error}"
    );
}

#[test]
fn a_run_that_fails_leaves_files_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.json");
    fs::write(&path, "before").unwrap();
    // The second size is more than any memory holds.
    let sizes = "8,1000000000";
    let json = path.display().to_string();
    let output = bench(&["--kernel", "naive", "--sizes", sizes, "--json", &json]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).starts_with("error: "),
        "{}",
        stderr(&output)
    );
    assert!(stdout(&output).contains("8 x 8 x 8"), "{}", stdout(&output));
    assert_eq!(fs::read_to_string(&path).unwrap(), "before");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn what_there_is_not_is_a_usage_error() {
    for arguments in [
        &["--kernel", "tilde"][..],
        &["--shape", "3x4"],
        &["--preset", "report", "--sizes", "8"],
        &["--preset", "report", "--kernel", "naive"],
        &["--preset", "shapes", "--sizes", "8"],
        &["--sizes", "8", "--baseline", "cublas"],
    ] {
        let output = bench(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
}

#[test]
fn the_shapes_that_a_simulator_can_do_are_proven_by_the_kernels_that_suit_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (json, csv, markdown, plots) = (file("b.json"), file("b.csv"), file("b.md"), file("plots"));
    let preset = ["--preset", "shapes", "--json", &json, "--csv", &csv];
    let output = bench(&[&preset[..], &["--markdown", &markdown, "--plots", &plots]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).starts_with("note: "), "{}", stderr(&output));
    for part in [
        "| odd-small",
        "| auto: ",
        "Nothing was measured beside cuBLAS.",
    ] {
        assert!(stdout(&output).contains(part), "{}", stdout(&output));
    }
    let results: Results = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert!(results.all_proven());
    assert_eq!(results.kernels(), ["auto"]);
    for size in &results.sizes {
        assert!(size.name.is_some() && size.origin.is_some());
        assert!(size.results[0].chosen.is_some());
    }
    let lines = fs::read_to_string(&csv).unwrap().lines().count();
    assert_eq!(lines, 1 + results.sizes.len());
    assert!(
        fs::read_to_string(&markdown)
            .unwrap()
            .starts_with("# Shapes\n")
    );
    assert!(fs::read_to_string(format!("{plots}/ratios.svg")).is_ok());
}
