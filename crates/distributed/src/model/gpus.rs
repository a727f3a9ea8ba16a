//! What ranks take that keep their parts of A, B and C in the memory of GPUs.
//!
//! ```text
//! uploads      from rank 0's host memory to its GPU, large ones by several threads
//! parts        one message from rank 0 into another rank's GPU: by NCCL from its GPU, else from
//!              the memory of the host
//! columns      by MPI, the same of columns of A that the host copies together first, and
//! rows         of rows of B
//! broadcasts   from one GPU to another along a line of two ranks
//! products     of operands in a GPU's memory, alone or as one of many panels
//! fetches      from all GPUs to the memory of their hosts, at once, large ones likewise
//! ```
//!
//! What travels while a GPU multiplies may still cost time: NCCL's kernels need SMs that a product
//! may occupy to its end. So steps of a product and a message, side by side, were timed as well,
//! and steps without a message: [`Gpus::hidden`], [`Gpus::hidden_broadcasts`] and
//! [`Gpus::hidden_columns`] say which part of the shorter of the two disappears.

use gpu_gemm::Shape;
use gpu_gemm::text::plural;
use host::report::{percent, speed};
use serde::{Deserialize, Serialize};

use super::{Machine, distance, interpolated};
use crate::comm::transport::Way;

/// What was measured of the GPUs of ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gpus {
    /// How parts travel from one to another.
    pub way: Way,
    /// Threads of a rank that copy between memory of the host and its GPU; 0 where that was not
    /// recorded.
    #[serde(default)]
    pub copy_threads: usize,
    pub uploads: Vec<Copied>,
    pub parts: Vec<Copied>,
    pub columns: Vec<Copied>,
    pub rows: Vec<Copied>,
    pub broadcasts: Vec<Copied>,
    pub fetches: Vec<Copied>,
    pub products: Vec<ResidentProduct>,
    /// The part of the shorter of a product and a message from rank 0 that the longer one hides;
    /// none if it was not timed.
    #[serde(default)]
    pub hidden: Option<f64>,
    /// The same of a broadcast of rows of B.
    #[serde(default)]
    pub hidden_broadcasts: Option<f64>,
    /// The same of a broadcast of columns of B.
    #[serde(default)]
    pub hidden_columns: Option<f64>,
}

/// A copy or a message that was timed; smaller ones come first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Copied {
    /// Of a row, where rows lie apart; none where all bytes lie one after the other.
    pub row_bytes: Option<f64>,
    pub bytes: f64,
    pub seconds: f64,
}

/// A product of operands in a GPU's memory that was timed, on all ranks at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResidentProduct {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// Whether it is one of many that add to C.
    pub adds: bool,
    pub seconds: f64,
}

/// A panel on its way: what the copies from the host's memory take, and then the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Travel {
    pub copies_s: f64,
    pub messages_s: f64,
}

impl Travel {
    /// Both, one after the other.
    pub fn total(self) -> f64 {
        self.copies_s + self.messages_s
    }
}

/// The time that products of panels wait for the next one: all but the first travel while the one
/// before is multiplied. Copies from the host's memory come first, and a GPU makes them beside any
/// product. While the rest of the product lasts, the part `hidden` of the messages disappears, all
/// if that was not timed.
pub fn waiting(panels: &[(Travel, f64)], hidden: Option<f64>) -> f64 {
    let hidden = hidden.unwrap_or(1.0);
    let steps = panels.windows(2).map(|pair| {
        let ((_, multiplying), (next, _)) = (pair[0], pair[1]);
        let beside_copies = next.copies_s.min(multiplying);
        let beside_messages = next.messages_s.min(multiplying - beside_copies);
        next.total() - beside_copies - hidden * beside_messages
    });
    steps.sum()
}

impl Gpus {
    /// What was timed, in a line: of copies and messages the largest.
    pub fn description(&self) -> String {
        let rate = |what: &str, timed: &[Copied]| {
            let mut together = timed.iter().filter(|one| one.row_bytes.is_none());
            let gigabytes = together
                .next_back()
                .map(|one| one.bytes / one.seconds / 1e9);
            gigabytes.map(|rate| format!("{what} {rate:.1} GB/s"))
        };
        let parts = [
            rate("to rank 0's", &self.uploads),
            rate("from rank 0 to another's", &self.parts),
            rate("from one to another", &self.broadcasts),
            rate("to the host", &self.fetches),
            (self.flops_per_s() > 0.0).then(|| format!("products {}", speed(self.flops_per_s()))),
            self.hidden
                .map(|part| format!("{} of a message hidden beside a product", percent(part))),
            self.hidden_broadcasts
                .map(|part| format!("{} of a broadcast hidden beside a product", percent(part))),
            self.hidden_columns.map(|part| {
                let part = percent(part);
                format!("{part} of a broadcast of columns hidden beside a product")
            }),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let threads = match self.copy_threads {
            0 => String::new(),
            threads => format!(
                "; {} a rank copy to and from the host",
                plural(threads, "thread")
            ),
        };
        format!(
            "GPUs, by {}: {}{threads}",
            self.way.name(),
            parts.join(", ")
        )
    }

    /// Leaves messages to latency and bandwidth.
    pub fn forget_messages(&mut self) {
        let messages = [
            &mut self.parts,
            &mut self.columns,
            &mut self.rows,
            &mut self.broadcasts,
        ];
        messages.into_iter().for_each(Vec::clear);
    }

    /// Leaves products to their speed.
    pub fn forget_products(&mut self) {
        self.products.clear();
    }

    /// The speed of the fastest product, in flops a second; 0 if none was timed.
    pub fn flops_per_s(&self) -> f64 {
        let speed = |one: &ResidentProduct| Shape::new(one.m, one.n, one.k).flops() / one.seconds;
        self.products.iter().map(speed).fold(0.0, f64::max)
    }
}

impl Machine {
    /// The time of a rank's product on its GPU: at the speed of the one that was timed whose shape
    /// is the nearest, among those that also add to C, or do not.
    pub fn multiplying_on_gpu(&self, gpus: &Gpus, shape: Shape, adds: bool) -> f64 {
        let Shape { m, n, k } = shape;
        let distance = |one: &ResidentProduct| distance([one.m, one.n, one.k], [m, n, k]);
        let alike = gpus.products.iter().filter(|one| one.adds == adds);
        let nearest = alike.min_by(|one, other| distance(one).total_cmp(&distance(other)));
        let flops_per_s = nearest.map_or(self.flops_per_s, |nearest| {
            Shape::new(nearest.m, nearest.n, nearest.k).flops() / nearest.seconds
        });
        shape.flops() / flops_per_s
    }

