//! The report's results as lines of comma-separated values.

use std::io::{self, Write};

use super::record::Report;

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    for record in &report.results {
        writer.serialize(record).map_err(io_error)?;
    }
    writer.flush()
}

pub(super) fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
