//! The outcome of a comparison.

use serde::{Deserialize, Serialize};

/// The work that was timed: only times of the same work are compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    pub kernel: String,
    /// Whether it is cuBLAS: if its time changed, too, the machine changed.
    pub is_yardstick: bool,
    pub dtype: String,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// As in a [`Record`](crate::report::Record).
    pub batch: Option<usize>,
    pub transpose_a: bool,
    pub transpose_b: bool,
    pub lda: usize,
    pub ldb: usize,
    pub ldc: usize,
    pub alpha: f64,
    pub beta: f64,
}

/// A kernel or yardstick at a shape, in both benchmarks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    #[serde(flatten)]
    pub work: Work,
    /// The name of the shape, if it has one.
    pub name: Option<String>,
    pub earlier_time_median_s: f64,
    pub time_median_s: f64,
    /// The change of the median time over the earlier one: below 0 it is faster now.
    pub change: f64,
    /// The p-value of the two-sided Mann-Whitney test; null if it cannot be known.
    pub p_value: Option<f64>,
    pub verdict: Verdict,
    /// Why the verdict is unknown, if it is.
    pub reason: Option<String>,
}

/// The verdict of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Faster,
    Slower,
    /// The difference is within noise.
    #[serde(rename = "no change")]
    NoChange,
    #[default]
    Unknown,
}

impl Verdict {
    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::NoChange => "no change",
            Verdict::Unknown => "unknown",
        }
    }
}
