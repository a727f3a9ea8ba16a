//! Random functions `fn(&[u64; 8]) -> u64` in Rust: all widths of integers, floats, casts,
//! branches, loops, memory.
//!
//! No function panics, none depends on the bits of a NaN or on which zero a `min` returns, and
//! none runs for long.

use std::fmt::Write as _;

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

/// A type of the generated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    Bool,
    Integer { signed: bool, width: u32 },
    Float(u32),
}

/// An expression: Rust with `{0}`, `{1}` where its parts stand.
#[derive(Clone, Debug)]
pub struct Expression {
    pub ty: Type,
    pub text: String,
    pub parts: Vec<Expression>,
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
}

/// The function of a seed and a number.
pub fn function(seed: u64, number: u64) -> Function {
    let mut generator = Generator {
        random: Pcg64::seed_from_u64(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number),
        variables: Vec::new(),
        in_loop: false,
    };
    let mut variables = Vec::new();
    for _ in 0..generator.random.random_range(2..6) {
        let ty = generator.any_type();
        let value = generator.expression(ty, 2);
        variables.push(value);
        generator.variables.push(ty);
    }
    let count = generator.random.random_range(2..7);
    let body = generator.statements(count, 2);
    Function { variables, body }
}

impl Generator {
    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.random.random_range(0..choices.len())]
    }

    fn any_integer(&mut self) -> Type {
        // The narrow ones more often: 128 bits become long code.
        let at = match self.random.random_range(0..12) {
            11 => self.random.random_range(8..10),
            _ => self.random.random_range(0..8),
        };
        INTEGERS[at]
    }

    fn any_type(&mut self) -> Type {
        match self.random.random_range(0..8) {
            0 => Type::Float(32),
            1 => Type::Float(64),
            _ => self.any_integer(),
        }
    }

    fn statements(&mut self, count: u32, depth: u32) -> Vec<Statement> {
        (0..count).map(|_| self.statement(depth)).collect()
    }

    fn statement(&mut self, depth: u32) -> Statement {
        let kind = if depth == 0 {
            self.random.random_range(0..4)
        } else {
            self.random.random_range(0..9)
        };
        match kind {
            0..=2 => {
                let variable = self.random.random_range(0..self.variables.len());
                Statement::Assign(variable, self.expression(self.variables[variable], 4))
            }
            3 => {
                let u64_type = INTEGERS[6];
                Statement::Store(self.expression(u64_type, 1), self.expression(u64_type, 3))
            }
            4 | 5 => {
                let (then, otherwise) = (
                    self.random.random_range(1..4),
                    self.random.random_range(0..3),
                );
                Statement::If(
                    self.expression(Type::Bool, 3),
                    self.statements(then, depth - 1),
                    self.statements(otherwise, depth - 1),
                )
            }
            6 => Statement::Match(
                self.expression(INTEGERS[0], 2),
                (0..4).map(|_| self.statements(1, depth - 1)).collect(),
            ),
            7 => {
                let (count, length) = (
                    self.random.random_range(1..6),
                    self.random.random_range(1..4),
                );
                let outer = std::mem::replace(&mut self.in_loop, true);
                let body = self.statements(length, depth - 1);
                self.in_loop = outer;
                Statement::For(count, body)
            }
            _ => Statement::While(
                self.expression(Type::Bool, 2),
                self.statements(2, depth - 1),
            ),
        }
    }

    fn expression(&mut self, ty: Type, depth: u32) -> Expression {
        if depth == 0 || self.random.random_range(0..8) == 0 {
            return self.leaf(ty);
        }
        if self.random.random_range(0..10) == 0 {
            return self.node(
                ty,
                "(if {0} { {1} } else { {2} })",
                &[Type::Bool, ty, ty],
                depth,
            );
        }
        match ty {
            Type::Bool => self.boolean(depth),
            Type::Integer { signed, width } => self.integer(ty, signed, width, depth),
            Type::Float(width) => self.float(ty, width, depth),
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
        }
    }

    fn leaf(&mut self, ty: Type) -> Expression {
        let known: Vec<usize> = (0..self.variables.len())
            .filter(|at| self.variables[*at] == ty)
            .collect();
        let text = match (self.random.random_range(0..4), ty) {
            (0 | 1, _) if !known.is_empty() => format!("v{}", self.one_of(&known)),
            (_, Type::Bool) => format!("(x[{}] & 1 == 1)", self.random.random_range(0..8)),
            (2, Type::Integer { .. }) => literal(ty, self.edge()),
            (2, Type::Float(_)) => format!(
                "({} as {})",
                self.one_of(&["0.0", "-0.0", "1.5", "-3.0", "1e10", "-32768.0", "65535.9"]),
                ty.name()
            ),
            (
                3,
                Type::Integer {
                    width: 32,
                    signed: true,
                },
            ) if self.in_loop => "(i as i32)".to_owned(),
            (_, Type::Integer { width: 128, .. }) => {
                let (high, low) = (
                    self.random.random_range(0..8),
                    self.random.random_range(0..8),
                );
                format!(
                    "(((x[{high}] as u128) << 64 | x[{low}] as u128) as {})",
                    ty.name()
                )
            }
            (_, Type::Integer { .. }) => {
                format!("(x[{}] as {})", self.random.random_range(0..8), ty.name())
            }
            (_, Type::Float(32)) => format!(
                "f32::from_bits(x[{}] as u32)",
                self.random.random_range(0..8)
            ),
            (_, Type::Float(_)) => format!("f64::from_bits(x[{}])", self.random.random_range(0..8)),
        };
        Expression {
            ty,
            text,
            parts: Vec::new(),
        }
    }

    fn edge(&mut self) -> u128 {
        let width = self.one_of(&[7_u32, 8, 15, 16, 31, 32, 63, 64, 127]);
        let power = 1_u128 << width;
        match self.random.random_range(0..6) {
            0 => power,
            1 => power - 1,
            2 => power.wrapping_neg(),
            3 => self.random.random_range(0..20),
            4 => u128::MAX - self.random.random_range(0..20_u128),
            _ => u128::from(self.random.random::<u64>()) >> self.random.random_range(0..63),
        }
    }

    fn boolean(&mut self, depth: u32) -> Expression {
        let ty = self.any_type();
        let text = match self.random.random_range(0..11) {
            0 => return self.node(Type::Bool, "(!{0})", &[Type::Bool], depth),
            1 => return self.node(Type::Bool, "({0} && {1})", &[Type::Bool; 2], depth),
            2 => return self.node(Type::Bool, "({0} || {1})", &[Type::Bool; 2], depth),
            3 => return self.node(Type::Bool, "({0} ^ {1})", &[Type::Bool; 2], depth),
            4 => {
                let (ty, operation) = (self.any_integer(), self.one_of(&["add", "sub", "mul"]));
                return self.node(
                    Type::Bool,
                    &format!("{{0}}.overflowing_{operation}({{1}}).1"),
                    &[ty, ty],
                    depth,
                );
            }
            5 => "({0} == {1})",
            6 => "({0} != {1})",
            7 => "({0} < {1})",
            8 => "({0} <= {1})",
            9 => "({0} > {1})",
            _ => "({0} >= {1})",
        };
        self.node(Type::Bool, text, &[ty, ty], depth)
    }

    fn integer(&mut self, ty: Type, signed: bool, width: u32, depth: u32) -> Expression {
        let u32_type = INTEGERS[4];
        let same = [ty, ty];
        match self.random.random_range(0..24) {
            0..=6 => {
                let text = self.one_of(&[
                    "{0}.wrapping_add({1})",
                    "{0}.wrapping_sub({1})",
                    "{0}.wrapping_mul({1})",
                    "({0} & {1})",
                    "({0} | {1})",
                    "({0} ^ {1})",
                    "{0}.saturating_add({1})",
                    "{0}.saturating_sub({1})",
                    "{0}.min({1})",
                    "{0}.max({1})",
                    "{0}.checked_add({1}).unwrap_or(7)",
                    "{0}.checked_sub({1}).unwrap_or(7)",
                    "{0}.checked_mul({1}).unwrap_or(7)",
                    "{0}.overflowing_sub({1}).0",
                ]);
                self.node(ty, text, &same, depth)
            }
            7 | 8 => {
                let text = self.one_of(&[
                    "{0}.checked_div({1}).unwrap_or(3)",
                    "{0}.checked_rem({1}).unwrap_or(3)",
                    "{0}.wrapping_div({1} | 1)",
                    "{0}.wrapping_rem({1} | 1)",
                    "{0}.wrapping_rem_euclid({1} | 1)",
                    "{0}.wrapping_div_euclid({1} | 1)",
                    "{0}.saturating_mul({1})",
                ]);
                self.node(ty, text, &same, depth)
            }
            9 | 10 => {
                let text = self.one_of(&[
                    "{0}.wrapping_shl({1})",
                    "{0}.wrapping_shr({1})",
                    "{0}.rotate_left({1})",
                    "{0}.rotate_right({1})",
                    "{0}.checked_shl({1}).unwrap_or(5)",
                    "{0}.checked_shr({1} & 255).unwrap_or(5)",
                ]);
                self.node(ty, text, &[ty, u32_type], depth)
            }
            11 | 12 => {
                let mut texts = vec![
                    "{0}.wrapping_neg()",
                    "(!{0})",
                    "{0}.reverse_bits()",
                    "{0}.swap_bytes()",
                ];
                if signed {
                    texts.extend([
                        "{0}.wrapping_abs()",
                        "{0}.signum()",
                        "{0}.saturating_neg()",
                        "{0}.saturating_abs()",
                        "{0}.checked_neg().unwrap_or(9)",
                    ]);
                } else {
                    texts.extend([
                        "{0}.isqrt()",
                        "{0}.checked_next_power_of_two().unwrap_or(1)",
                    ]);
                }
                let text = self.one_of(&texts);
                self.node(ty, text, &[ty], depth)
            }
            13 => {
                let source = self.any_integer();
                let text = self.one_of(&[
                    "count_ones",
                    "leading_zeros",
                    "trailing_zeros",
                    "leading_ones",
                ]);
                self.node(
                    ty,
                    &format!("({{0}}.{text}() as {})", ty.name()),
                    &[source],
                    depth,
                )
            }
            14 => {
                let other = ty.with_sign(true);
                let (text, source) = match signed {
                    true => (
                        format!("({{0}}.abs_diff({{1}}) as {})", ty.name()),
                        vec![other, other],
                    ),
                    false => ("{0}.unsigned_abs()".to_owned(), vec![other]),
                };
                self.node(ty, &text, &source, depth)
            }
            15 => {
                let source = self.any_integer();
                self.node(
                    ty,
                    &format!("({{0}}.cmp(&{{1}}) as i8 as {})", ty.name()),
                    &[source, source],
                    depth,
                )
            }
            16 => {
                let source = self.one_of(&[Type::Float(32), Type::Float(64)]);
                self.node(ty, &format!("({{0}} as {})", ty.name()), &[source], depth)
            }
            17 if width == 32 => self.node(
                ty,
                &format!("(bits32({{0}}) as {})", ty.name()),
                &[Type::Float(32)],
                depth,
            ),
            17 if width == 64 => self.node(
                ty,
                &format!("(bits64({{0}}) as {})", ty.name()),
                &[Type::Float(64)],
                depth,
            ),
            18 => self.node(
                ty,
                &format!("({{0}} as {})", ty.name()),
                &[Type::Bool],
                depth,
            ),
            19 => self.node(
                ty,
                &format!("(m[({{0}} & 7) as usize] as {})", ty.name()),
                &[INTEGERS[6]],
                depth,
            ),
            20 => self.node(
                ty,
                &format!("(x[({{0}} & 7) as usize] as {})", ty.name()),
                &[u32_type],
                depth,
            ),
            _ => {
                let source = self.any_integer();
                self.node(ty, &format!("({{0}} as {})", ty.name()), &[source], depth)
            }
        }
    }

    fn float(&mut self, ty: Type, width: u32, depth: u32) -> Expression {
        let same = [ty, ty];
        match self.random.random_range(0..10) {
            0..=3 => {
                let text = self.one_of(&[
                    "({0} + {1})",
                    "({0} - {1})",
                    "({0} * {1})",
                    "({0} / {1})",
                    "({0} % {1})",
                ]);
                self.node(ty, text, &same, depth)
            }
            4 => {
                let text = self.one_of(&["(-{0})", "{0}.abs()", "{0}.clamp(-100.0, 1e6)"]);
                self.node(ty, text, &[ty], depth)
            }
            5 => {
                let other = Type::Float(96 - width);
                self.node(ty, &format!("({{0}} as {})", ty.name()), &[other], depth)
            }
            6 => {
                let text = format!("f{width}::from_bits({{0}} as u{width})");
                let source = self.any_integer();
                self.node(ty, &text, &[source], depth)
            }
            _ => {
                let source = self.any_integer();
                self.node(ty, &format!("({{0}} as {})", ty.name()), &[source], depth)
            }
        }
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
        let mut out = format!(
            "#[inline(always)]\npub fn {name}(x: &[u64; 8]) -> u64 {{\n    let mut m = *x;\n"
        );
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
                Type::Integer { width: 128, .. } => format!("v{at} as u64 ^ (v{at} >> 64) as u64"),
                _ => format!("v{at} as u64"),
            };
            _ = writeln!(
                out,
                "    h = h.wrapping_mul(0x2545_F491_4F6C_DD1D).rotate_left(13) ^ ({bits});"
            );
        }
        out.push_str("    h\n}\n");
        out
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
    const EDGES: [u64; 14] = [
        0,
        1,
        u64::MAX,
        0x80,
        0x7f,
        0x8000,
        0x7fff,
        0xffff_8000,
        0x8000_0000,
        0x7fff_ffff,
        1 << 63,
        (1 << 63) - 1,
        0xff,
        0xffff,
    ];
    const FLOATS: [f64; 12] = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        32767.5,
        -32768.0,
        1e10,
        -1e19,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        f64::MIN_POSITIVE,
    ];
    match random.random_range(0..6) {
        0 => EDGES[random.random_range(0..EDGES.len())],
        1 => FLOATS[random.random_range(0..FLOATS.len())].to_bits(),
        2 => (FLOATS[random.random_range(0..FLOATS.len())] as f32)
            .to_bits()
            .into(),
        3 => random.random_range(0..300),
        4 => (random.random_range(-300.0..300.0_f64)).to_bits(),
        _ => random.random(),
    }
}
