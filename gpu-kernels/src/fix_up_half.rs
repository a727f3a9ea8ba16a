//! Stream-K fix-up (`fix_up.rs`) of a C of 16 bits, after a kernel of [`crate::persistent`].

use core::marker::PhantomData;

use cuda_std::prelude::*;

use crate::compat::launch_bounds;
use crate::epilogue::{At, Epilogue, Identity};
use crate::fix_up::{FixUp, Sink, THREADS};
use crate::float4::Float4;
use crate::gemm::{product_of_cta, Gemm};
use crate::half::{self, Bf16, Half, F16};
use crate::spec::{entry, EntryPoint};

/// The entry point for a C of bf16.
pub const FIX_UP_BF16: EntryPoint = entry!(fix_up_bf16(FixUp<u16>));

/// The entry point for a C of f16.
pub const FIX_UP_F16: EntryPoint = entry!(fix_up_f16(FixUp<u16>));

/// [`fix_up`](crate::fix_up::fix_up) of a C of 16 bits.
///
/// # Safety
///
/// As for [`fix_up`](crate::fix_up::fix_up).
#[cfg(any(not(cuda_device), feature = "entry-points"))]
#[kernel(instantiate(fix_up_bf16 = fix_up_half::<Bf16>, fix_up_f16 = fix_up_half::<F16>))]
pub unsafe fn fix_up_half<T: Half>(block: FixUp<u16>) {
    block.run_half::<T>();
}

impl<E: Epilogue> FixUp<u16, f32, E> {
    /// The work of a block, which adds to a C of 16 bits.
    ///
    /// # Safety
    ///
    /// As for [`fix_up`](crate::fix_up::fix_up).
    #[inline(always)]
    unsafe fn run_half<T: Half>(self) {
        launch_bounds::<{ THREADS as u32 }, 1>();
        self.run(&HalfC::<T, E>::of(&self.gemm.with_c_of_cta()));
    }

    /// The work of a block, which adds to a C of bf16.
    ///
    /// # Safety
    ///
    /// As for [`fix_up`](crate::fix_up::fix_up).
    #[inline(always)]
    pub unsafe fn run_bf16(self) {
        self.run_half::<Bf16>();
    }

    /// The same of f16.
    ///
    /// # Safety
    ///
    /// As for [`fix_up`](crate::fix_up::fix_up).
    #[inline(always)]
    pub unsafe fn run_f16(self) {
        self.run_half::<F16>();
    }
}

/// C of 16 bits, with its `alpha` and `beta`.
pub(crate) struct HalfC<T, E = Identity> {
    n: usize,
    alpha: f32,
    beta: f32,
    c: *mut u16,
    ldc: usize,
    epilogue: E,
    product: usize,
    element: PhantomData<T>,
}

impl<T: Half, E: Epilogue> HalfC<T, E> {
    /// That of a product.
    #[inline(always)]
    pub(crate) fn of<Input>(gemm: &Gemm<'_, Input, u16, f32, E>) -> HalfC<T, E> {
        HalfC {
            n: gemm.n,
            alpha: gemm.alpha,
            beta: gemm.beta,
            c: gemm.c_of_cta(),
            ldc: gemm.ldc,
            epilogue: gemm.epilogue,
            product: product_of_cta(),
            element: PhantomData,
        }
    }
}

impl<T: Half, E: Epilogue> Sink for HalfC<T, E> {
    type Sum = f32;

    #[inline(always)]
    unsafe fn update4(&self, row: usize, col: usize, sums: Float4) {
        let c = self.c.wrapping_add(row * self.ldc + col);
        let in_bounds = |i: usize| col + i < self.n;
        let is_one_access = in_bounds(3) && (c as usize).is_multiple_of(8);
        let mut old = [0u16; 4];
        if self.beta != 0.0 && is_one_access {
            let Half4([low, high]) = *c.cast();
            old = [
                low as u16,
                (low >> 16) as u16,
                high as u16,
                (high >> 16) as u16,
            ];
        } else if self.beta != 0.0 {
            for i in 0..4 {
                if in_bounds(i) {
                    old[i] = *c.add(i);
                }
            }
        }
        let updated = |i: usize| half::updated::<T>(old[i], self.alpha, self.beta, sums.0[i]);
        let count = if in_bounds(3) {
            4
        } else {
            self.n.saturating_sub(col)
        };
        let product = self.product;
        let at = At::of(product, row, col, count);
        let [p, q, r, s] = self.epilogue.apply(at, [0, 1, 2, 3].map(updated));
        let pairs = [T::pair(p, q), T::pair(r, s)];
        if is_one_access {
            *c.cast() = Half4(pairs);
        } else {
            for i in 0..4 {
                if in_bounds(i) {
                    *c.add(i) = (pairs[i / 2] >> (i % 2 * 16)) as u16;
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn update_at(&self, index: usize, (row, col): (usize, usize), sum: f32) {
        let at = At::one(self.product, row, col);
        let finished = |value| self.epilogue.apply(at, [value])[0];
        half::update::<T>(self.c.add(index), (self.alpha, self.beta), sum, finished);
    }
}

/// Four neighbours of C, two in a word, which are read and written at once.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Half4([u32; 2]);

/// How a kernel writes its sums, by the type of C: a function of its `Gemm`.
macro_rules! sink {
    (f32) => {
        Clone::clone
    };
    (f64) => {
        Clone::clone
    };
    ($half:ident) => {
        $crate::fix_up_half::HalfC::<$crate::half::$half, _>::of
    };
}
pub(crate) use sink;
