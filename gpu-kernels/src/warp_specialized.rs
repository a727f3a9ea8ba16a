//! One warpgroup loads and two multiply: no thread ever waits for its own loads.
//!
//! Over `warpgroup`, for elements of 16 bits (bf16, f16) with sums in f32, and C of either type:
//! - warps are specialised: one warpgroup, the producer, only loads tiles; two, the consumers,
//!   only multiply. They synchronise on barriers in shared memory, two for each of four stages:
//!   `full` (its tiles have landed) and `empty` (they have been read). The producer gives up
//!   registers, so that each consumer can hold 64 x 256 sums;
//! - CTAs are persistent: one on each SM computes tile after tile, so that the next loads are in
//!   flight while the copy engine stores C from shared memory;
//! - between two products a consumer waits only for the first: it has already waited for the
//!   operands of the next while the first was multiplied.
//!
//! ```text
//!   producer    | load 0 | load 1 | load 2 | load 3 |  wait  | load 0 |  wait  | load 1 ...
//!                    \ full                              / empty
//!   consumer 0           | multiply 0 | multiply 1 | multiply 2 | multiply 3 | ...
//!   consumer 1           | multiply 0 | multiply 1 | multiply 2 | multiply 3 | ...
//! ```
//!
//! Global-memory reads: M*N*K * (1/BM + 1/BN)
//! Shared-memory reads: M*N*K * (1/64 + 1/256), by the tensor cores; 196 KiB of stages a CTA
//! Block: 384 threads in 3 warpgroups, block tile 128 x 256 x 64, 64 x 256 a consumer, 2 x 64 a
//! thread. A and B in any layout, rows at multiples of 16 bytes. Any M, N, K. Only for compute
//! capability 9.0.
//!
//! ```sh
//! cargo run -p host -- --kernel warp-specialized --dtype bf16 --m 1000 --n 776 --k 120
//! cargo run -p host -- --kernel warp-specialized --dtype bf16-f32 --m 1000 --n 776 --k 120
//! ```

use cuda_std::mbarrier::{self, Mbarrier};
use cuda_std::mma;
use cuda_std::prelude::*;
use cuda_std::shared;
use cuda_std::tma::{self, Swizzle};
use cuda_std::wgmma::{self, Descriptor, KMajor, MnMajor};

use crate::compat::grid_dependency;
use crate::element::{Element, Word};
use crate::epilogue::{Alignment, Epilogue};
use crate::float4::Float4;
use crate::half::{Bf16, Half, Sums, Wgmma, F16};
use crate::kernel::{each_of_16_bits, kernel};
use crate::mapped_gemm::{Boxes, Float2, MappedGemm, ALIGNED, ANY, WHOLE};
use crate::raster::{self, Place};
use crate::warpgroup::{layout, warpgroup, Tiles};
pub(crate) use crate::warpgroup::{BK, BOX, WARPGROUP, WM};

/// Products along a tile's depth, each of 32 bytes of it.
pub(crate) const STEPS: u32 = 128 / 32;
/// A consumer stores C in boxes of 64 rows of 128 bytes. Two can be in flight.
const BOX_ROW: usize = 128;
const BOX_BYTES: usize = WM * BOX_ROW;

/// The sizes that follow from the number of consumers and of sums a thread.
pub(crate) struct Cta<const CONSUMERS: usize, const SUMS: usize>;

impl<const CONSUMERS: usize, const SUMS: usize> Cta<CONSUMERS, SUMS> {
    /// The block tile is BM x BN x 64.
    pub const BM: usize = CONSUMERS * WM;
    pub const BN: usize = 2 * SUMS;
    pub const THREADS: usize = (1 + CONSUMERS) * WARPGROUP;
    /// Bytes of a stage: a tile of A and one of B.
    const A_BYTES: usize = Self::BM * BK * 2;
    const STAGE_BYTES: usize = Self::A_BYTES + Self::BN * BK * 2;
    /// Tiles of A, and of B, in the ring buffer: as many as fit in shared memory.
    pub const STAGES: usize = 192 * 1024 / Self::STAGE_BYTES;
    /// The dynamic shared memory: the ring buffer, and each consumer's boxes of C.
    pub const BYTES: usize = Self::STAGES * Self::STAGE_BYTES + CONSUMERS * 2 * BOX_BYTES;
}

/// The steps from `warpgroup` to this rung: `docs/src/hopper-steps.md` numbers and measures them. A
/// variant has the steps up to its own. Step 3 is a producer and one consumer, step 4 the second
/// consumer. From here on consumers have registers of the producer.
const REGISTERS: u8 = 5;
/// One thread of a consumer releases a stage, and not each.
const ONE_ARRIVAL: u8 = 6;
/// The copy engine stores C.
const BOXES: u8 = 7;
/// A consumer waits for the next tiles before it waits for its products.
const ALL: u8 = 8;

