//! The ladder of GEMM kernels: one idea a file. Each rung adds one idea to an earlier one.
//!
//! A kernel is an ordinary Rust function. `cuda_builder` compiles this crate to PTX for the GPU
//! (`cfg(cuda_device)`); compiled natively, the same functions run on the CPU in `cuda_std`'s
//! simulator. Read the rungs in the order of `ladder!` below. `gemm.rs` has their common
//! functions, [`spec`] the description of a kernel.
//!
//! A block of threads is also called a CTA (cooperative thread array), and a streaming
//! multiprocessor an SM.
#![cfg_attr(cuda_device, no_std)]
// The requirements on a kernel's caller are the same for all; `spec::EntryFn` states them.
#![allow(clippy::missing_safety_doc)]
// A crate for fewer types has items that none of its kernels uses.
#![cfg_attr(
    not(all(
        feature = "bf16",
        feature = "f16",
        feature = "f64",
        feature = "i32",
        feature = "i8",
        feature = "e4m3",
        feature = "epilogues",
        feature = "entry-points"
    )),
    allow(unused)
)]
// Loops run over rows, columns and lanes; an iterator over one array would hide which.
#![allow(clippy::needless_range_loop)]

mod accumulator;
mod compat;
mod element;
pub mod epilogue;
pub mod fix_up;
mod float4;
pub mod gemm;
mod kernel;
pub mod raster;
pub mod reference;
pub mod spec;
pub mod stream_k;
pub mod tile_loader;
pub mod transpose;

/// Declares the modules of the ladder, in teaching order, and the table of their kernels: one line
/// a kernel. No module refers to this list. The published `cuda_std` has no tensor cores and no
/// 16-bit numbers.
macro_rules! ladder {
    ($($module:ident),* ; unpublished: $($unpublished:ident),* $(,)?) => {
        $(pub mod $module;)*

        compat::unless_published! {
            $(pub mod $unpublished;)*

            /// Every kernel, in teaching order.
            pub static KERNELS: &[&spec::Kernel] =
                &[$(&$module::KERNEL,)* $(&$unpublished::KERNEL),*];
        }
    };
}

ladder! {
    naive_1d,
    naive,
    naive_kahan,
    row_shared,
    pitched,
    tiled,
    tiled_kahan,
    thread_coarsened,
    register_blocked,
    vectorized,
    conflict_free,
    double_buffer,
    warp_tiled,
    async_pipeline,
    wide_thread_tile;

    unpublished:
    few_rows,
    tensor_core,
    fp64_tensor,
    warpgroup,
    warp_specialized,
    persistent,
    warp_specialized_tf32,
    warp_specialized_int8,
    warp_specialized_fp8,
    warp_specialized_fp64,
    split_fp32,
}

compat::unless_published! {
    /// For [`fused!`].
    #[doc(hidden)]
    pub use pastey;

    pub mod fix_up_half;
    pub mod gated;
    /// Private, so that safe code does not launch its variants as others: `grouped_variants`.
    #[allow(dead_code)] // each variant by its type
    mod grouped;
    #[allow(dead_code)]
    mod grouped_along_k;
    mod half;
    pub mod mapped_gemm;
    pub mod split;
    pub mod tensor_core_half;

    /// Those that a stream-K kernel may need before and after it, and those that compute a
    /// reference.
    static HELPERS: &[&spec::EntryPoint] = &[
        &transpose::TRANSPOSE,
        &transpose::TRANSPOSE_F64,
        &transpose::TRANSPOSE_16,
        &transpose::TRANSPOSE_8,
        &transpose::PAD,
        &transpose::PAD_F64,
        &transpose::PAD_16,
        &transpose::PAD_8,
        &split::SPLIT_ROWS,
        &split::SPLIT_COLUMNS,
        &fix_up::FIX_UP,
        &fix_up::FIX_UP_F64,
        &fix_up_half::FIX_UP_BF16,
        &fix_up_half::FIX_UP_F16,
        #[cfg(feature = "f64")]
        &reference::KERNEL.variants[0].entry,
    ];

    /// The entry points that are not rungs.
    pub fn helpers() -> impl Iterator<Item = &'static spec::EntryPoint> {
        let grouped = [&grouped::KERNEL, &grouped_along_k::KERNEL].into_iter();
        let grouped = grouped.flat_map(|kernel| kernel.variants);
        HELPERS.iter().copied().chain(grouped.map(|variant| &variant.entry))
    }

    /// The kernels of grouped products, for each type and layout the one with the larger tile
    /// first. A batch is the groups: all have the same A and C, which is stride 0.
    ///
    /// # Safety
    ///
    /// In a launch of one, `partials` is where the groups end: the row after the last of each, as
    /// an i32, in increasing order, at most `m`.
    pub unsafe fn grouped_variants() -> &'static [spec::Variant] {
        grouped::KERNEL.variants
    }

    /// The same of groups of rows of A and B, along K. A batch is the groups: all have the same A
    /// and B, which is stride 0.
    ///
    /// # Safety
    ///
    /// As for [`grouped_variants`], with ends of at most `k`.
    pub unsafe fn grouped_along_k_variants() -> &'static [spec::Variant] {
        grouped_along_k::KERNEL.variants
    }

    /// Every variant of every kernel, in teaching order.
    pub fn variants() -> impl Iterator<Item = &'static spec::Variant> {
        KERNELS.iter().flat_map(|kernel| kernel.variants)
    }

    /// The kernel of a variant, if it is of the ladder.
    pub fn kernel_of(variant: &spec::Variant) -> Option<&'static spec::Kernel> {
        let is_it = |one: &spec::Variant| one.entry.name == variant.entry.name;
        let mut kernels = KERNELS.iter().copied();
        kernels.find(|kernel| kernel.variants.iter().any(is_it))
    }

    /// Every entry point that the library may launch.
    pub fn entries() -> impl Iterator<Item = spec::EntryPoint> {
        #[cfg(all(feature = "epilogues", not(cuda_device)))]
        let fused = epilogue::compiled::variants();
        #[cfg(not(all(feature = "epilogues", not(cuda_device))))]
        let fused = core::iter::empty::<&spec::Variant>();
        let fused = fused.flat_map(|one| [Some(one.entry), one.fix_up]).flatten();
        let own = variants().map(|one| one.entry).chain(helpers().copied());
        own.chain(fused)
    }

    /// The variant that computes the N remainder of another, if there is one.
    pub fn remainder_variant(of: &spec::Variant) -> Option<&'static spec::Variant> {
        let name = of.n_remainder?;
        variants().find(|variant| variant.name == name)
    }
}
