//! Products whose tiles do not fill the last wave, whole and divided, from what `rust-gemm bench`
//! wrote to `results/`.

use host::bench::{Results, Size};
use host::measure::cublas::lt_mark;
use host::report::Record;

use crate::measured::{passed, with_legend};
use crate::of_file::written;

/// `warp-specialized` and all tiles of `persistent`, in one process with cuBLAS, on an H200.
const FILE: &str = "results/h200-persistent.json";

/// A row for each shape: in whole tiles, by the fastest tile that divides, by what `auto` chose, and by
/// the faster of cuBLAS and cublasLt.
pub fn table() -> Result<String, String> {
    let results: Results = passed(FILE)?;
    let mut table =
        "\n| m × n × k | whole tiles, 128 × 256 | `persistent` | `auto` | cuBLAS | ratio of `auto` |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n"
            .to_string();
    for size in &results.sizes {
        table += &row(size).ok_or_else(|| format!("{FILE}: a row that lacks something"))?;
    }
    Ok(with_legend(table))
}

/// The least and the most of the ratios of `auto`.
pub fn range() -> Result<String, String> {
    let sizes = passed(FILE)?.sizes;
    let ratios = sizes
        .iter()
        .map(|size| size.record("auto")?.ratio_to_cublas);
    let ratios: Option<Vec<f64>> = ratios.collect();
    let ratios = ratios.ok_or_else(|| format!("{FILE}: a shape without a ratio"))?;
    Ok(written(&ratios, "cold"))
}

fn row(size: &Size) -> Option<String> {
    let of_kernel = |prefix: &str| {
        let records = size.results.iter();
        let times = records.filter(|one| one.kernel.starts_with(prefix));
        times.min_by(|one, other| {
            let [one, other] = [one, other].map(|one| one.time_median_s.unwrap_or(f64::INFINITY));
            one.total_cmp(&other)
        })
    };
    let (whole, divided) = (of_kernel("warp-specialized")?, of_kernel("persistent")?);
    let Record { m, n, k, .. } = divided;
    let auto = size.record("auto")?;
    let us = |record: &Record| Some(record.time_median_s? * 1e6);
    Some(format!(
        "| {m} × {n} × {k} | {:.1} µs | {:.1} µs | {:.1} µs | {:.1} µs{} | {:.2} |\n",
        us(whole)?,
        us(divided)?,
        us(auto)?,
        auto.cublas_time_median_s? * 1e6,
        lt_mark(auto.compared_with.as_ref()?),
        auto.ratio_to_cublas?
    ))
}
