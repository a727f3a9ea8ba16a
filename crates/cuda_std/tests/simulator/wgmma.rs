//! What a warpgroup multiplies, compared with plain sums, and what a missing wait or fence does.

#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the contract of each call is what its test is about"
)]

use super::mma::{element, half_bits};
use cuda_std::simulator::{BarrierSite, Launch, ThreadOrder};
use cuda_std::tma::{self, Swizzle};
use cuda_std::wgmma::{self, Descriptor, a_place, sum_place};
use cuda_std::{shared, thread};
use std::collections::BTreeSet;
use std::sync::Mutex;

/// The layout of elements of a type in shared memory.
#[derive(Clone, Copy)]
struct Type {
    bytes: u32,
    bits: fn(i32) -> u32,
}

const BF16: Type = Type {
    bytes: 2,
    bits: |value| half_bits(value, 7, 127),
};
const TF32: Type = Type {
    bytes: 4,
    bits: |value| (value as f32).to_bits(),
};
const S8: Type = Type {
    bytes: 1,
    bits: |value| value as u8 as u32,
};

/// Writes a tile of rows of 128 bytes, swizzled.
unsafe fn write_tile(tile: *mut u8, matrix: u32, rows: u32, of: Type) {
    let depth = 128 / of.bytes;
    for row in (thread::thread_idx_x()..rows).step_by(128) {
        for k in 0..depth {
            let offset = (row / 8 * 1024 + row % 8 * 128 + k * of.bytes) as usize;
            let place = unsafe { tile.add(Swizzle::Bytes128.place(offset)) };
            let bits = (of.bits)(element(matrix, row, k));
            match of.bytes {
                1 => unsafe { place.write(bits as u8) },
                2 => unsafe { place.cast::<u16>().write(bits as u16) },
                _ => unsafe { place.cast::<u32>().write(bits) },
            }
        }
    }
}

/// Where the tile of B begins, after that of A.
const B_AT: usize = 64 * 128;
/// Both tiles.
const BYTES: usize = B_AT + 256 * 128;

/// A multiplication of floats of 8 bits by 128 columns.
type Multiply = unsafe fn(&mut [f32; 64], Descriptor, Descriptor, bool);

/// One sum of `c` and 32 products of e4m3, as bits.
fn sum_of_e4m3(a: [u8; 32], b: [u8; 32], c: f32) -> u32 {
    sum_of(wgmma::m64n128k32_e4m3, (a, b, c))
}

/// One sum of `c` and 32 products, as bits.
fn sum_of(multiply: Multiply, (a, b, c): ([u8; 32], [u8; 32], f32)) -> u32 {
    let result = Mutex::new(0);
    let launch = Launch::new(1, 128).dynamic_shared_bytes(BYTES);
    let report = launch.run(|| {
        let tile = shared::dynamic_shared_mem_aligned::<u8, 1024>();
        if thread::thread_idx_x() == 0 {
            for (k, (a, b)) in a.into_iter().zip(b).enumerate() {
                let place = Swizzle::Bytes128.place(k);
                unsafe { tile.add(place).write(a) };
                unsafe { tile.add(B_AT + place).write(b) };
            }
        }
        tma::fence_shared();
        thread::sync_threads();
        let mut sums = [c; 64];
        let (a, b) = unsafe { (Descriptor::new(tile), Descriptor::new(tile.add(B_AT))) };
        unsafe { wgmma::fence() };
        unsafe { multiply(&mut sums, a, b, true) };
        unsafe { wgmma::commit() };
        unsafe { wgmma::wait_64::<0>(&mut sums) };
        if thread::thread_idx_x() == 0 {
            *result.lock().unwrap() = sums[0].to_bits();
        }
    });
    report.unwrap();
    result.into_inner().unwrap()
}

