//! What a kernel says of itself, once: its name, its entry point, its tile and its launch shape.
//!
//! The command line, the launcher, the simulator, the tests, the benchmark and the docs all read it here.

/// Every GEMM kernel is this function: `C = alpha * A * B + beta * C`, all matrices row-major.
///
/// `A` is `m x k` with leading dimension `lda >= k`, `B` is `k x n` with `ldb >= n`, `C` is `m x n` with
/// `ldc >= n`; dimensions and leading dimensions are in elements. As in BLAS, `beta == 0` does not read `C`,
/// and `alpha == 0` reads neither `A` nor `B`.
///
/// # Safety
///
/// `a` holds `(m - 1) * lda + k` elements and `b` holds `(k - 1) * ldb + n`; `c` is valid for reads and writes of
/// `(m - 1) * ldc + n` elements that nothing else touches. It runs as one thread of a launch of the shape that
/// its [`Variant`] gives.
pub type GemmFn<T> = unsafe fn(
    m: usize,
    n: usize,
    k: usize,
    alpha: T,
    a: &[T],
    lda: usize,
    b: &[T],
    ldb: usize,
    beta: T,
    c: *mut T,
    ldc: usize,
);

/// [`GemmFn`] of a kernel whose blocks share the sums among themselves ([`Grid::Streams`]): A and B are stored as its [`Variant`] says, and
/// `partials` holds `2 * G` tiles, where blocks leave what another kernel, `fix_up`, is to add.
///
/// # Safety
///
/// As for [`GemmFn`], A and B read by [`Storage`]; nothing else touches `partials`.
pub type StreamFn<T> = unsafe fn(
    m: usize,
    n: usize,
    k: usize,
    alpha: T,
    a: &[T],
    lda: usize,
    b: &[T],
    ldb: usize,
    beta: T,
    c: *mut T,
    ldc: usize,
    partials: *mut T,
);

/// A rung of the ladder: one idea, in one file, with the variants that it is built in.
#[derive(Debug)]
pub struct Kernel {
    /// Its name on the command line, such as `double-buffer`.
    pub name: &'static str,
    /// The idea, in one line.
    pub idea: &'static str,
    /// Its source file, relative to the root of the workspace.
    pub source: &'static str,
    /// What it is built as; the first of an element type is that type's default.
    pub variants: &'static [Variant],
}

/// One compiled form of a kernel: element type, tile and launch shape.
#[derive(Debug)]
pub struct Variant {
    /// Its name on the command line, such as `tiled-32`; unique among those of its element type.
    pub name: &'static str,
    /// Its entry point in the PTX.
    pub entry: &'static str,
    /// Threads of a block along x (columns of C) and y (rows of C).
    pub block: Block,
    /// What a block computes and stages.
    pub tile: Tile,
    /// Rows and columns of C that a thread computes of a tile, where the shape of the block does not say it: its threads lie in a row.
    pub own_patch: Option<(u32, u32)>,
    /// Groups of threads of a block that compute the same elements of C, each of a part of the products.
    pub split_k: u32,
    /// How blocks are laid over C.
    pub grid: Grid,
    /// What a block brings to shared memory.
    pub stages: Stages,
    /// How the matrices lie in the GPU's memory.
    pub allocation: Allocation,
    /// How A and B must be stored.
    pub a: Storage,
    pub b: Storage,
    /// Whether it reads whole tiles only: as many rows, columns and products as there are must be multiples of the tile's, or A and B
    /// be stored with zeros up to there.
    pub whole: bool,
    /// The variant that takes the last columns of C, of which there are too few for a tile; without one they are a tile that is not full.
    pub rest: Option<&'static str>,
    /// The kernel as a function, for the simulator, by element type.
    pub function: Function,
}

impl Variant {
    /// A block a tile of C; tiles of A and B in shared memory, unless the tile has no depth; matrices as they come.
    pub const fn new(
        name: &'static str,
        entry: &'static str,
        block: Block,
        tile: Tile,
        function: Function,
    ) -> Variant {
        Variant {
            name,
            entry,
            block,
            tile,
            own_patch: None,
            split_k: 1,
            grid: Grid::Tiles,
            stages: if tile.k == 1 {
                Stages::Nothing
            } else {
                Stages::Tiles
            },
            allocation: Allocation::Packed,
            a: Storage::RowMajor,
            b: Storage::RowMajor,
            whole: false,
            rest: None,
            function,
        }
    }

    /// Rows and columns of C that a thread computes of a tile.
    pub const fn patch(&self) -> (u32, u32) {
        match self.own_patch {
            Some(patch) => patch,
            None => (self.tile.m / self.block.y, self.tile.n / self.block.x),
        }
    }

