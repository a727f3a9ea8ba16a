//! What `host tune` measured, kept in a file: for each shape and layout the plan that was the fastest.
//!
//! The file is `tuning-NAME.json`, NAME the GPU's, in the cache folder (`GEMM_CACHE_DIR`, else `rust-gemm` in `XDG_CACHE_HOME` or in
//! `~/.cache`). What was measured with another driver or other kernels is not used: it is measured anew by the next `host tune`, and
//! until then `auto` does as the model says.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use gpu_kernels::KERNELS;
use nvvm::Search;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Choice;
use crate::blas::{Call, Plan, Sharing, Stored, Transpose};
use crate::device::driver::{self, Properties};
use crate::device::ptx;
use crate::output::{Output, OutputError, clause};
use crate::problem::Shape;

/// The version of the file's layout.
const SCHEMA: u32 = 1;

/// What has to be the same for measured times to mean anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// The GPU's name.
    pub device: String,
    /// The driver's release, or the CUDA that it supports where it does not say.
    pub driver: String,
    /// A hash of the kernels' PTX, as embedded in this build.
    pub kernels: String,
}

impl Key {
    /// That of a GPU, as it is installed here, and this build.
    pub fn of(properties: &Properties) -> Key {
        Key {
            device: properties.name.clone(),
            driver: driver::release().unwrap_or_else(|| properties.driver.clone()),
            kernels: format!("{:016x}", hash(ptx::EMBEDDED)),
        }
    }
}

/// FNV-1a, of 64 bits: the same in every build, and enough to tell one build's kernels from another's.
fn hash(texts: &[&str]) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// What was measured to be the fastest at one shape and layout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// Whether A and B are stored transposed, and whether their rows begin at multiples of 16 bytes.
    pub a_transposed: bool,
    pub b_transposed: bool,
    pub a_aligned: bool,
    pub b_aligned: bool,
    /// The variant.
    pub kernel: String,
    /// How its blocks share their steps, if it streams.
    pub streams: Option<u32>,
    pub whole_waves: Option<u32>,
    /// The median time in seconds, and that of what the model had chosen.
    pub seconds: f64,
    pub model_seconds: Option<f64>,
}

impl Entry {
    /// That `choice` takes `seconds` for `call`, where the model's choice takes `model_seconds`.
    pub fn new(call: Call, choice: Choice, seconds: f64, model_seconds: Option<f64>) -> Entry {
        let Shape { m, n, k } = call.shape;
        Entry {
            m,
            n,
            k,
            a_transposed: call.a.transpose == Transpose::Yes,
            b_transposed: call.b.transpose == Transpose::Yes,
            a_aligned: call.a.aligned,
            b_aligned: call.b.aligned,
            kernel: choice.variant.name.to_string(),
            streams: choice.sharing.map(|sharing| sharing.streams),
            whole_waves: choice.sharing.map(|sharing| sharing.whole_waves),
            seconds,
            model_seconds,
        }
    }

    /// What it is about.
    pub fn call(&self) -> Call {
        let stored = |transposed, aligned| Stored {
            transpose: match transposed {
                true => Transpose::Yes,
                false => Transpose::No,
            },
            aligned,
        };
        Call {
            shape: Shape {
                m: self.m,
                n: self.n,
                k: self.k,
            },
            a: stored(self.a_transposed, self.a_aligned),
            b: stored(self.b_transposed, self.b_aligned),
        }
    }

    /// The plan, if this build still has such a kernel.
    fn plan(&self, call: Call) -> Option<Plan<'static>> {
        let mut variants = KERNELS.iter().flat_map(|kernel| kernel.variants);
        let variant = variants.find(|variant| variant.name == self.kernel)?;
        let sharing = match (self.streams, self.whole_waves) {
            (Some(streams), Some(whole_waves)) => Sharing {
                streams,
                whole_waves,
            },
            _ => Sharing::NONE,
        };
        Plan::new(variant, call, sharing)
    }
}

/// The file's content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    schema: u32,
    #[serde(flatten)]
    key: Key,
    entries: Vec<Entry>,
}

