//! Which functions were tried, and what came of it: a line for each in `record.csv`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::mutant::Mutant;
use crate::run::Outcome;
use crate::survivors::Survivors;

/// A function as it was when it was tried: its file, its name and a digest of its text.
type Function = (String, String, String);

fn function(mutant: &Mutant) -> Function {
    (
        mutant.file.clone(),
        mutant.function.clone(),
        mutant.version.clone(),
    )
}

/// How many mutants of a function compile, and how many of these were caught.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Score {
    mutants: usize,
    caught: usize,
}

/// Functions whose mutants were all caught, or survive for a reason that is listed.
pub struct Record {
    path: PathBuf,
    functions: BTreeMap<Function, Score>,
}

const HEADER: [&str; 5] = ["file", "function", "version", "mutants", "caught"];

impl Record {
    /// # Errors
    ///
    /// The file is there and cannot be read, or is no record.
    pub fn read(path: &Path) -> Result<Self> {
        let mut functions = BTreeMap::new();
        if path.exists() {
            let file = || path.display().to_string();
            let mut reader = csv::Reader::from_path(path).with_context(file)?;
            for row in reader.deserialize() {
                let (file, function, version, mutants, caught) = row.with_context(file)?;
                functions.insert((file, function, version), Score { mutants, caught });
            }
        }
        Ok(Self {
            path: path.to_owned(),
            functions,
        })
    }

    /// Whether the function of `mutant` was tried as it is.
    pub fn has(&self, mutant: &Mutant) -> bool {
        self.functions.contains_key(&function(mutant))
    }

    /// Becomes the functions of these mutants, of which none was tried.
    pub fn postpone<'m>(&mut self, mutants: impl Iterator<Item = &'m Mutant>) {
        self.functions.clear();
        for mutant in mutants {
            self.functions.entry(function(mutant)).or_default().mutants += 1;
        }
    }

    /// Adds those functions of `all`, the mutants that there are, of which each mutant did not
    /// compile, was caught or may live. Functions that are no more are forgotten.
    pub fn update(
        &mut self,
        all: &[Mutant],
        not_compiled: &[Mutant],
        outcomes: &[Outcome],
        survivors: &Survivors,
    ) {
        let mut there: BTreeMap<Function, usize> = BTreeMap::new();
        for mutant in all {
            *there.entry(function(mutant)).or_default() += 1;
        }
        let mut well: BTreeMap<Function, usize> = BTreeMap::new();
        for mutant in not_compiled {
            *well.entry(function(mutant)).or_default() += 1;
        }
        let mut scores: BTreeMap<Function, Score> = BTreeMap::new();
        for outcome in outcomes {
            let caught = outcome.caught.is_some();
            if caught || survivors.reason(&outcome.mutant.name()).is_some() {
                *well.entry(function(&outcome.mutant)).or_default() += 1;
                let score = scores.entry(function(&outcome.mutant)).or_default();
                score.mutants += 1;
                score.caught += usize::from(caught);
            }
        }
        self.functions
            .retain(|function, _| there.contains_key(function));
        for (function, well) in well {
            if there.get(&function) == Some(&well) {
                let score = scores.get(&function).copied().unwrap_or_default();
                self.functions.insert(function, score);
            }
        }
    }

    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(&self) -> Result<()> {
        let path = || self.path.display().to_string();
        let mut writer = csv::Writer::from_path(&self.path).with_context(path)?;
        writer.write_record(HEADER)?;
        for ((file, function, version), score) in &self.functions {
            writer.serialize((file, function, version, score.mutants, score.caught))?;
        }
        writer.flush().with_context(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Caught;

    fn mutant(function: &str, id: u32) -> Mutant {
        Mutant {
            id,
            file: "file.rs".into(),
            line: 1,
            function: function.into(),
            version: "0".into(),
            entry: 1,
            text: "1".into(),
            change: "2 instead".into(),
            occurrence: id,
        }
    }

    fn outcome(function: &str, id: u32, caught: bool) -> Outcome {
        let caught = caught.then(|| Caught {
            by: "a test".into(),
            how: "it failed".into(),
        });
        Outcome {
            mutant: mutant(function, id),
            caught,
        }
    }

    #[test]
    fn functions_that_wait_are_known_as_they_are_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("untried.csv");
        let mut postponed = Record::read(&path).unwrap();
        postponed.postpone([mutant("before", 1)].iter());
        postponed.postpone([mutant("new", 1), mutant("new", 2)].iter());
        postponed.write().unwrap();
        let postponed = Record::read(&path).unwrap();
        assert!(postponed.has(&mutant("new", 3)) && !postponed.has(&mutant("before", 1)));
        let changed = Mutant {
            version: "1".into(),
            ..mutant("new", 1)
        };
        assert!(!postponed.has(&changed));
        let scores: Vec<Score> = postponed.functions.values().copied().collect();
        let (mutants, caught) = (2, 0);
        assert_eq!(scores, [Score { mutants, caught }]);
    }

    #[test]
    fn functions_are_recorded_when_all_of_their_mutants_are_accounted_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.csv");
        let survivors = folder.path().join("survivors.txt");
        std::fs::write(
            &survivors,
            "# It is none.\nfile.rs: lives: `1`: 2 instead (4)\n",
        )
        .unwrap();
        let survivors = Survivors::read(&survivors).unwrap();
        let all = [
            mutant("done", 1),
            mutant("done", 2),
            mutant("lives", 3),
            mutant("lives", 4),
            mutant("missed", 5),
            mutant("not_tried", 6),
            mutant("not_tried", 7),
        ];
        let outcomes = [
            outcome("done", 1, true),
            outcome("lives", 3, true),
            outcome("lives", 4, false),
            outcome("missed", 5, false),
            outcome("not_tried", 6, true),
        ];
        let mut record = Record::read(&path).unwrap();
        record.update(&all, &[mutant("done", 2)], &outcomes, &survivors);
        record.write().unwrap();
        let mut record = Record::read(&path).unwrap();

        let has: Vec<bool> = all.iter().map(|mutant| record.has(mutant)).collect();
        assert_eq!(has, [true, true, true, true, false, false, false]);
        let scores: Vec<Score> = record.functions.values().copied().collect();
        let score = |mutants, caught| Score { mutants, caught };
        assert_eq!(scores, [score(1, 1), score(2, 1)]);
        record.update(&all[2..], &[], &[], &survivors);
        assert!(!record.has(&all[0]) && record.has(&all[2]));
    }
}
