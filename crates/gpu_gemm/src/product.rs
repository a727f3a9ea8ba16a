//! A product in memory, or a part of one if the workspace is too small for the whole.

use gpu_kernels::epilogue::{Epilogue, Fused};
use gpu_kernels::spec::{DataType, ElementType, Variant};

use crate::call::{Batch, Call, MatrixLayout, Operand, Shape, Transpose};
use crate::launch::{Bindings, Parameters, Scalar};

/// The sizes of the parts into which a product is split if necessary: multiples of the tile sizes.
const PART_K: usize = 64;
const PART: usize = 128;

/// A product of matrices in the backend's memory, or a batch of products.
#[derive(Clone, Copy)]
pub struct Product {
    pub data_type: DataType,
    pub alpha: Scalar,
    pub beta: Scalar,
    /// A and B may be one matrix for all products.
    pub a: Stored,
    pub b: Stored,
    /// Not transposed. One matrix for all groups of a grouped product, of which A is another.
    pub c: Stored,
    pub epilogue: Option<Fusion>,
    /// Where a part begins in the caller's C: row, column and product.
    pub first: [usize; 3],
}

/// Kernels with an epilogue, and its parameters.
#[derive(Clone, Copy)]
pub struct Fusion {
    /// The name of the kernels with the epilogue.
    pub kernels: &'static str,
    pub variants: &'static [Variant],
    pub parameters: Parameters,
}

impl Fusion {
    pub fn of<E: Epilogue>(kernels: &'static Fused<E>, epilogue: E) -> Fusion {
        Fusion {
            kernels: kernels.name,
            variants: kernels.variants,
            parameters: Parameters::of(epilogue),
        }
    }
}

/// A matrix in the backend's memory, or the matrices of a batch, and whether they are multiplied as
/// stored or transposed.
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    pub start: *mut u8,
    pub layout: MatrixLayout,
    pub transpose: Transpose,
}

impl Stored {
    /// Rows and columns as multiplied.
    pub fn size(&self) -> (usize, usize) {
        self.transpose.of((self.layout.rows, self.layout.columns))
    }

    /// The same, multiplied as its transpose.
    pub fn transposed(self) -> Stored {
        Stored {
            transpose: self.transpose.other(),
            ..self
        }
    }

    /// The submatrix of `size` that begins at this row and column of the matrix as multiplied.
    fn part(self, element: ElementType, first: (usize, usize), size: (usize, usize)) -> Stored {
        let (row, column) = self.transpose.of(first);
        let (rows, columns) = self.transpose.of(size);
        let skipped = row * self.layout.leading + column;
        Stored {
            start: self.start.wrapping_add(skipped * element.bytes()),
            layout: MatrixLayout {
                rows,
                columns,
                ..self.layout
            },
            ..self
        }
    }

    fn operand(self, element: ElementType) -> Operand {
        let address = self.start as usize;
        Operand::at(address, self.layout.leading, element, self.transpose)
    }
}

impl Product {
    /// Its dimensions. If alpha is 0, so is k.
    pub fn shape(&self) -> Shape {
        let ((m, k), (_, n)) = (self.a.size(), self.b.size());
        Shape::new(m, n, if self.alpha.is_zero() { 0 } else { k })
    }

    /// The products, each of another C, or the groups that share one.
    pub fn batch(&self) -> Batch {
        let [a, b, c] = [self.a, self.b, self.c].map(|stored| stored.layout);
        Batch {
            count: if c.count == 1 { b.count } else { c.count },
            strides: [a.stride, b.stride, c.stride],
        }
    }

    /// The same as batches of products at one stride, to launch one after the other: one where the
    /// outer stride goes on as the inner one does, else as many as the smaller count. An epilogue
    /// is told a product's number, so with one they are the inner batches.
    pub(crate) fn batches(self) -> impl Iterator<Item = Product> {
        let DataType { inputs, c: of_c } = self.data_type;
        let MatrixLayout {
            count: inner,
            outer_count: outer,
            ..
        } = self.c.layout;
        let goes_on = |stored: &Stored| {
            let MatrixLayout { stride, .. } = stored.layout;
            stored.layout.outer_stride == inner.saturating_mul(stride)
        };
        let is_one = [self.a, self.b, self.c].iter().all(goes_on);
        let takes_outer = inner == 1 || inner < outer && self.epilogue.is_none();
        let batches = match (is_one, takes_outer) {
            (true, _) => 1,
            (false, true) => inner,
            (false, false) => outer,
        };
        (0..batches).map(move |index| {
            let of = |stored: Stored, element: ElementType| {
                let layout = stored.layout.nested(1, 0);
                let (inner_stride, outer_stride) = (layout.stride, stored.layout.outer_stride);
                let (layout, step) = match (is_one, takes_outer) {
                    (true, _) => (layout.batched(outer * inner, inner_stride), 0),
                    (false, true) => (layout.batched(outer, outer_stride), inner_stride),
                    (false, false) => (layout, outer_stride),
                };
                Stored {
                    start: stored.start.wrapping_add(index * step * element.bytes()),
                    layout,
                    ..stored
                }
            };
            let [row, column, product] = self.first;
            Product {
                a: of(self.a, inputs),
                b: of(self.b, inputs),
                c: of(self.c, of_c),
                first: [row, column, product + index * inner],
                ..self
            }
        })
    }

