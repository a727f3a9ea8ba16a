//! Compiles the kernels to PTX for several architectures, to machine code for the GPUs of this
//! machine, and to OpenCL C, and packs them for `src/device/compiled.rs` with their Rust files.
//! With the feature `on-demand`, a dev build compiles nothing: the program then does, kernel by
//! kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::{env, fs, io, thread};

use cuda_builder::{CudaBuilder, DebugInfo, NvvmArch};
use lzma_rust2::{LzmaOptions, LzmaWriter};
use nvvm::{Toolkit, gpus, ptxas};

/// The targets of the PTX, oldest first. A GPU runs the newest that it supports.
const ARCHITECTURES: [NvvmArch; 4] = [
    NvvmArch::Compute75,
    NvvmArch::Compute80,  // asynchronous copies from global to shared memory
    NvvmArch::Compute90,  // kernels that begin before the previous one has ended
    NvvmArch::Compute90a, // products of warpgroups
];

/// The variable that names the architectures of the program's PTX, such as `sm_80,sm_90a`; `all`,
/// or `none`.
const PTX: &str = "GEMM_PTX";

/// The variable that names the architectures for machine code, such as `sm_80,sm_90`, instead of
/// those of this machine's GPUs. Empty: none.
const MACHINE_CODE: &str = "GEMM_MACHINE_CODE";

/// The size of the text that is compressed together: kernels resemble each other, but loading one
/// unpacks its whole block.
const BLOCK_BYTES: usize = 4 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={PTX}");
    println!("cargo::rustc-check-cfg=cfg(kernels_on_demand)");
    // cargo sets both for every build script.
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let kernels = env::var_os("DEP_GPU_KERNELS_FOLDER").map(PathBuf::from);
    let kernels = &kernels.ok_or("gpu-kernels does not say where it is")?;
    println!("cargo::rustc-env=GPU_KERNELS={}", kernels.display());
    let names = ARCHITECTURES.map(NvvmArch::sm).join(" ");
    println!("cargo::rustc-env=GPU_KERNELS_ARCHITECTURES={names}");

    let has_program_compile = has_feature("on-demand") && !is_release;
    let wanted = match env::var(PTX).as_deref() {
        Ok("all") => ARCHITECTURES.to_vec(),
        Err(_) if !has_program_compile => features(),
        Ok("none") | Err(_) => Vec::new(),
        Ok(names) => named(names)?,
    };
    if wanted.is_empty() {
        match has_program_compile {
            true => println!("cargo::rustc-cfg=kernels_on_demand"),
            false => println!(
                "cargo::rustc-env=CUDA_BUILDER_NO_PTX={PTX} is none, or no feature of gpu_gemm names an architecture."
            ),
        }
    }
    let mut packed = Packed::new(&out, is_release);
    compile(&wanted, kernels, &out, &mut packed)?;
    packed.finish()?;
    Ok(())
}

/// Whether a feature of this crate is enabled.
fn has_feature(name: &str) -> bool {
    let name = name.to_uppercase().replace('-', "_");
    env::var_os(format!("CARGO_FEATURE_{name}")).is_some()
}

/// The architectures that are enabled.
fn features() -> Vec<NvvmArch> {
    let enabled = |arch: &NvvmArch| has_feature(&arch.sm());
    ARCHITECTURES.into_iter().filter(enabled).collect()
}

/// Reads `sm_80,sm_90a`.
fn named(names: &str) -> Result<Vec<NvvmArch>, String> {
    let names: BTreeSet<&str> = names.split(',').map(str::trim).collect();
    let is_named = |arch: &NvvmArch| names.contains(arch.sm().as_str());
    let found: Vec<NvvmArch> = ARCHITECTURES.into_iter().filter(is_named).collect();
    match found.len() == names.len() {
        true => Ok(found),
        false => {
            let known = ARCHITECTURES.map(NvvmArch::sm).join(", ");
            Err(format!(
                "{PTX} is all, none, or some of {known}, with commas between"
            ))
        }
    }
}

