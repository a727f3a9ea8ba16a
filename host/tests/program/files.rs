//! The program with the user's matrices and patterns, as a user runs it, on the simulator.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use crate::common::signals::{Started, in_shell, wait_until};
use crate::common::{Ended, assert_contains, command, run, run_in};
use gpu_gemm::{Bf16, E4m3, F16};
use host::npy::{self, NpyFile};
use serde_json::Value;
use tempfile::TempDir;
use verification::data::{Matrix, Number};

/// A folder of .npy files, in which the program runs.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a folder for temporary files"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn run(&self, arguments: &str) -> Ended {
        run_in(self.0.path(), &format!("--device sim {arguments}"))
    }

    /// Runs with `arguments`. They must be refused with `code` for a reason that contains `why`.
    #[track_caller]
    pub fn refuses(&self, arguments: &str, code: i32, why: &str) {
        let message = self.run(arguments).refused(code);
        assert!(message.starts_with("error: "), "{message}");
        assert_contains(&message, &[why]);
    }

    /// Writes the matrix with the elements `element(row, column)`.
    pub fn matrix<T: Number>(
        &self,
        name: &str,
        (rows, columns): (usize, usize),
        element: impl Fn(usize, usize) -> T + Sync,
    ) {
        let matrix = Matrix::from_elements(rows, columns, element).unwrap();
        npy::write(&matrix, &mut File::create(self.path(name)).unwrap()).unwrap();
    }

    pub fn read<T: Number>(&self, name: &str) -> Matrix<T> {
        NpyFile::open(&self.path(name)).unwrap().read().unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
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
    fn check<T: Number>(more: &str) {
        let (m, n, k) = (37, 53, 41);
        let folder = Folder::new();
        folder.matrix("a.npy", (m, k), |i, j| T::from_integer(scrambled(i, j)));
        folder.matrix("b.npy", (k, n), |i, j| T::from_integer(scrambled(i, j + 1)));
        folder.matrix("c.npy", (m, n), |i, j| T::from_integer(scrambled(i + 2, j)));
        let files = "--a a.npy --b b.npy --c c.npy --out d.npy";
        let ended = folder.run(&format!("{files} --alpha -3 --beta 2 {more}"));
        assert_contains(
            &ended.succeeded(),
            &[
                &format!("37 x 53 x 41 (m x n x k) of {}, alpha -3, beta 2", T::TYPE),
                "data    A from a.npy, B from b.npy, C from c.npy",
                "C is in d.npy",
            ],
        );
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
    check::<f32>("");
    check::<f32>("--kernel naive --m 37 --dtype f32");
    check::<f64>("--dtype f64");
    check::<i32>("--k 41");
}

#[test]
fn files_may_hold_the_transposes_of_what_is_multiplied() {
    let (m, n, k) = (37, 53, 41);
    let folder = Folder::new();
    folder.matrix("a.npy", (m, k), scrambled);
    folder.matrix("b.npy", (k, n), |i, j| scrambled(i, j + 1));
    folder.matrix("at.npy", (k, m), |i, j| scrambled(j, i));
    folder.matrix("bt.npy", (n, k), |i, j| scrambled(j, i + 1));
    for files in [
        "--a at.npy --b b.npy --transpose-a",
        "--a a.npy --b bt.npy --transpose-b",
        "--a at.npy --b bt.npy --transpose-a --transpose-b",
    ] {
        let ended = folder.run(&format!("{files} --kernel tiled --out d.npy"));
        assert_contains(&ended.succeeded(), &["37 x 53 x 41 (m x n x k) of i32, "]);
        let d = folder.read::<i32>("d.npy");
        for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
            assert_eq!(d.row(row)[column], product(k, row, column, 1, 0), "{files}");
        }
    }
    let why = "`a.npy`, transposed, is 41 x 37 and `b.npy` is 41 x 53, but";
    folder.refuses("--a a.npy --b b.npy --transpose-a", 2, why);
}

