//! The command line: its options, and the exit code.

mod arguments;
mod bench;
mod exit;
mod explain;
mod matrices;
mod multiply;
mod ptx;
mod running;
mod tune;
mod values;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

pub use arguments::Arguments;
use arguments::Command;
use exit::{PROVEN, finish};

use crate::{cpu, doctor, interrupt, report};

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    if let Err(error) = interrupt::watch() {
        // A note that cannot be written changes nothing.
        let _ = writeln!(
            io::stderr(),
            "note: Ctrl-C may leave a temporary file behind, as it cannot be watched for: {error}."
        );
    }
    ExitCode::from(run(
        std::env::args_os(),
        &mut io::stdout().lock(),
        &mut io::stderr(),
    ))
}

/// Runs a command line, the report going to `out` and notes and errors to `notes`. If a reader
/// of either goes away early, that changes nothing.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> u8 {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let text = error.render();
            let written = match error.use_stderr() {
                true => write!(notes, "{text}"),
                false => write!(out, "{text}"),
            };
            return finish(written, notes, error.exit_code() as u8);
        }
    };
    match &arguments.command {
        Some(Command::Bench(arguments)) => return bench::bench(arguments, out, notes),
        Some(Command::Explain(arguments)) => return explain::explain(arguments, out, notes),
        Some(Command::Tune(arguments)) => return tune::tune(arguments, out, notes),
        Some(Command::Doctor) => {
            let written = doctor::examine(out);
            return finish(written, notes, PROVEN);
        }
        Some(Command::Ptx(asked)) => return ptx::ptx(asked, out, notes),
        None => {}
    }
    if arguments.list {
        let kernels = report::list(gpu_gemm::gpu_kernels::KERNELS);
        let written = writeln!(out, "{kernels}\n\n{}", report::list_cpu(cpu::RUNGS));
        return finish(written, notes, PROVEN);
    }
    multiply::multiply(&arguments, out, notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use gpu_gemm::DeviceChoice;

    use crate::prove::Baseline;
    use crate::report::Format;
    use exit::USAGE;

    fn parse(arguments: &[&str]) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(std::iter::once(&"host").chain(arguments))
    }

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_defaults_are_as_documented() {
        let arguments = parse(&[]).unwrap();
        assert_eq!(arguments.kernel, [""; 0]);
        assert_eq!(crate::select::DEFAULT, "double-buffer"); // as the help says
        assert_eq!(arguments.problem.size, 1024);
        assert_eq!(arguments.problem.dtype, None);
        assert_eq!(
            (arguments.problem.alpha, arguments.problem.beta),
            (1.0, 0.0)
        );
        assert_eq!(arguments.running.device, DeviceChoice::Auto);
        assert_eq!(arguments.format, Format::Table);
        assert_eq!(arguments.running.baseline, Baseline::Auto);
        assert_eq!(arguments.cpu(), cpu::Settings::default());
    }

    #[test]
    fn kernels_are_separated_by_commas_and_scalars_may_be_negative() {
        let arguments = parse(&[
            "--kernel",
            "naive,tiled",
            "--alpha",
            "-1.5",
            "--beta=-2",
            "--m",
            "3",
        ])
        .unwrap();
        assert_eq!(arguments.kernel, ["naive", "tiled"]);
        assert_eq!(
            (arguments.problem.alpha, arguments.problem.beta),
            (-1.5, -2.0)
        );
        assert_eq!((arguments.problem.m, arguments.problem.n), (Some(3), None));
    }

    #[test]
    fn nonsense_is_refused_with_the_exit_code_for_usage() {
        for arguments in [
            &["--size", "-1"][..],
            &["--runs", "0"],
            &["--threads", "0"],
            &["--schedule", "fair"],
            &["--dtype", "f16"],
            &["--device", "gpu"],
            &["--format", "xml"],
            &["--unknown"],
            &["doctor", "--size", "3"],
            &["--a", "a.npy"],
            &["--b", "b.npy"],
            &["--c", "c.npy"],
            &["--a", "a.npy", "--b", "b.npy", "--size", "3"],
            &["--a", "a.npy", "--b", "b.npy", "--data", "normal"],
            &["--data", "zeros"],
            &["--show", "0"],
        ] {
            assert_eq!(
                parse(arguments).unwrap_err().exit_code(),
                i32::from(USAGE),
                "{arguments:?}"
            );
        }
    }
}
