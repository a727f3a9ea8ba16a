//! The files that a call writes.

use std::io;

use host::cli::exit::{FAILED, PASSED, Stop, failed};
use host::npy;
use host::output::{Output, make_folder};
use verification::data::Matrix;

use crate::Element;
use crate::arguments::Arguments;
use crate::plots;
use crate::record::Report;

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
            make_folder(folder).map_err(failed)?;
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
        let code = written.map_or_else(|stop| stop.tell(&mut io::stderr()), |()| PASSED);
        match report.all_passed() {
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
        if let (Some(output), Some(c), true) = (self.c.take(), c, report.all_passed()) {
            let path = output.path().display().to_string();
            let written = output.finish(|out| npy::write(c, out));
            written.map_err(failed)?;
            report.output = Some(path);
        }
        if let Some(folder) = &arguments.files.plots {
            plots::write(report, folder).map_err(failed)?;
        }
        if let Some(output) = self.json.take() {
            let written = output.finish(|out| report.write_json(out));
            written.map_err(failed)?;
        }
        Ok(())
    }
}
