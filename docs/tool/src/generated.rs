//! Every file that is generated, or has generated parts: the one list that the command writes and
//! the test compares.

use std::fs;

use host::listing::record;

use crate::chapters::{self, Chapter};
use crate::parts::{Part, refill};
use crate::repository::{at_root, read};
use crate::{
    by_opencl, divided, excerpts, figures, halves, ladder, listings, machine_code, many_ranks,
    native, of_file, overviews, plots, sample, stalls, timelines, traffic,
};

/// The command that writes every generated file.
pub const COMMAND: &str = "cargo run -p book";

/// The source of a generated file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The sources, the table of kernels, the results.
    Sources,
    /// The kernels as the build script compiled them: missing where it found no libNVVM.
    Build,
}

/// Makes a file's text from its present one.
type Make = Box<dyn Fn(&str) -> Result<String, String> + Send>;

/// A generated file, or one with generated parts.
pub struct Generated {
    /// The file, relative to the root of the repository.
    pub path: String,
    pub origin: Origin,
    make: Make,
}

impl Generated {
    fn new(
        path: String,
        origin: Origin,
        make: impl Fn(&str) -> Result<String, String> + Send + 'static,
    ) -> Generated {
        Generated {
            path,
            origin,
            make: Box::new(make),
        }
    }

    /// The text of the file, and the text it should have. A missing file is empty.
    fn found_and_expected(&self) -> Result<(String, String), String> {
        let found = fs::read_to_string(at_root(&self.path)).unwrap_or_default();
        let expected = (self.make)(&found).map_err(|error| format!("{}: {error}", self.path))?;
        Ok((found, expected))
    }

    /// Writes the file if it is out of date, and returns whether it was.
    pub fn write(&self) -> Result<bool, String> {
        let (found, expected) = self.found_and_expected()?;
        if found == expected {
            return Ok(false);
        }
        fs::write(at_root(&self.path), expected)
            .map_err(|error| format!("{}: {error}", self.path))?;
        Ok(true)
    }

    /// Checks that the file is up to date.
    pub fn check(&self) -> Result<(), String> {
        let (found, expected) = self.found_and_expected()?;
        if found == expected {
            return Ok(());
        }
        let mut lines = found.lines().zip(expected.lines());
        let (found, expected) = lines
            .find(|(found, expected)| found != expected)
            .unwrap_or(("(the end, or an end too early)", ""));
        Err(format!(
            "{} is out of date. `{COMMAND}` writes it.\nIt says\n{found}\nand should say\n{expected}",
            self.path
        ))
    }
}

/// Every generated file: chapters, README, plots. A chapter that shows compiled kernels
/// is listed twice.
pub fn all() -> Result<Vec<Generated>, String> {
    let mut all = Vec::new();
    let path = record::FILE.to_string();
    all.push(Generated::new(path, Origin::Build, |old| {
        Ok(machine_code::count()?.unwrap_or_else(|| old.to_string()))
    }));
    for Chapter { file, text, .. } in chapters::all()? {
        let path = format!("{}/{file}", chapters::FOLDER);
        all.push(page(path.clone(), Origin::Sources));
        if listings::KINDS
            .iter()
            .any(|kind| text.contains(&format!("<!-- {kind} ")))
        {
            all.push(page(path, Origin::Build));
        }
    }
    all.push(page("README.md".to_string(), Origin::Sources));
    for (name, draw) in plots::ALL {
        let path = format!("{}/pictures/{name}.svg", chapters::FOLDER);
        all.push(Generated::new(path, Origin::Sources, move |_| draw()));
    }
    for name in timelines::ALL {
        let path = format!("{}/pictures/{name}.svg", chapters::FOLDER);
        let draw = move |_: &str| timelines::picture(name);
        all.push(Generated::new(path, Origin::Sources, draw));
    }
    Ok(all)
}

/// A page written by hand, with generated parts.
fn page(path: String, origin: Origin) -> Generated {
    Generated::new(path.clone(), origin, move |_| {
        let text = read(&at_root(&path))?;
        match origin {
            Origin::Sources => refill(&text, from_sources),
            Origin::Build if listings::why_absent().is_some() => Ok(text),
            Origin::Build => refill(&text, listings::quote),
        }
    })
}

/// Makes a part from the sources or the results; `None` for a part of compiled code.
fn from_sources(part: Part<'_>) -> Result<Option<String>, String> {
    match part.kind {
        "figure" => figures::figure(part.arguments).map(Some),
        "in" => of_file::figure(part.arguments).map(Some),
        "range" => match part.arguments {
            "divided" => divided::range().map(Some),
            of_table => halves::range(of_table).map(Some),
        },
        "sample" => sample::report(part.arguments, part.old).map(Some),
        "stages" => sample::stages().map(Some),
        "seconds" => sample::seconds(part.arguments).map(Some),
        "shapes" => figures::of_shapes(part.arguments).map(Some),
        "code" => machine_code::figure(part.arguments).map(Some),
        "issued" => machine_code::issued(part.arguments).map(Some),
        "law" => machine_code::law().map(Some),
        "waits" => stalls::waits(part.arguments).map(Some),
        "stalls" => stalls::all().map(Some),
        "profiled" => stalls::figure(part.arguments).map(Some),
        "line" => excerpts::line(part.arguments, part.old).map(|()| None),
        "measured" => figures::table(part.arguments).map(Some),
        "chosen" => figures::chosen(part.arguments).map(Some),
        "traffic" => traffic::table(part.arguments).map(Some),
        "source" => excerpts::quote(part.arguments).map(Some),
        "ranks" => many_ranks::figure(part.arguments).map(Some),
        "scheduled" => native::figure(part.arguments).map(Some),
        "by-opencl" => by_opencl::table().map(Some),
        "divided" => divided::table().map(Some),
        "halves" => halves::table(part.arguments).map(Some),
        "many-ranks" => many_ranks::table().map(Some),
        "idea" => ladder::idea(part.arguments).map(Some),
        "steps" => overviews::steps().map(Some),
        "ladder" => overviews::ladder().map(Some),
        "overview" => overviews::overview().map(Some),
        "report" => overviews::report().map(Some),
        kind if listings::KINDS.contains(&kind) => Ok(None),
        kind => Err(format!("`{kind}` is not a kind of part")),
    }
}
