//! Tensor cores, compared with what the PTX ISA and published work say about them.

#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the contract of each call is what its test is about"
)]

use cuda_std::mma::{self, Layout};
use cuda_std::shared_array;
use cuda_std::simulator::{Fault, Launch};
use cuda_std::warp::lane_id;

/// The formulas of the PTX ISA 8.8, 9.7.14.5 ("Matrix fragments for mma"), shape by shape.
#[test]
fn fragments_are_those_of_the_ptx_isa() {
    for lane in 0..32 {
        let (group, in_group) = (lane >> 2, lane % 4);
        let a = |layout: Layout, i| layout.a(lane, i);
        let b = |layout: Layout, i| layout.b(lane, i);
        assert_eq!(a(Layout::M8N8K4_F64, 0), (group, in_group));
        assert_eq!(b(Layout::M8N8K4_F64, 0), (in_group, group));
        for i in 0..16 {
            let row = if i / 4 % 2 == 0 { group } else { group + 8 };
            let k = |upper| 4 * in_group + (i & 3) + if upper { 16 } else { 0 };
            assert_eq!(a(Layout::M16N8K32_INTEGERS, i), (row, k(i >= 8)));
            if i < 8 {
                assert_eq!(b(Layout::M16N8K32_INTEGERS, i), (k(i >= 4), group));
            }
        }
        for i in 0..8 {
            let row = if i % 2 == 0 { group } else { group + 8 };
            let col = if i % 2 == 0 { 2 * i } else { 2 * i - 2 } + in_group;
            assert_eq!(a(Layout::M16N8K16_F64, i), (row, col));
            if i < 4 {
                assert_eq!(a(Layout::M16N8K8_F64, i), (row, col));
                assert_eq!(b(Layout::M16N8K16_F64, i), (in_group + 4 * i, group));
                let col = in_group + if i < 2 { 0 } else { 4 };
                assert_eq!(a(Layout::M16N8K8_TF32, i), (row, col));
                let (row, col) = (
                    if i < 2 { group } else { group + 8 },
                    2 * in_group + (i & 1),
                );
                assert_eq!(Layout::M16N8K8_TF32.c(lane, i), (row, col));
                assert_eq!(Layout::M16N8K16_HALF.c(lane, i), (row, col));
                assert_eq!(Layout::M16N8K16_F64.c(lane, i), (row, col));
                let row = 2 * in_group + (i & 1) + if i < 2 { 0 } else { 8 };
                assert_eq!(b(Layout::M16N8K16_HALF, i), (row, group));
            }
            if i < 2 {
                assert_eq!(b(Layout::M16N8K8_TF32, i), (in_group + 4 * i, group));
                assert_eq!(a(Layout::M16N8K4_F64, i), (row, in_group));
                assert_eq!(Layout::M8N8K4_F64.c(lane, i), (group, 2 * in_group + i));
            }
            let row = match i {
                0 | 1 | 4 | 5 => group,
                _ => group + 8,
            };
            let col = 2 * in_group + (i & 1) + if i >= 4 { 8 } else { 0 };
            assert_eq!(a(Layout::M16N8K16_HALF, i), (row, col));
        }
    }
}

/// Small integers, from -8 to 7, for each place: every format has them, and no sum rounds.
pub(super) fn element(matrix: u32, row: u32, col: u32) -> i32 {
    let hash = (matrix + 3 * row + 1000 * col).wrapping_mul(2_654_435_761) >> 28;
    hash.cast_signed() - 8
}

/// The bits of a small integer as a float of 16 bits with this many bits of fraction.
pub(super) fn half_bits(value: i32, fraction_bits: u32, bias: u32) -> u32 {
    if value == 0 {
        return 0;
    }
    let magnitude = value.unsigned_abs();
    let exponent = magnitude.ilog2();
    let fraction = (magnitude << fraction_bits >> exponent) & ((1 << fraction_bits) - 1);
    u32::from(value < 0) << 15 | (exponent + bias) << fraction_bits | fraction
}

/// The sum of `c` and of products `a[k] * 1`, in tf32: of one row, in all rows and columns.
fn tf32_sum(a: [f32; 8], c: f32) -> f32 {
    tf32_products(a, [1.0; 8], c)
}

