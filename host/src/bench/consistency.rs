//! Whether results agree with themselves: statistics with runs, speed with time and shape, ratios
//! with both times, summaries with ratios, and all with the GPU's peak. What is published is
//! checked so, and a file that was edited by hand, or written by a program that counts wrongly,
//! shows.

use gpu_gemm::Shape;

use super::devices::time_on_first;
use super::ladder::is_on_tensor_cores;
use super::results::{Machine, Results, Size, Summary};
use crate::measure::cublas::Precision;
use crate::report::{Record, Yardstick};
use crate::statistics;

impl Results {
    /// Checks every figure that follows from others.
    ///
    /// # Errors
    ///
    /// What does not fit, and where.
    pub fn check_figures(&self) -> Result<(), String> {
        let peak_of = |device_label: &Option<String>| {
            let machine = self.machine_of(device_label.as_deref());
            machine.peak_flops_per_s.unwrap_or(f64::INFINITY)
        };
        for size in &self.sizes {
            let at = |error| format!("{}: {error}", size.title());
            for yardstick in &size.yardsticks {
                // Of tensor cores no peak is recorded, and f64 runs on them, too.
                let is_on_cuda_cores = yardstick.name == Precision::Single.name();
                let peak = if is_on_cuda_cores {
                    peak_of(&yardstick.device_label)
                } else {
                    f64::INFINITY
                };
                times_of_yardstick(yardstick, size, peak).map_err(at)?;
            }
            for record in &size.results {
                let peak = if is_on_tensor_cores(record) {
                    f64::INFINITY
                } else {
                    peak_of(&record.device_label)
                };
                of_record(record, size, peak).map_err(at)?;
                beside_first_device(record, size, &self.machine).map_err(at)?;
            }
        }
        self.summaries
            .iter()
            .try_for_each(|summary| of_summary(summary, self))
    }
}

/// Whether two numbers are the same but for the rounding of what they were computed from.
fn same(one: f64, other: f64) -> bool {
    approx::relative_eq!(one, other, max_relative = 1e-9)
}

fn check(is_right: bool, name: &str, what: &str) -> Result<(), String> {
    match is_right {
        true => Ok(()),
        false => Err(format!("{name}: {what}")),
    }
}

fn speed(
    name: &str,
    flops: f64,
    seconds: f64,
    flops_per_s: Option<f64>,
    peak: f64,
) -> Result<(), String> {
    // Without operations there is no speed.
    let Some(flops_per_s) = flops_per_s else {
        return check(flops == 0.0, name, "there is a time without a speed");
    };
    let follows = same(flops_per_s * seconds, flops);
    check(follows, name, "the speed is not 2 m n k over the time")?;
    check(flops_per_s <= peak, name, "the speed is above the peak")
}

fn in_order(name: &str, least: Option<f64>, median: f64, most: Option<f64>) -> Result<(), String> {
    let is_ordered = least.unwrap_or(median) <= median && median <= most.unwrap_or(median);
    check(
        is_ordered && median > 0.0,
        name,
        "the median time is not between the others",
    )
}

/// Whether the statistics are those of the runs, of which older files have no times.
fn of_runs(record: &Record) -> Result<(), String> {
    let times = &record.times_s[..];
    if times.is_empty() {
        return Ok(());
    }
    let extremes = |pick: fn(f64, f64) -> f64| times.iter().copied().reduce(pick);
    let is_same = |one: Option<f64>, other: Option<f64>| match (one, other) {
        (Some(one), Some(other)) => same(one, other),
        (one, other) => one == other,
    };
    let follows = record.runs == Some(times.len())
        && record.outliers == Some(statistics::outliers(times))
        && is_same(record.time_median_s, Some(statistics::median(times)))
        && is_same(record.time_mean_s, Some(statistics::mean(times)))
        && is_same(record.time_stddev_s, statistics::standard_deviation(times))
        && is_same(record.time_min_s, extremes(f64::min))
        && is_same(record.time_max_s, extremes(f64::max));
    let why = "the statistics are not those of the runs";
    check(follows, &record.kernel, why)
}

