//! Where the lanes of a warp compute: the first chunk of 4 x 4 elements of each lane, and the
//! float4s that a quarter of the warp reads for them.

use std::collections::BTreeMap;

use gpu_kernels::spec::Variant;

use super::drawing::{Area, Drawing};
use super::writers::writers;
use crate::ladder::{kernel, of_floats};

/// Side of a chunk, in elements: a float4.
const CHUNK: usize = 4;
/// Lanes that shared memory serves at a time, where each reads 16 bytes.
const QUARTER: usize = 8;
const CELL: (f64, f64) = (44.0, 26.0);

/// Row and column of each lane's first chunk, counted in chunks.
type Layout = BTreeMap<usize, (usize, usize)>;

/// Draws the layouts of two kernels, one under the other.
///
/// # Errors
///
/// A kernel fails.
pub fn draw() -> Result<Drawing, String> {
    let title = "The lanes of a warp: the first 4 x 4 elements of C that each computes";
    let mut drawing = Drawing::new(title, 860, 470);
    let mut top = 60.0;
    for name in ["conflict-free", "double-buffer"] {
        let variant = of_floats(kernel(name)?).next();
        let variant = variant.ok_or_else(|| format!("{name} does not multiply f32"))?;
        top = panel(&mut drawing, top, variant, &layout(variant)?);
    }
    let captions = [
        "Strong: lanes 0 to 7, which shared memory serves in one cycle. Blue: the float4s of A that they read. Orange: those of B.",
        "The other chunks of each lane lie in the same pattern, further right and further down.",
    ];
    drawing.lines((16.0, top + 8.0), 16.0, &captions);
    Ok(drawing)
}

fn layout(variant: &Variant) -> Result<Layout, String> {
    let (rows, columns) = (variant.tile.m as usize, variant.tile.n as usize);
    let writers = writers(variant, rows, columns)?;
    let mut layout = Layout::new();
    for row in (0..rows).step_by(CHUNK) {
        for column in (0..columns).step_by(CHUNK) {
            if let Some(lane) = writers[row * columns + column].filter(|&thread| thread < 32) {
                let chunk = (row / CHUNK, column / CHUNK);
                layout.entry(lane).or_insert(chunk);
            }
        }
    }
    Ok(layout)
}

/// How many different float4s of A, and of B, some lanes read.
fn float4s(layout: &Layout, lanes: usize) -> (usize, usize) {
    let of = |coordinate: fn(&(usize, usize)) -> usize| {
        let mut all: Vec<usize> = layout
            .range(..lanes)
            .map(|(_, at)| coordinate(at))
            .collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    };
    (of(|at| at.0), of(|at| at.1))
}

/// Draws a layout, and returns where the next one begins.
fn panel(drawing: &mut Drawing, top: f64, variant: &Variant, layout: &Layout) -> f64 {
    let ((quarter_a, quarter_b), (warp_a, warp_b)) =
        (float4s(layout, QUARTER), float4s(layout, 32));
    let heading = format!(
        "{}: {warp_a} x {warp_b} lanes. For a chunk each they read {warp_a} + {warp_b} = {} float4s, and lanes 0 to 7 read {quarter_a} + {quarter_b}",
        variant.name,
        warp_a + warp_b
    );
    drawing.text("", 16.0, top, &heading);
    let (left, first) = (60.0, top + 40.0);
    let cell = |(row, column): (usize, usize)| {
        let at = (left + column as f64 * CELL.0, first + row as f64 * CELL.1);
        Area::new(at, CELL)
    };
    for (&lane, &at) in layout {
        let area = cell(at);
        let is_first = lane < QUARTER;
        drawing.rectangle(if is_first { "c2" } else { "c1" }, area);
        if is_first {
            let b = area.rows(first - 20.0, 14.0);
            let a = area.columns(left - 24.0, 18.0);
            drawing.rectangle("b2", b);
            drawing.rectangle("a2", a);
            drawing.rectangle("edge", a);
            drawing.rectangle("edge", b);
        }
        drawing.rectangle("edge", area);
        let middle = (area.x + area.width / 2.0, area.y + 17.0);
        drawing.text("middle", middle.0, middle.1, &lane.to_string());
    }
    first + warp_a as f64 * CELL.1 + 44.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> Layout {
        layout(of_floats(kernel(name).unwrap()).next().unwrap()).unwrap()
    }

    #[test]
    fn each_lane_has_a_chunk_of_its_own() {
        for name in ["conflict-free", "double-buffer", "warp-tiled"] {
            let layout = of(name);
            assert!(layout.keys().copied().eq(0..32), "{name}: {layout:?}");
            assert_eq!(layout[&0], (0, 0), "{name}: its first, not its last");
            let mut chunks: Vec<_> = layout.values().collect();
            chunks.sort();
            chunks.dedup();
            assert_eq!(chunks.len(), 32, "{name}");
        }
    }

    #[test]
    fn the_float4s_are_those_that_the_chapter_counts() {
        let conflict_free = of("conflict-free");
        assert_eq!(float4s(&conflict_free, 32), (2, 16));
        assert_eq!(float4s(&conflict_free, QUARTER), (1, 8));
        let double_buffer = of("double-buffer");
        assert_eq!(float4s(&double_buffer, 32), (4, 8));
        assert_eq!(float4s(&double_buffer, QUARTER), (2, 4));
    }
}
