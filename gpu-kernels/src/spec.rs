//! The description of a kernel: its name, its types, its tiles, its launch shape, how it rounds
//! and how fast it is.
//!
//! The library, the simulator, the program, the tests and the book read it; `kernel!`
//! (`kernel.rs`) writes it together with the entry point.

/// An entry point of the PTX, and the same kernel as a function, for the simulator.
///
/// Every GEMM kernel computes `C = alpha * A * B + beta * C` for each product of a batch, or what an
/// epilogue makes of that, all matrices row-major. `A` is `m x k` with leading dimension
/// `lda >= k`, `B` is `k x n` with `ldb >= n`, `C` is `m x n` with `ldc >= n`; dimensions and
/// leading dimensions are in elements. As in BLAS, `beta == 0` does not read `C`, and `alpha == 0`
/// reads neither `A` nor `B`.
#[derive(Clone, Copy, Debug)]
pub struct EntryPoint {
    /// Its name in the PTX.
    pub name: &'static str,
    /// Bytes of its one parameter, the argument block.
    pub argument_bytes: usize,
    pub function: EntryFn,
}

/// A kernel as a function of the address of its argument block: a [`Gemm`](crate::gemm::Gemm), a
/// [`MappedBlock`](crate::mapped_gemm::MappedBlock), or the block of a helper.
///
/// # Safety
///
/// The block has the kernel's type and its alignment. The kernel runs as one thread of a launch
/// with the shape of its [`Variant`], with as many CTAs along z as the batch has products, or, if
/// CTAs are persistent, with the number of products in the block. For each product `a` holds
/// `(m - 1) * lda + k` elements and `b` holds `(k - 1) * ldb + n`, or as the [`OperandLayout`]s of
/// the variant say; `c` is valid for reads and writes of `(m - 1) * ldc + n` elements that nothing
/// else touches. The maps of a mapped kernel describe A and B as the [`OperandLayout`]s say, and
/// C, in boxes of its [`Staging::Ring`]; a map of a matrix without elements is not read. Nothing
/// else touches `partials`, which a stream-K kernel needs. An epilogue may be applied at each place
/// of C ([`Epilogue::apply`](crate::epilogue::Epilogue::apply)).
pub type EntryFn = unsafe fn(*const u8);

/// The [`EntryPoint`] of a kernel that takes an argument block of this type by value, or, with
/// `&`, by reference (`#[grid_constant]`).
macro_rules! entry {
    ($kernel:ident(&$block:ty)) => {
        $crate::spec::entry!($kernel, $block, block => &*block)
    };
    ($kernel:ident($block:ty)) => {
        $crate::spec::entry!($kernel, $block, block => block.read())
    };
    ($kernel:ident, $block:ty, $at:ident => $argument:expr) => {
        $crate::spec::EntryPoint {
            name: stringify!($kernel),
            argument_bytes: size_of::<$block>(),
            function: |_block| {
                // SAFETY: as the caller vouches.
                #[cfg(not(cuda_device))] // there the parameter differs
                unsafe {
                    let $at = _block.cast::<$block>();
                    $kernel($argument)
                }
            },
        }
    };
}
pub(crate) use entry;

/// A rung of the ladder: one idea, in one file, with its compiled variants.
#[derive(Debug)]
pub struct Kernel {
    /// Its name on the command line, such as `double-buffer`.
    pub name: &'static str,
    /// The idea, in one line.
    pub idea: &'static str,
    /// Its source file, relative to the root of the workspace.
    pub source: &'static str,
    /// Its variants; the first of a data type is the default of that type.
    pub variants: &'static [Variant],
}