fn times_of_yardstick(yardstick: &Yardstick, size: &Size, peak: f64) -> Result<(), String> {
    let Yardstick {
        name,
        time_median_s: median,
        flops_per_s,
        ..
    } = yardstick;
    in_order(name, yardstick.time_min_s, *median, yardstick.time_max_s)?;
    of_runs(&yardstick.as_record(None))?;
    let flops = size.shape().flops() * size.products() as f64;
    speed(name, flops, *median, Some(*flops_per_s), peak)
}

fn of_record(record: &Record, size: &Size, peak: f64) -> Result<(), String> {
    let name = &record.kernel;
    let shape = Shape::new(record.m, record.n, record.k);
    check(shape == size.shape(), name, "the shape is another")?;
    let Some(median) = record.time_median_s else {
        let ratios = [
            record.ratio_to_cublas,
            record.ratio_to_clblast,
            record.ratio_to_first_device,
        ];
        let is_bare = record.flops_per_s.is_none() && ratios == [None; 3];
        return check(is_bare, name, "there is a speed without a time");
    };
    check(record.proven, name, "it was timed and not proven")?;
    in_order(name, record.time_min_s, median, record.time_max_s)?;
    of_runs(record)?;
    let flops = shape.flops() * record.products() as f64;
    speed(name, flops, median, record.flops_per_s, peak)?;
    let yardstick = size
        .yardstick_on(record.device_label.as_deref())
        // CPU rungs are not compared with it.
        .filter(|_| record.backend != "cpu");
    let time = |is_clblast| {
        let of_it = yardstick.filter(|yardstick| yardstick.is_clblast() == is_clblast);
        of_it.map(|yardstick| yardstick.time_median_s)
    };
    let (cublas, clblast) = (time(false), time(true));
    let beside = record.cublas_time_median_s == cublas;
    check(beside, name, "cuBLAS's time is another")?;
    let beside = record.clblast_time_median_s == clblast;
    check(beside, name, "CLBlast's time is another")?;
    check(
        is_ratio(record.ratio_to_cublas, cublas, median),
        name,
        "the ratio is not cuBLAS's time over the kernel's",
    )?;
    check(
        is_ratio(record.ratio_to_clblast, clblast, median),
        name,
        "the ratio is not CLBlast's time over the kernel's",
    )
}

fn beside_first_device(record: &Record, size: &Size, first: &Machine) -> Result<(), String> {
    let Some(median) = record.time_median_s else {
        return Ok(());
    };
    let time = time_on_first(size, record, first.device_label.as_deref());
    check(
        is_ratio(record.ratio_to_first_device, time, median),
        &record.kernel,
        "the ratio is not the first device's time over this one's",
    )
}

/// Whether it is the ratio of this time to a kernel's; there is none without the time.
fn is_ratio(ratio: Option<f64>, time: Option<f64>, median: f64) -> bool {
    match (ratio, time) {
        (Some(ratio), Some(time)) => same(ratio * median, time),
        (ratio, time) => ratio.is_none() && time.is_none(),
    }
}