    /// The call, for plans.
    pub fn call(&self) -> Call {
        Call {
            shape: self.shape(),
            a: self.a.operand(self.data_type.inputs),
            b: self.b.operand(self.data_type.inputs),
            ldc: self.c.layout.leading,
            batch: Batch::ONE,
        }
        .batched(self.batch(), self.data_type.inputs)
    }

    /// The bindings, for launches.
    pub fn bindings(&self, workspace: *mut u8) -> Bindings {
        Bindings {
            alpha: self.alpha,
            beta: self.beta,
            a: self.a.start,
            b: self.b.start,
            c: self.c.start,
            workspace,
            epilogue: match self.epilogue {
                Some(fusion) => fusion.parameters,
                None => Parameters::NONE,
            },
            first: self.first,
        }
    }

    /// Two parts to compute one after the other: half of the k-range each or, if k is small, half
    /// of C. `None` if the product is small.
    ///
    /// K is not cut where there is an epilogue, which would see a part of a sum, nor for a C of 16
    /// bits: each part would round it to 16 bits once more. Kernels of 16 bits without an epilogue
    /// need workspace only for operands with unaligned rows. So C is cut along a side of such an
    /// operand, the longer one if both are unaligned.
    pub fn halves(&self) -> Option<[Product; 2]> {
        let Shape { m, n, k } = self.shape();
        let along_m = || half(m, PART).map(Cut::Rows);
        let along_n = || half(n, PART).map(Cut::Columns);
        let cut = match self.data_type.c {
            // Its kernels may need copies of A and B in any layout.
            _ if self.epilogue.is_some() || self.data_type == DataType::E4M3_BF16 => match m >= n {
                true => along_m().or_else(along_n),
                false => along_n().or_else(along_m),
            },
            ElementType::Bf16 | ElementType::F16 => {
                let call = self.call();
                let rows = along_m().filter(|_| !call.a.aligned);
                let columns = along_n().filter(|_| !call.b.aligned);
                match m >= n {
                    true => rows.or(columns),
                    false => columns.or(rows),
                }
            }
            ElementType::F32
            | ElementType::F64
            | ElementType::I32
            | ElementType::I8
            | ElementType::E4m3 => half(k, PART_K)
                .map(Cut::Sums)
                .or_else(along_m)
                .or_else(along_n),
        };
        let (shapes, start) = match cut? {
            Cut::Sums(k0) => ([k0, k - k0].map(|k| Shape { m, n, k }), (0, 0, k0)),
            Cut::Rows(m0) => ([m0, m - m0].map(|m| Shape { m, n, k }), (m0, 0, 0)),
            Cut::Columns(n0) => ([n0, n - n0].map(|n| Shape { m, n, k }), (0, n0, 0)),
        };
        Some([self.part(shapes[0], (0, 0, 0)), self.part(shapes[1], start)])
    }

    /// The part of this shape that begins at `(m0, n0, k0)`.
    fn part(&self, shape: Shape, (m0, n0, k0): (usize, usize, usize)) -> Product {
        let (DataType { inputs, c }, Shape { m, n, k }) = (self.data_type, shape);
        Product {
            beta: match k0 {
                0 => self.beta,
                _ => self.beta.one(),
            },
            a: self.a.part(inputs, (m0, k0), (m, k)),
            b: self.b.part(inputs, (k0, n0), (k, n)),
            c: self.c.part(c, (m0, n0), (m, n)),
            first: [self.first[0] + m0, self.first[1] + n0, self.first[2]],
            ..*self
        }
    }
}

/// The cut of a product in two: before this k, this row or this column of C.
enum Cut {
    Sums(usize),
    Rows(usize),
    Columns(usize),
}

