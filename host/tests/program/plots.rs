//! The plots of `bench --plots`, for results of a real GPU, for those of the simulator, and for
//! shapes that are not cubes. `cargo test -p book` compares some with the book's pictures.

use std::fs;
use std::path::Path;

use host::bench::{Machine, Results, Size, pictures};

/// The results of `rust-gemm bench` on an H200, with every kernel and `auto`, at some of the sizes.
fn at(sizes: &[usize]) -> Results {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results/h200.json");
    let mut results: Results = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    results.sizes.retain(|size| sizes.contains(&size.m));
    results
}

/// The same, with other shapes in place of the real ones.
fn reshaped(shapes: impl IntoIterator<Item = (usize, usize, usize)>) -> Results {
    let mut results = at(&[1024, 2048, 4096]);
    let sizes = shapes.into_iter().zip(results.sizes.iter().cycle());
    let sizes = sizes.map(|((m, n, k), size)| Size {
        m,
        n,
        k,
        ..size.clone()
    });
    results.sizes = sizes.collect();
    results
}

/// The same as from the simulator: without cuBLAS and a peak, or without any speed.
fn simulated(mut results: Results, slower: Option<f64>) -> Results {
    results.machine = Machine {
        backend: "simulator".into(),
        device: "simulator on 2 CPU threads".into(),
        ..Machine::default()
    };
    for size in &mut results.sizes {
        size.yardsticks.clear();
        for record in &mut size.results {
            record.ratio_to_cublas = None;
            record.flops_per_s = record.flops_per_s.zip(slower).map(|(speed, by)| speed / by);
        }
    }
    results
}

/// The texts of a picture, from its title on.
fn texts(svg: &str) -> Vec<&str> {
    let texts = svg.split("<text").skip(1);
    let texts = texts.filter_map(|text| text.split_once('>')?.1.split_once("</text>"));
    texts.map(|(text, _)| text.trim()).collect()
}

/// The number after ` name="` in a tag.
fn number(tag: &str, name: &str) -> f64 {
    let (_, value) = tag.split_once(&format!(" {name}=\"")).unwrap();
    value.split_once('"').unwrap().0.parse().unwrap()
}

const ODD: [(usize, usize, usize); 3] = [(64, 64, 64), (33, 65, 17), (1000, 1, 300)];

#[test]
fn every_plot_names_what_was_measured_and_stays_on_its_canvas_whatever_was_measured() {
    let many = (1..60).map(|m| (m, 2 * m + 1, 100_000));
    let close = (1000..1040).map(|m| (m, m, m));
    let mut without_kernels = at(&[4096]);
    without_kernels.sizes[0].results.clear();
    for (name, results) in [
        ("one size", at(&[4096])),
        ("three sizes", at(&[1024, 2048, 4096])),
        ("odd shapes", reshaped(ODD)),
        ("many shapes", reshaped(many)),
        ("sizes close to each other", reshaped(close)),
        ("the same size twice", reshaped([(64, 64, 64); 2])),
        ("nothing to multiply", reshaped([(0, 0, 0), (0, 5, 7)])),
        ("simulator", simulated(at(&[1024, 2048]), Some(1e3))),
        ("no speeds", simulated(at(&[1024, 2048]), None)),
        ("no kernels", without_kernels),
        ("no sizes", at(&[])),
    ] {
        let (ladder, speed) = (pictures::ladder(&results), pictures::speed(&results));
        let (roofline, ratios) = (pictures::roofline(&results), pictures::ratios(&results));
        for svg in [&ladder, &speed, &roofline, &ratios] {
            let has_numbers = !svg.contains("NaN") && !svg.contains("inf");
            assert!(has_numbers, "{name}: {svg}");
            let (width, height) = (number(svg, "width"), number(svg, "height"));
            for tag in svg.split("<text").skip(1) {
                let is_inside = (0.0..=width).contains(&number(tag, "x"))
                    && (0.0..=height).contains(&number(tag, "y"));
                assert!(is_inside, "{name}: {tag}");
            }
            // A long one takes two lines; as spoken it is whole.
            let title = svg.split("<title>").nth(1).unwrap().split("</title>");
            let (title, device) = (
                title.into_iter().next().unwrap(),
                &results.machine.device[..9],
            );
            assert!(title.contains(device), "{name}: {title}");
            let has_kernels = !results.kernels().is_empty();
            assert_eq!(title.contains("f32"), has_kernels, "{name}: {title}");
        }
        let has_speeds = !["no speeds", "no kernels", "no sizes"].contains(&name);
        for svg in [&ladder, &speed, &roofline] {
            let has_auto = texts(svg).iter().any(|text| text.contains("auto"));
            assert!(has_auto || !has_speeds, "{name}: {svg}");
        }
        let has_roof = !roofline.contains("no roof");
        assert_eq!(has_roof, results.machine.backend == "cuda", "{name}");
        let is_named = texts(&speed).contains(&"33 x 65 x 17");
        assert_eq!(is_named, name == "odd shapes", "{name}");
    }
}

#[test]
fn ratios_begin_at_one_and_those_of_slower_kernels_have_another_colour() {
    let mut results = at(&[1024, 2048]);
    for (size, ratio) in results.sizes.iter_mut().zip([1.25, 0.8]) {
        size.results.retain(|record| record.kernel == "auto");
        size.results[0].ratio_to_cublas = Some(ratio);
    }
    let svg = pictures::ratios(&results);
    let bars: Vec<&str> = svg.lines().filter(|line| line.contains("<rect ")).collect();
    let bar = |colour: &str| *bars.iter().find(|bar| bar.contains(colour)).unwrap();
    // The bars of 1.25 and of its inverse are equally long.
    let [faster, slower] = ["#0072B2", "#E69F00"].map(|colour| number(bar(colour), "width"));
    assert!(faster > 100.0 && (faster - slower).abs() < 1.5, "{bars:?}");
    assert!(texts(&svg).contains(&"1.25") && texts(&svg).contains(&"0.80"));
}
