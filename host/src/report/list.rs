//! The list of kernels and CPU rungs: for people, as JSON and as CSV.

use std::io::{self, Write};

use gpu_gemm::ElementType;
use gpu_gemm::gpu_kernels::spec::{ErrorScale, Kernel, Variant};
use serde::Serialize;

use super::Format;
use crate::cpu::Algorithm;

/// Everything that `--kernel` can name. This is the layout of the JSON of `--list`.
#[derive(Debug, Serialize)]
pub struct List {
    /// The version of this layout: 2. Fields may be added to it; none changes or goes. In version 1
    /// `kernel` was what is `family` now, and `variant` what is `kernel` in reports, too.
    pub schema: u32,
    /// In the order of the ladder.
    pub kernels: Vec<ListedKernel>,
    /// In teaching order.
    pub cpu_rungs: Vec<ListedRung>,
}

/// A rung of the GPU's ladder.
#[derive(Debug, Serialize)]
pub struct ListedKernel {
    /// The name that stands for its first variant of a type.
    pub family: &'static str,
    pub idea: &'static str,
    pub source: &'static str,
    pub variants: Vec<ListedVariant>,
}

/// A variant: its name, its type, the threads of a CTA, and its block tile.
#[derive(Debug, Serialize)]
pub struct ListedVariant {
    /// As in the records of reports.
    pub kernel: &'static str,
    pub dtype: &'static str,
    pub block_x: u32,
    pub block_y: u32,
    pub tile_m: u32,
    pub tile_n: u32,
    pub tile_k: u32,
    /// What multiplies: `CUDA cores` or `tensor cores`.
    pub unit: &'static str,
    /// The least compute capability that it is for, times ten.
    pub least_capability: u32,
    /// Whether it computes all products of a batch in one launch, where A and B need no copies.
    pub batched: bool,
    /// What errors are in proportion to: as in the records of reports.
    pub error_model: &'static str,
}

/// A rung of the CPU's ladder.
#[derive(Debug, Serialize)]
pub struct ListedRung {
    pub kernel: &'static str,
    pub idea: &'static str,
    pub source: &'static str,
    pub dtypes: Vec<&'static str>,
    /// What decides on how many threads it runs: `1`, or options, or itself.
    pub threads_by: &'static str,
}

/// A line of CSV: a variant, or a CPU rung of a type. What does not apply is empty.
#[derive(Default, Serialize)]
struct Line {
    family: &'static str,
    kernel: &'static str,
    dtype: &'static str,
    block_x: Option<u32>,
    block_y: Option<u32>,
    tile_m: Option<u32>,
    tile_n: Option<u32>,
    tile_k: Option<u32>,
    threads_by: Option<&'static str>,
    idea: &'static str,
    source: &'static str,
    unit: Option<&'static str>,
    least_capability: Option<u32>,
    batched: Option<bool>,
    error_model: Option<&'static str>,
}

/// The width of what is written to no terminal, and limits for terminals: names need the first,
/// and lines longer than the last are hard to read.
const WIDTH: usize = 80;
const WIDTHS: std::ops::RangeInclusive<usize> = 74..=120;

/// The columns that there are for a list: those of the terminal, if standard output is one.
pub fn width() -> usize {
    let terminal = rustix::termios::tcgetwinsize(io::stdout()).ok();
    // A terminal that does not know its size says 0.
    let columns = terminal.map(|size| usize::from(size.ws_col));
    let columns = columns.filter(|columns| *columns > 0).unwrap_or(WIDTH);
    columns.clamp(*WIDTHS.start(), *WIDTHS.end())
}

