//! Describes a product as far as a plan depends on it.

use std::fmt;

use gpu_kernels::spec::{ElementType, Major, Variant};

/// The dimensions of `C = alpha * A * B + beta * C`: A is `m x k`, B is `k x n`, C is `m x n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    pub m: usize,
    pub n: usize,
    pub k: usize,
}

impl Shape {
    pub const fn new(m: usize, n: usize, k: usize) -> Shape {
        Shape { m, n, k }
    }

    /// `m = n = k = size`.
    pub const fn cube(size: usize) -> Shape {
        Shape::new(size, size, size)
    }

    /// The number of additions and multiplications in the product, `2 * m * n * k`.
    pub fn flops(self) -> f64 {
        2.0 * self.m as f64 * self.n as f64 * self.k as f64
    }

    /// Whether C has no elements, so that there is nothing to do.
    pub fn is_empty(self) -> bool {
        self.m == 0 || self.n == 0
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} x {} x {}", self.m, self.n, self.k)
    }
}

/// Whether a matrix is multiplied as it is stored, or transposed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transpose {
    #[default]
    No,
    Yes,
}

impl Transpose {
    /// Both values, in the order of the usual letters N and T.
    pub const ALL: [Transpose; 2] = [Transpose::No, Transpose::Yes];

    /// The other value.
    pub fn other(self) -> Transpose {
        match self {
            Transpose::No => Transpose::Yes,
            Transpose::Yes => Transpose::No,
        }
    }

    /// The rows and columns, as stored, of a matrix that is multiplied as `rows x columns`; and
    /// the reverse.
    pub fn of<T>(self, (rows, columns): (T, T)) -> (T, T) {
        match self {
            Transpose::No => (rows, columns),
            Transpose::Yes => (columns, rows),
        }
    }
}

/// One of the two matrices that are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Factor {
    A,
    B,
}

/// How A or B is stored in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    /// `No`: A as `m x k`, B as `k x n`. `Yes`: A as `k x m`, B as `n x k`. Row-major both ways.
    pub transpose: Transpose,
    /// Elements from the start of a row, as stored, to the start of the next.
    pub leading: usize,
    /// Whether every row begins at a multiple of 16 bytes.
    pub aligned: bool,
    /// Whether the first one does, in each product.
    pub begins_aligned: bool,
}

/// The size in bytes of the vectors in which kernels copy operands.
const VECTOR: usize = 16;

impl Operand {
    /// A matrix at `address` whose rows are `leading` elements apart.
    pub fn at(
        address: usize,
        leading: usize,
        element: ElementType,
        transpose: Transpose,
    ) -> Operand {
        let pitch = leading.wrapping_mul(element.bytes());
        Operand {
            transpose,
            leading,
            aligned: address.is_multiple_of(VECTOR) && pitch.is_multiple_of(VECTOR),
            begins_aligned: address.is_multiple_of(VECTOR),
        }
    }

    /// A as the transpose of B, or B as that of A: in the same memory.
    fn transposed(self) -> Operand {
        Operand {
            transpose: self.transpose.other(),
            ..self
        }
    }

    /// An A of a single row, of `k` elements: they are along K, also where they are stored as a
    /// column, if it has no gaps. Of one row nothing but its beginning need be aligned.
    fn as_row(self, k: usize) -> Operand {
        match (self.transpose, self.leading) {
            (Transpose::No, _) | (Transpose::Yes, 1) => Operand {
                transpose: Transpose::No,
                leading: k,
                aligned: self.begins_aligned,
                ..self
            },
            _ => self,
        }
    }

    /// Its layout, in the terms in which a kernel states it.
    pub fn major(self, factor: Factor) -> Major {
        match (factor, self.transpose) {
            (Factor::A, Transpose::No) | (Factor::B, Transpose::Yes) => Major::K,
            (Factor::A, Transpose::Yes) | (Factor::B, Transpose::No) => Major::Mn,
        }
    }
}

/// Products of one shape, whose matrices A follow each other in one memory, and likewise B and C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Batch {
    /// The number of products.
    pub count: usize,
    /// Elements from the first of A, B and C of a product to the first of the next product's.
    pub strides: [usize; 3],
}

impl Batch {
    /// A single product.
    pub const ONE: Batch = Batch {
        count: 1,
        strides: [0; 3],
    };
}

