//! A product, or a part of one.

use super::call::{Call, Stored, Transpose};
use crate::device::uploaded::{Operand, Operands};
use crate::problem::Shape;

/// Sizes at which products are cut into parts, where they must be: multiples of the tiles' sizes.
const PART_K: usize = 64;
const PART: usize = 128;

/// A product of matrices in the GPU's memory. Where alpha is 0, so is k.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub shape: Shape,
    pub alpha: f32,
    pub beta: f32,
    pub transpose_a: Transpose,
    pub transpose_b: Transpose,
    pub operands: Operands<f32>,
}

impl Job {
    /// What plans need to know of it.
    pub fn call(&self) -> Call {
        let stored = |operand: &Operand<f32>, transpose| {
            Stored::at(
                operand.pointer.as_raw() as usize,
                operand.leading,
                transpose,
            )
        };
        Call {
            shape: self.shape,
            a: stored(&self.operands.a, self.transpose_a),
            b: stored(&self.operands.b, self.transpose_b),
        }
    }

    /// Two parts to do one after the other: half of the sums each, or, if they are short, half of C. None if it is small.
    pub fn halves(&self) -> Option<[Job; 2]> {
        let Shape { m, n, k } = self.shape;
        let half = |size: usize, part: usize| {
            let half = (size / 2).next_multiple_of(part);
            (half < size && size >= 2 * part).then_some(half)
        };
        let (first, second, start) = if let Some(k0) = half(k, PART_K) {
            let parts = [k0, k - k0].map(|k| Shape { m, n, k });
            (parts[0], parts[1], (0, 0, k0))
        } else if let Some(m0) = half(m, PART) {
            let parts = [m0, m - m0].map(|m| Shape { m, n, k });
            (parts[0], parts[1], (m0, 0, 0))
        } else {
            let n0 = half(n, PART)?;
            let parts = [n0, n - n0].map(|n| Shape { m, n, k });
            (parts[0], parts[1], (0, n0, 0))
        };
        Some([self.part(first, (0, 0, 0)), self.part(second, start)])
    }

    /// The part of this shape that begins at `(m0, n0, k0)`.
    fn part(&self, shape: Shape, (m0, n0, k0): (usize, usize, usize)) -> Job {
        let Operands { a, b, c } = &self.operands;
        Job {
            shape,
            beta: if k0 == 0 { self.beta } else { 1.0 },
            operands: Operands {
                a: a.starting_at(m0, k0, self.transpose_a),
                b: b.starting_at(k0, n0, self.transpose_b),
                c: c.starting_at(m0, n0, Transpose::No),
            },
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cust::memory::DevicePointer;

    fn job(shape: Shape) -> Job {
        let Shape { m, n, k } = shape;
        let operand = |address: u64, rows: usize, columns: usize| Operand {
            pointer: DevicePointer::from_raw(address),
            extent: rows * columns,
            leading: columns,
        };
        Job {
            shape,
            alpha: 1.0,
            beta: 0.5,
            transpose_a: Transpose::Yes,
            transpose_b: Transpose::No,
            operands: Operands {
                a: operand(0x1000, k, m),
                b: operand(0x10_0000, k, n),
                c: operand(0x20_0000, m, n),
            },
        }
    }

    /// Where A, B and C of a part begin, in elements from where they begin in the whole.
    fn starts(whole: &Job, part: &Job) -> [u64; 3] {
        let start = |job: &Job| {
            let Operands { a, b, c } = job.operands;
            [a, b, c].map(|operand| operand.pointer.as_raw())
        };
        let (whole, part) = (start(whole), start(part));
        [0, 1, 2].map(|index| (part[index] - whole[index]) / 4)
    }

    #[test]
    fn long_sums_are_cut_first_and_the_second_part_adds_to_c() {
        let whole = job(Shape {
            m: 300,
            n: 200,
            k: 1000,
        });
        let [first, second] = whole.halves().unwrap();
        assert_eq!((first.shape.k, first.beta), (512, 0.5));
        assert_eq!((second.shape.k, second.beta), (488, 1.0));
        // A is stored as k x m.
        assert_eq!(starts(&whole, &second), [512 * 300, 512 * 200, 0]);
        assert_eq!(second.operands.a.extent, 488 * 300);
    }

    #[test]
    fn then_rows_of_c_are_cut_and_then_columns() {
        let whole = job(Shape {
            m: 300,
            n: 300,
            k: 100,
        });
        let [top, bottom] = whole.halves().unwrap();
        assert_eq!((top.shape.m, bottom.shape.m), (256, 44));
        assert_eq!(starts(&whole, &bottom), [256, 0, 256 * 300]);
        assert_eq!(bottom.beta, 0.5);
        let [left, right] = top.halves().unwrap()[0].halves().unwrap();
        assert_eq!((left.shape.n, right.shape.n), (256, 44));
        assert_eq!(starts(&whole, &right), [0, 256, 256]);
    }

    #[test]
    fn a_product_of_any_size_ends_in_small_parts() {
        let mut job = job(Shape {
            m: 100_000,
            n: 70_001,
            k: 100_003,
        });
        let mut cuts = 0;
        while let Some([first, _]) = job.halves() {
            job = first;
            cuts += 1;
        }
        let Shape { m, n, k } = job.shape;
        assert!(m < 256 && n < 256 && k < 128, "{}", job.shape);
        assert!(cuts < 40);
    }
}
