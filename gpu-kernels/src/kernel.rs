//! `kernel!`: an entry point for the compiler, together with what the kernel says of itself
//! ([`crate::spec`]).

/// Writes the entry point of each variant of a kernel, and `KERNEL`: a `Kernel` with the table of
/// its `Variant`s.
///
/// ```ignore
/// kernel! {
///     name: "tiled",
///     idea: "each thread block stages tiles of A and B in shared memory, for all its threads",
///     variants: [
///         "tiled-32" = fn tiled_32(gemm: f32)
///             block(32, 32) tile(32, 32, 32)
///             shared(a_tile: [f32; 32 * 32], b_tile: [f32; 32 * 32])
///             => multiply::<f32, Plain<f32>, 32>(gemm, a_tile, b_tile);
///     ]
/// }
/// ```
///
/// After `shared`, `launch_bounds(2)` tells the compiler that an SM is to hold two CTAs, and
/// `batched(tiled_32_batched)` writes a second entry point, which takes a batch. Fields of
/// the `Variant` that differ from those of `Variant::new` follow in braces, such as
/// `{ grid: Grid::Rows }`; the names of `spec` are in scope there. A stream-K kernel has its
/// partial sums as a second parameter: `fn async_pipeline(gemm: f32, partials)`. A kernel whose
/// tiles the copy engine brings says so: `fn warp_specialized(gemm: bf16; mapped)`, and as a
/// stream-K kernel `fn persistent(gemm: bf16, division; mapped)`; one that reads elements of 16
/// bits itself, `fn few_rows(gemm: bf16, partials)`; with a C of another type, `gemm: bf16 -> f32`.
/// `split_f32` is f32 that is split before, and `tf32` f32 that the copy engine rounds.
macro_rules! kernel {
    (
        name: $kernel:literal,
        idea: $idea:literal,
        variants: [$(
            $name:literal = fn $entry:ident(
                $gemm:ident: $element:ident $(-> $c:ident)? $(, $partials:ident)? $(; $mapped:ident)?
            )
                block($x:expr, $y:expr) tile($m:expr, $n:expr, $k:expr)
                $(shared($($array:ident: [$of:ty; $length:expr]),+ $(,)?))?
                $(launch_bounds($ctas:expr))?
                $(batched($batched:ident))?
                $({ $($field:ident: $value:expr),* $(,)? })?
                => $body:expr;
        )*] $(,)?
    ) => {
        $($crate::kernel::entry_points! {
            $entry [$($batched)?] ($gemm: $element $(-> $c)? $(, $partials)? $(; $mapped)?) {
                $($crate::compat::launch_bounds::<{ ($x * $y) as u32 }, { $ctas as u32 }>();)?
                $($(let $array = cuda_std::shared_array![$of; $length];)+)?
                $body
            }
        })*

        $crate::compat::unless_published! {
            pub static KERNEL: $crate::spec::Kernel = {
                #[allow(unused_imports)]
                use $crate::spec::*;
                const VARIANTS: &[Variant] = &[$(
                    Variant {
                        // Shared arrays begin at multiples of 16 bytes.
                        static_shared_bytes: (0
                            $($(+ ($length * size_of::<$of>()).next_multiple_of(16))+)?) as u32,
                        batched: $crate::kernel::batched!(
                            $element [$($partials)?] [$($batched)?]
                        ),
                        $($($field: $value,)*)?
                        // SAFETY: it is the row of the kernel above.
                        ..unsafe { Variant::new(
                            $name,
                            EntryPoint {
                                name: stringify!($entry),
                                function:
                                    $crate::kernel::function!(
                                        $element $(-> $c)? $(, $partials)? $(; $mapped)?
                                    )($entry),
                            },
                            Block { x: $x as u32, y: $y as u32 },
                            Tile { m: $m as u32, n: $n as u32, k: $k as u32 },
                        ) }
                    }
                    .checked()
                ),*];
                Kernel { name: $kernel, idea: $idea, source: file!(), variants: VARIANTS }
            };
        }
    };
}
pub(crate) use kernel;

/// Writes the entry point of a variant, and the one for batches, if it has one.
macro_rules! entry_points {
    ($entry:ident [] $parameters:tt $body:tt) => {
        $crate::kernel::entry_point! { $entry $parameters $body }
    };
    ($entry:ident [$batched:ident] $parameters:tt $body:tt) => {
        $crate::kernel::entry_point! { $entry $parameters $body }
        $crate::kernel::batched_entry_point! { $batched $parameters $body }
    };
}
pub(crate) use entry_points;

