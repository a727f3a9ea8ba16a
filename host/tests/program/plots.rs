//! The layout of plots, for results of a real GPU, for those of the simulator, and for shapes that
//! are not cubes: drawn as `bench --plots` draws them. `cargo test -p book` compares their content
//! with the book's pictures of an H200's results.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use host::bench::export::Exports;
use host::bench::{Layout, Machine, Results, Size};
use host::plot::text_width;

/// The results of `rust-gemm bench` on an H200, with every kernel and `auto`.
fn measured(name: &str) -> Results {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results");
    serde_json::from_str(&fs::read_to_string(folder.join(name)).unwrap()).unwrap()
}

/// The default kernels and `auto` at the default sizes.
fn default() -> Results {
    at(&[1024, 2048, 4096])
}

/// The same at some of the sizes.
fn at(sizes: &[usize]) -> Results {
    let mut results = measured("h200.json");
    results.sizes.retain(|size| sizes.contains(&size.m));
    assert_eq!(results.sizes.len(), sizes.len());
    results
}

/// The same, with other shapes in place of the real ones.
fn reshaped(shapes: &[(usize, usize, usize)]) -> Results {
    let mut results = at(&[1024, 2048, 4096]);
    let sizes = shapes.iter().zip(results.sizes.iter().cycle());
    let sizes = sizes.map(|(&(m, n, k), size)| Size {
        m,
        n,
        k,
        ..size.clone()
    });
    results.sizes = sizes.collect();
    results
}

/// The same as from the simulator: without cuBLAS and a peak, at a thousandth of the speed.
fn simulated(mut results: Results) -> Results {
    results.machine = Machine {
        backend: "simulator".into(),
        device: "simulator on 2 CPU threads".into(),
        ..Machine::default()
    };
    for size in &mut results.sizes {
        size.yardsticks.clear();
        for record in &mut size.results {
            record.ratio_to_cublas = None;
            record.flops_per_s = record.flops_per_s.map(|speed| speed / 1e3);
        }
    }
    results
}

/// Only these kernels.
fn only(mut results: Results, kernels: &[&str]) -> Results {
    for size in &mut results.sizes {
        (size.results).retain(|record| kernels.contains(&record.kernel.as_str()));
    }
    results
}

/// Shapes where `auto` is `factor` times as fast as cuBLAS.
fn ratios(factors: &[f64]) -> Results {
    let mut results = measured("h200-shapes.json");
    for (size, factor) in results.sizes.iter_mut().zip(factors) {
        let record = &mut size.results[0];
        record.ratio_to_cublas = record.ratio_to_cublas.map(|ratio| ratio * factor);
    }
    results
}

/// The plots by the names of their files.
fn drawn(results: &Results, layout: Layout) -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let exports = Exports {
        plots: Some(folder.path().to_path_buf()),
        ..Exports::default()
    };
    exports.open(layout).unwrap().write(results, "").unwrap();
    fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read_to_string(entry.path()).unwrap())
        })
        .collect()
}

fn ladder_of(results: &Results) -> BTreeMap<String, String> {
    drawn(results, Layout::Ladder)
}

/// A text in a plot, and the smallest rectangle that is sure to contain it.
#[derive(Debug)]
struct Label {
    text: String,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// The value of an attribute, as SVG writes it.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, value) = tag.split_once(&format!(" {name}=\""))?;
    Some(value.split_once('"')?.0)
}

fn number(tag: &str, name: &str) -> f64 {
    attribute(tag, name).map_or(0.0, |value| value.parse().unwrap())
}

fn labels(svg: &str) -> Vec<Label> {
    svg.split("<text")
        .skip(1)
        .map(|element| {
            let (tag, rest) = element.split_once('>').unwrap();
            let (content, _) = rest.split_once("</text>").unwrap();
            let text = content.trim().replace("&lt;", "<").replace("&gt;", ">");
            let size = number(tag, "font-size");
            let bold = attribute(tag, "font-weight").map_or(1.0, |_| 1.15);
            let width = text_width(&text, size) * bold;
            let start = match attribute(tag, "text-anchor") {
                Some("middle") => -width / 2.0,
                Some("end") => -width,
                _ => 0.0,
            };
            let baseline = match attribute(tag, "dy") {
                Some("0.76em") => 0.76 * size,
                Some("0.5ex") => 0.26 * size,
                _ => -0.26 * size,
            };
            // Along the text, and across it; rotated text runs upwards.
            let along = (start, start + width);
            let across = (baseline - 0.76 * size, baseline + 0.24 * size);
            let (horizontal, vertical) = match attribute(tag, "transform") {
                Some(_) => (across, (-along.1, -along.0)),
                None => (along, across),
            };
            let (x, y) = (number(tag, "x"), number(tag, "y"));
            Label {
                text,
                left: x + horizontal.0,
                right: x + horizontal.1,
                top: y + vertical.0,
                bottom: y + vertical.1,
            }
        })
        .filter(|label| !label.text.is_empty())
        .collect()
}

/// The lengths and colours of the bars, from the top.
fn bars(svg: &str) -> Vec<(f64, &str)> {
    svg.lines()
        .filter(|line| line.starts_with("<rect ") && !line.contains("#FFFFFF"))
        .map(|line| (number(line, "width"), attribute(line, "fill").unwrap()))
        .collect()
}

const KERNEL: &str = "#0072B2";
const SLOWER: &str = "#E69F00";