/// A warpgroup's position in the ring: the stage, and the parity of its phase.
#[derive(Clone, Copy)]
pub(crate) struct Ring {
    pub stage: usize,
    pub parity: u32,
}

impl Ring {
    /// The producer's first stage, which counts as read.
    pub const PRODUCER: Ring = Ring {
        stage: 0,
        parity: 1,
    };
    /// A consumer's first stage.
    pub const CONSUMER: Ring = Ring {
        stage: 0,
        parity: 0,
    };

    #[inline(always)]
    pub fn advance(&mut self, stages: usize) {
        self.stage += 1;
        if self.stage == stages {
            self.stage = 0;
            self.parity ^= 1;
        }
    }
}

/// The body. The barriers are in shared memory.
#[inline(always)]
pub(crate) unsafe fn multiply<
    T: Operands<A, B, SUMS, Sum = C::Sum>,
    C: Output,
    A: Tiles,
    B: Tiles,
    const CONSUMERS: usize,
    const SUMS: usize,
    const STEP: u8,
>(
    gemm: MappedGemm<'_, C::Bits, C::Sum, impl Epilogue<C::Sum>>,
    full: *mut Mbarrier,  // (STAGES)
    empty: *mut Mbarrier, // (STAGES + TURNS)
) {
    let (warpgroup, thread) = (warpgroup(), thread::thread_idx_x() as usize % WARPGROUP);
    let stages = StagesOf::<CONSUMERS, SUMS, STEP>::new(full, empty, T::TURNS);
    thread::sync_threads(); // the barriers may be used
    grid_dependency::wait(); // for kernels that write A, B and C
    let rows = gemm.m.div_ceil(Cta::<CONSUMERS, SUMS>::BM);
    let cols = gemm.n.div_ceil(Cta::<CONSUMERS, SUMS>::BN);
    let iterations = gemm.depth().div_ceil(T::BK);
    let mut tile = thread::block_idx_x() as usize;
    let ctas = thread::grid_dim_x() as usize;
    let tiles = gemm.products() * rows * cols;
    if warpgroup == 0 {
        if STEP >= REGISTERS && SUMS > 64 {
            wgmma::decrease_registers::<24>();
        }
        if thread == 0 {
            let mut at = Ring::PRODUCER;
            while tile < tiles {
                let corner = Stages::<CONSUMERS, SUMS>::corner(raster::place(tile, rows, cols));
                stages.load::<T, _, A, B, 1>(&gemm, corner, (0, iterations), &mut at);
                tile += ctas;
            }
        }
        return;
    }

    if STEP >= REGISTERS && SUMS > 64 {
        wgmma::increase_registers::<240>();
    }
    // Without this, what follows the loop is reached around it, and `ptxas` lets the consumers have
    // no more registers than they begin with.
    if tile >= tiles {
        return;
    }
    let consumer = warpgroup - 1;
    let mut at = Ring::CONSUMER;
    while tile < tiles {
        let place = || Stages::<CONSUMERS, SUMS>::corner(raster::place(tile, rows, cols));
        let range = (0, iterations);
        let (sums, corner) = stages.sums::<T, A, B>(&gemm, place, range, consumer, thread, &mut at);
        stages.store::<C, false>(&gemm, &sums, corner, consumer, thread);
        tile += ctas;
    }
    if STEP >= BOXES {
        tma::wait_group_read::<0>(); // the boxes must be read before the CTA ends
    }
}

/// The first element of a tile of C.
#[derive(Clone, Copy)]
pub(crate) struct Corner {
    /// The product of the batch.
    pub product: usize,
    pub row: usize,
    pub col: usize,
    /// The first of the depth in A and B.
    pub k: usize,
}

impl Corner {
    /// That of the first tile.
    pub const FIRST: Corner = Corner {
        product: 0,
        row: 0,
        col: 0,
        k: 0,
    };

    /// The scales of two rows of a thread, for an iteration after the first `from` and a column of
    /// the tile.
    ///
    /// # Safety
    ///
    /// As for [`Epilogue::block_scale`].
    #[inline(always)]
    pub unsafe fn scales<'a, C: Copy, S: Copy, E: Epilogue<S>>(
        self,
        gemm: &MappedGemm<'a, C, S, E>,
        from: usize,
        consumer: usize,
        thread: usize,
    ) -> impl Fn(usize, usize) -> [f32; 2] + use<'a, C, S, E> {
        let gemm = gemm.of_product(self.product);
        let (row, _) = wgmma::sum_place(thread as u32, 0);
        let row = self.row + consumer * WM + row as usize;
        move |iteration, col| gemm.block_scales(row, self.col + col, from + iteration)
    }
}

