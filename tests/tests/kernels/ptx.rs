//! The PTX of the kernels: `ptxas` assembles it for every architecture; nothing spills; it has the
//! wide accesses for which the kernels are written, and the lines of their source.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;

use device_kernels::probe::Probe;
use gpu_gemm::KERNELS;
use gpu_gemm::device::compiled;
use gpu_gemm::device::ptx::{Kernels, without_lines};
use gpu_gemm::gpu_kernels::epilogue::{
    Bf16, Bias, Compiled, Gated, GeluTanh, PerColBias, Silu, Then,
};
use gpu_gemm::gpu_kernels::spec::{Grid, Variant};
use gpu_gemm::gpu_kernels::{self, variants};
use host::listing::{self, Line, Place};
use libtest_mimic::{Failed, Trial};
use nvvm::{NvvmArch, Toolkit, ptxas};
use tests::built::{Built, LADDER, PROBES, built, one_of_each_kernel};

pub fn trials() -> Vec<Trial> {
    let no_libnvvm = cuda_builder::why_no_libnvvm();
    if let Some(reason) = &no_libnvvm {
        println!("nothing is compiled here: {reason}");
    }
    let can_compile = no_libnvvm.is_none();
    let can_assemble = can_compile && toolkit().is_ok();
    if !can_assemble {
        println!("without a CUDA toolkit or wheel there is no ptxas, and no test of it here");
    }
    // The library's kernels, compiled as it does. The exhaustive tier compiles all of them.
    let name = "ptx::one_of_each_kernel::has_the_instructions_and_names_its_lines";
    let quick = Trial::test(name, || {
        let ladder = library()?;
        have_instructions(&ladder)?;
        name_lines(&ladder)
    });
    let mut trials = vec![quick.with_ignored_flag(!can_compile)];
    // The first claims compile the others' PTX: they run first, so that no thread waits.
    for (claim, kernels, check) in CLAIMS {
        for built in built().filter(|built| built.kernels == kernels && can_compile) {
            let name = format!("ptx::{kernels}::{}::{claim}", built.arch);
            trials.push(tests::exhaustive(name, move || check(&built)));
        }
    }
    // ptxas takes minutes for all kernels, on one core for each architecture.
    if can_assemble {
        for built in built() {
            let (claim, check): (_, Check) = match built.kernels {
                LADDER => ("ptxas_keeps_each_kernel_in_registers", assembles_alone),
                _ => ("ptxas_accepts_it", assembles),
            };
            let name = format!("ptx::{}::{}::{claim}", built.kernels, built.arch);
            trials.push(tests::exhaustive(name, move || check(&built)));
        }
    }
    trials
}

type Check = fn(&Built) -> Result<(), Failed>;

/// Claims about a crate of kernels, for each architecture.
const CLAIMS: [(&str, &str, Check); 3] = [
    ("has_every_kernel", LADDER, has_every_kernel),
    ("has_the_instructions", PROBES, probes_have_instructions),
    (
        "has_the_instructions_and_names_its_lines",
        LADDER,
        |built| {
            let ladder = Ladder::of(built);
            have_instructions(&ladder)?;
            name_lines(&ladder)
        },
    ),
];

