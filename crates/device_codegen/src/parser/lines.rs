//! Debug information: the line tables, out of all that LLVM can express.
//!
//! The kinds of [`DROPPED_KINDS`] describe types, variables and modules, for debuggers. No
//! instruction depends on them, and nothing that is kept refers to them. A kind or a field that is
//! in no list is an error.

use super::Parser;
use crate::error::Result;
use crate::ir::{Module, Scope, SourceFile, SourceFunction, SourceLocation};
use crate::lexer::Token;

/// What rustc writes beside line tables. Nothing of the compile units is kept either: libNVVM
/// requires one for the complete program, and the printer makes it.
const DROPPED_KINDS: &str = "DIBasicType DICompileUnit DICompositeType DIDerivedType DIEnumerator DIExpression \
    DIGlobalVariable DIGlobalVariableExpression DIImportedEntity DILocalVariable DINamespace \
    DISubrange DISubroutineType DITemplateTypeParameter DITemplateValueParameter";

/// A field's value, of those that are read.
enum FieldValue {
    Number(u32),
    Node(u32),
    Text(String),
    Null,
}

/// The fields of a node, by name.
type Fields = Vec<(String, FieldValue)>;

impl Parser<'_> {
    /// `!DILocation(line: 68, column: 9, scope: !7)`, from the name on.
    pub(super) fn debug_node(
        &mut self,
        module: &mut Module,
        number: u32,
        distinct: bool,
    ) -> Result<()> {
        let Token::MetadataName(kind) = *self.peek() else {
            return self.expected("a metadata node");
        };
        let lines = &mut module.lines;
        match kind {
            "DIFile" => {
                // A debugger may check that the source is the one that was compiled; no tool for
                // PTX does.
                let fields =
                    self.debug_fields(&["filename", "directory"], &["checksumkind", "checksum"])?;
                let file = SourceFile {
                    name: self.text(&fields, "filename")?.into(),
                    folder: self.text(&fields, "directory")?.into(),
                };
                lines.files.insert(number, file);
            }
            "DISubprogram" => {
                let function = self.source_function()?;
                lines.scopes.insert(number, Scope::Function(function));
            }
            "DILexicalBlock" => {
                let fields = self.debug_fields(&["scope", "file", "line", "column"], &[])?;
                let block = Scope::Block {
                    parent: self.node(&fields, "scope")?,
                    file: self.node(&fields, "file")?,
                    line: self.optional_number(&fields, "line")?,
                    column: self.optional_number(&fields, "column")?,
                };
                lines.scopes.insert(number, block);
            }
            "DILexicalBlockFile" => {
                // Discriminators let profilers distinguish copies of a line.
                let fields = self.debug_fields(&["scope", "file"], &["discriminator"])?;
                let scope = Scope::OtherFile {
                    parent: self.node(&fields, "scope")?,
                    file: self.node(&fields, "file")?,
                };
                lines.scopes.insert(number, scope);
            }
            "DILocation" => {
                // Marks for debuggers that step from statement to statement.
                let dropped = ["isImplicitCode", "atomGroup", "atomRank"];
                let fields =
                    self.debug_fields(&["line", "column", "scope", "inlinedAt"], &dropped)?;
                let location = SourceLocation {
                    distinct,
                    line: self.optional_number(&fields, "line")?,
                    column: self.optional_number(&fields, "column")?,
                    scope: self.node(&fields, "scope")?,
                    inlined_at: self.optional_node(&fields, "inlinedAt")?,
                };
                lines.locations.insert(number, location);
            }
            _ if DROPPED_KINDS.split(' ').any(|it| it == kind) => {
                self.at += 1;
                self.balanced()?;
            }
            _ => {
                return self.error(format!(
                    "debug information of the kind `!{kind}` is not known"
                ));
            }
        }
        Ok(())
    }

    fn source_function(&mut self) -> Result<SourceFunction> {
        let read = ["name", "linkageName", "file", "line", "scopeLine"];
        // Its types, its path (which the symbol holds), and whether it is local: all are.
        let dropped = [
            "containingType",
            "declaration",
            "flags",
            "retainedNodes",
            "scope",
            "spFlags",
            "templateParams",
            "type",
            "unit",
            "virtualIndex",
        ];
        let fields = self.debug_fields(&read, &dropped)?;
        let symbol = match value(&fields, "linkageName") {
            Some(_) => Some(self.text(&fields, "linkageName")?.into()),
            None => None,
        };
        Ok(SourceFunction {
            name: self.text(&fields, "name")?.into(),
            symbol,
            file: self.node(&fields, "file")?,
            line: self.optional_number(&fields, "line")?,
            body_line: self.optional_number(&fields, "scopeLine")?,
        })
    }

    /// `!Kind(read: 1, dropped: DIFlagPrototyped | DIFlagStatic)`
    fn debug_fields(&mut self, read: &[&str], dropped: &[&str]) -> Result<Fields> {
        self.at += 1;
        self.punctuation('(')?;
        let fields = self.list(')', |parser| {
            let Token::Label(name) = parser.peek().clone() else {
                return parser.expected("the name of a field");
            };
            if dropped.contains(&&*name) {
                parser.at += 1;
                parser.skip_field()?;
                return Ok(None);
            }
            if !read.contains(&&*name) {
                return parser.error(format!(
                    "the field `{name}` of debug information is not known"
                ));
            }
            parser.at += 1;
            Ok(Some((name.into_owned(), parser.field_value()?)))
        })?;
        Ok(fields.into_iter().flatten().collect())
    }

    fn field_value(&mut self) -> Result<FieldValue> {
        let value = match self.peek() {
            Token::Integer(number) => match u32::try_from(*number) {
                Ok(number) => FieldValue::Number(number),
                Err(_) => return self.error(format!("{number} is not a line or a column")),
            },
            Token::MetadataNumber(number) => FieldValue::Node(*number),
            Token::String(bytes) => FieldValue::Text(String::from_utf8_lossy(bytes).into_owned()),
            Token::Word("null") => FieldValue::Null,
            _ => return self.expected("a number, a text or a metadata number"),
        };
        self.at += 1;
        Ok(value)
    }

    /// Skips a value: words and numbers with `|` between them, or one token of another kind.
    fn skip_field(&mut self) -> Result<()> {
        loop {
            match self.next() {
                Token::Word(_)
                | Token::Integer(_)
                | Token::WideInteger(_)
                | Token::String(_)
                | Token::MetadataNumber(_)
                | Token::MetadataName(_) => {}
                _ => {
                    self.at -= 1;
                    return self.expected("the value of a field");
                }
            }
            if !self.eat_punctuation('|') {
                return Ok(());
            }
        }
    }

    fn text<'f>(&self, fields: &'f Fields, name: &str) -> Result<&'f str> {
        match value(fields, name) {
            Some(FieldValue::Text(text)) => Ok(text),
            _ => self.wrong_field(name, "a text"),
        }
    }

    fn node(&self, fields: &Fields, name: &str) -> Result<u32> {
        match self.optional_node(fields, name)? {
            Some(number) => Ok(number),
            None => self.wrong_field(name, "a metadata number"),
        }
    }

    fn optional_node(&self, fields: &Fields, name: &str) -> Result<Option<u32>> {
        match value(fields, name) {
            None | Some(FieldValue::Null) => Ok(None),
            Some(FieldValue::Node(number)) => Ok(Some(*number)),
            Some(_) => self.wrong_field(name, "a metadata number"),
        }
    }

    /// LLVM leaves out a zero.
    fn optional_number(&self, fields: &Fields, name: &str) -> Result<u32> {
        match value(fields, name) {
            None => Ok(0),
            Some(FieldValue::Number(number)) => Ok(*number),
            Some(_) => self.wrong_field(name, "a number"),
        }
    }

    /// The error for a field of the node that ends before the current token.
    fn wrong_field<T>(&self, name: &str, expected: &str) -> Result<T> {
        let line = self.spanned(self.at.saturating_sub(1));
        let location = crate::error::Location {
            line: line.map_or(0, |spanned| spanned.line),
            ..self.location()
        };
        let problem = format!("the field `{name}` of debug information is not {expected}");
        Err(crate::error::Error::new(&location, problem))
    }
}

fn value<'f>(fields: &'f Fields, name: &str) -> Option<&'f FieldValue> {
    fields
        .iter()
        .find(|(known, _)| known == name)
        .map(|(_, value)| value)
}
