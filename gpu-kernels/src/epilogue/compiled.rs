//! Epilogues that the library's own kernels are compiled with, so that a program without kernels
//! of its own has them: a bias, and one followed by an activation.

use super::{Bf16, Bias, BlockScales, Gated, GeluTanh, PerColBias, Relu, Silu, Then, F16};
#[cfg(not(cuda_device))]
use super::{Epilogue, Fused};
#[cfg(not(cuda_device))]
use crate::spec::Variant;

/// An epilogue that the library has kernels with. Others are compiled by [`fused!`](crate::fused).
#[cfg(not(cuda_device))]
#[diagnostic::on_unimplemented(
    message = "no kernel of the library has the epilogue `{Self}`",
    note = "`gpu_kernels::fused!` compiles kernels with it, which `gpu_gemm::gemm_fused` launches"
)]
pub trait Compiled: Epilogue + 'static {
    /// The kernels with it.
    fn kernels() -> &'static Fused<Self>;
}

/// Kernels with each of these epilogues, of these bases. Each costs a third of a second of the
/// first build, so there are few, and other layouts are copied.
macro_rules! compiled {
    ($($bases:tt { $($set:ident: $epilogue:ty;)* })*) => {
        $($(
            crate::fused! {
                static $set: $epilogue = $bases;
            }

            #[cfg(not(cuda_device))]
            impl Compiled for $epilogue {
                fn kernels() -> &'static Fused<Self> {
                    &$set
                }
            }
        )*)*

        /// The variants of all of them.
        #[cfg(not(cuda_device))]
        pub(crate) fn variants() -> impl Iterator<Item = &'static Variant> {
            [$($($set.variants),*),*].into_iter().flatten()
        }
    };
}

compiled! {
    // For bf16 and f16 on Hopper and on other GPUs, and for f32.
    [
        persistent::{persistent_bf16, persistent_nt_bf16, persistent_f16, persistent_nt_f16},
        tensor_core::{tensor_core_nt_bf16, tensor_core_nt_f16},
        async_pipeline::{async_pipeline, async_pipeline_64x64_nn, async_pipeline_32x128_nt},
    ] {
        BIAS: Bias;
        BIAS_RELU: Then<Bias, Relu>;
        BIAS_GELU: Then<Bias, GeluTanh>;
        BIAS_SILU: Then<Bias, Silu>;
    }
    // With a bias of the type of C, as in cublasLt.
    [
        persistent::{persistent_bf16, persistent_nt_bf16},
        tensor_core::{tensor_core_nt_bf16},
    ] {
        BIAS_BF16: PerColBias<Bf16>;
        BIAS_RELU_BF16: Then<PerColBias<Bf16>, Relu>;
        BIAS_GELU_BF16: Then<PerColBias<Bf16>, GeluTanh>;
    }
    [
        persistent::{persistent_f16, persistent_nt_f16},
        tensor_core::{tensor_core_nt_f16},
    ] {
        BIAS_F16: PerColBias<F16>;
        BIAS_RELU_F16: Then<PerColBias<F16>, Relu>;
        BIAS_GELU_F16: Then<PerColBias<F16>, GeluTanh>;
    }
    // For bf16 and f16 on Hopper.
    [
        gated::{
            gated_bf16, gated_nt_bf16, gated_f16, gated_nt_f16,
            gated_64x64_bf16, gated_64x64_nt_bf16, gated_64x64_f16, gated_64x64_nt_f16,
        },
    ] {
        SWIGLU: Gated<Silu>;
    }
    [gated::{gated_nt_bf16, gated_64x64_nt_bf16}] {
        GEGLU: Gated<GeluTanh>;
    }
    // For e4m3, whose kernels promote sums.
    [
        warp_specialized_fp8::{
            warp_specialized_fp8, warp_specialized_fp8_bf16, warp_specialized_fp8_128x128,
            warp_specialized_fp8_128x128_bf16, warp_specialized_fp8_64x128,
            warp_specialized_fp8_64x128_bf16, warp_specialized_fp8_64x64,
            warp_specialized_fp8_64x64_bf16,
        },
    ] {
        BLOCK_SCALES: BlockScales;
    }
}
