//! The book and the README are what they claim to be: every generated part is what `cargo run -p
//! book` writes, every kernel and every rung of the CPU has its chapter, every link leads
//! somewhere, and every command is one that the program takes.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use book::chapters::{self, Chapter};
use book::generated::{self, Generated, Origin};
use book::repository::{at_root, read};
use clap::Parser;
use gpu_gemm::ElementType;
use gpu_kernels::KERNELS;
use gpu_kernels::spec::Kernel;
use host::cli;
use host::cpu::{Algorithm, RUNGS};
use host::select::ask;
use libtest_mimic::{Arguments, Failed, Trial};

/// What must hold of the book.
type Check = fn(&[Chapter]) -> Result<(), Failed>;

fn main() -> ExitCode {
    match trials() {
        Ok(trials) => libtest_mimic::run(&Arguments::from_args(), trials).exit_code(),
        Err(error) => {
            eprintln!("the book cannot be read: {error}");
            ExitCode::FAILURE
        }
    }
}

fn trials() -> Result<Vec<Trial>, String> {
    if let Some(reason) = book::why_absent() {
        println!("tests named build:: are ignored here: {reason}");
    }
    let mut trials: Vec<Trial> = generated::all()?.into_iter().map(is_current).collect();
    let chapters = chapters::all()?;
    for chapter in &chapters {
        let folder = chapters::folder();
        let page = |claim: &str, check: fn(&Path, &str) -> Result<(), Failed>| {
            let (text, folder) = (chapter.text.clone(), folder.clone());
            Trial::test(format!("{claim}::{}", chapter.file), move || {
                check(&folder, &text)
            })
        };
        trials.push(page("links_lead_somewhere", links_lead_somewhere));
        trials.push(page("commands_are_taken", commands_are_taken));
    }
    trials.push(Trial::test("links_lead_somewhere::README.md", || {
        links_lead_somewhere(&at_root(""), &read(&at_root("README.md"))?)
    }));
    let whole: [(&str, Check); 4] = [
        (
            "every_file_is_part_of_the_book",
            every_file_is_part_of_the_book,
        ),
        ("every_picture_stands_alone", |_| {
            every_picture_stands_alone()
        }),
        (
            "every_cpu_rung_is_explained_in_order",
            every_cpu_rung_is_explained,
        ),
        (
            "every_kernel_has_its_chapter_in_order",
            every_kernel_has_its_chapter,
        ),
    ];
    for (claim, check) in whole {
        let chapters = chapters.clone();
        trials.push(Trial::test(claim, move || check(&chapters)));
    }
    Ok(trials)
}

fn is_current(generated: Generated) -> Trial {
    let origin = match generated.origin() {
        Origin::Sources => "sources",
        Origin::Build => "build",
    };
    let ignored = generated.origin() == Origin::Build && book::why_absent().is_some();
    Trial::test(format!("{origin}::{}", generated.name()), move || {
        Ok(generated.check()?)
    })
    .with_ignored_flag(ignored)
}

/// Every kernel has a chapter of its name, in the order of the table, with all that a chapter on a
/// kernel must have.
fn every_kernel_has_its_chapter(chapters: &[Chapter]) -> Result<(), Failed> {
    let mut remaining = chapters.iter();
    for kernel in KERNELS {
        let chapter = remaining
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
        ("its idea", format!("<!-- idea {name} -->")),
        ("its picture", format!("](pictures/{name}.svg)")),
        (
            "its source",
            format!("{{{{#include ../../{}}}}}", kernel.source),
        ),
        ("its traffic", format!("<!-- traffic {name} -->")),
        ("its speed", format!("<!-- measured {name} -->")),
        ("an exercise", "\n## Exercise\n".to_string()),
    ]
}

/// The chapters on the CPU have a section on each rung, in the order of the ladder, with its idea
/// and its source.
fn every_cpu_rung_is_explained(chapters: &[Chapter]) -> Result<(), Failed> {
    let texts: Vec<&str> = chapters
        .iter()
        .map(|chapter| chapter.text.as_str())
        .collect();
    let text = texts.concat();
    let mut remaining = text.as_str();
    for Algorithm { name, source, .. } in RUNGS {
        for needed in [
            format!("\n## {name}\n\n<!-- idea {name} -->\n"),
            format!("{{{{#include ../../{source}}}}}"),
        ] {
            let at = remaining.find(&needed).ok_or_else(|| {
                format!(
                    "the book does not explain {name}, or not in the order of the ladder: {needed}"
                )
            })?;
            remaining = &remaining[at + needed.len()..];
        }
    }
    Ok(())
}

fn links_lead_somewhere(folder: &Path, text: &str) -> Result<(), Failed> {
    let includes = text.split("{{#include ").skip(1);
    let included = includes.filter_map(|text| text.split([':', '}']).next());
    let linked = chapters::links(text).map(|(_, target)| target);
    for target in included.chain(linked) {
        if target.starts_with("https://") {
            continue;
        }
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        if !file.is_empty() && !folder.join(file).is_file() {
            return Err(format!("{target} leads nowhere").into());
        }
        let page = match file {
            "" => text.to_string(),
            file => read(&folder.join(file))?,
        };
        if !anchor.is_empty() && !page.lines().any(|line| is_heading(line, anchor)) {
            return Err(format!("{target}: the page has no such heading").into());
        }
    }
    Ok(())
}

/// Whether a line is the heading that `anchor` links to.
fn is_heading(line: &str, anchor: &str) -> bool {
    let heading = line.trim_start_matches('#').trim().to_lowercase();
    let letters = heading
        .chars()
        .filter(|letter| letter.is_alphanumeric() || "-_ ".contains(*letter));
    let slug: String = letters
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect();
    line.starts_with('#') && slug == anchor
}

/// Each `cargo run -p host -- ...` of a chapter is a command line that the program takes, with
/// kernels that exist.
fn commands_are_taken(_: &Path, text: &str) -> Result<(), Failed> {
    for (at, start) in text.match_indices("cargo run ") {
        let line = text[at..].split(['\n', '`']).next();
        let command = line.unwrap_or_default().trim();
        let words: Vec<&str> = command[start.len()..].split_whitespace().collect();
        if let ["--release", "-p", package, "--example", name] = words[..] {
            let of = |folder: &str| at_root(&format!("{folder}{package}/examples/{name}.rs"));
            if ![of(""), of("crates/")]
                .iter()
                .any(|source| source.is_file())
            {
                return Err(format!("`{command}`: there is no such example").into());
            }
            continue;
        }
        if words == ["-p", "book"] {
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
            if !ElementType::ALL.into_iter().any(is_there) {
                return Err(format!("`{command}`: there is no kernel `{name}`").into());
            }
        }
    }
    Ok(())
}

fn every_file_is_part_of_the_book(chapters: &[Chapter]) -> Result<(), Failed> {
    let folder = chapters::folder();
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

/// Every picture, drawn by hand or not, has a title for screen readers and paper for both themes,
/// and loads nothing.
fn every_picture_stands_alone() -> Result<(), Failed> {
    let folder = chapters::folder().join("pictures");
    for picture in files(&folder)? {
        let text = read(&folder.join(&picture))?;
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
