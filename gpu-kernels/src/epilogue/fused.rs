//! Kernels with an epilogue of a crate's own: [`fused!`](crate::fused) writes an entry point for each
//! base, and a static by which the host chooses among them.

use core::marker::PhantomData;

use super::Placed;
use crate::fix_up;
use crate::spec::Variant;

/// Kernels with an epilogue `E` of a crate's own, which [`fused!`](crate::fused) writes.
#[derive(Debug)]
pub struct Fused<E> {
    /// The name of the static.
    pub name: &'static str,
    /// A variant for each base, with its name. Which one runs, a chooser decides.
    pub variants: &'static [Variant],
    epilogue: PhantomData<fn(E)>,
}

impl<E> Fused<E> {
    /// What [`fused!`](crate::fused) writes.
    ///
    /// # Safety
    ///
    /// The variants' entry points take a [`Placed`] `E`.
    #[doc(hidden)]
    pub const unsafe fn new(name: &'static str, variants: &'static [Variant]) -> Self {
        const {
            assert!(
                align_of::<E>() <= 8,
                "argument blocks consist of words of 8 bytes"
            );
            assert!(
                size_of::<E>() <= MOST_BYTES,
                "an epilogue has more than 128 bytes"
            );
        }
        Fused {
            name,
            variants,
            epilogue: PhantomData,
        }
    }
}

/// The most bytes of an epilogue.
pub const MOST_BYTES: usize = 128;

/// Writes kernels with an epilogue: an entry point for each base, and for the fix-ups of split
/// tiles.
///
/// A base is a variant of a kernel that takes any epilogue with sums in f32, by the path of its
/// entry point in `gpu_kernels`. The crate is compiled for the device as every crate of kernels
/// is, and for the host, which chooses, launches and simulates them by this static.
///
/// ```ignore
/// # use gpu_kernels::epilogue::{At, Epilogue};
/// # #[derive(Clone, Copy)]
/// # #[repr(C)]
/// # pub struct Relu;
/// # impl Epilogue for Relu {
/// #     unsafe fn apply<const N: usize>(&self, _: At, values: [f32; N]) -> [f32; N] {
/// #         values.map(|x| if x > 0.0 { x } else { 0.0 })
/// #     }
/// # }
/// gpu_kernels::fused! {
///     /// `max(0, alpha * A * B + beta * C)`.
///     pub static RELU: Relu = [
///         persistent::{persistent_bf16, persistent_nt_bf16},
///         async_pipeline::{async_pipeline_64x64_nn},
///     ];
/// }
/// assert_eq!(RELU.variants[1].entry.name, "relu_persistent_nt_bf16");
/// ```
#[macro_export]
macro_rules! fused {
    (
        $(#[$meta:meta])*
        $visibility:vis static $set:ident: $epilogue:ty = [
            $($module:ident::{$($base:ident),+ $(,)?}),+ $(,)?
        ];
    ) => {
        $crate::pastey::paste! {
            $($(
                #[doc(hidden)]
                #[cuda_std::kernel]
                #[allow(clippy::missing_safety_doc)]
                pub unsafe fn [<$set:lower _ $base>](
                    #[grid_constant] block: &<$crate::$module::$base as $crate::epilogue::Base>::Block<
                        $crate::epilogue::Placed<$epilogue>,
                    >,
                ) {
                    unsafe { <$crate::$module::$base as $crate::epilogue::Base>::run(block) }
                }
            )+)+
            $crate::fix_ups! {
                $epilogue;
                [<$set:lower _fix_up>] f32 run_fp32,
                [<$set:lower _fix_up_bf16>] u16 run_bf16,
                [<$set:lower _fix_up_f16>] u16 run_f16,
            }

            $(#[$meta])*
            #[cfg(not(cuda_device))]
            $visibility static $set: $crate::epilogue::Fused<$epilogue> = {
                const VARIANTS: &[$crate::spec::Variant] = &[$($({
                    let entry = $crate::entry_of!([<$set:lower _ $base>], <
                        $crate::$module::$base as $crate::epilogue::Base
                    >::Block<$crate::epilogue::Placed<$epilogue>>);
                    let fix_ups = [
                        $crate::entry_of!(
                            [<$set:lower _fix_up>],
                            $crate::epilogue::FixUp<f32, $epilogue>
                        ),
                        $crate::entry_of!(
                            [<$set:lower _fix_up_bf16>],
                            $crate::epilogue::FixUp<u16, $epilogue>
                        ),
                        $crate::entry_of!(
                            [<$set:lower _fix_up_f16>],
                            $crate::epilogue::FixUp<u16, $epilogue>
                        ),
                    ];
                    let base = $crate::$module::$base::VARIANT;
                    assert!(
                        !<$epilogue as $crate::epilogue::Epilogue>::SCALES_BLOCKS
                            || matches!(base.rounding, $crate::spec::Rounding::Promoted),
                        "only kernels that promote sums scale blocks"
                    );
                    assert!(
                        <$epilogue as $crate::epilogue::Epilogue>::IS_GATE == base.is_gated,
                        "the kernels `gated` require a gate, such as `Gated<Silu>`, and no others take one"
                    );
                    // SAFETY: the entry points are the base's with an epilogue.
                    unsafe { base.with_epilogue(size_of::<$epilogue>(), entry, fix_ups) }
                }),+),+];
                // SAFETY: as above.
                unsafe { $crate::epilogue::Fused::new(stringify!($set), VARIANTS) }
            };
        }
    };
}

/// The entry points that add up split tiles, each of a type of C.
#[doc(hidden)]
#[macro_export]
macro_rules! fix_ups {
    ($epilogue:ty; $($entry:ident $c:ident $run:ident,)+) => {
        $(
            #[doc(hidden)]
            #[cuda_std::kernel]
            #[allow(clippy::missing_safety_doc)]
            pub unsafe fn $entry(#[grid_constant] block: &$crate::epilogue::FixUp<$c, $epilogue>) {
                unsafe { (*block).$run() }
            }
        )+
    };
}

/// The entry point of a kernel that takes its argument block by reference.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_of {
    ($kernel:ident, $block:ty) => {
        $crate::spec::EntryPoint {
            name: stringify!($kernel),
            argument_bytes: size_of::<$block>(),
            // SAFETY: as for an `EntryFn`.
            function: |block| unsafe { $kernel(&*block.cast::<$block>()) },
        }
    };
}

/// The argument block of a fix-up with an epilogue.
pub type FixUp<C, E> = fix_up::FixUp<C, f32, Placed<E>>;
