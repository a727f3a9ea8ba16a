//! The book and the README are what they claim to be: every generated part is what `cargo run -p
//! book` writes, every kernel and every rung of the CPU has its chapter, every link leads
//! somewhere, and every command is one that the program takes.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use book::chapters::{self, Chapter};
use book::generated::{self, Generated, Origin};
use book::repository::{at_root, read};
use clap::Parser;
use clap::error::ErrorKind;
use gpu_gemm::DataType;
use gpu_kernels::KERNELS;
use host::bench::Provenance;
use host::cli;
use host::select::ask;
use libtest_mimic::{Arguments, Failed, Trial};
use verification::cpu::{Algorithm, RUNGS};

/// The claims about the chapters.
macro_rules! claims {
    ($($claim:ident),* $(,)?) => {
        [$((stringify!($claim), $claim as fn(&[Chapter]) -> Result<(), Failed>)),*]
    };
}

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
    let readme = (
        "README.md".to_owned(),
        read(&at_root("README.md"))?,
        at_root(""),
    );
    let of_book = chapters.iter().map(|chapter| {
        let Chapter { file, text, .. } = chapter;
        (file.clone(), text.clone(), chapters::folder())
    });
    for (file, text, folder) in of_book.chain([readme]) {
        let page = |claim: &str, check: fn(&Path, &str) -> Result<(), Failed>| {
            let (text, folder) = (text.clone(), folder.clone());
            Trial::test(format!("{claim}::{file}"), move || check(&folder, &text))
        };
        trials.push(page("links_lead_somewhere", links_lead_somewhere));
        trials.push(page("commands_are_taken", commands_are_taken));
    }
    for (claim, check) in claims![
        every_file_is_part_of_the_book,
        every_figure_that_moves_has_a_still_picture,
        every_cpu_rung_is_explained_in_order,
        every_kernel_has_its_chapter_in_order,
        results_are_of_one_commit_and_of_the_scripts_commands,
        the_patch_of_ideas_applies,
    ] {
        let chapters = chapters.clone();
        trials.push(Trial::test(claim, move || check(&chapters)));
    }
    Ok(trials)
}

fn is_current(generated: Generated) -> Trial {
    // What the compilers write takes a quarter of a minute, and what nvdisasm reads in it another.
    let (origin, is_ignored) = match generated.origin {
        Origin::Sources => ("sources", false),
        Origin::Build if book::why_absent().is_some() => ("build", true),
        Origin::Build => ("exhaustive::build", true),
    };
    let name = format!("{origin}::{}", generated.path);
    Trial::test(name, move || Ok(generated.check()?)).with_ignored_flag(is_ignored)
}

/// The files of `results/measure.sh` exist, with its commands, and each GPU's are of one program.
fn results_are_of_one_commit_and_of_the_scripts_commands(_: &[Chapter]) -> Result<(), Failed> {
    /// Measured on a machine of their own, or at other times: each names its own commit.
    const APART: &str = "\
        h200-ideas h200-hopper-steps h200-fp8 h200-int8 h100-shapes mpi-2-cores cpu-serial-2-cores cpu-strassen-2-cores simulator-2-cores \
        opencl-2-cores h200-two-gpus h200-two-gpus-first-b h200-two-gpus-bf16 \
        h200-two-gpus-bf16-first-b";
    /// Options whose value was another, and is the script's from the next run on.
    const ANOTHER: [(&str, &str); 4] = [
        // One process measured both starts, and wrote two files.
        ("h200-two-gpus", "--start spread,first-b"),
        ("h200-two-gpus-first-b", "--start spread,first-b"),
        ("h200-two-gpus-bf16", "--start spread,first-b"),
        ("h200-two-gpus-bf16-first-b", "--start spread,first-b"),
    ];
    let script = read(&at_root("results/measure.sh"))?;
    let mut commits: Vec<String> = Vec::new();
    let mut found = 0;
    for line in script.lines() {
        let (program, command) = match line.trim_start().split_once(' ') {
            Some(("bench", command)) => ("bench ", command),
            Some(("ranks", command)) => ("", command),
            _ => continue,
        };
        let (file, arguments) = command.split_once(' ').ok_or("a file and no arguments")?;
        found += 1;
        let results: serde_json::Value =
            serde_json::from_str(&read(&at_root(&format!("results/{file}.json")))?)?;
        let made: Provenance = serde_json::from_value(results["provenance"].clone())?;
        // The output path follows.
        let json = made.command.iter().position(|word| word == "--json");
        let asked = made.command[..json.unwrap_or(0)].join(" ");
        let mut expected = format!("{program}{arguments}");
        if let Some((_, another)) = ANOTHER.iter().find(|(other, _)| *other == file) {
            let (option, value) = another.split_once(' ').unwrap_or((another, ""));
            let (before, after) = expected.split_once(option).unwrap_or((&expected, ""));
            assert_ne!(asked, expected, "{file}: the command is the script's again");
            expected = match (value, after) {
                ("", _) => before.trim_end().to_string(),
                _ => format!("{} {another}", before.trim_end()),
            };
        }
        assert_eq!(asked, expected, "{file}");
        let commit = made.commit.ok_or_else(|| format!("{file}: no commit"))?;
        if !APART.split(' ').any(|apart| apart == file) {
            commits.push(commit);
        }
    }
    assert!(found > 25, "{found}");
    let profile: serde_json::Value = serde_json::from_str(&read(&at_root(book::PROFILE))?)?;
    let made: Provenance = serde_json::from_value(profile["provenance"].clone())?;
    assert_eq!(made.command, ["stalls.py", "rust-gemm", "h200-stalls.json"]);
    assert!(made.commit.is_some(), "the profile has no commit");
    commits.dedup();
    assert_eq!(commits.len(), 1, "{commits:?}");
    Ok(())
}

