//! Random functions `fn(&[u64; 8]) -> u64` in Rust: all widths of integers and floats, casts,
//! branches, loops, memory, and of the standard library what `templates.rs` has.
//!
//! Some are run by a block of threads that vote, shuffle, and write to shared memory: never where
//! only some of the threads arrive.
//!
//! No function panics, none depends on the bits of a NaN or on which zero a `min` returns, and
//! none runs for long.

use std::fmt::Write as _;

use rand::distr::uniform::{SampleRange, SampleUniform};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

use crate::templates::{
    ADAPTERS, ALL_INTEGERS, BOOLEANS, CHANGES, ENDS, FLOAT_CHANGES, FLOAT_RESULTS, FLOATS,
    HALF_CHANGES, HALF_RESULTS, HALVES, INTEGER_CHANGES, INTEGERS_TOGETHER, Part, RESULTS, SIGNED,
    TOGETHER, UNIFORM, UNSIGNED,
};

/// A type of the generated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    Bool,
    Integer { signed: bool, width: u32 },
    Float(u32),
    F16,
    Bf16,
}

/// An expression: Rust with `{0}`, `{1}` in place of its parts.
#[derive(Clone, Debug)]
pub struct Expression {
    pub ty: Type,
    pub text: String,
    pub parts: Vec<Expression>,
    /// Whether it may not stand for the whole that it is a part of: the body of a function, with
    /// variables of its own, and what a thread says where all must agree.
    pub stays: bool,
}

#[derive(Clone, Debug)]
pub enum Statement {
    /// Variable and value.
    Assign(usize, Expression),
    /// Place in the array and value.
    Store(Expression, Expression),
    If(Expression, Vec<Statement>, Vec<Statement>),
    /// A selector of `u8`, and what is done for its lowest two bits.
    Match(Expression, Vec<Vec<Statement>>),
    /// This many iterations; `i` counts them.
    For(u32, Vec<Statement>),
    /// At most 5 iterations, as long as the condition holds.
    While(Expression, Vec<Statement>),
}

/// A function with its variables, each with the value it starts with, and the numbers it starts
/// with in its array.
#[derive(Clone, Debug)]
pub struct Function {
    pub variables: Vec<Expression>,
    pub body: Vec<Statement>,
}

const INTEGERS: [Type; 10] = [
    integer(false, 8),
    integer(true, 8),
    integer(false, 16),
    integer(true, 16),
    integer(false, 32),
    integer(true, 32),
    integer(false, 64),
    integer(true, 64),
    integer(false, 128),
    integer(true, 128),
];

const fn integer(signed: bool, width: u32) -> Type {
    Type::Integer { signed, width }
}

impl Type {
    pub fn name(self) -> String {
        match self {
            Type::Bool => "bool".to_owned(),
            Type::Integer { signed, width } => format!("{}{width}", if signed { 'i' } else { 'u' }),
            Type::Float(width) => format!("f{width}"),
            Type::F16 => "f16".to_owned(),
            Type::Bf16 => "bf16".to_owned(),
        }
    }

    fn width(self) -> u32 {
        match self {
            Type::Bool => 1,
            Type::Integer { width, .. } | Type::Float(width) => width,
            Type::F16 | Type::Bf16 => 16,
        }
    }

    fn with_sign(self, signed: bool) -> Type {
        match self {
            Type::Integer { width, .. } => Type::Integer { signed, width },
            other => other,
        }
    }
}

struct Generator {
    random: Pcg64,
    variables: Vec<Type>,
    in_loop: bool,
    /// Whether all threads of a block arrive here, and may do something together.
    is_uniform: bool,
    /// How deep an expression is at most. Drawn for each function: a small one is compiled in a
    /// tenth of the time, so that more patterns are met in all.
    depth: u32,
}