fn tf32_products(a: [f32; 8], b: [f32; 8], c: f32) -> f32 {
    let bits = std::sync::atomic::AtomicU32::new(0);
    let result = Launch::new(1, 32).run(|| unsafe {
        let t = (lane_id() % 4) as usize;
        let (low, high) = (a[t], a[t + 4]);
        let d = mma::m16n8k8_tf32([low, low, high, high], [b[t], b[t + 4]], [c; 4]);
        assert!(d.iter().all(|sum| sum.to_bits() == d[0].to_bits()));
        bits.store(d[0].to_bits(), std::sync::atomic::Ordering::Relaxed);
    });
    result.unwrap();
    f32::from_bits(bits.into_inner())
}

fn two_to(exponent: i32) -> f32 {
    2f32.powi(exponent)
}

#[test]
fn sums_of_tf32_are_aligned_and_cut_off() {
    let ulp = two_to(-23);
    // Two bits below the last of the largest term are kept, ...
    let mut small = [0.0; 8];
    small[..4].fill(two_to(-25));
    assert_eq!(tf32_sum(small, 1.0), 1.0 + ulp);
    // ... a third is not, however many terms have it, ...
    assert_eq!(tf32_sum([two_to(-26); 8], 1.0), 1.0);
    // ... and the sum is cut off, where IEEE's would be rounded up.
    small[3] = 0.0;
    assert_eq!(tf32_sum(small, 1.0), 1.0);
    // It is cut off towards zero.
    assert_eq!(tf32_sum(small.map(|x| -x), -1.0), -1.0);
    assert_eq!(tf32_sum([-two_to(-26); 8], 1.0), 1.0);
    assert_eq!(tf32_sum(small.map(|x| -x), 1.0), 1.0 - ulp);
    // The largest term may be a product, and cancel out: what was below it is gone.
    let mut cancelling = [0.0; 8];
    (cancelling[0], cancelling[1]) = (two_to(40), -two_to(40));
    assert_eq!(tf32_sum(cancelling, two_to(14)), 0.0);
    assert_eq!(tf32_sum(cancelling, two_to(15)), two_to(15));
}

#[test]
fn products_of_tf32_are_exact_and_ignore_the_last_13_bits() {
    let last = 1.0 + two_to(-10);
    let mut a = [0.0; 8];
    a[0] = last;
    // (1 + u)^2 - 1 = 2u + u^2
    let squared = tf32_products(a, a, -1.0);
    assert_eq!(squared, 2.0 * two_to(-10) + two_to(-20));
    a[0] = 1.0 + two_to(-11) + two_to(-12);
    assert_eq!(tf32_sum(a, 0.0), 1.0);
    a[0] = mma::round_to_tf32(a[0]);
    assert_eq!(tf32_sum(a, 0.0), last);
}

#[test]
fn rounding_to_tf32_is_to_nearest_and_ties_go_away_from_zero() {
    let unit = two_to(-10);
    for (x, want) in [
        (1.0, 1.0),
        (1.0 + unit / 2.0, 1.0 + unit),
        (-1.0 - unit / 2.0, -1.0 - unit),
        (1.0 + unit / 2.0 - two_to(-23), 1.0),
        (2.0 - two_to(-23), 2.0),
        (f32::MAX, f32::INFINITY),
        (f32::INFINITY, f32::INFINITY),
        (f32::NEG_INFINITY, f32::NEG_INFINITY),
        (f32::from_bits(0x1000), f32::from_bits(0x2000)),
        (f32::from_bits(0x0FFF), 0.0),
        (-0.0, -0.0),
    ] {
        let rounded = mma::round_to_tf32(x);
        assert_eq!(rounded.to_bits(), f32::to_bits(want), "{x:e}");
    }
    assert!(mma::round_to_tf32(f32::NAN).is_nan());
}

#[test]
fn subnormal_f16_are_aligned_as_the_least_normal_ones() {
    let sum = |c: f32| {
        let seen = std::sync::Mutex::new(0.0);
        let result = Launch::new(1, 32).run(|| {
            // 2^-24, the least of all, times 1; the other products are 0.
            let (a, b) = ([1, 0, 0, 0], [0x3C00, 0]);
            let is_first = u32::from(lane_id() == 0);
            let a = a.map(|word| word * is_first);
            let d = unsafe { mma::m16n8k16_f16(a, b, [c; 4]) };
            if lane_id() == 0 {
                *seen.lock().unwrap() = d[0];
            }
        });
        result.unwrap();
        seen.into_inner().unwrap()
    };
    // The last bit that is kept is 25 below that of 2^-14.
    assert_eq!(sum(two_to(-39)), two_to(-24) + two_to(-39));
    assert_eq!(sum(two_to(-40)), two_to(-24));
}

