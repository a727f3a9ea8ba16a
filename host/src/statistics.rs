//! Statistics of a contender's times.
//!
//! - The standard deviation is that of a sample: the squared deviations over n - 1.
//! - Quartiles are interpolated as R, NumPy and spreadsheets do by default: type 7 of R. J.
//!   Hyndman and Y. Fan, "Sample Quantiles in Statistical Packages", The American Statistician
//!   50 (1996), pages 361 to 365.

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
        let [first, third] = quartiles(&values).unwrap();
        assert_relative_eq!(first, 3.95, max_relative = 1e-14);
        assert_relative_eq!(third, 4.199999999999999, max_relative = 1e-14);
        assert_eq!(median(&values), 4.05);
    }

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        assert_eq!(median(&[5.0, 1.0, 3.0]), 3.0);
        assert_eq!(median(&[4.0, 1.0, 100.0, 2.0]), 3.0);
        assert_eq!(median(&[7.0]), 7.0);
        assert_eq!(median(&[1.0, 1.0, 1.0, 1.0, 1e9]), 1.0);
    }

    #[test]
    fn one_value_deviates_from_nothing_and_few_have_no_quartiles() {
        assert_eq!(standard_deviation(&[3.0]), None);
        assert_eq!(standard_deviation(&[3.0, 3.0]), Some(0.0));
        assert_eq!(standard_deviation(&[1.0, 3.0]), Some(2.0_f64.sqrt()));
        assert_eq!(quartiles(&[1.0, 2.0, 3.0]), None);
    }
}
