//! Results are right, and the same each time.

use std::fs;
use std::path::Path;

use distributed::layout::{Layout, layouts};
use gpu_gemm::{Bf16, F16};
use host::npy;
use serde_json::Value;
use verification::data::{Matrix, Number};

use crate::job::{Ended, PROGRAM, end, job};

/// `m x n x k` with more ranks than rows, one row or column, no elements, and uneven shares.
const SHAPES: &str = "33x65x17,64x64x64,7x5x3,1x9x4,9x1x4,2x2x0,0x3x2,3x0x2,2x3x40";

fn number(value: &Value, key: &str) -> usize {
    value[key].as_u64().expect(key) as usize
}

/// Rows of C where `a[i][l] = i + l` and `b[l][j] = l + j`, by loops of this test's own.
fn index_sums(m: usize, n: usize, k: usize) -> Vec<Vec<f64>> {
    let element = |i, j| (0..k).map(|l| ((i + l) * (l + j)) as f64).sum();
    (0..m)
        .map(|i| (0..n).map(|j| element(i, j)).collect())
        .collect()
}

pub fn every_layout_is_exact_and_sends_what_its_formulas_say_on_any_number_of_ranks() {
    let mut sending = 0;
    for dtype in ["f32", "f64", "i32"] {
        let report = end(job(
            7,
            &format!(
                "--layout all --scaling 1,2,3,4,6,7 --shapes {SHAPES} --panel 4 --dtype {dtype} \
                 --data index-sum --show 65 --runs 1 --format json"
            ),
        ))
        .report();
        let records = report["records"].as_array().unwrap();
        assert_eq!(records.len(), 5 * 6 * 9);
        for record in records {
            let [m, n, k] = ["m", "n", "k"].map(|key| number(record, key));
            let name = format!(
                "{dtype} {} {m} x {n} x {k} on {}",
                record["layout"], record["ranks"]
            );
            assert_eq!(record["passed"], true, "{name}: {}", record["verification"]);
            let corner: Vec<Vec<f64>> = serde_json::from_value(record["corner"].clone()).unwrap();
            assert_eq!(corner, index_sums(m, n, k), "{name}");
            for rank in record["per_rank"].as_array().unwrap() {
                assert_eq!(rank["sent"], rank["formula"], "{name}");
                sending += usize::from(rank["sent"]["multiply"]["elements"] != 0);
            }
            assert_eq!(record["sent_bytes"], record["formula_bytes"], "{name}");
        }
    }
    assert!(sending > 0, "panels are sent beside the product");
}

pub fn the_same_grid_gives_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    for layout in layouts::<f32>().map(Layout::name) {
        let results = ["one", "other"].map(|name| {
            let path = folder.path().join(format!("{layout}-{name}.npy"));
            let arguments = format!(
                "--layout {layout} --m 130 --n 70 --k 300 --panel 32 --format json --out {}",
                path.display()
            );
            let report = end(job(6, &arguments)).report();
            let said = report["records"][0]["verification"]
                .as_str()
                .unwrap()
                .to_string();
            assert!(said.contains("runs gave the same bits"), "{said}");
            fs::read(path).unwrap()
        });
        assert!(
            results[0].len() > 130 * 70 * 4 && results[0] == results[1],
            "{layout}"
        );
    }
}

pub fn users_files_alpha_and_beta_are_multiplied() {
    const LAYOUTS: [&str; 3] = ["point-to-point", "scatter-blocks", "summa"];
    files_are_multiplied(&LAYOUTS, "", |x| x as i32, |x| x as i32, f64::from);
    let of_16_bits = "--kernel auto --device sim";
    let (of_t, of_c) = (F16::from_f64, |x| x as f32);
    files_are_multiplied(&["overlapped", "summa"], of_16_bits, of_t, of_c, f64::from);
    let folder = tempfile::tempdir().unwrap();
    let a = folder.path().join("a.npy").display().to_string();
    write(&a, 2, 2, |row, column| (row + column) as f32);
    let ended = end(job(2, &format!("--a {a} --b {a} --check distributed")));
    assert_eq!(ended.code, Some(2), "{}", ended.notes);
    let said = "rank 0 reads the matrices from files";
    assert_eq!(ended.notes.matches(said).count(), 1, "{}", ended.notes);
}

