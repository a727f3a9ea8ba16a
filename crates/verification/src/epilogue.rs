//! The ready-made epilogues of `--epilogue`: `C = f(alpha * A * B + beta * C + bias[column])`.

use std::ptr;

use clap::ValueEnum;
use gpu_gemm::gpu_kernels::epilogue::{Bias, Compiled, GeluTanh, Relu, Silu, Then};
use gpu_gemm::{Fusion, Variant};

/// An epilogue that the library's kernels are compiled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Epilogue {
    /// A number for each column of C
    Bias,
    /// `max(0, x)`
    Relu,
    /// `x * (1 + tanh(y)) / 2` of `y = sqrt(2 / pi) * (x + 0.044715 * x^3)`
    Gelu,
    /// `x / (1 + e^-x)`
    Silu,
    /// A bias, then relu
    #[value(name = "bias+relu")]
    BiasRelu,
    /// A bias, then gelu
    #[value(name = "bias+gelu")]
    BiasGelu,
    /// A bias, then silu
    #[value(name = "bias+silu")]
    BiasSilu,
}

/// The error of an activation, besides that of its argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FunctionError {
    /// The largest slope, by which an error of the argument grows at most.
    pub slope: f64,
    pub relative: f64,
    pub absolute: f64,
}

impl FunctionError {
    /// That of the identity.
    pub const NONE: FunctionError = FunctionError {
        slope: 1.0,
        relative: 0.0,
        absolute: 0.0,
    };

    /// The largest error of a result near `want`, besides that of its argument.
    pub fn of(self, want: f64) -> f64 {
        match want.is_finite() {
            true => self.relative * want.abs() + self.absolute,
            false => 0.0,
        }
    }
}

impl Epilogue {
    /// Whether it adds a bias.
    pub fn has_bias(self) -> bool {
        !matches!(self, Epilogue::Relu | Epilogue::Gelu | Epilogue::Silu)
    }

    /// Whether it maps integers to integers.
    pub fn is_exact(self) -> bool {
        matches!(self, Epilogue::Bias | Epilogue::Relu | Epilogue::BiasRelu)
    }

    /// The bias of a column: integers of up to 4, which no type and no sum of integers rounds.
    pub fn bias(self, column: usize) -> f32 {
        let hash = (column as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        match self.has_bias() {
            true => (hash % 9) as f32 - 4.0,
            false => 0.0,
        }
    }

    /// The function of an element with its bias.
    pub fn activation(self, x: f64) -> f64 {
        match self {
            Epilogue::Bias => x,
            Epilogue::Relu | Epilogue::BiasRelu if x < 0.0 => 0.0,
            Epilogue::Relu | Epilogue::BiasRelu => x,
            Epilogue::Gelu | Epilogue::BiasGelu => {
                let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
                // (1 + tanh(y)) / 2, without cancellation.
                x / (1.0 + (-2.0 * inner).exp())
            }
            Epilogue::Silu | Epilogue::BiasSilu => x / (1.0 + (-x).exp()),
        }
    }

    /// The error of the function in f32. gelu and silu are `x / (1 + 2^t)`, by `exp2` and `recip`
    /// of `cuda_std::approx`, whose relative errors are 2^-22 and 2^-23 by the PTX ISA
    /// (`ex2.approx`, `rcp.approx`); with three more roundings that is below 2^-21. `t` has a
    /// relative error of up to eight roundings, 2^-21 in all, so `2^t` has one of
    /// `2^-21 * ln(2) * |t|`; times the result, `|x| * |t| / (1 + 2^|t|)` is nowhere above 0.8. The
    /// largest slopes are 1.129 and 1.0999.
    pub fn error(self) -> FunctionError {
        let slope = match self {
            _ if self.is_exact() => return FunctionError::NONE,
            Epilogue::Gelu | Epilogue::BiasGelu => 1.13,
            _ => 1.1,
        };
        FunctionError {
            slope,
            relative: 2f64.powi(-21),
            absolute: 2f64.powi(-21),
        }
    }

    /// The kernels with it.
    pub fn variants(self) -> &'static [Variant] {
        self.fusion(ptr::null()).variants
    }

    /// The kernels, and the parameters where the bias is at this address.
    pub fn fusion(self, bias: *const f32) -> Fusion {
        fn of<E: Compiled>(epilogue: E) -> Fusion {
            Fusion::of(E::kernels(), epilogue)
        }
        let bias = Bias(if self.has_bias() { bias } else { ptr::null() });
        match self {
            Epilogue::Bias => of(bias),
            Epilogue::Relu | Epilogue::BiasRelu => of(Then(bias, Relu)),
            Epilogue::Gelu | Epilogue::BiasGelu => of(Then(bias, GeluTanh)),
            Epilogue::Silu | Epilogue::BiasSilu => of(Then(bias, Silu)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activations_in_f32_are_within_their_error_and_slopes() {
        for epilogue in [Epilogue::Gelu, Epilogue::Silu] {
            let of = |x: f32| match epilogue {
                Epilogue::Gelu => GeluTanh::of(x),
                _ => Silu::of(x),
            };
            let error = epilogue.error();
            for i in -400_000..=400_000 {
                let x = i as f32 / 4000.0;
                let right = epilogue.activation(x.into());
                let off = (f64::from(of(x)) - right).abs();
                assert!(off <= error.of(right), "{epilogue:?} of {x}: off by {off}");
                let next = epilogue.activation(f64::from(x) + 1e-4);
                assert!(
                    (next - right).abs() <= error.slope * 1e-4,
                    "{epilogue:?} at {x}"
                );
            }
        }
    }
}
