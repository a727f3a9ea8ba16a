//! Products of small matrices, and their right results: sums in f64, which are exact for integers.
//! The memory around the matrices is poison.

use gpu_gemm::{Batch, Call, ElementType, MultipliesInto, Operand, Shape, Transpose};
use host::data::{Arithmetic, Number};
use libtest_mimic::Failed;
use tests::bits;

/// The operands, and their layout in memory.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub shape: Shape,
    pub transposes: (Transpose, Transpose),
    pub elements: Elements,
    /// Whether rows begin at multiples of 16 bytes, if `padding` is one, too.
    pub aligned: bool,
    /// Elements between rows, and before the first matrix.
    pub padding: usize,
    pub offset: usize,
    pub batch: usize,
    pub strides: Strides,
    pub alpha: i32,
    pub beta: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// Results are rounded once if C has fewer bits than its sums.
    Integers,
    Fractions,
}

/// The start of the next matrices in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strides {
    /// The next product begins this number of elements after the end of the last.
    Gap(usize),
    /// All products have one A.
    OneA,
    /// All products have one B, and each row of C is followed by that of the next product.
    OneB,
}

impl Case {
    pub fn of((m, n, k): (usize, usize, usize), transposes: (Transpose, Transpose)) -> Case {
        Case {
            shape: Shape::new(m, n, k),
            transposes,
            elements: Elements::Integers,
            aligned: false,
            padding: 0,
            offset: 0,
            batch: 1,
            strides: Strides::Gap(0),
            alpha: 1,
            beta: 0,
        }
    }
}

/// Matrices of a batch in one memory. All other words are poison.
pub struct Matrices<T> {
    pub elements: Vec<T>,
    pub leading: usize,
    pub stride: usize,
    pub offset: usize,
}

impl<T: Number> Matrices<T> {
    /// Matrices with these values, counted from 1; or poison, if nothing is read.
    fn new(
        case: &Case,
        (rows, columns): (usize, usize),
        [leading, stride]: [usize; 2],
        value: Option<impl Fn(usize) -> T>,
    ) -> Matrices<T> {
        let end = case.offset + case.batch.saturating_sub(1) * stride + rows * leading;
        let mut matrices = Matrices {
            // Poison after them, too.
            elements: vec![T::POISON; end + 3],
            leading,
            stride,
            offset: case.offset,
        };
        let Some(value) = value else {
            return matrices;
        };
        let mut number = 0;
        for product in 0..case.batch {
            for (row, column) in pairs(rows, columns) {
                let place = matrices.place(product, row, column);
                number += 1;
                matrices.elements[place] = value(number);
            }
        }
        matrices
    }

    /// The elements of a single matrix, from the first to the last.
    pub fn of_one(&self, (rows, columns): (usize, usize)) -> &[T] {
        let last = rows.saturating_sub(1) * self.leading + columns;
        &self.elements[self.offset..][..last]
    }

    pub fn place(&self, product: usize, row: usize, column: usize) -> usize {
        self.offset + product * self.stride + row * self.leading + column
    }

    /// An element of the matrix as multiplied.
    pub fn element(&self, product: usize, transpose: Transpose, place: (usize, usize)) -> f64 {
        let (row, column) = transpose.of(place);
        self.elements[self.place(product, row, column)].to_f64()
    }
}

fn pairs(rows: usize, columns: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows).flat_map(move |row| (0..columns).map(move |column| (row, column)))
}

/// Small integers, most of them positive, so that long sums have more bits than 16-bit elements.
/// In types wider than f32, those of A have more bits than f32, and integer sums wrap.
fn a_value<T: Number>(elements: Elements, number: usize) -> T {
    let small = scrambled(number) % 7 - 1;
    match (elements, T::TYPE) {
        (Elements::Fractions, _) => fraction(number),
        (_, ElementType::F64 | ElementType::I32) => T::from_integer(small * ((1 << 27) + 1)),
        _ => T::from_integer(small),
    }
}

/// The same for B and C.
fn b_value<T: Number>(elements: Elements, number: usize) -> T {
    let number = number + 1_000_000;
    match elements {
        Elements::Fractions => fraction(number),
        Elements::Integers => T::from_integer(scrambled(number) % 6 - 1),
    }
}

/// A fraction between -1 and 1.
fn fraction<T: Number>(number: usize) -> T {
    T::nearest(f64::from(scrambled(number)) / 32767.5 - 1.0)
}

/// 16 bits that look random.
pub fn scrambled(number: usize) -> i32 {
    let word = (number as u32).wrapping_mul(0x9e37_79b9);
    ((word ^ word >> 15).wrapping_mul(0x85eb_ca6b) >> 16) as i32
}

/// The relative error of one operation, rounded or truncated.
fn unit(arithmetic: Arithmetic) -> f64 {
    match arithmetic {
        Arithmetic::Float { unit_roundoff, .. } => 2.0 * unit_roundoff,
        Arithmetic::WrappingInteger { .. } => 0.0,
    }
}

