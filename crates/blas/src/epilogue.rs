//! What cublasLt does with a result before it is stored, by the library's kernels with an epilogue.

use std::ffi::{c_int, c_void};
use std::fmt;
use std::ptr::null;

use gpu_gemm::Fusion;
use gpu_gemm::gpu_kernels::epilogue::{self, Bias, Compiled, GeluTanh, PerColBias, Relu, Then};

use crate::types::{BF16, F16, F32, Types};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    Relu,
    /// By tanh.
    Gelu,
}

/// A number for each row of the column-major C, which is a column of ours.
#[derive(Clone, Copy, Debug)]
pub struct Vector {
    pub start: *const c_void,
    /// As cuBLAS numbers types.
    pub data_type: c_int,
}

/// `C = activation(alpha * A * B + beta * C + bias)`, of one of the two or of both.
#[derive(Clone, Copy, Debug)]
pub struct Epilogue {
    pub bias: Option<Vector>,
    pub activation: Option<Activation>,
}

impl Epilogue {
    /// Kernels with it, if there are any for these types.
    pub fn fusion(&self, types: Types) -> Option<Fusion> {
        let is_compiled = matches!(types, Types::F32 | Types::Bf16 | Types::F16);
        let start = self.bias.map_or(null(), |bias| bias.start);
        Some(match (types, self.bias.map(|bias| bias.data_type)) {
            (_, None | Some(F32)) if is_compiled => self.after(Bias(start.cast())),
            (Types::Bf16, Some(BF16)) => self.after(PerColBias::<epilogue::Bf16>(start.cast())),
            (Types::F16, Some(F16)) => self.after(PerColBias::<epilogue::F16>(start.cast())),
            _ => return None,
        })
    }

    /// Kernels that add a bias and then compute the activation.
    fn after<B>(&self, bias: B) -> Fusion
    where
        B: Compiled,
        Then<B, Relu>: Compiled,
        Then<B, GeluTanh>: Compiled,
    {
        fn of<E: Compiled>(epilogue: E) -> Fusion {
            Fusion::of(E::kernels(), epilogue)
        }
        match self.activation {
            None => of(bias),
            Some(Activation::Relu) => of(Then(bias, Relu)),
            Some(Activation::Gelu) => of(Then(bias, GeluTanh)),
        }
    }

    /// The activation in f64.
    pub fn activation(&self, x: f64) -> f64 {
        match self.activation {
            None => x,
            Some(Activation::Relu) if x < 0.0 => 0.0,
            Some(Activation::Relu) => x,
            Some(Activation::Gelu) => {
                let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
                // (1 + tanh(y)) / 2, without cancellation.
                x / (1.0 + (-2.0 * inner).exp())
            }
        }
    }
}

impl fmt::Display for Epilogue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            self.bias.map(|_| "bias"),
            self.activation.map(|activation| match activation {
                Activation::Relu => "relu",
                Activation::Gelu => "gelu",
            }),
        ];
        let words: Vec<&str> = words.into_iter().flatten().collect();
        formatter.write_str(&words.join("+"))
    }
}
