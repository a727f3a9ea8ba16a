//! Who does what, and when, in a kernel of warpgroups: who asks for tiles, the stages, who
//! multiplies and, where it does, the copy engine that stores C. One warpgroup alone does all in
//! turn; where warpgroups are specialised, a producer asks and two consumers multiply.

use gpu_kernels::spec::{ElementType, Variant};

use super::drawing::{Area, Drawing};

/// The stages of a kernel's ring: as many as fit beside its boxes of C.
fn stages(variant: &Variant) -> usize {
    let tile = variant.tile;
    let stage = (tile.m + tile.n) as usize * tile.k as usize * variant.types.a.bytes();
    variant.ring_bytes() as usize / stage
}

/// k-iterations of a tile that are drawn.
const ITERATIONS: usize = 5;
/// A quarter of a k-iteration is as wide.
const QUARTER: f64 = 13.0;
/// Quarters from when a tile is asked for to when it has landed, and that a product takes.
const LANDS: usize = 5;
const MULTIPLIES: usize = 4;
const STORES: usize = 4;

/// When each k-iteration of a tile of C is asked for and multiplied, in quarters; tiles follow each
/// other at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Times {
    asked: usize,
    multiplied: usize,
}

/// The k-iterations of two tiles of C. One warpgroup alone asks for tiles when it begins to
/// multiply those before, and for the first of a tile of C when the last is stored.
fn times(stages: usize, is_alone: bool) -> Vec<Times> {
    let mut times: Vec<Times> = Vec::new();
    for index in 0..2 * ITERATIONS {
        let before = |back: usize| index.checked_sub(back).map(|index| times[index]);
        let free = before(stages).map_or(0, |times| times.multiplied + MULTIPLIES);
        let mut asked = free.max(before(1).map_or(0, |times| times.asked + 1));
        if is_alone && index == ITERATIONS {
            let last = times[index - 1].multiplied + MULTIPLIES;
            asked = last + STORES;
        }
        let stored = if index == ITERATIONS { STORES } else { 0 };
        let done = before(1).map_or(0, |times| times.multiplied + MULTIPLIES + stored);
        times.push(Times {
            asked,
            multiplied: done.max(asked + LANDS),
        });
    }
    times
}

/// Draws a line of time for each role.
pub fn draw(title: &str, variant: &Variant) -> Drawing {
    let mut drawing = Drawing::new(title, 860, 330);
    let (left, row) = (110.0, 34.0);
    let at = |quarter: usize| left + quarter as f64 * QUARTER;
    let bar = |drawing: &mut Drawing, class: &str, line: usize, from: usize, to: usize| {
        let area = Area::new(
            (at(from), 52.0 + line as f64 * row),
            ((to - from) as f64 * QUARTER, 24.0),
        );
        drawing.rectangle(class, area);
        drawing.rectangle("edge", area);
        area
    };
    let stages = stages(variant);
    let is_alone = variant.block.threads() == 128;
    let (consumers, stores) = (1 + stages, 2 + stages);
    // Threads store from registers where the copy engine does not.
    let is_f64 = variant.types.c == ElementType::F64;
    let engine_stores = !variant.splits_operands && !is_alone && !is_f64;
    let (asks, multiplies) = match is_alone {
        true => ("one thread", "warpgroup"),
        false => ("producer", "consumers"),
    };
    let mut lines = vec![asks.to_owned()];
    lines.extend((0..stages).map(|stage| format!("stage {stage}")));
    lines.push(multiplies.to_owned());
    lines.extend(engine_stores.then(|| "stores".to_owned()));
    for (line, name) in lines.iter().enumerate() {
        drawing.text("small", 16.0, 68.0 + line as f64 * row, name);
    }
    let label = |drawing: &mut Drawing, area: Area, text: &str| {
        drawing.text(
            "small middle",
            area.x + area.width / 2.0,
            area.y + 16.0,
            text,
        );
    };
    for (index, Times { asked, multiplied }) in times(stages, is_alone).into_iter().enumerate() {
        let (tile, k) = (index / ITERATIONS, index % ITERATIONS);
        let class = |light, strong| if tile == 0 { light } else { strong };
        let stage = index % stages;
        bar(&mut drawing, class("a1", "a2"), 0, asked, asked + 1);
        let flight = bar(
            &mut drawing,
            class("a1", "a2"),
            1 + stage,
            asked,
            multiplied,
        );
        label(&mut drawing, flight, &format!("k {k}"));
        let read = bar(
            &mut drawing,
            class("c1", "c2"),
            1 + stage,
            multiplied,
            multiplied + MULTIPLIES,
        );
        label(&mut drawing, read, "read");
        let product = bar(
            &mut drawing,
            class("c1", "c2"),
            consumers,
            multiplied,
            multiplied + MULTIPLIES,
        );
        label(&mut drawing, product, &format!("k {k}"));
        if k + 1 == ITERATIONS {
            let end = multiplied + MULTIPLIES;
            let store = bar(
                &mut drawing,
                class("b1", "b2"),
                consumers,
                end,
                end + STORES,
            );
            label(&mut drawing, store, "C");
            if engine_stores {
                bar(
                    &mut drawing,
                    class("b1", "b2"),
                    stores,
                    end + 1,
                    end + STORES + 3,
                );
            }
        }
    }
    let tile = variant.tile;
    let tiles = format!(
        "Two tiles of C, {} x {}, of {ITERATIONS} k-iterations each, faint and strong.",
        tile.m, tile.n
    );
    let captions = match is_alone {
        true => [
            format!("{tiles} One thread asks for a stage once it has been read;"),
            "nobody asks for the next tile's before this one is stored.".to_owned(),
        ],
        false => [
            format!("{tiles} The producer asks for a stage as soon as it is empty,"),
            "and goes on to the next tile while the consumers still write the last one; the tiles of that are there when they are done.".to_owned(),
        ],
    };
    let captions: Vec<&str> = captions.iter().map(String::as_str).collect();
    drawing.lines((16.0, 308.0), 16.0, &captions);
    drawing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::kernel;

    #[test]
    fn there_are_as_many_stages_as_in_the_kernel() {
        for (name, count) in [
            ("warpgroup", 2),
            ("warp-specialized", 4),
            ("warp-specialized-tf32", 4),
            ("warp-specialized-fp64", 4),
            ("split-fp32", 3),
        ] {
            assert_eq!(stages(&kernel(name).unwrap().variants[0]), count);
        }
    }

    #[test]
    fn one_warpgroup_asks_for_no_tiles_of_the_next_c_before_it_has_stored_this_one() {
        let times = times(2, true);
        let stored = times[ITERATIONS - 1].multiplied + MULTIPLIES + STORES;
        assert!(times[ITERATIONS].asked >= stored, "{times:?}");
    }

    #[test]
    fn a_stage_is_asked_for_when_it_has_been_read_and_multiplied_when_it_has_landed() {
        let times = times(4, false);
        for (index, now) in times.iter().enumerate() {
            assert!(now.multiplied >= now.asked + LANDS);
            if let Some(before) = index.checked_sub(4).map(|index| times[index]) {
                assert!(now.asked >= before.multiplied + MULTIPLIES);
            }
        }
        // After the first, consumers wait for nothing but their own stores.
        for pair in times[1..].windows(2) {
            let gap = pair[1].multiplied - pair[0].multiplied - MULTIPLIES;
            assert!(gap == 0 || gap == STORES, "{pair:?}");
        }
    }
}
