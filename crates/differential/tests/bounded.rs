//! libNVVM preserves the meaning of Rust: PTX, run on this CPU, returns what the host returns.
//!
//! Where no libNVVM is found, or no GPU, the tests that need it are shown as ignored.

#[path = "bounded/assembled.rs"]
mod assembled;
#[path = "bounded/dependencies.rs"]
mod dependencies;
#[path = "bounded/halves.rs"]
mod halves;

use std::process::ExitCode;
use std::sync::LazyLock;

use cuda_builder::NvvmArch;
use differential::alone;
use differential::check::{self, Outcome, compare};
use differential::compile::{Batch, Config, OnHost, configs};
use differential::generate;
use differential::ptx::{Approximate, Module, run_words};
use libtest_mimic::{Arguments, Failed, Trial};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

const DIALECTS: [NvvmArch; 2] = [NvvmArch::Compute75, NvvmArch::Compute100];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let missing = nvvm::Toolkit::find_or_fetch().err();
    if let Some(error) = &missing {
        eprintln!("The tests are ignored. {error}");
    }
    type Test = fn() -> Result<(), Failed>;
    macro_rules! tests {
        ($($name:literal: $test:expr;)*) => { [$(($name, $test as Test)),*] };
    }
    let tests = tests! {
        "exhaustive::random_functions_mean_what_rust_means": random_functions;
        "exhaustive::halves_are_converted_by_the_hardware": halves::test;
        "a_planted_error_is_found": planted_error;
        "exhaustive::planted_errors_of_blocks_and_halves_are_found": planted_errors_together;
        "what_was_wrong_on_a_gpu_is_generated_again": generated_kinds;
    };
    let tests = tests.into_iter().map(|(name, test)| {
        // `cargo test -- --ignored exhaustive` runs those that take long.
        let is_ignored = missing.is_some() || name.starts_with("exhaustive::");
        Trial::test(name, test).with_ignored_flag(is_ignored)
    });
    let claims_of = |tier: &'static Tier| {
        let is_ignored = missing.is_some() || !tier.is_quick;
        let claims = claims().into_iter().map(move |claim| {
            let name = format!("{}{}", tier.prefix(), claim.name);
            Trial::test(name, move || claim.check(tier)).with_ignored_flag(is_ignored)
        });
        claims.collect::<Vec<_>>()
    };
    let tests = tests
        .chain(claims_of(&QUICK))
        .chain(claims_of(&EXHAUSTIVE))
        .chain(dependencies::trials(missing.is_some()));
    let tests = tests.chain(assembled::trials());
    libtest_mimic::run(&arguments, tests.collect()).exit_code()
}

/// What functions return on some inputs is right in all dialects, optimised and not.
struct Claim {
    name: &'static str,
    functions: Vec<(String, String)>,
    inputs: Vec<[u64; 8]>,
    /// What approximate instructions may be off by must not matter.
    approximations: &'static [Approximate],
    /// The lines that their PTX must not have.
    is_wrong: fn(&str) -> bool,
}

fn claim(
    name: &'static str,
    functions: impl Into<Vec<(String, String)>>,
    inputs: impl Into<Vec<[u64; 8]>>,
) -> Claim {
    Claim {
        name,
        functions: functions.into(),
        inputs: inputs.into(),
        approximations: &[Approximate(0)],
        is_wrong: |_| false,
    }
}

fn claims() -> Vec<Claim> {
    vec![
        remainders_of_f64(),
        sixteen_bits(),
        narrow_parameters(),
        stack_slots(),
        overlapping_copies(),
        wide_constants(),
        guarded_divisions(),
        wrong_conclusions(),
        remainders_of_f32(),
        searches(),
        assembled::recursion(),
    ]
}

/// The functions of all claims, which are compiled together: to start rustc and libNVVM takes
/// longer than to compile a few functions.
struct Compiled {
    on_host: OnHost,
    modules: Vec<(Config, String, Module)>,
    /// With the reasons.
    refused: Vec<(String, String)>,
}

