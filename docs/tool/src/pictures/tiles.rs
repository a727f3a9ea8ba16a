//! A kernel whose CTAs compute tiles of C: the block tile in the matrices, and the tiles of a
//! thread and its warp in it.

use gpu_kernels::spec::{Staging, Variant};

use super::drawing::{Area, Drawing, runs};
use super::writers::writers;

/// Pixels of the side of a block tile, on the left and on the right.
const SMALL: f64 = 110.0;
const LARGE: f64 = 288.0;
/// Pixels of K, for A and B on the left.
const DEPTH: f64 = 120.0;
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
        Staging::Tiles => format!("block tile {} x {} x {}", tile.m, tile.n, tile.k),
        Staging::None | Staging::RowOfA => {
            format!(
                "block tile {} x {}, not staged in shared memory",
                tile.m, tile.n
            )
        }
    };
    let caption = format!(
        "{}: {staged}; {} x {} threads; thread tile {} x {}",
        variant.name, block.x, block.y, thread_tile.0, thread_tile.1
    );
    drawing.text("small", 16.0, 506.0, &caption);
    Ok(drawing)
}

/// The matrices, to scale except along K, and what one CTA reads and writes of them.
fn grid(drawing: &mut Drawing, variant: &Variant, scale: f64) {
    let tile = variant.tile;
    let (height, width) = (f64::from(tile.m) * scale, f64::from(tile.n) * scale);
    let depth = (f64::from(tile.k) * scale).min(DEPTH);
    let (left, top) = (16.0, TOP + 8.0);
    // As many tiles as make C look like a square, and two at least.
    let tiles = |side: f64| (2.0 * SMALL / side).round().max(2.0) as usize;
    let (along_m, along_n) = (tiles(height), tiles(width));
    let c = Area {
        x: left + DEPTH + 8.0,
        y: top + DEPTH + 8.0,
        width: along_n as f64 * width,
        height: along_m as f64 * height,
    };
    let a = Area {
        x: left,
        width: DEPTH,
        ..c
    };
    let b = Area {
        y: top,
        height: DEPTH,
        ..c
    };
    for matrix in [a, b, c] {
        drawing.rectangle("matrix", matrix);
    }
    // A CTA in the middle, at its second k-iteration.
    let own = Area {
        x: c.x + (along_n / 2) as f64 * width,
        y: c.y + (along_m / 2) as f64 * height,
        width,
        height,
    };
    let start = depth.min(DEPTH - depth);
    drawing.rectangle(
        "a1",
        Area {
            y: own.y,
            height,
            ..a
        },
    );
    drawing.rectangle(
        "b1",
        Area {
            x: own.x,
            width,
            ..b
        },
    );
    drawing.rectangle(
        "a2",
        Area {
            x: a.x + start,
            y: own.y,
            width: depth,
            height,
        },
    );
    drawing.rectangle(
        "b2",
        Area {
            x: own.x,
            y: b.y + start,
            width,
            height: depth,
        },
    );
    drawing.rectangle("c2", own);
    for tile in 1..along_n {
        let x = c.x + tile as f64 * width;
        drawing.line("thin", (x, c.y), (x, c.y + c.height));
    }
    for tile in 1..along_m {
        let y = c.y + tile as f64 * height;
        drawing.line("thin", (c.x, y), (c.x + c.width, y));
    }
    for matrix in [a, b, c, own] {
        drawing.rectangle("edge", matrix);
    }
    drawing.text("head", a.x + 6.0, a.y + 18.0, "A");
    drawing.text("head", b.x + 6.0, b.y + 18.0, "B");
    drawing.text("head", c.x + 6.0, c.y + 18.0, "C");
    drawing.text(
        "middle",
        own.x + width / 2.0,
        if height > 20.0 {
            own.y + height / 2.0 + 4.0
        } else {
            own.y + height + 14.0
        },
        "a block",
    );
    drawing.text("small", left, TOP - 2.0, "the grid");
    drawing.text(
        "small",
        a.x,
        a.y + a.height + 16.0,
        "K →, a k-iteration at a time",
    );
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
    let c = Area {
        x: 850.0 - width - 12.0,
        y: TOP + 100.0,
        width,
        height,
    };
    let a = Area {
        x: c.x - 10.0 - depth,
        width: depth,
        ..c
    };
    let b = Area {
        y: c.y - 10.0 - depth,
        height: depth,
        ..c
    };
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
        let (y, height) = (c.y + start as f64 * scale, length as f64 * scale);
        drawing.rectangle("a3", Area { y, height, ..a });
    }
    for (start, length) in runs(columns, thread_columns) {
        let (x, width) = (c.x + start as f64 * scale, length as f64 * scale);
        drawing.rectangle("b3", Area { x, width, ..b });
    }
    for area in [a, b, c] {
        drawing.rectangle("edge", area);
    }
    let x = 430.0;
    drawing.text(
        "small",
        x,
        TOP - 2.0,
        "the block tile. Medium: one warp. Dark: one of its threads, and what it reads",
    );
    drawing.text("head", a.x - 16.0, a.y + a.height / 2.0 + 4.0, "A");
    drawing.text("head", b.x - 16.0, b.y + b.height / 2.0 + 4.0, "B");
    drawing.text("head", c.x, c.y + c.height + 18.0, "C");
    Ok(())
}