fn write<T: Number>(
    path: &str,
    rows: usize,
    columns: usize,
    of: impl Fn(usize, usize) -> T + Sync,
) {
    let matrix = Matrix::from_elements(rows, columns, of).unwrap();
    npy::write(&matrix, &mut fs::File::create(path).unwrap()).unwrap();
}

/// Multiplies files of A and B of `T`, every second time with A transposed, and a C of `C`.
fn files_are_multiplied<T: Number, C: Number>(
    layouts: &[&str],
    options: &str,
    of_t: fn(f64) -> T,
    of_c: fn(f64) -> C,
    to_f64: fn(C) -> f64,
) {
    let folder = tempfile::tempdir().unwrap();
    let [a, transposed, b, c, d] = ["a.npy", "transposed.npy", "b.npy", "c.npy", "d.npy"]
        .map(|name| folder.path().join(name).display().to_string());
    let element = |seed: usize| {
        move |row: usize, column: usize| ((row * 31 + column * 17 + seed) % 11) as f64 - 5.0
    };
    let (m, n, k) = (9, 13, 21);
    write(&a, m, k, |row, column| of_t(element(1)(row, column)));
    write(&transposed, k, m, |row, column| {
        of_t(element(1)(column, row))
    });
    write(&b, k, n, |row, column| of_t(element(2)(row, column)));
    write(&c, m, n, |row, column| of_c(element(3)(row, column)));
    let of_a = [a, format!("{transposed} --transpose-a")];
    for (layout, of_a) in layouts.iter().zip(of_a.iter().cycle()) {
        let arguments = format!(
            "--layout {layout} --panel 5 --a {of_a} --b {b} --c {c} --alpha -2 --beta 3 --out {d} \
             --format json {options}"
        );
        end(job(4, &arguments)).report();
        let found = npy::NpyFile::open(Path::new(&d)).unwrap();
        let found = found.read::<C>().unwrap();
        for row in 0..m {
            for column in 0..n {
                let products = (0..k).map(|l| element(1)(row, l) * element(2)(l, column));
                let right = -2.0 * products.sum::<f64>() + 3.0 * element(3)(row, column);
                let got = to_f64(found.row(row)[column]);
                assert_eq!(got, right, "{layout} {row} {column}");
            }
        }
    }
}

pub fn a_factor_that_rounds_to_0_is_0() {
    for options in [
        "--alpha 1e-50 --beta 2",
        "--alpha 1e-50 --check distributed",
        "--alpha 1e-9 --dtype f16 --kernel auto --device sim",
    ] {
        let arguments = format!("--layout all --size 20 --runs 1 --format json {options}");
        let report = end(job(2, &arguments)).report();
        for record in report["records"].as_array().unwrap() {
            assert_eq!(record["passed"], true, "{options}: {record}");
            assert_eq!(record["per_rank"][0]["sent"]["distribute"]["elements"], 0);
        }
    }
}

/// From an exact sum to the nearest element of C.
type Round = fn(f64) -> f64;

/// `-2 A B + 3 C` of index sums, exact in f32, rounded once by `round`.
fn rounded_once(m: usize, n: usize, k: usize, round: Round) -> Vec<Vec<f64>> {
    let of_row = |(row, sums): (usize, Vec<f64>)| {
        let finished =
            |(column, sum): (usize, f64)| round(-2.0 * sum + 3.0 * (row + column) as f64);
        sums.into_iter().enumerate().map(finished).collect()
    };
    let sums = index_sums(m, n, k).into_iter().enumerate();
    sums.map(of_row).collect()
}

