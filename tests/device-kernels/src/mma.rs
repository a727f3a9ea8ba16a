//! Tensor cores: products of a warp, their rounding, and loads from shared memory.

use cuda_std::mma::{self, Layout};
use cuda_std::prelude::*;
use cuda_std::{shared_array, warp};

#[cfg(not(cuda_device))]
use crate::probe::{Probe, of_words, one_block, probe};

/// A probe of two warps' products, `$rows` by `$depth`, with an instruction of `$since` and newer
/// architectures, and what a product of two integers is.
#[cfg(not(cuda_device))]
macro_rules! multiplies {
    ($entry:ident: $rows:literal, $depth:literal, $instruction:literal, $since:literal) => {
        multiplies!($entry: $rows, $depth, $instruction, $since, |a, b| a * b)
    };
    ($entry:ident: $rows:literal, $depth:literal, $instruction:literal, $since:literal, $of:expr) => {
        probe!(
            $entry,
            ptx: &[concat!("mma.sync.aligned.", $instruction)],
            ptx_since: $since,
            runs_since: "compute_80",
            expected: |_, _| two_warps(product($rows, $depth, $of)),
        )
    };
}

#[cfg(not(cuda_device))]
pub(crate) static PROBES: &[Probe] = &[
    multiplies!(multiplies_8x8x4_of_f64: 8, 4, "m8n8k4.row.col.f64.f64.f64.f64", "compute_80"),
    multiplies!(multiplies_16x8x4_of_f64: 16, 4, "m16n8k4.row.col.f64.f64.f64.f64", "compute_90"),
    multiplies!(multiplies_16x8x8_of_f64: 16, 8, "m16n8k8.row.col.f64.f64.f64.f64", "compute_90"),
    multiplies!(multiplies_16x8x16_of_f64: 16, 16, "m16n8k16.row.col.f64.f64.f64.f64", "compute_90"),
    multiplies!(multiplies_16x8x8_of_tf32: 16, 8, "m16n8k8.row.col.f32.tf32.tf32.f32", "compute_80"),
    multiplies!(multiplies_16x8x16_of_bf16: 16, 16, "m16n8k16.row.col.f32.bf16.bf16.f32", "compute_80"),
    multiplies!(multiplies_16x8x16_of_f16: 16, 16, "m16n8k16.row.col.f32.f16.f16.f32", "compute_80"),
    multiplies!(multiplies_16x8x32_of_s8: 16, 32, "m16n8k32.row.col.s32.s8.s8.s32", "compute_80", |a, b| a * b),
    multiplies!(multiplies_16x8x32_of_u8: 16, 32, "m16n8k32.row.col.s32.u8.u8.s32", "compute_80", |a, b| (a & 0xFF) * (b & 0xFF)),
    multiplies!(multiplies_16x8x32_of_s8_by_u8: 16, 32, "m16n8k32.row.col.s32.s8.u8.s32", "compute_80", |a, b| a * (b & 0xFF)),
    multiplies!(multiplies_16x8x32_of_u8_by_s8: 16, 32, "m16n8k32.row.col.s32.u8.s8.s32", "compute_80", |a, b| (a & 0xFF) * b),
    probe!(
        rounds_to_8_bits,
        input: near_numbers_of_8_bits,
        ptx: &["cvt.rn.satfinite.e4m3x2.f32", "cvt.rn.satfinite.e5m2x2.f32"],
        ptx_since: "compute_89",
        expected: |_, input| {
            of_words(input, |bits| {
                let x = f32::from_bits(bits);
                [nearest_of_8_bits(x, 3, 7, 0x7E), nearest_of_8_bits(x, 2, 15, 0x7B)]
            })
        },
    ),
    probe!(
        sums_of_tf32_are_cut_off,
        launch: one_block(32),
        input: small_terms,
        ptx: &["cvt.rna.tf32.f32"],
        ptx_since: "compute_80",
        runs_since: "compute_80",
        expected: |_, _| {
            let one = 1.0f32.to_bits();
            vec![one, one, one + 1, one - 1, 0x3F80_2000, one]
        },
    ),
    probe!(
        loads_matrices,
        launch: one_block(32),
        ptx: &[
            "ldmatrix.sync.aligned.m8n8.x1.shared.b16",
            "ldmatrix.sync.aligned.m8n8.x2.shared.b16",
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
            "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16",
            "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16",
            "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
        ],
        ptx_since: "compute_80",
        runs_since: "compute_80",
        expected: |_, _| {
            // Element (row, col) of matrix i is 64 * i + 8 * row + col.
            let pair = |first: u32, second: u32| first | second << 16;
            let straight = |i, lane| pair(64 * i + 2 * lane, 64 * i + 2 * lane + 1);
            let transposed = |i, lane| {
                let first = 64 * i + 16 * (lane % 4) + lane / 4;
                pair(first, first + 8)
            };
            (0..32)
                .flat_map(|lane| {
                    let of = |count, part: &dyn Fn(u32, u32) -> u32| -> Vec<u32> {
                        (0..count).map(|i| part(i, lane)).collect()
                    };
                    let loads = [1, 2, 4].map(|count| of(count, &straight));
                    let more = [1, 2, 4].map(|count| of(count, &transposed));
                    loads.into_iter().chain(more).flatten()
                })
                .collect()
        },
    ),
];

