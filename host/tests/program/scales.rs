//! `--scales`: files of other types are multiplied as e4m3, and the program says what that costs.

use std::collections::HashMap;
use std::hash::Hash;

use crate::files::Folder;
use gpu_gemm::{Bf16, E4m3};
use serde_json::Value;
use verification::data::Number;

/// More columns and more of K than a block has, and no multiples of anything.
const SHAPE: (usize, usize, usize) = (9, 150, 301);

/// Numbers between -1 and 1, times 2^-15 in every third line, and times a power of two in the second
/// block of K.
fn element(line: usize, index: usize, power: i32) -> f32 {
    let place = line * 7919 + index * 104_729 + usize::from(power > 0);
    let hash = place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let power = i32::from(index / 128 == 1) * power - i32::from(line.is_multiple_of(3)) * 15;
    ((hash as f32) / (1 << 23) as f32 - 1.0) * 2f32.powi(power)
}

/// The matrix with its groups in 8 bits, as an array of f64.
fn quantised<G: Hash + Eq>(
    (rows, columns): (usize, usize),
    of: impl Fn(usize, usize) -> f64,
    group: impl Fn(usize, usize) -> G,
) -> Vec<Vec<f64>> {
    let mut largest: HashMap<G, f64> = HashMap::new();
    for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        let largest = largest.entry(group(row, column)).or_default();
        *largest = largest.max(of(row, column).abs());
    }
    let element = |row, column| {
        let scale = largest[&group(row, column)] / 448.0;
        f64::from(E4m3::from_f32((of(row, column) / scale) as f32).to_f32()) * scale
    };
    let row = |row| (0..columns).map(|column| element(row, column)).collect();
    (0..rows).map(row).collect()
}

/// Each element of C in `D.npy`, and beside it a product and the magnitude of its terms.
fn each(
    folder: &Folder,
    a: impl Fn(usize, usize) -> f64,
    b: impl Fn(usize, usize) -> f64,
) -> Vec<(f64, f64, f64)> {
    let (m, n, k) = SHAPE;
    let c = folder.read::<f32>("d.npy");
    let of_element = |row: usize, column: usize| {
        let products = (0..k).map(|index| a(row, index) * b(index, column));
        let (sum, magnitude) = products.fold((0.0, 0.0), |(sum, magnitude), product| {
            (sum + product, magnitude + product.abs())
        });
        (f64::from(c.row(row)[column]), 2.0 * sum, 2.0 * magnitude)
    };
    let places = (0..m).flat_map(|row| (0..n).map(move |column| (row, column)));
    places
        .map(|(row, column)| of_element(row, column))
        .collect()
}

/// The errors of these elements as a norm, relative to that of the products; and the largest, relative
/// to its terms.
fn errors(elements: &[(f64, f64, f64)]) -> (f64, f64) {
    let (mut largest, mut squares, mut all) = (0.0f64, 0.0, 0.0);
    for (got, want, magnitude) in elements {
        largest = largest.max((got - want).abs() / magnitude);
        squares += (got - want).powi(2);
        all += want * want;
    }
    (f64::sqrt(squares / all), largest)
}