/// Why what was tuned cannot be written.
#[derive(Debug, Error)]
pub enum TuningError {
    #[error(
        "There is no folder to keep measurements in: none of GEMM_CACHE_DIR, XDG_CACHE_HOME and HOME is set; set GEMM_CACHE_DIR to a folder."
    )]
    NoFolder,
    #[error("The folder `{}` cannot be made: {reason}.", path.display())]
    Folder { path: PathBuf, reason: String },
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("`{}` cannot be written: {reason}.", path.display())]
    Content { path: PathBuf, reason: String },
}

/// What a file turned out to be.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// It is for this GPU, driver and build.
    Usable(Tuning),
    /// There is none.
    Nothing,
    /// There is one, which is of no use: why, as a sentence.
    Useless(String),
}

impl Found {
    /// What can be used, with a note where there is something that cannot.
    pub fn or_note(self, notes: &mut dyn Write) -> Option<Tuning> {
        match self {
            Found::Usable(tuning) => Some(tuning),
            Found::Nothing => None,
            Found::Useless(why) => {
                // A note that nobody reads changes nothing.
                let _ = writeln!(notes, "note: {why}");
                None
            }
        }
    }
}

impl Tuning {
    /// Nothing measured yet.
    pub fn new(key: Key) -> Tuning {
        Tuning {
            schema: SCHEMA,
            key,
            entries: Vec::new(),
        }
    }

    /// Shapes and layouts that were measured.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Adds an entry, in the place of one about the same.
    pub fn insert(&mut self, call: Call, entry: Entry) {
        self.entries.retain(|known| known.call() != call);
        self.entries.push(entry);
    }

    /// The plan that was measured to be the fastest for exactly this call.
    pub fn plan(&self, call: Call) -> Option<Plan<'static>> {
        let entry = self.entries.iter().find(|entry| entry.call() == call)?;
        entry.plan(call)
    }

    /// Looks for what was tuned for `key` in the cache folder.
    pub fn find(key: &Key) -> Found {
        match path(key) {
            Some(path) => Tuning::read(&path, key),
            None => Found::Nothing,
        }
    }

    /// Reads a file.
    pub fn read(path: &Path, key: &Key) -> Found {
        let useless = |why: &str| {
            Found::Useless(format!(
                "`{}` is not used: {why}; `host tune` measures anew.",
                path.display()
            ))
        };
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Found::Nothing,
            Err(error) => return useless(&format!("it cannot be read: {}", clause(&error))),
        };
        match serde_json::from_str::<Tuning>(&text) {
            Err(_) => useless("it is damaged, or not one of ours"),
            Ok(tuning) if tuning.schema != SCHEMA => useless("its layout is of another version"),
            Ok(tuning) if tuning.key.device != key.device => useless("it is of another GPU"),
            Ok(tuning) if tuning.key.driver != key.driver => {
                useless("it was measured with another driver")
            }
            Ok(tuning) if tuning.key != *key => useless("it was measured with other kernels"),
            Ok(tuning) => Found::Usable(tuning),
        }
    }

    /// Writes the file, in one step, and returns where it is.
    ///
    /// # Errors
    ///
    /// There is no cache folder, or it cannot be written.
    pub fn write(&self) -> Result<PathBuf, TuningError> {
        let path = path(&self.key).ok_or(TuningError::NoFolder)?;
        self.write_to(&path)?;
        Ok(path)
    }

    /// Writes a file, in one step, and its folder if there is none.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn write_to(&self, path: &Path) -> Result<(), TuningError> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| TuningError::Folder {
                path: folder.to_path_buf(),
                reason: clause(&error),
            })?;
        }
        let failed = |reason: String| TuningError::Content {
            path: path.to_path_buf(),
            reason,
        };
        let text = serde_json::to_string_pretty(self).map_err(|error| failed(error.to_string()))?;
        let mut output = Output::open(path)?;
        writeln!(output, "{text}").map_err(|error| failed(clause(&error)))?;
        output.commit()?;
        Ok(())
    }
}

