//! The list of kernels and CPU rungs: for people and as JSON.

use std::io::{self, Write};

use gpu_gemm::gpu_kernels::spec::{ErrorScale, Kernel};
use serde::Serialize;

use super::{Format, folded};
use crate::cpu::Algorithm;

/// Everything that `--kernel` can name. This is the layout of the JSON of `--list`.
#[derive(Debug, Serialize)]
pub struct List {
    /// The version of this layout: 3. Fields may be added to it; none is changed or removed. In
    /// version 2 each kernel was an object with its variants.
    pub schema: u32,
    /// The variants in the order of the ladder, then the CPU's rungs.
    pub variants: Vec<Listed>,
}

/// A variant of a GPU kernel, or a CPU rung for one type. Fields that do not apply to CPU rungs are
/// null.
#[derive(Debug, Default, Serialize)]
pub struct Listed {
    /// The short name, which selects the first variant of a type.
    pub family: &'static str,
    /// The name as in the records of reports.
    pub kernel: &'static str,
    pub dtype: &'static str,
    /// The threads of a CTA.
    pub block_x: Option<u32>,
    pub block_y: Option<u32>,
    /// The block tile.
    pub tile_m: Option<u32>,
    pub tile_n: Option<u32>,
    pub tile_k: Option<u32>,
    /// A CPU rung's number of threads: `1`, or the options that set it, or that it decides itself.
    pub threads_by: Option<&'static str>,
    pub idea: &'static str,
    pub source: &'static str,
    /// The unit that multiplies: `CUDA cores` or `tensor cores`.
    pub unit: Option<&'static str>,
    /// The lowest compute capability that it requires, times ten.
    pub least_capability: Option<u32>,
    /// Whether it computes all products of a batch in one launch, where A and B need no copies.
    pub batched: Option<bool>,
    /// What errors are proportional to, as in the records of reports.
    pub error_model: Option<&'static str>,
}

impl List {
    /// The list of these kernels and rungs.
    pub fn of(kernels: &[&Kernel], algorithms: &[&Algorithm]) -> List {
        let of_gpu = kernels.iter().flat_map(|kernel| {
            kernel.variants.iter().map(|variant| Listed {
                family: kernel.name,
                kernel: variant.name,
                dtype: variant.types.data_type().name(),
                block_x: Some(variant.block.x),
                block_y: Some(variant.block.y),
                tile_m: Some(variant.tile.m),
                tile_n: Some(variant.tile.n),
                tile_k: Some(variant.tile.k),
                threads_by: None,
                idea: kernel.idea,
                source: kernel.source,
                unit: Some(variant.unit.name()),
                least_capability: Some(variant.least_capability),
                batched: Some(variant.takes_batches()),
                error_model: Some(variant.rounding.error_scale().name()),
            })
        });
        let of_cpu = algorithms.iter().flat_map(|rung| {
            rung.types().into_iter().map(|element| Listed {
                family: rung.name,
                kernel: rung.name,
                dtype: element.name(),
                threads_by: Some(rung.threads.description()),
                idea: rung.idea,
                source: rung.source,
                ..Listed::default()
            })
        });
        List {
            schema: 3,
            variants: of_gpu.chain(of_cpu).collect(),
        }
    }