/// Writes one entry point.
macro_rules! entry_point {
    ($entry:ident ($gemm:ident: bf16, $partials:ident) $body:tt) => {
        $crate::kernel::half_entry_point! { $entry $gemm u16 $partials $body }
    };
    ($entry:ident ($gemm:ident: f16, $partials:ident) $body:tt) => {
        $crate::kernel::half_entry_point! { $entry $gemm u16 $partials $body }
    };
    ($entry:ident ($gemm:ident: $element:ident -> $c:ident, $partials:ident) $body:tt) => {
        $crate::kernel::half_entry_point! { $entry $gemm $c $partials $body }
    };
    ($entry:ident ($gemm:ident: $element:ident $(, $partials:ident)?) { $($body:tt)* }) => {
        #[cuda_std::kernel]
        #[allow(clippy::too_many_arguments)] // BLAS's own
        pub unsafe fn $entry(
            m: usize,
            n: usize,
            k: usize,
            alpha: $element,
            a: &[$element],
            lda: usize,
            b: &[$element],
            ldb: usize,
            beta: $element,
            c: *mut $element,
            ldc: usize,
            $($partials: *mut $element,)?
        ) {
            let $gemm = $crate::gemm::Gemm { m, n, k, alpha, a, lda, b, ldb, beta, c, ldc };
            $($body)*
        }
    };
    ($entry:ident ($gemm:ident: split_f32; mapped) { $($body:tt)* }) => {
        #[cuda_std::kernel]
        #[allow(clippy::too_many_arguments)] // BLAS's own
        pub unsafe fn $entry(
            m: usize,
            n: usize,
            k: usize,
            alpha: f32,
            #[grid_constant] a: &cuda_std::tma::TensorMap,
            a_scales: &[f32],
            #[grid_constant] b: &cuda_std::tma::TensorMap,
            b_scales: &[f32],
            beta: f32,
            c: *mut f32,
            ldc: usize,
        ) {
            let $gemm = $crate::mapped_gemm::SplitGemm {
                m, n, k, alpha, a, a_scales, b, b_scales, beta, c, ldc
            };
            if cfg!(any(not(cuda_device), target_feature = "compute_90a")) {
                $($body)*
            } else {
                cuda_std::wgmma::fence() // a trap: no launch runs it there
            }
        }
    };
    ($entry:ident ($gemm:ident: tf32; mapped) $body:tt) => {
        $crate::kernel::mapped_entry_point! { $entry $gemm f32 f32 [] $body }
    };
    ($entry:ident ($gemm:ident: f64; mapped) $body:tt) => {
        $crate::kernel::mapped_entry_point! { $entry $gemm f64 f64 [] $body }
    };
    ($entry:ident ($gemm:ident: $element:ident; mapped) $body:tt) => {
        $crate::kernel::mapped_entry_point! { $entry $gemm u16 f32 [] $body }
    };
    ($entry:ident ($gemm:ident: $element:ident -> $c:ident; mapped) $body:tt) => {
        $crate::kernel::mapped_entry_point! { $entry $gemm $c f32 [] $body }
    };
    ($entry:ident ($gemm:ident: $element:ident, $division:ident; mapped) $body:tt) => {
        $crate::kernel::divided_entry_point! { $entry $gemm u16 $division $body }
    };
    ($entry:ident ($gemm:ident: $element:ident -> $c:ident, $division:ident; mapped) $body:tt) => {
        $crate::kernel::divided_entry_point! { $entry $gemm $c $division $body }
    };
}
pub(crate) use entry_point;

/// Writes an entry point of a stream-K kernel that reads elements of 16 bits itself; what holds an
/// element of C.
macro_rules! half_entry_point {
    ($entry:ident $gemm:ident $c:ident $partials:ident { $($body:tt)* }) => {
        #[cuda_std::kernel]
        #[allow(clippy::too_many_arguments)] // BLAS's own
        pub unsafe fn $entry(
            m: usize,
            n: usize,
            k: usize,
            alpha: f32,
            a: &[u16],
            lda: usize,
            b: &[u16],
            ldb: usize,
            beta: f32,
            c: *mut $c,
            ldc: usize,
            $partials: *mut f32,
        ) {
            let $gemm = $crate::gemm::Gemm { m, n, k, alpha, a, lda, b, ldb, beta, c, ldc };
            $($body)*
        }
    };
}
pub(crate) use half_entry_point;

/// Writes an entry point of a stream-K kernel whose tiles the copy engine brings; what holds an
/// element of C, and how the tiles are divided.
macro_rules! divided_entry_point {
    ($entry:ident $gemm:ident $element:ident $division:ident $body:tt) => {
        $crate::kernel::mapped_entry_point! {
            $entry $gemm $element f32 [partials: *mut f32, data_parallel_waves: usize,] {
                let $division = $crate::stream_k::Division { partials, data_parallel_waves };
                $body
            }
        }
    };
}
pub(crate) use divided_entry_point;

