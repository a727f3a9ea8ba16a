//! The header of a .npy file: a Python dictionary with three keys, such as
//! `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.

use super::Refusal;

/// The three values, each the Python expression as it is written.
pub(super) struct Header<'a> {
    pub descr: &'a str,
    fortran_order: &'a str,
    shape: &'a str,
}

impl<'a> Header<'a> {
    /// Reads the dictionary, which ends with a newline after any number of blanks.
    pub fn parse(text: &'a [u8]) -> Result<Header<'a>, Refusal> {
        let text = str::from_utf8(text)
            .ok()
            .and_then(|text| text.strip_suffix('\n'))
            .ok_or(Refusal::NoDictionary)?;
        let mut rest = text.trim().strip_prefix('{').ok_or(Refusal::NoDictionary)?;
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        loop {
            rest = rest.trim_start();
            if rest == "}" {
                break;
            }
            let key = expression(&mut rest, ':')?;
            let value = expression(&mut rest, ',')?;
            *match quoted(key).ok_or(Refusal::NoDictionary)? {
                "descr" => &mut descr,
                "fortran_order" => &mut fortran_order,
                "shape" => &mut shape,
                _ => return Err(Refusal::ExtraKey(key.to_string())),
            } = Some(value);
        }
        Ok(Header {
            descr: descr.ok_or(Refusal::MissingKey)?,
            fortran_order: fortran_order.ok_or(Refusal::MissingKey)?,
            shape: shape.ok_or(Refusal::MissingKey)?,
        })
    }

    /// Whether the elements lie in Fortran order.
    pub fn fortran_order(&self) -> Result<bool, Refusal> {
        match self.fortran_order {
            "True" => Ok(true),
            "False" => Ok(false),
            other => Err(Refusal::Value(
                "fortran_order".to_string(),
                other.to_string(),
            )),
        }
    }

    /// The sizes: `()`, `(3,)`, `(3, 4)`, `(3, 4,)` and so on.
    pub fn shape(&self) -> Result<Vec<usize>, Refusal> {
        let sizes = || {
            let inside = self.shape.strip_prefix('(')?.strip_suffix(')')?.trim();
            if inside.is_empty() {
                return Some(Vec::new());
            }
            let listed = inside.strip_suffix(',');
            // `(3)` is no tuple but a number.
            if listed.is_none() && !inside.contains(',') {
                return None;
            }
            let sizes = listed.unwrap_or(inside).split(',').map(str::trim);
            sizes.map(size).collect()
        };
        sizes().ok_or_else(|| Refusal::Sizes(self.shape.to_string()))
    }
}

/// A number without a sign.
fn size(text: &str) -> Option<usize> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// The text in a pair of quotes. Nothing that a matrix needs is escaped.
pub(super) fn quoted(expression: &str) -> Option<&str> {
    let quote = expression
        .chars()
        .next()
        .filter(|first| "'\"".contains(*first))?;
    let inside = expression.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inside.contains([quote, '\\'])).then_some(inside)
}

/// Takes an expression and what ends it from the text; the bracket that closes the dictionary,
/// which ends one too, is left there. Neither brackets nor quotes end within it.
fn expression<'a>(rest: &mut &'a str, end: char) -> Result<&'a str, Refusal> {
    let (mut depth, mut quote, mut escaped) = (0usize, None, false);
    for (index, character) in rest.char_indices() {
        match (quote, character) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, '(' | '[' | '{') => depth += 1,
            (None, _) if depth == 0 && (character == end || character == '}') => {
                let text = rest[..index].trim();
                let ended = index + if character == end { end.len_utf8() } else { 0 };
                *rest = &rest[ended..];
                return match text {
                    "" => Err(Refusal::NoDictionary),
                    _ => Ok(text),
                };
            }
            (None, ')' | ']' | '}') => depth = depth.checked_sub(1).ok_or(Refusal::NoDictionary)?,
            (None, _) => {}
        }
    }
    Err(Refusal::NoDictionary)
}

/// A header of version 1.0 for a matrix in C order, from the first byte of the file to the last
/// before the elements, which NumPy aligns to 64 bytes.
pub(super) fn of_matrix(descr: &str, rows: usize, columns: usize) -> Vec<u8> {
    const FIXED: usize = 10; // magic, version and the length of the rest
    let dictionary =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    let length = (FIXED + dictionary.len() + 1).next_multiple_of(64) - FIXED;
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    // At most 128: three short words and two numbers of twenty digits.
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(format!("{dictionary:<0$}\n", length - 1).bytes());
    bytes
}
