//! The argument block of a kernel with tiles that the copy engine (TMA) loads, and how it writes
//! C. For elements of 16 bits, with a C of the same type or of f32; for f32 rounded to tf32; for
//! f64; for f32 split into two elements of 16 bits; for i8 with a C of i32; and for
//! e4m3 with a C of bf16 or f32.

use core::ops::Deref;

use cuda_std::mbarrier::Mbarrier;
use cuda_std::tma;

use crate::compat::TensorMap;
use crate::element::{Element, Word};
use crate::epilogue::{Alignment, At, Epilogue, Identity};
use crate::gemm::Gemm;
use crate::half::{self, Half};
use crate::stream_k::Division;

/// The argument block of a GEMM with A and B described by tensor maps for the copy engine. A
/// kernel gets its address, since the copy engine takes the addresses of the maps.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct MappedBlock<C = u16, Scalar = f32, E = Identity> {
    pub a: TensorMap,
    pub b: TensorMap,
    /// C for the copy engine, if that can write C.
    pub c_boxes: TensorMap,
    /// The product as for every kernel, but without A and B. Where a stride of the batch is 0, all
    /// products share one matrix, and the map describes one.
    pub gemm: Gemm<'static, (), C, Scalar, E>,
    pub persistent: PersistentArguments,
}

/// The further arguments of a kernel with persistent CTAs. Each field is one word of 8 bytes.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PersistentArguments {
    /// The data-parallel waves of a stream-K kernel.
    pub data_parallel_waves: usize,
    /// The number of products in the batch. The CTAs divide the tiles of all products.
    pub products: usize,
    /// For f32 that `split.rs` has split into two f16: a scale for each row of A, and for each
    /// column of B.
    pub scales: [*const f32; 2],
}

impl<C: Copy, Scalar: Copy, E: Copy> MappedBlock<C, Scalar, E> {
    /// The arguments in registers. They are loaded once: when each use loaded them again,
    /// `warp-specialized` took a quarter more instructions.
    #[inline(always)]
    pub fn gemm(&self) -> MappedGemm<'_, C, Scalar, E> {
        MappedGemm {
            a: &self.a,
            b: &self.b,
            c_boxes: &self.c_boxes,
            gemm: self.gemm,
            persistent: self.persistent,
            product: 0,
        }
    }
}

/// A [`MappedBlock`] with the addresses of its maps.
#[derive(Clone, Copy)]
pub struct MappedGemm<'a, C = u16, Scalar = f32, E = Identity> {
    a: &'a TensorMap,
    b: &'a TensorMap,
    c_boxes: &'a TensorMap,
    gemm: Gemm<'static, (), C, Scalar, E>,
    persistent: PersistentArguments,
    /// The product of the batch whose C `gemm` has.
    product: usize,
}

impl<C, Scalar, E> Deref for MappedGemm<'_, C, Scalar, E> {
    type Target = Gemm<'static, (), C, Scalar, E>;

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        &self.gemm
    }
}

/// A or B of one product, or C, for the copy engine.
#[derive(Clone, Copy)]
pub struct Boxes<'a> {
    map: &'a TensorMap,
    /// The index of the matrix in the map.
    matrix: u32,
}

impl Boxes<'_> {
    /// Starts to load the box that begins at column `x` of row `y`, as stored.
    ///
    /// # Safety
    ///
    /// As for [`tma::load_3d`].
    #[inline(always)]
    pub unsafe fn load<T>(self, shared: *mut T, x: u32, y: u32, barrier: *mut Mbarrier) {
        tma::load_3d(shared, self.map, x, y, self.matrix, barrier);
    }

    /// Starts to store the box to column `x` of row `y`.
    ///
    /// # Safety
    ///
    /// As for [`tma::store_3d`].
    #[inline(always)]
    pub unsafe fn store<T>(self, x: u32, y: u32, shared: *const T) {
        tma::store_3d(self.map, x, y, self.matrix, shared);
    }
}

impl<'a, C, Scalar, E> MappedGemm<'a, C, Scalar, E> {
    /// The number of products in the batch.
    #[inline(always)]
    pub fn products(&self) -> usize {
        self.persistent.products
    }

