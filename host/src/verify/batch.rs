//! A check of every product of a batch, each with a reference of its own.

use super::outcome::{Failure, Proof, check_each};
use crate::data::{Matrix, Number, Problem};

/// Checks every product of a batch, each as a problem of its own, of which `check` gets the number,
/// the problem and the result. A single product is checked as it is.
///
/// # Errors
///
/// The failure of the first product that fails, with its number.
pub fn each_product<T: Number>(
    problem: &Problem<T>,
    c: &Matrix<T>,
    check: impl Fn(usize, &Problem<T>, &Matrix<T>) -> Result<Proof, Failure> + Sync,
) -> Result<Proof, Failure> {
    if problem.batch == 1 {
        return check(0, problem, c);
    }
    let sizes = |matrix: &Matrix<T>| (matrix.rows(), matrix.columns());
    let ((rows, columns), (got_rows, got_columns)) = (sizes(&problem.c), sizes(c));
    if (got_rows, got_columns) != (rows, columns) {
        let why = format!("it is {got_rows} x {got_columns}, but must be {rows} x {columns}.");
        return Err(Failure::Unprovable(why));
    }
    let m = problem.shape().m;
    let checked = check_each(problem.batch, |index| {
        let no_memory = |error| Failure::Unprovable(format!("{error}"));
        let product = problem.product(index).map_err(no_memory)?;
        let c = c.rows_from(index * m, m).map_err(no_memory)?;
        check(index, &product, &c).map_err(|failure| Failure::Product {
            index,
            failure: Box::new(failure),
        })
    })?;
    let errors = checked.iter().map(|proof| proof.errors);
    let errors = errors.reduce(|one, other| Some(one?.or(other?))).flatten();
    let by_share = |one: &Proof, other: &Proof| one.share().total_cmp(&other.share());
    let worst = checked.into_iter().max_by(by_share);
    let worst = worst.ok_or(Failure::Unprovable("the batch is empty.".to_string()))?;
    let figures = match worst.bound > 0.0 {
        true => " (figures of the worst)",
        false => "",
    };
    let (count, of_worst) = (problem.batch, &worst.statement);
    let statement = format!("in each of {count} products{figures}: {of_worst}");
    Ok(Proof {
        statement,
        errors,
        ..worst
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Data, Layout};
    use crate::verify::{self, Coverage, Errors, Mismatch};
    use gpu_gemm::Shape;
    use gpu_gemm::gpu_kernels::spec::Tile;

    const TILE: Tile = Tile { m: 2, n: 2, k: 2 };

    /// A batch of 3 x 4 x 5, and its result.
    fn multiplied(batch: usize, data: Data) -> (Problem<f32>, Matrix<f32>) {
        let shape = Shape::new(3, 4, 5);
        let layout = Layout::padded(shape, [1; 3], [2; 3]);
        let problem = Problem::random_batch(batch, shape, layout, data, 1, (2.0, -1.0)).unwrap();
        let mut c = problem.c.clone();
        for row in 0..c.rows() {
            for col in 0..4 {
                let b = |l: usize| problem.b.row(row / 3 * 5 + l)[col];
                let terms = problem.a.row(row).iter().enumerate();
                let sum: f32 = terms.map(|(l, a)| a * b(l)).sum();
                c.row_mut(row)[col] = 2.0 * sum - problem.c.row(row)[col];
            }
        }
        (problem, c)
    }

    fn exact(problem: &Problem<f32>, c: &Matrix<f32>) -> Result<Proof, Failure> {
        each_product(problem, c, |_, problem, c| {
            verify::exact(problem, c, TILE, Coverage::Full)
        })
    }

    #[test]
    fn an_element_that_is_wrong_is_found_in_every_product_and_its_product_is_named() {
        for batch in [1, 3, 7] {
            let (problem, right) = multiplied(batch, Data::SmallIntegers { largest: 4 });
            let proof = exact(&problem, &right).unwrap();
            let in_each = match batch {
                1 => String::new(),
                _ => format!("in each of {batch} products: "),
            };
            let statement = format!("{in_each}all 12 elements equal on integers");
            assert_eq!(proof, Proof::exact("exact", statement));
            for wrong in 0..batch {
                let mut c = right.clone();
                c.row_mut(3 * wrong + 2)[1] += 1.0;
                let failure = exact(&problem, &c).unwrap_err();
                let text = failure.to_string();
                let of_element = match failure {
                    Failure::Product { index, failure } => {
                        assert!(batch > 1 && index == wrong);
                        let start =
                            format!("Product {wrong} of the batch, counted from 0: C[2][1] is ");
                        assert!(text.starts_with(&start), "{text}");
                        *failure
                    }
                    failure => {
                        assert_eq!(batch, 1);
                        failure
                    }
                };
                let is_there = matches!(
                    of_element,
                    Failure::Element(Mismatch { row: 2, col: 1, .. })
                );
                assert!(is_there, "{text}");
            }
        }
    }

    #[test]
    fn the_figures_are_those_of_the_product_with_the_largest_share_of_its_bound() {
        let (problem, c) = multiplied(4, Data::Normal);
        // The last is exact.
        let figures = [(0.1, 1.0), (0.3, 1.0), (0.4, 4.0), (0.0, 0.0)];
        let check = |index: usize, problem: &Problem<f32>, _: &Matrix<f32>| {
            assert_eq!(problem.shape(), Shape::new(3, 4, 5));
            Ok(Proof {
                gate: "proven",
                statement: format!("of {index}"),
                largest_error: figures[index].0,
                bound: figures[index].1,
                errors: Some(Errors {
                    frobenius: 4.0 - index as f64,
                    units: index as f64,
                }),
            })
        };
        let proof = each_product(&problem, &c, check).unwrap();
        assert_eq!((proof.largest_error, proof.gate), (0.3, "proven"));
        let largest = Errors {
            frobenius: 4.0,
            units: 3.0,
        };
        assert_eq!(proof.errors, Some(largest));
        assert_eq!(
            proof.statement,
            "in each of 4 products (figures of the worst): of 1"
        );
    }
}
