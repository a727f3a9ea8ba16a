//! The changes since an earlier benchmark: `bench --compare FILE`.
//!
//! A difference of medians is noise unless
//!
//! - the times of the runs differ by the Mann-Whitney test ([`mann_whitney`]) at the level of
//!   [`SIGNIFICANCE`], as for Go's `benchstat`, and
//! - the medians differ by at least [`NOISE`]. The runs of one file come from one process, so that
//!   the p-value misses what differs between processes, such as addresses and the clock;
//!   Criterion.rs has the same threshold.
//!
//! Where there are too few runs for the test, or a file lacks their times, the verdict is unknown,
//! and says why.
//!
//! | file | what it does |
//! | --- | --- |
//! | `compared.rs` | the outcome |
//! | `earlier.rs` | reads the earlier benchmark |
//! | `table.rs` | the table of changes, for people |

mod compared;
mod earlier;
mod table;

use super::results::{Results, Size};
use crate::report::Record;
use crate::statistics::{mann_whitney, smallest_p_value};

pub use compared::{Compared, Verdict, Work};
pub use earlier::Earlier;
pub use table::write;

/// The level of the test: without any change, one kernel in 20 still fails it.
pub const SIGNIFICANCE: f64 = 0.05;
/// The change of the median, over the earlier one, below which it is noise.
pub const NOISE: f64 = 0.01;

/// A contender that was timed at a size.
struct Entry<'a> {
    work: Work,
    size: &'a Size,
    record: &'a Record,
}

impl Work {
    fn of(record: &Record, is_yardstick: bool) -> Work {
        let [lda, ldb, ldc] = record.leading_dimensions();
        Work {
            kernel: record.kernel.clone(),
            is_yardstick,
            dtype: record.dtype.clone(),
            m: record.m,
            n: record.n,
            k: record.k,
            batch: record.batch,
            transpose_a: record.transpose_a,
            transpose_b: record.transpose_b,
            lda,
            ldb,
            ldc,
            alpha: record.alpha,
            beta: record.beta,
        }
    }
}

/// Everything that was timed, in order, without duplicates.
fn entries(results: &Results) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for size in &results.sizes {
        for (record, is_yardstick) in size.contenders() {
            let work = Work::of(record, is_yardstick);
            // Yardsticks of version 1 lack the element type.
            let is_timed = record.time_median_s > Some(0.0) && !record.dtype.is_empty();
            if is_timed && find(&entries, &work).is_none() {
                entries.push(Entry { work, size, record });
            }
        }
    }
    entries
}

fn find<'e, 'r>(entries: &'e [Entry<'r>], work: &Work) -> Option<&'e Entry<'r>> {
    entries.iter().find(|entry| entry.work == *work)
}

/// Compares everything that was timed in both.
pub fn compare(earlier: &Results, now: &Results) -> Vec<Compared> {
    let before = entries(earlier);
    let pairs = entries(now).into_iter().filter_map(|entry| {
        let before = find(&before, &entry.work)?;
        compared(before.record, entry)
    });
    pairs.collect()
}

/// The names of what was timed in `one` and not in `other`.
fn missing(one: &Results, other: &Results) -> Vec<String> {
    let others = entries(other);
    let only = entries(one).into_iter();
    let only = only.filter(|entry| find(&others, &entry.work).is_none());
    only.map(|entry| format!("{} at {}", entry.work.kernel, entry.size.title()))
        .collect()
}

fn compared(before: &Record, now: Entry<'_>) -> Option<Compared> {
    let (earlier, median) = before.time_median_s.zip(now.record.time_median_s)?;
    let change = median / earlier - 1.0;
    let (p_value, verdict, reason) = match p_value(before, now.record) {
        Err(reason) => (None, Verdict::Unknown, Some(reason.to_string())),
        Ok(p_value) => {
            let verdict = match p_value < SIGNIFICANCE && change.abs() >= NOISE {
                false => Verdict::NoChange,
                true if change < 0.0 => Verdict::Faster,
                true => Verdict::Slower,
            };
            (Some(p_value), verdict, None)
        }
    };
    Some(Compared {
        work: now.work,
        name: now.size.name.clone(),
        earlier_time_median_s: earlier,
        time_median_s: median,
        change,
        p_value,
        verdict,
        reason,
    })
}

