//! `fix_up` adds all segments of every split tile in the documented order, compared bit for bit
//! with sums computed here, on the simulator.

use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use cuda_std::simulator::{Launch, Report, ThreadOrder};
use gpu_gemm::gpu_kernels::epilogue::Identity;
use gpu_gemm::gpu_kernels::fix_up::{self, FixUp, fix_up};
use gpu_gemm::gpu_kernels::fix_up_half::{fix_up_bf16, fix_up_f16};
use gpu_gemm::gpu_kernels::gemm::Gemm;
use gpu_gemm::gpu_kernels::variants;
use gpu_gemm::{Bf16, F16};
use libtest_mimic::Trial;
use tests::bits;

pub fn trials() -> Vec<Trial> {
    tests::simulated!(
        "fix_up",
        every_segment_is_added_once_in_the_order_that_it_says,
        a_c_of_16_bits_is_the_same_sums_rounded_once,
        groups_wait_for_each_other,
        the_rows_of_a_tile_divide_evenly_among_the_float4s_of_a_thread
    )
}

/// A launch of a stream-K kernel. Only its partial sums matter.
#[derive(Clone, Copy, Debug)]
struct Divided {
    /// Rows and columns of C, and those of a tile.
    c: (usize, usize),
    tile: (usize, usize),
    /// K-iterations of each tile.
    k_iterations: usize,
    ctas: usize,
    data_parallel_waves: usize,
    groups: usize,
    /// Elements from a row of C to the next.
    ldc: usize,
}

/// The content of a tile: the workspace tiles of its segments, in the order of k.
type Segments = Vec<usize>;

impl Divided {
    fn tiles(&self) -> (usize, usize) {
        let ((m, n), (tile_m, tile_n)) = (self.c, self.tile);
        (m.div_ceil(tile_m), n.div_ceil(tile_n))
    }

    fn stream_k_tiles(&self) -> usize {
        self.tiles().0 * self.tiles().1 - self.data_parallel_waves * self.ctas
    }

    /// The workspace tiles of each stream-K tile; none if a single CTA computed the tile.
    fn segments(&self) -> Vec<Segments> {
        let iterations = self.stream_k_tiles() * self.k_iterations;
        let mut tiles = vec![Segments::new(); self.stream_k_tiles()];
        for cta in 0..self.ctas {
            let [begin, end] = [cta, cta + 1].map(|cta| cta * iterations / self.ctas);
            let (first, end) = (begin / self.k_iterations, end.div_ceil(self.k_iterations));
            for (index, tile) in tiles[first..end].iter_mut().enumerate() {
                // A CTA's first segment goes to its first workspace tile, and its last to the
                // second.
                tile.push(2 * cta + usize::from(index > 0));
            }
        }
        for tile in tiles.iter_mut().filter(|tile| tile.len() == 1) {
            tile.clear();
        }
        tiles
    }

    /// The bits of C after `fix_up`, starting from `before`, and the report of the launch.
    fn run(
        &self,
        partials: &[f32],
        before: &[f32],
        configure: impl Fn(Launch) -> Launch,
    ) -> (Vec<u64>, Report) {
        // C begins at a multiple of a float4, so that float4s may be stored.
        let mut memory = vec![0.0; before.len() + 3];
        let start = memory.as_ptr().align_offset(16);
        let c = &mut memory[start..start + before.len()];
        c.copy_from_slice(before);
        // Each thread writes to elements of its own.
        let target = AtomicPtr::new(c.as_mut_ptr());
        let report = configure(self.launch()).run(|| {
            // SAFETY: C and the partial sums have these sizes, and the launch has the required
            // shape.
            unsafe { self.fix_up(fix_up, target.load(Relaxed), partials) }
        });
        (bits(c), report.expect("no fault"))
    }

    fn launch(&self) -> Launch {
        let elements = self.tile.0 * self.tile.1;
        let blocks = elements.div_ceil(fix_up::elements_of_block(self.groups));
        Launch::new(
            (blocks as u32, self.stream_k_tiles() as u32),
            (fix_up::THREADS as u32, 1),
        )
    }

