//! From the names on the command line to kernels and CPU rungs.

use gpu_gemm::gpu_kernels::spec::{Kernel, Unit, Variant};
use gpu_gemm::text::list;
use gpu_gemm::{Choice, DataType, KERNELS};
use thiserror::Error;

use crate::cpu::{self, RUNGS};
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
pub fn type_for(asked: Option<DataType>, names: &[String]) -> DataType {
    let has = |data_type: &DataType| ask(names, *data_type).is_ok();
    let first = || DataType::ALL.into_iter().find(has);
    asked.or_else(first).unwrap_or(DataType::F32)
}

/// The rung that runs if none is named: [`DEFAULT`], else the highest rung of the GPU's ladder
/// that multiplies the type on CUDA cores, else the CPU's highest, else the highest of all.
pub fn default_for(data_type: DataType) -> &'static str {
    let highest = |is_meant: &dyn Fn(&Variant) -> bool| {
        let mut kernels = KERNELS.iter();
        kernels.rfind(|kernel| kernel.variants.iter().any(is_meant))
    };
    let of_type = |variant: &Variant| variant.types.data_type() == data_type;
    let mut named = KERNELS.iter().filter(|kernel| kernel.name == DEFAULT);
    if named.any(|kernel| kernel.variants.iter().any(of_type)) {
        return DEFAULT;
    }
    let is_general = |variant: &Variant| variant.unit == Unit::CudaCores && !variant.gemv_like;
    let on_any_gpu = highest(&|variant| of_type(variant) && is_general(variant));
    let mut rungs = RUNGS.iter().copied().map(Asked::Cpu);
    let on_cpu = rungs.rfind(|rung| rung.multiplies(data_type));
    let name = on_any_gpu.map(|kernel| kernel.name);
    let name = name.or(on_cpu.map(|rung| rung.name()));
    name.or_else(|| highest(&of_type).map(|kernel| kernel.name))
        .unwrap_or(DEFAULT)
}

/// The fastest CPU rung that multiplies the type, if there is one.
pub fn fastest_on_cpu(data_type: DataType) -> Option<Asked> {
    let fastest = [&cpu::library::RUNG, &cpu::blocks::RUNG].map(Asked::Cpu);
    fastest.into_iter().find(|rung| rung.multiplies(data_type))
}

/// All names but patterns, each once.
pub fn names() -> Vec<&'static str> {
    let mut names = vec![AUTO];
    names.extend(known().into_iter().map(|(name, _)| name));
    names.sort_unstable();
    names.dedup();
    names
}

