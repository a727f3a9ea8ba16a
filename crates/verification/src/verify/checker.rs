//! Gates 2 and 3 for floats: compares elements and sums with bound and alarm, and states the
//! outcome.

// A NaN must fail every check, so conditions are negations of what must hold.
#![allow(clippy::neg_cmp_op_on_partial_ord)]

use super::alarm::Alarm;
use super::bound::ErrorBound;
use super::expected::Expected;
use super::model::ErrorModel;
use super::outcome::{Errors, Failure, Line, Mismatch, Verdict};
use super::signed_sums;
use crate::data::{Data, Matrix, Number, Problem};
use gpu_gemm::ElementType;
use gpu_gemm::text::plural;

/// Checks the elements of one problem's result.
pub(super) struct Checker {
    bound: ErrorBound,
    alarm: Option<Alarm>,
    data_type: ElementType,
}

/// The most suspicious error of some elements, and a summary of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Found {
    at: (usize, usize),
    err: f64,
    bound: f64,
    /// `err` in units of rounding of the sum of magnitudes.
    units: f64,
    /// The alarm of this element; 0 if there is none.
    limit: f64,
    /// The numbers of elements that are NaN and infinite.
    nan: usize,
    infinite: usize,
    /// The largest error of any element, in units of rounding.
    most_units: f64,
    /// The sums of the squares of errors and of expected elements, where these are finite.
    squares: (f64, f64),
}

impl Found {
    fn and(self, other: Found) -> Found {
        // An element with an alarm is more suspicious than one without.
        let suspicion = |found: &Found| match found.limit > 0.0 {
            true => (true, found.units / found.limit, found.err),
            false => (false, found.units, found.err),
        };
        let worst = match suspicion(&other) > suspicion(&self) {
            true => other,
            false => self,
        };
        let ((errors, expected), (more_errors, more_expected)) = (self.squares, other.squares);
        Found {
            nan: self.nan + other.nan,
            infinite: self.infinite + other.infinite,
            most_units: self.most_units.max(other.most_units),
            squares: (errors + more_errors, expected + more_expected),
            ..worst
        }
    }

    /// The errors of all compared elements; none if their squares are out of range.
    fn errors(&self) -> Option<Errors> {
        let frobenius = match self.squares {
            (0.0, _) => 0.0,
            (of_errors, of_expected) => (of_errors / of_expected).sqrt(),
        };
        let units = self.most_units;
        (frobenius.is_finite() && units.is_finite()).then_some(Errors { frobenius, units })
    }
}

impl Checker {
    /// A checker for results that round as `model` says, of a problem of `data`.
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

    /// The same checker for a reference that may have been rounded once.
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
        let (err, largest) = ((got - want).abs(), self.bound.largest());
        if self.bound.accepts(got, want, bound) {
            return Ok(self.found((row, col), got, bound, expected));
        }
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
        Err(Failure::Element(Mismatch {
            row,
            col,
            got,
            want,
            err,
            bound,
        }))
    }

    /// The finding for an element within its bound.
    fn found(&self, at: (usize, usize), got: f64, bound: f64, expected: Expected) -> Found {
        let err = (got - expected.want).abs();
        if !err.is_finite() {
            return Found {
                nan: usize::from(got.is_nan()),
                infinite: usize::from(got.is_infinite()),
                ..Found::default()
            };
        }
        let units = self.bound.units(err, expected);
        Found {
            at,
            err,
            bound,
            units,
            most_units: units,
            squares: (err * err, expected.want * expected.want),
            limit: self.alarm.map_or(0.0, |alarm| alarm.limit(expected)),
            ..Found::default()
        }
    }

    /// Checks the sums of all rows and columns, with random signs from `seed`. Returns a clause
    /// about them.
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

    /// That `count` elements are within the bound, unless an error raises the alarm.
    /// `compared` names them, and further checks.
    pub fn verdict(
        &self,
        found: Vec<Found>,
        gate: &'static str,
        count: usize,
        compared: &str,
    ) -> Result<Verdict, Failure> {
        let found = found.into_iter().fold(Found::default(), Found::and);
        if self.alarm.is_some() && !(found.units <= found.limit) {
            return Err(Failure::Alarm {
                row: found.at.0,
                col: found.at.1,
                statistic: found.units,
                limit: found.limit,
            });
        }
        Ok(Verdict {
            gate,
            statement: self.statement(compared, count, found),
            largest_error: found.err,
            bound: found.bound,
            errors: found.errors(),
        })
    }

    /// A clause about `count` elements that were compared.
    fn statement(&self, compared: &str, count: usize, found: Found) -> String {
        let Found { err, bound, .. } = found;
        let kinds = match (found.nan, found.infinite) {
            (0, 0) => String::new(),
            (_, 0) => "NaN".to_string(),
            (0, _) => "infinite".to_string(),
            (nan, infinite) => format!("NaN ({nan}) or infinite ({infinite})"),
        };
        let not_finite = found.nan + found.infinite;
        let are = if not_finite == 1 { "is" } else { "are" };
        if count > 0 && not_finite == count {
            return format!("{compared} {are} {kinds}, as in the reference");
        }
        let alarm = match self.alarm {
            Some(_) => format!(
                ", {:.1} units of rounding, alarm at {:.1}",
                found.units, found.limit
            ),
            None => String::new(),
        };
        let others = match not_finite {
            0 => String::new(),
            count => format!(", of which {count} {are} {kinds}, as in the reference"),
        };
        format!(
            "{compared} within the bound of rounding (largest error {err:.2e} of {bound:.2e} allowed{alarm}){others}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The row of the worse of two elements, in rows 1 and 2, given as units of rounding and
    /// alarm. The result must not depend on their order.
    fn worse(pairs: [(f64, f64); 2]) -> usize {
        let [one, other] = [1, 2].map(|row| {
            let (units, limit) = pairs[row - 1];
            Found {
                at: (row, 0),
                units,
                limit,
                ..Found::default()
            }
        });
        assert_eq!(one.and(other), other.and(one));
        one.and(other).at.0
    }

    #[test]
    fn the_worst_element_is_the_nearest_to_its_alarm_or_has_the_largest_error() {
        assert_eq!(worse([(30.0, 60.0), (20.0, 30.0)]), 2);
        assert_eq!(worse([(2.0, 0.5), (3.0, 1.0)]), 1);
        // Without an alarm, and beside an element with one.
        assert_eq!(worse([(2.0, 0.0), (3.0, 0.0)]), 2);
        assert_eq!(worse([(9.0, 0.0), (1.0, 60.0)]), 2);
    }
}
