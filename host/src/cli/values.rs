//! How the command line spells what other modules define: names, values, and what help says of
//! them.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use gpu_gemm::ElementType;

use crate::bench::Sort;
use crate::cpu::Schedule;
use crate::prove::Baseline;
use crate::report::Format;
use crate::source::Filling;

/// A name, what it stands for, and what help says of it.
type Value<T> = (&'static str, T, &'static str);

const ELEMENT_TYPES: &[Value<ElementType>] = &[
    ("f32", ElementType::F32, "IEEE binary32"),
    ("f64", ElementType::F64, "IEEE binary64"),
    (
        "i32",
        ElementType::I32,
        "32-bit integers whose arithmetic wraps",
    ),
];

const FORMATS: &[Value<Format>] = &[
    ("table", Format::Table, "For people"),
    (
        "json",
        Format::Json,
        "One object; see the documentation of `Report` and `Record`",
    ),
    (
        "csv",
        Format::Csv,
        "A line a kernel, after a line of column names",
    ),
];

const BASELINES: &[Value<Baseline>] = &[
    (
        "auto",
        Baseline::Auto,
        "cuBLAS, where there is a GPU, a cuBLAS, and a function of it for the element type",
    ),
    ("none", Baseline::None, "Nothing"),
    (
        "cublas",
        Baseline::Cublas,
        "cuBLAS; an error where there is none",
    ),
];

const SCHEDULES: &[Value<Schedule>] = &[
    (
        "static",
        Schedule::Static,
        "As many chunks of equal size as threads, one each",
    ),
    (
        "dynamic",
        Schedule::Dynamic,
        "A piece at a time, taken by whichever thread is free",
    ),
    (
        "guided",
        Schedule::Guided,
        "Half of an equal share of what remains, taken by whichever thread is free: chunks shrink towards the end",
    ),
];

const SORTS: &[Value<Sort>] = &[
    ("ladder", Sort::Ladder, "As the ladder goes"),
    ("speed", Sort::Speed, "The fastest first"),
];

const FILLINGS: &[Value<Filling>] = &[
    (
        "normal",
        Filling::Normal,
        "Random, normal with mean 0 and variance 1",
    ),
    ("uniform", Filling::Uniform, "Random, uniform over [-1, 1)"),
    ("positive", Filling::Positive, "Random, uniform over [0, 1)"),
    (
        "integers",
        Filling::Integers,
        "Random integers from -4 to 4, or fewer where k is so large that their sums would round",
    ),
    (
        "index-sum",
        Filling::IndexSum,
        "The sum of an element's row and column, counted from 0",
    ),
];

pub(super) fn element_type() -> impl TypedValueParser<Value = ElementType> {
    one_of(ELEMENT_TYPES)
}

pub(super) fn format() -> impl TypedValueParser<Value = Format> {
    one_of(FORMATS)
}

pub(super) fn baseline() -> impl TypedValueParser<Value = Baseline> {
    one_of(BASELINES)
}

pub(super) fn schedule() -> impl TypedValueParser<Value = Schedule> {
    one_of(SCHEDULES)
}

pub(super) fn sort() -> impl TypedValueParser<Value = Sort> {
    one_of(SORTS)
}

pub(super) fn filling() -> impl TypedValueParser<Value = Filling> {
    one_of(FILLINGS)
}

/// Takes these names and no others.
fn one_of<T>(values: &'static [Value<T>]) -> impl TypedValueParser<Value = T>
where
    T: Clone + Send + Sync + 'static,
{
    let names = values
        .iter()
        .map(|(name, _, help)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(names).try_map(|name| {
        let found = values.iter().find(|value| value.0 == name);
        // Only names of the table come here.
        found
            .map(|value| value.1.clone())
            .ok_or("it is not one of them")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_reports_use() {
        for (name, element, _) in ELEMENT_TYPES {
            assert_eq!(*name, element.name());
        }
        for (name, schedule, _) in SCHEDULES {
            assert_eq!(*name, schedule.name());
        }
        for (name, filling, _) in FILLINGS {
            assert_eq!(*name, filling.name());
        }
        assert_eq!(ELEMENT_TYPES.len(), ElementType::ALL.len());
    }
}
