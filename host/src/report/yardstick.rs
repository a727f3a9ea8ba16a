//! Libraries that kernels are compared with.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::record::Record;
use crate::measure::cublas::is_tf32;

/// The times of something that is not ours, on the same problem, in the same process, with runs
/// that alternated with those of the kernels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Yardstick {
    /// The library and the precision, such as `cublas-fp32` or `cublaslt-bf16`. Kernels are compared
    /// with the faster library; not with f32 rounded to TF32, `cublas-tf32` and `cublaslt-tf32`.
    pub name: String,
    /// Timed runs.
    pub runs: usize,
    pub time_median_s: f64,
    pub time_min_s: Option<f64>,
    pub time_max_s: Option<f64>,
    pub time_mean_s: Option<f64>,
    /// The sample standard deviation; null for one run.
    pub time_stddev_s: Option<f64>,
    /// Runs outside of Tukey's fences; see [`crate::statistics`].
    pub outliers: Option<usize>,
    /// The time of each run, in the order of running; absent in older files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times_s: Vec<f64>,
    /// As those of a [`Record`], of the C after the timed launches; absent if not every element
    /// was compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frobenius_error: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_error_units: Option<f64>,
    /// `2 * m * n * k` over the median time; 0, and null in JSON, if no product is computed, since
    /// alpha or k is 0.
    #[serde(serialize_with = "or_null", deserialize_with = "or_zero")]
    pub flops_per_s: f64,
    /// As that of a [`Record`], without a ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sustained: Option<Sustained>,
}

/// Speed at the power limit, of seconds of back-to-back launches: see
/// [`crate::measure::sustained`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sustained {
    /// Seconds that count, of all turns together.
    pub seconds: f64,
    pub turns: u32,
    /// Launches in these seconds.
    pub launches: u64,
    /// As the record's.
    pub flops_per_s: f64,
    /// This speed over that of the library that was fastest so; null for a library, and without
    /// one.
    pub ratio_to_cublas: Option<f64>,
    /// The mean clock of the SMs, and the mean power; null where they are not known.
    pub sm_clock_mhz: Option<f64>,
    pub power_w: Option<f64>,
    /// That power over the speed: joules for 10^12 operations.
    pub joules_per_tflop: Option<f64>,
}

/// A speed in JSON: null instead of 0.
fn or_null<S: Serializer>(speed: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    Some(*speed)
        .filter(|speed| *speed > 0.0)
        .serialize(serializer)
}

fn or_zero<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(0.0))
}

impl Yardstick {
    /// The one that kernels are compared with: the fastest that multiplies elements of their type
    /// as they are.
    pub fn fastest<'a>(
        yardsticks: impl IntoIterator<Item = &'a Yardstick>,
    ) -> Option<&'a Yardstick> {
        let same = yardsticks.into_iter().filter(|one| !is_tf32(&one.name));
        same.min_by(|one, other| one.time_median_s.total_cmp(&other.time_median_s))
    }

    /// The operations a second of the one that is fastest in back-to-back launches.
    pub fn fastest_sustained(yardsticks: &[Yardstick]) -> Option<f64> {
        let same = yardsticks.iter().filter(|one| !is_tf32(&one.name));
        let speeds = same.filter_map(|one| Some(one.sustained.as_ref()?.flops_per_s));
        speeds.max_by(f64::total_cmp)
    }

    /// Its times as those of a record, for tables; the ratio is to `first`, the yardstick of the
    /// kernels on the same device.
    pub fn as_record(&self, first: Option<&Yardstick>) -> Record {
        let ratio = first.map(|first| first.time_median_s / self.time_median_s);
        Record {
            kernel: self.name.clone(),
            runs: Some(self.runs),
            time_median_s: Some(self.time_median_s),
            time_min_s: self.time_min_s,
            time_max_s: self.time_max_s,
            time_mean_s: self.time_mean_s,
            time_stddev_s: self.time_stddev_s,
            outliers: self.outliers,
            times_s: self.times_s.clone(),
            frobenius_error: self.frobenius_error,
            largest_error_units: self.largest_error_units,
            flops_per_s: Some(self.flops_per_s).filter(|speed| *speed > 0.0),
            ratio_to_cublas: ratio,
            sustained: self.sustained.clone(),
            ..Record::default()
        }
    }
}
