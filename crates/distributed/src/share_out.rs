//! Who gets what: pure functions of shape and rank count.

use std::fmt;
use std::ops::Range;

use gpu_gemm::Shape;
use serde::Serialize;

/// The part with this index of `total` things that are shared out in order: as equally as can be,
/// the first `total % parts` parts having one more.
///
/// # Panics
///
/// If there is no such part.
pub fn share(total: usize, parts: usize, index: usize) -> Range<usize> {
    assert!(index < parts, "part {index} of {parts}");
    let (each, more) = (total / parts, total % parts);
    let start = index * each + index.min(more);
    start..start + each + usize::from(index < more)
}

/// The largest part.
pub fn largest_share(total: usize, parts: usize) -> usize {
    total.div_ceil(parts)
}

/// A block of C.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub rows: Range<usize>,
    pub columns: Range<usize>,
}

impl Block {
    /// How many elements it has.
    pub fn elements(&self) -> u64 {
        (self.rows.len() * self.columns.len()) as u64
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.elements() == 0
    }
}

/// Ranks in `rows x columns` (p x q), row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub struct Grid {
    pub rows: usize,
    pub columns: usize,
}

impl Grid {
    /// Ranks below each other: each has rows of C.
    pub fn column(ranks: usize) -> Grid {
        Grid {
            rows: ranks,
            columns: 1,
        }
    }

    /// The grid of exactly this many ranks for which a rank's rows of A and columns of B, m/p and
    /// n/q, add up to the least; of two that are as good, the one with more rows.
    ///
    /// # Panics
    ///
    /// If there are no ranks.
    pub fn of(ranks: usize, shape: Shape) -> Grid {
        assert!(ranks > 0, "a grid of no ranks");
        let sides =
            |grid: &Grid| largest_share(shape.m, grid.rows) + largest_share(shape.n, grid.columns);
        let grids = (1..=ranks).rev().filter(|rows| ranks.is_multiple_of(*rows));
        let mut best = Grid::column(ranks);
        for rows in grids {
            let grid = Grid {
                rows,
                columns: ranks / rows,
            };
            if sides(&grid) < sides(&best) {
                best = grid;
            }
        }
        best
    }

    /// How many ranks it has.
    pub fn ranks(self) -> usize {
        self.rows * self.columns
    }

    /// The row and the column of a rank.
    pub fn place(self, rank: usize) -> (usize, usize) {
        (rank / self.columns, rank % self.columns)
    }

    /// The block of C that a rank computes.
    pub fn block(self, shape: Shape, rank: usize) -> Block {
        let (row, column) = self.place(rank);
        Block {
            rows: share(shape.m, self.rows, row),
            columns: share(shape.n, self.columns, column),
        }
    }
}

/// `2 x 3`.
impl fmt::Display for Grid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} x {}", self.rows, self.columns)
    }
}

/// `0..size` in panels of `width`. Wherever one of `parts` equal shares of it ends, a panel does,
/// too, and the next one begins there: the last one before may be narrower.
pub fn panels(size: usize, width: usize, parts: &[usize]) -> Vec<Range<usize>> {
    let shares = |&parts: &usize| (0..parts).map(move |index| share(size, parts, index).end);
    let mut ends: Vec<usize> = parts.iter().flat_map(shares).chain([size]).collect();
    ends.sort_unstable();
    let mut start = 0;
    let between = ends
        .into_iter()
        .map(|end| std::mem::replace(&mut start, end)..end);
    between
        .flat_map(|share| {
            let starts = share.clone().step_by(width);
            starts.map(move |start| start..share.end.min(start + width))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_uses_every_rank_and_follows_the_shape() {
        let grid = |ranks, m, n| {
            let grid = Grid::of(ranks, Shape::new(m, n, 5));
            assert_eq!(grid.ranks(), ranks);
            (grid.rows, grid.columns)
        };
        assert_eq!(grid(1, 10, 10), (1, 1));
        assert_eq!(grid(4, 100, 100), (2, 2));
        assert_eq!(grid(6, 100, 100), (3, 2));
        assert_eq!(grid(7, 100, 100), (7, 1));
        assert_eq!(grid(6, 10, 1000), (1, 6));
        assert_eq!(grid(12, 1000, 100), (12, 1));
    }

    #[test]
    fn panels_end_where_shares_do() {
        assert_eq!(panels(10, 4, &[]), [0..4, 4..8, 8..10]);
        assert_eq!(panels(10, 4, &[3]), [0..4, 4..7, 7..10]);
        assert_eq!(panels(10, 2, &[2]), [0..2, 2..4, 4..5, 5..7, 7..9, 9..10]);
        assert_eq!(panels(10, 3, &[1, 2]), [0..3, 3..5, 5..8, 8..10]);
        assert_eq!(panels(2, 4, &[3, 5]), [0..1, 1..2]);
        assert_eq!(panels(0, 4, &[3]), []);
    }
}
