//! Threads share out the terms of the sums: each has a C of its own for its slice of k, and at
//! the end these are added up.
//!
//! In contrast to `cpu-rows`, which needs no second C: P threads take P * M*N elements of
//! memory, and adding them all up costs P * M*N reads and additions, a fraction P / K of the
//! product itself. It pays where C is so small, and k so long, that C cannot be shared out
//! otherwise.
//! On two cores (f32) it takes as long as `cpu-rows` at 1024, and half as long at 16 x 64 x
//! 1000000, where `cpu-rows` has one band.
//! Read from memory or a shared cache: M*K of A, K*N of B, P * M*N of partial results.
//!
//! ```sh
//! cargo run --release -p host -- --kernel cpu-rows,cpu-partial --m 16 --n 64 --k 1000000
//! ```

use super::rung::*;
use super::divide;
use super::share_out::share_out;
use crate::parallel;

pub static RUNG: Algorithm = Algorithm {
    name: "cpu-partial",
    idea: "threads share out k: each sums up a C of its own, and these are added",
    source: file!(),
    tile: tile(1, 64, 1),
    threads: Threads::Team,
    error_model: |_| ErrorModel::Elementwise,
    functions: every_type!(multiply),
};

fn multiply<T: Number>(a: View<'_, T>, b: View<'_, T>, c: ViewMut<'_, T>, team: &Team) {
    let (m, n, k) = (a.rows(), b.columns(), b.rows());
    let slice = k.div_ceil(team.threads());
    let partial = |index| {
        let terms = index * slice..k.min((index + 1) * slice);
        let mut partial = vec![T::default(); m * n]; // (M, N)
        divide::add_product(
            a.part(0..m, terms.clone()),
            b.part(terms, 0..n),
            ViewMut::new(&mut partial, m, n, n),
        );
        partial
    };
    let partials = team.pool().install(|| parallel::map(k.div_ceil(slice), partial));
    // The partial results come in the order of k, whichever thread made them: every run adds in
    // the same order.
    share_out(team, c.pieces(1, n), |(row, _, mut band)| {
        for partial in &partials {
            for (c, sum) in band.row_mut(0).iter_mut().zip(&partial[row * n..]) {
                *c = c.plus(*sum);
            }
        }
    });
}
