//! Suspicious errors: within the bound, but larger than expected for such data. This detects a
//! dropped term, or inputs of reduced precision.
//!
//! Errors are counted in units of rounding: u times the sum of the magnitudes of an element's
//! terms. For random data the usual errors are known. On data of either sign and on positive data,
//! sequential sums gave 5 and 16 units at k = 256, 3 and 88 at k = 16384.
//!
//! Other data has an alarm of its own. The errors of a sum follow its partial sums: where terms
//! cancel, these stay near `sqrt(k)` for `k` terms; where none does, they grow with each term, and
//! errors with `sqrt(k)` units, as for positive data. `|want|` over the magnitude tells these
//! cases apart. Where all roundings are alike, as in sums of one number, they do not cancel at
//! all: so some elements are added up sequentially, and the limit is at least four times their
//! error.

use rand::RngExt;
use rand_pcg::Pcg64;

use super::expected::Expected;
use super::model::ErrorModel;
use super::reference;
use super::strassen::Growth;
use crate::data::{Arithmetic, Data, Number, Problem};
use crate::parallel;

/// The error, in units of rounding, above which a result is suspicious.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alarm {
    /// The limit of an element with terms that cancel.
    base: f64,
    /// What is added to it for an element as large as all its terms together.
    slope: f64,
    /// Whether the elements of each row, and of each column, have similar magnitudes, so that
    /// their errors partly cancel in a sum.
    is_even: bool,
}

impl Alarm {
    /// The alarm for results that round as `model` says; `None` if it is not known.
    pub fn new<T: Number>(
        problem: &Problem<T>,
        data: Option<Data>,
        model: ErrorModel,
    ) -> Option<Alarm> {
        let (shape, k) = (problem.shape(), problem.shape().k as f64);
        let known = data.and_then(|data| limit_of(data, k));
        let is_positive = data == Some(Data::Positive);
        let base = match model {
            ErrorModel::Elementwise => match known {
                Some(base) => base,
                None => {
                    let terms = k + 2.0;
                    return Some(Alarm {
                        base: (32.0 + terms.sqrt()).max(4.0 * sequential(problem)),
                        slope: 9.0 * terms.sqrt(),
                        is_even: true,
                    });
                }
            },
            // Two roundings of a unit each; or, in the worst case, all roundings twice over.
            ErrorModel::Compensated if known.is_some() => 4.0,
            ErrorModel::Compensated => 10.0,
            ErrorModel::Tf32 | ErrorModel::ReducedInHalves => return None,
            ErrorModel::RoundedTf32 => known? + of_tf32(k) + cut_off(k, is_positive),
            ErrorModel::Truncated => known? + cut_off(k, is_positive),
            // Elements much smaller than the largest have errors as large as the largest ones'.
            ErrorModel::Split | ErrorModel::Promoted { .. } if data == Some(Data::Wide) => {
                return None;
            }
            ErrorModel::Strassen { .. } if matches!(data, Some(Data::Graded | Data::Wide)) => {
                return None;
            }
            // Sums are promoted after 128 products.
            ErrorModel::Split => known? + cut_off(k.min(128.0), is_positive),
            ErrorModel::Promoted { interval } => known? + of_14_bits(k, interval, is_positive),
            // In experiments each level at most tripled errors.
            ErrorModel::Strassen { cutoff } => {
                let levels = Growth::new(shape, cutoff, 0.0).levels;
                known? * 3f64.powi(levels.cast_signed())
            }
        };
        Some(Alarm {
            base,
            slope: 0.0,
            is_even: data != Some(Data::Graded),
        })
    }

    /// The limit for an element.
    pub fn limit(self, expected: Expected) -> f64 {
        let part = expected.want.abs() / expected.magnitude;
        // An element without terms has a NaN here, for which `min` gives 1.
        self.base + self.slope * part.min(1.0)
    }

    /// The limit for a sum of `count` elements with random signs, in units of rounding of the sum
    /// of their magnitudes; `None` where the magnitudes are not known. Errors of either sign add
    /// up like their root mean square times `sqrt(count)`, and the root mean square is far below
    /// the limit; but not where a few elements are larger than all others together.
    pub fn limit_of_sum(self, count: usize) -> Option<f64> {
        let count = if self.is_even { count } else { 1 };
        (self.slope == 0.0).then(|| self.base / (count as f64).sqrt().max(1.0))
    }
}

