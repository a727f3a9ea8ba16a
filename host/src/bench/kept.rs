//! What of a benchmark outlives an interrupt: the shapes that are finished, in the requested
//! files.

use std::error::Error;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::export::{Layout, Opened};
use super::ratios;
use super::results::Results;
use crate::output;

/// The finished results and the files for them, shared with the thread that ends the program.
#[derive(Clone)]
pub struct Kept(Arc<Mutex<State>>);

struct State {
    files: Opened,
    /// Whether the files are written already.
    is_written: bool,
    results: Option<Results>,
    context: Context,
}

/// What the report says besides the results.
#[derive(Clone, Debug)]
pub struct Context {
    /// Why this device.
    pub why: String,
    /// Shapes to measure.
    pub shapes: usize,
    /// Whether standard output belongs to a file, and the report goes to standard error.
    pub is_aside: bool,
}

impl Kept {
    pub fn new(files: Opened, context: Context) -> Kept {
        Kept(Arc::new(Mutex::new(State {
            files,
            is_written: false,
            results: None,
            context,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Results are replaced as a whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another shape is finished.
    pub fn keep(&self, results: &Results) {
        self.state().results = Some(results.clone());
    }

    /// Writes the files, each in one step.
    ///
    /// # Errors
    ///
    /// One cannot be written, or drawn; those before it are there.
    pub fn write(&self, results: &Results) -> Result<(), Box<dyn Error>> {
        let mut state = self.state();
        state.is_written = true;
        state.files.write(results)
    }

    /// Writes the files with what is finished, for a process that is about to end: the thread
    /// that measures waits for the end if it comes here.
    pub fn write_finished(&self) {
        let mut state = self.state();
        if !std::mem::replace(&mut state.is_written, true) {
            let mut stderr = io::stderr();
            // There may be no readers.
            let _ = match state.context.is_aside {
                true => state.tell(&mut io::stderr(), &mut stderr),
                false => match output::unlocked_stdout() {
                    Ok(mut stdout) => state.tell(&mut stdout, &mut stderr),
                    Err(error) => Err(error),
                },
            };
        }
        // Locked for good.
        std::mem::forget(state);
    }
}

impl State {
    fn tell(&mut self, out: &mut dyn Write, notes: &mut dyn Write) -> io::Result<()> {
        let finished = self.results.as_ref();
        let Some(results) = finished.filter(|results| !results.kernels().is_empty()) else {
            return Ok(());
        };
        let (finished, shapes) = (results.sizes.len(), self.context.shapes);
        if !self.files.is_empty() {
            match self.files.write(results) {
                Ok(()) => writeln!(
                    notes,
                    "note: {finished} of {shapes} shapes were finished, and the files hold them."
                )?,
                Err(error) => writeln!(notes, "error: {error}")?,
            }
        }
        match self.files.layout() {
            // A table for each shape, written when it was finished; or one shape.
            Layout::Ladder(_) | Layout::Report => Ok(()),
            Layout::Ratios => ratios::write(results, &self.context.why, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::export::Exports;
    use crate::bench::samples::sample;

    #[test]
    fn what_is_finished_is_in_the_files_and_in_the_table_of_ratios() {
        let folder = tempfile::tempdir().unwrap();
        let json = folder.path().join("b.json");
        let exports = Exports {
            json: Some(json.clone()),
            ..Exports::default()
        };
        let context = Context {
            why: "chosen with --device".to_string(),
            shapes: 3,
            is_aside: false,
        };
        let told = |kept: &Kept| {
            let (mut out, mut notes) = (Vec::new(), Vec::new());
            kept.state().tell(&mut out, &mut notes).unwrap();
            [out, notes].map(|text| String::from_utf8(text).unwrap())
        };
        let kept = Kept::new(exports.open(Layout::Ratios).unwrap(), context);
        // Nothing is finished.
        assert_eq!(told(&kept), ["", ""]);
        assert!(!json.exists());

        kept.keep(&sample());
        let [out, notes] = told(&kept);
        let mut table = Vec::new();
        ratios::write(&sample(), "chosen with --device", &mut table).unwrap();
        assert_eq!(out.as_bytes(), table);
        let note = "note: 2 of 3 shapes were finished, and the files hold them.\n";
        assert_eq!(notes, note);
        let text = std::fs::read_to_string(&json).unwrap();
        assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), sample());
    }
}
