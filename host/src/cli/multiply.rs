//! What the program does without a subcommand: multiplies, proves and times, and writes a report.

use std::io::Write;

use super::{Arguments, FAILED, PROVEN, USAGE, fail, finish};
use crate::cpu;
use crate::device::{Device, DeviceChoice};
use crate::evaluate::{self, Baseline, EvaluateError, Request};
use crate::measure::Effort;
use crate::problem::Shape;
use crate::report::{Format, Report};
use crate::select;

pub(super) fn multiply(arguments: &Arguments, out: &mut dyn Write, notes: &mut dyn Write) -> u8 {
    let (kernels, rungs) = (gpu_kernels::KERNELS, cpu::RUNGS);
    let rungs = match select::select(kernels, rungs, &arguments.kernel, arguments.dtype) {
        Ok(rungs) => rungs,
        Err(error) => return fail(notes, &error, USAGE),
    };
    let size = arguments.size;
    let request = Request {
        rungs,
        data_type: arguments.dtype,
        shape: Shape {
            m: arguments.m.unwrap_or(size),
            n: arguments.n.unwrap_or(size),
            k: arguments.k.unwrap_or(size),
        },
        alpha: arguments.alpha,
        beta: arguments.beta,
        seed: arguments.seed,
        effort: Effort {
            runs: arguments.runs,
            warmup: arguments.warmup,
        },
        baseline: arguments.baseline,
        tensor_cores: false,
        cpu: arguments.cpu(),
    };
    // CPU rungs need no device, and so none that might not open.
    let device = match request.is_native() && request.baseline != Baseline::Cublas {
        true => DeviceChoice::Simulator,
        false => arguments.device,
    };
    let opened = match Device::open(device) {
        Ok(opened) => opened,
        Err(error) => return fail(notes, &error, FAILED),
    };
    let (report, result) = evaluate::evaluate(&opened, &request);
    conclude(&report, result, arguments.format, out, notes)
}

/// Writes what is known, and says by the exit code what it comes to.
fn conclude(
    report: &Report,
    result: Result<(), EvaluateError>,
    format: Format,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> u8 {
    // An error before the first result leaves nothing to report.
    let written = match (&result, report.results.is_empty()) {
        (Err(_), true) => Ok(()),
        _ => report.write(format, out),
    };
    let verdict = match result {
        Ok(()) if report.all_proven() => PROVEN,
        Ok(()) => FAILED,
        Err(error) => {
            let asked_in_vain = matches!(
                error,
                EvaluateError::Scalar { .. } | EvaluateError::BaselineWithoutGpu
            );
            fail(notes, &error, if asked_in_vain { USAGE } else { FAILED })
        }
    };
    finish(written, notes, verdict)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::report;

    #[test]
    fn only_a_complete_report_of_proven_results_exits_with_0() {
        let record = |proven| report::Record {
            proven,
            ..report::Record::default()
        };
        let concluded = |proven: &[bool], result| {
            let report = Report {
                schema: 1,
                backend: "simulator",
                device: String::new(),
                reason: String::new(),
                cublas: None,
                results: proven.iter().map(|&proven| record(proven)).collect(),
                yardsticks: Vec::new(),
            };
            conclude(
                &report,
                result,
                Format::Csv,
                &mut io::sink(),
                &mut io::sink(),
            )
        };
        assert_eq!(concluded(&[true, true], Ok(())), PROVEN);
        assert_eq!(concluded(&[true, false], Ok(())), FAILED);
        let crash = || EvaluateError::Device(crate::device::DeviceError::NoDevice);
        assert_eq!(concluded(&[true], Err(crash())), FAILED);
        assert_eq!(concluded(&[], Err(crash())), FAILED);
        assert_eq!(
            concluded(&[], Err(EvaluateError::BaselineWithoutGpu)),
            USAGE
        );
    }
}