/// The function of a seed and a number.
pub fn function(seed: u64, number: u64) -> Function {
    let mut generator = Generator {
        random: Pcg64::seed_from_u64(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number),
        variables: Vec::new(),
        in_loop: false,
        is_uniform: false,
        depth: 0,
    };
    let is_together = generator.random.random_range(0..4) == 0;
    generator.depth = generator.one_of(&[1, 2, 2, 2, 3, 4]);
    let mut variables = Vec::new();
    for _ in 0..generator.random.random_range(2..5) {
        let ty = generator.any_type();
        let value = generator.expression(ty, 1);
        variables.push(value);
        generator.variables.push(ty);
    }
    let count = generator.random.random_range(1..4);
    generator.is_uniform = is_together;
    let body = generator.statements(count, generator.depth / 2);
    Function { variables, body }
}

/// Functions of a seed by their numbers: names, and Rust.
pub fn functions(seed: u64, numbers: std::ops::Range<u64>) -> Vec<(String, String)> {
    numbers
        .map(|number| {
            let name = format!("f{number}");
            let rust = function(seed, number).rust(&name);
            (name, rust)
        })
        .collect()
}

impl Generator {
    /// A number of a range.
    fn any<T: SampleUniform>(&mut self, range: impl SampleRange<T>) -> T {
        self.random.random_range(range)
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.any(0..choices.len())]
    }

    fn any_integer(&mut self) -> Type {
        // The narrow ones more often: 128 bits become long code.
        let at = match self.any(0..12) {
            11 => self.any(8..10),
            _ => self.any(0..8),
        };
        INTEGERS[at]
    }

    fn any_number(&mut self) -> Type {
        match self.any(0..8) {
            0 => Type::Float(32),
            1 => Type::Float(64),
            _ => self.any_integer(),
        }
    }

    fn any_type(&mut self) -> Type {
        match self.any(0..16) {
            0 | 1 => self.half(),
            _ => self.any_number(),
        }
    }

    fn half(&mut self) -> Type {
        self.one_of(&[Type::F16, Type::Bf16])
    }

    fn statements(&mut self, count: u32, depth: u32) -> Vec<Statement> {
        (0..count).map(|_| self.statement(depth)).collect()
    }

    fn statement(&mut self, depth: u32) -> Statement {
        let kind = if depth == 0 {
            self.any(0..4)
        } else {
            self.any(0..9)
        };
        let (is_uniform, agrees) = (self.is_uniform, self.any(0..2) == 0);
        // All threads go the same way in a loop of a constant length, and where they agree.
        self.is_uniform &= agrees || matches!(kind, 0..=3 | 7);
        let statement = self.statement_of(kind, depth);
        self.is_uniform = is_uniform;
        statement
    }

    /// The condition of a branch: one that all threads agree on, if they may.
    fn condition(&mut self, depth: u32) -> Expression {
        if !self.is_uniform {
            return self.expression(Type::Bool, depth);
        }
        let template = self.one_of(UNIFORM);
        let mut condition = self.filled(Type::Bool, template, depth);
        for part in &mut condition.parts {
            part.stays = true;
        }
        condition
    }

    /// As a condition, of a `match`.
    fn selector(&mut self) -> Expression {
        let ty = INTEGERS[0];
        match self.is_uniform {
            true => Expression {
                ty,
                text: "({0} as u8)".to_owned(),
                parts: vec![self.condition(2)],
                stays: false,
            },
            false => self.expression(ty, 2),
        }
    }

    fn together(&mut self, ty: Type) -> Expression {
        let templates = match (ty, self.any(0..2)) {
            (Type::Integer { .. }, 0) => INTEGERS_TOGETHER,
            _ => TOGETHER,
        };
        let template = self.one_of(templates);
        self.filled(ty, template, self.depth)
    }

    fn statement_of(&mut self, kind: u32, depth: u32) -> Statement {
        match kind {
            0 | 1 if self.is_uniform => {
                let variable = self.any(0..self.variables.len());
                Statement::Assign(variable, self.together(self.variables[variable]))
            }
            0..=2 => {
                let variable = self.any(0..self.variables.len());
                Statement::Assign(
                    variable,
                    self.expression(self.variables[variable], self.depth),
                )
            }
            3 => {
                let u64_type = INTEGERS[6];
                Statement::Store(
                    self.expression(u64_type, 1),
                    self.expression(u64_type, self.depth),
                )
            }
            4 | 5 => {
                let (then, otherwise) = (self.any(1..4), self.any(0..3));
                Statement::If(
                    self.condition(self.depth.min(2)),
                    self.statements(then, depth - 1),
                    self.statements(otherwise, depth - 1),
                )
            }
            6 => Statement::Match(
                self.selector(),
                (0..4).map(|_| self.statements(1, depth - 1)).collect(),
            ),
            7 => {
                let (count, length) = (self.any(1..6), self.any(1..4));
                let outer = std::mem::replace(&mut self.in_loop, true);
                let body = self.statements(length, depth - 1);
                self.in_loop = outer;
                Statement::For(count, body)
            }
            _ => Statement::While(self.condition(2), self.statements(2, depth - 1)),
        }
    }

    fn expression(&mut self, ty: Type, depth: u32) -> Expression {
        if depth == 0 || self.any(0..8) == 0 {
            return self.leaf(ty);
        }
        if self.any(0..10) == 0 {
            return self.node(
                ty,
                "(if {0} { {1} } else { {2} })",
                &[Type::Bool, ty, ty],
                depth,
            );
        }
        match ty {
            Type::Bool => self.boolean(depth),
            Type::Integer { signed, .. } => self.integer(ty, signed, depth),
            Type::Float(_) => self.float(ty, depth),
            Type::F16 | Type::Bf16 if self.any(0..6) == 0 => self.array(ty, depth),
            Type::F16 | Type::Bf16 => {
                let template = self.one_of(HALVES);
                self.filled(ty, template, depth)
            }
        }
    }

    fn node(&mut self, ty: Type, text: &str, parts: &[Type], depth: u32) -> Expression {
        Expression {
            ty,
            text: text.to_owned(),
            parts: parts
                .iter()
                .map(|part| self.expression(*part, depth - 1))
                .collect(),
            stays: false,
        }
    }

    fn leaf(&mut self, ty: Type) -> Expression {
        let known: Vec<usize> = (0..self.variables.len())
            .filter(|at| self.variables[*at] == ty)
            .collect();
        let text = match (self.any(0..4), ty) {
            (0 | 1, _) if !known.is_empty() => format!("v{}", self.one_of(&known)),
            (_, Type::Bool) => format!("(x[{}] & 1 == 1)", self.any(0..8)),
            (2, Type::Integer { .. }) => literal(ty, self.edge()),
            (2, Type::Float(_)) => format!(
                "({} as {})",
                self.one_of(&["0.0", "-0.0", "1.5", "-3.0", "1e10", "-32768.0", "65535.9"]),
                ty.name()
            ),
            (2, Type::F16 | Type::Bf16) => format!(
                "{}::from_f32_const({})",
                ty.name(),
                self.one_of(&["0.0", "-0.0", "1.5", "-3.0", "1e-6", "65504.0", "1e-39"])
            ),
            (_, Type::F16 | Type::Bf16) => {
                let place = self.any(0..8);
                format!("{}::from_bits(x[{place}] as u16)", ty.name())
            }
            (
                3,
                Type::Integer {
                    width: 32,
                    signed: true,
                },
            ) if self.in_loop => "(i as i32)".to_owned(),
            (_, Type::Integer { width: 128, .. }) => {
                let (high, low) = (self.any(0..8), self.any(0..8));
                format!(
                    "(((x[{high}] as u128) << 64 | x[{low}] as u128) as {})",
                    ty.name()
                )
            }
            (_, Type::Integer { .. }) => {
                format!("(x[{}] as {})", self.any(0..8), ty.name())
            }
            (_, Type::Float(32)) => format!("f32::from_bits(x[{}] as u32)", self.any(0..8)),
            (_, Type::Float(_)) => format!("f64::from_bits(x[{}])", self.any(0..8)),
        };
        Expression {
            ty,
            text,
            parts: Vec::new(),
            stays: false,
        }
    }

    fn edge(&mut self) -> u128 {
        let width = self.one_of(&[7_u32, 8, 15, 16, 31, 32, 63, 64, 127]);
        let power = 1_u128 << width;
        match self.any(0..6) {
            0 => power,
            1 => power - 1,
            2 => power.wrapping_neg(),
            3 => self.any(0..20),
            4 => u128::MAX - self.any(0..20_u128),
            _ => u128::from(self.random.random::<u64>()) >> self.any(0..63),
        }
    }

    fn boolean(&mut self, depth: u32) -> Expression {
        let template = self.one_of(BOOLEANS);
        self.filled(Type::Bool, template, depth)
    }

    fn integer(&mut self, ty: Type, signed: bool, depth: u32) -> Expression {
        let own = if signed { SIGNED } else { UNSIGNED };
        match self.any(0..16) {
            0 => self.array(ty, depth),
            1 => self.chain(ty, depth),
            2 => self.helper(ty, depth),
            3 | 4 => {
                let template = self.one_of(own);
                self.filled(ty, template, depth)
            }
            _ => {
                let template = self.one_of(ALL_INTEGERS);
                self.filled(ty, template, depth)
            }
        }
    }

    fn float(&mut self, ty: Type, depth: u32) -> Expression {
        if self.any(0..8) == 0 {
            return self.array(ty, depth);
        }
        let template = self.one_of(FLOATS);
        self.filled(ty, template, depth)
    }

    /// An array that is changed a few times.
    fn array(&mut self, ty: Type, depth: u32) -> Expression {
        let length = self.any(3..10);
        let mut elements = Vec::new();
        for _ in 0..length {
            elements.push(self.one_of(&["p", "p", "q", "r"]));
        }
        let count = self.any(1..5);
        let (own_changes, results) = match ty {
            Type::F16 | Type::Bf16 => (HALF_CHANGES, HALF_RESULTS),
            Type::Float(_) => (FLOAT_CHANGES, FLOAT_RESULTS),
            _ => (INTEGER_CHANGES, RESULTS),
        };
        let all_changes = [CHANGES, own_changes].concat();
        let changes: Vec<&str> = (0..count).map(|_| self.one_of(&all_changes)).collect();
        // The parts are named once: in each change they would make long code.
        let text = format!(
            "{{ let (p, q, r, n): (@T, @T, @T, usize) = ({{0}}, {{1}}, {{2}}, {{3}} as usize); \
             let mut a: [@T; {length}] = [{elements}]; {changes} {result} }}",
            elements = elements.join(", "),
            changes = changes
                .join(" ")
                .replace("{0}", "p")
                .replace("@L", &length.to_string()),
            result = self
                .one_of(results)
                .replace("{0}", "q")
                .replace("@L", &length.to_string()),
        );
        self.filled(
            ty,
            (&text, &[Part::Same, Part::Same, Part::Same, Part::U32]),
            depth,
        )
    }

    /// A chain of iterators over a few small numbers.
    fn chain(&mut self, ty: Type, depth: u32) -> Expression {
        let range = self.one_of(&[
            "(0..6_u32)",
            "(1..=5_u32).chain(0..(n & 7))",
            "(0..(n & 7)).rev()",
            "(2..9_u32).chain(1..4).rev()",
        ]);
        let count = self.any(0..4);
        let adapters: String = (0..count).map(|_| self.one_of(ADAPTERS)).collect();
        let rest = format!("{adapters}{}", self.one_of(ENDS));
        let rest = rest.replace("{0}", "p").replace("{1}", "n");
        let text = format!("{{ let (p, n): (@T, u32) = ({{0}}, {{1}}); {range}{rest} }}");
        self.filled(ty, (&text, &[Part::Same, Part::U32]), depth)
    }

    /// A call of a function that is not inlined.
    fn helper(&mut self, ty: Type, depth: u32) -> Expression {
        let other = self.any_type();
        let arguments = [ty, other].map(|ty| self.expression(ty, depth - 1));
        let outer = (
            std::mem::replace(&mut self.variables, vec![ty, other]),
            std::mem::take(&mut self.in_loop),
        );
        let body = Expression {
            stays: true,
            ..self.expression(ty, depth - 1)
        };
        (self.variables, self.in_loop) = outer;
        let text = format!(
            "{{ #[inline(never)] fn helper(x: &[u64; 8], m: &[u64; 8], v0: {0}, v1: {1}) -> {0} {{ {{2}} }} \
             helper(x, &m, {{0}}, {{1}}) }}",
            ty.name(),
            other.name(),
        );
        let mut parts = Vec::from(arguments);
        parts.push(body);
        Expression {
            ty,
            text,
            parts,
            stays: false,
        }
    }

    /// The kind, the argument and the width of a shuffle.
    fn shuffle(&mut self) -> String {
        let (kind, argument) = (self.any(0..4), self.any(0..32));
        let width = self.one_of(&[32, 32, 16, 8, 4, 2]);
        format!("{kind}, {argument}, {width}")
    }

    /// A template with random parts.
    fn filled(&mut self, ty: Type, (text, parts): (&str, &[Part]), depth: u32) -> Expression {
        let other = self.any_integer();
        let (number, half) = (self.any_number(), self.half());
        let types: Vec<Type> = parts
            .iter()
            .map(|part| match part {
                Part::Same => ty,
                Part::Signed => ty.with_sign(true),
                Part::Other => other,
                Part::Number => number,
                Part::Half => half,
                Part::Bool => Type::Bool,
                Part::U32 => integer(false, 32),
                Part::I32 => integer(true, 32),
                Part::U64 => integer(false, 64),
                Part::F32 => Type::Float(32),
                Part::F64 => Type::Float(64),
            })
            .collect();
        let width = ty.width();
        let small = self.any(1..20).min(width - 1);
        let text = text
            .replace("@T", &ty.name())
            .replace("@U", &ty.with_sign(false).name())
            .replace("@S", &other.name())
            .replace("@W", &width.to_string())
            .replace("@K", &small.to_string())
            .replace("@G", &self.shuffle())
            .replace("@O", self.one_of(&["1", "5", "31", "63"]))
            .replace(
                "@P",
                self.one_of(&["Add", "Min", "Max", "And", "Or", "Xor"]),
            );
        self.node(ty, &text, &types, depth)
    }
}