/// Where what was tuned for a GPU is kept, if there is a cache folder.
pub fn path(key: &Key) -> Option<PathBuf> {
    let plain = |letter: char| match letter.is_ascii_alphanumeric() {
        true => letter.to_ascii_lowercase(),
        false => '-',
    };
    let name: String = key.device.chars().map(plain).collect();
    let folder = Search::from_environment().cache?;
    Some(folder.join(format!("tuning-{name}.json")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choose::tests::variant;

    fn key() -> Key {
        Key {
            device: "NVIDIA H200".into(),
            driver: "580.159.04".into(),
            kernels: "0123456789abcdef".into(),
        }
    }

    fn call(m: usize, a: Transpose) -> Call {
        Call::compact(Shape { m, n: 64, k: 512 }, a, Transpose::No)
    }

    fn tuned() -> Tuning {
        let mut tuning = Tuning::new(key());
        let choice = Choice {
            variant: variant("async-pipeline-16x128-nn"),
            sharing: Some(Sharing {
                streams: 7,
                whole_waves: 0,
            }),
        };
        let asked = call(3, Transpose::No);
        tuning.insert(asked, Entry::new(asked, choice, 1e-5, Some(1.2e-5)));
        tuning
    }

    #[test]
    fn what_was_tuned_is_found_for_exactly_that_shape_and_layout() {
        let plan = tuned().plan(call(3, Transpose::No)).unwrap();
        assert_eq!(plan.variant().name, "async-pipeline-16x128-nn");
        assert_eq!(plan.sharing().unwrap().streams, 7);
        assert!(tuned().plan(call(4, Transpose::No)).is_none());
        assert!(tuned().plan(call(3, Transpose::Yes)).is_none());
    }

    #[test]
    fn a_second_measurement_takes_the_place_of_the_first() {
        let mut tuning = tuned();
        let asked = call(3, Transpose::No);
        let choice = Choice {
            variant: variant("double-buffer-sn8"),
            sharing: None,
        };
        tuning.insert(asked, Entry::new(asked, choice, 1e-6, None));
        assert_eq!(tuning.entries().len(), 1);
        assert_eq!(
            tuning.plan(asked).unwrap().variant().name,
            "double-buffer-sn8"
        );
    }

    #[test]
    fn what_is_written_is_read_again_and_the_folder_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/tuning.json");
        tuned().write_to(&path).unwrap();
        assert_eq!(Tuning::read(&path, &key()), Found::Usable(tuned()));
    }

    #[test]
    fn what_is_damaged_foreign_or_missing_is_not_used_and_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tuning.json");
        assert_eq!(Tuning::read(&path, &key()), Found::Nothing);
        let why = |key: &Key| match Tuning::read(&path, key) {
            Found::Useless(why) => why,
            found => panic!("{found:?}"),
        };
        for damaged in ["", "{", "[]", "{\"schema\": 1}", "\u{0}\u{1}"] {
            fs::write(&path, damaged).unwrap();
            assert!(why(&key()).contains(" is damaged, "), "{damaged:?}");
        }
        tuned().write_to(&path).unwrap();
        let other = |change: fn(&mut Key)| {
            let mut key = key();
            change(&mut key);
            why(&key)
        };
        assert!(other(|key| key.device = "A100".into()).contains("another GPU"));
        assert!(other(|key| key.driver = "1".into()).contains("another driver"));
        assert!(other(|key| key.kernels = "1".into()).contains("other kernels"));
        // A folder in its place.
        assert!(matches!(
            Tuning::read(folder.path(), &key()),
            Found::Useless(_)
        ));
    }

    #[test]
    fn a_kernel_that_there_is_no_more_is_no_plan() {
        let mut tuning = tuned();
        tuning.entries[0].kernel = "gone".into();
        assert!(tuning.plan(call(3, Transpose::No)).is_none());
    }

    #[test]
    fn other_kernels_have_another_hash() {
        assert_eq!(hash(&[]), 0xcbf2_9ce4_8422_2325);
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
    }
}
