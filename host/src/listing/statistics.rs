//! Counts of the instructions in a kernel's mainloop, from its machine code.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use super::sass::{Instruction, Item};
use gpu_gemm::text::plural;

/// Opcodes of multiply-adds, in order of preference: a kernel for floats also has integer ones,
/// for addresses.
const MULTIPLY_ADDS: [&str; 3] = ["FFMA", "DFMA", "IMAD"];

/// Counts of a kernel's mainloop: the innermost loop with the most multiply-adds.
///
/// A loop is the code between a backward branch and its target. Instructions that may be skipped
/// count like the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MainLoop {
    /// Addresses of the first and the last instruction.
    pub addresses: (u32, u32),
    pub instructions: usize,
    /// `FFMA`, or the opcode of this kernel's multiply-adds.
    pub multiply_add: &'static str,
    /// The number of instructions of each opcode, such as `LDS.128`.
    pub opcodes: BTreeMap<String, usize>,
}

/// The counts of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Instructions of the entire kernel.
    pub instructions: usize,
    /// Loads from local memory and stores to it, in the entire kernel: spilled registers, or
    /// arrays that are not in registers.
    pub local_loads: usize,
    pub local_stores: usize,
    /// `None` if no loop multiplies and adds.
    pub main_loop: Option<MainLoop>,
}

impl Statistics {
    /// Counts in a kernel's code.
    pub fn of(items: &[Item]) -> Statistics {
        let all = instructions(items);
        Statistics {
            instructions: all.len(),
            local_loads: count(&all, "LDL"),
            local_stores: count(&all, "STL"),
            main_loop: main_loop(items),
        }
    }
}

fn instructions(items: &[Item]) -> Vec<&Instruction> {
    items
        .iter()
        .filter_map(|item| match item {
            Item::Instruction(instruction) => Some(instruction),
            Item::Label(_) => None,
        })
        .collect()
}

/// An opcode without its modifiers.
fn base(opcode: &str) -> &str {
    opcode.split_once('.').map_or(opcode, |(base, _)| base)
}

fn count(instructions: &[&Instruction], opcode: &str) -> usize {
    instructions
        .iter()
        .filter(|instruction| base(instruction.parts().0) == opcode)
        .count()
}

fn main_loop(items: &[Item]) -> Option<MainLoop> {
    let loops = loops(items);
    MULTIPLY_ADDS.iter().find_map(|multiply_add| {
        let counted: Vec<(&[Item], usize)> = loops
            .iter()
            .map(|&(first, last)| {
                let body = &items[first..=last];
                (body, count(&instructions(body), multiply_add))
            })
            .filter(|(_, count)| *count > 0)
            .collect();
        let holds_another = |body: &[Item]| {
            counted.iter().any(|(other, _)| {
                other.len() < body.len() && body.as_ptr_range().contains(&other.as_ptr())
            })
        };
        counted
            .iter()
            .filter(|(body, _)| !holds_another(body))
            // The first of several with the same number.
            .rev()
            .max_by_key(|(_, count)| *count)
            .map(|(body, _)| MainLoop::of(&instructions(body), multiply_add))
    })
}

/// First and last item of each loop.
fn loops(items: &[Item]) -> Vec<(usize, usize)> {
    let labels: HashMap<&str, usize> = items
        .iter()
        .enumerate()
        .filter_map(|(position, item)| match item {
            Item::Label(name) => Some((name.as_str(), position)),
            Item::Instruction(_) => None,
        })
        .collect();
    let target = |item: &Item| match item {
        Item::Instruction(branch) if base(branch.parts().0) == "BRA" => {
            let (_, name) = branch.parts().1.split_once("`(")?;
            labels.get(name.split(')').next()?).copied()
        }
        _ => None,
    };
    items
        .iter()
        .enumerate()
        .filter_map(|(last, item)| Some((target(item)?, last)))
        .filter(|(first, last)| first < last)
        .collect()
}

