//! What becomes of an element of C after it has been multiplied and added up, and before it is
//! stored: `C = epilogue(alpha * A * B + beta * C)`.
//!
//! A bias, an activation or a scale after a product reads and writes all of C once more if it is a
//! kernel of its own: 4*M*N elements through memory for 2*M*N*K operations. Here it is a function
//! of values that are still in registers. A kernel is generic in it, so the compiler inlines it,
//! and its parameters are the last field of a [`Gemm`](crate::gemm::Gemm).
//!
//! cublasLt has a list of epilogues, CUTLASS trees of visitors; this is a trait with one function.

crate::compat::unless_published! {
    #[cfg(all(feature = "epilogues", any(not(cuda_device), feature = "entry-points")))]
    pub(crate) mod compiled;
    mod operand;
    mod ready_made;

    #[cfg(all(feature = "epilogues", not(cuda_device)))]
    pub use compiled::Compiled;
    pub use operand::{Bf16, Matrix, Number, F16};
    pub use ready_made::{
        AuxStore, Bias, BlockScales, Clamp, DGeluTanh, Gated, Gelu, GeluTanh, PerColBias, PerColScale,
        PerRowBias, PerRowScale, Relu, Residual, Silu,
    };
}

mod fused;
pub use fused::{FixUp, Fused, MOST_BYTES};

/// A function of the elements of C.
///
/// The host makes a value of the type, and the kernel gets its bytes, so pointers in it are to
/// memory of the device, and the type is `repr(C)`.
///
/// ```ignore
/// use cuda_std::GpuFloat;
/// use gpu_kernels::epilogue::{At, Epilogue};
///
/// /// `cap * tanh(x / cap)`: no element is farther from zero than `cap`.
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// pub struct Softcap {
///     pub cap: f32,
/// }
///
/// impl Epilogue for Softcap {
///     #[inline(always)]
///     unsafe fn apply<const N: usize>(&self, _at: At, values: [f32; N]) -> [f32; N] {
///         values.map(|x| self.cap * GpuFloat::tanh(x / self.cap))
///     }
/// }
/// ```
pub trait Epilogue<S = f32>: Copy {
    /// The elements of C that are stored for N neighbours of a row. `values` are
    /// `alpha * sum + beta * C` there, in the type of sums. Every element of C passes once; what
    /// follows a row's last element is not stored.
    ///
    /// # Safety
    ///
    /// Pointers in `self` are valid for the elements at `at`, and no other thread writes what
    /// belongs to these.
    unsafe fn apply<const N: usize>(&self, at: At, values: [S; N]) -> [S; N];

    /// Is called before the elements of a part of a tile pass that is wholly within C: `at` is the
    /// first, and `at.count` the number of columns. Each thread of a warpgroup calls it with its
    /// number. It may [prefetch](At::prefetch_columns) what `apply` will load, and says how that is
    /// aligned, so that `apply` need not ask for each pair: after [`Alignment::Pairs`] the
    /// functions of [`At`] load pairs unasked, and at other addresses that is undefined. It may be
    /// called twice, first while products are still computed.
    ///
    /// # Safety
    ///
    /// As for [`Epilogue::apply`].
    #[inline(always)]
    unsafe fn prepare(&self, at: At, thread: usize) -> Alignment {
        let _ = (at, thread);
        Alignment::Unknown
    }

    /// Whether it returns the values as they are, so `at` may be wrong.
    #[doc(hidden)]
    const IS_IDENTITY: bool = false;

    /// Whether it scales blocks of the depth, which only kernels that promote sums do.
    const SCALES_BLOCKS: bool = false;

    /// What the products of the element at `at` in a block of the depth are multiplied by before
    /// they are added to the others, in kernels that promote sums: those of e4m3 do so every 128 of
    /// the depth. C has that element.
    ///
    /// # Safety
    ///
    /// As for [`Epilogue::apply`].
    #[inline(always)]
    unsafe fn block_scale(&self, at: At, block: usize) -> f32 {
        let _ = (at, block);
        1.0
    }

    /// Whether it makes one element of two products ([`Epilogue::gate`]). The kernels that multiply
    /// A by two matrices (`gated.rs`) require that, and no others take it.
    const IS_GATE: bool = false;

    /// The values of which C is made, `gate + beta * C`, for N neighbours of a row: `gates` are
    /// `alpha * A * B1` there, and `ups` are `alpha * A * B2`.
    ///
    /// # Safety
    ///
    /// As for [`Epilogue::apply`], which follows.
    #[inline(always)]
    unsafe fn gate<const N: usize>(&self, at: At, gates: [S; N], ups: [S; N]) -> [S; N] {
        let _ = (at, ups);
        gates
    }
}

/// The alignment of the numbers that an epilogue loads and stores for a tile, besides C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// Those for even columns of the tile are at multiples of the size of two numbers, or there are
    /// none.
    Pairs,
    /// Some are not.
    Less,
    /// The epilogue does not say.
    Unknown,
}