pub struct Problem<T, C> {
    pub case: Case,
    pub a: Matrices<T>,
    pub b: Matrices<T>,
    pub c: Matrices<C>,
}

impl<T: Number + MultipliesInto<C>, C: Number> Problem<T, C> {
    pub fn new(case: Case) -> Problem<T, C> {
        let Case {
            shape: Shape { m, n, k },
            transposes,
            elements,
            batch,
            strides,
            ..
        } = case;
        let (of_a, of_b) = (transposes.0.of((m, k)), transposes.1.of((k, n)));
        let apart = |(rows, columns): (usize, usize), bytes: usize| {
            let columns = match case.aligned {
                true => columns.next_multiple_of(16 / bytes),
                false => columns,
            };
            // A leading dimension is at least 1, as in BLAS.
            let leading = usize::max(columns + case.padding, 1);
            let gap = if let Strides::Gap(gap) = strides {
                gap
            } else {
                0
            };
            [leading, rows * leading + gap]
        };
        let of_t = |shape| apart(shape, size_of::<T>());
        let one = |shape| [of_t(shape)[0], 0];
        let compact = || apart((m, n), size_of::<C>());
        let side_by_side = [batch.max(1) * (n + 1), n + 1];
        let (in_a, in_b, in_c) = match strides {
            Strides::Gap(_) => (of_t(of_a), of_t(of_b), compact()),
            Strides::OneA => (one(of_a), of_t(of_b), compact()),
            Strides::OneB => (of_t(of_a), one(of_b), side_by_side),
        };
        let reads = case.alpha != 0;
        let a = reads.then_some(|number| a_value::<T>(elements, number));
        let b = reads.then_some(|number| b_value::<T>(elements, number));
        let c = (case.beta != 0).then_some(|number| b_value::<C>(elements, number));
        Problem {
            a: Matrices::new(&case, of_a, in_a, a),
            b: Matrices::new(&case, of_b, in_b, b),
            c: Matrices::new(&case, (m, n), in_c, c),
            case,
        }
    }

    pub fn name(&self) -> String {
        format!("{} {:?}", T::DATA_TYPE, self.case)
    }

    /// Its call, with memory at these addresses.
    pub fn call(&self, [a, b]: [usize; 2]) -> Call {
        let operand = |address, matrices: &Matrices<T>, transpose| {
            let address = address + matrices.offset * size_of::<T>();
            Operand::at(address, matrices.leading, T::TYPE, transpose)
        };
        let batch = Batch {
            count: self.case.batch,
            strides: [self.a.stride, self.b.stride, self.c.stride],
        };
        Call {
            shape: self.case.shape,
            a: operand(a, &self.a, self.case.transposes.0),
            b: operand(b, &self.b, self.case.transposes.1),
            ldc: self.c.leading,
            batch: Batch::ONE,
        }
        .batched(batch, T::TYPE)
    }

    /// Checks that this memory holds the products, and that everything around them is unchanged.
    pub fn is_right(&self, got: &[C]) -> Result<(), Failed> {
        let mut expected = self.c.elements.clone();
        for product in 0..self.case.batch {
            for place in pairs(self.case.shape.m, self.case.shape.n) {
                let in_memory = self.c.place(product, place.0, place.1);
                let found = got[in_memory];
                let (want, bound) = self.want(product, place);
                // A NaN is not within the bound.
                let is_near = (found.to_f64() - want.to_f64()).abs() <= bound;
                if found != want && !is_near {
                    let name = self.name();
                    let message =
                        format!("{name}: {found} in place of {want} at {place:?} of {product}");
                    return Err(message.into());
                }
                expected[in_memory] = found;
            }
        }
        let (got, expected) = (bits(got), bits(&expected));
        let wrong = got
            .iter()
            .zip(&expected)
            .position(|(got, want)| got != want);
        assert_eq!(wrong, None, "{}: an element beside C", self.name());
        Ok(())
    }

    /// An element of the result, rounded once, and its error bound.
    fn want(&self, product: usize, (row, column): (usize, usize)) -> (C, f64) {
        let Case {
            shape: Shape { k, .. },
            transposes,
            elements,
            alpha,
            beta,
            ..
        } = self.case;
        let (alpha, beta) = (f64::from(alpha), f64::from(beta));
        let (mut sum, mut magnitude) = (0.0, 0.0);
        if beta != 0.0 {
            sum = beta * self.c.element(product, Transpose::No, (row, column));
            magnitude = sum.abs();
        }
        for l in 0..if alpha == 0.0 { 0 } else { k } {
            let a = self.a.element(product, transposes.0, (row, l));
            let term = alpha * a * self.b.element(product, transposes.1, (l, column));
            sum += term;
            magnitude += term.abs();
        }
        if T::TYPE == ElementType::I32 {
            return (C::from_integer(sum as i64 as i32), 0.0);
        }
        let bound = match elements {
            Elements::Integers => 0.0,
            Elements::Fractions => {
                (k + 4) as f64 * unit(T::SUMS) * magnitude + unit(C::ARITHMETIC) * sum.abs()
            }
        };
        (C::nearest(sum), bound)
    }
}