    /// # Safety
    ///
    /// As for `fix_up`.
    unsafe fn fix_up<T>(&self, fix_up: unsafe fn(FixUp<T>), c: *mut T, partials: &[f32]) {
        let ((m, n), (tile_m, tile_n)) = (self.c, self.tile);
        // SAFETY: the caller vouches for it.
        unsafe {
            fix_up(FixUp {
                gemm: Gemm {
                    m,
                    n,
                    k: self.k_iterations * TILE_K,
                    alpha: ALPHA,
                    a: &[],
                    lda: 0,
                    b: &[],
                    ldb: 0,
                    beta: BETA,
                    c,
                    ldc: self.ldc,
                    batch_strides: [0; 3],
                    partials: partials.as_ptr().cast_mut(),
                    column_stride: 1,
                    epilogue: Identity,
                },
                tile_m,
                tile_n,
                tile_k: TILE_K,
                ctas: self.ctas,
                data_parallel_waves: self.data_parallel_waves,
                groups: self.groups,
            });
        }
    }
}

const TILE_K: usize = 8;
/// The scalars; products with them are exact.
const ALPHA: f32 = 2.0;
const BETA: f32 = -1.0;

/// Numbers with sums that round, so that another order gives other bits; NaN where no CTA stores
/// anything.
fn partials(divided: &Divided) -> Vec<f32> {
    let elements = divided.tile.0 * divided.tile.1;
    let mut partials = vec![f32::NAN; 2 * divided.ctas * elements];
    let mut state = 1u32;
    for place in divided.segments().into_iter().flatten() {
        for element in &mut partials[place * elements..(place + 1) * elements] {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *element = (state >> 8) as f32 / 16_777_216.0 - 0.4;
        }
    }
    partials
}

/// Adds up each of `groups` runs of equal length, and then the sums of the groups, in order.
fn sum(parts: &[f32], groups: usize) -> f32 {
    let runs = parts.chunks(parts.len().div_ceil(groups));
    let of_run = |run: &[f32]| run.iter().fold(0.0, |sum, part| sum + part);
    runs.map(of_run)
        .reduce(|sum, run| sum + run)
        .unwrap_or_default()
}

/// The position of a tile by its number, in columns of up to eight tiles.
fn tile_position(tile: usize, (rows, columns): (usize, usize)) -> (usize, usize) {
    let places = (0..rows).step_by(8).flat_map(|first| {
        let rows = first..rows.min(first + 8);
        (0..columns).flat_map(move |column| rows.clone().map(move |row| (row, column)))
    });
    places.into_iter().nth(tile).expect("a tile of C")
}

fn expected(divided: &Divided, partials: &[f32], before: &[f32]) -> Vec<u64> {
    let ((m, n), (tile_m, tile_n)) = (divided.c, divided.tile);
    let mut c = before.to_vec();
    for (tile, places) in divided.segments().into_iter().enumerate() {
        if places.is_empty() {
            continue;
        }
        let first = divided.data_parallel_waves * divided.ctas;
        let (tile_row, tile_col) = tile_position(first + tile, divided.tiles());
        for element in 0..tile_m * tile_n {
            let row = tile_row * tile_m + element / tile_n;
            let col = tile_col * tile_n + element % tile_n;
            if row < m && col < n {
                let places = places.iter().map(|place| place * tile_m * tile_n);
                let parts: Vec<f32> = places.map(|first| partials[first + element]).collect();
                let old = &mut c[row * divided.ldc + col];
                *old = BETA * *old + ALPHA * sum(&parts, divided.groups);
            }
        }
    }
    bits(&c)
}

