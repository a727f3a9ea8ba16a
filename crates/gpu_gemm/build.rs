//! Compiles the kernels to PTX for several architectures, to machine code for the GPUs of this
//! machine, and to OpenCL C; `src/device/cuda/ptx.rs` and `src/device/opencl/source.rs` embed them,
//! with the Rust files that they came from.

use std::collections::BTreeSet;
use std::error::Error;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::{env, fs, io, thread};

use cuda_builder::{CudaBuilder, DebugInfo, NvvmArch};
use nvvm::{Toolkit, gpus, ptxas};

/// The architectures that PTX is compiled for, oldest first. A GPU runs the newest that it
/// supports.
const ARCHITECTURES: [NvvmArch; 4] = [
    NvvmArch::Compute75,
    NvvmArch::Compute80, // copies from global to shared memory that run on their own
    NvvmArch::Compute90, // kernels that begin before the one before them has ended
    NvvmArch::Compute90a, // products of warpgroups
];

/// The folder of the kernels in OpenCL C.
const OPENCL: &str = "opencl";

/// The variable that names the architectures to assemble machine code for, such as `sm_80,sm_90`,
/// instead of those of this machine's GPUs. Empty: none.
const MACHINE_CODE: &str = "GEMM_MACHINE_CODE";

fn main() -> Result<(), Box<dyn Error>> {
    // cargo sets OUT_DIR for every build script.
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let kernels = env::var_os("DEP_GPU_KERNELS_FOLDER").map(PathBuf::from);
    let kernels = &kernels.ok_or("gpu-kernels does not say where it is")?;
    // libNVVM uses one core.
    let builds: Vec<_> = thread::scope(|scope| {
        let threads = ARCHITECTURES.map(|arch| {
            let builder = CudaBuilder::new(kernels)
                .arch(arch)
                .copy_to(out.join(format!("kernels.{arch}.ptx")))
                .debug(DebugInfo::LineTables)
                // No input makes these kernels panic, and each call is code that must be compiled.
                .panic_messages(false)
                .libnvvm_optional(true);
            // The oldest has the least that OpenCL lacks: its copies to shared memory are loads
            // and stores.
            let builder = match arch == ARCHITECTURES[0] {
                true => builder.opencl_to(out.join(OPENCL)),
                false => builder,
            };
            scope.spawn(|| builder.build())
        });
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    let (mut modules, mut texts_of_modules) = (Vec::new(), Vec::new());
    let mut sources = BTreeSet::new();
    for build in builds {
        let path = build.unwrap_or_else(|panic| resume_unwind(panic))?;
        // The file is missing if the kernels do not compile for the CPU either; cargo is about to
        // report that.
        let ptx = fs::read_to_string(&path).unwrap_or_default();
        if ptx.is_empty() {
            break; // nor would there be for the next
        }
        sources.extend(ptx.lines().filter_map(named_file).map(str::to_owned));
        modules.push(format!("include_str!({path:?})"));
        texts_of_modules.push(ptx);
    }
    let machine_code = assemble(&texts_of_modules, &out)?;
    write_list(&out.join("machine_code.rs"), &machine_code)?;
    write_list(&out.join("modules.rs"), &modules)?;
    let opencl = opencl(&out.join(OPENCL), &mut sources)?;
    write_list(&out.join("opencl.rs"), &opencl)?;
    write_list(&out.join("sources.rs"), &texts(&sources, kernels))?;
    Ok(())
}

/// The kernels in OpenCL C as Rust expressions, by name: each one's text, or why it has none. Adds
/// the Rust files that the texts name.
fn opencl(folder: &Path, sources: &mut BTreeSet<String>) -> io::Result<Vec<String>> {
    let mut expressions = BTreeSet::new();
    // There is none if the kernels do not compile.
    let entries = fs::read_dir(folder).into_iter().flatten();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(&path)?;
        let made = match path.extension().and_then(|ending| ending.to_str()) {
            Some("cl") => "Ok",
            Some("refused") => "Err",
            _ => continue,
        };
        let comments = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("// "));
        let places = comments.filter_map(|comment| comment.rsplit_once(':'));
        sources.extend(
            places
                .map(|(file, _)| file)
                .filter(|file| file.ends_with(".rs"))
                .map(str::to_owned),
        );
        expressions.insert(format!("({name:?}, {made}(include_str!({path:?})))"));
    }
    Ok(expressions.into_iter().collect())
}

/// Assembles machine code for the GPUs of this machine, so that the driver need not compile PTX
/// when a kernel first runs: Rust expressions of an architecture's number, the index of the module
/// that it was made of, and the code. Where there is no ptxas, or it refuses, the driver compiles
/// as ever.
fn assemble(modules: &[String], out: &Path) -> io::Result<Vec<String>> {
    println!("cargo::rerun-if-env-changed={MACHINE_CODE}");
    let names = match env::var(MACHINE_CODE) {
        Ok(names) => names
            .split(',')
            .map(|name| name.trim().to_owned())
            .collect(),
        Err(_) => gpus::architectures(),
    };
    let Some(toolkit) = Toolkit::find() else {
        return Ok(Vec::new());
    };
    let number = |name: &str| name.strip_prefix("sm_")?.parse::<i32>().ok();
    // As `newest_for` chooses when a kernel is loaded.
    let runs_on = |arch: NvvmArch, gpu: i32| match arch.sm().strip_suffix('a') {
        Some(sm) => number(sm) == Some(gpu),
        None => number(&arch.sm()).is_some_and(|oldest| oldest <= gpu),
    };
    let mut expressions = Vec::new();
    for (name, number) in names.iter().filter_map(|name| Some((name, number(name)?))) {
        // The newest that it runs.
        let module = modules
            .iter()
            .zip(ARCHITECTURES)
            .rposition(|(_, arch)| runs_on(arch, number));
        let Some(module) = module else { continue };
        if let Ok(assembled) = ptxas::assemble_for(&toolkit, &modules[module], name) {
            let path = out.join(format!("kernels.{name}.cubin"));
            fs::write(&path, assembled.cubin)?;
            expressions.push(format!("({number}, {module}, include_bytes!({path:?}))"));
        }
    }
    Ok(expressions)
}

/// The files that belong to the kernels' workspace, as Rust expressions: name and text. A name is
/// relative to the root of that workspace, which is the kernels' folder or the one above it.
fn texts(files: &BTreeSet<String>, kernels: &Path) -> Vec<String> {
    let relative = files.iter().filter(|name| Path::new(name).is_relative());
    let texts = relative.filter_map(|name| {
        let folders = kernels.ancestors().take(2);
        let mut paths = folders.map(|folder| folder.join(name));
        let path = paths.find(|path| path.is_file())?;
        Some(format!("({name:?}, include_str!({path:?}))"))
    });
    texts.collect()
}

/// Writes a slice of these as a Rust expression.
fn write_list(file: &Path, expressions: &[String]) -> io::Result<()> {
    fs::write(file, format!("&[\n{}]\n", expressions.join(",\n")))
}

/// The name in a line `.file 7 "gpu-kernels/src/tiled.rs"`.
fn named_file(line: &str) -> Option<&str> {
    let (_, name) = line.trim().strip_prefix(".file")?.split_once('"')?;
    name.strip_suffix('"')
}