/// `results/ideas.patch` fits the kernels as they are now.
fn the_patch_of_ideas_applies(_: &[Chapter]) -> Result<(), Failed> {
    let mut git = Command::new("git");
    git.args(["apply", "--check", "results/ideas.patch"]);
    let output = git.current_dir(at_root("")).output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(()),
        false => Err(told.into_owned().into()),
    }
}

/// Every kernel has a chapter of its name, in the order of the table, with all that a chapter on a
/// kernel must have.
fn every_kernel_has_its_chapter_in_order(chapters: &[Chapter]) -> Result<(), Failed> {
    /// The kernels for Hopper, whose chapters have neither PTX nor a profile.
    const WITHOUT_PTX: &str = "\
        warpgroup warp-specialized persistent warp-specialized-tf32 warp-specialized-int8 \
        warp-specialized-fp8 warp-specialized-fp64 split-fp32";
    /// The kernel with a second chapter, on the variants that are in the files of speeds.
    const SECOND: (&str, &str) = ("tensor-core", "tensor-core-tf32.md");
    /// Kernels beside the climb, whose chapters are parts of their own.
    const ASIDE: [&str; 4] = ["row-shared", "pitched", "naive-kahan", "tiled-kahan"];
    let mut remaining = chapters.iter();
    let mut rung = 0;
    for kernel in KERNELS {
        let name = kernel.name;
        let is_aside = ASIDE.contains(&name);
        let mut aside = chapters.iter();
        let after = if is_aside { &mut aside } else { &mut remaining };
        let chapter = after
            .find(|chapter| chapter.title == name)
            .ok_or_else(|| format!("SUMMARY.md has no `{name}`, or not in the table's order"))?;
        rung += usize::from(!is_aside);
        let number = (!is_aside).then_some(rung);
        assert_eq!(chapter.rung, number, "{name}: its number in SUMMARY.md");
        let is_second = |one: &&Chapter| (name, one.file.as_str()) == SECOND;
        let second = chapters.iter().find(is_second);
        let text = chapter.text.clone() + second.map_or("", |one| &one.text);
        for needed in [
            format!("# {name}\n"),
            format!("<!-- idea {name} -->"),
            format!("](pictures/{name}.svg)"),
            format!("](../../{})", kernel.source),
            format!("<!-- traffic {name} -->"),
            "\n## Exercise\n".to_string(),
        ] {
            let is_there = text.contains(&needed);
            assert!(is_there, "{} lacks {needed}", chapter.file);
        }
        let tables = ["<!-- measured ", "<!-- halves ", "<!-- divided "];
        for part in ["<!-- ptx ", "<!-- waits "] {
            let (is_there, has_none) = (
                text.contains(part),
                WITHOUT_PTX.split(' ').any(|one| one == name),
            );
            assert_ne!(is_there, has_none, "{}: {part}", chapter.file);
        }
        // Both kernels of 8 bits are in one table.
        let links_to_table = text.contains("](results.md#8-bits)");
        let has_speeds = links_to_table || tables.iter().any(|table| text.contains(table));
        assert!(has_speeds, "{} has no table of speeds", chapter.file);
    }
    Ok(())
}

/// The chapters on the CPU have a section on each rung, in the order of the ladder, with its idea
/// and its source.
fn every_cpu_rung_is_explained_in_order(chapters: &[Chapter]) -> Result<(), Failed> {
    let text: String = chapters.iter().map(|one| one.text.as_str()).collect();
    let mut remaining = text.as_str();
    for Algorithm { name, source, .. } in RUNGS {
        for needed in [
            format!("\n## {name}\n\n<!-- idea {name} -->\n"),
            format!("](../../{source})"),
        ] {
            let after = remaining.split_once(&needed).map(|(_, after)| after);
            remaining = after.ok_or_else(|| format!("{name} lacks, or has elsewhere: {needed}"))?;
        }
    }
    Ok(())
}

