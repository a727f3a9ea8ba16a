//! A kernel whose CTAs compute tiles of C: the block tile in the matrices, and the tiles of a
//! thread and its warp in it.

use gpu_kernels::spec::{Staging, Variant};

use super::drawing::{Area, Drawing, runs};
use super::writers::writers;

/// Pixels of the side of a block tile, on the left and on the right.
const SMALL: f64 = 72.0;
const LARGE: f64 = 288.0;
/// Pixels of K, for A and B on the left: several tiles, also of a kernel whose tiles are as deep as
/// they are wide.
const DEPTH: f64 = 3.0 * SMALL;
/// Tiles that are thinner than this are not told apart along K.
const THIN: f64 = 4.0;
const TOP: f64 = 56.0;

/// Draws the variant.
pub fn draw(title: &str, variant: &Variant) -> Result<Drawing, String> {
    let tile = variant.tile;
    let longest = f64::from(tile.m.max(tile.n));
    let mut drawing = Drawing::new(title, 860, 520);
    grid(&mut drawing, variant, SMALL / longest);
    block(&mut drawing, variant, LARGE / longest)?;

    let (block, thread_tile) = (variant.block, variant.thread_tile);
    let staged = match variant.staging {
        Staging::Tiles | Staging::Ring { .. } => format!(" x {}", tile.k),
        Staging::None | Staging::RowOfA => ", not staged in shared memory".to_string(),
    };
    let caption = format!(
        "{}: block tile {} x {}{staged}; {} x {} threads; thread tile {} x {}",
        variant.name, tile.m, tile.n, block.x, block.y, thread_tile.0, thread_tile.1
    );
    drawing.text("small", 16.0, 506.0, &caption);
    Ok(drawing)
}

/// The matrices, to scale, and what one CTA reads and writes of them.
fn grid(drawing: &mut Drawing, variant: &Variant, scale: f64) {
    let tile = variant.tile;
    let (height, width) = (f64::from(tile.m) * scale, f64::from(tile.n) * scale);
    let depth = f64::from(tile.k) * scale;
    let (left, top) = (16.0, TOP + 8.0);
    // As many tiles as make C look like a square, and two at least.
    let tiles = |side: f64| (2.0 * SMALL / side).round().max(2.0) as usize;
    let (along_m, along_n) = (tiles(height), tiles(width));
    let c = Area::new(
        (left + DEPTH + 8.0, top + DEPTH + 8.0),
        (along_n as f64 * width, along_m as f64 * height),
    );
    let a = c.columns(left, DEPTH);
    let b = c.rows(top, DEPTH);
    for matrix in [a, b, c] {
        drawing.rectangle("matrix", matrix);
    }
    // A CTA in the middle, at its second k-iteration.
    let own = c
        .columns(c.x + (along_n / 2) as f64 * width, width)
        .rows(c.y + (along_m / 2) as f64 * height, height);
    let start = depth;
    let (rows_of_a, columns_of_b) = (a.rows(own.y, height), b.columns(own.x, width));
    drawing.rectangle("a1", rows_of_a);
    drawing.rectangle("b1", columns_of_b);
    drawing.rectangle("a2", rows_of_a.columns(a.x + start, depth));
    drawing.rectangle("b2", columns_of_b.rows(b.y + start, depth));
    drawing.rectangle("c2", own);
    if depth >= THIN {
        for tile in 1..(DEPTH / depth).ceil() as usize {
            drawing.down("thin", a, a.x + tile as f64 * depth);
            drawing.across("thin", b, b.y + tile as f64 * depth);
        }
    }
    for tile in 1..along_n {
        drawing.down("thin", c, c.x + tile as f64 * width);
    }
    for tile in 1..along_m {
        drawing.across("thin", c, c.y + tile as f64 * height);
    }
    for matrix in [a, b, c, own] {
        drawing.rectangle("edge", matrix);
    }
    drawing.text("head", a.x + 6.0, a.y + 18.0, "A");
    drawing.text("head", b.x + 6.0, b.y + 18.0, "B");
    drawing.text("head", c.x + 6.0, c.y + 18.0, "C");
    // Beside a tile that is too narrow or too low for it.
    let baseline = match height > 20.0 && width > 60.0 {
        true => own.y + height / 2.0 + 4.0,
        false => own.bottom() + 14.0,
    };
    drawing.text("middle", own.x + width / 2.0, baseline, "block tile");
    drawing.text("small", left, TOP - 2.0, "the grid");
    let along_k = "K →, a k-iteration at a time";
    drawing.text("small", a.x, a.bottom() + 16.0, along_k);
}

/// The block tile, element by element, with the tiles of A and B of one k-iteration beside it.
fn block(drawing: &mut Drawing, variant: &Variant, scale: f64) -> Result<(), String> {
    let tile = variant.tile;
    let (rows, columns) = (tile.m as usize, tile.n as usize);
    let writers = writers(variant, rows, columns)?;
    // A thread in the middle, so that the other threads of its warp show around it.
    let thread = variant.block.threads() as usize * 5 / 8 + 5;
    let warp = thread / 32;

    let (height, width) = (rows as f64 * scale, columns as f64 * scale);
    // A large BK is cut off; a BK of 1 is drawn wide enough to be seen.
    let depth = (f64::from(tile.k) * scale).clamp(6.0, 66.0);
    let c = Area::new((850.0 - width - 12.0, TOP + 100.0), (width, height));
    let a = c.columns(c.x - 10.0 - depth, depth);
    let b = c.rows(c.y - 10.0 - depth, depth);
    drawing.rectangle("a2", a);
    drawing.rectangle("b2", b);
    drawing.rectangle("c1", c);

    let of_warp = |row: usize, column: usize| {
        writers[row * columns + column].is_some_and(|writer| writer / 32 == warp)
    };
    let of_thread = |row: usize, column: usize| writers[row * columns + column] == Some(thread);
    drawing.elements("c2", (c.x, c.y), scale, (rows, columns), of_warp);
    drawing.elements("c3", (c.x, c.y), scale, (rows, columns), of_thread);
    let thread_rows = |row| (0..columns).any(|column| of_thread(row, column));
    let thread_columns = |column| (0..rows).any(|row| of_thread(row, column));
    for (start, length) in runs(rows, thread_rows) {
        let rows = a.rows(c.y + start as f64 * scale, length as f64 * scale);
        drawing.rectangle("a3", rows);
    }
    for (start, length) in runs(columns, thread_columns) {
        let columns = b.columns(c.x + start as f64 * scale, length as f64 * scale);
        drawing.rectangle("b3", columns);
    }
    for area in [a, b, c] {
        drawing.rectangle("edge", area);
    }
    let caption = "a block tile. Medium: a warp. Strong: a thread, and what it reads";
    drawing.text("small", 430.0, TOP - 2.0, caption);
    drawing.text("head", a.x - 16.0, a.y + a.height / 2.0 + 4.0, "A");
    drawing.text("head", b.x - 16.0, b.y + b.height / 2.0 + 4.0, "B");
    drawing.text("head", c.x, c.bottom() + 18.0, "C");
    Ok(())
}
