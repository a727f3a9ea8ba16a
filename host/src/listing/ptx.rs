//! One kernel of a PTX module, and the line of each of its instructions.
//!
//! From "PTX ISA", "Debugging directives": `.loc 3 26 44, function_name $L, inlined_at 16 62 20`
//! says that the instructions after it come from line 26 of file 3, in a function that was called
//! in line 62 of file 16 and inlined there. If that call was inlined too, the last `.loc` of that
//! place says where; `.file 3 "name"` names file 3.

use std::collections::{HashMap, HashSet};

use gpu_gemm::device::ptx::lines_of;

use super::{Line, Place};

/// File, line and column.
type Position = (u32, u32, u32);

/// A kernel with the place of each instruction, from `.entry` to its last bracket; empty if the
/// module has no such kernel.
pub fn kernel(ptx: &str, entry: &str) -> Vec<Line> {
    let files = files(ptx);
    let mut calls = HashMap::new();
    let mut origin = Vec::new();
    let mut listing = Vec::new();
    for line in lines_of(ptx, entry) {
        let trimmed = line.trim();
        if let Some((position, call)) = location(trimmed) {
            calls.insert(position, call);
            origin = places(position, &calls, &files);
        } else if is_instruction(trimmed) {
            listing.push(Line::Instruction {
                text: line.to_owned(),
                origin: origin.clone(),
            });
        } else if !trimmed.is_empty() && !trimmed.starts_with("//") {
            listing.push(Line::Other(line.to_owned()));
        }
    }
    listing
}

/// Instructions end in a semicolon, as declarations do, which begin with a dot.
fn is_instruction(line: &str) -> bool {
    line.ends_with(';') && !line.starts_with('.')
}

/// The numbers and names of `.file 3 "name"`.
fn files(ptx: &str) -> HashMap<u32, &str> {
    ptx.lines()
        .filter_map(|line| {
            let (number, name) = line.trim().strip_prefix(".file")?.trim().split_once(' ')?;
            Some((number.parse().ok()?, name.trim().trim_matches('"')))
        })
        .collect()
}

/// The position in a `.loc`, and the position of the inlined call.
fn location(line: &str) -> Option<(Position, Option<Position>)> {
    let mut parts = line.strip_prefix(".loc")?.split(',');
    let position = position(parts.next()?)?;
    let call = parts.find_map(|part| part.trim().strip_prefix("inlined_at"));
    Some((position, call.and_then(self::position)))
}

fn position(text: &str) -> Option<Position> {
    let mut numbers = text.split_whitespace().map(str::parse);
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(file)), Some(Ok(line)), Some(Ok(column))) => Some((file, line, column)),
        _ => None,
    }
}

/// The place of a position and those of the calls around it, outermost first. Empty if the
/// position has no line.
fn places(
    position: Position,
    calls: &HashMap<Position, Option<Position>>,
    files: &HashMap<u32, &str>,
) -> Vec<Place> {
    let mut places = Vec::new();
    // A recursive function inlined into itself would otherwise loop forever.
    let mut seen = HashSet::new();
    let mut next = Some(position);
    while let Some(position) = next.filter(|position| seen.insert(*position)) {
        let (file, line, _) = position;
        if line > 0 {
            places.push(Place {
                file: files.get(&file).copied().unwrap_or("?").to_owned(),
                line,
            });
        }
        next = calls.get(&position).copied().flatten();
    }
    places.reverse();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &str = "\
// of other symbols
.version 8.8
.target sm_75

.visible .entry first(
\t.param .u64 first_param_0
)
{
\t.reg .b32 \t%r<2>;
\t.loc\t1 30 0

\tmov.u32 \t%r1, 1;
\t.loc\t1 34 9
\t.loc\t2 8 5, function_name $L__info_string0, inlined_at 1 34 9
\t.loc\t3 90 1, function_name $L__info_string1, inlined_at 2 8 5
\tadd.s32 \t%r1, %r1, 2;
\t// begin inline asm
\t{
\t.reg .pred p;
\tsetp.eq.u32 p, %r1, 3;
}
\t// end inline asm

$L__BB0_1:
\t.loc\t1 0 9
\tret;

}
\t// .globl second
.visible .entry second()
{
\t.loc\t1 99 0
\ttrap;
}
\t.file\t1 \"kernels.rs\"
\t.file\t2 \"inlined.rs\"
\t.file\t3 \"deeper.rs\"
\t.section\t.debug_str
\t{
$L__info_string0:
.b8 95,0
\t}
";

    fn places_of(listing: &[Line], opcode: &str) -> Vec<String> {
        let found = listing.iter().find_map(|line| match line {
            Line::Instruction { text, origin } if text.contains(opcode) => Some(origin),
            _ => None,
        });
        let places = found.expect("the instruction is listed").iter();
        places
            .map(|place| format!("{}:{}", place.file, place.line))
            .collect()
    }

    #[test]
    fn each_instruction_has_its_line_and_those_of_the_calls_around_it() {
        let listing = kernel(MODULE, "first");
        assert_eq!(places_of(&listing, "mov.u32"), ["kernels.rs:30"]);
        assert_eq!(
            places_of(&listing, "add.s32"),
            ["kernels.rs:34", "inlined.rs:8", "deeper.rs:90"]
        );
        assert_eq!(places_of(&listing, "ret;"), [""; 0]);
        assert!(listing.contains(&Line::Other("$L__BB0_1:".to_owned())));
        assert_eq!(listing.last(), Some(&Line::Other("}".to_owned())));
        assert_eq!(kernel(MODULE, "second").len(), 4);
        assert_eq!(kernel(MODULE, "third"), []);
    }

    #[test]
    fn an_inlined_call_in_its_own_place_ends() {
        let ptx = ".visible .entry k()\n{\n\t.loc\t1 2 3, function_name $L, inlined_at 1 2 3\n\tret;\n}\n\t.file\t1 \"k.rs\"\n";
        assert_eq!(places_of(&kernel(ptx, "k"), "ret;"), ["k.rs:2"]);
    }
}