/// A small integer for each element of a matrix, from -8 to 7.
fn small(matrix: u32, row: u32, col: u32) -> i32 {
    let hash = (matrix + 3 * row + 64 * col).wrapping_mul(2_654_435_761) >> 28;
    hash as i32 - 8
}

/// `A * B + C`, row by row, where C is 100 times the row, with products as this function says.
#[cfg(not(cuda_device))]
fn product(rows: u32, depth: u32, of: fn(i32, i32) -> i32) -> Vec<u32> {
    let places = (0..rows).flat_map(|row| (0..8).map(move |col| (row, col)));
    let sum = |(row, col)| -> i32 {
        (0..depth)
            .map(|k| of(small(1, row, k), small(500, k, col)))
            .sum()
    };
    places
        .map(|(row, col)| (sum((row, col)) + 100 * row as i32) as u32)
        .collect()
}

/// Each warp's product.
#[cfg(not(cuda_device))]
fn two_warps(product: Vec<u32>) -> Vec<u32> {
    [product.clone(), product].concat()
}

/// Fills the fragments of a lane, multiplies, and writes the sums as integers.
macro_rules! multiply {
    ($($entry:ident: $function:ident, $layout:ident, $a:literal, $b:literal, $c:literal, $sum:ty, |$from:ident, $i:ident| $register:expr;)*) => {
        $(
            #[kernel]
            pub unsafe fn $entry(_: &[u32], output: *mut u32) {
                const LAYOUT: Layout = Layout::$layout;
                let lane = warp::lane_id();
                let output = output.add((thread::thread_idx_x() / 32 * LAYOUT.rows * 8) as usize);
                let a_element = |i: usize| {
                    let (row, k) = LAYOUT.a(lane, i as u32);
                    small(1, row, k)
                };
                let b_element = |i: usize| {
                    let (k, col) = LAYOUT.b(lane, i as u32);
                    small(500, k, col)
                };
                let a = core::array::from_fn::<_, $a, _>(|$i| { let $from = a_element; $register });
                let b = core::array::from_fn::<_, $b, _>(|$i| { let $from = b_element; $register });
                let row = |i: usize| LAYOUT.c(lane, i as u32).0;
                let c = core::array::from_fn::<_, $c, _>(|i| (100 * row(i)) as $sum);
                let sums = mma::$function(a, b, c);
                for i in 0..$c {
                    let (row, col) = LAYOUT.c(lane, i as u32);
                    *output.add((8 * row + col) as usize) = sums[i] as i32 as u32;
                }
            }
        )*
    };
}