fn texts(svg: &str) -> Vec<String> {
    labels(svg).into_iter().map(|label| label.text).collect()
}

/// The faults in the layout of a plot's text.
fn faults(svg: &str) -> Vec<String> {
    let head = svg.split_once('>').unwrap().0;
    let (width, height) = (number(head, "width"), number(head, "height"));
    let labels = labels(svg);
    let mut faults = Vec::new();
    for (index, one) in labels.iter().enumerate() {
        if one.left < 0.0 || one.top < 0.0 || one.right > width || one.bottom > height {
            faults.push(format!("{one:?} leaves the canvas"));
        }
        for other in &labels[..index] {
            let apart = one.left >= other.right
                || other.left >= one.right
                || one.top >= other.bottom
                || other.top >= one.bottom;
            if !apart {
                faults.push(format!("`{}` is over `{}`", one.text, other.text));
            }
        }
    }
    faults
}

fn contain(svg: &str, wanted: &str) -> bool {
    texts(svg).iter().any(|text| text.contains(wanted))
}

const ODD: [(usize, usize, usize); 3] = [(64, 64, 64), (33, 65, 17), (1000, 1, 300)];
const CUBES: [(usize, usize, usize); 5] = [
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (16384, 16384, 16384),
];

#[test]
fn text_never_overlaps_text_nor_leaves_the_canvas() {
    let many: Vec<_> = (1..60).map(|size| (size, 2 * size + 1, 100_000)).collect();
    let close: Vec<_> = (1000..1040).map(|size| (size, size, size)).collect();
    let few = ["naive", "double-buffer-sn8"];
    let mut long_name = default();
    long_name.machine.device = "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation ".repeat(4);
    let mut unknown = default();
    for record in unknown.sizes.iter_mut().flat_map(|size| &mut size.results) {
        record.flops_per_s = None;
    }
    let ladders = [
        ("default", default()),
        ("one size", at(&[4096])),
        ("five sizes", reshaped(&CUBES)),
        ("odd shapes", reshaped(&ODD)),
        ("many shapes", reshaped(&many)),
        ("sizes close to each other", reshaped(&close)),
        ("the same size twice", reshaped(&[(64, 64, 64); 2])),
        ("nothing to multiply", reshaped(&[(0, 0, 0), (0, 5, 7)])),
        ("simulator", simulated(default())),
        ("simulator, odd shapes", simulated(reshaped(&ODD))),
        ("two kernels", only(default(), &few)),
        ("auto alone", only(default(), &["auto"])),
        ("a long name", long_name),
        ("no speeds", unknown),
        ("no kernels", only(default(), &[])),
        ("no sizes", at(&[])),
    ];
    let of_ratios = [
        ("ratios", ratios(&[])),
        ("ratios far apart", ratios(&[1e-3, 1.0, 1e3, 0.5])),
        ("ratios of the default kernels", default()),
        ("no ratios", simulated(default())),
    ];
    let ladders = ladders.map(|(name, results)| (name, ladder_of(&results), results));
    let of_ratios =
        of_ratios.map(|(name, results)| (name, drawn(&results, Layout::Ratios), results));
    for (name, plots, results) in ladders.into_iter().chain(of_ratios) {
        for (file, svg) in plots {
            let faults = faults(&svg);
            assert_eq!(faults, [""; 0], "{name}, {file}");
            // Titles name the device and the type, and `auto` is drawn wherever it was measured.
            let title = &labels(&svg)[0].text;
            let device = &results.machine.device;
            assert!(title.contains(&device[..9]), "{name}, {file}: {title}");
            let has_auto = !["two kernels", "no ratios", "no speeds"].contains(&name);
            if has_auto && !results.kernels().is_empty() {
                assert!(title.contains("f32"), "{name}, {file}: {title}");
                assert!(contain(&svg, "auto"), "{name}, {file}: {:?}", texts(&svg));
            }
        }
    }
}

#[test]
fn ratios_begin_at_one_and_those_of_slower_kernels_have_another_colour() {
    let mut results = ratios(&[]);
    results.sizes.truncate(2);
    for (size, ratio) in results.sizes.iter_mut().zip([1.25, 0.8]) {
        size.results[0].ratio_to_cublas = Some(ratio);
    }
    let svg = &drawn(&results, Layout::Ratios)["ratios.svg"];
    // The bars of 1.25 and of its inverse are equally long.
    let bars = bars(svg);
    assert_eq!([bars[0].1, bars[1].1], [KERNEL, SLOWER]);
    assert!((bars[0].0 - bars[1].0).abs() < 1.5, "{bars:?}");
    assert!(contain(svg, "1.25") && contain(svg, "0.80"));
    results.sizes.clear();
    let svg = &drawn(&results, Layout::Ratios)["ratios.svg"];
    assert!(contain(svg, "Nothing was measured beside cuBLAS"));
}

#[test]
fn shapes_that_are_no_cubes_are_named_in_full() {
    let svg = &ladder_of(&reshaped(&ODD))["speed.svg"];
    for wanted in ["64 x 64 x 64", "33 x 65 x 17", "shape (m x n x k)"] {
        assert!(texts(svg).iter().any(|text| text == wanted), "{wanted}");
    }
    assert!(!contain(svg, "= n ="));
}

#[test]
fn a_roofline_without_a_known_peak_says_that_it_has_no_roof() {
    let without = &ladder_of(&simulated(default()))["roofline.svg"];
    assert!(contain(without, "no roof"), "{:?}", texts(without));
}
