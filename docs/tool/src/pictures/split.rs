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
    let b = Area::new((40.0, 64.0), (2.0 * TILE + 60.0, rows as f64 * ROW));
    let tile = b.columns(b.x + TILE - 40.0, TILE);
    // A thread's four columns, drawn wider than they are.
    let of_thread = |area: Area| area.columns(area.x + 84.0, 12.0);
    let own = warps / 2;
    let row = |area: Area, index: usize| area.rows(area.y + index as f64 * ROW, ROW);
    drawing.rectangle("matrix", b);
    drawing.rectangle("b1", tile);
    for index in (own..rows).step_by(warps) {
        drawing.rectangle("b2", row(tile, index));
        drawing.rectangle("b3", row(of_thread(tile), index));
    }
    for index in 1..rows {
        let class = if index % warps == 0 { "edge" } else { "thin" };
        drawing.across(class, b, row(b, index).y);
    }

    // The accumulators of each warp, and their sum.
    let sums = Area::new((640.0, b.y + 40.0), (TILE, warps as f64 * ROW));
    drawing.rectangle("c1", sums);
    drawing.rectangle("c2", row(sums, own));
    drawing.rectangle("c3", row(of_thread(sums), own));
    for index in 1..warps {
        drawing.across("thin", sums, row(sums, index).y);
    }
    let c = sums.rows(sums.bottom() + 60.0, ROW);
    drawing.rectangle("c2", c);
    for area in [b, tile, sums, c] {
        drawing.rectangle("edge", area);
    }

    drawing.text("head", b.x - 18.0, b.y + 14.0, "B");
    drawing.text("head", c.x - 18.0, c.y + 10.0, "C");
    let (columns, threads) = (variant.tile.n, variant.block.threads());
    let of_tile = format!("{columns} columns: the block tile");
    drawing.text("small", tile.x, b.y - 6.0, &of_tile);
    let captions = [
        &format!("Rows go to the {warps} warps in round-robin order."),
        "Medium: the rows of one warp. Strong: the four columns of one of its threads.",
    ];
    drawing.lines((b.x, b.bottom() + 18.0), 16.0, &captions);
    drawing.text("small", sums.x, sums.y - 8.0, "accumulators of each warp");
    let added = ["added in warp order,", "in shared memory"];
    drawing.lines((c.x, c.y - 26.0), 16.0, &added);
    let caption = format!(
        "{}: {threads} threads per block; A and B are not staged in shared memory",
        variant.name
    );
    drawing.text("small", 16.0, 506.0, &caption);
    drawing
}