/// The elements of A and B, and how a consumer adds up their products.
pub(crate) trait Operands<A: Tiles, B: Tiles, const SUMS: usize> {
    /// The type of sums.
    type Sum: Word;
    /// Elements of 128 bytes: the depth of a tile.
    const BK: usize;
    /// The consumers that take turns: a barrier each, after those of the stages.
    const TURNS: usize = 0;

    /// [`StagesOf::products`]. Where products are scaled before they are added up, `scales` are
    /// those of two rows of a thread, for an iteration and a column of the tile. Every thread calls
    /// `meanwhile` once.
    unsafe fn add_up<const CONSUMERS: usize, const STEP: u8>(
        stages: &StagesOf<CONSUMERS, SUMS, STEP>,
        iterations: usize,
        consumer: usize,
        thread: usize,
        at: &mut Ring,
        scales: impl Fn(usize, usize) -> [f32; 2],
        meanwhile: impl FnMut(),
    ) -> [Self::Sum; SUMS];
}

/// The tensor cores add up all products.
impl<T: Wgmma<A, B>, A: Tiles, B: Tiles, const SUMS: usize> Operands<A, B, SUMS> for T
where
    [T::Sum; SUMS]: Sums<Sum = T::Sum>,
{
    type Sum = T::Sum;
    const BK: usize = <T as Wgmma<A, B>>::BK;

    #[inline(always)]
    unsafe fn add_up<const CONSUMERS: usize, const STEP: u8>(
        stages: &StagesOf<CONSUMERS, SUMS, STEP>,
        iterations: usize,
        consumer: usize,
        thread: usize,
        at: &mut Ring,
        _scales: impl Fn(usize, usize) -> [f32; 2],
        meanwhile: impl FnMut(),
    ) -> [T::Sum; SUMS] {
        stages.products::<T, A, B>(iterations, consumer, thread, at, meanwhile)
    }
}

/// The ring buffer of a CTA, and its barriers, with all steps.
pub(crate) type Stages<const CONSUMERS: usize, const SUMS: usize> = StagesOf<CONSUMERS, SUMS, ALL>;

/// The same with the steps up to one.
pub(crate) struct StagesOf<const CONSUMERS: usize, const SUMS: usize, const STEP: u8> {
    pub ring: *mut u8, // (STAGES, A_BYTES + B_BYTES), and (CONSUMERS, 2, 64, 128 bytes) of C
    pub full: *mut Mbarrier, // (STAGES)
    pub empty: *mut Mbarrier, // (STAGES + TURNS)
}

impl<const CONSUMERS: usize, const SUMS: usize, const STEP: u8> StagesOf<CONSUMERS, SUMS, STEP> {
    const BM: usize = Cta::<CONSUMERS, SUMS>::BM;
    const BN: usize = Cta::<CONSUMERS, SUMS>::BN;
    pub const STAGES: usize = Cta::<CONSUMERS, SUMS>::STAGES;
    pub const STAGE_BYTES: usize = Cta::<CONSUMERS, SUMS>::STAGE_BYTES;
    const A_BYTES: usize = Cta::<CONSUMERS, SUMS>::A_BYTES;
    /// The threads of a consumer that say that it has read a stage.
    const RELEASING: usize = if STEP >= ONE_ARRIVAL { 1 } else { WARPGROUP };

    /// The first thread initialises the barriers.
    #[inline(always)]
    pub unsafe fn new(full: *mut Mbarrier, empty: *mut Mbarrier, turns: usize) -> Self {
        if thread::thread_idx_x() == 0 {
            for stage in 0..Self::STAGES {
                mbarrier::init(full.add(stage), 1);
                mbarrier::init(empty.add(stage), (CONSUMERS * Self::RELEASING) as u32);
            }
            for consumer in 0..turns {
                // One consumer says that another has its turn.
                mbarrier::init(empty.add(Self::STAGES + consumer), 1);
            }
            mbarrier::fence_init();
        }
        let ring = shared::dynamic_shared_mem_aligned::<u8, 1024>();
        Self { ring, full, empty }
    }

    /// The same shared memory for fewer sums a thread: boxes of C are where they were.
    #[inline(always)]
    pub fn of_sums<const FEWER: usize>(&self) -> StagesOf<CONSUMERS, FEWER, STEP> {
        const {
            let bytes = Cta::<CONSUMERS, FEWER>::STAGES * Cta::<CONSUMERS, FEWER>::STAGE_BYTES;
            assert!(
                bytes == Self::STAGES * Self::STAGE_BYTES,
                "boxes follow the stages"
            );
        }
        StagesOf {
            ring: self.ring,
            full: self.full,
            empty: self.empty,
        }
    }