impl List {
    /// The list of these.
    pub fn of(kernels: &[&Kernel], algorithms: &[&Algorithm]) -> List {
        let variant = |variant: &Variant| ListedVariant {
            kernel: variant.name,
            dtype: variant.types.data_type().name(),
            block_x: variant.block.x,
            block_y: variant.block.y,
            tile_m: variant.tile.m,
            tile_n: variant.tile.n,
            tile_k: variant.tile.k,
            unit: variant.unit.name(),
            least_capability: variant.least_capability,
            batched: variant.takes_batches(),
            error_model: variant.rounding.error_scale().name(),
        };
        let kernel = |kernel: &&Kernel| ListedKernel {
            family: kernel.name,
            idea: kernel.idea,
            source: kernel.source,
            variants: kernel.variants.iter().map(variant).collect(),
        };
        let rung = |algorithm: &&Algorithm| ListedRung {
            kernel: algorithm.name,
            idea: algorithm.idea,
            source: algorithm.source,
            dtypes: algorithm
                .types()
                .into_iter()
                .map(ElementType::name)
                .collect(),
            threads_by: algorithm.threads.description(),
        };
        List {
            schema: 2,
            kernels: kernels.iter().map(kernel).collect(),
            cpu_rungs: algorithms.iter().map(rung).collect(),
        }
    }

    /// Writes the list. For people, no line is longer than `width`.
    pub fn write(&self, format: Format, width: usize, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::Table => self.write_text(width, out),
            Format::Json => writeln!(out, "{}", serde_json::to_string_pretty(self)?),
            Format::Csv => {
                let mut writer = csv::Writer::from_writer(out);
                for line in self.lines() {
                    writer.serialize(line).map_err(super::csv::io_error)?;
                }
                writer.flush()
            }
        }
    }

    fn write_text(&self, width: usize, out: &mut dyn Write) -> io::Result<()> {
        let about = "GPU kernels in the order of the ladder, each with its idea and its variants. A \
                     kernel's name stands for its first variant of the type. A block tile is m x n x \
                     k; what multiplies is followed by the least compute capability that it is for.";
        writeln!(out, "{}\n", wrapped(about, width))?;
        let head = ["variant", "type", "block", "block tile", "cores"].map(String::from);
        writeln!(out, "{}", row(&head))?;
        for kernel in &self.kernels {
            let title = format!("{}: {}", kernel.family, kernel.idea);
            writeln!(out, "\n{}", wrapped(&title, width))?;
            for variant in &kernel.variants {
                let cells = [
                    variant.kernel.to_string(),
                    variant.dtype.to_string(),
                    format!("{} x {}", variant.block_x, variant.block_y),
                    format!(
                        "{} x {} x {}",
                        variant.tile_m, variant.tile_n, variant.tile_k
                    ),
                    format!(
                        "{} {}.{}",
                        variant.unit.trim_end_matches(" cores"),
                        variant.least_capability / 10,
                        variant.least_capability % 10
                    ),
                ];
                writeln!(out, "{}", row(&cells))?;
            }
        }
        let text = format!(
            "One launch can compute a batch of products (--batch), but by {}.",
            self.names(|variant| !variant.batched)
        );
        writeln!(out, "\n{}", wrapped(&text, width))?;
        let by_maxima = ErrorScale::RowsAndColumns.name();
        let text = format!(
            "Error model: {}, in proportion to the magnitudes of an element's own terms; {by_maxima}, to \
             those and to the largest elements of its row of A and its column of B, of {}; {} of \
             integers.",
            ErrorScale::Terms.name(),
            self.names(|variant| variant.error_model == by_maxima),
            ErrorScale::Nothing.name()
        );
        writeln!(out, "\n{}", wrapped(&text, width))?;
        writeln!(out, "\nCPU rungs, each with its types and its threads:")?;
        for rung in &self.cpu_rungs {
            let title = format!("{}: {}", rung.kernel, rung.idea);
            let (types, threads) = (rung.dtypes.join(", "), rung.threads_by);
            writeln!(out, "\n{}", wrapped(&title, width))?;
            writeln!(out, "    {types}; threads: {threads}")?;
        }
        Ok(())
    }

    /// The names of some variants, each once.
    fn names(&self, of: impl Fn(&ListedVariant) -> bool) -> String {
        let variants = self.kernels.iter().flat_map(|kernel| &kernel.variants);
        let some = variants.filter(|variant| of(variant));
        let mut names: Vec<&str> = some.map(|variant| variant.kernel).collect();
        names.dedup();
        names.join(", ")
    }

    fn lines(&self) -> Vec<Line> {
        let of_kernels = self.kernels.iter().flat_map(|kernel| {
            kernel.variants.iter().map(|variant| Line {
                family: kernel.family,
                kernel: variant.kernel,
                dtype: variant.dtype,
                block_x: Some(variant.block_x),
                block_y: Some(variant.block_y),
                tile_m: Some(variant.tile_m),
                tile_n: Some(variant.tile_n),
                tile_k: Some(variant.tile_k),
                idea: kernel.idea,
                source: kernel.source,
                unit: Some(variant.unit),
                least_capability: Some(variant.least_capability),
                batched: Some(variant.batched),
                error_model: Some(variant.error_model),
                threads_by: None,
            })
        });
        let of_rungs = self.cpu_rungs.iter().flat_map(|rung| {
            rung.dtypes.iter().map(|dtype| Line {
                family: rung.kernel,
                kernel: rung.kernel,
                dtype,
                threads_by: Some(rung.threads_by),
                idea: rung.idea,
                source: rung.source,
                ..Line::default()
            })
        });
        of_kernels.chain(of_rungs).collect()
    }
}

