//! One multiplication to do: its shape, its scalars and its matrices, valid by construction.
//!
//! Matrices own their buffers, so null and overlapping ones cannot be expressed; every other
//! mistake that BLAS leaves to its caller (a short leading dimension, a short buffer, sizes that
//! overflow) is refused here, before a launch.

use std::any::Any;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use gpu_gemm::{Batch, Bf16, Call, DataType, E4m3, ElementType, F16, Operand, Shape, Transpose};

use super::error::ProblemError;
use super::matrix::{Matrix, Placement};
use super::number::Number;
use super::random::{Data, Powers};
use super::scales::{GroupScales, Scales};
use crate::epilogue::Epilogue;

/// The division of the rows of A and C among the matrices B of a grouped product: the row after the
/// last of each group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups(&'static [i32]);

impl Groups {
    /// Groups of these sizes, of which there is at least one; `None` if they have more rows than
    /// an i32 counts. They live as long as the program, which has one division.
    pub fn of(sizes: &[usize]) -> Option<Groups> {
        let mut ends = Vec::with_capacity(sizes.len());
        for &size in sizes {
            let end = ends
                .last()
                .map_or(Some(size), |end| size.checked_add(*end as usize));
            ends.push(i32::try_from(end?).ok()?);
        }
        (!ends.is_empty()).then(|| Groups(Vec::leak(ends)))
    }

    /// The number of groups, and of matrices B.
    pub fn count(self) -> usize {
        self.0.len()
    }

    /// The row after the last of each.
    pub fn ends(self) -> &'static [i32] {
        self.0
    }

    /// The rows of all.
    pub fn total(self) -> usize {
        self.rows(self.count() - 1).end
    }

    /// The rows of a group.
    pub fn rows(self, group: usize) -> Range<usize> {
        let first = group.checked_sub(1).map_or(0, |before| self.0[before]);
        first as usize..self.0[group] as usize
    }

    /// The number of rows of each.
    pub fn sizes(self) -> impl Iterator<Item = usize> {
        (0..self.count()).map(move |group| self.rows(group).len())
    }
}

/// How a problem's matrices are stored where kernels multiply them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storage {
    /// Whether A and B are stored transposed, A as `k x m` and B as `n x k`.
    pub transposes: [Transpose; 2],
    /// Elements between the end of a row, as stored, and the start of the next, of A, B and C.
    pub padding: [usize; 3],
    /// Elements of the buffers before the first, of A, B and C.
    pub offset: [usize; 3],
    /// The number of products, at least 1, with their matrices one after the other.
    pub batch: usize,
    /// The groups of a grouped product, each with a B; then the batch is 1.
    pub groups: Option<Groups>,
}

impl Storage {
    /// A single product of matrices without gaps, none of them transposed.
    pub const COMPACT: Storage = Storage::padded([0; 3], [0; 3]);

    /// The same with such gaps.
    pub const fn padded(padding: [usize; 3], offset: [usize; 3]) -> Storage {
        Storage {
            transposes: [Transpose::No; 2],
            padding,
            offset,
            batch: 1,
            groups: None,
        }
    }

    /// The number of matrices B.
    pub fn count_of_b(&self) -> usize {
        self.groups.map_or(self.batch, Groups::count)
    }

    /// The positions of the matrices in their buffers, before any is transposed.
    fn placements(self, shape: Shape) -> [Placement; 3] {
        let columns = [shape.k, shape.n, shape.n];
        [0, 1, 2].map(|matrix| Placement {
            offset: self.offset[matrix],
            leading: columns[matrix].saturating_add(self.padding[matrix]),
        })
    }

    /// The call for such a product, or batch of products, of matrices of `element`.
    pub fn call(self, shape: Shape, element: ElementType) -> Call {
        let [a, b] = self.transposes;
        let compact = Call::compact(shape, a, b, element);
        let operand = |operand: Operand, matrix: usize| {
            let address = self.offset[matrix].wrapping_mul(element.bytes());
            let leading = operand.leading.saturating_add(self.padding[matrix]);
            Operand::at(address, leading, element, operand.transpose)
        };
        let call = Call {
            a: operand(compact.a, 0),
            b: operand(compact.b, 1),
            ldc: compact.ldc.saturating_add(self.padding[2]),
            ..compact
        };
        let repeated = call.repeated(self.count_of_b(), element);
        match self.groups {
            None => repeated,
            Some(groups) => {
                let [_, stride_of_b, _] = repeated.batch.strides;
                let batch = Batch {
                    count: groups.count(),
                    strides: [0, stride_of_b, 0],
                };
                call.batched(batch, element)
            }
        }
    }
}