/// Compiles the kernels for these architectures, and packs the results.
fn compile(
    architectures: &[NvvmArch],
    kernels: &Path,
    out: &Path,
    packed: &mut Packed,
) -> Result<(), Box<dyn Error>> {
    let opencl = out.join("opencl");
    // Each type is a feature of the kernels, too, and so are the epilogues.
    let types = ["bf16", "f16", "f64", "i32", "i8", "e4m3", "epilogues"];
    let types = types.into_iter().filter(|name| has_feature(name));
    let types = types.map(|name| format!("--features={name}"));
    let types = Vec::from_iter(
        ["--no-default-features", "--features=entry-points"]
            .map(str::to_owned)
            .into_iter()
            .chain(types),
    );
    let debug = match has_feature("lines") {
        true => DebugInfo::LineTables,
        false => DebugInfo::None,
    };
    // libNVVM uses one core, so builds run in parallel.
    let builds: Vec<_> = thread::scope(|scope| {
        let start = |arch: &NvvmArch| {
            let builder = CudaBuilder::new(kernels)
                .arch(*arch)
                .kernels_to(out.join(arch.to_string()))
                .debug(debug)
                // No input makes these kernels panic, and each panic message is code to compile.
                .panic_messages(false)
                .libnvvm_optional(true)
                .build_args(&types);
            // The oldest uses the fewest features that OpenCL lacks: its copies to shared memory
            // are loads and stores.
            let builder = match *arch == architectures[0] && has_feature("opencl") {
                true => builder.opencl_to(&opencl),
                false => builder,
            };
            scope.spawn(|| builder.build())
        };
        let threads: Vec<_> = architectures.iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    let mut modules = Vec::new();
    for (arch, build) in architectures.iter().zip(builds) {
        let folder = build.unwrap_or_else(|panic| resume_unwind(panic))?;
        let texts = texts(&folder, "ptx")?;
        // There are none if the kernels do not compile for the CPU either; cargo will report that.
        if !texts.is_empty() {
            modules.push((*arch, texts));
        }
    }
    let mut sources = BTreeSet::new();
    // A kernel differs little between architectures: together they compress well.
    let names: BTreeSet<String> = modules
        .iter()
        .flat_map(|(_, texts)| texts.keys())
        .cloned()
        .collect();
    let mut places = vec![String::new(); modules.len()];
    for name in &names {
        for ((_, texts), places) in modules.iter().zip(&mut places) {
            if let Some(text) = texts.get(name) {
                sources.extend(text.lines().filter_map(named_file).map(str::to_owned));
                let place = match names.iter().any(|base| is_fused(name, base)) {
                    true => packed.add(without_lines(text).as_bytes()),
                    false => packed.add(with_one_name(text).as_bytes()),
                };
                let _ = write!(places, "({name:?}, {place}), ");
            }
        }
    }
    for ((arch, texts), places) in modules.iter().zip(places) {
        let version = texts.values().flat_map(|text| text.lines());
        let version = version
            .filter_map(|line| line.strip_prefix(".version "))
            .next();
        let version = version.unwrap_or_default();
        packed.modules += &format!("({:?}, {version:?}, &[{places}]),\n", arch.sm());
    }
    for (number, module, kernels) in assemble(&modules) {
        let mut places = String::new();
        for (name, code) in kernels {
            let place = packed.add(&code);
            let _ = write!(places, "({name:?}, {place}), ");
        }
        packed.machine_code += &format!("({number}, {module}, &[{places}]),\n");
    }
    let mut programs = BTreeMap::new();
    for (name, text) in self::texts(&opencl, "cl")? {
        let comments = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("// "));
        let places = comments.filter_map(|comment| comment.rsplit_once(':'));
        let files = places
            .map(|(file, _)| file)
            .filter(|file| file.ends_with(".rs"));
        sources.extend(files.map(str::to_owned));
        let place = packed.add(text.as_bytes());
        programs.insert(name, format!("Ok({place})"));
    }
    let refused = self::texts(&opencl, "refused")?.into_iter();
    programs.extend(refused.map(|(name, reason)| (name, format!("Err({reason:?})"))));
    for (name, program) in programs {
        packed.opencl += &format!("({name:?}, {program}),\n");
    }
    for name in sources.iter().filter(|name| Path::new(name).is_relative()) {
        // A name is relative to the root of the kernels' workspace: their folder or its parent.
        let mut paths = kernels.ancestors().take(2).map(|folder| folder.join(name));
        if let Some(path) = paths.find(|path| path.is_file()) {
            let place = packed.add(&fs::read(path)?);
            packed.sources += &format!("({name:?}, {place}),\n");
        }
    }
    Ok(())
}

/// Whether a kernel is another one with an epilogue, whose name is in front of the other's.
fn is_fused(name: &str, base: &str) -> bool {
    name.strip_suffix(base)
        .is_some_and(|epilogue| epilogue.ends_with('_'))
}

/// PTX without its line tables. Nothing shows those of fused kernels, and they are half of a text.
fn without_lines(ptx: &str) -> String {
    let code = ptx.lines().take_while(|line| !is_of(line, ".section"));
    let code = code.filter(|line| !is_of(line, ".loc"));
    code.flat_map(|line| [line, "\n"]).collect()
}

/// PTX whose line tables have one name for all functions. Nothing shows the names, and they are a
/// tenth of what is left when texts are compressed.
fn with_one_name(ptx: &str) -> String {
    const NAME: &str = "$L__info_string";
    let mut text = String::with_capacity(ptx.len());
    for line in ptx.lines() {
        match line.split_once(NAME) {
            Some((loc, end)) if is_of(loc, ".loc") => {
                let end = end.trim_start_matches(|digit: char| digit.is_ascii_digit());
                text.extend([loc, NAME, "0", end, "\n"]);
            }
            // The second name: the others follow, and the section's end.
            Some(("", "1:")) => {
                text.push_str("\t}\n");
                break;
            }
            _ => text.extend([line, "\n"]),
        }
    }
    text
}

/// Whether a line is of this directive.
fn is_of(line: &str, directive: &str) -> bool {
    line.trim_start().starts_with(directive)
}

/// Texts by the names of kernels.
type Texts = BTreeMap<String, String>;

/// The texts of a folder's files with this extension, by name; none if there is no folder.
fn texts(folder: &Path, ending: &str) -> io::Result<Texts> {
    let mut texts = Texts::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry?.path();
        if path.extension().is_some_and(|its| its == ending) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            texts.insert(name.into_owned(), fs::read_to_string(&path)?);
        }
    }
    Ok(texts)
}

