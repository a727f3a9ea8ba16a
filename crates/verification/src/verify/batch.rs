//! Checks every product of a batch, each with its own reference.

use super::check_size;
use super::outcome::{Failure, Proof, check_each};
use crate::data::{Matrix, Number, Problem};

/// Checks every product of a batch as a problem of its own: `check` gets its index, the problem
/// and the result. A single product is checked directly.
pub fn each_product<T: Number>(
    problem: &Problem<T>,
    c: &Matrix<T>,
    check: impl Fn(usize, &Problem<T>, &Matrix<T>) -> Result<Proof, Failure> + Sync,
) -> Result<Proof, Failure> {
    if problem.batch == 1 {
        return check(0, problem, c);
    }
    check_size(c, (problem.c.rows(), problem.c.columns()))?;
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
    use crate::data::{Data, Storage};
    use crate::verify::outcome::Errors;
    use gpu_gemm::Shape;

    #[test]
    fn the_figures_are_those_of_the_product_with_the_largest_share_of_its_bound() {
        let (shape, data) = (Shape::new(3, 4, 5), Data::Normal);
        let storage = Storage {
            batch: 4,
            ..Storage::COMPACT
        };
        let problem = Problem::<f32>::random(shape, storage, data, 1, 1.0, 0.0).unwrap();
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
        let proof = each_product(&problem, &problem.c, check).unwrap();
        assert_eq!((proof.largest_error, proof.gate), (0.3, "proven"));
        let errors = proof.errors.unwrap();
        assert_eq!((errors.frobenius, errors.units), (4.0, 3.0));
        let statement = "in each of 4 products (figures of the worst): of 1";
        assert_eq!(proof.statement, statement);
    }
}
