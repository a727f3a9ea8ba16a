//! How the command line spells values, and their descriptions for the help.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use gpu_gemm::DataType;

use super::sizes::size;

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