/// One compiled form of a kernel: types, tiles and launch shape.
///
/// Plans rely on it: if it is wrong, a launch accesses memory outside of its buffers. So safe code
/// can neither copy nor create a variant.
#[derive(Debug)]
#[non_exhaustive]
pub struct Variant {
    /// Its name on the command line, such as `tiled-32`; unique among those of its data type.
    pub name: &'static str,
    pub entry: EntryPoint,
    /// The entry point that adds up the partial sums of split tiles.
    pub fix_up: Option<EntryPoint>,
    /// The bytes of the epilogue in which, with its place, the [`Gemm`](crate::gemm::Gemm) of both
    /// ends ([`Placed`](crate::epilogue::Placed)); `None` if it has none.
    pub epilogue_bytes: Option<usize>,
    /// The element types of A, B, the accumulators and C.
    pub types: Types,
    /// The unit that multiplies.
    pub unit: Unit,
    /// The lowest compute capability on which it runs, times ten.
    pub least_capability: u32,
    /// Whether it runs on no other, since later ones dropped instructions: `compute_90a`.
    pub one_capability: bool,
    /// How CTAs are laid over C.
    pub grid: Grid,
    /// Threads of a CTA along x (columns of C) and y (rows of C).
    pub block: Block,
    /// The block tile: what a CTA computes, and stages, at once.
    pub tile: Tile,
    /// The thread tile, TM x TN: the rows and columns of a block tile that a thread computes.
    pub thread_tile: (u32, u32),
    /// The groups of a CTA's threads that compute the same elements of C, each for its own
    /// k-slice.
    pub k_slices: u32,
    /// The data that a CTA stages in shared memory.
    pub staging: Staging,
    /// Static shared memory of a CTA, in bytes.
    pub static_shared_bytes: u32,
    /// The required layouts of A and B.
    pub a: OperandLayout,
    pub b: OperandLayout,
    /// How the matrices are allocated.
    pub allocation: Allocation,
    /// Whether it reads two f16 for each element of A and B, from copies and scales that
    /// `split.rs` writes.
    pub splits_operands: bool,
    /// Whether it takes only exact tiles: m, n and k are multiples of the block tile's, or A and B
    /// are padded with zeros.
    pub exact_tiles: bool,
    /// The variant for the N remainder, the last columns of C, which do not fill a tile; without
    /// one, the last tiles are partly empty.
    pub n_remainder: Option<&'static str>,
    /// Whether C is written with 128-bit stores where its rows are aligned.
    pub vector_stores: bool,
    /// Whether it multiplies A by two matrices B, the batch of which is one product: its epilogue
    /// is a gate ([`Epilogue::IS_GATE`](crate::epilogue::Epilogue::IS_GATE)).
    pub is_gated: bool,
    /// Whether it is a matrix-vector kernel: it reads all of B again for every `tile.m` rows.
    pub gemv_like: bool,
    /// How it rounds, from which its error bound follows.
    pub rounding: Rounding,
    /// Its speed, if it is ever worth choosing.
    pub rate: Option<Rate>,
    /// Whether it is there to be read and measured only: `auto` never takes it.
    pub is_lesson: bool,
}

impl Variant {
    /// A variant with one CTA a tile, tiles of A and B in shared memory, unless the tile has no
    /// depth, and row-major matrices at any address.
    ///
    /// # Safety
    ///
    /// The description is true of the kernel, at the latest when it is first launched.
    pub const unsafe fn new(
        name: &'static str,
        entry: EntryPoint,
        data_type: DataType,
        block: Block,
        tile: Tile,
    ) -> Variant {
        let plain = Variant {
            name,
            entry,
            fix_up: None,
            epilogue_bytes: None,
            types: Types {
                a: data_type.inputs,
                b: data_type.inputs,
                accumulator: data_type.c,
                c: data_type.c,
            },
            unit: Unit::CudaCores,
            least_capability: 75,
            one_capability: false,
            grid: Grid::Tiles,
            block,
            tile,
            thread_tile: (tile.m / block.y, tile.n / block.x),
            k_slices: 1,
            staging: if tile.k == 1 {
                Staging::None
            } else {
                Staging::Tiles
            },
            static_shared_bytes: 0,
            a: OperandLayout::K_MAJOR,
            b: OperandLayout::MN_MAJOR,
            allocation: Allocation::AsGiven,
            splits_operands: false,
            exact_tiles: false,
            n_remainder: None,
            vector_stores: false,
            is_gated: false,
            gemv_like: false,
            rounding: match data_type.c {
                ElementType::I32 => Rounding::Wrapping,
                _ => Rounding::Nearest,
            },
            rate: None,
            is_lesson: false,
        };
        match data_type.inputs {
            ElementType::Bf16 | ElementType::F16 | ElementType::E4m3 => plain.with_sums_in_f32(),
            _ => plain,
        }
    }