#[test]
fn empty_matrices_have_an_empty_product_or_one_of_zeros() {
    let folder = Folder::new();
    for (name, shape) in [("a.npy", (3, 0)), ("b.npy", (0, 2)), ("e.npy", (2, 5))] {
        folder.matrix(name, shape, |_, _| 1.0f32);
    }
    folder.run("--a a.npy --b b.npy --out d.npy").succeeded();
    assert_eq!(folder.read::<f32>("d.npy").buffer(), [0.0; 6]);
    folder.run("--a b.npy --b e.npy --out d.npy").succeeded();
    let d = folder.read::<f32>("d.npy");
    assert_eq!((d.rows(), d.columns()), (0, 5));
}

#[test]
fn no_input_is_replaced_by_whatever_name() {
    let folder = Folder::new();
    for name in ["a.npy", "b.npy", "c.npy"] {
        folder.matrix(name, (2, 2), |_, _| 1.0f32);
    }
    symlink("a.npy", folder.path("link.npy")).unwrap();
    fs::hard_link(folder.path("b.npy"), folder.path("hard.npy")).unwrap();
    let files = "--a a.npy --b b.npy --c c.npy";
    for (out, option) in [
        ("a.npy", "--a"),
        ("./a.npy", "--a"),
        ("link.npy", "--a"),
        ("hard.npy", "--b"),
        ("c.npy", "--c"),
    ] {
        let why = format!("--out would replace `{out}`, which is {option}; name another file.");
        folder.refuses(&format!("{files} --out {out}"), 2, &why);
    }
    folder.run(&format!("{files} --out new.npy")).succeeded();
    folder.run(&format!("{files} --out new.npy")).succeeded();
    assert_eq!(folder.read::<f32>("a.npy").buffer(), [1.0; 4]);
}

#[test]
fn arrays_of_three_dimensions_are_batches_and_so_is_their_product() {
    let folder = Folder::new();
    let (batch, m, n, k) = (3, 5, 6, 7);
    let write = |name: &str, shape: [usize; 3], element: &(dyn Fn(usize, usize) -> i32 + Sync)| {
        let [products, rows, columns] = shape;
        let all = Matrix::from_elements(products * rows, columns, element).unwrap();
        npy::write_as(&shape, &all, &mut File::create(folder.path(name)).unwrap()).unwrap();
    };
    write("a.npy", [batch, m, k], &|row, column| {
        scrambled(row, column)
    });
    write("at.npy", [batch, k, m], &|row, column| {
        scrambled(row / k * m + column, row % k)
    });
    write("b.npy", [batch, k, n], &|row, column| {
        scrambled(row, column + 1)
    });
    write("one.npy", [1, k, n], &|row, column| {
        scrambled(row, column + 1)
    });
    folder.matrix("matrix.npy", (k, n), scrambled);
    for options in [
        "--a a.npy",
        "--a a.npy --batch 3",
        "--a at.npy --transpose-a",
        "--a a.npy --kernel cpu-ikj",
        "--a at.npy --transpose-a --kernel cpu-ikj",
    ] {
        let ended = folder.run(&format!("{options} --b b.npy --out d.npy"));
        assert_contains(
            &ended.succeeded(),
            &["5 x 6 x 7 (m x n x k) of i32, ", "a batch of 3"],
        );
        let file = NpyFile::open(&folder.path("d.npy")).unwrap();
        assert_eq!(
            (file.products, file.rows, file.columns),
            (Some(batch), m, n)
        );
        let d = file.read::<i32>().unwrap();
        for row in 0..batch * m {
            for (column, element) in d.row(row).iter().enumerate() {
                let depth = row / m * k..(row / m + 1) * k;
                let terms = depth
                    .enumerate()
                    .map(|(index, below)| scrambled(row, index) * scrambled(below, column + 1));
                assert_eq!(*element, terms.sum::<i32>(), "{options}");
            }
        }
    }
    folder.run("--size 8 --batch 2 --out r.npy").succeeded();
    assert_eq!(
        NpyFile::open(&folder.path("r.npy")).unwrap().products,
        Some(2)
    );
    let why = "--batch is 4, but in the files the batch size is 3";
    folder.refuses("--a a.npy --b b.npy --batch 4", 2, why);
    let why = "`a.npy` holds a batch of 3 and `one.npy` holds a batch of 1, but each product has";
    folder.refuses("--a a.npy --b one.npy", 2, why);
    let why = "`a.npy` holds a batch of 3 and `matrix.npy` holds one matrix, but each product has";
    folder.refuses("--a a.npy --b matrix.npy", 2, why);
}

