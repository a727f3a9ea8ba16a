//! Threads share out blocks of C, 128 x 256 elements, cut along rows and columns.
//!
//! Over `cpu-rows`: a block needs only its own columns of B, a quarter of a megabyte at K = 256,
//! which stay in the core's cache while the rows are processed; and a C with few rows still has
//! work for all threads.
//! Read from memory or a shared cache: M*K*N / 256 of A, M*K*N / 128 of B
//! (cpu-rows: M*K and M*K*N / 64)
//! `--schedule` says which thread takes which block, `--threads` how many there are.
//!
//! ```sh
//! cargo run --release -p host -- --kernel cpu-rows,cpu-blocks --schedule dynamic
//! ```

use super::rung::*;
use super::share_out::share_out;
use super::divide;

/// Rows and columns of a block.
const ROWS: usize = 128;
const COLUMNS: usize = 256;

pub static RUNG: Algorithm = Algorithm {
    name: "cpu-blocks",
    idea: "threads share out blocks of C, so that each reads less of B",
    source: file!(),
    tile: tile(ROWS, COLUMNS, 1),
    threads: Threads::Scheduled,
    error_model: |_| ErrorModel::Elementwise,
    functions: every_type!(multiply),
};

fn multiply<T: Number>(a: View<'_, T>, b: View<'_, T>, c: ViewMut<'_, T>, team: &Team) {
    let k = b.rows();
    share_out(team, c.pieces(ROWS, COLUMNS), |(row, column, block)| {
        let (rows, columns) = (row..row + block.rows(), column..column + block.columns());
        divide::add_product(a.part(rows, 0..k), b.part(0..k, columns), block);
    });
}
