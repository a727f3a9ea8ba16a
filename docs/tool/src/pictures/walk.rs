//! How a block walks along K: the tiles of A and B of three k-iterations, and the sums that grow.

use super::drawing::{Area, Drawing};

const TILE: f64 = 56.0;
const STEPS: usize = 3;

/// Draws three k-iterations of one block tile side by side.
pub fn draw() -> Drawing {
    let title = "A block walks along K: three k-iterations of one block tile";
    let mut drawing = Drawing::new(title, 860, 372);
    let depth = STEPS as f64 * TILE;
    for step in 0..STEPS {
        let left = 24.0 + step as f64 * 280.0;
        let c = Area::new((left + depth + 8.0, 64.0 + depth + 8.0), (TILE, TILE));
        let a = c.columns(left, depth);
        let b = c.rows(64.0, depth);
        for (index, strip) in [a, b].into_iter().enumerate() {
            drawing.rectangle("matrix", strip);
            for tile in 0..=step {
                let class = match (index, tile == step) {
                    (0, true) => "a3",
                    (0, false) => "a1",
                    (_, true) => "b3",
                    (_, false) => "b1",
                };
                let at = tile as f64 * TILE;
                let area = match index {
                    0 => a.columns(a.x + at, TILE),
                    _ => b.rows(b.y + at, TILE),
                };
                drawing.rectangle(class, area);
            }
        }
        for tile in 1..STEPS {
            drawing.down("tick", a, a.x + tile as f64 * TILE);
            drawing.across("tick", b, b.y + tile as f64 * TILE);
        }
        drawing.rectangle(["c1", "c2", "c3"][step], c);
        for area in [a, b, c] {
            drawing.rectangle("edge", area);
        }
        let heading = match step {
            0 => "k0 = 0".to_string(),
            1 => "k0 = BK".to_string(),
            step => format!("k0 = {step} BK"),
        };
        drawing.text("", left, 52.0, &heading);
        drawing.text("head", a.x, a.y - 6.0, "A");
        drawing.text("head", b.x - 16.0, b.y + 14.0, "B");
        drawing.text("head", c.right() + 6.0, c.y + 14.0, "C");
        drawing.text("small", a.x, a.bottom() + 16.0, "K →");
    }
    let captions = [
        "Strong: the tiles of this k-iteration, in shared memory. Faint: those before, already multiplied. Empty: those to come.",
        "C grows stronger: its sums stay in registers through all k-iterations, and are written once, at the end.",
    ];
    drawing.lines((16.0, 332.0), 16.0, &captions);
    drawing
}
