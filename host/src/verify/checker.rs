//! Gates 2 and 3: elements and sums against bound and alarm, and what is said of them.

// A NaN must fail every comparison, so they are written as what must hold, negated.
#![allow(clippy::neg_cmp_op_on_partial_ord)]

use super::alarm::Alarm;
use super::bound::{ErrorBound, ErrorModel};
use super::compensated::is_as_fine_as_f64;
use super::outcome::{Errors, Failure, Line, Mismatch, Proof};
use super::reference::Expected;
use super::signed_sums::{self, Sums};
use crate::data::{Data, Matrix, Number, Problem};
use gpu_gemm::text::plural;

/// What the elements of a problem's result are checked against.
pub(super) struct Checker {
    bound: ErrorBound,
    alarm: Option<Alarm>,
}

/// What was found of some elements: the most suspicious error, and how many are not finite.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Found {
    at: (usize, usize),
    err: f64,
    bound: f64,
    /// `err` in units of rounding of the sum of magnitudes.
    units: f64,
    /// The alarm of this element; 0 if there is none.
    limit: f64,
    nan: usize,
    infinite: usize,
    /// The most units of rounding of any element, and the sums of the squares of errors and of
    /// what was expected, of those that are finite.
    most_units: f64,
    squares: (f64, f64),
}

impl Found {
    fn and(self, other: Found) -> Found {
        let suspicion = |found: &Found| match found.limit > 0.0 {
            true => found.units / found.limit,
            false => found.units,
        };
        let is_first = self.limit == 0.0 && other.limit > 0.0;
        let worst = match is_first || suspicion(&other) > suspicion(&self) {
            true => other,
            false => self,
        };
        Found {
            nan: self.nan + other.nan,
            infinite: self.infinite + other.infinite,
            most_units: self.most_units.max(other.most_units),
            squares: (
                self.squares.0 + other.squares.0,
                self.squares.1 + other.squares.1,
            ),
            ..worst
        }
    }

    /// The errors of all that was compared; none if squares are out of range.
    fn errors(&self) -> Option<Errors> {
        let (of_errors, of_expected) = self.squares;
        let frobenius = match of_errors {
            0.0 => 0.0,
            _ => (of_errors / of_expected).sqrt(),
        };
        let is_known = frobenius.is_finite() && self.most_units.is_finite();
        is_known.then_some(Errors {
            frobenius,
            units: self.most_units,
        })
    }
}

impl Checker {
    /// For results that round as `model` says, of a problem that holds `data`.
    ///
    /// # Errors
    ///
    /// There is no bound.
    pub fn new<T: Number>(
        problem: &Problem<T>,
        data: Option<Data>,
        model: ErrorModel,
    ) -> Result<Checker, Failure> {
        Ok(Checker {
            bound: ErrorBound::of_model(problem, model)?,
            alarm: Alarm::new(problem, data, model),
        })
    }

    /// The same for a reference of `T` that was rounded once itself.
    pub fn with_rounded_reference<T: Number>(self) -> Checker {
        match is_as_fine_as_f64::<T>() {
            true => Checker {
                bound: self.bound.with_another_rounding(),
                ..self
            },
            // What f64 rounds away of f32 is not counted.
            false => self,
        }
    }

    /// Checks the elements of a row against the bound.
    pub fn check_row<T: Number>(
        &self,
        got: &Matrix<T>,
        row: usize,
        expected: impl Iterator<Item = Expected>,
    ) -> Result<Found, Failure> {
        let mut found = Found::default();
        for (col, (element, expected)) in got.row(row).iter().zip(expected).enumerate() {
            found = found.and(self.check(row, col, *element, expected)?);
        }
        Ok(found)
    }

    /// Checks one element against the bound.
    pub fn check<T: Number>(
        &self,
        row: usize,
        col: usize,
        got: T,
        expected: Expected,
    ) -> Result<Found, Failure> {
        self.check_value::<T>(row, col, got.to_f64(), expected)
    }

    /// The same for an element of `T` that was read already.
    pub fn check_value<T: Number>(
        &self,
        row: usize,
        col: usize,
        got: f64,
        expected: Expected,
    ) -> Result<Found, Failure> {
        let Expected { want, magnitude } = expected;
        let bound = self.bound.of_element(row, col, expected);
        let err = (got - want).abs();
        if !self.bound.accepts(got, want, bound) {
            let largest = self.bound.largest();
            if !got.is_finite() && want.is_finite() && magnitude > largest {
                return Err(Failure::Overflow {
                    row,
                    col,
                    got,
                    want,
                    magnitude,
                    largest,
                    data_type: T::TYPE,
                });
            }
            return Err(Failure::Element(Mismatch {
                row,
                col,
                got,
                want,
                err,
                bound,
            }));
        }
        if !err.is_finite() {
            return Ok(Found {
                nan: usize::from(got.is_nan()),
                infinite: usize::from(got.is_infinite()),
                ..Found::default()
            });
        }
        let units = self.bound.units(err, expected);
        Ok(Found {
            at: (row, col),
            err,
            bound,
            units,
            most_units: units,
            squares: (err * err, want * want),
            limit: self.alarm.map_or(0.0, |alarm| alarm.limit(expected)),
            ..Found::default()
        })
    }