/// The low bits of a number as a literal of the type.
pub fn literal(ty: Type, value: u128) -> String {
    match ty {
        Type::Bool => (value & 1 == 1).to_string(),
        Type::Integer { width, .. } => format!(
            "({:#x}_u128 as {})",
            value & (u128::MAX >> (128 - width)),
            ty.name()
        ),
        Type::Float(_) => format!("({} as {})", value & 1, ty.name()),
        Type::F16 | Type::Bf16 => format!("{}::from_f32_const({}.0)", ty.name(), value & 1),
    }
}

impl Expression {
    fn write(&self, out: &mut String) {
        let mut rest = self.text.as_str();
        while let Some(at) = rest.find('{') {
            let (before, after) = rest.split_at(at);
            out.push_str(before);
            let digit = after.as_bytes().get(1).filter(|byte| byte.is_ascii_digit());
            match digit.and_then(|digit| self.parts.get(usize::from(digit - b'0'))) {
                Some(part) => {
                    part.write(out);
                    rest = &after[3..];
                }
                None => {
                    out.push('{');
                    rest = &after[1..];
                }
            }
        }
        out.push_str(rest);
    }

    /// As Rust.
    pub fn rust(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }
}

impl Function {
    /// As Rust, under this name.
    pub fn rust(&self, name: &str) -> String {
        let mut out = "    let mut m = *x;\n".to_owned();
        for (at, value) in self.variables.iter().enumerate() {
            _ = writeln!(
                out,
                "    let mut v{at}: {} = {};",
                value.ty.name(),
                value.rust()
            );
        }
        write_statements(&self.body, &mut out, "    ");
        out.push_str("    let mut h = m[0] ^ m[3].rotate_left(9) ^ m[7].rotate_left(22);\n");
        for (at, value) in self.variables.iter().enumerate() {
            let bits = match value.ty {
                Type::Float(width) => format!("bits{width}(v{at}) as u64"),
                Type::F16 | Type::Bf16 => format!("v{at}.bits16() as u64"),
                Type::Integer { width: 128, .. } => format!("v{at} as u64 ^ (v{at} >> 64) as u64"),
                _ => format!("v{at} as u64"),
            };
            _ = writeln!(
                out,
                "    h = h.wrapping_mul(0x2545_F491_4F6C_DD1D).rotate_left(13) ^ ({bits});"
            );
        }
        let block = match out.contains("block.") {
            true => ", block: &impl Together",
            false => "",
        };
        format!("#[inline(always)]\npub fn {name}(x: &[u64; 8]{block}) -> u64 {{\n{out}    h\n}}\n")
    }
}

