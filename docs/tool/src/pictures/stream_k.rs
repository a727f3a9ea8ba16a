//! Which CTA does which k-iterations under stream-K, as [`StreamK`] assigns them.

use gpu_kernels::stream_k::{CtaWork, StreamK};

use super::drawing::{Area, Drawing};

/// The example of the kernel's source: 11 tiles of 8 k-iterations on 4 CTAs.
const CTAS: usize = 4;
const TILES: usize = 11;
const ITERATIONS: usize = 8;

const CELL: f64 = 13.0;
const ROW: f64 = 30.0;
const LEFT: f64 = 110.0;
/// Fills of tiles, one after the other.
const FILLS: [&str; 4] = ["c2", "b2", "a2", "c1"];

/// Draws the same work twice: data-parallel, and with the last waves under stream-K.
pub fn draw() -> Drawing {
    let title = format!("{TILES} tiles of {ITERATIONS} k-iterations on {CTAS} CTAs");
    let mut drawing = Drawing::new(&title, 620, 420);
    let waves = TILES.div_ceil(CTAS);
    let all = |data_parallel_waves| StreamK {
        tile_rows: TILES,
        tile_cols: 1,
        k_iterations: ITERATIONS,
        ctas: CTAS,
        data_parallel_waves,
    };

    let data_parallel = all(waves);
    let tile_by_tile = |cta: usize| {
        let work = (0..waves).map(move |wave| data_parallel.work(cta, wave));
        work.filter(|work| work.first_tile < TILES).collect()
    };
    let heading = "data-parallel: one tile per CTA and wave";
    panel(&mut drawing, 64.0, heading, data_parallel, tile_by_tile);

    let stream_k = all(1);
    let evenly = |cta: usize| vec![stream_k.work(cta, 0), stream_k.work(cta, 1)];
    let heading = "stream-K: one data-parallel wave, all other k-iterations divided evenly";
    panel(&mut drawing, 234.0, heading, stream_k, evenly);

    let after = format!(
        "Each square is a k-iteration; numbers are tiles. Strong edges enclose a segment. {} tiles are split: fix_up adds their segments.",
        split(&stream_k)
    );
    let lines: Vec<&str> = after.split_inclusive(". ").map(str::trim_end).collect();
    drawing.lines((16.0, 376.0), 16.0, &lines);
    drawing
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
    firsts
        .filter(|first| first % stream_k.k_iterations != 0)
        .count()
}
