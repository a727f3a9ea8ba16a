//! The files that a call writes.

use std::fs;
use std::io;
use std::path::Path;

use host::cli::exit::{FAILED, PROVEN, Stop, failed};
use host::data::Matrix;
use host::npy;
use host::output::Output;

use crate::Element;
use crate::arguments::Arguments;
use crate::plots;
use crate::record::Report;

/// Makes the folder that plots are written to.
pub(super) fn make_folder(folder: &Path) -> Result<(), Stop> {
    let made = fs::create_dir_all(folder);
    let name = folder.display();
    made.map_err(|error| failed(format!("The folder `{name}` cannot be made: {error}.")))
}

/// What the report goes to besides the terminal.
#[derive(Default)]
pub(super) struct Files {
    c: Option<Output>,
    json: Option<Output>,
}

impl Files {
    pub(super) fn open(arguments: &Arguments) -> Result<Files, Stop> {
        let open = |path: &Option<std::path::PathBuf>| {
            path.as_deref()
                .map(Output::open)
                .transpose()
                .map_err(failed)
        };
        if let Some(folder) = &arguments.files.plots {
            make_folder(folder)?;
        }
        Ok(Files {
            c: open(&arguments.matrices.out)?,
            json: open(&arguments.files.json)?,
        })
    }

    /// Writes everything, and returns the exit code.
    pub(super) fn write<T: Element>(
        &mut self,
        arguments: &Arguments,
        report: &mut Report,
        c: Option<&Matrix<T>>,
    ) -> u8 {
        let written = self.try_write(arguments, report, c);
        let code = written.map_or_else(|stop| stop.tell(&mut io::stderr()), |()| PROVEN);
        match report.all_proven() {
            true => code,
            false => FAILED,
        }
    }

    fn try_write<T: Element>(
        &mut self,
        arguments: &Arguments,
        report: &mut Report,
        c: Option<&Matrix<T>>,
    ) -> Result<(), Stop> {
        if let (Some(mut output), Some(c), true) = (self.c.take(), c, report.all_proven()) {
            let path = output.path().display().to_string();
            let written = npy::write(c, &mut output);
            written.map_err(|error| failed(format!("`{path}` cannot be written: {error}.")))?;
            output.commit().map_err(failed)?;
            report.output = Some(path);
        }
        if let Some(folder) = &arguments.files.plots {
            plots::write(report, folder).map_err(failed)?;
        }
        if let Some(mut output) = self.json.take() {
            let path = output.path().display().to_string();
            let written = report.write_json(&mut output);
            written.map_err(|error| failed(format!("`{path}` cannot be written: {error}.")))?;
            output.commit().map_err(failed)?;
        }
        Ok(())
    }
}
