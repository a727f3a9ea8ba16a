//! Hopper's tensor cores: the 128 threads of a warpgroup multiply a tile of 64 rows by one of 128
//! or 256 columns, straight from shared memory, while they go on.
//!
//! A warpgroup is four warps, the first a multiple of four. A and B stay in shared memory, as a
//! [`Descriptor`] says; the sums are in the threads' registers, where [`sum_place`] says:
//!
//! ```text
//!   fence()                                 the sums may be used
//!   m64n256k16_bf16(&mut sums, a, b, false)      |  a row of instructions
//!   m64n256k16_bf16(&mut sums, a', b', true)     |  along K ...
//!   commit()                                     |  ... in one group
//!   (anything but the sums)                      |  multiplies
//!   wait_128::<0>(&mut sums)                ..........|  all groups have ended
//! ```
//!
//! From the first multiplication to the wait, the program must not touch the sums: reading or
//! writing them is undefined. A wait for all groups but the newest says that older tiles are no
//! longer read; sums are complete only after a wait for all groups that add to them. A thread may
//! have several arrays of sums, each in groups of its own: while one is added to, it uses the
//! other.
//!
//! | function | A x B | elements | sums of a thread |
//! | --- | --- | --- | --- |
//! | [`m64n64k16_bf16`], [`m64n64k16_f16`] | 64x16 by 16x64 | bf16 or f16 | 32 |
//! | [`m64n128k16_bf16`], [`m64n128k16_f16`] | 64x16 by 16x128 | bf16 or f16 | 64 |
//! | [`m64n256k16_bf16`], [`m64n256k16_f16`] | 64x16 by 16x256 | bf16 or f16 | 128 |
//! | [`m64n128k8_tf32`] | 64x8 by 8x128 | f32, read as tf32 | 64 |
//! | [`m64n256k8_tf32`] | 64x8 by 8x256 | f32, read as tf32 | 128 |
//! | [`m64n256k8_tf32_of_registers`] | 64x8 in registers by 8x256 | f32, read as tf32 | 128 |
//! | [`m64n64k32_e4m3`], [`m64n64k32_e5m2`], [`m64n64k32_e4m3_e5m2`], [`m64n64k32_e5m2_e4m3`] | 64x32 by 32x64 | floats of 8 bits | 32 |
//! | the same with `n128` | 64x32 by 32x128 | floats of 8 bits | 64 |
//! | the same with `n256` | 64x32 by 32x256 | floats of 8 bits | 128 |
//! | [`m64n64k32_s8`], [`m64n64k32_u8`], [`m64n64k32_s8_u8`], [`m64n64k32_u8_s8`] | 64x32 by 32x64 | i8 or u8, with sums in i32 | 32 |
//! | the same with `n128` | 64x32 by 32x128 | i8 or u8, with sums in i32 | 64 |
//! | the same with `n256` | 64x32 by 32x256 | i8 or u8, with sums in i32 | 128 |
//!
//! Only tiles of 16-bit elements may have rows along M or N: the instruction transposes no others.
//! A may be in the threads' registers instead, as [`a_place`] says, from any layout in shared
//! memory. From the multiplication to the wait, a thread must not touch these registers either.
//!
//! Sums of floats round as [`mma`](crate::mma) says, but those of 8 bits, e4m3 with a fraction of 3
//! and e5m2, the upper half of an f16: the 32 products of an instruction and the sum so far are
//! added at once, each cut off 13 bits below the exponent of the largest, and the result has 13
//! bits of fraction. So a kernel adds up few instructions, and then adds that to sums of its own. An
//! H200 computes so for e4m3 (512 of 512 random sums; NVIDIA does not say). That it does so for
//! e5m2 is assumed: neither e5m2 nor u8 has run on a GPU yet, and their formats are the PTX ISA's.
//!
//! Sums of integers are exact, modulo 2^32. The instructions exist for `compute_90a` alone.
//! Compiled for another architecture, each is a `trap`.
//!
//! The simulator multiplies as late as it may: when a thread waits for the group. Until a wait with
//! these very sums, for all groups that add to them, they are NaN, or integers of the same bits.
//! What threads have written to shared memory is multiplied only after a
//! [`tma::fence_shared`](crate::tma::fence_shared).