/// Sums that a probe of an H200 gave, of powers of two.
#[test]
fn sums_of_e4m3_keep_13_bits_below_the_largest_exponent() {
    // 2^exponent
    let power = |exponent: i32| match exponent + 7 {
        field @ 1.. => (field as u8) << 3,
        subnormal => 1 << (subnormal + 2),
    };
    let sum = |terms: &[(f32, i32)], c: f32| {
        let (mut a, mut b) = ([0; 32], [0; 32]);
        for (k, (sign, exponent)) in terms.iter().enumerate() {
            a[k] = power(exponent / 2) | if *sign < 0.0 { 0x80 } else { 0 };
            b[k] = power(exponent - exponent / 2);
        }
        f32::from_bits(sum_of_e4m3(a, b, c))
    };
    assert_eq!(sum(&[(1.0, 12), (1.0, -1)], 0.0), 4096.5);
    assert_eq!(sum(&[(1.0, 12), (-1.0, -1)], 0.0), 4095.5);
    assert_eq!(sum(&[(1.0, 12), (1.0, -2)], 0.0), 4096.0);
    assert_eq!(sum(&[(1.0, 12), (-1.0, -2)], 0.0), 4096.0);
    let mut many = [(1.0, -2); 31];
    many[0] = (1.0, 12);
    assert_eq!(sum(&many, 0.0), 4096.0, "each term is cut off by itself");
    many[5] = (-1.0, 12);
    assert_eq!(sum(&many, 0.0), 0.0, "even if the largest cancel");
    assert_eq!(sum(&[(1.0, -2)], 4096.0), 4096.0, "C is one of the terms");
    assert_eq!(sum(&[(1.0, 12)], 0.25), 4096.0);
    let doubled = [(1.0, 12), (1.0, 12), (1.0, -1)];
    assert_eq!(sum(&doubled, 0.0), 8192.0, "and so is the result");
    assert_eq!(sum(&[(1.0, -18), (1.0, -12)], 0.0), 65.0 / 2f32.powi(18));
    let mut nan = [0; 32];
    nan[9] = 0xFF;
    assert_eq!(sum_of_e4m3(nan, [0; 32], 1.0), 0x7FFF_FFFF);
}

/// Random sums by a model that agreed with 512 of 512 of an H200. Groups of 16 products, a bit
/// more or less, rounding to nearest or down, and C added afterwards would change each of these.
#[test]
fn sums_of_e4m3_are_those_of_the_hardware() {
    let codes = |text: &str| -> [u8; 32] {
        std::array::from_fn(|k| u8::from_str_radix(&text[2 * k..2 * k + 2], 16).unwrap())
    };
    for (a, b, c, expected) in [
        (
            "2b0e5a0000f4eb55008a0050ad748e568d56264fa03cb43f9f412be21609c300",
            "363c2100009ca10900c000c94b7334bbd9c39b6b61ca126d45cee6ea09f50b00",
            0x4544_fed3,
            0x471f_b800,
        ),
        (
            "44e9002c5200f46ce200c831001c51f39e8e008c00e248000047e9ee00b1419c",
            "c3d80055f200e1bfb1005d9900483bed55f5005c004fd6000016e5c100e762f2",
            0x463e_5d8e,
            0x471e_1c00,
        ),
        (
            "1628006fda2a00400a003d00e1970af78ef0f2f425a7e534006015ca4a006d34",
            "48ed004aaaa9005b59005c00c7e8ce2b8aaee8f335e85410004c085fc5004699",
            0x401d_138c,
            0x472e_2800,
        ),
        (
            "bfcc3b00f3005bf70077f1655dd53c0000d8604200ce00bf0000bb0000423aec",
            "e668e700f700bde800e1b8c2b853ba0000eecadf00f500450000dd0000dbd838",
            0x3e6f_8528,
            0x4748_5000,
        ),
        (
            "db5ea05cd6006aeaad5500f5f591974e2fb29300d824f6b100568b9e2aec76b6",
            "6eea37df4e00b8ba8e1c008aad289054aa4e0d0021b5e26b00208ee9f2ae66ba",
            0xbf0b_3eaa,
            0x467b_e400,
        ),
        (
            "70ced26fd300bbea005100d200db00605a00514700f100003bbb3b0000000000",
            "555d72eeeb00e0c3005d00ee006300f04300c7cd003e0000c563ba0000000000",
            0xc5aa_256e,
            0xc6aa_5000,
        ),
    ] {
        let found = sum_of_e4m3(codes(a), codes(b), f32::from_bits(c));
        assert_eq!(found, expected, "{found:#x}");
    }
}

