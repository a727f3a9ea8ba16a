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
    let c = Area {
        x: 300.0,
        y: 276.0,
        width: SPANS as f64 * SPAN,
        height: ROWS as f64 * ROW,
    };
    let a = Area {
        x: c.x - 40.0 - DEPTH,
        width: DEPTH,
        ..c
    };
    let b = Area {
        y: 56.0,
        height: DEPTH,
        ..c
    };
    let own = ROWS / 2;
    for matrix in [a, b, c] {
        drawing.rectangle("matrix", matrix);
        if variant.allocation == Allocation::Pitched {
            drawing.rectangle(
                "b1",
                Area {
                    x: matrix.x + matrix.width,
                    width: GAP,
                    ..matrix
                },
            );
        }
    }
    let row = |matrix: Area| Area {
        y: matrix.y + own as f64 * ROW,
        height: ROW,
        ..matrix
    };
    drawing.rectangle("a3", row(a));
    drawing.rectangle("c1", row(c));
    let now = Area {
        x: c.x + SPAN,
        width: SPAN,
        ..row(c)
    };
    drawing.rectangle("c2", now);
    drawing.rectangle(
        "b2",
        Area {
            x: now.x,
            width: SPAN,
            ..b
        },
    );
    let thread = Area {
        x: now.x + 60.0,
        width: 4.0,
        ..now
    };
    drawing.rectangle("c3", thread);
    drawing.rectangle(
        "b3",
        Area {
            x: thread.x,
            width: thread.width,
            ..b
        },
    );
    for line in 1..ROWS {
        let y = c.y + line as f64 * ROW;
        drawing.line("thin", (a.x, y), (a.x + a.width, y));
        drawing.line("thin", (c.x, y), (c.x + c.width, y));
    }
    for area in [a, b, c, now] {
        drawing.rectangle("edge", area);
    }
    let threads = variant.block.threads();
    drawing.text("head", a.x + 6.0, a.y - 6.0, "A");
    drawing.text("head", b.x - 18.0, b.y + 14.0, "B");
    drawing.text("head", c.x - 18.0, c.y + 14.0, "C");
    drawing.text(
        "small",
        a.x,
        c.y + c.height + 18.0,
        "this row is in shared memory",
    );
    let caption = format!("a block: one row, {threads} columns at a time, one per thread");
    drawing.text("small", c.x, c.y + c.height + 18.0, &caption);
    drawing.text(
        "small",
        a.x,
        b.y + 14.0,
        "Dark: one thread and what it reads.",
    );
    drawing.text("small", a.x, b.y + 30.0, "B comes from global memory,");
    drawing.text("small", a.x, b.y + 46.0, "again for each row of C.");
    if variant.allocation == Allocation::Pitched {
        let x = c.x + c.width;
        drawing.text("small", a.x, c.y + c.height + 40.0,
            "Pale: padding that the driver adds, so that the next row starts at a multiple of 512 bytes.");
        drawing.line("thin", (x + GAP, c.y), (x + GAP, c.y + c.height));
    }
    drawing
}
