//! From the names on the command line to kernels and CPU rungs.

use gpu_gemm::gpu_kernels::spec::{Kernel, Unit, Variant};
use gpu_gemm::text::list;
use gpu_gemm::{Choice, DataType};
use thiserror::Error;

use crate::cpu::Algorithm;
use crate::rung::{AUTO, Asked, Rung};

/// The kernel that runs if none is named, provided that it multiplies the type.
pub const DEFAULT: &str = "double-buffer";

/// A name that no kernel has.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SelectError {
    #[error("There is no kernel `{name}`{} `rust-gemm --list` shows all.", suggestion(.similar))]
    Unknown {
        name: String,
        /// The most similar names, if any is similar.
        similar: Vec<&'static str>,
    },
    #[error("No kernel's name matches `{pattern}`. `rust-gemm --list` shows all.")]
    NoMatch { pattern: String },
    #[error("No kernel whose name matches `{pattern}` multiplies {asked}.")]
    NoMatchOfType { pattern: String, asked: DataType },
    #[error(
        "Kernel `{name}` does not multiply {asked}, but {}. `rust-gemm --list` shows what each kernel multiplies.",
        data_types(.multiplies)
    )]
    WrongType {
        name: String,
        asked: DataType,
        multiplies: Vec<DataType>,
    },
}

/// The name for every GPU kernel.
const ALL: &str = "all";
/// The name for every CPU rung.
const CPU: &str = "cpu";

fn suggestion(similar: &[&str]) -> String {
    match similar {
        [] => ".".to_string(),
        [one] => format!("; did you mean `{one}`?"),
        [first @ .., last] => format!("; did you mean `{}` or `{last}`?", first.join("`, `")),
    }
}

fn data_types(types: &[DataType]) -> String {
    let names: Vec<&str> = types.iter().map(|one| one.name()).collect();
    list(&names)
}