/// The quick tier has each dialect and each level of optimisation once, the other one the rest.
struct Tier {
    is_quick: bool,
    compiled: LazyLock<Result<Compiled, String>>,
}

static QUICK: Tier = Tier {
    is_quick: true,
    compiled: LazyLock::new(|| Compiled::new(true).map_err(|error| format!("{error:?}"))),
};

static EXHAUSTIVE: Tier = Tier {
    is_quick: false,
    compiled: LazyLock::new(|| Compiled::new(false).map_err(|error| format!("{error:?}"))),
};

impl Tier {
    fn prefix(&self) -> &'static str {
        if self.is_quick { "" } else { "exhaustive::" }
    }

    fn compiled(&self) -> Result<&Compiled, Failed> {
        Ok(self.compiled.as_ref()?)
    }
}

impl Compiled {
    fn new(is_quick: bool) -> Result<Compiled, Failed> {
        let claims = claims().into_iter();
        let mut functions: Vec<_> = claims.flat_map(|claim| claim.functions).collect();
        functions.push(function(PLANTED, "x[0] ^ x[1]"));
        let mut configs = configs(&DIALECTS);
        configs.retain(|config| {
            let is_typed = config.arch == NvvmArch::Compute75;
            (config.optimized == is_typed) == is_quick
        });
        let mut refused = Vec::new();
        let (batch, ptx) =
            check::compile(&mut functions, &configs, &mut refused)?.ok_or("none is compiled")?;
        let parsed = configs.into_iter().zip(ptx).map(|(config, ptx)| {
            let module = Module::parse(&ptx)?;
            Ok((config, ptx, module))
        });
        Ok(Compiled {
            on_host: batch.on_host()?,
            modules: parsed.collect::<Result<_, Failed>>()?,
            refused,
        })
    }
}

impl Claim {
    fn check(&self, tier: &Tier) -> Result<(), Failed> {
        let compiled = tier.compiled()?;
        for (name, _) in &self.functions {
            if let Some((_, reason)) = compiled.refused.iter().find(|(of, _)| of == name) {
                return Err(format!("{name} is refused: {reason}").into());
            }
            let expected = compiled.on_host.expected(name, &self.inputs)?;
            for (config, ptx, module) in &compiled.modules {
                let both = (&self.inputs[..], &expected[..]);
                for approximate in self.approximations {
                    if let Some(wrong) = compare(name, both, (*config, module), *approximate) {
                        return Err(format!("{wrong:#x?}").into());
                    }
                }
                let kernel = alone::Module::of(ptx).kernel(&format!("k_{name}"));
                if let Some(line) = kernel.lines().find(|line| (self.is_wrong)(line.trim())) {
                    return Err(format!("{config}: {line} in {name}").into());
                }
            }
        }
        Ok(())
    }
}

/// Nothing differs, and nothing was omitted.
fn all_equal(outcome: &Outcome, functions: usize) -> Result<(), Failed> {
    if let Some(difference) = outcome.differences.first() {
        return Err(format!("{difference:#x?}").into());
    }
    if let Some((name, reason)) = outcome.refused.first() {
        return Err(format!("{name} is refused: {reason}").into());
    }
    assert_eq!(outcome.compared, functions);
    Ok(())
}