/// `C = alpha * A * B + beta * C`, with its matrices; or a batch of such products, all of one
/// shape, with their matrices stacked:
///
/// ```text
///     a: | A of the first product  | m x k      b: | B of the first  | k x n    c: | C | m x n
///        | A of the second product | m x k         | B of the second | k x n       | C | m x n
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Problem<T> {
    /// The element type of A and B for kernels: that of C, or one of 16 bits where C is f32. Here
    /// they have C's type either way, but hold only numbers of this type.
    pub inputs: ElementType,
    pub alpha: T,
    pub beta: T,
    pub a: Matrix<T>,
    pub b: Matrix<T>,
    pub c: Matrix<T>,
    /// Whether kernels get A and B transposed. Here they are `m x k` and `k x n` either way.
    pub transposes: [Transpose; 2],
    /// The number of products; at least 1.
    pub batch: usize,
    /// The groups of rows of A and C that are multiplied by a B each; then the batch is 1, and the
    /// matrices B are stacked.
    pub groups: Option<Groups>,
    /// What kernels do to each element before they store it.
    pub epilogue: Option<Epilogue>,
    /// The scales of A and B, if these are quantised: here each element is multiplied by its scale.
    pub scales: Option<Arc<Scales>>,
}

/// Calls a generic function of the type of an element.
#[macro_export]
macro_rules! by_element {
    ($element:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $element {
            $crate::ElementType::F32 => $function::<f32>($($argument),*),
            $crate::ElementType::F64 => $function::<f64>($($argument),*),
            $crate::ElementType::I32 => $function::<i32>($($argument),*),
            $crate::ElementType::Bf16 => $function::<$crate::Bf16>($($argument),*),
            $crate::ElementType::F16 => $function::<$crate::F16>($($argument),*),
            $crate::ElementType::I8 => $function::<i8>($($argument),*),
            $crate::ElementType::E4m3 => $function::<$crate::E4m3>($($argument),*),
        }
    };
}

/// Calls a generic function of the type of A and B and the type of C, by a problem's
/// [`Problem::inputs`].
macro_rules! by_inputs {
    ($problem:expr, $function:ident::<_, $type:ident>($($argument:expr),* $(,)?)) => {
        match $problem.inputs {
            gpu_gemm::ElementType::Bf16 => $function::<gpu_gemm::Bf16, $type>($($argument),*),
            gpu_gemm::ElementType::F16 => $function::<gpu_gemm::F16, $type>($($argument),*),
            gpu_gemm::ElementType::I8 => $function::<i8, $type>($($argument),*),
            gpu_gemm::ElementType::E4m3 => $function::<gpu_gemm::E4m3, $type>($($argument),*),
            _ => $function::<$type, $type>($($argument),*),
        }
    };
}
pub(crate) use by_inputs;

impl<T: Number> Problem<T> {
    /// Builds a problem from its parts.
    pub fn new(
        alpha: T,
        beta: T,
        a: Matrix<T>,
        b: Matrix<T>,
        c: Matrix<T>,
    ) -> Result<Self, ProblemError> {
        Problem::of_batch(1, (alpha, beta), [a, b, c])
    }

    /// Builds a batch of `batch` products from their stacked matrices A, B and C.
    pub fn of_batch(
        batch: usize,
        scalars: (T, T),
        matrices: [Matrix<T>; 3],
    ) -> Result<Self, ProblemError> {
        Problem::of_groups(None, batch, scalars, matrices)
    }

    fn of_groups(
        groups: Option<Groups>,
        batch: usize,
        (alpha, beta): (T, T),
        [a, b, c]: [Matrix<T>; 3],
    ) -> Result<Self, ProblemError> {
        let problem = Problem {
            inputs: T::TYPE,
            alpha,
            beta,
            a,
            b,
            c,
            transposes: [Transpose::No; 2],
            batch,
            groups,
            epilogue: None,
            scales: None,
        };
        problem.checked_shape()?;
        Ok(problem)
    }

