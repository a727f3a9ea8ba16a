//! Runs a kernel, thread by thread.

use std::collections::HashMap;

use anyhow::{Context, Result, bail, ensure};

use super::parse::{Address, Function, Instruction, Module, Operand};
use super::thread::{Frame, Waiting, set};
use super::together;
use super::value::{Kind, Type, compare, convert, float_bits, permute};

/// How far an approximate result may be from the exact one, in its last place: the worst that the
/// specification allows is tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Approximate(pub i32);

/// More instructions than any thread of a test needs.
const MOST_STEPS: u64 = 4_000_000;

const INPUT: u64 = 0x1000_0000;
const OUTPUT: u64 = 0x2000_0000;
const GLOBALS: u64 = 0x3000_0000;
const STACK: u64 = 0x4000_0000;
const STACK_END: u64 = STACK + 0x10_0000;
/// Of functions, which no access reaches.
const FUNCTIONS: u64 = 0x6000_0000;
/// Where nothing is.
const NO_ADDRESS: u64 = 0xFFFF_0000_0000_0000;

/// Runs the kernel `name(input, output)` for one thread for each eight words of the input, of which
/// each writes a word.
pub fn run_words(
    module: &Module,
    name: &str,
    inputs: &[[u64; 8]],
    approximate: Approximate,
) -> Result<Vec<u64>> {
    let words = inputs.as_flattened().iter();
    let bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
    let threads = inputs.len();
    let output = run(
        module,
        name,
        &bytes,
        8 * threads,
        threads as u32,
        approximate,
    )?;
    let (words, _) = output.as_chunks::<8>();
    Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

/// Runs the kernel `name(input, output)` for `threads` threads of one block, and returns what
/// they have written.
///
/// Each thread runs until it ends or comes to what it does together with others.
pub fn run(
    module: &Module,
    name: &str,
    input: &[u8],
    output_len: usize,
    threads: u32,
    approximate: Approximate,
) -> Result<Vec<u8>> {
    let kernel = module
        .functions
        .get(name)
        .with_context(|| format!("no kernel `{name}`"))?;
    let mut globals = Vec::new();
    let mut symbols = HashMap::new();
    for global in &module.globals {
        globals.resize(globals.len().next_multiple_of(16), 0);
        symbols.insert(global.name.clone(), GLOBALS + globals.len() as u64);
        globals.extend(&global.bytes);
    }
    let mut functions = HashMap::new();
    for (at, (name, function)) in module.functions.iter().enumerate() {
        let address = FUNCTIONS + 16 * at as u64;
        symbols.insert(name.clone(), address);
        functions.insert(address, function);
    }
    for global in &module.globals {
        let start = (symbols[&global.name] - GLOBALS) as usize;
        for Address {
            place,
            symbol,
            offset,
            shift,
        } in &global.addresses
        {
            // A function that is only declared is not there to be called.
            let address = symbols
                .get(symbol)
                .map_or(NO_ADDRESS, |found| found + offset);
            let bytes = (address >> shift).to_le_bytes();
            globals[start..][place.clone()].copy_from_slice(&bytes[..place.len()]);
        }
    }
    let mut machine = Machine {
        module,
        symbols,
        functions,
        regions: vec![
            (INPUT, input.to_vec()),
            (OUTPUT, vec![0; output_len]),
            (GLOBALS, globals),
            (STACK, Vec::new()),
        ],
        thread: 0,
        threads,
        approximate,
        carry: false,
    };
    let arguments = [INPUT, OUTPUT].map(|address| address.to_le_bytes().to_vec());
    let mut waiting: Vec<Waiting<'_>> = Vec::new();
    let mut stack = Vec::new();
    for thread in 0..threads {
        // The stack of a thread that has ended serves the next one.
        stack.resize((STACK_END - STACK) as usize, 0xAA);
        machine.regions[3].1 = std::mem::take(&mut stack);
        machine.thread = thread;
        let first = machine.enter(kernel, &arguments, STACK, None)?;
        waiting.extend(machine.resume(vec![first])?);
        stack = std::mem::take(&mut machine.regions[3].1);
    }
    while !waiting.is_empty() {
        let mut next = Vec::new();
        for (thread, result) in together::results(&waiting, threads)? {
            let place = waiting.iter().position(|other| other.thread == thread);
            let mut one = waiting.swap_remove(place.context("a thread that does not wait")?);
            machine.thread = thread;
            machine.regions[3].1 = std::mem::take(&mut one.stack);
            if let Some(frame) = one.frames.last_mut() {
                together::receive(frame, one.instruction, result)?;
            }
            next.extend(machine.resume(one.frames)?);
        }
        waiting.extend(next);
        waiting.sort_by_key(|one| one.thread);
    }
    Ok(std::mem::take(&mut machine.regions[1].1))
}

struct Machine<'m> {
    module: &'m Module,
    symbols: HashMap<String, u64>,
    functions: HashMap<u64, &'m Function>,
    regions: Vec<(u64, Vec<u8>)>,
    thread: u32,
    threads: u32,
    approximate: Approximate,
    carry: bool,
}