impl Alignment {
    /// That of two epilogues.
    #[inline(always)]
    fn and(self, other: Alignment) -> Alignment {
        match (self, other) {
            (Alignment::Unknown, _) | (_, Alignment::Unknown) => Alignment::Unknown,
            (Alignment::Pairs, Alignment::Pairs) => Alignment::Pairs,
            _ => Alignment::Less,
        }
    }
}

/// The place of neighbours in a row of C.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// The number of the product in the batch.
    pub product: usize,
    pub row: usize,
    /// The column of the first.
    pub col: usize,
    /// How many of the N neighbours exist. At the edges of C, kernels compute some that do not,
    /// and it may be 0.
    pub count: usize,
    /// Whether the epilogue has said that it has [`Alignment::Pairs`], and they are a pair.
    pub(crate) is_aligned: bool,
}

impl At {
    /// Neighbours, of which `count` exist.
    #[inline(always)]
    pub fn of(product: usize, row: usize, col: usize, count: usize) -> At {
        At {
            product,
            row,
            col,
            count,
            is_aligned: false,
        }
    }

    /// One element of C.
    #[inline(always)]
    pub fn one(product: usize, row: usize, col: usize) -> At {
        At::of(product, row, col, 1)
    }
}

/// C as BLAS has it. It takes no room in an argument block, and no instruction.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Identity;

impl<S> Epilogue<S> for Identity {
    #[inline(always)]
    unsafe fn apply<const N: usize>(&self, _at: At, values: [S; N]) -> [S; N] {
        values
    }

    const IS_IDENTITY: bool = true;
}

/// An epilogue of what another one returns.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Then<First, Second>(pub First, pub Second);

impl<S, First: Epilogue<S>, Second: Epilogue<S>> Epilogue<S> for Then<First, Second> {
    #[inline(always)]
    unsafe fn apply<const N: usize>(&self, at: At, values: [S; N]) -> [S; N] {
        self.1.apply(at, self.0.apply(at, values))
    }

    #[inline(always)]
    unsafe fn prepare(&self, at: At, thread: usize) -> Alignment {
        self.0.prepare(at, thread).and(self.1.prepare(at, thread))
    }

    const SCALES_BLOCKS: bool = First::SCALES_BLOCKS || Second::SCALES_BLOCKS;

    #[inline(always)]
    unsafe fn block_scale(&self, at: At, block: usize) -> f32 {
        self.0.block_scale(at, block) * self.1.block_scale(at, block)
    }

    const IS_GATE: bool = First::IS_GATE;

    #[inline(always)]
    unsafe fn gate<const N: usize>(&self, at: At, gates: [S; N], ups: [S; N]) -> [S; N] {
        self.0.gate(at, gates, ups)
    }
}

/// A kernel as a function of its epilogue: an empty type for each variant, named as its entry
/// point. [`fused!`](crate::fused) makes entry points of it.
pub trait Base {
    /// The type of sums.
    type Sum;
    /// The argument block.
    type Block<E: Epilogue<Self::Sum>>;

    /// The kernel's work in one thread.
    ///
    /// # Safety
    ///
    /// As for an [`EntryFn`](crate::spec::EntryFn).
    unsafe fn run<E: Epilogue<Self::Sum>>(block: &Self::Block<E>);
}

/// An epilogue in a launch that computes a part of C, with places in all of C.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Placed<E> {
    /// The row, the column and the product of the batch with which the launch begins.
    pub first: [usize; 3],
    pub epilogue: E,
}

impl<S, E: Epilogue<S>> Epilogue<S> for Placed<E> {
    #[inline(always)]
    unsafe fn apply<const N: usize>(&self, at: At, values: [S; N]) -> [S; N] {
        self.epilogue.apply(self.placed(at), values)
    }

    #[inline(always)]
    unsafe fn prepare(&self, at: At, thread: usize) -> Alignment {
        self.epilogue.prepare(self.placed(at), thread)
    }

    const SCALES_BLOCKS: bool = E::SCALES_BLOCKS;

    #[inline(always)]
    unsafe fn block_scale(&self, at: At, block: usize) -> f32 {
        self.epilogue.block_scale(self.placed(at), block)
    }

    const IS_GATE: bool = E::IS_GATE;

    #[inline(always)]
    unsafe fn gate<const N: usize>(&self, at: At, gates: [S; N], ups: [S; N]) -> [S; N] {
        self.epilogue.gate(self.placed(at), gates, ups)
    }
}

impl<E> Placed<E> {
    /// The place in all of C.
    #[inline(always)]
    fn placed(&self, at: At) -> At {
        let [row, col, product] = self.first;
        At {
            product: product + at.product,
            row: row + at.row,
            col: col + at.col,
            ..at
        }
    }
}
