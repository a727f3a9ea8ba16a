//! The book and the README are what they claim to be: every generated part is what `cargo run -p
//! book` writes, every kernel and every rung of the CPU has its chapter, every link leads
//! somewhere, and every command is one that the program takes.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use book::chapters::{self, Chapter};
use book::generated::{self, Generated, Origin};
use book::repository::{at_root, read};
use book::stalls;
use clap::Parser;
use clap::error::ErrorKind;
use gpu_gemm::{DataType, Shape};
use gpu_kernels::KERNELS;
use gpu_kernels::spec::{Grid, Kernel, Rounding, Variant};
use host::bench::Results;
use host::cli;
use host::cpu::{Algorithm, RUNGS};
use host::select::ask;
use host::traffic::{Direction, Space, Traffic};
use libtest_mimic::{Arguments, Failed, Trial};

/// What must hold of the chapters, each by its claim.
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
        trials.push(page("tags_are_closed", tags_are_closed));
        // The ledger is where measured figures are kept that no file of results has.
        if file != "tuning.md" {
            trials.push(page(
                "measured_figures_have_a_home",
                measured_figures_have_a_home,
            ));
        }
    }
    for (claim, check) in claims![
        every_file_is_part_of_the_book,
        every_picture_stands_alone,
        every_cpu_rung_is_explained_in_order,
        every_kernel_has_its_chapter_in_order,
        every_profiled_kernel_says_why_it_waits,
        the_readmes_sample_agrees_with_itself,
        results_are_of_one_commit_and_of_the_scripts_commands,
        every_exercise_has_a_solution,
        every_chapter_asks_questions_and_answers_them,
        integer_products_are_those_of_plain_loops,
        sums_of_floats_are_what_f32_makes_of_them,
        reads_at_1000_are_those_of_the_kernels,
        reads_of_an_element_are_those_of_the_kernels,
        jobs_of_a_thread_follow_from_the_tiles,
        cycles_of_shared_memory_are_those_that_were_counted,
    ] {
        let chapters = chapters.clone();
        trials.push(Trial::test(claim, move || check(&chapters)));
    }
    Ok(trials)
}

fn is_current(generated: Generated) -> Trial {
    let (origin, ignored) = match generated.origin {
        Origin::Sources => ("sources", false),
        Origin::Build => ("build", book::why_absent().is_some()),
    };
    let name = format!("{origin}::{}", generated.path);
    Trial::test(name, move || Ok(generated.check()?)).with_ignored_flag(ignored)
}

/// What `results/measure.sh` writes is there, as that command wrote it, and on each GPU by one program.
fn results_are_of_one_commit_and_of_the_scripts_commands(_: &[Chapter]) -> Result<(), Failed> {
    /// Measured on a machine of their own, at other times.
    const APART: [&str; 3] = ["opencl-2-cores", "h200-two-gpus", "h200-two-gpus-bf16"];
    let script = read(&at_root("results/measure.sh"))?;
    let commands = script
        .lines()
        .filter_map(|line| line.strip_prefix("    bench "));
    let mut commits: Vec<String> = Vec::new();
    let mut found = 0;
    for command in commands {
        let (file, arguments) = command.split_once(' ').ok_or("a file and no arguments")?;
        if APART.contains(&file) {
            continue;
        }
        found += 1;
        let path = at_root(&format!("results/{file}.json"));
        let results: Results = serde_json::from_str(&read(&path)?)?;
        let made = results.provenance.ok_or("no provenance")?;
        // What follows is where it was written to.
        let json = made.command.iter().position(|word| word == "--json");
        let asked = made.command[..json.unwrap_or(0)].join(" ");
        assert_eq!(asked, format!("bench {arguments}"), "{file}");
        commits.extend(made.commit);
    }
    assert!(found > 15, "{found}");
    assert_eq!(commits.len(), found);
    commits.dedup();
    assert_eq!(commits.len(), 1, "{commits:?}");
    Ok(())
}