pub fn elements_of_16_bits_are_added_up_in_f32_and_rounded_once_in_every_layout() {
    let bf16: Round = |sum| Bf16::from_f64(sum).to_f32().into();
    let f16: Round = |sum| F16::from_f64(sum).to_f32().into();
    for (dtype, round, ranks) in [
        ("bf16", bf16, "1,2,3,4"),
        ("f16-f32", |sum| sum, "1,2,3,4"),
        ("f16", f16, "3"),
        ("bf16-f32", |sum| sum, "4"),
    ] {
        let arguments = format!(
            "--layout all --scaling {ranks} --shapes 13x21x17,1x9x16,9x1x5,2x2x0,0x3x2 --panel 4 \
             --dtype {dtype} --kernel auto --device sim --data index-sum --alpha -2 --beta 3 \
             --show 21 --runs 1 --format json"
        );
        let report = end(job(4, &arguments)).report();
        let records = report["records"].as_array().unwrap();
        let count = layouts::<f32>().len();
        assert_eq!(records.len(), count * ranks.split(',').count() * 5);
        for record in records {
            let [m, n, k] = ["m", "n", "k"].map(|key| number(record, key));
            let name = format!(
                "{dtype} {} {m} x {n} x {k} on {}",
                record["layout"], record["ranks"]
            );
            assert_eq!(record["passed"], true, "{name}: {}", record["verification"]);
            assert_eq!(record["dtype"], dtype);
            let corner: Vec<Vec<f64>> = serde_json::from_value(record["corner"].clone()).unwrap();
            assert_eq!(corner, rounded_once(m, n, k, round), "{name}");
            let mut bytes = 0;
            for rank in record["per_rank"].as_array().unwrap() {
                assert_eq!(rank["sent"], rank["formula"], "{name}");
                let elements = |phase: &str| number(&rank["sent"][phase], "elements");
                bytes += 2 * (elements("distribute") + elements("multiply"));
                bytes += 4 * elements("collect");
            }
            assert_eq!(number(record, "sent_bytes"), bytes, "{name}");
            assert_eq!(number(record, "formula_bytes"), bytes, "{name}");
        }
    }
}

pub fn scaling_writes_json_and_plots() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("report.json");
    let plots = folder.path().join("plots");
    let arguments = format!(
        "--layout scatter-rows,summa --size 64 --panel 32 --scaling 1,2 --runs 1 --json {} --plots {}",
        json.display(),
        plots.display()
    );
    let Ended { code, out, notes } = end(job(2, &arguments));
    assert_eq!(code, Some(0), "{out}{notes}");
    assert!(
        out.contains("| efficiency |") && out.contains("\nResident, "),
        "{out}"
    );
    let report: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let records = report["records"].as_array().unwrap();
    assert_eq!(records.len(), 4);
    assert!(
        records
            .iter()
            .all(|record| record["whole"]["speedup"].as_f64().unwrap() > 0.0
                && record["resident"]["speedup"].as_f64().unwrap() > 0.0)
    );
    for name in ["mpi-split", "mpi-strong"] {
        let plot = fs::read_to_string(plots.join(format!("{name}.svg"))).unwrap();
        assert!(plot.contains("summa"), "{name}");
    }
}

pub fn without_mpirun_the_program_is_one_rank_and_says_so() {
    let mut command = std::process::Command::new(PROGRAM);
    command.args("--layout all --size 40 --runs 1 --format json".split(' '));
    let ended = end(command);
    let records = ended.report()["records"].as_array().unwrap().clone();
    assert!(records.iter().all(|record| record["passed"] == true));
    assert!(records.iter().all(|record| record["ranks"] == 1));
    let note = "started without mpirun, this is the only rank";
    assert!(ended.notes.contains(note), "{}", ended.notes);
    let launched = end(job(1, "--size 8 --runs 1"));
    assert!(!launched.notes.contains(note), "{}", launched.notes);
}

pub fn a_prediction_needs_no_mpirun() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(PROGRAM);
    command
        .args("--predict --size 64k --latency 2 --bandwidth 10 --flops 1000 --memory 16".split(' '))
        .arg("--plots")
        .arg(folder.path());
    let ended = end(command);
    assert_eq!(ended.code, Some(0), "{}", ended.notes);
    for part in [
        "65536 x 65536 x 65536 of f32",
        "10.00 GB/s",
        "summa, resident",
        " !",
    ] {
        assert!(ended.out.contains(part), "no `{part}` in {}", ended.out);
    }
    let plot = fs::read_to_string(folder.path().join("mpi-predicted.svg")).unwrap();
    assert!(plot.contains("summa, resident"), "{plot}");
}
