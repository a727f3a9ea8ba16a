//! Keeps what `rust-gemm tune` measured in a file: the fastest plan for each shape and layout.
//!
//! The file is `tuned-NAME.txt`, where NAME is the GPU's, in the cache folder (`GEMM_CACHE_DIR`,
//! else `rust-gemm` in `XDG_CACHE_HOME` or in `~/.cache`). Measurements with another driver or
//! other kernels are not used: the next `rust-gemm tune` repeats them, and until then `auto`
//! follows the model.
//!
//! ```text
//! tuned plans of rust-gemm, version 2
//! device NVIDIA H200
//! driver 580.159.04
//! kernels 0123456789abcdef
//! 3 64 512 n16 n16 async-pipeline-16x128-nn 7 0 0.00001 0.000012
//! ```
//!
//! A line holds m, n, k; how A and B are stored (`n`, or `t` if transposed; `16` if every row
//! begins at a multiple of 16 bytes); the variant; CTAs and data-parallel waves, or `- -`; the
//! median seconds of this plan and of the model's, or `-`.

use std::fmt;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use gpu_kernels::spec::ElementType;
use gpu_kernels::variants;

use super::choice::Choice;
use crate::call::{Call, Operand, Shape, Transpose};
use crate::device::{compiled, driver};
use crate::gpu::Properties;
use crate::plan::{Decomposition, Plan};

/// The first line of a file.
const TITLE: &str = "tuned plans of rust-gemm, version 2";

/// What must be the same for measured times to be comparable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The GPU's name.
    pub device: String,
    /// The driver's release or, if it does not say, the CUDA version that it supports.
    pub driver: String,
    /// A hash of this build's kernels.
    pub kernels: String,
}

impl Key {
    /// The key of a GPU, as it is installed here, and of this build.
    pub fn of(properties: &Properties) -> Key {
        let mut hasher = DefaultHasher::new(); // without random keys: the same in every process
        compiled::fingerprint(&mut hasher);
        Key {
            device: properties.name.clone(),
            driver: driver::release().unwrap_or_else(|| properties.driver.clone()),
            kernels: format!("{:016x}", hasher.finish()),
        }
    }
}

/// The plan that was measured to be the fastest at one shape and layout.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The product that was measured; its leading dimensions are ignored.
    pub call: Call,
    /// The variant's name.
    pub kernel: String,
    /// How its CTAs divide the tiles, if it is a stream-K kernel.
    pub decomposition: Option<Decomposition>,
    /// The median time in seconds, and the median time of the model's choice.
    pub seconds: f64,
    pub model_seconds: Option<f64>,
}

impl Entry {
    /// An entry: `choice` takes `seconds` for `call`, and the model's choice takes
    /// `model_seconds`.
    pub fn new(call: Call, choice: Choice, seconds: f64, model_seconds: Option<f64>) -> Entry {
        Entry {
            call,
            kernel: choice.variant.name.to_string(),
            decomposition: choice.decomposition,
            seconds,
            model_seconds,
        }
    }

    /// The plan for a call like this, if this build still has such a kernel.
    fn plan(&self, call: Call) -> Option<Plan> {
        let variant = variants().find(|variant| variant.name == self.kernel)?;
        let decomposition = self.decomposition.unwrap_or(Decomposition::DATA_PARALLEL);
        Plan::new(variant, call, decomposition).ok()
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { m, n, k } = self.call.shape;
        let [a, b] = [self.call.a, self.call.b].map(stored);
        let kernel = &self.kernel;
        let [ctas, waves] = match self.decomposition {
            Some(divided) => [divided.ctas, divided.data_parallel_waves].map(|n| n.to_string()),
            None => ["-", "-"].map(str::to_string),
        };
        let seconds = self.seconds;
        let model = self
            .model_seconds
            .map_or("-".to_string(), |seconds| seconds.to_string());
        write!(
            formatter,
            "{m} {n} {k} {a} {b} {kernel} {ctas} {waves} {seconds} {model}"
        )
    }
}

impl FromStr for Entry {
    type Err = Damaged;

    fn from_str(line: &str) -> Result<Entry, Damaged> {
        let words: Vec<&str> = line.split(' ').collect();
        let &[m, n, k, a, b, kernel, ctas, waves, seconds, model] = &words[..] else {
            return Err(Damaged);
        };
        let shape = Shape::new(number(m)?, number(n)?, number(k)?);
        let mut call = Call::compact(shape, transpose(a)?, transpose(b)?, ElementType::F32);
        call.a.aligned = a.ends_with(ALIGNED);
        call.b.aligned = b.ends_with(ALIGNED);
        let decomposition = match (ctas, waves) {
            ("-", "-") => None,
            _ => Some(Decomposition {
                ctas: number(ctas)?,
                data_parallel_waves: number(waves)?,
            }),
        };
        Ok(Entry {
            call,
            kernel: kernel.to_string(),
            decomposition,
            seconds: number(seconds)?,
            model_seconds: match model {
                "-" => None,
                seconds => Some(number(seconds)?),
            },
        })
    }
}

