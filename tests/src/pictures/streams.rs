//! Who does which steps when blocks share them, as [`Streams`] deals them out.

use gpu_kernels::streams::{Share, Streams};

use super::drawing::{Area, Drawing};

/// The example of `streams.rs`: 11 tiles of 8 steps for 4 blocks.
const STREAMS: usize = 4;
const TILES: usize = 11;
const STEPS: usize = 8;

const CELL: f64 = 13.0;
const ROW: f64 = 30.0;
const LEFT: f64 = 110.0;
/// Fills of tiles, in turn.
const FILLS: [&str; 4] = ["c2", "b2", "a2", "c1"];

/// Draws the same work twice: handed out tile by tile, and with the last rounds shared.
pub fn draw() -> Drawing {
    let title = format!("{TILES} tiles of {STEPS} steps for {STREAMS} blocks at a time");
    let mut drawing = Drawing::new(&title, 620, 420);
    let rounds = TILES.div_ceil(STREAMS);
    let all = |whole_waves| Streams {
        tile_rows: TILES,
        tile_cols: 1,
        steps: STEPS,
        streams: STREAMS,
        whole_waves,
    };

    let whole = all(rounds);
    let tile_by_tile = |block: usize| {
        let shares = (0..rounds).map(move |round| whole.share(block, round));
        shares.filter(|share| share.first_tile < TILES).collect()
    };
    panel(&mut drawing, 64.0, "tile by tile", whole, tile_by_tile);

    let shared = all(1);
    let evenly = |block: usize| vec![shared.share(block, 0), shared.share(block, 1)];
    let heading = "one round tile by tile, the rest shared evenly";
    panel(&mut drawing, 234.0, heading, shared, evenly);

    let after = format!(
        "Each square is a step; numbers are tiles. Dark edges enclose what one block does of one tile. {} tiles are split: fix_up adds their parts.",
        split(&shared)
    );
    for (line, text) in after.split_inclusive(". ").enumerate() {
        drawing.text("small", 16.0, 376.0 + 16.0 * line as f64, text.trim_end());
    }
    drawing
}

/// A line for each block: the steps that it does, one after the other.
fn panel(
    drawing: &mut Drawing,
    top: f64,
    heading: &str,
    streams: Streams,
    shares: impl Fn(usize) -> Vec<Share>,
) {
    drawing.text("", 16.0, top - 10.0, heading);
    for block in 0..STREAMS {
        let y = top + block as f64 * ROW;
        drawing.text("small", 16.0, y + 17.0, &format!("block {block}"));
        let mut x = LEFT;
        for mut share in shares(block) {
            while share.begin < share.end {
                let part = streams.part(share);
                let steps = part.to - part.from;
                let area = Area {
                    x,
                    y,
                    width: steps as f64 * CELL,
                    height: ROW - 6.0,
                };
                drawing.rectangle(FILLS[part.tile % FILLS.len()], area);
                for step in 1..steps {
                    let x = x + step as f64 * CELL;
                    drawing.line("thin", (x, y), (x, y + area.height));
                }
                drawing.rectangle("edge", area);
                let middle = x + area.width / 2.0;
                drawing.text("middle", middle, y + 16.5, &part.tile.to_string());
                x += area.width;
                share.begin += steps;
            }
        }
    }
}

/// Tiles of which a block begins in the midst.
fn split(streams: &Streams) -> usize {
    let firsts = (1..streams.streams).map(|block| streams.first_step(block));
    firsts.filter(|step| step % streams.steps != 0).count()
}
