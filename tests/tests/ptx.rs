//! What the road from Rust to PTX makes of the kernels: assembled by `ptxas` for every architecture, no memory where
//! there should be registers, the wide accesses that the kernels are written for, and the lines that they are written in.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use device_kernels::PROBES;
use gpu_kernels::KERNELS;
use gpu_kernels::fix_up::FIX_UP;
use gpu_kernels::spec::{Grid, Variant};
use host::listing::{self, Line, Place};
use libtest_mimic::{Failed, Trial};
use nvvm::{NvvmArch, Toolkit, ptxas};
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
        let (toolkit, toolkit_alone) = (toolkit.clone(), toolkit.clone());
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
        if built.kernels == "gpu-kernels" {
            trials.push(
                Trial::test(name("names_the_lines_of_the_source"), || {
                    names_the_lines_of_the_source(built)
                })
                .with_ignored_flag(missing),
            );
            trials.push(
                Trial::test(name("ptxas_takes_each_kernel_alone"), move || {
                    assembles_alone(built, toolkit_alone.as_ref())
                })
                .with_ignored_flag(missing || !can_assemble),
            );
        }
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
    // What `host explain` asks for is what the driver will see.
    let first = assembled.kernels.first().ok_or("no kernels")?;
    let alone = ptxas::assemble_entry(toolkit, built.ptx, built.arch, &first.entry)?;
    if alone.kernels != assembled.kernels[..1] {
        return Err(format!("{first:?} alone needs {:?}", alone.kernels).into());
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
        if gpu_kernels::HELPERS.contains(&kernel.entry.as_str()) {
            continue;
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

/// A thread of a kernel that keeps its patch of C in fours has an instruction for each, in which all of it is written.
fn writes_by_fours(entry: &Entry<'_>) -> Result<(), Failed> {
    const ENTRIES: [&str; 6] = [
        "vectorized",
        "conflict_free",
        "double_buffer",
        "warp_tiled",
        "async_pipeline",
        "wide_patch",
    ];
    let variant = variants().find(|variant| variant.entry == entry.name);
    let keeps_fours = ENTRIES.iter().any(|start| entry.name.starts_with(start));
    let Some(variant) = variant.filter(|_| keeps_fours) else {
        return Ok(());
    };
    let fours = variant.patch().0 * variant.patch().1 / 4;
    let written = entry.text.matches("st.global.v4.f32").count();
    // What streams writes its sums to one of two places.
    let places = if variant.grid == Grid::Streams { 2 } else { 1 };
    if written != (places * fours) as usize {
        return Err(format!("{}: {fours} fours, but {written} such stores", entry.name).into());
    }
    Ok(())
}

/// The entry points are those of the table, each once.
fn has_every_kernel(built: &Built) -> Result<(), Failed> {
    let found: BTreeSet<&str> = entries(built.ptx).map(|entry| entry.name).collect();
    let wanted: BTreeSet<&str> = match built.kernels {
        "gpu-kernels" => variants()
            .map(|variant| variant.entry)
            .chain(gpu_kernels::HELPERS)
            .collect(),
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
        waits_before_it_reads(built, &entry)?;
        writes_by_fours(&entry)?;
        if entry.name.starts_with("double_buffer") {
            let moves_four = |instruction: &str| {
                entry
                    .text
                    .split_whitespace()
                    .any(|word| word.starts_with(instruction) && word.ends_with("v4.f32"))
            };
            for instruction in ["ld.global", "ld.shared", "st.global"] {
                if !moves_four(instruction) {
                    return Err(
                        format!("{} has no {instruction} of four floats", entry.name).into(),
                    );
                }
            }
            // B goes straight to shared memory where there is an instruction for it, else four floats at a time.
            let copies = entry.text.contains("cp.async.cg.shared.global");
            let stores = entry.text.contains("st.shared.v4");
            if (copies, stores) != (built.arch >= NvvmArch::Compute80, !copies) {
                return Err(format!(
                    "{}: copies B: {copies}, stores it by fours: {stores}",
                    entry.name
                )
                .into());
            }
        }
    }
    Ok(())
}

/// What may be launched before the kernel before it has ended waits for that before it reads what is there, and what lets the next one come is
/// what that one waits for.
fn waits_before_it_reads(built: &Built, entry: &Entry<'_>) -> Result<(), Failed> {
    let mut streaming = variants().filter(|variant| variant.grid == Grid::Streams);
    let streams = streaming.any(|variant| variant.entry == entry.name);
    let follows = streams || entry.name == FIX_UP;
    let can = built.arch >= NvvmArch::Compute90;
    let wait = entry.text.find("griddepcontrol.wait");
    if wait.is_some() != (can && follows) {
        return Err(format!("{} waits: {}", entry.name, wait.is_some()).into());
    }
    let lets = entry.text.contains("griddepcontrol.launch_dependents");
    if lets != (can && streams) {
        return Err(format!("{} lets the next begin: {lets}", entry.name).into());
    }
    for access in ["ld.global", "cp.async", "st.global"] {
        let first = entry.text.find(access);
        if first.is_some_and(|first| wait.is_some_and(|wait| first < wait)) {
            return Err(format!("{} has {access} before it waits", entry.name).into());
        }
    }
    Ok(())
}

fn probes_use_their_instructions(built: &Built) -> Result<(), Failed> {
    for probe in PROBES.iter().copied().flatten() {
        let entry = entries(built.ptx)
            .find(|entry| entry.name == probe.entry)
            .ok_or_else(|| format!("{} is missing", probe.entry))?;
        let wanted = built.arch >= probe.ptx_since.parse::<NvvmArch>()?;
        if let Some(instruction) = probe
            .ptx
            .iter()
            .find(|instruction| entry.text.contains(**instruction) != wanted)
        {
            let has = if wanted { "has no" } else { "has" };
            return Err(format!("{} {has} {instruction}", probe.entry).into());
        }
    }
    Ok(())
}

/// In the source a barrier is a call of `sync_threads`. The lines of a kernel's file that hold one are those that its
/// barriers name, each barrier one of them; and no file is named by a folder of this machine.
fn names_the_lines_of_the_source(built: &Built) -> Result<(), Failed> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for kernel in KERNELS {
        let source = std::fs::read_to_string(workspace.join(kernel.source))?;
        let with_barrier: BTreeSet<u32> = (1..)
            .zip(source.lines())
            .filter(|(_, text)| text.trim_start().starts_with("thread::sync_threads()"))
            .map(|(line, _)| line)
            .collect();
        for variant in kernel.variants {
            let mut found = BTreeSet::new();
            for line in listing::ptx::kernel(built.ptx, variant.entry) {
                let Line::Instruction { text, origin } = line else {
                    continue;
                };
                if let Some(place) = origin.iter().find(|place| is_of_this_machine(place)) {
                    return Err(format!("{}: {place:?}", variant.entry).into());
                }
                if !text.contains("bar.sync") && !text.contains("barrier.sync") {
                    continue;
                }
                let in_source = origin.iter().find(|place| {
                    place.file == kernel.source && with_barrier.contains(&place.line)
                });
                match in_source {
                    Some(place) => found.insert(place.line),
                    // Another rung's body.
                    None if with_barrier.is_empty() => continue,
                    None => {
                        return Err(format!("{}: {text} is of {origin:?}", variant.entry).into());
                    }
                };
            }
            if found != with_barrier {
                let entry = variant.entry;
                return Err(format!("{entry}: barriers in {found:?}, not {with_barrier:?}").into());
            }
        }
    }
    Ok(())
}

fn is_of_this_machine(place: &Place) -> bool {
    Path::new(&place.file).is_absolute() && !place.file.starts_with("/rustc/")
}

/// What `host ptx --raw` shows is a whole module.
fn assembles_alone(built: &Built, toolkit: Option<&Toolkit>) -> Result<(), Failed> {
    let toolkit = toolkit.ok_or("no toolkit")?;
    for variant in variants() {
        let module = listing::ptx::with_one_kernel(built.ptx, variant.entry)
            .map(|module| listing::ptx::without_lines(&module))
            .ok_or_else(|| format!("{} is missing", variant.entry))?;
        let assembled = ptxas::assemble(toolkit, &module, built.arch)?;
        let entries: Vec<&str> = assembled
            .kernels
            .iter()
            .map(|kernel| kernel.entry.as_str())
            .collect();
        if entries != [variant.entry] {
            return Err(format!("{entries:?} instead of {}", variant.entry).into());
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
