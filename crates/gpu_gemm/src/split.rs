//! How one product is divided among several devices: a pure function of its shape and their
//! number.
//!
//! ```text
//!                     B, by columns             p x q = 2 x 2 devices, 0 1 in the first row
//!                | b0 | b2 || b1 | b3 |                            and 2 3 in the second
//!
//!     A,  | a0 | |  device ||  device |         Device d begins with panel d of A's rows and
//!     by  | a1 | |    0    ||    1    |         panel d of B's columns. From others it gets
//!     rows ====  |=========||=========|         the q panels of A in its rows of C, and the p
//!         | a2 | |  device ||  device |         panels of B in its columns. Every element of C
//!         | a3 | |    2    ||    3    |         is computed once, with all of k.
//! ```
//!
//! The elements that the device in row i and column j of the grid receives, with even panels:
//! `m * k / p * (q - 1) / q` of A, and `k * n / q * (p - 1) / p` of B. In row panels (q = 1) that
//! is `k * n * (p - 1) / p`, which hardly falls with the number of devices; in a square grid it
//! falls with the square root of their number.

use std::ops::Range;

use crate::call::Shape;

/// The unit in which large matrices are cut: a multiple of kernels' tiles.
const UNIT: usize = 128;

/// The fewest units in a panel: with fewer, panels would differ too much in size.
const MIN_UNITS: usize = 8;

/// The division of a product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    shape: Shape,
    /// The grid: devices along the rows of C, and along its columns.
    grid: (usize, usize),
    /// The first row of each panel of A, and the end of the last.
    rows: Vec<usize>,
    /// The first column of each panel of B, and the end of the last.
    columns: Vec<usize>,
}

/// A part of a device's block of C: the product of one panel of A and one of B.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The panels, each given by the device that begins with it.
    pub a: usize,
    pub b: usize,
    /// The rows and columns of C.
    pub rows: Range<usize>,
    pub columns: Range<usize>,
}

/// A step of a device while its own panels arrive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The arriving part of a panel: rows of A, or columns of B.
    pub arrives: Option<(Panel, Range<usize>)>,
    /// The block that can be computed after it; `None` if the block is empty.
    pub block: Option<Block>,
}

/// A panel, which is sent between devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Panel {
    /// The rows of A that a device begins with.
    A(usize),
    /// The columns of B that a device begins with.
    B(usize),
}

impl Split {
    /// The split for this many devices, at least one, with the grid that minimises the most
    /// elements that a device receives; of equal ones, the grid with more rows. Up to three
    /// devices have panels of rows or columns.
    pub fn of(shape: Shape, devices: usize) -> Split {
        let devices = devices.max(1);
        let heights = (1..=devices).rev();
        let grids = heights.filter(|height| devices.is_multiple_of(*height));
        let splits = grids.map(|height| Split::with_grid(shape, (height, devices / height)));
        let cost = |split: &Split| {
            // An idle device is worse than any number of elements.
            let idle = (0..devices).filter(|&device| split.block(device).2);
            (idle.count(), split.most_received())
        };
        splits
            .min_by_key(cost)
            .unwrap_or_else(|| Split::with_grid(shape, (devices, 1)))
    }

    /// The split for a grid of devices, `p` along the rows of C and `q` along its columns; neither
    /// is 0.
    pub fn with_grid(shape: Shape, (p, q): (usize, usize)) -> Split {
        Split {
            shape,
            grid: (p, q),
            rows: cuts(shape.m, p * q),
            columns: cuts(shape.n, p * q),
        }
    }

    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The devices along the rows of C, and along its columns.
    pub fn grid(&self) -> (usize, usize) {
        self.grid
    }

    /// The number of devices.
    pub fn devices(&self) -> usize {
        self.grid.0 * self.grid.1
    }

    /// The rows of A that a device begins with.
    pub fn rows_of_a(&self, device: usize) -> Range<usize> {
        self.rows[device]..self.rows[device + 1]
    }

    /// The columns of B that a device begins with.
    pub fn columns_of_b(&self, device: usize) -> Range<usize> {
        let (p, q) = self.grid;
        let (row, column) = (device / q, device % q);
        let panel = column * p + row;
        self.columns[panel]..self.columns[panel + 1]
    }

    /// The rows and columns of C that a device computes.
    pub fn block_of_c(&self, device: usize) -> (Range<usize>, Range<usize>) {
        let (rows, columns, _) = self.block(device);
        (rows, columns)
    }

