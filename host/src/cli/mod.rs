//! The command line: its options, and the exit code.

mod arguments;
mod bench;
pub mod environment;
pub mod exit;
mod explain;
mod fused;
mod groups;
pub mod matrices;
mod multiply;
pub mod native;
mod opencl;
pub mod operands;
mod ptx;
mod running;
pub mod sizes;
mod tune;
pub mod values;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

pub use arguments::Arguments;
use arguments::Command;
use exit::{PASSED, finish, note};

use crate::{cpu, doctor, interrupt, report};

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    if let Err(error) = interrupt::watch() {
        note(
            &mut io::stderr(),
            format!(
                "Ctrl-C may leave a temporary file behind, since it cannot be handled: {error}."
            ),
        );
    }
    ExitCode::from(run(
        std::env::args_os(),
        &mut io::stdout().lock(),
        &mut io::stderr(),
    ))
}

/// Runs a command line. It writes the report to `out`, and notes and errors to `notes`. It is no
/// error if a reader of either closes it early.
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
    let ended = match &arguments.command {
        Some(Command::Bench(arguments)) => bench::bench(arguments, out, notes),
        Some(Command::Explain(arguments)) => explain::explain(arguments, out, notes),
        Some(Command::Tune(arguments)) => tune::tune(arguments, out, notes),
        Some(Command::Doctor) => Ok(finish(doctor::examine(out), notes, PASSED)),
        Some(Command::Ptx(asked)) => ptx::ptx(asked, out, notes),
        Some(Command::OpenCl(asked)) => opencl::opencl(asked, out, notes),
        Some(Command::Completions { shell }) => {
            Ok(finish(arguments::completions(*shell, out), notes, PASSED))
        }
        None if arguments.list => {
            let list = report::List::of(gpu_gemm::KERNELS, cpu::RUNGS);
            let written = list.write(arguments.format, out);
            Ok(finish(written, notes, PASSED))
        }
        None => multiply::multiply(&arguments, out, notes),
    };
    ended.unwrap_or_else(|stop| stop.tell(notes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use gpu_gemm::{DeviceChoice, Transpose};

    use crate::check::Baseline;
    use crate::report::Format;
    use operands::OperandArguments;

    fn parse(arguments: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(std::iter::once("rust-gemm").chain(arguments.split_whitespace()))
    }

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_defaults_are_as_documented() {
        let arguments = parse("").unwrap();
        assert_eq!(arguments.kernel, [""; 0]);
        assert_eq!(crate::select::DEFAULT, "double-buffer"); // as the help says
        assert_eq!(arguments.problem.dimensions.size, None);
        assert_eq!(arguments.problem.dtype, None);
        let OperandArguments { alpha, beta, .. } = arguments.problem.operands;
        assert_eq!((alpha, beta), (1.0, 0.0));
        assert_eq!(arguments.problem.operands.transposes(), [Transpose::No; 2]);
        assert_eq!(arguments.running.device, DeviceChoice::Auto);
        assert_eq!(arguments.format, Format::Table);
        assert_eq!(arguments.running.baseline, Baseline::Auto);
        assert_eq!(arguments.native.settings(), cpu::Settings::default());
        assert_eq!(cpu::CUTOFF, 1024); // as the help says
    }
}
