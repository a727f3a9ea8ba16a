//! One file with everything that a machine with a GPU needs: PTX, inputs, the host's results, and
//! the functions' text.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use crate::compile::Config;
use crate::{check, generate};

/// A batch of functions with the results that they must give.
#[derive(Debug, Serialize, Deserialize)]
pub struct Packed {
    pub seed: u64,
    /// Names and Rust.
    pub functions: Vec<(String, String)>,
    pub expected: Vec<Vec<u64>>,
    /// For each configuration its name and the PTX.
    pub ptx: Vec<(String, String)>,
}

/// Writes batches into a file. A rejected function is omitted from its batch.
pub struct Writer {
    zip: ZipWriter<File>,
    batches: u32,
}

impl Writer {
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("{}", path.display()))?;
        Ok(Self {
            zip: ZipWriter::new(file),
            batches: 0,
        })
    }

    /// Compiles and adds functions of a seed; returns how many were refused.
    pub fn add(
        &mut self,
        seed: u64,
        numbers: std::ops::Range<u64>,
        configs: &[Config],
    ) -> Result<usize> {
        let mut functions = generate::functions(seed, numbers);
        let mut refused = Vec::new();
        let Some((batch, ptx)) = check::compile(&mut functions, configs, &mut refused)? else {
            return Ok(refused.len());
        };
        let packed = Packed {
            seed,
            functions,
            expected: batch.expected(&generate::inputs(seed))?,
            ptx: configs.iter().map(Config::to_string).zip(ptx).collect(),
        };
        let options = SimpleFileOptions::default();
        self.zip
            .start_file(format!("{:05}.json", self.batches), options)?;
        self.zip.write_all(&serde_json::to_vec(&packed)?)?;
        self.batches += 1;
        Ok(refused.len())
    }

    pub fn finish(self) -> Result<()> {
        self.zip.finish()?;
        Ok(())
    }
}

/// The batches of a file, one after another.
pub fn read(path: &Path, mut each: impl FnMut(Packed) -> Result<bool>) -> Result<()> {
    let mut zip =
        ZipArchive::new(File::open(path).with_context(|| format!("{}", path.display()))?)?;
    for at in 0..zip.len() {
        let mut text = Vec::new();
        zip.by_index(at)?.read_to_end(&mut text)?;
        if !each(serde_json::from_slice(&text)?)? {
            break;
        }
    }
    Ok(())
}