    /// Checks the sums of all rows and columns with random signs, which `seed` gives. Returns a
    /// clause about them.
    pub fn check_sums<T: Number>(
        &self,
        problem: &Problem<T>,
        got: &Sums,
        seed: u64,
    ) -> Result<String, Failure> {
        let shape = problem.shape();
        let terms = shape.m + shape.n + shape.k;
        let rows = signed_sums::of_rows(problem, &got.rows, seed);
        let columns = signed_sums::of_columns(problem, &got.columns, seed);
        let check = |line, lines, count| {
            let checked = self
                .bound
                .check_sums(line, lines, count, terms, self.alarm)?;
            Ok((checked, lines.len()))
        };
        let of_rows = check(Line::Row, &rows[..], shape.n)?;
        let of_columns = check(Line::Column, &columns[..], shape.m)?;
        Ok(match (of_rows, of_columns) {
            ((rows, m), (columns, n)) if rows == m && columns == n => {
                "the sums of every row and column".to_string()
            }
            ((rows, m), (columns, n)) => format!(
                "the sums of {rows} of {} and {columns} of {} (the others overflow or are not finite)",
                plural(m, "row"),
                plural(n, "column")
            ),
        })
    }

    /// The proof of `count` elements that are within the bound, unless an error raises the alarm.
    /// `compared` names them, and what else was checked.
    pub fn proof(
        &self,
        found: Vec<Found>,
        gate: &'static str,
        count: usize,
        compared: String,
    ) -> Result<Proof, Failure> {
        let found = found.into_iter().fold(Found::default(), Found::and);
        let Found {
            at, units, limit, ..
        } = found;
        if self.alarm.is_some() && !(units <= limit) {
            return Err(Failure::Alarm {
                row: at.0,
                col: at.1,
                statistic: units,
                limit,
            });
        }
        Ok(Proof {
            gate,
            statement: self.statement(&compared, count, found),
            largest_error: found.err,
            bound: found.bound,
            errors: found.errors(),
        })
    }