impl<'m> Machine<'m> {
    /// A frame for a function; it begins at `stack`.
    fn enter(
        &mut self,
        function: &'m Function,
        arguments: &[Vec<u8>],
        stack: u64,
        result: Option<u64>,
    ) -> Result<Frame<'m>> {
        let mut top = stack;
        let mut variables = HashMap::new();
        for (name, size) in function.parameters.iter().chain(&function.variables) {
            variables.insert(name.as_str(), top);
            top += (*size as u64).next_multiple_of(16);
        }
        for ((name, size), argument) in function.parameters.iter().zip(arguments) {
            let address = variables[name.as_str()];
            self.memory(address, *size)?
                .copy_from_slice(argument.get(..*size).context("a short argument")?);
        }
        Ok(Frame {
            function,
            registers: vec![0; function.widths.len()],
            variables,
            at: 0,
            top,
            result,
            steps: 0,
        })
    }

    /// Runs the thread of these frames until it ends or waits for others.
    fn resume(&mut self, mut frames: Vec<Frame<'m>>) -> Result<Option<Waiting<'m>>> {
        while let Some(frame) = frames.last_mut() {
            let Some(instruction) = frame.function.body.get(frame.at) else {
                self.leave(frame)?;
                frames.pop();
                continue;
            };
            frame.steps += 1;
            if frame.steps > MOST_STEPS {
                bail!(
                    "thread {} does not end, at `{}`",
                    self.thread,
                    instruction.text
                );
            }
            frame.at += 1;
            if let Some((register, negated)) = instruction.guard
                && (frame.registers[register] == 0) != negated
            {
                continue;
            }
            let next = self
                .step(frame, instruction)
                .with_context(|| format!("at `{}`, thread {}", instruction.text, self.thread))?;
            match next {
                Next::Following => {}
                Next::Label(label) => {
                    frame.at = *frame
                        .function
                        .labels
                        .get(&label)
                        .with_context(|| format!("no label `{label}`"))?;
                }
                Next::Call(frame) => frames.push(frame),
                Next::Return => frame.at = frame.function.body.len(),
                Next::Wait(values) => {
                    return Ok(Some(Waiting {
                        thread: self.thread,
                        frames,
                        stack: std::mem::take(&mut self.regions[3].1),
                        instruction,
                        values,
                    }));
                }
            }
        }
        Ok(None)
    }

    /// The first variable of a function holds its result, if it has one.
    fn leave(&mut self, frame: &Frame<'_>) -> Result<()> {
        if let (Some(place), Some((name, size))) = (frame.result, frame.function.variables.first())
        {
            let result = self.memory(frame.variables[name.as_str()], *size)?.to_vec();
            self.memory(place, *size)?.copy_from_slice(&result);
        }
        Ok(())
    }

    fn memory(&mut self, address: u64, size: usize) -> Result<&mut [u8]> {
        for (start, bytes) in &mut self.regions {
            if let Some(offset) = address.checked_sub(*start)
                && offset < 0x1000_0000
            {
                let end = offset as usize + size;
                return bytes
                    .get_mut(offset as usize..end)
                    .with_context(|| format!("{size} bytes at {address:#x}"));
            }
        }
        bail!("{size} bytes at {address:#x}")
    }

    fn read(&self, frame: &Frame<'_>, operand: &Operand) -> Result<u64> {
        Ok(match operand {
            Operand::Register(register) => frame.registers[*register],
            Operand::Number(number) => *number,
            Operand::Name(name) => match name.as_str() {
                "%tid.x" => self.thread.into(),
                "%ntid.x" => self.threads.into(),
                "%tid.y" | "%tid.z" | "%ctaid.x" | "%ctaid.y" | "%ctaid.z" => 0,
                "%ntid.y" | "%ntid.z" | "%nctaid.x" => 1,
                "%laneid" => (self.thread % 32).into(),
                "%lanemask_eq" => 1 << (self.thread % 32),
                "%lanemask_lt" => (1 << (self.thread % 32)) - 1,
                "%lanemask_le" => (2 << (self.thread % 32)) - 1,
                "%lanemask_gt" => !((2 << (self.thread % 32)) - 1) & 0xFFFF_FFFF,
                "%lanemask_ge" => !((1 << (self.thread % 32)) - 1) & 0xFFFF_FFFF,
                name => match frame.variables.get(name) {
                    Some(address) => *address,
                    None => *self
                        .symbols
                        .get(name)
                        .with_context(|| format!("no symbol `{name}`"))?,
                },
            },
            Operand::Address(base, offset) => self.read(frame, base)?.wrapping_add(*offset),
            _ => bail!("a list where a value must stand"),
        })
    }

    fn step(&mut self, frame: &mut Frame<'m>, instruction: &'m Instruction) -> Result<Next<'m>> {
        let opcode = instruction.opcode.first().map_or("", String::as_str);
        let operands = instruction.operands.as_slice();
        match (opcode, operands) {
            ("bra", [Operand::Name(label)]) => return Ok(Next::Label(label.clone())),
            ("brx", [index, Operand::Name(table)]) => {
                let index = self.read(frame, index)? as usize;
                let label = frame
                    .function
                    .tables
                    .get(table)
                    .and_then(|labels| labels.get(index));
                return Ok(Next::Label(
                    label.context("a jump out of its table")?.clone(),
                ));
            }
            ("ret" | "exit", _) => return Ok(Next::Return),
            ("trap", _) => bail!("a trap"),
            ("call", operands) => {
                return Ok(Next::Call(self.call(frame, operands)?));
            }
            (opcode, [first, rest @ ..]) if together::OPCODES.contains(&opcode) => {
                let read = together::read_operands(instruction, first, rest);
                let values = read.iter().map(|operand| self.read(frame, operand));
                return Ok(Next::Wait(values.collect::<Result<_>>()?));
            }
            ("ld" | "ldu", [target, address]) => {
                self.load(frame, instruction, target, address)?;
                return Ok(Next::Following);
            }
            ("st", [address, source]) => {
                self.store(frame, instruction, address, source)?;
                return Ok(Next::Following);
            }
            ("mov", [Operand::List(parts), source]) => {
                let whole = self.read(frame, source)?;
                let width = Type::of(&instruction.opcode)?.width / parts.len() as u32;
                for (position, part) in (0..).zip(parts) {
                    set(frame, part, whole >> (position * width))?;
                }
                return Ok(Next::Following);
            }
            ("mov", [target, Operand::List(parts)]) => {
                let width = Type::of(&instruction.opcode)?.width / parts.len() as u32;
                let mut whole = 0;
                for (position, part) in (0..).zip(parts) {
                    whole |= (self.read(frame, part)? & (u64::MAX >> (64 - width)))
                        << (position * width);
                }
                set(frame, target, whole)?;
                return Ok(Next::Following);
            }
            ("setp", [target, left, right, rest @ ..]) => {
                let values = [self.read(frame, left)?, self.read(frame, right)?];
                let ty = Type::of(&instruction.opcode)?;
                let predicate = instruction.opcode.get(1).context("no comparison")?;
                let mut holds = compare(predicate, ty, values[0], values[1])?;
                if let Some(other) = rest.first() {
                    let other = self.read(frame, other)? != 0;
                    holds = match instruction.opcode.get(2).map(String::as_str) {
                        Some("and") => holds && other,
                        Some("or") => holds || other,
                        Some("xor") => holds != other,
                        _ => bail!("a comparison with another operation"),
                    };
                }
                match target {
                    Operand::Pair(..) => bail!("two predicates"),
                    target => set(frame, target, holds.into())?,
                }
                return Ok(Next::Following);
            }
            _ => {}
        }
        let [target, sources @ ..] = operands else {
            bail!("an instruction without operands");
        };
        let mut values = [0; 4];
        for (value, source) in values.iter_mut().zip(sources) {
            *value = self.read(frame, source)?;
        }
        let result = self.compute(instruction, opcode, values)?;
        set(frame, target, result)?;
        Ok(Next::Following)
    }

    /// The frame of the function that is called.
    fn call(&mut self, frame: &Frame<'m>, operands: &[Operand]) -> Result<Frame<'m>> {
        // A function, or a register with its address and, last, the name of its prototype.
        let (results, callee, arguments) = match operands {
            [Operand::List(results), callee, Operand::List(arguments), ..] => {
                (&results[..], callee, &arguments[..])
            }
            [Operand::List(results), callee, ..] => (&results[..], callee, &[][..]),
            [callee, Operand::List(arguments), ..] => (&[][..], callee, &arguments[..]),
            [callee, ..] => (&[][..], callee, &[][..]),
            [] => bail!("a call of nothing"),
        };
        let function = match callee {
            Operand::Name(name) => self.module.functions.get(name),
            callee => self.functions.get(&self.read(frame, callee)?).copied(),
        };
        let function = function.with_context(|| format!("no function `{callee:?}`"))?;
        let mut bytes = Vec::new();
        for (argument, (_, size)) in arguments.iter().zip(&function.parameters) {
            let address = self.read(frame, argument)?;
            bytes.push(self.memory(address, *size)?.to_vec());
        }
        let result = results.first().map(|target| self.read(frame, target));
        self.enter(function, &bytes, frame.top, result.transpose()?)
    }

    fn load(
        &mut self,
        frame: &mut Frame<'_>,
        instruction: &Instruction,
        target: &Operand,
        address: &Operand,
    ) -> Result<()> {
        let ty = Type::of(&instruction.opcode)?;
        let size = ty.width as usize / 8;
        let address = self.read(frame, address)?;
        let targets = match target {
            Operand::List(targets) => targets.as_slice(),
            target => std::slice::from_ref(target),
        };
        for (position, target) in targets.iter().enumerate() {
            let place = address + (position * size) as u64;
            aligned(place, size)?;
            let mut bytes = [0; 8];
            bytes[..size].copy_from_slice(self.memory(place, size)?);
            set(frame, target, ty.number(u64::from_le_bytes(bytes)) as u64)?;
        }
        Ok(())
    }

    fn store(
        &mut self,
        frame: &Frame<'_>,
        instruction: &Instruction,
        address: &Operand,
        source: &Operand,
    ) -> Result<()> {
        let size = Type::of(&instruction.opcode)?.width as usize / 8;
        let address = self.read(frame, address)?;
        let sources = match source {
            Operand::List(sources) => sources.as_slice(),
            source => std::slice::from_ref(source),
        };
        for (position, source) in sources.iter().enumerate() {
            let place = address + (position * size) as u64;
            aligned(place, size)?;
            let bytes = self.read(frame, source)?.to_le_bytes();
            self.memory(place, size)?.copy_from_slice(&bytes[..size]);
        }
        Ok(())
    }

    fn compute(
        &mut self,
        instruction: &Instruction,
        opcode: &str,
        values: [u64; 4],
    ) -> Result<u64> {
        let parts = instruction.opcode.as_slice();
        let [a, b, c, d] = values;
        if instruction.has("f16x2") && instruction.has("rn") && parts.len() == 4 {
            let from = Type::of(parts)?;
            let half = Type { width: 16, ..from };
            return Ok(float_bits(half, from.float(a)) << 16 | float_bits(half, from.float(b)));
        }
        if parts == ["cvt", "rn", "bf16", "f32"] {
            return Ok(match f32::from_bits(a as u32).is_nan() {
                true => 0x7fff,
                false => (a + 0x7fff + (a >> 16 & 1)) >> 16,
            });
        }
        if matches!(opcode, "cvt") {
            let mut types = parts.iter().rev().filter_map(|part| Type::parse(part));
            let (from, to) = (
                types.next().context("no type")?,
                types.next().context("one type")?,
            );
            return convert(parts, to, from, a);
        }
        if matches!(opcode, "cvta" | "mov") {
            return Ok(a);
        }
        let ty = Type::of(parts)?;
        if ty.kind == Kind::Float && !matches!(opcode, "selp" | "ld" | "st") {
            return self.compute_float(instruction, opcode, ty, values);
        }
        let (x, y, z) = (ty.number(a), ty.number(b), ty.number(c));
        let width = ty.width;
        let unsigned = Type {
            kind: Kind::Unsigned,
            ..ty
        };
        let product = match instruction.has("hi") {
            true => high(x, y, ty),
            false => x.wrapping_mul(y) as u64,
        };
        let carry = u64::from(self.carry);
        let mut with_carry = |sum: i128| {
            self.carry = sum >> width != 0;
            sum as u64
        };
        let number = |value: u64| unsigned.number(value);
        Ok(match opcode {
            "add" if instruction.has("cc") => with_carry(number(a) + number(b)),
            "addc" if instruction.has("cc") => {
                with_carry(number(a) + number(b) + i128::from(carry))
            }
            "addc" => a.wrapping_add(b).wrapping_add(carry),
            // A difference is a + !b + 1, whose carry says that nothing was borrowed. libNVVM's
            // 128-bit division counts on it.
            "sub" if instruction.has("cc") => with_carry(number(a) + number(!b) + 1),
            "subc" if instruction.has("cc") => {
                with_carry(number(a) + number(!b) + i128::from(carry))
            }
            "subc" => a.wrapping_add(!b).wrapping_add(carry),
            "mad" if instruction.has("cc") => with_carry(number(product) + number(c)),
            "madc" => {
                let sum = number(product) + number(c) + i128::from(carry);
                match instruction.has("cc") {
                    true => with_carry(sum),
                    false => sum as u64,
                }
            }
            "add" => a.wrapping_add(b),
            "sub" => a.wrapping_sub(b),
            "mul" => product,
            "mad" => product.wrapping_add(c),
            "div" => x.checked_div(y).unwrap_or(-1) as u64,
            "rem" => x.checked_rem(y).unwrap_or(-1) as u64,
            "abs" => x.wrapping_abs() as u64,
            "neg" => (-x) as u64,
            "min" => x.min(y) as u64,
            "max" => x.max(y) as u64,
            "and" => a & b,
            "or" => a | b,
            "xor" => a ^ b,
            "not" => match ty.kind {
                Kind::Predicate => a ^ 1,
                _ => !a,
            },
            "cnot" => u64::from(number(a) == 0),
            "shl" => shift_left(number(a), b as u32, width),
            "shr" => (x >> (b as u32).min(width).min(127)) as u64,
            "selp" => [b, a][usize::from(c != 0)],
            "slct" => [b, a][usize::from(c as i32 >= 0)],
            "popc" => (number(a) as u64).count_ones().into(),
            "clz" => ((number(a) as u64).leading_zeros() - (64 - width)).into(),
            "brev" => a.reverse_bits() >> (64 - width),
            "bfe" => {
                let (start, count) = (b as u32 & 255, c as u32 & 255);
                let sign = ty.kind == Kind::Signed;
                let value = x >> start.min(width);
                match count {
                    0 => 0,
                    count if count >= width => value as u64,
                    count => {
                        let field = value & ((1 << count) - 1);
                        let is_negative = sign && field >> (count - 1) & 1 == 1;
                        (field - (i128::from(is_negative) << count)) as u64
                    }
                }
            }
            "bfi" => {
                let (start, count) = (c as u32 & 255, d as u32 & 255);
                let mask = shift_left(
                    shift_left(1, count.min(64), 64).wrapping_sub(1).into(),
                    start,
                    64,
                );
                let mask = if count >= 64 {
                    shift_left(u64::MAX.into(), start, 64)
                } else {
                    mask
                };
                b & !mask | shift_left(a.into(), start, 64) & mask
            }
            "bfind" => {
                let value = if x < 0 { !x } else { x } as u64;
                let amount = instruction.has("shiftamt");
                match value.checked_ilog2() {
                    Some(bit) if amount => (width - 1 - bit).into(),
                    Some(bit) => bit.into(),
                    None => u64::from(u32::MAX),
                }
            }
            "prmt" if parts.len() == 2 => permute(a, b, c),
            "shf" => {
                let both = number(b) << 32 | number(a);
                let distance = match instruction.has("wrap") {
                    true => c as u32 & 31,
                    false => (c as u32).min(32),
                };
                match instruction.has("l") {
                    true => (both << distance >> 32) as u64,
                    false => (both >> distance) as u64,
                }
            }
            "lop3" => (0..8)
                .filter(|entry| d >> entry & 1 == 1)
                .fold(0, |out, entry: u64| {
                    let pick =
                        |value: u64, bit: u64| if entry >> bit & 1 == 1 { value } else { !value };
                    out | pick(a, 2) & pick(b, 1) & pick(c, 0)
                }),
            "sad" => z.wrapping_add((x - y).abs()) as u64,
            _ => bail!("the instruction is not known"),
        })
    }

    fn compute_float(
        &self,
        instruction: &Instruction,
        opcode: &str,
        ty: Type,
        values: [u64; 4],
    ) -> Result<u64> {
        let [a, b, c, _] = values;
        let (x, y, z) = (ty.float(a), ty.float(b), ty.float(c));
        let sign = 1 << (ty.width - 1);
        if ["ftz", "sat"].iter().any(|part| instruction.has(part)) && !instruction.has("approx") {
            bail!("a modifier that is not known");
        }
        // Operations on f32 are exact enough in f64 for one rounding to be right, but for `fma`.
        Ok(match opcode {
            "add" => float_bits(ty, x + y),
            "sub" => float_bits(ty, x - y),
            "mul" => float_bits(ty, x * y),
            "div" if instruction.has("approx") => {
                self.approximately(ty, approximate_quotient(x, y))
            }
            "div" if instruction.has("rn") => float_bits(ty, x / y),
            "rcp" if instruction.has("approx") => self.approximately(ty, 1.0 / flushed(x)),
            "rcp" if instruction.has("rn") => float_bits(ty, 1.0 / x),
            "sqrt" if instruction.has("rn") => float_bits(ty, x.sqrt()),
            "fma" if instruction.has("rn") => match ty.width {
                32 => float_bits(ty, f64::from((x as f32).mul_add(y as f32, z as f32))),
                64 => float_bits(ty, x.mul_add(y, z)),
                _ => bail!("rounded twice"),
            },
            "fma" if instruction.has("rz") => fused_toward_zero(ty, x, y, z),
            "neg" => a ^ sign,
            "abs" => a & !sign & (sign | (sign - 1)),
            "min" => float_bits(ty, x.min(y)),
            "max" => float_bits(ty, x.max(y)),
            "copysign" => b & (sign - 1) | a & sign,
            "testp" => u64::from(match instruction.opcode.get(1).map(String::as_str) {
                Some("finite") => x.is_finite(),
                Some("infinite") => x.is_infinite(),
                Some("notanumber") => x.is_nan(),
                Some("number") => !x.is_nan(),
                _ => bail!("a test that is not known"),
            }),
            _ => bail!("the instruction is not known"),
        })
    }

    /// A result off by this many units in its last place.
    fn approximately(&self, ty: Type, exact: f64) -> u64 {
        let bits = float_bits(ty, exact);
        let smallest_normal = match ty.width {
            32 => 0x0080_0000,
            _ => 0x0010_0000_0000_0000,
        };
        let magnitude = bits & !(1 << (ty.width - 1));
        match exact.is_finite() && magnitude > smallest_normal {
            true => bits.wrapping_add_signed(self.approximate.0.into()),
            false => bits,
        }
    }
}

