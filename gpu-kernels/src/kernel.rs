//! `kernel!`: an entry point for the compiler, together with the kernel's description
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
/// An entry point takes one parameter, its argument block: `gemm` is the
/// [`Gemm`](crate::gemm::Gemm) of the CTA's product in the batch, or, where the copy engine (TMA)
/// loads the tiles and the table says `gemm: bf16; mapped`, a
/// [`MappedGemm`](crate::mapped_gemm::MappedGemm). In `bf16 -> f32` C has another type than A and
/// B, as in `i8`, whose C is i32, and in `e4m3`, whose C is f32; `tf32` is f32 that the copy engine
/// rounds, and `split_f32` is f32 that was split before.
///
/// With `epilogue: any` after the idea, bodies are generic in the
/// [`Epilogue`](crate::epilogue::Epilogue), and each variant is a
/// [`Base`](crate::epilogue::Base) too: an empty type named as its entry point. With
/// `epilogue: gate` it is a base alone.
///
/// After `shared`, `launch_bounds(2)` tells the compiler that two CTAs must fit on an SM. Fields
/// of the `Variant` that differ from those of `Variant::new` follow in braces, such as
/// `{ grid: Grid::Rows }`; the names of `spec` are in scope there.
macro_rules! kernel {
    (name: $kernel:literal, idea: $idea:literal, variants: [$($variants:tt)*] $(,)?) => {
        $crate::kernel::kernel! { @identity $kernel $idea $($variants)* }
    };
    (
        name: $kernel:literal,
        idea: $idea:literal,
        epilogue: any,
        variants: [$($variants:tt)*] $(,)?
    ) => {
        $crate::kernel::kernel! { @any $kernel $idea $($variants)* }
    };
    (
        name: $kernel:literal,
        idea: $idea:literal,
        epilogue: gate,
        variants: [$($variants:tt)*] $(,)?
    ) => {
        $crate::kernel::kernel! { @gate $kernel $idea $($variants)* }
    };
    (
        @$epilogue:ident $kernel:literal $idea:literal
        $(
            $name:tt = fn $entry:ident($gemm:ident: $element:ident $(-> $c:ident)? $(; $mapped:ident)?)
                block($x:expr, $y:expr) tile($m:expr, $n:expr, $k:expr)
                $(shared($($array:ident: [$of:ty; $length:expr]),+ $(,)?))?
                $(launch_bounds($ctas:expr))?
                $({ $($field:ident: $value:expr),* $(,)? })?
                => $body:expr;
        )*
    ) => {
        $($crate::kernel::if_wanted! {
            $element
            /// The variant with this entry point, as a type.
            #[allow(non_camel_case_types)]
            pub enum $entry {}
        }

        $crate::kernel::if_wanted! {
            $element
            $crate::kernel::entry_point! {
                @$epilogue $entry ($gemm: $element $(-> $c)? $(; $mapped)?) {
                    $($crate::compat::launch_bounds::<{ ($x * $y) as u32 }, { $ctas as u32 }>();)?
                    $($(let $array = cuda_std::shared_array![$of; $length];)+)?
                    $body
                }
            }
        })*

        $crate::compat::unless_published! {
            $($crate::kernel::if_wanted! {
                $element
                impl $entry {
                    /// The description of this variant.
                    pub const VARIANT: &'static $crate::spec::Variant = &Self::ROW;

                    const ROW: $crate::spec::Variant = {
                        #[allow(unused_imports)]
                        use $crate::spec::*;
                        Variant {
                            fix_up: $crate::kernel::of_types!(fix_up($element $(-> $c)?)),
                            // Shared arrays are aligned to 16 bytes.
                            static_shared_bytes: (0
                                $($(+ ($length * size_of::<$of>()).next_multiple_of(16))+)?) as u32,
                            $($($field: $value,)*)?
                            ..{
                                let block = Block { x: $x as u32, y: $y as u32 };
                                let tile = Tile { m: $m as u32, n: $n as u32, k: $k as u32 };
                                $crate::kernel::row!(
                                    $name, $entry, ($element $(-> $c)?) $($mapped)?; block, tile
                                )
                            }
                        }
                        .checked()
                    };
                }
            })*

            pub static KERNEL: $crate::spec::Kernel = $crate::spec::Kernel {
                name: $kernel,
                idea: $idea,
                source: file!(),
                variants: $crate::kernel::wanted!([] $(($element $entry::ROW))*),
            };
        }
    };
}
pub(crate) use kernel;

