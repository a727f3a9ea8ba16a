//! The exit codes and their messages.

use std::fmt::Display;
use std::io::{self, Write};

use gpu_gemm::Chooser;

use crate::check::EvaluateError;
use crate::source::FilesError;

/// Every result passes.
pub const PASSED: u8 = 0;
/// A result is wrong, or something failed at run time.
pub const FAILED: u8 = 1;
/// The command line requests something that does not exist.
pub const USAGE: u8 = 2;

/// Why a command ends early, and the exit code for it.
pub struct Stop {
    why: String,
    code: u8,
}

/// Something failed at run time.
pub fn failed(error: impl Display) -> Stop {
    Stop {
        why: error.to_string(),
        code: FAILED,
    }
}

/// The command line requests something that does not exist.
pub fn usage(error: impl Display) -> Stop {
    Stop {
        code: USAGE,
        ..failed(error)
    }
}

impl From<FilesError> for Stop {
    fn from(error: FilesError) -> Stop {
        match error {
            FilesError::File(_) => failed(error),
            _ => usage(error),
        }
    }
}

impl From<EvaluateError> for Stop {
    fn from(error: EvaluateError) -> Stop {
        match error {
            EvaluateError::Scalar { .. }
            | EvaluateError::BaselineWithoutGpu
            | EvaluateError::BaselineOfSeveral
            | EvaluateError::BatchOnSeveral => usage(error),
            _ => failed(error),
        }
    }
}

impl Stop {
    /// Writes the error, and returns the exit code.
    pub fn tell(self, notes: &mut dyn Write) -> u8 {
        // Standard error may be closed: the exit code still tells.
        let _ = writeln!(notes, "error: {}", self.why);
        self.code
    }
}

/// Writes a note on something that the user may not expect.
pub fn note(notes: &mut dyn Write, text: impl Display) {
    // It is no error if the note cannot be written.
    let _ = writeln!(notes, "note: {text}");
}

/// The chooser of kernels. Unusable content of the file of measurements is reported in `notes`.
pub fn noted((chooser, text): (Chooser, Option<String>), notes: &mut dyn Write) -> Chooser {
    if let Some(text) = text {
        note(notes, text);
    }
    chooser
}

/// The exit code, unless the report could not be written. It is no error if the reader closed the
/// pipe.
pub fn finish(written: io::Result<()>, notes: &mut dyn Write, code: u8) -> u8 {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            failed(format!("The report cannot be written: {error}.")).tell(notes)
        }
        _ => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_goes_away_does_not_change_the_exit_code() {
        let gone = || Err(io::ErrorKind::BrokenPipe.into());
        assert_eq!(finish(gone(), &mut io::sink(), PASSED), PASSED);
        assert_eq!(finish(gone(), &mut io::sink(), FAILED), FAILED);
        let full = Err(io::ErrorKind::StorageFull.into());
        assert_eq!(finish(full, &mut io::sink(), PASSED), FAILED);
    }
}