    /// A kernel of 16 bits, or of floats of 8.
    const fn with_sums_in_f32(self) -> Variant {
        Variant {
            types: Types {
                accumulator: ElementType::F32,
                ..self.types
            },
            rounding: Rounding::Truncated,
            ..self
        }
    }

    /// A kernel with tiles that the copy engine loads: persistent CTAs, where all warpgroups but
    /// the first multiply on Hopper's tensor cores, elements of 8 bits K-major.
    ///
    /// # Safety
    ///
    /// As for [`Variant::new`].
    pub const unsafe fn mapped(
        name: &'static str,
        entry: EntryPoint,
        data_type: DataType,
        block: Block,
        tile: Tile,
    ) -> Variant {
        // SAFETY: as the caller vouches.
        let plain = unsafe { Variant::new(name, entry, data_type, block, tile) };
        Variant {
            unit: Unit::TensorCores {
                warp_tile: (16, tile.n),
            },
            least_capability: 90,
            one_capability: true,
            grid: Grid::Persistent,
            thread_tile: (2, tile.n / 4),
            staging: Staging::Tiles,
            a: OperandLayout::K_MAJOR_ALIGNED,
            b: match data_type.inputs.bytes() {
                1 => OperandLayout::K_MAJOR_ALIGNED,
                _ => OperandLayout::MN_MAJOR_ALIGNED,
            },
            ..plain
        }
    }

    /// The same with an epilogue of `bytes` bytes: `fix_ups` are those of a C of f32, bf16 and f16.
    ///
    /// # Safety
    ///
    /// The entry points differ from those of the variant in their epilogue alone.
    #[doc(hidden)]
    pub const unsafe fn with_epilogue(
        &self,
        bytes: usize,
        entry: EntryPoint,
        fix_ups: [EntryPoint; 3],
    ) -> Variant {
        let [f32, bf16, f16] = fix_ups;
        Variant {
            entry,
            fix_up: match (self.fix_up, self.types.c) {
                (None, _) => None,
                (Some(_), ElementType::Bf16) => Some(bf16),
                (Some(_), ElementType::F16) => Some(f16),
                (Some(_), _) => Some(f32),
            },
            epilogue_bytes: Some(bytes),
            // That is a kernel without the epilogue.
            n_remainder: None,
            ..*self
        }
    }

    /// Checks the variant, and returns it.
    ///
    /// # Panics
    ///
    /// If its sizes are inconsistent. In a `static`, that is a compile-time error.
    pub const fn checked(self) -> Variant {
        let (tm, tn) = self.thread_tile;
        assert!(self.block.threads() > 0 && self.block.threads() <= 1024);
        assert!(self.tile.m > 0 && self.tile.n > 0 && self.tile.k > 0);
        assert!(self.static_shared_bytes <= 48 * 1024);
        assert!(self.k_slices > 0);
        if matches!(self.grid, Grid::Tiles | Grid::StreamK) {
            let computed = tm * tn * self.block.threads();
            assert!(computed == self.tile.m * self.tile.n * self.k_slices);
        }
        if let Unit::TensorCores { warp_tile: (m, n) } = self.unit {
            assert!(self.tile.m.is_multiple_of(m) && self.tile.n.is_multiple_of(n));
            assert!(tm * tn * 32 == m * n && self.least_capability >= 80);
        }
        assert!(!self.grid.is_stream_k() || self.fix_up.is_some());
        if matches!(self.grid, Grid::StreamK) {
            assert!(self.block.y == 1 && self.block.x.is_multiple_of(32));
            assert!(self.rate.is_some());
        }
        self
    }

    /// Whether one launch can compute all products of a batch: not if each has to be split first.
    pub const fn takes_batches(&self) -> bool {
        !self.splits_operands
    }

    /// The dynamic shared memory of a CTA for any product, in bytes.
    pub const fn ring_bytes(&self) -> u32 {
        match self.staging {
            Staging::Ring { bytes } => bytes,
            Staging::None | Staging::RowOfA | Staging::Tiles => 0,
        }
    }

    /// The dynamic shared memory of a CTA for a product of depth `k`, in bytes: full float4s,
    /// since the compiler reads shared memory in 128-bit vectors, even if it does not use the last
    /// elements.
    pub const fn dynamic_shared_bytes(&self, k: usize) -> u32 {
        let elements = match self.staging {
            Staging::RowOfA if k < self.tile.k as usize => (k as u32).next_multiple_of(4),
            Staging::RowOfA => self.tile.k,
            Staging::None | Staging::Tiles => 0,
            Staging::Ring { bytes } => return bytes,
        };
        elements * self.types.a.bytes() as u32
    }
}