    /// What takes the columns of C that [`Variant::rest`] speaks of.
    pub fn variant_of_rest(&self) -> Option<&'static Variant> {
        let name = self.rest?;
        let mut variants = crate::KERNELS.iter().flat_map(|kernel| kernel.variants);
        variants.find(|variant| variant.name == name)
    }

    /// Elements of dynamic shared memory that a block needs for sums of `k` products: whole fours, since the compiler reads
    /// shared memory by fours, also where the last of them is not used.
    pub const fn dynamic_shared_elements(&self, k: usize) -> u32 {
        match self.stages {
            Stages::RowOfA if k < self.tile.k as usize => (k as u32).next_multiple_of(4),
            Stages::RowOfA => self.tile.k,
            Stages::Nothing | Stages::Tiles => 0,
        }
    }
}

/// Threads of a block along x and y; z is always 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub x: u32,
    pub y: u32,
}

impl Block {
    /// Threads in the block.
    pub const fn threads(self) -> u32 {
        self.x * self.y
    }
}

/// The patch of C that a block computes at a time, `m x n`, and the depth `k` of A and B that it stages in shared memory
/// at a time (1 if it stages nothing).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    pub m: u32,
    pub n: u32,
    pub k: u32,
}

/// How blocks are laid over C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    /// A block a tile: tiles of columns along x, tiles of rows along y.
    Tiles,
    /// A block a row, along x. It goes from tile to tile through all columns.
    Rows,
    /// The elements of C one after the other, row by row, along x: a block takes as many as its tile has columns, and may
    /// begin in the middle of a row and end in another.
    Linear,
    /// `G` blocks along x, `W + 1` along y, for any `G` and any `W` with `W * G` tiles or more: see [`crate::streams::Streams`].
    Streams,
}

/// What a block brings to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stages {
    /// Nothing: every element comes from global memory each time.
    Nothing,
    /// A row of A, as much as the tile is deep at a time, in dynamic shared memory.
    RowOfA,
    /// A tile of A, `m x k`, and a tile of B, `k x n`.
    Tiles,
}

/// How a matrix that is multiplied is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Row by row, A as `m x k` and B as `k x n`, with any leading dimension.
    RowMajor,
    /// A as `k x m`, B as `k x n`: its rows run along the tile. It begins at a multiple of 16 bytes, and its leading dimension is a
    /// multiple of 4.
    AlongTile,
    /// A as `m x k`, B as `n x k`: its rows run along the sums. Any beginning and any leading dimension.
    AlongSums,
}

/// How the matrices lie in the GPU's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// As the caller has them.
    Packed,
    /// In copies whose rows begin where the driver says is best (`cuMemAllocPitch`).
    Pitched,
}

/// A kernel's function, by element type.
#[derive(Clone, Copy, Debug)]
pub enum Function {
    F32(GemmFn<f32>),
    F64(GemmFn<f64>),
    I32(GemmFn<i32>),
    Streamed(StreamFn<f32>),
}

/// A [`Variant`], its entry point spelled once:
/// `variant!("tiled-32", F32(tiled_32), block(32, 32), tile(32, 32, 32))`, and then what is not as [`Variant::new`] has it:
/// `grid: Grid::Rows`.
macro_rules! variant {
    (
        $name:literal, $element:ident($entry:ident), block($x:expr, $y:expr), tile($m:expr, $n:expr, $k:expr)
        $(, $field:ident: $value:expr)* $(,)?
    ) => {
        $crate::spec::Variant {
            $($field: $value,)*
            ..$crate::spec::Variant::new(
                $name,
                stringify!($entry),
                $crate::spec::Block {
                    x: $x as u32,
                    y: $y as u32,
                },
                $crate::spec::Tile {
                    m: $m as u32,
                    n: $n as u32,
                    k: $k as u32,
                },
                $crate::spec::Function::$element($entry),
            )
        }
    };
}
pub(crate) use variant;

#[cfg(test)]
mod tests {
    use super::{Grid, Storage};

    #[test]
    fn the_threads_of_a_block_compute_its_tile_between_them() {
        let variants = crate::KERNELS.iter().flat_map(|kernel| kernel.variants);
        for variant in variants.filter(|variant| variant.grid == Grid::Streams) {
            let (rows, columns) = variant.patch();
            let computed = rows * columns * variant.block.threads();
            assert_eq!(
                computed,
                variant.tile.m * variant.tile.n * variant.split_k,
                "{}",
                variant.name
            );
        }
    }

    #[test]
    fn the_rest_of_the_columns_goes_to_a_kernel_that_reads_a_as_it_lies_for_the_first_ones() {
        let variants = crate::KERNELS.iter().flat_map(|kernel| kernel.variants);
        for variant in variants.filter(|variant| variant.rest.is_some()) {
            let rest = variant.variant_of_rest().expect(variant.name);
            assert_eq!(rest.grid, Grid::Streams, "{}", variant.name);
            assert_eq!([rest.a, rest.b], [Storage::AlongTile; 2]);
            assert_eq!([variant.a, variant.b], [Storage::AlongTile; 2]);
            assert_eq!((rest.tile.m, rest.tile.k), (variant.tile.m, variant.tile.k));
            assert_eq!((rest.whole, rest.rest), (variant.whole, None));
            assert!(rest.tile.n < variant.tile.n, "{}", variant.name);
        }
    }
}
