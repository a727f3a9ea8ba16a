//! What compilation from Rust to PTX makes of the kernels: assembled by `ptxas` for every
//! architecture, no memory where there should be registers, the wide accesses that the kernels
//! are written for, and the lines that they are written in.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use device_kernels::PROBES;
use gpu_gemm::KERNELS;
use gpu_gemm::device::ptx::header;
use gpu_gemm::gpu_kernels::{self, fix_up::FIX_UP, spec::Grid, spec::Variant, spec::variants};
use host::listing::{self, Line, Place};
use libtest_mimic::{Failed, Trial};
use nvvm::{NvvmArch, Toolkit, ptxas};
use tests::built::{Built, built};

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
    for built in built() {
        let name = |claim| format!("{}::{}::{claim}", built.kernels, built.arch);
        let missing = built.ptx.is_empty();
        let (toolkit, toolkit_alone) = (toolkit.clone(), toolkit.clone());
        trials.push(
            Trial::test(name("ptxas_takes_it"), move || {
                assembles(&built, toolkit.as_ref())
            })
            .with_ignored_flag(missing || !can_assemble),
        );
        trials.push(
            Trial::test(name("has_every_kernel"), move || has_every_kernel(&built))
                .with_ignored_flag(missing),
        );
        let contents = match built.kernels {
            "gpu-kernels" => kernels_keep_their_promises,
            _ => probes_use_their_instructions,
        };
        trials.push(
            Trial::test(name("has_the_instructions"), move || contents(&built))
                .with_ignored_flag(missing),
        );
        if built.kernels == "gpu-kernels" {
            trials.push(
                Trial::test(name("names_the_lines_of_the_source"), move || {
                    names_the_lines_of_the_source(&built)
                })
                .with_ignored_flag(missing),
            );
            trials.push(
                Trial::test(name("ptxas_takes_each_kernel_alone"), move || {
                    assembles_alone(&built, toolkit_alone.as_ref())
                })
                .with_ignored_flag(missing || !can_assemble),
            );
        }
    }
    for (target, needed, refused) in LADDER_NEEDS {
        let toolkit = toolkit.clone();
        let name = format!("gpu-kernels::{target}::needs_{needed}");
        let test = move || needs(target, needed, refused, toolkit.as_ref());
        let missing = ladder().all(|built| built.arch.sm() != target);
        trials.push(Trial::test(name, test).with_ignored_flag(missing || !can_assemble));
    }
    tests::run(trials)
}

/// Targets that the ladder is compiled for, the version of the PTX ISA that it needs there, and
/// the newest version that ptxas refuses it at.
///
/// Line tables need 7.2 by NVIDIA's documentation; ptxas of CUDA 12.9 takes them from 7.0 on.
const LADDER_NEEDS: [(&str, &str, &str); 4] = [
    ("sm_75", "7.2", "6.5"),
    ("sm_80", "7.2", "6.5"),
    ("sm_90", "7.8", "7.7"),
    ("sm_100", "8.6", "8.5"),
];

/// The ladder as it is embedded and as it is compiled for the tests.
fn ladder() -> impl Iterator<Item = Built> {
    built().filter(|built| built.kernels == "gpu-kernels")
}

/// The ladder for a target declares the PTX version that it needs: ptxas takes it, and refuses
/// it at an older one.
fn needs(
    target: &str,
    needed: &str,
    refused: &str,
    toolkit: Option<&Toolkit>,
) -> Result<(), Failed> {
    let toolkit = toolkit.ok_or("no toolkit")?;
    for Built { ptx, arch, .. } in ladder().filter(|built| built.arch.sm() == target) {
        let version = header(ptx).isa;
        if version != needed {
            return Err(format!("asks for {version}, not for {needed}").into());
        }
        // One kernel is assembled, but all are read.
        let first = entries(ptx).next().ok_or("no kernels")?.name;
        ptxas::assemble_entry(toolkit, ptx, arch, first)?;
        let head = format!(".version {needed}\n");
        let older = ptx.replacen(&head, &format!(".version {refused}\n"), 1);
        match ptxas::assemble_entry(toolkit, &older, arch, first) {
            Err(nvvm::Error::PtxasRejected { log, .. }) if log.contains("version") => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Err(format!("ptxas takes it at {refused}").into()),
        }
    }
    Ok(())
}

/// `ptxas` takes it, and keeps every value of every kernel of the ladder in registers.
fn assembles(built: &Built, toolkit: Option<&Toolkit>) -> Result<(), Failed> {
    let toolkit = toolkit.ok_or("no toolkit")?;
    let assembled = ptxas::assemble(toolkit, built.ptx, built.arch)?;
    if built.kernels != "gpu-kernels" {
        return Ok(());
    }
    // The entry that `host explain` assembles alone is what the driver will see.
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
        if is_helper(&kernel.entry) {
            continue;
        }
        let variant = variants()
            .find(|variant| variant.entry.name == kernel.entry)
            .ok_or_else(|| format!("{} is not in the table", kernel.entry))?;
        let registers = kernel.registers * variant.block.threads();
        if registers > 65_536 {
            return Err(format!("{}: a block takes {registers} registers", kernel.entry).into());
        }
    }
    Ok(())
}

/// The kernels beside those that multiply.
fn helpers() -> impl Iterator<Item = &'static str> {
    gpu_kernels::HELPERS.into_iter().map(|helper| helper.name)
}

