//! Replaces instructions that `ptxas` miscompiles by others.
//!
//! A 16-bit value lies in a 32-bit register, and `ptxas` extends its sign again after each
//! instruction, but not after `neg.s16`, `abs.s16`, and a `sub.s16` from zero. There -32768
//! becomes +32768, which is not a 16-bit value, and a comparison, a shift or a conversion that
//! follows is wrong. (This was seen in the machine code of `ptxas` 12.9 for `sm_90`, the only
//! architecture whose code was read.) So the three are computed in 32 bits. libNVVM generates
//! them from many constructs, so they are replaced in its output, not in its input.
//!
//! On `sm_90`, `ptxas` 12.9 makes one instruction, `VIMNMX3`, of two minima or maxima in a row. If
//! one of the three values is a negation, it forgets to negate: `max(max(b, -a), c)` becomes
//! `max(max(b, a), c)`. (13.5 does not.) So a negation is written as the complement plus 1, which
//! it does not take for one.
//!
//! The absolute value of the least integer is that integer, but after `abs.s32` and `abs.s64`
//! `ptxas` takes the value for positive: it converts it to a float as a signed number where the
//! program has an unsigned one, and decides a comparison with 0. (Seen in the machine code of
//! `ptxas` 12.9 and 13.5 for `sm_90`.) So it becomes the greater of the value and its negation, as
//! above.
//!
//! ```text
//!   neg.s16 %rs2, %rs1;   becomes   { .reg .b32 %w1; cvt.s32.s16 %w1, %rs1;
//!                                     not.b32 %w1, %w1; add.s32 %w1, %w1, 1;
//!                                     cvt.u16.u32 %rs2, %w1; }
//!   neg.s32 %r2, %r1;     becomes   { .reg .b32 %n32; not.b32 %n32, %r1;
//!                                     add.s32 %r2, %n32, 1; }
//!   abs.s32 %r2, %r1;     becomes   { .reg .b32 %n32; not.b32 %n32, %r1;
//!                                     add.s32 %n32, %n32, 1;
//!                                     max.s32 %r2, %r1, %n32; }
//! ```
//!
//! The new registers are named as libNVVM names its own, a letter and a number: the search for the
//! version of PTX that a text needs takes other names for special registers.

/// Rewrites the instructions that `ptxas` miscompiles, each in its line. Other lines are not
/// changed.
pub fn avoid_ptxas_errors(ptx: &str) -> String {
    let mut out = String::with_capacity(ptx.len());
    for line in ptx.split_inclusive('\n') {
        match rewritten(line) {
            Some(line) => out.push_str(&line),
            None => out.push_str(line),
        }
    }
    out
}

/// `None` if the line is not one of the instructions.
fn rewritten(line: &str) -> Option<String> {
    let text = line.trim_end().trim_start();
    let (guard, instruction) = match text.strip_prefix('@') {
        Some(_) => text.split_once(char::is_whitespace)?,
        None => ("", text),
    };
    let (opcode, operands) = instruction
        .strip_suffix(';')?
        .trim_start()
        .split_once(char::is_whitespace)?;
    let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
    let space = if guard.is_empty() { "" } else { " " };
    match (opcode, operands.as_slice()) {
        ("neg.s32", [target, source]) | ("sub.s32", [target, "0", source]) => {
            return Some(format!(
                "\t{{ .reg .b32 %n32; not.b32 %n32, {source}; \
                 {guard}{space}add.s32 {target}, %n32, 1; }}\n"
            ));
        }
        ("abs.s32" | "abs.s64", [target, source]) => {
            let width = opcode.trim_start_matches("abs.s");
            return Some(format!(
                "\t{{ .reg .b{width} %n{width}; not.b{width} %n{width}, {source}; \
                 add.s{width} %n{width}, %n{width}, 1; \
                 {guard}{space}max.s{width} {target}, {source}, %n{width}; }}\n"
            ));
        }
        _ => {}
    }
    let (declared, computed) = match (opcode, operands.as_slice()) {
        ("neg.s16", [_, source]) => (
            "%w1",
            format!(
                "{} not.b32 %w1, %w1; add.s32 %w1, %w1, 1;",
                widen("%w1", source)
            ),
        ),
        ("abs.s16", [_, source]) => ("%w1", format!("{} abs.s32 %w1, %w1;", widen("%w1", source))),
        ("sub.s16" | "sub.u16", [_, left, right]) => (
            "%w1, %w2",
            format!(
                "{} {} sub.s32 %w1, %w1, %w2;",
                widen("%w1", left),
                widen("%w2", right)
            ),
        ),
        _ => return None,
    };
    let target = operands.first()?;
    Some(format!(
        "\t{{ .reg .b32 {declared}; {computed} {guard}{space}cvt.u16.u32 {target}, %w1; }}\n"
    ))
}

