//! What a build was made from and what it made, so that the next one can see that both are still
//! the same.
//!
//! Cargo runs a build script again when a file that it watches has a new time, though the file may
//! say what it said before: saved again without a change, or changed and changed back, as by git.
//! Its contents then decide here. Nothing else need be compared: a build depends on what it tells
//! cargo to watch, on the builder's settings, and on this program, or cargo would not notice a
//! change either.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use sha2::{Digest, Sha256};

use crate::{
    CudaBuilderError,
    build_script::{BuildScript, identity, write_atomically},
};

/// A longer file, such as libNVVM, is the same if its length and time are.
const READ_IN_FULL: u64 = 4 << 20;

/// The record of the build with these settings, which is in the build script's own folder.
pub(crate) struct Record {
    path: PathBuf,
    settings: String,
    outputs: Vec<PathBuf>,
    /// From when on a change may have come too late for the build.
    started: SystemTime,
}

impl Record {
    /// Of a build that begins now, and makes these files, or the files in these folders.
    pub(crate) fn new(script: &BuildScript, settings: String, outputs: Vec<PathBuf>) -> Self {
        let name = hex(Sha256::digest(&settings));
        Record {
            path: script.out_dir.join(format!("{}.record", &name[..16])),
            settings,
            outputs,
            // The times of files come from a clock that ticks, every 10 ms or so.
            started: SystemTime::now() - Duration::from_millis(20),
        }
    }

    /// Whether a build would make what is there already. Then cargo is told what it was told then.
    pub(crate) fn holds(&self, script: &mut BuildScript) -> bool {
        let Ok(text) = fs::read_to_string(&self.path) else {
            return false;
        };
        let mut lines = text.lines();
        let digest = lines.next();
        let instructions = lines.map(str::to_owned).collect::<Vec<_>>();
        let now = self.digest(script, &instructions, None);
        let holds = digest.is_some() && now.as_deref() == digest;
        if holds {
            script.instructions.extend(instructions);
        }
        holds
    }

    /// Notes a build that has succeeded, unless a file may have changed since it was compiled, or
    /// there was more to tell than what to watch, such as a warning.
    pub(crate) fn write(&self, script: &BuildScript) -> Result<(), CudaBuilderError> {
        if script.keeps_no_record {
            return Ok(());
        }
        let instructions = Vec::from_iter(script.instructions.iter().cloned());
        let Some(digest) = self.digest(script, &instructions, Some(self.started)) else {
            return Ok(());
        };
        let text = format!("{digest}\n{}\n", instructions.join("\n"));
        write_atomically(&self.path, text.as_bytes())
    }

    /// A hash of everything. None if an instruction is not one to watch, if a file is missing, or
    /// if one that was to be watched has changed since `before`.
    fn digest(
        &self,
        script: &BuildScript,
        instructions: &[String],
        before: Option<SystemTime>,
    ) -> Option<String> {
        let mut hash = Sha256::new();
        let mut add = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        add(self.settings.as_bytes());
        for name in ["CARGO", "RUSTC", "HOST"] {
            add(format!("{:?}", script.variables.get(OsStr::new(name))).as_bytes());
        }
        add(script.compiler.as_deref()?.as_bytes());
        for instruction in instructions {
            add(instruction.as_bytes());
            let (kind, name) = instruction.split_once('=')?;
            match kind {
                "rerun-if-changed" => add(&contents(Path::new(name), before)?),
                "rerun-if-env-changed" => {
                    let value = script.variables.get(OsStr::new(name));
                    add(format!("{value:?}").as_bytes());
                }
                _ => return None,
            }
        }
        for path in &self.outputs {
            let mut files = vec![path.clone()];
            if path.is_dir() {
                let entries = fs::read_dir(path).ok()?;
                files = entries
                    .map(|entry| Some(entry.ok()?.path()))
                    .collect::<Option<_>>()?;
                files.sort();
            }
            for file in files {
                add(file.as_os_str().as_encoded_bytes());
                add(&fs::read(&file).ok()?);
            }
        }
        Some(hex(hash.finalize()))
    }
}

/// Whether a file has had its contents and its name since before this other file was written. Its
/// time does not say so: `mv` brings an old one along. That is why cargo, which goes by times, may
/// take the IR of another text for that of this file.
pub(crate) fn is_older(path: &Path, than: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let [path, than] = [path, than].map(fs::metadata);
        path.is_ok_and(|path| {
            let changed = (path.ctime(), path.ctime_nsec());
            than.is_ok_and(|than| changed < (than.mtime(), than.mtime_nsec()))
        })
    }
    #[cfg(not(unix))]
    false
}

/// What is in a file; of a long one, what identifies it. None if it has changed since `before`.
fn contents(path: &Path, before: Option<SystemTime>) -> Option<Vec<u8>> {
    let data = fs::metadata(path).ok()?;
    if before.is_some_and(|before| data.modified().map_or(true, |time| time >= before)) {
        return None;
    }
    match data.len() > READ_IN_FULL {
        true => identity(path).map(String::into_bytes),
        false => fs::read(path).ok(),
    }
}

fn hex(digest: impl AsRef<[u8]>) -> String {
    let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
    digits.collect()
}
