//! The matrices with what one block needs of them, the block's tile with what one thread computes, drawn in text. Large
//! sizes are drawn larger than small ones, roughly; numbers say how large.
//!
//! ```text
//!                          4096
//!                    128
//!                   ┌─────┬──────────┐
//!                   │░░░░░│          │
//!                 8 ├─────┤        B │ 4096
//!                   │     │          │
//!                   └─────┴──────────┘
//!      8
//!     ┌───┬───────┐ ┌─────┬──────────┐
//! 128 │░░░│       │ │block│          │
//!     ├───┴───────┤ ├─────┘          │ 4096
//!     │         A │ │              C │
//!     └───────────┘ └────────────────┘
//! ```

use gpu_kernels::spec::{Grid, Stages, Variant};

use super::canvas::{Canvas, Rectangle};
use crate::problem::Shape;

/// What a side of a matrix is drawn with, in columns and in rows.
const COLUMNS: Range = Range {
    least: 12,
    most: 32,
};
const ROWS: Range = Range { least: 5, most: 10 };
/// The least that a part of it is drawn with, so that a number fits above it.
const PART_COLUMNS: usize = 6;
const PART_ROWS: usize = 2;
/// Where the drawings of A and C begin.
const MARGIN: usize = 10;

struct Range {
    least: usize,
    most: usize,
}

/// A length to draw, of `longest` that is drawn with the most.
fn scaled(size: usize, longest: usize, range: &Range) -> usize {
    let share = size as f64 / longest.max(1) as f64;
    ((range.most as f64 * share).round() as usize).clamp(range.least, range.most)
}

/// A part of a side that is drawn with `drawn`: all of it, or at least `least` and at most half.
fn part(size: usize, whole: usize, drawn: usize, least: usize) -> usize {
    if size >= whole {
        return drawn;
    }
    let share = size as f64 / whole as f64;
    ((drawn as f64 * share).round() as usize).clamp(least.min(drawn / 2), drawn / 2 + 1)
}

/// The drawing, as lines.
pub(super) fn draw(variant: &Variant, shape: Shape) -> String {
    format!("{}\n{}", matrices(variant, shape), block(variant, shape))
}

/// A and B with what one block reads of them, C with what it computes.
fn matrices(variant: &Variant, shape: Shape) -> String {
    let Shape { m, n, k } = shape;
    let longest = m.max(n).max(k);
    let (m_rows, k_rows) = (scaled(m, longest, &ROWS), scaled(k, longest, &ROWS));
    let (n_columns, k_columns) = (scaled(n, longest, &COLUMNS), scaled(k, longest, &COLUMNS));
    let (rows, columns) = covered(variant, shape);
    let (tile_rows, tile_columns) = (
        part(rows, m, m_rows, PART_ROWS),
        part(columns, n, n_columns, PART_COLUMNS),
    );
    let depth = variant.tile.k as usize;

    let mut canvas = Canvas::default();
    let c = Rectangle {
        x: MARGIN + k_columns + 3,
        y: k_rows + 5,
        width: n_columns,
        height: m_rows,
    };
    let b = Rectangle {
        y: 2,
        height: k_rows,
        ..c
    };
    let a = Rectangle {
        x: MARGIN,
        width: k_columns,
        ..c
    };

    // What the block reads in its first step: tiles, or all that it needs.
    let a_read = Rectangle {
        width: match variant.stages {
            Stages::Nothing => k_columns,
            Stages::RowOfA | Stages::Tiles => part(depth, k, k_columns, PART_COLUMNS),
        },
        height: tile_rows,
        ..a
    };
    let b_read = Rectangle {
        width: tile_columns,
        height: match variant.stages {
            Stages::Nothing | Stages::RowOfA => k_rows,
            Stages::Tiles => part(depth, k, k_rows, PART_ROWS),
        },
        ..b
    };
    let c_tile = Rectangle {
        width: tile_columns,
        height: tile_rows,
        ..c
    };
    for (read, letter) in [(a_read, '░'), (b_read, '░'), (c_tile, '▒')] {
        canvas.rectangle(read);
        canvas.fill(read, letter);
    }
    for (name, whole) in [("A", a), ("B", b), ("C", c)] {
        canvas.rectangle(whole);
        let (x, y) = (whole.x + whole.width - 2, whole.y + whole.height - 1);
        canvas.text(x, y, name);
    }
    // B's rows and C's at the right.
    for (rows, whole) in [(k, b), (m, c)] {
        let (x, y) = (whole.x + whole.width + 2, whole.y + whole.height / 2);
        canvas.text(x, y, &rows.to_string());
    }

    // Along the top of B the columns of C, along the top of A its columns; at the left, rows.
    canvas.text(
        b.x + n_columns.saturating_sub(digits(n)) / 2,
        0,
        &n.to_string(),
    );
    canvas.text(
        a.x + k_columns.saturating_sub(digits(k)) / 2,
        a.y - 2,
        &k.to_string(),
    );
    if tile_columns < n_columns {
        canvas.text(b.x + 1, 1, &columns.to_string());
    }
    if a_read.width < a.width {
        canvas.text(a.x + 1, a.y - 1, &depth.to_string());
    }
    if b_read.height < b.height {
        let label = depth.to_string();
        canvas.text(b.x - 2 - digits(depth), b.y + b_read.height / 2, &label);
    }
    if tile_rows < m_rows {
        let label = rows.to_string();
        canvas.text(
            a.x.saturating_sub(2 + digits(rows)),
            a.y + tile_rows / 2,
            &label,
        );
    }
    canvas.show()
}

