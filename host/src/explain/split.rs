//! A product on several devices: the work and the transfers of each, and the bandwidth at which
//! the transfer of panels is hidden.

use std::io::{self, Write};

use gpu_gemm::text::plural;
use gpu_gemm::{Shape, Split};
use serde::Serialize;

use crate::report::duration;

/// How a product is divided among devices.
#[derive(Clone, Debug, Serialize)]
pub struct Divided {
    /// The complete product.
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub devices: usize,
    /// Devices along the rows of C, and along its columns.
    pub grid: (usize, usize),
    /// The rows and columns of C that the first device computes.
    pub rows: usize,
    pub columns: usize,
    /// The number of products, one after the other, in which it computes them.
    pub products: usize,
    /// The most bytes that a device receives, and the bytes of all devices, if A, B and C are
    /// spread over them; and a formula for each matrix, for even panels.
    pub received_bytes: usize,
    pub received_bytes_of_all: usize,
    pub formula: &'static str,
    /// The time of the first device's largest product at the peak, and the bytes a second at
    /// which the next panel arrives in that time; null if nothing is sent.
    pub product_s: f64,
    pub hidden_from_bytes_per_s: Option<f64>,
}

impl Divided {
    /// The split for several devices that each multiply at `peak_flops_per_s` at most.
    pub fn of(split: &Split, element_bytes: usize, peak_flops_per_s: f64) -> Divided {
        let Shape { m, n, k } = split.shape();
        let received = (0..split.devices()).map(|device| split.received(device) * element_bytes);
        let (rows, columns) = split.block_of_c(0);
        let blocks = split.blocks(0);
        let largest = blocks.iter().map(|block| {
            let shape = Shape::new(block.rows.len(), block.columns.len(), k);
            shape.flops()
        });
        Divided {
            m,
            n,
            k,
            devices: split.devices(),
            grid: split.grid(),
            rows: rows.len(),
            columns: columns.len(),
            products: blocks.len(),
            received_bytes: split.most_received() * element_bytes,
            received_bytes_of_all: received.sum(),
            formula: match split.grid() {
                (_, 1) => "K N (P-1)/P",
                (1, _) => "M K (P-1)/P",
                _ => "M K/p (q-1)/q + K N/q (p-1)/p",
            },
            product_s: largest.fold(0.0, f64::max) / peak_flops_per_s,
            hidden_from_bytes_per_s: split.bandwidth_that_hides(peak_flops_per_s, element_bytes),
        }
    }

    /// For people.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Divided {
            m,
            n,
            k,
            grid: (p, q),
            ..
        } = self;
        writeln!(
            out,
            "split      {m} x {n} x {k} on {}, {p} x {q}: each computes {} x {} of C in {}, one of them explained below",
            plural(self.devices, "device"),
            self.rows,
            self.columns,
            plural(self.products, "product")
        )?;
        writeln!(
            out,
            "sent       each receives up to {}, {} elements; all together {}",
            plural(self.received_bytes, "byte"),
            self.formula,
            plural(self.received_bytes_of_all, "byte")
        )?;
        match self.hidden_from_bytes_per_s {
            None => writeln!(out, "hidden     nothing is sent\n"),
            Some(bandwidth) => writeln!(
                out,
                "hidden     a product takes {} at the peak: at {:.1} GB/s the next panel has arrived by then\n",
                duration(self.product_s),
                bandwidth / 1e9
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_is_explained_with_what_it_sends_and_what_hides_it() {
        let split = Split::of(Shape::cube(8192), 2);
        let divided = Divided::of(&split, 4, 50e12);
        assert_eq!((divided.rows, divided.columns), (4096, 8192));
        assert_eq!(divided.received_bytes, 8192 * 4096 * 4);
        assert_eq!(divided.received_bytes_of_all, 2 * 8192 * 4096 * 4);
        // 2 * 4096 * 4096 * 8192 operations.
        assert!((divided.product_s - 5.497_558e-3).abs() < 1e-8);
        let bandwidth = divided.hidden_from_bytes_per_s.unwrap() / 1e9;
        assert!((bandwidth - 24.4).abs() < 0.05, "{bandwidth}");
        let grid = Divided::of(&Split::of(Shape::cube(8192), 4), 4, 50e12);
        assert_eq!((grid.grid, grid.products), ((2, 2), 4));
        let alone = Divided::of(&Split::of(Shape::cube(8192), 1), 4, 50e12);
        assert_eq!(alone.hidden_from_bytes_per_s, None);
    }
}
