//! The generated parts of a page: each is between a comment that names it and one that closes it.

/// A generated part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The first word of its opening comment, such as `figure`.
    pub kind: &'a str,
    /// The other words of that comment.
    pub arguments: &'a str,
    /// The text that the page has now.
    pub old: &'a str,
}

/// A number with its unit, or a formula, that no line is broken in.
pub fn unbroken(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

/// Kinds of parts within a line.
const INLINE: &str = "\
    figure in range shapes ranks scheduled code issued profiled line seconds";

/// The text with each part replaced by what `make` returns for it, or left as it is where that is
/// `None`.
pub fn refill(
    text: &str,
    mut make: impl FnMut(Part<'_>) -> Result<Option<String>, String>,
) -> Result<String, String> {
    let mut filled = String::new();
    let mut remaining = text;
    while let Some((before, opening)) = remaining.split_once("<!-- ") {
        let (comment, after) = opening
            .split_once(" -->")
            .ok_or("a comment is not closed")?;
        filled += &format!("{before}<!-- {comment} -->");
        let (kind, arguments) = comment.split_once(' ').unwrap_or((comment, ""));
        if INLINE.split(' ').any(|one| one == kind) && (before.is_empty() || before.ends_with('\n'))
        {
            return Err(format!(
                "`{comment}` begins a line, which Markdown then takes for HTML"
            ));
        }
        let closing = format!("<!-- /{kind} -->");
        let (old, after) = after
            .split_once(&closing)
            .ok_or_else(|| format!("`{comment}` has no {closing}"))?;
        let part = Part {
            kind,
            arguments,
            old,
        };
        match make(part)? {
            Some(new) => filled += &new,
            None => filled += old,
        }
        filled += &closing;
        remaining = after;
    }
    Ok(filled + remaining)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_open_or_begin_a_line_are_refused() {
        for text in [
            "x <!-- figure 1 -->2",
            "x <!-- figure 1",
            "x\n<!-- figure 1 -->2<!-- /figure --> y",
        ] {
            assert!(refill(text, |_| Ok(None)).is_err(), "{text}");
        }
    }
}
