//! Replaces instructions that `ptxas` miscompiles by others, and one that libNVVM gets wrong, and
//! keeps functions on which it crashes.
//!
//! A 16-bit value is in a 32-bit register, and `ptxas` extends its sign again after each
//! instruction, but not after `neg.s16`, `abs.s16`, and a `sub.s16` from zero. There -32768 becomes
//! +32768, which is not a 16-bit value, and a comparison, a shift or a conversion that follows is
//! wrong. (This was seen in the machine code of `ptxas` 12.9 for `sm_90`, the only architecture
//! whose code was read.) So the three are computed in 32 bits. libNVVM generates them from many
//! constructs, so they are replaced in its output, not in its input.
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
//! A minimum or maximum of 16 bits is half of a packed instruction, `VIMNMX.S16x2`. If the result
//! is compared with the limit, a constant, `ptxas` takes the answer from that instruction, and of
//! its two answers the one for the upper half, which is unused: `max(x, -128) == -128` was wrong
//! where x is greater. (Seen in the machine code of `ptxas` 13.0 for `sm_90`.) So they too are
//! computed in 32 bits.
//!
//! `ptxas` knows which values are booleans, 0 or 1 by a predicate, also after a conversion to a
//! float, but not whether their bits have changed type since. A conversion, or a use of the bits,
//! then gives what it would give for the boolean: 1 instead of the bits of 1.0, or 1.0 instead of
//! the float whose bits are 1. (Seen in the machine code of `ptxas` 13.0 and 13.5 for `sm_90`.) So
//! where the bits of a possible boolean change type, a zero is added that `ptxas` does not know to
//! be one: no lane is both this one and one below it. Registers of 16 bits have no type, so there
//! the bits change type where an instruction reads a possible boolean as `f16` or `bf16`, and
//! where an integer, or what was one, is converted to these; the zero is added to what is read, or
//! to the result. (Of these, the conversions and `abs` were seen to be wrong in the machine code of
//! `ptxas` 12.9 and 13.0 for `sm_90`: `cvt.f32.f16` of a boolean gave 1.0 instead of 2^-24.)
//!
//! Where a branch depends on a comparison, and the block behind it compares the same two values of
//! 32 bits in the same way, `ptxas` drops the second comparison, although one may be of signed
//! integers, one of unsigned, one of floats: `if a < b { if (a as i32) < (b as i32) ..}`, and
//! `if x == 0.0 { if x.to_bits() == 0 ..}`, which is to tell the zeros apart. (Seen in the machine
//! code of `ptxas` 12.9 and 13.0 for `sm_75` to `sm_120`; 13.5 keeps both.) So where a function
//! compares the same values in two ways, such a zero is added to a side of one.
//!
//! `ptxas` works out the range of an absolute value, a sine or an exponential of 32 bits, and of
//! what is computed from it, but a NaN is in no range: `x.abs() >= 0.0` is taken for true. (Seen
//! in the machine code of `ptxas` 12.9, 13.0 and 13.5 for `sm_90`.) It does keep a comparison that
//! is true for NaN. So `a >= b` becomes the contrary of `a < b or unordered`, which costs nothing:
//! the instruction that uses the predicate negates it.
//!
//! A parameter of a function that is not inlined is in a 32-bit register, and after `ld.param.s8`
//! and `ld.param.s16` into a register of 16 bits `ptxas` takes it for zero-extended, although its
//! upper half has the sign and, above 16 bits, whatever the caller left: an unsigned shift,
//! comparison or conversion that follows is wrong. (Seen in the machine code of `ptxas` 12.9 and
//! 13.0 for `sm_75` and `sm_90`.) `ld.param.u8` and `ld.param.u16` do extend, so the sign is
//! extended after them.
//!
//! A field of eight bits from bit 28 on ends beyond bit 31: `bfe.s32` takes the four bits that
//! there are and extends the sign. The newer libNVVM writes it at opt level 0 for `(x >> 28) as
//! i8` also where x is unsigned. (Where x is signed, it writes `shr.s32`.) So such a field, which
//! passes the last bit, is an unsigned shift, unless it is the programmer's own inline PTX.
//!
//! Where two neighbouring 16-bit halves are loaded, `ptxas` loads 32 bits. If one of them then
//! gets another half above it by `bfi.b64`, and what comes out is the upper word of 64 bits, it is
//! computed in a register that is overwritten at once, and the word is the half that was put in.
//! (Seen in the machine code of `ptxas` 12.9 and 13.0 for `sm_90` and `sm_100`, not for `sm_75`
//! and `sm_80`.) So what is inserted into the lower word is inserted by an instruction of 32 bits.
//!
//! If a function calls itself, directly or through others, and `ptxas` finds out that a kernel
//! never reaches it, `ptxas` crashes. At opt level 0 that is so for a function that sorts a slice
//! and is called once, with an array of four numbers: `ptxas` sees that quicksort, which is for
//! longer slices, is not reached, and libNVVM does not. (Seen in `ptxas` 12.9 and 13.0 for `sm_90`
//! to `sm_120`, not for older GPUs, and not in 13.5.) `ptxas` keeps a function whose address is
//! taken, even where nothing uses the address. So such a function takes its own. Where it is
//! reached, the machine code is the same with and without that.
//!
//! `tests/ptxas` shows what each becomes.
//!
//! The new registers are named as libNVVM names its own, a letter and a number: the search for the
//! version of PTX that a text needs takes other names for special registers.

