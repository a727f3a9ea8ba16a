//! Copies of boxes: what lands where, when, and what a missing wait or fence does.

#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the contract of each call is what its test is about"
)]

use cuda_std::mbarrier::{self, Mbarrier};
use cuda_std::simulator::{BarrierSite, Launch, Report};
use cuda_std::tma::{self, Planes, Swizzle, TensorMap, Tiles};
use cuda_std::{shared, shared_array, thread};
use std::sync::Mutex;

const SWIZZLES: [Swizzle; 4] = [
    Swizzle::None,
    Swizzle::Bytes32,
    Swizzle::Bytes64,
    Swizzle::Bytes128,
];

/// 16 bytes at a multiple of 16.
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Aligned([u16; 8]);

/// A matrix of 20 rows of 40 elements, 48 apart; element (row, col) is 100 * row + col.
struct Matrix(Vec<Aligned>);

impl Matrix {
    const WIDTH: usize = 40;
    const HEIGHT: usize = 20;
    const LEADING: usize = 48;

    fn new() -> Self {
        let value = |i: usize| (100 * (i / Self::LEADING) + i % Self::LEADING) as u16;
        let piece = |first: usize| Aligned(std::array::from_fn(|i| value(8 * first + i)));
        Self((0..Self::HEIGHT * Self::LEADING / 8).map(piece).collect())
    }

    fn get(&self, row: usize, col: usize) -> u16 {
        let i = row * Self::LEADING + col;
        self.0[i / 8].0[i % 8]
    }

    fn tiles(&mut self, box_width: usize, box_height: usize, swizzle: Swizzle) -> Tiles {
        Tiles {
            global: self.0.as_mut_ptr().cast(),
            element_bytes: 2,
            rounds_to_tf32: false,
            width: Self::WIDTH,
            height: Self::HEIGHT,
            row_bytes: 2 * Self::LEADING,
            planes: None,
            box_width,
            box_height,
            swizzle,
        }
    }
}

/// The address of element (row, col) of a box: by the picture in the PTX ISA, which counts pieces
/// of 16 bytes.
fn place(swizzle: Swizzle, box_width: usize, row: usize, col: usize) -> usize {
    let byte = 2 * (row * box_width + col);
    let (line, piece) = (byte / 128, byte / 16 % 8);
    let moved = match swizzle {
        Swizzle::None => piece,
        Swizzle::Bytes32 => piece ^ (line & 1),
        Swizzle::Bytes64 => piece ^ (line & 3),
        Swizzle::Bytes128 => piece ^ (line & 7),
    };
    64 * line + 8 * moved + byte % 16 / 2
}

/// Loads a box, waits, and returns the elements in shared memory.
fn load(launch: Launch, map: TensorMap, elements: usize, at: &[u32]) -> (Vec<u16>, Report) {
    let seen = Mutex::new(Vec::new());
    let bytes = 2 * elements as u32;
    let launch = launch.dynamic_shared_bytes(bytes as usize);
    let report = launch.run(|| {
        let tile = shared::dynamic_shared_mem_aligned::<u16, 1024>();
        let full = shared_array![Mbarrier; 1];
        unsafe {
            mbarrier::init(full, 1);
            mbarrier::fence_init();
            mbarrier::arrive_expect_tx(full, bytes);
            match *at {
                [x, y] => tma::load_2d(tile, &map, x, y, full),
                [x, y, z] => tma::load_3d(tile, &map, x, y, z, full),
                _ => panic!("{at:?}"),
            }
            mbarrier::wait(full, 0);
            *seen.lock().unwrap() = (0..elements).map(|i| *tile.add(i)).collect();
        }
    });
    (seen.into_inner().unwrap(), report.unwrap())
}

#[test]
fn a_box_lands_swizzled_and_is_zero_out_of_bounds() {
    let mut matrix = Matrix::new();
    for swizzle in SWIZZLES {
        let width = swizzle.row_bytes().map_or(24, |bytes| bytes / 2);
        let map = matrix.tiles(width, 16, swizzle).simulated().unwrap();
        for (x, y) in [(0, 0), (8, 3), (25, 10), (40, 2), (0, 20)] {
            let (seen, _) = load(Launch::new(1, 1), map, 16 * width, &[x, y]);
            for (row, col) in (0..16).flat_map(|row| (0..width).map(move |col| (row, col))) {
                let (from_row, from_col) = (y as usize + row, x as usize + col);
                let expected = match from_row < Matrix::HEIGHT && from_col < Matrix::WIDTH {
                    true => matrix.get(from_row, from_col),
                    false => 0,
                };
                let found = seen[place(swizzle, width, row, col)];
                assert_eq!(
                    found, expected,
                    "{swizzle:?}, box at ({x}, {y}), ({row}, {col})"
                );
            }
        }
    }
}

