//! The book in `docs/` says what is so: every kernel has its chapter, what a chapter shows of the code and of the
//! results is what they are now, its links lead somewhere, and its commands are ones that the program takes.
//!
//! After a change: `BLESS=1 cargo test -p tests --test book` draws the pictures and fills in figures, tables, source and
//! compiled code; then read the difference, and the text around it.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use gpu_kernels::KERNELS;
use gpu_kernels::spec::Kernel;
use host::cli;
use host::cpu::{Algorithm, RUNGS};
use host::device::ptx;
use host::element::DataType;
use host::select::ask;
use libtest_mimic::{Failed, Trial};
use tests::book::{self, Chapter, Part};
use tests::pictures;
use tests::results::at_root;

fn main() -> ExitCode {
    let chapters = match book::chapters() {
        Ok(chapters) => chapters,
        Err(error) => {
            eprintln!("the book cannot be read: {error}");
            return ExitCode::FAILURE;
        }
    };
    if ptx::why_absent().is_some() {
        println!("tests named compiled:: are ignored here: this build has no PTX");
    }
    let mut trials = Vec::new();
    for kernel in KERNELS {
        trials.push(Trial::test(format!("picture::{}", kernel.name), || {
            let path = book::source_folder().join(format!("pictures/{}.svg", kernel.name));
            compare(&path, &pictures::of(kernel)?)
        }));
    }
    trials.push(Trial::test("picture::stream-k", || {
        let path = book::source_folder().join("pictures/stream-k.svg");
        compare(&path, &pictures::of_streams())
    }));
    for chapter in &chapters {
        let trial = |claim: &str, check: fn(&Chapter) -> Result<(), Failed>| {
            let chapter = chapter.clone();
            Trial::test(format!("{claim}::{}", chapter.file), move || {
                check(&chapter)
            })
        };
        trials.push(trial("source_and_figures", source_and_figures_are_current));
        trials.push(
            trial("compiled", compiled_code_is_current)
                .with_ignored_flag(ptx::why_absent().is_some()),
        );
        trials.push(trial("links", links_lead_somewhere));
        trials.push(trial("commands", commands_are_taken));
    }
    trials.push(Trial::test("every_file_is_part_of_the_book", {
        let chapters = chapters.clone();
        move || every_file_is_part_of_the_book(&chapters)
    }));
    trials.push(Trial::test("every_picture_stands_alone", || {
        every_picture_stands_alone()
    }));
    trials.push(Trial::test("every_cpu_rung_is_explained_in_order", {
        let chapters = chapters.clone();
        move || every_cpu_rung_is_explained(&chapters)
    }));
    trials.push(Trial::test(
        "every_kernel_has_its_chapter_in_order",
        move || every_kernel_has_its_chapter(&chapters),
    ));
    tests::run(trials)
}

/// The chapters named as kernels are those of the table, in its order, and each has what a chapter on a kernel must have.
fn every_kernel_has_its_chapter(chapters: &[Chapter]) -> Result<(), Failed> {
    let mut rest = chapters.iter();
    for kernel in KERNELS {
        let chapter = rest
            .find(|chapter| chapter.title == kernel.name)
            .ok_or_else(|| {
                format!(
                    "SUMMARY.md has no chapter `{}`, or not in the order of the table",
                    kernel.name
                )
            })?;
        for (what, text) in required(kernel) {
            if !chapter.text.contains(&text) {
                return Err(format!("{} lacks {what}: {text}", chapter.file).into());
            }
        }
    }
    Ok(())
}

fn required(kernel: &Kernel) -> [(&'static str, String); 7] {
    let name = kernel.name;
    [
        ("its title", format!("# {name}\n")),
        ("its idea as in the table", format!("> {}\n", kernel.idea)),
        ("its picture", format!("](pictures/{name}.svg)")),
        (
            "its whole source",
            format!("{{{{#include ../../{}}}}}", kernel.source),
        ),
        ("its traffic", format!("<!-- traffic {name} -->")),
        ("its speed", format!("<!-- measured {name} -->")),
        ("an exercise", "\n## Exercise\n".to_string()),
    ]
}

/// The chapters on the CPU have a section on each rung, in the order of its ladder, with its idea and its source.
fn every_cpu_rung_is_explained(chapters: &[Chapter]) -> Result<(), Failed> {
    let texts: Vec<&str> = chapters
        .iter()
        .map(|chapter| chapter.text.as_str())
        .collect();
    let text = texts.concat();
    let mut rest = text.as_str();
    for Algorithm {
        name, idea, source, ..
    } in RUNGS
    {
        for needed in [
            format!("\n## {name}\n\n> {idea}\n"),
            format!("{{{{#include ../../{source}}}}}"),
        ] {
            let at = rest.find(&needed).ok_or_else(|| {
                format!(
                    "the book does not explain {name}, or not in the order of the ladder: {needed}"
                )
            })?;
            rest = &rest[at + needed.len()..];
        }
    }
    Ok(())
}

fn source_and_figures_are_current(chapter: &Chapter) -> Result<(), Failed> {
    refilled(chapter, book::make_from_source)
}

fn compiled_code_is_current(chapter: &Chapter) -> Result<(), Failed> {
    refilled(chapter, book::make_from_compiled)
}

fn refilled(
    chapter: &Chapter,
    make: fn(Part<'_>) -> Result<Option<String>, String>,
) -> Result<(), Failed> {
    // Read again: blessing one kind of part must not undo another.
    let path = book::source_folder().join(&chapter.file);
    compare(&path, &book::refill(&book::read(&path)?, make)?)
}

/// Whether a file is what it should be; with BLESS set, makes it so.
fn compare(path: &Path, expected: &str) -> Result<(), Failed> {
    let found = fs::read_to_string(path).unwrap_or_default();
    if found == expected {
        return Ok(());
    }
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, expected)?;
        return Ok(());
    }
    let first = found
        .lines()
        .zip(expected.lines())
        .find(|(found, expected)| found != expected)
        .unwrap_or(("(the end, or an end too early)", ""));
    Err(format!(
        "{} is not what it should be. BLESS=1 cargo test -p tests --test book writes it.\nIt says\n{}\nand should say\n{}",
        path.display(),
        first.0,
        first.1
    )
    .into())
}

