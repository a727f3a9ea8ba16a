//! A check of every product of a batch, each with a reference of its own.

use super::outcome::{Failure, Proof, check_each};
use crate::data::{Matrix, Number, Problem};

/// Checks every product of a batch, each as a problem of its own, of which `check` gets the number,
/// the problem and the result. A single product is checked as it is.
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
    use crate::verify::outcome::{Errors, Mismatch};
    use crate::verify::{Coverage, exact, reference};
    use gpu_gemm::Shape;
    use gpu_gemm::gpu_kernels::spec::Tile;

    const TILE: Tile = Tile { m: 2, n: 2, k: 2 };

    /// A batch of integers, and what it must give.
    fn multiplied(batch: usize) -> (Problem<f32>, Matrix<f32>) {
        let (shape, data) = (Shape::new(3, 4, 5), Data::SmallIntegers { largest: 4 });
        let layout = Layout::padded(shape, [1; 3], [2; 3]);
        let problem = Problem::random_batch(batch, shape, layout, data, 1, (2.0, -1.0)).unwrap();
        let mut c = problem.c.clone();
        for index in 0..batch {
            let product = problem.product(index).unwrap();
            for row in 0..3 {
                let right = reference::in_own_type(&product, row, 0..4);
                c.row_mut(3 * index + row).copy_from_slice(&right);
            }
        }
        (problem, c)
    }

    #[test]
    fn an_element_that_is_wrong_is_found_in_every_product_and_its_product_is_named() {
        let check = |problem: &Problem<f32>, c: &Matrix<f32>| {
            each_product(problem, c, |_, problem, c| {
                exact(problem, c, TILE, Coverage::Full)
            })
        };
        for (batch, in_each) in [
            (1, ""),
            (3, "in each of 3 products: "),
            (7, "in each of 7 products: "),
        ] {
            let (problem, right) = multiplied(batch);
            let statement = format!("{in_each}all 12 elements equal on integers");
            assert_eq!(
                check(&problem, &right),
                Ok(Proof::exact("exact", statement))
            );
            for wrong in 0..batch {
                let mut c = right.clone();
                c.row_mut(3 * wrong + 2)[1] += 1.0;
                let failure = check(&problem, &c).unwrap_err();
                let text = failure.to_string();
                let of_element = match failure {
                    Failure::Product { index, failure } => {
                        assert!(batch > 1 && index == wrong);
                        let start = "of the batch, counted from 0: C[2][1] is ";
                        assert!(
                            text.starts_with(&format!("Product {wrong} {start}")),
                            "{text}"
                        );
                        *failure
                    }
                    failure => failure,
                };
                let is_there = matches!(
                    of_element,
                    Failure::Element(Mismatch { row: 2, col: 1, .. })
                );
                assert!(is_there, "{text}");
            }
        }
        let (problem, right) = multiplied(3);
        let two = right.rows_from(0, 6).unwrap();
        assert!(matches!(check(&problem, &two), Err(Failure::Unprovable(_))));
    }

    #[test]
    fn the_figures_are_those_of_the_product_with_the_largest_share_of_its_bound() {
        let (problem, c) = multiplied(4);
        // The last is exact.
        let figures = [(0.1, 1.0), (0.3, 1.0), (0.4, 4.0), (0.0, 0.0)];
        let check = |index: usize, _: &Problem<f32>, _: &Matrix<f32>| {
            let errors = Errors {
                frobenius: 4.0 - index as f64,
                units: index as f64,
            };
            let (largest_error, bound) = figures[index];
            Ok(Proof {
                largest_error,
                bound,
                errors: Some(errors),
                ..Proof::exact("proven", format!("of {index}"))
            })
        };
        let proof = each_product(&problem, &c, check).unwrap();
        assert_eq!((proof.largest_error, proof.gate), (0.3, "proven"));
        let errors = proof.errors.unwrap();
        assert_eq!((errors.frobenius, errors.units), (4.0, 3.0));
        let statement = "in each of 4 products (figures of the worst): of 1";
        assert_eq!(proof.statement, statement);
    }
}
