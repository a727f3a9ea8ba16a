//! Written so that the compiler vectorises it: arrays of a fixed size, and sums that stay in
//! registers.
//!
//! 64 columns of C (f32; 32 of f64) accumulate at once, over all of k, in registers: 4 of
//! AVX-512, 8 of AVX2. The columns of B that they need are copied into one contiguous panel
//! first, so that the loop has no bounds to check and no remainder to handle.
//! Over `cpu-ikj`: C is written once, not K times, and each instruction multiplies and adds 8 or
//! 16 elements.
//! The code is compiled three times, for AVX-512, for AVX2 with FMA and for any CPU; which one
//! runs is decided at run time.
//! Read from the cache: M*N*K elements of B (a panel is read again for every row) and M*N*K / 64
//! of A.
//!
//! ```sh
//! cargo run --release -p host -- --kernel cpu-ikj,cpu-vectorized
//! ```

use super::rung::*;

pub static RUNG: Algorithm = Algorithm {
    name: "cpu-vectorized",
    idea: "sums of 64 columns in vector registers, by a loop that compilers vectorise",
    source: file!(),
    tile: tile(1, 64, 1),
    threads: Threads::One,
    error_model: |_| ErrorModel::Elementwise,
    functions: every_type!(multiply),
};

fn multiply<T: Number>(a: View<'_, T>, b: View<'_, T>, c: ViewMut<'_, T>, _: &Team) {
    add_product(a, b, c);
}

/// Adds `A * B` to C, with the best instructions that this CPU has.
pub(super) fn add_product<T: Number>(a: View<'_, T>, b: View<'_, T>, c: ViewMut<'_, T>) {
    if a.rows() == 0 || a.columns() == 0 {
        return; // otherwise B is copied for nothing
    }
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the CPU has the feature.
            return unsafe { with_avx512(a, b, c) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the CPU has both features.
            return unsafe { with_avx2(a, b, c) };
        }
    }
    panels::<T, false>(a, b, c);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn with_avx512<T: Number>(a: View<'_, T>, b: View<'_, T>, c: ViewMut<'_, T>) {
    panels::<T, true>(a, b, c);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn with_avx2<T: Number>(a: View<'_, T>, b: View<'_, T>, c: ViewMut<'_, T>) {
    panels::<T, true>(a, b, c);
}

/// The loop over panels of 256 bytes a row. `FUSED` rounds a product and its sum once, where the
/// CPU has an instruction for it.
#[inline(always)]
fn panels<T: Number, const FUSED: bool>(a: View<'_, T>, b: View<'_, T>, c: ViewMut<'_, T>) {
    match size_of::<T>() {
        4 => panels_of::<T, 64, FUSED>(a, b, c),
        _ => panels_of::<T, 32, FUSED>(a, b, c),
    }
}

#[inline(always)]
fn panels_of<T: Number, const WIDTH: usize, const FUSED: bool>(
    a: View<'_, T>,
    b: View<'_, T>,
    mut c: ViewMut<'_, T>,
) {
    let mut panel: Vec<[T; WIDTH]> = vec![[T::default(); WIDTH]; b.rows()]; // (K, WIDTH)
    for column in (0..b.columns()).step_by(WIDTH) {
        let width = WIDTH.min(b.columns() - column);
        for (k, slice) in panel.iter_mut().enumerate() {
            slice[..width].copy_from_slice(&b.row(k)[column..column + width]);
        }
        for i in 0..a.rows() {
            let mut sums = [T::default(); WIDTH];
            for (&a, slice) in a.row(i).iter().zip(&panel) {
                for j in 0..WIDTH {
                    sums[j] = match FUSED {
                        true => a.fused_times_plus(slice[j], sums[j]),
                        false => a.times_plus(slice[j], sums[j]),
                    };
                }
            }
            // The last panel is wider than the remaining columns of C.
            for (c, sum) in c.row_mut(i)[column..column + width].iter_mut().zip(sums) {
                *c = c.plus(sum);
            }
        }
    }
}