/// The suffix of an operand whose rows all begin at multiples of 16 bytes.
const ALIGNED: &str = "16";

/// How an operand is stored, as a word.
fn stored(operand: Operand) -> String {
    let letter = match operand.transpose {
        Transpose::No => 'n',
        Transpose::Yes => 't',
    };
    let aligned = if operand.aligned { ALIGNED } else { "" };
    format!("{letter}{aligned}")
}

fn transpose(word: &str) -> Result<Transpose, Damaged> {
    match word.trim_end_matches(ALIGNED) {
        "n" => Ok(Transpose::No),
        "t" => Ok(Transpose::Yes),
        _ => Err(Damaged),
    }
}

fn number<T: FromStr>(word: &str) -> Result<T, Damaged> {
    word.parse().map_err(|_| Damaged)
}

/// The text is not one of our files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

/// The file's content.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    key: Key,
    entries: Vec<Entry>,
}

/// The result of reading a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// The file is for this GPU, driver and build.
    Usable(Tuned),
    /// There is no file.
    Nothing,
    /// There is a file that cannot be used; the sentence says why.
    Useless(String),
}

impl Tuned {
    /// Nothing measured yet.
    pub fn new(key: Key) -> Tuned {
        Tuned {
            key,
            entries: Vec::new(),
        }
    }

    /// What was measured: an entry for each shape and layout.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Adds an entry, or replaces the one for the same shape and layout.
    pub fn insert(&mut self, entry: Entry) {
        self.entries
            .retain(|known| !known.call.is_like(&entry.call));
        self.entries.push(entry);
    }

    /// The plan that was measured to be the fastest for exactly this shape and layout.
    pub fn plan(&self, call: Call) -> Option<Plan> {
        self.entry(call)?.plan(call)
    }

    /// What was measured for exactly this shape and layout.
    pub fn entry(&self, call: Call) -> Option<&Entry> {
        let mut entries = self.entries.iter();
        entries.find(|entry| entry.call.is_like(&call))
    }

    /// The file for a GPU's tuned plans, if there is a cache folder.
    pub fn path(key: &Key) -> Option<PathBuf> {
        let name = key.device.to_ascii_lowercase();
        let name = name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        Some(cache_folder()?.join(format!("tuned-{name}.txt")))
    }

    /// Looks in the cache folder for the plans tuned for `key`.
    pub fn find(key: &Key) -> Found {
        match Tuned::path(key) {
            Some(path) => Tuned::read(&path, key),
            None => Found::Nothing,
        }
    }

    /// Reads a file.
    pub fn read(path: &Path, key: &Key) -> Found {
        let useless = |why: &str| {
            Found::Useless(format!(
                "`{}` is not used: {why}; `rust-gemm tune` measures anew.",
                path.display()
            ))
        };
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Found::Nothing,
            Err(error) => return useless(&format!("it cannot be read ({error})")),
        };
        match text.parse::<Tuned>() {
            Err(Damaged) => useless("it is damaged, or not one of ours"),
            Ok(tuned) if tuned.key.device != key.device => useless("it is of another GPU"),
            Ok(tuned) if tuned.key.driver != key.driver => {
                useless("it was measured with another driver")
            }
            Ok(tuned) if tuned.key != *key => useless("it was measured with other kernels"),
            Ok(tuned) => Found::Usable(tuned),
        }
    }
}

impl fmt::Display for Tuned {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        writeln!(formatter, "{TITLE}\ndevice {}", key.device)?;
        writeln!(formatter, "driver {}\nkernels {}", key.driver, key.kernels)?;
        self.entries
            .iter()
            .try_for_each(|entry| writeln!(formatter, "{entry}"))
    }
}

impl FromStr for Tuned {
    type Err = Damaged;

    fn from_str(text: &str) -> Result<Tuned, Damaged> {
        // A truncated file ends in the middle of a line.
        let text = text.strip_suffix('\n').ok_or(Damaged)?;
        let mut lines = text.split('\n');
        if lines.next() != Some(TITLE) {
            return Err(Damaged);
        }
        let mut named = |name: &str| {
            let line = lines.next().and_then(|line| line.strip_prefix(name));
            line.map(|value| value.trim().to_string()).ok_or(Damaged)
        };
        let key = Key {
            device: named("device ")?,
            driver: named("driver ")?,
            kernels: named("kernels ")?,
        };
        let entries = lines.map(str::parse).collect::<Result<_, _>>()?;
        Ok(Tuned { key, entries })
    }
}