/// Rows of f32, of which the second is out of bounds: loaded as they are, and rounded to tf32.
#[test]
fn a_load_rounds_to_tf32_where_the_map_says_so() {
    // 1 and less than half of tf32's last bit, half of it, more than half; half of it, negative;
    // what becomes infinite; infinity; a subnormal number.
    let bits = [
        0x3F80_0FFF_u32,
        0x3F80_1000,
        0x3F80_1001,
        0xBF80_1000,
        0x7F7F_FFFF,
        0xFF80_0000,
        0x0000_1000,
        0x3F80_0000,
    ];
    let rounded = [
        0x3F80_0000_u32,
        0x3F80_2000,
        0x3F80_2000,
        0xBF80_2000,
        0x7F80_0000,
        0xFF80_0000,
        0x0000_2000,
        0x3F80_0000,
    ];
    let halves = |words: [u32; 8]| {
        let halves = words.map(|word| [word as u16, (word >> 16) as u16]);
        halves.concat()
    };
    let row = halves(bits);
    let pieces = [0, 8].map(|first| Aligned(std::array::from_fn(|i| row[first + i])));
    for (rounds_to_tf32, expected) in [(false, bits), (true, rounded)] {
        let tiles = Tiles {
            global: pieces.as_ptr().cast(),
            element_bytes: 4,
            rounds_to_tf32,
            width: 8,
            height: 1,
            row_bytes: 32,
            planes: None,
            box_width: 8,
            box_height: 2,
            swizzle: Swizzle::None,
        };
        let (seen, _) = load(Launch::new(1, 1), tiles.simulated().unwrap(), 32, &[0, 0]);
        assert_eq!(seen[..16], halves(expected), "{rounds_to_tf32}");
        assert_eq!(seen[16..], [0; 16]);
    }
}

#[test]
fn a_box_that_nobody_waited_for_has_not_landed() {
    let mut matrix = Matrix::new();
    let map = matrix.tiles(8, 8, Swizzle::None).simulated().unwrap();
    let (_, report) = load(Launch::new(1, 1), map, 64, &[0, 0]);
    let wait = *report.waits.keys().next().unwrap();
    let (seen, _) = load(
        unsafe { Launch::new(1, 1).without_wait(wait) },
        map,
        64,
        &[0, 0],
    );
    assert_eq!(seen, [0xFFFF; 64]);
}

/// Writes a box of 8 x 8 twice into the same shared memory and stores it to two places; returns the
/// matrix, and where threads waited.
fn store(launch: Launch) -> (Matrix, Vec<BarrierSite>) {
    let mut matrix = Matrix::new();
    let map = matrix.tiles(8, 8, Swizzle::None).simulated().unwrap();
    let report = launch.dynamic_shared_bytes(128).run(|| {
        let tile = shared::dynamic_shared_mem_aligned::<u16, 1024>();
        let i = thread::thread_idx_x() as usize;
        for round in 0..2 {
            if i == 0 {
                tma::wait_group_read::<0>(); // the tile may be written
            }
            thread::sync_threads();
            unsafe { *tile.add(i) = 5000 + 1000 * round + i as u16 };
            tma::fence_shared(); // copies see it
            thread::sync_threads();
            if i == 0 {
                // The second reaches out of bounds, at the right and below.
                unsafe { tma::store_2d(&map, 33 * u32::from(round), 15 * u32::from(round), tile) };
                tma::commit_group();
            }
        }
        if i == 0 {
            tma::wait_group::<0>();
        }
    });
    (matrix, report.unwrap().waits.into_keys().collect())
}

#[test]
fn a_missing_fence_or_wait_of_a_store_changes_what_is_stored() {
    let (right, sites) = store(Launch::new(1, 64));
    // The last wait is for the end of the kernel, where stores end by themselves.
    let changing: Vec<bool> = sites
        .iter()
        .map(|&site| {
            let (found, _) = store(unsafe { Launch::new(1, 64).without_wait(site) });
            let places = (0..8).flat_map(|row| (0..8).map(move |col| (row, col)));
            places
                .clone()
                .any(|(row, col)| found.get(row, col) != right.get(row, col))
        })
        .collect();
    assert_eq!(changing, [true, true, false], "{sites:?}");
}

