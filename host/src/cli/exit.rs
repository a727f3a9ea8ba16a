//! The exit codes, and what is said with them.

use std::io::{self, Write};

use gpu_gemm::Chooser;

/// Every result is proven right.
pub(super) const PROVEN: u8 = 0;
/// A result is wrong, or something failed at run time.
pub(super) const FAILED: u8 = 1;
/// The command line requests something that does not exist.
pub(super) const USAGE: u8 = 2;

pub(super) fn fail(notes: &mut dyn Write, error: &dyn std::error::Error, code: u8) -> u8 {
    // The notes may have no reader: the exit code still says it.
    let _ = writeln!(notes, "error: {error}");
    code
}

/// The chooser of kernels. Unusable content of the file of measurements is reported in `notes`.
pub(super) fn noted((chooser, note): (Chooser, Option<String>), notes: &mut dyn Write) -> Chooser {
    if let Some(note) = note {
        // A note that cannot be written changes nothing.
        let _ = writeln!(notes, "note: {note}");
    }
    chooser
}

/// The exit code, unless the report could not be written. A reader that has gone away has read
/// enough.
pub(super) fn finish(written: io::Result<()>, notes: &mut dyn Write, code: u8) -> u8 {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let _ = writeln!(notes, "error: The report cannot be written: {error}.");
            FAILED
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
        assert_eq!(finish(gone(), &mut io::sink(), PROVEN), PROVEN);
        assert_eq!(finish(gone(), &mut io::sink(), FAILED), FAILED);
        let full = Err(io::ErrorKind::StorageFull.into());
        assert_eq!(finish(full, &mut io::sink(), PROVEN), FAILED);
    }
}