#[cfg(all(cuda_device, target_feature = "compute_90a"))]
use core::arch::asm;
use core::marker::PhantomData;

use crate::by_architecture::by_architecture;
#[cfg(all(cuda_device, not(target_feature = "compute_90a")))]
use crate::device::needs_architecture;
#[cfg(not(cuda_device))]
use crate::simulator::Float8::{E4m3, E5m2};
#[cfg(not(cuda_device))]
use crate::simulator::Integer8::{S8, U8};
#[cfg(not(cuda_device))]
use crate::simulator::{Operand, Products, warpgroup_multiply, warpgroup_wait};

mod place;

#[cfg(not(cuda_device))]
pub(crate) use place::Tile;
pub use place::{a_place, sum_place};

/// Which way the rows of a tile run: [`KMajor`] or [`MnMajor`].
pub trait Major: sealed::Major + Copy {
    /// Whether the instruction transposes the tile.
    const TRANSPOSES: u32;
    /// From a tile of 16 elements of K, of 16 bits each, to the next: [`Descriptor::further`].
    const BYTES_OF_16: u32;
}

mod sealed {
    pub trait Major {}

    impl Major for super::KMajor {}
    impl Major for super::MnMajor {}
}

/// Rows along K, 128 bytes long: a row of A, or a column of B.
///
/// ```text
///            k = 0 .. 15   16 .. 31   32 .. 47   48 .. 63    (of 16 bits)
///   row 0  | 32 bytes   | 32 bytes | 32 bytes | 32 bytes |
///   ...                                                       8 rows: 1024 bytes
///   row 7  |            |          |          |          |
///   row 8  |
/// ```
#[derive(Clone, Copy, Debug)]
pub struct KMajor;

impl Major for KMajor {
    const TRANSPOSES: u32 = 0;
    const BYTES_OF_16: u32 = 32;
}

/// Rows along M (of A) or N (of B), 128 bytes long: boxes of 64 columns of 16 bits.
///
/// ```text
///            m = 0 .. 63       64 .. 127
///   k = 0  | 128 bytes |      | 128 bytes |
///   k = 1  |           |      |           |      8 rows: 1024 bytes
///   ...    |    box    |      | next box  |      16 rows: one multiplication
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MnMajor;

impl Major for MnMajor {
    const TRANSPOSES: u32 = 1;
    const BYTES_OF_16: u32 = 16 * 128;
}

/// The address and layout of a tile of A or B in shared memory, for one multiplication along K: in
/// rows of 128 bytes, swizzled by 128 bytes, as [`tma::load_2d`](crate::tma::load_2d) leaves them
/// with [`Swizzle::Bytes128`](crate::tma::Swizzle::Bytes128). [`KMajor`] and [`MnMajor`] draw them.
///
/// ```text
///   bits  0 .. 13   address / 16
///        16 .. 29   MN-major: from 64 columns to the next 64, / 16
///        32 .. 45   from 8 rows to the next 8, / 16
///        62 .. 63   swizzle: 1 is 128 bytes
/// ```
///
/// The lower 32 bits are kept; the upper are the same for all.
///
/// PTX ISA, "Matrix descriptor format" and "Strides".
#[derive(Clone, Copy, Debug)]
pub struct Descriptor<M = KMajor>(u32, PhantomData<M>);

impl Descriptor {
    /// The tile that begins at `tile`, at the first K.
    ///
    /// # Safety
    ///
    /// `tile` is in this block's shared memory, at a multiple of 1024 bytes.
    #[inline(always)]
    pub unsafe fn new<T>(tile: *const T) -> Self {
        // With K along the rows nobody reads the distance of boxes.
        // SAFETY: as the caller vouches.
        unsafe { Self::with_boxes(tile, 16) }
    }
}

impl Descriptor<MnMajor> {
    /// The tile that begins at `tile`, at the first K, whose boxes are `box_bytes` apart: of as
    /// many rows, 128 bytes each, as the tile is deep.
    ///
    /// # Safety
    ///
    /// `tile` is in this block's shared memory, at a multiple of 1024 bytes.
    #[inline(always)]
    pub unsafe fn of_boxes<T>(tile: *const T, box_bytes: u32) -> Self {
        // SAFETY: as the caller vouches.
        unsafe { Self::with_boxes(tile, box_bytes) }
    }
}

