//! Machine code as `nvdisasm --print-line-info-inline` writes it:
//!
//! ```text
//! .text.naive:
//!     //## File "cuda_std/src/thread.rs", line 26 inlined at "gpu-kernels/src/naive.rs", line 62
//!     //## File "gpu-kernels/src/naive.rs", line 62
//!         /*0010*/                   S2R R0, SR_CTAID.X ;
//! .L_x_2:
//!         /*0020*/              @!P1 BRA `(.L_x_2) ;
//! ```

use std::collections::HashMap;

use super::{Line, Place};

/// A piece of machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// The label of the next instruction, such as `.L_x_2`.
    Label(String),
    Instruction(Instruction),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The address in bytes from the start of the kernel.
    pub address: u32,
    /// `@!P1 BRA `(.L_x_2)`: a predicate, if there is one, the opcode and its operands.
    pub text: String,
    /// As in [`Line::Instruction`].
    pub origin: Vec<Place>,
}

impl Instruction {
    /// The opcode with its modifiers, such as `LDS.128`, and the operands.
    pub fn parts(&self) -> (&str, &str) {
        let split = |text| str::split_once(text, char::is_whitespace).unwrap_or((text, ""));
        let (first, rest) = split(&self.text);
        let (opcode, operands) = match first.starts_with('@') {
            true => split(rest.trim_start()),
            false => (first, rest),
        };
        (opcode, operands.trim_start())
    }
}

/// Reads the code of one kernel; empty if there is no such kernel.
pub fn parse(disassembly: &str, entry: &str) -> Vec<Item> {
    let head = format!(".text.{entry}:");
    let body = disassembly
        .lines()
        .skip_while(|line| line.trim() != head)
        .skip(1)
        .take_while(|line| !line.trim_start().starts_with(".section"));
    let mut items = Vec::new();
    // Innermost first, as in the text; they apply until the next ones.
    let mut places: Vec<Place> = Vec::new();
    let mut are_complete = false;
    for line in body.map(str::trim) {
        if let Some(rest) = line.strip_prefix("//## File ") {
            if std::mem::take(&mut are_complete) {
                places.clear();
            }
            places.extend(place(rest));
        } else if let Some((address, text)) = code(line) {
            are_complete = true;
            items.push(Item::Instruction(Instruction {
                address,
                text: text.to_owned(),
                origin: places.iter().rev().cloned().collect(),
            }));
        } else if let Some(label) = line.strip_suffix(':') {
            items.push(Item::Label(label.to_owned()));
        }
    }
    items
}

/// Takes the places from the same kernel's PTX where these differ only in the file.
///
/// For the calls around a kernel's first instructions, ptxas 12.9 names the file of the kernel's
/// head, which is the wrong file where a macro generates the head.
pub fn correct_files(items: &mut [Item], ptx: &[Line]) {
    let lines_of =
        |places: &[Place]| -> Vec<u32> { places.iter().map(|place| place.line).collect() };
    let mut by_lines: HashMap<Vec<u32>, Vec<&[Place]>> = HashMap::new();
    for line in ptx {
        if let Line::Instruction { origin, .. } = line {
            // An instruction that ptxas moved out of an inlined function has the place of the
            // call.
            for depth in 1..=origin.len() {
                let places = &origin[..depth];
                by_lines.entry(lines_of(places)).or_default().push(places);
            }
        }
    }
    for item in items {
        if let Item::Instruction(Instruction { origin, .. }) = item
            && let Some(known) = by_lines.get(&lines_of(origin))
            && !known.contains(&origin.as_slice())
            && let Some(places) = known.first()
        {
            *origin = places.to_vec();
        }
    }
}

/// The code as a listing.
pub fn listing(items: &[Item]) -> Vec<Line> {
    let line = |item: &Item| match item {
        Item::Label(name) => Line::Other(format!("{name}:")),
        Item::Instruction(Instruction {
            address,
            text,
            origin,
        }) => Line::Instruction {
            text: format!("    /*{address:04x}*/ {text};"),
            origin: origin.clone(),
        },
    };
    items.iter().map(line).collect()
}

/// `"gpu-kernels/src/naive.rs", line 62 inlined at ...`
fn place(text: &str) -> Option<Place> {
    let (file, rest) = text.strip_prefix('"')?.split_once('"')?;
    let line = rest.strip_prefix(", line ")?.split_whitespace().next()?;
    Some(Place {
        file: file.to_owned(),
        line: line.parse().ok()?,
    })
}

