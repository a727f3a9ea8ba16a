//! Epilogues that many programs need. Two of them in turn are [`Then`](super::Then).
//!
//! `Col` means a column of C: `PerColBias` has a number for each, as in CUTLASS. cublasLt's `BIAS`
//! is the same, since its C is column-major, and its rows are our columns.

use core::f32::consts::{FRAC_1_SQRT_2, LOG2_E};

use cuda_std::{approx, FloatExt, GpuFloat};

use super::operand::{Matrix, Number};
use super::{Alignment, At, Epilogue};

/// Functions of an element and a number that belongs to it.
macro_rules! with_operand {
    ($(
        $(#[$doc:meta])*
        $name:ident($operand:ty) = |$at:ident, $of:ident| $numbers:expr,
            |$x:ident, $y:ident| $value:expr, |$thread:ident| $aligned:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[repr(C)]
        pub struct $name<T: Number>(pub $operand);

        impl<T: Number> Epilogue for $name<T> {
            #[inline(always)]
            unsafe fn apply<const N: usize>(&self, $at: At, mut values: [f32; N]) -> [f32; N] {
                let $of = self.0;
                let numbers: [f32; N] = $numbers;
                for i in 0..N {
                    let ($x, $y) = (values[i], numbers[i]);
                    values[i] = $value;
                }
                values
            }

            #[inline(always)]
            #[allow(unused_variables)]
            unsafe fn prepare(&self, $at: At, $thread: usize) -> Alignment {
                let $of = self.0;
                $aligned
            }
        }
    )*};
}

with_operand! {
    /// `x + bias[col]`.
    PerColBias(*const T::Bits) = |at, bias| at.of_columns::<T, N>(bias), |x, bias| x + bias,
        |thread| at.prefetch_columns::<T>(bias, thread);
    /// `x + bias[row]`.
    PerRowBias(*const T::Bits) = |at, bias| [at.of_row::<T>(bias); N], |x, bias| x + bias,
        |thread| Alignment::Pairs;
    /// `x * scale[col]`.
    PerColScale(*const T::Bits) = |at, scale| at.of_columns::<T, N>(scale), |x, scale| x * scale,
        |thread| at.prefetch_columns::<T>(scale, thread);
    /// `x * scale[row]`.
    PerRowScale(*const T::Bits) = |at, scale| [at.of_row::<T>(scale); N], |x, scale| x * scale,
        |thread| Alignment::Pairs;
    /// `x + residual[row][col]`. The residual may be read from C itself by `beta`; this is another
    /// matrix.
    Residual(Matrix<T>) = |at, residual| at.of_matrix::<T, N>(residual), |x, y| x + y,
        |thread| residual.alignment(at);
    /// The backward pass of [`GeluTanh`]: `x * gelu'(aux[row][col])`, where `aux` is what came
    /// before the activation. cublasLt calls it `DGELU`.
    DGeluTanh(Matrix<T>) = |at, aux| at.of_matrix::<T, N>(aux), |x, aux| x * GeluTanh::derivative(aux),
        |thread| aux.alignment(at);
}

/// [`PerColBias`] of f32, or none if the pointer is null.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Bias(pub *const f32);

impl Epilogue for Bias {
    #[inline(always)]
    unsafe fn apply<const N: usize>(&self, at: At, values: [f32; N]) -> [f32; N] {
        // One addition either way, which becomes one instruction with the product by alpha.
        let bias = at.of_columns_or_none::<N>(self.0);
        core::array::from_fn(|i| values[i] + bias[i])
    }

    #[inline(always)]
    unsafe fn prepare(&self, at: At, thread: usize) -> Alignment {
        match self.0.is_null() {
            true => Alignment::Pairs,
            false => PerColBias::<f32>(self.0).prepare(at, thread),
        }
    }
}

/// `x`, which is stored in another matrix too, rounded to its type: what comes before an
/// activation, for the backward pass. cublasLt calls that matrix `aux`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct AuxStore<T: Number>(pub Matrix<T>);

impl<T: Number> Epilogue for AuxStore<T> {
    #[inline(always)]
    unsafe fn apply<const N: usize>(&self, at: At, values: [f32; N]) -> [f32; N] {
        at.store(self.0, values);
        values
    }

    #[inline(always)]
    unsafe fn prepare(&self, at: At, _: usize) -> Alignment {
        self.0.alignment(at)
    }
}

/// A scale for each 128 of a row of A along K, and for each 128 x 128 of B, as DeepSeek-V3
/// quantises activations and weights (arXiv 2412.19437, 3.3.2): the products of a block are
/// multiplied by both of its scales before they are added to those of other blocks. Only kernels
/// that promote sums do that; elements themselves stay as they are.
///
/// The scales of a batch's products follow each other: each product has as many.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct BlockScales {
    /// `a[row * a_strides[0] + block * a_strides[1]]`, and `a_strides[2]` for each product.
    pub a: *const f32,
    pub a_strides: [usize; 3],
    /// `b[block_of_columns * b_strides[0] + block * b_strides[1]]`, likewise.
    pub b: *const f32,
    pub b_strides: [usize; 3],
}

impl BlockScales {
    /// Rows of B^T, and elements along K, with one scale.
    pub const SIDE: usize = 128;
}

impl Epilogue for BlockScales {
    #[inline(always)]
    unsafe fn apply<const N: usize>(&self, _: At, values: [f32; N]) -> [f32; N] {
        values
    }

