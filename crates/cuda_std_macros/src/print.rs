//! `print!` and `println!`: splits the format string, so that nothing remains to be formatted on
//! the GPU.
//!
//! The types of the arguments are not known here. The output is the pieces of the format and a
//! tuple of the values; `cuda_std::io` picks the C conversions from the tuple's types, still at
//! compile time.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Expr, Ident, LitStr, Token};

/// `cuda_std::io` prints tuples of up to this many values.
const MOST_VALUES: usize = 16;

/// The longest C conversion of one value, such as `%-123.123lld`.
const CONVERSION_BYTES: usize = 16;

pub fn expand(input: TokenStream, end: &str) -> syn::Result<TokenStream> {
    let call: Call = syn::parse2(input)?;
    let error = |message: String| Error::new(call.literal.span(), message);
    let pieces = split(&(call.literal.value() + end)).map_err(error)?;

    // The values in the order in which the format uses them.
    let mut values = Vec::new();
    let mut used = vec![false; call.arguments.len()];
    let mut next_position = 0;
    for piece in &pieces {
        let Piece::Value { source, spec } = piece else {
            continue;
        };
        let wrapped = |value: Ident| match spec.style {
            Style::Plain => quote! { #value },
            Style::LowerHex => quote! { ::cuda_std::io::Hexadecimal(#value) },
            Style::UpperHex => quote! { ::cuda_std::io::UpperHexadecimal(#value) },
            Style::Debug => quote! { ::cuda_std::io::Debug(#value) },
        };
        let position = match source {
            Source::Next => {
                next_position += 1;
                next_position - 1
            }
            Source::Position(position) => *position,
            Source::Name(name) => match call.arguments.iter().position(|a| a.is_named(name)) {
                Some(position) => position,
                None => {
                    values.push(wrapped(Ident::new(name, call.literal.span())));
                    continue;
                }
            },
        };
        match used.get_mut(position) {
            Some(used) => *used = true,
            None => {
                return Err(error(format!(
                    "the format asks for argument {position}, counted from 0, but {} follow it",
                    call.arguments.len()
                )));
            }
        }
        values.push(wrapped(binding(position)));
    }
    if values.len() > MOST_VALUES {
        return Err(error(format!(
            "one print takes at most {MOST_VALUES} values"
        )));
    }
    if let Some(unused) = used.iter().position(|used| !used) {
        let value = &call.arguments[unused].value;
        return Err(Error::new_spanned(
            value,
            "the format never uses this argument",
        ));
    }

    let capacity = capacity(&pieces);
    let pieces = pieces.iter().map(Piece::tokens);
    let bindings = (0..call.arguments.len()).map(binding);
    let arguments = call.arguments.iter().map(|argument| &argument.value);
    Ok(quote! {
        match (#(#arguments,)*) {
            (#(#bindings,)*) => {
                enum Text {}
                impl ::cuda_std::io::Format for Text {
                    const PIECES: &'static [::cuda_std::io::Piece] = &[#(#pieces),*];
                }
                ::cuda_std::io::print::<Text, #capacity, _>((#(#values,)*))
            }
        }
    })
}

/// The variable that holds an argument; its name cannot clash with the caller's code.
fn binding(position: usize) -> Ident {
    Ident::new(&format!("argument_{position}"), Span::mixed_site())
}

/// `"format", value, name = value`
struct Call {
    literal: LitStr,
    arguments: Vec<Argument>,
}

struct Argument {
    name: Option<Ident>,
    value: Expr,
}

impl Argument {
    fn is_named(&self, name: &str) -> bool {
        self.name.as_ref().is_some_and(|own| own == name)
    }
}

impl Parse for Call {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        if input.is_empty() {
            return Ok(Self {
                literal: LitStr::new("", input.span()),
                arguments: Vec::new(),
            });
        }
        let literal = input.parse().map_err(|error: Error| {
            Error::new(error.span(), "the format must be a string literal")
        })?;
        let mut arguments = Vec::new();
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            let named = input.peek(Ident) && input.peek2(Token![=]) && !input.peek2(Token![==]);
            let name = if named {
                let name = input.parse()?;
                input.parse::<Token![=]>()?;
                Some(name)
            } else {
                None
            };
            arguments.push(Argument {
                name,
                value: input.parse()?,
            });
        }
        Ok(Self { literal, arguments })
    }
}

#[derive(Debug, PartialEq)]
enum Piece {
    Text(String),
    Value { source: Source, spec: Spec },
}

/// Where a value comes from: `{}`, `{1}` or `{name}`.
#[derive(Debug, PartialEq)]
enum Source {
    Next,
    Position(usize),
    Name(String),
}

/// The text after the colon.
#[derive(Debug, Default, PartialEq)]
struct Spec {
    style: Style,
    align: Align,
    zeros: bool,
    width: u32,
    precision: Option<u32>,
}

#[derive(Debug, Default, PartialEq)]
enum Align {
    #[default]
    Natural,
    Left,
    Right,
}

#[derive(Debug, Default, PartialEq)]
enum Style {
    #[default]
    Plain,
    LowerHex,
    UpperHex,
    Debug,
}

impl Piece {
    fn tokens(&self) -> TokenStream {
        match self {
            Self::Text(text) => quote! { ::cuda_std::io::Piece::Text(#text) },
            Self::Value { spec, .. } => {
                let style = match spec.style {
                    // How it differs is the business of the type around the value.
                    Style::Plain | Style::Debug => quote! { Plain },
                    Style::LowerHex => quote! { LowerHex },
                    Style::UpperHex => quote! { UpperHex },
                };
                let flags = spec.flags();
                let aligns_text = spec.align == Align::Natural && spec.width > 0;
                let (has_zeros, has_precision) = (spec.zeros, spec.precision.is_some());
                quote! {
                    ::cuda_std::io::Piece::Value(::cuda_std::io::Spec {
                        style: ::cuda_std::io::Style::#style,
                        flags: #flags,
                        aligns_text: #aligns_text,
                        has_zeros: #has_zeros,
                        has_precision: #has_precision,
                    })
                }
            }
        }
    }
}

impl Spec {
    /// C's flags, width and precision.
    fn flags(&self) -> String {
        let mut flags = String::new();
        if self.width > 0 {
            let left = if self.align == Align::Left { "-" } else { "" };
            let zeros = if self.zeros { "0" } else { "" };
            flags += &format!("{left}{zeros}{}", self.width);
        }
        if let Some(precision) = self.precision {
            flags += &format!(".{precision}");
        }
        flags
    }
}

/// The maximum number of bytes that the C format needs, including its closing NUL.
fn capacity(pieces: &[Piece]) -> usize {
    let bytes = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => text.len() + text.matches('%').count(),
        Piece::Value { .. } => CONVERSION_BYTES,
    });
    bytes.sum::<usize>() + 1
}

/// Splits a format string at its `{..}`.
fn split(format: &str) -> Result<Vec<Piece>, String> {
    if format.contains('\0') {
        return Err("a NUL would end the text early on the device; leave it out".into());
    }
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = format;
    while let Some(at) = rest.find(['{', '}']) {
        text.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            text.push_str(brace);
            rest = after;
            continue;
        }
        if brace == "}" {
            return Err("a `}` without its `{`; write `}}` for the character".into());
        }
        let Some(end) = rest.find('}') else {
            return Err("a `{` without its `}`; write `{{` for the character".into());
        };
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        pieces.push(value(&rest[..end])?);
        rest = &rest[end + 1..];
    }
    text.push_str(rest);
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

/// Reads the text between the braces: `source:spec`.
fn value(inside: &str) -> Result<Piece, String> {
    let (source, spec) = inside.split_once(':').unwrap_or((inside, ""));
    let source = source.trim();
    let source = if source.is_empty() {
        Source::Next
    } else if let Ok(position) = source.parse() {
        Source::Position(position)
    } else if syn::parse_str::<Ident>(source).is_ok() {
        Source::Name(source.to_string())
    } else {
        return Err(format!(
            "`{{{inside}}}` does not start with an argument's position or name"
        ));
    };
    let spec = parse_spec(spec.trim_end()).ok_or_else(|| {
        format!(
            "`{{{inside}}}` is not supported in a kernel; there are `{{}}`, `{{:?}}`, `{{:x}}`, `{{:X}}`, a precision `{{:.3}}`, a width \
             `{{:8}}`, zeros `{{:08}}` and alignment `{{:<8}}` or `{{:>8}}`"
        )
    })?;
    Ok(Piece::Value { source, spec })
}

/// Reads `[<|>][0][width][.precision][x|X|?]`, or `None` if it is anything else.
fn parse_spec(text: &str) -> Option<Spec> {
    let mut spec = Spec::default();
    let mut rest = text;
    if let Some(after) = rest.strip_prefix('<') {
        spec.align = Align::Left;
        rest = after;
    } else if let Some(after) = rest.strip_prefix('>') {
        spec.align = Align::Right;
        rest = after;
    }
    if let Some(after) = rest.strip_prefix('0') {
        spec.zeros = true;
        rest = after;
    }
    let (width, after) = digits(rest);
    spec.width = number(width)?;
    if let Some(fraction) = after.strip_prefix('.') {
        let (precision, after) = digits(fraction);
        if precision.is_empty() {
            return None;
        }
        spec.precision = Some(number(precision)?);
        rest = after;
    } else {
        rest = after;
    }
    spec.style = match rest {
        "" => Style::Plain,
        "x" => Style::LowerHex,
        "X" => Style::UpperHex,
        "?" => Style::Debug,
        _ => return None,
    };
    // In Rust zeros take precedence over an alignment, in C the alignment over zeros: emit only
    // one of them.
    let contradictory = spec.zeros && (spec.align == Align::Left || spec.width == 0);
    (!contradictory).then_some(spec)
}

/// Splits off the digits that `text` starts with.
fn digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

/// A width or precision of up to three digits, 0 if it is left out.
fn number(digits: &str) -> Option<u32> {
    match digits.len() {
        0 => Some(0),
        1..=3 => digits.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only_spec(format: &str) -> Spec {
        match split(format).unwrap().pop() {
            Some(Piece::Value { spec, .. }) => spec,
            other => panic!("{format} gave {other:?}"),
        }
    }

    #[test]
    fn doubled_braces_are_text() {
        assert_eq!(
            split("{{a}} 100%"),
            Ok(vec![Piece::Text("{a} 100%".into())])
        );
    }

    #[test]
    fn values_come_by_order_position_or_name() {
        let sources: Vec<_> = split("{} {1}, {name:4}")
            .unwrap()
            .into_iter()
            .filter_map(|piece| match piece {
                Piece::Value { source, .. } => Some(source),
                Piece::Text(_) => None,
            })
            .collect();
        let expected = [
            Source::Next,
            Source::Position(1),
            Source::Name("name".into()),
        ];
        assert_eq!(sources, expected);
    }

    #[test]
    fn width_zeros_precision_and_alignment_are_read() {
        let spec = only_spec("{:<12.3}");
        assert!(spec.align == Align::Left && !spec.zeros);
        assert_eq!((spec.width, spec.precision), (12, Some(3)));
        let spec = only_spec("{:08x}");
        assert!(spec.zeros);
        assert_eq!((spec.width, spec.style), (8, Style::LowerHex));
    }

    #[test]
    fn what_the_device_cannot_print_is_refused() {
        for format in [
            "{:#?}", "{:x?}", "{:e}", "{:#x}", "{:+}", "{:^8}", "{:*<8}", "{:w$}", "{:.}",
            "{:<08}", "{:0}", "{:1000}", "{", "}", "{a b}", "\0",
        ] {
            assert!(split(format).is_err(), "{format:?} was accepted");
        }
    }

    #[test]
    fn the_capacity_counts_the_doubled_percent_signs_and_the_nul() {
        assert_eq!(capacity(&split("50%").unwrap()), 5);
        assert_eq!(capacity(&split("{}").unwrap()), CONVERSION_BYTES + 1);
    }
}