/// Kernels of the ladder, each with its module.
struct Ladder {
    arch: NvvmArch,
    kernels: Vec<(&'static str, String)>,
    /// Whether these are all kernels.
    is_whole: bool,
}

impl Ladder {
    fn of(built: &Built) -> Ladder {
        let alone = Kernels::of(built.ptx());
        let names = entries_of_variants().chain(helpers());
        let kernels = names.filter_map(|name| Some((name, alone.alone(name)?)));
        Ladder {
            arch: built.arch,
            kernels: kernels.collect(),
            is_whole: built.is_whole(),
        }
    }
}

/// One variant of each kernel, the helpers, and some kernels with an epilogue, compiled as in the
/// library for the newest architecture.
fn library() -> Result<Ladder, Failed> {
    let names: Vec<&str> = one_of_each_kernel().chain(FUSED).collect();
    let module = compiled::module_for(90)?;
    module.prepare(&names)?;
    let kernels = names
        .into_iter()
        .map(|name| Ok((name, module.kernel(name)?)));
    let arch = module.target().replace("sm_", "compute_").parse()?;
    Ok(Ladder {
        arch,
        kernels: kernels.collect::<Result<_, Failed>>()?,
        is_whole: false,
    })
}

/// Kernels with an epilogue, for f32 and for 16 bits, with a gate, and a fix-up.
const FUSED: [&str; 5] = [
    "bias_gelu_async_pipeline_64x64_nn",
    "bias_gelu_persistent_nt_bf16",
    "bias_gelu_bf16_persistent_nt_bf16",
    "bias_gelu_fix_up_bf16",
    "swiglu_gated_nt_bf16",
];

/// The toolkit with `ptxas`.
fn toolkit() -> Result<&'static Toolkit, Failed> {
    static FOUND: OnceLock<Option<Toolkit>> = OnceLock::new();
    let found = FOUND.get_or_init(|| Toolkit::find().filter(|toolkit| toolkit.ptxas.is_some()));
    Ok(found.as_ref().ok_or("no ptxas")?)
}

fn assembles(built: &Built) -> Result<(), Failed> {
    ptxas::assemble(toolkit()?, built.ptx(), built.arch)?;
    Ok(())
}

/// Kernels, by the beginnings of their names, that spill because of their launch bounds, and the
/// most bytes of stack and spills. Bounds are tuned on Hopper; no Blackwell has run them yet. The
/// warp-specialised kernels read their spills between tiles, mostly in the producer, which has 24
/// registers. On Hopper `double_buffer_k16` spills a word in the loop at the edges of C; on
/// Turing `double_buffer_k8` 24 or 240 bytes, depending on the order of its two shared arrays,
/// which is decided by a hash.
const SPILLS: [(NvvmArch, &str, u32); 6] = [
    (NvvmArch::Compute75, "double_buffer_k8", 240),
    (NvvmArch::Compute90a, "double_buffer_k16", 24),
    (NvvmArch::Compute90a, "warp_specialized", 124),
    (NvvmArch::Compute90a, "persistent", 172),
    (NvvmArch::Compute90a, "grouped", 92),
    (NvvmArch::Compute90a, "split_fp32", 72),
];

/// `ptxas` accepts each kernel in its own module, as drivers get it, keeps all its values in
/// registers, except for [`SPILLS`], and gives no warning, such as that it serialises `wgmma`.
fn assembles_alone(built: &Built) -> Result<(), Failed> {
    let toolkit = toolkit()?;
    let mut unknown = Vec::new();
    let kernels = Kernels::of(built.ptx());
    for name in entries_of_variants().chain(helpers()) {
        let Some(module) = kernels.alone(name) else {
            assert!(!built.is_whole(), "{name} is missing");
            continue;
        };
        let assembled = ptxas::assemble(toolkit, &module, built.arch)?;
        assert_eq!(assembled.remarks, [""; 0], "{name}");
        let assembled = assembled.kernels;
        let entries: Vec<&str> = assembled.iter().map(|one| one.entry.as_str()).collect();
        assert_eq!(entries, [name]);
        let kernel = &assembled[0];
        let in_memory = kernel.stack_bytes + kernel.spill_store_bytes + kernel.spill_load_bytes;
        let known = SPILLS
            .iter()
            .find(|(arch, of, _)| *arch == built.arch && name.starts_with(of));
        if in_memory > known.map_or(0, |(.., most)| *most) {
            unknown.push((name, in_memory));
        }
        if let Some(variant) = variant_of(name) {
            let registers = kernel.registers * variant.block.threads();
            assert!(registers <= 65_536, "{registers} for a block of {kernel:?}");
        }
    }
    assert_eq!(unknown, [], "bytes of stack and spills");
    // The output of `rust-gemm ptx --raw` is a complete module, too.
    let naive = kernels.alone("naive").ok_or("no naive")?;
    ptxas::assemble(toolkit, &without_lines(&naive), built.arch)?;
    Ok(())
}