/// The types that matrix elements may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// IEEE binary32.
    F32,
    /// IEEE binary64.
    F64,
    /// 32-bit integers with wrapping arithmetic.
    I32,
    /// bfloat16: f32 without its lower 16 bits.
    Bf16,
    /// IEEE binary16.
    F16,
    /// 8-bit integers, which only A and B may have.
    I8,
    /// Floats of 8 bits, 4 of them for the exponent and 3 for the fraction, which only A and B may
    /// have.
    E4m3,
}

impl ElementType {
    pub const ALL: [ElementType; 7] = [
        ElementType::F32,
        ElementType::F64,
        ElementType::I32,
        ElementType::Bf16,
        ElementType::F16,
        ElementType::I8,
        ElementType::E4m3,
    ];

    /// Bytes of an element.
    pub const fn bytes(self) -> usize {
        match self {
            ElementType::F32 => size_of::<f32>(),
            ElementType::F64 => size_of::<f64>(),
            ElementType::I32 => size_of::<i32>(),
            ElementType::Bf16 | ElementType::F16 => size_of::<u16>(),
            ElementType::I8 | ElementType::E4m3 => size_of::<u8>(),
        }
    }

    /// Its name, such as `f32`.
    pub const fn name(self) -> &'static str {
        match self {
            ElementType::F32 => "f32",
            ElementType::F64 => "f64",
            ElementType::I32 => "i32",
            ElementType::Bf16 => "bf16",
            ElementType::F16 => "f16",
            ElementType::I8 => "i8",
            ElementType::E4m3 => "e4m3",
        }
    }
}

impl core::fmt::Display for ElementType {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.pad(self.name())
    }
}

/// The element types of a product's matrices, as `--dtype` names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DataType {
    /// The type of A and B.
    pub inputs: ElementType,
    /// The type of C, in which each number of an input is exact.
    pub c: ElementType,
}

impl DataType {
    pub const F32: DataType = DataType::of(ElementType::F32);
    pub const F64: DataType = DataType::of(ElementType::F64);
    pub const I32: DataType = DataType::of(ElementType::I32);
    pub const BF16: DataType = DataType::of(ElementType::Bf16);
    pub const F16: DataType = DataType::of(ElementType::F16);
    /// A and B in i8, C in i32.
    pub const I8: DataType = DataType::of(ElementType::I8);
    /// A and B in e4m3, C in f32.
    pub const E4M3: DataType = DataType::of(ElementType::E4m3);
    /// A and B in bf16, C in f32.
    pub const BF16_F32: DataType = DataType::with_c_in_f32(ElementType::Bf16);
    /// A and B in f16, C in f32.
    pub const F16_F32: DataType = DataType::with_c_in_f32(ElementType::F16);
    /// A and B in e4m3, C in bf16.
    pub const E4M3_BF16: DataType = DataType {
        inputs: ElementType::E4m3,
        c: ElementType::Bf16,
    };

    pub const ALL: [DataType; 10] = [
        DataType::F32,
        DataType::F64,
        DataType::I32,
        DataType::BF16,
        DataType::F16,
        DataType::BF16_F32,
        DataType::F16_F32,
        DataType::I8,
        DataType::E4M3,
        DataType::E4M3_BF16,
    ];

    /// One type for A, B and C; but no C is of 8 bits: it is of i32 or f32.
    pub const fn of(inputs: ElementType) -> DataType {
        let c = match inputs {
            ElementType::I8 => ElementType::I32,
            ElementType::E4m3 => ElementType::F32,
            other => other,
        };
        DataType { inputs, c }
    }

    const fn with_c_in_f32(inputs: ElementType) -> DataType {
        DataType {
            inputs,
            c: ElementType::F32,
        }
    }

    /// Its name: `f32` if A, B and C have one type, `bf16-f32` if C has another type than A and B,
    /// and `i8` or `e4m3` for the type of C that these are multiplied into by default.
    pub const fn name(self) -> &'static str {
        match (self.inputs, self.c) {
            (ElementType::Bf16, ElementType::F32) => "bf16-f32",
            (ElementType::F16, ElementType::F32) => "f16-f32",
            (ElementType::I8, ElementType::I32) => "i8",
            (ElementType::E4m3, ElementType::F32) => "e4m3",
            (ElementType::E4m3, ElementType::Bf16) => "e4m3-bf16",
            (_, c) => c.name(),
        }
    }
}

