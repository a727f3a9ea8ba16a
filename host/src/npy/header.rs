//! The header of a .npy file: a Python dictionary with three keys, such as
//! `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.

use std::io::Read;
use std::iter;

use serde::Deserialize;
use serde_json::Value;

use super::refusal::{Refusal, damaged};

const MAGIC: &[u8] = b"\x93NUMPY";
/// The first two bytes of a ZIP archive, which an .npz file is.
const ZIP: &[u8] = b"PK";
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
        if start.starts_with(ZIP) {
            return Err(Refusal::Archive);
        }
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
        header.ok_or(Refusal::Unusual)
    }

    /// Reads the dictionary, which is nearly JSON.
    fn parse(text: &[u8]) -> Option<Header> {
        serde_json::from_str(&json(str::from_utf8(text).ok()?)?).ok()
    }
}

/// A Python literal of dictionaries, tuples, lists, strings without escapes, booleans and integers,
/// also Python 2's, as JSON.
fn json(python: &str) -> Option<String> {
    let mut json = String::new();
    let mut rest = python.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            quote @ ('\'' | '"') => {
                let text: String = rest.by_ref().take_while(|next| *next != quote).collect();
                let is_plain = |one: char| !one.is_control() && !['\\', '"'].contains(&one);
                json += &format!(
                    "\"{}\"",
                    Some(text).filter(|text| text.chars().all(is_plain))?
                );
            }
            '#' => rest
                .by_ref()
                .take_while(|next| *next != '\n')
                .for_each(drop),
            '(' => json.push('['),
            ')' | ']' | '}' => {
                let kept = json.trim_end();
                json.truncate(kept.strip_suffix(',').unwrap_or(kept).len());
                json.push(if character == ')' { ']' } else { character });
            }
            // A long integer of Python 2, such as 3L.
            'L' if json.ends_with(|last: char| last.is_ascii_digit()) => {}
            letter if letter.is_alphabetic() => {
                let more = iter::from_fn(|| rest.next_if(|next| next.is_alphanumeric()));
                match &iter::once(letter).chain(more).collect::<String>()[..] {
                    "True" => json += "true",
                    "False" => json += "false",
                    _ => return None,
                }
            }
            other => json.push(other),
        }
    }
    Some(json)
}

/// A header of version 1.0 for an array in C order: all bytes of the file before the elements,
/// which NumPy aligns to 64 bytes.
pub(super) fn of_array(descr: &str, shape: &[usize]) -> Vec<u8> {
    const FIXED: usize = 10; // magic, version and the length of the rest
    let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
    let dictionary = format!(
        "{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}), }}",
        shape.join(", ")
    );
    let length = (FIXED + dictionary.len() + 1).next_multiple_of(64) - FIXED;
    let mut bytes = [MAGIC, &[1, 0]].concat();
    // At most 192: three short words and three numbers of twenty digits.
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(format!("{dictionary:<0$}\n", length - 1).bytes());
    bytes
}
