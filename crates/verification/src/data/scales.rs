//! Quantising (`--scales`): A and B as e4m3, with a scale for each group of their elements.
//!
//! A scale is the largest magnitude of its group over 448, the largest e4m3, rounded up to 20 bits.
//! An element of 4 bits times its scale then has 24: a problem holds these products in f32, exactly,
//! so that references and checks take them as they are. Kernels get the elements, and
//!
//! | scales of | by |
//! | --- | --- |
//! | tensors | alpha |
//! | rows and columns | nothing: C is multiplied after the kernel, as `PerRowScale` and `PerColScale` would |
//! | blocks | the epilogue `BlockScales` |

use std::sync::Arc;

use clap::ValueEnum;
use gpu_gemm::gpu_kernels::epilogue::{BlockScales, Compiled};
use gpu_gemm::{E4m3, ElementType, Fusion, Shape, Variant};

use super::error::ProblemError;
use super::matrix::Matrix;
use super::number::Number;
use super::problem::Problem;
use crate::parallel;

/// What has a scale of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Granularity {
    /// A and B have one each
    Tensor,
    /// Each row of A, and each column of B
    Row,
    /// Each 128 of a row of A, and each 128 x 128 of B
    Block,
}

impl Granularity {
    /// The rows and columns of a group of A and of B.
    fn groups(self) -> [(usize, usize); 2] {
        const SIDE: usize = BlockScales::SIDE;
        match self {
            Granularity::Tensor => [(usize::MAX, usize::MAX); 2],
            Granularity::Row => [(1, usize::MAX), (usize::MAX, 1)],
            Granularity::Block => [(1, SIDE), (SIDE, SIDE)],
        }
    }

    /// The only kernels that apply such scales, if not all can be used.
    pub fn variants(self) -> Option<&'static [Variant]> {
        (self == Granularity::Block).then(|| BlockScales::kernels().variants)
    }
}

/// The scales of A and B.
#[derive(Clone, Debug, PartialEq)]
pub struct Scales {
    pub granularity: Granularity,
    pub a: GroupScales,
    pub b: GroupScales,
}

/// The scales of a matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupScales {
    /// The rows and columns of a group.
    group: (usize, usize),
    pub table: Matrix<f32>,
}

impl GroupScales {
    /// A scale for each group of a matrix of this size, which is a function of its number; at least
    /// one.
    fn new(
        (rows, columns): (usize, usize),
        group: (usize, usize),
        scale: impl Fn(usize, usize) -> f32 + Sync,
    ) -> Result<GroupScales, ProblemError> {
        let size = [rows.div_ceil(group.0), columns.div_ceil(group.1)];
        let [rows, columns] = size.map(|count| count.max(1));
        let table = Matrix::from_elements(rows, columns, scale)?;
        Ok(GroupScales { group, table })
    }

    /// The scales of a matrix's largest magnitudes.
    fn of(matrix: &Matrix<f64>, group: (usize, usize)) -> Result<GroupScales, ProblemError> {
        let (rows, columns) = (matrix.rows(), matrix.columns());
        let across = columns.div_ceil(group.1);
        let largest = parallel::map(rows.div_ceil(group.0), |down| {
            let mut largest = vec![0.0; across];
            let first = down * group.0;
            for row in first..first.saturating_add(group.0).min(rows) {
                for (column, element) in matrix.row(row).iter().enumerate() {
                    let largest: &mut f64 = &mut largest[column / group.1];
                    // `max` would pass over a NaN.
                    let magnitude = if element.is_nan() {
                        f64::INFINITY
                    } else {
                        element.abs()
                    };
                    *largest = largest.max(magnitude);
                }
            }
            largest
        });
        let all = largest.iter().flatten().copied();
        let most = all.fold(0.0, f64::max);
        if most > LARGEST_NUMBER * LARGEST_SCALE {
            return Err(ProblemError::NoScale { most });
        }
        GroupScales::new((rows, columns), group, |down, across| {
            let largest = largest.get(down).and_then(|row| row.get(across));
            scale(largest.copied().unwrap_or(0.0))
        })
    }

    /// The scale of an element.
    fn at(&self, row: usize, column: usize) -> f64 {
        self.table.row(row / self.group.0)[column / self.group.1].into()
    }