impl<M: Major> Descriptor<M> {
    #[cfg_attr(cuda_device, allow(dead_code))] // before compute_90a
    const FIXED: u64 = 1 << 62 | (1024 / 16) << 32;

    /// # Safety
    ///
    /// `tile` is in this block's shared memory, at a multiple of 1024 bytes.
    #[inline(always)]
    unsafe fn with_boxes<T>(tile: *const T, box_bytes: u32) -> Self {
        #[cfg(all(cuda_device, target_feature = "compute_90a"))]
        // SAFETY: the caller vouches for the address.
        let address = unsafe { crate::device::shared_address(tile) };
        #[cfg(all(cuda_device, not(target_feature = "compute_90a")))]
        let address = {
            let _ = tile;
            0_u32
        };
        #[cfg(not(cuda_device))]
        let address = crate::simulator::shared_offset(tile.cast());
        let boxes = (box_bytes & 0x3_FFFF) >> 4 << 16;
        Self(boxes | (address & 0x3_FFFF) >> 4, PhantomData)
    }

    /// The same, as the first lane of the warp has it. So the compiler sees that all lanes agree,
    /// keeps it in a uniform register, and does not compute it again for each product.
    ///
    /// # Safety
    ///
    /// All threads of a warp reach this call together, with the same descriptor.
    #[inline(always)]
    #[must_use]
    pub unsafe fn uniform(self) -> Self {
        #[cfg(cuda_device)]
        // SAFETY: as the caller vouches, all lanes take part.
        let bits = unsafe { crate::warp::warp_shuffle_idx(!0, self.0, 0, 32).0 };
        // No thread of the simulator waits for others of its warp here, which would hide a missing
        // barrier.
        #[cfg(not(cuda_device))]
        let bits = self.0;
        Self(bits, PhantomData)
    }

    /// The tile `bytes` further on, a multiple of 16. Along K, for the next multiplication, these
    /// are 32 if K runs along the rows, and either way [`Major::BYTES_OF_16`] for 16 elements of 16
    /// bits. A multiple of 1024 leads to another tile, as from one stage of a ring to the next.
    #[inline(always)]
    #[must_use]
    pub const fn further(self, bytes: u32) -> Self {
        Self(self.0 + (bytes >> 4), PhantomData)
    }

    /// All of its bits.
    #[cfg_attr(cuda_device, allow(dead_code))] // before compute_90a
    #[inline(always)]
    const fn bits(self) -> u64 {
        Self::FIXED | self.0 as u64
    }

    /// The same for the simulator.
    #[cfg(not(cuda_device))]
    fn tile(self) -> Tile {
        Tile {
            descriptor: self.bits(),
            is_transposed: M::TRANSPOSES == 1,
        }
    }
}

/// Orders the use of registers before and after: it must come between any use of the sums by the
/// thread, or of registers that hold A, and the first multiplication that uses them.
///
/// # Safety
///
/// All 128 threads of the warpgroup reach this call together.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn fence() {
    by_architecture! {
        [target_feature = "compute_90a"], "wgmma needs compute_90a", (),
        asm("wgmma.fence.sync.aligned;"),
        crate::simulator::warpgroup_fence(),
    }
}

/// Puts the multiplications since the last `commit` into a group.
///
/// # Safety
///
/// All 128 threads of the warpgroup reach this call together.
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn commit() {
    by_architecture! {
        [target_feature = "compute_90a"], "wgmma needs compute_90a", (),
        asm("wgmma.commit_group.sync.aligned;"),
        crate::simulator::warpgroup_commit(),
    }
}

