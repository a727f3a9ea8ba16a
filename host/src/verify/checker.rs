//! Gates 2 and 3: elements and sums against bound and alarm, and what is said of them.

// A NaN must fail every comparison, so they are written as what must hold, negated.
#![allow(clippy::neg_cmp_op_on_partial_ord)]

use super::alarm::Alarm;
use super::bound::ErrorBound;
use super::model::ErrorModel;
use super::outcome::{Errors, Failure, Line, Mismatch, Proof};
use super::reference::Expected;
use super::signed_sums;
use crate::data::{Data, Matrix, Number, Problem};
use gpu_gemm::ElementType;
use gpu_gemm::text::plural;

/// What the elements of a problem's result are checked against.
pub(super) struct Checker {
    bound: ErrorBound,
    alarm: Option<Alarm>,
    data_type: ElementType,
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
            bound: ErrorBound::new(problem, model)?,
            alarm: Alarm::new(problem, data, model),
            data_type: T::TYPE,
        })
    }

    /// The same for a reference that may have been rounded once itself.
    pub fn with_rounded_reference(self) -> Checker {
        let bound = self.bound.with_rounded_reference();
        Checker { bound, ..self }
    }

    /// Checks the elements of a row against the bound.
    pub fn check_row<T: Number>(
        &self,
        got: &Matrix<T>,
        row: usize,
        expected: &[Expected],
    ) -> Result<Found, Failure> {
        let pairs = got.row(row).iter().zip(expected).enumerate();
        let mut checked = pairs.map(|(col, (got, want))| self.check(row, col, got.to_f64(), *want));
        checked.try_fold(Found::default(), |all, found| Ok(all.and(found?)))
    }

    /// Checks one element against the bound.
    pub fn check(
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
                    data_type: self.data_type,
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
        (rows, columns): (&[f64], &[f64]),
        seed: u64,
    ) -> Result<String, Failure> {
        let shape = problem.shape();
        let terms = shape.m + shape.n + shape.k;
        let rows = signed_sums::of_rows(problem, rows, seed);
        let columns = signed_sums::of_columns(problem, columns, seed);
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
        compared: &str,
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
            statement: self.statement(compared, count, found),
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
    fn only_terms_that_add_up_to_more_than_the_largest_number_overflow() {
        let largest = f64::from(f32::MAX);
        let failure = |magnitude| {
            let expected = Expected {
                want: 0.0,
                magnitude,
            };
            with_alarm().check(1, 2, f64::INFINITY, expected)
        };
        assert!(matches!(failure(largest), Err(Failure::Element(_))));
        let beyond = failure(largest.next_up());
        assert!(matches!(beyond, Err(Failure::Overflow { .. })));
    }
}
