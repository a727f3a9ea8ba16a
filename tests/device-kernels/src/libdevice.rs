//! Functions of libdevice beyond `std`: special functions, and arithmetic with other rounding.

use cuda_std::prelude::*;
use cuda_std::{FloatExt, intrinsics};

#[cfg(not(cuda_device))]
use crate::on_paper::{bessel_j, bessel_y, erf, ln_gamma, rounded};
#[cfg(not(cuda_device))]
use crate::probe::{Probe, of_words, probe, scrambled};
use crate::write;

/// 64 numbers from 1/32 to 2, as bits.
#[cfg(not(cuda_device))]
fn numbers() -> Vec<u32> {
    (1..=64).map(|i| (i as f32 / 32.0).to_bits()).collect()
}

#[cfg(not(cuda_device))]
pub(crate) static PROBES: &[Probe] = &[
    probe!(
        special_functions_of_singles,
        input: numbers,
        ulps: 32,
        expected: |_, input| special_functions(input),
    ),
    probe!(
        special_functions_of_doubles,
        input: numbers,
        ulps: 1,
        expected: |_, input| special_functions(input),
    ),
    probe!(
        inverses_of_special_functions,
        input: numbers,
        ulps: 1,
        expected: |_, input| input.iter().flat_map(|&bits| [bits; 4]).collect(),
    ),
    probe!(
        exact_functions_of_floats,
        input: numbers,
        expected: |_, input| of_words(input, |bits| {
            let x = f32::from_bits(bits);
            let exponent = x.log2().floor() as i32;
            let fraction = x / 2_f32.powi(exponent + 1);
            let floats = [fraction, 32.0 * x, x / 8.0, (x - 0.5).clamp(0.0, 1.0)];
            let ints = [exponent as u32, (exponent + 1) as u32];
            floats.map(f32::to_bits).into_iter().chain(ints)
        }),
    ),
    probe!(
        rounded_arithmetic,
        input: scrambled,
        ptx: &["add.rz.f32", "mul.rm.f32", "div.rp.f32", "sqrt.rm.f32", "fma.rz.f32", "cvt.rp.f32.f64", "cvt.rm.f32.s32"],
        expected: |_, input| {
            input
                .iter()
                .flat_map(|&word| {
                    let (x, y) = (f64::from(word >> 8), f64::from((word & 0xFFFF) + 1));
                    let (towards_zero, up, down) = (-f64::INFINITY, f64::INFINITY, -f64::INFINITY);
                    let exact = f64::from(word) * (1.0 + 2_f64.powi(-20));
                    [
                        rounded(x + y / 65536.0, towards_zero),
                        rounded(-x * y, down),
                        rounded(x / y, up),
                        rounded(y.sqrt(), down),
                        rounded(x * y + 0.5, towards_zero),
                        rounded(exact, up),
                        rounded(f64::from(word as i32), down),
                    ]
                })
                .map(f32::to_bits)
                .collect()
        },
    ),
    probe!(
        rounded_arithmetic_of_doubles,
        ptx: &["add.rp.f64", "mul.rz.f64", "div.rm.f64"],
        expected: |_, _| {
            // 1 and the next number; the largest number below 1/3.
            let (one, next) = ([0, 0x3FF0_0000], [1, 0x3FF0_0000]);
            let third = [0x5555_5555, 0x3FD5_5555];
            [one, next, one, next, third, [0x5555_5556, 0x3FD5_5555], third].concat().repeat(64)
        },
    ),
    probe!(
        floats_to_integers,
        ptx: &["cvt.rni.s32.f32", "cvt.rpi.s32.f64", "cvt.rmi.u32.f32"],
        expected: |_, _| [2, -3_i32 as u32, -2_i32 as u32, 0, i32::MAX as u32, 0, 0x8000_0000, 3].repeat(64),
    ),
    probe!(
        odd_integer_operations,
        input: scrambled,
        expected: |_, input| of_words(input, |word| {
            let (x, y) = (i64::from(word as i32), i64::from(!word as i32 / 3));
            let (u, v) = (u64::from(word), u64::from(y as u32));
            let bytes = [word.to_le_bytes(), (y as u32).to_le_bytes()].concat();
            let first = word.trailing_zeros();
            [
                word.reverse_bits(),
                word.leading_zeros(),
                if word == 0 { 0 } else { first + 1 },
                word.count_ones(),
                u32::from_le_bytes([bytes[3], bytes[7], bytes[0], bytes[4]]),
                (x + y).div_euclid(2) as u32,
                (x + y + 1).div_euclid(2) as u32,
                ((u + v) / 2) as u32,
                ((u + v).div_ceil(2)) as u32,
                (x.abs_diff(y) as u32).wrapping_add(5),
                (u.abs_diff(v) as u32).wrapping_add(5),
                ((x * y) >> 32) as u32,
                ((u * v) >> 32) as u32,
                (u & 0xFF_FFFF).wrapping_mul(v & 0xFF_FFFF) as u32,
                ((i128::from(x << 31) * i128::from(y << 31)) >> 64) as u32,
                (u as u32).min(v as u32),
            ]
        }),
    ),
];