    /// The first element of the tile at `place`.
    #[inline(always)]
    pub fn corner(place: Place) -> Corner {
        Corner {
            product: place.product,
            row: place.row * Self::BM,
            col: place.col * Self::BN,
            k: 0,
        }
    }

    /// The producer's thread loads the tiles of A and B for k-iterations `from .. to` of the tile
    /// of C at `corner`. A tile of B consists of equal parts of `MATRICES` matrices, one after the
    /// other in the batch.
    #[inline(always)]
    pub unsafe fn load<T: Operands<A, B, SUMS>, C, A: Tiles, B: Tiles, const MATRICES: usize>(
        &self,
        gemm: &MappedGemm<'_, C, T::Sum, impl Copy>,
        corner: Corner,
        (from, to): (usize, usize),
        at: &mut Ring,
    ) {
        let of_a = gemm.a_of(corner.product);
        let columns = Self::BN / MATRICES;
        for iteration in from..to {
            let full = self.full.add(at.stage);
            mbarrier::wait(self.empty.add(at.stage), at.parity); // the stage has been read
            mbarrier::arrive_expect_tx(full, Self::STAGE_BYTES as u32);
            let a_tile = self.ring.add(at.stage * Self::STAGE_BYTES);
            let b_tile = a_tile.add(Self::A_BYTES);
            let k = (corner.k + iteration * T::BK) as u32;
            A::load(a_tile, of_a, corner.row as u32, k, Self::BM / BOX, full);
            for matrix in 0..MATRICES {
                let part = b_tile.add(matrix * columns * BOX * 2);
                let of_b = gemm.b_of(corner.product + matrix);
                B::load(part, of_b, corner.col as u32, k, columns / BOX, full);
            }
            at.advance(Self::STAGES);
        }
    }

    /// A consumer's tiles of A and B in the first stage.
    #[inline(always)]
    pub unsafe fn tiles<A: Tiles, B: Tiles>(
        &self,
        consumer: usize,
    ) -> (Descriptor<A>, Descriptor<B>) {
        // A consumer's part of A is one box if A is MN-major, and half of one if it is K-major: 64
        // rows of 128 bytes either way.
        let of_a = self.ring.add(consumer * WM * BOX * 2);
        let of_b = self.ring.add(Self::A_BYTES);
        (A::descriptor(of_a).uniform(), B::descriptor(of_b).uniform())
    }

    /// A consumer's sums of a tile over a range of k-iterations, and the corner of the tile, which is
    /// found while the first products are computed: it takes divisions.
    #[inline(always)]
    pub unsafe fn sums<T: Operands<A, B, SUMS>, A: Tiles, B: Tiles>(
        &self,
        gemm: &MappedGemm<'_, impl Copy, T::Sum, impl Epilogue<T::Sum>>,
        place: impl Fn() -> Corner,
        (from, to): (usize, usize),
        consumer: usize,
        thread: usize,
        at: &mut Ring,
    ) -> ([T::Sum; SUMS], Corner) {
        let mut corner = match gemm.scales_blocks() {
            true => place(), // the first products are scaled
            false => Corner::FIRST,
        };
        let scales = corner.scales(gemm, from, consumer, thread);
        let meanwhile = || {
            corner = place();
            self.prepare(gemm, corner, consumer, thread);
        };
        let sums = T::add_up(self, to - from, consumer, thread, at, scales, meanwhile);
        (sums, corner)
    }

    /// [`Self::landed_products`] of tiles as they landed.
    #[inline(always)]
    pub unsafe fn products<T: Wgmma<A, B>, A: Tiles, B: Tiles>(
        &self,
        iterations: usize,
        consumer: usize,
        thread: usize,
        at: &mut Ring,
        meanwhile: impl FnMut(),
    ) -> [T::Sum; SUMS]
    where
        [T::Sum; SUMS]: Sums<Sum = T::Sum>,
    {
        self.landed_products::<T, A, B>(iterations, consumer, thread, at, |_, _| (), meanwhile)
    }

