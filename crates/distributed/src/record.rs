//! What is known about one product on many ranks: the names of the fields are the keys of JSON.

use std::io::{self, Write};

use gpu_gemm::Shape;
use host::bench::Provenance;
use host::statistics;
use serde::Serialize;

use crate::clock::Times;
use crate::model::Machine;
use crate::share_out::Grid;
use crate::volume::Sent;

/// All that a call has found.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub struct Report {
    /// The version of this format.
    pub schema: u32,
    /// When, where and by what it was measured.
    pub provenance: Option<Provenance>,
    /// The MPI library.
    pub mpi: String,
    /// Ranks of the job, and the hosts that they are on.
    pub ranks: usize,
    pub hosts: Vec<String>,
    /// What multiplies on rank 0.
    pub device: String,
    pub reason: String,
    pub records: Vec<Record>,
    /// The file that C was written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

impl Report {
    /// Whether there are results, and all passed.
    pub fn all_passed(&self) -> bool {
        !self.records.is_empty() && self.records.iter().all(|record| record.passed)
    }

    /// Writes it as JSON.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", serde_json::to_string_pretty(self)?)
    }
}

/// How long something took in each run, and how fast that is.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub struct Timing {
    pub times_s: Vec<f64>,
    pub median_s: Option<f64>,
    pub flops_per_s: Option<f64>,
    /// Against the same layout on one rank, where that was measured.
    pub speedup: Option<f64>,
    pub efficiency: Option<f64>,
}

impl Timing {
    /// The times of a product of `flops` operations.
    pub fn new(times_s: Vec<f64>, flops: f64) -> Timing {
        let median_s = (!times_s.is_empty()).then(|| statistics::median(&times_s));
        let seconds = median_s.filter(|seconds| flops > 0.0 && *seconds > 0.0);
        Timing {
            flops_per_s: seconds.map(|seconds| flops / seconds),
            median_s,
            times_s,
            ..Timing::default()
        }
    }

    fn compare(&mut self, ranks: usize, alone: &Timing) {
        let speeds = self.flops_per_s.zip(alone.flops_per_s);
        self.speedup = speeds.map(|(here, alone)| here / alone);
        self.efficiency = self.speedup.map(|speedup| speedup / ranks as f64);
    }
}

/// One layout at one shape on a number of ranks.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub struct Record {
    pub layout: String,
    pub kernel: String,
    pub dtype: String,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub alpha: f64,
    pub beta: f64,
    pub seed: u64,
    pub data: String,
    pub ranks: usize,
    /// How the ranks that multiply are arranged.
    pub grid: Option<Grid>,
    pub threads: usize,
    pub panel: usize,
    /// Whether rank 0 collected C; else each rank kept its block.
    pub gathered: bool,
    #[cfg_attr(test, serde(alias = "proven"))] // its name up to version 4
    pub passed: bool,
    /// What was shown, or what is wrong.
    pub verification: String,
    /// Of rank 0, from all ranks' start until it has C.
    pub whole: Timing,
    /// With A and B where the layout needs them and C where it is computed: of each run the largest
    /// sum of `compute_s` and `wait_s` of any rank.
    pub resident: Timing,
    /// The largest time of any rank in each phase, of the run with the median time.
    pub slowest: Times,
    /// What the model says, and of what machine.
    pub predicted: Option<Times>,
    pub machine: Option<Machine>,
    /// Of all ranks, in bytes: counted, and by the formula.
    pub sent_bytes: u64,
    pub formula_bytes: u64,
    /// In the order of ranks.
    pub per_rank: Vec<RankRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corner: Option<Vec<Vec<f64>>>,
}

impl Record {
    /// Of the product.
    pub(crate) fn shape(&self) -> Shape {
        Shape::new(self.m, self.n, self.k)
    }

    /// By how much the model's time is longer than the measured one, as a part of that.
    pub fn model_error(&self) -> Option<f64> {
        Some(self.predicted?.total() / self.whole.median_s? - 1.0)
    }

    /// Whether every rank sent, in each phase, what the formula says, to the element.
    pub fn sent_as_the_formula_says(&self) -> bool {
        self.per_rank.iter().all(|rank| rank.sent == rank.formula)
    }
}

/// One rank's share.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub struct RankRecord {
    /// Of its block of C.
    pub rows: usize,
    pub columns: usize,
    pub times: Times,
    /// As counted, and by the formula.
    pub sent: Sent,
    pub formula: Sent,
}

/// Speed-ups against one rank, where that was measured.
pub fn compare_with_one_rank(records: &mut [Record]) {
    let mut alone = records.to_vec();
    alone.retain(|record| record.ranks == 1);
    for record in records {
        let is_same = |one: &&Record| one.layout == record.layout && one.shape() == record.shape();
        if let Some(one) = alone.iter().find(is_same) {
            record.whole.compare(record.ranks, &one.whole);
            record.resident.compare(record.ranks, &one.resident);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_ups_are_against_the_same_layout_and_shape_on_one_rank() {
        let record = |layout: &str, ranks, m, seconds| Record {
            layout: layout.to_string(),
            ranks,
            m,
            whole: Timing::new(vec![seconds], 60.0),
            // On one rank nothing travels; on others half of the time.
            resident: Timing::new(vec![if ranks == 1 { seconds } else { seconds / 2.0 }], 60.0),
            ..Record::default()
        };
        let mut records = [
            record("one", 1, 8, 6.0),
            record("one", 4, 8, 2.0),
            record("one", 4, 9, 2.0),
            record("other", 4, 8, 2.0),
        ];
        compare_with_one_rank(&mut records);
        let of = |timing: &Timing| timing.speedup.zip(timing.efficiency);
        assert_eq!(of(&records[0].whole), Some((1.0, 1.0)));
        assert_eq!(of(&records[1].whole), Some((3.0, 0.75)));
        assert_eq!(of(&records[1].resident), Some((6.0, 1.5)));
        for record in &records[2..] {
            assert_eq!((of(&record.whole), of(&record.resident)), (None, None));
        }
    }
}