/// Rows and columns of C that a block computes at a time.
fn covered(variant: &Variant, shape: Shape) -> (usize, usize) {
    let (tile_m, tile_n) = (variant.tile.m as usize, variant.tile.n as usize);
    match variant.grid {
        Grid::Tiles | Grid::Rows | Grid::Streams => (tile_m.min(shape.m), tile_n.min(shape.n)),
        // Elements in a row, as far as the row goes.
        Grid::Linear => (1, tile_n.min(shape.n)),
    }
}

/// A block's tile with the patches of its threads.
fn block(variant: &Variant, shape: Shape) -> String {
    let (rows, columns) = covered(variant, shape);
    let (tile_m, tile_n) = (variant.tile.m as usize, variant.tile.n as usize);
    let (patch_m, patch_n) = variant.patch();
    let (patch_m, patch_n) = (patch_m as usize, patch_n as usize);
    let longest = tile_m.max(tile_n);
    let (height, width) = match tile_m {
        1 => (2, scaled(tile_n, longest, &COLUMNS)),
        _ => (
            scaled(tile_m, longest, &ROWS),
            scaled(tile_n, longest, &COLUMNS),
        ),
    };
    let (patch_rows, patch_columns) = (
        part(patch_m, tile_m, height, PART_ROWS),
        part(patch_n, tile_n, width, PART_COLUMNS),
    );
    let mut canvas = Canvas::default();
    let tile = Rectangle {
        x: MARGIN,
        y: 2,
        width,
        height,
    };
    let thread = Rectangle {
        width: patch_columns,
        height: patch_rows,
        ..tile
    };
    canvas.rectangle(thread);
    canvas.fill(thread, '▓');
    canvas.rectangle(tile);
    canvas.text(
        tile.x + width.saturating_sub(digits(tile_n)) / 2,
        0,
        &tile_n.to_string(),
    );
    canvas.text(tile.x + 1, 1, &patch_n.to_string());
    if patch_rows < height {
        let label = patch_m.to_string();
        let x = tile.x.saturating_sub(2 + digits(patch_m));
        canvas.text(x, tile.y + patch_rows / 2, &label);
    }
    let right = tile.x + width + 2;
    let middle = tile.y + height / 2;
    let block = variant.block;
    canvas.text(right, middle, &tile_m.to_string());
    let beside = right + digits(tile_m) + 3;
    let words = [
        match variant.grid {
            Grid::Tiles | Grid::Streams => format!(
                "▒ one block's {rows} x {columns} of C: {} x {} threads",
                block.x, block.y
            ),
            Grid::Rows => format!(
                "▒ one block's row of C, {columns} columns at a time: {} threads",
                block.threads()
            ),
            Grid::Linear => format!(
                "▒ one block's elements, one after the other: {} threads",
                block.threads()
            ),
        },
        match patch_m * patch_n {
            1 => "▓ one thread's element".to_string(),
            _ => format!("▓ one thread's {patch_m} x {patch_n} of it (the kernel may spread them)"),
        },
        match variant.stages {
            Stages::Nothing => "░ what the block reads, from global memory",
            Stages::RowOfA => "░ what it reads: A through shared memory, B from global",
            Stages::Tiles => "░ what it has in shared memory at a time",
        }
        .to_string(),
    ];
    let first = middle.saturating_sub(1).max(1);
    for (index, line) in words.iter().enumerate() {
        canvas.text(beside, first + index, line);
    }
    canvas.show()
}

fn digits(number: usize) -> usize {
    number.to_string().len()
}