/// Calls a macro with the numbers of 32, 64 or 128 sums.
#[cfg(all(cuda_device, target_feature = "compute_90a"))]
macro_rules! with_32 {
    ($macro:ident, $($arguments:tt)*) => {
        $macro!($($arguments)*, [
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        ])
    };
}
#[cfg(all(cuda_device, target_feature = "compute_90a"))]
macro_rules! with_64 {
    ($macro:ident, $($arguments:tt)*) => {
        $macro!($($arguments)*, [
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
            33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61
            62 63
        ])
    };
}
#[cfg(all(cuda_device, target_feature = "compute_90a"))]
macro_rules! with_128 {
    ($macro:ident, $($arguments:tt)*) => {
        $macro!($($arguments)*, [
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
            33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61
            62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84 85 86 87 88 89 90
            91 92 93 94 95 96 97 98 99 100 101 102 103 104 105 106 107 108 109 110 111 112 113 114
            115 116 117 118 119 120 121 122 123 124 125 126 127
        ])
    };
}

/// What the template has for sums in registers of a class: the modifier of an integer of 32 bits,
/// or the scales of A and B, which only floats have.
#[cfg(all(cuda_device, target_feature = "compute_90a"))]
macro_rules! of_class {
    (reg: ":e") => {
        ":e"
    };
    (xmm_reg: ", 1, 1") => {
        ", 1, 1"
    };
    ($other:ident: $text:literal) => {
        ""
    };
}

/// The instruction, with the sums as its first operands, in registers of a class. A is the text
/// `$a` of these operands.
#[cfg(all(cuda_device, target_feature = "compute_90a"))]
macro_rules! instruction {
    (
        $class:ident, $sums:ident, $a:literal [$($a_operands:tt)*], $b:ident,
        $adds:ident, [$($instruction:literal)+], [$($major:ident)*], [$first:literal $($i:literal)*]
    ) => {
        asm!(
            "{{",
            ".reg .pred adds;",
            "setp.ne.b32 adds, {adds:e}, 0;",
            concat!(
                "wgmma.mma_async.sync.aligned.", $($instruction,)+ " {{",
                "{", $first, of_class!($class: ":e"), "}",
                $(", {", $i, of_class!($class: ":e"), "}",)*
                "}}, ", $a, ", {b}, adds", of_class!($class: ", 1, 1"),
                $(", {", stringify!($major), "}",)* ";"
            ),
            "}}",
            inout($class) $sums[$first],
            $(inout($class) $sums[$i],)*
            $($a_operands)*
            b = in(reg) $b.bits(),
            adds = in(reg) u32::from($adds),
            $($major = const <$major as Major>::TRANSPOSES,)*
            options(nostack, preserves_flags)
        )
    };
}

/// The wait. The sums are operands, so that nobody uses them earlier.
#[cfg(all(cuda_device, target_feature = "compute_90a"))]
macro_rules! wait_instruction {
    ($class:ident, $sums:ident, $groups:ident, [$($i:literal)*]) => {
        asm!(
            concat!("wgmma.wait_group.sync.aligned {groups}; //", $(" {", $i, of_class!($class: ":e"), "}",)*),
            $(inout($class) $sums[$i],)*
            groups = const $groups,
            options(nostack, preserves_flags)
        )
    };
}

/// The outputs of no instruction.
#[cfg(all(cuda_device, target_feature = "compute_90a"))]
macro_rules! no_instruction {
    ($class:ident, $sums:ident, [$($i:literal)*]) => {
        asm!(
            concat!("// sums in", $(" {", $i, of_class!($class: ":e"), "}",)*),
            $(out($class) $sums[$i],)*
            options(nomem, nostack, preserves_flags)
        )
    };
}

/// Defines sums in this many registers that have no value yet.
macro_rules! unset_sums {
    ($($name:ident, $count:literal of $sum:ident in $class:ident, $with_sums:ident;)*) => {
        $(
            #[doc = concat!("Registers for ", $count, " sums of ", stringify!($sum), ", with whatever they hold: for a first multiplication that does not add. So no instruction sets them to zero before.")]
            #[inline(always)]
            #[must_use]
            pub fn $name() -> [$sum; $count] {
                #[cfg(all(cuda_device, target_feature = "compute_90a"))]
                {
                    let mut sums = [$sum::default(); $count];
                    // SAFETY: it is a comment.
                    unsafe {
                        $with_sums!(no_instruction, $class, sums);
                    }
                    sums
                }
                // In the simulator nobody can mistake them for sums.
                #[cfg(not(all(cuda_device, target_feature = "compute_90a")))]
                {
                    [$sum::from_ne_bytes(f32::NAN.to_ne_bytes()); $count]
                }
            }
        )*
    };
}

