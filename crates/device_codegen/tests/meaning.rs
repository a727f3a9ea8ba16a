//! Rewrites mean what Rust means: each intrinsic is called with constants, libNVVM folds what
//! became of it, and the PTX must store the number that the host's Rust computes.
//!
//! Where no libNVVM is found the tests are shown as ignored, with the reason in their names.

use std::collections::HashMap;

use device_codegen::{Dialect, Source, compile};
use libtest_mimic::{Arguments, Failed, Trial};
use nvvm::{Compiler, NvvmArch, Toolkit};

/// A kernel that stores one result after another, 64 bits each, and what they should be.
#[derive(Default)]
struct Probe {
    declarations: Vec<String>,
    body: String,
    expected: Vec<(String, u64)>,
}

impl Probe {
    /// Calls `llvm.NAME` and expects the low `width` bits of `expected`.
    fn call(&mut self, name: &str, width: u32, arguments: &str, expected: i128) {
        let value = self.value_of(&format!("i{width}"), name, arguments);
        self.store(&value, width, &format!("{name}({arguments})"), expected);
    }

    /// Calls `llvm.NAME.with.overflow` of two numbers and expects both parts.
    fn overflow(&mut self, name: &str, width: u32, arguments: &str, expected: (i128, bool)) {
        let name = format!("{name}.with.overflow.i{width}");
        let ty = format!("{{ i{width}, i1 }}");
        let value = self.value_of(&ty, &name, arguments);
        let expected = [(width, expected.0), (1, i128::from(expected.1))];
        for (index, (width, expected)) in expected.into_iter().enumerate() {
            let part = format!("{value}.{index}");
            self.body += &format!("  {part} = extractvalue {ty} {value}, {index}\n");
            let text = format!("{name}({arguments}) part {index}");
            self.store(&part, width, &text, expected);
        }
    }

    /// Declares and calls a function of LLVM.
    fn value_of(&mut self, ty: &str, name: &str, arguments: &str) -> String {
        let types = arguments
            .split(", ")
            .filter_map(|text| text.split(' ').next());
        let types = types.collect::<Vec<_>>().join(", ");
        self.declarations
            .push(format!("declare {ty} @llvm.{name}({types})\n"));
        let value = format!("%v{}", self.expected.len());
        self.body += &format!("  {value} = call {ty} @llvm.{name}({arguments})\n");
        value
    }

    fn store(&mut self, value: &str, width: u32, text: &str, expected: i128) {
        if width == 128 {
            for (half, shift) in [("low", 0), ("high", 64)] {
                let part = format!("{value}.{half}");
                self.body.push_str(&format!("  {part}.shifted = lshr i128 {value}, {shift}\n  {part} = trunc i128 {part}.shifted to i64\n"));
                self.store(&part, 64, &format!("{text} {half}"), expected >> shift);
            }
            return;
        }
        let place = self.expected.len();
        let wide = match width {
            64 => value.to_owned(),
            _ => {
                self.body
                    .push_str(&format!("  {value}.wide = zext i{width} {value} to i64\n"));
                format!("{value}.wide")
            }
        };
        self.body.push_str(&format!(
            "  %p{place} = getelementptr i8, ptr %out, i64 {}\n  store i64 {wide}, ptr %p{place}, align 8\n",
            place * 8
        ));
        let mask = u64::MAX >> (64 - width);
        self.expected
            .push((text.to_owned(), expected as u64 & mask));
    }

    fn ir(&mut self) -> String {
        self.declarations.sort();
        self.declarations.dedup();
        let body = &self.body;
        format!(
            "define void @probe(ptr %out) section \".nvvm.kernel\" {{\nstart:\n{body}  ret void\n}}\n\n{}",
            self.declarations.concat()
        )
    }
}

