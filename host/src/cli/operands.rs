//! The options for the factors and for how matrices are stored, which one call and a benchmark
//! share.

use clap::Args;
use gpu_gemm::Transpose;

use super::exit::{Stop, usage};
use super::values;
use crate::data::Storage;
use crate::rung::Asked;

/// The factors, and how matrices are stored.
#[derive(Debug, Args)]
pub struct OperandArguments {
    /// The factor of A * B
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    pub alpha: f64,

    /// The factor of the old C, which is not read if this is 0
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    pub beta: f64,

    /// A is stored transposed, as k x m: its transpose is multiplied
    #[arg(long)]
    transpose_a: bool,

    /// B is stored transposed, as n x k: its transpose is multiplied
    #[arg(long)]
    transpose_b: bool,

    /// Elements between the end of each row of A, B and C, as stored, and the start of the next,
    /// which add to the leading dimensions
    #[arg(long, value_name = "ELEMENTS", default_value_t = 0, value_parser = values::padding())]
    pub padding: usize,

    /// The batch size: the number of products of one shape, each with its own A, B and C. All A
    /// are contiguous in memory, as are all B and all C. The speed is the whole batch's
    #[arg(long, value_name = "PRODUCTS", default_value_t = 1, value_parser = values::batch)]
    pub batch: usize,
}

impl OperandArguments {
    /// Whether A and B are stored transposed.
    pub fn transposes(&self) -> [Transpose; 2] {
        [self.transpose_a, self.transpose_b].map(|is_transposed| match is_transposed {
            true => Transpose::Yes,
            false => Transpose::No,
        })
    }

    /// How the matrices are stored; an error if a requested kernel cannot multiply such matrices.
    pub fn storage(&self, asked: &[Asked]) -> Result<Storage, Stop> {
        let option = match (self.transpose_a, self.transpose_b) {
            (true, _) => Some("--transpose-a"),
            (false, true) => Some("--transpose-b"),
            (false, false) => None,
        };
        match (option, asked.iter().find(|asked| asked.is_native())) {
            (Some(option), Some(rung)) => Err(usage(format!(
                "The CPU rung `{}` multiplies matrices that are not transposed; leave out \
                 {option}, or name only GPU kernels.",
                rung.name()
            ))),
            _ => Ok(Storage {
                transposes: self.transposes(),
                padding: [self.padding; 3],
                batch: self.batch,
                ..Storage::COMPACT
            }),
        }
    }
}