    /// The number of products: of the batch, or of the groups.
    pub fn count(&self) -> usize {
        self.groups.map_or(self.batch, Groups::count)
    }

    /// One of the products, as a problem of its own.
    ///
    /// # Panics
    ///
    /// If there is no such product.
    pub fn product(&self, index: usize) -> Result<Self, ProblemError> {
        assert!(index < self.count());
        let (rows, k) = (self.rows_of(index), self.shape().k);
        Ok(Problem {
            a: self.a.rows_from(rows.start, rows.len())?,
            b: self.b.rows_from(index * k, k)?,
            c: self.c.rows_from(rows.start, rows.len())?,
            batch: 1,
            groups: None,
            scales: self.scales.clone(),
            ..*self
        })
    }

    /// The rows of A and C that belong to one of the products.
    pub fn rows_of(&self, index: usize) -> Range<usize> {
        let m = self.shape().m;
        match self.groups {
            Some(groups) => groups.rows(index),
            None => index * m..(index + 1) * m,
        }
    }

    /// A and B as kernels get them, `m x k` or `k x m` and `k x n` or `n x k`, in elements of a
    /// type; what is transposed or of another type is a copy.
    pub fn factors_as<Input: Number>(&self) -> Result<[Cow<'_, Matrix<Input>>; 2], ProblemError> {
        let [a, b] = self.transposes;
        let (of_a, of_b) = match self.scales.as_deref() {
            Some(scales) => (Some(&scales.a), Some(&scales.b)),
            None => (None, None),
        };
        Ok([
            self.factor_as(&self.a, of_a, a, self.batch)?,
            self.factor_as(&self.b, of_b, b, self.count())?,
        ])
    }