/// Writes an entry point whose tiles the copy engine brings; what holds an element of C, the
/// scalars' type, and further parameters.
macro_rules! mapped_entry_point {
    ($entry:ident $gemm:ident $element:ident $scalar:ident [$($parameters:tt)*] $body:tt) => {
        #[cuda_std::kernel]
        #[allow(clippy::too_many_arguments)] // BLAS's own
        pub unsafe fn $entry(
            m: usize,
            n: usize,
            k: usize,
            alpha: $scalar,
            #[grid_constant] a: &cuda_std::tma::TensorMap,
            #[grid_constant] b: &cuda_std::tma::TensorMap,
            beta: $scalar,
            c: *mut $element,
            ldc: usize,
            #[grid_constant] c_boxes: &cuda_std::tma::TensorMap,
            $($parameters)*
        ) {
            let $gemm = $crate::mapped_gemm::MappedGemm {
                m, n, k, alpha, a, b, beta, c, ldc, c_boxes
            };
            if cfg!(any(not(cuda_device), target_feature = "compute_90a")) {
                $body
            } else {
                cuda_std::wgmma::fence() // a trap: no launch runs it there
            }
        }
    };
}
pub(crate) use mapped_entry_point;

/// Writes the entry point for batches: the same body, on the matrices of the product that the
/// CTA's place along z says.
macro_rules! batched_entry_point {
    ($entry:ident ($gemm:ident: $element:ident $(, $partials:ident)?) { $($body:tt)* }) => {
        #[cuda_std::kernel]
        #[allow(clippy::too_many_arguments)] // BLAS's own
        pub unsafe fn $entry(
            m: usize,
            n: usize,
            k: usize,
            alpha: $element,
            a: &[$element],
            lda: usize,
            b: &[$element],
            ldb: usize,
            beta: $element,
            c: *mut $element,
            ldc: usize,
            $($partials: *mut $element,)?
            stride_a: usize,
            stride_b: usize,
            stride_c: usize,
        ) {
            let gemm = $crate::gemm::Gemm { m, n, k, alpha, a, lda, b, ldb, beta, c, ldc };
            let $gemm = gemm.of_batch([stride_a, stride_b, stride_c]);
            $($body)*
        }
    };
}
pub(crate) use batched_entry_point;

/// The variant of `Function` for a kernel of an element type, with or without partial sums. f64
/// and stream-K kernels of 16 bits are there both with and without tensor maps.
macro_rules! function {
    (f64; mapped) => {
        $crate::spec::Function::MappedF64
    };
    (bf16, $division:ident; mapped) => {
        $crate::spec::Function::MappedStreamKBf16
    };
    (f16, $division:ident; mapped) => {
        $crate::spec::Function::MappedStreamKF16
    };
    (bf16 -> f32, $division:ident; mapped) => {
        $crate::spec::Function::MappedStreamKBf16F32
    };
    (f16 -> f32, $division:ident; mapped) => {
        $crate::spec::Function::MappedStreamKF16F32
    };
    ($element:ident $(-> $c:ident)?; mapped) => {
        $crate::kernel::function!($element $(-> $c)?)
    };
    (f32) => {
        $crate::spec::Function::GemmF32
    };
    (f64) => {
        $crate::spec::Function::GemmF64
    };
    (i32) => {
        $crate::spec::Function::GemmI32
    };
    (bf16) => {
        $crate::spec::Function::GemmBf16
    };
    (f16) => {
        $crate::spec::Function::GemmF16
    };
    (bf16 -> f32) => {
        $crate::spec::Function::GemmBf16F32
    };
    (f16 -> f32) => {
        $crate::spec::Function::GemmF16F32
    };
    (tf32) => {
        $crate::spec::Function::GemmTf32
    };
    (split_f32) => {
        $crate::spec::Function::GemmSplit
    };
    (f32, $partials:ident) => {
        $crate::spec::Function::StreamK
    };
    (bf16, $partials:ident) => {
        $crate::spec::Function::StreamKBf16
    };
    (f16, $partials:ident) => {
        $crate::spec::Function::StreamKF16
    };
    (bf16 -> f32, $partials:ident) => {
        $crate::spec::Function::StreamKBf16F32
    };
    (f16 -> f32, $partials:ident) => {
        $crate::spec::Function::StreamKF16F32
    };
}
pub(crate) use function;

/// The entry point of a kernel for batches, if it has one.
macro_rules! batched {
    ($element:ident [$($partials:ident)?] []) => {
        None
    };
    ($element:ident [$($partials:ident)?] [$entry:ident]) => {
        Some($crate::spec::EntryPoint {
            name: stringify!($entry),
            function: $crate::kernel::batched_function!($element $(, $partials)?)($entry),
        })
    };
}
pub(crate) use batched;

/// The variant of `Function` for the entry point of a kernel for batches.
macro_rules! batched_function {
    (f32) => {
        $crate::spec::Function::BatchedF32
    };
    (f64) => {
        $crate::spec::Function::BatchedF64
    };
    (f32, $partials:ident) => {
        $crate::spec::Function::BatchedStreamK
    };
}
pub(crate) use batched_function;
