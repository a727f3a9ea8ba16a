//! Reads LLVM 22's textual IR, as stable rustc 1.95 prints it.
//!
//! Whatever it does not know is an error with its line and function; nothing is skipped on a
//! guess.

mod attributes;
mod call;
mod constants;
mod function;
mod instruction;
mod lines;
mod memory;
mod metadata;
mod module;
mod types;

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;

use crate::error::{Error, Location, Result};
use crate::ir::{Attribute, Module, Type};
use crate::lexer::{Spanned, Token, tokenize};

/// How deeply types and constants may nest. rustc stays below ten; the limit prevents hostile
/// input from overflowing the stack.
const MAXIMUM_DEPTH: u32 = 64;

/// Reads one module. `file` names it in errors.
pub(crate) fn parse(file: &str, text: &str) -> Result<Module> {
    let file: Arc<str> = file.into();
    let mut parser = Parser {
        tokens: tokenize(&file, text)?,
        file,
        at: 0,
        function: None,
        depth: 0,
        type_definitions: HashMap::new(),
        types: HashMap::new(),
        attribute_groups: HashMap::new(),
    };
    parser.collect_definitions()?;
    parser.module()
}

struct Parser<'a> {
    file: Arc<str>,
    tokens: Vec<Spanned<'a>>,
    at: usize,
    /// The function around the current token, for errors.
    function: Option<Arc<str>>,
    depth: u32,
    /// Where the body of each named type starts.
    type_definitions: HashMap<String, usize>,
    /// The named types read so far; `None` while one is being read.
    types: HashMap<String, Option<Type>>,
    attribute_groups: HashMap<u32, Vec<Attribute>>,
}

impl<'a> Parser<'a> {
    fn location(&self) -> Location {
        Location {
            file: self.file.clone(),
            line: self.line(),
            function: self.function.clone(),
        }
    }

    /// An error at the current token.
    fn error<T>(&self, problem: impl Into<String>) -> Result<T> {
        Err(Error::new(&self.location(), problem))
    }

    /// The error for a construct that has no meaning here.
    fn expected<T>(&self, what: impl Display) -> Result<T> {
        let found = self.peek();
        self.error(format!("expected {what}, found `{found}`"))
    }

    /// The line of the current token.
    fn line(&self) -> u32 {
        self.spanned(self.at).map_or(0, |spanned| spanned.line)
    }

    /// The token at `position`; past the end, the last one, which is [`Token::End`].
    fn spanned(&self, position: usize) -> Option<&Spanned<'a>> {
        self.tokens.get(position).or_else(|| self.tokens.last())
    }

    fn peek(&self) -> &Token<'a> {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> &Token<'a> {
        self.spanned(self.at + ahead)
            .map_or(&Token::End, |spanned| &spanned.token)
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek().clone();
        if self.at < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    fn at_punctuation(&self, character: char) -> bool {
        *self.peek() == Token::Punctuation(character)
    }

    fn eat_punctuation(&mut self, character: char) -> bool {
        let found = self.at_punctuation(character);
        if found {
            self.at += 1;
        }
        found
    }

    fn punctuation(&mut self, character: char) -> Result<()> {
        match self.eat_punctuation(character) {
            true => Ok(()),
            false => self.expected(format_args!("`{character}`")),
        }
    }

    fn at_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(found) if *found == word)
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        if found {
            self.at += 1;
        }
        found
    }

    fn word(&mut self, word: &str) -> Result<()> {
        match self.eat_word(word) {
            true => Ok(()),
            false => self.expected(format_args!("`{word}`")),
        }
    }

    /// Takes words from `known` while they come.
    fn words_of(&mut self, known: &[&str]) -> Vec<String> {
        let mut words = Vec::new();
        while let Token::Word(word) = self.peek()
            && known.contains(word)
        {
            words.push((*word).to_owned());
            self.at += 1;
        }
        words
    }

    /// A number that cannot be negative.
    fn number(&mut self) -> Result<u64> {
        if let Token::Integer(value) = self.peek()
            && let Ok(value) = u64::try_from(*value)
        {
            self.at += 1;
            return Ok(value);
        }
        self.expected("a number")
    }

    /// `(7)`
    fn number_in_parentheses(&mut self) -> Result<u64> {
        self.punctuation('(')?;
        let number = self.number()?;
        self.punctuation(')')?;
        Ok(number)
    }

    fn string(&mut self) -> Result<String> {
        if let Token::String(bytes) = self.peek() {
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.at += 1;
            return Ok(text);
        }
        self.expected("a string")
    }

    /// An alignment in bytes: a power of two that libNVVM takes.
    fn alignment(&mut self) -> Result<u64> {
        let number = self.number()?;
        match number.is_power_of_two() && number <= 1 << 29 {
            true => Ok(number),
            false => self.error(format!("{number} is not an alignment")),
        }
    }

    /// Skips `( ... )` with its contents and returns it as text.
    fn balanced(&mut self) -> Result<String> {
        self.punctuation('(')?;
        let mut text = String::new();
        let mut open = 1_u32;
        loop {
            let token = self.next();
            match token {
                Token::Punctuation('(') => open += 1,
                Token::Punctuation(')') => open -= 1,
                Token::End => return self.expected("`)`"),
                _ => {}
            }
            if open == 0 {
                return Ok(text);
            }
            let glued = matches!(token, Token::Punctuation(',' | ')' | ':'))
                || text.is_empty()
                || text.ends_with('(');
            if !glued {
                text.push(' ');
            }
            text.push_str(&token.to_string());
        }
    }

    /// Runs `read` one level deeper.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == MAXIMUM_DEPTH {
            return self.error(format!(
                "types or constants are nested more than {MAXIMUM_DEPTH} deep"
            ));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// `item, item, ... close`; the opening bracket has been taken.
    fn list<T>(
        &mut self,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut items = Vec::new();
        if self.eat_punctuation(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat_punctuation(close) {
                return Ok(items);
            }
            self.punctuation(',')?;
        }
    }
}
