//! The plain loops with four sums at a time, each of every fourth product.
//!
//! Over `cpu-ijk`: an addition need not wait for the one before it, because its neighbours
//! belong to other sums: four are in flight at once, and the loop counter advances once for four
//! products. Because the compiler must not change the order in which floats are added, it cannot
//! do this by itself.
//! Cache lines fetched for B: as `cpu-ijk`, up to M*N*K. The gain shows only while B is in the
//! cache.
//!
//! ```sh
//! cargo run --release -p host -- --kernel cpu-ijk,cpu-unrolled --size 128
//! ```

use super::rung::*;

pub static RUNG: Algorithm = Algorithm {
    name: "cpu-unrolled",
    idea: "four partial sums at a time, so that additions do not wait for each other",
    source: file!(),
    tile: tile(1, 1, 4),
    threads: Threads::One,
    error_model: |_| ErrorModel::Elementwise,
    functions: every_type!(multiply),
};

fn multiply<T: Number>(a: View<'_, T>, b: View<'_, T>, mut c: ViewMut<'_, T>, _: &Team) {
    for i in 0..a.rows() {
        let (chunks, remainder) = a.row(i).as_chunks::<4>();
        for j in 0..b.columns() {
            let mut sums = [T::default(); 4];
            sums[0] = c.row_mut(i)[j];
            let mut k = 0;
            for a in chunks {
                sums[0] = a[0].times_plus(b.at(k, j), sums[0]);
                sums[1] = a[1].times_plus(b.at(k + 1, j), sums[1]);
                sums[2] = a[2].times_plus(b.at(k + 2, j), sums[2]);
                sums[3] = a[3].times_plus(b.at(k + 3, j), sums[3]);
                k += 4;
            }
            for a in remainder {
                sums[0] = a.times_plus(b.at(k, j), sums[0]);
                k += 1;
            }
            c.row_mut(i)[j] = sums[0].plus(sums[1]).plus(sums[2].plus(sums[3]));
        }
    }
}
