//! How the command line spells values, and their descriptions for the help.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use gpu_gemm::{DataType, Variant};

use super::exit::{Stop, usage};
use super::sizes::size;
use crate::rung::Asked;
use crate::select;

/// The kernels that a subcommand describes.
#[derive(Debug, Args)]
pub struct KernelArguments {
    /// A kernel or a variant, as `--list` shows them, `all`, or a pattern such as `tiled-*`; for
    /// `explain` also a CPU rung, `cpu`, or `auto` for the kernel that suits the shape
    kernel: String,

    /// The type of the elements [default: f32, or the first that the kernels multiply]
    #[arg(long, value_name = "TYPE", value_parser = data_type())]
    dtype: Option<DataType>,
}

impl KernelArguments {
    /// The variants that multiply the type.
    pub fn variants(&self) -> Result<Vec<&'static Variant>, Stop> {
        let names = std::slice::from_ref(&self.kernel);
        let data_type = select::type_for(self.dtype, names);
        select::kernels(names, data_type).map_err(usage)
    }

    /// The variants and CPU rungs, or `auto`, and the type.
    pub fn asked(&self) -> Result<(Vec<Asked>, DataType), Stop> {
        let names = std::slice::from_ref(&self.kernel);
        let data_type = select::type_for(self.dtype, names);
        let asked = select::ask(names, data_type).map_err(usage)?;
        Ok((asked, data_type))
    }
}

/// Parses the name of a data type.
pub fn data_type() -> impl TypedValueParser<Value = DataType> {
    let names = DataType::ALL.map(|data_type| {
        PossibleValue::new(data_type.name()).help(match data_type {
            DataType::F32 => "IEEE binary32",
            DataType::F64 => "IEEE binary64",
            DataType::I32 => "32-bit integers with wrapping arithmetic",
            DataType::BF16 => "bfloat16, with sums in f32: on tensor cores",
            DataType::F16 => "IEEE binary16, with sums in f32: on tensor cores",
            DataType::BF16_F32 => "A and B in bf16, sums and C in f32",
            DataType::F16_F32 => "A and B in f16, sums and C in f32",
            DataType::I8 => "A and B in 8-bit integers, sums and C in i32: on tensor cores",
            DataType::E4M3 => "A and B in floats of 8 bits, sums and C in f32: on tensor cores",
            DataType::E4M3_BF16 => "A and B in floats of 8 bits, sums in f32, C in bf16",
            _ => "",
        })
    });
    PossibleValuesParser::new(names).try_map(|name| {
        let mut types = DataType::ALL.into_iter();
        // The parser lets only these names through.
        types
            .find(|data_type| data_type.name() == name)
            .ok_or("it is not one of them")
    })
}

/// Parses the number of elements between rows.
pub fn padding() -> impl TypedValueParser<Value = usize> {
    clap::value_parser!(u16).map(usize::from)
}

/// The largest batch. A larger one is taken for a mistake.
const MOST_PRODUCTS: usize = 1 << 20;

/// Parses a batch size.
pub fn batch(text: &str) -> Result<usize, String> {
    match size(text)? {
        batch @ 1..=MOST_PRODUCTS => Ok(batch),
        batch => Err(format!(
            "{batch} is not in 1..={MOST_PRODUCTS}: a batch has at least one product"
        )),
    }
}