/// The kernels that multiply.
fn entries_of_variants() -> impl Iterator<Item = &'static str> {
    variants().map(|variant| variant.entry.name)
}

/// The variant of an entry point.
fn variant_of(name: &str) -> Option<&'static Variant> {
    // SAFETY: none is launched.
    let grouped = unsafe {
        let along_k = gpu_kernels::grouped_along_k_variants();
        gpu_kernels::grouped_variants().iter().chain(along_k)
    };
    let mut all = variants().chain(grouped);
    all.find(|variant| variant.entry.name == name)
}

/// The kernels beside those that multiply.
fn helpers() -> impl Iterator<Item = &'static str> {
    gpu_kernels::helpers().map(|helper| helper.name)
}

/// A kernel with vector stores has one for each float4 of its thread tile; with several k-slices,
/// each stores its share.
fn stores_float4s(entry: &Entry<'_>) {
    let variant = variant_of(entry.name);
    let Some(variant) = variant.filter(|variant| variant.vector_stores) else {
        return;
    };
    let float4s = variant.thread_tile.0 * variant.thread_tile.1 / 4 / variant.k_slices;
    let stored = entry.text.matches("st.global.v4.f32").count();
    // A stream-K kernel stores to C or to the workspace.
    let targets = if variant.grid == Grid::StreamK { 2 } else { 1 };
    assert_eq!(
        stored,
        targets * float4s as usize,
        "float4s that {} stores",
        entry.name
    );
}

/// The entry points are those of the table, each once.
fn has_every_kernel(built: &Built) -> Result<(), Failed> {
    let found: BTreeSet<&str> = entries(built.ptx()).map(|entry| entry.name).collect();
    let all: BTreeSet<&str> = gpu_kernels::entries().map(|one| one.name).collect();
    // Kernels with an epilogue have a fix-up for each type of C, even if none of them has that C.
    let mut others = found.difference(&all);
    assert!(others.all(|name| name.contains("_fix_up")), "{found:?}");
    match built.is_whole() {
        true => assert!(found.is_superset(&all), "{found:?}"),
        false => assert!(found.contains("naive")),
    }
    Ok(())
}

fn probes() -> impl Iterator<Item = &'static Probe> {
    device_kernels::PROBES.iter().copied().flatten()
}

