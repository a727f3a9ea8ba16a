//! The crate `half`: its conversions are the hardware's.

use cuda_builder::NvvmArch;
use differential::compile::{Batch, configs};
use differential::ptx::{Approximate, Module, run_words};
use half::slice::HalfFloatSliceExt as _;
use libtest_mimic::Failed;

use super::{DIALECTS, function};

/// A function of the crate `half`, as text for the device and as code for the host.
type OfHalves = (&'static str, &'static str, fn(&[u64; 8]) -> u64);

macro_rules! of_halves {
    ($($name:ident: $value:expr;)*) => {
        [$((stringify!($name), stringify!($value), $value)),*]
    };
}

fn f16(bits: u64) -> half::f16 {
    half::f16::from_bits(bits as u16)
}

fn bf16(bits: u64) -> half::bf16 {
    half::bf16::from_bits(bits as u16)
}

/// Which NaN comes out is not promised.
fn of_f16(value: half::f16) -> u64 {
    u64::from(if value.is_nan() {
        0x7e00
    } else {
        value.to_bits()
    })
}

fn of_bf16(value: half::bf16) -> u64 {
    u64::from(if value.is_nan() {
        0x7fc0
    } else {
        value.to_bits()
    })
}

fn of_f32(value: f32) -> u64 {
    u64::from(if value.is_nan() {
        f32::NAN.to_bits()
    } else {
        value.to_bits()
    })
}