/// All 256 codes of either factor, as the PTX ISA has them. A product of two is exact.
#[test]
fn each_product_of_e5m2_is_that_of_its_numbers_in_both_orders() {
    fn number(code: u8, fraction_bits: u32, bias: i32) -> f64 {
        let fields = u32::from(code & 0x7F);
        let (exponent, fraction) = (fields >> fraction_bits, fields & ((1 << fraction_bits) - 1));
        let unit = 2f64.powi(exponent.max(1).cast_signed() - bias - fraction_bits.cast_signed());
        let leading = u32::from(exponent > 0) << fraction_bits;
        let sign = if code < 128 { 1.0 } else { -1.0 };
        sign * f64::from(leading + fraction) * unit
    }
    type Decode = fn(u8) -> f64;
    let of_e5m2: Decode = |code| match code & 0x7F {
        0x7C => f64::INFINITY.copysign(number(code, 2, 15)),
        0x7D.. => f64::NAN,
        _ => number(code, 2, 15),
    };
    let of_e4m3: Decode = |code| match code & 0x7F {
        0x7F => f64::NAN,
        _ => number(code, 3, 7),
    };
    let cases: [(Multiply, Decode, Decode); 3] = [
        (wgmma::m64n128k32_e5m2, of_e5m2, of_e5m2),
        (wgmma::m64n128k32_e4m3_e5m2, of_e4m3, of_e5m2),
        (wgmma::m64n128k32_e5m2_e4m3, of_e5m2, of_e4m3),
    ];
    for (multiply, of_a, of_b) in cases {
        // Odd, so that `b` takes all codes, too.
        for (a, b) in (0..=255u8).map(|code| (code, code.wrapping_mul(77).wrapping_add(3))) {
            let of = |code: u8| std::array::from_fn(|k| if k == 31 { code } else { 0 });
            let got = f32::from_bits(sum_of(multiply, (of(a), of(b), 0.0)));
            let want = of_a(a) * of_b(b);
            let is_right = f64::from(got) == want || got.is_nan() && want.is_nan();
            assert!(is_right, "{a:#x} {b:#x}: {got}");
        }
    }
}

#[test]
fn sums_of_integers_wrap() {
    let launch = Launch::new(1, 128).dynamic_shared_bytes(BYTES);
    let report = launch.run(|| {
        let a = shared::dynamic_shared_mem_aligned::<u8, 1024>();
        let least = Type {
            bits: |_| i8::MIN as u8 as u32,
            ..S8
        };
        unsafe { write_tile(a, 1, 64, least) };
        unsafe { write_tile(a.add(B_AT), 77, 256, least) };
        tma::fence_shared();
        thread::sync_threads();
        let mut sums = [i32::MAX; 128];
        let (a, b) = unsafe { (Descriptor::new(a), Descriptor::new(a.add(B_AT))) };
        unsafe { wgmma::fence() };
        unsafe { wgmma::m64n256k32_s8(&mut sums, a, b, true) };
        unsafe { wgmma::commit() };
        unsafe { wgmma::wait_128_s32::<0>(&mut sums) };
        assert_eq!(sums, [i32::MIN + 32 * 128 * 128 - 1; 128]);
    });
    report.unwrap();
}

#[test]
fn every_element_is_one_sum_of_one_thread() {
    let places = (0..128).flat_map(|thread| (0..64).map(move |i| sum_place(thread, i)));
    let all: BTreeSet<(u32, u32)> = places.collect();
    assert_eq!(all.len(), 64 * 128);
    assert_eq!(all.last(), Some(&(63, 127)));
    // The picture of the PTX ISA, 9.7.15.5.1.1: the second warp's lane 5.
    assert_eq!(sum_place(32 + 5, 0), (16 + 1, 2));
    assert_eq!(sum_place(32 + 5, 3), (16 + 1 + 8, 3));
    assert_eq!(sum_place(32 + 5, 6), (16 + 1 + 8, 8 + 2));
}

/// A of 64 x 8 in registers: element (row, k) of [`element`]'s matrix 1, from `k` on.
fn a_of_thread(thread: u32, k: u32) -> [f32; 4] {
    std::array::from_fn(|i| {
        let (row, of_fragment) = a_place(thread, i as u32);
        element(1, row, k + of_fragment) as f32
    })
}

#[test]
fn every_element_of_a_is_one_register_of_one_thread() {
    let places = (0..128).flat_map(|thread| (0..4).map(move |i| a_place(thread, i)));
    let all: BTreeSet<(u32, u32)> = places.collect();
    assert_eq!(all.len(), 64 * 8);
    assert_eq!(all.last(), Some(&(63, 7)));
    // The picture of the PTX ISA, "Register fragments for wgmma.mma_async.m64nNk8": the second
    // warp's lane 5.
    let of_lane = [0, 1, 2, 3].map(|i| a_place(32 + 5, i));
    assert_eq!(of_lane, [(17, 1), (25, 1), (17, 5), (25, 5)]);
}

