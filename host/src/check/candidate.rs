//! A rung on its way through the gates, and the machine that runs it.

use std::sync::Arc;
use std::time::Duration;

use gpu_gemm::{Device, Plan};

use super::request::Request;
use crate::cpu::Team;
use crate::data::{Matrix, Number, QuantisationError};
use crate::measure::Timing;
use crate::measure::gpu::Sustained;
use crate::progress::Progress;
use crate::report::Several;
use crate::run::{Resident, RunError};
use crate::rung::Rung;
use crate::verify::{Failure, Verdict};

/// The request, and where it runs: GPU kernels on the device, CPU rungs by the team.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    pub request: &'a Request,
    pub device: &'a Device,
    pub team: &'a Team,
    pub progress: &'a Progress,
}

/// A rung on its way through the gates.
pub(super) struct Candidate {
    pub rung: Rung,
    /// The plan of a GPU kernel, for every gate, the timing and the report.
    pub plan: Option<Arc<Plan>>,
    pub verdicts: Vec<Verdict>,
    pub failure: Option<Failure>,
    pub corner: Option<Vec<Vec<f64>>>,
    /// What quantising costs, if A and B were quantised.
    pub quantisation: Option<QuantisationError>,
    /// The hash of the C that passed ([`Matrix::hash_of_bits`]).
    pub passed_bits: Option<u64>,
    /// The time of its last run.
    pub time: Duration,
    pub timing: Option<Timing>,
    /// The speed of back-to-back launches, if they were requested.
    pub sustained: Option<Sustained>,
    /// The division of the work on several devices.
    pub several: Option<Several>,
}

impl Candidate {
    /// Plans a GPU kernel on one device; on several, each run makes plans. If there is no plan,
    /// the first run gives the reason.
    pub fn new(rung: Rung, request: &Request, device: &Device) -> Candidate {
        let is_one = device.several().is_none();
        let plan = rung.choice().filter(|_| is_one).and_then(|choice| {
            let plan = choice.plan(request.call(choice.variant), &device.facts());
            plan.ok().map(Arc::new)
        });
        Candidate {
            rung,
            plan,
            verdicts: Vec::new(),
            failure: None,
            corner: None,
            quantisation: None,
            passed_bits: None,
            time: Duration::ZERO,
            timing: None,
            sustained: None,
            several: None,
        }
    }

    pub fn is_right(&self) -> bool {
        self.failure.is_none()
    }

    pub fn judge(&mut self, outcome: Result<Verdict, Failure>) {
        match outcome {
            Ok(verdict) => self.verdicts.push(verdict),
            Err(failure) => self.failure = Some(failure),
        }
    }

    /// Runs the rung, and returns C.
    pub fn run<T: Number>(
        &mut self,
        task: Task<'_>,
        resident: &mut Resident<'_, T>,
    ) -> Result<Matrix<T>, RunError> {
        let (name, progress) = (self.rung.name(), task.progress);
        progress.doing(format!("{name}: running"));
        let plan = &mut self.plan;
        let run = (self.rung).run_on(resident, plan, task.team, &|| progress.step())?;
        self.time = run.time;
        progress.doing(format!("{name}: checking"));
        Ok(run.c)
    }
}