/// Two hundred, which take minutes: half of them in each dialect, at the same time. For more
/// there is `cargo run -p differential -- check --functions 1000 --seed 8`. (Thousands run on GPUs,
/// packed by `differential pack`.)
fn random_functions() -> Result<(), Failed> {
    const FUNCTIONS: u64 = 200;
    const AT_A_TIME: u64 = 100;
    let in_dialect = |arch: NvvmArch, first: u64| -> Result<(), Failed> {
        for first in (first..FUNCTIONS).step_by(DIALECTS.len() * AT_A_TIME as usize) {
            let numbers = first..first + AT_A_TIME;
            let mut outcome = check::random(7, numbers.clone(), &configs(&[arch]))?;
            // rustc may copy a barrier into two branches. The compiler says so, and what to write.
            let refused = outcome.refused.len();
            let is_copied = |reason: &str| reason.contains("has been copied into two branches");
            outcome.refused.retain(|(_, reason)| !is_copied(reason));
            let copied = refused - outcome.refused.len();
            assert!(copied <= 1, "{copied} of {AT_A_TIME}");
            all_equal(&outcome, AT_A_TIME as usize - copied)?;
            println!("functions {numbers:?} of {FUNCTIONS}, for {arch}");
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let firsts = (0..).step_by(AT_A_TIME as usize);
        let running: Vec<_> = DIALECTS
            .into_iter()
            .zip(firsts)
            .map(|(arch, first)| scope.spawn(move || in_dialect(arch, first)))
            .collect();
        running.into_iter().try_for_each(|one| {
            one.join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })
}

/// One changed instruction in what a block does together, and the wrong rounding to 16 bits, change
/// what a function gives. What it gives on the host, a model and the simulator agree on.
fn planted_errors_together() -> Result<(), Failed> {
    let values = [
        ("voted", "block.ballot(x[0] & 1 == 1)"),
        ("shuffled", "block.shuffle(x[0], 3, 5, 16)"),
        (
            "in_shared_memory",
            "block.shared(x[0], 5, x[1] as u32, || shared_array![u64; 64])",
        ),
        ("counted", "block.block_count(x[0] & 1 == 1)"),
        (
            "rounded",
            "f16::from_f32(f32::from_bits(x[0] as u32)).bits16()",
        ),
    ];
    let functions = values.map(|(name, value)| {
        let rust = format!(
            "#[inline(always)]\npub fn {name}(x: &[u64; 8], block: &impl Together) -> u64 {{ ({value}) as u64 }}\n"
        );
        (name.to_owned(), rust)
    });
    let inputs = generate::inputs(1);
    let batch = Batch::new(&functions)?;
    let expected = batch.expected(&inputs)?;
    let ptx = batch.ptx(Config {
        arch: NvvmArch::Compute90,
        optimized: true,
    })?;
    for (name, expected) in batch.names().iter().zip(&expected) {
        let differs = |ptx: &str| -> Result<bool, Failed> {
            let module = Module::parse(ptx)?;
            let found = run_words(&module, &format!("k_{name}"), &inputs, Approximate(0))?;
            Ok(found != *expected)
        };
        assert!(!differs(&ptx)?, "{name}");
        let changed = [
            ("vote.sync.ballot", "vote.sync.any"),
            ("shfl.sync.bfly", "shfl.sync.down"),
            ("bar.sync", "// bar.sync"),
            ("bar.red.popc", "bar.red.or"),
            ("cvt.rn.f16.f32", "cvt.rzi.f16.f32"),
        ];
        let caught: Vec<bool> = changed
            .iter()
            .map(|(from, to)| differs(&ptx.replace(from, to)))
            .collect::<Result<_, _>>()?;
        assert!(caught.contains(&true), "{name}: {caught:?}");
    }
    Ok(())
}

/// A function of the input `x` with this value.
fn function(name: &str, value: &str) -> (String, String) {
    let rust =
        format!("#[inline(always)]\npub fn {name}(x: &[u64; 8]) -> u64 {{ ({value}) as u64 }}\n");
    (name.to_owned(), rust)
}

/// The patterns that differed on a GPU: `ptxas` takes what these instructions give for a number
/// of 16 bits.
fn sixteen_bits() -> Claim {
    const FUNCTIONS: &str = "\
negated: (f64::from_bits(x[0]) as i16).wrapping_neg() as i64
sign: ((x[0] as i16).unsigned_abs() as i16).signum() as i64
shifted: ((x[0] as i16).unsigned_abs() as i16).wrapping_shr(x[1] as u32) as i64
compared: ((x[0] as i16).unsigned_abs() as i16).cmp(&(x[1] as i16)) as i64
apart: (0_i16).abs_diff(x[0] as i16) as i16 as i64
subtracted: (x[1] as i16).wrapping_sub(x[0] as i16).max(3) as i64
magnitude: (x[0] as i16).wrapping_abs() as f64 as i64
saturated: (x[0] as i16).saturating_neg() as i64
byte_negated: (f64::from_bits(x[0]) as i8).wrapping_neg() as i64
byte_sign: ((x[0] as i8).unsigned_abs() as i8).signum() as i64
byte_apart: (0_i8).abs_diff(x[0] as i8) as i8 as i64
byte_limit: (((x[0] as i8).saturating_sub(x[1] as i8)) == i8::MIN) as i64
smaller: (x[0] as u16).min(x[1] as u16) as i64";
    let functions = FUNCTIONS.lines().map(|line| {
        let (name, value) = line.split_once(": ").expect("a name and a value");
        function(name, value)
    });
    let numbers = [0_i64, 1, -1, 127, -128, 128, 32767, -32768, 32768, 300];
    let mut inputs = Vec::new();
    for a in numbers {
        for b in numbers {
            inputs.push([a as u64, b as u64, 0, 0, 0, 0, 0, 0]);
            inputs.push([(a as f64).to_bits(), b as u64, 0, 0, 0, 0, 0, 0]);
        }
    }
    Claim {
        // `abs.s32` stays for values of 16 bits, whose least is not that of 32.
        is_wrong: |line| {
            let wrong = [
                "neg.s16", "abs.s16", "sub.s16", "sub.u16", "neg.s32", "abs.s64", "min.s16",
                "max.s16", "min.u16", "max.u16",
            ];
            wrong.iter().any(|instruction| line.contains(instruction))
        },
        ..claim(
            "sixteen_bits_are_extended_after_a_negation",
            functions.collect::<Vec<_>>(),
            inputs,
        )
    }
}

/// The pattern that differed on a GPU: `ptxas` does not extend a parameter of 8 or 16 bits that is
/// signed, and what it then computes from unsigned is wrong. The interpreted PTX is right,
/// so the instruction itself must be gone.
fn narrow_parameters() -> Claim {
    let mut functions = Vec::new();
    for (from, to) in [
        ("i8", "u16"),
        ("i8", "u8"),
        ("i16", "u16"),
        ("i16", "i16"),
        ("u8", "i16"),
    ] {
        for (what, value) in [
            ("rotated", "(v as TO).rotate_right(2).rotate_left(w)"),
            ("shifted", "((v as TO) >> 3).wrapping_add(w as TO)"),
            ("compared", "((v as TO) < (w as TO)) as TO + (v < 5) as TO"),
            ("divided", "(v as TO) / 7"),
        ] {
            let name = format!("{what}_{from}_{to}");
            let value = value.replace("TO", to);
            let rust = format!(
                "#[inline(never)]\nfn of_{name}(v: {from}, w: u32) -> {to} {{ {value} }}\n\
                 pub fn {name}(x: &[u64; 8]) -> u64 {{\n\
                 of_{name}(x[0].wrapping_add(x[1]) as {from}, (x[1] & 15) as u32) as u64\n}}\n"
            );
            functions.push((name, rust));
        }
    }
    let numbers = [0_i64, 1, -2, -32, 127, -128, 200, 32767, -32768, 0x1_8001];
    let inputs = numbers.map(|a| [a as u64, 0x1_0003, 0, 0, 0, 0, 0, 0]);
    Claim {
        is_wrong: |line| {
            let is_signed = ["ld.param.s8", "ld.param.s16"]
                .iter()
                .any(|one| line.starts_with(one));
            is_signed && line.contains("%rs")
        },
        ..claim(
            "narrow_parameters_are_extended_in_the_callee",
            functions,
            inputs,
        )
    }
}

/// A constant from 2^127 on was read as negative where its type has 256 bits.
fn wide_constants() -> Claim {
    const MANY: &str = "197723604066466580963374858673852865406";
    let product = |a: &str, b: &str| format!("({a}).carrying_mul({b}, x[1] as u128).1 as u64");
    let functions = [
        ("by_all_ones", product("x[0] as u128", "u128::MAX")),
        ("by_half", product("x[0] as u128", "1 << 127")),
        (
            "by_many",
            product("(x[2] as u128) << 64 | x[0] as u128", MANY),
        ),
        (
            "by_few",
            product("(x[2] as u128) << 64 | x[0] as u128", "12345"),
        ),
        (
            "with_sum",
            format!(
                "{{ let (low, high) = (x[0] as u128).carrying_mul_add({MANY}, x[1] as u128, x[2] as u128); \
                 let v = low.wrapping_mul(3) ^ high; (v as u64) ^ ((v >> 64) as u64).rotate_left(7) }}"
            ),
        ),
        (
            "of_128_bits",
            format!("(((x[0] as u128) ^ {MANY}) >> 60) as u64"),
        ),
    ];
    let functions = functions.map(|(name, value)| function(name, &value));
    let numbers = [0, 1, 2, 0x7f_f800_007f_c000, u64::MAX];
    let mut inputs = Vec::new();
    for a in numbers {
        for b in numbers {
            inputs.push([a, b, !a, 0, 0, 0, 0, 0]);
        }
    }
    claim(
        "constants_of_more_than_127_bits_are_positive",
        functions,
        inputs,
    )
}

/// The newer libNVVM dropped the test for zero of the unsigned ones.
fn guarded_divisions() -> Claim {
    let mut functions = Vec::new();
    for ty in ["u8", "u16", "u32", "u64", "u128", "i8", "i16", "i32", "i64"] {
        for operation in ["div", "rem"] {
            let name = format!("{operation}_{ty}");
            let rust = format!(
                "#[inline(always)]\npub fn {name}(x: &[u64; 8]) -> u64 {{\n\
                 let mut m = *x;\n\
                 let v = f64::from_bits(x[4]);\n\
                 for _ in 0..5 {{\n\
                 m[1] = if (x[6] as i8) < 1 {{ 1 }} else {{ x[1] }};\n\
                 m[((x[4] as {ty}).checked_{operation}(x[0] as {ty}).unwrap_or(3) & 7) as usize] = 1;\n\
                 }}\n\
                 let h = m[0] ^ m[3].rotate_left(9) ^ m[7].rotate_left(22);\n\
                 h.wrapping_mul(0x2545_F491_4F6C_DD1D).rotate_left(13) ^ bits64(v)\n}}\n"
            );
            functions.push((name, rust));
        }
    }
    let numbers = [0_i64, 1, 2, 3, 7, -1, -128, 1 << 33, i64::MIN];
    let mut inputs = Vec::new();
    for a in numbers {
        for b in numbers {
            inputs.push([b as u64, 5, 6, 70, a as u64, 8, 9, 100]);
        }
    }
    claim("guarded_divisions_stay_guarded", functions, inputs)
}

/// Searches of bytes and of a `char` in a text call functions of `core` that no crate's IR has.
fn searches() -> Claim {
    let in_text = |name, call: &str| {
        function(
            name,
            &format!(
                "{{ let bytes: [u8; 40] = core::array::from_fn(|at| (x[at / 8] >> (at % 8 * 8)) as u8 & 127); \
                 let bytes = &bytes[..x[6] as usize]; let b = x[5] as u8 & 127; \
                 let text = unsafe {{ core::str::from_utf8_unchecked(bytes) }}; let c = b as char; {call} }}"
            ),
        )
    };
    let functions = [
        in_text("contains", "bytes.contains(&b)"),
        in_text("find", "text.find(c).unwrap_or(99)"),
        in_text("rfind", "text.rfind(c).unwrap_or(99)"),
        in_text(
            "split",
            "text.split(c).fold(0, |s, part| s * 3 + part.len())",
        ),
        in_text(
            "rsplit",
            "text.rsplit(c).fold(0, |s, part| s * 3 + part.len())",
        ),
        in_text("lines", "text.lines().count()"),
    ];
    let mut inputs = Vec::new();
    for length in [0, 1, 3, 8, 17, 40] {
        for byte in [0x61, 0x62, 0x0a, 0] {
            let text = [
                0x0a61_6263_6465_6667,
                0x6162_6162_6162_6162,
                0x10a0_0000_0000_0061,
                5,
                6,
            ];
            inputs.push([text[0], text[1], text[2], text[3], text[4], byte, length, 0]);
        }
    }
    claim("bytes_are_searched_for", functions, inputs)
}

/// What it took for not negative, for a number and for signed.
fn wrong_conclusions() -> Claim {
    let functions = [
        function(
            "quotient",
            "bits64((x[0] as f64 / -0.0).clamp(-100.0, 1e6))",
        ),
        // A constant that only libNVVM sees to be one, once it has unrolled the loop.
        function(
            "not_a_number",
            "{ let mut v = 1.0; for _ in 0..1_u32 { \
             v = f32::from_bits(!(1_i8.checked_rem(0_i16 as i8).unwrap_or(3)) as u32); \
             } if ((v + v) as i64) < (((x[0] as u16) > (x[1] as u16)) as i64) { v = 1.0; } \
             v.to_bits() }",
        ),
        function(
            "field",
            "((x[0] as u32 >> 28) as i8).max(x[1] as i8) as i64",
        ),
    ];
    let inputs = [0, 5, 1 << 30, 1 << 31].map(|a| [a, 0x9c, 0, 0, 0, 0, 0, 0]);
    claim("libnvvm_draws_no_wrong_conclusion", functions, inputs)
}

/// Remainders as bits, and those that `rem_euclid` and `div_euclid` are made of.
fn remainders(name: &'static str, float: &str, bits: &str, sources: &[[u64; 2]]) -> Claim {
    let (a, b) = (
        format!("{float}::from_bits(x[0] as u{})", &float[1..]),
        format!("{float}::from_bits(x[1] as u{})", &float[1..]),
    );
    let functions = [
        ("remainder", format!("{a} % {b}")),
        (
            "euclidean",
            format!("{{ let r = {a} % {b}; if r < 0.0 {{ r + ({b}).abs() }} else {{ r }} }}"),
        ),
        ("constant", format!("{a} % 3.7")),
    ];
    let functions = functions
        .map(|(what, value)| function(&format!("{what}_{float}"), &format!("{bits}({value})")));
    let inputs = sources.iter().map(|[a, b]| [*a, *b, 0, 0, 0, 0, 0, 0]);
    Claim {
        approximations: &[Approximate(0), Approximate(1), Approximate(-1)],
        ..claim(name, functions, inputs.collect::<Vec<_>>())
    }
}

/// Pairs of random bits, of special values, and of numbers close in size.
fn pairs<const COUNT: usize>(specials: &[u64], mantissa: u32, bits: u32) -> [[u64; 2]; COUNT] {
    let mut random = Pcg64::seed_from_u64(5);
    std::array::from_fn(|at| {
        let mut any = || random.random::<u64>() & (u64::MAX >> (64 - bits));
        let (a, b) = (any(), any());
        let special = |value: u64| specials[value as usize % specials.len()];
        match at % 4 {
            0 => [a, b],
            1 => [special(a), special(b)],
            2 => [special(a), b],
            // The exponents are at most 7 apart.
            _ => [a, a ^ (b & ((8 << mantissa) - 1))],
        }
    })
}

/// As decimals: f32 has the largest of them as infinity, and the smallest as zero.
const SPECIALS: &str = "0 -0 1 -1 5 3.7 inf -inf NaN 1e30 16777216 1.1754944e-38 1e-45 -3e-42 1.8e38 \
    2.5e38 3.4028235e38 -3.4028235e38 2.2250738585072014e-308 5e-324 -3e-320 1.5e308 9e307";

/// Numbers of a type, as bits.
fn specials<T: std::str::FromStr<Err: std::fmt::Debug>>(bits: fn(T) -> u64) -> Vec<u64> {
    let numbers = SPECIALS.split_whitespace();
    numbers
        .map(|text| bits(text.parse().expect("a number")))
        .collect()
}

fn remainders_of_f32() -> Claim {
    let specials = specials(|value: f32| value.to_bits().into());
    let pairs = pairs::<4000>(&specials, 23, 32);
    remainders("remainders_of_f32_are_exact", "f32", "bits32", &pairs)
}

fn remainders_of_f64() -> Claim {
    // Of two numbers of this type the exponents are a thousand apart: as many steps.
    let pairs = pairs::<500>(&specials(f64::to_bits), 52, 64);
    remainders("remainders_of_f64_are_exact", "f64", "bits64", &pairs)
}

/// The function that gets an error.
const PLANTED: &str = "planted";

/// One changed instruction in the PTX of a function changes what it gives.
fn planted_error() -> Result<(), Failed> {
    let Compiled {
        on_host, modules, ..
    } = QUICK.compiled()?;
    let inputs = generate::inputs(1);
    let expected = on_host.expected(PLANTED, &inputs)?;
    for (config, ptx, _) in modules {
        for (from, is_found) in [("xor.b64", true), ("no such text", false)] {
            let module = Module::parse(&ptx.replace(from, "or.b64"))?;
            let both = (&inputs[..], &expected[..]);
            let found = compare(PLANTED, both, (*config, &module), Approximate(0));
            let found = found.and_then(|difference| difference.found);
            assert_eq!(found.is_some(), is_found, "{config}: {from}");
        }
    }
    Ok(())
}

/// Patterns in which functions were wrong on a GPU, or their like, are generated.
fn generated_kinds() -> Result<(), Failed> {
    let sources: Vec<String> = (0..3000)
        .map(|number| generate::function(1, number).rust("f"))
        .collect();
    for wanted in [
        &["[i16; 5]", "a.copy_within(1.., 0)"][..],
        &["[u8; ", "a.reverse();", "a.rotate_left(n"],
        &["fn helper", "v1: i8", "as u16).rotate_right("],
        &[": (u16, u32)", ".filter(|_| false)", "rotate_right(2)"],
        &["carrying_mul(u128::MAX"],
        &["carrying_mul_add("],
        &["&dyn F"],
        &["bf16::from_f32(", "f16; ", "total_cmp"],
        &["fuel > 0 && block.block_any(", "block.shuffle("],
        &["block.shared(", "|| shared_array![f16; 64]"],
    ] {
        let is_found = |source: &String| wanted.iter().all(|part| source.contains(part));
        assert!(sources.iter().any(is_found), "{wanted:?}");
    }
    Ok(())
}

/// Arrays of a closure that is inlined, beside one that is in use all the time.
fn stack_slots() -> Claim {
    let functions = ["u8", "u16", "u32", "u64", "u128"].map(|ty| {
        let value = format!(
            "{{ let o = (x[6] & 1) as usize; \
             let sum = |k: usize| {{ \
             let mut a: [{ty}; 6] = core::array::from_fn(|i| x[(i + k) % 8] as {ty}); \
             a[(x[7] % 6) as usize] = 1; \
             a[o..].iter().fold(0, |s: {ty}, e| s.wrapping_mul(3) ^ *e) }}; \
             let mut p = [sum(0); 9]; p[o] = 1; p[3 + o] = sum(2); p[(x[5] % 9) as usize] = sum(1); \
             p.iter().fold(0, |s: {ty}, e| s.wrapping_mul(7) ^ *e) }}"
        );
        function(&format!("slots_{ty}"), &value)
    });
    let inputs = generate::inputs(3);
    claim(
        "arrays_that_are_in_use_have_places_of_their_own",
        functions,
        inputs,
    )
}

/// Copies within an array, forwards and backwards, of lengths that are no multiple of a word;
/// known, and not.
fn overlapping_copies() -> Claim {
    let mut functions = Vec::new();
    for (ty, count) in [
        ("u8", 30),
        ("u16", 21),
        ("u32", 11),
        ("u64", 7),
        ("u128", 5),
    ] {
        for (number, (from, to, length)) in [
            (0, 1, 3),
            (0, 2, 3),
            (1, 0, 4),
            (2, 1, count - 2),
            (0, 2, count - 3),
        ]
        .into_iter()
        .enumerate()
        {
            let copy = |length: &str| {
                format!(
                    "{{ let mut a: [{ty}; {count}] = core::array::from_fn(|k| (x[k % 8] >> (k / 8)) as {ty}); \
                     a.copy_within({from}..{from} + {length}, {to}); \
                     a.iter().fold(0, |s: {ty}, e| s.wrapping_mul(7) ^ *e) }}"
                )
            };
            let length = length.min(count - from.max(to));
            functions.push(function(
                &format!("known_{ty}_{number}"),
                &copy(&length.to_string()),
            ));
            let open = format!("(x[0] as usize % {})", length + 1);
            functions.push(function(&format!("open_{ty}_{number}"), &copy(&open)));
        }
        functions.push(function(
            &format!("rotated_{ty}"),
            &format!(
                "{{ let mut a = [0, x[1] as {ty}, x[3] as {ty}, x[3] as {ty}, 0]; a.rotate_right(2); \
                 a.iter().fold(0, |s: {ty}, e| s.wrapping_mul(7) ^ *e) }}"
            ),
        ));
        // By a number that libNVVM finds out, in an array that it aligns.
        let number =
            "(2..9_u32).chain(1..4).rev().fold(32, |p: u32, e| p.wrapping_mul(5).wrapping_add(e))";
        functions.push(function(
            &format!("found_{ty}"),
            &format!(
                "{{ #[inline(never)] fn number() -> u32 {{ {number} }} \
                 let (p, q) = (1, x[3] as {ty}); let mut a = [q, p, p, q, p, q, p, p, p]; \
                 a.rotate_left(number() as usize % 9); \
                 a.iter().fold(0, |s: {ty}, e| s.wrapping_mul(7) ^ *e) }}"
            ),
        ));
    }
    // With more than 16 bytes of alignment, accesses are wider, too.
    for (align, length, to) in [(32, 48, 32), (64, 80, 64), (64, 176, 8), (128, 144, 24)] {
        for (known, length) in [
            ("known", length.to_string()),
            ("open", format!("(x[0] as usize % {})", length + 1)),
        ] {
            functions.push(function(
                &format!("aligned_{align}_{to}_{known}"),
                &format!(
                    "{{ #[repr(align({align}))] struct A([u8; 256]); \
                     let mut a = A(core::array::from_fn(|k| (x[k % 8] >> (k / 8)) as u8)); \
                     a.0.copy_within(..{length}, {to}); \
                     a.0.iter().fold(0, |s: u64, e| s.wrapping_mul(7) ^ u64::from(*e)) }}"
                ),
            ));
        }
    }
    functions.push(function(
        "halves_in_an_array",
        "{ let (v2, v3) = (x[0] as i16, x[1] as u32); let mut r: [i16; 5] = [v2; 5]; \
         r.reverse(); r.copy_within(1.., 0); r.rotate_left((v3 % 5) as usize); \
         r.iter().fold(0, |p: i16, q| p.wrapping_mul(7) ^ *q) }",
    ));
    let mut inputs = generate::inputs(3);
    // With these an H200 was wrong about `halves_in_an_array`.
    for (v2, v3) in [(-1_i64, 0xffff_ffff), (1, 0), (-1, 0x7fff_ffff)] {
        inputs.push([v2 as u64, v3, 0, 0, 0, 0, 0, 0]);
    }
    claim(
        "overlapping_copies_of_any_length_are_right",
        functions,
        inputs,
    )
}
