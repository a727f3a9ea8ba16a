//! A product in memory, or a part of one if the workspace is too small for all of it.

use crate::call::{Batch, Call, Operand, Shape, Transpose};
use crate::launch::{Bindings, Element, Scalar};

/// The sizes of the parts into which a product is split if it must be: multiples of the tile
/// sizes.
const PART_K: usize = 64;
const PART: usize = 128;

/// A product of f32 matrices in the backend's memory, or a batch of them, of which `a`, `b` and `c`
/// are the first product's. If alpha is 0, so is k.
#[derive(Clone, Copy)]
pub(crate) struct Product {
    pub shape: Shape,
    pub alpha: f32,
    pub beta: f32,
    pub a: Stored,
    pub b: Stored,
    pub c: Stored,
    pub batch: Batch,
}

/// A matrix in the backend's memory.
#[derive(Clone, Copy)]
pub(crate) struct Stored {
    pub start: *mut u8,
    pub leading: usize,
    pub transpose: Transpose,
}

impl Stored {
    /// The submatrix that begins at this row and column of the matrix as it is multiplied.
    fn starting_at(self, row: usize, column: usize) -> Stored {
        let (row, column) = self.transpose.of((row, column));
        let skipped = row * self.leading + column;
        Stored {
            start: self.start.wrapping_add(skipped * size_of::<f32>()),
            ..self
        }
    }

    fn operand(self) -> Operand {
        Operand::at(self.start as usize, self.leading, f32::TYPE, self.transpose)
    }
}

impl Product {
    /// What plans need to know about it.
    pub fn call(&self) -> Call {
        Call {
            shape: self.shape,
            a: self.a.operand(),
            b: self.b.operand(),
            ldc: self.c.leading,
            batch: Batch::ONE,
        }
        .batched(self.batch, f32::TYPE)
    }

    /// What launches need to know about it.
    pub fn bindings(&self, workspace: *mut u8) -> Bindings {
        Bindings {
            alpha: Scalar::F32(self.alpha),
            beta: Scalar::F32(self.beta),
            a: self.a.start,
            b: self.b.start,
            c: self.c.start,
            workspace,
        }
    }

    /// Two parts to compute one after the other: half of the k-range each or, if k is small, half
    /// of C. `None` if the product is small.
    pub fn halves(&self) -> Option<[Product; 2]> {
        let Shape { m, n, k } = self.shape;
        let half = |size: usize, part: usize| {
            let half = (size / 2).next_multiple_of(part);
            (half < size && size >= 2 * part).then_some(half)
        };
        let (shapes, start) = if let Some(k0) = half(k, PART_K) {
            ([k0, k - k0].map(|k| Shape { m, n, k }), (0, 0, k0))
        } else if let Some(m0) = half(m, PART) {
            ([m0, m - m0].map(|m| Shape { m, n, k }), (m0, 0, 0))
        } else {
            let n0 = half(n, PART)?;
            ([n0, n - n0].map(|n| Shape { m, n, k }), (0, n0, 0))
        };
        Some([self.part(shapes[0], (0, 0, 0)), self.part(shapes[1], start)])
    }

    /// The part of this shape that begins at `(m0, n0, k0)`.
    fn part(&self, shape: Shape, (m0, n0, k0): (usize, usize, usize)) -> Product {
        Product {
            shape,
            beta: if k0 == 0 { self.beta } else { 1.0 },
            a: self.a.starting_at(m0, k0),
            b: self.b.starting_at(k0, n0),
            c: self.c.starting_at(m0, n0),
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(shape: Shape) -> Product {
        let Shape { m, n, .. } = shape;
        let stored = |address: usize, leading, transpose| Stored {
            start: std::ptr::without_provenance_mut(address),
            leading,
            transpose,
        };
        Product {
            shape,
            alpha: 1.0,
            beta: 0.5,
            a: stored(0x1000, m, Transpose::Yes),
            b: stored(0x10_0000, n, Transpose::No),
            c: stored(0x20_0000, n, Transpose::No),
            batch: Batch::ONE,
        }
    }

    /// Where A, B and C of a part begin, in elements from where those of the complete product
    /// begin.
    fn starts(complete: &Product, part: &Product) -> [usize; 3] {
        let start = |product: &Product| {
            [product.a, product.b, product.c].map(|stored| stored.start as usize)
        };
        let (complete, part) = (start(complete), start(part));
        [0, 1, 2].map(|index| (part[index] - complete[index]) / 4)
    }

    #[test]
    fn long_sums_are_cut_first_and_the_second_part_adds_to_c() {
        let complete = product(Shape::new(300, 200, 1000));
        let [first, second] = complete.halves().unwrap();
        assert_eq!((first.shape.k, first.beta), (512, 0.5));
        assert_eq!((second.shape.k, second.beta), (488, 1.0));
        // A is stored as k x m.
        assert_eq!(starts(&complete, &second), [512 * 300, 512 * 200, 0]);
        assert_eq!(
            second.call().extent(crate::call::Factor::A),
            487 * 300 + 300
        );
    }

    #[test]
    fn then_rows_of_c_are_cut_and_then_columns() {
        let complete = product(Shape::new(300, 300, 100));
        let [top, bottom] = complete.halves().unwrap();
        assert_eq!((top.shape.m, bottom.shape.m), (256, 44));
        assert_eq!(starts(&complete, &bottom), [256, 0, 256 * 300]);
        assert_eq!(bottom.beta, 0.5);
        let [left, right] = top.halves().unwrap()[0].halves().unwrap();
        assert_eq!((left.shape.n, right.shape.n), (256, 44));
        assert_eq!(starts(&complete, &right), [0, 256, 256]);
    }

    #[test]
    fn a_product_of_any_size_ends_in_small_parts() {
        let mut part = product(Shape::new(100_000, 70_001, 100_003));
        let mut cuts = 0;
        while let Some([first, _]) = part.halves() {
            part = first;
            cuts += 1;
        }
        let Shape { m, n, k } = part.shape;
        assert!(m < 256 && n < 256 && k < 128, "{}", part.shape);
        assert!(cuts < 40);
    }
}
