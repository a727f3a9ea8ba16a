//! A kernel whose warps split K: B is not staged in shared memory, and the warps' accumulators are
//! added at the end.

use gpu_kernels::spec::Variant;

use super::drawing::{Area, Drawing};

const ROW: f64 = 11.0;
/// Pixels of the columns of a block tile.
const TILE: f64 = 180.0;
/// Rows of B that are drawn for each warp.
const ROWS_OF_WARP: usize = 3;

/// Draws the variant. Not to scale: rows are high enough to be seen.
pub fn draw(title: &str, variant: &Variant) -> Drawing {
    let mut drawing = Drawing::new(title, 860, 520);
    let warps = variant.k_slices as usize;
    let rows = ROWS_OF_WARP * warps;
    let b = Area {
        x: 40.0,
        y: 64.0,
        width: 2.0 * TILE + 60.0,
        height: rows as f64 * ROW,
    };
    let tile = Area {
        x: b.x + TILE - 40.0,
        width: TILE,
        ..b
    };
    // A thread's four columns, drawn wider than they are.
    let thread = Area {
        x: tile.x + 84.0,
        width: 12.0,
        ..tile
    };
    let own = warps / 2;
    let row = |area: Area, index: usize| Area {
        y: area.y + index as f64 * ROW,
        height: ROW,
        ..area
    };
    drawing.rectangle("matrix", b);
    drawing.rectangle("b1", tile);
    for index in (own..rows).step_by(warps) {
        drawing.rectangle("b2", row(tile, index));
        drawing.rectangle("b3", row(thread, index));
    }
    for index in 1..rows {
        let y = b.y + index as f64 * ROW;
        let class = if index % warps == 0 { "edge" } else { "thin" };
        drawing.line(class, (b.x, y), (b.x + b.width, y));
    }

    // The accumulators of each warp, and their sum.
    let sums = Area {
        x: 640.0,
        y: b.y + 40.0,
        width: TILE,
        height: warps as f64 * ROW,
    };
    drawing.rectangle("c1", sums);
    drawing.rectangle("c2", row(sums, own));
    let thread_sums = Area {
        x: sums.x + 84.0,
        width: 12.0,
        ..sums
    };
    drawing.rectangle("c3", row(thread_sums, own));
    for index in 1..warps {
        let y = sums.y + index as f64 * ROW;
        drawing.line("thin", (sums.x, y), (sums.x + TILE, y));
    }
    let c = Area {
        y: sums.y + sums.height + 60.0,
        height: ROW,
        ..sums
    };
    drawing.rectangle("c2", c);
    for area in [b, tile, sums, c] {
        drawing.rectangle("edge", area);
    }

    drawing.text("head", b.x - 18.0, b.y + 14.0, "B");
    drawing.text("head", c.x - 18.0, c.y + 10.0, "C");
    let (columns, threads) = (variant.tile.n, variant.block.threads());
    drawing.text(
        "small",
        tile.x,
        b.y - 6.0,
        &format!("{columns} columns: the block tile"),
    );
    let of_warps = format!("Rows go to the {warps} warps in round-robin order.");
    drawing.text("small", b.x, b.y + b.height + 18.0, &of_warps);
    let shades = "Medium: the rows of one warp. Dark: the four columns of one of its threads.";
    drawing.text("small", b.x, b.y + b.height + 34.0, shades);
    drawing.text("small", sums.x, sums.y - 8.0, "accumulators of each warp");
    let added = "added in warp order,";
    drawing.text("small", c.x, c.y - 26.0, added);
    drawing.text("small", c.x, c.y - 10.0, "in shared memory");
    let caption = format!(
        "{}: {threads} threads per block; A and B are not staged in shared memory",
        variant.name
    );
    drawing.text("small", 16.0, 506.0, &caption);
    drawing
}
