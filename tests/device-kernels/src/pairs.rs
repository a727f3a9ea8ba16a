//! Pairs of 16-bit floats, which are added and multiplied at once, and rounding to them.

use cuda_std::prelude::*;
use cuda_std::{bf16, bf16x2, f16x2};

#[cfg(not(cuda_device))]
use crate::on_paper::Half;
#[cfg(not(cuda_device))]
use crate::probe::{Probe, probe};
use crate::write;

#[cfg(not(cuda_device))]
const F16: Half = Half {
    fraction: 10,
    bias: 15,
};
#[cfg(not(cuda_device))]
const BF16: Half = Half {
    fraction: 7,
    bias: 127,
};

#[cfg(not(cuda_device))]
pub(crate) static PROBES: &[Probe] = &[
    probe!(
        pairs_of_f16,
        // All exponents except that of infinity.
        input: || words(0xFBFF_FBFF, 0),
        ptx: &["fma.rn.f16x2", "cvt.rn.f16.f32"],
        expected: |_, input| expected(F16, input),
    ),
    probe!(
        pairs_of_bf16,
        // From 2^-15 on, so that sums fit in 128 bits.
        input: || words(0x87FF_87FF, 0x3800_3800),
        ptx: &["fma.rn.bf16x2", "cvt.rn.bf16x2.f32", "cvt.rn.bf16.f32"],
        ptx_since: "compute_80",
        runs_since: "compute_80",
        expected: |_, input| expected(BF16, input),
    ),
];

/// Three words for each of 64 threads: random floats of 16 bits, with some bits fixed; those of
/// the first threads give results nearly half-way between two bf16, or zero.
#[cfg(not(cuda_device))]
fn words(mask: u32, set: u32) -> Vec<u32> {
    let random = |i: u32| i.wrapping_mul(2_654_435_761) ^ i.wrapping_mul(0x9E37_79B1) >> 15;
    let mut words: Vec<u32> = (1..=192).map(|i| random(i) & mask | set).collect();
    // 1.0078125 * 1.5, and 2^-100 or its negative.
    words[..3].copy_from_slice(&[0x3F81_3F81, 0x3FC0_3FC0, 0x8D80_0D80]);
    // x * 0, of both signs.
    words[3..6].copy_from_slice(&[0x3F80_BF80, 0, 0x8000_8000]);
    // x - x
    words[6..9].copy_from_slice(&[0x3F80_BF81; 3]);
    words
}

#[cfg(not(cuda_device))]
fn expected(half: Half, input: &[u32]) -> Vec<u32> {
    let of_thread = |words: &[u32]| {
        let part = |shift: u32| {
            let [a, b, c] = [0, 1, 2].map(|word| (words[word] >> shift) as u16);
            let (one, minus_one) = (half.one(), half.one() | 0x8000);
            [
                half.fused(a, one, b),
                half.fused(b, minus_one, a),
                half.fused(a, b, 0x8000),
                half.fused(a, b, c),
                a ^ 0x8000,
            ]
        };
        let (low, high) = (part(0), part(16));
        let [x, y, z] = [0, 1, 2].map(|i| from_1_to_2(words[i]));
        let rounded = |x: f32| {
            let (exponent, fraction) = (x.to_bits() >> 23, x.to_bits() & 0x7F_FFFF);
            u32::from(half.nearest(i128::from(fraction | 1 << 23), exponent as i32 - 150))
        };
        let sums: [u32; 5] = core::array::from_fn(|i| u32::from(low[i]) | u32::from(high[i]) << 16);
        let both = rounded(x) | rounded(y) << 16;
        sums.into_iter().chain([both, rounded(x * z)])
    };
    input.chunks(3).flat_map(of_thread).collect()
}

/// A float from 1 to 2.
#[inline(always)]
fn from_1_to_2(word: u32) -> f32 {
    f32::from_bits(0x3F80_0000 | word >> 9)
}

macro_rules! computes {
    ($($entry:ident: $pair:ident, $half:ident;)*) => {
        $(
            #[kernel]
            pub unsafe fn $entry(input: &[u32], output: *mut u32) {
                let first = 3 * thread::thread_idx_x() as usize;
                let words = [0, 1, 2].map(|i| input[first + i]);
                let [a, b, c] = words.map($pair::from_bits);
                let [x, y, z] = words.map(from_1_to_2);
                let pairs = [a + b, a - b, a * b, a.mul_add(b, c), -a, $pair::from_f32(x, y)];
                let [sum, difference, product, fused, negative, rounded] = pairs.map($pair::to_bits);
                // With z alone, rustc would drop the handling of NaNs.
                let one = u32::from($half::from_f32(x * z).to_bits());
                write([sum, difference, product, fused, negative, rounded, one], output);
            }
        )*
    };
}

computes! {
    pairs_of_f16: f16x2, f16;
    pairs_of_bf16: bf16x2, bf16;
}