fn is_helper(entry: &str) -> bool {
    helpers().any(|helper| helper == entry)
}

/// A kernel with vector stores has one for each float4 of its thread tile.
fn stores_float4s(entry: &Entry<'_>) -> Result<(), Failed> {
    let named = |variant: &&Variant| variant.entry.name == entry.name;
    let Some(variant) = variants()
        .find(named)
        .filter(|variant| variant.vector_stores)
    else {
        return Ok(());
    };
    let float4s = variant.thread_tile.0 * variant.thread_tile.1 / 4;
    let stored = entry.text.matches("st.global.v4.f32").count();
    // A stream-K kernel stores to C or to the workspace.
    let places = if variant.grid == Grid::StreamK { 2 } else { 1 };
    if stored != (places * float4s) as usize {
        let name = entry.name;
        return Err(format!("{name}: {float4s} float4s, but {stored} such stores").into());
    }
    Ok(())
}

/// The entry points are those of the table, each once.
fn has_every_kernel(built: &Built) -> Result<(), Failed> {
    let found: BTreeSet<&str> = entries(built.ptx).map(|entry| entry.name).collect();
    let wanted: BTreeSet<&str> = match built.kernels {
        "gpu-kernels" => variants()
            .map(|variant| variant.entry.name)
            .chain(helpers())
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
        stores_float4s(&entry)?;
        if entry.name.starts_with("double_buffer") {
            let moves_float4 = |instruction: &str| {
                entry
                    .text
                    .split_whitespace()
                    .any(|word| word.starts_with(instruction) && word.ends_with("v4.f32"))
            };
            for instruction in ["ld.global", "ld.shared", "st.global"] {
                if !moves_float4(instruction) {
                    return Err(
                        format!("{} has no {instruction} of four floats", entry.name).into(),
                    );
                }
            }
            // B goes straight to shared memory where there is an instruction for it, else a
            // float4 at a time.
            let copies = entry.text.contains("cp.async.cg.shared.global");
            let stores = entry.text.contains("st.shared.v4");
            if (copies, stores) != (built.arch >= NvvmArch::Compute80, !copies) {
                return Err(format!(
                    "{}: copies B: {copies}, stores it as float4s: {stores}",
                    entry.name
                )
                .into());
            }
        }
    }
    Ok(())
}

/// A kernel that may begin early waits for the one before it before it reads anything, and a
/// kernel that lets the next one begin early is one that the next one waits for.
fn waits_before_it_reads(built: &Built, entry: &Entry<'_>) -> Result<(), Failed> {
    let mut stream_k = variants().filter(|variant| variant.grid == Grid::StreamK);
    let is_stream_k = stream_k.any(|variant| variant.entry.name == entry.name);
    let follows = is_stream_k || entry.name == FIX_UP.name;
    let can = built.arch >= NvvmArch::Compute90;
    let wait = entry.text.find("griddepcontrol.wait");
    if wait.is_some() != (can && follows) {
        return Err(format!("{} waits: {}", entry.name, wait.is_some()).into());
    }
    let lets = entry.text.contains("griddepcontrol.launch_dependents");
    if lets != (can && is_stream_k) {
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

/// In the source a barrier is a call of `sync_threads`. The lines of a kernel's file that hold
/// one are those that its barriers name, each barrier one of them; and no file is named by a
/// folder of this machine.
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
            for line in listing::ptx::kernel(built.ptx, variant.entry.name) {
                let Line::Instruction { text, origin } = line else {
                    continue;
                };
                if let Some(place) = origin.iter().find(|place| is_of_this_machine(place)) {
                    return Err(format!("{}: {place:?}", variant.entry.name).into());
                }
                if !text.contains("bar.sync") && !text.contains("barrier.sync") {
                    continue;
                }
                let in_source = origin.iter().find(|place| {
                    place.file == kernel.source && with_barrier.contains(&place.line)
                });
                match in_source {
                    Some(place) => found.insert(place.line),
                    // The body of another rung.
                    None if with_barrier.is_empty() => continue,
                    None => {
                        return Err(
                            format!("{}: {text} is of {origin:?}", variant.entry.name).into()
                        );
                    }
                };
            }
            if found != with_barrier {
                let entry = variant.entry;
                return Err(format!(
                    "{}: barriers in {found:?}, not {with_barrier:?}",
                    entry.name
                )
                .into());
            }
        }
    }
    Ok(())
}

fn is_of_this_machine(place: &Place) -> bool {
    Path::new(&place.file).is_absolute() && !place.file.starts_with("/rustc/")
}

/// What `host ptx --raw` shows is a complete module.
fn assembles_alone(built: &Built, toolkit: Option<&Toolkit>) -> Result<(), Failed> {
    let toolkit = toolkit.ok_or("no toolkit")?;
    for variant in variants() {
        let module = gpu_gemm::device::ptx::with_one_kernel(built.ptx, variant.entry.name)
            .map(|module| listing::ptx::without_lines(&module))
            .ok_or_else(|| format!("{} is missing", variant.entry.name))?;
        let assembled = ptxas::assemble(toolkit, &module, built.arch)?;
        let entries: Vec<&str> = assembled
            .kernels
            .iter()
            .map(|kernel| kernel.entry.as_str())
            .collect();
        if entries != [variant.entry.name] {
            return Err(format!("{entries:?} instead of {}", variant.entry.name).into());
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