#[test]
fn files_are_multiplied_by_the_fastest_cpu_rung_unless_there_is_a_gpu_or_another_is_named() {
    fn check<T: Number>(fastest: Option<&str>) {
        let folder = Folder::new();
        let element = |row, column| T::from_integer(scrambled(row, column));
        folder.matrix("a.npy", (3, 3), element);
        let run = |more: &str| -> Value {
            let line = format!("--a a.npy --b a.npy --format json {more}");
            let mut command = command(folder.0.path(), &line);
            // No GPU is visible to it.
            command.env("CUDA_VISIBLE_DEVICES", "");
            let report = Ended::of(command).succeeded();
            serde_json::from_str(&report).unwrap()
        };
        for more in ["--device sim", "--kernel auto", "--epilogue relu"] {
            let takes = more != "--epilogue relu" || ["f32", "bf16"].contains(&T::TYPE.name());
            assert!(!takes || run(more)["backend"] == "simulator", "{more}");
        }
        let reports = ["", "--out d.npy", "--out d.npy --runs 2 --transpose-a"].map(run);
        let runs = reports
            .each_ref()
            .map(|report| &report["results"][0]["runs"]);
        for report in &reports {
            let why = report["reason"].as_str().unwrap();
            assert!(!why.contains("--device sim"), "{why}");
            let Some(fastest) = fastest else {
                assert_eq!(report["backend"], "simulator");
                continue;
            };
            let said = format!("`{fastest}` is the fastest for files without a GPU. ");
            assert!(why.starts_with(&said), "{why}");
            assert_eq!(report["results"][0]["kernel"], fastest);
            assert_eq!(runs, [10, 1, 2].map(Value::from).each_ref());
        }
    }
    check::<f32>(Some("cpu-matrixmultiply"));
    check::<f64>(Some("cpu-matrixmultiply"));
    check::<i32>(Some("cpu-blocks"));
    check::<Bf16>(None);
}

#[test]
fn c_is_not_read_where_beta_is_zero_and_needed_where_it_is_not() {
    let folder = Folder::new();
    folder.matrix("a.npy", (2, 2), |_, _| 1.0f32);
    // There is no c.npy: a look for it would fail.
    let ended = folder.run("--a a.npy --b a.npy --c c.npy");
    let note = "note: `c.npy` is not read, because beta is 0.\n";
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), note));
    let files = "--a a.npy --b a.npy --beta 2";
    let why = "beta is 2, so C is read, but there is no file for it";
    folder.refuses(files, 2, why);
    let why = "cannot be read: no such file or directory";
    folder.refuses(&format!("{files} --c c.npy"), 1, why);
}

#[test]
fn files_that_do_not_fit_each_other_or_the_options_are_refused() {
    let folder = Folder::new();
    folder.matrix("a.npy", (2, 3), |_, _| 1.0f32);
    folder.matrix("b.npy", (3, 4), |_, _| 1.0f32);
    folder.matrix("i.npy", (3, 4), |_, _| 1i32);
    for (more, why) in [
        ("--b i.npy", "`a.npy` holds f32 and `i.npy` holds i32"),
        ("--b a.npy", "A must have as many columns as B has rows"),
        (
            "--b b.npy --beta 1 --c b.npy",
            "is 3 x 4, but C must be 2 x 4: A has 2 rows and B has 4 columns",
        ),
        ("--b b.npy --m 5", "--m is 5, but in the files m is 2"),
        ("--b b.npy --n 5", "--n is 5, but in the files n is 4"),
        ("--b b.npy --k 5", "--k is 5, but in the files k is 3"),
        (
            "--b b.npy --dtype i32",
            "--dtype is i32, but in the files the type is f32",
        ),
        ("--b b.npy --size 5", "cannot be used with"),
        (
            "--b b.npy --kernel naive,tiled --out d.npy",
            "--out takes the C of one kernel, but 2",
        ),
    ] {
        folder.refuses(&format!("--a a.npy {more}"), 2, why);
    }
}

