//! A tiled product by hand: what each thread of one block loads, and how its sum grows.

use crate::parts::unbroken;

/// Sizes that fit on a page: matrices of 4 x 4, tiles of 2 x 2.
const SIZE: usize = 4;
const TILE: usize = 2;

/// A k-iteration of one thread.
struct Step {
    /// Row and column of the elements of A and B that it stages.
    loads: [(usize, usize); 2],
    /// The values of A and B that it then multiplies, from the tiles of the whole block.
    products: Vec<(usize, usize)>,
    /// Its sum after them.
    sum: usize,
}

/// The element that `--data index-sum` has in this place, in A and in B.
fn index_sum(row: usize, col: usize) -> usize {
    row + col
}

/// All k-iterations of a thread of the first block, as `multiply` of `tiled.rs` does them.
fn steps(x: usize, y: usize) -> Vec<Step> {
    let (row, col) = (y, x);
    let mut sum = 0;
    let mut steps = Vec::new();
    for k0 in (0..SIZE).step_by(TILE) {
        let mut products = Vec::new();
        for i in 0..TILE {
            let (a, b) = (index_sum(row, k0 + i), index_sum(k0 + i, col));
            products.push((a, b));
            sum += a * b;
        }
        steps.push(Step {
            loads: [(row, k0 + x), (k0 + y, col)],
            products,
            sum,
        });
    }
    steps
}

/// The table of all threads of the first block.
pub fn table() -> String {
    let mut table = "\n| thread (x, y) |".to_string();
    for k0 in (0..SIZE).step_by(TILE) {
        table += &format!(" k0 = {k0}: loads | then adds |");
    }
    table += " writes |\n";
    table += &format!("|{}\n", " --- |".repeat(2 + 2 * SIZE / TILE));
    for (y, x) in (0..TILE).flat_map(|y| (0..TILE).map(move |x| (y, x))) {
        table += &format!("| ({x}, {y}) |");
        let mut before = None;
        for step in steps(x, y) {
            let [(a_row, a_col), (b_row, b_col)] = step.loads;
            let products: Vec<String> = before
                .map(|sum: usize| sum.to_string())
                .into_iter()
                .chain(step.products.iter().map(|(a, b)| format!("{a}·{b}")))
                .collect();
            table += &format!(
                " A\\[{a_row}]\\[{a_col}],\u{a0}B\\[{b_row}]\\[{b_col}] | {} |",
                unbroken(&format!("{} = {}", products.join(" + "), step.sum))
            );
            before = Some(step.sum);
        }
        table += &format!(" C\\[{y}]\\[{x}] |\n");
    }
    table + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_block_loads_each_element_once_and_ends_with_the_product() {
        let mut loaded = [BTreeSet::new(), BTreeSet::new()];
        for (y, x) in (0..TILE).flat_map(|y| (0..TILE).map(move |x| (y, x))) {
            let steps = steps(x, y);
            assert_eq!(steps.len(), 2);
            for step in &steps {
                for (set, place) in loaded.iter_mut().zip(step.loads) {
                    assert!(set.insert(place), "{place:?} is loaded twice");
                }
            }
            // A row of A times a column of B, of which nothing above is used.
            let product: usize = (0..SIZE).map(|k| (y + k) * (k + x)).sum();
            assert_eq!(steps.last().map(|step| step.sum), Some(product));
        }
        // Two rows of A, two columns of B.
        assert_eq!(loaded.each_ref().map(BTreeSet::len), [8, 8]);
        assert!(loaded[0].iter().all(|(row, _)| *row < TILE));
        assert!(loaded[1].iter().all(|(_, col)| *col < TILE));
    }

    #[test]
    fn a_line_has_what_a_thread_does() {
        let line = "| (1, 0) | A\\[0]\\[1], B\\[0]\\[1] | 0·1 + 1·2 = 2 | A\\[0]\\[3], B\\[2]\\[1] | 2 + 2·3 + 3·4 = 20 | C\\[0]\\[1] |\n";
        let table = table().replace('\u{a0}', " ");
        assert!(table.contains(line), "{table}");
    }
}