    /// A consumer adds up the products of its 64 rows over `iterations`. Between two products it
    /// only waits for the first and releases its stage: it has already waited for the tiles of the
    /// next while the first was multiplied.
    /// Where tiles have landed, every thread calls `landed` with the iteration and the stage,
    /// before they are multiplied. It calls `meanwhile` while the first are multiplied: for what is
    /// computed between two tiles of C, the tensor cores wait.
    #[inline(always)]
    pub unsafe fn landed_products<T: Wgmma<A, B>, A: Tiles, B: Tiles>(
        &self,
        iterations: usize,
        consumer: usize,
        thread: usize,
        at: &mut Ring,
        landed: impl Fn(usize, *mut u8),
        mut meanwhile: impl FnMut(),
    ) -> [T::Sum; SUMS]
    where
        [T::Sum; SUMS]: Sums<Sum = T::Sum>,
    {
        let landed = |iteration: usize, stage: usize| {
            landed(iteration, self.ring.add(stage * Self::STAGE_BYTES));
        };
        // If `sums` itself became zeros below, `ptxas` would set it to zero before every tile.
        let iterations = iterations as u32; // the copy engine has coordinates of 32 bits
        if iterations == 0 {
            meanwhile();
            return [T::Sum::ZERO; SUMS];
        }
        // What the next products need is known before these end: after each wait, the tensor cores
        // wait for the first instruction that follows.
        let (a_first, b_first) = self.tiles::<A, B>(consumer);
        let bytes = Self::STAGE_BYTES as u32;
        let before = at.stage as u32 * bytes;
        let (mut a_tile, mut b_tile) = (a_first.further(before), b_first.further(before));
        let next_tiles = |stage: usize, a: Descriptor<A>, b: Descriptor<B>| match stage as u32 {
            0 => (a_first, b_first),
            _ => (a.further(bytes), b.further(bytes)),
        };
        let mut adds = false;
        let mut sums = <[T::Sum; SUMS]>::unset();
        mbarrier::wait(self.full.add(at.stage), at.parity); // the first tiles have landed
        landed(0, at.stage);
        let mut before = at.stage;
        for iteration in 0..iterations {
            wgmma::fence(); // the sums may be used
            for step in 0..STEPS {
                let a = a_tile.further(step * A::BYTES_OF_16);
                let b = b_tile.further(step * B::BYTES_OF_16);
                sums.multiply::<T, A, B>(a, b, adds || step > 0);
            }
            wgmma::commit();
            adds = true;
            if iteration == 0 {
                meanwhile();
            }
            let stage = at.stage;
            at.advance(Self::STAGES);
            if STEP >= ALL && iteration + 1 < iterations {
                mbarrier::wait(self.full.add(at.stage), at.parity); // the next tiles have landed
                landed(iteration as usize + 1, at.stage);
                (a_tile, b_tile) = next_tiles(at.stage, a_tile, b_tile);
            }
            if CONSUMERS > 1 {
                sums.wait::<0>(); // the tiles have been read
                before = stage;
            } else {
                sums.wait::<1>(); // the previous tiles have been read, these are in flight
            }
            if thread < Self::RELEASING && (CONSUMERS > 1 || iteration > 0) {
                mbarrier::arrive(self.empty.add(before));
            }
            before = stage;
            if STEP < ALL && iteration + 1 < iterations {
                mbarrier::wait(self.full.add(at.stage), at.parity);
                landed(iteration as usize + 1, at.stage);
                (a_tile, b_tile) = next_tiles(at.stage, a_tile, b_tile);
            }
        }
        if CONSUMERS == 1 {
            sums.wait::<0>(); // the last tiles have been read
            if thread < Self::RELEASING {
                mbarrier::arrive(self.empty.add(before));
            }
        }
        sums
    }

    /// A consumer releases the stages of a tile of which it has no rows. Only its first thread
    /// waits for them: the others must not wait for later stages before that has returned, since a
    /// barrier in shared memory tells apart no more than two phases.
    #[inline(always)]
    pub unsafe fn release(&self, iterations: usize, thread: usize, at: &mut Ring) {
        for _ in 0..iterations {
            if thread == 0 {
                mbarrier::wait(self.full.add(at.stage), at.parity);
                mbarrier::arrive(self.empty.add(at.stage));
            }
            at.advance(Self::STAGES);
        }
    }

    /// [`Epilogue::prepare`] for a consumer's rows of the tile of C at `corner`, if C has all of
    /// them. It prefetches, so it is called while products are computed, and again for its result.
    #[inline(always)]
    pub unsafe fn prepare<C: Copy, S: Copy>(
        &self,
        gemm: &MappedGemm<'_, C, S, impl Epilogue<S>>,
        corner: Corner,
        consumer: usize,
        thread: usize,
    ) -> Alignment {
        let (row, col) = (corner.row + consumer * WM, corner.col);
        let gemm = gemm.of_product(corner.product);
        match row + WM <= gemm.m && col + Self::BN <= gemm.n {
            true => gemm.prepare(row, col, Self::BN, thread),
            false => Alignment::Less,
        }
    }