fn have_instructions(ladder: &Ladder) -> Result<(), Failed> {
    let arch = ladder.arch;
    for (name, ptx) in &ladder.kernels {
        let start = ptx.find(&format!(".entry {name}("));
        let start = start.ok_or_else(|| format!("{name} is missing"))?;
        let entry = entries(&ptx[start..]).next().ok_or("no kernel")?;
        let words: Vec<&str> = entry.text.split_whitespace().collect();
        for pair in words.windows(2) {
            let local = pair[0].starts_with(".local");
            assert!(!local, "{} has an array in local memory", entry.name);
            // The code of a panic follows the kernel's own.
            let is_call = pair[0].starts_with("call") && pair[0] != "callseq";
            let panics = pair[1] == "__nvvm_panic,";
            assert!(!is_call || panics, "{} calls {}", entry.name, pair[1]);
        }
        waits_before_it_reads(arch, &entry);
        stores_float4s(&entry);
        if entry.name.starts_with("warp_specialized_tf32") && arch == NvvmArch::Compute90a {
            // Operands in registers are read two elements at a time, 16 reads for a k-iteration:
            // for the first, and then, during each, for the next.
            let reads = entry.text.matches("ld.shared.").count();
            let pairs = entry.text.matches("ld.shared.v2.").count();
            let expected = if entry.name.ends_with("_nt") { 0 } else { 16 };
            assert_eq!((reads, pairs), (expected, expected), "{}", entry.name);
        }
        if entry.name.starts_with("warp_specialized_fp64") && arch == NvvmArch::Compute90a {
            // Two elements of each fragment at a time.
            let reads = entry.text.matches("ld.shared.").count();
            let pairs = entry.text.matches("ld.shared.v2.f64").count();
            assert!(reads >= 24 && pairs == reads, "{pairs} of {reads} reads");
        }
        if entry.name.starts_with("double_buffer") {
            for instruction in ["ld.global", "ld.shared", "st.global"] {
                // Inline PTX accesses global memory, and names f32 for any 32 bits.
                let float4 = match entry.name.ends_with("_i32") && instruction == "ld.shared" {
                    true => "v4.u32",
                    false => "v4.f32",
                };
                let moves_float4 =
                    |word: &str| word.starts_with(instruction) && word.ends_with(float4);
                let has_one = entry.text.split_whitespace().any(moves_float4);
                assert!(has_one, "{} has no {instruction} of a float4", entry.name);
            }
            // B is copied straight to shared memory if there is an instruction for it, else a
            // float4 at a time.
            let copies = entry.text.contains("cp.async.cg.shared.global");
            let stores = entry.text.contains("st.shared.v4");
            let can_copy = arch >= NvvmArch::Compute80;
            assert_eq!((copies, stores), (can_copy, !can_copy), "{}", entry.name);
        }
    }
    Ok(())
}

/// A kernel that may begin early waits for the previous one before it reads anything, and only
/// kernels for which the next one waits let it begin early.
fn waits_before_it_reads(arch: NvvmArch, entry: &Entry<'_>) {
    let fused = <Then<Bias, GeluTanh>>::kernels().variants.iter();
    let of_16_bits = <Then<PerColBias<Bf16>, GeluTanh>>::kernels().variants;
    let fused = fused
        .chain(of_16_bits)
        .chain(<Gated<Silu>>::kernels().variants)
        .find(|variant| variant.entry.name == entry.name);
    let variant = variant_of(entry.name).or(fused);
    let is_stream_k = variant.is_some_and(|variant| variant.grid.is_stream_k());
    let is_persistent = variant.is_some_and(|variant| variant.grid.is_mapped());
    let follows = is_stream_k || is_persistent || entry.name.contains("fix_up");
    // Instructions of only one architecture are a trap on others.
    let runs =
        variant.is_none_or(|variant| !variant.one_capability || arch == NvvmArch::Compute90a);
    let can = arch >= NvvmArch::Compute90 && runs;
    let wait = entry.text.find("griddepcontrol.wait");
    let name = entry.name;
    assert_eq!(wait.is_some(), can && follows, "whether {name} waits");
    let lets = entry.text.contains("griddepcontrol.launch_dependents");
    assert_eq!(
        lets,
        can && is_stream_k,
        "whether {name} lets the next begin"
    );
    for access in ["ld.global", "cp.async", "st.global"] {
        let is_early = wait.is_some_and(|wait| entry.text[..wait].contains(access));
        assert!(!is_early, "{name} has {access} before it waits");
    }
}

/// Each probe has the instructions that it tests; and a marked function that no kernel calls is
/// kept.
fn probes_have_instructions(built: &Built) -> Result<(), Failed> {
    for probe in probes() {
        let entry = entries(built.ptx())
            .find(|entry| entry.name == probe.entry)
            .ok_or_else(|| format!("{} is missing", probe.entry))?;
        let since = probe.ptx_since.parse::<NvvmArch>()?;
        // No other architecture has the instructions of `compute_90a`.
        let expected = match probe.ptx_since.ends_with('a') {
            true => built.arch == since,
            false => built.arch >= since,
        };
        for instruction in probe.ptx {
            let has = entry.text.contains(instruction);
            assert_eq!(has, expected, "{instruction} in {}", probe.entry);
        }
    }
    let ptx = built.ptx();
    let name = ptx
        .find(" offered_to_other_ptx")
        .ok_or("no visible function")?;
    let line = ptx[..name].lines().last().unwrap_or_default();
    assert!(line.starts_with(".visible .func"), "{line}");
    Ok(())
}

