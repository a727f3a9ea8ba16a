//! The same three loops in another order: each element of A times a row of B is added to a row
//! of C.
//!
//! Over `cpu-ijk`: the innermost loop walks along rows of B and C, so that every byte of a cache
//! line is used, the hardware fetches lines ahead, and neighbouring elements fit a vector
//! instruction.
//! Cache lines fetched for B: M*N*K / L      (cpu-ijk: up to M*N*K)
//! At 512 and 1024 it takes a seventh of the time of `cpu-ijk`, or less.
//! The price: C is read and written once for each product, no longer once for each sum.
//!
//! ```sh
//! cargo run --release -p host -- --kernel cpu-ijk,cpu-ikj --size 512
//! ```

use super::rung::*;

pub static RUNG: Algorithm = Algorithm {
    name: "cpu-ikj",
    idea: "the loops in another order, so that the innermost walks along rows",
    source: file!(),
    tile: tile(1, 1, 1),
    threads: Threads::One,
    error_model: |_| ErrorModel::Elementwise,
    functions: every_type!(multiply),
};

fn multiply<T: Number>(a: View<'_, T>, b: View<'_, T>, mut c: ViewMut<'_, T>, _: &Team) {
    for i in 0..a.rows() {
        let c_row = c.row_mut(i);
        for (k, &a) in a.row(i).iter().enumerate() {
            for (c, &b) in c_row.iter_mut().zip(b.row(k)) {
                *c = a.times_plus(b, *c);
            }
        }
    }
}