    /// A of a product.
    #[inline(always)]
    pub fn a_of(&self, product: usize) -> Boxes<'a> {
        self.boxes(self.a, product, self.batch_strides[0])
    }

    /// B of a product.
    #[inline(always)]
    pub fn b_of(&self, product: usize) -> Boxes<'a> {
        self.boxes(self.b, product, self.batch_strides[1])
    }

    /// C of a product.
    #[inline(always)]
    pub fn c_of(&self, product: usize) -> Boxes<'a> {
        self.boxes(self.c_boxes, product, self.batch_strides[2])
    }

    #[inline(always)]
    fn boxes(&self, map: &'a TensorMap, product: usize, stride: usize) -> Boxes<'a> {
        let matrix = if stride == 0 { 0 } else { product as u32 };
        Boxes { map, matrix }
    }
}

impl<C: Copy, Scalar: Copy, E: Copy> MappedGemm<'_, C, Scalar, E> {
    /// The same for one product, with its C for reads and writes by threads.
    #[inline(always)]
    pub fn of_product(&self, product: usize) -> Self {
        let mut of_product = *self;
        let first = product * self.batch_strides[2];
        of_product.gemm.c = self.c.wrapping_add(first);
        of_product.gemm.batch_strides = [0; 3];
        of_product.product = product;
        of_product
    }
}

impl<C: Copy, E: Epilogue> MappedGemm<'_, C, f32, E> {
    /// Of sums with B1, and of as many with B2 at the same places, what the epilogue makes of both.
    /// The first neighbour is at a row and a column that C may lack.
    ///
    /// # Safety
    ///
    /// As for [`Epilogue::gate`].
    #[inline(always)]
    pub unsafe fn gated<const N: usize>(
        &self,
        (row, col): (usize, usize),
        gates: [f32; N],
        ups: [f32; N],
    ) -> [f32; N] {
        let scaled = |sums: [f32; N]| sums.map(|sum| self.alpha.times(sum));
        let at = self.at(row, col, N);
        self.gemm.epilogue.gate(at, scaled(gates), scaled(ups))
    }

    /// The same for sums that have been multiplied by alpha.
    #[inline(always)]
    pub fn of_scaled_sums(&self) -> Self {
        let mut of_scaled = *self;
        of_scaled.gemm.alpha = 1.0;
        of_scaled
    }
}

impl<C: Copy, E: Copy> MappedGemm<'_, C, f32, E> {
    /// Of a grouped product, the row after the last of each group. Its CTAs split no tiles: the
    /// ends take the place of the workspace for partial sums.
    #[inline(always)]
    pub fn group_ends(&self) -> *const i32 {
        self.partials.cast_const().cast()
    }

    /// The same, with no rows of C from `end` on.
    #[inline(always)]
    pub fn up_to_row(&self, end: usize) -> Self {
        let mut of_rows = *self;
        of_rows.gemm.m = end;
        of_rows
    }
}

/// What is known of a tile: nothing; that C has all of it; and that what the epilogue loads for
/// pairs is aligned, too.
pub const ANY: u8 = 0;
pub const WHOLE: u8 = 1;
pub const ALIGNED: u8 = 2;

impl<C, S, E: Epilogue<S>> MappedGemm<'_, C, S, E> {
    /// [`Self::at`], which does not compute what `TILE` says.
    #[inline(always)]
    pub fn at_in<const TILE: u8>(&self, row: usize, col: usize, most: usize) -> At {
        match TILE {
            ANY => self.at(row, col, most),
            _ => At {
                is_aligned: TILE == ALIGNED,
                ..At::of(self.product, row, col, most)
            },
        }
    }

    /// [`Epilogue::prepare`] for the part of a tile from this element of C on, with `cols` columns.
    ///
    /// # Safety
    ///
    /// As for [`Epilogue::apply`], and C has all of it.
    #[inline(always)]
    pub unsafe fn prepare(&self, row: usize, col: usize, cols: usize, thread: usize) -> Alignment {
        let at = At::of(self.product, row, col, cols);
        self.gemm.epilogue.prepare(at, thread)
    }

    /// [`Epilogue::SCALES_BLOCKS`].
    #[inline(always)]
    pub fn scales_blocks(&self) -> bool {
        E::SCALES_BLOCKS
    }

    /// [`Epilogue::block_scale`] for two rows, 8 apart: the scales of a thread's sums. Rows and
    /// columns that C lacks get those of its last, without a branch.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(always)]
    pub unsafe fn block_scales(&self, row: usize, col: usize, block: usize) -> [f32; 2] {
        let of_row = |row: usize| {
            let at = At::one(self.product, row.min(self.m - 1), col.min(self.n - 1));
            self.gemm.epilogue.block_scale(at, block)
        };
        [of_row(row), of_row(row + 8)]
    }

    /// [`Gemm::at`] in the product of [`Self::of_product`].
    #[inline(always)]
    pub fn at(&self, row: usize, col: usize, most: usize) -> At {
        At {
            product: self.product,
            ..self.gemm.at(row, col, most)
        }
    }
}