    fn factor_as<'a, Input: Number>(
        &self,
        matrix: &'a Matrix<T>,
        scales: Option<&GroupScales>,
        transpose: Transpose,
        count: usize,
    ) -> Result<Cow<'a, Matrix<Input>>, ProblemError> {
        let matrix = match (scales, (matrix as &dyn Any).downcast_ref::<Matrix<Input>>()) {
            (Some(scales), _) => Cow::Owned(scales.divided(matrix)?),
            (None, Some(matrix)) => Cow::Borrowed(matrix),
            (None, None) => Cow::Owned(matrix.converted()?),
        };
        match transpose {
            Transpose::No => Ok(matrix),
            Transpose::Yes => matrix.transposed(count).map(Cow::Owned),
        }
    }

    /// The number of elements of C.
    pub fn elements_of_c(&self) -> usize {
        self.shape().m * self.shape().n
    }

    /// Its dimensions: those of each of its products.
    ///
    /// # Panics
    ///
    /// A matrix was replaced by one that does not fit the others: kernels rely on the shape.
    pub fn shape(&self) -> Shape {
        match self.checked_shape() {
            Ok(shape) => shape,
            Err(error) => panic!("{error}"),
        }
    }

    fn checked_shape(&self) -> Result<Shape, ProblemError> {
        let size = |matrix: &Matrix<T>| (matrix.rows(), matrix.columns());
        let (a, b, c) = (size(&self.a), size(&self.b), size(&self.c));
        let shape = Shape::new(c.0 / self.batch.max(1), c.1, a.1);
        let rows = |count: usize, rows: usize| rows.checked_mul(count).filter(|_| count > 0);
        let of_c = rows(self.batch, shape.m);
        let fits = (Some(a.0), Some(c.0)) == (of_c, of_c)
            && (Some(b.0), b.1) == (rows(self.count(), shape.k), shape.n)
            && self
                .groups
                .is_none_or(|groups| self.batch == 1 && groups.total() == shape.m);
        match fits {
            true => Ok(shape),
            false => Err(ProblemError::ShapesDiffer { a, b, c }),
        }
    }

    /// Bytes of the three matrices, as passed to kernels.
    pub fn bytes(&self) -> usize {
        let [a, b, c] = [&self.a, &self.b, &self.c].map(|matrix| matrix.buffer().len());
        (a + b) * self.inputs.bytes() + c * size_of::<T>()
    }

    /// The element types of the matrices, as passed to kernels.
    pub fn data_type(&self) -> DataType {
        DataType {
            inputs: self.inputs,
            c: T::TYPE,
        }
    }

    /// The same problem with A and B rounded to another type, in which kernels get them, or, of
    /// integers, with their lower bits.
    ///
    /// # Panics
    ///
    /// If `T` does not hold all numbers of that type.
    pub fn with_inputs(mut self, inputs: ElementType) -> Self {
        let rounded: fn(T) -> T = match inputs {
            same if same == T::TYPE => return Problem { inputs, ..self },
            ElementType::Bf16 => |element| T::nearest(Bf16::nearest(element.to_f64()).to_f64()),
            ElementType::F16 => |element| T::nearest(F16::nearest(element.to_f64()).to_f64()),
            ElementType::E4m3 => |element| T::nearest(E4m3::nearest(element.to_f64()).to_f64()),
            // Modulo 2^8, as integers are: a random i32 is a random i8.
            ElementType::I8 => |element| T::nearest(f64::from(element.bits() as i8)),
            _ => panic!("{} does not hold all numbers of {inputs}", T::TYPE),
        };
        assert!(T::TYPE.bytes() > inputs.bytes());
        for matrix in [&mut self.a, &mut self.b] {
            matrix.replace_each(rounded);
        }
        Problem { inputs, ..self }
    }

    /// A problem of random `data`, as [`Problem::random_as`] makes one.
    pub fn random(
        shape: Shape,
        storage: Storage,
        data: Data,
        seed: u64,
        alpha: T,
        beta: T,
    ) -> Result<Self, ProblemError> {
        Problem::random_as(T::TYPE, shape, storage, data, seed, (alpha, beta))
    }

    /// A problem of `data`, or a batch of problems, A and B in `inputs`. Where `beta` or `alpha` is
    /// zero, what must not be read is [`Number::POISON`].
    pub fn random_as(
        inputs: ElementType,
        shape: Shape,
        storage: Storage,
        data: Data,
        seed: u64,
        (alpha, beta): (T, T),
    ) -> Result<Self, ProblemError> {
        let (zero, Shape { m, n, k }) = (T::default(), shape);
        let (rows, depth) = (m, k);
        // The matrices are stacked. A size that saturates is refused below.
        let m = m.saturating_mul(storage.batch);
        let k = k.saturating_mul(storage.count_of_b());
        let [at_a, at_b, at_c] = storage.placements(shape);
        // Three seeds from one; odd multiples of 2^64 over the golden ratio keep them far apart.
        let [a, b, c] = [1, 3, 5].map(|odd: u64| seed ^ odd.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let poison =
            |rows, columns, placement| Matrix::from_rows(rows, columns, placement, |_, _| ());
        let largest_power = match inputs {
            ElementType::F16 => F16::LARGEST_POWER,
            ElementType::Bf16 => Bf16::LARGEST_POWER,
            ElementType::E4m3 => E4m3::LARGEST_POWER,
            _ => T::LARGEST_POWER,
        };
        let powers = Powers::new(largest_power, data, seed, [m, n, depth]);
        let (a, b) = match alpha == zero {
            true => (poison(m, depth, at_a)?, poison(k, n, at_b)?),
            false => (
                random_factor(inputs, (m, depth), at_a, a, |row, index| {
                    (data.of_a(row % rows, index), powers.of_a(row, index))
                })?,
                random_factor(inputs, (k, n), at_b, b, |row, column| {
                    let index = row % depth;
                    (data.of_b(index, column), powers.of_b(index, column))
                })?,
            ),
        };
        let c = match beta == zero {
            true => poison(m, n, at_c)?,
            false => Matrix::random_at(m, n, at_c, c, |row, column| {
                (data.of_c(row % rows, column), powers.of_c(row, column))
            })?,
        };
        let (scalars, matrices) = ((alpha, beta), [a, b, c]);
        let problem = Problem::of_groups(storage.groups, storage.batch, scalars, matrices)?;
        Ok(Problem {
            transposes: storage.transposes,
            ..problem.with_inputs(inputs)
        })
    }
}