/// The number of products of a batch, or the stride of its matrices: a `usize`, or `(outer, inner)`
/// for batches in a batch, such as the heads of sequences. A single stride is that from every
/// product to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nested {
    outer: Option<usize>,
    inner: usize,
}

impl From<usize> for Nested {
    fn from(inner: usize) -> Nested {
        Nested { outer: None, inner }
    }
}

impl From<(usize, usize)> for Nested {
    fn from((outer, inner): (usize, usize)) -> Nested {
        let outer = Some(outer);
        Nested { outer, inner }
    }
}

impl Nested {
    /// The outer and the inner count.
    pub(crate) fn counts(self) -> (usize, usize) {
        (self.outer.unwrap_or(1), self.inner)
    }

    /// The outer and the inner stride, where the inner count is this.
    pub(crate) fn strides(self, inner_count: usize) -> (usize, usize) {
        let follows = || inner_count.saturating_mul(self.inner);
        (self.outer.unwrap_or_else(follows), self.inner)
    }
}

/// A product `C = alpha * op(A) * op(B) + beta * C` in memory, or a batch of such products. If
/// alpha is 0, neither A nor B is read: this is `k = 0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    pub shape: Shape,
    pub a: Operand,
    pub b: Operand,
    /// Elements from the start of a row of C to the start of the next.
    pub ldc: usize,
    pub batch: Batch,
}

impl Call {
    /// Matrices of `element` without gaps between rows, aligned like allocations.
    pub fn compact(shape: Shape, a: Transpose, b: Transpose, element: ElementType) -> Call {
        Call::spaced(shape, [a, b], element, |columns| columns)
    }

    /// Matrices of `element`, A and B transposed so, aligned like allocations; `leading` gives the
    /// distance between the starts of rows of a given length.
    pub fn spaced(
        shape: Shape,
        [a, b]: [Transpose; 2],
        element: ElementType,
        leading: impl Fn(usize) -> usize,
    ) -> Call {
        let operand = |transpose: Transpose, size| {
            let (_, columns) = transpose.of(size);
            Operand::at(0, leading(columns), element, transpose)
        };
        Call {
            shape,
            a: operand(a, (shape.m, shape.k)),
            b: operand(b, (shape.k, shape.n)),
            ldc: leading(shape.n),
            batch: Batch::ONE,
        }
    }

    /// The same for each product of a batch: rows are aligned if they are in all products.
    pub fn batched(self, batch: Batch, element: ElementType) -> Call {
        let operand = |operand: Operand, stride: usize| {
            let bytes = stride.wrapping_mul(element.bytes());
            let follows = batch.count < 2 || bytes.is_multiple_of(VECTOR);
            Operand {
                aligned: operand.aligned && follows,
                begins_aligned: operand.begins_aligned && follows,
                ..operand
            }
        };
        let [a, b, _] = batch.strides;
        Call {
            a: operand(self.a, a),
            b: operand(self.b, b),
            batch: match batch.count {
                1 => Batch::ONE,
                _ => batch,
            },
            ..self
        }
    }

    /// The same for each of `count` products, whose matrices follow each other, their last rows as
    /// long as all others.
    pub fn repeated(self, count: usize, element: ElementType) -> Call {
        let stride = |(rows, _): (usize, usize), leading: usize| rows.saturating_mul(leading);
        let strides = [
            stride(self.stored(Factor::A), self.a.leading),
            stride(self.stored(Factor::B), self.b.leading),
            stride((self.shape.m, self.shape.n), self.ldc),
        ];
        self.batched(Batch { count, strides }, element)
    }

    /// The product that `variant` computes for it: the same, or the transposed one, `C^T = B^T *
    /// A^T`, of a kernel for few rows if C has fewer columns than rows; and whether it is that. The
    /// elements of A and B are where they were. `ldc` is still the distance of the rows of C.
    pub(crate) fn computed_by(self, variant: &Variant) -> (Call, bool) {
        let Shape { m, n, k } = self.shape;
        if !variant.gemv_like {
            return (self, false);
        }
        let is_transposed = m > n;
        let [a, b, c] = self.batch.strides;
        let call = match is_transposed {
            false => self,
            true => Call {
                shape: Shape::new(n, m, k),
                a: self.b.transposed(),
                b: self.a.transposed(),
                batch: Batch {
                    strides: [b, a, c],
                    ..self.batch
                },
                ..self
            },
        };
        match call.shape.m {
            1 => (
                Call {
                    a: call.a.as_row(k),
                    ..call
                },
                is_transposed,
            ),
            _ => (call, is_transposed),
        }
    }

