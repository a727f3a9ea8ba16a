//! The kernels' descriptions agree with their behaviour and with each other.

use cuda_std::simulator::Launch;
use gpu_kernels::epilogue::Identity;
use gpu_kernels::gemm::Gemm;
use gpu_kernels::naive::naive;
use gpu_kernels::naive_kahan::naive_kahan;
use gpu_kernels::reference::reference_f64;
use gpu_kernels::spec::{Grid, OperandLayout, Rounding};
use gpu_kernels::{remainder_variant, variants};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

#[test]
fn the_rungs_that_compensate_say_so() {
    for variant in variants() {
        let compensates = ["naive-kahan", "tiled-kahan", "row-shared", "pitched"]
            .iter()
            .any(|rung| variant.name.starts_with(rung));
        let says_so = variant.rounding == Rounding::Compensated;
        assert_eq!(says_so, compensates, "{}", variant.name);
    }
}

#[test]
fn the_kernel_of_an_n_remainder_reads_the_same_copy_of_a() {
    for variant in variants().filter(|variant| variant.n_remainder.is_some()) {
        let remainder = remainder_variant(variant).expect(variant.name);
        assert_eq!(remainder.grid, Grid::StreamK, "{}", variant.name);
        for other in [variant, remainder] {
            assert_eq!([other.a, other.b], [OperandLayout::MN_MAJOR_ALIGNED; 2]);
        }
        let (tile, other) = (variant.tile, remainder.tile);
        assert_eq!((other.m, other.k), (tile.m, tile.k));
        assert_eq!(remainder.exact_tiles, variant.exact_tiles);
        assert_eq!(remainder.n_remainder, None);
        assert!(other.n < tile.n, "{}", variant.name);
    }
}

/// The arguments for the product of a row and a column.
fn row_by_column<'a, T: From<u8>>(a: &'a [T], b: &'a [T], c: *mut T) -> Gemm<'a, T> {
    Gemm {
        m: 1,
        n: 1,
        k: a.len(),
        alpha: T::from(1),
        a,
        lda: a.len(),
        b,
        ldb: 1,
        beta: T::from(0),
        c,
        ldc: 1,
        batch_strides: [0; 3],
        partials: null_mut(),
        column_stride: 1,
        epilogue: Identity,
    }
}

/// A kernel's element of C for a row of A and a column of B.
fn element(kernel: unsafe fn(Gemm<'_, f32>), a: [f32; 6], b: [f32; 6]) -> f32 {
    let bits = AtomicU32::new(f32::NAN.to_bits());
    let result = Launch::new(1, (64, 4)).run(|| {
        let gemm = row_by_column(&a, &b, bits.as_ptr().cast());
        // SAFETY: C has one element, which one thread writes.
        unsafe { kernel(gemm) };
    });
    result.expect("the kernel runs");
    f32::from_bits(bits.load(Ordering::Relaxed))
}

#[test]
fn a_compensated_sum_keeps_what_a_plain_one_loses() {
    // 2^24 and five times 1, each half a unit in the last place of it.
    let factors = [4096.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    assert_eq!(element(naive, factors, factors), 16_777_216.0);
    assert_eq!(element(naive_kahan, factors, factors), 16_777_220.0);
}

#[test]
fn a_compensated_sum_that_becomes_infinite_stays_so() {
    let (max, infinity) = (f32::MAX, f32::INFINITY);
    let ones = [1.0; 6];
    let overflow_of_the_sum = [1.0, max, max, 1.0, -max, -1.0];
    let overflow_of_a_product = [1.0, 1.0, max, 1.0, -1.0, 1.0];
    let with_infinity = [1.0, 1.0, infinity, 1.0, -max, 1.0];
    let two = [1.0, 1.0, 2.0, 1.0, 1.0, 1.0];
    for kernel in [naive, naive_kahan] {
        for (a, b) in [
            (overflow_of_the_sum, ones),
            (overflow_of_a_product, two),
            (with_infinity, ones),
        ] {
            assert_eq!(element(kernel, a, b), infinity, "{a:?}");
            assert_eq!(element(kernel, a.map(|one| -one), b), -infinity, "{a:?}");
        }
        let both_signs = [1.0, infinity, 1.0, -infinity, 1.0, 1.0];
        assert!(element(kernel, both_signs, ones).is_nan());
    }
}

/// The square of 1 + 2^-40, less 1 + 2^-39, beside a large number that cancels.
#[test]
fn a_reference_keeps_what_is_far_below_the_last_bit_of_its_sums() {
    let two_to = |exponent| 2f64.powi(exponent);
    let factor = 1.0 + two_to(-40);
    let a = [two_to(30), factor, -two_to(30), -1.0 - two_to(-39)];
    let b = [1.0, factor, 1.0, 1.0];
    let of = |a: [f64; 4]| {
        let bits = AtomicU64::new(f64::NAN.to_bits());
        let result = Launch::new(1, (64, 4)).run(|| {
            let gemm = row_by_column(&a, &b, bits.as_ptr().cast());
            // SAFETY: C has one element, which one thread writes.
            unsafe { reference_f64(gemm) };
        });
        result.expect("the kernel runs");
        f64::from_bits(bits.load(Ordering::Relaxed))
    };
    assert_eq!(of(a), two_to(-80));
    assert_eq!(of([f64::INFINITY, 1.0, 1.0, 1.0]), f64::INFINITY);
}