mod booleans;
mod comparisons;
mod ranges;
mod recursion;
mod text;

use std::borrow::Cow;
use std::collections::HashSet;

use booleans::booleans_and_converted;
use comparisons::Comparisons;
use ranges::with_range;
use recursion::with_own_addresses;
use text::parts;

/// Rewrites the instructions of libNVVM's PTX that would give wrong numbers, each in its line, and
/// the first brace of functions that call themselves. Other lines are not changed.
pub fn avoid_ptxas_errors(ptx: &str) -> String {
    let mut out = String::with_capacity(ptx.len());
    let ptx = with_own_addresses(ptx);
    // Registers are a function's own, and its last line is a brace alone.
    for function in ptx.split_inclusive("\n}\n") {
        let known = Known {
            booleans: booleans_and_converted(function),
            comparisons: Comparisons::of(function),
            with_range: with_range(function),
        };
        let mut by_hand = false;
        for line in function.split_inclusive('\n') {
            match line.trim() {
                "// begin inline asm" => by_hand = true,
                "// end inline asm" => by_hand = false,
                _ => {}
            }
            let line = match known
                .rewritten(line)
                .or_else(|| inserted_in_lower_word(line))
            {
                Some(line) => Cow::from(line),
                None if by_hand => line.into(),
                None => field_within(line).unwrap_or(line.into()),
            };
            out.push_str(&line);
        }
    }
    out
}

/// What `ptxas` may conclude about the registers of a function.
struct Known<'p> {
    booleans: HashSet<&'p str>,
    comparisons: Comparisons<'p>,
    with_range: HashSet<&'p str>,
}