    /// How A or B is stored in memory.
    pub fn operand(&self, factor: Factor) -> Operand {
        match factor {
            Factor::A => self.a,
            Factor::B => self.b,
        }
    }

    /// The rows and columns of A or B, as stored.
    pub fn stored(&self, factor: Factor) -> (usize, usize) {
        let Shape { m, n, k } = self.shape;
        match factor {
            Factor::A => self.a.transpose.of((m, k)),
            Factor::B => self.b.transpose.of((k, n)),
        }
    }

    /// The number of elements from the first of A or B to the last; 0 if it has none.
    pub fn extent(&self, factor: Factor) -> usize {
        MatrixLayout::one(self.stored(factor), self.operand(factor).leading).extent()
    }

    /// Whether both calls get the same plan except for leading dimensions.
    pub fn is_like(&self, other: &Call) -> bool {
        let layout =
            |call: &Call| [call.a, call.b].map(|operand| (operand.transpose, operand.aligned));
        let counts = [self, other].map(|call| call.batch.count);
        self.shape == other.shape && layout(self) == layout(other) && counts[0] == counts[1]
    }
}

/// The distance from the first element of a sequence to the end of its last piece of `extent`
/// elements, where `count` pieces begin `step` elements apart; 0 if there are no elements.
pub(crate) fn extent_of(count: usize, step: usize, extent: usize) -> usize {
    match (count, extent) {
        (0, _) | (_, 0) => 0,
        (count, extent) => (count - 1).saturating_mul(step).saturating_add(extent),
    }
}

/// Where the elements of a row-major matrix are, as stored, or those of the matrices of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixLayout {
    pub rows: usize,
    pub columns: usize,
    /// Elements from the start of a row to the start of the next: the leading dimension.
    pub leading: usize,
    /// The number of matrices, and elements from the start of one to the start of the next.
    pub count: usize,
    pub stride: usize,
    /// The number of such batches, and elements from the start of one to the start of the next. A
    /// plan is for one.
    pub outer_count: usize,
    pub outer_stride: usize,
}

impl MatrixLayout {
    /// A single matrix.
    pub const fn one((rows, columns): (usize, usize), leading: usize) -> MatrixLayout {
        MatrixLayout {
            rows,
            columns,
            leading,
            count: 1,
            stride: 0,
            outer_count: 1,
            outer_stride: 0,
        }
    }

    /// Such matrices, as many as `count`. The stride of a single one has no meaning.
    pub const fn batched(self, count: usize, stride: usize) -> MatrixLayout {
        MatrixLayout {
            count,
            stride: if count == 1 { 0 } else { stride },
            ..self
        }
    }

    /// Such batches, as many as `count`.
    pub const fn nested(self, count: usize, stride: usize) -> MatrixLayout {
        MatrixLayout {
            outer_count: count,
            outer_stride: if count == 1 { 0 } else { stride },
            ..self
        }
    }

    /// Elements from the first of all matrices to the last; 0 if there are none. It saturates: a
    /// plan may be requested for a matrix that no memory can hold.
    pub fn extent(&self) -> usize {
        let batch = extent_of(self.count, self.stride, self.extent_of_one());
        extent_of(self.outer_count, self.outer_stride, batch)
    }

    /// Elements from the first of a matrix to its last.
    pub fn extent_of_one(&self) -> usize {
        extent_of(self.rows, self.leading, self.columns)
    }

    /// Whether two matrices may share an element. They do not where they follow each other, nor
    /// where they are side by side, so that the rows of all of them fit between the starts of two
    /// rows of the first: in general, where each step is past all that smaller steps reach.
    pub fn overlaps(&self) -> bool {
        let mut steps = [
            (self.leading, self.rows),
            (self.stride, self.count),
            (self.outer_stride, self.outer_count),
        ];
        steps.sort_unstable();
        let mut reached = self.columns;
        self.extent() > 0
            && steps.into_iter().any(|(step, count)| {
                let overlaps = count > 1 && step < reached;
                reached = extent_of(count, step, reached);
                overlaps
            })
    }
}