/// Few and many segments of large and small tiles, with edges, with and without data-parallel
/// tiles.
const CASES: [Divided; 11] = [
    divided((200, 100), (128, 128), 10, 5, 0, 1),
    divided((200, 100), (128, 128), 40, 5, 0, 2),
    divided((70, 70), (32, 32), 7, 4, 1, 1),
    divided((126, 250), (64, 128), 9, 7, 0, 1),
    divided((60, 100), (64, 128), 12, 11, 0, 1),
    divided((70, 70), (32, 32), 70, 8, 1, 4),
    divided((1, 300), (1, 128), 50, 37, 0, 4),
    divided((1, 299), (1, 128), 50, 150, 0, 8),
    divided((6, 130), (4, 128), 99, 101, 0, 4),
    divided((8, 128), (8, 128), 1000, 264, 0, 16),
    divided((17, 5), (1, 128), 3, 40, 0, 4),
];

const fn divided(
    c: (usize, usize),
    tile: (usize, usize),
    k_iterations: usize,
    ctas: usize,
    data_parallel_waves: usize,
    groups: usize,
) -> Divided {
    Divided {
        c,
        tile,
        k_iterations,
        ctas,
        data_parallel_waves,
        groups,
        ldc: c.1,
    }
}

fn before(divided: &Divided) -> Vec<f32> {
    (0..divided.c.0 * divided.ldc)
        .map(|index| (index % 7) as f32 - 3.0)
        .collect()
}

fn every_segment_is_added_once_in_the_order_that_it_says() {
    // In these, rows begin at multiples of a float4, and may end inside one.
    let padded = CASES.map(|divided| Divided {
        ldc: divided.ldc.next_multiple_of(4),
        ..divided
    });
    for divided in CASES.into_iter().chain(padded) {
        let (partials, before) = (partials(&divided), before(&divided));
        let expected = expected(&divided, &partials, &before);
        for order in ThreadOrder::ALL {
            let (c, _) = divided.run(&partials, &before, |launch| launch.thread_order(order));
            assert!(c == expected, "{divided:?}, {order:?}");
        }
    }
}

fn a_c_of_16_bits_is_the_same_sums_rounded_once() {
    fn is_rounded<T: Copy>(
        fix_up: unsafe fn(FixUp<u16>),
        rounded: fn(f32) -> T,
        bits: fn(T) -> u16,
    ) {
        for divided in CASES {
            let (partials, before) = (partials(&divided), before(&divided));
            let (expected, _) = divided.run(&partials, &before, |launch| launch);
            let to_bits = |value: &f32| bits(rounded(*value));
            let expected: Vec<u16> = expected
                .into_iter()
                .map(|bits| to_bits(&f32::from_bits(bits as u32)))
                .collect();
            let mut c: Vec<u16> = before.iter().map(to_bits).collect();
            let target = AtomicPtr::new(c.as_mut_ptr());
            let report = divided.launch().run(|| {
                // SAFETY: C and the partial sums have these sizes, and the launch has the required
                // shape.
                unsafe { divided.fix_up(fix_up, target.load(Relaxed), &partials) }
            });
            report.expect("no fault");
            assert!(c == expected, "{divided:?}");
        }
    }
    is_rounded(fix_up_bf16, Bf16::from_f32, Bf16::to_bits);
    is_rounded(fix_up_f16, F16::from_f32, F16::to_bits);
}

fn groups_wait_for_each_other() {
    for divided in CASES {
        let (partials, before) = (partials(&divided), before(&divided));
        let (right, report) = divided.run(&partials, &before, |launch| launch);
        assert_eq!(report.barriers.is_empty(), divided.groups == 1);
        // SAFETY: the barriers protect partial sums.
        unsafe {
            tests::assert_barriers_are_needed(&report, |change| {
                divided.run(&partials, &before, change).0 != right
            });
        }
    }
}

fn the_rows_of_a_tile_divide_evenly_among_the_float4s_of_a_thread() {
    let float4s = fix_up::elements_of_block(1) / (4 * fix_up::THREADS);
    for variant in variants().filter(|variant| variant.grid.is_stream_k()) {
        let elements = (variant.tile.m * variant.tile.n) as usize;
        if fix_up::groups(elements, 2) == 1 {
            let rows = variant.tile.m as usize;
            assert!(rows.is_multiple_of(float4s), "{}", variant.name);
        }
    }
}
