//! Threads share out the rows of C: each computes bands of 64 rows by `cpu-divide`.
//!
//! No two threads write the same element, so threads wait for each other only at the end.
//! Over `cpu-divide`: as many cores as there are. Each band reads its rows of A, and all of B:
//! Read from memory or a shared cache: M*K of A, M*K*N / 64 of B.
//! At 1024 (f32) two cores take 0.53 of the time of one, if nothing else runs on them; the
//! schedules are within a seventh of each other.
//! `--schedule` says which thread takes which band, `--threads` how many there are.
//!
//! ```sh
//! cargo run --release -p host -- --kernel cpu-rows --threads 2 --schedule guided
//! ```

use super::rung::*;
use super::share_out::share_out;
use super::divide;

/// Rows of a band.
const ROWS: usize = 64;

pub static RUNG: Algorithm = Algorithm {
    name: "cpu-rows",
    idea: "threads share out the rows of C",
    source: file!(),
    tile: tile(ROWS, 64, 1),
    threads: Threads::Scheduled,
    error_model: |_| ErrorModel::Elementwise,
    functions: every_type!(multiply),
};

fn multiply<T: Number>(a: View<'_, T>, b: View<'_, T>, c: ViewMut<'_, T>, team: &Team) {
    let columns = c.columns();
    share_out(team, c.pieces(ROWS, columns), |(row, _, band)| {
        let rows = row..row + band.rows();
        divide::add_product(a.part(rows, 0..a.columns()), b, band);
    });
}