/// [`DataType::of`].
impl From<ElementType> for DataType {
    fn from(element: ElementType) -> DataType {
        DataType::of(element)
    }
}

impl core::fmt::Display for DataType {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.pad(self.name())
    }
}

/// The element types of A, B, the accumulators and C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types {
    pub a: ElementType,
    pub b: ElementType,
    pub accumulator: ElementType,
    pub c: ElementType,
}

impl Types {
    /// One type for all.
    pub const fn all(element: ElementType) -> Types {
        Types {
            a: element,
            b: element,
            accumulator: element,
            c: element,
        }
    }

    /// The types of the matrices; A and B always have the same type.
    pub const fn data_type(self) -> DataType {
        DataType {
            inputs: self.a,
            c: self.c,
        }
    }
}

/// The unit that multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Each thread multiplies elements that it has read itself.
    CudaCores,
    /// Each warp multiplies elements that its lanes have read together. It computes a tile of C,
    /// WM x WN, with a thread tile of it in each lane.
    TensorCores { warp_tile: (u32, u32) },
}

impl Unit {
    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::CudaCores => "CUDA cores",
            Unit::TensorCores { .. } => "tensor cores",
        }
    }
}

/// Threads of a CTA along x and y; z is always 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub x: u32,
    pub y: u32,
}

impl Block {
    /// Threads of the CTA.
    pub const fn threads(self) -> u32 {
        self.x * self.y
    }
}

/// The block tile, BM x BN x BK: the `m x n` elements of C that a CTA computes at once, and the
/// depth `k` of A and B that it stages in shared memory at once (1 if it stages nothing).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    pub m: u32,
    pub n: u32,
    pub k: u32,
}

/// How CTAs are laid over C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    /// A CTA for each tile: tiles of columns along x, tiles of rows along y.
    Tiles,
    /// A CTA for each row, along x. It goes from tile to tile through all columns.
    Rows,
    /// The elements of C row by row along x: a CTA computes as many consecutive elements as its
    /// tile has columns, and may begin in the middle of a row and end in another.
    Linear,
    /// `G` CTAs along x, `W + 1` along y, for any `G`, and any `W` with at least `W * G` tiles:
    /// see `stream_k.rs`.
    StreamK,
    /// As many CTAs along x as fit the GPU at once, or fewer if there are fewer tiles: each takes
    /// one tile after the other.
    Persistent,
    /// A CTA for each tile, along x.
    MappedTiles,
    /// `G` CTAs along x, each of which takes a tile in each of `W` waves and then a part of the
    /// remaining tiles, for any `G` and `W`: see `stream_k.rs`.
    PersistentStreamK,
}

impl Grid {
    /// Whether the copy engine loads tiles; a CTA takes one after the other while there are more.
    pub const fn is_mapped(self) -> bool {
        matches!(
            self,
            Grid::Persistent | Grid::MappedTiles | Grid::PersistentStreamK
        )
    }

    /// Whether CTAs may compute parts of tiles; `fix_up` adds their sums.
    pub const fn is_stream_k(self) -> bool {
        matches!(self, Grid::StreamK | Grid::PersistentStreamK)
    }
}

/// The data that a CTA stages in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Staging {
    /// Nothing: every read of an element is from global memory.
    None,
    /// A row of A, `tile.k` elements at a time, in dynamic shared memory.
    RowOfA,
    /// A tile of A, BM x BK, and a tile of B, BK x BN.
    Tiles,
    /// Tiles of A and B in a ring of stages, and boxes of C, in `bytes` of dynamic shared memory.
    /// Boxes have rows of 128 bytes, swizzled by 128 bytes: for K-major tiles one row for each
    /// index along M or N, for MN-major tiles BK rows; boxes of C are square.
    Ring { bytes: u32 },
}

/// The direction of an operand's rows, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Major {
    /// Along M or N: A is stored as `k x m`, B as `k x n`.
    Mn,
    /// Along K: A is stored as `m x k`, B as `n x k`.
    K,
}

