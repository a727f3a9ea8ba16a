//! An overview of the results for documents.

use super::results::Results;
use crate::measure::cublas;

/// A row for each kernel, a column for each size: TFLOP/s, and the share of cuBLAS. A kernel that
/// did not pass has no figure.
pub fn overview(results: &Results) -> String {
    let columns = |cell: &dyn Fn(usize) -> String| -> String {
        (0..results.sizes.len())
            .map(|index| format!(" {} |", cell(index)))
            .collect()
    };
    let head = columns(&|index| results.sizes[index].label());
    let mut table = format!("| kernel |{head}\n| --- |{}\n", columns(&|_| "---".into()));
    let dash = || "-".to_string();
    for kernel in results.kernels() {
        let cells = columns(&|index| {
            let record = results.sizes[index].record(kernel);
            let Some(speed) = record.and_then(|record| record.flops_per_s) else {
                return dash();
            };
            match record.and_then(|record| record.ratio_to_cublas) {
                Some(ratio) => format!("{} ({:.0} %)", tera(speed), ratio * 100.0),
                None => tera(speed),
            }
        });
        table += &format!("| `{kernel}` |{cells}\n");
    }
    for name in results.yardsticks() {
        let cells = columns(&|index| {
            let yardstick = results.sizes[index].yardstick(name);
            let speed = yardstick.and_then(|yardstick| yardstick.flops_per_s);
            speed.map_or_else(dash, tera)
        });
        table += &format!("| {} |{cells}\n", cublas::title(name));
    }
    table
}

/// In units of 10^12; below 1, as for CPUs and the simulator, to four digits.
pub(super) fn tera(flops_per_s: f64) -> String {
    let tera = flops_per_s / 1e12;
    let decimals = match tera {
        1.0.. => 1,
        _ if tera > 0.0 => (3.0 - tera.log10().floor()) as usize,
        _ => 4,
    };
    format!("{tera:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_speeds_keep_their_digits() {
        let texts = [42.42e12, 1.96e12, 0.15e12, 1.917e9, 57.3e6, 0.0].map(tera);
        assert_eq!(
            texts,
            ["42.4", "2.0", "0.1500", "0.001917", "0.00005730", "0.0000"]
        );
    }
}
