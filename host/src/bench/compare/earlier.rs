//! The earlier benchmark, from the file that `bench --json` wrote.

use std::fs;
use std::path::{Path, PathBuf};

use crate::bench::results::{Results, SCHEMA};
use crate::output::clause;

/// An earlier benchmark.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// The path as the user gave it.
    pub path: PathBuf,
    pub results: Results,
}

impl Earlier {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// It cannot be read, or `bench --json` of this version would not have written it: a sentence.
    pub fn read(path: &Path) -> Result<Earlier, String> {
        let name = path.display();
        let refusal = |why: String| format!("`{name}` {why}. {ADVICE}");
        let text = fs::read(path);
        let text = text.map_err(|why| refusal(format!("cannot be read: {}", clause(&why))))?;
        let results: Results = serde_json::from_slice(&text)
            .map_err(|why| refusal(format!("is no benchmark: {why}")))?;
        match results.schema {
            // Version 1 has more fields, which are not compared.
            1..=SCHEMA => Ok(Earlier {
                path: path.to_path_buf(),
                results,
            }),
            other => Err(refusal(format!(
                "has layout version {other}, but this program reads up to {SCHEMA}"
            ))),
        }
    }
}

const ADVICE: &str = "--compare reads a file that `bench --json` wrote.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::samples::sample;

    #[test]
    fn each_error_says_what_happened_and_what_to_do() {
        let missing = Earlier::read(Path::new("/no/such.json")).unwrap_err();
        assert!(missing.starts_with("`/no/such.json` cannot be read: "));
        let mut other = serde_json::to_value(sample()).unwrap();
        other["schema"] = 7.into();
        let mut damaged = serde_json::to_value(sample()).unwrap();
        damaged["sizes"][0]["m"] = "many".into();
        for (text, expected) in [
            (String::new(), "is no benchmark: EOF while parsing"),
            (
                r#"{"schema": 1}"#.into(),
                "is no benchmark: missing field `machine`",
            ),
            (other.to_string(), "has layout version 7, but"),
            (damaged.to_string(), "is no benchmark: invalid type"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("b.json");
            fs::write(&path, &text).unwrap();
            let error = Earlier::read(&path).unwrap_err();
            assert!(
                error.contains(expected) && error.ends_with(ADVICE),
                "{error}"
            );
        }
    }
}
