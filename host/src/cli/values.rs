//! How the command line spells what other modules define: names, values, and what help says of
//! them.

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use gpu_gemm::DataType;

use super::sizes::size;
use crate::bench::Sort;
use crate::cpu::Schedule;
use crate::measure::Origin;
use crate::prove::Baseline;
use crate::report::Format;
use crate::source::Filling;

macro_rules! values {
    ($($type:ident: $($value:ident $name:literal $help:literal),+;)*) => {$(
        impl ValueEnum for $type {
            fn value_variants<'a>() -> &'a [$type] {
                &[$($type::$value),+]
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                Some(match self {
                    $($type::$value => PossibleValue::new($name).help($help)),+
                })
            }
        }
    )*};
}

values! {
    Format:
        Table "table" "For people",
        Json "json" "One object; see the documentation of `Report` and `Record`",
        Csv "csv" "A line a kernel, after a line of column names";
    Baseline:
        Auto "auto" "As `best` on a GPU where there is a cuBLAS that multiplies the element type",
        None "none" "Nothing",
        Cublas "cublas" "cuBLAS in its default math mode, as PyTorch calls it; an error where there is \
            none",
        CublasLt "cublaslt" "cublasLt with the fastest of the first eight algorithms that its \
            heuristics propose; an error where there is none",
        Best "best" "Both, of which the faster counts; an error where there is none";
    Schedule:
        Static "static" "As many chunks of equal size as threads, one each",
        Dynamic "dynamic" "A piece at a time, taken by whichever thread is free",
        Guided "guided" "Half of an equal share of what remains, taken by whichever thread is free: \
            chunks shrink towards the end";
    Origin:
        Spread "spread" "Spread over the devices, as the product is divided",
        FirstB "first-b" "B on the first device, A and C spread",
        First "first" "All on the first device",
        Host "host" "In host memory that is not page-locked";
    Sort:
        Ladder "ladder" "As the ladder goes",
        Speed "speed" "The fastest first";
    Filling:
        Normal "normal" "Random, normal with mean 0 and variance 1",
        Uniform "uniform" "Random, uniform over [-1, 1)",
        Positive "positive" "Random, uniform over [0, 1)",
        Graded "graded" "Random, normal, each row of A and each column of B times a power of two of \
            its own, 2^-40 to 2^40 (f16: 2^-2 to 2^2; integers: none)",
        Wide "wide" "Random, normal, each column of A times a power of two of its own, 2^-20 to 2^20 \
            (f16: 2^-1 to 2; integers: none), by which the row of B that it meets is divided: a wide \
            range within rows of A and columns of B, of terms of one size",
        Integers "integers" "Random integers from -4 to 4, or fewer where k is so large that their \
            sums would round",
        IndexSum "index-sum" "The sum of an element's row and column, counted from 0";
}

/// Takes the names of the data types and no others.
pub fn data_type() -> impl TypedValueParser<Value = DataType> {
    let names = DataType::ALL.map(|data_type| {
        PossibleValue::new(data_type.name()).help(match data_type {
            DataType::F32 => "IEEE binary32",
            DataType::F64 => "IEEE binary64",
            DataType::I32 => "32-bit integers whose arithmetic wraps",
            DataType::BF16 => "bfloat16, with sums in f32: on tensor cores",
            DataType::F16 => "IEEE binary16, with sums in f32: on tensor cores",
            DataType::BF16_F32 => "A and B in bf16, sums and C in f32",
            DataType::F16_F32 => "A and B in f16, sums and C in f32",
            _ => "",
        })
    });
    PossibleValuesParser::new(names).try_map(|name| {
        let mut types = DataType::ALL.into_iter();
        // Only these names come here.
        types
            .find(|data_type| data_type.name() == name)
            .ok_or("it is not one of them")
    })
}

/// Takes elements between rows.
pub fn padding() -> impl TypedValueParser<Value = usize> {
    clap::value_parser!(u16).map(usize::from)
}

/// More products are a mistake.
const MOST_PRODUCTS: usize = 1 << 20;

/// Takes the products of a batch.
pub fn batch(text: &str) -> Result<usize, String> {
    match size(text)? {
        batch @ 1..=MOST_PRODUCTS => Ok(batch),
        batch => Err(format!(
            "{batch} is not in 1..={MOST_PRODUCTS}: a batch has at least one product"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_reports_use() {
        let name = |value: Option<PossibleValue>| value.unwrap().get_name().to_string();
        for schedule in Schedule::value_variants() {
            assert_eq!(name(schedule.to_possible_value()), schedule.name());
        }
        for origin in Origin::value_variants() {
            assert_eq!(name(origin.to_possible_value()), origin.name());
        }
        for filling in Filling::value_variants() {
            assert_eq!(name(filling.to_possible_value()), filling.name());
        }
    }
}