    /// The time to copy or send so much, of what was timed with rows of the nearest length. What
    /// has no bytes takes no time; where nothing was timed, it is a message.
    pub fn copying(&self, timed: &[Copied], row_bytes: Option<f64>, bytes: f64) -> f64 {
        if bytes == 0.0 {
            return 0.0;
        }
        // What lies together is one long row.
        let length = |row_bytes: Option<f64>| row_bytes.unwrap_or(f64::INFINITY).min(1e12).ln();
        let distance = |one: &Copied| (length(one.row_bytes) - length(row_bytes)).abs();
        let nearest = timed
            .iter()
            .min_by(|one, other| distance(one).total_cmp(&distance(other)));
        let alike = nearest.map_or_else(Vec::new, |nearest| {
            let alike = timed
                .iter()
                .filter(|one| one.row_bytes == nearest.row_bytes);
            alike.map(|one| (one.bytes, one.seconds)).collect()
        });
        interpolated(&alike, bytes).unwrap_or_else(|| self.described_message(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::plain;

    fn copied(row_bytes: Option<f64>, bytes: f64, seconds: f64) -> Copied {
        Copied {
            row_bytes,
            bytes,
            seconds,
        }
    }

    #[test]
    fn a_copy_takes_what_copies_with_such_rows_took() {
        let timed = [
            copied(None, 1000.0, 1.0),
            copied(None, 2000.0, 3.0),
            copied(Some(100.0), 1000.0, 5.0),
        ];
        assert_eq!(plain().copying(&timed, None, 1500.0), 2.0);
        assert_eq!(plain().copying(&timed, None, 4000.0), 6.0);
        assert_eq!(plain().copying(&timed, Some(200.0), 2000.0), 10.0);
        assert_eq!(plain().copying(&timed, None, 0.0), 0.0);
        // Nothing was timed: 1 µs and 1 GB/s.
        assert!((plain().copying(&[], None, 1000.0) - 2e-6).abs() < 1e-12);
    }

    #[test]
    fn a_product_that_adds_is_as_fast_as_others_that_add() {
        let product = |k, adds, seconds| ResidentProduct {
            m: 100,
            n: 100,
            k,
            adds,
            seconds,
        };
        let gpus = Gpus {
            products: vec![
                product(100, false, 1.0),
                product(10, true, 1.0),
                product(50, true, 2.0),
            ],
            ..Gpus::default()
        };
        let time = |k, adds| plain().multiplying_on_gpu(&gpus, Shape::new(100, 100, k), adds);
        assert_eq!(time(50, false), 0.5);
        assert_eq!(time(12, true), 1.2);
        assert_eq!(time(60, true), 2.4);
        assert_eq!(gpus.flops_per_s(), 2e6);
        let described = plain().multiplying_on_gpu(&Gpus::default(), Shape::new(10, 10, 10), true);
        assert!((described - 2e-6).abs() < 1e-12);
    }

    #[test]
    fn a_panel_hides_behind_the_product_before_it_and_the_first_is_not_counted() {
        let panel = |copies_s, messages_s, multiplying| {
            let travel = Travel {
                copies_s,
                messages_s,
            };
            (travel, multiplying)
        };
        let panels = [
            panel(9.0, 9.0, 4.0),
            panel(1.0, 2.0, 4.0),
            panel(2.0, 4.0, 4.0),
        ];
        // Of the third, 2 + 4 last longer than the product of 4.
        assert_eq!(waiting(&panels, Some(1.0)), 2.0);
        // Only the copies are hidden; half of what else fits beside the product is.
        assert_eq!(waiting(&panels, Some(0.0)), 2.0 + 4.0);
        assert_eq!(waiting(&panels, Some(0.5)), 1.0 + 3.0);
        assert_eq!(waiting(&panels, None), 2.0);
        assert_eq!(waiting(&[], Some(1.0)), 0.0);
        assert_eq!(waiting(&panels[..1], Some(1.0)), 0.0);
        assert_eq!(waiting(&[panels[0], panel(0.0, 0.0, 1.0)], Some(0.5)), 0.0);
    }
}
