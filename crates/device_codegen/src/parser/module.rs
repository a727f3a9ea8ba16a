//! The top level of a module: target, types, globals, functions, attribute groups, metadata.

use super::Parser;
use super::metadata::Attached;
use crate::error::Result;
use crate::ir::{Global, Linkage, MetadataItem, Module};
use crate::lexer::Token;

/// The only machine whose calling convention the IR may follow: the host that rustc compiles for.
const HOST_TRIPLE: &str = "x86_64-unknown-linux-gnu";

impl Parser<'_> {
    /// Finds what may be used before it is defined: named types and attribute groups.
    pub(super) fn collect_definitions(&mut self) -> Result<()> {
        for position in 0..self.tokens.len() {
            self.at = position;
            match (self.peek(), self.peek_at(1), self.peek_at(2)) {
                (Token::Local(name), Token::Punctuation('='), Token::Word("type")) => {
                    let name = name.clone().into_owned();
                    self.type_definitions.insert(name, position + 3);
                }
                (
                    Token::Word("attributes"),
                    Token::AttributeGroup(number),
                    Token::Punctuation('='),
                ) => {
                    let number = *number;
                    self.at += 3;
                    let group = self.attribute_group()?;
                    self.attribute_groups.insert(number, group);
                }
                _ => {}
            }
        }
        self.at = 0;
        Ok(())
    }

    pub(super) fn module(&mut self) -> Result<Module> {
        let mut module = Module::default();
        loop {
            match self.peek().clone() {
                Token::End => {
                    forget_extents_of_loops(&mut module);
                    return Ok(module);
                }
                Token::Word("source_filename") => {
                    self.at += 1;
                    self.punctuation('=')?;
                    self.string()?;
                }
                Token::Word("target") => self.target()?,
                Token::Word("attributes") => {
                    self.at += 1;
                    if !matches!(self.next(), Token::AttributeGroup(_)) {
                        self.at -= 1;
                        return self.expected("an attribute group");
                    }
                    self.punctuation('=')?;
                    self.attribute_group()?;
                }
                Token::Word("define" | "declare") => self.function(&mut module)?,
                Token::Local(_) => {
                    self.at += 1;
                    self.punctuation('=')?;
                    self.word("type")?;
                    self.ty()?;
                }
                Token::Global(name) => self.global(&mut module, &name)?,
                Token::Comdat(_) => {
                    self.at += 1;
                    self.punctuation('=')?;
                    self.word("comdat")?;
                    self.words_of(&["any", "exactmatch", "largest", "nodeduplicate", "samesize"]);
                }
                Token::MetadataNumber(number) => self.metadata_definition(&mut module, number)?,
                // `!llvm.module.flags = !{!0, !1}`: about the host.
                Token::MetadataName(_) => {
                    self.at += 1;
                    self.punctuation('=')?;
                    if self.next() != Token::Exclamation {
                        self.at -= 1;
                        return self.expected("a list of metadata");
                    }
                    self.punctuation('{')?;
                    self.list('}', |parser| match parser.next() {
                        Token::MetadataNumber(_) => Ok(()),
                        _ => {
                            parser.at -= 1;
                            parser.expected("a metadata number")
                        }
                    })?;
                }
                _ => return self.expected("a definition"),
            }
        }
    }

    fn target(&mut self) -> Result<()> {
        self.at += 1;
        if self.eat_word("datalayout") {
            self.punctuation('=')?;
            self.string()?;
            return Ok(());
        }
        self.word("triple")?;
        self.punctuation('=')?;
        let before = self.at;
        let triple = self.string()?;
        if triple != HOST_TRIPLE {
            self.at = before;
            return self.error(format!(
                "the IR was made for `{triple}`; compile the kernels with `--target {HOST_TRIPLE}`"
            ));
        }
        Ok(())
    }

    /// Linkage and the words about visibility behind it.
    pub(super) fn linkage(&mut self) -> Result<Linkage> {
        let linkage = match self.peek() {
            Token::Word("private" | "internal") => Some(Linkage::Local),
            Token::Word("linkonce" | "linkonce_odr" | "weak" | "weak_odr") => Some(Linkage::Weak),
            Token::Word("external") => Some(Linkage::Strong),
            Token::Word(
                word @ ("available_externally" | "appending" | "common" | "extern_weak"),
            ) => return self.error(format!("device code has no `{word}` symbols")),
            _ => None,
        };
        if linkage.is_some() {
            self.at += 1;
        }
        self.words_of(&[
            "default",
            "dso_local",
            "dso_preemptable",
            "hidden",
            "local_unnamed_addr",
            "protected",
            "unnamed_addr",
        ]);
        Ok(linkage.unwrap_or(Linkage::Strong))
    }

    /// `@name = internal unnamed_addr constant [4 x i8] c"text", section "s", align 4`
    fn global(&mut self, module: &mut Module, name: &str) -> Result<()> {
        let location = self.location();
        self.at += 1;
        self.punctuation('=')?;
        let external = matches!(self.peek(), Token::Word("external"));
        let linkage = self.linkage()?;
        if self.at_word("thread_local") {
            return self.error(format!(
                "`{}` is thread-local; a GPU has no thread-local statics",
                crate::error::demangle(name)
            ));
        }
        self.words_of(&[
            "unnamed_addr",
            "local_unnamed_addr",
            "externally_initialized",
        ]);
        let is_constant = match self.next() {
            Token::Word("constant") => true,
            Token::Word("global") => false,
            _ => {
                self.at -= 1;
                return self.expected("`global` or `constant`");
            }
        };
        let ty = self.ty()?;
        let initializer = match external {
            true => None,
            false => Some(self.constant(&ty)?),
        };
        let mut global = Global {
            location,
            linkage,
            is_constant,
            ty,
            initializer,
            section: None,
            align: None,
            address_space: 0,
        };
        while self.eat_punctuation(',') {
            match *self.peek() {
                Token::Word("section") => {
                    self.at += 1;
                    global.section = Some(self.string()?);
                }
                Token::Word("align") => {
                    self.at += 1;
                    global.align = Some(self.alignment()?);
                }
                Token::Word("comdat") => {
                    self.at += 1;
                    if self.at_punctuation('(') {
                        self.balanced()?;
                    }
                }
                _ => self.attachment(&mut Attached::default())?,
            }
        }
        if module.globals.insert(name.into(), global).is_some() {
            return self.error(format!("`@{name}` is defined twice"));
        }
        Ok(())
    }
}

/// Removes from tuples the locations of the line tables: `!llvm.loop` may have two, where the
/// loop starts and where it ends, which only remarks of the optimiser tell.
fn forget_extents_of_loops(module: &mut Module) {
    for node in module.metadata.values_mut() {
        node.items.retain(|item| {
            !matches!(item, MetadataItem::Node(number) if module.lines.locations.contains_key(number))
        });
    }
}
