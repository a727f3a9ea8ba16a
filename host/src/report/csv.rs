//! Records as lines of comma-separated values. The columns are the fields of [`Record`], less
//! those that are lists.

use std::io;

use serde::Serialize;

use super::record::Record;

/// Lines of records, each after other fields, with the names `columns`.
pub fn lines<'a, Before: Serialize>(
    columns: &[&str],
    lines: impl IntoIterator<Item = (Before, &'a Record)>,
) -> Result<String, csv::Error> {
    // The `csv` crate writes no header for fields in a nested structure.
    let mut header = csv::Writer::from_writer(Vec::new());
    header.serialize(Record::default())?;
    let bytes = header.into_inner().map_err(|error| error.into_error())?;
    let mut reader = csv::Reader::from_reader(&bytes[..]);
    let of_record = reader.headers()?.clone();
    let mut writer = csv::WriterBuilder::new()
        .has_headers(false)
        .from_writer(Vec::new());
    writer.write_record(columns.iter().copied().chain(&of_record))?;
    for (before, record) in lines {
        writer.serialize((before, record.without_lists()))?;
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Record {
    /// The record without the fields that JSON may leave out, which would shift the columns.
    fn without_lists(&self) -> Record {
        Record {
            times_s: Vec::new(),
            corner: None,
            several: None,
            sustained: None,
            reads_in_place: None,
            ..self.clone()
        }
    }
}

pub(super) fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
