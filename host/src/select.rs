//! From the names on the command line to kernels and CPU rungs.

use gpu_gemm::gpu_kernels::spec::{Kernel, Variant};
use gpu_gemm::{Choice, Chooser, ElementType, Shape};
use thiserror::Error;

use crate::cpu::Algorithm;
use crate::rung::{AUTO, Rung};

/// The kernel that runs if none is named, provided that it multiplies the type.
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
        asked: ElementType,
        others: Vec<&'static str>,
    },
}

fn suggestion(similar: &Option<String>) -> String {
    match similar {
        Some(name) => format!("; did you mean `{name}`?"),
        None => ".".to_string(),
    }
}

/// The rung that runs if none is named: [`DEFAULT`], or else the highest of the GPU's ladder
/// that multiplies the type, or else of the CPU's.
pub fn default_for(
    kernels: &[&'static Kernel],
    algorithms: &[&'static Algorithm],
    data_type: ElementType,
) -> &'static str {
    let multiplies = |rung: &Rung| rung.multiplies(data_type);
    let of_kernel = |kernel: &&'static Kernel| gpu(&[*kernel]);
    let rungs = || {
        kernels
            .iter()
            .filter(|kernel| of_kernel(kernel).iter().any(multiplies))
    };
    let algorithm = || cpu(algorithms).into_iter().rfind(multiplies);
    rungs()
        .find(|kernel| kernel.name == DEFAULT)
        .or(rungs().next_back())
        .map(|kernel| kernel.name)
        .or_else(|| algorithm().map(Rung::name))
        .unwrap_or(DEFAULT)
}

/// The rungs that `names` stand for, each once, in the order named. A kernel's name stands for
/// its first variant of the element type, a variant's for itself, `all` for every variant of the
/// element type, and `cpu` for every CPU rung that has it.
///
/// # Errors
///
/// A name is unknown, or is that of a kernel without the element type.
pub fn select(
    kernels: &[&'static Kernel],
    algorithms: &[&'static Algorithm],
    names: &[String],
    data_type: ElementType,
) -> Result<Vec<Rung>, SelectError> {
    each_once(names, |name| {
        select_one(kernels, algorithms, name, data_type)
    })
}

fn select_one(
    kernels: &[&'static Kernel],
    algorithms: &[&'static Algorithm],
    name: &str,
    data_type: ElementType,
) -> Result<Vec<Rung>, SelectError> {
    let of_type = |mut rungs: Vec<Rung>| {
        rungs.retain(|rung| rung.multiplies(data_type));
        rungs
    };
    match name {
        "all" => Ok(of_type(gpu(kernels))),
        "cpu" if !algorithms.is_empty() => Ok(of_type(cpu(algorithms))),
        _ => {
            let named = named(kernels, algorithms, name);
            if named.is_empty() {
                return Err(unknown(kernels, algorithms, name));
            }
            let others = || of_type([gpu(kernels), cpu(algorithms)].concat());
            match of_type(named).first() {
                Some(first) => Ok(vec![*first]),
                None => Err(SelectError::WrongType {
                    name: name.to_string(),
                    asked: data_type,
                    others: others().into_iter().map(Rung::name).collect(),
                }),
            }
        }
    }
}

/// What `found` finds for the names, each once.
fn each_once<T: PartialEq>(
    names: &[String],
    found: impl Fn(&str) -> Result<Vec<T>, SelectError>,
) -> Result<Vec<T>, SelectError> {
    let mut all = Vec::new();
    for name in names {
        for one in found(name)? {
            if !all.contains(&one) {
                all.push(one);
            }
        }
    }
    Ok(all)
}

/// What a name on the command line stands for, once shape and device are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Asked {
    /// The same whatever the shape.
    Rung(Rung),
    /// The kernel that suits it.
    Auto,
}

impl Asked {
    /// Whether no GPU kernel is meant.
    pub fn is_native(self) -> bool {
        matches!(self, Asked::Rung(Rung::Cpu(_)))
    }

    /// What multiplies a shape; none if no kernel can.
    pub fn rung(self, chooser: &Chooser, data_type: ElementType, shape: Shape) -> Option<Rung> {
        match self {
            Asked::Rung(rung) => Some(rung),
            Asked::Auto => Some(Rung::Auto(chooser.choose(data_type, shape)?)),
        }
    }
}

/// [`select`], where `auto` is a name, too.
///
/// # Errors
///
/// As [`select`].
pub fn ask(
    kernels: &[&'static Kernel],
    algorithms: &[&'static Algorithm],
    names: &[String],
    data_type: ElementType,
) -> Result<Vec<Asked>, SelectError> {
    each_once(names, |name| match name {
        AUTO => Ok(vec![Asked::Auto]),
        _ => {
            let rungs = select_one(kernels, algorithms, name, data_type)?;
            Ok(rungs.into_iter().map(Asked::Rung).collect())
        }
    })
}

/// [`select`] among GPU kernels alone.
///
/// # Errors
///
/// As [`select`].
pub fn kernels(
    kernels: &[&'static Kernel],
    names: &[String],
    data_type: ElementType,
) -> Result<Vec<&'static Variant>, SelectError> {
    let rungs = select(kernels, &[], names, data_type)?;
    let choices = rungs.into_iter().filter_map(Rung::choice);
    Ok(choices.map(|choice| choice.variant).collect())
}

fn gpu(kernels: &[&'static Kernel]) -> Vec<Rung> {
    let variants = kernels.iter().flat_map(|kernel| kernel.variants);
    variants.map(Choice::even).map(Rung::Gpu).collect()
}

fn cpu(algorithms: &[&'static Algorithm]) -> Vec<Rung> {
    algorithms.iter().copied().map(Rung::Cpu).collect()
}

/// Whatever a name stands for, of every type: all variants of a kernel, or one rung.
fn named(kernels: &[&'static Kernel], algorithms: &[&'static Algorithm], name: &str) -> Vec<Rung> {
    let of_kernel = kernels.iter().filter(|kernel| kernel.name == name);
    let mut named = gpu(&of_kernel.copied().collect::<Vec<_>>());
    let rungs = [gpu(kernels), cpu(algorithms)].concat();
    named.extend(rungs.into_iter().filter(|rung| rung.name() == name));
    named
}

fn unknown(
    kernels: &[&'static Kernel],
    algorithms: &[&'static Algorithm],
    name: &str,
) -> SelectError {
    let mut known: Vec<&'static str> = kernels
        .iter()
        .flat_map(|kernel| {
            std::iter::once(kernel.name).chain(kernel.variants.iter().map(|variant| variant.name))
        })
        .chain(algorithms.iter().map(|algorithm| algorithm.name))
        .collect();
    let mut seen = std::collections::HashSet::new();
    known.retain(|name| seen.insert(*name));
    let similar = known
        .iter()
        .map(|known| (strsim::levenshtein(name, known), known))
        .min()
        .filter(|&(distance, known)| distance <= known.len() / 2)
        .map(|(_, known)| known.to_string());
    SelectError::Unknown {
        name: name.to_string(),
        similar,
        known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::RUNGS;
    use gpu_gemm::gpu_kernels::KERNELS;

    fn names(asked: &[&str], data_type: ElementType) -> Result<Vec<&'static str>, SelectError> {
        let asked: Vec<String> = asked.iter().map(ToString::to_string).collect();
        Ok(select(KERNELS, RUNGS, &asked, data_type)?
            .into_iter()
            .map(Rung::name)
            .collect())
    }

    #[test]
    fn a_kernel_stands_for_its_first_variant_of_the_type() {
        assert_eq!(names(&["naive"], ElementType::F32), Ok(vec!["naive"]));
        for data_type in ElementType::ALL {
            let mut variants = gpu_gemm::gpu_kernels::tiled::KERNEL.variants.iter();
            let first = variants.find(|variant| variant.types.c == data_type);
            match first {
                Some(first) => assert_eq!(names(&["tiled"], data_type), Ok(vec![first.name])),
                None => assert!(names(&["tiled"], data_type).is_err()),
            }
        }
    }

    #[test]
    fn a_variant_stands_for_itself() {
        assert_eq!(names(&["tiled-32"], ElementType::F32), Ok(vec!["tiled-32"]));
    }

    #[test]
    fn cpu_stands_for_the_cpu_rungs_of_the_type_and_all_for_none_of_them() {
        for data_type in ElementType::ALL {
            let rungs = RUNGS.iter().filter(|rung| rung.multiplies(data_type));
            let rungs: Vec<&str> = rungs.map(|rung| rung.name).collect();
            assert_eq!(names(&["cpu"], data_type), Ok(rungs));
            let all = names(&["all"], data_type).unwrap();
            assert!(!all.iter().any(|name| name.starts_with("cpu-")));
        }
        assert_eq!(names(&["cpu-ikj"], ElementType::I32), Ok(vec!["cpu-ikj"]));
        for name in ["cpu", "cpu-ikj"] {
            let among_kernels = kernels(KERNELS, &[name.to_string()], ElementType::F32);
            assert!(matches!(among_kernels, Err(SelectError::Unknown { .. })));
        }
        assert!(matches!(
            names(&["cpu-matrixmultiply"], ElementType::I32),
            Err(SelectError::WrongType { .. })
        ));
    }

    #[test]
    fn names_are_kept_in_order_and_repeated_ones_run_once() {
        assert_eq!(
            names(&["tiled-32", "naive", "tiled-32"], ElementType::F32),
            Ok(vec!["tiled-32", "naive"])
        );
        let all = names(&["all"], ElementType::F32).unwrap();
        let last = *all.last().unwrap();
        let last_first = [&[last], &all[..all.len() - 1]].concat();
        assert_eq!(names(&[last, "all"], ElementType::F32), Ok(last_first));
    }

    #[test]
    fn auto_is_a_name_beside_others_and_stands_for_what_suits_the_shape() {
        let names = ["auto", "naive", "auto"].map(String::from);
        let asked = ask(KERNELS, RUNGS, &names, ElementType::F32).unwrap();
        assert_eq!(asked.len(), 2);
        assert_eq!(asked[0], Asked::Auto);
        let chooser = Chooser::untuned(gpu_gemm::DeviceFacts::simulator());
        for data_type in ElementType::ALL {
            let rung = asked[0]
                .rung(&chooser, data_type, Shape::cube(100))
                .unwrap();
            assert_eq!(rung.name(), "auto");
            assert!(rung.multiplies(data_type), "{rung:?}");
        }
    }

    #[test]
    fn every_type_has_a_kernel_that_runs_if_none_is_named() {
        assert_eq!(default_for(KERNELS, RUNGS, ElementType::F32), DEFAULT);
        for data_type in ElementType::ALL {
            let name = default_for(KERNELS, RUNGS, data_type);
            assert!(names(&[name], data_type).is_ok(), "{name}");
        }
        // Without the default itself, the last kernel that can.
        let names: Vec<&str> = KERNELS.iter().map(|kernel| kernel.name).collect();
        let tiled = names.iter().position(|name| *name == "tiled").unwrap();
        assert_eq!(
            default_for(&KERNELS[..=tiled], RUNGS, ElementType::F32),
            "tiled"
        );
    }

    #[test]
    fn an_unknown_name_is_answered_with_a_similar_one_and_the_list() {
        let message = names(&["duble-bufer"], ElementType::F32)
            .unwrap_err()
            .to_string();
        assert!(
            message.starts_with(
                "There is no kernel `duble-bufer`; did you mean `double-buffer`? There are: "
            ),
            "{message}"
        );
        let message = names(&["quicksort"], ElementType::F32)
            .unwrap_err()
            .to_string();
        assert!(!message.contains("did you mean"), "{message}");
    }

    #[test]
    fn a_kernel_without_the_type_is_answered_with_those_that_have_it() {
        let message = names(&["double-buffer"], ElementType::I32)
            .unwrap_err()
            .to_string();
        assert!(
            message.starts_with("Kernel `double-buffer` does not multiply i32; these do: tiled-"),
            "{message}"
        );
    }
}