    /// The largest magnitude of the scales of a row's elements.
    pub fn largest_of_row(&self, row: usize) -> f64 {
        let scales = self.table.row(row / self.group.0).iter();
        scales.fold(0.0, |largest, scale| largest.max(scale.abs().into()))
    }

    /// The largest magnitude of the scales of a column's elements.
    pub fn largest_of_column(&self, column: usize) -> f64 {
        let scales = (0..self.table.rows()).map(|row| self.table.row(row)[column / self.group.1]);
        scales.fold(0.0, |largest, scale| largest.max(scale.abs().into()))
    }

    /// Each element, and its scale, as `element` makes one of them.
    fn each<T: Number, Other: Number>(
        &self,
        matrix: &Matrix<T>,
        element: impl Fn(f64, f64) -> f64 + Sync,
    ) -> Result<Matrix<Other>, ProblemError> {
        let (rows, columns) = (matrix.rows(), matrix.columns());
        Matrix::from_rows(rows, columns, matrix.placement(), |row, elements| {
            let pairs = elements.iter_mut().zip(matrix.row(row)).enumerate();
            for (column, (target, source)) in pairs {
                *target = Other::nearest(element(source.to_f64(), self.at(row, column)));
            }
        })
    }

    /// The elements that kernels get, of a problem's A or B.
    pub(super) fn divided<T: Number, Input: Number>(
        &self,
        matrix: &Matrix<T>,
    ) -> Result<Matrix<Input>, ProblemError> {
        self.each(matrix, |element, scale| element / scale)
    }
}

/// The largest e4m3.
const LARGEST_NUMBER: f64 = 448.0;

/// Scales are between this and its inverse, so that the product of two is an f32 with all bits.
const LARGEST_SCALE: f64 = (1u64 << 60) as f64;

/// The scale of a group with this largest magnitude.
fn scale(largest: f64) -> f32 {
    /// The last bits of an f32 that a scale does not have.
    const LAST: u32 = 0xf;
    match largest {
        0.0 => 1.0,
        _ => {
            let scale = (largest / LARGEST_NUMBER).max(1.0 / LARGEST_SCALE) as f32;
            f32::from_bits((scale.to_bits() + LAST) & !LAST)
        }
    }
}

impl Scales {
    /// Alpha for kernels.
    pub fn alpha<T: Number>(&self, alpha: T) -> T {
        match self.granularity {
            Granularity::Tensor => T::nearest(alpha.to_f64() * self.a.at(0, 0) * self.b.at(0, 0)),
            Granularity::Row | Granularity::Block => alpha,
        }
    }

    /// The epilogue of kernels, where the scales are at these addresses.
    pub fn fusion(&self, a: *const f32, b: *const f32) -> Option<Fusion> {
        let scales = BlockScales {
            a,
            a_strides: [self.a.table.columns(), 1, 0],
            b,
            b_strides: [1, self.b.table.columns(), 0],
        };
        let is_block = self.granularity == Granularity::Block;
        is_block.then(|| Fusion::of(BlockScales::kernels(), scales))
    }

    /// Multiplies C of a kernel by the scales of its rows and columns.
    pub fn finish<T: Number>(&self, c: &mut Matrix<T>) {
        if self.granularity == Granularity::Row {
            for row in 0..c.rows() {
                for (column, element) in c.row_mut(row).iter_mut().enumerate() {
                    let scale = self.a.at(row, 0) * self.b.at(0, column);
                    *element = T::nearest(element.to_f64() * scale);
                }
            }
        }
    }
}