/// A name, in lower case, and the rungs with that name, for all types.
type Known = (&'static str, Vec<Asked>);

/// The names of kernels, of their variants, of CPU rungs and of two groups.
fn known() -> Vec<Known> {
    let gpu = |kernel: &Kernel| -> Vec<Asked> {
        let choices = kernel.variants.iter().map(Choice::even);
        choices.map(Rung::Gpu).collect()
    };
    let all: Vec<Asked> = KERNELS.iter().flat_map(|kernel| gpu(kernel)).collect();
    let cpu: Vec<Asked> = RUNGS.iter().copied().map(Rung::Cpu).collect();
    let single = all
        .iter()
        .chain(&cpu)
        .map(|rung| (rung.name(), vec![*rung]));
    let mut known: Vec<Known> = KERNELS
        .iter()
        .map(|kernel| (kernel.name, gpu(kernel)))
        .collect();
    known.extend(single);
    known.extend([(ALL, all), (CPU, cpu)]);
    known
}

/// Resolves one name. `auto` is suggested, but the caller handles it.
fn select_one(known: &[Known], name: &str, data_type: DataType) -> Result<Vec<Asked>, SelectError> {
    let (pattern, is_pattern) = (name.to_ascii_lowercase(), name.contains('*'));
    let is_group = [ALL, CPU].contains(&&pattern[..]);
    let is_meant = |(name, _): &&Known| match is_pattern {
        true => ![ALL, CPU].contains(name) && matches(&pattern, name),
        false => *name == pattern,
    };
    let mut named: Vec<Asked> = Vec::new();
    for rung in known.iter().filter(is_meant).flat_map(|(_, rungs)| rungs) {
        if !named.contains(rung) {
            named.push(*rung);
        }
    }
    let of_type = named.iter().filter(|rung| rung.multiplies(data_type));
    let of_type: Vec<Asked> = of_type.copied().collect();
    match of_type.first() {
        _ if is_group => Ok(of_type),
        Some(_) if is_pattern => Ok(of_type),
        Some(first) => Ok(vec![*first]),
        None if named.is_empty() => Err(SelectError::Unknown {
            name: name.to_string(),
            similar: match is_pattern {
                true => Vec::new(),
                false => similar(known, &pattern),
            },
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
pub fn ask(names: &[String], data_type: DataType) -> Result<Vec<Asked>, SelectError> {
    let known = known();
    let mut all = Vec::new();
    for name in names {
        let found = match name.eq_ignore_ascii_case(AUTO) {
            true => vec![Rung::Auto(())],
            false => select_one(&known, name, data_type)?,
        };
        for one in found {
            if !all.contains(&one) {
                all.push(one);
            }
        }
    }
    Ok(all)
}

/// [`ask`] for GPU kernels only, without `auto`.
pub fn kernels(
    names: &[String],
    data_type: DataType,
) -> Result<Vec<&'static Variant>, SelectError> {
    let found = ask(names, data_type)?.into_iter();
    let choices = found.filter_map(|rung| rung.fixed_choice());
    let variants: Vec<&'static Variant> = choices.map(|choice| choice.variant).collect();
    match variants.is_empty() {
        false => Ok(variants),
        true => Err(SelectError::Unknown {
            name: names.join(","),
            similar: Vec::new(),
        }),
    }
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
fn similar(known: &[Known], name: &str) -> Vec<&'static str> {
    let known = known.iter().map(|(name, _)| *name).chain([AUTO]);
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
    use crate::data::Storage;
    use gpu_gemm::{Chooser, DeviceFacts, Shape};

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    fn names(asked: &[&str], data_type: DataType) -> Result<Vec<&'static str>, SelectError> {
        let found = ask(&owned(asked), data_type)?;
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
            (&["tiled-32", "NAIVE", "Tiled-32"], &["tiled-32", "naive"]),
            (&["Cpu-Ikj", "Auto", "auto"], &["cpu-ikj", "auto"]),
        ] {
            assert_eq!(names(asked, DataType::F32), Ok(found.to_vec()));
        }
        let all = names(&["ALL"], DataType::F32).unwrap();
        let (last, others) = all.split_last().unwrap();
        let last_first = [&[*last], others].concat();
        assert_eq!(names(&[last, "all"], DataType::F32), Ok(last_first));
    }

    #[test]
    fn groups_and_patterns_stand_for_every_variant_and_rung_of_the_type() {
        let chooser = Chooser::untuned(DeviceFacts::simulator());
        for data_type in DataType::ALL {
            let rungs = RUNGS
                .iter()
                .filter(|rung| Asked::Cpu(rung).multiplies(data_type));
            let cpu: Vec<&str> = rungs.map(|rung| rung.name).collect();
            let all = variants("", data_type);
            let tiled = variants("tiled", data_type);
            let first = tiled.first().copied();
            for (name, expected) in [
                ("cpu", Some(cpu.clone())),
                ("all", Some(all.clone())),
                ("tiled", first.map(|first| vec![first])),
                ("tiled*", first.map(|_| tiled)),
                ("*", Some([all, cpu.clone()].concat())),
                ("CPU-*", cpu.first().map(|_| cpu.clone())),
            ] {
                let found = names(&[name], data_type);
                match expected {
                    Some(expected) => assert_eq!(found, Ok(expected)),
                    None => assert!(matches!(found, Err(SelectError::WrongType { .. }))),
                }
            }
            let default = names(&[default_for(data_type)], data_type);
            assert!(default.is_ok(), "{default:?}");
            let call = Storage::COMPACT.call(Shape::cube(100), data_type.inputs);
            let rung = Asked::Auto(())
                .rung(&chooser, data_type, call, None)
                .unwrap();
            let types = rung.choice().map(|choice| choice.variant.types.data_type());
            assert_eq!((rung.name(), types), ("auto", Some(data_type)));
        }
        assert_eq!(default_for(DataType::F32), DEFAULT);
        let nn = names(&["async-*-nn"], DataType::F32).unwrap();
        assert!(nn.len() > 2 && nn.iter().all(|name| name.ends_with("-nn")));
        for (pattern, text, is_match) in [
            ("a*c", "abbc", true),
            ("a*c", "ac", true),
            ("a*c", "acb", false),
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
    fn a_name_that_stands_for_nothing_is_answered_with_the_nearest_ones_and_how_to_list_all() {
        let refused = |name: &str, data_type| names(&[name], data_type).unwrap_err().to_string();
        for (name, answer) in [
            (
                "duble-bufer",
                "There is no kernel `duble-bufer`; did you mean `double-buffer`? ",
            ),
            ("quicksort", "There is no kernel `quicksort`. "),
            ("sync*", "There is no kernel `sync*`. "),
        ] {
            let expected = format!("{answer}`rust-gemm --list` shows all.");
            assert_eq!(refused(name, DataType::F32), expected);
        }
        for (name, types) in [
            ("async-*", "f32"),
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
        for name in ["auto", "cpu", "cpu-ikj"] {
            let among_kernels = kernels(&owned(&[name]), DataType::F32);
            assert!(matches!(among_kernels, Err(SelectError::Unknown { .. })));
        }
    }

    #[test]
    fn the_type_is_f32_or_else_what_all_names_have() {
        for (names, expected) in [
            (&[][..], DataType::F32),
            (&["auto", "all", "naive"], DataType::F32),
            (&["persistent", "warp-*", "auto"], DataType::BF16),
            (&["fp64-tensor"], DataType::F64),
            // Where no type fits, the error is about f32.
            (&["fp64-tensor", "persistent"], DataType::F32),
        ] {
            assert_eq!(type_for(None, &owned(names)), expected, "{names:?}");
        }
    }
}
