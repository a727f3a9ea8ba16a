//! One kernel launch, as data: plans consist of launches, and backends run them.

use cust::memory::DeviceCopy;
use gpu_kernels::spec::{ElementType, EntryPoint};

/// A kernel launch.
#[derive(Clone, Debug)]
pub struct Launch {
    pub kernel: EntryPoint,
    /// CTAs along x and y.
    pub grid: (u32, u32),
    /// Threads of a CTA along x and y.
    pub block: (u32, u32),
    /// CTAs of a cluster along x; 1 without clusters.
    pub cluster: u32,
    /// Dynamic shared memory of a CTA, in bytes.
    pub dynamic_shared_bytes: u32,
    /// The kernel's parameters, in order.
    pub arguments: Vec<Argument>,
    pub waits: Waits,
}

impl Launch {
    /// CTAs of the grid.
    pub fn ctas(&self) -> u64 {
        u64::from(self.grid.0) * u64::from(self.grid.1)
    }
}

/// A parameter of a kernel. Addresses and scalars are known only when the launch is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A number of rows, columns or elements.
    Count(usize),
    /// The scalars of the product.
    Alpha,
    Beta,
    /// A slice: an address, and a length in elements.
    Slice(Address, usize),
    /// A pointer.
    Pointer(Address),
}

/// A place in one of the product's memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    pub memory: Memory,
    pub offset_bytes: usize,
}

impl Address {
    /// The place `bytes` further on.
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
    /// Where this memory begins.
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

/// The values that a launch list leaves open: the scalars, and where the memories begin.
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
}

impl Bindings {
    /// Where an address points.
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

/// Numbers of which every pattern of bits is a value. No other crate can implement it.
pub trait Plain: sealed::Sealed + DeviceCopy {}

macro_rules! plain {
    ($($type:ty),*) => {
        $(
            impl sealed::Sealed for $type {}

            impl Plain for $type {}
        )*
    };
}

plain!(f32, f64, i32, u8, u32, u64);

/// A Rust type that matrix elements may have.
pub trait Element: Plain + Default + PartialEq + Send + Sync + 'static {
    /// The element type that this Rust type stands for.
    const TYPE: ElementType;

    /// The value in the form that a launch takes.
    fn scalar(self) -> Scalar;

    /// The value, if the scalar is of this type.
    fn of(scalar: Scalar) -> Option<Self>;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! element {
    ($($type:ty, $variant:ident);*) => {
        $(
            impl Element for $type {
                const TYPE: ElementType = ElementType::$variant;

                fn scalar(self) -> Scalar {
                    Scalar::$variant(self)
                }

                fn of(scalar: Scalar) -> Option<Self> {
                    match scalar {
                        Scalar::$variant(value) => Some(value),
                        _ => None,
                    }
                }
            }
        )*
    };
}

element!(f32, F32; f64, F64; i32, I32);