impl MainLoop {
    fn of(body: &[&Instruction], multiply_add: &'static str) -> MainLoop {
        let mut opcodes = BTreeMap::new();
        for instruction in body {
            *opcodes.entry(instruction.parts().0.to_owned()).or_default() += 1;
        }
        let address = |instruction: Option<&&Instruction>| {
            instruction.map_or(0, |instruction| instruction.address)
        };
        MainLoop {
            addresses: (address(body.first()), address(body.last())),
            instructions: body.len(),
            multiply_add,
            opcodes,
        }
    }

    /// Its instructions of an opcode, with any modifiers.
    pub fn count(&self, opcode: &str) -> usize {
        let counts = self.opcodes.iter();
        let of_opcode = counts.filter(|(of, _)| base(of) == opcode);
        of_opcode.map(|(_, count)| count).sum()
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instructions = |count| plural(count, "instruction");
        writeln!(f, "kernel      {}", instructions(self.instructions))?;
        writeln!(
            f,
            "spills      {} LDL, {} STL",
            self.local_loads, self.local_stores
        )?;
        let Some(body) = &self.main_loop else {
            return writeln!(f, "mainloop    none: no loop multiplies and adds");
        };
        let multiply_adds = body.count(body.multiply_add);
        let (first, last) = body.addresses;
        writeln!(
            f,
            "mainloop    {} (/*{first:04x}*/ to /*{last:04x}*/), {:.1} % of them {}",
            instructions(body.instructions),
            100.0 * multiply_adds as f64 / body.instructions as f64,
            body.multiply_add
        )?;
        let mut counts: Vec<_> = body.opcodes.iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        (counts.iter()).try_for_each(|(opcode, count)| writeln!(f, "{count:10}  {opcode}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::sass::parse;
    use super::*;

    const DISASSEMBLY: &str = include_str!("fixtures/two_kernels.sass");

    #[test]
    fn the_main_loop_is_the_innermost_with_the_most_multiply_adds() {
        let found = Statistics::of(&parse(DISASSEMBLY, "tiled"));
        // Counted by hand. The loop contains another without multiply-adds; the loop after it has
        // one.
        let body = found.main_loop.as_ref().unwrap();
        assert_eq!((body.addresses, body.instructions), ((0x20, 0x120), 17));
        assert_eq!(
            ["FFMA", "LDS", "STS", "LDG"].map(|opcode| body.count(opcode)),
            [4, 4, 2, 1]
        );
        assert_eq!(body.opcodes["LDS.128"], 2);
        assert_eq!(
            (found.instructions, found.local_loads, found.local_stores),
            (27, 1, 1)
        );
        let text = found.to_string();
        let lines =
            "17 instructions (/*0020*/ to /*0120*/), 23.5 % of them FFMA\n         4  FFMA\n";
        assert!(text.contains(lines), "{text}");
    }

    #[test]
    fn a_loop_around_the_main_loop_is_not_the_main_loop() {
        let code = "\
.text.k:
.L_x_1:
        /*0000*/                   FFMA R1, R2, R3, R1 ;
.L_x_2:
        /*0010*/                   FFMA R1, R2, R3, R1 ;
        /*0020*/               @P0 BRA `(.L_x_2) ;
        /*0030*/               @P1 BRA `(.L_x_1) ;
";
        let found = Statistics::of(&parse(code, "k")).main_loop;
        assert_eq!(found.map(|body| body.addresses), Some((0x10, 0x20)));
    }

    #[test]
    fn integers_are_counted_where_no_float_is_multiplied() {
        let code = "\
.text.k:
.L_x_1:
        /*0000*/                   IMAD R1, R2, R3, R1 ;
        /*0010*/               @P0 BRA `(.L_x_1) ;
        /*0020*/                   FFMA R1, R2, R3, R1 ;
";
        let found = Statistics::of(&parse(code, "k")).main_loop;
        assert_eq!(found.map(|body| body.multiply_add), Some("IMAD"));
    }

    #[test]
    fn a_kernel_without_a_loop_has_no_main_loop() {
        let code = ".text.k:\n        /*0000*/                   FFMA R1, R2, R3, R1 ;\n";
        let found = Statistics::of(&parse(code, "k"));
        assert_eq!(found.main_loop, None);
        assert!(found.to_string().contains("no loop"), "{found}");
    }
}
