//! The program with the user's matrices and patterns, as a user runs it, on the simulator.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use host::data::{Matrix, Placement};
use host::npy::{self, NpyFile, NpyNumber};
use serde_json::Value;
use tempfile::TempDir;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_host"));
    command.args(["--device", "sim"]).args(arguments);
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

/// Runs with `arguments`, which must be refused with `code` for a reason that contains `why`.
fn refused(arguments: &[&str], code: i32, why: &str) {
    let output = run(arguments);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
    assert!(
        message.starts_with("error: ") && message.contains(why),
        "{arguments:?}: {message}"
    );
    assert_eq!(stdout(&output), "");
}

fn proven(arguments: &[&str]) -> String {
    let output = run(arguments);
    let report = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{report}{}", stderr(&output));
    report
}

/// A folder of .npy files.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a folder for temporary files"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Writes the matrix that has `element(row, column)`, and returns its path.
    fn matrix<T: NpyNumber>(
        &self,
        name: &str,
        (rows, columns): (usize, usize),
        element: impl Fn(usize, usize) -> T + Sync,
    ) -> String {
        let placement = Placement {
            offset: 0,
            leading: columns,
        };
        let matrix = Matrix::from_rows(rows, columns, placement, |row, elements| {
            for (column, value) in elements.iter_mut().enumerate() {
                *value = element(row, column);
            }
        })
        .unwrap();
        npy::write(&matrix, &mut File::create(self.path(name)).unwrap()).unwrap();
        self.text(name)
    }

    fn read<T: NpyNumber>(&self, name: &str) -> Matrix<T> {
        NpyFile::open(&self.path(name)).unwrap().read().unwrap()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Integers between -8 and 8 that follow no pattern of rows or columns.
fn scrambled(row: usize, column: usize) -> i32 {
    ((row * 7919 + column * 104_729 + row * column * 31) % 17) as i32 - 8
}

/// `alpha * A * B + beta * C` of [`scrambled`] matrices, the columns of A and B shifted so that
/// the two differ.
fn product(k: usize, row: usize, column: usize, alpha: i32, beta: i32) -> i32 {
    let sum: i32 = (0..k)
        .map(|index| scrambled(row, index) * scrambled(index, column + 1))
        .sum();
    alpha * sum + beta * scrambled(row + 2, column)
}

#[test]
fn the_product_of_the_files_is_written_for_every_type() {
    fn check<T: NpyNumber>(more: &[&str]) {
        let (m, n, k) = (37, 53, 41);
        let folder = Folder::new();
        let a = folder.matrix("a.npy", (m, k), |i, j| T::from_integer(scrambled(i, j)));
        let b = folder.matrix("b.npy", (k, n), |i, j| T::from_integer(scrambled(i, j + 1)));
        let c = folder.matrix("c.npy", (m, n), |i, j| T::from_integer(scrambled(i + 2, j)));
        let out = folder.text("d.npy");
        let report = proven(
            &[
                &[
                    "--a", &a, "--b", &b, "--c", &c, "--out", &out, "--alpha", "-3", "--beta", "2",
                ],
                more,
            ]
            .concat(),
        );
        for part in [
            format!("37 x 53 x 41 (m x n x k) of {}, alpha -3, beta 2", T::TYPE),
            format!("data    A from {a}, B from {b}, C from {c}"),
            format!("C is in {out}"),
        ] {
            assert!(report.contains(&part), "no `{part}` in:\n{report}");
        }
        let d = folder.read::<T>("d.npy");
        assert_eq!((d.rows(), d.columns()), (m, n));
        for row in 0..m {
            for (column, element) in d.row(row).iter().enumerate() {
                let want = T::from_integer(product(k, row, column, -3, 2));
                assert_eq!(*element, want, "D[{row}][{column}]");
            }
        }
        assert_eq!(folder.names(), ["a.npy", "b.npy", "c.npy", "d.npy"]);
    }
    check::<f32>(&[]);
    check::<f32>(&["--kernel", "naive", "--m", "37", "--dtype", "f32"]);
    check::<f64>(&["--dtype", "f64"]);
    check::<i32>(&["--k", "41"]);
}

#[test]
fn special_values_are_multiplied_as_the_reference_does() {
    fn check<T: NpyNumber>() {
        let folder = Folder::new();
        let element = |value| T::from_scalar(value).unwrap();
        let special = |row, column| match (row, column) {
            (1, 1) => element(f64::NAN),
            (2, 0) => element(f64::INFINITY),
            _ => element(1.0),
        };
        let a = folder.matrix("a.npy", (4, 3), special);
        let b = folder.matrix("b.npy", (3, 2), |_, column| element(column as f64));
        let out = folder.text("d.npy");
        let report = proven(&["--a", &a, "--b", &b, "--out", &out, "--show", "4"]);
        assert!(
            report.contains("\n0 3\nNaN NaN\nNaN inf\n0 3\n"),
            "{report}"
        );
        let d = folder.read::<T>("d.npy");
        let infinity = d.row(2)[1].to_f64();
        assert!(d.row(2)[0].to_f64().is_nan(), "0 times infinity");
        assert_eq!(infinity, f64::INFINITY);
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn empty_matrices_have_an_empty_product_or_one_of_zeros() {
    let folder = Folder::new();
    let a = folder.matrix("a.npy", (3, 0), |_, _| 1.0f32);
    let b = folder.matrix("b.npy", (0, 2), |_, _| 1.0f32);
    proven(&["--a", &a, "--b", &b, "--out", &folder.text("d.npy")]);
    assert_eq!(folder.read::<f32>("d.npy").buffer(), [0.0; 6]);
    proven(&[
        "--a",
        &b,
        "--b",
        &folder.matrix("e.npy", (2, 5), |_, _| 1.0f32),
        "--out",
        &folder.text("d.npy"),
    ]);
    let d = folder.read::<f32>("d.npy");
    assert_eq!((d.rows(), d.columns()), (0, 5));
}

#[test]
fn a_file_may_be_replaced_by_its_own_product() {
    let folder = Folder::new();
    let a = folder.matrix("a.npy", (2, 2), |row, column| i32::from(row != column));
    let b = folder.matrix("b.npy", (2, 2), |row, column| (2 * row + column) as i32);
    proven(&["--a", &a, "--b", &b, "--out", &b]);
    assert_eq!(folder.read::<i32>("b.npy").buffer(), [2, 3, 0, 1]);
}

#[test]
fn c_is_not_read_where_beta_is_zero_and_needed_where_it_is_not() {
    let folder = Folder::new();
    let a = folder.matrix("a.npy", (2, 2), |_, _| 1.0f32);
    // There is no such file, which would show if it were looked for.
    let c = folder.text("c.npy");
    let output = run(&["--a", &a, "--b", &a, "--c", &c]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        stderr(&output),
        format!("note: `{c}` is not read, because beta is 0.\n")
    );
    let files = ["--a", &a, "--b", &a, "--beta", "2"];
    refused(
        &files,
        2,
        "beta is 2, so the C that was there is read, but there is no file for it",
    );
    let with_c = [&files[..], &["--c", &c]].concat();
    refused(&with_c, 1, "cannot be read: no such file or directory");
}

#[test]
fn files_that_do_not_fit_each_other_or_the_options_are_refused() {
    let folder = Folder::new();
    let a = folder.matrix("a.npy", (2, 3), |_, _| 1.0f32);
    let b = folder.matrix("b.npy", (3, 4), |_, _| 1.0f32);
    let integers = folder.matrix("i.npy", (3, 4), |_, _| 1i32);
    let files = |b: &str, more: &[&str], why: &str| {
        refused(&[&["--a", &a, "--b", b], more].concat(), 2, why);
    };
    files(
        &integers,
        &[],
        &format!("`{a}` holds f32 and `{integers}` holds i32"),
    );
    files(&a, &[], "A must have as many columns as B has rows");
    let c = ["--beta", "1", "--c", &b];
    files(
        &b,
        &c,
        "is 3 x 4, but C must be 2 x 4: A has 2 rows and B has 4 columns",
    );
    files(&b, &["--m", "5"], "--m is 5, but in the files m is 2");
    files(&b, &["--n", "5"], "--n is 5, but in the files n is 4");
    files(&b, &["--k", "5"], "--k is 5, but in the files k is 3");
    files(
        &b,
        &["--dtype", "i32"],
        "--dtype is i32, but in the files the type is f32",
    );
    files(&b, &["--size", "5"], "cannot be used with");
    files(
        &b,
        &["--kernel", "naive,tiled", "--out", &a],
        "--out takes the C of one kernel, but 2",
    );
}

#[test]
fn a_damaged_file_fails_before_anything_is_run_or_written() {
    let folder = Folder::new();
    let b = folder.matrix("b.npy", (3, 4), |_, _| 1.0f32);
    let whole = fs::read(folder.path("b.npy")).unwrap();
    fs::write(folder.path("a.npy"), &whole[..whole.len() - 1]).unwrap();
    let (a, out) = (folder.text("a.npy"), folder.text("d.npy"));
    let why =
        "is truncated: 3 x 4 elements of f32 take 48 bytes after the header, but there are 47";
    refused(&["--a", &a, "--b", &b, "--out", &out], 1, why);
    assert_eq!(folder.names(), ["a.npy", "b.npy"]);
}

#[test]
fn a_target_that_cannot_be_written_fails_before_anything_is_run() {
    let folder = Folder::new();
    let started = ["--size", "100000", "--kernel", "naive", "--out"];
    let none = folder.text("none/d.npy");
    refused(
        &[&started[..], &[&none]].concat(),
        1,
        "cannot be written: there is no folder",
    );
    refused(
        &[&started[..], &["/dev/null"]].concat(),
        1,
        "it is no regular file",
    );
}

/// So many terms that nothing can be proven of their sum.
#[test]
fn what_is_not_proven_is_not_written() {
    let folder = Folder::new();
    let k = 1 << 23;
    let a = folder.matrix("a.npy", (1, k), |_, _| 1.0f32);
    let b = folder.matrix("b.npy", (k, 1), |_, _| 1.0f32);
    fs::write(folder.path("d.npy"), "old").unwrap();
    let out = folder.text("d.npy");
    let output = run(&["--a", &a, "--b", &b, "--out", &out, "--show", "1"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stdout(&output).contains("NOT PROVEN"));
    assert!(
        !stdout(&output).contains("==="),
        "a corner that is not proven"
    );
    assert_eq!(
        stderr(&output),
        format!("note: `{out}` is not written, because its C is not proven right.\n")
    );
    assert_eq!(fs::read(folder.path("d.npy")).unwrap(), b"old");
    assert_eq!(folder.names(), ["a.npy", "b.npy", "d.npy"]);
}

/// `sum over l < k of (i + l) * (l + j)`, in closed form.
fn index_sum_product(i: i64, j: i64, k: i64) -> i64 {
    let squares = (k - 1) * k * (2 * k - 1) / 6;
    squares + (i + j) * (k - 1) * k / 2 + k * i * j
}

#[test]
fn the_corner_of_the_source_is_that_of_the_closed_form() {
    let problem = [
        "--kernel",
        "tiled",
        "--dtype",
        "i32",
        "--m",
        "200",
        "--n",
        "500",
        "--k",
        "400",
        "--data",
        "index-sum",
        "--show",
        "5",
    ];
    let rows: Vec<Vec<i64>> = (0..5)
        .map(|i| (0..5).map(|j| index_sum_product(i, j, 400)).collect())
        .collect();
    let lines: Vec<String> = rows
        .iter()
        .map(|row| row.iter().map(i64::to_string).collect::<Vec<_>>().join(" "))
        .collect();
    let line = "=========================================";
    let corner = format!("\n{line}\n{}\n{line}\n", lines.join("\n"));
    let report = proven(&problem);
    assert!(report.ends_with(&corner), "no {corner} in:\n{report}");
    assert!(report.contains("\ndata    index-sum\n"), "{report}");

    let json: Value =
        serde_json::from_str(&proven(&[&problem[..], &["--format", "json"]].concat())).unwrap();
    for (row, want) in json["results"][0]["corner"]
        .as_array()
        .unwrap()
        .iter()
        .zip(&rows)
    {
        let row: Vec<f64> = row
            .as_array()
            .unwrap()
            .iter()
            .map(|x| x.as_f64().unwrap())
            .collect();
        let want: Vec<f64> = want.iter().map(|&x| x as f64).collect();
        assert_eq!(row, want);
    }
    refused(
        &[&problem[..], &["--format", "csv"]].concat(),
        2,
        "CSV has no place for rows",
    );
}

#[test]
fn a_corner_is_shown_of_every_kernel_and_no_larger_than_c() {
    let report = proven(&[
        "--kernel",
        "naive,tiled",
        "--m",
        "2",
        "--n",
        "3",
        "--k",
        "2",
        "--data",
        "index-sum",
        "--show",
        "1x9",
    ]);
    // 0 * 0 + 1 * 1, 0 * 1 + 1 * 2, 0 * 2 + 1 * 3
    assert_eq!(report.matches("=\n1 2 3\n=").count(), 2, "{report}");
}

#[test]
fn every_data_is_proven_and_named() {
    for data in ["normal", "uniform", "positive", "integers", "index-sum"] {
        for data_type in ["f32", "f64", "i32"] {
            let report = proven(&[
                "--m", "17", "--n", "33", "--k", "65", "--data", data, "--dtype", data_type,
                "--beta", "2", "--format", "json",
            ]);
            let report: Value = serde_json::from_str(&report).unwrap();
            assert_eq!(report["results"][0]["data"], data);
            let alarmed = report["results"][0]["verification"]
                .as_str()
                .unwrap()
                .contains("alarm");
            let has_alarm = data_type != "i32" && ["uniform", "positive"].contains(&data);
            assert_eq!(alarmed, has_alarm, "{data} of {data_type}");
        }
    }
}

/// Ends the program, however the test ends.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until `ready`, at most a minute.
fn wait_until(what: &str, mut ready: impl FnMut() -> bool) {
    let start = Instant::now();
    while !ready() {
        assert!(start.elapsed() < Duration::from_secs(60), "never {what}");
        thread::yield_now();
    }
}

fn temporaries(folder: &Path) -> usize {
    let names = fs::read_dir(folder).unwrap();
    names
        .filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_string_lossy().ends_with(".tmp")
        })
        .count()
}

/// Minutes of work, interrupted once its output is open.
fn interrupted_by(signal: &str) {
    let folder = Folder::new();
    fs::write(folder.path("d.npy"), "old").unwrap();
    let mut program = Killed(
        command(&[
            "--kernel",
            "naive",
            "--size",
            "4096",
            "--out",
            &folder.text("d.npy"),
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts"),
    );
    wait_until("opened", || temporaries(folder.0.path()) == 1);
    let process = program.0.id().to_string();
    // A shell has this command even where there is no program of its name.
    let sent = Command::new("sh")
        .args(["-c", "kill -s \"$0\" \"$1\"", signal, &process])
        .status();
    assert!(sent.expect("a shell").success());
    wait_until("ended", || program.0.try_wait().unwrap().is_some());
    let status = program.0.wait().unwrap();
    let read = |stream: &mut dyn std::io::Read| std::io::read_to_string(stream).unwrap();
    assert_eq!(status.code(), Some(130));
    assert_eq!(read(program.0.stdout.as_mut().unwrap()), "");
    assert_eq!(read(program.0.stderr.as_mut().unwrap()), "interrupted\n");
    assert_eq!(folder.names(), ["d.npy"]);
    assert_eq!(fs::read(folder.path("d.npy")).unwrap(), b"old");
}

#[test]
fn ctrl_c_leaves_the_target_as_it_was_and_no_temporary() {
    interrupted_by("INT");
}

#[test]
fn a_polite_kill_leaves_the_target_as_it_was_and_no_temporary() {
    interrupted_by("TERM");
}