/// A 16-bit register or number as 32 bits.
fn widen(target: &str, source: &str) -> String {
    match source.starts_with('%') {
        true => format!("cvt.s32.s16 {target}, {source};"),
        false => format!("mov.u32 {target}, {source};"),
    }
}

#[cfg(test)]
mod tests {
    use super::avoid_ptxas_errors;

    #[test]
    fn negation_absolute_value_and_difference_of_16_bits_are_done_in_32() {
        let ptx = "\tneg.s16 \t%rs2, %rs1;\n\
                   \t@%p1 abs.s16 \t%rs3, %rs2;\n\
                   \tsub.s16 \t%rs4, -5, %rs3;\n";
        let expected = "\t{ .reg .b32 %w1; cvt.s32.s16 %w1, %rs1; not.b32 %w1, %w1; \
                        add.s32 %w1, %w1, 1; cvt.u16.u32 %rs2, %w1; }\n\
                        \t{ .reg .b32 %w1; cvt.s32.s16 %w1, %rs2; abs.s32 %w1, %w1; \
                        @%p1 cvt.u16.u32 %rs3, %w1; }\n\
                        \t{ .reg .b32 %w1, %w2; mov.u32 %w1, -5; cvt.s32.s16 %w2, %rs3; \
                        sub.s32 %w1, %w1, %w2; cvt.u16.u32 %rs4, %w1; }\n";
        assert_eq!(avoid_ptxas_errors(ptx), expected);
    }

    #[test]
    fn absolute_value_is_the_greater_of_value_and_negation() {
        let ptx = "\tabs.s32 \t%r2, %r1;\n\t@!%p1 abs.s64 \t%rd3, %rd3;\n";
        let expected = "\t{ .reg .b32 %n32; not.b32 %n32, %r1; add.s32 %n32, %n32, 1; \
                        max.s32 %r2, %r1, %n32; }\n\
                        \t{ .reg .b64 %n64; not.b64 %n64, %rd3; add.s64 %n64, %n64, 1; \
                        @!%p1 max.s64 %rd3, %rd3, %n64; }\n";
        assert_eq!(avoid_ptxas_errors(ptx), expected);
    }

    #[test]
    fn negation_of_32_bits_is_the_complement_plus_one() {
        let ptx = "\tneg.s32 \t%r2, %r1;\n\t@%p1 sub.s32 \t%r3, 0, %r2;\n";
        let expected = "\t{ .reg .b32 %n32; not.b32 %n32, %r1; add.s32 %r2, %n32, 1; }\n\
                        \t{ .reg .b32 %n32; not.b32 %n32, %r2; @%p1 add.s32 %r3, %n32, 1; }\n";
        assert_eq!(avoid_ptxas_errors(ptx), expected);
    }

    #[test]
    fn all_else_stays() {
        let ptx = "\tadd.s16 \t%rs2, %rs1, %rs3;\n\tsub.s32 \t%r2, %r1, %r3;\n// neg.s16 %rs2, %rs1;\n\n}";
        assert_eq!(avoid_ptxas_errors(ptx), ptx);
    }
}