/// All pairs of edge cases of one signed and one unsigned type of the same width.
macro_rules! integers {
    ($probe:ident, $signed:ty, $unsigned:ty) => {{
        const WIDTH: u32 = <$signed>::BITS;
        let ty = format!("i{WIDTH}");
        let (min, max) = (<$signed>::MIN, <$signed>::MAX);
        let edges = [0, 1, -1, 7, -100, min, max, max / 3];
        for a in edges {
            let (ua, lone) = (a as $unsigned, format!("{ty} {a}"));
            let flagged = format!("{lone}, i1 false");
            for (name, arguments, expected) in [
                ("abs", &flagged, a.wrapping_abs() as i128),
                ("ctpop", &lone, a.count_ones().into()),
                ("ctlz", &flagged, a.leading_zeros().into()),
                ("cttz", &flagged, a.trailing_zeros().into()),
                ("bitreverse", &lone, a.reverse_bits() as i128),
                ("bswap", &lone, a.swap_bytes() as i128),
            ] {
                if (name, WIDTH) != ("bswap", 8) {
                    $probe.call(&format!("{name}.{ty}"), WIDTH, arguments, expected);
                }
            }
            for b in edges {
                let ub = b as $unsigned;
                let pair = format!("{lone}, {ty} {b}");
                let rotation = format!("{lone}, {pair}");
                // A funnel shift: `a` and its complement in a row.
                let funnel = format!("{lone}, {ty} {}, {ty} {b}", !a);
                let distance = (ub % WIDTH as $unsigned) as u32;
                let beside = WIDTH - 1 - distance;
                let left = ua << distance | !ua >> 1 >> beside;
                let right = ua << 1 << beside | !ua >> distance;
                for (name, arguments, expected) in [
                    ("smin", &pair, a.min(b) as i128),
                    ("smax", &pair, a.max(b) as i128),
                    ("umin", &pair, ua.min(ub) as i128),
                    ("umax", &pair, ua.max(ub) as i128),
                    ("sadd.sat", &pair, a.saturating_add(b) as i128),
                    ("ssub.sat", &pair, a.saturating_sub(b) as i128),
                    ("uadd.sat", &pair, ua.saturating_add(ub) as i128),
                    ("usub.sat", &pair, ua.saturating_sub(ub) as i128),
                    ("fshl", &rotation, ua.rotate_left(distance) as i128),
                    ("fshr", &rotation, ua.rotate_right(distance) as i128),
                    ("fshl", &funnel, left as i128),
                    ("fshr", &funnel, right as i128),
                ] {
                    $probe.call(&format!("{name}.{ty}"), WIDTH, arguments, expected);
                }
                $probe.call(&format!("scmp.i8.{ty}"), 8, &pair, a.cmp(&b) as i128);
                $probe.call(&format!("ucmp.i8.{ty}"), 8, &pair, ua.cmp(&ub) as i128);
                let part = |(result, overflows): ($signed, bool)| (result as i128, overflows);
                let unsigned = |(result, overflows): ($unsigned, bool)| (result as i128, overflows);
                for (name, expected) in [
                    ("sadd", part(a.overflowing_add(b))),
                    ("ssub", part(a.overflowing_sub(b))),
                    ("smul", part(a.overflowing_mul(b))),
                    ("uadd", unsigned(ua.overflowing_add(ub))),
                    ("usub", unsigned(ua.overflowing_sub(ub))),
                    ("umul", unsigned(ua.overflowing_mul(ub))),
                ] {
                    $probe.overflow(name, WIDTH, &pair, expected);
                }
            }
        }
    }};
}

/// LLVM's notation of a float: the bits of the double of the same value.
fn float_bits(value: f64) -> String {
    format!("0x{:016X}", value.to_bits())
}

fn float_edges() -> impl Iterator<Item = f64> {
    let edges =
        "0 -0 0.5 -0.99 1 255.5 -128.5 2147483648 -2147483649 1e19 -1e19 1e30 -1e30 inf -inf NaN";
    edges.split(' ').map(|text| text.parse().expect("a number"))
}

fn conversions(probe: &mut Probe) {
    for wide in float_edges() {
        let narrow = wide as f32;
        let x = format!("float {}", float_bits(narrow.into()));
        let y = format!("double {}", float_bits(wide));
        probe.call("fptosi.sat.i8.f32", 8, &x, (narrow as i8).into());
        probe.call("fptoui.sat.i8.f64", 8, &y, (wide as u8).into());
        probe.call("fptosi.sat.i32.f64", 32, &y, (wide as i32).into());
        probe.call("fptoui.sat.i32.f32", 32, &x, (narrow as u32).into());
        probe.call("fptosi.sat.i64.f32", 64, &x, (narrow as i64).into());
        probe.call("fptoui.sat.i64.f64", 64, &y, (wide as u64).into());
        probe.call("fptosi.sat.i128.f64", 128, &y, wide as i128);
        probe.call("fptoui.sat.i128.f32", 128, &x, narrow as u128 as i128);
    }
}

/// The bit of a number's class in the mask of `llvm.is.fpclass`, by Rust's own classification.
fn class_bit(value: f64, category: std::num::FpCategory) -> u32 {
    use std::num::FpCategory::{Infinite, Nan, Normal, Subnormal, Zero};
    match (category, value.is_sign_negative()) {
        (Nan, _) => 1, // quiet: no other is made here
        (Infinite, true) => 2,
        (Normal, true) => 3,
        (Subnormal, true) => 4,
        (Zero, true) => 5,
        (Zero, false) => 6,
        (Subnormal, false) => 7,
        (Normal, false) => 8,
        (Infinite, false) => 9,
    }
}

