//! Reads what cargo reports on standard output under `--message-format=json`, one message a line.
//!
//! The messages are those of "External tools" in The Cargo Book.

use std::path::PathBuf;

use serde_json::Value;

/// What cargo has reported.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Messages {
    /// One for each crate, in the order in which they were compiled or found compiled already.
    pub(crate) artifacts: Vec<Artifact>,
    /// rustc's errors, as it renders them for users.
    pub(crate) errors: Vec<String>,
    /// Its warnings.
    pub(crate) warnings: Vec<String>,
}

/// What compiling one crate has produced.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Artifact {
    /// The manifest of its package.
    pub(crate) manifest: PathBuf,
    /// Whether the package is on this machine, rather than in a registry or a git repository.
    pub(crate) is_local: bool,
    /// The files.
    pub(crate) files: Vec<PathBuf>,
}

impl Messages {
    pub(crate) fn parse(output: &[u8]) -> Messages {
        let mut messages = Messages::default();
        // A line that is not a message was printed by a macro.
        for message in String::from_utf8_lossy(output)
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        {
            match message["reason"].as_str() {
                Some("compiler-artifact") => messages.artifacts.push(Artifact::from(&message)),
                Some("compiler-message") => messages.add_diagnostic(&message["message"]),
                _ => {}
            }
        }
        messages
    }

    fn add_diagnostic(&mut self, diagnostic: &Value) {
        let text = |key: &str| diagnostic[key].as_str().unwrap_or_default();
        let rendered = text("rendered").to_owned();
        match text("level") {
            // An error of the compiler itself has the level `error: internal compiler error`.
            level if level.starts_with("error") => self.errors.push(rendered),
            "warning" => self.warnings.push(rendered),
            _ => {}
        }
    }
}

impl From<&Value> for Artifact {
    fn from(message: &Value) -> Self {
        let path = |value: &Value| value.as_str().map(PathBuf::from);
        Artifact {
            manifest: path(&message["manifest_path"]).unwrap_or_default(),
            is_local: message["package_id"]
                .as_str()
                .is_some_and(|id| id.starts_with("path+")),
            files: message["filenames"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(path)
                .collect(),
        }
    }
}
