//! One kernel launch, as data: plans consist of launches, and backends run them.

use std::convert::identity;
use std::mem::MaybeUninit;

use cuda_std::tma::{Planes, Swizzle, TensorMap, Tiles};
use gpu_kernels::epilogue::{Identity, MOST_BYTES};
use gpu_kernels::spec::{DataType, ElementType, EntryPoint};

use crate::call::MatrixLayout;
use crate::{Bf16, E4m3, F16};

/// A kernel launch.
#[derive(Clone, Debug)]
pub struct Launch {
    pub kernel: EntryPoint,
    /// CTAs along x and y.
    pub grid: (u32, u32),
    /// CTAs along z: the products of a batch.
    pub products: u32,
    /// Threads of a CTA along x and y.
    pub block: (u32, u32),
    /// Dynamic shared memory of a CTA, in bytes.
    pub dynamic_shared_bytes: u32,
    /// The element type of the slices among the arguments.
    pub element: ElementType,
    /// The fields of the kernel's argument block, in order.
    pub arguments: Vec<Argument>,
    pub waits: Waits,
}

impl Launch {
    /// CTAs of the grid.
    pub fn ctas(&self) -> u64 {
        u64::from(self.grid.0) * u64::from(self.grid.1) * u64::from(self.products)
    }
}

/// A field of a kernel's argument block. Addresses and scalars are known only when the launch is
/// made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A number of rows, columns or elements.
    Count(usize),
    /// The scalars of the product.
    Alpha,
    Beta,
    /// A slice: an address, and a length in elements of [`Launch::element`].
    Slice(Address, usize),
    /// A pointer.
    Pointer(Address),
    /// A tensor map by value: the description of a matrix for the copy engine (TMA).
    Map(Map),
    /// The row, the column and the product of the call with which the launch begins, and the
    /// epilogue, in `bytes` bytes.
    Epilogue {
        first: [usize; 3],
        bytes: usize,
    },
}

/// A matrix and the boxes in which the copy engine moves it, with rows of up to 128 bytes,
/// swizzled by 128 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map {
    pub address: Address,
    pub element: ElementType,
    /// Whether loads round f32 to tf32.
    pub rounds_to_tf32: bool,
    /// With a stride of 0 if all products share one matrix.
    pub layout: MatrixLayout,
    /// Rows and columns of a box.
    pub box_rows: usize,
    pub box_columns: usize,
}

impl Map {
    /// The same for the copy engine, at an address. `None` if it cannot move the matrix, because
    /// there are no elements, or rows do not begin at multiples of 16 bytes. Kernels do not read
    /// the map of such a matrix.
    pub fn tiles(&self, address: *mut u8) -> Option<Tiles> {
        let layout = self.layout;
        let row_bytes = layout.leading.checked_mul(self.element.bytes())?;
        let planes = match (layout.count, layout.stride) {
            // The stride between matrices is not used, but must be valid.
            (0 | 1, _) | (_, 0) => Planes {
                count: 1,
                bytes: row_bytes,
            },
            (count, stride) => Planes {
                count,
                bytes: stride.checked_mul(self.element.bytes())?,
            },
        };
        let tiles = Tiles {
            global: address,
            element_bytes: self.element.bytes(),
            rounds_to_tf32: self.rounds_to_tf32,
            width: layout.columns,
            height: layout.rows,
            row_bytes,
            planes: Some(planes),
            box_width: self.box_columns,
            box_height: self.box_rows,
            swizzle: Swizzle::Bytes128,
        };
        tiles.problem().is_none().then_some(tiles)
    }
}

/// The map of a matrix that the copy engine cannot move.
pub const NO_MAP: TensorMap = TensorMap([0; 16]);

/// A place in one of the product's memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    pub memory: Memory,
    pub offset_bytes: usize,
}

impl Address {
    /// The address `bytes` further on.
    pub fn after(self, bytes: usize) -> Address {
        Address {
            offset_bytes: self.offset_bytes.wrapping_add(bytes),
            ..self
        }
    }
}

/// The memories of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    A,
    B,
    C,
    Workspace,
}

impl Memory {
    /// The start of this memory.
    pub const fn start(self) -> Address {
        Address {
            memory: self,
            offset_bytes: 0,
        }
    }
}

/// When a launch may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// When all earlier work on the stream has ended.
    ForTheStream,
    /// Earlier: the kernel itself waits for the launch before it (`grid_dependency::wait`). CUDA
    /// calls this programmatic dependent launch.
    InTheKernel,
}

/// The values that are not part of a launch: the scalars, the addresses of the memories, and the
/// epilogue.
///
/// The pointers are addresses of the backend's own memory. A host that launches on a GPU never
/// dereferences them.
#[derive(Clone, Copy, Debug)]
pub struct Bindings {
    pub alpha: Scalar,
    pub beta: Scalar,
    pub a: *mut u8,
    pub b: *mut u8,
    pub c: *mut u8,
    pub workspace: *mut u8,
    pub epilogue: Parameters,
    /// Where this part begins in the caller's C: row, column, product.
    pub first: [usize; 3],
}

/// The parameters of an epilogue, bit for bit.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    words: [MaybeUninit<u64>; MOST_BYTES / size_of::<u64>()],
    bytes: usize,
}

impl Parameters {
    /// Those of no epilogue.
    pub const NONE: Parameters = Parameters::of(Identity);

    /// Those of an epilogue.
    pub const fn of<E: Copy>(epilogue: E) -> Parameters {
        const {
            assert!(size_of::<E>() <= MOST_BYTES && align_of::<E>() <= align_of::<u64>());
        }
        let mut words = [MaybeUninit::new(0); MOST_BYTES / size_of::<u64>()];
        // SAFETY: there is room for it, and it is aligned. Its padding bytes are uninitialized, so
        // no word is read as a number.
        unsafe { words.as_mut_ptr().cast::<E>().write(epilogue) };
        Parameters {
            words,
            bytes: size_of::<E>(),
        }
    }

