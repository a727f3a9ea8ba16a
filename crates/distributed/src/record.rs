//! What is known about one product on many ranks: the names of the fields are the keys of JSON and
//! the columns of CSV, and do not change.

use gpu_gemm::Shape;
use host::bench::Provenance;
use serde::{Deserialize, Serialize};

use crate::clock::Times;
use crate::model::Machine;
use crate::share_out::Grid;
use crate::volume::Sent;

/// All that a call has found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// A report from its JSON.
    ///
    /// # Errors
    ///
    /// It is none, something in it is not proven, or a rank sent what the formulas do not say.
    pub fn read(text: &str) -> Result<Report, String> {
        let report: Report = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if !report.all_proven() {
            return Err("a layout was not proven right".to_string());
        }
        match report.records.iter().all(Record::sent_as_the_formula_says) {
            true => Ok(report),
            false => Err("a rank sent what the formulas do not say".to_string()),
        }
    }

    /// What was measured of a layout on so many ranks, at the first shape.
    pub fn record(&self, layout: &str, ranks: usize) -> Option<&Record> {
        self.records
            .iter()
            .find(|record| record.layout == layout && record.ranks == ranks)
    }

    /// Whether there are results, and all are proven right.
    pub fn all_proven(&self) -> bool {
        !self.records.is_empty() && self.records.iter().all(|record| record.proven)
    }
}

/// Whether a shape is the one that was asked for, or grows with the ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scaling {
    /// The same product, whatever the number of ranks.
    #[default]
    Strong,
    /// As many flops for each rank, whatever their number.
    Weak,
}

impl Scaling {
    /// What so many ranks multiply where one multiplies this shape: for weak scaling one of so many
    /// times as many flops, but for rounding.
    pub(crate) fn shape(self, of_one: Shape, ranks: usize) -> Shape {
        let factor = match self {
            Scaling::Strong => 1.0,
            Scaling::Weak => (ranks as f64).cbrt(),
        };
        let grown = |size: usize| (size as f64 * factor).round() as usize;
        Shape::new(grown(of_one.m), grown(of_one.n), grown(of_one.k))
    }
}

/// One layout at one shape on so many ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    pub scaling: Scaling,
    /// How the ranks that multiply are arranged.
    pub grid: Option<Grid>,
    pub threads: usize,
    pub panel: usize,
    /// Whether rank 0 collected C; else each rank kept its block.
    pub gathered: bool,
    pub proven: bool,
    /// What was shown, or what is wrong.
    pub verification: String,
    /// Of rank 0, from all ranks' start until it has C, in seconds.
    pub times_s: Vec<f64>,
    pub time_median_s: Option<f64>,
    pub flops_per_s: Option<f64>,
    /// Against the same layout on one rank, where that was measured.
    pub speedup: Option<f64>,
    pub efficiency: Option<f64>,
    /// The same with A and B where the layout needs them and C where it is computed: of each run
    /// the largest sum of `compute_s` and `wait_s` of any rank, in the order of `times_s`.
    #[serde(default)]
    pub resident_times_s: Vec<f64>,
    pub resident_median_s: Option<f64>,
    pub resident_flops_per_s: Option<f64>,
    pub resident_speedup: Option<f64>,
    pub resident_efficiency: Option<f64>,
    /// The largest time of any rank in each phase, of the run with the median time.
    pub slowest: Times,
    /// The same of each run, in the order of `times_s`.
    pub slowest_of_runs: Vec<Times>,
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
        Some(self.predicted?.total() / self.time_median_s? - 1.0)
    }

    /// Whether every rank sent, in each phase, what the formula says, to the element.
    pub fn sent_as_the_formula_says(&self) -> bool {
        self.per_rank.iter().all(|rank| rank.sent == rank.formula)
    }
}

/// One rank's share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    let alone: Vec<Record> = records
        .iter()
        .filter(|record| record.ranks == 1)
        .cloned()
        .collect();
    for record in records {
        let is_same = |one: &&Record| {
            one.layout == record.layout
                && one.scaling == record.scaling
                && one.scaling.shape(one.shape(), record.ranks) == record.shape()
        };
        let one = alone.iter().find(is_same);
        let ratio = |speed: fn(&Record) -> Option<f64>| {
            let speeds = one.and_then(speed).zip(speed(record));
            speeds.map(|(one, here)| here / one)
        };
        let (whole, resident) = (
            ratio(|record| record.flops_per_s),
            ratio(|record| record.resident_flops_per_s),
        );
        let ranks = record.ranks as f64;
        if let Some(speedup) = whole {
            (record.speedup, record.efficiency) = (Some(speedup), Some(speedup / ranks));
        }
        if let Some(speedup) = resident {
            record.resident_speedup = Some(speedup);
            record.resident_efficiency = Some(speedup / ranks);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_ups_are_against_the_same_layout_on_one_rank() {
        let record = |layout: &str, ranks, scaling, m, flops_per_s| Record {
            layout: layout.to_string(),
            ranks,
            scaling,
            m,
            flops_per_s: Some(flops_per_s),
            // On one rank nothing travels; on others the half of the time.
            resident_flops_per_s: Some(if ranks == 1 { 1.0 } else { 2.0 } * flops_per_s),
            ..Record::default()
        };
        let mut records = [
            record("one", 1, Scaling::Strong, 8, 10.0),
            record("one", 4, Scaling::Strong, 8, 30.0),
            record("one", 4, Scaling::Strong, 9, 30.0),
            record("other", 4, Scaling::Strong, 8, 30.0),
            record("one", 1, Scaling::Weak, 2, 5.0),
            record("one", 1, Scaling::Weak, 8, 10.0),
            record("one", 8, Scaling::Weak, 16, 60.0),
        ];
        compare_with_one_rank(&mut records);
        let resident = |record: &Record| record.resident_speedup.zip(record.resident_efficiency);
        assert_eq!(resident(&records[0]), Some((1.0, 1.0)));
        assert_eq!(resident(&records[1]), Some((6.0, 1.5)));
        assert_eq!(resident(&records[3]), None);
        assert_eq!(resident(&records[6]), Some((12.0, 1.5)));
        let found = records.map(|record| record.speedup.zip(record.efficiency));
        let expected = [
            Some((1.0, 1.0)),
            Some((3.0, 0.75)),
            None,
            None,
            Some((1.0, 1.0)),
            Some((1.0, 1.0)),
            Some((6.0, 0.75)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_weak_shape_has_as_many_flops_for_each_rank() {
        let shape = Shape::new(1000, 2000, 500);
        assert_eq!(Scaling::Strong.shape(shape, 8), shape);
        assert_eq!(Scaling::Weak.shape(shape, 1), shape);
        let grown = Scaling::Weak.shape(shape, 8);
        assert_eq!(grown, Shape::new(2000, 4000, 1000));
        let ratio = Scaling::Weak.shape(shape, 3).flops() / shape.flops();
        assert!((ratio / 3.0 - 1.0).abs() < 1e-2);
    }
}
