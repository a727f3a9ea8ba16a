//! Epilogues that many programs need. Two of them in turn are [`Then`](super::Then).
//!
//! In names a column is one of C: `PerColBias` has a number for each, which CUTLASS calls so too,
//! and cublasLt `BIAS` (whose C is column-major, so that there it is one a row).

use cuda_std::{FloatExt, GpuFloat};

use super::operand::{Matrix, Number};
use super::{At, Epilogue};

/// `x + bias[col]`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PerColBias<T: Number>(pub *const T::Bits);

impl<T: Number> Epilogue for PerColBias<T> {
    #[inline(always)]
    unsafe fn apply<const N: usize>(&self, at: At, mut values: [f32; N]) -> [f32; N] {
        let bias = at.of_columns::<T, N>(self.0);
        for i in 0..N {
            values[i] += bias[i];
        }
        values
    }
}

/// `x + bias[row]`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PerRowBias<T: Number>(pub *const T::Bits);

impl<T: Number> Epilogue for PerRowBias<T> {
    #[inline(always)]
    unsafe fn apply<const N: usize>(&self, at: At, values: [f32; N]) -> [f32; N] {
        let bias = at.of_row::<T>(self.0);
        values.map(|x| x + bias)
    }
}

/// `x * scale[col]`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PerColScale<T: Number>(pub *const T::Bits);

impl<T: Number> Epilogue for PerColScale<T> {
    #[inline(always)]
    unsafe fn apply<const N: usize>(&self, at: At, mut values: [f32; N]) -> [f32; N] {
        let scale = at.of_columns::<T, N>(self.0);
        for i in 0..N {
            values[i] *= scale[i];
        }
        values
    }
}

/// `x * scale[row]`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PerRowScale<T: Number>(pub *const T::Bits);

impl<T: Number> Epilogue for PerRowScale<T> {
    #[inline(always)]
    unsafe fn apply<const N: usize>(&self, at: At, values: [f32; N]) -> [f32; N] {
        let scale = at.of_row::<T>(self.0);
        values.map(|x| x * scale)
    }
}

/// `x + residual[row][col]`. The residual may be read from C itself by `beta`; this is another
/// matrix.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Residual<T: Number>(pub Matrix<T>);

impl<T: Number> Epilogue for Residual<T> {
    #[inline(always)]
    unsafe fn apply<const N: usize>(&self, at: At, mut values: [f32; N]) -> [f32; N] {
        let residual = at.of_matrix::<T, N>(self.0);
        for i in 0..N {
            values[i] += residual[i];
        }
        values
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
}

/// `min(max(x, least), most)`; NaN stays NaN.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Clamp {
    pub least: f32,
    pub most: f32,
}

impl Epilogue for Clamp {
    #[inline(always)]
    unsafe fn apply<const N: usize>(&self, _: At, values: [f32; N]) -> [f32; N] {
        values.map(|x| {
            let x = if x < self.least { self.least } else { x };
            if x > self.most {
                self.most
            } else {
                x
            }
        })
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
        }
    )*};
}

/// `sqrt(2 / pi)`.
const SQRT_2_PI: f32 = 0.797_884_6;
/// The coefficient of the cube in [`GeluTanh`].
const CUBE: f32 = 0.044_715;

activations! {
    /// `max(0, x)`; NaN stays NaN.
    Relu = |x| if x < 0.0 { 0.0 } else { x };
    /// `x * (1 + erf(x / sqrt(2))) / 2` (D. Hendrycks, K. Gimpel, arXiv 1606.08415).
    Gelu = |x| 0.5 * x * (1.0 + FloatExt::error_function(x * core::f32::consts::FRAC_1_SQRT_2));
    /// [`Gelu`] by the approximation with tanh of the same paper, which is what cublasLt's `GELU`
    /// computes: `x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2`.
    GeluTanh = |x| 0.5 * x * (1.0 + GpuFloat::tanh(SQRT_2_PI * (x + CUBE * x * x * x)));
    /// `x / (1 + e^-x)`, also called swish.
    Silu = |x| x / (1.0 + GpuFloat::exp(-x));
}

/// The gradient of [`GeluTanh`]: `x * gelu'(aux[row][col])`, where `aux` is what came before the
/// activation.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct GeluTanhGradient<T: Number>(pub Matrix<T>);

impl<T: Number> Epilogue for GeluTanhGradient<T> {
    #[inline(always)]
    unsafe fn apply<const N: usize>(&self, at: At, mut values: [f32; N]) -> [f32; N] {
        let aux = at.of_matrix::<T, N>(self.0);
        for i in 0..N {
            let x = aux[i];
            let tanh = GpuFloat::tanh(SQRT_2_PI * (x + CUBE * x * x * x));
            let inner = SQRT_2_PI * (1.0 + 3.0 * CUBE * x * x);
            values[i] *= 0.5 * (1.0 + tanh) + 0.5 * x * (1.0 - tanh * tanh) * inner;
        }
        values
    }
}