/// After a wait, registers that hold A need a fence, even while other sums are on their way.
#[test]
fn a_in_registers_needs_a_fence_of_its_own() {
    let launch = |is_fenced: bool| {
        let launch = Launch::new(1, 128).dynamic_shared_bytes(BYTES);
        let report = launch.run(|| {
            let b = shared::dynamic_shared_mem_aligned::<u8, 1024>();
            unsafe { write_tile(b, 77, 256, TF32) };
            tma::fence_shared();
            thread::sync_threads();
            let b = unsafe { Descriptor::new(b) };
            let (mut first, mut second) = ([0.0_f32; 128], [0.0_f32; 128]);
            let a = a_of_thread(thread::thread_idx_x(), 0);
            unsafe { wgmma::fence() };
            unsafe { wgmma::m64n256k8_tf32_of_registers(&mut first, a, b, true) };
            unsafe { wgmma::commit() };
            unsafe { wgmma::m64n256k8_tf32_of_registers(&mut second, a, b, true) };
            unsafe { wgmma::commit() };
            unsafe { wgmma::wait_128::<1>(&mut first) };
            let a = a_of_thread(thread::thread_idx_x(), 8);
            if is_fenced {
                unsafe { wgmma::fence() };
            }
            unsafe { wgmma::m64n256k8_tf32_of_registers(&mut second, a, b, true) };
            unsafe { wgmma::commit() };
            unsafe { wgmma::wait_128::<0>(&mut second) };
            for (i, (first, second)) in (0..).zip(first.into_iter().zip(second)) {
                let (row, col) = sum_place(thread::thread_idx_x(), i);
                let product = |from: u32| -> i32 {
                    let products = (0..8).map(|k| element(1, row, from + k) * element(77, col, k));
                    products.sum()
                };
                assert_eq!(first, product(0) as f32);
                assert_eq!(second, (product(0) + product(8)) as f32);
            }
        });
        report.map(|_| ()).map_err(|fault| fault.to_string())
    };
    assert_eq!(launch(true), Ok(()));
    let fault = launch(false).unwrap_err();
    assert!(fault.contains("without a wgmma::fence()"), "{fault}");
}

/// Multiplies twice, with a tile of A that is written anew between the two, and returns the sums
/// of thread 0.
fn twice(launch: Launch) -> Result<(Vec<f32>, Vec<BarrierSite>), String> {
    let result = Mutex::new(Vec::new());
    let launch = launch.dynamic_shared_bytes(BYTES);
    let report = launch.run(|| {
        let tile_a = shared::dynamic_shared_mem_aligned::<u8, 1024>();
        let tile_b = unsafe { tile_a.add(B_AT) };
        let (a, b) = unsafe { (Descriptor::new(tile_a), Descriptor::new(tile_b)) };
        let mut sums = [0.0_f32; 64];
        unsafe { write_tile(tile_b, 77, 128, BF16) };
        for round in 0..2 {
            unsafe { write_tile(tile_a, round, 64, BF16) };
            tma::fence_shared(); // what was written may be multiplied
            thread::sync_threads();
            unsafe { wgmma::fence() }; // the sums may be used
            unsafe { wgmma::m64n128k16_bf16(&mut sums, a, b, round > 0) };
            unsafe { wgmma::commit() };
            unsafe { wgmma::wait_64::<0>(&mut sums) }; // the tile may be written
            thread::sync_threads();
        }
        if thread::thread_idx_x() == 0 {
            *result.lock().unwrap() = sums.to_vec();
        }
    });
    let report = report.map_err(|fault| fault.to_string())?;
    Ok((
        result.into_inner().unwrap(),
        report.waits.into_keys().collect(),
    ))
}

#[test]
fn each_missing_wait_or_fence_shows() {
    for order in [ThreadOrder::Forward, ThreadOrder::Random(3)] {
        let launch = || Launch::new(1, 128).thread_order(order);
        let (right, sites) = twice(launch()).unwrap();
        let expected = |i: u32| {
            let (row, col) = sum_place(0, i);
            let products = (0..2).flat_map(|round| {
                (0..16).map(move |k| element(round, row, k) * element(77, col, k))
            });
            products.sum::<i32>() as f32
        };
        assert_eq!(right, (0..64).map(expected).collect::<Vec<f32>>());

        assert_eq!(sites.len(), 4, "{sites:?}");
        for site in sites {
            match twice(unsafe { launch().without_wait(site) }) {
                Ok((sums, _)) => assert_ne!(sums, right, "{site}"),
                Err(fault) => assert!(fault.contains("wgmma"), "{site}: {fault}"),
            }
        }
    }
}
