//! The roofline.

use super::{at, conditions, drawn, largest, name, of_what, speed_of, unit};
use crate::bench::ladder;
use crate::bench::results::{Results, Size};
use crate::plot::{Axis, Guide, Line, Lines, Style, figure};
use crate::report::Record;
use crate::rung::AUTO;
use crate::traffic::Traffic;
use gpu_gemm::Shape;

/// Operations per byte that a kernel's threads request from global memory, if that is known.
pub(super) fn intensity(record: &Record, size: &Size) -> Option<f64> {
    let variant = ladder::variant(record)?;
    // The kernel computes only the columns of full tiles if another computes the N remainder.
    let (shape, tile_n) = (size.shape(), variant.tile.n as usize);
    let n = match variant.n_remainder {
        Some(_) if shape.n >= tile_n => shape.n - shape.n % tile_n,
        _ => shape.n,
    };
    let shape = Shape { n, ..shape };
    let traffic = Traffic::of(variant, shape, record.beta != 0.0);
    let intensity = traffic.intensity(shape);
    (intensity.is_finite() && intensity > 0.0).then_some(intensity)
}

/// Speed at the largest size against operations per byte that threads request from global
/// memory, below the roofs of memory and arithmetic. A kernel above the memory roof gets its
/// bytes from caches.
pub fn roofline(results: &Results) -> String {
    let size = largest(results);
    let records = drawn(size);
    let machine = &results.machine;
    let roofs = machine.bandwidth_bytes_per_s.zip(machine.peak_flops_per_s);
    let speeds = records.iter().filter_map(|record| speed_of(record));
    let (unit, y) = unit(roofs.map_or(speeds.fold(0.0, f64::max), |(_, peak)| peak));
    let mut lines: Vec<Line> = Vec::new();
    let mut absent: Vec<&str> = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let Some(speed) = speed_of(record) else {
            continue;
        };
        match size.and_then(|size| intensity(record, size)) {
            Some(intensity) => lines.push(Line {
                name: format!("{} {}", name(record), figure(speed / unit)),
                style: match record.kernel == AUTO {
                    true => Style::AUTO,
                    false => Style::of(index),
                },
                points: vec![(intensity, speed / unit)],
                dotted: Vec::new(),
                is_joined: false,
            }),
            None => absent.push(&record.kernel),
        }
    }
    let about_roofs = match (roofs, machine.backend.as_str()) {
        (Some(_), _) => "Bytes are those of threads; above the roof of memory, caches have them.",
        (None, "simulator") => "There is no roof: the peak of the simulator is not known.",
        (None, _) => "There is no roof: the peak of this device is not known.",
    };
    let about_absent = match absent.is_empty() {
        true => String::new(),
        false => format!(
            "Not shown, as their memory traffic is not known: {}.",
            absent.join(", ")
        ),
    };
    let notes = vec![about_roofs.to_string(), about_absent, conditions(results)];
    let guides = roofs.map_or_else(Vec::new, |(bandwidth, peak)| {
        let points = || lines.iter().flat_map(|line| &line.points);
        let ridge = peak / bandwidth;
        let first = points().map(|point| point.0).fold(ridge / 2.0, f64::min);
        let last = points().map(|point| point.0).fold(ridge * 2.0, f64::max);
        let roof = |points: [f64; 2], name: String| Guide {
            points: points
                .map(|at| (at, (at * bandwidth).min(peak) / unit))
                .to_vec(),
            name,
            is_dashed: false,
        };
        let memory = format!("memory: {:.2} TB/s", bandwidth / 1e12);
        let arithmetic = format!("multiply-adds: {:.1} {y}", peak / unit);
        vec![
            roof([first, ridge], memory),
            roof([ridge, last], arithmetic),
        ]
    });
    let axis = |title: String| Axis {
        title,
        is_logarithmic: true,
        marks: Vec::new(),
    };
    let x = "FLOP per byte of global memory (logarithmic)";
    let picture = Lines {
        title: format!("Roofline{}, {}", at(size), of_what(results)),
        notes,
        x: axis(x.to_string()),
        y: axis(format!("{y} (logarithmic)")),
        lines,
        guides,
    };
    picture.draw()
}