    /// A consumer stores its 64 rows of the tile of C at `corner`, or those of them that are among
    /// the first `m`. With `MORE`, C has others after these, which are not stored.
    #[inline(always)]
    pub unsafe fn store<C: Output, const MORE: bool>(
        &self,
        gemm: &MappedGemm<'_, C::Bits, C::Sum, impl Epilogue<C::Sum>>,
        sums: &[C::Sum; SUMS],
        corner: Corner,
        consumer: usize,
        thread: usize,
    ) {
        let (row, col) = (corner.row + consumer * WM, corner.col);
        if STEP >= BOXES && gemm.stores_boxes(col + Self::BN) {
            let boxes = self.ring.add(Self::STAGES * Self::STAGE_BYTES);
            let boxes = boxes.add(consumer * 2 * BOX_BYTES);
            let alignment = self.prepare(gemm, corner, consumer, thread);
            let of_c = gemm.c_of(corner.product);
            let gemm = gemm.of_product(corner.product);
            // The copy engine itself leaves out what C does not have.
            let rows = match MORE && row + WM > gemm.m {
                true => gemm.m - row,
                false => WM,
            };
            let place = (row, col, rows);
            if alignment == Alignment::Pairs || !gemm.has_epilogue() {
                store_boxes::<C, SUMS, ALIGNED>(&gemm, of_c, sums, place, boxes, consumer, thread);
            } else if alignment == Alignment::Unknown {
                store_boxes::<C, SUMS, WHOLE>(&gemm, of_c, sums, place, boxes, consumer, thread);
            } else {
                store_boxes::<C, SUMS, ANY>(&gemm, of_c, sums, place, boxes, consumer, thread);
            }
        } else {
            let gemm = gemm.of_product(corner.product);
            store_pairs::<C, SUMS>(&gemm, sums, row, col, thread);
        }
    }
}

/// The type of C, and how sums in f32 are converted to it.
pub(crate) trait Output {
    /// The bits of an element.
    type Bits: Copy;
    /// The type of sums.
    type Sum: Word;

    /// Columns of a box of C, 64 rows of 128 bytes.
    const COLUMNS: usize = BOX_BYTES / WM / size_of::<Self::Bits>();

    /// A thread writes what becomes of its sums to a box, where C is not read.
    ///
    /// # Safety
    ///
    /// `target` is the box in shared memory, whose first element is that of C at `place`, and the
    /// thread's sums from `first` on belong to it.
    unsafe fn write<const SUMS: usize, const TILE: u8>(
        target: *mut u8, // (64, COLUMNS), swizzled
        gemm: &MappedGemm<'_, Self::Bits, Self::Sum, impl Epilogue<Self::Sum>>,
        place: (usize, usize),
        sums: &[Self::Sum; SUMS],
        first: usize,
        thread: usize,
    );

    /// `C[row][col] = alpha * sum + beta * C[row][col]` for pairs of neighbours of a row, the first
    /// at each place, or nothing where C has no such elements.
    ///
    /// # Safety
    ///
    /// No other thread touches the elements, and columns are even.
    unsafe fn update_pairs<const PAIRS: usize>(
        gemm: &MappedGemm<'_, Self::Bits, Self::Sum, impl Epilogue<Self::Sum>>,
        places: [(usize, usize); PAIRS],
        sums: [[Self::Sum; 2]; PAIRS],
    );
}

/// C is rounded to 16 bits, once.
impl<T: Half> Output for T {
    type Bits = u16;
    type Sum = f32;

    #[inline(always)]
    unsafe fn write<const SUMS: usize, const TILE: u8>(
        target: *mut u8, // (64, 64)
        gemm: &MappedGemm<'_, u16, f32, impl Epilogue>,
        place: (usize, usize),
        sums: &[f32; SUMS],
        first: usize,
        thread: usize,
    ) {
        let (warp, lane) = (thread / 32, thread % 32);
        // `stmatrix` stores four 8 x 8 matrices of a warp's 16 rows: lanes 0 to 15 address its
        // rows in eight columns, lanes 16 to 31 in the next eight.
        let (in_box, half) = (16 * warp + lane % 16, lane / 16);
        for pair in 0..Self::COLUMNS / 16 {
            let i = first + 8 * pair;
            let in_row = in_box * BOX_ROW + 16 * (2 * pair + half);
            let finished = |j: usize| {
                let in_box = 8 * pair + j;
                let [low, high] =
                    finished_pair::<_, _, SUMS, TILE>(gemm, place, sums, i + j, in_box, thread);
                T::pair(low, high)
            };
            let fragments = [finished(0), finished(2), finished(4), finished(6)];
            mma::stmatrix_x4(target.add(Swizzle::Bytes128.place(in_row)), fragments);
        }
    }

