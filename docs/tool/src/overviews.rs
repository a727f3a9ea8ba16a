//! Tables of all kernels: the ladder from the table of kernels, figures from what `rust-gemm bench`
//! wrote.

use gpu_kernels::KERNELS;
use gpu_kernels::spec::Kernel;
use host::bench::{Results, Size, markdown, preset};

use crate::chapters::{self, Chapter};
use crate::figures::MAIN_SIZE;
use crate::ladder::of_floats;
use crate::measured::h200;

/// A row for each kernel, in the order of the chapters: its number, its name, which links to its
/// chapter, its idea, and the unit it runs on.
pub fn ladder() -> Result<String, String> {
    let mut table =
        "\n| rung | kernel | the idea | runs on |\n| ---: | --- | --- | --- |\n".to_string();
    for Chapter { rung, title, .. } in chapters::all()? {
        let Some(kernel) = KERNELS.iter().find(|kernel| kernel.name == title) else {
            continue;
        };
        let (name, idea) = (kernel.name, kernel.idea);
        let rung = rung.map(|rung| rung.to_string()).unwrap_or_default();
        let runs_on = runs_on(kernel);
        table += &format!("| {rung} | [`{name}`]({name}.md) | {idea} | {runs_on} |\n");
    }
    Ok(table + "\n")
}

/// The unit that multiplies, and the least compute capability of the kernel.
fn runs_on(kernel: &Kernel) -> String {
    let variants = || kernel.variants.iter();
    let unit = variants().next().map_or("", |variant| variant.unit.name());
    let least = variants().map(|variant| variant.least_capability).min();
    let least = least.unwrap_or_default();
    format!("{unit}, {}.{}", least / 10, least % 10)
}

/// A kernel that is no more than this much faster is as fast.
const NOISE: f64 = 1.005;

/// The kernels that are faster than all before them, at whatever size each is the fastest. The
/// others are asides: other ways to round, other layouts, other shapes.
pub fn climbing(results: &Results) -> Vec<&'static Kernel> {
    let mut highest = 0.0;
    let is_higher = |kernel: &&&Kernel| {
        let speeds = results
            .sizes
            .iter()
            .filter_map(|size| fastest(size, kernel));
        let own = speeds.map(|(_, speed)| speed).fold(0.0, f64::max);
        let climbs = own > NOISE * highest;
        highest = own.max(highest);
        climbs
    };
    KERNELS.iter().filter(is_higher).copied().collect()
}

/// A kernel's fastest variant, with its speed in flop/s.
fn fastest(size: &Size, kernel: &Kernel) -> Option<(&'static str, f64)> {
    let of = |name: &'static str| Some((name, size.record(name)?.flops_per_s?));
    let speeds = of_floats(kernel).filter_map(|variant| of(variant.name));
    speeds.max_by(|(_, one), (_, other)| one.total_cmp(other))
}

/// Variants whose gain over their kernel's first variant is a separate lesson, and that lesson.
const LESSONS: [(&str, &str); 1] = [(
    "naive-1d-rows",
    "the same, but neighbouring threads compute neighbours in a row: their loads coalesce",
)];

/// A row for each kernel that is faster than all before it, in its fastest variant: its file, its
/// idea and its speed. Before one of [`LESSONS`], the first variant has a row, too.
pub fn steps() -> Result<String, String> {
    let results = h200()?;
    let mut sizes = results.sizes.iter();
    let size = sizes.find(|size| size.m == MAIN_SIZE);
    let (size, cublas) = size
        .and_then(|size| Some((size, size.cublas()?.flops_per_s?)))
        .ok_or_else(|| format!("cuBLAS was not measured at {MAIN_SIZE}"))?;
    let mut table =
        "\n| kernel | the idea | TFLOP/s | of cuBLAS |\n| --- | --- | ---: | ---: |\n".to_string();
    for kernel in climbing(&results) {
        let (rung, idea) = (kernel.name, kernel.idea);
        let fastest = fastest(size, kernel)
            .ok_or_else(|| format!("`{}` was not measured at {MAIN_SIZE}", kernel.name))?;
        let mut row = |name: &str, idea: &str, speed: f64| {
            let (tflops, share) = (speed / 1e12, 100.0 * speed / cublas);
            table += &format!("| [`{name}`]({rung}.md) | {idea} | {tflops:.1} | {share:.0} % |\n");
        };
        let first = of_floats(kernel).next();
        let first = first.and_then(|one| Some((one.name, size.record(one.name)?.flops_per_s?)));
        match LESSONS
            .iter()
            .find(|(name, _)| *name == fastest.0)
            .zip(first)
        {
            Some(((name, lesson), (first, speed))) => {
                row(first, idea, speed);
                row(name, lesson, fastest.1);
            }
            None => row(fastest.0, idea, fastest.1),
        }
    }
    Ok(table + "\n")
}

/// TFLOP/s of each variant at each size, and as a percentage of cuBLAS.
pub fn overview() -> Result<String, String> {
    // A speed and its percentage stay on one line.
    let table = markdown::overview(&h200()?);
    let table = table.replace(" (", "\u{a0}(").replace(" %)", "\u{a0}%)");
    Ok(format!("\n{table}\n"))
}

/// The rows of the report that the ladder follows, beside its own.
pub fn report() -> Result<String, String> {
    Ok(format!("\n{}\n", preset::table(&h200()?)))
}
