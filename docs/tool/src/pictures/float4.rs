//! Which lane of a warp copies which elements of the A tile: one by one, and by float4s.

use super::drawing::{Area, Drawing};

/// The A tile is this deep.
const BK: usize = 8;
const LANES: usize = 32;
const CELL: (f64, f64) = (38.0, 18.0);

/// Row and first column of what a lane of the first warp copies with its first load of `width`
/// elements: the index is `lane * width`, as in `register_blocked.rs` and in `vectorized.rs`.
fn place(lane: usize, width: usize) -> (usize, usize) {
    let at = lane * width;
    (at / BK, at % BK)
}

/// Draws both side by side.
pub fn draw() -> Drawing {
    let title = "What the first load of a warp copies of the A tile, 128 x 8. Numbers are lanes";
    let mut drawing = Drawing::new(title, 860, 420);
    for (index, (name, width)) in [("register-blocked", 1), ("vectorized", 4)]
        .into_iter()
        .enumerate()
    {
        let left = 40.0 + index as f64 * 430.0;
        let top = 74.0;
        let rows = 16;
        let tile = Area::new((left, top), (BK as f64 * CELL.0, rows as f64 * CELL.1));
        drawing.text(
            "",
            left,
            top - 28.0,
            &format!("{name}: {} bytes for each lane", 4 * width),
        );
        drawing.text("small", left, top - 8.0, "K →");
        drawing.rectangle("matrix", tile);
        for row in 1..rows {
            drawing.across("thin", tile, top + row as f64 * CELL.1);
        }
        for column in 1..BK {
            drawing.down("thin", tile, left + column as f64 * CELL.0);
        }
        for lane in 0..LANES {
            let (row, column) = place(lane, width);
            let at = (left + column as f64 * CELL.0, top + row as f64 * CELL.1);
            let area = Area::new(at, (width as f64 * CELL.0, CELL.1));
            drawing.rectangle("a2", area);
            drawing.rectangle("edge", area);
            let middle = area.x + area.width / 2.0;
            drawing.text("middle", middle, area.y + 13.5, &lane.to_string());
        }
        let rows = (place(LANES - 1, width).0) + 1;
        let loads = 4 / width;
        let caption = format!(
            "{} bytes in {rows} rows with one instruction; {loads} for a thread's share",
            LANES * width * 4
        );
        drawing.text("small", left, tile.bottom() + 18.0, &caption);
    }
    drawing.text(
        "small",
        16.0,
        404.0,
        "A row of the tile is 32 bytes of a row of A: one sector, fetched whole by either.",
    );
    drawing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lanes_cover_full_rows_without_overlap() {
        for (width, rows) in [(1, 4), (4, 16)] {
            let mut elements: Vec<usize> = (0..LANES)
                .flat_map(|lane| {
                    let (row, column) = place(lane, width);
                    (0..width).map(move |one| row * BK + column + one)
                })
                .collect();
            elements.sort_unstable();
            assert!(elements.into_iter().eq(0..rows * BK));
        }
    }
}
