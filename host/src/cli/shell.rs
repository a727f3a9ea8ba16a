//! Completions for shells, and a man page.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_mangen::Man;

use super::arguments::{Arguments, Completions};

/// Writes a script that makes the shell complete options and subcommands.
pub(super) fn completions(asked: &Completions, out: &mut dyn Write) -> io::Result<()> {
    let mut command = Arguments::command();
    let name = command.get_name().to_owned();
    // `generate` panics if it cannot write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(asked.shell, &mut command, name, &mut script);
    out.write_all(&script)
}

/// Writes the man page, as roff.
pub(super) fn man(out: &mut dyn Write) -> io::Result<()> {
    let mut page = Vec::new();
    Man::new(Arguments::command()).render(&mut page)?;
    out.write_all(&page)
}