/// Half of a size, as a multiple of `part`; `None` if the size is small.
fn half(size: usize, part: usize) -> Option<usize> {
    let half = (size / 2).next_multiple_of(part);
    (half < size && size >= 2 * part).then_some(half)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A is transposed, and no matrix has gaps.
    fn product(data_type: impl Into<DataType>, shape: Shape) -> Product {
        let Shape { m, n, k } = shape;
        let stored = |address: usize, size, transpose| Stored {
            start: std::ptr::without_provenance_mut(address),
            layout: MatrixLayout::one(size, size.1),
            transpose,
        };
        Product {
            data_type: data_type.into(),
            alpha: Scalar::F32(1.0),
            beta: Scalar::F32(0.5),
            a: stored(0x1_0000, (k, m), Transpose::Yes),
            b: stored(0x10_0000, (k, n), Transpose::No),
            c: stored(0x20_0000, (m, n), Transpose::No),
            epilogue: None,
            first: [0; 3],
        }
    }

    /// The offsets of a part's A, B and C in those of the complete product, in elements.
    fn starts(complete: &Product, part: &Product) -> [usize; 3] {
        let DataType { inputs, c } = complete.data_type;
        let bytes = [inputs, inputs, c].map(ElementType::bytes);
        let start = |product: &Product| {
            [product.a, product.b, product.c].map(|stored| stored.start as usize)
        };
        let (complete, part) = (start(complete), start(part));
        [0, 1, 2].map(|index| (part[index] - complete[index]) / bytes[index])
    }

    #[test]
    fn without_long_sums_rows_of_c_are_cut_and_then_columns() {
        let complete = product(DataType::F32, Shape::new(300, 300, 100));
        let [top, bottom] = complete.halves().unwrap();
        assert_eq!((top.shape().m, bottom.shape().m), (256, 44));
        assert_eq!(starts(&complete, &bottom), [256, 0, 256 * 300]);
        assert_eq!(bottom.beta, Scalar::F32(0.5));
        let [left, right] = top.halves().unwrap()[0].halves().unwrap();
        assert_eq!((left.shape().n, right.shape().n), (256, 44));
        assert_eq!(starts(&complete, &right), [0, 256, 256]);
    }

    #[test]
    fn of_elements_of_16_bits_the_longer_side_that_is_copied_is_cut_and_sums_never() {
        // Rows of A are m long, those of B n: multiples of 8 are aligned.
        let cut = |m, n| {
            let complete = product(ElementType::Bf16, Shape::new(m, n, 5000));
            let [first, second] = complete.halves()?;
            assert_eq!((first.shape().k, second.shape().k), (5000, 5000));
            assert_eq!((first.beta, second.beta), (complete.beta, complete.beta));
            let shape = (first.shape().m, first.shape().n);
            Some((shape, starts(&complete, &second)))
        };
        let rows = |m, n, m0| Some(((m0, n), [m0, 0, m0 * n])).filter(|_| m > m0);
        let columns = |m, n, n0| Some(((m, n0), [0, n0, n0])).filter(|_| n > n0);
        assert_eq!(cut(1001, 999), rows(1001, 999, 512));
        assert_eq!(cut(999, 1001), columns(999, 1001, 512));
        assert_eq!(cut(999, 2000), rows(999, 2000, 512));
        assert_eq!(cut(2000, 999), columns(2000, 999, 512));
        // The remaining side is too small to cut.
        assert_eq!(cut(301, 255), rows(301, 255, 256));
        assert_eq!(cut(255, 1001), columns(255, 1001, 512));
        assert_eq!(cut(255, 255), None);
        // Nothing is copied.
        assert_eq!(cut(2000, 2000), None);
    }

    #[test]
    fn batches_in_a_batch_are_as_few_as_strides_allow_and_keep_an_epilogues_numbers() {
        let compact = product(DataType::F32, Shape::new(2, 3, 4));
        // The number of batches, products in each, and for the last the elements skipped in C and
        // its first product's number.
        let batches = |(outer, inner): (usize, usize), outer_stride, epilogue| {
            let nested = |mut stored: Stored, stride, outer_stride| {
                stored.layout = stored
                    .layout
                    .batched(inner, stride)
                    .nested(outer, outer_stride);
                stored
            };
            let complete = Product {
                a: nested(compact.a, 0, 0),
                c: nested(compact.c, 6, outer_stride),
                b: nested(compact.b, 12, inner * 12),
                epilogue,
                ..compact
            };
            let batches: Vec<Product> = complete.batches().collect();
            let last = batches.last().unwrap();
            let [_, _, skipped] = starts(&complete, last);
            (batches.len(), last.batch().count, skipped, last.first[2])
        };
        assert_eq!(batches((5, 7), 42, None), (1, 35, 0, 0));
        assert_eq!(batches((5, 7), 50, None), (5, 7, 200, 28));
        assert_eq!(batches((7, 5), 50, None).0, 5);
        assert_eq!(batches((7, 5), 50, None).2, 24);
        assert_eq!(batches((1, 5), 50, None), (1, 5, 0, 0));
        assert_eq!(batches((5, 1), 50, None), (1, 5, 0, 0));
        let fusion = Fusion {
            kernels: "",
            variants: &[],
            parameters: Parameters::NONE,
        };
        assert_eq!(batches((7, 5), 50, Some(fusion)), (7, 5, 300, 30));
        assert_eq!(batches((5, 1), 50, Some(fusion)), (1, 5, 0, 0));
    }

    #[test]
    fn a_product_of_any_size_ends_in_small_parts() {
        let mut part = product(DataType::F32, Shape::new(100_000, 70_001, 100_003));
        let mut cuts = 0;
        while let Some([first, _]) = part.halves() {
            part = first;
            cuts += 1;
        }
        let Shape { m, n, k } = part.shape();
        assert!(m < 256 && n < 256 && k < 128, "{}", part.shape());
        assert!(cuts < 40);
    }
}
