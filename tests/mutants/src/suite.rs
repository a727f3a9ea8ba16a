//! The tests of a build: which functions each calls, and how long it takes.
//!
//! A mutant is tried with the tests alone that call its function, the fastest first: on most it
//! takes one or two.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::process::{names, trace};
use crate::run::{bar, each};
use crate::tree::Built;

#[derive(Debug, Serialize, Deserialize)]
pub struct Test {
    /// Its program's place in the build's list.
    pub program: usize,
    pub name: String,
    /// How long it takes without a mutant.
    pub seconds: f64,
    /// Of the functions with mutants that it calls.
    entries: BTreeSet<u32>,
}

/// The fastest first.
#[derive(Serialize, Deserialize)]
pub struct Suite(Vec<Test>);

impl Suite {
    /// Runs each test once, `jobs` at a time, unless `folder` has what came of it.
    ///
    /// # Errors
    ///
    /// A test fails without a mutant, or cannot be started.
    pub fn of(built: &Built, folder: &Path, jobs: usize) -> Result<Self> {
        let known = folder.join(SUITE);
        if let Ok(text) = fs::read(&known) {
            return Ok(serde_json::from_slice(&text)?);
        }
        let mut all = Vec::new();
        for (index, program) in built.programs.iter().enumerate() {
            all.extend(names(program)?.into_iter().map(|name| (index, name)));
        }
        let traces = tempfile::tempdir().context("no folder for traces")?;
        let bar = bar(all.len(), "tests without a mutant");
        let work = |(index, name): &(usize, String)| {
            let program = &built.programs[*index];
            let path = traces
                .path()
                .join(format!("{index} {}", name.replace('/', " ")));
            let began = Instant::now();
            if let Some(how) = trace(program, name, &path)? {
                bail!("`{} {name}` fails without a mutant: {how}", program.target);
            }
            let seconds = began.elapsed().as_secs_f64();
            // There is none if it called nothing.
            let text = fs::read_to_string(&path).unwrap_or_default();
            let entries = text.lines().filter_map(|line| line.parse().ok()).collect();
            Ok(Test {
                program: *index,
                name: name.clone(),
                seconds,
                entries,
            })
        };
        let mut tests = Vec::new();
        each(&all, jobs, &work, &mut |test| {
            bar.inc(1);
            tests.push(test);
            Ok(())
        })?;
        bar.finish_and_clear();
        tests.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let suite = Self(tests);
        fs::write(known, serde_json::to_vec(&suite)?)?;
        Ok(suite)
    }

    /// The fast tests that call the function with this entry.
    pub fn fast(&self, entry: u32) -> impl Iterator<Item = &Test> {
        self.reaching(entry).filter(|test| test.seconds < SLOW)
    }

    /// The others of them.
    pub fn slow(&self, entry: u32) -> impl Iterator<Item = &Test> {
        self.reaching(entry).filter(|test| test.seconds >= SLOW)
    }

    fn reaching(&self, entry: u32) -> impl Iterator<Item = &Test> {
        let tests = self.0.iter();
        tests.filter(move |test| test.entries.contains(&entry))
    }
}

/// A test that takes so many seconds is slow.
const SLOW: f64 = 0.5;

/// In the folder of the build.
pub const SUITE: &str = "suite.json";
