//! Which CTA does which k-iterations under stream-K, as [`StreamK`] assigns them.

use std::collections::BTreeSet;

use gpu_kernels::stream_k::{CtaWork, StreamK};

use super::drawing::{Area, Drawing};

/// Tiles of C on 4 CTAs.
struct Example {
    tiles: usize,
    /// Waves in which no tile is divided, of the second panel.
    whole_waves: usize,
}

const CTAS: usize = 4;
const ITERATIONS: usize = 8;

const CELL: f64 = 13.0;
const ROW: f64 = 30.0;
const LEFT: f64 = 110.0;
/// Fills of tiles, one after the other.
const FILLS: [&str; 4] = ["c2", "b2", "a2", "c1"];

/// The example of `stream_k.rs`.
pub fn draw() -> Drawing {
    let example = Example {
        tiles: 11,
        whole_waves: 1,
    };
    let title = format!(
        "{} tiles of {ITERATIONS} k-iterations on {CTAS} CTAs",
        example.tiles
    );
    example.draw(
        &title,
        "data-parallel: one tile per CTA and wave",
        "stream-K: one data-parallel wave, all other k-iterations divided evenly",
    )
}

/// Persistent CTAs, of which one would have a tile more than the others.
pub fn of_persistent(title: &str) -> Drawing {
    let example = Example {
        tiles: 9,
        whole_waves: 2,
    };
    example.draw(
        title,
        "in rounds: while CTA 0 has the last tile, the others have nothing to do",
        "divided: two whole tiles each, and a quarter of the last one",
    )
}

impl Example {
    /// Draws the same work twice: data-parallel, and with the last waves under stream-K.
    fn draw(&self, title: &str, whole: &str, divided: &str) -> Drawing {
        let tiles = self.tiles;
        let mut drawing = Drawing::new(title, 620, 420);
        let waves = tiles.div_ceil(CTAS);
        let all = |data_parallel_waves| StreamK {
            tile_rows: tiles,
            tile_cols: 1,
            k_iterations: ITERATIONS,
            ctas: CTAS,
            data_parallel_waves,
        };

        let data_parallel = all(waves);
        let tile_by_tile = |cta: usize| {
            let work = (0..waves).map(move |wave| data_parallel.work(cta, wave));
            work.filter(|work| work.first_tile < tiles).collect()
        };
        panel(&mut drawing, 64.0, whole, data_parallel, tile_by_tile);

        let stream_k = all(self.whole_waves);
        let evenly = |cta: usize| {
            let waves = 0..=stream_k.data_parallel_waves;
            waves.map(|wave| stream_k.work(cta, wave)).collect()
        };
        panel(&mut drawing, 234.0, divided, stream_k, evenly);

        let split = match split(&stream_k) {
            1 => "One tile is split: fix_up adds its segments.".to_owned(),
            tiles => format!("{tiles} tiles are split: fix_up adds their segments."),
        };
        let after = format!(
            "Each square is a k-iteration; numbers are tiles. Strong edges enclose a segment. {split}"
        );
        let lines: Vec<&str> = after.split_inclusive(". ").map(str::trim_end).collect();
        drawing.lines((16.0, 376.0), 16.0, &lines);
        drawing
    }
}

/// A line for each CTA: its k-iterations, one after the other.
fn panel(
    drawing: &mut Drawing,
    top: f64,
    heading: &str,
    stream_k: StreamK,
    work_of: impl Fn(usize) -> Vec<CtaWork>,
) {
    drawing.text("", 16.0, top - 10.0, heading);
    for cta in 0..CTAS {
        let y = top + cta as f64 * ROW;
        drawing.text("small", 16.0, y + 17.0, &format!("CTA {cta}"));
        let mut x = LEFT;
        for mut work in work_of(cta) {
            while work.begin < work.end {
                let segment = stream_k.segment(work);
                let iterations = segment.to - segment.from;
                let area = Area::new((x, y), (iterations as f64 * CELL, ROW - 6.0));
                drawing.rectangle(FILLS[segment.tile % FILLS.len()], area);
                for iteration in 1..iterations {
                    drawing.down("tick", area, x + iteration as f64 * CELL);
                }
                drawing.rectangle("edge", area);
                let middle = x + area.width / 2.0;
                drawing.text("middle", middle, y + 16.5, &segment.tile.to_string());
                x += area.width;
                work.begin += iterations;
            }
        }
    }
}

/// Tiles that a CTA begins in the middle of.
fn split(stream_k: &StreamK) -> usize {
    let firsts = (1..stream_k.ctas).map(|cta| stream_k.first_iteration(cta));
    let inside = firsts.filter(|first| first % stream_k.k_iterations != 0);
    let tiles: BTreeSet<usize> = inside.map(|first| first / stream_k.k_iterations).collect();
    tiles.len()
}