fn links_lead_somewhere(folder: &Path, text: &str) -> Result<(), Failed> {
    for (_, target) in chapters::links(&chapters::prose(text)) {
        if target.starts_with("https://") {
            continue;
        }
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let page = match file {
            "" => text.to_string(),
            file => read(&folder.join(file)).map_err(|error| format!("{target}: {error}"))?,
        };
        let is_found = anchor.is_empty() || page.lines().any(|line| is_heading(line, anchor));
        assert!(is_found, "{target}: the page has no such heading");
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

/// Each `cargo run -p host -- ...` of a page, and each `rust-gemm ...`, is a command line that the
/// program takes, with kernels that exist.
fn commands_are_taken(_: &Path, text: &str) -> Result<(), Failed> {
    for (at, start) in text.match_indices("cargo run ") {
        let line = text[at..].split(['\n', '`']).next();
        let command = line.unwrap_or_default().trim();
        let words: Vec<&str> = command[start.len()..].split_whitespace().collect();
        if let ["--release", "-p", package, "--example", name, ..] = words[..] {
            let of = |folder| at_root(&format!("{folder}{package}/examples/{name}.rs"));
            let is_there = ["", "crates/"]
                .map(of)
                .iter()
                .any(|source| source.is_file());
            assert!(is_there, "`{command}`: there is no such example");
            continue;
        }
        if words == ["-p", "book"] {
            continue;
        }
        let split = words.iter().position(|&word| word == "--");
        let (cargo, arguments) = words.split_at(split.unwrap_or(words.len()));
        let runs_host = matches!(
            cargo,
            [] | ["-p", "host"] | ["--release"] | ["--release", "-p", "host"]
        );
        assert!(runs_host, "`{command}` does not run the host");
        is_taken(command, arguments.get(1..).unwrap_or_default())?;
    }
    for (at, _) in text.match_indices("`rust-gemm ") {
        let command = text[at + 1..].split(['\n', '`']).next();
        let command = command.unwrap_or_default().trim();
        let kernel_is_any = command.replace("KERNEL", "naive").replace("SHELL", "bash");
        let kernel_is_any = kernel_is_any.replace('\'', ""); // the shell takes them away
        let words: Vec<&str> = kernel_is_any.split_whitespace().collect();
        is_taken(command, words.get(1..).unwrap_or_default())?;
    }
    Ok(())
}

fn is_taken(command: &str, arguments: &[&str]) -> Result<(), Failed> {
    match cli::Arguments::try_parse_from(["rust-gemm"].iter().chain(arguments)) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {}
        Err(error) => return Err(format!("`{command}`: {error}").into()),
    }
    let kernels = arguments
        .iter()
        .skip_while(|word| !["--kernel", "ptx", "explain"].contains(word))
        .nth(1);
    for name in kernels.iter().flat_map(|names| names.split(',')) {
        let is_there = |data_type| ask(&[name.to_string()], data_type).is_ok();
        let is_there = DataType::ALL.into_iter().any(is_there);
        assert!(is_there, "`{command}`: there is no kernel `{name}`");
    }
    Ok(())
}

fn every_file_is_part_of_the_book(chapters: &[Chapter]) -> Result<(), Failed> {
    let folder = chapters::folder();
    for file in files(&folder)? {
        let is_chapter = file == "SUMMARY.md" || chapters.iter().any(|one| one.file == file);
        let is_listed = is_chapter || !file.ends_with(".md");
        assert!(is_listed, "{file} is not in SUMMARY.md");
    }
    for picture in files(&folder.join("pictures"))? {
        let target = format!("](pictures/{picture})");
        let is_shown = chapters.iter().any(|one| one.text.contains(&target));
        assert!(is_shown, "no chapter shows pictures/{picture}");
        // A dark theme turns pictures once, and what is dark in them is light then.
        let text = read(&folder.join("pictures").join(&picture))?;
        for refused in ["prefers-color-scheme", "(dark)", " is dark"] {
            assert!(!text.contains(refused), "pictures/{picture}: {refused}");
        }
    }
    Ok(())
}

/// The scripts of `docs/moving` are those of `book.toml`, the data first, and each `moving("NAME",
/// ..)` takes the place of a picture that a chapter shows.
fn every_figure_that_moves_has_a_still_picture(chapters: &[Chapter]) -> Result<(), Failed> {
    let settings = read(&at_root("docs/book.toml"))?;
    let listed = settings.split("\"moving/").skip(1);
    let listed: Vec<&str> = listed.filter_map(|after| after.split('"').next()).collect();
    assert_eq!(listed[..2], ["data.js", "figure.js"]);
    let mut sorted = listed.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, files(&at_root("docs/moving"))?);
    for script in &listed[2..] {
        let text = read(&at_root(&format!("docs/moving/{script}")))?;
        let pictures = text.split("\n    moving(\"").skip(1);
        let pictures: Vec<&str> = pictures
            .filter_map(|after| after.split('"').next())
            .collect();
        assert!(!pictures.is_empty(), "{script} takes no picture's place");
        for picture in pictures {
            let target = format!("](pictures/{picture}.svg)");
            let is_shown = chapters.iter().any(|one| one.text.contains(&target));
            assert!(is_shown, "{script}: no chapter shows {picture}");
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