    /// The same, and whether it is empty.
    fn block(&self, device: usize) -> (Range<usize>, Range<usize>, bool) {
        let (p, q) = self.grid;
        let (row, column) = (device / q, device % q);
        let rows = self.rows[row * q]..self.rows[(row + 1) * q];
        let columns = self.columns[column * p]..self.columns[(column + 1) * p];
        let is_empty = rows.is_empty() || columns.is_empty();
        (rows, columns, is_empty)
    }

    /// The blocks that a device computes, in order, without empty ones. It begins with its own
    /// panels, while others are in flight; and every device takes the others' panels in another
    /// order, so that no panel is read by all at once.
    pub fn blocks(&self, device: usize) -> Vec<Block> {
        let (p, q) = self.grid;
        let (row, column) = (device / q, device % q);
        let steps = (0..p).flat_map(|down| (0..q).map(move |right| (down, right)));
        let blocks = steps.map(|(down, right)| {
            let a = row * q + (column + right) % q;
            let b = (row + down) % p * q + column;
            Block {
                a,
                b,
                rows: self.rows_of_a(a),
                columns: self.columns_of_b(b),
            }
        });
        blocks
            .filter(|block| !block.rows.is_empty() && !block.columns.is_empty())
            .collect()
    }

    /// The pieces in which a device's own panels arrive, in order, A and B alternating; each has
    /// at least `least_lines` lines, if the panel has.
    ///
    /// ```text
    ///              b0   b1   b2
    ///         a0 | 1  | 3  | 5  |      a0 and b0 arrive, and 1 is multiplied; a1, and 2; b1, and
    ///         a1 | 2  | 3  | 5  |      3; and so on. Each product is a rectangle of C, with all
    ///         a2 | 4  | 4  | 5  |      of the other panel that is there.
    /// ```
    pub fn pieces(&self, device: usize, least_lines: usize) -> Vec<Piece> {
        let (of_a, of_b) = (self.rows_of_a(device), self.columns_of_b(device));
        let (mut rows, mut columns) = (of_a.start..of_a.start, of_b.start..of_b.start);
        let (cuts_of_a, cuts_of_b) = (coarse(&of_a, least_lines), coarse(&of_b, least_lines));
        let own = |rows: Range<usize>, columns: Range<usize>| {
            let is_empty = rows.is_empty() || columns.is_empty();
            (!is_empty).then_some(Block {
                a: device,
                b: device,
                rows,
                columns,
            })
        };
        let mut pieces = Vec::new();
        for index in 0..cuts_of_a.len().max(cuts_of_b.len()) {
            if let Some(lines) = cuts_of_a.get(index).cloned() {
                rows.end = lines.end;
                pieces.push(Piece {
                    block: own(lines.clone(), columns.clone()),
                    arrives: Some((Panel::A(device), lines)),
                });
            }
            if let Some(lines) = cuts_of_b.get(index).cloned() {
                columns.end = lines.end;
                pieces.push(Piece {
                    block: own(rows.clone(), lines.clone()),
                    arrives: Some((Panel::B(device), lines)),
                });
            }
        }
        pieces
    }

    /// A device's pieces that need remote panels, which come after its own, in order; each has at
    /// least `least_lines` columns.
    pub fn pieces_with_others(&self, device: usize, least_lines: usize) -> Vec<Piece> {
        let blocks = self.blocks(device).into_iter();
        let others = blocks.filter(|block| (block.a, block.b) != (device, device));
        let parts = others.flat_map(|block| {
            let parts = coarse(&block.columns, least_lines).into_iter();
            parts.map(move |columns| Piece {
                arrives: None,
                block: Some(Block {
                    columns,
                    ..block.clone()
                }),
            })
        });
        parts.collect()
    }

    /// The remote panels that a device needs, in the order in which it needs them.
    pub fn receives(&self, device: usize) -> Vec<Panel> {
        let mut panels = Vec::new();
        for block in self.blocks(device) {
            for (panel, of) in [(Panel::A(block.a), block.a), (Panel::B(block.b), block.b)] {
                if of != device && !panels.contains(&panel) {
                    panels.push(panel);
                }
            }
        }
        panels
    }

    /// The elements of a panel.
    pub fn elements(&self, panel: Panel) -> usize {
        let lines = match panel {
            Panel::A(device) => self.rows_of_a(device).len(),
            Panel::B(device) => self.columns_of_b(device).len(),
        };
        lines.saturating_mul(self.shape.k)
    }

