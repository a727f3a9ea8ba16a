//! Cuts LLVM's text into tokens, each with its line.

use std::borrow::Cow;
use std::sync::Arc;

use crate::error::{Error, Location, Result};

/// One token. Names are without their sigil and quotes, with escapes resolved.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token<'a> {
    /// A keyword, an opcode or a type: `define`, `i32`, `align`.
    Word(&'a str),
    /// `@name`
    Global(Cow<'a, str>),
    /// `%name` or `%7`
    Local(Cow<'a, str>),
    /// `name:` at the head of a block, or before the value of a field.
    Label(Cow<'a, str>),
    /// `!name`
    MetadataName(&'a str),
    /// `!7`
    MetadataNumber(u32),
    /// `!"text"`, with its escapes.
    MetadataString(&'a str),
    /// `!` before `{`.
    Exclamation,
    /// `#7`
    AttributeGroup(u32),
    /// `#dbg_value` and the like.
    DebugRecord(&'a str),
    /// `$name`
    Comdat(Cow<'a, str>),
    Integer(i128),
    /// An integer beyond the range of `i128`, as written.
    WideInteger(&'a str),
    /// As written.
    Float(&'a str),
    /// `"text"`
    String(Vec<u8>),
    /// `c"text"`
    Bytes(Vec<u8>),
    Punctuation(char),
    Ellipsis,
    End,
}

/// A token and the line it starts on.
#[derive(Clone, Debug)]
pub(crate) struct Spanned<'a> {
    pub(crate) token: Token<'a>,
    pub(crate) line: u32,
}

/// All tokens of `text`, the last being [`Token::End`].
pub(crate) fn tokenize<'a>(file: &Arc<str>, text: &'a str) -> Result<Vec<Spanned<'a>>> {
    let mut lexer = Lexer {
        file,
        text,
        position: 0,
        line: 1,
    };
    let mut tokens = Vec::with_capacity(text.len() / 5);
    loop {
        lexer.skip_blank();
        let line = lexer.line;
        let token = lexer.next()?;
        let last = token == Token::End;
        tokens.push(Spanned { token, line });
        if last {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a, 'f> {
    file: &'f Arc<str>,
    text: &'a str,
    position: usize,
    line: u32,
}

/// What a name without quotes is made of.
pub(crate) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'$' | b'.' | b'_')
}

impl<'a> Lexer<'a, '_> {
    fn error<T>(&self, problem: impl Into<String>) -> Result<T> {
        let location = Location {
            file: self.file.clone(),
            line: self.line,
            function: None,
        };
        Err(Error::new(&location, problem))
    }

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.position..]
    }

    fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    fn skip_blank(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b'\n' => self.line = self.line.saturating_add(1),
                b' ' | b'\t' | b'\r' => {}
                b';' => {
                    let length = self
                        .rest()
                        .iter()
                        .take_while(|byte| **byte != b'\n')
                        .count();
                    self.position += length;
                    continue;
                }
                _ => return,
            }
            self.position += 1;
        }
    }

    /// Takes bytes while `accept` holds; all accepted bytes are ASCII.
    fn take_while(&mut self, accept: impl Fn(u8) -> bool) -> &'a str {
        let start = self.position;
        let length = self.rest().iter().take_while(|byte| accept(**byte)).count();
        self.position += length;
        self.text.get(start..self.position).unwrap_or_default()
    }

    fn next(&mut self) -> Result<Token<'a>> {
        let Some(byte) = self.peek() else {
            return Ok(Token::End);
        };
        match byte {
            b'@' => {
                self.position += 1;
                Ok(Token::Global(self.name("@")?))
            }
            b'%' => {
                self.position += 1;
                Ok(Token::Local(self.name("%")?))
            }
            b'$' => {
                self.position += 1;
                Ok(Token::Comdat(self.name("$")?))
            }
            b'!' => self.metadata(),
            b'#' => {
                self.position += 1;
                let word = self.take_while(is_name_byte);
                match word.parse() {
                    Ok(number) => Ok(Token::AttributeGroup(number)),
                    Err(_) if word.starts_with("dbg_") => Ok(Token::DebugRecord(word)),
                    Err(_) => self.error(format!("`#{word}` is not an attribute group")),
                }
            }
            b'"' => {
                let raw = self.quoted()?;
                if self.peek() == Some(b':') {
                    self.position += 1;
                    return Ok(Token::Label(text_of(unescape(raw))));
                }
                Ok(Token::String(unescape(raw)))
            }
            b'.' if self.rest().starts_with(b"...") => {
                self.position += 3;
                Ok(Token::Ellipsis)
            }
            b'+' => self.word(),
            _ if is_name_byte(byte) => self.word(),
            b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'<' | b'>' | b',' | b'=' | b'*' | b'|'
            | b':' => {
                self.position += 1;
                Ok(Token::Punctuation(char::from(byte)))
            }
            _ => {
                let found = self
                    .text
                    .get(self.position..)
                    .and_then(|rest| rest.chars().next());
                self.error(format!(
                    "the character {:?} does not belong in LLVM IR",
                    found.unwrap_or_default()
                ))
            }
        }
    }

    /// A keyword, a number or a label.
    fn word(&mut self) -> Result<Token<'a>> {
        if self.rest().starts_with(b"c\"") {
            self.position += 1;
            return Ok(Token::Bytes(unescape(self.quoted()?)));
        }
        let start = self.position;
        if self.peek() == Some(b'+') {
            self.position += 1;
        }
        self.take_while(is_name_byte);
        let mut word = self.text.get(start..self.position).unwrap_or_default();
        if self.peek() == Some(b':') {
            self.position += 1;
            return Ok(Token::Label(Cow::Borrowed(word)));
        }
        // `1.000000e+00`: the sign of the exponent is not a name byte.
        if word.ends_with('e') && starts_number(word) && self.peek() == Some(b'+') {
            self.position += 1;
            self.take_while(|byte| byte.is_ascii_digit());
            word = self.text.get(start..self.position).unwrap_or_default();
        }
        if !starts_number(word) {
            return Ok(Token::Word(word));
        }
        if word.contains('.') || word.starts_with("0x") {
            return Ok(Token::Float(word));
        }
        let digits = word.strip_prefix('-').unwrap_or(word);
        match word.parse::<i128>() {
            Ok(value) => Ok(Token::Integer(value)),
            // Which number that is depends on its type.
            Err(_) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Ok(Token::WideInteger(word))
            }
            Err(_) => self.error(format!("`{word}` is not a number")),
        }
    }

    fn metadata(&mut self) -> Result<Token<'a>> {
        self.position += 1;
        match self.peek() {
            Some(b'"') => Ok(Token::MetadataString(self.quoted()?)),
            Some(byte) if byte.is_ascii_digit() => {
                let digits = self.take_while(|byte| byte.is_ascii_digit());
                match digits.parse() {
                    Ok(number) => Ok(Token::MetadataNumber(number)),
                    Err(_) => self.error(format!("`!{digits}` is not a metadata number")),
                }
            }
            Some(byte) if is_name_byte(byte) => {
                Ok(Token::MetadataName(self.take_while(is_name_byte)))
            }
            _ => Ok(Token::Exclamation),
        }
    }

    /// The name after a sigil.
    fn name(&mut self, sigil: &str) -> Result<Cow<'a, str>> {
        if self.peek() == Some(b'"') {
            return Ok(text_of(unescape(self.quoted()?)));
        }
        let name = self.take_while(is_name_byte);
        if name.is_empty() {
            return self.error(format!("a name is missing after `{sigil}`"));
        }
        Ok(Cow::Borrowed(name))
    }

    /// The text between two quotes, escapes unresolved. LLVM writes an embedded quote as
    /// `\22`.
    fn quoted(&mut self) -> Result<&'a str> {
        self.position += 1;
        let start = self.position;
        let length = self.rest().iter().take_while(|byte| **byte != b'"').count();
        if length == self.rest().len() {
            return self.error("a string is not closed before the end of the file");
        }
        self.position += length + 1;
        let text = self.text.get(start..start + length).unwrap_or_default();
        let newlines = text.bytes().filter(|byte| *byte == b'\n').count();
        self.line = self
            .line
            .saturating_add(u32::try_from(newlines).unwrap_or(u32::MAX));
        Ok(text)
    }
}