/// Assembles machine code for the GPUs of this machine, so that the driver need not compile PTX
/// when a kernel first runs: the number of an architecture, the index of the assembled module, and
/// each kernel's code. Without ptxas, or if it refuses, the driver compiles as usual.
fn assemble(modules: &[(NvvmArch, Texts)]) -> Vec<(i32, usize, BTreeMap<String, Vec<u8>>)> {
    println!("cargo::rerun-if-env-changed={MACHINE_CODE}");
    let names = match env::var(MACHINE_CODE) {
        Ok(names) => names
            .split(',')
            .map(|name| name.trim().to_owned())
            .collect(),
        Err(_) => gpus::architectures(),
    };
    let Some(toolkit) = &Toolkit::find() else {
        return Vec::new();
    };
    let number = |name: &str| name.strip_prefix("sm_")?.parse::<i32>().ok();
    // The same choice as in `newest_for`, when a kernel is loaded.
    let runs_on = |arch: NvvmArch, gpu: i32| match arch.sm().strip_suffix('a') {
        Some(sm) => number(sm) == Some(gpu),
        None => number(&arch.sm()).is_some_and(|oldest| oldest <= gpu),
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut assembled = Vec::new();
    for (name, number) in names.iter().filter_map(|name| Some((name, number(name)?))) {
        // The newest module that the GPU runs.
        let module = modules.iter().rposition(|(arch, _)| runs_on(*arch, number));
        let Some(module) = module else { continue };
        let texts: Vec<(&String, &String)> = modules[module].1.iter().collect();
        let assemble = |texts: &[(&String, &String)]| -> Vec<_> {
            let code = |ptx| Some(ptxas::assemble_for(toolkit, ptx, name).ok()?.cubin);
            let each = texts
                .iter()
                .map(|(name, ptx)| Some((name.to_string(), code(ptx)?)));
            each.flatten().collect()
        };
        let code = thread::scope(|scope| {
            let chunks = texts.chunks(texts.len().div_ceil(threads).max(1));
            let threads: Vec<_> = chunks
                .map(|texts| scope.spawn(|| assemble(texts)))
                .collect();
            let joined = threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap_or_default());
            joined.collect()
        });
        assembled.push((number, module, code));
    }
    assembled
}

