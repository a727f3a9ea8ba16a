//! What the road from Rust to PTX makes of the kernels: assembled by `ptxas` for every architecture, no memory where
//! there should be registers, and the wide accesses that the kernels are written for.

use std::collections::BTreeSet;
use std::process::ExitCode;

use device_kernels::PROBES;
use gpu_kernels::KERNELS;
use gpu_kernels::spec::Variant;
use libtest_mimic::{Failed, Trial};
use nvvm::{Toolkit, ptxas};
use tests::built::{BUILT, Built};

fn main() -> ExitCode {
    let toolkit = Toolkit::find();
    let can_assemble = toolkit
        .as_ref()
        .is_some_and(|toolkit| toolkit.ptxas.is_some());
    if !can_assemble {
        println!(
            "tests that need ptxas are ignored here: no CUDA toolkit or wheel with it was found"
        );
    }
    let mut trials = Vec::new();
    for built in BUILT {
        let name = |claim| format!("{}::{}::{claim}", built.kernels, built.arch);
        let missing = built.ptx.is_empty();
        let toolkit = toolkit.clone();
        trials.push(
            Trial::test(name("ptxas_takes_it"), move || {
                assembles(built, toolkit.as_ref())
            })
            .with_ignored_flag(missing || !can_assemble),
        );
        trials.push(
            Trial::test(name("has_every_kernel"), || has_every_kernel(built))
                .with_ignored_flag(missing),
        );
        let contents = match built.kernels {
            "gpu-kernels" => kernels_keep_their_promises,
            _ => probes_use_their_instructions,
        };
        trials.push(
            Trial::test(name("has_the_instructions"), move || contents(built))
                .with_ignored_flag(missing),
        );
    }
    tests::run(trials)
}

fn variants() -> impl Iterator<Item = &'static Variant> {
    KERNELS.iter().flat_map(|kernel| kernel.variants)
}

/// `ptxas` takes it, and keeps every value of every kernel of the ladder in registers.
fn assembles(built: &Built, toolkit: Option<&Toolkit>) -> Result<(), Failed> {
    let toolkit = toolkit.ok_or("no toolkit")?;
    let assembled = ptxas::assemble(toolkit, built.ptx, built.arch)?;
    if built.kernels != "gpu-kernels" {
        return Ok(());
    }
    for kernel in &assembled.kernels {
        let bytes = [
            kernel.stack_bytes,
            kernel.spill_store_bytes,
            kernel.spill_load_bytes,
        ];
        if bytes != [0; 3] {
            return Err(format!(
                "{}: bytes of stack, spill stores, spill loads: {bytes:?}",
                kernel.entry
            )
            .into());
        }
        let variant = variants()
            .find(|variant| variant.entry == kernel.entry)
            .ok_or_else(|| format!("{} is not in the table", kernel.entry))?;
        let registers = kernel.registers * variant.block.threads();
        if registers > 65_536 {
            return Err(format!("{}: a block takes {registers} registers", kernel.entry).into());
        }
    }
    Ok(())
}

/// The entry points are those of the table, each once.
fn has_every_kernel(built: &Built) -> Result<(), Failed> {
    let found: BTreeSet<&str> = entries(built.ptx).map(|entry| entry.name).collect();
    let wanted: BTreeSet<&str> = match built.kernels {
        "gpu-kernels" => variants().map(|variant| variant.entry).collect(),
        _ => PROBES
            .iter()
            .copied()
            .flatten()
            .map(|probe| probe.entry)
            .collect(),
    };
    if built.kernels == "gpu-kernels" && found != wanted {
        return Err(format!("found {found:?}, wanted {wanted:?}").into());
    }
    match wanted.difference(&found).next() {
        Some(missing) => Err(format!("{missing} is missing").into()),
        None => Ok(()),
    }
}

fn kernels_keep_their_promises(built: &Built) -> Result<(), Failed> {
    for entry in entries(built.ptx) {
        for (banned, why) in [
            (".local", "an array in local memory"),
            ("call", "a call that was not inlined"),
        ] {
            if entry
                .text
                .split_whitespace()
                .any(|word| word.starts_with(banned))
            {
                return Err(format!("{} has {why}", entry.name).into());
            }
        }
        if entry.name.starts_with("double_buffer") {
            let loads_four = |space: &str| {
                entry
                    .text
                    .split_whitespace()
                    .any(|word| word.starts_with(space) && word.ends_with("v4.f32"))
            };
            for space in ["ld.global", "ld.shared", "st.shared", "st.global"] {
                if !loads_four(space) {
                    return Err(format!("{} has no {space} of four floats", entry.name).into());
                }
            }
        }
    }
    Ok(())
}

fn probes_use_their_instructions(built: &Built) -> Result<(), Failed> {
    for probe in PROBES.iter().copied().flatten() {
        let entry = entries(built.ptx)
            .find(|entry| entry.name == probe.entry)
            .ok_or_else(|| format!("{} is missing", probe.entry))?;
        if let Some(missing) = probe
            .ptx
            .iter()
            .find(|instruction| !entry.text.contains(**instruction))
        {
            return Err(format!("{} has no {missing}", probe.entry).into());
        }
    }
    Ok(())
}

struct Entry<'a> {
    name: &'a str,
    text: &'a str,
}

/// The kernels of a module, each with its text up to the next.
fn entries(ptx: &str) -> impl Iterator<Item = Entry<'_>> {
    ptx.split(".entry ").skip(1).map(|text| Entry {
        name: text.split('(').next().unwrap_or_default().trim(),
        text,
    })
}