/// An error that sums of `k` products of such data never reached in experiments.
fn limit_of(data: Data, k: f64) -> Option<f64> {
    match data {
        // Powers of two do not round: errors are as for normal data.
        Data::Uniform | Data::Normal | Data::Graded | Data::Wide => Some(32.0),
        Data::Positive => Some(9.0 * (k + 2.0).sqrt()),
        _ => None,
    }
}

/// The error of sums of `k` products due to rounding elements to TF32, in units of rounding of
/// f32.
///
/// In the root mean square, rounding changes an element by 0.42 * 2^-11 of it and a product by
/// 0.6 * 2^-11, with either sign: sums of k products are off by 0.6 * 2^-11 * sqrt(k) of a
/// product's root mean square, which is at most pi / 2 (for normal data) times its mean magnitude.
/// That is 7720 / sqrt(k) units; not one of some billion elements is off by 6.5 times that. With
/// bf16, which has eight times the error, nearly half of all elements are.
fn of_tf32(k: f64) -> f64 {
    50_000.0 / k.max(1.0).sqrt()
}

/// Tensor cores truncate, and this adds up: an addition of 8 products loses about 3 units of the
/// partial sum, on average half of the last one where all terms are positive, else its root.
fn cut_off(k: f64, is_positive: bool) -> f64 {
    if is_positive { k } else { k.sqrt() }
}

/// The error of sums of `k` products of e4m3 that tensor cores add up with 14 bits, `interval` of
/// them before each addition in f32, in units of rounding of f32. In experiments by the simulator's
/// model, of 20,000 sums each, errors were at most:
///
/// | data | k | promoted after 128 | not promoted |
/// | --- | --- | --- | --- |
/// | normal | 128, 1024, 4096 | 3641, 547, 235 | 3641, 5007, 5698 |
/// | positive | 128, 1024, 4096 | 19,082, 11,693, 9948 | 19,082, 264,838, 1,191,708 |
///
/// Not promoted, the largest of the 2^24 errors of a product on an H200, normal, k = 4096, was
/// 8982, in this project's kernel as in cuBLAS's.
fn of_14_bits(k: f64, interval: usize, is_positive: bool) -> f64 {
    let in_order = (k.min(interval as f64) / 128.0).max(1.0);
    match is_positive {
        true => 60_000.0 * in_order,
        false if in_order > 1.0 => 200_000.0 / k.sqrt() * in_order.sqrt(),
        false => 100_000.0 / k.max(1.0).sqrt(),
    }
}

