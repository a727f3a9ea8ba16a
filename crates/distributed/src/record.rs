//! What is known about one product on many ranks: the names of the fields are the keys of JSON and
//! the columns of CSV, and do not change.

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