unset_sums! {
    unset_32, 32 of f32 in xmm_reg, with_32;
    unset_64, 64 of f32 in xmm_reg, with_64;
    unset_128, 128 of f32 in xmm_reg, with_128;
    unset_32_s32, 32 of i32 in reg, with_32;
    unset_64_s32, 64 of i32 in reg, with_64;
    unset_128_s32, 128 of i32 in reg, with_128;
}

/// Defines waits for sums in this many registers.
macro_rules! waits {
    ($($name:ident, $count:literal of $sum:ident in $class:ident, $with_sums:ident;)*) => {
        $(
            #[doc = concat!("Waits until all of the warpgroup's groups but the `GROUPS` newest have ended, for ", $count, " sums of ", stringify!($sum), " in each thread.")]
            ///
            /// # Safety
            ///
            /// All 128 threads of the warpgroup reach this call together. `sums` are those that the
            /// multiplications since the last [`fence`] have added to.
            #[inline(always)]
            #[cfg_attr(not(cuda_device), track_caller)]
            pub unsafe fn $name<const GROUPS: u32>(sums: &mut [$sum; $count]) {
                #[cfg(all(cuda_device, target_feature = "compute_90a"))]
                // SAFETY: it writes nothing but the sums.
                unsafe {
                    $with_sums!(wait_instruction, $class, sums, GROUPS);
                }
                #[cfg(all(cuda_device, not(target_feature = "compute_90a")))]
                needs_architecture!("wgmma needs compute_90a", sums);
                #[cfg(not(cuda_device))]
                warpgroup_wait(concat!("wgmma::", stringify!($name)), GROUPS as usize, sums);
            }
        )*
    };
}

waits! {
    wait_32, 32 of f32 in xmm_reg, with_32;
    wait_64, 64 of f32 in xmm_reg, with_64;
    wait_128, 128 of f32 in xmm_reg, with_128;
    wait_32_s32, 32 of i32 in reg, with_32;
    wait_64_s32, 64 of i32 in reg, with_64;
    wait_128_s32, 128 of i32 in reg, with_128;
}

/// Defines multiplications whose sums are in the registers that `$sums` counts.
macro_rules! multiplications {
    ($($name:ident[$($major:ident)*]($a:ty, $b:ty), $count:literal of $sum:ident in $class:ident, $sums:ident, $($instruction:literal)+, $($text:literal)+, $columns:literal, $depth:literal, $products:expr;)*) => {
        $(
            #[doc = concat!("`sums = A * B`, or `sums += A * B` if it `adds`: ", $($text,)+ ".")]
            ///
            /// # Safety
            ///
            /// All 128 threads of the warpgroup reach this call together, with the same arguments
            /// but the sums. Both tiles are complete, and stay as they are until a wait for the
            /// group of this multiplication. Between any other use of the sums and this is a
            /// [`fence`].
            #[inline(always)]
            #[cfg_attr(not(cuda_device), track_caller)]
            pub unsafe fn $name<$($major: Major),*>(
                sums: &mut [$sum; $count],
                a: $a,
                b: $b,
                adds: bool,
            ) {
                #[cfg(all(cuda_device, target_feature = "compute_90a"))]
                // SAFETY: the caller vouches for the threads and the tiles.
                unsafe {
                    $sums!(
                        instruction, $class, sums, "{a}" [a = in(reg) a.bits(),], b, adds,
                        [$($instruction)+], [$($major)*]
                    );
                }
                #[cfg(all(cuda_device, not(target_feature = "compute_90a")))]
                needs_architecture!("wgmma needs compute_90a", sums, a, b, adds);
                #[cfg(not(cuda_device))]
                warpgroup_multiply(
                    concat!("wgmma::", stringify!($name)),
                    $products,
                    ($columns, $depth),
                    sums,
                    Operand::Tile(a.tile()),
                    b.tile(),
                    adds,
                );
            }
        )*
    };
}