#[cfg(not(cuda_device))]
fn special_functions(input: &[u32]) -> Vec<u32> {
    input
        .iter()
        .flat_map(|&bits| {
            let x = f64::from(f32::from_bits(bits));
            let pi = std::f64::consts::PI;
            [
                (pi * x).cos() + 2.0,
                (pi * x).sin() + 2.0,
                erf(x),
                1.0 - erf(x),
                (x * x).exp() * (1.0 - erf(x)),
                bessel_j(0, x),
                bessel_j(1, x),
                bessel_j(2, x),
                bessel_y(0, x + 1.5),
                bessel_y(1, x),
                bessel_y(2, x),
                ln_gamma(x).exp(),
                ln_gamma(x + 3.0),
                (1.0 + x).ln(),
                (1.0 + erf(x / 2_f64.sqrt())) / 2.0,
                1.0 / x.cbrt(),
                1.0 / x.sqrt(),
                (pi * x).sin() + 2.0,
                (pi * x).cos() + 2.0,
            ]
        })
        .map(|result| (result as f32).to_bits())
        .collect()
}

/// The special functions of one number.
macro_rules! special_functions_of {
    ($x:expr) => {{
        let x = $x;
        let (sine, cosine) = x.sincospi();
        [
            x.cospi() + 2.0,
            x.sinpi() + 2.0,
            x.error_function(),
            x.complementary_error_function(),
            x.scaled_complementary_error_function(),
            x.j0(),
            x.j1(),
            x.jn(2),
            (x + 1.5).y0(),
            x.y1(),
            x.yn(2),
            FloatExt::gamma(x),
            (x + 3.0).log_gamma(),
            x.log1p(),
            x.norm_cdf(),
            x.rcbrt(),
            x.rsqrt(),
            sine + 2.0,
            cosine + 2.0,
        ]
    }};
}

#[kernel]
pub unsafe fn special_functions_of_singles(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let results = special_functions_of!(f32::from_bits(input[i]));
    write(results.map(f32::to_bits), output);
}

#[kernel]
pub unsafe fn special_functions_of_doubles(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let results = special_functions_of!(f64::from(f32::from_bits(input[i])));
    write(results.map(|result| (result as f32).to_bits()), output);
}

#[kernel]
pub unsafe fn inverses_of_special_functions(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let x = f64::from(f32::from_bits(input[i]));
    let results = [
        x.complementary_error_function()
            .inv_complementary_error_function(),
        x.norm_cdf().inv_norm_cdf(),
        intrinsics::erfinv(x.error_function()),
        // The reciprocal of its own reciprocal.
        x.rcbrt() * x.rcbrt() * x.rcbrt() * x * x,
    ];
    write(results.map(|result| (result as f32).to_bits()), output);
}