fn write_statements(statements: &[Statement], out: &mut String, indent: &str) {
    let deeper = format!("{indent}    ");
    for statement in statements {
        match statement {
            Statement::Assign(variable, value) => {
                _ = writeln!(out, "{indent}v{variable} = {};", value.rust())
            }
            Statement::Store(place, value) => {
                _ = writeln!(
                    out,
                    "{indent}m[({} & 7) as usize] = {};",
                    place.rust(),
                    value.rust()
                )
            }
            Statement::If(condition, then, otherwise) => {
                _ = writeln!(out, "{indent}if {} {{", condition.rust());
                write_statements(then, out, &deeper);
                _ = writeln!(out, "{indent}}} else {{");
                write_statements(otherwise, out, &deeper);
                _ = writeln!(out, "{indent}}}");
            }
            Statement::Match(selector, arms) => {
                _ = writeln!(out, "{indent}match {} & 3 {{", selector.rust());
                for (at, arm) in arms.iter().enumerate() {
                    let pattern = if at + 1 == arms.len() {
                        "_".to_owned()
                    } else {
                        at.to_string()
                    };
                    _ = writeln!(out, "{deeper}{pattern} => {{");
                    write_statements(arm, out, &format!("{deeper}    "));
                    _ = writeln!(out, "{deeper}}}");
                }
                _ = writeln!(out, "{indent}}}");
            }
            Statement::For(count, body) => {
                _ = writeln!(
                    out,
                    "{indent}for i in 0..{count}_u32 {{\n{deeper}let _ = i;"
                );
                write_statements(body, out, &deeper);
                _ = writeln!(out, "{indent}}}");
            }
            Statement::While(condition, body) => {
                _ = writeln!(
                    out,
                    "{indent}let mut fuel = 5;\n{indent}while fuel > 0 && {} {{\n{deeper}fuel -= 1;",
                    condition.rust()
                );
                write_statements(body, out, &deeper);
                _ = writeln!(out, "{indent}}}");
            }
        }
    }
}