/// The folder where builds keep what they fetched and `rust-gemm tune` keeps what it measured.
pub fn cache_folder() -> Option<PathBuf> {
    let path = |name: &str| {
        let value = std::env::var_os(name)?;
        (!value.is_empty()).then(|| PathBuf::from(value))
    };
    path("GEMM_CACHE_DIR")
        .or_else(|| Some(path("XDG_CACHE_HOME")?.join("rust-gemm")))
        .or_else(|| Some(path("HOME")?.join(".cache/rust-gemm")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::variant;

    fn key() -> Key {
        Key {
            device: "NVIDIA H200".into(),
            driver: "580.159.04".into(),
            kernels: "0123456789abcdef".into(),
        }
    }

    fn call(m: usize, a: Transpose) -> Call {
        let shape = Shape { m, n: 64, k: 512 };
        Call::compact(shape, a, Transpose::No, ElementType::F32)
    }

    fn tuned() -> Tuned {
        let mut tuned = Tuned::new(key());
        let choice = Choice {
            variant: variant("async-pipeline-16x128-nn"),
            decomposition: Some(Decomposition::stream_k(7)),
        };
        let call = call(3, Transpose::No);
        tuned.insert(Entry::new(call, choice, 1e-5, Some(1.2e-5)));
        tuned
    }

    #[test]
    fn what_was_tuned_is_found_for_exactly_that_shape_and_layout() {
        let plan = tuned().plan(call(3, Transpose::No)).unwrap();
        assert_eq!(plan.variant().name, "async-pipeline-16x128-nn");
        assert_eq!(plan.decomposition().unwrap().ctas, 7);
        assert!(tuned().plan(call(4, Transpose::No)).is_none());
        assert!(tuned().plan(call(3, Transpose::Yes)).is_none());
        let batch = call(3, Transpose::No).repeated(2, ElementType::F32);
        assert!(tuned().plan(batch).is_none());
        let mut padded = call(3, Transpose::No);
        padded.a.leading += 4;
        assert!(tuned().plan(padded).is_some());
        padded.a.aligned = false;
        assert!(tuned().plan(padded).is_none());
    }

    #[test]
    fn a_second_measurement_takes_the_place_of_the_first() {
        let mut tuned = tuned();
        let choice = Choice::even(variant("double-buffer-k8"));
        let call = call(3, Transpose::No);
        tuned.insert(Entry::new(call, choice, 1e-6, None));
        assert_eq!(tuned.entries().len(), 1);
        assert_eq!(tuned.plan(call).unwrap().variant().name, "double-buffer-k8");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut tuned = tuned();
        let choice = Choice::even(variant("double-buffer-k8"));
        let mut call = call(5, Transpose::Yes);
        call.b.aligned = false;
        tuned.insert(Entry::new(call, choice, 0.1 + 0.2, None));
        assert_eq!(tuned.to_string().parse(), Ok(tuned.clone()));
        let line = "3 64 512 n16 n16 async-pipeline-16x128-nn 7 0 0.00001 0.000012";
        assert_eq!(tuned.to_string().lines().nth(4), Some(line));
    }

    #[test]
    fn what_is_damaged_foreign_or_missing_is_not_used_and_no_failure() {
        let folder = std::env::temp_dir().join(format!("tuned-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("tuned.txt");
        let _ = fs::remove_file(&path);
        assert_eq!(Tuned::read(&path, &key()), Found::Nothing);
        let why = |key: &Key| match Tuned::read(&path, key) {
            Found::Useless(why) => why,
            found => panic!("{found:?}"),
        };
        let text = tuned().to_string();
        let cut = &text[..text.len() - 3];
        for damaged in ["", "{}", TITLE, "\u{0}\n", cut, &text.replace("n16", "x")] {
            fs::write(&path, damaged).unwrap();
            assert!(why(&key()).contains(" is damaged, "), "{damaged:?}");
        }
        fs::write(&path, &text).unwrap();
        assert_eq!(Tuned::read(&path, &key()), Found::Usable(tuned()));
        let other = |change: fn(&mut Key)| {
            let mut key = key();
            change(&mut key);
            why(&key)
        };
        assert!(other(|key| key.device = "A100".into()).contains("another GPU"));
        assert!(other(|key| key.driver = "1".into()).contains("another driver"));
        assert!(other(|key| key.kernels = "1".into()).contains("other kernels"));
        // A folder where the file should be.
        let found = Tuned::read(&folder, &key());
        assert!(matches!(found, Found::Useless(_)));
    }

    #[test]
    fn an_entry_of_a_kernel_that_no_longer_exists_gives_no_plan() {
        let mut tuned = tuned();
        tuned.entries[0].kernel = "gone".into();
        assert!(tuned.plan(call(3, Transpose::No)).is_none());
    }
}
