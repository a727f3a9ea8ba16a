//! Counts of the instructions in the mainloops of the f32 kernels on CUDA cores, kept in a file.
//!
//! Counting needs ptxas and nvdisasm, which few machines have. So the counts are kept in
//! `machine-code.json`, for compute capability 9.0: `cargo run -p book` writes that file on a
//! machine with both programs, and the book's tests compare it.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::statistics::MainLoop;

/// The file, relative to the root of the repository.
pub const FILE: &str = "host/src/listing/machine-code.json";

/// The architecture of the counted machine code.
pub const ARCHITECTURE: &str = "sm_90";

/// A variant's machine code: a line of the file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Counts {
    pub variant: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Instructions of the mainloop; the counts below are of the mainloop, too.
    pub instructions: usize,
    pub fmas: usize,
    /// Loads from shared memory, of any width.
    pub shared_loads: usize,
    pub global_loads: usize,
}

impl Counts {
    /// The counts of a variant, from an analysis of its mainloop.
    pub fn of(variant: &str, registers: u32, main_loop: &MainLoop) -> Counts {
        Counts {
            variant: variant.to_string(),
            registers,
            instructions: main_loop.instructions,
            fmas: main_loop.count(main_loop.multiply_add),
            shared_loads: main_loop.count("LDS"),
            global_loads: main_loop.count("LDG"),
        }
    }

    /// The share of FMAs among the instructions of the mainloop.
    pub fn share(&self) -> f64 {
        self.fmas as f64 / self.instructions as f64
    }
}

/// Reads the file.
pub fn parse(text: &str) -> serde_json::Result<Vec<Counts>> {
    serde_json::from_str(text)
}

/// Writes the file, a line for each variant.
pub fn write(counts: &[Counts]) -> serde_json::Result<String> {
    let lines: serde_json::Result<Vec<String>> = counts.iter().map(serde_json::to_string).collect();
    Ok(format!("[\n{}\n]\n", lines?.join(",\n")))
}

/// The kept counts of an f32 variant, if there are any.
pub fn of(variant: &str) -> Option<&'static Counts> {
    /// A test checks that every line of the file can be read.
    static KEPT: LazyLock<Vec<Counts>> =
        LazyLock::new(|| parse(include_str!("machine-code.json")).unwrap_or_default());
    KEPT.iter().find(|counts| counts.variant == variant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_gemm::gpu_kernels::spec::{ElementType, Types, Unit};
    use gpu_gemm::gpu_kernels::variants;

    #[test]
    fn every_variant_of_f32_on_cuda_cores_is_counted_and_nothing_else() {
        let names: Vec<&str> = variants()
            .filter(|variant| variant.types == Types::all(ElementType::F32))
            .filter(|variant| variant.unit == Unit::CudaCores)
            .map(|variant| variant.name)
            .collect();
        let counts = parse(include_str!("machine-code.json")).unwrap();
        let counted: Vec<&str> = counts.iter().map(|one| one.variant.as_str()).collect();
        assert_eq!(counted, names);
        for one in &counts {
            assert!(one.fmas > 0 && one.fmas < one.instructions, "{one:?}");
            assert_eq!(of(&one.variant), Some(one));
        }
    }
}
