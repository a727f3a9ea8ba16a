//! The yardstick: the crate `matrixmultiply`, a library that people use.
//!
//! Over `cpu-vectorized`: both A and B are copied into contiguous panels that fit each level of
//! the cache, and 8 x 8 (f32) or more elements of C accumulate in registers at once, so that
//! each element read is used 8 times.
//! It uses its own threads, up to 4, which `MATMUL_NUM_THREADS` sets, not `--threads`.
//!
//! ```sh
//! cargo run --release -p host -- --kernel cpu-blocks,cpu-matrixmultiply
//! ```

use super::rung::*;

pub static RUNG: Algorithm = Algorithm {
    name: "cpu-matrixmultiply",
    idea: "the crate matrixmultiply, for comparison with a library that people use",
    source: file!(),
    tile: tile(8, 8, 256),
    threads: Threads::Library,
    error_model: |_| ErrorModel::Elementwise,
    functions: Functions {
        f32: Some(sgemm),
        f64: Some(dgemm),
        i32: None,
    },
};

/// m, k and n.
fn dimensions<T>(a: &View<'_, T>, b: &View<'_, T>, c: &ViewMut<'_, T>) -> (usize, usize, usize) {
    let (m, k, n) = (a.rows(), b.rows(), b.columns());
    assert_eq!(
        (a.columns(), c.rows(), c.columns()),
        (k, m, n),
        "the shapes of A, B and C do not fit each other"
    );
    (m, k, n)
}

fn sgemm(a: View<'_, f32>, b: View<'_, f32>, mut c: ViewMut<'_, f32>, _: &Team) {
    let (m, k, n) = dimensions(&a, &b, &c);
    let [lda, ldb, ldc] = [a.leading(), b.leading(), c.leading()].map(usize::cast_signed);
    let (a, b) = (a.elements().as_ptr(), b.elements().as_ptr());
    // SAFETY: the dimensions, which agree, and the strides are those of three views, and C is
    // borrowed exclusively.
    unsafe { matrixmultiply::sgemm(m, k, n, 1.0, a, lda, 1, b, ldb, 1, 1.0, c.as_mut_ptr(), ldc, 1) }
}

fn dgemm(a: View<'_, f64>, b: View<'_, f64>, mut c: ViewMut<'_, f64>, _: &Team) {
    let (m, k, n) = dimensions(&a, &b, &c);
    let [lda, ldb, ldc] = [a.leading(), b.leading(), c.leading()].map(usize::cast_signed);
    let (a, b) = (a.elements().as_ptr(), b.elements().as_ptr());
    // SAFETY: as above.
    unsafe { matrixmultiply::dgemm(m, k, n, 1.0, a, lda, 1, b, ldb, 1, 1.0, c.as_mut_ptr(), ldc, 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::team::Settings;

    #[test]
    fn views_that_do_not_fit_each_other_are_refused() {
        let team = Team::new(Settings::default()).unwrap();
        let multiply = RUNG.functions.f32.unwrap();
        for [(m, k), (depth, n), (rows, columns)] in [
            [(64, 1), (1, 64), (1, 64)],
            [(64, 1), (1, 64), (64, 1)],
            [(8, 8), (1, 8), (8, 8)],
        ] {
            let (a, b, mut c) = (vec![1.0; m * k], vec![1.0; depth * n], vec![0.0; rows * columns]);
            let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let c = ViewMut::new(&mut c, rows, columns, columns);
                multiply(View::new(&a, m, k, k), View::new(&b, depth, n, n), c, &team);
            }));
            assert!(refused.is_err());
        }
    }
}