/// A random A or B for kernels that get it in `inputs`. The lower bits of a positive i32 may be a
/// negative i8.
fn random_factor<T: Number>(
    inputs: ElementType,
    (rows, columns): (usize, usize),
    placement: Placement,
    seed: u64,
    data: impl Fn(usize, usize) -> (Data, i32) + Sync,
) -> Result<Matrix<T>, ProblemError> {
    match inputs {
        ElementType::I8 => {
            Matrix::<i8>::random_at(rows, columns, placement, seed, data)?.converted()
        }
        _ => Matrix::random_at(rows, columns, placement, seed, data),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(storage: Storage, data: Data, seed: u64) -> Problem<f32> {
        Problem::random(Shape::new(5, 6, 7), storage, data, seed, 1.0, 1.0).unwrap()
    }

    const PADDED: Storage = Storage::padded([1, 2, 3], [3, 2, 1]);

    fn zeros((rows, columns): (usize, usize)) -> Matrix<f32> {
        Matrix::from_elements(rows, columns, |_, _| 0.0).unwrap()
    }

    #[test]
    #[should_panic(expected = "1 x 1")]
    fn a_matrix_replaced_by_a_smaller_one_is_noticed() {
        let mut problem = random(Storage::COMPACT, Data::Uniform, 1);
        problem.c = zeros((1, 1));
        problem.shape();
    }

    #[test]
    fn matrices_or_a_number_of_products_that_do_not_fit_are_refused() {
        for (batch, a, b, c, fits) in [
            (1, (2, 3), (3, 4), (2, 4), true),
            (1, (2, 3), (2, 4), (2, 4), false),
            (1, (2, 3), (3, 5), (2, 4), false),
            (1, (1, 3), (3, 4), (2, 4), false),
            (3, (6, 4), (12, 3), (6, 3), true),
            (0, (6, 4), (12, 3), (6, 3), false),
            (4, (6, 4), (16, 3), (6, 3), false),
            (3, (6, 4), (13, 3), (6, 3), false),
            (2, (6, 4), (12, 3), (6, 3), false),
            (0, (0, 4), (0, 3), (0, 3), false),
        ] {
            let problem = Problem::of_batch(batch, (1.0, 0.0), [a, b, c].map(zeros));
            let refused = ProblemError::ShapesDiffer { a, b, c };
            assert_eq!(
                problem.err(),
                (!fits).then_some(refused),
                "{batch} {a:?} {b:?} {c:?}"
            );
        }
    }

    #[test]
    fn a_batch_is_its_products_below_each_other_also_where_they_are_transposed() {
        let transposed = |batch| {
            let transposes = [Transpose::Yes; 2];
            let storage = Storage {
                transposes,
                batch,
                ..PADDED
            };
            random(storage, Data::Normal, 1)
        };
        let problem = transposed(3);
        let [a, b] = problem.factors_as::<f32>().unwrap();
        assert_eq!((a.rows(), b.columns()), (3 * 7, 7));
        for index in 0..3 {
            let product = problem.product(index).unwrap();
            assert_eq!((product.shape(), product.batch), (problem.shape(), 1));
            assert_eq!(product.c.row(1), problem.c.row(5 * index + 1));
            assert_eq!(product.b.row(3), problem.b.row(7 * index + 3));
            let [one_a, one_b] = product.factors_as::<f32>().unwrap();
            for row in 0..7 {
                assert_eq!(one_a.row(row), a.row(7 * index + row));
                assert_eq!(one_a.row(row)[4], product.a.row(4)[row]);
            }
            for row in 0..6 {
                assert_eq!(one_b.row(row), b.row(6 * index + row));
                assert_eq!(one_b.row(row)[2], product.b.row(2)[row]);
            }
        }
        // The products differ, and the first equals that of a batch of one.
        assert_ne!(problem.a.row(0), problem.a.row(5));
        let first = problem.product(0).unwrap();
        assert_eq!(first.a.row(1), transposed(1).a.row(1));
    }

    #[test]
    fn groups_have_rows_of_one_a_and_a_b_each() {
        let groups = Groups::of(&[2, 0, 3]).unwrap();
        assert_eq!((groups.ends(), groups.total()), (&[2, 2, 5][..], 5));
        assert!(Groups::of(&[]).is_none() && Groups::of(&[1 << 30, 1 << 30, 1]).is_none());
        let storage = Storage {
            transposes: [Transpose::No, Transpose::Yes],
            groups: Some(groups),
            ..PADDED
        };
        let problem = random(storage, Data::Normal, 1);
        assert_eq!(
            (problem.shape(), problem.b.rows()),
            (Shape::new(5, 6, 7), 21)
        );
        let [_, b] = problem.factors_as::<f32>().unwrap();
        assert_eq!((b.rows(), b.columns()), (18, 7));
        for (index, rows) in [0..2, 2..2, 2..5].into_iter().enumerate() {
            let product = problem.product(index).unwrap();
            assert_eq!(product.shape(), Shape::new(rows.len(), 6, 7));
            assert_eq!(product.b.row(6), problem.b.row(7 * index + 6));
            assert_eq!(b.row(6 * index)[3], product.b.row(3)[0]);
            for (of_group, row) in rows.enumerate() {
                assert_eq!(product.a.row(of_group), problem.a.row(row));
                assert_eq!(product.c.row(of_group), problem.c.row(row));
            }
        }
        let call = storage.call(problem.shape(), ElementType::F32);
        let strides = [0, 6 * (7 + PADDED.padding[1]), 0];
        assert_eq!(call.batch, Batch { count: 3, strides });
    }

    #[test]
    fn the_same_seed_gives_the_same_elements_wherever_they_lie() {
        let [compact, padded] =
            [Storage::COMPACT, PADDED].map(|storage| random(storage, Data::Normal, 1));
        let bits =
            |problem: &Problem<f32>| [&problem.a, &problem.b, &problem.c].map(Matrix::hash_of_bits);
        assert_eq!(bits(&compact), bits(&padded));
        let other = bits(&random(Storage::COMPACT, Data::Normal, 2));
        assert!(
            bits(&compact)
                .iter()
                .zip(other)
                .all(|(one, other)| *one != other)
        );
        assert_ne!(compact.a.row(0), compact.a.row(1));
        assert_ne!(compact.a.row(0)[..6], compact.b.row(0)[..6]);
    }

    /// The elements are normal data times powers of two on which A and B agree.
    #[test]
    fn graded_data_is_scaled_by_row_and_column_and_wide_data_along_k() {
        let shape = Shape::new(60, 50, 70);
        let [normal, graded, wide] = [Data::Normal, Data::Graded, Data::Wide].map(|data| {
            let batch = 2;
            let storage = Storage {
                batch,
                ..Storage::COMPACT
            };
            Problem::<f32>::random(shape, storage, data, 1, 1.0, 1.0).unwrap()
        });
        // The power of two between an element and that of normal data.
        let power = |matrix: &Matrix<f32>, normal: &Matrix<f32>, row: usize, col: usize| {
            let [one, other] = [matrix, normal].map(|matrix| matrix.row(row)[col]);
            let power = (one / other).log2().round() as i32;
            assert_eq!(one, other * 2f32.powi(power), "{row} {col}");
            power
        };
        let rows: Vec<i32> = (0..120)
            .map(|row| power(&graded.a, &normal.a, row, 0))
            .collect();
        let columns: Vec<i32> = (0..50)
            .map(|col| power(&graded.b, &normal.b, 0, col))
            .collect();
        let along: Vec<i32> = (0..70).map(|l| power(&wide.a, &normal.a, 0, l)).collect();
        for (powers, largest) in [(&rows, 40), (&columns, 40), (&along, 20)] {
            let (least, most) = (powers.iter().min().unwrap(), powers.iter().max().unwrap());
            assert!(*least >= -largest && *most <= largest, "{powers:?}");
            assert!(most - least > 3 * largest / 2, "{powers:?}");
        }
        for (row, col) in (0..120).flat_map(|row| (0..50).map(move |col| (row, col))) {
            let of_graded = power(&graded.c, &normal.c, row, col);
            assert_eq!(of_graded, rows[row] + columns[col]);
            assert_eq!(power(&graded.a, &normal.a, row, col), rows[row]);
            assert_eq!(power(&graded.b, &normal.b, row, col), columns[col]);
            assert_eq!(power(&wide.a, &normal.a, row, col), along[col]);
            assert_eq!(power(&wide.b, &normal.b, row, col), -along[row % 70]);
            assert_eq!(power(&wide.c, &normal.c, row, col), 0);
        }
    }

    #[test]
    fn what_a_zero_scalar_makes_irrelevant_is_poison() {
        let (shape, compact) = (Shape::cube(3), Storage::COMPACT);
        let problem = Problem::<f32>::random(shape, compact, Data::Uniform, 1, 0.0, 0.0).unwrap();
        for matrix in [&problem.a, &problem.b, &problem.c] {
            assert!(matrix.buffer().iter().all(|element| element.is_nan()));
        }
    }
}
