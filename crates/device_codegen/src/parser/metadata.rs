//! Metadata: the nodes at the end of a module and the attachments of instructions.

use super::Parser;
use crate::error::Result;
use crate::ir::{Attachments, MetadataItem, MetadataNode, Module};
use crate::lexer::Token;

/// Attachments that are passed on to libNVVM.
const KEPT: &[&str] = &["invariant.load", "llvm.loop", "nonnull", "range"];

/// Attachments that only promise something, so that omitting them loses nothing but a hint.
/// `alias.scope` and `noalias` are among them for a reason: they are tied to
/// `llvm.experimental.noalias.scope.decl`, which libNVVM does not have, and without it unrolling a
/// loop makes them false.
const DROPPED: &str = "alias.scope align dereferenceable dereferenceable_or_null fpmath noalias noalias.addrspace \
    nofree nontemporal noundef prof srcloc tbaa unpredictable";

/// What hangs on an instruction or a function.
#[derive(Default)]
pub(super) struct Attached {
    /// Kinds and node numbers, of those that are passed on to libNVVM.
    pub(super) metadata: Attachments,
    /// `!dbg`: a location of the line tables, or the scope that a function is.
    pub(super) source: Option<u32>,
}

impl Parser<'_> {
    /// `, !range !7, !noundef !3`, the commas included.
    pub(super) fn attachments(&mut self) -> Result<Attached> {
        let mut attached = Attached::default();
        while self.eat_punctuation(',') {
            self.attachment(&mut attached)?;
        }
        Ok(attached)
    }

    /// `!range !7`
    pub(super) fn attachment(&mut self, attached: &mut Attached) -> Result<()> {
        let Token::MetadataName(kind) = *self.peek() else {
            return self.expected("a metadata attachment");
        };
        let kept = kind == "dbg" || KEPT.contains(&kind);
        if !kept && !DROPPED.split(' ').any(|it| it == kind) {
            return self.error(format!(
                "the metadata `!{kind}` has no meaning in device code"
            ));
        }
        self.at += 1;
        match self.next() {
            Token::MetadataNumber(number) => {
                match kind {
                    "dbg" => attached.source = Some(number),
                    _ if kept => attached.metadata.push((kind.to_owned(), number)),
                    _ => {}
                }
                Ok(())
            }
            _ => {
                self.at -= 1;
                self.expected("a metadata number")
            }
        }
    }

    /// `!7 = distinct !{!8, !"name", i32 1}`
    pub(super) fn metadata_definition(&mut self, module: &mut Module, number: u32) -> Result<()> {
        self.at += 1;
        self.punctuation('=')?;
        if module.metadata.contains_key(&number) || module.lines.contains(number) {
            return self.error(format!("the metadata `!{number}` is defined twice"));
        }
        let distinct = self.eat_word("distinct");
        match self.next() {
            Token::Exclamation => {
                self.punctuation('{')?;
                let items = self.list('}', Self::metadata_item)?;
                module
                    .metadata
                    .insert(number, MetadataNode { distinct, items });
                Ok(())
            }
            _ => {
                self.at -= 1;
                self.debug_node(module, number, distinct)
            }
        }
    }

    fn metadata_item(&mut self) -> Result<MetadataItem> {
        match *self.peek() {
            Token::MetadataNumber(number) => {
                self.at += 1;
                Ok(MetadataItem::Node(number))
            }
            Token::MetadataString(text) => {
                self.at += 1;
                Ok(MetadataItem::String(text.into()))
            }
            Token::Word("null") => {
                self.at += 1;
                Ok(MetadataItem::Null)
            }
            Token::MetadataName(_) => {
                self.at += 1;
                self.balanced()?;
                Ok(MetadataItem::Null)
            }
            _ => Ok(MetadataItem::Constant(self.typed_constant()?)),
        }
    }
}