impl<C, Scalar: Element, E> MappedGemm<'_, C, Scalar, E> {
    /// Whether the copy engine can store the columns of C up to `end`: it does not read C, and
    /// writes only rows that begin at multiples of 16 bytes, and end at one if they end before
    /// `end`.
    #[inline(always)]
    pub fn stores_boxes(&self, end: usize) -> bool {
        let ends_aligned = end <= self.n || (size_of::<C>() * self.n).is_multiple_of(16);
        self.beta == Scalar::ZERO && self.rows_are_aligned() && ends_aligned
    }

    /// Whether every row of C begins at a multiple of 16 bytes, in each product.
    #[inline(always)]
    pub fn rows_are_aligned(&self) -> bool {
        let alignment = self.c as usize | (size_of::<C>() * (self.ldc | self.batch_strides[2]));
        alignment.is_multiple_of(16)
    }
}

impl<E: Epilogue> MappedGemm<'_, u16, f32, E> {
    /// `C[row][col] = alpha * sum + beta * C[row][col]`, rounded once, or nothing where C has
    /// no such element.
    ///
    /// # Safety
    ///
    /// No other thread touches `C[row][col]`.
    #[inline(always)]
    pub unsafe fn update<T: Half>(&self, row: usize, col: usize, sum: f32) {
        if row < self.m && col < self.n {
            let c = self.c.add(row * self.ldc + col);
            let finished = |value| self.finished(self.at(row, col, 1), [value])[0];
            half::update::<T>(c, (self.alpha, self.beta), sum, finished);
        }
    }
}

impl<C, E> MappedGemm<'_, C, f32, E> {
    /// The work of a stream-K launch, and its workspace for partial sums.
    #[inline(always)]
    pub fn division(&self) -> Division {
        Division {
            partials: self.partials,
            data_parallel_waves: self.persistent.data_parallel_waves,
            products: self.persistent.products,
        }
    }
}

impl<C: Element, E: Epilogue<C>> MappedGemm<'_, C, C, E> {
    /// [`Gemm::update`] in the product of [`Self::of_product`].
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(always)]
    pub unsafe fn update(&self, row: usize, col: usize, sum: C) {
        if row < self.m && col < self.n {
            self.update_element(row * self.ldc + col, self.at(row, col, 1), sum);
        }
    }
}

impl<E: Epilogue> MappedGemm<'_, f32, f32, E> {
    /// [`Gemm::update`] for a sum of products of split elements, multiplied by the scales of its
    /// row and its column.
    ///
    /// # Safety
    ///
    /// No other thread touches `C[row][col]`; there are scales unless the depth is 0.
    #[inline(always)]
    pub unsafe fn update_scaled(&self, row: usize, col: usize, sum: f32) {
        if row < self.m && col < self.n {
            let sum = if self.depth() == 0 {
                sum
            } else {
                // The smaller factor first: a product with the larger one might overflow.
                let of_row = *self.persistent.scales[0].add(row);
                let of_col = *self.persistent.scales[1].add(col);
                sum * of_row.min(of_col) * of_row.max(of_col)
            };
            self.update(row, col, sum);
        }
    }
}