fn classes(probe: &mut Probe) {
    let subnormals = [
        f64::MIN_POSITIVE / 2.0,
        -f64::MIN_POSITIVE,
        f64::from(f32::MIN_POSITIVE / 2.0),
    ];
    for value in float_edges().chain(subnormals) {
        let narrow = value as f32;
        for mask_bit in 0..10 {
            let (wide, mask) = (f64::from(narrow), 1 << mask_bit);
            let expected = class_bit(value, value.classify()) == mask_bit;
            let arguments = format!("double {}, i32 {mask}", float_bits(value));
            probe.call("is.fpclass.f64", 1, &arguments, expected.into());
            let expected = class_bit(wide, narrow.classify()) == mask_bit;
            let arguments = format!("float {}, i32 {mask}", float_bits(wide));
            probe.call("is.fpclass.f32", 1, &arguments, expected.into());
        }
    }
}

/// The constants that a straight-line kernel stores, by byte offset.
fn stored(ptx: &str) -> HashMap<u64, u64> {
    let mut registers: HashMap<&str, u64> = HashMap::new();
    let mut stored = HashMap::new();
    for line in ptx.lines() {
        let words: Vec<&str> = line
            .split([' ', '\t', ',', ';'])
            .filter(|word| !word.is_empty())
            .collect();
        match words[..] {
            [operation, register, number] if operation.starts_with("mov.") => {
                let value = number
                    .parse::<i64>()
                    .map(|value| value as u64)
                    .or_else(|_| number.parse());
                if let Ok(value) = value {
                    registers.insert(register, value);
                }
            }
            [operation, place, register] if operation.starts_with("st.global.") => {
                let place = place.trim_matches(['[', ']']);
                let offset = place
                    .split_once('+')
                    .map_or(Some(0), |(_, offset)| offset.parse().ok());
                if let (Some(offset), Some(value)) = (offset, registers.get(register)) {
                    stored.insert(offset, *value);
                }
            }
            _ => {}
        }
    }
    stored
}

fn check(
    compiler: &Compiler,
    mut probe: Probe,
    dialect: Dialect,
    arch: NvvmArch,
) -> Result<(), Failed> {
    let text = probe.ir();
    let source = Source {
        name: "probe.ll",
        text: &text,
    };
    let module = compile(&[source], dialect).map_err(|error| error.to_string())?;
    let ptx = compiler.compile(&[("probe.ll", module.ir.as_bytes())], arch, &[])?;
    let stored = stored(&ptx);
    for (place, (text, expected)) in probe.expected.iter().enumerate() {
        match stored.get(&(place as u64 * 8)) {
            Some(found) if found == expected => {}
            Some(found) => {
                return Err(format!("{text}: Rust says {expected:#x}, the PTX {found:#x}").into());
            }
            None => return Err(format!("{text}: libNVVM did not fold it to a constant").into()),
        }
    }
    Ok(())
}

/// A name and what fills a probe with calls.
type Filler = (&'static str, fn(&mut Probe));

fn probes() -> Vec<Filler> {
    vec![
        ("integers_of_8_bits", |probe| integers!(probe, i8, u8)),
        ("integers_of_16_bits", |probe| integers!(probe, i16, u16)),
        ("integers_of_32_bits", |probe| integers!(probe, i32, u32)),
        ("integers_of_64_bits", |probe| integers!(probe, i64, u64)),
        ("integers_of_128_bits", |probe| integers!(probe, i128, u128)),
        ("saturating_conversions", conversions),
        ("classes_of_floats", classes),
    ]
}

fn main() {
    let arguments = Arguments::from_args();
    let available = Toolkit::find()
        .ok_or("no libNVVM is installed".to_owned())
        .and_then(|toolkit| {
            // SAFETY: what was found is a libNVVM.
            let compiler = unsafe { Compiler::load(&toolkit) };
            compiler.map_err(|error| error.to_string())
        });
    let available = available.map(std::sync::Arc::new);
    let mut trials = Vec::new();
    for (name, fill) in probes() {
        for (dialect, arch) in [
            (Dialect::TypedPointers, NvvmArch::Compute75),
            (Dialect::OpaquePointers, NvvmArch::Compute100),
        ] {
            // The dialect of the library's kernels, in which libNVVM takes 128 bits four seconds.
            let is_typed = dialect == Dialect::TypedPointers;
            let is_quick = is_typed != (name == "integers_of_128_bits");
            let name = match is_quick {
                true => format!("{name}::{arch}"),
                false => format!("exhaustive::{name}::{arch}"),
            };
            trials.push(match &available {
                Ok(compiler) => {
                    let compiler = compiler.clone();
                    Trial::test(name, move || {
                        let mut probe = Probe::default();
                        fill(&mut probe);
                        check(&compiler, probe, dialect, arch)
                    })
                    .with_ignored_flag(!is_quick)
                }
                Err(why) => Trial::test(format!("{name} (SKIPPED: {why})"), || Ok(()))
                    .with_ignored_flag(true),
            });
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}