    /// Its words, in which padding bytes are uninitialized.
    pub(crate) fn words(&self) -> &[MaybeUninit<u64>] {
        &self.words[..self.bytes.div_ceil(size_of::<u64>())]
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Bindings {
    /// The pointer of an address.
    pub fn pointer(&self, address: Address) -> *mut u8 {
        let start = match address.memory {
            Memory::A => self.a,
            Memory::B => self.b,
            Memory::C => self.c,
            Memory::Workspace => self.workspace,
        };
        start.wrapping_add(address.offset_bytes)
    }
}

/// A scalar of one of the element types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    F32(f32),
    F64(f64),
    I32(i32),
}

impl Scalar {
    /// Its bits, in the lower part of a word.
    pub(crate) fn bits(self) -> u64 {
        match self {
            Scalar::F32(value) => value.to_bits().into(),
            Scalar::F64(value) => value.to_bits(),
            Scalar::I32(value) => value.cast_unsigned().into(),
        }
    }

    /// 1, of the same type.
    pub(crate) fn one(self) -> Scalar {
        match self {
            Scalar::F32(_) => Scalar::F32(1.0),
            Scalar::F64(_) => Scalar::F64(1.0),
            Scalar::I32(_) => Scalar::I32(1),
        }
    }

    pub(crate) fn is_one(self) -> bool {
        self == self.one()
    }

    pub(crate) fn is_zero(self) -> bool {
        match self {
            Scalar::F32(value) => value == 0.0,
            Scalar::F64(value) => value == 0.0,
            Scalar::I32(value) => value == 0,
        }
    }
}

/// Numbers for which any bits are a valid value. No other crate can implement it.
pub trait Plain: sealed::Sealed + Copy {}

mod sealed {
    pub trait Sealed {}
}

macro_rules! plain {
    ($($type:ty),*) => {
        $(
            impl sealed::Sealed for $type {}

            impl Plain for $type {}
        )*
    };
}

plain!(f32, f64, i32, i8, u8, u16, u32, u64, Bf16, F16, E4m3);

/// A Rust type that matrix elements may have.
pub trait Element: Plain + Default + PartialEq + Send + Sync + 'static {
    /// The element type of this Rust type.
    const TYPE: ElementType;

    /// The type of alpha and beta, in which sums are computed: the element's own, except f32 for
    /// elements of 16 bits and e4m3, and i32 for i8.
    type Scalar: Element;

    /// The value as a launch takes it.
    fn scalar(self) -> Scalar;

    /// The value, if the scalar is of this type.
    fn of(scalar: Scalar) -> Option<Self>;
}

/// A type of A and B with kernels for a C of type `C`: the same type, or `f32` for elements of 16
/// bits; for `i8` only `i32`, and for `E4m3` `f32` or `Bf16`. Each type but `f32` is a feature of
/// this crate; all are enabled by default. No other crate can implement it.
#[diagnostic::on_unimplemented(
    message = "no kernel multiplies `{Self}` into `{C}`",
    note = "there are kernels of f32, f64, i32, bf16 and f16 into their own type, of bf16, f16 and e4m3 into f32, of e4m3 into bf16, and of i8 into i32; \
            each type but f32 is a feature of gpu_gemm"
)]
pub trait MultipliesInto<C: Element>: Element<Scalar = C::Scalar> {
    /// The types of the matrices.
    const DATA_TYPE: DataType = DataType {
        inputs: Self::TYPE,
        c: C::TYPE,
    };
}

impl MultipliesInto<f32> for f32 {}
#[cfg(feature = "f64")]
impl MultipliesInto<f64> for f64 {}
#[cfg(feature = "i32")]
impl MultipliesInto<i32> for i32 {}
#[cfg(feature = "i8")]
impl MultipliesInto<i32> for i8 {}
#[cfg(feature = "e4m3")]
impl MultipliesInto<f32> for E4m3 {}
#[cfg(feature = "e4m3")]
impl MultipliesInto<Bf16> for E4m3 {}
#[cfg(feature = "bf16")]
impl MultipliesInto<Bf16> for Bf16 {}
#[cfg(feature = "bf16")]
impl MultipliesInto<f32> for Bf16 {}
#[cfg(feature = "f16")]
impl MultipliesInto<F16> for F16 {}
#[cfg(feature = "f16")]
impl MultipliesInto<f32> for F16 {}

/// Implements [`Element`], with its scalar and the conversions between them.
macro_rules! element {
    ($($type:ident as $variant:ident, $scalar:ident as $of:ident: $to:expr, $from:expr;)*) => {
        $(
            impl Element for $type {
                const TYPE: ElementType = ElementType::$variant;
                type Scalar = $scalar;

                fn scalar(self) -> Scalar {
                    Scalar::$of($to(self))
                }

                fn of(scalar: Scalar) -> Option<Self> {
                    match scalar {
                        Scalar::$of(value) => Some($from(value)),
                        _ => None,
                    }
                }
            }
        )*
    };
}

element! {
    f32 as F32, f32 as F32: identity, identity;
    f64 as F64, f64 as F64: identity, identity;
    i32 as I32, i32 as I32: identity, identity;
    i8 as I8, i32 as I32: i32::from, (|scalar| scalar as i8);
    Bf16 as Bf16, f32 as F32: Bf16::to_f32, Bf16::from_f32;
    F16 as F16, f32 as F32: F16::to_f32, F16::from_f32;
    E4m3 as E4m3, f32 as F32: |element: E4m3| element.to_f32(), E4m3::from_f32;
}
