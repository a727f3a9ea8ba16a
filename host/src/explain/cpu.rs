//! The explanation of a CPU rung: the text of its source file, and figures for the shape.

use std::io::{self, Write};

use gpu_gemm::{DataType, ElementType, Shape};

use crate::cpu::{self, Algorithm};
use crate::traffic;

/// Explains a rung. `reads_c` is false where beta is zero.
pub fn write_cpu(
    algorithm: &Algorithm,
    data_type: DataType,
    shape: Shape,
    reads_c: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let types: Vec<&str> = algorithm
        .types()
        .into_iter()
        .map(ElementType::name)
        .collect();
    writeln!(out, "{}: {}", algorithm.name, algorithm.idea)?;
    writeln!(
        out,
        "{}; {shape} of {data_type} (m x n x k)\n",
        algorithm.source
    )?;
    writeln!(out, "multiplies {}, natively on the CPU", types.join(", "))?;
    writeln!(out, "threads    {}\n", algorithm.threads.description())?;
    writeln!(out, "{}\n", cpu::about(algorithm))?;
    let intensity = traffic::compulsory_intensity(shape, data_type, reads_c);
    writeln!(
        out,
        "intensity  {intensity:.1} operations a byte if every element moved once"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rung_is_explained_by_the_text_of_its_file() {
        for rung in cpu::RUNGS {
            let about = cpu::about(rung);
            assert!(about.lines().count() > 3, "{about}");
            let is_plain = !about.contains("//!") && !about.contains("```");
            assert!(is_plain && !about.contains("[`"), "{about}");
            assert!(about.ends_with(['.', ')']), "{about}");
        }
    }
}