fn of_summary(summary: &Summary, results: &Results) -> Result<(), String> {
    let records = results
        .sizes
        .iter()
        .filter_map(|size| size.record(&summary.kernel));
    let ratios: Vec<f64> = records
        .filter_map(|record| Some(record.cublas_time_median_s? / record.time_median_s?))
        .collect();
    let count = ratios.len();
    let product: f64 = ratios
        .iter()
        .map(|ratio| ratio.powf(1.0 / count as f64))
        .product();
    let worst = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let fast = ratios.iter().filter(|ratio| **ratio >= 1.0).count();
    let is_right = summary.shapes == count
        && summary.at_least_as_fast == fast
        && same(summary.geometric_mean, product)
        && same(summary.worst, worst);
    check(
        is_right,
        &summary.kernel,
        "the summary is not that of the ratios",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::ratios::summaries;
    use crate::bench::results::tests::sample;

    fn right() -> Results {
        let mut results = sample();
        results.summaries = summaries(&results);
        results
    }

    #[test]
    fn results_that_agree_with_themselves_are_taken() {
        right().check_figures().unwrap();
    }

    #[test]
    fn only_a_kernel_on_tensor_cores_may_exceed_the_peak_of_the_cuda_cores() {
        let mut results = right();
        results.summaries.clear();
        results.sizes.truncate(1);
        results.machine.peak_flops_per_s = Some(1.0);
        results.sizes[0].yardsticks[0].name = Precision::Double.name().to_string();
        results.sizes[0].results.truncate(1);
        for (kernel, is_taken) in [("tensor-core", true), ("naive", false), ("auto", false)] {
            results.sizes[0].results[0].kernel = kernel.to_string();
            assert_eq!(results.check_figures().is_ok(), is_taken, "{kernel}");
        }
    }

    #[test]
    fn statistics_are_those_of_the_runs() {
        let mut results = right();
        results.sizes.truncate(1);
        results.summaries.clear();
        let yardstick = &mut results.sizes[0].yardsticks[1];
        let flops = yardstick.flops_per_s * yardstick.time_median_s;
        let times = vec![1.0, 2.0, 3.0, 2.0, 100.0];
        yardstick.runs = times.len();
        yardstick.time_median_s = 2.0;
        yardstick.time_min_s = Some(1.0);
        yardstick.time_max_s = Some(100.0);
        yardstick.time_mean_s = Some(108.0 / 5.0);
        yardstick.time_stddev_s = statistics::standard_deviation(&times);
        yardstick.outliers = Some(1);
        yardstick.times_s = times;
        yardstick.flops_per_s = flops / 2.0;
        results.check_figures().unwrap();
        let changes: [fn(&mut Yardstick); 6] = [
            |yardstick| yardstick.runs = 6,
            |yardstick| yardstick.outliers = Some(0),
            |yardstick| yardstick.time_mean_s = Some(2.0),
            |yardstick| yardstick.time_stddev_s = None,
            |yardstick| yardstick.time_min_s = Some(1.5),
            |yardstick| yardstick.time_max_s = Some(99.0),
        ];
        for change in changes {
            let mut results = results.clone();
            change(&mut results.sizes[0].yardsticks[1]);
            let refused = results.check_figures().unwrap_err();
            assert!(refused.ends_with("not those of the runs"), "{refused}");
        }
    }

    #[test]
    fn each_figure_that_does_not_follow_is_refused() {
        fn record(results: &mut Results) -> &mut Record {
            &mut results.sizes[1].results[0]
        }
        fn scale(figure: &mut Option<f64>, factor: f64) {
            *figure = figure.map(|figure| figure * factor);
        }
        type Change = fn(&mut Results);
        let changes: [(&str, Change); 12] = [
            ("2 m n k", |results| {
                scale(&mut record(results).flops_per_s, 1.1)
            }),
            ("2 m n k", |results| {
                results.sizes[0].yardsticks[0].flops_per_s *= 1.1
            }),
            ("2 m n k", |results| {
                scale(&mut record(results).time_median_s, 1.001)
            }),
            ("cuBLAS's time over", |results| {
                let ratio = &mut record(results).ratio_to_cublas;
                *ratio = ratio.map(f64::recip);
            }),
            ("cuBLAS's time is", |results| {
                scale(&mut record(results).cublas_time_median_s, 2.0);
            }),
            ("shape", |results| record(results).k += 1),
            ("not proven", |results| record(results).proven = false),
            ("without a time", |results| {
                record(results).time_median_s = None
            }),
            ("between", |results| {
                scale(&mut record(results).time_min_s, 2.0)
            }),
            ("above the peak", |results| {
                results.machine.peak_flops_per_s = Some(40e12)
            }),
            ("the summary", |results| {
                results.summaries[0].geometric_mean *= 1.01
            }),
            ("the summary", |results| {
                results.summaries[0].at_least_as_fast += 1
            }),
        ];
        for (expected, change) in changes {
            let mut results = right();
            change(&mut results);
            let refused = results.check_figures().unwrap_err();
            assert!(refused.contains(expected), "{expected}: {refused}");
        }
    }
}
