//! Mutation testing: plants small errors in the kernels and in what proves and measures them, one
//! at a time, and runs the tests. A test suite that does not notice an error has a hole, or the
//! error is none: `survivors.txt` says which.
//!
//! ```sh
//! cargo run -p mutants -- --file gpu-kernels/src/naive.rs
//! ```
//!
//! All of them are in one build, each behind a condition, so that a mutant costs a run of tests
//! and no compilation. Functions whose mutants were all caught, or may live, are written down in
//! `record.csv`, so that `--changed` tries those of new and changed functions alone.

mod mutant;
mod operators;
mod process;
mod record;
mod run;
mod scope;
mod suite;
mod survivors;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::thread;

use anyhow::{Context, Result};
use clap::Parser;

use crate::mutant::Mutant;
use crate::record::Record;
use crate::run::Outcome;
use crate::scope::SCOPES;
use crate::suite::{SUITE, Suite};
use crate::survivors::Survivors;
use crate::tree::Built;

/// What became of each mutant of a build, a line each.
const OUTCOMES: &str = "outcomes.jsonl";

/// Plants errors in the sources, one at a time, and says which no test notices.
///
/// Exit code: 0 if each is noticed or listed in tests/mutants/survivors.txt, 1 if not, 2 if
/// something else went wrong.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Only in files whose path contains this.
    #[arg(long, value_name = "PATH")]
    file: Vec<String>,
    /// Only in functions that neither tests/mutants/record.csv nor untried.csv has as they are now.
    #[arg(long)]
    changed: bool,
    /// Tries nothing: writes those functions to tests/mutants/untried.csv, for a day with more
    /// time.
    #[arg(long)]
    postpone: bool,
    /// Only every Nth, from the Kth on.
    #[arg(long, value_name = "K/N", value_parser = shard, default_value = "1/1")]
    shard: (u32, u32),
    /// How many tests run at a time [default: one for each core].
    #[arg(long)]
    jobs: Option<usize>,
    /// Says what would be planted, and builds nothing.
    #[arg(long)]
    list: bool,
    /// Builds and does not run. The build is in target/mutants.
    #[arg(long)]
    build_only: bool,
    /// Runs what is already built, from where it was interrupted.
    #[arg(long, conflicts_with = "build_only")]
    built: bool,
}

fn shard(text: &str) -> Result<(u32, u32), String> {
    let wanted = "K/N with 1 <= K <= N, as in 1/8";
    let (k, n) = text.split_once('/').ok_or(wanted)?;
    let (k, n): (u32, u32) = (
        k.parse().map_err(|_| wanted)?,
        n.parse().map_err(|_| wanted)?,
    );
    if 1 <= k && k <= n {
        Ok((k, n))
    } else {
        Err(wanted.into())
    }
}