fn starts_number(word: &str) -> bool {
    let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
    digits
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_digit())
}

/// Resolves `\\` and `\22`; any other backslash is itself.
fn unescape(raw: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        match tail {
            [b'\\', tail @ ..] => {
                bytes.push(b'\\');
                rest = tail;
            }
            [high, low, tail @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
                bytes.push(digit(*high) * 16 + digit(*low));
                rest = tail;
            }
            _ => bytes.push(b'\\'),
        }
    }
    bytes
}

fn text_of<'a>(bytes: Vec<u8>) -> Cow<'a, str> {
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// How an error message shows a token.
impl std::fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::Word(text) | Token::Float(text) => f.write_str(text),
            Token::Global(name) => write!(f, "@{name}"),
            Token::Local(name) => write!(f, "%{name}"),
            Token::Label(name) => write!(f, "{name}:"),
            Token::MetadataName(name) => write!(f, "!{name}"),
            Token::MetadataNumber(number) => write!(f, "!{number}"),
            Token::MetadataString(text) => write!(f, "!\"{text}\""),
            Token::Exclamation => f.write_str("!"),
            Token::AttributeGroup(number) => write!(f, "#{number}"),
            Token::DebugRecord(name) => write!(f, "#{name}"),
            Token::Comdat(name) => write!(f, "${name}"),
            Token::Integer(value) => write!(f, "{value}"),
            Token::WideInteger(digits) => f.write_str(digits),
            Token::String(bytes) => write!(f, "\"{}\"", String::from_utf8_lossy(bytes)),
            Token::Bytes(bytes) => write!(f, "c\"{}\"", bytes.escape_ascii()),
            Token::Punctuation(character) => write!(f, "{character}"),
            Token::Ellipsis => f.write_str("..."),
            Token::End => f.write_str("end of file"),
        }
    }
}