fn f32(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

const HALVES: &str = "\
use half::slice::HalfFloatSliceExt as _;
fn f16(bits: u64) -> half::f16 { half::f16::from_bits(bits as u16) }
fn bf16(bits: u64) -> half::bf16 { half::bf16::from_bits(bits as u16) }
fn of_f16(value: half::f16) -> u64 { if value.is_nan() { 0x7e00 } else { value.to_bits() as u64 } }
fn of_bf16(value: half::bf16) -> u64 { if value.is_nan() { 0x7fc0 } else { value.to_bits() as u64 } }
fn of_f32(value: f32) -> u64 { bits32(value) as u64 }
fn f32(bits: u64) -> f32 { f32::from_bits(bits as u32) }
";

/// Conversions to and from f16, and to bf16 where there is an instruction, are one instruction each,
/// and round as IEEE 754 says; so does the arithmetic that `half` makes of them. All halves are
/// tried, and all numbers of f32 half-way between two of them with both their neighbours.
pub(super) fn test() -> Result<(), Failed> {
    let conversions: [OfHalves; 6] = of_halves! {
        to_f32: |x| of_f32(f16(x[0]).to_f32());
        to_f64: |x| of_f32(f16(x[0]).to_f64() as f32);
        from_f32: |x| of_f16(half::f16::from_f32(f32(x[2])))
            | of_f16(half::f16::from_f32(f32(x[3]))) << 16
            | of_f16(half::f16::from_f32(f32(x[4]))) << 32;
        // By way of f32, as on an x86 processor with F16C.
        from_f64: |x| of_f16(half::f16::from_f64(f64::from(f32(x[3]))));
        bf16_to_f32: |x| of_f32(bf16(x[0]).to_f32());
        // Those half-way between two bf16, and all numbers of f32 whose lower half is like that.
        bf16_from_f32: |x| of_bf16(half::bf16::from_f32(f32(x[6])))
            | of_bf16(half::bf16::from_f32(f32(x[6] + 1))) << 16
            | of_bf16(half::bf16::from_f32(f32(x[6].wrapping_sub(1)))) << 32
            | of_bf16(half::bf16::from_f32(f32(x[3]))) << 48;
    };
    let operations: [OfHalves; 14] = of_halves! {
        bf16_sum: |x| of_bf16(bf16(x[0]) + bf16(x[1]));
        bf16_scaled: |x| {
            let mut halves: [half::bf16; 8] = core::array::from_fn(|at| bf16(x[0] + at as u64));
            for half in &mut halves {
                *half *= bf16(x[1]);
            }
            halves.iter().fold(0_u64, |sum, half| sum.wrapping_mul(7) ^ of_bf16(*half))
        };
        // In one branch, and of what is never negative.
        bf16_if: |x| if x[0] % 3 == 0 { 1 } else { of_bf16(half::bf16::from_f32(f32(x[2]))) };
        bf16_of_absolute: |x| of_bf16(half::bf16::from_f32(f32(x[2]).abs()));
        // As 32 bits, of what is no NaN.
        bf16_extended: |x| {
            let number = f32::from_bits(0x3F80_0000 | x[2] as u32 >> 9) * 1.125;
            u64::from(u32::from(half::bf16::from_f32(number).to_bits()))
        };
        sum: |x| of_f16(f16(x[0]) + f16(x[1]));
        difference: |x| of_f16(f16(x[0]) - f16(x[1]));
        product: |x| of_f16(f16(x[0]) * f16(x[1]));
        quotient: |x| of_f16(f16(x[0]) / f16(x[1]));
        // A product that is rounded, and then a sum.
        both: |x| of_f16(f16(x[0]) * f16(x[1]) + f16(x[5]));
        // libNVVM 12.9 would load several at once, and then reject what it has made.
        summed: |x| {
            let mut halves = [half::f16::ONE; 8];
            halves[x[0] as usize % 8] = f16(x[1]);
            of_f16(halves.iter().fold(half::f16::ZERO, |sum, half| sum + *half))
        };
        // And so it did with what is stored.
        scaled: |x| {
            let mut halves: [half::f16; 8] = core::array::from_fn(|at| f16(x[0] + at as u64));
            for at in 1..8 {
                halves[at] *= halves[at - 1];
            }
            halves.reverse();
            for half in &mut halves[x[1] as usize % 3..] {
                *half *= f16(x[5]);
            }
            of_f16(halves[x[0] as usize % 8])
        };
        to_slice: |x| {
            let halves: [half::f16; 13] = core::array::from_fn(|at| f16(x[0] + 3 * at as u64));
            let mut floats = [0.0; 13];
            halves.convert_to_f32_slice(&mut floats);
            floats.iter().fold(0_u64, |sum, float| sum.wrapping_mul(7) ^ of_f32(*float))
        };
        from_slice: |x| {
            let floats: [f32; 13] = core::array::from_fn(|at| f32(x[2 + at % 3] + at as u64));
            let mut halves = [half::f16::ZERO; 13];
            halves.convert_from_f32_slice(&floats);
            halves.iter().fold(0_u64, |sum, half| sum.wrapping_mul(7) ^ of_f16(*half))
        };
    };
    let inputs: Vec<[u64; 8]> = (0..=u16::MAX)
        .map(|bits| {
            let (a, b) = (
                u64::from(bits),
                u64::from(bits.wrapping_mul(40503) ^ 0x1234),
            );
            let float = f16(a).to_f32();
            let between = match f16(a).is_normal() {
                true => float.to_bits() + 0x1000,
                false => (float + (2_f32.powi(-25)).copysign(float)).to_bits(),
            };
            let between = u64::from(between);
            let c = u64::from(b.wrapping_mul(40503) as u16);
            [
                a,
                b,
                between,
                between.wrapping_sub(1),
                between.wrapping_add(1),
                c,
                a << 16 | 0x8000,
                0,
            ]
        })
        .collect();
    let some: Vec<[u64; 8]> = inputs.iter().step_by(23).copied().collect();
    let all = conversions.map(|one| (one, &inputs));
    let all: Vec<_> = all
        .into_iter()
        .chain(operations.map(|one| (one, &some)))
        .collect();
    let mut functions: Vec<(String, String)> = all
        .iter()
        .map(|((name, text, _), _)| {
            let value = format!("{{ let f: fn(&[u64; 8]) -> u64 = {text}; f(x) }}");
            function(name, &value)
        })
        .collect();
    functions[0].1.insert_str(0, HALVES);
    let batch = Batch::with_dependencies(
        &functions,
        "half = { version = \"2\", default-features = false }",
    )?;
    for config in configs(&[DIALECTS[0], NvvmArch::Compute90, DIALECTS[1]]) {
        let ptx = batch.ptx(config)?;
        let module = Module::parse(&ptx)?;
        for ((name, _, on_host), inputs) in &all {
            let inputs = if config.optimized { inputs } else { &some };
            let output = run_words(&module, &format!("k_{name}"), inputs, Approximate(0))?;
            for (input, found) in inputs.iter().zip(output) {
                let expected = on_host(input);
                if found != expected {
                    return Err(format!(
                        "{config}: {name} of {input:x?}: {found:x?} for {expected:x}"
                    )
                    .into());
                }
            }
        }
        if config.optimized {
            let rounds_to_bf16 = config.arch >= NvvmArch::Compute80;
            instructions_of_halves(&ptx, rounds_to_bf16)
                .map_err(|error| format!("{config}: {error}"))?;
        }
    }
    Ok(())
}

/// One conversion is one instruction, and a sum of f16 needs none.
fn instructions_of_halves(ptx: &str, rounds_to_bf16: bool) -> Result<(), String> {
    let if_rounded = |times| if rounds_to_bf16 { times } else { 0 };
    for (name, instruction, times) in [
        ("bf16_from_f32", "cvt.rn.bf16.f32", if_rounded(4)),
        ("bf16_sum", "cvt.rn.bf16.f32", if_rounded(1)),
        ("bf16_scaled", "cvt.rn.bf16.f32", if_rounded(8)),
        ("bf16_if", "cvt.rn.bf16.f32", if_rounded(1)),
        ("bf16_of_absolute", "cvt.rn.bf16.f32", if_rounded(1)),
        ("bf16_extended", "cvt.rn.bf16.f32", if_rounded(1)),
        ("to_f32", "cvt.f32.f16", 1),
        ("to_f64", "cvt.f32.f16", 1),
        ("from_f32", "cvt.rn.f16.f32", 3),
        ("from_f64", "cvt.rn.f16.f32", 1),
        ("sum", "add.rn.f16", 1),
        ("sum", "f32", 0),
        ("product", "mul.rn.f16", 1),
        ("to_slice", "cvt.f32.f16", 13),
        ("from_slice", "cvt.rn.f16.f32", 13),
    ] {
        let kernel = ptx
            .split(&format!(".entry k_{name}("))
            .nth(1)
            .unwrap_or_default();
        let kernel = kernel.split("\n}").next().unwrap_or_default();
        if kernel.matches(instruction).count() != times {
            return Err(format!("not {times} `{instruction}` in {name}: {kernel}"));
        }
    }
    Ok(())
}
