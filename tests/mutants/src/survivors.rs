//! The mutants that no test notices, and why each may live.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Reasons, each by the name of its mutant.
pub struct Survivors(HashMap<String, String>);

impl Survivors {
    /// Reads a list: the reason, behind `#`, then the names of those that live for it, then an
    /// empty line.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let mut reasons = HashMap::new();
        for paragraph in text.split("\n\n") {
            let (comment, names): (Vec<_>, Vec<_>) =
                paragraph.lines().partition(|line| line.starts_with('#'));
            let reason: Vec<_> = comment
                .iter()
                .map(|line| line.trim_start_matches('#').trim())
                .collect();
            if reason.is_empty() && !names.is_empty() {
                bail!("{}: no reason stands above `{}`", path.display(), names[0]);
            }
            for name in names {
                if reasons.insert(name.to_owned(), reason.join(" ")).is_some() {
                    bail!("{}: `{name}` is listed twice", path.display());
                }
            }
        }
        Ok(Self(reasons))
    }

    pub fn reason(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}