impl<'p> Known<'p> {
    /// `None` if the line is not one of the instructions that `ptxas` miscompiles.
    fn rewritten(&self, line: &'p str) -> Option<String> {
        let (guard, opcode, operands) = parts(line)?;
        let mask = self.comparisons.mask(opcode, operands);
        let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
        let space = if guard.is_empty() { "" } else { " " };
        if let Some(mask) = mask {
            let at = 1 + operands[1..]
                .iter()
                .position(|side| side.starts_with('%'))?;
            let mut sides = operands.clone();
            sides[at] = "%m1";
            return Some(format!(
                "\t{{ .reg .b32 %m1, %m2; mov.u32 %m1, {mask}; mov.u32 %m2, %lanemask_eq; \
             and.b32 %m1, %m1, %m2; or.b32 %m1, %m1, {}; {guard}{space}{opcode} {}; }}\n",
                operands[at],
                sides.join(", ")
            ));
        }
        if let Some(contrary) = contrary(opcode)
            && let [target, left, right] = operands[..]
            && (self.with_range.contains(left) || self.with_range.contains(right))
        {
            return Some(format!(
                "\t{{ .reg .pred %q1; {contrary} %q1, {left}, {right}; \
             {guard}{space}not.pred {target}, %q1; }}\n"
            ));
        }
        if let Some(line) = self.with_hidden_zeros_in_halves(guard, opcode, &operands) {
            return Some(line);
        }
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
            ("ld.param.s16", [target, source]) if target.starts_with("%rs") => {
                return Some(format!(
                    "\t{guard}{space}ld.param.u16 {target}, {source};\n"
                ));
            }
            ("ld.param.s8", [target, source]) if target.starts_with("%rs") => {
                return Some(format!(
                    "\t{{ .reg .b16 %w8; ld.param.u8 %w8, {source}; \
                 {guard}{space}cvt.s16.s8 {target}, %w8; }}\n"
                ));
            }
            ("mov.b16" | "mov.b32" | "mov.b64", [target, source])
                if self.booleans.contains(source) && is_float(target) != is_float(source) =>
            {
                let width = opcode.trim_start_matches("mov.b");
                return Some(with_hidden_zero(
                    width,
                    &format!("mov.b{width} %m{width}, {source};"),
                    guard,
                    target,
                ));
            }
            // The least number above zero, whose bits are 1.
            ("mov.f32", [target, "0f00000001"]) => {
                return Some(with_hidden_zero("32", "mov.b32 %m32, 1;", guard, target));
            }
            ("selp.f32", [target, sources @ .., condition]) if sources.contains(&"0f00000001") => {
                let select = format!(
                    "selp.b32 %m32, {}, {condition};",
                    sources.join(", ").replace("0f", "0x")
                );
                return Some(with_hidden_zero("32", &select, guard, target));
            }
            _ => {}
        }
        // `min.s16`: minimum, and how its operands become 32 bits.
        let (operation, kind) = opcode.split_once('.')?;
        let (declared, computed) = match (operation, kind, operands.as_slice()) {
            ("neg", "s16", [_, source]) => (
                "%w1",
                format!(
                    "{} not.b32 %w1, %w1; add.s32 %w1, %w1, 1;",
                    widen("%w1", source, "s")
                ),
            ),
            ("abs", "s16", [_, source]) => (
                "%w1",
                format!("{} abs.s32 %w1, %w1;", widen("%w1", source, "s")),
            ),
            ("sub", "s16" | "u16", [_, left, right]) => (
                "%w1, %w2",
                format!(
                    "{} {} sub.s32 %w1, %w1, %w2;",
                    widen("%w1", left, "s"),
                    widen("%w2", right, "s")
                ),
            ),
            ("min" | "max", "s16" | "u16", [_, left, right]) => {
                let sign = &kind[..1];
                (
                    "%w1, %w2",
                    format!(
                        "{} {} {operation}.{sign}32 %w1, %w1, %w2;",
                        widen("%w1", left, sign),
                        widen("%w2", right, sign)
                    ),
                )
            }
            _ => return None,
        };
        let target = operands.first()?;
        Some(format!(
            "\t{{ .reg .b32 {declared}; {computed} {guard}{space}cvt.u16.u32 {target}, %w1; }}\n"
        ))
    }

    /// An instruction that reads possible booleans as halves, or that converts an integer, or what
    /// was one, to a half.
    fn with_hidden_zeros_in_halves(
        &self,
        guard: &str,
        opcode: &str,
        operands: &[&str],
    ) -> Option<String> {
        let mut types = opcode.rsplit('.');
        let (from, to) = (types.next()?, types.next()?);
        let is_half = |ty: &str| matches!(ty, "f16" | "bf16");
        let is_possible = |register: &str| self.booleans.contains(register);
        // The older libNVVM has registers `%h` for `f16`, and moves bits to and from them.
        let is_untyped = |register: &str| register.starts_with("%rs");
        let is_read = |source: &str| is_untyped(source) && is_possible(source);
        let (target, sources) = operands.split_first()?;
        if is_half(from) && sources.iter().any(|source| is_read(source)) {
            let mut hidden = String::new();
            let mut read = vec![target.to_string()];
            for (i, source) in sources.iter().enumerate() {
                if is_read(source) {
                    hidden += &format!(" .reg .b16 %g{i}; or.b16 %g{i}, {source}, %k16;");
                    read.push(format!("%g{i}"));
                } else {
                    read.push(source.to_string());
                }
            }
            let space = if guard.is_empty() { "" } else { " " };
            return Some(format!(
                "\t{{ .reg .b32 %m1, %m2; {HIDDEN_ZERO}{}{hidden} {guard}{space}{opcode} {}; }}\n",
                widened_zero("16"),
                read.join(", ")
            ));
        }
        let [source] = sources else { return None };
        let was_integer = from.starts_with(['s', 'u']) || is_possible(source);
        let is_converted = opcode.starts_with("cvt.") && is_half(to) && is_untyped(target);
        (is_converted && was_integer).then(|| {
            let converted = format!("{opcode} %m16, {source};");
            with_hidden_zero("16", &converted, guard, target)
        })
    }
}