/// A variant's line. The columns are as wide as the longest name and the largest tile.
fn row([variant, dtype, block, tile, cores]: &[String; 5]) -> String {
    let line = format!("  {variant:<27} {dtype:<8} {block:<8} {tile:<15} {cores}");
    line.trim_end().to_string()
}

/// `text` in lines of at most `width` characters, cut between words; all but the first are
/// indented.
fn wrapped(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line > 0 && line + 1 + word.chars().count() > width {
            lines.push(format!("  {word}"));
        } else if let Some(last) = lines.last_mut() {
            if line > 0 {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> List {
        List::of(gpu_gemm::gpu_kernels::KERNELS, crate::cpu::RUNGS)
    }

    fn written(format: Format, width: usize) -> String {
        let mut out = Vec::new();
        list().write(format, width, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_list_names_everything_and_fits_the_terminal() {
        for width in [*WIDTHS.start(), WIDTH, *WIDTHS.end()] {
            let text = written(Format::Table, width);
            for line in text.lines() {
                let columns = line.chars().count();
                assert!(columns <= width, "{columns} in {width}: {line}");
            }
            let words: Vec<&str> = text.split_whitespace().collect();
            let all = words.join(" ");
            for kernel in gpu_gemm::gpu_kernels::KERNELS {
                let title = format!("{}: {}", kernel.name, kernel.idea);
                assert!(all.contains(&title), "{title}");
                for variant in kernel.variants {
                    assert!(words.contains(&variant.name), "{}", variant.name);
                }
            }
            let (_, of_batches) = all.split_once("of products (--batch), but by ").unwrap();
            let (of_batches, _) = of_batches.split_once('.').unwrap();
            let named: Vec<&str> = of_batches.split(", ").collect();
            let mut batched: Vec<&str> = gpu_gemm::gpu_kernels::variants()
                .filter(|variant| !variant.takes_batches())
                .map(|variant| variant.name)
                .collect();
            batched.dedup();
            assert_eq!(named, batched);
            for rung in crate::cpu::RUNGS {
                assert!(all.contains(&format!("{}: {}", rung.name, rung.idea)));
            }
        }
    }

    #[test]
    fn every_variant_has_an_error_model_and_the_text_names_those_that_have_another() {
        let list = list();
        let variants = list.kernels.iter().flat_map(|kernel| &kernel.variants);
        for variant in variants {
            let expected = match (variant.kernel, variant.dtype) {
                ("split-fp32", _) => "row-column",
                (_, "i32") => "exact",
                _ => "elementwise",
            };
            assert_eq!(variant.error_model, expected, "{}", variant.kernel);
        }
        let text = written(Format::Table, WIDTH).replace("\n  ", " ");
        assert!(text.contains("its column of B, of split-fp32; exact of integers."));
        assert!(written(Format::Json, WIDTH).contains("\"error_model\": \"row-column\""));
    }
}
