//! The explanation of a CPU rung: the text of its source file, and figures for the shape.

use std::io::{self, Write};

use gpu_gemm::{DataType, ElementType, Shape};
use serde::Serialize;

use crate::cpu::{self, Algorithm};
use crate::traffic;

/// Everything about a CPU rung and a shape. This is the layout of its JSON.
#[derive(Clone, Debug, Serialize)]
pub struct CpuExplanation {
    /// The version of this layout: 1. Fields may be added to it; none is changed or removed.
    pub schema: u32,
    /// The rung, such as `cpu-ikj`.
    pub kernel: &'static str,
    pub idea: &'static str,
    pub source: &'static str,
    pub dtype: &'static str,
    /// Every element type that it multiplies.
    pub dtypes: Vec<&'static str>,
    /// The number of threads: `1`, or the options that set it.
    pub threads: &'static str,
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// How it works, and its memory traffic if known, from the comment of its source.
    pub about: String,
    /// `2 * m * n * k`; rungs like `cpu-strassen` need fewer.
    pub operations: f64,
    /// Operations per byte if every element moved once.
    pub compulsory_intensity: f64,
}

impl CpuExplanation {
    /// Explains a rung. `reads_c` is false where beta is zero.
    pub fn of(
        algorithm: &Algorithm,
        data_type: DataType,
        shape: Shape,
        reads_c: bool,
    ) -> CpuExplanation {
        let types = algorithm.types().into_iter().map(ElementType::name);
        CpuExplanation {
            schema: 1,
            kernel: algorithm.name,
            idea: algorithm.idea,
            source: algorithm.source,
            dtype: data_type.name(),
            dtypes: types.collect(),
            threads: algorithm.threads.description(),
            m: shape.m,
            n: shape.n,
            k: shape.k,
            about: cpu::about(algorithm),
            operations: shape.flops(),
            compulsory_intensity: traffic::compulsory_intensity(shape, data_type, reads_c),
        }
    }

    /// Writes the explanation for people.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let shape = Shape::new(self.m, self.n, self.k);
        writeln!(out, "{}: {}", self.kernel, self.idea)?;
        writeln!(
            out,
            "{}; {shape} of {} (m x n x k)\n",
            self.source, self.dtype
        )?;
        writeln!(
            out,
            "multiplies {}, natively on the CPU",
            self.dtypes.join(", ")
        )?;
        writeln!(out, "threads    {}\n", self.threads)?;
        writeln!(out, "{}\n", self.about)?;
        writeln!(
            out,
            "intensity  {:.1} operations a byte if every element moved once",
            self.compulsory_intensity
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rung_is_explained_by_the_text_of_its_file() {
        for rung in cpu::RUNGS {
            let explained = CpuExplanation::of(rung, DataType::F32, Shape::cube(100), false);
            let about = &explained.about;
            assert!(about.lines().count() > 3, "{about}");
            let is_plain = !about.contains("//!") && !about.contains("```");
            assert!(is_plain && !about.contains("[`"), "{about}");
            assert!(about.ends_with(['.', ')']), "{about}");
        }
    }
}