/// The comparison of floats that is false where this one is true.
fn contrary(opcode: &str) -> Option<String> {
    let (operator, ty) = opcode.strip_prefix("setp.")?.split_once('.')?;
    let contrary = match operator {
        "lt" => "geu",
        "le" => "gtu",
        "gt" => "leu",
        "ge" => "ltu",
        _ => return None,
    };
    matches!(ty, "f32" | "ftz.f32").then(|| format!("setp.{contrary}.{ty}"))
}

/// A field of bits that passes the last one, as an unsigned shift.
fn field_within(line: &str) -> Option<Cow<'_, str>> {
    let (guard, opcode, operands) = parts(line)?;
    let width: u32 = opcode.strip_prefix("bfe.s")?.parse().ok()?;
    let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
    let [target, source, first, length] = operands.as_slice() else {
        return None;
    };
    let end = first.parse::<u32>().ok()? + length.parse::<u32>().ok()?;
    let space = if guard.is_empty() { "" } else { " " };
    (end > width)
        .then(|| format!("\t{guard}{space}shr.u{width} {target}, {source}, {first};\n").into())
}

/// `bfi.b64` of a field in the lower word, done in 32 bits.
fn inserted_in_lower_word(line: &str) -> Option<String> {
    let (guard, opcode, operands) = parts(line)?;
    let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
    let ("bfi.b64", [target, field, into, first, length]) = (opcode, operands.as_slice()) else {
        return None;
    };
    let end = first.parse::<u32>().ok()? + length.parse::<u32>().ok()?;
    let are_registers = field.starts_with('%') && into.starts_with('%');
    let space = if guard.is_empty() { "" } else { " " };
    (end <= 32 && are_registers).then(|| {
        format!(
            "\t{{ .reg .b32 %i1, %i2, %i3, %i4; mov.b64 {{%i1, %i2}}, {field}; \
             mov.b64 {{%i3, %i4}}, {into}; bfi.b32 %i3, %i1, %i3, {first}, {length}; \
             {guard}{space}mov.b64 {target}, {{%i3, %i4}}; }}\n"
        )
    })
}

fn is_float(register: &str) -> bool {
    register.starts_with("%f") || register.starts_with("%h")
}

/// Sets `%m1` to a zero that `ptxas` does not know.
const HIDDEN_ZERO: &str =
    "mov.u32 %m1, %lanemask_lt; mov.u32 %m2, %lanemask_eq; and.b32 %m1, %m1, %m2;";

/// Sets `%kWIDTH` to it.
fn widened_zero(width: &str) -> String {
    format!(" .reg .b{width} %k{width}; cvt.u{width}.u32 %k{width}, %m1;")
}

/// Sets a register to what `computed` sets `%mWIDTH` to, or a zero.
fn with_hidden_zero(width: &str, computed: &str, guard: &str, target: &str) -> String {
    let (widened, zero) = match width {
        "32" => (String::new(), "%m1".to_owned()),
        _ => (widened_zero(width), format!("%k{width}")),
    };
    let space = if guard.is_empty() { "" } else { " " };
    let value = format!("%m{width}");
    format!(
        "\t{{ .reg .b32 %m1, %m2; .reg .b{width} {value}; {HIDDEN_ZERO}{widened} {computed} \
         or.b{width} {value}, {value}, {zero}; {guard}{space}mov.b{width} {target}, {value}; }}\n"
    )
}

/// A 16-bit register or number as 32 bits, `s`igned or `u`nsigned.
fn widen(target: &str, source: &str, sign: &str) -> String {
    match source.parse::<i64>() {
        // libNVVM may write the same 16 bits as 65535 and as -1.
        Ok(number) if sign == "u" => format!("mov.u32 {target}, {};", number as u16),
        Ok(number) => format!("mov.u32 {target}, {};", number as i16),
        Err(_) => format!("cvt.{sign}32.{sign}16 {target}, {source};"),
    }
}