fn links_lead_somewhere(chapter: &Chapter) -> Result<(), Failed> {
    let folder = book::source_folder();
    let includes = chapter.text.split("{{#include ").skip(1);
    let included = includes.filter_map(|text| text.split([':', '}']).next());
    let linked = book::links(&chapter.text).map(|(_, target)| target);
    for target in included.chain(linked) {
        let file = target.split('#').next().unwrap_or_default();
        let outside = file.starts_with("https://") || file.is_empty();
        if !outside && !folder.join(file).is_file() {
            return Err(format!("{target} leads nowhere").into());
        }
    }
    Ok(())
}

/// Each `cargo run -p host -- ...` of a chapter is a command line that the program takes, with kernels that there are.
fn commands_are_taken(chapter: &Chapter) -> Result<(), Failed> {
    for (at, start) in chapter.text.match_indices("cargo run ") {
        let line = chapter.text[at..].split(['\n', '`']).next();
        let command = line.unwrap_or_default().trim();
        let words: Vec<&str> = command[start.len()..].split_whitespace().collect();
        if let ["--release", "-p", "host", "--example", name] = words[..] {
            let source = at_root(&format!("host/examples/{name}.rs"));
            if !source.is_file() {
                return Err(format!("`{command}`: there is no {}", source.display()).into());
            }
            continue;
        }
        let split = words.iter().position(|&word| word == "--");
        let (cargo, arguments) = words.split_at(split.unwrap_or(words.len()));
        if !matches!(cargo, ["-p", "host"] | ["--release", "-p", "host"]) {
            return Err(format!("`{command}` does not run the host").into());
        }
        let arguments = arguments.get(1..).unwrap_or_default();
        cli::Arguments::try_parse_from(["host"].iter().chain(arguments))
            .map_err(|error| format!("`{command}`: {error}"))?;
        let kernels = arguments
            .iter()
            .skip_while(|word| !["--kernel", "ptx", "explain"].contains(word))
            .nth(1);
        for name in kernels.iter().flat_map(|names| names.split(',')) {
            let is_there = |data_type| ask(KERNELS, RUNGS, &[name.to_string()], data_type).is_ok();
            if !DataType::ALL.into_iter().any(is_there) {
                return Err(format!("`{command}`: there is no kernel `{name}`").into());
            }
        }
    }
    Ok(())
}

fn every_file_is_part_of_the_book(chapters: &[Chapter]) -> Result<(), Failed> {
    let folder = book::source_folder();
    for file in files(&folder)? {
        let is_chapter = file == "SUMMARY.md" || chapters.iter().any(|one| one.file == file);
        if file.ends_with(".md") && !is_chapter {
            return Err(format!("{file} is not in SUMMARY.md").into());
        }
    }
    for picture in files(&folder.join("pictures"))? {
        let target = format!("](pictures/{picture})");
        if !chapters
            .iter()
            .any(|chapter| chapter.text.contains(&target))
        {
            return Err(format!("no chapter shows pictures/{picture}").into());
        }
    }
    Ok(())
}

/// Drawn by hand or not: a title for those who do not see it, paper of its own under both themes, and nothing from elsewhere.
fn every_picture_stands_alone() -> Result<(), Failed> {
    let folder = book::source_folder().join("pictures");
    for picture in files(&folder)? {
        let text = book::read(&folder.join(&picture))?;
        for needed in ["<title>", "class=\"paper\""] {
            if !text.contains(needed) {
                return Err(format!("{picture} has no {needed}").into());
            }
        }
        for foreign in ["href", "@import", "url(", "<script"] {
            if text.contains(foreign) {
                return Err(format!("{picture} has a {foreign}").into());
            }
        }
    }
    Ok(())
}

/// The names of the files in a folder.
fn files(folder: &Path) -> Result<Vec<String>, Failed> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            files.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    files.sort();
    Ok(files)
}
