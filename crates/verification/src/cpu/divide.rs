//! Divide and conquer: the longest of m, n and k is halved until a product is small enough for
//! the cache.
//!
//! Halves may be uneven, so any shape works. Halving m or n gives two products that are
//! independent; halving k gives two that are added to the same C, one after the other. At 128
//! `cpu-vectorized` multiplies what remains.
//! Over `cpu-vectorized`: its panel of B, 128 x 256 bytes now, stays in the L1 cache from row to
//! row, however long k is. And without being told how large any cache is, the recursion reaches
//! a product that fits in each. In a cache of Z elements with lines of L,
//! Cache lines fetched: about M*N*K / (L * sqrt(Z))
//! (cpu-vectorized: M*N*K / L once a panel of B is larger than the cache)
//! (M. Frigo, C. E. Leiserson, H. Prokop and S. Ramachandran, "Cache-oblivious algorithms", FOCS
//! 1999).
//! At 1024 (f32, one core with AVX-512) it takes 0.6 of the time of `cpu-vectorized`.
//!
//! ```sh
//! cargo run --release -p host -- --kernel cpu-vectorized,cpu-divide --m 1000 --n 777 --k 12345
//! ```

use super::rung::*;
use super::vectorized;

/// The size that is multiplied without dividing it further. Dividing down to single elements
/// would take nearly all of the time.
const UNDIVIDED: usize = 128;

pub static RUNG: Algorithm = Algorithm {
    name: "cpu-divide",
    idea: "halve the longest dimension, again and again, so that products fit in the caches",
    source: file!(),
    tile: tile(UNDIVIDED, UNDIVIDED, UNDIVIDED),
    threads: Threads::One,
    error_model: |_| ErrorModel::Elementwise,
    functions: every_type!(multiply),
};

fn multiply<T: Number>(a: View<'_, T>, b: View<'_, T>, c: ViewMut<'_, T>, _: &Team) {
    add_product(a, b, c);
}

pub(super) fn add_product<T: Number>(a: View<'_, T>, b: View<'_, T>, mut c: ViewMut<'_, T>) {
    let (m, n, k) = (a.rows(), b.columns(), b.rows());
    let longest = m.max(n).max(k);
    if longest <= UNDIVIDED {
        vectorized::add_product(a, b, c);
    } else if longest == m {
        let (above, below) = c.split_rows(m / 2);
        add_product(a.part(0..m / 2, 0..k), b, above);
        add_product(a.part(m / 2..m, 0..k), b, below);
    } else if longest == n {
        let (left, right) = c.split_columns(n / 2);
        add_product(a, b.part(0..k, 0..n / 2), left);
        add_product(a, b.part(0..k, n / 2..n), right);
    } else {
        add_product(a.part(0..m, 0..k / 2), b.part(0..k / 2, 0..n), c.reborrow());
        add_product(a.part(0..m, k / 2..k), b.part(k / 2..k, 0..n), c);
    }
}