#[test]
fn a_damaged_file_fails_before_anything_is_run_or_written() {
    let folder = Folder::new();
    folder.matrix("b.npy", (3, 4), |_, _| 1.0f32);
    let whole = fs::read(folder.path("b.npy")).unwrap();
    fs::write(folder.path("a.npy"), &whole[..whole.len() - 1]).unwrap();
    let why = "3 x 4 elements of f32 take 48 bytes after the header, but there are 47";
    folder.refuses("--a a.npy --b b.npy --out d.npy", 1, why);
    assert_eq!(folder.names(), ["a.npy", "b.npy"]);
}

/// 3 * 257 + 1 is representable in f32, not in bf16, and in f16 only outside of sums.
#[test]
fn a_and_b_of_16_bits_give_a_c_of_f32_where_that_is_asked_for_or_c_is() {
    fn check<T: Number>(one: T, data_type: &str) {
        let folder = Folder::new();
        folder.matrix("a.npy", (9, 257), |_, _| one);
        folder.matrix("b.npy", (257, 10), |_, _| one);
        folder.matrix("c.npy", (9, 10), |_, _| 0.5f32);
        let asked = format!("--a a.npy --b b.npy --out d.npy --alpha 3 --dtype {data_type}");
        for kernel in ["auto", "warp-specialized", "persistent-64x64"] {
            folder
                .run(&format!("{asked} --kernel {kernel}"))
                .succeeded();
            assert_eq!(folder.read::<f32>("d.npy").row(8), [771.0; 10]);
        }
        let found = "--a a.npy --b b.npy --c c.npy --beta 2 --alpha 3 --out d.npy --format json";
        let report = folder.run(&format!("{found} --kernel auto")).succeeded();
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["results"][0]["dtype"], data_type);
        assert_eq!(report["results"][0]["passed"], true);
        assert_eq!(folder.read::<f32>("d.npy").row(8), [772.0; 10]);
        folder.refuses(
            "--a a.npy --b c.npy",
            2,
            "all matrices must be of one type, or C of f32 where A and B are of bf16, f16 or e4m3",
        );
        folder.refuses(&format!("{found} --dtype f32"), 2, "--dtype");
    }
    check(Bf16::from_f32(1.0), "bf16-f32");
    check(F16::from_f32(1.0), "f16-f32");
}

/// 3 * 257 * -128 * 2 - 5 does not fit 8 bits, nor 16.
#[test]
fn a_and_b_of_8_bits_give_a_c_of_32() {
    let folder = Folder::new();
    folder.matrix("a.npy", (9, 257), |_, _| i8::MIN);
    folder.matrix("b.npy", (257, 10), |_, _| 2i8);
    folder.matrix("c.npy", (9, 10), |_, _| 5i32);
    let asked = "--a a.npy --b b.npy --out d.npy --alpha 3";
    for more in ["", "--dtype i8", "--kernel warp-specialized-int8"] {
        folder.run(&format!("{asked} {more}")).succeeded();
        assert_eq!(folder.read::<i32>("d.npy").row(8), [-197_376; 10]);
    }
    folder
        .run(&format!("{asked} --c c.npy --beta -1"))
        .succeeded();
    assert_eq!(folder.read::<i32>("d.npy").row(8), [-197_381; 10]);
    let why = "and of i32 where they are of i8";
    folder.refuses("--a a.npy --b c.npy", 2, why);
    folder.matrix("c.npy", (9, 10), |_, _| 5i8);
    folder.refuses("--a a.npy --b b.npy --c c.npy --beta 1", 2, why);
    folder.refuses(&format!("{asked} --dtype i32"), 2, "--dtype");
}