#[test]
fn special_values_and_subnormal_numbers_go_through_a_sum() {
    let one = |x: f32| {
        let mut a = [0.0; 8];
        a[5] = x;
        a
    };
    let infinity = f32::INFINITY;
    assert_eq!(tf32_sum(one(infinity), 1.0), infinity);
    assert_eq!(tf32_sum(one(-infinity), 1.0), -infinity);
    assert!(tf32_sum(one(infinity), -infinity).is_nan());
    assert!(tf32_sum(one(f32::NAN), 1.0).is_nan());
    assert!(tf32_sum(one(1.0), f32::NAN).is_nan());
    assert!(tf32_products(one(infinity), [0.0; 8], 1.0).is_nan());
    // Too large for an f32, and back.
    let huge = two_to(100);
    assert_eq!(tf32_products(one(huge), one(huge), 1.0), infinity);
    let mut cancelling = one(huge);
    cancelling[0] = -huge;
    let both = [huge; 8];
    assert_eq!(tf32_products(cancelling, both, 0.0), 0.0);
    let subnormal = f32::from_bits(0x0060_2000);
    assert_eq!(tf32_sum(one(subnormal), 0.0), subnormal);
    assert_eq!(
        tf32_products(one(two_to(-70)), one(two_to(-75)), 0.0),
        two_to(-145)
    );
    assert_eq!(tf32_products(one(two_to(-75)), one(two_to(-75)), 0.0), 0.0);
    assert_eq!(tf32_products(one(-0.0), [1.0; 8], -0.0).to_bits(), 0);
    assert_eq!(tf32_products([-0.0; 8], [1.0; 8], -0.0).to_bits(), 1 << 31);
}

#[test]
fn a_row_that_no_gpu_can_load_is_a_fault() {
    let load = |offset: usize, is_loaded: fn(u32) -> bool| {
        Launch::new(1, 32).run(|| {
            let matrices = shared_array![u8; 1024];
            let lane = lane_id();
            let row = if is_loaded(lane) {
                unsafe { matrices.add(offset + 16 * lane as usize) }
            } else {
                std::ptr::null_mut()
            };
            unsafe { mma::ldmatrix_x2(row) };
        })
    };
    load(0, |lane| lane < 16).unwrap(); // what the other lanes give is ignored
    for result in [
        load(0, |lane| lane != 7),
        load(8, |_| true),
        load(2048, |_| true),
    ] {
        let Err(Fault::InvalidWarpOperation { problem, .. }) = result else {
            panic!("{result:?}");
        };
        assert!(
            problem.contains("mma::ldmatrix_x2() of a row at"),
            "{problem}"
        );
    }
}

#[test]
fn numbers_of_16_bits_are_the_nearest() {
    use cuda_std::mma::{of_bf16, of_f16, pair_of_bf16, pair_of_f16};
    // Each number of 16 bits, and numbers between it and the next.
    type Kind = (fn(f32, f32) -> u32, fn(u16) -> f32, u16);
    let kinds: [Kind; 2] = [
        (pair_of_bf16, of_bf16, 0x7F80),
        (pair_of_f16, of_f16, 0x7C00),
    ];
    for (pair, of, infinity) in kinds {
        assert_eq!(of(infinity), f32::INFINITY);
        assert!(of(infinity + 1).is_nan() && of(pair(f32::NAN, 0.0) as u16).is_nan());
        for bits in 0..infinity - 1 {
            let (number, next) = (of(bits), of(bits + 1));
            assert!(number < next);
            let middle = ((f64::from(number) + f64::from(next)) / 2.0) as f32;
            let even = bits + bits % 2;
            for (x, expected) in [
                (number, bits),
                (middle, even),
                (middle.next_down().max(number), bits),
                (middle.next_up().min(next), bits + 1),
            ] {
                assert_eq!(
                    pair(x, -x),
                    u32::from(expected) | (u32::from(expected) | 0x8000) << 16
                );
            }
        }
        let largest = of(infinity - 1);
        let step = largest - of(infinity - 2);
        assert_eq!(pair(largest + 0.49 * step, f32::MAX) as u16, infinity - 1);
        assert_eq!(pair(f32::INFINITY, 0.0), u32::from(infinity));
    }
    assert_eq!(pair_of_f16(65520.0, 65519.0), 0x7BFF_7C00);
    assert_eq!(
        [of_f16(0x3C00), of_f16(0xC000), of_f16(1)],
        [1.0, -2.0, 2f32.powi(-24)]
    );
    assert_eq!([of_bf16(0x3F80), of_bf16(0xC000)], [1.0, -2.0]);
}
