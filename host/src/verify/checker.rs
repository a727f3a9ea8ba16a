//! Gates 2 and 3: elements and sums against bound and alarm, and what is said of them.

// A NaN must fail every comparison, so they are written as what must hold, negated.
#![allow(clippy::neg_cmp_op_on_partial_ord)]

use super::alarm::Alarm;
use super::bound::{ErrorBound, ErrorModel};
use super::compensated::is_as_fine_as_f64;
use super::outcome::{Failure, Line, Mismatch, Proof};
use super::reference::Expected;
use super::signed_sums;
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
            ..worst
        }
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
        let Expected { want, magnitude } = expected;
        let got = got.to_f64();
        let bound = self.bound.of(magnitude);
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
        Ok(Found {
            at: (row, col),
            err,
            bound,
            units: self.bound.units(err, magnitude),
            limit: self.alarm.map_or(0.0, |alarm| alarm.limit(expected)),
            ..Found::default()
        })
    }

    /// Checks the sums of all rows and columns with random signs. Returns a clause about them.
    pub fn check_sums<T: Number>(
        &self,
        problem: &Problem<T>,
        got: &Matrix<T>,
        seed: u64,
    ) -> Result<String, Failure> {
        let shape = problem.shape();
        let terms = shape.m + shape.n + shape.k;
        let rows = signed_sums::of_rows(problem, got, seed);
        let columns = signed_sums::of_columns(problem, got, seed);
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
        if count > 0 && nan + infinite == count {
            return format!("{compared} are {kinds}, as in the reference");
        }
        let mut statement = format!(
            "{compared} within the bound of rounding (largest error {err:.2e} of {bound:.2e} allowed"
        );
        if self.alarm.is_some() {
            statement += &format!(", {units:.1} units of rounding, alarm at {limit:.1}");
        }
        statement += ")";
        if nan + infinite > 0 {
            let are = nan + infinite;
            statement += &format!(", of which {are} are {kinds}, as in the reference");
        }
        statement
    }
}
