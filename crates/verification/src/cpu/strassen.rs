//! Strassen's algorithm: seven products of halves instead of eight, again and again, so that the
//! work grows with n^2.81.
//!
//! With A, B and C cut in four, seven products of sums of quarters make up C (V. Strassen,
//! "Gaussian elimination is not optimal", Numerische Mathematik 13, 1969). Each level saves one
//! product in eight and costs 22 additions of quarters, which are memory traffic; so below a
//! cutoff `cpu-divide` takes over. The last row, column and term of odd dimensions are peeled
//! off and multiplied separately, so any shape works.
//! Products: 7/8 of M*N*K a level. Additions: 22 quarters a level, 5 of A, 5 of B and 12 to C (18
//! where C is not added to). Memory: three quarters for each level.
//!
//! Errors are larger, and bounded only against the largest elements of A and B, not by the terms
//! of each sum ([`crate::verify::strassen`]); and an infinity or a NaN in A or B can turn any
//! element of C into NaN.
//!
//! ```sh
//! cargo run --release -p host -- --kernel cpu-divide,cpu-strassen --size 2048
//! cargo run --release -p host -- --kernel cpu-strassen --size 2048 --cutoff 256
//! ```

use super::rung::*;
use super::divide;

pub static RUNG: Algorithm = Algorithm {
    name: "cpu-strassen",
    idea: "seven products of halves instead of eight, down to a cutoff",
    source: file!(),
    tile: tile(64, 64, 64),
    threads: Threads::One,
    error_model: |settings| ErrorModel::Strassen {
        cutoff: settings.cutoff,
    },
    functions: every_type!(multiply),
};

/// A factor of one of the seven products, made of quarters: 0 is 11, 1 is 12, 2 is 21, 3 is 22.
#[derive(Clone, Copy)]
enum Factor {
    Quarter(usize),
    Sum(usize, usize),
    Difference(usize, usize),
}
use Factor::{Difference, Quarter, Sum};

/// One of the seven products: a factor of A, one of B, and its coefficient in each quarter of C.
struct Seventh {
    a: Factor,
    b: Factor,
    c: [i32; 4],
}

#[rustfmt::skip]
const SEVENTHS: [Seventh; 7] = [
    Seventh { a: Sum(0, 3),        b: Sum(0, 3),        c: [ 1, 0, 0, 1] },
    Seventh { a: Sum(2, 3),        b: Quarter(0),       c: [ 0, 0, 1,-1] },
    Seventh { a: Quarter(0),       b: Difference(1, 3), c: [ 0, 1, 0, 1] },
    Seventh { a: Quarter(3),       b: Difference(2, 0), c: [ 1, 0, 1, 0] },
    Seventh { a: Sum(0, 1),        b: Quarter(3),       c: [-1, 1, 0, 0] },
    Seventh { a: Difference(2, 0), b: Sum(0, 1),        c: [ 0, 0, 0, 1] },
    Seventh { a: Difference(1, 3), b: Sum(2, 3),        c: [ 1, 0, 0, 0] },
];

fn multiply<T: Number>(a: View<'_, T>, b: View<'_, T>, c: ViewMut<'_, T>, team: &Team) {
    add_product(a, b, c, team.settings().cutoff);
}

fn add_product<T: Number>(a: View<'_, T>, b: View<'_, T>, c: ViewMut<'_, T>, cutoff: usize) {
    let (m, n, k) = (a.rows(), b.columns(), b.rows());
    // A dimension of 1 would have an empty half.
    if m.min(n).min(k) <= cutoff.max(1) {
        return divide::add_product(a, b, c);
    }
    let (m_even, n_even, k_even) = (m & !1, n & !1, k & !1);
    let (above, last_row) = c.split_rows(m_even);
    let (mut even, last_column) = above.split_columns(n_even);
    let (a_above, b_left) = (a.part(0..m_even, 0..k), b.part(0..k, 0..n_even));
    add_even_product(
        a_above.part(0..m_even, 0..k_even),
        b_left.part(0..k_even, 0..n_even),
        even.reborrow(),
        cutoff,
    );
    divide::add_product(
        a_above.part(0..m_even, k_even..k),
        b_left.part(k_even..k, 0..n_even),
        even,
    );
    divide::add_product(a_above, b.part(0..k, n_even..n), last_column);
    divide::add_product(a.part(m_even..m, 0..k), b, last_row);
}

/// [`add_product`] where all dimensions are even.
fn add_even_product<T: Number>(a: View<'_, T>, b: View<'_, T>, c: ViewMut<'_, T>, cutoff: usize) {
    let (m, n, k) = (a.rows() / 2, b.columns() / 2, b.rows() / 2);
    let a = quarters(a);
    let b = quarters(b);
    let (above, below) = c.split_rows(m);
    let ((c11, c12), (c21, c22)) = (above.split_columns(n), below.split_columns(n));
    let mut c = [c11, c12, c21, c22];
    let zero = T::default();
    let (mut a_sum, mut b_sum) = (vec![zero; m * k], vec![zero; k * n]);
    let mut product = vec![zero; m * n];
    for Seventh {
        a: a_factor,
        b: b_factor,
        c: counts,
    } in &SEVENTHS
    {
        let a = a_factor.of(&a, &mut a_sum);
        let b = b_factor.of(&b, &mut b_sum);
        product.fill(zero);
        add_product(a, b, ViewMut::new(&mut product, m, n, n), cutoff);
        for (c, count) in c.iter_mut().zip(counts) {
            add(*count, View::new(&product, m, n, n), c.reborrow());
        }
    }
}

impl Factor {
    /// The factor; a sum is stored in `room`.
    fn of<'a, T: Number>(self, quarters: &[View<'a, T>; 4], room: &'a mut [T]) -> View<'a, T> {
        match self {
            Quarter(quarter) => quarters[quarter],
            Sum(one, other) => combined(quarters[one], quarters[other], room, T::plus),
            Difference(one, other) => combined(quarters[one], quarters[other], room, T::minus),
        }
    }
}

/// Two matrices, combined element by element.
fn combined<'a, T: Number>(
    one: View<'_, T>,
    other: View<'_, T>,
    room: &'a mut [T],
    combine: impl Fn(T, T) -> T,
) -> View<'a, T> {
    let (rows, columns) = (one.rows(), one.columns());
    for (row, sums) in room.chunks_mut(columns).enumerate() {
        let pairs = one.row(row).iter().zip(other.row(row));
        for (sum, (one, other)) in sums.iter_mut().zip(pairs) {
            *sum = combine(*one, *other);
        }
    }
    View::new(room, rows, columns, columns)
}

/// The quarters 11, 12, 21 and 22.
fn quarters<T>(matrix: View<'_, T>) -> [View<'_, T>; 4] {
    let (rows, columns) = (matrix.rows() / 2, matrix.columns() / 2);
    [(0, 0), (0, columns), (rows, 0), (rows, columns)]
        .map(|(row, column)| matrix.part(row..row + rows, column..column + columns))
}

/// `result += count * matrix`, where the count is 1, 0 or -1.
fn add<T: Number>(count: i32, matrix: View<'_, T>, mut result: ViewMut<'_, T>) {
    if count == 0 {
        return;
    }
    for row in 0..result.rows() {
        let pairs = result.row_mut(row).iter_mut().zip(matrix.row(row));
        if count > 0 {
            pairs.for_each(|(result, element)| *result = result.plus(*element));
        } else {
            pairs.for_each(|(result, element)| *result = result.minus(*element));
        }
    }
}