/// The contents of the program: blocks of text, and the places in them, as Rust expressions.
struct Packed {
    out: PathBuf,
    is_compressed: bool,
    /// The last one is not full.
    blocks: Vec<Vec<u8>>,
    modules: String,
    machine_code: String,
    opencl: String,
    sources: String,
}

impl Packed {
    /// A dev build does not compress, which saves time.
    fn new(out: &Path, is_compressed: bool) -> Packed {
        Packed {
            out: out.to_owned(),
            is_compressed,
            blocks: vec![Vec::new()],
            modules: String::new(),
            machine_code: String::new(),
            opencl: String::new(),
            sources: String::new(),
        }
    }

    /// Adds bytes, and returns their place: the block, the offset in it, and their number.
    fn add(&mut self, bytes: &[u8]) -> String {
        if self
            .blocks
            .last()
            .is_none_or(|last| last.len() >= BLOCK_BYTES)
        {
            self.blocks.push(Vec::new());
        }
        let index = self.blocks.len() - 1;
        let block = &mut self.blocks[index];
        let place = (index, block.len(), bytes.len());
        block.extend_from_slice(bytes);
        format!("{place:?}")
    }

    fn finish(self) -> io::Result<()> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let number = self.blocks.len();
        let paths = Vec::from_iter((0..number).map(|i| self.out.join(format!("{i}.block"))));
        let write = |first: usize| {
            // Each thread takes every `threads`-th block: they are equally long.
            (first..number).step_by(threads).try_for_each(|i| {
                let block = &self.blocks[i];
                match self.is_compressed {
                    true => fs::write(&paths[i], compressed(block)?),
                    false => fs::write(&paths[i], block),
                }
            })
        };
        thread::scope(|scope| {
            let running = Vec::from_iter((0..threads).map(|i| scope.spawn(move || write(i))));
            let mut ended = running.into_iter().map(|thread| thread.join());
            ended.try_for_each(|ended| ended.unwrap_or_else(|panic| resume_unwind(panic)))
        })?;
        let blocks = Vec::from_iter(paths.iter().map(|path| format!("include_bytes!({path:?})")));
        let text = format!(
            "Compiled {{\nis_compressed: {},\nmodules: &[\n{}],\nmachine_code: &[\n{}],\nopencl: \
             &[\n{}],\nsources: &[\n{}],\nblocks: &[{}],\n}}\n",
            self.is_compressed,
            self.modules,
            self.machine_code,
            self.opencl,
            self.sources,
            blocks.join(",\n")
        );
        fs::write(self.out.join("compiled.rs"), text)
    }
}

/// A block of kernels, as LZMA.
fn compressed(block: &[u8]) -> io::Result<Vec<u8>> {
    // Presets up to 3 take a third of the time, and a quarter more space.
    let mut options = LzmaOptions::with_preset(6);
    options.dict_size = block.len().next_power_of_two() as u32;
    // Kernels repeat each other at length: half as long again, for a tenth less.
    options.nice_len = 96;
    let length = block.len() as u64;
    let mut writer = LzmaWriter::new_use_header(Vec::new(), &options, Some(length))?;
    writer.write_all(block)?;
    writer.finish()
}

/// The name in a line `.file 7 "gpu-kernels/src/tiled.rs"`.
fn named_file(line: &str) -> Option<&str> {
    let (_, name) = line.trim().strip_prefix(".file")?.split_once('"')?;
    name.strip_suffix('"')
}
