//! `--groups`: a grouped product, as of a mixture of experts.

use std::str::FromStr;

use clap::Args;
use gpu_gemm::{Call, Chooser, DataType, Device, GemmError};
use rand::RngExt;
use rand_distr::StandardNormal;
use rand_pcg::Pcg64;

use super::exit::{Stop, usage};
use super::sizes::size;
use crate::data::Groups;
use crate::rung::Rung;

/// More groups are taken for a mistake.
const MOST: usize = 1 << 16;

/// The groups.
#[derive(Clone, Debug, Args)]
pub struct GroupArguments {
    /// Multiply groups of rows of A, each by a B of its own, in one launch, as in a mixture of
    /// experts: the rows of each group, such as `512,0,300,4k`, which add up to m; or how many
    /// groups there are, such as `64`, whose sizes are then log-normal (sigma = 1, by --seed). In
    /// bf16, the default then, and f16; on Hopper and in the simulator
    #[arg(long, value_name = "ROWS,ROWS,..|COUNT", conflicts_with_all = [
        "kernel", "list", "a", "batch", "epilogue", "transpose_a", "math",
    ])]
    pub groups: Option<Division>,
}

/// How rows are divided.
#[derive(Clone, Debug, PartialEq)]
pub enum Division {
    /// The rows of each group.
    Rows(Vec<usize>),
    /// The number of groups.
    Among(usize),
}

impl FromStr for Division {
    type Err = String;

    fn from_str(text: &str) -> Result<Division, String> {
        let sizes: Vec<usize> = text.split(',').map(size).collect::<Result<_, _>>()?;
        match sizes[..] {
            [0] => Err("there is at least one group".to_string()),
            _ if sizes.len().max(sizes[0] * usize::from(sizes.len() == 1)) > MOST => {
                Err(format!("there are at most {MOST} groups"))
            }
            [count] => Ok(Division::Among(count)),
            _ => Ok(Division::Rows(sizes)),
        }
    }
}

impl Division {
    /// The groups. `m` is the number of rows, if that was given, or else by default.
    ///
    /// # Errors
    ///
    /// The rows of the groups are not m, or too many.
    pub fn groups(&self, m: Option<usize>, default: usize, seed: u64) -> Result<Groups, String> {
        let sizes = match self {
            Division::Rows(sizes) => sizes.clone(),
            Division::Among(count) => log_normal(m.unwrap_or(default), *count, seed),
        };
        let groups = Groups::of(&sizes);
        let groups = groups.ok_or("The groups have more than 2147483647 rows in all.")?;
        if groups.total() == 0 {
            return Err("The groups have no rows.".to_string());
        }
        match m.filter(|m| *m != groups.total()) {
            Some(m) => Err(format!(
                "The groups have {} rows in all, but --m is {m}; leave out --m.",
                groups.total()
            )),
            None => Ok(groups),
        }
    }
}

/// Divides rows among groups: the logarithms of their shares are normal with variance 1.
fn log_normal(rows: usize, count: usize, seed: u64) -> Vec<usize> {
    let mut generator = Pcg64::new(seed.into(), 0x6e0d_5a17);
    let mut normal = || generator.sample::<f64, _>(StandardNormal);
    let weights: Vec<f64> = (0..count).map(|_| normal().exp()).collect();
    let total: f64 = weights.iter().sum();
    let (mut end, mut sum) = (0, 0.0);
    let mut sizes: Vec<usize> = Vec::with_capacity(count);
    for weight in weights {
        sum += weight;
        let next = (rows as f64 * (sum / total)).round() as usize;
        sizes.push(next.min(rows) - end);
        end = next.min(rows);
    }
    // Whatever rounding has left.
    if let Some(last) = sizes.last_mut() {
        *last += rows - end;
    }
    sizes
}

/// The kernel for groups.
///
/// # Errors
///
/// The device or the kernels do not multiply such groups.
pub fn rung(
    chooser: &Chooser,
    data_type: DataType,
    call: Call,
    device: &Device,
) -> Result<Rung, Stop> {
    if device.several().is_some() || device.backend() == "opencl" {
        return Err(usage(
            "--groups runs on one GPU or in the simulator: name one by `--device`, such as `--device sim`.",
        ));
    }
    // SAFETY: its plan is launched by `verification::run` and `measure`, with the ends.
    let choice = unsafe { chooser.choose_grouped(data_type, call) };
    match choice {
        Some(choice) => Ok(Rung::Auto(choice)),
        None => Err(usage(GemmError::NoGroupedKernel { data_type })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_groups_or_their_number_are_read() {
        let parsed = |text: &str| text.parse::<Division>();
        assert_eq!(parsed("512,0,4k"), Ok(Division::Rows(vec![512, 0, 4096])));
        assert_eq!(parsed("64"), Ok(Division::Among(64)));
        for (text, why) in [
            ("0", "at least one"),
            ("128k", "at most 65536"),
            ("5,-3", "whole number"),
            ("5,", "whole number"),
            ("1.5", "whole number"),
        ] {
            assert!(parsed(text).unwrap_err().contains(why), "{text}");
        }
    }

    #[test]
    fn a_division_has_all_rows_uneven_and_the_same_for_a_seed() {
        for (rows, count) in [(8192, 64), (7, 64), (0, 3), (1000, 1)] {
            let sizes = log_normal(rows, count, 1);
            assert_eq!((sizes.len(), sizes.iter().sum::<usize>()), (count, rows));
            assert_eq!(sizes, log_normal(rows, count, 1));
        }
        let sizes = log_normal(1 << 20, 1024, 1);
        assert_ne!(sizes, log_normal(1 << 20, 1024, 2));
        // The mean of a log-normal variable is e^(1/2) times its median.
        let mut sorted = sizes;
        sorted.sort_unstable();
        let ratio = 1024.0 / sorted[512] as f64;
        assert!((1.5..1.8).contains(&ratio), "{ratio}");
    }

    #[test]
    fn groups_that_are_not_m_rows_are_refused() {
        let division = Division::Rows(vec![3, 0, 4]);
        let of = |m| division.groups(m, 100, 1);
        assert_eq!(of(None).unwrap().ends(), [3, 3, 7]);
        assert_eq!(of(Some(7)).unwrap().total(), 7);
        assert!(
            of(Some(8))
                .unwrap_err()
                .contains("7 rows in all, but --m is 8")
        );
        for rows in [vec![1 << 31, 1], vec![0, 0]] {
            assert!(Division::Rows(rows).groups(None, 1, 1).is_err());
        }
    }
}
