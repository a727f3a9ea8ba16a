//! `C = alpha * A * B + beta * C`, element by element.

use std::marker::PhantomData;

use crate::gpu::Gpu;

/// A matrix by its address. The element `(row, column)` is `row * steps.0 + column * steps.1`
/// elements after the first.
#[derive(Clone, Copy)]
pub struct Matrix {
    pub start: u64,
    pub steps: (usize, usize),
}

impl Matrix {
    pub fn row_major(start: u64, leading: usize) -> Matrix {
        let steps = (leading, 1);
        Matrix { start, steps }
    }

    pub fn column_major(start: u64, leading: usize) -> Matrix {
        let steps = (1, leading);
        Matrix { start, steps }
    }

    fn index(self, row: usize, column: usize) -> usize {
        row * self.steps.0 + column * self.steps.1
    }

    /// Elements from the first to the last of a matrix of this size.
    pub fn extent(self, (rows, columns): (usize, usize)) -> usize {
        match rows == 0 || columns == 0 {
            true => 0,
            false => self.index(rows - 1, columns - 1) + 1,
        }
    }
}

/// `A` is `m x k`, `B` is `k x n`.
#[derive(Clone, Copy)]
pub struct Gemm<T: Element> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub alpha: T::Scalar,
    pub a: Matrix,
    pub b: Matrix,
    pub beta: T::Scalar,
    pub c: Matrix,
    /// Whether to write a wrong first element of C.
    pub is_wrong: bool,
    /// Whether to overwrite the first element of A.
    pub writes_a: bool,
}

impl<T: Element> Gemm<T> {
    /// The products of a batch, with these strides between their matrices, in elements. If the
    /// batch is to be wrong, its last product is.
    pub fn batch(self, products: usize, strides: [usize; 3]) -> impl Iterator<Item = Gemm<T>> {
        (0..products).map(move |product| {
            let moved = |matrix: Matrix, stride: usize, element_bytes: usize| Matrix {
                start: matrix.start + (product * stride * element_bytes) as u64,
                ..matrix
            };
            Gemm {
                a: moved(self.a, strides[0], size_of::<T::Input>()),
                b: moved(self.b, strides[1], size_of::<T::Input>()),
                c: moved(self.c, strides[2], size_of::<T>()),
                is_wrong: self.is_wrong && product == products - 1,
                ..self
            }
        })
    }

    /// Computes the product, with `round` applied to the elements of A and B.
    pub fn compute(&self, gpu: &Gpu, round: impl Fn(T::Input) -> T::Input) {
        // As in BLAS: operands with a zero scalar are not read.
        let k = if self.alpha == T::Scalar::default() { 0 } else { self.k };
        let (m, n) = (self.m, self.n);
        if m == 0 || n == 0 {
            return;
        }
        let located = |matrix: Matrix, size, element_bytes: usize| {
            match matrix.extent(size) * element_bytes {
                0 => std::ptr::null_mut(),
                bytes => gpu.memory(matrix.start, bytes),
            }
        };
        let a = located(self.a, (m, k), size_of::<T::Input>()).cast::<T::Input>();
        let b = located(self.b, (k, n), size_of::<T::Input>()).cast::<T::Input>();
        let c = located(self.c, (m, n), size_of::<T>()).cast::<T>();
        let mut sums = vec![T::EMPTY; n];
        for row in 0..m {
            sums.fill(T::EMPTY);
            for index in 0..k {
                // SAFETY: A has this element, and its memory extends to the last.
                let factor = round(unsafe { a.add(self.a.index(row, index)).read() });
                for (column, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: as for A.
                    let other = unsafe { b.add(self.b.index(index, column)).read() };
                    *sum = T::plus_product(*sum, factor, round(other));
                }
            }
            for (column, sum) in sums.iter().enumerate() {
                // SAFETY: as for A.
                unsafe {
                    let c = c.add(self.c.index(row, column));
                    let old = (self.beta != T::Scalar::default()).then(|| c.read());
                    c.write(T::combined(self.alpha, *sum, self.beta, old));
                }
            }
        }
        if self.is_wrong {
            // SAFETY: C has a first element.
            unsafe { c.write(T::WRONG) };
        }
        if self.writes_a {
            // SAFETY: A has a first element, too, and any byte is valid in it.
            unsafe { a.cast::<u8>().write(0x5a) };
        }
    }
}