/// The p-value of two records' times, or the reason why there is none.
fn p_value(before: &Record, now: &Record) -> Result<f64, &'static str> {
    let (before, now) = (&before.times_s, &now.times_s);
    if before.is_empty() || now.is_empty() {
        return Err("no times of runs");
    }
    match smallest_p_value(before.len(), now.len()) < SIGNIFICANCE {
        true => Ok(mann_whitney(before, now)),
        false => Err("too few runs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::samples::sample;

    /// [`sample`], with the times of the runs of the first kernel at the first size.
    pub(super) fn timed(times: &[f64]) -> Results {
        let mut results = sample();
        let record = &mut results.sizes[0].results[0];
        record.runs = Some(times.len());
        if !times.is_empty() {
            record.time_median_s = Some(crate::statistics::median(times));
        }
        record.times_s = times.to_vec();
        results
    }

    /// The first kernel at the first size.
    fn first(earlier: &Results, now: &Results) -> Compared {
        compare(earlier, now).swap_remove(0)
    }

    fn verdict(earlier: &[f64], now: &[f64]) -> Verdict {
        first(&timed(earlier), &timed(now)).verdict
    }

    const BEFORE: [f64; 5] = [1.00, 1.01, 1.02, 1.03, 1.04];

    #[test]
    fn only_what_is_significant_and_not_small_is_a_change() {
        let scaled = |factor: f64| BEFORE.map(|time| time * factor);
        assert_eq!(verdict(&BEFORE, &BEFORE), Verdict::NoChange);
        assert_eq!(verdict(&BEFORE, &scaled(1.1)), Verdict::Slower);
        assert_eq!(verdict(&BEFORE, &scaled(0.9)), Verdict::Faster);
        // The change is 1.5 %, and the times overlap.
        assert_eq!(verdict(&BEFORE, &scaled(1.015)), Verdict::NoChange);
        // The times do not overlap, and the change is less than 1 %.
        let quiet = [1.0, 1.0001, 1.0002, 1.0003, 1.0004];
        let later = quiet.map(|time| time * 1.005);
        let compared = first(&timed(&quiet), &timed(&later));
        assert_eq!(compared.verdict, Verdict::NoChange);
        assert!(compared.p_value < Some(0.01));
        assert_eq!(
            verdict(&quiet, &quiet.map(|time| time * 1.011)),
            Verdict::Slower
        );
    }

    #[test]
    fn a_change_is_that_of_the_median_time() {
        let compared = first(&timed(&BEFORE), &timed(&BEFORE.map(|time| time * 1.5)));
        assert_eq!(compared.earlier_time_median_s, 1.02);
        assert_eq!(compared.time_median_s, 1.53);
        approx::assert_relative_eq!(compared.change, 0.5, max_relative = 1e-12);
        approx::assert_relative_eq!(compared.p_value.unwrap(), 2.0 / 252.0, max_relative = 1e-12);
    }

    #[test]
    fn too_few_runs_say_nothing_however_far_apart() {
        let compared = first(&timed(&BEFORE[..3]), &timed(&[7.0, 8.0, 9.0]));
        assert_eq!(compared.verdict, Verdict::Unknown);
        assert_eq!(compared.reason.as_deref(), Some("too few runs"));
        assert_eq!(compared.p_value, None);
        assert_eq!(
            verdict(&BEFORE[..4], &[7.0, 8.0, 9.0, 9.5]),
            Verdict::Slower
        );
        assert_eq!(verdict(&[1.0], &[2.0]), Verdict::Unknown);
        let compared = first(&timed(&[]), &timed(&BEFORE));
        assert_eq!(compared.reason.as_deref(), Some("no times of runs"));
    }

    #[test]
    fn only_the_same_work_is_compared() {
        let now = sample();
        // Two sizes of four kernels that are right, and two yardsticks.
        assert_eq!(compare(&now, &now).len(), 2 * (4 + 2));
        type Change = fn(&mut Record);
        let changes: [Change; 6] = [
            |record| record.kernel = "other".into(),
            |record| record.dtype = "f64".into(),
            |record| record.transpose_a = true,
            |record| record.alpha = 2.0,
            |record| record.ldb = Some(5000),
            |record| record.beta = 1.0,
        ];
        for change in changes {
            let mut earlier = sample();
            change(&mut earlier.sizes[1].results[2]);
            assert_eq!(compare(&earlier, &now).len(), 2 * (4 + 2) - 1);
            let names = missing(&now, &earlier);
            assert_eq!(names, ["tiled-16 at 4096"]);
            assert_eq!(missing(&earlier, &now).len(), 1);
        }
        let mut smaller = sample();
        smaller.sizes.remove(0);
        assert_eq!(compare(&smaller, &now).len(), 4 + 2);
        assert_eq!(missing(&smaller, &now), [""; 0]);
    }
}
