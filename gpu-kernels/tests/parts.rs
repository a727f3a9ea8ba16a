//! The parts of kernels: the choice between the path for exact tiles and the predicated one,
//! orders of tiles, lanes and columns, and the division of work. A mistake in them leaves the sums
//! right, so no other test would notice it.

use std::collections::{BTreeMap, BTreeSet};

use gpu_kernels::epilogue::Identity;
use gpu_kernels::gemm::Gemm;
use gpu_kernels::raster::{lane_position, serpentine, tile_position};
use gpu_kernels::spec::Tile;
use gpu_kernels::stream_k::StreamK;
use gpu_kernels::tensor_core_half::{self, KMajor, MnMajor};
use gpu_kernels::tile_loader::distance;
use gpu_kernels::warp_specialized_fp64::{in_a_tile, in_b_tile};
use gpu_kernels::warp_specialized_tf32::{in_left, left_row};
use gpu_kernels::KERNELS;

/// 16 bytes to which others are aligned.
#[repr(align(16))]
struct Aligned([f32; 8]);

/// A product of 20 x 24 x 16 with matrices that begin `offsets` elements after a multiple of 16
/// bytes.
fn product(memory: &Aligned, offsets: [usize; 3], [lda, ldb, ldc]: [usize; 3]) -> Gemm<'_, f32> {
    let [a, b, c] = offsets.map(|offset| &memory.0[offset..]);
    Gemm {
        m: 20,
        n: 24,
        k: 16,
        alpha: 1.0,
        a,
        lda,
        b,
        ldb,
        beta: 0.0,
        c: c.as_ptr().cast_mut(),
        ldc,
        batch_strides: [0; 3],
        partials: std::ptr::null_mut(),
        column_stride: 1,
        epilogue: Identity,
    }
}

#[test]
fn a_tile_is_exact_up_to_the_edges_and_not_beyond() {
    let memory = Aligned([0.0; 8]);
    let gemm = product(&memory, [0; 3], [16, 24, 24]);
    let exact = |row, col, depth| gemm.tile_is_exact(row, col, 8, depth);
    assert!(exact(0, 0, 16) && exact(12, 16, 16) && exact(0, 0, 8));
    assert!(!exact(13, 16, 16), "past the last row");
    assert!(!exact(12, 17, 16), "past the last column");
    assert!(!exact(12, 16, 12), "k is no multiple of 12");
    let in_bounds = |row, col| gemm.tile_is_in_bounds(row, col, 4, 12);
    assert!(in_bounds(0, 0) && in_bounds(16, 12));
    assert!(!in_bounds(17, 12) && !in_bounds(16, 13));
}

#[test]
fn rows_are_aligned_if_each_matrix_and_each_leading_dimension_is() {
    let memory = Aligned([0.0; 8]);
    let all = |offsets, leading| product(&memory, offsets, leading).rows_are_float4_aligned();
    let of_c = |offsets, leading| product(&memory, offsets, leading).c_is_float4_aligned();
    assert!(all([0; 3], [16, 24, 28]) && all([4; 3], [4; 3]));
    assert!(of_c([1, 1, 0], [17, 25, 28]) && of_c([1, 1, 4], [17, 25, 4]));
    for matrix in 0..3 {
        for by in 1..4 {
            let (mut offsets, mut leading) = ([0; 3], [24; 3]);
            offsets[matrix] = by;
            assert!(!all(offsets, leading), "matrix {matrix} is off by {by}");
            assert_eq!(of_c(offsets, leading), matrix != 2);
            offsets[matrix] = 0;
            leading[matrix] += by;
            assert!(
                !all(offsets, leading),
                "a row of matrix {matrix} is {by} longer"
            );
            assert_eq!(of_c(offsets, leading), matrix != 2);
        }
    }
}

#[test]
fn a_product_by_zero_has_no_depth() {
    let memory = Aligned([0.0; 8]);
    let mut gemm = product(&memory, [0; 3], [16, 24, 24]);
    assert_eq!(gemm.depth(), 16);
    gemm.alpha = 0.0;
    assert_eq!(gemm.depth(), 0);
}