/// An entry point, if the crate is compiled for the type of its A: each type but f32 is a feature.
macro_rules! if_wanted {
    (bf16 $item:item) => {
        #[cfg(feature = "bf16")]
        $item
    };
    (f16 $item:item) => {
        #[cfg(feature = "f16")]
        $item
    };
    (f64 $item:item) => {
        #[cfg(feature = "f64")]
        $item
    };
    (i32 $item:item) => {
        #[cfg(feature = "i32")]
        $item
    };
    (i8 $item:item) => {
        #[cfg(feature = "i8")]
        $item
    };
    (e4m3 $item:item) => {
        #[cfg(feature = "e4m3")]
        $item
    };
    ($of_f32:ident $item:item) => {
        $item
    };
}
pub(crate) use if_wanted;

/// An array of the rows with types for which the crate is compiled. It moves rows one by one into
/// the brackets.
macro_rules! wanted {
    ([$($done:tt)*] (bf16 $row:expr) $($rest:tt)*) => {
        $crate::kernel::wanted!([$($done)* #[cfg(feature = "bf16")] $row,] $($rest)*)
    };
    ([$($done:tt)*] (f16 $row:expr) $($rest:tt)*) => {
        $crate::kernel::wanted!([$($done)* #[cfg(feature = "f16")] $row,] $($rest)*)
    };
    ([$($done:tt)*] (f64 $row:expr) $($rest:tt)*) => {
        $crate::kernel::wanted!([$($done)* #[cfg(feature = "f64")] $row,] $($rest)*)
    };
    ([$($done:tt)*] (i32 $row:expr) $($rest:tt)*) => {
        $crate::kernel::wanted!([$($done)* #[cfg(feature = "i32")] $row,] $($rest)*)
    };
    ([$($done:tt)*] (i8 $row:expr) $($rest:tt)*) => {
        $crate::kernel::wanted!([$($done)* #[cfg(feature = "i8")] $row,] $($rest)*)
    };
    ([$($done:tt)*] (e4m3 $row:expr) $($rest:tt)*) => {
        $crate::kernel::wanted!([$($done)* #[cfg(feature = "e4m3")] $row,] $($rest)*)
    };
    ([$($done:tt)*] ($of_f32:ident $row:expr) $($rest:tt)*) => {
        $crate::kernel::wanted!([$($done)* $row,] $($rest)*)
    };
    ([$($rows:tt)*]) => {
        &[$($rows)*]
    };
}
pub(crate) use wanted;

/// The row of a kernel of these element types.
macro_rules! row {
    ($name:tt, $entry:ident, ($($types:tt)+); $($size:expr),+) => {{
        let entry = $crate::spec::entry!($entry($crate::kernel::of_types!(gemm_type($($types)+))));
        let data_type = $crate::kernel::of_types!(data_type($($types)+));
        // SAFETY: the row belongs to a kernel of `kernel!`.
        unsafe { $crate::spec::Variant::new($name, entry, data_type, $($size),+) }
    }};
    ($name:tt, $entry:ident, ($($types:tt)+) mapped; $($size:expr),+) => {{
        let entry = $crate::spec::entry!($entry(&$crate::kernel::of_types!(mapped_type($($types)+))));
        let data_type = $crate::kernel::of_types!(data_type($($types)+));
        // SAFETY: as above.
        unsafe { $crate::spec::Variant::mapped($name, entry, data_type, $($size),+) }
    }};
}
pub(crate) use row;

/// Writes one entry point; of a kernel with any epilogue, as its [`Base`](crate::epilogue::Base).
macro_rules! entry_point {
    (@identity $entry:ident ($gemm:ident: $element:ident $(-> $c:ident)?) { $($body:tt)* }) => {
        #[cfg(any(not(cuda_device), feature = "entry-points"))]
        #[cuda_std::kernel]
        pub unsafe fn $entry(gemm: $crate::kernel::of_types!(gemm_type($element $(-> $c)?))) {
            let $gemm = gemm.of_cta();
            $($body)*
        }
    };
    (
        @identity $entry:ident ($gemm:ident: $element:ident $(-> $c:ident)?; mapped)
        { $($body:tt)* }
    ) => {
        #[cfg(any(not(cuda_device), feature = "entry-points"))]
        #[cuda_std::kernel]
        pub unsafe fn $entry(
            #[grid_constant] block: &$crate::kernel::of_types!(mapped_type($element $(-> $c)?)),
        ) {
            if cfg!(any(not(cuda_device), target_feature = "compute_90a")) {
                let $gemm = block.gemm();
                $($body)*
            } else {
                cuda_std::wgmma::fence() // a trap: no launch runs this there
            }
        }
    };
    (@any $entry:ident ($gemm:ident: $element:ident $(-> $c:ident)?) { $($body:tt)* }) => {
        impl $crate::epilogue::Base for $entry {
            type Sum = $crate::kernel::of_types!(sum_type($element $(-> $c)?));
            type Block<E: $crate::epilogue::Epilogue<Self::Sum>> =
                $crate::kernel::of_types!(static_gemm($element $(-> $c)?; E));

            #[inline(always)]
            unsafe fn run<E: $crate::epilogue::Epilogue<Self::Sum>>(block: &Self::Block<E>) {
                let $gemm = block.of_cta();
                $($body)*
            }
        }

        #[cfg(any(not(cuda_device), feature = "entry-points"))]
        #[cuda_std::kernel]
        pub unsafe fn $entry(gemm: $crate::kernel::of_types!(static_gemm($element $(-> $c)?))) {
            <$entry as $crate::epilogue::Base>::run(&gemm)
        }
    };
    (@any $entry:ident ($gemm:ident: $element:ident $(-> $c:ident)?; mapped) { $($body:tt)* }) => {
        $crate::kernel::entry_point! { @base $entry ($gemm: $element $(-> $c)?) { $($body)* } }

        #[cfg(any(not(cuda_device), feature = "entry-points"))]
        #[cuda_std::kernel]
        pub unsafe fn $entry(
            #[grid_constant] block: &$crate::kernel::of_types!(mapped_type($element $(-> $c)?)),
        ) {
            <$entry as $crate::epilogue::Base>::run(block)
        }
    };
    (@gate $entry:ident ($gemm:ident: $element:ident $(-> $c:ident)?; mapped) { $($body:tt)* }) => {
        $crate::kernel::entry_point! { @base $entry ($gemm: $element $(-> $c)?) { $($body)* } }

        /// Is replaced by an entry point with a gate, and in no PTX.
        #[cfg(not(cuda_device))]
        unsafe fn $entry(_: &$crate::kernel::of_types!(mapped_type($element $(-> $c)?))) {
            unreachable!("without a gate")
        }
    };
    (@base $entry:ident ($gemm:ident: $element:ident $(-> $c:ident)?) { $($body:tt)* }) => {
        impl $crate::epilogue::Base for $entry {
            type Sum = $crate::kernel::of_types!(sum_type($element $(-> $c)?));
            type Block<E: $crate::epilogue::Epilogue<Self::Sum>> =
                $crate::kernel::of_types!(mapped_type($element $(-> $c)?; E));

            #[inline(always)]
            unsafe fn run<E: $crate::epilogue::Epilogue<Self::Sum>>(block: &Self::Block<E>) {
                if cfg!(any(not(cuda_device), target_feature = "compute_90a")) {
                    let $gemm = block.gemm();
                    $($body)*
                } else {
                    cuda_std::wgmma::fence() // a trap: no launch runs this there
                }
            }
        }
    };
}
pub(crate) use entry_point;

/// Passes the element types of A and B, of C and of sums, and their name as a `DataType`, to
/// another macro, and what follows the types.
macro_rules! of_types {
    ($then:ident(bf16 -> f32 $($more:tt)*)) => {
        $crate::kernel::$then!(u16, f32, f32, BF16_F32 $($more)*)
    };
    ($then:ident(f16 -> f32 $($more:tt)*)) => {
        $crate::kernel::$then!(u16, f32, f32, F16_F32 $($more)*)
    };
    ($then:ident(bf16 $($more:tt)*)) => {
        $crate::kernel::$then!(u16, u16, f32, BF16 $($more)*)
    };
    ($then:ident(f16 $($more:tt)*)) => {
        $crate::kernel::$then!(u16, u16, f32, F16 $($more)*)
    };
    ($then:ident(f64 $($more:tt)*)) => {
        $crate::kernel::$then!(f64, f64, f64, F64 $($more)*)
    };
    ($then:ident(i32 $($more:tt)*)) => {
        $crate::kernel::$then!(i32, i32, i32, I32 $($more)*)
    };
    ($then:ident(i8 $($more:tt)*)) => {
        $crate::kernel::$then!(i8, i32, i32, I8 $($more)*)
    };
    ($then:ident(e4m3 -> bf16 $($more:tt)*)) => {
        $crate::kernel::$then!(u8, u16, f32, E4M3_BF16 $($more)*)
    };
    ($then:ident(e4m3 $($more:tt)*)) => {
        $crate::kernel::$then!(u8, f32, f32, E4M3 $($more)*)
    };
    ($then:ident($of_f32:ident $($more:tt)*)) => {
        $crate::kernel::$then!(f32, f32, f32, F32 $($more)*)
    };
}
pub(crate) use of_types;

/// The argument block of a kernel.
macro_rules! gemm_type {
    ($input:ty, $c:ty, $sum:ty, $name:ident) => { $crate::gemm::Gemm<'_, $input, $c, $sum> };
}
pub(crate) use gemm_type;

/// The same for any time.
macro_rules! static_gemm {
    ($input:ty, $c:ty, $sum:ty, $name:ident $(; $epilogue:ident)?) => {
        $crate::gemm::Gemm<'static, $input, $c, $sum $(, $epilogue)?>
    };
}
pub(crate) use static_gemm;

/// The same for a kernel with tiles that the copy engine loads.
macro_rules! mapped_type {
    ($input:ty, $c:ty, $sum:ty, $name:ident $(; $epilogue:ident)?) => {
        $crate::mapped_gemm::MappedBlock<$c, $sum $(, $epilogue)?>
    };
}
pub(crate) use mapped_type;

/// The type of sums.
macro_rules! sum_type {
    ($input:ty, $c:ty, $sum:ty, $name:ident) => {
        $sum
    };
}
pub(crate) use sum_type;

/// The entry point that adds up partial sums for a C of a type.
macro_rules! fix_up {
    ($input:ty, $c:ty, $sum:ty, BF16) => {
        Some($crate::fix_up_half::FIX_UP_BF16)
    };
    ($input:ty, $c:ty, $sum:ty, F16) => {
        Some($crate::fix_up_half::FIX_UP_F16)
    };
    ($input:ty, $c:ty, $sum:ty, F64) => {
        Some($crate::fix_up::FIX_UP_F64)
    };
    ($input:ty, $c:ty, $sum:ty, I32) => {
        None
    };
    ($input:ty, $c:ty, $sum:ty, I8) => {
        None
    };
    ($input:ty, $c:ty, $sum:ty, E4M3_BF16) => {
        Some($crate::fix_up_half::FIX_UP_BF16)
    };
    ($input:ty, $c:ty, $sum:ty, $name:ident) => {
        Some($crate::fix_up::FIX_UP)
    };
}
pub(crate) use fix_up;

/// The element types of a kernel's matrices.
macro_rules! data_type {
    ($input:ty, $c:ty, $sum:ty, $name:ident) => {
        $crate::spec::DataType::$name
    };
}
pub(crate) use data_type;

/// The table of a kernel of 16 bits, as a product: variants, times four layouts of A and B, times
/// bf16 and f16, each with a C of its own type and of f32. It passes each row to the macro that
/// writes the table: for `"persistent-64x64" persistent_64x64 (1, 32);` sixteen, such as the one
/// below. Rows in `and { .. }` follow as they are.
///
/// ```ignore
/// ("persistent-64x64-nt") persistent_64x64_nt_bf16_f32 (bf16 -> f32) Bf16 f32 KMajor KMajor (1, 32);
/// ```
macro_rules! each_of_16_bits {
    ($table:ident! { $($name:literal $entry:ident $of:tt;)* } $(and { $($more:tt)* })?) => {
        pastey::paste! {
            $table! {$(
                ($name) [<$entry _bf16>] (bf16) Bf16 Bf16 KMajor MnMajor $of;
                ($name) [<$entry _f16>] (f16) F16 F16 KMajor MnMajor $of;
                ($name) [<$entry _bf16_f32>] (bf16 -> f32) Bf16 f32 KMajor MnMajor $of;
                ($name) [<$entry _f16_f32>] (f16 -> f32) F16 f32 KMajor MnMajor $of;
                (concat!($name, "-nt")) [<$entry _nt_bf16>] (bf16) Bf16 Bf16 KMajor KMajor $of;
                (concat!($name, "-nt")) [<$entry _nt_f16>] (f16) F16 F16 KMajor KMajor $of;
                (concat!($name, "-nt")) [<$entry _nt_bf16_f32>] (bf16 -> f32) Bf16 f32 KMajor KMajor $of;
                (concat!($name, "-nt")) [<$entry _nt_f16_f32>] (f16 -> f32) F16 f32 KMajor KMajor $of;
                (concat!($name, "-tn")) [<$entry _tn_bf16>] (bf16) Bf16 Bf16 MnMajor MnMajor $of;
                (concat!($name, "-tn")) [<$entry _tn_f16>] (f16) F16 F16 MnMajor MnMajor $of;
                (concat!($name, "-tn")) [<$entry _tn_bf16_f32>] (bf16 -> f32) Bf16 f32 MnMajor MnMajor $of;
                (concat!($name, "-tn")) [<$entry _tn_f16_f32>] (f16 -> f32) F16 f32 MnMajor MnMajor $of;
                (concat!($name, "-tt")) [<$entry _tt_bf16>] (bf16) Bf16 Bf16 MnMajor KMajor $of;
                (concat!($name, "-tt")) [<$entry _tt_f16>] (f16) F16 F16 MnMajor KMajor $of;
                (concat!($name, "-tt")) [<$entry _tt_bf16_f32>] (bf16 -> f32) Bf16 f32 MnMajor KMajor $of;
                (concat!($name, "-tt")) [<$entry _tt_f16_f32>] (f16 -> f32) F16 f32 MnMajor KMajor $of;
            )* $($($more)*)?}
        }
    };
}
pub(crate) use each_of_16_bits;
