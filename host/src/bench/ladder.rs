//! The rows of a size's table: each kernel in the order of the ladder, and what it gains over
//! the rung before.

use gpu_gemm::gpu_kernels::KERNELS;
use gpu_gemm::gpu_kernels::spec::Variant;

use super::results::{Machine, Size};
use crate::measure::cublas::Precision;
use crate::report::{Record, Yardstick, duration, speed, spread};

/// The order of a table's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// As the ladder goes.
    Ladder,
    /// The fastest first.
    Speed,
}

/// What the columns hold.
pub(super) const HEADER: [&str; 8] = [
    "kernel",
    "time (median)",
    "from .. to",
    "speed",
    "of cuBLAS",
    "of peak",
    "step",
    "result",
];

/// What "step" means, for below a table.
pub(super) const STEP: &str = "step: the speed over that of the fastest variant of the kernel before it in the ladder, of those in this table";

/// A row for each kernel, in the requested order, and one for each yardstick, after the kernels
/// or where its speed puts it.
pub(super) fn rows(machine: &Machine, size: &Size, sort: Sort) -> Vec<[String; HEADER.len()]> {
    let of_kernels = size.results.iter().map(|record| {
        (
            record.flops_per_s.unwrap_or(0.0),
            kernel_row(machine, size, record),
        )
    });
    let of_yardsticks = size.yardsticks.iter().map(|yardstick| {
        (
            yardstick.flops_per_s,
            yardstick_row(machine, size, yardstick),
        )
    });
    let mut rows: Vec<_> = of_kernels.chain(of_yardsticks).collect();
    if sort == Sort::Speed {
        rows.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

fn kernel_row(machine: &Machine, size: &Size, record: &Record) -> [String; HEADER.len()] {
    let extremes = record
        .time_min_s
        .zip(record.time_max_s)
        .filter(|_| record.runs > Some(1));
    [
        record.kernel.clone(),
        or_dash(record.time_median_s.map(duration)),
        or_dash(extremes.map(|(min, max)| spread(min, max))),
        or_dash(record.flops_per_s.map(speed)),
        or_dash(record.ratio_to_cublas.map(percent)),
        or_dash(of_peak(machine, record.flops_per_s).map(percent)),
        or_dash(step(size, record).map(|step| format!("x {step:.2}"))),
        match record.proven {
            true => "proven",
            false => "NOT PROVEN",
        }
        .to_string(),
    ]
}

fn yardstick_row(machine: &Machine, size: &Size, yardstick: &Yardstick) -> [String; HEADER.len()] {
    let extremes = yardstick.time_min_s.zip(yardstick.time_max_s);
    // Tensor cores have a peak of their own.
    let peak = of_peak(machine, Some(yardstick.flops_per_s))
        .filter(|_| yardstick.name != Precision::Tf32.name());
    [
        yardstick.name.clone(),
        duration(yardstick.time_median_s),
        or_dash(extremes.map(|(min, max)| spread(min, max))),
        speed(yardstick.flops_per_s),
        or_dash(
            size.cublas()
                .map(|cublas| percent(yardstick.flops_per_s / cublas.flops_per_s)),
        ),
        or_dash(peak.map(percent)),
        or_dash(None),
        or_dash(None),
    ]
}

fn of_peak(machine: &Machine, flops_per_s: Option<f64>) -> Option<f64> {
    Some(flops_per_s? / machine.peak_flops_per_s?)
}

/// A kernel's speed over that of the fastest variant of the nearest rung before its own that was
/// measured.
fn step(size: &Size, record: &Record) -> Option<f64> {
    let own = rung(record)?;
    let before = size
        .results
        .iter()
        .filter_map(|other| Some((rung(other)?, other.flops_per_s?)))
        .filter(|&(rung, _)| rung < own)
        .max_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
    Some(record.flops_per_s? / before?.1)
}

/// The position of a kernel's rung in the ladder, if the kernel belongs to it.
fn rung(record: &Record) -> Option<usize> {
    KERNELS.iter().position(|kernel| {
        let mut variants = kernel.variants.iter();
        variants.any(|variant| is_of(variant, record))
    })
}

/// The kernel of a record, if it belongs to the ladder.
pub(super) fn variant(record: &Record) -> Option<&'static Variant> {
    let mut variants = KERNELS.iter().flat_map(|kernel| kernel.variants);
    variants.find(|variant| is_of(variant, record))
}

fn is_of(variant: &Variant, record: &Record) -> bool {
    variant.name == record.kernel && variant.types.c.name() == record.dtype
}

fn percent(ratio: f64) -> String {
    format!("{:.1} %", ratio * 100.0)
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::tests::sample;

    fn names(sort: Sort) -> Vec<String> {
        let results = sample();
        rows(&results.machine, &results.sizes[1], sort)
            .into_iter()
            .map(|[name, ..]| name)
            .collect()
    }

    #[test]
    fn rows_are_in_the_order_of_the_ladder_or_of_speed() {
        assert_eq!(
            names(Sort::Ladder),
            [
                "naive",
                "tiled-32",
                "tiled-16",
                "conflict-free-sn8",
                "double-buffer-sn8",
                "cublas-fp32",
                "cublas-tf32"
            ]
        );
        assert_eq!(
            names(Sort::Speed),
            [
                "cublas-tf32",
                "cublas-fp32",
                "double-buffer-sn8",
                "tiled-32",
                "tiled-16",
                "naive",
                "conflict-free-sn8"
            ]
        );
    }

    #[test]
    fn a_step_is_taken_from_the_fastest_variant_of_the_rung_before_that_was_measured() {
        let results = sample();
        let size = &results.sizes[1];
        let step = |kernel| step(size, size.record(kernel).unwrap());
        assert_eq!(step("naive"), None);
        assert_eq!(step("tiled-32"), Some(8.5 / 5.0));
        assert_eq!(step("tiled-16"), Some(8.0 / 5.0));
        // The rung between was not proven right, so it was not timed.
        assert_eq!(step("conflict-free-sn8"), None);
        assert_eq!(step("double-buffer-sn8"), Some(46.75 / 8.5));
    }

    #[test]
    fn tensor_cores_have_no_share_of_the_peak_without_them() {
        let results = sample();
        let rows = rows(&results.machine, &results.sizes[1], Sort::Ladder);
        let of = |name: &str| rows.iter().find(|row| row[0] == name).unwrap();
        assert_eq!(of("cublas-fp32")[4..6], ["100.0 %", "74.7 %"]);
        assert_eq!(of("cublas-tf32")[4..6], ["600.0 %", "-"]);
    }
}