multiply! {
    multiplies_8x8x4_of_f64: m8n8k4_f64, M8N8K4_F64, 1, 1, 2, f64, |element, i| f64::from(element(i));
    multiplies_16x8x4_of_f64: m16n8k4_f64, M16N8K4_F64, 2, 1, 4, f64, |element, i| f64::from(element(i));
    multiplies_16x8x8_of_f64: m16n8k8_f64, M16N8K8_F64, 4, 2, 4, f64, |element, i| f64::from(element(i));
    multiplies_16x8x16_of_f64: m16n8k16_f64, M16N8K16_F64, 8, 4, 4, f64, |element, i| f64::from(element(i));
    multiplies_16x8x8_of_tf32: m16n8k8_tf32, M16N8K8_TF32, 4, 2, 4, f32, |element, i| element(i) as f32;
    multiplies_16x8x16_of_bf16: m16n8k16_bf16, M16N8K16_HALF, 4, 2, 4, f32,
        |element, i| bf16_bits(element(2 * i)) | bf16_bits(element(2 * i + 1)) << 16;
    multiplies_16x8x16_of_f16: m16n8k16_f16, M16N8K16_HALF, 4, 2, 4, f32,
        |element, i| f16_bits(element(2 * i)) | f16_bits(element(2 * i + 1)) << 16;
    multiplies_16x8x32_of_s8: m16n8k32_s8, M16N8K32_INTEGERS, 4, 2, 4, i32, |element, i| four_bytes(element, i);
    multiplies_16x8x32_of_u8: m16n8k32_u8, M16N8K32_INTEGERS, 4, 2, 4, i32, |element, i| four_bytes(element, i);
    multiplies_16x8x32_of_s8_by_u8: m16n8k32_s8_u8, M16N8K32_INTEGERS, 4, 2, 4, i32, |element, i| four_bytes(element, i);
    multiplies_16x8x32_of_u8_by_s8: m16n8k32_u8_s8, M16N8K32_INTEGERS, 4, 2, 4, i32, |element, i| four_bytes(element, i);
}

/// The register of four small integers.
fn four_bytes(element: impl Fn(usize) -> i32, register: usize) -> u32 {
    u32::from_le_bytes(core::array::from_fn(|i| element(4 * register + i) as u8))
}

/// Both types' codes of each number.
#[kernel]
pub unsafe fn rounds_to_8_bits(input: &[u32], output: *mut u32) {
    let words = input.len();
    let mut i = thread::thread_idx_x() as usize;
    while i < words {
        let x = f32::from_bits(input[i]);
        // The other one of the pair is known.
        *output.add(2 * i) = u32::from(mma::pair_of_e4m3(x, 1.0)) - 0x3800;
        *output.add(2 * i + 1) = u32::from(mma::pair_of_e5m2(x, 1.0)) - 0x3C00;
        i += 64;
    }
}

/// All numbers of 8 bits, as the upper bits of an f32, the middles between them and their
/// neighbours, and what is beyond the largest.
#[cfg(not(cuda_device))]
fn near_numbers_of_8_bits() -> Vec<u32> {
    let mut numbers = Vec::new();
    for exponent in 127 - 20..127 + 18u32 {
        for eighth in 0..16 {
            let bits = exponent << 23 | eighth << 19;
            numbers.extend([bits, bits + 1, bits - 1, bits | 1 << 31]);
        }
    }
    let special = [
        0.0,
        -0.0,
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        1e-40,
    ];
    numbers.extend(special.map(f32::to_bits));
    numbers
}

/// The code of the nearest number: of the finite ones, the one at the least distance, of two the
/// even one.
#[cfg(not(cuda_device))]
fn nearest_of_8_bits(x: f32, fraction_bits: u32, bias: i32, largest: u32) -> u32 {
    let number = |code: u32| {
        let (exponent, fraction) = (code >> fraction_bits, code & ((1 << fraction_bits) - 1));
        let leading = u32::from(exponent > 0) << fraction_bits;
        let unit = exponent.max(1) as i32 - bias - fraction_bits as i32;
        f64::from(leading + fraction) * 2f64.powi(unit)
    };
    if x.is_nan() {
        return 0x7F;
    }
    // Beyond the largest, small differences would be lost.
    let magnitude = f64::from(x).abs().min(2.0 * number(largest));
    let distance = |code: &u32| (magnitude - number(*code)).abs();
    let nearer = |one: &u32, other: &u32| {
        let even = |code: &u32| code % 2;
        (distance(one), even(one))
            .partial_cmp(&(distance(other), even(other)))
            .expect("no NaN")
    };
    let code = (0..=largest).min_by(nearer).expect("there are numbers");
    code | u32::from(x.is_sign_negative()) << 7
}