/// What each function is run on: numbers of all sizes, the ends of each type, floats of all kinds.
pub fn inputs(seed: u64) -> Vec<[u64; 8]> {
    let mut random = Pcg64::seed_from_u64(seed ^ 0xA5A5);
    (0..64)
        .map(|_| std::array::from_fn(|_| input(&mut random)))
        .collect()
}

fn input(random: &mut Pcg64) -> u64 {
    const EDGES: &str = "0 1 ffffffffffffffff 80 7f 8000 7fff ffff8000 80000000 7fffffff \
        8000000000000000 7fffffffffffffff ff ffff";
    let floats = "0 -0 1 -1.5 32767.5 -32768 1e10 -1e19 inf -inf NaN 2.2250738585072014e-308";
    let float = |random: &mut Pcg64| {
        let text = floats.split(' ').nth(random.random_range(0..12));
        text.and_then(|text| text.parse().ok()).unwrap_or(0.0_f64)
    };
    match random.random_range(0..6) {
        0 => {
            let text = EDGES.split(' ').nth(random.random_range(0..14));
            text.and_then(|text| u64::from_str_radix(text, 16).ok())
                .unwrap_or(0)
        }
        1 => float(random).to_bits(),
        2 => (float(random) as f32).to_bits().into(),
        3 => random.random_range(0..300),
        4 => (random.random_range(-300.0..300.0_f64)).to_bits(),
        _ => random.random(),
    }
}
