//! What MPI sends is what the formulas say. (`right.rs` compares them with what the program
//! counts.)

use std::fs;

use distributed::layout::{Layout, layouts};
use serde_json::Value;

use crate::job::{PROGRAM, end, mpirun};

/// Bytes that Open MPI itself counted between all ranks, in all messages of one job, its own
/// included; and the report.
fn counted_by_mpi(ranks: usize, arguments: &str) -> (u64, Value) {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("rank").display().to_string();
    let mut command = mpirun(&[
        "--mca",
        "pml_monitoring_enable",
        "2",
        "--mca",
        "pml_monitoring_enable_output",
        "3",
        "--mca",
        "pml_monitoring_filename",
        &prefix,
        "-n",
        &ranks.to_string(),
        PROGRAM,
    ]);
    command.args(arguments.split_whitespace());
    let report = end(command).report();
    let mut bytes = 0;
    let mut files = 0;
    for file in fs::read_dir(folder.path()).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        files += 1;
        // `E` or `I` (a message of the program's, or of MPI's own such as a part of a collective),
        // two ranks, then a number of bytes.
        for line in text.lines().filter(|line| line.starts_with(['E', 'I'])) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let count = words.iter().position(|word| *word == "bytes").unwrap();
            bytes += words[count - 1].parse::<u64>().unwrap();
        }
    }
    assert_eq!(files, ranks, "Open MPI wrote what each rank sent");
    (bytes, report)
}

/// The bytes of one run more: what MPI agrees on by itself is in both, and so are the messages that
/// the model times. The time of one product more is agreed on with an empty shape, too.
fn bytes_of_a_run(ranks: usize, arguments: &str) -> (u64, Value) {
    let [less, more] = [1, 2]
        .map(|runs| counted_by_mpi(ranks, &format!("{arguments} --runs {runs} --format json")));
    (more.0 - less.0, more.1)
}

pub fn the_formulas_are_what_mpi_itself_counts() {
    for layout in layouts::<f32>().map(Layout::name) {
        let arguments = |shape: &str| format!("--layout {layout} --shapes {shape} --panel 16");
        let (bytes, report) = bytes_of_a_run(4, &arguments("70x90x50"));
        let (overhead, nothing) = bytes_of_a_run(4, &arguments("0x0x50"));
        let formula = report["records"][0]["formula_bytes"].as_u64().unwrap();
        assert_eq!(nothing["records"][0]["formula_bytes"], 0);
        assert!(formula > 70 * 90 * 4 / 2);
        assert_eq!(bytes - overhead, formula, "{layout}");
    }
    // A and B of 2 bytes each, and C of 4.
    for (layout, dtype) in [("scatter-rows", "bf16"), ("summa", "f16-f32")] {
        let arguments = |shape: &str| {
            format!(
                "--layout {layout} --shapes {shape} --panel 4 --dtype {dtype} --kernel auto --device sim"
            )
        };
        let (bytes, report) = bytes_of_a_run(2, &arguments("12x16x10"));
        let (overhead, _) = bytes_of_a_run(2, &arguments("0x0x10"));
        let inputs = match layout {
            "scatter-rows" => 6 * 10 + 10 * 16,
            // Half of A and of B, and then half of A to either rank, whose columns of B are its own.
            _ => 12 * 5 + 10 * 8 + 12 * 10,
        };
        assert_eq!(bytes - overhead, 2 * inputs + 4 * 6 * 16, "{layout}");
        let formula = report["records"][0]["formula_bytes"].as_u64();
        assert_eq!(formula, Some(bytes - overhead), "{layout}");
    }
}
