//! Instructions with the lines they came from. The listing stays valid code: the added lines are
//! comments.

use std::io::{self, Write};

use super::sources;
use super::{Line, Place};

/// Where the text of a source line begins.
const SOURCE_COLUMN: usize = 48;

/// Writes a listing. Each run of instructions from one place follows a comment with that place and
/// the text of its line, and, indented, the places in inlined functions. Repeated places are left
/// out.
pub fn write(lines: &[Line], out: &mut dyn Write) -> io::Result<()> {
    let mut shown: &[Place] = &[];
    for line in lines {
        match line {
            Line::Other(text) => writeln!(out, "{text}")?,
            Line::Instruction { text, origin } => {
                if origin.as_slice() != shown {
                    write_places(shown, origin, out)?;
                    shown = origin;
                }
                writeln!(out, "{text}")?;
            }
        }
    }
    Ok(())
}

fn write_places(shown: &[Place], origin: &[Place], out: &mut dyn Write) -> io::Result<()> {
    if origin.is_empty() {
        return writeln!(out, "\n// without a source line");
    }
    let same = shown.iter().zip(origin).take_while(|(a, b)| a == b).count();
    // A return to a caller repeats the caller's place.
    let first = same.min(origin.len() - 1);
    if first == 0 {
        writeln!(out)?;
    }
    for (depth, place) in origin.iter().enumerate().skip(first) {
        let name = sources::short_name(&place.file);
        let place_text = format!("// {:indent$}{name}:{}", "", place.line, indent = 2 * depth);
        match sources::line(&place.file, place.line) {
            Some(source) => writeln!(out, "{place_text:SOURCE_COLUMN$}  {source}")?,
            None => writeln!(out, "{place_text}")?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(line: u32) -> Place {
        Place {
            file: "kernel.rs".to_owned(),
            line,
        }
    }

    fn instruction(text: &str, lines: &[u32]) -> Line {
        Line::Instruction {
            text: text.to_owned(),
            origin: lines.iter().copied().map(place).collect(),
        }
    }

    fn written(lines: &[Line]) -> String {
        let mut out = Vec::new();
        write(lines, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_run_of_one_place_is_headed_once_and_what_is_inlined_stands_further_in() {
        let listing = [
            instruction("a;", &[7]),
            instruction("b;", &[7]),
            Line::Other("label:".to_owned()),
            instruction("c;", &[7, 3]),
            instruction("d;", &[7, 3, 1]),
            instruction("e;", &[7, 4]),
            instruction("f;", &[7]),
            instruction("g;", &[8]),
            instruction("h;", &[]),
        ];
        let expected = "
// kernel.rs:7
a;
b;
label:
//   kernel.rs:3
c;
//     kernel.rs:1
d;
//   kernel.rs:4
e;

// kernel.rs:7
f;

// kernel.rs:8
g;

// without a source line
h;
";
        assert_eq!(written(&listing), expected);
    }
}