/// The layout that a kernel requires of A or B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperandLayout {
    pub major: Major,
    /// The alignment of each row in bytes; 1 if any address will do.
    pub alignment: u32,
}

impl OperandLayout {
    /// MN-major at any address: a row-major B.
    pub const MN_MAJOR: OperandLayout = OperandLayout::new(Major::Mn, 1);
    /// K-major at any address: a row-major A.
    pub const K_MAJOR: OperandLayout = OperandLayout::new(Major::K, 1);
    /// MN-major, each row at a multiple of 16 bytes.
    pub const MN_MAJOR_ALIGNED: OperandLayout = OperandLayout::new(Major::Mn, 16);
    /// K-major, each row at a multiple of 16 bytes.
    pub const K_MAJOR_ALIGNED: OperandLayout = OperandLayout::new(Major::K, 16);

    const fn new(major: Major, alignment: u32) -> OperandLayout {
        OperandLayout { major, alignment }
    }
}

/// How the matrices are allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// As the caller allocated them.
    AsGiven,
    /// In copies with rows at multiples of 512 bytes, as from `cuMemAllocPitch`.
    Pitched,
}

/// How a kernel rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Every sum, and every product that is not fused with it, to the accumulator's type.
    Nearest,
    /// The same, but with compensation (Kahan): about two units are lost, not up to k.
    Compensated,
    /// Elements of A and B to tf32 (11 bits), to nearest. Their products are exact; sums are
    /// truncated, at f32's last bit or below.
    Tf32,
    /// Elements of A and B are not rounded, and their products are exact. Sums are truncated, or
    /// rounded to nearest, at f32's last bit or below, and C is rounded to its own type, to
    /// nearest.
    Truncated,
    /// Elements of A and B to two f16 with a scale for each row of A and column of B (`split.rs`).
    /// Sums are truncated, at f32's last bit or below, but those of 128 products at a time are
    /// added with rounding to nearest; the products of the lower halves are left out.
    Split,
    /// Elements of A and B, of 8 bits, are not rounded, and their products are exact. Sums are
    /// truncated 13 bits below their largest term, but those of 128 products at a time are added
    /// with rounding to nearest.
    Promoted,
    /// The same without that addition: an error grows with k.
    NotPromoted,
    /// No rounding: integers, modulo 2^32.
    Wrapping,
}

impl Rounding {
    /// The quantity that errors of a result are proportional to.
    pub const fn error_scale(self) -> ErrorScale {
        match self {
            Rounding::Nearest
            | Rounding::Compensated
            | Rounding::Tf32
            | Rounding::Truncated
            | Rounding::Promoted
            | Rounding::NotPromoted => ErrorScale::Terms,
            Rounding::Split => ErrorScale::RowsAndColumns,
            Rounding::Wrapping => ErrorScale::Nothing,
        }
    }
}

/// The error model: what the error of an element of C is proportional to, for any A and B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorScale {
    /// There is no error.
    Nothing,
    /// The sum of the magnitudes of its own terms.
    Terms,
    /// The same, and the largest element of its row of A times the largest of its column of B:
    /// rows and columns may have any magnitude, but an element much smaller than the largest of
    /// its row or column loses bits.
    RowsAndColumns,
}

impl ErrorScale {
    /// Its name in lists and reports.
    pub const fn name(self) -> &'static str {
        match self {
            ErrorScale::Nothing => "exact",
            ErrorScale::Terms => "elementwise",
            ErrorScale::RowsAndColumns => "row-column",
        }
    }
}

/// The measured speed of a kernel on an NVIDIA H200 when only its own instructions limit it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Operations a second with as many CTAs as fit on every SM, without edge tiles.
    pub flops_per_s: f64,
    /// The fraction of an SM's speed that a single CTA reaches, if the SM had room for any number.
    pub one_cta: f64,
    /// The number of CTAs that fit on an SM of that GPU.
    pub ctas_per_sm: u32,
}

impl Rate {
    /// A rate from the TFLOP/s of an H200, the fraction that one CTA reaches, and CTAs an SM.
    pub const fn h200(tflops: f64, one_cta: f64, ctas_per_sm: u32) -> Rate {
        Rate {
            flops_per_s: tflops * 1e12,
            one_cta,
            ctas_per_sm,
        }
    }
}