fn main() -> ExitCode {
    match mutants(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether every mutant was caught, or may live.
fn mutants(arguments: &Arguments) -> Result<bool> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root
        .canonicalize()
        .context("the repository that this was built in is gone")?;
    let survivors = Survivors::read(&root.join("tests/mutants/survivors.txt"))?;
    let path = root.join("tests/mutants/record.csv");
    // As it was, and as it becomes while this runs.
    let (known, mut record) = (Record::read(&path)?, Record::read(&path)?);
    let mut postponed = Record::read(&root.join("tests/mutants/untried.csv"))?;
    let (k, n) = arguments.shard;
    let wanted = |mutant: &Mutant| {
        let in_a_file = arguments.file.is_empty()
            || arguments.file.iter().any(|file| mutant.file.contains(file));
        let is_changed = !arguments.changed || !(known.has(mutant) || postponed.has(mutant));
        in_a_file && is_changed && mutant.id % n == k % n
    };

    let mut all = Vec::new();
    for scope in SCOPES {
        all.extend(tree::find(&root, scope, None, &|_| true)?);
    }
    if arguments.postpone {
        postponed.postpone(all.iter().filter(|mutant| !known.has(mutant)));
        postponed.write()?;
        return Ok(true);
    }
    let mut outcomes = Vec::new();
    let mut not_compiled = Vec::new();
    for scope in SCOPES {
        let mutants = tree::find(&root, scope, None, &wanted)?;
        if mutants.is_empty() {
            continue;
        }
        if arguments.list {
            for mutant in &mutants {
                println!("{mutant}");
            }
            continue;
        }
        let folder = root.join("target/mutants").join(scope.name);
        let built = built(arguments, &root, &folder, scope, mutants)?;
        not_compiled.extend_from_slice(&built.not_compiled);
        if !arguments.build_only {
            let may_live = |mutant: &Mutant| survivors.reason(&mutant.name()).is_some();
            outcomes.extend(test(arguments, &folder, &built, &wanted, &may_live)?);
            // Now: the next scope may take an hour, and be interrupted.
            record.update(&all, &not_compiled, &outcomes, &survivors);
            record.write()?;
        }
    }
    if arguments.list || arguments.build_only {
        return Ok(true);
    }
    if outcomes.is_empty() {
        println!("no mutants to try");
        return Ok(true);
    }
    Ok(summarize(&outcomes, not_compiled.len(), &survivors))
}

fn built(
    arguments: &Arguments,
    root: &Path,
    folder: &Path,
    scope: &scope::Scope,
    mutants: Vec<Mutant>,
) -> Result<Built> {
    let description = folder.join("built.json");
    if arguments.built {
        let text = fs::read(&description).with_context(|| {
            format!("{}: build first, with --build-only", description.display())
        })?;
        return Ok(serde_json::from_slice(&text)?);
    }
    fs::create_dir_all(folder)?;
    let built = tree::build(root, folder, scope, mutants)?;
    for of_another_build in [OUTCOMES, SUITE] {
        let _ = fs::remove_file(folder.join(of_another_build)); // there may be none
    }
    fs::write(&description, serde_json::to_vec(&built)?)?;
    Ok(built)
}

fn test(
    arguments: &Arguments,
    folder: &Path,
    built: &Built,
    wanted: &dyn Fn(&Mutant) -> bool,
    may_live: &(dyn Fn(&Mutant) -> bool + Sync),
) -> Result<Vec<Outcome>> {
    let jobs = match arguments.jobs {
        Some(jobs) => jobs.max(1),
        None => thread::available_parallelism().map_or(1, usize::from),
    };
    // An interrupted run goes on where it was: a new build begins a new list.
    let path = folder.join(OUTCOMES);
    let text = fs::read_to_string(&path).unwrap_or_default();
    let mut outcomes: Vec<Outcome> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|outcome: &Outcome| wanted(&outcome.mutant))
        .collect();
    let known: HashSet<u32> = outcomes.iter().map(|outcome| outcome.mutant.id).collect();
    let mutants: Vec<Mutant> = built
        .mutants
        .iter()
        .filter(|mutant| wanted(mutant) && !known.contains(&mutant.id))
        .cloned()
        .collect();
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .with_context(|| path.display().to_string())?;
    if mutants.is_empty() {
        return Ok(outcomes);
    }
    let suite = Suite::of(built, folder, jobs)?;
    let report = &mut |outcome: &Outcome| {
        let mut line = serde_json::to_vec(outcome)?;
        line.push(b'\n');
        Ok(file.write_all(&line)?)
    };
    outcomes.extend(run::run(built, &suite, &mutants, jobs, may_live, report)?);
    outcomes.sort_by_key(|outcome| outcome.mutant.id);
    Ok(outcomes)
}

/// Prints what came out, and says whether that is well.
fn summarize(outcomes: &[Outcome], not_compiled: usize, survivors: &Survivors) -> bool {
    let mut files: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let (mut explained, mut unexplained) = (0, Vec::new());
    for outcome in outcomes {
        let (caught, all) = files.entry(&outcome.mutant.file).or_default();
        *all += 1;
        let name = outcome.mutant.name();
        match (&outcome.caught, survivors.reason(&name)) {
            (Some(_), reason) => {
                *caught += 1;
                if reason.is_some() {
                    println!("caught, so not a survivor any more: {name}");
                }
            }
            (None, Some(_)) => explained += 1,
            (None, None) => unexplained.push(&outcome.mutant),
        }
    }
    let caught: usize = files.values().map(|(caught, _)| caught).sum();
    for (file, (caught, all)) in &files {
        println!("{caught:5} of {all:5} caught  {file}");
    }
    let all = outcomes.len();
    let share = |part: usize| 100.0 * part as f64 / all.max(1) as f64;
    println!(
        "{caught} of {all} mutants caught ({:.1} %), {explained} survive for a reason that is listed",
        share(caught)
    );
    println!("{not_compiled} more do not compile");
    for mutant in &unexplained {
        println!("survived: {mutant}");
    }
    unexplained.is_empty()
}
