//! A kernel with a 1-D grid over the elements of C: which elements a CTA, a warp and a thread
//! compute.

use std::ops::Range;

use gpu_kernels::spec::Variant;

use super::drawing::{Area, Drawing};
use super::writers::writers;

const ROWS: usize = 20;
const COLUMNS: usize = 30;
const CELL: f64 = 12.0;

/// Draws C once for each variant, side by side.
pub fn draw(title: &str, variants: &[&Variant]) -> Result<Drawing, String> {
    let panel = COLUMNS as f64 * CELL + 40.0;
    let width = 16.0 + panel * variants.len() as f64;
    let mut drawing = Drawing::new(title, width as u32, 400);
    for (index, variant) in variants.iter().enumerate() {
        let (left, top) = (16.0 + index as f64 * panel, 72.0);
        let heading = format!("C of {}, {ROWS} x {COLUMNS}", variant.name);
        drawing.text("", left, top - 10.0, &heading);
        let writers = writers(variant, ROWS, COLUMNS)?;
        let of_threads = |threads: Range<usize>| {
            let writers = &writers;
            move |row: usize, column: usize| {
                writers[row * COLUMNS + column].is_some_and(|writer| threads.contains(&writer))
            }
        };
        let size = (COLUMNS as f64 * CELL, ROWS as f64 * CELL);
        let matrix = Area::new((left, top), size);
        drawing.rectangle("matrix", matrix);
        let levels = [("c1", 0..usize::MAX), ("c2", 0..32), ("c3", 0..1)];
        for (class, threads) in levels {
            let is_chosen = of_threads(threads);
            drawing.elements(class, (left, top), CELL, (ROWS, COLUMNS), is_chosen);
        }
        for column in 0..=COLUMNS {
            drawing.down("thin", matrix, left + column as f64 * CELL);
        }
        for row in 0..=ROWS {
            drawing.across("thin", matrix, top + row as f64 * CELL);
        }
    }
    let bottom = 72.0 + ROWS as f64 * CELL + 24.0;
    let captions = [
        "Faint: the elements of the first block. Medium: those of its first warp. Strong: that of its first thread.",
        "A thread reads the whole row of A to the left of its element and the whole column of B above it.",
    ];
    drawing.lines((16.0, bottom), 18.0, &captions);
    Ok(drawing)
}