#[test]
fn what_no_gpu_copies_is_refused() {
    let mut matrix = Matrix::new();
    let tiles = matrix.tiles(8, 8, Swizzle::None);
    type Change = (fn(&mut Tiles), &'static str);
    let changed: [Change; 9] = [
        (|tiles| tiles.row_bytes = 40, "multiples of 16"),
        (|tiles| tiles.box_height = 257, "from 1 to 256"),
        (|tiles| tiles.box_width = 12, "24 bytes"),
        (
            |tiles| (tiles.box_width, tiles.swizzle) = (24, Swizzle::Bytes32),
            "48 bytes",
        ),
        (|tiles| tiles.element_bytes = 3, "3 bytes"),
        (|tiles| tiles.rounds_to_tf32 = true, "2 bytes to be rounded"),
        (|tiles| tiles.width = 0, "without elements"),
        (
            |tiles| {
                tiles.planes = Some(Planes {
                    count: 0,
                    bytes: 16,
                })
            },
            "without elements",
        ),
        (
            |tiles| {
                tiles.planes = Some(Planes {
                    count: 2,
                    bytes: 40,
                })
            },
            "matrices 40 bytes apart",
        ),
    ];
    for (change, words) in changed {
        let mut tiles = tiles;
        change(&mut tiles);
        let problem = tiles.simulated().err().unwrap_or_default();
        assert!(problem.contains(words), "{words}: {problem}");
    }

    let map = tiles.simulated().unwrap();
    let assert_said = |words: &str, kernel: &(dyn Fn() + Sync)| {
        let launch = Launch::new(1, 1).dynamic_shared_bytes(512);
        let said = launch.run(kernel).unwrap_err().to_string();
        assert!(said.contains(words), "{said}");
        assert!(said.contains("tests/simulator/tma.rs:"), "{said}");
    };
    let tile = || shared::dynamic_shared_mem_aligned::<u16, 128>();
    assert_said("at a multiple of 128", &|| unsafe {
        tma::load_2d(tile().add(8), &map, 0, 0, shared_array![Mbarrier; 1]);
    });
    assert_said("no barrier", &|| unsafe {
        tma::load_2d(tile(), &map, 0, 0, shared_array![Mbarrier; 1]);
    });
    assert_said("not made for the simulator", &|| unsafe {
        tma::store_2d(&TensorMap([0; 16]), 0, 0, tile());
    });
    assert_said("3 coordinates, by a map of 2 dimensions", &|| unsafe {
        tma::store_3d(&map, 0, 0, 0, tile());
    });
    let stores = |width: usize, x: u32| {
        let tiles = Tiles { width, ..tiles };
        let map = tiles.simulated().unwrap();
        let launch = Launch::new(1, 1).dynamic_shared_bytes(128);
        launch.run(|| unsafe {
            tma::store_2d(&map, x, 0, tile());
            tma::commit_group();
            tma::wait_group_read::<0>();
        })
    };
    // Before the end of a row, at it, beyond it, and across it.
    assert!(stores(37, 24).is_ok() && stores(37, 29).is_ok() && stores(37, 40).is_ok());
    assert!(stores(40, 36).is_ok());
    let ragged = stores(37, 30).unwrap_err().to_string();
    assert!(ragged.contains("pieces of 16 bytes"), "{ragged}");
}

#[test]
fn copies_keep_to_the_memory_that_the_launch_names() {
    let mut matrix = Matrix::new();
    let map = matrix.tiles(8, 8, Swizzle::None).simulated().unwrap();
    let rows = |count: usize| {
        let start = matrix.0.as_ptr().cast::<u8>();
        start..start.wrapping_add(2 * Matrix::LEADING * count)
    };
    let run = |readable: std::ops::Range<*const u8>| {
        let launch = Launch::new(1, 1)
            .dynamic_shared_bytes(128)
            .readable_by_copies([readable]);
        launch.run(|| unsafe {
            let tile = shared::dynamic_shared_mem::<u16>();
            let full = shared_array![Mbarrier; 1];
            mbarrier::init(full, 1);
            tma::load_2d(tile, &map, 0, 4, full);
        })
    };
    assert!(run(rows(12)).is_ok());
    assert!(run(rows(11)).unwrap_err().to_string().contains("row 11"));
}