    /// Writes the list.
    pub fn write(&self, format: Format, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::Table => self.write_text(out),
            Format::Json => writeln!(out, "{}", serde_json::to_string_pretty(self)?),
        }
    }

    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let about = "GPU kernels in the order of the ladder, each with its idea and its variants. A \
                     kernel's name selects its first variant of the type. A block tile is m x n x \
                     k; after the unit that multiplies comes the lowest compute capability that it needs. \
                     CPU rungs follow, each with its types and its threads.";
        writeln!(out, "{}\n", folded(about))?;
        writeln!(
            out,
            "{}",
            row("variant", "type", "block", "block tile", "cores")
        )?;
        let families = self
            .variants
            .chunk_by(|one, next| one.family == next.family);
        for family in families {
            let Listed {
                family: name, idea, ..
            } = &family[0];
            writeln!(out, "\n{}", folded(&format!("{name}: {idea}")))?;
            match family[0].threads_by {
                Some(threads) => {
                    let types: Vec<&str> = family.iter().map(|rung| rung.dtype).collect();
                    writeln!(out, "    {}; threads: {threads}", types.join(", "))?;
                }
                None => {
                    for variant in family {
                        writeln!(out, "{}", variant.row())?;
                    }
                }
            }
        }
        let text = format!(
            "One launch can compute a batch of products (--batch), except with {}.",
            self.names(|variant| variant.batched == Some(false))
        );
        writeln!(out, "\n{}", folded(&text))?;
        let by_maxima = ErrorScale::RowsAndColumns.name();
        let text = format!(
            "Error model: {}, proportional to the magnitudes of an element's own terms; {by_maxima}, also \
             to the largest elements of its row of A and its column of B, for {}; {} for integers.",
            ErrorScale::Terms.name(),
            self.names(|variant| variant.error_model == Some(by_maxima)),
            ErrorScale::Nothing.name()
        );
        writeln!(out, "\n{}", folded(&text))
    }

    /// The names of the variants for which `of` is true, without duplicates.
    fn names(&self, of: impl Fn(&Listed) -> bool) -> String {
        let some = self.variants.iter().filter(|variant| of(variant));
        let mut names: Vec<&str> = some.map(|variant| variant.kernel).collect();
        names.dedup();
        names.join(", ")
    }
}

impl Listed {
    /// A variant's line.
    fn row(&self) -> String {
        let number = |number: Option<u32>| number.unwrap_or_default();
        let [x, y] = [self.block_x, self.block_y].map(number);
        let [m, n, k] = [self.tile_m, self.tile_n, self.tile_k].map(number);
        let unit = self.unit.unwrap_or_default().trim_end_matches(" cores");
        let least = number(self.least_capability);
        row(
            self.kernel,
            self.dtype,
            &format!("{x} x {y}"),
            &format!("{m} x {n} x {k}"),
            &format!("{unit} {}.{}", least / 10, least % 10),
        )
    }
}

/// A line. The columns fit the longest name and the largest tile.
fn row(variant: &str, dtype: &str, block: &str, tile: &str, cores: &str) -> String {
    let line = format!("  {variant:<27} {dtype:<8} {block:<8} {tile:<15} {cores}");
    line.trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> List {
        List::of(gpu_gemm::gpu_kernels::KERNELS, crate::cpu::RUNGS)
    }

    #[test]
    fn the_text_names_everything_and_what_is_special_in_80_columns() {
        let mut out = Vec::new();
        list().write(Format::Table, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let all = words.join(" ");
        for listed in list().variants {
            let title = format!("{}: {}", listed.family, listed.idea);
            assert!(all.contains(&title), "{title}");
            let is_there = listed.threads_by.is_some() || words.contains(&listed.kernel);
            assert!(is_there, "{}", listed.kernel);
        }
        assert!(all.contains("its column of B, for split-fp32; exact for integers."));
        let (_, of_batches) = all
            .split_once("of products (--batch), except with ")
            .unwrap();
        let (of_batches, _) = of_batches.split_once('.').unwrap();
        let mut alone: Vec<&str> = gpu_gemm::gpu_kernels::variants()
            .filter(|variant| !variant.takes_batches())
            .map(|variant| variant.name)
            .collect();
        alone.dedup();
        assert_eq!(of_batches.split(", ").collect::<Vec<_>>(), alone);
    }

    #[test]
    fn every_variant_has_an_error_model() {
        for variant in list().variants {
            let expected = match (variant.kernel, variant.dtype) {
                _ if variant.threads_by.is_some() => None,
                ("split-fp32", _) => Some("row-column"),
                (_, "i32" | "i8") => Some("exact"),
                _ => Some("elementwise"),
            };
            assert_eq!(variant.error_model, expected, "{}", variant.kernel);
        }
    }
}