    #[inline(always)]
    unsafe fn prepare(&self, _: At, _: usize) -> Alignment {
        Alignment::Pairs
    }

    const SCALES_BLOCKS: bool = true;

    #[inline(always)]
    unsafe fn block_scale(&self, at: At, block: usize) -> f32 {
        let place = |line: usize, [of_line, of_block, of_product]: [usize; 3]| {
            line * of_line + block * of_block + at.product * of_product
        };
        let of_a = *self.a.add(place(at.row, self.a_strides));
        let of_b = *self.b.add(place(at.col / Self::SIDE, self.b_strides));
        of_a * of_b
    }
}

/// What an epilogue makes of `alpha * A * B1`, times `alpha * A * B2`, for the kernels of
/// `gated.rs`: `Gated<Silu>` is a SwiGLU, `Gated<GeluTanh>` a GeGLU (N. Shazeer, arXiv 2002.05202).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Gated<E>(pub E);

impl<E: Epilogue> Epilogue for Gated<E> {
    #[inline(always)]
    unsafe fn apply<const N: usize>(&self, _: At, values: [f32; N]) -> [f32; N] {
        values
    }

    #[inline(always)]
    unsafe fn prepare(&self, _: At, _: usize) -> Alignment {
        Alignment::Pairs
    }

    const IS_GATE: bool = true;

    #[inline(always)]
    unsafe fn gate<const N: usize>(&self, at: At, gates: [f32; N], ups: [f32; N]) -> [f32; N] {
        let mut values = self.0.apply(at, gates);
        for i in 0..N {
            values[i] *= ups[i];
        }
        values
    }
}

/// `min` where x is less, `max` where it is greater; NaN stays NaN.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Clamp {
    pub min: f32,
    pub max: f32,
}

impl Epilogue for Clamp {
    #[inline(always)]
    unsafe fn apply<const N: usize>(&self, _: At, values: [f32; N]) -> [f32; N] {
        values.map(|x| {
            let x = if x < self.min { self.min } else { x };
            if x > self.max {
                self.max
            } else {
                x
            }
        })
    }

    #[inline(always)]
    unsafe fn prepare(&self, _: At, _: usize) -> Alignment {
        Alignment::Pairs
    }
}

/// Functions of one number.
macro_rules! activations {
    ($($(#[$doc:meta])* $name:ident = |$x:ident| $value:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[repr(C)]
        pub struct $name;

        impl $name {
            /// The value at a number.
            #[inline(always)]
            pub fn of($x: f32) -> f32 {
                $value
            }
        }

        impl Epilogue for $name {
            #[inline(always)]
            unsafe fn apply<const N: usize>(&self, _: At, values: [f32; N]) -> [f32; N] {
                values.map(Self::of)
            }

            #[inline(always)]
            unsafe fn prepare(&self, _: At, _: usize) -> Alignment {
                Alignment::Pairs
            }

                }
    )*};
}

/// `sqrt(2 / pi)`.
const SQRT_2_PI: f32 = 0.797_884_6;
/// The coefficient of the cube in [`GeluTanh`].
const CUBE: f32 = 0.044_715;

/// `numerator / (1 + 2^x)`, by two instructions of the unit for special functions, which are
/// right to some 22 bits. An exact division takes four times the instructions, and a thread has
/// up to 128 elements; while it computes them, tensor cores wait.
#[inline(always)]
fn over_one_plus_power(numerator: f32, x: f32) -> f32 {
    numerator * approx::recip(1.0 + approx::exp2(x))
}

/// `numerator * (1 + tanh(y)) / 2` of [`GeluTanh`], which is `numerator / (1 + e^-2y)`.
#[inline(always)]
fn times_half_of_one_plus_tanh(numerator: f32, x: f32) -> f32 {
    const LINEAR: f32 = -2.0 * SQRT_2_PI * LOG2_E;
    let slope = GpuFloat::mul_add(x * x, LINEAR * CUBE, LINEAR);
    over_one_plus_power(numerator, x * slope)
}

activations! {
    /// `max(0, x)`; NaN stays NaN.
    Relu = |x| if x < 0.0 { 0.0 } else { x };
    /// `x * (1 + erf(x / sqrt(2))) / 2` (D. Hendrycks, K. Gimpel, arXiv 1606.08415), by
    /// `1 + erf(y) = erfc(-y)`, which has all bits where y is negative.
    Gelu = |x| 0.5 * x * FloatExt::complementary_error_function(-x * FRAC_1_SQRT_2);
    /// [`Gelu`] by the approximation with tanh of the same paper, which is what cublasLt's `GELU`
    /// computes: `x * (1 + tanh(y)) / 2` of `y = sqrt(2 / pi) * (x + 0.044715 * x^3)`.
    GeluTanh = |x| times_half_of_one_plus_tanh(x, x);
    /// `x / (1 + e^-x)`, also called swish.
    Silu = |x| over_one_plus_power(x, -LOG2_E * x);
}

impl GeluTanh {
    /// The derivative at a number.
    #[inline(always)]
    pub fn derivative(x: f32) -> f32 {
        // It is 0 or 1 in f32 from 10 on, where the cube is still finite.
        let x = if x < -10.0 { -10.0 } else { x };
        let x = if x > 10.0 { 10.0 } else { x };
        let half = times_half_of_one_plus_tanh(1.0, x);
        let inner = SQRT_2_PI * (1.0 + 3.0 * CUBE * x * x);
        half + x * 2.0 * half * (1.0 - half) * inner
    }
}
