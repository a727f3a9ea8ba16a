//! What the test programs share: the corpus, and how a module is compiled for a test.
#![allow(dead_code)] // each test program uses a part

use std::fs;
use std::path::{Path, PathBuf};

use device_codegen::{Dialect, Error, NvvmModule, Options, Source, compile_with};

/// Both dialects, with the name that expectations use.
pub const DIALECTS: [(Dialect, &str); 2] = [
    (Dialect::TypedPointers, "typed pointers"),
    (Dialect::OpaquePointers, "opaque pointers"),
];

/// A file of the corpus.
pub struct Case {
    /// The file's stem: the claim.
    pub claim: String,
    pub path: PathBuf,
    pub text: String,
}

impl Case {
    /// For a device that rounds to bf16 by one instruction, or for another.
    pub fn compile(&self, dialect: Dialect, rounds_to_bf16: bool) -> Result<NvvmModule, Error> {
        let name = format!("{}.ll", self.claim);
        let source = Source {
            name: &name,
            text: &self.text,
        };
        let options = Options {
            line_tables: true,
            panic_messages: self.claim.starts_with("panic_messages_"),
            rounds_to_bf16,
        };
        compile_with(&[source], dialect, options)
    }
}

/// The inputs in a folder below `tests`, `.ll` or `.ptx`, by name.
pub fn cases(folder: &str) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(folder);
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a folder can be listed").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|ending| ending == "ll" || ending == "ptx")
        })
        .collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| Case {
            claim: path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            text: fs::read_to_string(&path).expect("a test file is text"),
            path,
        })
        .collect()
}
