//! The earlier benchmark, from the file that `bench --json` wrote.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::bench::results::{Results, SCHEMA};
use crate::output::clause;

/// An earlier benchmark.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// As the user named it.
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
        let value = serde_json::from_slice(&text);
        let value: Value = value.map_err(|why| refusal(format!("is not JSON: {why}")))?;
        let other = |why: String| refusal(format!("is JSON, but not of a benchmark: {why}"));
        // What every version has.
        if let Some(missing) = ["machine", "sizes"]
            .iter()
            .find(|key| value.get(key).is_none())
        {
            return Err(other(format!("it has no field `{missing}`")));
        }
        match value.get("schema") {
            // What has gone since the first version is not compared.
            Some(version) if (1..=SCHEMA).any(|known| *version == known) => {}
            version => {
                let version = version.map_or_else(|| "none".to_string(), Value::to_string);
                return Err(format!(
                    "`{name}` has layout version {version}, but this program reads up to {SCHEMA}: another \
                     version of the program wrote it. Measure again with this one, or compare with that one."
                ));
            }
        }
        let results = serde_json::from_value(value);
        Ok(Earlier {
            path: path.to_path_buf(),
            results: results.map_err(|why| other(why.to_string()))?,
        })
    }
}

const ADVICE: &str = "--compare reads a file that `bench --json` wrote.";

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
        let read = Earlier::read(&path).map_err(|error| error.replace(&shown, "b.json"));
        read.map(|earlier| earlier.results)
    }

    #[test]
    fn each_error_says_what_happened_and_what_to_do() {
        let missing = Earlier::read(Path::new("/no/such.json")).unwrap_err();
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
