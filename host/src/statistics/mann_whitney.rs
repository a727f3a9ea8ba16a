//! The Mann-Whitney U test (the Wilcoxon rank-sum test): whether the values of one sample tend to
//! be larger than those of another, whatever their distribution.
//!
//! H. B. Mann and D. R. Whitney, "On a Test of Whether one of Two Random Variables is
//! Stochastically Larger than the Other", The Annals of Mathematical Statistics 18 (1947), pages
//! 50 to 60. Go's `benchstat` uses it, too.
//!
//! For up to [`MOST_EXACT`] values, the p-value is exact: it counts all ways to divide the values
//! into two samples of these sizes, where equal values share the mean of their ranks. For more, it
//! comes from the normal distribution, with the corrections for ties and for continuity, as in R's
//! `wilcox.test`.

use super::sorted;

/// The largest number of values, in both samples together, with an exact p-value: every count of
/// ways is below 2^53.
const MOST_EXACT: usize = 50;

/// The two-sided p-value: the probability that two samples of one distribution differ at least as
/// much as these. 1 if one is empty.
pub fn mann_whitney(one: &[f64], other: &[f64]) -> f64 {
    if one.is_empty() || other.is_empty() {
        return 1.0;
    }
    let all = sorted(&[one, other].concat());
    // Twice the mean rank of the equal values, which is a whole number.
    let rank = |value: f64| {
        let first = all.partition_point(|other| *other < value);
        let last = all.partition_point(|other| *other <= value);
        first + last + 1
    };
    let sum: usize = one.iter().map(|value| rank(*value)).sum();
    match all.len() <= MOST_EXACT {
        true => {
            let ranks: Vec<usize> = all.iter().map(|value| rank(*value)).collect();
            exact(&ranks, one.len(), sum)
        }
        false => approximate(&all, [one.len(), other.len()], sum),
    }
}

/// The smallest p-value that samples of these sizes can have: every value of one is below all of
/// the other.
pub fn smallest_p_value(one: usize, other: usize) -> f64 {
    mann_whitney(&vec![0.0; one], &vec![1.0; other])
}

/// Counts the ways to pick `picked` of the doubled ranks with a sum of at most, and of at least,
/// `sum`.
fn exact(ranks: &[usize], picked: usize, sum: usize) -> f64 {
    let most: usize = ranks.iter().sum();
    // ways[count][total]: to pick `count` of the ranks so far that add up to `total`.
    let mut ways = vec![vec![0.0; most + 1]; picked + 1];
    ways[0][0] = 1.0;
    for &rank in ranks {
        // Downwards, so that no rank is picked twice.
        for count in (1..=picked).rev() {
            let (fewer, these) = ways.split_at_mut(count);
            for (total, way) in these[0].iter_mut().enumerate().skip(rank) {
                *way += fewer[count - 1][total - rank];
            }
        }
    }
    let ways = &ways[picked];
    let all: f64 = ways.iter().sum();
    let below: f64 = ways[..=sum].iter().sum();
    let above: f64 = ways[sum..].iter().sum();
    (2.0 * below.min(above) / all).min(1.0)
}

/// The p-value by the normal distribution, for the doubled sum of the first sample's ranks.
fn approximate(sorted: &[f64], [one, other]: [usize; 2], sum: usize) -> f64 {
    let [one, other, all] = [one, other, sorted.len()].map(|count| count as f64);
    let u = sum as f64 / 2.0 - one * (one + 1.0) / 2.0;
    let tied = sorted.chunk_by(|one, other| one == other);
    let ties: f64 = tied
        .map(|equal| equal.len() as f64)
        .map(|count| count.powi(3) - count)
        .sum();
    let variance = one * other / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    let distance = ((u - one * other / 2.0).abs() - 0.5).max(0.0);
    match variance > 0.0 {
        true => libm::erfc(distance / (2.0 * variance).sqrt()),
        // All values are equal.
        false => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_relative_eq;

    /// Compared with an enumeration of all divisions by another program; the first is an example
    /// of R's `wilcox.test`, with a one-sided p-value of 0.1272.
    #[test]
    fn of_few_values_the_p_value_is_exact() {
        let permeability = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let at_term = [1.15, 0.88, 0.90, 0.74, 1.21];
        for (one, other, expected) in [
            (&permeability[..], &at_term[..], 0.2544122544122544),
            (
                &[1.0, 2.0, 2.0, 3.0, 5.0],
                &[2.0, 3.0, 4.0, 4.0, 6.0, 7.0],
                0.12554112554112554,
            ),
            (
                &[1.0, 1.0, 1.0, 2.0],
                &[2.0, 2.0, 3.0, 3.0, 1.0],
                0.20634920634920634,
            ),
            (&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], 0.1),
        ] {
            for (one, other) in [(one, other), (other, one)] {
                let p_value = mann_whitney(one, other);
                assert_relative_eq!(p_value, expected, max_relative = 1e-12);
            }
        }
    }

    /// R's other example: ozone in New York in May and August 1973, W = 127.5, p = 0.0001208.
    #[test]
    fn of_many_values_the_p_value_is_that_of_the_normal_distribution() {
        let may: [u8; 26] = [
            41, 36, 12, 18, 28, 23, 19, 8, 7, 16, 11, 14, 18, 14, 34, 6, 30, 11, 1, 11, 4, 32, 23,
            45, 115, 37,
        ];
        let august: [u8; 26] = [
            39, 9, 16, 78, 35, 66, 122, 89, 110, 44, 28, 65, 22, 59, 23, 31, 44, 21, 9, 45, 168,
            73, 76, 118, 84, 85,
        ];
        let [may, august] = [may, august].map(|values| values.map(f64::from));
        let p_value = mann_whitney(&may, &august);
        assert_relative_eq!(p_value, 0.00012080783076877465, max_relative = 1e-9);
        assert_relative_eq!(mann_whitney(&august, &may), p_value, max_relative = 1e-9);
    }

    #[test]
    fn both_ways_agree_where_they_meet() {
        let one: Vec<f64> = (0..25).map(|index| f64::from(index * 7 % 25)).collect();
        let other: Vec<f64> = one.iter().map(|value| value + 4.3).collect();
        let exact = mann_whitney(&one, &other);
        let all = sorted(&[&one[..], &other].concat());
        // The doubled ranks, if all values differ.
        let sum = |value: &f64| 2 * all.partition_point(|other| other < value) + 2;
        let approximate = approximate(&all, [25, 25], one.iter().map(sum).sum());
        assert!((exact - approximate).abs() < 0.002, "{exact} {approximate}");
    }

    #[test]
    fn equal_samples_and_empty_ones_do_not_differ() {
        for count in [1, 3, 25, 26, 100] {
            let equal = vec![1.5; count];
            assert_eq!(mann_whitney(&equal, &equal), 1.0, "{count}");
        }
        assert_eq!(mann_whitney(&[], &[1.0]), 1.0);
        assert_eq!(mann_whitney(&[1.0], &[]), 1.0);
    }

    #[test]
    fn the_smallest_p_value_is_that_of_one_way_in_all_on_either_side() {
        assert_eq!(smallest_p_value(1, 1), 1.0);
        assert_relative_eq!(smallest_p_value(3, 3), 0.1, max_relative = 1e-12);
        assert_relative_eq!(smallest_p_value(4, 4), 2.0 / 70.0, max_relative = 1e-12);
        assert!(smallest_p_value(100, 100) < 1e-30);
    }
}
