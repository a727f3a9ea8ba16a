//! The ring buffer of `async-pipeline`: which stage holds which tiles, k-iteration by k-iteration.

use super::drawing::{Area, Drawing};

/// As in `async_pipeline.rs`.
const STAGES: usize = 4;
const ITERATIONS: usize = 6;
const CELL: (f64, f64) = (150.0, 30.0);

/// What a stage holds while tile `iteration` is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    /// The tiles that are multiplied.
    Now(usize),
    /// The copies of these are in flight, or complete.
    Next(usize),
}

fn holds(iteration: usize, stage: usize) -> Holds {
    // Tile t is in stage t % STAGES; the stages hold this tile and the ones after it.
    let ahead = (stage + STAGES - iteration % STAGES) % STAGES;
    match ahead {
        0 => Holds::Now(iteration),
        ahead => Holds::Next(iteration + ahead),
    }
}

/// Draws the stages side by side, time downwards.
pub fn draw() -> Drawing {
    let title = format!("A ring buffer of {STAGES} stages, k-iteration by k-iteration");
    let mut drawing = Drawing::new(&title, 860, 350);
    let (left, top) = (130.0, 66.0);
    for stage in 0..STAGES {
        let x = left + (stage as f64 + 0.5) * CELL.0;
        drawing.text("middle", x, top - 10.0, &format!("stage {stage}"));
    }
    for iteration in 0..ITERATIONS {
        let y = top + iteration as f64 * (CELL.1 + 8.0);
        drawing.text("small", 16.0, y + 19.0, &format!("k-iteration {iteration}"));
        for stage in 0..STAGES {
            let area = Area::new((left + stage as f64 * CELL.0, y), CELL);
            let newest = iteration + STAGES - 1;
            let (class, text) = match holds(iteration, stage) {
                Holds::Now(tile) => ("c2", format!("multiply {tile}")),
                Holds::Next(tile) if tile == newest && iteration > 0 => {
                    ("a2", format!("copy {tile} begins"))
                }
                Holds::Next(tile) => ("a1", format!("copy {tile} in flight")),
            };
            drawing.rectangle(class, area);
            drawing.rectangle("edge", area);
            drawing.text("middle", area.x + CELL.0 / 2.0, y + 19.5, &text);
        }
    }
    let captions = [
        "Between two lines: wait until the copies of the next tiles are complete, then one barrier. After it, the stage just read is free:",
        "the copies of the tiles four k-iterations later begin there. Down a column: a copy has three k-iterations to arrive.",
    ];
    drawing.lines((16.0, 316.0), 16.0, &captions);
    drawing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::{at_root, read};

    #[test]
    fn there_are_as_many_stages_as_in_the_kernel() {
        let source = read(&at_root("gpu-kernels/src/async_pipeline.rs")).unwrap();
        let line = format!("const STAGES: usize = {STAGES};");
        assert!(source.contains(&line), "{line}");
    }

    #[test]
    fn a_tile_stays_in_its_stage_from_its_copy_until_it_is_multiplied() {
        for tile in STAGES..20 {
            let stage = tile % STAGES;
            for iteration in tile + 1 - STAGES..tile {
                assert_eq!(holds(iteration, stage), Holds::Next(tile));
            }
            assert_eq!(holds(tile, stage), Holds::Now(tile));
            // The stage is taken by what comes `STAGES` later.
            assert_eq!(holds(tile + 1, stage), Holds::Next(tile + STAGES));
        }
    }
}
