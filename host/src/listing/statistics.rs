//! Counts of the instructions in a kernel's mainloop, from its machine code.

use std::collections::HashMap;
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
    pub multiply_adds: usize,
    /// Source operands of the multiply-adds that are registers.
    pub register_operands: usize,
    /// The operands among them that come from the cache of the last register reads (`.reuse`), and
    /// so access no register bank.
    pub reused_operands: usize,
    /// Loads from shared memory of 32, 64 and 128 bits a thread.
    pub shared_loads: [usize; 3],
    pub shared_stores: usize,
    pub global_loads: usize,
    /// Copies from global to shared memory that bypass registers.
    pub asynchronous_copies: usize,
    pub barriers: usize,
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
fn base(instruction: &Instruction) -> &str {
    let (opcode, _) = instruction.parts();
    opcode.split_once('.').map_or(opcode, |(base, _)| base)
}

fn count(instructions: &[&Instruction], opcode: &str) -> usize {
    instructions
        .iter()
        .filter(|instruction| base(instruction) == opcode)
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
        Item::Instruction(branch) if base(branch) == "BRA" => {
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
        let multiply_adds: Vec<&&Instruction> = body
            .iter()
            .filter(|instruction| base(instruction) == multiply_add)
            .collect();
        // The first operand is the result.
        let operands: Vec<&str> = multiply_adds
            .iter()
            .flat_map(|instruction| instruction.parts().1.split(',').skip(1))
            .map(|operand| operand.trim_matches(|character: char| " -|~!".contains(character)))
            .filter(|operand| is_register(operand))
            .collect();
        let shared_loads = |width: &str| {
            let loads = body.iter().filter(|load| base(load) == "LDS");
            loads
                .filter(|load| match width {
                    "" => !load.parts().0.contains(".64") && !load.parts().0.contains(".128"),
                    width => load.parts().0.contains(width),
                })
                .count()
        };
        let address = |instruction: Option<&&Instruction>| {
            instruction.map_or(0, |instruction| instruction.address)
        };
        MainLoop {
            addresses: (address(body.first()), address(body.last())),
            instructions: body.len(),
            multiply_add,
            multiply_adds: multiply_adds.len(),
            register_operands: operands.len(),
            reused_operands: operands
                .iter()
                .filter(|operand| operand.ends_with(".reuse"))
                .count(),
            shared_loads: ["", ".64", ".128"].map(shared_loads),
            shared_stores: count(body, "STS"),
            global_loads: count(body, "LDG"),
            asynchronous_copies: count(body, "LDGSTS"),
            barriers: count(body, "BAR"),
        }
    }
}

/// `R32` or `R32.reuse`; not `RZ`, which is zero.
fn is_register(operand: &str) -> bool {
    operand
        .strip_prefix('R')
        .is_some_and(|rest| rest.starts_with(|character: char| character.is_ascii_digit()))
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
        let share = |part: usize, whole: usize| match whole {
            0 => "-".to_owned(),
            _ => format!("{:.1} %", 100.0 * part as f64 / whole as f64),
        };
        let (first, last) = body.addresses;
        writeln!(
            f,
            "mainloop    {} (/*{first:04x}*/ to /*{last:04x}*/)",
            instructions(body.instructions)
        )?;
        writeln!(
            f,
            "arithmetic  {} {}: {} of the loop's instructions",
            body.multiply_adds,
            body.multiply_add,
            share(body.multiply_adds, body.instructions)
        )?;
        writeln!(
            f,
            "operands    {} of their {} register operands are reused (.reuse): {}",
            body.reused_operands,
            body.register_operands,
            share(body.reused_operands, body.register_operands)
        )?;
        let [single, double, quadruple] = body.shared_loads;
        writeln!(
            f,
            "shared      {quadruple} LDS.128, {double} LDS.64, {single} LDS, {} STS",
            body.shared_stores
        )?;
        writeln!(
            f,
            "global      {} LDG, {} LDGSTS",
            body.global_loads, body.asynchronous_copies
        )?;
        writeln!(f, "barriers    {} BAR", body.barriers)
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
        let expected = Statistics {
            instructions: 27,
            local_loads: 1,
            local_stores: 1,
            main_loop: Some(MainLoop {
                addresses: (0x20, 0x120),
                instructions: 17,
                multiply_add: "FFMA",
                multiply_adds: 4,
                register_operands: 10,
                reused_operands: 3,
                shared_loads: [1, 1, 2],
                shared_stores: 2,
                global_loads: 1,
                asynchronous_copies: 0,
                barriers: 2,
            }),
        };
        assert_eq!(found, expected);
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