/// Address and text of `/*0010*/ S2R R0, SR_CTAID.X ;`
fn code(line: &str) -> Option<(u32, &str)> {
    let (address, rest) = line.strip_prefix("/*")?.split_once("*/")?;
    let address = u32::from_str_radix(address, 16).ok()?;
    let (text, _) = rest.split_once(';')?;
    Some((address, text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISASSEMBLY: &str = include_str!("fixtures/two_kernels.sass");

    fn instructions(entry: &str) -> Vec<Instruction> {
        let instruction = |item| match item {
            Item::Instruction(instruction) => Some(instruction),
            Item::Label(_) => None,
        };
        parse(DISASSEMBLY, entry)
            .into_iter()
            .filter_map(instruction)
            .collect()
    }

    #[test]
    fn a_kernels_code_is_its_own_and_not_that_of_the_next() {
        let code = instructions("naive");
        assert_eq!(code.len(), 5);
        assert_eq!(code[0].parts(), ("S2R", "R0, SR_CTAID.X"));
        assert_eq!((code[4].address, code[4].parts().0), (0x40, "EXIT"));
        assert_eq!(instructions("tiled").len(), 27);
        assert_eq!(instructions("til"), []);
    }

    #[test]
    fn a_predicate_is_no_opcode() {
        let branch = &instructions("naive")[3];
        assert_eq!(branch.parts(), ("BRA", "`(.L_x_2)"));
    }

    #[test]
    fn places_go_from_the_kernel_inwards_and_hold_until_others_follow() {
        let code = instructions("naive");
        let places = |instruction: &Instruction| -> Vec<u32> {
            instruction.origin.iter().map(|place| place.line).collect()
        };
        assert_eq!(places(&code[0]), [62, 112, 26]);
        assert_eq!(places(&code[1]), [62, 112, 26]);
        assert_eq!(places(&code[2]), [69]);
        assert_eq!(code[2].origin[0].file, "gpu-kernels/src/naive.rs");
    }

    #[test]
    fn a_file_that_ptxas_mistakes_is_taken_from_the_ptx() {
        let places = |places: &[(&str, u32)]| -> Vec<Place> {
            let place = |&(file, line): &(&str, u32)| Place {
                file: file.to_owned(),
                line,
            };
            places.iter().map(place).collect()
        };
        let ptx = [Line::Instruction {
            text: String::new(),
            origin: places(&[("tiled.rs", 46), ("tiled.rs", 79), ("thread.rs", 26)]),
        }];
        for (found, corrected) in [
            // The output of ptxas for a kernel with its head in gemm.rs.
            (
                places(&[("gemm.rs", 46), ("gemm.rs", 79), ("thread.rs", 26)]),
                places(&[("tiled.rs", 46), ("tiled.rs", 79), ("thread.rs", 26)]),
            ),
            (
                places(&[("gemm.rs", 46), ("gemm.rs", 79)]),
                places(&[("tiled.rs", 46), ("tiled.rs", 79)]),
            ),
            // Nothing is known about other lines.
            (places(&[("gemm.rs", 29)]), places(&[("gemm.rs", 29)])),
        ] {
            let exit = |origin| {
                Item::Instruction(Instruction {
                    address: 0,
                    text: "EXIT".to_owned(),
                    origin,
                })
            };
            let mut items = [exit(found)];
            correct_files(&mut items, &ptx);
            assert_eq!(items, [exit(corrected)]);
        }
    }

    #[test]
    fn the_listing_has_every_label_and_instruction_in_order() {
        let listing = listing(&parse(DISASSEMBLY, "naive"));
        let text: Vec<&str> = listing
            .iter()
            .map(|line| match line {
                Line::Instruction { text, .. } | Line::Other(text) => text.as_str(),
            })
            .collect();
        let expected = [
            "    /*0000*/ S2R R0, SR_CTAID.X;",
            "    /*0010*/ ULDC UR4, c[0x0][0x0];",
            ".L_x_2:",
            "    /*0020*/ FFMA R7, R4, R2, R7;",
            "    /*0030*/ @!P1 BRA `(.L_x_2);",
            "    /*0040*/ EXIT;",
        ];
        assert_eq!(text, expected);
    }
}
