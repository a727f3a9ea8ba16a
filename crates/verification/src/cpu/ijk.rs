//! Three plain loops, as in the formula: for each row of A and each column of B, the sum of
//! their products.
//!
//! The innermost loop walks down a column of B, so each iteration touches another cache line. Only
//! 4 (f32) of the 64 bytes fetched are used; where a column of lines does not fit in the cache,
//! each of the M*N*K iterations fetches one anew.
//! Cache lines fetched for B: up to M*N*K      (a line holds L elements: 16 of f32)
//!
//! ```sh
//! cargo run --release -p host -- --kernel cpu-ijk --size 512
//! ```

use super::rung::*;

pub static RUNG: Algorithm = Algorithm {
    name: "cpu-ijk",
    idea: "three plain loops; the innermost walks down a column of B",
    source: file!(),
    tile: tile(1, 1, 1),
    threads: Threads::One,
    error_model: |_| ErrorModel::Elementwise,
    functions: every_type!(multiply),
};

fn multiply<T: Number>(a: View<'_, T>, b: View<'_, T>, mut c: ViewMut<'_, T>, _: &Team) {
    for i in 0..a.rows() {
        for j in 0..b.columns() {
            let mut sum = c.row_mut(i)[j];
            for k in 0..b.rows() {
                sum = a.at(i, k).times_plus(b.at(k, j), sum);
            }
            c.row_mut(i)[j] = sum;
        }
    }
}
