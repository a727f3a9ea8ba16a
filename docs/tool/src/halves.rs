//! Figures of kernels on tensor cores, beside the faster of cuBLAS and cublasLt: of several types,
//! layouts and epilogues, from what `rust-gemm bench` wrote to `results/`. Cold, and sustained
//! where that was measured.

use host::bench::Size;
use host::measure::cublas::lt_mark;
use host::report::Record;

use crate::measured::{library, library_sustained, passed, with_legend};
use crate::of_file::{least_joules, value, written};

/// The tables: for each its name, the kernel whose variants it shows, the precision of the
/// libraries if it is not that of the elements, and the files of an H200 in `results/`, each with
/// one layout, in one process with the libraries. `warp-specialized` has the table without a name.
const TABLES: &str = "\
:warp-specialized::bf16 bf16-nn f16
auto:auto::bf16 bf16-nn f16
warpgroup:warpgroup::bf16 bf16-nn bf16-tn bf16-tt f16
warp-specialized-tf32:warp-specialized-tf32:tf32:tf32 tf32-nt tf32-tn tf32-tt
split-fp32:split-fp32:fp32:split
fp64:warp-specialized-fp64:fp64:fp64
fp32:auto:fp32:sustained
8-bits:auto::fp8 int8
epilogues:auto::bf16-bias bf16-bias-gelu bias-relu";

struct Table {
    kernel: &'static str,
    precision: &'static str,
    files: &'static str,
}

/// A row for each type, layout and size.
pub fn table(name: &str) -> Result<String, String> {
    let table = named(name)?;
    let rows = table.rows()?;
    let has_a = rows.iter().any(|(_, _, record)| record.transpose_a);
    let is_cube = |one: &Record| one.m == one.n && one.m == one.k;
    let size = match rows.iter().all(|(_, _, record)| is_cube(record)) {
        true => "m = n = k",
        false => "m × n × k",
    };
    let (head, line) = match has_a {
        true => (" A is stored |", " --- |"),
        false => ("", ""),
    };
    let mut text = format!(
        "\n| elements |{head} B is stored | {size} | TFLOP/s cold | cuBLAS | ratio | sustained | cuBLAS | ratio | J/TFLOP (cuBLAS) |\n\
         | --- |{line} --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    );
    for (file, size, record) in &rows {
        let row = table.row(size, record, has_a);
        text += &row.ok_or_else(|| format!("{file}: a row without cuBLAS"))?;
    }
    Ok(with_legend(text))
}

/// The least and the most of a column of a table: `auto sustained`, for example, or any other of
/// [`value`]'s. `warp-specialized` is the table without a name.
pub fn range(arguments: &str) -> Result<String, String> {
    let missing = || format!("`range {arguments}` is no column of a table");
    let (name, what) = arguments.split_once(' ').ok_or_else(missing)?;
    let table = named(if name == "warp-specialized" { "" } else { name })?;
    let mut values = Vec::new();
    for (_, size, record) in table.rows()? {
        values.extend(value(&size, &record, table.precision(&record), what));
    }
    match values.is_empty() {
        true => Err(missing()),
        false => Ok(written(&values, what)),
    }
}

fn named(name: &str) -> Result<Table, String> {
    let mut lines = TABLES.lines();
    let table = lines.find_map(|line| match line.split(':').collect::<Vec<_>>()[..] {
        [of, kernel, precision, files] if of == name => Some(Table {
            kernel,
            precision,
            files,
        }),
        _ => None,
    });
    table.ok_or_else(|| format!("there is no table `halves {name}`"))
}

impl Table {
    /// The measured records, each with its file.
    fn rows(&self) -> Result<Vec<(&'static str, Size, Record)>, String> {
        let mut rows = Vec::new();
        for file in self.files.split(' ') {
            for size in passed(&format!("results/h200-{file}.json"))?.sizes {
                if let Some(record) = self.record(&size).cloned() {
                    rows.push((file, size, record));
                }
            }
        }
        Ok(rows)
    }

    /// The precision of the libraries that a record is compared with.
    fn precision<'a>(&self, record: &'a Record) -> &'a str {
        match (self.precision, record.dtype.as_str()) {
            ("", "f32") => "fp32",
            ("", dtype) => dtype,
            (precision, _) => precision,
        }
    }

    /// The kernel's record at a size: one variant of it was measured there, or none.
    fn record<'a>(&self, size: &'a Size) -> Option<&'a Record> {
        let is_variant = |name: &str| match name.strip_prefix(self.kernel) {
            Some("" | "-nt" | "-tn" | "-tt") => true,
            Some(_) | None => false,
        };
        size.results
            .iter()
            .find(|record| is_variant(&record.kernel))
    }

    fn row(&self, size: &Size, record: &Record, has_a: bool) -> Option<String> {
        let elements = match self.precision {
            "tf32" => "tf32".to_string(),
            _ => record.dtype.clone() + &record.epilogue_note(),
        };
        let Record { m, n, k, .. } = record;
        let shape = match m == n && m == k {
            true => m.to_string(),
            false => format!("{m} × {n} × {k}"),
        };
        let precision = self.precision(record);
        let cublas = library(size, precision)?;
        let stored = |is_transposed: bool, as_is: &str, transposed: &str| match is_transposed {
            true => format!(" {transposed} |"),
            false => format!(" {as_is} |"),
        };
        let a = match has_a {
            true => stored(record.transpose_a, "m x k", "k x m"),
            false => String::new(),
        };
        let sustained = match (&record.sustained, library_sustained(size, precision)) {
            (Some(own), Some((name, most))) => {
                let ratio = own.flops_per_s / most;
                let speeds = [own.flops_per_s, most].map(|speed| format!("{:.0}", speed / 1e12));
                let mark = lt_mark(name);
                let joules = |joules: Option<f64>| joules.map(|joules| format!("{joules:.2}"));
                let own_joules = joules(own.joules_per_tflop);
                let energy = match (own_joules, joules(least_joules(size, precision))) {
                    (Some(own), Some(least)) => format!("{own} ({least})"),
                    (own, _) => own.unwrap_or_else(|| "-".to_string()),
                };
                format!(
                    "{} | {}{mark} | {ratio:.2} | {energy}",
                    speeds[0], speeds[1]
                )
            }
            _ => "- | - | - | -".to_string(),
        };
        let ratio = cublas.seconds() / record.time_median_s?;
        Some(format!(
            "| {elements} |{a}{} {shape} | {:.0} | {:.0}{} | {ratio:.2} | {sustained} |\n",
            stored(record.transpose_b, "k x n", "n x k"),
            record.flops_per_s? / 1e12,
            cublas.flops_per_s? / 1e12,
            lt_mark(&cublas.kernel),
        ))
    }
}
