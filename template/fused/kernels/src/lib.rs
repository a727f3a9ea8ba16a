//! The epilogue, and the kernels that it is compiled into.

#![cfg_attr(cuda_device, no_std)]

use cuda_std::GpuFloat;
use gpu_kernels::epilogue::{At, Epilogue};

/// `cap * tanh((x + bias[col]) / cap)`: a soft cap, as on the logits of Gemma 2.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Softcap {
    /// A number for each column of C, in the device's memory.
    pub bias: *const f32,
    pub cap: f32,
}

impl Epilogue for Softcap {
    #[inline(always)]
    unsafe fn apply<const N: usize>(&self, at: At, x: [f32; N]) -> [f32; N] {
        // SAFETY: the launch vouches for a number for each column.
        let bias = unsafe { at.of_columns::<f32, N>(self.bias) };
        core::array::from_fn(|i| self.cap * GpuFloat::tanh((x[i] + bias[i]) / self.cap))
    }
}

gpu_kernels::fused! {
    /// For bf16 on Hopper, for bf16 on other GPUs, and for f32; B row-major or transposed.
    pub static SOFTCAP: Softcap = [
        persistent::{persistent_bf16, persistent_nt_bf16, persistent_64x128_nt_bf16},
        tensor_core::{tensor_core_bf16, tensor_core_nt_bf16},
        async_pipeline::{async_pipeline_64x64_nn, async_pipeline_32x128_nt},
    ];
}
