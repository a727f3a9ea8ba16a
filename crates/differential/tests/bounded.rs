//! libNVVM preserves the meaning of Rust: PTX, run on this CPU, returns what the host returns.
//!
//! Where no libNVVM is found the tests are shown as ignored.

use std::process::ExitCode;

use cuda_builder::NvvmArch;
use differential::check::{self, Outcome};
use differential::compile::{Batch, Config, configs, play_build_script};
use differential::generate;
use differential::ptx::{Approximate, Module, run};
use libtest_mimic::{Arguments, Failed, Trial};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

const DIALECTS: [NvvmArch; 2] = [NvvmArch::Compute75, NvvmArch::Compute100];

fn main() -> ExitCode {
    if let Some(code) = play_build_script() {
        return code;
    }
    let arguments = Arguments::from_args();
    let missing = nvvm::Toolkit::find_or_fetch().err();
    if let Some(error) = &missing {
        eprintln!("The tests are ignored. {error}");
    }
    type Test = fn() -> Result<(), Failed>;
    let tests: [(&str, Test); 5] = [
        ("random_functions_mean_what_rust_means", random_functions),
        ("sixteen_bits_are_extended_after_a_negation", sixteen_bits),
        ("remainders_of_f32_are_exact", remainders_of_f32),
        ("remainders_of_f64_are_exact", remainders_of_f64),
        ("a_planted_error_is_found", planted_error),
    ];
    let trials = tests
        .into_iter()
        .map(|(name, test)| Trial::test(name, test).with_ignored_flag(missing.is_some()))
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
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

fn random_functions() -> Result<(), Failed> {
    let outcome = check::random(7, 0..24, &configs(&DIALECTS))?;
    all_equal(&outcome, 24)
}

/// A function of the input `x` with this value.
fn function(name: &str, value: &str) -> (String, String) {
    let rust =
        format!("#[inline(always)]\npub fn {name}(x: &[u64; 8]) -> u64 {{ ({value}) as u64 }}\n");
    (name.to_owned(), rust)
}

/// The patterns that differed on a GPU: `ptxas` takes what these instructions give for a number
/// of 16 bits.
fn sixteen_bits() -> Result<(), Failed> {
    let functions = [
        (
            "negated",
            "(f64::from_bits(x[0]) as i16).wrapping_neg() as i64",
        ),
        (
            "sign",
            "((x[0] as i16).unsigned_abs() as i16).signum() as i64",
        ),
        (
            "shifted",
            "((x[0] as i16).unsigned_abs() as i16).wrapping_shr(x[1] as u32) as i64",
        ),
        (
            "compared",
            "((x[0] as i16).unsigned_abs() as i16).cmp(&(x[1] as i16)) as i64",
        ),
        ("apart", "(0_i16).abs_diff(x[0] as i16) as i16 as i64"),
        (
            "subtracted",
            "(x[1] as i16).wrapping_sub(x[0] as i16).max(3) as i64",
        ),
        ("magnitude", "(x[0] as i16).wrapping_abs() as f64 as i64"),
        ("saturated", "(x[0] as i16).saturating_neg() as i64"),
        (
            "byte_negated",
            "(f64::from_bits(x[0]) as i8).wrapping_neg() as i64",
        ),
        (
            "byte_sign",
            "((x[0] as i8).unsigned_abs() as i8).signum() as i64",
        ),
        ("byte_apart", "(0_i8).abs_diff(x[0] as i8) as i8 as i64"),
    ];
    let functions = functions.map(|(name, value)| function(name, value));
    let numbers = [0_i64, 1, -1, 127, -128, 128, 32767, -32768, 32768, 300];
    let mut inputs = Vec::new();
    for a in numbers {
        for b in numbers {
            inputs.push([a as u64, b as u64, 0, 0, 0, 0, 0, 0]);
            inputs.push([(a as f64).to_bits(), b as u64, 0, 0, 0, 0, 0, 0]);
        }
    }
    let configs = configs(&DIALECTS);
    let outcome = check::functions_on_cpu(&functions, &inputs, &configs, &[Approximate(0)])?;
    all_equal(&outcome, functions.len())?;
    let batch = Batch::new(&functions)?;
    for config in configs {
        let ptx = batch.ptx(config)?;
        for instruction in ["neg.s16", "abs.s16", "sub.s16", "sub.u16"] {
            if ptx.contains(instruction) {
                return Err(format!("{config}: {instruction} in {ptx}").into());
            }
        }
    }
    Ok(())
}

/// Remainders as bits, and those that `rem_euclid` and `div_euclid` are made of.
fn remainders(float: &str, bits: &str, sources: [[u64; 2]; 4000]) -> Result<(), Failed> {
    let (a, b) = (
        format!("{float}::from_bits(x[0] as u{})", &float[1..]),
        format!("{float}::from_bits(x[1] as u{})", &float[1..]),
    );
    let functions = [
        function("remainder", &format!("{bits}({a} % {b})")),
        function(
            "euclidean",
            &format!(
                "{bits}({{ let r = {a} % {b}; if r < 0.0 {{ r + ({b}).abs() }} else {{ r }} }})"
            ),
        ),
        function("constant", &format!("{bits}({a} % 3.7)")),
    ];
    let inputs: Vec<[u64; 8]> = sources
        .iter()
        .map(|[a, b]| [*a, *b, 0, 0, 0, 0, 0, 0])
        .collect();
    // What approximate instructions may be off by must not matter.
    let approximations = [0, 1, -1].map(Approximate);
    let outcome =
        check::functions_on_cpu(&functions, &inputs, &configs(&DIALECTS), &approximations)?;
    all_equal(&outcome, functions.len())
}

/// Pairs of random bits, of special values, and of numbers close in size.
fn pairs(specials: &[u64], mantissa: u32, bits: u32) -> [[u64; 2]; 4000] {
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

fn remainders_of_f32() -> Result<(), Failed> {
    let specials = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        5.0,
        3.7,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MIN_POSITIVE,
        1e-45,
        -3e-42,
        f32::MAX,
        f32::MIN,
        1e30,
        2.5e38,
        1.8e38,
        16777216.0,
    ];
    let specials = specials.map(|value: f32| u64::from(value.to_bits()));
    remainders("f32", "bits32", pairs(&specials, 23, 32))
}

fn remainders_of_f64() -> Result<(), Failed> {
    let specials = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        5.0,
        3.7,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        f64::MIN_POSITIVE,
        5e-324,
        -3e-320,
        f64::MAX,
        f64::MIN,
        1e30,
        1.5e308,
        9e307,
    ];
    let specials = specials.map(f64::to_bits);
    remainders("f64", "bits64", pairs(&specials, 52, 64))
}

/// One changed instruction in the PTX of a function changes what it gives.
fn planted_error() -> Result<(), Failed> {
    let functions = [function("sum", "x[0] ^ x[1]")];
    let inputs = generate::inputs(1);
    let batch = Batch::new(&functions)?;
    let expected = batch.expected(&inputs)?;
    let ptx = batch.ptx(Config {
        arch: NvvmArch::Compute75,
        optimized: true,
    })?;
    let bytes: Vec<u8> = inputs
        .iter()
        .flatten()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let wanted: Vec<u8> = expected[0]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    for (from, is_equal) in [("xor.b64", false), ("no such text", true)] {
        let module = Module::parse(&ptx.replace(from, "or.b64"))?;
        let threads = inputs.len();
        let found = run(
            &module,
            "k_sum",
            &bytes,
            8 * threads,
            threads as u32,
            Approximate(0),
        )?;
        assert_eq!(found == wanted, is_equal, "{from}");
    }
    Ok(())
}