/// The largest error, in units of rounding, of some elements that are added up sequentially.
fn sequential<T: Number>(problem: &Problem<T>) -> f64 {
    const ELEMENTS: usize = 64;
    let shape = problem.shape();
    let Arithmetic::Float { unit_roundoff, .. } = T::ARITHMETIC else {
        return 0.0;
    };
    if shape.is_empty() || problem.alpha == T::default() {
        return 0.0;
    }
    let mut generator = Pcg64::new(0, 0xa1a_4e55);
    let places = [(); ELEMENTS].map(|()| {
        let row = generator.random_range(0..shape.m);
        (row, generator.random_range(0..shape.n))
    });
    let errors = parallel::map(ELEMENTS, |index| {
        let (row, col) = places[index];
        let got = reference::in_own_type(problem, row, col..col + 1)[0].to_f64();
        let expected = reference::element(problem, row, col);
        (got - expected.want).abs() / (unit_roundoff * expected.magnitude)
    });
    let finite = errors.into_iter().filter(|error| error.is_finite());
    finite.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Matrix, Storage};
    use gpu_gemm::Shape;

    const ELEMENTWISE: ErrorModel = ErrorModel::Elementwise;
    const STRASSEN: ErrorModel = ErrorModel::Strassen { cutoff: 2 };

    /// The alarms for 3 x 4 sums of k terms, if the kind of data is known, and if it is not.
    fn of_random(k: usize, data: Data, model: ErrorModel) -> [Option<Alarm>; 2] {
        let shape = Shape::new(3, 4, k);
        let compact = Storage::COMPACT;
        let problem = Problem::<f32>::random(shape, compact, data, 1, 1.0, 0.0).unwrap();
        [Some(data), None].map(|data| Alarm::new(&problem, data, model))
    }

    /// A problem of 4 x 4 sums of k terms.
    fn problem(k: usize, element: impl Fn(usize) -> f32 + Sync) -> Problem<f32> {
        let matrix = |rows: usize, columns: usize| {
            let element = |row, col| element(row * columns + col);
            Matrix::from_elements(rows, columns, element).unwrap()
        };
        Problem::new(1.0, 0.0, matrix(4, k), matrix(k, 4), matrix(4, 4)).unwrap()
    }

    /// Split sums are promoted after 128 terms; one level of Strassen's algorithm halves 3 x 4 x 98.
    #[test]
    fn known_data_has_the_limit_that_it_was_seen_to_stay_below() {
        let (root, tf32) = (98f64.sqrt(), 50_000.0 / 98f64.sqrt());
        for (data, model, limit) in [
            (Data::Normal, ELEMENTWISE, Some(32.0)),
            (Data::Positive, ELEMENTWISE, Some(90.0)),
            (Data::Normal, ErrorModel::Compensated, Some(4.0)),
            (Data::Normal, ErrorModel::Truncated, Some(32.0 + root)),
            (Data::Positive, ErrorModel::Truncated, Some(90.0 + 98.0)),
            (
                Data::Normal,
                ErrorModel::RoundedTf32,
                Some(32.0 + tf32 + root),
            ),
            (Data::Graded, ErrorModel::Split, Some(32.0 + root)),
            (
                Data::Normal,
                ErrorModel::Promoted { interval: 128 },
                Some(32.0 + 2.0 * tf32),
            ),
            (Data::Uniform, STRASSEN, Some(96.0)),
            // Small elements lose bits beside large ones.
            (Data::Wide, ErrorModel::Split, None),
            (Data::Graded, STRASSEN, None),
            (Data::Uniform, ErrorModel::Tf32, None),
        ] {
            let [known, unknown] = of_random(98, data, model);
            let found = known.map(|alarm| alarm.limit(Expected::default()));
            let is_close = |found: f64| (found / limit.unwrap_or(0.0) - 1.0).abs() < 1e-12;
            assert!(
                found.map_or(limit.is_none(), is_close),
                "{data:?} {model:?} {found:?}"
            );
            // Errors of a hundred elements of one size cancel down to a tenth; others do not.
            let share = if data == Data::Graded { 1.0 } else { 0.1 };
            let of_sum = known.and_then(|alarm| alarm.limit_of_sum(100));
            let expected = found.map_or(0.0, |limit| limit * share);
            assert!((of_sum.unwrap_or(0.0) - expected).abs() <= 1e-12 * expected);
            let has_own = matches!(model, ErrorModel::Elementwise | ErrorModel::Compensated);
            assert_eq!(unknown.is_some(), has_own, "{model:?}");
        }
        let [_, unknown] = of_random(98, Data::Normal, ErrorModel::Compensated);
        assert_eq!(unknown.unwrap().base, 10.0);
    }

    #[test]
    fn elements_whose_terms_do_not_cancel_may_be_off_by_more() {
        let some = problem(98, |index| (index % 7) as f32 - 3.0);
        let alarm = Alarm::new(&some, None, ELEMENTWISE).unwrap();
        for (want, limit) in [(0.0, 42.0), (-4.0, 42.0 + 45.0), (8.0, 42.0 + 90.0)] {
            let magnitude = 8.0;
            assert_eq!(alarm.limit(Expected { want, magnitude }), limit);
        }
        assert_eq!(alarm.limit_of_sum(4), None);
    }

    #[test]
    fn roundings_that_are_alike_raise_the_limit_by_what_they_lose() {
        let many = problem(1 << 15, |_| 0.1);
        let lost = sequential(&many);
        assert!(lost > 100.0, "{lost}");
        assert_eq!(
            Alarm::new(&many, None, ELEMENTWISE).unwrap().base,
            4.0 * lost
        );
    }
}
