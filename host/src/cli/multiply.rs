//! The program without a subcommand: multiplies, checks and times, and writes a report.

use std::io::{self, Write};
use std::thread;

use super::arguments::Arguments;
use super::exit::{FAILED, PASSED, Stop, failed, finish, note, noted, usage};
use super::groups;
use super::matrices::{Matrices, default_size, matrices};
use super::running::{self, Math};
use crate::check::{self, EvaluateError, Request};
use crate::data::Storage;
use crate::epilogue::Epilogue;
use crate::measure::cublas;
use crate::output::{self, Output};
use crate::report::{Format, Report};
use crate::rung::{AUTO, Asked, Rung};
use crate::select;
use crate::source::Source;
use gpu_gemm::{Chooser, DataType, Device, DeviceChoice, Opened};

pub(super) fn multiply(
    arguments: &Arguments,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<u8, Stop> {
    let division = arguments.grouped.groups.as_ref();
    let of_kernels = match division {
        Some(_) => DataType::BF16,
        None => select::type_for(None, &arguments.kernel),
    };
    let scales = arguments.quantised.scales;
    let matrices = matrices(&arguments.problem, &arguments.matrices, of_kernels, scales)?;
    let data_type = matrices.data_type;
    let names = match &arguments.kernel[..] {
        [] if arguments.fused.epilogue.is_some() || division.is_some() || scales.is_some() => {
            &[AUTO.to_string()]
        }
        [] => &[select::default_for(data_type).to_string()],
        names => names,
    };
    let asked = select::ask(names, data_type).map_err(usage)?;
    let math = arguments.running.math;
    let mut asked = running::allowed(asked, names, math, notes)?;
    let options = &arguments.matrices;
    if options.out.is_some() && asked.len() != 1 {
        let count = asked.len();
        return Err(usage(format!(
            "--out takes the C of one kernel, but {count} are named; name one."
        )));
    }
    // Opened before anything that takes long: a file that cannot be written fails at once.
    let output = options.out.as_deref().map(Output::open).transpose();
    let mut output = output.map_err(failed)?;
    if let Some(text) = &matrices.note {
        note(notes, text);
    }
    let (device, _) = arguments.running.device_for(&asked);
    let with_cublas = matches!(device, DeviceChoice::Auto | DeviceChoice::Cuda(_))
        && arguments.running.baseline != check::Baseline::None;
    let opened = thread::scope(|scope| {
        if with_cublas {
            // cuBLAS has hundreds of megabytes: it is read from disk while the driver starts.
            scope.spawn(cublas::find);
        }
        Device::open(device)
    });
    let opened = opened.map_err(failed)?;
    let fastest = fastest_for_files(arguments, &matrices, &opened);
    if let Some(rung) = fastest {
        asked = vec![rung];
    }
    let is_native = asked.iter().all(Asked::is_native);
    let storage = match &matrices.source {
        // They are transposed as they are read, and a CPU rung takes them as they are then.
        Source::Files(files) if is_native => Storage {
            batch: files.batch(),
            ..Storage::COMPACT
        },
        Source::Files(files) => Storage {
            batch: files.batch(),
            ..arguments.problem.operands.storage(&asked)?
        },
        Source::Filled(_) => arguments.problem.operands.storage(&asked)?,
    };
    let mut effort = arguments.running.effort();
    if is_native && options.out.is_some() {
        effort.runs = effort.runs.or(Some(1));
    }
    let size = default_size(&asked, &opened.device);
    let mut shape = arguments.problem.shape(&matrices.source, size);
    let mut storage = storage;
    if let Some(division) = division {
        let m = arguments.problem.dimensions.m;
        let groups = division.groups(m, shape.m, arguments.running.seed);
        let groups = groups.map_err(usage)?;
        if arguments.running.baseline.needs_gpu() {
            return Err(usage(
                "--groups is compared with no library: leave out --baseline.",
            ));
        }
        (shape.m, storage.groups) = (groups.total(), Some(groups));
    }
    let call = storage.call(shape, data_type.inputs);
    let (fused, device) = (arguments.fused, &opened.device);
    let asked = fused.able(asked, names, (data_type, device), notes)?;
    let call_options = (&arguments.problem, &storage, &arguments.running);
    let quantised = arguments.quantised;
    let asked = quantised.able(asked, names, call_options, device, notes)?;
    let asked = running::runnable(asked, device, notes)?;
    let chooser = math.chooser(noted(Chooser::of(&opened.device), notes));
    let variants = match scales {
        Some(scales) => scales.variants(),
        None => fused.epilogue.map(Epilogue::variants),
    };
    let rung = |asked: &Asked| asked.rung(&chooser, data_type, call, variants);
    let rungs = match division {
        Some(_) => vec![groups::rung(&chooser, data_type, call, device)?],
        None => asked.iter().filter_map(rung).collect(),
    };
    let request = Request {
        rungs,
        data_type,
        shape,
        alpha: arguments.problem.operands.alpha,
        beta: arguments.problem.operands.beta,
        storage,
        source: matrices.source,
        seed: arguments.running.seed,
        corner: options.show,
        effort,
        origin: arguments.running.origin(&opened.device)?,
        baseline: arguments.running.baseline,
        epilogue: fused.epilogue,
        scales,
        tensor_cores: math == Math::Tf32,
        cpu: arguments.native.settings(),
    };
    let writer = output.as_mut().map(|output| output as &mut dyn Write);
    let (mut report, result) = check::evaluate(&opened, &request, writer);
    if let Some(Rung::Cpu(rung)) = fastest {
        let (name, why) = (rung.name, &opened.reason);
        report.reason = format!("`{name}` is the fastest for files without a GPU. {why}");
    }
    let written = match output {
        Some(output) if result.is_ok() => put_in_place(output, &mut report, notes),
        _ => PASSED,
    };
    let code = match options.out.as_deref().is_some_and(output::is_stdout) {
        // On standard output, the report would follow the bytes of C.
        true => {
            let mut text = Vec::new();
            let code = conclude(&report, result, arguments.format, &mut text, notes);
            finish(notes.write_all(&text), &mut io::sink(), code)
        }
        false => conclude(&report, result, arguments.format, out, notes),
    };
    Ok(code.max(written))
}

/// What multiplies files fastest, where no kernel is named: `auto` on a GPU; without one, and where
/// no device is named, a CPU rung.
fn fastest_for_files(arguments: &Arguments, matrices: &Matrices, opened: &Opened) -> Option<Asked> {
    let is_named = !arguments.kernel.is_empty() || arguments.fused.epilogue.is_some();
    if is_named || matches!(matrices.source, Source::Filled(_)) {
        return None;
    }
    let running = &arguments.running;
    let is_by_default = running.device == DeviceChoice::Auto && !running.baseline.needs_gpu();
    match opened.device.gpu() {
        Some(_) => Some(Rung::Auto(())),
        None if is_by_default => select::fastest_on_cpu(matrices.data_type),
        None => None,
    }
}

/// Puts the requested file in place, if its content passes.
fn put_in_place(output: Output, report: &mut Report, notes: &mut dyn Write) -> u8 {
    let path = output.path().display().to_string();
    if !report.all_passed() {
        note(
            notes,
            format!("`{path}` is not written, because its C did not pass."),
        );
        return FAILED;
    }
    match output.commit() {
        Ok(()) => {
            report.output = Some(path);
            PASSED
        }
        Err(error) => failed(error).tell(notes),
    }
}

/// Writes the report, and returns the exit code.
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
        Ok(()) if report.all_passed() => PASSED,
        Ok(()) => {
            if report.results.is_empty() {
                note(
                    notes,
                    "Nothing was multiplied: no kernel takes this shape and type on this device.",
                );
            }
            FAILED
        }
        Err(error) => Stop::from(error).tell(notes),
    };
    finish(written, notes, verdict)
}

#[cfg(test)]
mod tests {
    use super::super::exit::USAGE;
    use super::*;
    use crate::report;

    #[test]
    fn only_a_complete_report_of_passed_results_exits_with_0() {
        let record = |passed| report::Record {
            passed,
            ..report::Record::default()
        };
        let concluded = |passed: &[bool], result| {
            let report = Report {
                results: passed.iter().map(|&passed| record(passed)).collect(),
                ..Report::default()
            };
            let (mut out, mut notes) = (io::sink(), io::sink());
            conclude(&report, result, Format::Json, &mut out, &mut notes)
        };
        assert_eq!(concluded(&[true, true], Ok(())), PASSED);
        assert_eq!(concluded(&[true, false], Ok(())), FAILED);
        assert_eq!(concluded(&[], Ok(())), FAILED);
        let crash = || EvaluateError::from(gpu_gemm::DeviceError::NoDevice);
        assert_eq!(concluded(&[true], Err(crash())), FAILED);
        assert_eq!(concluded(&[], Err(crash())), FAILED);
        let without_gpu = Err(EvaluateError::BaselineWithoutGpu);
        assert_eq!(concluded(&[], without_gpu), USAGE);
    }
}