    #[inline(always)]
    unsafe fn update_pairs<const PAIRS: usize>(
        gemm: &MappedGemm<'_, u16, f32, impl Epilogue>,
        places: [(usize, usize); PAIRS],
        sums: [[f32; 2]; PAIRS],
    ) {
        for i in 0..PAIRS {
            let (row, col) = places[i];
            gemm.update::<T>(row, col, sums[i][0]);
            gemm.update::<T>(row, col + 1, sums[i][1]);
        }
    }
}

macro_rules! words {
    ($($word:ident),*) => {$(
        /// C is not rounded again: it is of the type of sums.
        impl Output for $word {
            type Bits = $word;
            type Sum = $word;

            #[inline(always)]
            unsafe fn write<const SUMS: usize, const TILE: u8>(
                target: *mut u8, // (64, 32)
                gemm: &MappedGemm<'_, $word, $word, impl Epilogue<$word>>,
                place: (usize, usize),
                sums: &[$word; SUMS],
                first: usize,
                thread: usize,
            ) {
                for pair in 0..Self::COLUMNS / 4 {
                    let (i, in_box) = (first + 2 * pair, 2 * pair);
                    // The place in a box, which counts as the first columns of the tile.
                    let (row, col) = wgmma::sum_place(thread as u32, in_box as u32);
                    let place_in_box = row as usize * BOX_ROW + col as usize * size_of::<$word>();
                    let finished =
                        finished_pair::<_, _, SUMS, TILE>(gemm, place, sums, i, in_box, thread);
                    let target = target.add(Swizzle::Bytes128.place(place_in_box));
                    Float2(finished.map(Word::bits)).write(target.cast());
                }
            }

            #[inline(always)]
            unsafe fn update_pairs<const PAIRS: usize>(
                gemm: &MappedGemm<'_, $word, $word, impl Epilogue<$word>>,
                places: [(usize, usize); PAIRS],
                sums: [[$word; 2]; PAIRS],
            ) {
                gemm.update_pairs(places, sums);
            }
        }
    )*};
}

words!(f32, i32);

/// What becomes of sum `i` of a thread and the next one, where C is not read. They are number
/// `in_box` among the thread's sums of a box, which begins at `place` in C. `TILE` says what is
/// known of the tile.
#[inline(always)]
unsafe fn finished_pair<C, S: Word, const SUMS: usize, const TILE: u8>(
    gemm: &MappedGemm<'_, C, S, impl Epilogue<S>>,
    (row, col): (usize, usize),
    sums: &[S; SUMS],
    i: usize,
    in_box: usize,
    thread: usize,
) -> [S; 2] {
    let (m, n) = wgmma::sum_place(thread as u32, in_box as u32);
    let at = gemm.at_in::<TILE>(row + m as usize, col + n as usize, 2);
    gemm.finished(
        at,
        [gemm.alpha.times(sums[i]), gemm.alpha.times(sums[i + 1])],
    )
}

/// Stores a consumer's first `rows` rows of sums, from `row` and `col` on: box after box is written
/// to shared memory, as elements of C, and copied while the next is written, by the copy engine if
/// there are 64 rows. `TILE` says what is known of them.
#[inline(always)]
unsafe fn store_boxes<C: Output, const SUMS: usize, const TILE: u8>(
    gemm: &MappedGemm<'_, C::Bits, C::Sum, impl Epilogue<C::Sum>>,
    of_c: Boxes<'_>,
    sums: &[C::Sum; SUMS],
    (row, col, rows): (usize, usize, usize),
    boxes: *mut u8, // (2, 64, COLUMNS)
    consumer: usize,
    thread: usize,
) {
    let sums_of_box = WM * C::COLUMNS / WARPGROUP;
    for part in 0..SUMS / sums_of_box {
        let target = boxes.add(part % 2 * BOX_BYTES);
        if thread == 0 {
            // The last box in this place has been read: the second last, or the last.
            if SUMS > sums_of_box {
                tma::wait_group_read::<1>();
            } else {
                tma::wait_group_read::<0>();
            }
        }
        thread::named_barrier(1 + consumer as u32, WARPGROUP as u32); // the box may be written
        let place = (row, col + part * C::COLUMNS);
        C::write::<SUMS, TILE>(target, gemm, place, sums, sums_of_box * part, thread);
        tma::fence_shared(); // the copy engine sees the box
        thread::named_barrier(1 + consumer as u32, WARPGROUP as u32); // the box is complete
        if rows < WM {
            store_rows::<C>(gemm, target, (row, place.1, rows), thread);
        }
        if thread == 0 {
            // The boxes of the tensor map are square.
            for i in 0..rows / WM * WM / C::COLUMNS {
                let (row, col) = (row + i * C::COLUMNS, col + part * C::COLUMNS);
                let square = target.add(i * C::COLUMNS * BOX_ROW);
                of_c.store(col as u32, row as u32, square);
            }
            tma::commit_group(); // also of no box: the waits above count groups
        }
    }
}

