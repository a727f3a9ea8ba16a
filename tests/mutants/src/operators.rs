//! The mutation operators: which errors are planted, and how they are written beside the code so
//! that one build has them all.
//!
//! Each becomes a condition in the source. What must be known when the program is compiled cannot
//! depend on one: constants, array lengths, const generics, `const fn`. Macros are left alone too.
//! The technique, all mutants in one program, is Untch, Offutt and Harrold's: "Mutation analysis
//! using mutant schemata", ISSTA 1993.

use std::collections::HashMap;

use crate::scope::SHOWS_PROGRESS;
use proc_macro2::{LineColumn, Span};
use quote::quote;
use sha2::{Digest, Sha256};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Block, Expr, Lit, ReturnType, Stmt, Type, UnOp};

use crate::mutant::Mutant;

/// Of the text of a mutant, so many characters are shown.
const LONGEST_TEXT: usize = 70;

/// A text to be written into a source.
#[derive(Clone, Debug)]
struct Edit {
    /// The bytes that it takes the place of; none, if they are where it begins.
    bytes: (usize, usize),
    text: String,
    side: Side,
    /// Of two on the same side: an outer text begins before an inner one, and ends after it.
    order: usize,
}

/// At one place: what goes behind the text that ends there, then what goes before the text that
/// begins there, then what takes the place of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    End,
    Begin,
    Within,
}

/// The mutants of one source, and the source with all of them switched off.
pub struct Mutated {
    /// How many there are, wanted or not: each has its id.
    pub found: u32,
    pub mutants: Vec<Mutant>,
    pub source: String,
}

/// Finds the mutants of `source`, the text of `file`, whose ids begin with `first_id`, and writes
/// those that `keep` wants.
///
/// # Errors
///
/// `source` is not Rust.
pub fn mutate(
    file: &str,
    source: &str,
    first_id: u32,
    keep: &dyn Fn(&Mutant) -> bool,
) -> syn::Result<Mutated> {
    let syntax = syn::parse_file(source)?;
    let mut finder = Finder {
        file,
        source,
        lines: std::iter::once(0)
            .chain(source.match_indices('\n').map(|(at, _)| at + 1))
            .collect(),
        functions: Vec::new(),
        versions: Vec::new(),
        next_id: first_id,
        names: HashMap::new(),
        keep,
        mutants: Vec::new(),
        edits: Vec::new(),
    };
    finder.visit_file(&syntax);
    let Finder {
        next_id,
        mutants,
        mut edits,
        ..
    } = finder;
    edits.sort_by_key(|edit| (edit.bytes.0, edit.side, edit.order));
    let mut text = String::with_capacity(2 * source.len());
    let mut at = 0;
    for edit in edits {
        text.push_str(&source[at..edit.bytes.0]);
        text.push_str(&edit.text);
        at = edit.bytes.1;
    }
    text.push_str(&source[at..]);
    Ok(Mutated {
        found: next_id - first_id,
        mutants,
        source: text,
    })
}

struct Finder<'a> {
    file: &'a str,
    source: &'a str,
    /// Where each line begins.
    lines: Vec<usize>,
    functions: Vec<String>,
    /// Of those functions that are being visited, one within the other.
    versions: Vec<String>,
    next_id: u32,
    /// How many have a name.
    names: HashMap<String, u32>,
    keep: &'a dyn Fn(&Mutant) -> bool,
    mutants: Vec<Mutant>,
    edits: Vec<Edit>,
}

