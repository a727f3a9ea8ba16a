//! The rows of a size's table: each kernel in the order of the ladder, and its speed-up over the
//! rung before.

use gpu_gemm::gpu_kernels::spec::Unit;
use gpu_gemm::gpu_kernels::variants;
use gpu_gemm::{KERNELS, Variant};

use super::results::{Results, Size};
use crate::measure::cublas;
use crate::report::{Record, Sustained, duration, or_dash, percent, speed, spread};
use crate::rung::AUTO;

/// The note below a table that explains the column "step".
pub(super) const STEP: &str = "step: the speed relative to the previous kernel of the ladder in this table, by its fastest variant";

/// The columns of back-to-back launches, present only if there were such launches.
const SUSTAINED: [&str; 5] = ["sustained", "of cuBLAS", "clock", "power", "energy"];

fn sustained(of: &Sustained) -> [Option<String>; SUSTAINED.len()] {
    [
        Some(speed(of.flops_per_s)),
        of.ratio_to_cublas.map(percent),
        of.sm_clock_mhz.map(|mhz| format!("{mhz:.0} MHz")),
        of.power_w.map(|power| format!("{power:.0} W")),
        of.joules_per_tflop
            .map(|joules| format!("{joules:.2} J/TFLOP")),
    ]
}

/// The names of the columns, a row for each kernel, in the requested order, and one for each
/// yardstick.
pub(super) fn rows(results: &Results, size: &Size) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let mut header = vec![
        "kernel",
        "median",
        "from .. to",
        "speed",
        "of cuBLAS",
        "of peak",
        "step",
    ];
    let has_sustained = size.results.iter().any(|record| record.sustained.is_some());
    if has_sustained {
        header.extend(SUSTAINED);
    }
    header.push("result");
    let row = |(record, is_yardstick): (&Record, bool)| {
        let mut cells = vec![
            Some(record.kernel.clone()),
            record.time_median_s.map(duration),
            record.extremes().map(spread),
            record.flops_per_s.map(speed),
            record.ratio_to_cublas.map(percent),
            of_peak(results, record).map(percent),
            step(size, record).map(|step| format!("x {step:.2}")),
        ];
        if has_sustained {
            let of = record.sustained.as_ref();
            cells.extend(of.map_or([const { None }; SUSTAINED.len()], sustained));
        }
        cells.push((!is_yardstick).then(|| record.verdict().to_string()));
        cells.into_iter().map(or_dash).collect()
    };
    (header, size.contenders().map(row).collect())
}

/// The share of the device's peak; none for tensor cores, which have another peak.
fn of_peak(results: &Results, record: &Record) -> Option<f64> {
    let of_peak = record.flops_per_s? / results.machine.peak_flops_per_s?;
    // The device's peak is that of this type on CUDA cores.
    let is_of_it = !cublas::is_on_tensor_cores(&record.kernel)
        && !record.is_native()
        && !is_on_tensor_cores(record);
    is_of_it.then_some(of_peak)
}

/// Whether a table of this size has the column "step".
pub(super) fn has_steps(size: &Size) -> bool {
    size.results
        .iter()
        .any(|record| step(size, record).is_some())
}

/// A kernel's speed over that of the fastest variant of the nearest earlier rung that was
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

/// Whether a kernel ran on tensor cores, which the device's peak does not include.
pub(super) fn is_on_tensor_cores(record: &Record) -> bool {
    variant(record).is_some_and(|variant| variant.unit != Unit::CudaCores)
}

/// The kernel of a record, if it belongs to the ladder; of `auto`, the kernel that it chose.
pub(super) fn variant(record: &Record) -> Option<&'static Variant> {
    let name = match &record.chosen {
        // The words after the name describe its launch.
        Some(chosen) => chosen.split(' ').next()?,
        None => &record.kernel,
    };
    variants()
        .find(|variant| variant.name == name && variant.types.data_type().name() == record.dtype)
}

/// The records in the order of the ladder, followed by the other kernels and `auto`. If there are
/// more than `most`, only the fastest variant of each kernel.
pub(super) fn fastest<'a>(
    records: impl Iterator<Item = &'a Record>,
    most: usize,
) -> Vec<&'a Record> {
    let mut sorted: Vec<&Record> = records.collect();
    sorted.sort_by_key(|record| match record.kernel == AUTO {
        true => (KERNELS.len(), true),
        false => (rung(record).unwrap_or(KERNELS.len()), false),
    });
    if sorted.len() <= most {
        return sorted;
    }
    let mut fastest: Vec<&Record> = Vec::new();
    for record in sorted {
        let own = rung(record);
        let of_rung = |other: &&mut &Record| own.is_some() && rung(other) == own;
        match fastest.iter_mut().find(of_rung) {
            Some(other) if record.flops_per_s > other.flops_per_s => *other = record,
            Some(_) => {}
            None => fastest.push(record),
        }
    }
    fastest
}

fn is_of(variant: &Variant, record: &Record) -> bool {
    variant.name == record.kernel && variant.types.data_type().name() == record.dtype
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::samples::sample;

    #[test]
    fn of_too_many_records_those_of_the_fastest_variants_are_left_and_auto_is_the_last() {
        let mut results = sample();
        let records = &mut results.sizes[1].results;
        records[0].kernel = AUTO.into();
        // Not part of the ladder.
        records[1].kernel = "cpu-rows".into();
        records[4].kernel = "tiled-32".into();
        let names = |most| -> Vec<&str> {
            let records = fastest(results.sizes[1].results.iter(), most);
            records
                .iter()
                .map(|record| record.kernel.as_str())
                .collect()
        };
        assert_eq!(
            names(5),
            [
                "tiled-16",
                "tiled-32",
                "conflict-free-k8",
                "cpu-rows",
                "auto"
            ]
        );
        assert_eq!(
            names(4),
            ["tiled-32", "conflict-free-k8", "cpu-rows", "auto"]
        );
    }
}