/// Sums of 14 bits would end at 2^13: with promotion nothing is lost.
#[test]
fn a_and_b_of_e4m3_give_a_c_of_f32_or_bf16() {
    let folder = Folder::new();
    folder.matrix("a.npy", (9, 1040), |_, _| E4m3::from_f32(-1.0));
    folder.matrix("b.npy", (1040, 10), |_, _| E4m3::from_f32(0.75));
    folder.matrix("c.npy", (9, 10), |_, _| 0.5f32);
    let asked = "--a a.npy --b b.npy --out d.npy --alpha 3";
    for more in ["", "--dtype e4m3", "--kernel warp-specialized-fp8"] {
        folder.run(&format!("{asked} {more}")).succeeded();
        assert_eq!(folder.read::<f32>("d.npy").row(8), [-2340.0; 10]);
    }
    folder
        .run(&format!("{asked} --c c.npy --beta -1"))
        .succeeded();
    assert_eq!(folder.read::<f32>("d.npy").row(8), [-2340.5; 10]);
    folder
        .run(&format!("{asked} --dtype e4m3-bf16"))
        .succeeded();
    let rounded = Bf16::from_f32(-2340.0);
    assert_eq!(folder.read::<Bf16>("d.npy").row(8), [rounded; 10]);
    folder.refuses(
        "--a a.npy --b b.npy --c a.npy --beta 1",
        2,
        "bf16, f16 or e4m3",
    );
}

/// A small problem with the same C in every run.
const SMALL: &str = "--device sim --kernel naive --size 16";

/// The .npy file of [`SMALL`]'s C.
fn small_npy(folder: &Folder) -> Vec<u8> {
    run_in(folder.0.path(), &format!("{SMALL} --out plain.npy")).succeeded();
    fs::read(folder.path("plain.npy")).unwrap()
}

#[test]
fn standard_output_gets_c_where_it_stands_and_standard_error_the_report() {
    let folder = Folder::new();
    let npy = small_npy(&folder);
    for target in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        // As in a shell: ( echo before; host ...; echo after ) > log
        let mut log = File::create(folder.path("log")).unwrap();
        log.write_all(b"before\n").unwrap();
        let output = command(folder.0.path(), &format!("{SMALL} --out {target}"))
            .stdout(log.try_clone().unwrap())
            .output()
            .unwrap();
        log.write_all(b"after\n").unwrap();
        let report = String::from_utf8(output.stderr).unwrap();
        assert_contains(&report, &["naive: passed", &format!("C is in {target}")]);
        let expected = [b"before\n", &npy[..], b"after\n"].concat();
        assert!(
            fs::read(folder.path("log")).unwrap() == expected,
            "{target}"
        );
    }
}

#[test]
fn a_device_is_written_to_and_what_cannot_be_is_said_before_anything_runs() {
    let folder = Folder::new();
    let report = run_in(folder.0.path(), &format!("{SMALL} --out /dev/null"));
    assert_contains(&report.succeeded(), &["C is in /dev/null"]);
    let report = run_in(folder.0.path(), &format!("{SMALL} --out /dev/full"));
    let why = "error: `/dev/full` cannot be written: no space left on device.\n";
    assert_eq!((report.code, report.err.as_str()), (Some(1), why));
    for target in ["/dev/fd/99", "none/d.npy", "/proc/d.npy"] {
        // More than any memory holds: it would fail otherwise if it ran.
        let arguments = format!("--size 1000000000 --kernel naive --out {target}");
        folder.refuses(&arguments, 1, &format!("`{target}` cannot be written: "));
    }
}

