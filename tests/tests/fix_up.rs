//! `fix_up` adds all parts of every split tile, in the order that it says, bit for bit: on the simulator, beside sums that were added up here.

use cuda_std::simulator::{Launch, Report, ThreadOrder};
use gpu_kernels::fix_up::{self, fix_up};
use gpu_kernels::spec::Grid;

/// A launch of a kernel that streams, of which only the partial sums matter.
#[derive(Clone, Copy, Debug)]
struct Shared {
    /// Rows and columns of C, and those of a tile.
    c: (usize, usize),
    tile: (usize, usize),
    /// Steps of each tile.
    steps: usize,
    streams: usize,
    whole_waves: usize,
    groups: usize,
}

/// What a tile consists of: the places of its parts, in the order of k.
type Parts = Vec<usize>;

impl Shared {
    fn tiles(&self) -> (usize, usize) {
        let ((m, n), (tile_m, tile_n)) = (self.c, self.tile);
        (m.div_ceil(tile_m), n.div_ceil(tile_n))
    }

    fn shared(&self) -> usize {
        self.tiles().0 * self.tiles().1 - self.whole_waves * self.streams
    }

    /// The parts of each tile that is not handed out whole; none of one that a single block did.
    fn parts(&self) -> Vec<Parts> {
        let steps = self.shared() * self.steps;
        let mut tiles = vec![Parts::new(); self.shared()];
        let mut hands = vec![0; self.shared()];
        for block in 0..self.streams {
            let (begin, end) = (
                block * steps / self.streams,
                (block + 1) * steps / self.streams,
            );
            for tile in begin / self.steps..end.div_ceil(self.steps) {
                hands[tile] += 1;
                // A block begins in its first place, and ends in its second.
                let is_first = tile == begin / self.steps;
                tiles[tile].push(2 * block + usize::from(!is_first));
            }
        }
        for (tile, hands) in tiles.iter_mut().zip(hands) {
            if hands == 1 {
                tile.clear();
            }
        }
        tiles
    }

    /// C after `fix_up`, if it was `before`; and what the launch did.
    fn run(&self, partials: &[f32], before: &[f32], configure: impl Fn(Launch) -> Launch) -> Ran {
        struct Pointer(*mut f32);
        // SAFETY: each thread writes to elements of its own.
        unsafe impl Sync for Pointer {}
        impl Pointer {
            fn get(&self) -> *mut f32 {
                self.0
            }
        }
        let ((m, n), (tile_m, tile_n)) = (self.c, self.tile);
        let blocks = (tile_m * tile_n).div_ceil(fix_up::elements_of_block(self.groups));
        let mut c = before.to_vec();
        let target = Pointer(c.as_mut_ptr());
        let launch = Launch::new(
            (blocks as u32, self.shared() as u32),
            (fix_up::THREADS as u32, 1),
        );
        let report = configure(launch).run(|| {
            // SAFETY: C and the partial sums are as large as these numbers say, and the launch has the shape.
            unsafe {
                fix_up(
                    m,
                    n,
                    self.steps * TILE_K,
                    ALPHA,
                    BETA,
                    target.get(),
                    n,
                    partials.as_ptr(),
                    tile_m,
                    tile_n,
                    TILE_K,
                    self.streams,
                    self.whole_waves,
                    self.groups,
                )
            }
        });
        Ran {
            c,
            report: report.expect("no fault"),
        }
    }
}

struct Ran {
    c: Vec<f32>,
    report: Report,
}

impl Ran {
    fn bits(&self) -> Vec<u32> {
        self.c.iter().map(|element| element.to_bits()).collect()
    }
}

const TILE_K: usize = 8;
/// Products with these are exact.
const ALPHA: f32 = 2.0;
const BETA: f32 = -1.0;

/// Numbers whose sums round, so that another order gives other bits; NaN where no block leaves anything.
fn partials(shared: &Shared) -> Vec<f32> {
    let elements = shared.tile.0 * shared.tile.1;
    let mut partials = vec![f32::NAN; 2 * shared.streams * elements];
    let mut state = 1u32;
    for place in shared.parts().into_iter().flatten() {
        for element in &mut partials[place * elements..(place + 1) * elements] {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *element = (state >> 8) as f32 / 16_777_216.0 - 0.4;
        }
    }
    partials
}

/// Runs of equal length for the groups, each added up by itself; then the groups, in order.
fn sum(parts: &[f32], groups: usize) -> f32 {
    let runs = parts.chunks(parts.len().div_ceil(groups));
    let of_run = |run: &[f32]| run.iter().fold(0.0, |sum, part| sum + part);
    runs.map(of_run)
        .reduce(|sum, run| sum + run)
        .unwrap_or_default()
}

/// Which tile of C has this number: columns of up to eight tiles, one after the other.
fn place(tile: usize, (rows, columns): (usize, usize)) -> (usize, usize) {
    let places = (0..rows).step_by(8).flat_map(|first| {
        (0..columns)
            .flat_map(move |column| (first..rows.min(first + 8)).map(move |row| (row, column)))
    });
    places.into_iter().nth(tile).expect("a tile of C")
}

