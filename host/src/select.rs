//! From the names on the command line to kernels.

use gpu_kernels::spec::{Kernel, Variant};
use thiserror::Error;

use crate::element::DataType;

/// The kernel that runs if none is named.
pub const DEFAULT: &str = "double-buffer";

/// A name that stands for no kernel.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SelectError {
    #[error("There is no kernel `{name}`{} There are: {}.", suggestion(.similar), .known.join(", "))]
    Unknown {
        name: String,
        similar: Option<String>,
        known: Vec<&'static str>,
    },
    #[error("Kernel `{name}` does not multiply {asked}; these do: {}.", .others.join(", "))]
    WrongType {
        name: String,
        asked: DataType,
        others: Vec<&'static str>,
    },
}

fn suggestion(similar: &Option<String>) -> String {
    match similar {
        Some(name) => format!("; did you mean `{name}`?"),
        None => ".".to_string(),
    }
}

/// The variants that `names` stand for, each once, in the order named. A kernel's name stands for its first variant of the
/// element type, a variant's for itself, and `all` for every variant of the element type.
///
/// # Errors
///
/// A name is unknown, or is that of a kernel without the element type.
pub fn select(
    kernels: &[&'static Kernel],
    names: &[String],
    data_type: DataType,
) -> Result<Vec<&'static Variant>, SelectError> {
    let mut selected: Vec<&'static Variant> = Vec::new();
    for name in names {
        let found = match name.as_str() {
            "all" => of_type(kernels, data_type),
            name => vec![find(kernels, name, data_type)?],
        };
        for variant in found {
            if !selected.iter().any(|known| std::ptr::eq(*known, variant)) {
                selected.push(variant);
            }
        }
    }
    Ok(selected)
}

fn of_type(kernels: &[&'static Kernel], data_type: DataType) -> Vec<&'static Variant> {
    kernels
        .iter()
        .flat_map(|kernel| kernel.variants)
        .filter(|variant| DataType::of(variant) == data_type)
        .collect()
}

fn find(
    kernels: &[&'static Kernel],
    name: &str,
    data_type: DataType,
) -> Result<&'static Variant, SelectError> {
    let named: Vec<&'static Variant> = kernels
        .iter()
        .flat_map(|kernel| {
            let of_kernel = kernel.name == name;
            kernel
                .variants
                .iter()
                .filter(move |variant| of_kernel || variant.name == name)
        })
        .collect();
    if named.is_empty() {
        return Err(unknown(kernels, name));
    }
    named
        .iter()
        .find(|variant| DataType::of(variant) == data_type)
        .copied()
        .ok_or_else(|| SelectError::WrongType {
            name: name.to_string(),
            asked: data_type,
            others: of_type(kernels, data_type)
                .iter()
                .map(|variant| variant.name)
                .collect(),
        })
}

fn unknown(kernels: &[&'static Kernel], name: &str) -> SelectError {
    let mut known: Vec<&'static str> = kernels
        .iter()
        .flat_map(|kernel| {
            std::iter::once(kernel.name).chain(kernel.variants.iter().map(|variant| variant.name))
        })
        .collect();
    let mut seen = std::collections::HashSet::new();
    known.retain(|name| seen.insert(*name));
    let similar = known
        .iter()
        .map(|known| (edit_distance(name, known), known))
        .min()
        .filter(|&(distance, known)| distance <= known.len() / 2)
        .map(|(_, known)| known.to_string());
    SelectError::Unknown {
        name: name.to_string(),
        similar,
        known,
    }
}

/// Letters to insert, delete or replace to make one word of another (Levenshtein).
fn edit_distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut distances: Vec<usize> = (0..=other.len()).collect();
    for (row, letter) in one.chars().enumerate() {
        let mut diagonal = distances[0];
        distances[0] = row + 1;
        for (col, other_letter) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other_letter);
            diagonal = distances[col + 1];
            distances[col + 1] = replaced.min(diagonal + 1).min(distances[col] + 1);
        }
    }
    distances[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_kernels::KERNELS;

    fn names(asked: &[&str], data_type: DataType) -> Result<Vec<&'static str>, SelectError> {
        let asked: Vec<String> = asked.iter().map(ToString::to_string).collect();
        Ok(select(KERNELS, &asked, data_type)?
            .iter()
            .map(|variant| variant.name)
            .collect())
    }

    #[test]
    fn a_kernel_stands_for_its_first_variant_of_the_type() {
        assert_eq!(names(&["naive"], DataType::F32), Ok(vec!["naive"]));
        let tiled = KERNELS
            .iter()
            .find(|kernel| kernel.name == "tiled")
            .unwrap();
        for data_type in DataType::ALL {
            let first = tiled
                .variants
                .iter()
                .find(|variant| DataType::of(variant) == data_type)
                .unwrap();
            assert_eq!(names(&["tiled"], data_type), Ok(vec![first.name]));
        }
    }

    #[test]
    fn a_variant_stands_for_itself() {
        assert_eq!(names(&["tiled-32"], DataType::F32), Ok(vec!["tiled-32"]));
    }

    #[test]
    fn names_are_kept_in_order_and_repeated_ones_run_once() {
        assert_eq!(
            names(&["tiled-32", "naive", "tiled-32"], DataType::F32),
            Ok(vec!["tiled-32", "naive"])
        );
        let all = names(&["all"], DataType::F32).unwrap();
        let last = *all.last().unwrap();
        let last_first = [&[last], &all[..all.len() - 1]].concat();
        assert_eq!(names(&[last, "all"], DataType::F32), Ok(last_first));
    }

    #[test]
    fn an_unknown_name_is_answered_with_a_similar_one_and_the_list() {
        let message = names(&["duble-bufer"], DataType::F32)
            .unwrap_err()
            .to_string();
        assert!(
            message.starts_with(
                "There is no kernel `duble-bufer`; did you mean `double-buffer`? There are: "
            ),
            "{message}"
        );
        let message = names(&["quicksort"], DataType::F32)
            .unwrap_err()
            .to_string();
        assert!(!message.contains("did you mean"), "{message}");
    }

    #[test]
    fn a_kernel_without_the_type_is_answered_with_those_that_have_it() {
        let message = names(&["double-buffer"], DataType::I32)
            .unwrap_err()
            .to_string();
        assert!(
            message.starts_with("Kernel `double-buffer` does not multiply i32; these do: tiled-"),
            "{message}"
        );
    }

    #[test]
    fn edit_distance_counts_single_letters() {
        for (one, other, distance) in [
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("naive", "naive", 0),
            ("ab", "ba", 2),
        ] {
            assert_eq!(edit_distance(one, other), distance);
            assert_eq!(edit_distance(other, one), distance);
        }
    }
}
