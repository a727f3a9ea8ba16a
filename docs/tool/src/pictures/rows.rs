//! A kernel whose CTAs compute rows of C: a row of A is in shared memory, B is read from global
//! memory.

use gpu_kernels::spec::{Allocation, Variant};

use super::drawing::{Area, Drawing};

const ROW: f64 = 18.0;
const DEPTH: f64 = 200.0;
const ROWS: usize = 8;
/// Pixels of the columns that a CTA computes at a time, and how many times it does so.
const SPAN: f64 = 150.0;
const SPANS: usize = 3;
/// Pixels between the end of a row and the next, in pitched allocations.
const GAP: f64 = 24.0;

/// Draws the variant. Not to scale: rows are high enough to be seen.
pub fn draw(title: &str, variant: &Variant) -> Drawing {
    let mut drawing = Drawing::new(title, 860, 500);
    let is_pitched = variant.allocation == Allocation::Pitched;
    let c = Area::new((330.0, 276.0), (SPANS as f64 * SPAN, ROWS as f64 * ROW));
    // Between A and C: A's padding, and the label of C.
    let a = c.columns(c.x - 70.0 - DEPTH, DEPTH);
    let b = c.rows(56.0, DEPTH);
    for matrix in [a, b, c] {
        drawing.rectangle("matrix", matrix);
        if is_pitched {
            drawing.rectangle("b1", matrix.columns(matrix.right(), GAP));
        }
    }
    let row = |matrix: Area| matrix.rows(matrix.y + (ROWS / 2) as f64 * ROW, ROW);
    let now = row(c).columns(c.x + SPAN, SPAN);
    let thread = now.columns(now.x + 60.0, 4.0);
    drawing.rectangle("a3", row(a));
    drawing.rectangle("c1", row(c));
    drawing.rectangle("c2", now);
    drawing.rectangle("b2", b.columns(now.x, now.width));
    drawing.rectangle("c3", thread);
    drawing.rectangle("b3", b.columns(thread.x, thread.width));
    for line in 1..ROWS {
        for matrix in [a, c] {
            drawing.across("thin", matrix, c.y + line as f64 * ROW);
        }
    }
    for area in [a, b, c, now] {
        drawing.rectangle("edge", area);
    }
    drawing.text("head", a.x + 6.0, a.y - 6.0, "A");
    drawing.text("head", b.x - 18.0, b.y + 14.0, "B");
    drawing.text("head", c.x - 18.0, c.y + 14.0, "C");
    let below = c.bottom() + 18.0;
    drawing.text("small", a.x, below, "this row is in shared memory");
    let threads = variant.block.threads();
    let caption = format!("a block: one row, {threads} columns at a time, one per thread");
    drawing.text("small", c.x, below, &caption);
    let captions = [
        "Strong: one thread and what it reads.",
        "B comes from global memory,",
        "again for each row of C.",
    ];
    drawing.lines((a.x, b.y + 14.0), 16.0, &captions);
    if is_pitched {
        let padding = "Faint: padding that the driver adds, so that the next row starts at a multiple of 512 bytes.";
        drawing.text("small", a.x, c.bottom() + 40.0, padding);
    }
    drawing
}