/// Every kernel has a chapter of its name, in the order of the table, with all that a chapter on a
/// kernel must have.
fn every_kernel_has_its_chapter_in_order(chapters: &[Chapter]) -> Result<(), Failed> {
    let mut remaining = chapters.iter();
    for kernel in KERNELS {
        let name = kernel.name;
        let chapter = remaining
            .find(|chapter| chapter.title == name)
            .ok_or_else(|| format!("SUMMARY.md has no `{name}`, or not in the table's order"))?;
        for (what, text) in required(kernel) {
            let is_there = chapter.text.contains(&text);
            assert!(is_there, "{} lacks {what}: {text}", chapter.file);
        }
    }
    Ok(())
}

fn required(kernel: &Kernel) -> [(&'static str, String); 7] {
    let (name, source) = (kernel.name, kernel.source);
    // Kernels of 16 bits alone, and those with a variant for each layout, have tables of their own.
    let mut variants = kernel.variants.iter();
    let has_layouts = |one: &Variant| {
        one.types.a.bytes() == 2 || one.grid == Grid::Persistent && one.rounding == Rounding::Tf32
    };
    let speed = match (variants.all(has_layouts), name) {
        (true, "warp-specialized") => "<!-- halves -->".to_string(),
        (true, "persistent") => "<!-- divided -->".to_string(),
        (true, _) => format!("<!-- halves {name} -->"),
        (false, _) => format!("<!-- measured {name} -->"),
    };
    [
        ("its title", format!("# {name}\n")),
        ("its idea", format!("<!-- idea {name} -->")),
        ("its picture", format!("](pictures/{name}.svg)")),
        ("its source", format!("{{{{#include ../../{source}}}}}")),
        ("its traffic", format!("<!-- traffic {name} -->")),
        ("its speed", speed),
        ("an exercise", "\n## Exercise\n".to_string()),
    ]
}

/// The chapter of every kernel in the profile shows it, beside the rung that it is compared with.
fn every_profiled_kernel_says_why_it_waits(chapters: &[Chapter]) -> Result<(), Failed> {
    let profiled = stalls::profiled()?;
    assert!(!profiled.is_empty(), "no kernel was profiled");
    for name in profiled {
        let mut chapters = chapters.iter();
        let chapter = chapters.find(|chapter| chapter.title == name);
        let text = chapter.map_or("", |chapter| chapter.text.as_str());
        let section = text
            .split_once("\n## Why it waits\n")
            .map(|(_, after)| after);
        let shown = section.is_some_and(|after| after.contains(&format!("<!-- waits {name}")));
        assert!(shown, "{name} does not say why it waits");
    }
    Ok(())
}

/// What the README shows as printed by its first command: speeds are those of the shape and the
/// times, and the percentage is that of both times.
fn the_readmes_sample_agrees_with_itself(_: &[Chapter]) -> Result<(), Failed> {
    let readme = read(&at_root("README.md"))?;
    let row = |name: &str| {
        let mut lines = readme.lines().map(str::trim);
        let line = lines.find(|line| line.starts_with(&format!("| {name} ")));
        let line = line.ok_or_else(|| format!("README.md shows no row of {name}"))?;
        let number = |column: usize| {
            let cell = line.split('|').nth(column).unwrap_or_default().trim();
            let digits = cell.split(' ').next().unwrap_or_default();
            let number = digits.parse::<f64>();
            number.map_err(|_| format!("`{cell}` of {name} is no figure"))
        };
        Ok::<_, String>([number(3)?, number(6)?, number(7)?])
    };
    for label in ["device", "why", "shape", "data", "cuBLAS", "state"] {
        let is_there = readme
            .lines()
            .any(|line| line.starts_with(&format!("    {label} ")));
        assert!(is_there, "README.md's sample has no line `{label}`");
    }
    let cublas = row("cublas-fp32")?;
    for [milliseconds, tflops, percent] in [row("double-buffer-sn8")?, cublas] {
        let speed = Shape::cube(4096).flops() / milliseconds / 1e9;
        assert!((speed - tflops).abs() < 0.02, "{speed} is not {tflops}");
        let of_cublas = 100.0 * cublas[0] / milliseconds;
        assert!(
            (of_cublas - percent).abs() < 0.1,
            "{of_cublas} % is not {percent} %"
        );
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
            format!("{{{{#include ../../{source}}}}}"),
        ] {
            let after = remaining.split_once(&needed).map(|(_, after)| after);
            remaining = after.ok_or_else(|| format!("{name} lacks, or has elsewhere: {needed}"))?;
        }
    }
    Ok(())
}

