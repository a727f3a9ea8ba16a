//! Statistics of a contender's times.
//!
//! - The standard deviation is that of a sample: the squared deviations over n - 1.
//! - Quartiles are interpolated as R, NumPy and spreadsheets do by default: type 7 of R. J.
//!   Hyndman and Y. Fan, "Sample Quantiles in Statistical Packages", The American Statistician
//!   50 (1996), pages 361 to 365.
//! - An outlier is outside of Tukey's fences: more than 1.5 times the interquartile range below
//!   the first or above the third quartile: J. W. Tukey, "Exploratory Data Analysis" (1977),
//!   section 2D. Times have a long tail, so most are above. Outliers are not removed.

/// The distance of a fence from its quartile, in interquartile ranges.
const FENCE: f64 = 1.5;

/// The mean; NaN for no values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sample standard deviation; none for fewer than two values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// The middle value; the mean of the two in the middle of an even number; NaN for no values.
pub fn median(values: &[f64]) -> f64 {
    quantile(&sorted(values), 0.5)
}

/// The first and the third quartile; none for fewer than four values.
pub fn quartiles(values: &[f64]) -> Option<[f64; 2]> {
    let sorted = sorted(values);
    (sorted.len() >= 4).then(|| [0.25, 0.75].map(|share| quantile(&sorted, share)))
}

/// How many values are outside of Tukey's fences.
pub fn outliers(values: &[f64]) -> usize {
    let sorted = sorted(values);
    let [first, third] = [0.25, 0.75].map(|share| quantile(&sorted, share));
    let margin = FENCE * (third - first);
    let is_outside = |value: &&f64| **value < first - margin || **value > third + margin;
    values.iter().filter(is_outside).count()
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The quantile at this share of the sorted values; NaN for no values.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let position = share * sorted.len().saturating_sub(1) as f64;
    let [below, above] = [position.floor(), position.ceil()]
        .map(|index| sorted.get(index as usize).copied().unwrap_or(f64::NAN));
    let fraction = position.fract();
    match fraction {
        // Halves are exact.
        0.5 => (below + above) / 2.0,
        _ => below + fraction * (above - below),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_relative_eq;

    /// From Python's `statistics`: `mean`, `stdev` and `quantiles(method="inclusive")`.
    #[test]
    fn figures_are_those_of_another_program() {
        let values = [4.1, 3.9, 4.0, 4.3, 3.8, 4.05, 9.7];
        assert_relative_eq!(mean(&values), 4.835714285714285, max_relative = 1e-14);
        let deviation = standard_deviation(&values).unwrap();
        assert_relative_eq!(deviation, 2.1507197023543623, max_relative = 1e-14);
        let sorted = sorted(&values);
        assert_relative_eq!(quantile(&sorted, 0.25), 3.95, max_relative = 1e-14);
        assert_relative_eq!(
            quantile(&sorted, 0.75),
            4.199999999999999,
            max_relative = 1e-14
        );
        assert_eq!(median(&values), 4.05);
        assert_eq!(outliers(&values), 1);
    }

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        assert_eq!(median(&[5.0, 1.0, 3.0]), 3.0);
        assert_eq!(median(&[4.0, 1.0, 100.0, 2.0]), 3.0);
        assert_eq!(median(&[7.0]), 7.0);
        assert_eq!(median(&[1.0, 1.0, 1.0, 1.0, 1e9]), 1.0);
    }

    #[test]
    fn one_value_deviates_from_nothing_and_is_no_outlier() {
        assert_eq!(standard_deviation(&[3.0]), None);
        assert_eq!(standard_deviation(&[3.0, 3.0]), Some(0.0));
        assert_eq!(standard_deviation(&[1.0, 3.0]), Some(2.0_f64.sqrt()));
        assert_eq!((outliers(&[]), outliers(&[3.0])), (0, 0));
    }

    /// The quartiles of 1 to 9 are 3 and 7, so that the fences are -3 and 13.
    #[test]
    fn what_is_on_a_fence_is_no_outlier_and_what_is_beyond_is_on_both_sides() {
        let with =
            |least: f64, most: f64| outliers(&[least, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, most]);
        assert_eq!(with(1.0, 9.0), 0);
        assert_eq!(with(-3.0, 13.0), 0);
        assert_eq!(with(-3.1, 13.0), 1);
        assert_eq!(with(-3.0, 13.1), 1);
        assert_eq!(with(-3.1, 13.1), 2);
    }
}