impl<S: Word, E: Epilogue<S>> MappedGemm<'_, S, S, E> {
    /// [`Gemm::update`] for pairs: for the element at each place and its right neighbour, with
    /// accesses of 8 bytes where C is aligned. All reads of C are issued before the first write,
    /// so that they are in flight together.
    ///
    /// # Safety
    ///
    /// No other thread touches the elements, and columns are even.
    #[inline(always)]
    pub unsafe fn update_pairs<const PAIRS: usize>(
        &self,
        places: [(usize, usize); PAIRS],
        sums: [[S; 2]; PAIRS],
    ) {
        let is_aligned = (self.c as usize).is_multiple_of(8) && self.ldc.is_multiple_of(2);
        let has_pair = |(row, col): (usize, usize)| is_aligned && row < self.m && col + 1 < self.n;
        let c = |(row, col): (usize, usize)| self.c.add(row * self.ldc + col);
        let mut old = [[S::ZERO; 2]; PAIRS];
        for i in 0..PAIRS {
            if self.beta != S::ZERO && has_pair(places[i]) {
                old[i] = Float2::read(c(places[i]).cast()).0.map(S::of_bits);
            }
        }
        for i in 0..PAIRS {
            if has_pair(places[i]) {
                let product = |j: usize| self.alpha.times(sums[i][j]);
                let updated = |j: usize| {
                    if self.beta == S::ZERO {
                        product(j)
                    } else {
                        self.beta.times_plus(old[i][j], product(j))
                    }
                };
                let (row, col) = places[i];
                let at = self.at(row, col, 2);
                let finished = self.finished(at, [updated(0), updated(1)]);
                Float2(finished.map(Word::bits)).write(c(places[i]).cast());
            } else {
                let (row, col) = places[i];
                self.update(row, col, sums[i][0]);
                self.update(row, col + 1, sums[i][1]);
            }
        }
    }
}

impl MappedGemm<'_, f64, f64> {
    /// [`Gemm::update`] for an element and its right neighbour, with accesses of 16 bytes.
    ///
    /// # Safety
    ///
    /// C has the two elements, and no other thread touches them; `col` is even, and
    /// [`Self::rows_are_aligned`].
    #[inline(always)]
    pub unsafe fn update2(&self, row: usize, col: usize, sums: [f64; 2]) {
        let c = self.c.add(row * self.ldc + col).cast::<Pair>();
        let products = sums.map(|sum| self.alpha.times(sum));
        if self.beta == 0.0 {
            (*c).0[0] = products[0];
            (*c).0[1] = products[1];
        } else {
            let old = Pair::read(c.cast());
            (*c).0[0] = self.beta.times_plus(old[0], products[0]);
            (*c).0[1] = self.beta.times_plus(old[1], products[1]);
        }
    }
}

/// Two neighbours of a row, at a multiple of 16 bytes, read and written one by one, as in a
/// `Float4`.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct Pair(pub [f64; 2]);

impl Pair {
    /// Loads 16 bytes.
    ///
    /// # Safety
    ///
    /// `source` is a multiple of 16 bytes, and valid for reading two elements.
    #[inline(always)]
    pub unsafe fn read(source: *const f64) -> [f64; 2] {
        let source = source.cast::<Self>();
        [(*source).0[0], (*source).0[1]]
    }
}

/// Two consecutive elements of a row, at a multiple of 8 bytes: one access of 64 bits, as a
/// `Float4` is one of 128.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub struct Float2(pub [f32; 2]);

impl Float2 {
    /// Loads 8 bytes.
    ///
    /// # Safety
    ///
    /// `source` is a multiple of 8 bytes, and valid for reading two elements.
    #[inline(always)]
    pub unsafe fn read(source: *const f32) -> Self {
        let source = source.cast::<Self>();
        Self([(*source).0[0], (*source).0[1]])
    }

    /// Stores 8 bytes.
    ///
    /// # Safety
    ///
    /// `target` is a multiple of 8 bytes, and valid for writing two elements.
    #[inline(always)]
    pub unsafe fn write(self, target: *mut f32) {
        let target = target.cast::<Self>();
        (*target).0[0] = self.0[0];
        (*target).0[1] = self.0[1];
    }
}
