//! The report as one JSON object.

use std::io::{self, Write};

use super::record::Report;

pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let text = serde_json::to_string_pretty(report)?;
    writeln!(out, "{text}")
}
