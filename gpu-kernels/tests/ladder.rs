//! What the kernels say of themselves agrees with what they do and with each other.

use cuda_std::simulator::Launch;
use gpu_kernels::naive::naive;
use gpu_kernels::naive_kahan::naive_kahan;
use gpu_kernels::spec::{GemmFn, Grid, OperandLayout, Rounding};
use gpu_kernels::{remainder_variant, variants};
use std::sync::atomic::{AtomicU32, Ordering};

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
            assert_eq!([other.a, other.b], [OperandLayout::MN_MAJOR_FLOAT4; 2]);
        }
        let (tile, other) = (variant.tile, remainder.tile);
        assert_eq!((other.m, other.k), (tile.m, tile.k));
        assert_eq!(remainder.exact_tiles, variant.exact_tiles);
        assert_eq!(remainder.n_remainder, None);
        assert!(other.n < tile.n, "{}", variant.name);
    }
}

/// A kernel's sum of 2^24 and five times 1, each of which is half a unit of it.
fn sum(kernel: GemmFn<f32>) -> f32 {
    let factors = [4096.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    let bits = AtomicU32::new(f32::NAN.to_bits());
    let result = Launch::new(1, (64, 4)).run(|| {
        let c = bits.as_ptr().cast();
        // SAFETY: C has one element, which one thread writes.
        unsafe { kernel(1, 1, 6, 1.0, &factors, 6, &factors, 1, 0.0, c, 1) };
    });
    result.expect("the kernel runs");
    f32::from_bits(bits.load(Ordering::Relaxed))
}

#[test]
fn a_compensated_sum_keeps_what_a_plain_one_loses() {
    assert_eq!(sum(naive), 16_777_216.0);
    assert_eq!(sum(naive_kahan), 16_777_220.0);
}