    /// What is said of what was compared.
    fn statement(&self, compared: &str, count: usize, found: Found) -> String {
        let Found {
            err,
            bound,
            units,
            limit,
            nan,
            infinite,
            ..
        } = found;
        let kinds = match (nan, infinite) {
            (0, 0) => String::new(),
            (_, 0) => "NaN".to_string(),
            (0, _) => "infinite".to_string(),
            (nan, infinite) => format!("NaN ({nan}) or infinite ({infinite})"),
        };
        let not_finite = nan + infinite;
        let are = if not_finite == 1 { "is" } else { "are" };
        if count > 0 && not_finite == count {
            return format!("{compared} {are} {kinds}, as in the reference");
        }
        let mut statement = format!(
            "{compared} within the bound of rounding (largest error {err:.2e} of {bound:.2e} allowed"
        );
        if self.alarm.is_some() {
            statement += &format!(", {units:.1} units of rounding, alarm at {limit:.1}");
        }
        statement += ")";
        if not_finite > 0 {
            statement += &format!(", of which {not_finite} {are} {kinds}, as in the reference");
        }
        statement
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Layout;
    use gpu_gemm::Shape;

    fn checker(data: Option<Data>, model: ErrorModel) -> Checker {
        let shape = Shape::new(3, 4, 14);
        let layout = Layout::compact(shape);
        let problem = Problem::<f32>::random(shape, layout, Data::Uniform, 1, 1.0, 0.0).unwrap();
        Checker::new(&problem, data, model).unwrap()
    }

    fn with_alarm() -> Checker {
        checker(Some(Data::Uniform), ErrorModel::Elementwise)
    }

    fn without_alarm() -> Checker {
        checker(None, ErrorModel::Tf32)
    }

    /// An element in row `row` that is off by so many units, where `limit` raise the alarm.
    fn found(row: usize, units: f64, limit: f64) -> Found {
        Found {
            at: (row, 0),
            units,
            limit,
            ..Found::default()
        }
    }

    /// The row of the worse one, and that it is the same in either order.
    fn worse(one: Found, other: Found) -> usize {
        let worse = one.and(other);
        assert_eq!(worse, other.and(one));
        worse.at.0
    }

    #[test]
    fn of_elements_with_an_alarm_the_nearest_to_it_is_the_worst() {
        assert_eq!(worse(found(1, 30.0, 60.0), found(2, 20.0, 30.0)), 2);
        assert_eq!(worse(found(1, 2.0, 0.5), found(2, 3.0, 1.0)), 1);
    }

    #[test]
    fn of_elements_without_an_alarm_the_one_with_the_largest_error_is_the_worst() {
        assert_eq!(worse(found(1, 2.0, 0.0), found(2, 3.0, 0.0)), 2);
    }

    #[test]
    fn of_elements_that_are_equally_bad_the_first_is_named() {
        for (units, limit) in [(3.0, 0.0), (3.0, 32.0), (0.0, 32.0)] {
            let worst = found(1, units, limit).and(found(2, units, limit));
            assert_eq!(worst.at.0, 1, "{units} {limit}");
        }
    }

    /// The alarm of the first takes the place of none.
    #[test]
    fn an_element_without_an_error_is_found_where_there_is_none_yet() {
        for limit in [0.5, 32.0] {
            assert_eq!(Found::default().and(found(2, 0.0, limit)).at.0, 2);
        }
    }

    #[test]
    fn an_element_has_a_limit_only_where_there_is_an_alarm() {
        let expected = Expected {
            want: 1.0,
            magnitude: 2.0,
        };
        let limit_of = |checker: Checker| checker.check(0, 0, 1f32, expected).unwrap().limit;
        assert_eq!(limit_of(with_alarm()), 32.0);
        assert_eq!(limit_of(without_alarm()), 0.0);
    }

    #[test]
    fn only_terms_that_add_up_to_more_than_the_largest_number_overflow() {
        let largest = f64::from(f32::MAX);
        let failure = |magnitude| {
            let expected = Expected {
                want: 0.0,
                magnitude,
            };
            with_alarm().check(1, 2, f32::INFINITY, expected)
        };
        assert!(matches!(failure(largest), Err(Failure::Element(_))));
        let beyond = failure(largest.next_up());
        assert!(matches!(beyond, Err(Failure::Overflow { .. })));
    }

    /// Four elements of 2^126, which together are 2^128.
    #[test]
    fn sums_that_overflow_along_rows_alone_or_columns_alone_are_counted() {
        let clause = |shape: Shape| {
            let matrix = |rows, columns, element: f32| {
                Matrix::from_elements(rows, columns, |_, _| element).unwrap()
            };
            let (a, b) = (
                matrix(shape.m, 1, 2f32.powi(63)),
                matrix(1, shape.n, 2f32.powi(63)),
            );
            let c = matrix(shape.m, shape.n, 0.0);
            let problem = Problem::new(1.0, 0.0, a, b, c).unwrap();
            let right = matrix(shape.m, shape.n, 2f32.powi(126));
            let checker = Checker::new(&problem, None, ErrorModel::Elementwise).unwrap();
            checker
                .check_sums(&problem, &Sums::of(&right, 1), 1)
                .unwrap()
        };
        assert_eq!(
            clause(Shape::new(1, 4, 1)),
            "the sums of 0 of 1 row and 4 of 4 columns (the others overflow or are not finite)"
        );
        assert_eq!(
            clause(Shape::new(4, 1, 1)),
            "the sums of 4 of 4 rows and 0 of 1 column (the others overflow or are not finite)"
        );
        assert_eq!(
            clause(Shape::new(1, 3, 1)),
            "the sums of every row and column"
        );
    }

    /// What is said of so many elements.
    fn said(checker: &Checker, count: usize, nan: usize, infinite: usize) -> String {
        let found = Found {
            at: (1, 2),
            err: 1.5e-7,
            bound: 2.25e-6,
            units: 1.5,
            limit: 32.0,
            nan,
            infinite,
            ..Found::default()
        };
        checker.statement("these", count, found)
    }

    #[test]
    fn a_statement_says_how_large_errors_are_and_may_be() {
        let within = "these within the bound of rounding (largest error 1.50e-7 of 2.25e-6 allowed";
        for count in [0, 1, 2] {
            assert_eq!(
                said(&with_alarm(), count, 0, 0),
                format!("{within}, 1.5 units of rounding, alarm at 32.0)")
            );
            assert_eq!(said(&without_alarm(), count, 0, 0), format!("{within})"));
        }
    }

    #[test]
    fn a_statement_counts_what_is_not_finite() {
        let within = said(&without_alarm(), 4, 0, 0);
        for (nan, infinite, are) in [
            (1, 0, "1 is NaN"),
            (2, 0, "2 are NaN"),
            (0, 1, "1 is infinite"),
            (0, 3, "3 are infinite"),
            (1, 1, "2 are NaN (1) or infinite (1)"),
            (2, 1, "3 are NaN (2) or infinite (1)"),
        ] {
            assert_eq!(
                said(&without_alarm(), 4, nan, infinite),
                format!("{within}, of which {are}, as in the reference")
            );
        }
    }

    #[test]
    fn a_statement_of_elements_none_of_which_is_finite_says_so() {
        for (nan, infinite, are) in [
            (1, 0, "is NaN"),
            (0, 1, "is infinite"),
            (2, 0, "are NaN"),
            (0, 2, "are infinite"),
            (1, 2, "are NaN (1) or infinite (2)"),
        ] {
            assert_eq!(
                said(&with_alarm(), nan + infinite, nan, infinite),
                format!("these {are}, as in the reference")
            );
        }
    }
}