#[test]
fn a_distance_is_never_negative_and_fits_32_bits() {
    assert_eq!([distance(5, 3), distance(3, 3), distance(3, 10)], [0, 0, 7]);
    let most = 1 << 30;
    assert_eq!(distance(0, most - 1), most as i32 - 1);
    assert_eq!(
        [most, most + 1, 1 << 32, usize::MAX].map(|end| distance(0, end)),
        [1 << 30; 4]
    );
}

#[test]
fn tiles_come_in_groups_of_eight_rows_column_after_column() {
    for (rows, cols) in [(1, 1), (3, 5), (7, 2), (8, 3), (9, 4), (16, 2), (21, 6)] {
        let mut expected = Vec::new();
        for first_row in (0..rows).step_by(8) {
            for col in 0..cols {
                expected.extend((first_row..rows.min(first_row + 8)).map(|row| (row, col)));
            }
        }
        let tiles: Vec<_> = (0..rows * cols)
            .map(|index| tile_position(index, rows, cols))
            .collect();
        assert_eq!(tiles, expected, "{rows} x {cols} tiles");
    }
}

#[test]
fn the_lanes_of_a_quarter_warp_are_two_by_four() {
    let places: BTreeSet<_> = (0..32).map(lane_position).collect();
    let all = (0..4).flat_map(|row| (0..8).map(move |col| (row, col)));
    assert_eq!(places, all.collect());
    for quarter in 0..4 {
        let lanes = (8 * quarter..8 * quarter + 8).map(lane_position);
        let (rows, cols): (BTreeSet<_>, BTreeSet<_>) = lanes.unzip();
        assert_eq!((rows.len(), cols.len()), (2, 4), "quarter {quarter}");
    }
}

/// Lanes store an element each of the transposed tile of A: `BK / 4` lanes have a row of A between
/// them, and each stores one of its four columns. The stride is what the tiles' bytes leave for it.
#[test]
fn stores_of_the_transposed_a_meet_in_a_bank_with_bk_16_alone_and_in_pairs() {
    let kernels = KERNELS.iter();
    let stored = kernels.filter(|one| ["conflict-free", "double-buffer"].contains(&one.name));
    let mut seen = 0;
    for variant in stored.flat_map(|kernel| kernel.variants) {
        let Tile { m, n, k } = variant.tile;
        let buffers = if variant.name.starts_with("double") {
            2
        } else {
            1
        };
        let stride = variant.static_shared_bytes / (buffers * 4 * k) - n;
        assert!(stride >= m);
        let mut lanes_of_bank = BTreeMap::<u32, usize>::new();
        for lane in 0..32 {
            let (row, col) = (lane / (k / 4), lane % (k / 4) * 4);
            *lanes_of_bank.entry((col * stride + row) % 32).or_default() += 1;
        }
        let most = if k == 8 { 1 } else { 2 };
        assert_eq!(
            lanes_of_bank.values().max(),
            Some(&most),
            "{}",
            variant.name
        );
        seen += 1;
    }
    assert!(seen >= 6, "{seen}");
}

/// If each lane reads 8 bytes, shared memory serves half a warp at a time: 4 bytes from each of
/// the 32 banks.
#[test]
fn registers_for_tf32_are_read_from_all_banks_at_once() {
    let rows = (0..4).flat_map(|warp| (0..8).map(move |row| left_row(warp, row)));
    let rows: BTreeSet<usize> = rows.collect();
    assert_eq!(rows, (0..64).step_by(2).collect(), "each pair of rows once");
    for (consumer, warp) in (0..2).flat_map(|consumer| (0..4).map(move |warp| (consumer, warp))) {
        for (half, four_below) in [(0, false), (0, true), (16, false), (16, true)] {
            let banks = (half..half + 16).flat_map(|lane| {
                let at = in_left(consumer, warp, lane);
                let at = if four_below { (at ^ 64) + 4 * 128 } else { at };
                [at / 4 % 32, at / 4 % 32 + 1]
            });
            let banks: BTreeSet<usize> = banks.collect();
            assert_eq!(banks, (0..32).collect(), "warp {warp}, lanes from {half}");
        }
    }
}