/// In the source a barrier is a call of `sync_threads`. The barriers of a kernel's variants name
/// the lines of its file with such calls, all of them and no others; and no file name contains a
/// folder of this machine.
fn name_lines(ladder: &Ladder) -> Result<(), Failed> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    // The other variants are a trap here.
    let runs = |variant: &Variant| !variant.one_capability || ladder.arch == NvvmArch::Compute90a;
    for kernel in KERNELS
        .iter()
        .filter(|kernel| kernel.variants.iter().any(runs))
    {
        let with_barrier = lines_with_barrier(&workspace.join(kernel.source))?;
        let mut found = BTreeSet::new();
        let mut number = 0;
        let of_kernel = |name| {
            kernel
                .variants
                .iter()
                .any(|variant| variant.entry.name == name)
        };
        for (name, ptx) in ladder.kernels.iter().filter(|(name, _)| of_kernel(*name)) {
            number += 1;
            for line in listing::ptx::kernel(ptx, name) {
                let Line::Instruction { text, origin } = line else {
                    continue;
                };
                let is_foreign = origin.iter().any(is_of_this_machine);
                assert!(!is_foreign, "{name}: {text} is of {origin:?}");
                if !text.contains("bar.sync") && !text.contains("barrier.sync") {
                    continue;
                }
                let in_source = origin.iter().find(|place| {
                    place.file == kernel.source && with_barrier.contains(&place.line)
                });
                found.extend(in_source.map(|place| place.line));
                // Otherwise it is in another rung's file, which both share, or in this rung's
                // second.
                let is_of_rung = |place: &&Place| {
                    let mut rungs = KERNELS.iter();
                    place.file == "gpu-kernels/src/tensor_core_half.rs"
                        || rungs.any(|kernel| kernel.source == place.file)
                };
                let is_barrier = |place: &Place| {
                    let lines = lines_with_barrier(&workspace.join(&place.file));
                    lines.is_ok_and(|lines| lines.contains(&place.line))
                };
                let is_found = origin.iter().filter(is_of_rung).any(is_barrier);
                assert!(is_found, "{name}: {text} is of {origin:?}");
            }
        }
        // Some barriers exist in only one variant.
        let is_right = match ladder.is_whole {
            true => found == with_barrier,
            false => number == 0 || found.is_empty() == with_barrier.is_empty(),
        };
        assert!(is_right, "{}: {found:?}, not {with_barrier:?}", kernel.name);
    }
    Ok(())
}

/// The lines of a file in which a barrier begins.
fn lines_with_barrier(file: &Path) -> Result<BTreeSet<u32>, Failed> {
    let source = std::fs::read_to_string(file)?;
    let has_barrier = |text: &str| {
        let barriers = ["thread::sync_threads()", "thread::named_barrier("];
        let mut barriers = barriers.iter();
        barriers.any(|barrier| text.trim_start().starts_with(barrier))
    };
    let lines = (1..).zip(source.lines());
    let lines = lines.filter(|(_, text)| has_barrier(text));
    Ok(lines.map(|(line, _)| line).collect())
}

fn is_of_this_machine(place: &Place) -> bool {
    Path::new(&place.file).is_absolute() && !place.file.starts_with("/rustc/")
}

struct Entry<'a> {
    name: &'a str,
    text: &'a str,
}

/// The kernels of a module, each with its text up to the next one.
fn entries(ptx: &str) -> impl Iterator<Item = Entry<'_>> {
    ptx.split(".entry ").skip(1).map(|text| Entry {
        name: text.split('(').next().unwrap_or_default().trim(),
        text,
    })
}