    /// The elements that a device receives from others.
    pub fn received(&self, device: usize) -> usize {
        let panels = self.receives(device).into_iter();
        panels.map(|panel| self.elements(panel)).sum()
    }

    /// The most elements that a device receives.
    pub fn most_received(&self) -> usize {
        let devices = 0..self.devices();
        devices
            .map(|device| self.received(device))
            .max()
            .unwrap_or(0)
    }
}

/// The cuts of `size` lines for `parts` panels: almost even, at multiples of a power of two that
/// grows with the panels.
fn cuts(size: usize, parts: usize) -> Vec<usize> {
    let mut unit = UNIT;
    while unit > 1 && size / unit < MIN_UNITS * parts {
        unit /= 2;
    }
    let units = size.div_ceil(unit);
    (0..=parts)
        .map(|part| (units * part / parts * unit).min(size))
        .collect()
}

/// The most pieces of a panel: smaller pieces would be multiplied too slowly.
const MOST_PIECES: usize = 4;

/// Parts of these lines, of at least `least_lines` each, or all of them; at most [`MOST_PIECES`].
fn coarse(lines: &Range<usize>, least_lines: usize) -> Vec<Range<usize>> {
    let parts = (lines.len() / least_lines.max(1)).clamp(1, MOST_PIECES);
    let cuts = cuts(lines.len(), parts);
    let parts = cuts
        .windows(2)
        .map(|cut| lines.start + cut[0]..lines.start + cut[1]);
    parts.filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Shapes with sizes that no number of devices divides, with fewer lines than devices, and
    /// with none.
    const SHAPES: [Shape; 8] = [
        Shape::cube(4096),
        Shape::new(1000, 777, 123),
        Shape::new(5, 3000, 64),
        Shape::new(3000, 2, 64),
        Shape::new(1, 1, 1),
        Shape::new(0, 8, 8),
        Shape::new(8, 0, 8),
        Shape::new(300, 200, 0),
    ];

    fn every_split() -> impl Iterator<Item = Split> {
        let counts = 1..=12;
        counts.flat_map(|devices| {
            let grids = (1..=devices).filter(move |p| devices % p == 0);
            let grids: Vec<_> = grids.map(|p| (p, devices / p)).collect();
            SHAPES.into_iter().flat_map(move |shape| {
                let grids = grids.clone().into_iter();
                let splits = grids.map(move |grid| Split::with_grid(shape, grid));
                splits.chain([Split::of(shape, devices)])
            })
        })
    }

    #[test]
    fn every_element_of_c_is_computed_by_one_device_once() {
        for split in every_split() {
            let Shape { m, n, .. } = split.shape();
            let mut elements = 0;
            let mut corners = BTreeSet::new();
            for device in 0..split.devices() {
                let (rows, columns) = split.block_of_c(device);
                for block in split.blocks(device) {
                    assert_eq!(block.rows, split.rows_of_a(block.a));
                    assert_eq!(block.columns, split.columns_of_b(block.b));
                    assert!(rows.start <= block.rows.start && block.rows.end <= rows.end);
                    assert!(columns.start <= block.columns.start);
                    assert!(block.columns.end <= columns.end);
                    elements += block.rows.len() * block.columns.len();
                    assert!(corners.insert((block.rows.start, block.columns.start)));
                }
            }
            // Panels do not overlap, so this number of elements is all of them.
            assert_eq!(elements, m * n, "{split:?}");
        }
    }

    #[test]
    fn a_device_begins_with_its_own_panels_and_receives_each_other_one_once() {
        for split in every_split() {
            for device in 0..split.devices() {
                let blocks = split.blocks(device);
                let own = |block: &&Block| block.a == device && block.b == device;
                // The device's own panels may be empty.
                let has_own = blocks.iter().any(|block| own(&block));
                assert!(!has_own || own(&&blocks[0]), "{split:?}");
                let received = split.receives(device);
                let unique: BTreeSet<&Panel> = received.iter().collect();
                assert_eq!(unique.len(), received.len());
            }
        }
    }

    #[test]
    fn a_product_in_pieces_is_all_of_it_once_and_waits_for_what_it_reads() {
        for split in every_split() {
            for (device, least) in (0..split.devices()).flat_map(|of| [(of, 1), (of, 7)]) {
                let (rows, columns) = split.block_of_c(device);
                let mut arrived = [split.rows_of_a(device), split.columns_of_b(device)];
                let own = arrived.clone();
                arrived.iter_mut().for_each(|lines| lines.end = lines.start);
                let mut elements = 0;
                let mut corners = BTreeSet::new();
                let mut count = |block: &Block| {
                    elements += block.rows.len() * block.columns.len();
                    assert!(corners.insert((block.rows.start, block.columns.start)));
                    assert!(rows.start <= block.rows.start && block.rows.end <= rows.end);
                    assert!(columns.start <= block.columns.start);
                    assert!(block.columns.end <= columns.end);
                };
                for piece in split.pieces(device, least) {
                    let (panel, arriving) = piece.arrives.unwrap();
                    let lines = match panel {
                        Panel::A(_) => &mut arrived[0],
                        Panel::B(_) => &mut arrived[1],
                    };
                    assert_eq!(arriving.start, lines.end);
                    assert!(arriving.len() >= least || arriving.start == lines.start);
                    lines.end = arriving.end;
                    if let Some(block) = piece.block {
                        assert!(block.rows.end <= arrived[0].end);
                        assert!(block.columns.end <= arrived[1].end);
                        count(&block);
                    }
                }
                assert_eq!(arrived, own, "{split:?}");
                for piece in split.pieces_with_others(device, least) {
                    let block = piece.block.unwrap();
                    let (of_a, of_b) = (split.rows_of_a(block.a), split.columns_of_b(block.b));
                    assert_eq!(block.rows, of_a);
                    assert!(of_b.start <= block.columns.start && block.columns.end <= of_b.end);
                    count(&block);
                }
                assert_eq!(elements, rows.len() * columns.len(), "{split:?}");
            }
        }
    }

    #[test]
    fn large_panels_arrive_in_a_few_pieces_and_products_grow_with_them() {
        let split = Split::of(Shape::cube(8192), 2);
        let pieces = split.pieces(1, 2048);
        let sizes: Vec<_> = pieces
            .iter()
            .filter_map(|piece| piece.block.as_ref())
            .map(|block| (block.rows.len(), block.columns.len()))
            .collect();
        assert_eq!(sizes, [(2048, 2048), (2048, 2048), (4096, 2048)]);
        assert_eq!(split.pieces_with_others(1, 2048).len(), 2);
        assert_eq!(split.pieces(1, 1).len(), 2 * MOST_PIECES);
        assert_eq!(split.pieces(1, 8192).len(), 2);
    }

    #[test]
    fn even_panels_are_as_many_elements_as_the_formulas_say() {
        let Shape { m, n, k } = Shape::new(4096, 8192, 1024);
        for (p, q) in [(1, 1), (2, 1), (1, 2), (4, 1), (2, 2), (2, 4), (8, 1)] {
            let split = Split::with_grid(Shape { m, n, k }, (p, q));
            let of_a = m * k / p * (q - 1) / q;
            let of_b = k * n / q * (p - 1) / p;
            for device in 0..p * q {
                assert_eq!(split.received(device), of_a + of_b, "{p} x {q}");
            }
        }
    }

    #[test]
    fn few_devices_get_panels_and_many_a_grid_that_sends_less() {
        let grid = |m, n, devices| Split::of(Shape::new(m, n, 64), devices).grid();
        assert_eq!(grid(4096, 4096, 1), (1, 1));
        assert_eq!(grid(4096, 4096, 2), (2, 1));
        assert_eq!(grid(4096, 4096, 3), (3, 1));
        assert_eq!(grid(4096, 4096, 4), (2, 2));
        assert_eq!(grid(4096, 4096, 8), (4, 2));
        // A is smaller, so A is sent.
        assert_eq!(grid(512, 16384, 2), (1, 2));
        assert_eq!(grid(16384, 512, 4), (4, 1));
        // No device is idle, whatever it costs.
        assert_eq!(grid(1, 4096, 2), (1, 2));
    }

    #[test]
    fn large_panels_are_cut_at_tiles_and_small_ones_almost_evenly() {
        assert_eq!(cuts(16384, 2), [0, 8192, 16384]);
        assert_eq!(cuts(1000, 2), [0, 512, 1000]);
        assert_eq!(cuts(33, 2), [0, 16, 33]);
        assert_eq!(cuts(5, 2), [0, 2, 5]);
        assert_eq!(cuts(1, 3), [0, 0, 0, 1]);
        assert_eq!(cuts(0, 2), [0, 0, 0]);
    }
}