/// If each lane reads 16 bytes, shared memory serves a quarter of a warp at a time.
#[test]
fn fragments_of_f64_are_read_from_all_banks_at_once() {
    for place in [in_a_tile, in_b_tile] {
        for (quarter, second) in (0..4).flat_map(|quarter| [(quarter, false), (quarter, true)]) {
            let lanes = 8 * quarter..8 * quarter + 8;
            let banks = lanes.flat_map(|lane| {
                let first = place(lane, second) / 4 % 32;
                first..first + 4
            });
            let banks: BTreeSet<usize> = banks.collect();
            assert_eq!(banks, (0..32).collect(), "quarter {quarter}, {second}");
        }
    }
}

/// `ldmatrix` reads eight rows of a matrix at a time, 16 bytes of each.
#[test]
fn matrices_of_16_bits_are_read_from_all_banks_at_once() {
    fn pieces<T: tensor_core_half::Tile>(rows: usize) {
        let pieces = T::WIDTH / 8;
        let all = (0..rows).flat_map(|row| (0..pieces).map(move |piece| T::place(row, piece)));
        let all: BTreeSet<usize> = all.collect();
        let each_once = (0..rows * T::WIDTH).step_by(8).collect();
        assert_eq!(all, each_once, "the pieces fill a tile");
        for (first, piece) in (0..rows).step_by(8).zip((0..pieces).cycle()) {
            let banks = (first..first + 8).flat_map(|row| {
                let first = T::place(row, piece) * 2 / 4 % 32;
                first..first + 4
            });
            let banks: BTreeSet<usize> = banks.collect();
            assert_eq!(banks, (0..32).collect(), "rows from {first}, piece {piece}");
        }
    }
    pieces::<KMajor>(128);
    pieces::<MnMajor>(32);
}

#[test]
fn serpentine_order_turns_at_the_end_of_each_row() {
    let order = |row| [0, 1, 2].map(|index| serpentine(row, index, 3));
    assert_eq!(
        [0, 1, 2, 3, 5].map(order),
        [[0, 1, 2], [2, 1, 0], [0, 1, 2], [2, 1, 0], [2, 1, 0]]
    );
}

/// The segments of each tile, in the order of CTAs: the first k-iteration and the end.
fn segments(stream_k: &StreamK) -> BTreeMap<usize, Vec<(usize, usize)>> {
    let mut tiles = BTreeMap::<_, Vec<_>>::new();
    for y in 0..=stream_k.data_parallel_waves {
        for x in 0..stream_k.ctas {
            let mut work = stream_k.work(x, y);
            while work.begin < work.end {
                let segment = stream_k.segment(work);
                let of_tile = tiles.entry(segment.tile).or_default();
                of_tile.push((segment.from, segment.to));
                let whole = (segment.from, segment.to) == (0, stream_k.k_iterations);
                assert_eq!(stream_k.covers_tile(segment), whole);
                work.begin += segment.to - segment.from;
            }
        }
    }
    tiles
}

#[test]
fn ctas_divide_every_tile_without_gaps_and_into_no_more_segments_than_said() {
    for (m, n, depth) in [(1, 1, 1), (64, 64, 0), (300, 130, 70), (257, 500, 1000)] {
        for (ctas, waves) in [(1, 0), (3, 0), (4, 1), (5, 0), (8, 0), (16, 1)] {
            let stream_k = StreamK::new((m, n, depth), (64, 64, 8), ctas, waves);
            let tiles = stream_k.tile_rows * stream_k.tile_cols;
            if waves * ctas >= tiles {
                continue;
            }
            let of_tiles = segments(&stream_k);
            let what = format!("{m} x {n} x {depth}, {ctas} CTAs, {waves} waves");
            assert!(of_tiles.keys().copied().eq(0..tiles), "{what}");
            for of_tile in of_tiles.values() {
                let mut end = 0;
                for &(from, to) in of_tile {
                    assert_eq!(from, end, "{what}");
                    end = to;
                }
                assert_eq!(end, stream_k.k_iterations, "{what}");
            }
            let most = of_tiles.values().map(Vec::len).max();
            assert!(most <= Some(stream_k.max_segments()), "{what}");
            // With enough k-iterations, `max_segments` is at most one too high.
            if stream_k.k_iterations > 2 * ctas {
                assert!(most >= Some(stream_k.max_segments() - 1), "{what}");
            }
            if (ctas, waves) == (tiles, 0) {
                assert_eq!(stream_k.max_segments(), 1, "{what}");
            }
        }
    }
}