/// Defines multiplications of elements of 8 bits, of 64, 128 and 256 columns.
macro_rules! of_8_bits {
    ($($n64:ident $n128:ident $n256:ident: $types:literal, $text:literal, $sum:ident in $class:ident, $products:expr;)*) => {
        multiplications! {$(
            $n64[](Descriptor, Descriptor), 32 of $sum in $class, with_32, "m64n64k32." $types, "64x32 by 32x64 of " $text, 64, 32, $products;
            $n128[](Descriptor, Descriptor), 64 of $sum in $class, with_64, "m64n128k32." $types, "64x32 by 32x128 of " $text, 128, 32, $products;
            $n256[](Descriptor, Descriptor), 128 of $sum in $class, with_128, "m64n256k32." $types, "64x32 by 32x256 of " $text, 256, 32, $products;
        )*}
    };
}

multiplications! {
    m64n64k16_bf16[A B](Descriptor<A>, Descriptor<B>), 32 of f32 in xmm_reg, with_32, "m64n64k16.f32.bf16.bf16", "64x16 by 16x64 of bf16", 64, 16, Products::Bf16;
    m64n64k16_f16[A B](Descriptor<A>, Descriptor<B>), 32 of f32 in xmm_reg, with_32, "m64n64k16.f32.f16.f16", "64x16 by 16x64 of f16", 64, 16, Products::F16;
    m64n128k16_bf16[A B](Descriptor<A>, Descriptor<B>), 64 of f32 in xmm_reg, with_64, "m64n128k16.f32.bf16.bf16", "64x16 by 16x128 of bf16", 128, 16, Products::Bf16;
    m64n128k16_f16[A B](Descriptor<A>, Descriptor<B>), 64 of f32 in xmm_reg, with_64, "m64n128k16.f32.f16.f16", "64x16 by 16x128 of f16", 128, 16, Products::F16;
    m64n128k8_tf32[](Descriptor, Descriptor), 64 of f32 in xmm_reg, with_64, "m64n128k8.f32.tf32.tf32", "64x8 by 8x128 of f32, read as tf32", 128, 8, Products::Tf32;
    m64n256k16_bf16[A B](Descriptor<A>, Descriptor<B>), 128 of f32 in xmm_reg, with_128, "m64n256k16.f32.bf16.bf16", "64x16 by 16x256 of bf16", 256, 16, Products::Bf16;
    m64n256k16_f16[A B](Descriptor<A>, Descriptor<B>), 128 of f32 in xmm_reg, with_128, "m64n256k16.f32.f16.f16", "64x16 by 16x256 of f16", 256, 16, Products::F16;
    m64n256k8_tf32[](Descriptor, Descriptor), 128 of f32 in xmm_reg, with_128, "m64n256k8.f32.tf32.tf32", "64x8 by 8x256 of f32, read as tf32", 256, 8, Products::Tf32;
}

of_8_bits! {
    m64n64k32_e4m3 m64n128k32_e4m3 m64n256k32_e4m3: "f32.e4m3.e4m3", "e4m3", f32 in xmm_reg, Products::Floats8(E4m3, E4m3);
    m64n64k32_e5m2 m64n128k32_e5m2 m64n256k32_e5m2: "f32.e5m2.e5m2", "e5m2", f32 in xmm_reg, Products::Floats8(E5m2, E5m2);
    m64n64k32_e4m3_e5m2 m64n128k32_e4m3_e5m2 m64n256k32_e4m3_e5m2: "f32.e4m3.e5m2", "e4m3 by e5m2", f32 in xmm_reg, Products::Floats8(E4m3, E5m2);
    m64n64k32_e5m2_e4m3 m64n128k32_e5m2_e4m3 m64n256k32_e5m2_e4m3: "f32.e5m2.e4m3", "e5m2 by e4m3", f32 in xmm_reg, Products::Floats8(E5m2, E4m3);
    m64n64k32_s8 m64n128k32_s8 m64n256k32_s8: "s32.s8.s8", "i8", i32 in reg, Products::Integers8(S8, S8);
    m64n64k32_u8 m64n128k32_u8 m64n256k32_u8: "s32.u8.u8", "u8", i32 in reg, Products::Integers8(U8, U8);
    m64n64k32_s8_u8 m64n128k32_s8_u8 m64n256k32_s8_u8: "s32.s8.u8", "i8 by u8", i32 in reg, Products::Integers8(S8, U8);
    m64n64k32_u8_s8 m64n128k32_u8_s8 m64n256k32_u8_s8: "s32.u8.s8", "u8 by i8", i32 in reg, Products::Integers8(U8, S8);
}

