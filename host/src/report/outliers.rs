//! The note for contenders with many outliers.

use super::record::Record;

/// A smaller share of outliers is normal: with normally distributed times, every fourth list of 20
/// has one (D. Hoaglin, B. Iglewicz and J. W. Tukey, "Performance of Some Resistant Rules for
/// Outlier Labeling", JASA 81 (1986), pages 991 to 999).
const SHARE: f64 = 0.1;
const FEWEST: usize = 2;
/// Outliers within this share of the median do not matter either.
const NEAR: f64 = 0.05;

impl Record {
    /// Whether its outliers are worth a note: many, and far from the median.
    fn has_many_outliers(&self) -> bool {
        let (Some(outliers), Some(runs)) = (self.outliers, self.runs) else {
            return false;
        };
        let is_far = |(min, max): (f64, f64)| {
            let median = self.time_median_s.unwrap_or(f64::NAN);
            max - median > NEAR * median || median - min > NEAR * median
        };
        outliers >= FEWEST
            && outliers as f64 > SHARE * runs as f64
            && self.extremes().is_some_and(is_far)
    }
}

/// A note below a table, if it has many outliers.
pub fn outlier_note<'a>(records: impl IntoIterator<Item = &'a Record>) -> Option<String> {
    let named: Vec<String> = records
        .into_iter()
        .filter(|record| record.has_many_outliers())
        .filter_map(|record| {
            let (outliers, runs) = (record.outliers?, record.runs?);
            Some(format!("{} ({outliers} of {runs} runs)", record.kernel))
        })
        .collect();
    (!named.is_empty()).then(|| {
        format!(
            "note: many outliers: {}. Other programs or a changing clock may have disturbed the \
             runs; stop other programs, or take more runs with --runs and --warmup.",
            named.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(outliers: usize, runs: usize, most: f64) -> Record {
        Record {
            kernel: "naive".into(),
            runs: Some(runs),
            outliers: Some(outliers),
            time_median_s: Some(1.0),
            time_min_s: Some(0.99),
            time_max_s: Some(most),
            ..Record::default()
        }
    }

    #[test]
    fn only_many_outliers_that_are_far_off_are_worth_a_note() {
        for (outliers, runs, most, is_noted) in [
            (3, 20, 1.2, true),
            (2, 20, 1.2, false),
            (2, 10, 1.2, true),
            (1, 5, 1.2, false),
            (3, 20, 1.04, false),
        ] {
            let noted = outlier_note([&record(outliers, runs, most)]).is_some();
            assert_eq!(noted, is_noted, "{outliers} of {runs}, {most}");
        }
        let early = Record {
            time_min_s: Some(0.9),
            ..record(3, 20, 1.0)
        };
        assert!(outlier_note([&early]).is_some());
        assert_eq!(outlier_note([&Record::default()]), None);
    }
}
