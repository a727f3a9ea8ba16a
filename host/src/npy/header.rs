//! The header of a .npy file: a Python dictionary with three keys, such as
//! `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.

use std::io::Read;

use serde::Deserialize;
use serde_json::Value;

use super::{Refusal, damaged};

const MAGIC: &[u8] = b"\x93NUMPY";
/// The largest header in bytes, as for NumPy itself. A matrix has a header of 118.
const LONGEST: usize = 10_000;

/// The contents of the dictionary.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub descr: Value,
    pub fortran_order: bool,
    pub shape: Vec<usize>,
}

impl Header {
    /// Reads all bytes before the first element.
    pub fn read(reader: &mut impl Read) -> Result<Header, Refusal> {
        let mut start = [0; 8];
        reader.read_exact(&mut start)?;
        if !start.starts_with(MAGIC) {
            return Err(damaged("it does not begin with \\x93NUMPY"));
        }
        let mut size = [0; 4];
        match [start[6], start[7]] {
            [1, 0] => reader.read_exact(&mut size[..2])?,
            [2 | 3, 0] => reader.read_exact(&mut size)?,
            [major, minor] => {
                let version = format!("it is of version {major}.{minor}, not 1.0, 2.0 or 3.0");
                return Err(damaged(version));
            }
        }
        let size = u32::from_le_bytes(size) as usize;
        let mut text = vec![0; size.min(LONGEST + 1)];
        reader.read_exact(&mut text)?;
        let header = Header::parse(&text).filter(|_| size <= LONGEST);
        header.ok_or_else(|| damaged("its header is no description of a matrix"))
    }

    /// Reads the dictionary, which is nearly JSON and ends with a newline.
    fn parse(text: &[u8]) -> Option<Header> {
        let text = str::from_utf8(text).ok()?.strip_suffix('\n')?;
        let mut json = String::new();
        for character in text.chars() {
            match character {
                '\'' => json.push('"'),
                '(' => json.push('['),
                ')' | ']' | '}' => {
                    let (kept, last) = (json.trim_end(), character);
                    json.truncate(kept.strip_suffix(',').unwrap_or(kept).len());
                    json.push(if last == '}' { '}' } else { ']' });
                }
                other => json.push(other),
            }
        }
        let json = json.replace("True", "true").replace("False", "false");
        serde_json::from_str(&json).ok()
    }
}

/// A header of version 1.0 for a matrix in C order: all bytes of the file before the elements,
/// which NumPy aligns to 64 bytes.
pub(super) fn of_matrix(descr: &str, rows: usize, columns: usize) -> Vec<u8> {
    const FIXED: usize = 10; // magic, version and the length of the rest
    let dictionary =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    let length = (FIXED + dictionary.len() + 1).next_multiple_of(64) - FIXED;
    let mut bytes = [MAGIC, &[1, 0]].concat();
    // At most 128: three short words and two numbers of twenty digits.
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(format!("{dictionary:<0$}\n", length - 1).bytes());
    bytes
}