fn every_exercise_has_a_solution(chapters: &[Chapter]) -> Result<(), Failed> {
    for Chapter { file, text, .. } in chapters {
        let exercise = text.split_once("\n## Exercise\n").map(|(_, after)| after);
        let exercise = exercise.and_then(|after| after.split("\n## ").next());
        let is_solved = exercise.is_none_or(|text| text.contains("<summary>Solution</summary>"));
        assert!(is_solved, "{file}: no solution");
    }
    Ok(())
}

/// What to look up, and where to begin.
const ASK_NOTHING: [&str; 3] = ["introduction.md", "dictionary.md", "tuning.md"];

/// Every chapter asks three to six questions, and has as many folded answers.
fn every_chapter_asks_questions_and_answers_them(chapters: &[Chapter]) -> Result<(), Failed> {
    let asks = |one: &&Chapter| !ASK_NOTHING.contains(&one.file.as_str());
    let numbered = |text: &str| {
        let lines = text.lines().filter_map(|line| line.split_once(". "));
        lines
            .filter_map(|(number, _)| number.parse::<usize>().ok())
            .collect::<Vec<_>>()
    };
    for Chapter { file, text, .. } in chapters.iter().filter(asks) {
        let (_, after) = text
            .split_once("\n## Check yourself\n")
            .ok_or_else(|| format!("{file} asks nothing"))?;
        let section = after.split("\n## ").next().unwrap_or_default();
        let (questions, answers) = section
            .split_once("<details>\n<summary>Answers</summary>\n")
            .ok_or_else(|| format!("{file} has no folded answers"))?;
        let asked = numbered(questions);
        let is_in_order = asked.iter().copied().eq(1..=asked.len());
        assert!(
            is_in_order && (3..=6).contains(&asked.len()),
            "{file}: {asked:?}"
        );
        assert_eq!(numbered(answers), asked, "{file}: answers");
        assert_eq!(
            questions.matches('?').count(),
            asked.len(),
            "{file}: questions"
        );
    }
    Ok(())
}