#[kernel]
pub unsafe fn exact_functions_of_floats(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let x = f32::from_bits(input[i]);
    let (fraction, power) = x.frexp();
    let results = [
        fraction.to_bits(),
        x.ldexp(5).to_bits(),
        x.scale_by_n(-3).to_bits(),
        (x - 0.5).saturate().to_bits(),
        x.unbiased_exp() as u32,
        power as u32,
    ];
    write(results, output);
}

#[kernel]
pub unsafe fn rounded_arithmetic(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let word = input[i];
    let (x, y) = ((word >> 8) as f32, ((word & 0xFFFF) + 1) as f32);
    let results = [
        intrinsics::fadd_rz(x, y / 65536.0),
        intrinsics::fmul_rd(-x, y),
        intrinsics::fdiv_ru(x, y),
        intrinsics::fsqrt_rd(y),
        intrinsics::fmaf_rz(x, y, 0.5),
        intrinsics::double2float_ru(f64::from(word) * (1.0 + 1.0 / 1_048_576.0)),
        intrinsics::int2float_rd(word as i32),
    ];
    write(results.map(f32::to_bits), output);
}

#[kernel]
pub unsafe fn rounded_arithmetic_of_doubles(_input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x();
    // Not constants, so that the device computes them.
    let one = f64::from(i + 1) / f64::from(thread::thread_idx_x() + 1);
    let tiny = one / 1e30;
    let results = [
        intrinsics::dadd_rd(one, tiny),
        intrinsics::dadd_ru(one, tiny),
        intrinsics::dmul_rz(one + tiny, one),
        intrinsics::fma_ru(one, one, tiny),
        intrinsics::ddiv_rd(one, 3.0 * one),
        intrinsics::ddiv_ru(one, 3.0 * one),
        intrinsics::drcp_rz(3.0 * one),
    ];
    for (j, result) in results.into_iter().enumerate() {
        let start = output.add(2 * (results.len() * i as usize + j));
        *start = result.to_bits() as u32;
        *start.add(1) = (result.to_bits() >> 32) as u32;
    }
}

#[kernel]
pub unsafe fn floats_to_integers(_input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x();
    let two_and_a_half = 2.5 + (i - thread::thread_idx_x()) as f32;
    let nan = f32::from_bits(two_and_a_half.to_bits() | 0x7FC0_0000);
    let results = [
        intrinsics::float2int_rn(two_and_a_half),
        intrinsics::float2int_rd(-two_and_a_half),
        intrinsics::double2int_ru((-two_and_a_half).into()),
        intrinsics::float2uint_rd(-two_and_a_half),
        intrinsics::float2int_rz(two_and_a_half * 1e30),
        intrinsics::float2int_rn(nan),
        intrinsics::double2int_rn(nan.into()),
        intrinsics::double2ll_ru(two_and_a_half.into()) as i32,
    ];
    write(results.map(|result| result as u32), output);
}

#[kernel]
pub unsafe fn odd_integer_operations(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let x = input[i] as i32;
    let y = !x / 3;
    let results = [
        intrinsics::brev(x),
        intrinsics::clz(x),
        intrinsics::ffs(x),
        intrinsics::popc(x),
        intrinsics::byte_perm(x, y, 0x4073),
        intrinsics::hadd(x, y),
        intrinsics::rhadd(x, y),
        intrinsics::uhadd(x, y),
        intrinsics::urhadd(x, y),
        intrinsics::sad(x, y, 5),
        intrinsics::usad(x, y, 5),
        intrinsics::mulhi(x, y),
        intrinsics::umulhi(x, y),
        intrinsics::umul24(x, y),
        intrinsics::mul64hi(i64::from(x) << 31, i64::from(y) << 31) as i32,
        intrinsics::umin(x, y),
    ];
    write(results.map(|result| result as u32), output);
}