fn check<T: Number>(convert: impl Fn(f32) -> T + Copy + Sync) {
    let (m, n, k) = SHAPE;
    let folder = Folder::new();
    let of_a = |row, index| convert(element(row, index, -17));
    let of_b = |index, column| convert(element(column, index, 17));
    folder.matrix("a.npy", (m, k), of_a);
    folder.matrix("b.npy", (k, n), of_b);
    let (of_a, of_b) = (
        |row, index| of_a(row, index).to_f64(),
        |index, column| of_b(index, column).to_f64(),
    );
    let mut costs = Vec::new();
    for (scales, a, b) in [
        (
            "tensor",
            quantised((m, k), of_a, |_, _| ()),
            quantised((k, n), of_b, |_, _| ()),
        ),
        (
            "row",
            quantised((m, k), of_a, |row, _| row),
            quantised((k, n), of_b, |_, column| column),
        ),
        (
            "block",
            quantised((m, k), of_a, |row, index| (row, index / 128)),
            quantised((k, n), of_b, |index, column| (index / 128, column / 128)),
        ),
    ] {
        let asked = format!("--a a.npy --b b.npy --out d.npy --alpha 2 --scales {scales}");
        let report = folder.run(&format!("{asked} --format json")).succeeded();
        let report: Value = serde_json::from_str(&report).unwrap();
        let record = &report["results"][0];
        assert_eq!(
            (&record["scales"], &record["dtype"]),
            (&scales.into(), &"e4m3".into())
        );
        assert_eq!(record["passed"], true);
        // Sums of 14 bits, and a few elements between two numbers of 8 bits.
        let quantised = each(&folder, |row, i| a[row][i], |i, column| b[i][column]);
        let (frobenius, largest) = errors(&quantised);
        assert!(
            frobenius < 1e-3 && largest < 0.03,
            "{scales}: {frobenius} {largest}"
        );
        let (frobenius, largest) = errors(&each(&folder, of_a, of_b));
        let told = |name: &str| {
            record[format!("quantisation_error_{name}")]
                .as_f64()
                .unwrap()
        };
        approx::assert_relative_eq!(told("largest"), largest, max_relative = 1e-6);
        approx::assert_relative_eq!(told("frobenius"), frobenius, max_relative = 1e-6);
        assert_eq!(told("rows"), m as f64);
        costs.push(largest);
    }
    // A scale for each line keeps small lines; one for each block small parts of them, too.
    let [tensor, row, block] = costs[..] else {
        panic!("{costs:?}");
    };
    assert!(tensor > 2.0 * row && row > 2.0 * block, "{costs:?}");
}

#[test]
fn files_of_floats_are_multiplied_as_e4m3_with_scales_and_the_program_says_what_that_costs() {
    check(|element| element);
    check(f64::from);
    check(Bf16::from_f32);
}

#[test]
fn what_cannot_be_quantised_is_refused_with_what_to_do_instead() {
    let folder = Folder::new();
    folder.matrix("a.npy", (4, 4), |row, _| row as f32);
    folder.matrix("i8.npy", (4, 4), |row, _| row as i8);
    folder.matrix("nan.npy", (4, 4), |_, _| f32::NAN);
    folder.matrix("huge.npy", (4, 4), |_, _| 1e30f32);
    let of_blocks = "Kernel `warp-specialized-fp8-fast` is not compiled with scales of blocks. In e4m3 these are: auto, ";
    for (code, more, why) in [
        (
            2,
            "row --size 9 --dtype bf16",
            "not to bf16; leave out --dtype",
        ),
        (2, "row --size 9 --dtype e4m3-bf16", "with a C of f32"),
        (
            2,
            "row --size 9 --beta 1",
            "leave out --beta, or choose `--scales tensor`",
        ),
        (2, "row --size 9 --alpha 0", "leave out --scales"),
        (2, "row --size 9 --baseline best", "leave out --baseline"),
        (2, "row --size 9 --kernel naive", "naive"),
        (
            2,
            "block --size 9 --kernel warp-specialized-fp8-fast",
            of_blocks,
        ),
        (2, "row --size 9 --batch 2", "cannot be used with"),
        (2, "row --size 9 --epilogue bias", "cannot be used with"),
        (
            2,
            "row --a i8.npy --b i8.npy",
            "but the files hold i8; leave out --scales",
        ),
        (
            1,
            "row --a a.npy --b nan.npy",
            "divide the matrix by a number",
        ),
        (1, "row --a huge.npy --b a.npy", "magnitude 1.0e30"),
    ] {
        folder.refuses(&format!("--scales {more}"), code, why);
    }
}

/// The old C is added, also where alpha has the scales.
#[test]
fn the_old_c_is_added_by_tensors_and_blocks() {
    let folder = Folder::new();
    folder.matrix("a.npy", (3, 5), |_, _| 7.0f32);
    folder.matrix("b.npy", (5, 4), |_, _| 448.0f64 as f32);
    folder.matrix("c.npy", (3, 4), |_, _| 1.0f32);
    for scales in ["tensor", "block"] {
        let of = "--a a.npy --b b.npy --c c.npy --beta -2 --out d.npy";
        folder.run(&format!("{of} --scales {scales}")).succeeded();
        assert_eq!(folder.read::<f32>("d.npy").row(2), [15_678.0; 4]);
    }
}