fn expected(shared: &Shared, partials: &[f32], before: &[f32]) -> Vec<u32> {
    let ((m, n), (tile_m, tile_n)) = (shared.c, shared.tile);
    let mut c = before.to_vec();
    for (tile, places) in shared.parts().into_iter().enumerate() {
        if places.is_empty() {
            continue;
        }
        let whole = shared.whole_waves * shared.streams;
        let (tile_row, tile_col) = place(whole + tile, shared.tiles());
        for element in 0..tile_m * tile_n {
            let (row, col) = (
                tile_row * tile_m + element / tile_n,
                tile_col * tile_n + element % tile_n,
            );
            if row < m && col < n {
                let parts: Vec<f32> = places
                    .iter()
                    .map(|place| partials[place * tile_m * tile_n + element])
                    .collect();
                let old = &mut c[row * n + col];
                *old = BETA * *old + ALPHA * sum(&parts, shared.groups);
            }
        }
    }
    c.iter().map(|element| element.to_bits()).collect()
}

/// Few parts and many, of large tiles and small ones, with edges, after whole tiles or not.
const CASES: [Shared; 10] = [
    shared((200, 100), (128, 128), 10, 5, 0, 1),
    shared((200, 100), (128, 128), 40, 5, 0, 2),
    shared((70, 70), (32, 32), 7, 4, 1, 1),
    shared((126, 250), (64, 128), 9, 7, 0, 1),
    shared((70, 70), (32, 32), 70, 8, 1, 4),
    shared((1, 300), (1, 128), 50, 37, 0, 4),
    shared((1, 299), (1, 128), 50, 150, 0, 8),
    shared((6, 130), (4, 128), 99, 101, 0, 4),
    shared((8, 128), (8, 128), 1000, 264, 0, 16),
    shared((17, 5), (1, 128), 3, 40, 0, 4),
];

const fn shared(
    c: (usize, usize),
    tile: (usize, usize),
    steps: usize,
    streams: usize,
    whole_waves: usize,
    groups: usize,
) -> Shared {
    Shared {
        c,
        tile,
        steps,
        streams,
        whole_waves,
        groups,
    }
}

const ORDERS: [ThreadOrder; 3] = [
    ThreadOrder::Forward,
    ThreadOrder::Reverse,
    ThreadOrder::Random(1),
];

fn before(shared: &Shared) -> Vec<f32> {
    (0..shared.c.0 * shared.c.1)
        .map(|index| (index % 7) as f32 - 3.0)
        .collect()
}

#[test]
fn every_part_is_added_once_in_the_order_that_it_says() {
    for shared in CASES {
        let (partials, before) = (partials(&shared), before(&shared));
        let expected = expected(&shared, &partials, &before);
        for order in ORDERS {
            let ran = shared.run(&partials, &before, |launch| launch.thread_order(order));
            assert!(ran.bits() == expected, "{shared:?}, {order:?}");
        }
    }
}

#[test]
fn another_order_would_give_other_sums() {
    for shared in CASES.iter().filter(|shared| shared.groups > 1) {
        let one_by_one = Shared {
            groups: 1,
            ..*shared
        };
        let (partials, before) = (partials(shared), before(shared));
        let in_groups = expected(shared, &partials, &before);
        if shared
            .parts()
            .iter()
            .any(|parts| parts.len() > 2 * shared.groups)
        {
            assert!(
                in_groups != expected(&one_by_one, &partials, &before),
                "{shared:?}"
            );
        }
    }
}

#[test]
fn groups_wait_for_each_other() {
    for shared in CASES {
        let (partials, before) = (partials(&shared), before(&shared));
        let right = shared.run(&partials, &before, |launch| launch);
        assert_eq!(right.report.barriers.is_empty(), shared.groups == 1);
        for site in right.report.barriers.keys() {
            let differs = |order: &ThreadOrder| {
                let without = |launch: Launch| launch.thread_order(*order).without_barrier(*site);
                shared.run(&partials, &before, without).bits() != right.bits()
            };
            assert!(ORDERS.iter().any(differs), "{shared:?}: {site}");
        }
    }
}

#[test]
fn a_tile_has_as_many_bands_of_rows_as_a_thread_has_places() {
    let streaming = gpu_kernels::KERNELS
        .iter()
        .flat_map(|kernel| kernel.variants);
    for variant in streaming.filter(|variant| variant.grid == Grid::Streams) {
        let elements = (variant.tile.m * variant.tile.n) as usize;
        if fix_up::groups(elements, 2) == 1 {
            let rows = variant.tile.m as usize;
            assert!(rows.is_multiple_of(fix_up::PLACES), "{}", variant.name);
        }
    }
}

#[test]
fn there_are_as_many_groups_as_there_is_use_for() {
    for (elements, parts, groups) in [
        (128 * 128, 2, 1),
        (128 * 128, 12, 1),
        (128 * 128, 13, 2),
        (128 * 128, 17, 4),
        (128, 2, 4),
        (4 * 128, 2, 1),
        (8 * 128, 31, 4),
        (8 * 128, 1000, 16),
        (1, 1, 16),
    ] {
        assert_eq!(
            fix_up::groups(elements, parts),
            groups,
            "{elements}, {parts}"
        );
    }
}
