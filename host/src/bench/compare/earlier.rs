//! The earlier benchmark, from the file that `bench --json` wrote.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use thiserror::Error;

use crate::bench::results::{Results, SCHEMA};
use crate::output::clause;

/// An earlier benchmark.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// As the user named it.
    pub path: PathBuf,
    pub results: Results,
}

/// Why a file is no earlier benchmark.
#[derive(Debug, Error)]
pub enum EarlierError {
    #[error("`{}` cannot be read: {}. {ADVICE}", path.display(), clause(why))]
    Unreadable { path: PathBuf, why: io::Error },
    #[error("`{}` is not JSON: {}. {ADVICE}", path.display(), why)]
    NotJson {
        path: PathBuf,
        why: serde_json::Error,
    },
    #[error("`{}` is JSON, but not of a benchmark: {why}. {ADVICE}", path.display())]
    NotBench { path: PathBuf, why: String },
    #[error(
        "`{}` has layout version {version}, but this program reads version {SCHEMA}: another version of the program wrote it. Measure again with this one, or compare with that one.",
        path.display()
    )]
    OtherSchema { path: PathBuf, version: String },
}

const ADVICE: &str = "--compare reads a file that `bench --json` wrote.";

impl Earlier {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// It cannot be read, or `bench --json` of this version would not have written it.
    pub fn read(path: &Path) -> Result<Earlier, EarlierError> {
        let path = path.to_path_buf();
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(why) => return Err(EarlierError::Unreadable { path, why }),
        };
        let value: Value = match serde_json::from_slice(&text) {
            Ok(value) => value,
            Err(why) => return Err(EarlierError::NotJson { path, why }),
        };
        // What every version has.
        if let Some(missing) = ["machine", "sizes"]
            .iter()
            .find(|key| value.get(key).is_none())
        {
            let why = format!("it has no field `{missing}`");
            return Err(EarlierError::NotBench { path, why });
        }
        match value.get("schema") {
            Some(version) if *version == SCHEMA => {}
            version => {
                let version = version.map_or_else(|| "none".to_string(), Value::to_string);
                return Err(EarlierError::OtherSchema { path, version });
            }
        }
        match serde_json::from_value(value) {
            Ok(results) => Ok(Earlier { path, results }),
            Err(why) => Err(EarlierError::NotBench {
                path,
                why: why.to_string(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::samples::sample;
    use serde_json::json;

    fn read(text: &str) -> Result<Results, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b.json");
        fs::write(&path, text).unwrap();
        let shown = path.display().to_string();
        let read = Earlier::read(&path).map_err(|error| error.to_string());
        let read = read.map_err(|error| error.replace(&shown, "b.json"));
        read.map(|earlier| earlier.results)
    }

    #[test]
    fn each_error_says_what_happened_and_what_to_do() {
        let missing = Earlier::read(Path::new("/no/such.json")).unwrap_err();
        let missing = missing.to_string();
        assert!(missing.starts_with("`/no/such.json` cannot be read: "));
        assert!(missing.ends_with(ADVICE), "{missing}");
        let mut other = serde_json::to_value(sample()).unwrap();
        other["schema"] = 7.into();
        let mut damaged = serde_json::to_value(sample()).unwrap();
        damaged["sizes"][0]["m"] = "many".into();
        for (text, expected) in [
            (String::new(), "`b.json` is not JSON: EOF while parsing"),
            (
                "{}\n{}\n".into(),
                "`b.json` is not JSON: trailing characters",
            ),
            (
                "[1]".into(),
                "not of a benchmark: it has no field `machine`.",
            ),
            (
                json!({"schema": 1, "device": "", "results": []}).to_string(),
                "not of a benchmark: it has no field `machine`.",
            ),
            (other.to_string(), "`b.json` has layout version 7, but"),
            (damaged.to_string(), "not of a benchmark: invalid type"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(expected), "{error}");
            let advises = error.ends_with(ADVICE) || error.contains("Measure again");
            assert!(advises, "{error}");
        }
    }
}