/// Stores the first `rows` rows of a box, from `row` and `col` of C on, in vectors of 16 bytes: the
/// copy engine would store all 64.
#[inline(always)]
unsafe fn store_rows<C: Output>(
    gemm: &MappedGemm<'_, C::Bits, C::Sum, impl Epilogue<C::Sum>>,
    of_box: *const u8, // (64, COLUMNS), swizzled
    (row, col, rows): (usize, usize, usize),
    thread: usize,
) {
    let of_row = BOX_ROW / 16;
    let mut vector = thread;
    while vector < rows * of_row {
        let (row_of_box, byte) = (vector / of_row, vector % of_row * 16);
        let col = col + byte / size_of::<C::Bits>();
        if col < gemm.n {
            let in_box = Swizzle::Bytes128.place(row_of_box * BOX_ROW + byte);
            let c = gemm.c.add((row + row_of_box) * gemm.ldc + col);
            Float4::<f32>::read(of_box.add(in_box).cast()).write(c.cast());
        }
        vector += WARPGROUP;
    }
}

/// The pairs of C that a thread reads before it writes them, if it reads C.
const PAIRS: usize = 4;

/// Stores a consumer's sums pair by pair: if beta requires reading C, or its rows are not aligned
/// for the copy engine.
#[inline(always)]
unsafe fn store_pairs<C: Output, const SUMS: usize>(
    gemm: &MappedGemm<'_, C::Bits, C::Sum, impl Epilogue<C::Sum>>,
    sums: &[C::Sum; SUMS],
    row: usize,
    col: usize,
    thread: usize,
) {
    for part in 0..SUMS / (2 * PAIRS) {
        let (mut places, mut pairs) = ([(0, 0); PAIRS], [[C::Sum::ZERO; 2]; PAIRS]);
        for pair in 0..PAIRS {
            let i = 2 * (part * PAIRS + pair);
            let (m, n) = wgmma::sum_place(thread as u32, i as u32);
            places[pair] = (row + m as usize, col + n as usize);
            pairs[pair] = [sums[i], sums[i + 1]];
        }
        C::update_pairs(gemm, places, pairs);
    }
}

/// Rows of the table, by the number of consumers, the step, and how CTAs are laid over C.
macro_rules! table {
    ($(
        $name:tt $entry:ident ($($types:tt)+) $input:ident $output:ident $a:ident $b:ident
        ($consumers:literal, $step:literal, $grid:ident);
    )*) => {
        kernel! {
            name: "warp-specialized",
            idea: "one warpgroup loads and two multiply, on Hopper's tensor cores, for bf16 and f16",
            epilogue: any,
            variants: [$(
                $name = fn $entry(gemm: $($types)+; mapped)
                    block(Cta::<$consumers, 128>::THREADS, 1)
                    tile(Cta::<$consumers, 128>::BM, Cta::<$consumers, 128>::BN, BK)
                    shared(
                        full: [Mbarrier; Cta::<$consumers, 128>::STAGES],
                        empty: [Mbarrier; Cta::<$consumers, 128>::STAGES],
                    )
                    launch_bounds(1)
                    {
                        grid: Grid::$grid,
                        staging: Staging::Ring { bytes: Cta::<$consumers, 128>::BYTES as u32 },
                        a: layout!($a),
                        b: layout!($b),
                        is_lesson: $step < ALL || matches!(Grid::$grid, Grid::MappedTiles),
                    }
                    => multiply::<$input, $output, $a, $b, $consumers, 128, $step>(gemm, full, empty);
            )*],
        }
    };
}

each_of_16_bits!(table! { "warp-specialized" warp_specialized (2, 8, Persistent); } and {
    ("warp-specialized-step3") warp_specialized_step3 (bf16) Bf16 Bf16 KMajor MnMajor
        (1, 3, Persistent);
    ("warp-specialized-step4") warp_specialized_step4 (bf16) Bf16 Bf16 KMajor MnMajor
        (2, 4, Persistent);
    ("warp-specialized-step5") warp_specialized_step5 (bf16) Bf16 Bf16 KMajor MnMajor
        (2, 5, Persistent);
    ("warp-specialized-step6") warp_specialized_step6 (bf16) Bf16 Bf16 KMajor MnMajor
        (2, 6, Persistent);
    ("warp-specialized-step7") warp_specialized_step7 (bf16) Bf16 Bf16 KMajor MnMajor
        (2, 7, Persistent);
    ("warp-specialized-tiles") warp_specialized_tiles (bf16) Bf16 Bf16 KMajor MnMajor
        (2, 8, MappedTiles);
});