impl Finder<'_> {
    fn offset(&self, at: LineColumn) -> usize {
        let line = &self.source[self.lines[at.line - 1]..];
        let column = line.char_indices().nth(at.column);
        self.lines[at.line - 1] + column.map_or(line.len(), |(byte, _)| byte)
    }

    fn bytes(&self, span: Span) -> (usize, usize) {
        (self.offset(span.start()), self.offset(span.end()))
    }

    /// The id of a new mutant of `span`, or `None` if it is not wanted.
    fn plant(&mut self, span: Span, change: impl Into<String>) -> Option<u32> {
        self.plant_at(span, span, change)
    }

    /// The same; `at` is the part of `span` that changes.
    fn plant_at(&mut self, span: Span, at: Span, change: impl Into<String>) -> Option<u32> {
        let (begin, end) = self.bytes(span);
        let words: Vec<_> = self.source[begin..end].split_whitespace().collect();
        let mut text = words.join(" ");
        if let Some((cut, _)) = text.char_indices().nth(LONGEST_TEXT) {
            text.truncate(cut);
            text.push('…');
        }
        let mut mutant = Mutant {
            id: self.next_id,
            file: self.file.to_owned(),
            line: at.start().line,
            function: self.functions.join("::"),
            version: self.versions.last().cloned().unwrap_or_default(),
            entry: 0,
            text,
            change: change.into(),
            occurrence: 1,
        };
        self.next_id += 1;
        // The same change of the same text in one function: told apart by a number.
        let count = self.names.entry(mutant.name()).or_insert(0);
        *count += 1;
        mutant.occurrence = *count;
        if !(self.keep)(&mutant) {
            return None;
        }
        let id = mutant.id;
        self.mutants.push(mutant);
        Some(id)
    }

    fn edit(&mut self, bytes: (usize, usize), side: Side, text: String) {
        let order = self.edits.len();
        self.edits.push(Edit {
            bytes,
            text,
            side,
            order,
        });
    }

    /// Writes `before` in front of `span` and, when `inner` has written what is within, `after`
    /// behind it.
    fn wrap(&mut self, span: Span, before: String, after: String, inner: impl FnOnce(&mut Self)) {
        let (begin, end) = self.bytes(span);
        self.edit((begin, begin), Side::Begin, before);
        inner(self);
        self.edit((end, end), Side::End, after);
    }

    fn condition(&mut self, condition: &Expr) {
        if holds_a_let(condition) {
            return visit::visit_expr(self, condition);
        }
        let always = self.plant(condition.span(), "always");
        let never = self.plant(condition.span(), "never");
        let mut value = "c".to_owned();
        if let Some(id) = always {
            value = format!("({value} || {})", on(id));
        }
        if let Some(id) = never {
            value = format!("({value} && !{})", on(id));
        }
        self.wrap(
            condition.span(),
            "(match (".into(),
            format!(") {{ c => {value} }})"),
            |finder| finder.visit_expr(condition),
        );
    }

    fn binary(&mut self, expression: &syn::ExprBinary) {
        let (left, operator, right) = (&expression.left, &expression.op, &expression.right);
        let sign = &self.source[self.bytes(operator.span()).0..self.bytes(operator.span()).1];
        let sign = sign.to_owned();
        let Some(others) = instead(operator) else {
            return visit::visit_expr_binary(self, expression);
        };
        let span = expression.span();
        match operator {
            BinOp::And(_) | BinOp::Or(_) => {
                if holds_a_let(left) || holds_a_let(right) {
                    return visit::visit_expr_binary(self, expression);
                }
                let Some(id) =
                    self.plant_at(span, operator.span(), format!("{} for {sign}", others[0]))
                else {
                    return visit::visit_expr_binary(self, expression);
                };
                // What decides alone: false for `&&`, true for `||`.
                let decides = match operator {
                    BinOp::And(_) => on(id),
                    _ => format!("!{}", on(id)),
                };
                self.wrap(
                    span,
                    format!("({{ let (d__, l__): (bool, bool) = ({decides}, "),
                    " } else { d__ } })".into(),
                    |finder| {
                        finder.visit_expr(left);
                        let bytes = finder.bytes(operator.span());
                        finder.edit(bytes, Side::Within, "); if l__ != d__ { ".into());
                        finder.visit_expr(right);
                    },
                );
            }
            _ if is_assignment(operator) => {
                let planted: Vec<_> = others
                    .iter()
                    .filter_map(|other| {
                        let id =
                            self.plant_at(span, operator.span(), format!("{other} for {sign}"))?;
                        Some((id, *other))
                    })
                    .collect();
                // The place is written out again for each operator; it has no mutants of its own.
                let (begin, end) = self.bytes(left.span());
                let place = self.source[begin..end].to_owned();
                let mut body = String::new();
                for (id, other) in &planted {
                    body += &format!("if {} {{ {place} {other} r__ }} else ", on(*id));
                }
                self.wrap(
                    span,
                    "{ match (".into(),
                    format!(") {{ r__ => {body}{{ {place} {sign} r__ }} }} }}"),
                    |finder| {
                        let (begin, end) =
                            (finder.bytes(left.span()).0, finder.bytes(operator.span()).1);
                        finder.edit((begin, end), Side::Within, String::new());
                        finder.visit_expr(right);
                    },
                );
            }
            _ => {
                let by_reference = is_comparison(operator);
                let (reference, dereference) = if by_reference { ("&", "*") } else { ("", "") };
                let mut body = String::new();
                for other in others {
                    if let Some(id) =
                        self.plant_at(span, operator.span(), format!("{other} for {sign}"))
                    {
                        body += &format!(
                            "if {} {{ {dereference}l {other} {dereference}r }} else ",
                            on(id)
                        );
                    }
                }
                self.wrap(
                    span,
                    format!("(match ({reference}("),
                    format!(")) {{ (l, r) => {body}{{ {dereference}l {sign} {dereference}r }} }})"),
                    |finder| {
                        finder.visit_expr(left);
                        let bytes = finder.bytes(operator.span());
                        finder.edit(bytes, Side::Within, format!("), {reference}("));
                        finder.visit_expr(right);
                    },
                );
            }
        }
    }

    fn literal(&mut self, literal: &syn::ExprLit) {
        let other = match &literal.lit {
            Lit::Int(number) => match number.base10_parse::<u128>() {
                Ok(value) => format!("{}{}", value + 1, number.suffix()),
                Err(_) => return,
            },
            Lit::Float(number) => match number.base10_parse::<f64>() {
                Ok(0.0) => format!("1.0{}", number.suffix()),
                Ok(_) => format!("0.0{}", number.suffix()),
                Err(_) => return,
            },
            Lit::Bool(value) => format!("{}", !value.value),
            _ => return,
        };
        if let Some(id) = self.plant(literal.span(), format!("{other} instead")) {
            self.wrap(
                literal.span(),
                format!("(if {} {{ {other} }} else {{ ", on(id)),
                " })".into(),
                |_| {},
            );
        }
    }

    /// A function that does nothing, or returns what is easily returned.
    fn body(&mut self, name: String, signature: &syn::Signature, body: &Block) {
        if signature.constness.is_some() {
            return;
        }
        self.functions.push(name);
        self.versions.push(version(signature, body));
        let begin = self.bytes(body.brace_token.span.open()).1;
        let first = self.mutants.len();
        let switch = self.edits.len();
        self.edit((begin, begin), Side::Begin, String::new());
        for value in easily_returned(&signature.output) {
            let change = match *value {
                "" => "does nothing".to_owned(),
                _ => format!("returns {value}"),
            };
            if body.stmts.is_empty() {
                continue;
            }
            if let Some(id) = self.plant(signature.ident.span(), change) {
                self.edit(
                    (begin, begin),
                    Side::Begin,
                    format!(" if {} {{ return {value}; }} ", on(id)),
                );
            }
        }
        self.visit_block(body);
        // Those of a function within this one have their entry.
        let mut entry = None;
        for mutant in &mut self.mutants[first..] {
            if mutant.entry == 0 {
                mutant.entry = *entry.get_or_insert(mutant.id);
            }
        }
        if let Some(entry) = entry {
            self.edits[switch].text = format!(" let mutation__ = crate::mutation::on({entry});");
        }
        self.versions.pop();
        self.functions.pop();
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes: &[Attribute] = match item {
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Trait(item) => &item.attrs,
            _ => return, // constants and types
        };
        if is_compiled(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.functions.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.functions.pop();
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let (begin, end) = self.bytes(item.self_ty.span());
        let name = self.source[begin..end]
            .split('<')
            .next()
            .unwrap_or("")
            .to_owned();
        self.functions.push(name);
        for item in &item.items {
            if let syn::ImplItem::Fn(function) = item {
                self.visit_impl_item_fn(function);
            }
        }
        self.functions.pop();
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.functions.push(item.ident.to_string());
        for item in &item.items {
            if let syn::TraitItem::Fn(function) = item
                && let Some(body) = &function.default
                && is_compiled(&function.attrs)
            {
                self.body(function.sig.ident.to_string(), &function.sig, body);
            }
        }
        self.functions.pop();
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if is_compiled(&function.attrs) {
            self.body(
                function.sig.ident.to_string(),
                &function.sig,
                &function.block,
            );
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if is_compiled(&function.attrs) {
            self.body(
                function.sig.ident.to_string(),
                &function.sig,
                &function.block,
            );
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if is_compiled(&local.attrs)
            && let Some(init) = &local.init
        {
            self.visit_expr(&init.expr);
            if let Some((_, diverges)) = &init.diverge {
                self.visit_expr(diverges);
            }
        }
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        let deleted = match statement {
            Stmt::Expr(expression, Some(_)) if is_compiled(attributes(expression)) => {
                match expression {
                    Expr::Call(_)
                    | Expr::MethodCall(_)
                    | Expr::Assign(_)
                    | Expr::Break(_)
                    | Expr::Continue(_) => true,
                    Expr::Binary(binary) => is_assignment(&binary.op),
                    _ => false,
                }
            }
            _ => false,
        };
        let (begin, end) = self.bytes(statement.span());
        let shows_progress = self.source[begin..end].starts_with(SHOWS_PROGRESS);
        if deleted
            && !shows_progress
            && let Some(id) = self.plant(statement.span(), "left out")
        {
            self.wrap(
                statement.span(),
                format!("if !{} {{ ", on(id)),
                " }".into(),
                |finder| visit::visit_stmt(finder, statement),
            );
        } else {
            visit::visit_stmt(self, statement);
        }
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        if !is_compiled(attributes(expression)) {
            return;
        }
        match expression {
            // Known when the program is compiled.
            Expr::Const(_) => {}
            Expr::Repeat(repeat) => self.visit_expr(&repeat.expr),
            Expr::Binary(binary) => self.binary(binary),
            Expr::Lit(literal) => self.literal(literal),
            Expr::Assign(assign) => self.visit_expr(&assign.right),
            Expr::Let(let_) => self.visit_expr(&let_.expr),
            Expr::If(if_) => {
                self.condition(&if_.cond);
                self.visit_block(&if_.then_branch);
                if let Some((_, otherwise)) = &if_.else_branch {
                    self.visit_expr(otherwise);
                }
            }
            Expr::While(while_) => {
                if !holds_a_let(&while_.cond)
                    && let Some(id) = self.plant(while_.cond.span(), "never")
                {
                    let cond = &while_.cond;
                    self.wrap(
                        cond.span(),
                        "(".into(),
                        format!(") && !{}", on(id)),
                        |finder| {
                            finder.visit_expr(cond);
                        },
                    );
                }
                self.visit_block(&while_.body);
            }
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_) | UnOp::Neg(_)) => {
                let operator = match unary.op {
                    UnOp::Not(_) => "!",
                    _ => "-",
                };
                // `-1` is a number.
                if matches!(*unary.expr, Expr::Lit(_)) {
                    return;
                }
                match self.plant(unary.span(), format!("without {operator}")) {
                    None => visit::visit_expr_unary(self, unary),
                    Some(id) => {
                        let sign = self.bytes(unary.op.span());
                        self.wrap(
                            unary.span(),
                            "(match (".into(),
                            format!(") {{ v => if {} {{ v }} else {{ {operator}v }} }})", on(id)),
                            |finder| {
                                finder.edit(sign, Side::Within, String::new());
                                finder.visit_expr(&unary.expr);
                            },
                        );
                    }
                }
            }
            Expr::MethodCall(call)
                if call.args.len() == 1 && (call.method == "min" || call.method == "max") =>
            {
                let other = if call.method == "min" { "max" } else { "min" };
                match self.plant_at(
                    call.span(),
                    call.method.span(),
                    format!("{other} for {}", call.method),
                ) {
                    None => visit::visit_expr_method_call(self, call),
                    Some(id) => {
                        let begin = self.bytes(call.receiver.span()).1;
                        let end = self.bytes(call.paren_token.span.open()).1;
                        let close = self.bytes(call.paren_token.span.close());
                        let method = &call.method;
                        self.wrap(
                            call.span(),
                            "(match ((".into(),
                            format!(" {{ (l, r) => if {} {{ l.{other}(r) }} else {{ l.{method}(r) }} }})", on(id)),
                            |finder| {
                                finder.visit_expr(&call.receiver);
                                finder.edit((begin, end), Side::Within, "), (".into());
                                finder.visit_expr(&call.args[0]);
                                finder.edit(close, Side::Within, "))".into());
                            },
                        );
                    }
                }
            }
            Expr::Match(match_) => {
                self.visit_expr(&match_.expr);
                for arm in &match_.arms {
                    if !is_compiled(&arm.attrs) {
                        continue;
                    }
                    if let syn::Pat::Guard(guarded) = &arm.pat {
                        self.condition(&guarded.guard);
                    }
                    self.visit_expr(&arm.body);
                }
            }
            _ => visit::visit_expr(self, expression),
        }
    }

    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_path(&mut self, _: &'ast syn::Path) {}
    fn visit_angle_bracketed_generic_arguments(
        &mut self,
        _: &'ast syn::AngleBracketedGenericArguments,
    ) {
    }
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
    fn visit_macro(&mut self, _: &'ast syn::Macro) {}
}

/// The condition of a mutant. Its function reads once which mutant is on.
fn on(id: u32) -> String {
    format!("({SWITCH}{id})")
}

/// The condition, without the number.
pub const SWITCH: &str = "mutation__ == ";

/// What is planted for a binary operator.
fn instead(operator: &BinOp) -> Option<&'static [&'static str]> {
    Some(match operator {
        BinOp::Add(_) => &["-"],
        BinOp::Sub(_) => &["+"],
        BinOp::Mul(_) => &["+"],
        BinOp::Div(_) => &["*"],
        BinOp::Rem(_) => &["/"],
        BinOp::BitAnd(_) => &["|"],
        BinOp::BitOr(_) => &["&"],
        BinOp::BitXor(_) => &["|"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::Lt(_) => &["<=", ">="],
        BinOp::Le(_) => &["<", ">"],
        BinOp::Gt(_) => &[">=", "<="],
        BinOp::Ge(_) => &[">", "<"],
        BinOp::AddAssign(_) => &["-="],
        BinOp::SubAssign(_) => &["+="],
        BinOp::MulAssign(_) => &["+="],
        BinOp::DivAssign(_) => &["*="],
        BinOp::BitAndAssign(_) => &["|="],
        BinOp::BitOrAssign(_) => &["&="],
        BinOp::BitXorAssign(_) => &["|="],
        BinOp::ShlAssign(_) => &[">>="],
        BinOp::ShrAssign(_) => &["<<="],
        _ => return None,
    })
}

fn is_comparison(operator: &BinOp) -> bool {
    use BinOp::{Eq, Ge, Gt, Le, Lt, Ne};
    matches!(operator, Eq(_) | Ne(_) | Lt(_) | Le(_) | Gt(_) | Ge(_))
}

fn is_assignment(operator: &BinOp) -> bool {
    use BinOp::{
        AddAssign, BitAndAssign, BitOrAssign, BitXorAssign, DivAssign, MulAssign, RemAssign,
        ShlAssign, ShrAssign, SubAssign,
    };
    matches!(
        operator,
        AddAssign(_)
            | SubAssign(_)
            | MulAssign(_)
            | DivAssign(_)
            | RemAssign(_)
            | BitAndAssign(_)
            | BitOrAssign(_)
            | BitXorAssign(_)
            | ShlAssign(_)
            | ShrAssign(_)
    )
}

/// A digest of a function's tokens, 16 hexadecimal digits.
fn version(signature: &syn::Signature, body: &Block) -> String {
    let tokens = quote!(#signature #body).to_string();
    let digest = Sha256::digest(tokens.as_bytes());
    digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Whether it is, or joins, a `let` of a condition.
fn holds_a_let(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(binary) => holds_a_let(&binary.left) || holds_a_let(&binary.right),
        Expr::Paren(paren) => holds_a_let(&paren.expr),
        _ => false,
    }
}

/// Values of a return type that need no thought.
fn easily_returned(output: &ReturnType) -> &'static [&'static str] {
    let ReturnType::Type(_, type_) = output else {
        return &[""];
    };
    let Type::Path(path) = &**type_ else {
        return &[];
    };
    let Some(last) = path.path.segments.last() else {
        return &[];
    };
    match last.ident.to_string().as_str() {
        "bool" => &["true", "false"],
        "Option" => &["None"],
        "Vec" => &["Vec::new()"],
        "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" | "isize" => {
            &["0", "1"]
        }
        "f32" | "f64" => &["0.0", "1.0"],
        "Result" => match &last.arguments {
            syn::PathArguments::AngleBracketed(arguments) => match arguments.args.first() {
                Some(syn::GenericArgument::Type(Type::Tuple(tuple))) if tuple.elems.is_empty() => {
                    &["Ok(())"]
                }
                _ => &[],
            },
            _ => &[],
        },
        _ => &[],
    }
}

/// Whether what has these attributes is compiled for the CPU, and not for tests alone.
fn is_compiled(attributes: &[Attribute]) -> bool {
    attributes.iter().all(|attribute| {
        if attribute.path().is_ident("test") {
            return false;
        }
        let syn::Meta::List(list) = &attribute.meta else {
            return true;
        };
        if !attribute.path().is_ident("cfg") {
            return true;
        }
        let cfg = list.tokens.to_string();
        cfg.starts_with("not")
            || !["cuda_device", "published_cuda_std", "test"]
                .iter()
                .any(|word| cfg.contains(word))
    })
}

fn attributes(expression: &Expr) -> &[Attribute] {
    match expression {
        Expr::Block(expression) => &expression.attrs,
        Expr::Unsafe(expression) => &expression.attrs,
        Expr::Call(expression) => &expression.attrs,
        Expr::MethodCall(expression) => &expression.attrs,
        Expr::If(expression) => &expression.attrs,
        Expr::Paren(expression) => &expression.attrs,
        Expr::Binary(expression) => &expression.attrs,
        Expr::Path(expression) => &expression.attrs,
        Expr::Tuple(expression) => &expression.attrs,
        Expr::Return(expression) => &expression.attrs,
        Expr::ForLoop(expression) => &expression.attrs,
        Expr::Macro(expression) => &expression.attrs,
        _ => &[],
    }
}