/// An element of C.
pub trait Element: Copy {
    /// The element type of A and B.
    type Input: Copy;
    /// The type of alpha and beta.
    type Scalar: Copy + PartialEq + Default + Send;
    /// A value that is no result of any test.
    const WRONG: Self;
    /// The type of the accumulator.
    type Sum: Copy;
    const EMPTY: Self::Sum;

    fn plus_product(sum: Self::Sum, a: Self::Input, b: Self::Input) -> Self::Sum;

    /// `alpha * sum + beta * old`, or `alpha * sum`.
    fn combined(alpha: Self::Scalar, sum: Self::Sum, beta: Self::Scalar, old: Option<Self>) -> Self;
}

macro_rules! float {
    ($type:ty) => {
        impl Element for $type {
            type Input = $type;
            type Scalar = $type;
            const WRONG: $type = 1234567.0;
            type Sum = f64;
            const EMPTY: f64 = 0.0;

            fn plus_product(sum: f64, a: $type, b: $type) -> f64 {
                sum + f64::from(a) * f64::from(b)
            }

            fn combined(alpha: $type, sum: f64, beta: $type, old: Option<$type>) -> $type {
                let added = old.map_or(0.0, |old| f64::from(beta) * f64::from(old));
                (f64::from(alpha) * sum + added) as $type
            }
        }
    };
}

float!(f32);
float!(f64);

impl Element for i32 {
    type Input = i32;
    type Scalar = i32;
    const WRONG: i32 = 1234567;
    type Sum = i32;
    const EMPTY: i32 = 0;

    fn plus_product(sum: i32, a: i32, b: i32) -> i32 {
        sum.wrapping_add(a.wrapping_mul(b))
    }

    fn combined(alpha: i32, sum: i32, beta: i32, old: Option<i32>) -> i32 {
        let scaled = alpha.wrapping_mul(sum);
        scaled.wrapping_add(beta.wrapping_mul(old.unwrap_or(0)))
    }
}

/// The bits of a 16-bit element of A and B.
#[derive(Clone, Copy)]
pub struct Bf16(u16);

#[derive(Clone, Copy)]
pub struct F16(u16);

impl From<Bf16> for f64 {
    fn from(element: Bf16) -> f64 {
        f32::from_bits(u32::from(element.0) << 16).into()
    }
}

impl Element for Bf16 {
    type Input = Bf16;
    type Scalar = f32;
    const WRONG: Bf16 = Bf16(0x4996); // 1228800
    type Sum = f64;
    const EMPTY: f64 = 0.0;

    fn plus_product(sum: f64, a: Bf16, b: Bf16) -> f64 {
        sum + f64::from(a) * f64::from(b)
    }

    fn combined(alpha: f32, sum: f64, beta: f32, old: Option<Bf16>) -> Bf16 {
        let old = old.map(|old| f64::from(old) as f32);
        let bits = f32::combined(alpha, sum, beta, old).to_bits();
        // The nearest; of two, the even one.
        Bf16(((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16)
    }
}

impl From<F16> for f64 {
    fn from(element: F16) -> f64 {
        let (exponent, fraction) = (i32::from(element.0 >> 10 & 31), f64::from(element.0 & 1023));
        let magnitude = match exponent {
            0 => fraction * 2f64.powi(-24),
            31 if fraction == 0.0 => f64::INFINITY,
            31 => f64::NAN,
            _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
        };
        if element.0 >> 15 == 1 { -magnitude } else { magnitude }
    }
}

/// An f32 element of C, for A and B of 16 bits.
#[derive(Clone, Copy)]
pub struct Of<Input>(f32, PhantomData<Input>);

impl<Input: Copy + Into<f64>> Element for Of<Input> {
    type Input = Input;
    type Scalar = f32;
    const WRONG: Self = Of(f32::WRONG, PhantomData);
    type Sum = f64;
    const EMPTY: f64 = 0.0;

    fn plus_product(sum: f64, a: Input, b: Input) -> f64 {
        sum + a.into() * b.into()
    }

    fn combined(alpha: f32, sum: f64, beta: f32, old: Option<Self>) -> Self {
        Of(f32::combined(alpha, sum, beta, old.map(|old| old.0)), PhantomData)
    }
}
