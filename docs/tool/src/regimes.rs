//! A plot of speeds on tensor cores, cold and sustained, beside the faster of cuBLAS and cublasLt,
//! from what `rust-gemm bench --sustained` wrote to `results/`.

use host::bench::Size;
use host::plot::{BLUE, Bar, Bars, Row, SKY};

use crate::measured::{library, library_sustained, passed};

/// The bars at 4096 and 8192: name, file of an H200, kernel, and the precision of the libraries.
const SHOWN: &str = "\
bf16:bf16:auto:bf16
f16:f16:auto:f16
tf32:tf32:warp-specialized-tf32:tf32
split f32:split:split-fp32:fp32
f64:fp64:warp-specialized-fp64:fp64";
const SIZES: [usize; 2] = [4096, 8192];

/// A bar of each regime, cold and sustained, with the library's speed across it.
fn row(size: &Size, name: &str, kernel: &str, precision: &str) -> Option<Row> {
    let record = size.record(kernel)?;
    let cold = (record.flops_per_s?, library(size, precision)?.flops_per_s?);
    let sustained = (
        record.sustained.as_ref()?.flops_per_s,
        library_sustained(size, precision)?.1,
    );
    let bars = [(cold, BLUE), (sustained, SKY)].map(|((own, library), colour)| {
        let own = own / 1e12;
        Bar {
            mark: Some(library / 1e12),
            ..Bar::new(own, colour, format!("{own:.0}"))
        }
    });
    Some(Row {
        name: format!("{name}, {}", size.m),
        bars: bars.to_vec(),
    })
}

/// The plot.
pub fn plot() -> Result<String, String> {
    let mut rows = Vec::new();
    for line in SHOWN.lines() {
        let [name, file, kernel, precision] = line.split(':').collect::<Vec<_>>()[..] else {
            return Err(format!("`{line}` is no bar"));
        };
        let results = passed(&format!("results/h200-{file}.json"))?;
        for m in SIZES {
            let size = results.sizes.iter().find(|size| size.m == m);
            let row = size.and_then(|size| row(size, name, kernel, precision));
            rows.push(row.ok_or_else(|| format!("{file}: {kernel} at {m} lacks a speed"))?);
        }
    }
    let note = "Short runs (above) and seconds of back-to-back launches (below). The line across a bar is the faster of cuBLAS and cublasLt, of split f32 in fp32.";
    let picture = Bars {
        title: "On tensor cores: cold, and at the power limit, NVIDIA H200".to_string(),
        notes: vec![note.to_string()],
        legend: vec![(BLUE, "cold"), (SKY, "sustained")],
        axis: "TFLOP/s".to_string(),
        rows,
        ..Bars::default()
    };
    Ok(picture.draw())
}