fn aligned(place: u64, size: usize) -> Result<()> {
    ensure!(
        place.is_multiple_of(size as u64),
        "{place:#x} is not aligned"
    );
    Ok(())
}

/// Subnormal numbers are zeros.
fn flushed(x: f64) -> f64 {
    match x.abs() < f64::from(f32::MIN_POSITIVE) {
        true => 0.0_f64.copysign(x),
        false => x,
    }
}

/// `div.approx.f32`: zero (NaN for infinity) where the divisor is above 2^126.
fn approximate_quotient(x: f64, y: f64) -> f64 {
    let large = 2_f64.powi(126);
    match (y.abs() > large && y.is_finite(), x.is_infinite()) {
        (true, true) => f64::NAN,
        (true, false) => 0.0_f64.copysign(x * y),
        _ => x / y,
    }
}

/// Only for `f32`, whose product is exact in `f64`; the sum's rounding is undone if it went up.
fn fused_toward_zero(ty: Type, x: f64, y: f64, z: f64) -> u64 {
    let exact = x * y + z;
    let rounded = exact as f32;
    let bits = float_bits(ty, rounded.into());
    match f64::from(rounded).abs() > exact.abs() {
        true => bits - 1,
        false => bits,
    }
}

fn high(x: i128, y: i128, ty: Type) -> u64 {
    // Products of 64 bits without sign take 128, which `i128` holds as a bit pattern.
    match ty.kind {
        Kind::Signed => (x.wrapping_mul(y) >> ty.width) as u64,
        _ => ((x as u128).wrapping_mul(y as u128) >> ty.width) as u64,
    }
}

fn shift_left(value: i128, distance: u32, width: u32) -> u64 {
    match distance >= width {
        true => 0,
        false => (value << distance) as u64,
    }
}

enum Next<'m> {
    Following,
    Label(String),
    Call(Frame<'m>),
    Return,
    /// For other threads, with the values of the operands.
    Wait(Vec<u64>),
}