/// Keeps A in its registers up to here. A multiplication reads them until a wait for its group, of
/// which the compiler knows nothing: code that loads other registers meanwhile calls this after the
/// wait, for each A that was multiplied.
#[inline(always)]
pub fn keep(a: [f32; 4]) {
    #[cfg(all(cuda_device, target_feature = "compute_90a"))]
    // SAFETY: it is a comment.
    unsafe {
        asm!(
            "// {} {} {} {} are free",
            in(xmm_reg) a[0], in(xmm_reg) a[1], in(xmm_reg) a[2], in(xmm_reg) a[3],
            options(nostack, preserves_flags)
        );
    }
    #[cfg(not(all(cuda_device, target_feature = "compute_90a")))]
    let _ = a;
}

/// `sums = A * B`, or `sums += A * B` if it `adds`: 64x8 by 8x256 of f32, read as tf32, with A in
/// registers, where [`a_place`] says.
///
/// # Safety
///
/// All 128 threads of the warpgroup reach this call together, with the same arguments but the sums
/// and A. The tile of B is complete, and stays as it is until a wait for the group of this
/// multiplication. Between any other use of the sums, or what put A into registers, and this is a
/// [`fence`].
#[inline(always)]
#[cfg_attr(not(cuda_device), track_caller)]
pub unsafe fn m64n256k8_tf32_of_registers(
    sums: &mut [f32; 128],
    a: [f32; 4],
    b: Descriptor,
    adds: bool,
) {
    let a = a.map(f32::to_bits);
    #[cfg(all(cuda_device, target_feature = "compute_90a"))]
    // SAFETY: the caller vouches for the threads and the tile.
    unsafe {
        with_128!(
            instruction, xmm_reg, sums, "{{{a0:e}, {a1:e}, {a2:e}, {a3:e}}}"
            [a0 = in(reg) a[0], a1 = in(reg) a[1], a2 = in(reg) a[2], a3 = in(reg) a[3],],
            b, adds, ["m64n256k8.f32.tf32.tf32"], []
        );
    }
    #[cfg(all(cuda_device, not(target_feature = "compute_90a")))]
    needs_architecture!("wgmma needs compute_90a", sums, a, b, adds);
    #[cfg(not(cuda_device))]
    warpgroup_multiply(
        "wgmma::m64n256k8_tf32_of_registers",
        Products::Tf32,
        (256, 8),
        sums,
        Operand::Registers(a),
        b.tile(),
        adds,
    );
}

/// Gives this warpgroup's threads `REGISTERS` registers each, a multiple of 8 up to 240: more than
/// they have. It waits until others have given as many away.
///
/// # Safety
///
/// All 128 threads of the warpgroup reach this call together.
#[inline(always)]
pub unsafe fn increase_registers<const REGISTERS: u32>() {
    const { assert!(REGISTERS.is_multiple_of(8) && REGISTERS <= 240) }
    #[cfg(all(cuda_device, target_feature = "compute_90a"))]
    // SAFETY: the caller vouches for the threads.
    unsafe {
        asm!(
            "setmaxnreg.inc.sync.aligned.u32 {};",
            const REGISTERS, options(nostack, preserves_flags)
        );
    }
}

/// Leaves this warpgroup's threads `REGISTERS` registers each, a multiple of 8 from 24 on: fewer
/// than they have.
///
/// # Safety
///
/// All 128 threads of the warpgroup reach this call together, and use no more
/// registers than stay.
#[inline(always)]
pub unsafe fn decrease_registers<const REGISTERS: u32>() {
    const { assert!(REGISTERS.is_multiple_of(8) && REGISTERS >= 24) }
    #[cfg(all(cuda_device, target_feature = "compute_90a"))]
    // SAFETY: the caller vouches for the threads.
    unsafe {
        asm!(
            "setmaxnreg.dec.sync.aligned.u32 {};",
            const REGISTERS, options(nostack, preserves_flags)
        );
    }
}
