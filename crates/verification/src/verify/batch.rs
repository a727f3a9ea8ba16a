//! Checks every product of a batch or of groups, each with its own reference.

use super::check_size;
use super::outcome::{Failure, Verdict, check_each};
use crate::data::{Matrix, Number, Problem};

/// Checks every product of a batch, or of groups, as a problem of its own: `check` gets its index,
/// the problem and the result. A single product is checked directly.
pub fn each_product<T: Number>(
    problem: &Problem<T>,
    c: &Matrix<T>,
    check: impl Fn(usize, &Problem<T>, &Matrix<T>) -> Result<Verdict, Failure> + Sync,
) -> Result<Verdict, Failure> {
    let (of, products) = match problem.groups {
        Some(_) => ("groups", "groups"),
        None if problem.batch == 1 => return check(0, problem, c),
        None => ("batch", "products"),
    };
    check_size(c, (problem.c.rows(), problem.c.columns()))?;
    let checked = check_each(problem.count(), |index| {
        let no_memory = |error| Failure::Unprovable(format!("{error}"));
        let product = problem.product(index).map_err(no_memory)?;
        let rows = problem.rows_of(index);
        let c = c.rows_from(rows.start, rows.len()).map_err(no_memory)?;
        check(index, &product, &c).map_err(|failure| Failure::Product {
            index,
            of,
            failure: Box::new(failure),
        })
    })?;
    let errors = checked.iter().map(|verdict| verdict.errors);
    let errors = errors.reduce(|one, other| Some(one?.or(other?))).flatten();
    let by_share = |one: &Verdict, other: &Verdict| one.share().total_cmp(&other.share());
    let worst = checked.into_iter().max_by(by_share);
    let worst = worst.ok_or(Failure::Unprovable("the batch is empty.".to_string()))?;
    let figures = match (worst.bound > 0.0, problem.groups) {
        (true, _) => " (figures of the worst)",
        // Groups differ in size.
        (false, Some(_)) => " (figures of one)",
        (false, None) => "",
    };
    let (count, of_worst) = (problem.count(), &worst.statement);
    let statement = format!("in each of {count} {products}{figures}: {of_worst}");
    Ok(Verdict {
        statement,
        errors,
        ..worst
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Data, Groups, Storage};
    use crate::verify::outcome::Errors;
    use crate::verify::{Coverage, exact};
    use gpu_gemm::Shape;
    use gpu_gemm::gpu_kernels::spec::Tile;

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
            Ok(Verdict {
                largest_error,
                bound,
                errors: Some(errors),
                ..Verdict::exact("bound", format!("of {index}"))
            })
        };
        let verdict = each_product(&problem, &problem.c, check).unwrap();
        assert_eq!((verdict.largest_error, verdict.gate), (0.3, "bound"));
        let errors = verdict.errors.unwrap();
        assert_eq!((errors.frobenius, errors.units), (4.0, 3.0));
        let statement = "in each of 4 products (figures of the worst): of 1";
        assert_eq!(verdict.statement, statement);
    }

    #[test]
    fn a_row_that_is_multiplied_by_the_b_of_another_group_is_found() {
        let groups = Groups::of(&[2, 0, 3]);
        let storage = Storage {
            groups,
            ..Storage::COMPACT
        };
        let shape = Shape::new(5, 4, 6);
        let integers = Data::SmallIntegers { largest: 3 };
        let problem = Problem::<f32>::random(shape, storage, integers, 1, 1.0, 0.0).unwrap();
        let right = |row: usize, group: usize, col: usize| -> f32 {
            let a = problem.a.row(row).iter().enumerate();
            a.map(|(l, a)| a * problem.b.row(6 * group + l)[col]).sum()
        };
        let judged = |of_row_2: usize| {
            let groups = [0, 0, of_row_2, 2, 2];
            let element = |row: usize, col| right(row, groups[row], col);
            let c = Matrix::from_elements(5, 4, element).unwrap();
            let tile = Tile { m: 1, n: 1, k: 1 };
            each_product(&problem, &c, |_, product, c| {
                exact(product, c, tile, Coverage::Full)
            })
        };
        let verdict = judged(2).unwrap();
        let all = "in each of 3 groups (figures of one): all 12 elements equal on integers";
        assert_eq!(verdict.statement, all);
        for wrong in [0, 1] {
            let failure = judged(wrong).unwrap_err().to_string();
            let named = "Product 2 of the groups, counted from 0: C[0][";
            assert!(failure.starts_with(named), "{failure}");
        }
    }
}