/// A small integer as bf16: the upper half of an f32.
fn bf16_bits(value: i32) -> u32 {
    (value as f32).to_bits() >> 16
}

/// A small integer as f16: the f32's fraction without its last 13 bits, with another bias.
fn f16_bits(value: i32) -> u32 {
    let bits = (value as f32).to_bits();
    if value == 0 {
        return 0;
    }
    (bits >> 16 & 0x8000) | ((bits >> 13 & 0x3FFFF) - ((127 - 15) << 10))
}

/// Eight terms for each sum of [`sums_of_tf32_are_cut_off`], and C.
#[cfg(not(cuda_device))]
fn small_terms() -> Vec<u32> {
    let two_to = |exponent| 2f32.powi(exponent);
    let sums: [([f32; 8], f32); 6] = [
        // Terms three bits below the last are lost, however many there are ...
        ([two_to(-26); 8], 1.0),
        // ... and the sum is truncated, where IEEE's would be rounded up.
        (
            [two_to(-24), two_to(-25), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            1.0,
        ),
        // One and two bits below are kept: found on Hopper, not on Ampere, which keeps one.
        (
            [
                two_to(-25),
                two_to(-25),
                two_to(-24),
                0.0,
                0.0,
                0.0,
                0.0,
                0.0,
            ],
            1.0,
        ),
        // Below one, the last bit is half as large.
        (
            [-two_to(-25), -two_to(-25), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            1.0,
        ),
        // When terms are rounded, ties go away from zero.
        ([1.0 + two_to(-11), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], 0.0),
        // A term that is not rounded loses its last bits.
        ([0.0, 1.0 + two_to(-11), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], 0.0),
    ];
    let words = |(terms, c): ([f32; 8], f32)| terms.into_iter().chain([c]).map(f32::to_bits);
    sums.into_iter().flat_map(words).collect()
}

/// Computes each sum, of terms times 1; the term at k = 0 is rounded to tf32 first.
#[kernel]
pub unsafe fn sums_of_tf32_are_cut_off(input: &[u32], output: *mut u32) {
    let t = (warp::lane_id() % 4) as usize;
    for sum in 0..input.len() / 9 {
        let term = |k: usize| f32::from_bits(*input.get_unchecked(9 * sum + k));
        let low = if t == 0 {
            mma::round_to_tf32(term(t))
        } else {
            term(t)
        };
        let high = term(t + 4);
        let c = [term(8); 4];
        let sums = mma::m16n8k8_tf32([low, low, high, high], [1.0; 2], c);
        if warp::lane_id() == 0 {
            *output.add(sum) = sums[0].to_bits();
        }
    }
}

#[kernel]
pub unsafe fn loads_matrices(_: &[u32], output: *mut u32) {
    let matrices = shared_array![u16; 256];
    let lane = warp::lane_id() as usize;
    for i in 0..8 {
        *matrices.add(8 * lane + i) = (8 * lane + i) as u16;
    }
    thread::sync_threads(); // the matrices are complete
    let row = matrices.add(8 * lane);
    let output = output.add(14 * lane);
    *output = mma::ldmatrix_x1(row)[0];
    output
        .add(1)
        .cast::<[u32; 2]>()
        .write(mma::ldmatrix_x2(row));
    output
        .add(3)
        .cast::<[u32; 4]>()
        .write(mma::ldmatrix_x4(row));
    *output.add(7) = mma::ldmatrix_x1_trans(row)[0];
    output
        .add(8)
        .cast::<[u32; 2]>()
        .write(mma::ldmatrix_x2_trans(row));
    output
        .add(10)
        .cast::<[u32; 4]>()
        .write(mma::ldmatrix_x4_trans(row));
}
