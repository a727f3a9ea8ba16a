//! Figures in sentences, each of a kernel in one file of `results/`, beside the faster of cuBLAS
//! and cublasLt in the same process.

use host::bench::Size;
use host::report::Record;

use crate::figures::at;
use crate::measured::{libraries, library, library_sustained, passed};
use crate::parts::unbroken;

/// A figure of a kernel or a library at M = N = K: `h200-bf16 8192 auto cold` for its ratio to the
/// faster library, `sustained` for that of back-to-back launches, either also in a named precision,
/// `cold tf32`, if the record is compared with another; `tflops`, `gflops` and `sustained-tflops`;
/// in back-to-back launches the mean `clock` in MHz and `power` in watts, the `energy` beside that
/// of the library which takes least, and the `loss` of speed; or how many times as fast as another
/// contender it is, `over warp-specialized-nt` and `sustained-over ...`.
pub fn figure(arguments: &str) -> Result<String, String> {
    let words: Vec<&str> = arguments.split(' ').collect();
    let missing = || format!("`in {arguments}` was not measured, or is no figure");
    let [file, size, name, what @ ..] = &words[..] else {
        return Err(missing());
    };
    let results = passed(&format!("results/{file}.json"))?;
    let size = size.parse().ok().and_then(|size| at(&results, size));
    let size = size.ok_or_else(missing)?;
    let of = |name: &str| size.record(name).or_else(|| size.yardstick(name));
    let record = of(name).ok_or_else(missing)?;
    let text = match what {
        [what @ ("over" | "sustained-over"), other] => {
            let speed = |record: &Record| match *what {
                "over" => record.flops_per_s,
                _ => Some(record.sustained.as_ref()?.flops_per_s),
            };
            let other = of(other).ok_or_else(missing)?;
            let speeds = speed(record).zip(speed(other));
            speeds.map(|(own, other)| format!("{:.2}", own / other))
        }
        [what, precision @ ..] if precision.len() < 2 => {
            let compared_with = record.compared_with.as_deref().unwrap_or(name);
            let own = compared_with.split_once('-').map_or("", |(_, of)| of);
            let precision = precision.first().unwrap_or(&own);
            value(size, record, precision, what).map(|value| written(&[value], what))
        }
        _ => None,
    };
    text.ok_or_else(missing)
}

/// The value of a [`figure`], for a contender beside the libraries of a precision.
pub fn value(size: &Size, record: &Record, precision: &str, what: &str) -> Option<f64> {
    let sustained = || record.sustained.as_ref();
    match what {
        "tflops" => Some(record.flops_per_s? / 1e12),
        "gflops" => Some(record.flops_per_s? / 1e9),
        "sustained-tflops" => Some(sustained()?.flops_per_s / 1e12),
        "cold" => Some(library(size, precision)?.seconds() / record.time_median_s?),
        "sustained" => Some(sustained()?.flops_per_s / library_sustained(size, precision)?.1),
        "loss" => Some(100.0 * (1.0 - sustained()?.flops_per_s / record.flops_per_s?)),
        "clock" => sustained()?.sm_clock_mhz,
        "power" => sustained()?.power_w,
        "energy" => {
            let own = sustained()?.joules_per_tflop?;
            Some(100.0 * own / least_joules(size, precision)?)
        }
        _ => None,
    }
}

/// The least that a library takes for 10^12 operations.
pub fn least_joules(size: &Size, precision: &str) -> Option<f64> {
    let all = libraries(size, precision).filter_map(|one| one.sustained.as_ref());
    let joules = all.filter_map(|sustained| sustained.joules_per_tflop);
    joules.min_by(f64::total_cmp)
}

/// The least and the most of these figures, or the one that they all are, rounded.
pub fn written(values: &[f64], what: &str) -> String {
    let (digits, unit) = match what {
        "cold" | "sustained" => (2, ""),
        "clock" => (0, " MHz"),
        "power" => (0, " W"),
        "energy" | "loss" => (0, " %"),
        _ if values.iter().any(|value| *value < 100.0) => (1, ""),
        _ => (0, ""),
    };
    let round = |value: f64| format!("{value:.digits$}");
    let least = round(values.iter().copied().fold(f64::INFINITY, f64::min));
    let most = round(values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    match least == most {
        true => unbroken(&format!("{least}{unit}")),
        false => format!("{least} to {}", unbroken(&format!("{most}{unit}"))),
    }
}