/// The text of a chapter, its words with one blank between them; empty if there is no such chapter.
fn words_of(chapters: &[Chapter], name: &str) -> String {
    let text = chapters.iter().find(|chapter| chapter.file == name);
    let text = text.map_or("", |chapter| chapter.text.as_str());
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The exercise of `tiled` shows corners of products of matrices whose elements are row plus
/// column.
fn integer_products_are_those_of_plain_loops(chapters: &[Chapter]) -> Result<(), Failed> {
    let text = words_of(chapters, "tiled.md");
    for (k, rows, columns) in [(4, 2, 3), (400, 2, 4)] {
        let element =
            |row: i32, col: i32| -> i32 { (0..k).map(|term| (row + term) * (term + col)).sum() };
        let elements = (0..rows).flat_map(|row| (0..columns).map(move |col| (row, col)));
        let corner: Vec<String> = elements
            .map(|(row, col)| element(row, col).to_string())
            .collect();
        let corner = corner.join(" ");
        assert!(text.contains(&corner), "tiled.md lacks {corner}");
    }
    Ok(())
}

/// `tiled` compares what two kernels read at a size of round numbers.
fn reads_at_1000_are_those_of_the_kernels(chapters: &[Chapter]) -> Result<(), Failed> {
    let gigabytes = |name: &str| {
        let variant = gpu_kernels::variants().find(|variant| variant.name == name);
        let variant = variant.ok_or_else(|| format!("there is no {name}"))?;
        let traffic = Traffic::of(variant, Shape::cube(1000), false);
        let elements = traffic.elements(Space::Global, Direction::Read);
        Ok::<f64, String>(elements as f64 * 4.0 / 1e9)
    };
    let (tiled, row_shared) = (gigabytes("tiled-16")?, gigabytes("row-shared")?);
    let claim = format!("`tiled-16` reads {tiled:.1} GB, where");
    let other = format!("reads {row_shared:.1} GB. That is an eighth.");
    let text = words_of(chapters, "tiled.md");
    assert!(
        text.contains(&claim) && text.contains(&other),
        "{claim} {other}"
    );
    assert_eq!((row_shared / tiled).round(), 8.0);
    Ok(())
}

/// `register-blocked` counts what kernels read for one element of C: `K/32 + K/64`, of A and of B.
fn reads_of_an_element_are_those_of_the_kernels(chapters: &[Chapter]) -> Result<(), Failed> {
    const K: u64 = 4096;
    let reads = |cell: &str| -> u64 {
        let of_operand = |reads: &str| {
            reads
                .trim()
                .strip_prefix("K/")
                .map_or(1, |by| by.parse().unwrap_or(0))
        };
        match cell.trim() {
            "none" => 0,
            sum => sum.split('+').map(|reads| K / of_operand(reads)).sum(),
        }
    };
    let chapter = chapters
        .iter()
        .find(|chapter| chapter.file == "register-blocked.md");
    let text = chapter.map_or("", |chapter| chapter.text.as_str());
    let mut lines = 0;
    for line in text.lines() {
        let [_, name, global, shared, _] = line.split('|').collect::<Vec<_>>()[..] else {
            continue;
        };
        let name = name.trim().trim_matches('`');
        let Some(variant) = gpu_kernels::variants().find(|variant| variant.name == name) else {
            continue;
        };
        let shape = Shape::cube(K as usize);
        let traffic = Traffic::of(variant, shape, false);
        let own = |space| traffic.elements(space, Direction::Read) / u128::from(K * K);
        assert_eq!(u128::from(reads(global)), own(Space::Global), "{line}");
        assert_eq!(u128::from(reads(shared)), own(Space::Shared), "{line}");
        lines += 1;
    }
    assert_eq!(lines, 4, "kernels with a count");
    Ok(())
}

/// `register-blocked` says what one thread of it loads and computes.
fn jobs_of_a_thread_follow_from_the_tiles(chapters: &[Chapter]) -> Result<(), Failed> {
    let variant = gpu_kernels::variants().find(|variant| variant.name == "register-blocked-sn8");
    let variant = variant.ok_or("there is no register-blocked-sn8")?;
    let (block, tile, (rows, columns)) = (variant.block, variant.tile, variant.thread_tile);
    let (x, y) = (1, 1);
    let thread = y * block.x + x;
    let all = |extent: u32| {
        (0..extent)
            .step_by(block.threads() as usize)
            .map(|first| first + thread)
    };
    let of_a: Vec<_> = all(tile.m * tile.k)
        .map(|at| (at / tile.k, at % tile.k))
        .collect();
    let of_b: Vec<_> = all(tile.k * tile.n)
        .map(|at| (at / tile.n, at % tile.n))
        .collect();
    assert_eq!(of_a, [(2, 1), (34, 1), (66, 1), (98, 1)]);
    assert_eq!(of_b, [(0, 17), (2, 17), (4, 17), (6, 17)]);
    let text = words_of(chapters, "register-blocked.md");
    for claim in [
        format!("Its number is 1 · {} + 1 = {thread}.", block.x),
        "it loads row 2, k = 1.".to_string(),
        "it also loads rows 34, 66 and 98, all at k = 1.".to_string(),
        "it loads column 17 at k = 0, 2, 4 and 6.".to_string(),
        format!(
            "It computes rows {} to {} and columns {} to {}.",
            y * rows,
            y * rows + rows - 1,
            x * columns,
            x * columns + columns - 1
        ),
    ] {
        assert!(text.contains(&claim), "register-blocked.md lacks: {claim}");
    }
    Ok(())
}

/// Pages show sums that rounding changes.
fn sums_of_floats_are_what_f32_makes_of_them(chapters: &[Chapter]) -> Result<(), Failed> {
    let large = 16_777_216.0_f32; // 2^24
    let claim = format!(
        "({large} + 1) + 1 is {}, and {large} + (1 + 1) is {}.",
        (large + 1.0) + 1.0,
        large + (1.0 + 1.0)
    );
    assert!(
        words_of(chapters, "cpu-threads.md").contains(&claim),
        "{claim}"
    );

    let terms = [1e8_f32, 1.0, -1e8];
    let sum = terms.iter().fold(0.0_f32, |sum, term| sum + term);
    let right: f64 = terms.iter().map(|&term| f64::from(term)).sum();
    let magnitudes: f64 = terms.iter().map(|&term| f64::from(term.abs())).sum();
    let error = (f64::from(sum) - right).abs();
    let claim = format!(
        "the sum is {sum} where {right} is right. That is a relative error of {} %, and each operation has \
         rounded as well as it can: the error is {:.3} units of rounding",
        100.0 * error / right,
        error / (2.0_f64.powi(-24) * magnitudes)
    );
    assert!(words_of(chapters, "proven.md").contains(&claim), "{claim}");
    Ok(())
}

/// The chapter on bank conflicts says how many cycles a read takes. Times the number of reads at
/// 1024, that is what the profiler counted, which the ledger has.
fn cycles_of_shared_memory_are_those_that_were_counted(chapters: &[Chapter]) -> Result<(), Failed> {
    // Elements that each operand's reads deliver, with thread tiles of 8 x 8, to 32 lanes with a
    // float4 each.
    let reads = 1024_usize.pow(3) / 8 / (32 * 4);
    let text = |name: &str| {
        let mut chapters = chapters.iter();
        let chapter = chapters.find(|chapter| chapter.file == name);
        chapter.map_or("", |chapter| chapter.text.as_str())
    };
    for cycles in [8 + 2, 4 + 2] {
        let digits = (reads * cycles).to_string();
        let counted = format!(
            "{} {} {}",
            &digits[..digits.len() - 6],
            &digits[digits.len() - 6..digits.len() - 3],
            &digits[digits.len() - 3..]
        );
        for name in ["tuning.md", "conflict-free.md"] {
            assert!(text(name).contains(&counted), "{name} lacks {counted}");
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

/// What follows from data sheets and counts of instructions by the arithmetic beside it, or is
/// assumed.
const NOT_MEASURED: [&str; 11] = [
    "66.9 TFLOP/s",
    "1.2 TFLOP/s",
    "38 TFLOP/s",
    "13 TFLOP/s",
    "takes 0.8 µs",
    "takes 29 µs",
    "takes 3.1 µs",
    "that is 17 µs",
    "operations: 2 TFLOP/s",
    "= 29.1 TFLOP/s",
    "roof of 4.0 TFLOP/s",
];

/// Speeds and times are written by the tool from `results`, or lead to the ledger.
fn measured_figures_have_a_home(_: &Path, text: &str) -> Result<(), Failed> {
    const UNITS: [&str; 4] = [" TFLOP/s", " GFLOP/s", " µs", " ms"];
    let mut prose = String::new();
    let (mut in_part, mut in_code) = (false, false);
    for piece in text
        .split_inclusive('\n')
        .flat_map(|line| line.split_inclusive("-->"))
    {
        let begins = piece.rfind("<!-- ").map(|at| &piece[at + 5..]);
        if piece.starts_with("```") {
            in_code = !in_code;
        }
        let is_indented = piece.starts_with("    ");
        match begins {
            Some(tag) if tag.starts_with('/') => in_part = false,
            Some(tag) if tag.ends_with("-->") => {
                prose.push_str(&piece[..piece.len() - tag.len() - 5]);
                in_part = true;
            }
            _ if in_part || in_code || is_indented => (),
            _ => prose.push_str(piece),
        }
    }
    for paragraph in prose.split("\n\n") {
        let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        let rest = NOT_MEASURED
            .iter()
            .fold(words.clone(), |text, known| text.replace(known, ""));
        let figure = UNITS.iter().find(|unit| {
            let mut before = rest.match_indices(**unit).map(|(at, _)| &rest[..at]);
            before.any(|before| {
                before
                    .rsplit(' ')
                    .next()
                    .is_some_and(|word| word.parse::<f64>().is_ok())
            })
        });
        if let Some(unit) = figure
            && !words.contains("tuning.md#")
        {
            let why = "is neither generated from results nor a link to the ledger";
            return Err(format!("a figure in{unit} {why}: {words}").into());
        }
    }
    Ok(())
}

/// Each tag of HTML is closed, in the order that they nest in, before its block ends.
fn tags_are_closed(_: &Path, text: &str) -> Result<(), Failed> {
    let after_comments = text
        .split("<!--")
        .map(|part| part.split_once("-->").unwrap_or(("", part)).1);
    let text: String = after_comments.collect();
    // Every second part is code.
    let blocks = text.split("```").step_by(2);
    let plain: String = blocks
        .flat_map(|block| block.split('`').step_by(2))
        .collect();
    let mut open = Vec::new();
    for (at, _) in plain.match_indices('<') {
        let tag = plain[at + 1..].split('>').next().unwrap_or_default();
        let name = tag.split(' ').next().unwrap_or_default();
        match name.strip_prefix('/') {
            Some(name) if open.pop() == Some(name) => {}
            Some(name) => return Err(format!("</{name}> closes another tag").into()),
            None if name.starts_with(|first: char| first.is_ascii_lowercase()) => open.push(name),
            // "Less than".
            None => {}
        }
    }
    match open.first() {
        Some(name) => Err(format!("<{name}> is not closed").into()),
        None => Ok(()),
    }
}

/// Each `cargo run -p host -- ...` of a page, and each `rust-gemm ...`, is a command line that the
/// program takes, with kernels that exist.
fn commands_are_taken(_: &Path, text: &str) -> Result<(), Failed> {
    for (at, start) in text.match_indices("cargo run ") {
        let line = text[at..].split(['\n', '`']).next();
        let command = line.unwrap_or_default().trim();
        let words: Vec<&str> = command[start.len()..].split_whitespace().collect();
        if let ["--release", "-p", package, "--example", name] = words[..] {
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
        let is_there = |data_type| ask(KERNELS, RUNGS, &[name.to_string()], data_type).is_ok();
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
    }
    Ok(())
}

/// Every picture, drawn by hand or not, has a title for screen readers and paper for both themes,
/// and loads nothing.
fn every_picture_stands_alone(_: &[Chapter]) -> Result<(), Failed> {
    let folder = chapters::folder().join("pictures");
    for picture in files(&folder)? {
        let text = read(&folder.join(&picture))?;
        for needed in ["<title>", "class=\"paper\""] {
            assert!(text.contains(needed), "{picture} has no {needed}");
        }
        // `book.css` inverts pictures for dark themes: one that does so itself would be light
        // there.
        for foreign in ["href", "@import", "url(", "<script", "prefers-color-scheme"] {
            assert!(!text.contains(foreign), "{picture} has a {foreign}");
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