impl Problem<f32> {
    /// Gives a problem of integers scales of 1 and -1, by which sums stay exact: a scale that
    /// is applied to other elements makes them wrong.
    pub fn add_signs(&mut self, granularity: Granularity, seed: u64) -> Result<(), ProblemError> {
        let sign = |matrix: u64, row: usize, column: usize| {
            let place = seed ^ matrix ^ (row as u64) << 32 ^ column as u64;
            let hash = place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            if (hash ^ hash << 29) >> 63 == 0 {
                1.0
            } else {
                -1.0
            }
        };
        let [of_a, of_b] = granularity.groups();
        let size = |matrix: &Matrix<f32>| (matrix.rows(), matrix.columns());
        let a = GroupScales::new(size(&self.a), of_a, |row, column| sign(0, row, column))?;
        let b = GroupScales::new(size(&self.b), of_b, |row, column| {
            sign(1 << 63, row, column)
        })?;
        let signed = |element, sign| element * sign;
        (self.a, self.b) = (a.each(&self.a, signed)?, b.each(&self.b, signed)?);
        self.scales = Some(Arc::new(Scales { granularity, a, b }));
        Ok(())
    }
}

/// What quantising costs: errors of a quantised problem's C beside the product of the operands as
/// given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantisationError {
    /// The root mean square of the errors over that of the product.
    pub frobenius: f64,
    /// The largest, relative to the sum of the magnitudes of the element's terms.
    pub largest: f64,
    /// The number of rows that were compared.
    pub rows: usize,
}

impl Problem<f64> {
    /// The problem with A and B quantised.
    ///
    /// # Errors
    ///
    /// There is no memory, or no scale for an element.
    pub fn quantised(&self, granularity: Granularity) -> Result<Problem<f32>, ProblemError> {
        let [of_a, of_b] = granularity.groups();
        let (a, b) = (
            GroupScales::of(&self.a, of_a)?,
            GroupScales::of(&self.b, of_b)?,
        );
        let rounded = |element: f64, scale: f64| E4m3::nearest(element / scale).to_f64() * scale;
        let c = &self.c;
        Ok(Problem {
            inputs: ElementType::E4m3,
            alpha: self.alpha as f32,
            beta: self.beta as f32,
            a: a.each(&self.a, rounded)?,
            b: b.each(&self.b, rounded)?,
            c: match self.beta {
                0.0 => Matrix::from_rows(c.rows(), c.columns(), c.placement(), |_, _| ())?,
                _ => c.converted()?,
            },
            transposes: self.transposes,
            batch: self.batch,
            groups: self.groups,
            epilogue: None,
            scales: Some(Arc::new(Scales { granularity, a, b })),
        })
    }

    /// The errors of a C of the quantised problem, with these elements, in rows that take a second or
    /// two; `None` if it has none.
    pub fn quantisation_error(
        &self,
        c: &(dyn Fn(usize, usize) -> f64 + Sync),
    ) -> Option<QuantisationError> {
        /// The number of products in the rows.
        const PRODUCTS: usize = 1 << 30;
        let Shape { m, n, k } = self.shape();
        if m * n == 0 {
            return None;
        }
        let rows = (PRODUCTS / (n * k).max(1)).clamp(1, m);
        let of_rows = parallel::map(rows, |index| {
            let row = index * m / rows;
            let mut sums = vec![(0.0, 0.0); n];
            for (a, index) in self.a.row(row).iter().zip(0..) {
                for ((sum, magnitude), b) in sums.iter_mut().zip(self.b.row(index)) {
                    let product = a * b;
                    *sum += product;
                    *magnitude += f64::abs(product);
                }
            }
            let (mut largest, mut squares, mut all_squares) = (0.0, 0.0, 0.0);
            for (column, (sum, magnitude)) in sums.into_iter().enumerate() {
                let (mut want, mut all) = (self.alpha * sum, self.alpha.abs() * magnitude);
                if self.beta != 0.0 {
                    let old = self.beta * self.c.row(row)[column];
                    (want, all) = (want + old, all + old.abs());
                }
                let error = (c(row, column) - want).abs();
                largest = f64::max(largest, if error == 0.0 { 0.0 } else { error / all });
                (squares, all_squares) = (squares + error * error, all_squares + want * want);
            }
            (largest, squares, all_squares)
        });
        let (mut largest, mut squares, mut all_squares) = (0.0, 0.0, 0.0);
        for of_row in of_rows {
            largest = f64::max(largest, of_row.0);
            (squares, all_squares) = (squares + of_row.1, all_squares + of_row.2);
        }
        Some(QuantisationError {
            frobenius: match squares {
                0.0 => 0.0,
                squares => (squares / all_squares).sqrt(),
            },
            largest,
            rows,
        })
    }
}