/// The requested type; by default f32, or else the first type that all of these names have.
pub fn type_for(
    asked: Option<DataType>,
    kernels: &[&'static Kernel],
    algorithms: &[&'static Algorithm],
    names: &[String],
) -> DataType {
    let has = |data_type: &DataType| ask(kernels, algorithms, names, *data_type).is_ok();
    let first = || DataType::ALL.into_iter().find(has);
    asked.or_else(first).unwrap_or(DataType::F32)
}

/// The rung that runs if none is named: [`DEFAULT`], else the highest rung of the GPU's ladder
/// that multiplies the type on CUDA cores, else the CPU's highest, else the highest of all.
pub fn default_for(
    kernels: &[&'static Kernel],
    algorithms: &[&'static Algorithm],
    data_type: DataType,
) -> &'static str {
    let of_type = |variant: &Variant| variant.types.data_type() == data_type;
    let ladder = |is_meant: &dyn Fn(&Variant) -> bool| -> Vec<&'static str> {
        let able = kernels
            .iter()
            .filter(|kernel| kernel.variants.iter().any(is_meant));
        able.map(|kernel| kernel.name).collect()
    };
    let on_any_gpu = ladder(&|variant| of_type(variant) && variant.unit == Unit::CudaCores);
    if on_any_gpu.contains(&DEFAULT) {
        return DEFAULT;
    }
    let mut rungs = algorithms.iter().copied().map(Asked::Cpu);
    let on_cpu = rungs.rfind(|rung| rung.multiplies(data_type));
    let highest = on_any_gpu
        .last()
        .copied()
        .or(on_cpu.map(|rung| rung.name()));
    let highest = highest.or_else(|| ladder(&of_type).last().copied());
    highest.unwrap_or(DEFAULT)
}

/// A name, and the rungs with that name, for all types.
struct Known {
    name: &'static str,
    rungs: Vec<Asked>,
    is_group: bool,
}

/// The names of kernels, of their variants, of CPU rungs and of two groups, all in lower case.
fn known(kernels: &[&'static Kernel], algorithms: &[&'static Algorithm]) -> Vec<Known> {
    let named = |name, rungs| Known {
        name,
        rungs,
        is_group: false,
    };
    let group = |name, rungs| Known {
        name,
        rungs,
        is_group: true,
    };
    let gpu = |kernel: &&'static Kernel| -> Vec<Asked> {
        let choices = kernel.variants.iter().map(Choice::even);
        choices.map(Rung::Gpu).collect()
    };
    let all: Vec<Asked> = kernels.iter().flat_map(gpu).collect();
    let cpu: Vec<Asked> = algorithms.iter().copied().map(Rung::Cpu).collect();
    let single = all
        .iter()
        .chain(&cpu)
        .map(|rung| named(rung.name(), vec![*rung]));
    let of_kernels = kernels.iter().map(|kernel| named(kernel.name, gpu(kernel)));
    let mut known: Vec<Known> = of_kernels.chain(single).collect();
    known.push(group(ALL, all));
    if !cpu.is_empty() {
        known.push(group(CPU, cpu));
    }
    known
}

/// Resolves one name. `others` are further names to suggest, which the caller handles.
fn select_one(
    known: &[Known],
    others: &[&'static str],
    name: &str,
    data_type: DataType,
) -> Result<Vec<Asked>, SelectError> {
    let (pattern, is_pattern) = (name.to_ascii_lowercase(), name.contains('*'));
    let is_meant = |one: &&Known| match is_pattern {
        true => !one.is_group && matches(&pattern, one.name),
        false => one.name == pattern,
    };
    let (mut named, mut is_group) = (Vec::new(), false);
    for one in known.iter().filter(is_meant) {
        is_group = one.is_group;
        for rung in &one.rungs {
            if !named.contains(rung) {
                named.push(*rung);
            }
        }
    }
    let of_type = named.iter().filter(|rung| rung.multiplies(data_type));
    let of_type: Vec<Asked> = of_type.copied().collect();
    match of_type.first() {
        _ if is_group => Ok(of_type),
        Some(_) if is_pattern => Ok(of_type),
        Some(first) => Ok(vec![*first]),
        None if named.is_empty() && is_pattern => Err(SelectError::NoMatch { pattern }),
        None if named.is_empty() => Err(SelectError::Unknown {
            name: name.to_string(),
            similar: similar(known, others, &pattern),
        }),
        None if is_pattern => Err(SelectError::NoMatchOfType {
            pattern,
            asked: data_type,
        }),
        None => {
            let multiplies = |one: &DataType| named.iter().any(|rung| rung.multiplies(*one));
            Err(SelectError::WrongType {
                name: name.to_string(),
                asked: data_type,
                multiplies: DataType::ALL.into_iter().filter(multiplies).collect(),
            })
        }
    }
}

/// Looks up each name with `found`, without duplicates.
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

/// The variants and rungs that `names` name, each once, in that order. A kernel's name means its
/// first variant of the element type, a variant's for itself, `all` for every variant of the
/// element type, `cpu` for every CPU rung that has it, and `auto` for the kernel that suits the
/// shape. In a pattern such as `async-*`, each `*` matches any characters; it means every variant
/// whose name, or whose kernel's name, it matches, and for such CPU rungs. Upper and lower case are
/// the same.
///
/// # Errors
///
/// A name is unknown, or its kernel does not have the element type.
pub fn ask(
    kernels: &[&'static Kernel],
    algorithms: &[&'static Algorithm],
    names: &[String],
    data_type: DataType,
) -> Result<Vec<Asked>, SelectError> {
    let known = known(kernels, algorithms);
    each_once(names, |name| match name.eq_ignore_ascii_case(AUTO) {
        true => Ok(vec![Rung::Auto(())]),
        false => select_one(&known, &[AUTO], name, data_type),
    })
}

/// [`ask`] for GPU kernels only, without `auto`.
pub fn kernels(
    kernels: &[&'static Kernel],
    names: &[String],
    data_type: DataType,
) -> Result<Vec<&'static Variant>, SelectError> {
    let known = known(kernels, &[]);
    let found = |name: &str| select_one(&known, &[], name, data_type);
    let rungs = each_once(names, found)?.into_iter();
    Ok(rungs
        .filter_map(|rung| rung.fixed_choice())
        .map(|choice| choice.variant)
        .collect())
}

/// Whether `pattern` matches the whole of `text`; each `*` matches any characters.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(rest) = text.strip_prefix(before) else {
        return false;
    };
    // The star may leave any suffix of the text, the empty one included.
    let mut ends = rest.char_indices().map(|(index, _)| index);
    ends.any(|index| matches(after, &rest[index..])) || matches(after, "")
}

/// The largest number of names to suggest.
const SUGGESTIONS: usize = 3;

/// The known names most similar to `name`, best first; none if no name is similar.
fn similar(known: &[Known], others: &[&'static str], name: &str) -> Vec<&'static str> {
    let known = known
        .iter()
        .map(|one| one.name)
        .chain(others.iter().copied());
    let mut ranked: Vec<(usize, &'static str)> = Vec::new();
    for known in known {
        // The beginning of a name counts as one wrong letter.
        let is_beginning = name.len() >= 3 && known.starts_with(name);
        let distance = match is_beginning {
            true => 1,
            false => strsim::osa_distance(name, known),
        };
        let is_near = is_beginning || distance <= name.len().min(known.len()) / 2;
        if is_near && !ranked.contains(&(distance, known)) {
            ranked.push((distance, known));
        }
    }
    ranked.sort_by_key(|(distance, _)| *distance);
    let nearest = ranked.first().map_or(0, |(distance, _)| *distance);
    ranked.retain(|(distance, _)| *distance <= nearest + 1);
    let names = ranked.into_iter().map(|(_, known)| known);
    names.take(SUGGESTIONS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::RUNGS;
    use crate::data::Storage;
    use gpu_gemm::gpu_kernels::KERNELS;
    use gpu_gemm::{Chooser, DeviceFacts, Shape};

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    fn names(asked: &[&str], data_type: DataType) -> Result<Vec<&'static str>, SelectError> {
        let found = ask(KERNELS, RUNGS, &owned(asked), data_type)?;
        Ok(found.iter().map(Asked::name).collect())
    }

    /// The variants of a type, of the kernels whose names begin with `kernel`.
    fn variants(kernel: &str, data_type: DataType) -> Vec<&'static str> {
        let kernels = KERNELS.iter().filter(|one| one.name.starts_with(kernel));
        let variants = kernels.flat_map(|kernel| kernel.variants);
        let of_type = variants.filter(|variant| variant.types.data_type() == data_type);
        of_type.map(|variant| variant.name).collect()
    }

    #[test]
    fn names_stand_for_rungs_in_order_and_each_runs_once_whatever_its_case() {
        for (asked, found) in [
            (&["naive"][..], &["naive"][..]),
            (&["tiled-32"], &["tiled-32"]),
            (&["tiled-32", "naive", "tiled-32"], &["tiled-32", "naive"]),
            (
                &["NAIVE", "Cpu-Ikj", "TILED-32"],
                &["naive", "cpu-ikj", "tiled-32"],
            ),
        ] {
            assert_eq!(names(asked, DataType::F32), Ok(found.to_vec()));
        }
        let all = names(&["all"], DataType::F32).unwrap();
        assert_eq!(names(&["ALL"], DataType::F32).as_ref(), Ok(&all));
        let (last, others) = all.split_last().unwrap();
        let last_first = [&[*last], others].concat();
        assert_eq!(names(&[last, "all"], DataType::F32), Ok(last_first));
        for data_type in DataType::ALL {
            let first = variants("tiled", data_type)
                .first()
                .map(|first| vec![*first]);
            assert_eq!(names(&["tiled"], data_type).ok(), first);
        }
    }

    #[test]
    fn cpu_stands_for_the_cpu_rungs_of_the_type_and_all_for_none_of_them() {
        for data_type in DataType::ALL {
            let of_type = |rung: &&&'static Algorithm| Asked::Cpu(rung).multiplies(data_type);
            let rungs = RUNGS.iter().filter(of_type).map(|rung| rung.name);
            assert_eq!(names(&["cpu"], data_type), Ok(rungs.collect()));
            let all = names(&["all"], data_type).unwrap();
            assert!(!all.iter().any(|name| name.starts_with("cpu-")));
        }
        assert_eq!(names(&["cpu-ikj"], DataType::I32), Ok(vec!["cpu-ikj"]));
        for name in ["cpu", "cpu-ikj"] {
            let among_kernels = kernels(KERNELS, &owned(&[name]), DataType::F32);
            assert!(matches!(among_kernels, Err(SelectError::Unknown { .. })));
        }
    }

    #[test]
    fn auto_is_a_name_beside_others_and_stands_for_what_suits_the_shape() {
        let asked = ask(
            KERNELS,
            RUNGS,
            &owned(&["Auto", "naive", "auto"]),
            DataType::F32,
        );
        let [auto, Rung::Gpu(_)] = asked.unwrap()[..] else {
            panic!("not auto and another");
        };
        assert_eq!(auto, Rung::Auto(()));
        let chooser = Chooser::untuned(DeviceFacts::simulator());
        for data_type in DataType::ALL {
            let call = Storage::COMPACT.call(Shape::cube(100), data_type.inputs);
            let rung = auto.rung(&chooser, data_type, call).unwrap();
            let types = rung.choice().map(|choice| choice.variant.types.data_type());
            assert_eq!((rung.name(), types), ("auto", Some(data_type)));
        }
    }

    #[test]
    fn every_type_has_a_kernel_that_runs_if_none_is_named() {
        assert_eq!(default_for(KERNELS, RUNGS, DataType::F32), DEFAULT);
        for data_type in DataType::ALL {
            let name = default_for(KERNELS, RUNGS, data_type);
            assert!(names(&[name], data_type).is_ok(), "{name}");
        }
    }

    /// The error of `ask` for an unknown name.
    fn refused(name: &str, data_type: DataType) -> String {
        let asked = ask(KERNELS, RUNGS, &owned(&[name]), data_type);
        asked.unwrap_err().to_string()
    }

    #[test]
    fn a_name_that_stands_for_nothing_is_answered_with_the_nearest_ones_and_how_to_list_all() {
        let all = "`rust-gemm --list` shows all.";
        let meant = "There is no kernel `duble-bufer`; did you mean `double-buffer`? ";
        for (name, answer) in [
            ("duble-bufer", meant),
            ("quicksort", "There is no kernel `quicksort`. "),
            ("sync*", "No kernel's name matches `sync*`. "),
        ] {
            let found = refused(name, DataType::F32);
            assert_eq!(found, format!("{answer}{all}"));
        }
        let none = "No kernel whose name matches `async-*` multiplies i32.";
        assert_eq!(refused("async-*", DataType::I32), none);
        for (name, types) in [
            ("warp-tiled", "f32"),
            ("warp-specialized-nt", "bf16, f16, bf16-f32 and f16-f32"),
            ("cpu-matrixmultiply", "f32 and f64"),
        ] {
            let answer = format!(
                "Kernel `{name}` does not multiply i32, but {types}. `rust-gemm --list` shows what each kernel multiplies."
            );
            assert_eq!(refused(name, DataType::I32), answer);
        }
        for (name, meant) in [
            ("aut", "auto"),
            ("al", "all"),
            ("cp", "cpu"),
            ("NAVE", "naive"),
        ] {
            let message = refused(name, DataType::F32);
            let suggested = message.split('?').next().unwrap();
            assert!(suggested.contains(&format!("`{meant}`")), "{message}");
        }
        // Many names begin with it.
        let message = refused("async", DataType::F32);
        assert_eq!(message.matches('`').count(), 2 * (1 + SUGGESTIONS + 1));
        // `auto` is not suggested where it is not allowed.
        let of_kernels = kernels(KERNELS, &owned(&["auto"]), DataType::F32);
        let message = of_kernels.unwrap_err().to_string();
        assert!(!message.contains("did you mean `auto`"), "{message}");
    }

    #[test]
    fn a_pattern_stands_for_every_variant_and_cpu_rung_of_the_type_that_it_matches() {
        for data_type in DataType::ALL {
            for (pattern, expected) in [
                ("tiled*", variants("tiled", data_type)),
                ("*", names(&["all", "cpu"], data_type).unwrap()),
                ("CPU-*", names(&["cpu"], data_type).unwrap()),
            ] {
                let found = names(&[pattern], data_type);
                match expected.is_empty() {
                    true => assert!(matches!(found, Err(SelectError::NoMatchOfType { .. }))),
                    false => assert_eq!(found, Ok(expected)),
                }
            }
        }
        let nn = names(&["async-*-nn"], DataType::F32).unwrap();
        assert!(nn.len() > 2 && nn.iter().all(|name| name.ends_with("-nn")));
        for (pattern, text, is_match) in [
            ("a*c", "abbc", true),
            ("a*c", "ac", true),
            ("a*c", "acb", false),
            ("*b*", "abc", true),
            ("**", "", true),
            ("a*", "", false),
            ("*a*a", "aa", true),
            ("*a*a", "a", false),
            ("*", "ä", true),
        ] {
            assert_eq!(matches(pattern, text), is_match, "{pattern} and {text}");
        }
    }

    #[test]
    fn the_type_is_f32_or_else_what_all_names_have() {
        for (names, expected) in [
            (&[][..], DataType::F32),
            (&["auto", "all", "naive"], DataType::F32),
            (&["warp-specialized"], DataType::BF16),
            (&["persistent", "warp-*", "auto"], DataType::BF16),
            (&["fp64-tensor"], DataType::F64),
            // Where no type fits, the error is about f32.
            (&["fp64-tensor", "persistent"], DataType::F32),
            (&["quicksort"], DataType::F32),
        ] {
            let found = type_for(None, KERNELS, RUNGS, &owned(names));
            assert_eq!(found, expected, "{names:?}");
        }
    }
}