/// A sum that overflows on the way.
#[test]
fn what_is_not_passed_is_not_written() {
    let folder = Folder::new();
    // The sum of the first two terms is infinite, that of all three is not.
    let large = [3e38f32, 3e38, -3e38];
    folder.matrix("a.npy", (1, 3), |_, column| large[column]);
    folder.matrix("b.npy", (3, 1), |_, _| 1.0f32);
    fs::write(folder.path("d.npy"), "old").unwrap();
    let ended = folder.run("--a a.npy --b b.npy --out d.npy --show 1");
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert_contains(&ended.out, &["FAILED"]);
    let has_corner = ended.out.contains("===");
    assert!(!has_corner, "a corner that did not pass");
    let note = "note: `d.npy` is not written, because its C did not pass.\n";
    assert_eq!(ended.err, note);
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
    let folder = Folder::new();
    let shape = "--dtype i32 --m 200 --n 500 --k 400";
    let problem = format!("--kernel tiled {shape} --data index-sum --show 5");
    let rows: Vec<Vec<i64>> = (0..5)
        .map(|i| (0..5).map(|j| index_sum_product(i, j, 400)).collect())
        .collect();
    let spelled = |row: &Vec<i64>| row.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = rows.iter().map(spelled).collect();
    let line = "=========================================";
    let corner = format!("\n{line}\n{}\n{line}\n", lines.join("\n"));
    let report = folder.run(&problem).succeeded();
    assert!(report.ends_with(&corner), "no {corner} in:\n{report}");
    assert_contains(&report, &["\ndata    index-sum\n"]);

    let json = folder.run(&format!("{problem} --format json")).succeeded();
    let json: Value = serde_json::from_str(&json).unwrap();
    let as_floats = |row: &Vec<i64>| row.iter().map(|&x| x as f64).collect::<Vec<f64>>();
    let want: Vec<Vec<f64>> = rows.iter().map(as_floats).collect();
    assert_eq!(json["results"][0]["corner"], serde_json::json!(want));
    // For every kernel, and no larger than C: 0 * 0 + 1 * 1, 0 * 1 + 1 * 2, 0 * 2 + 1 * 3.
    let small = "--m 2 --n 3 --k 2 --kernel naive,tiled --data index-sum --show 1x9";
    let report = folder.run(small).succeeded();
    assert_eq!(report.matches("=\n1 2 3\n=").count(), 2, "{report}");
}

#[test]
fn every_data_passes_and_named() {
    let kinds = "normal uniform positive graded wide integers index-sum";
    for data in kinds.split(' ') {
        for data_type in ["f32", "f64", "i32"] {
            let shape = "--device sim --m 17 --n 33 --k 65 --beta 2";
            let options = format!("--data {data} --dtype {data_type} --format json");
            let report = run(&format!("{shape} {options}")).succeeded();
            let report: Value = serde_json::from_str(&report).unwrap();
            let result = &report["results"][0];
            assert_eq!(result["data"], data);
            let alarmed = result["verification"].as_str().unwrap().contains("alarm");
            assert_eq!(alarmed, data_type != "i32", "{data} of {data_type}");
        }
    }
}

/// Whether a process has an unnamed file open in this folder.
fn writes_in(process: u32, folder: &Path) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{process}/fd")) else {
        return false;
    };
    let opened = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    opened
        .filter(|file| file.starts_with(folder))
        .any(|file| file.to_string_lossy().ends_with(" (deleted)"))
}

/// A run that takes minutes.
const MINUTES: &str = "--device sim --kernel naive --size 4096 --out d.npy";

#[test]
fn a_signal_leaves_the_target_as_it_was_and_nothing_else() {
    for (signal, number, says) in [
        ("INT", 2, "interrupted\n"),
        ("TERM", 15, "interrupted\n"),
        ("HUP", 1, "interrupted\n"),
        ("KILL", 9, ""),
    ] {
        let folder = Folder::new();
        fs::write(folder.path("d.npy"), "old").unwrap();
        let mut program = Started::new(command(folder.0.path(), MINUTES));
        wait_until("opened", || writes_in(program.id(), folder.0.path()));
        program.send(signal);
        assert_eq!(program.ended().signal(), Some(number));
        assert_eq!(program.rest_of_stdout(), "");
        assert_eq!(program.stderr(), says);
        assert_eq!(folder.names(), ["d.npy"]);
        assert_eq!(fs::read(folder.path("d.npy")).unwrap(), b"old");
    }
}

#[test]
fn a_signal_that_it_was_told_to_ignore_does_not_end_it() {
    let folder = Folder::new();
    // As `nohup` does.
    let script = "trap '' HUP; exec \"$@\"";
    let mut program = Started::new(in_shell(script, folder.0.path(), MINUTES));
    wait_until("opened", || writes_in(program.id(), folder.0.path()));
    program.send("HUP");
    program.send("TERM");
    assert_eq!(program.ended().signal(), Some(15));
}
