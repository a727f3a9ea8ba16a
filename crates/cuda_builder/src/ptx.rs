//! From the kernels' LLVM IR to NVVM IR to PTX.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Mutex, OnceLock, PoisonError},
    thread,
};

use device_codegen::{
    Contraction, Dialect, KernelEntry, NvvmModule, OpenClKernels, Options, Source,
};
use nvvm::{Compiler, NvvmArch, Search, Toolkit, ptx_version};

use crate::{
    CudaBuilderError,
    build_script::write_atomically,
    device_build::DeviceCrate,
    kernels_apart::{self, Part, Will},
    shared::PtxCache,
};

/// What the PTX says about the source that it was compiled from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DebugInfo {
    /// Nothing.
    None,
    /// The source line of each instruction, and the calls that it was inlined through, for
    /// profilers and checkers. The instructions are the same. The PTX then needs at least version
    /// 7.2: driver 460.
    LineTables,
}

/// The most kernels that are compiled at a time, for one architecture: each takes some 100 MB.
const MOST_THREADS: usize = 4;

/// libNVVM, loaded, and what it has compiled before.
pub(crate) struct LibNvvm {
    pub(crate) toolkit: Toolkit,
    compiler: Compiler,
    compiled: PtxCache,
}

impl LibNvvm {
    /// Finds or fetches libNVVM, and loads it.
    pub(crate) fn load(search: &Search, compiled: PtxCache) -> Result<Self, nvvm::Error> {
        let toolkit = search.find_or_fetch()?;
        // SAFETY: what was found, or came with the wheel, is a libNVVM, unless who runs this has
        // put something else there, which cargo would then run as gladly.
        let compiler = unsafe { Compiler::load(&toolkit)? };
        Ok(LibNvvm {
            toolkit,
            compiler,
            compiled,
        })
    }

    /// Compiles the module to PTX of the lowest sufficient version. IR that libNVVM rejects is
    /// kept in the file `kept_ir`.
    pub(crate) fn compile(
        &self,
        module: &NvvmModule,
        arch: NvvmArch,
        options: &[&str],
        kept_ir: &Path,
    ) -> Result<String, CudaBuilderError> {
        let parsed = kernels_apart::Module::parse(&module.ir);
        let joined = match &parsed {
            Some(parsed) => {
                let will = match arch.has_opaque_pointers() {
                    true => Will::BeJoinedOpaque,
                    false => Will::BeJoined,
                };
                let apart = self.compile_apart(parsed, module, will, arch, options, kept_ir)?;
                apart.and_then(|kernels| kernels_apart::join(parsed, &kernels))
            }
            None => None,
        };
        let ptx = match joined {
            Some(ptx) => ptx,
            None => self.compile_once(
                (&module.ir, module.needs_libdevice),
                &module.kernels,
                arch,
                options,
                kept_ir,
            )?,
        };
        self.compiled.trim();
        Ok(finished(&ptx, module))
    }

    /// Compiles each kernel to a module of its own, all of the same version: the lowest that is
    /// sufficient for all. If kernels share a variable that they can write, or a function is for
    /// other modules, the module of each has all of them.
    pub(crate) fn compile_kernels(
        &self,
        module: &NvvmModule,
        arch: NvvmArch,
        options: &[&str],
        kept_ir: &Path,
    ) -> Result<BTreeMap<String, String>, CudaBuilderError> {
        let parsed = kernels_apart::Module::parse(&module.ir);
        let apart = match &parsed {
            Some(parsed) => {
                self.compile_apart(parsed, module, Will::StayApart, arch, options, kept_ir)?
            }
            None => None,
        };
        let mut kernels: BTreeMap<String, String> = match apart {
            Some(kernels) => kernels
                .iter()
                .map(|(name, ptx)| ((*name).to_owned(), finished(ptx, module)))
                .collect(),
            None => {
                let whole = self.compile(module, arch, options, kept_ir)?;
                let names = module.kernels.iter();
                names
                    .map(|kernel| (kernel.name.clone(), whole.clone()))
                    .collect()
            }
        };
        self.compiled.trim();
        let newest = kernels.values().filter_map(|ptx| version_line(ptx));
        let newest = newest.max_by_key(|line| numbers(line)).map(str::to_owned);
        for ptx in kernels.values_mut() {
            if let (Some(own), Some(newest)) = (version_line(ptx), &newest) {
                *ptx = ptx.replacen(own, newest, 1);
            }
        }
        Ok(kernels)
    }

    /// Compiles each kernel for itself, if that gives the PTX of the whole module: only those that
    /// have not been compiled before.
    fn compile_apart<'a>(
        &self,
        parsed: &kernels_apart::Module<'a>,
        module: &NvvmModule,
        will: Will,
        arch: NvvmArch,
        options: &[&str],
        kept_ir: &Path,
    ) -> Result<Option<Vec<(&'a str, String)>>, CudaBuilderError> {
        let Some(parts) = parsed.parts(will) else {
            return Ok(None);
        };
        let compile = |part: &Part<'a>| {
            let text = (&*part.ir, part.needs_libdevice);
            let named = module.kernels.iter().position(|it| it.name == part.kernel);
            let kernels = named.map_or(&module.kernels[..], |at| &module.kernels[at..=at]);
            let ptx = self.compile_once(text, kernels, arch, options, kept_ir)?;
            Ok((part.kernel, ptx))
        };
        // libNVVM uses one core. The first error is that of the first kernel, whatever ends first.
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.min(MOST_THREADS).min(parts.len());
        let compiled: Vec<_> = parts.iter().map(|_| OnceLock::new()).collect();
        let left = Mutex::new(parts.iter().zip(&compiled));
        let take = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some((part, compiled)) = take() {
                        let _ = compiled.set(compile(part));
                    }
                });
            }
        });
        let kernels = compiled.into_iter().filter_map(OnceLock::into_inner);
        kernels.collect::<Result<_, _>>().map(Some)
    }

    /// Compiles a module, unless that was done before.
    fn compile_once(
        &self,
        (ir, needs_libdevice): (&str, bool),
        kernels: &[KernelEntry],
        arch: NvvmArch,
        options: &[&str],
        kept_ir: &Path,
    ) -> Result<String, CudaBuilderError> {
        let key = self.key(ir, needs_libdevice, arch, options)?;
        match self.compiled.get(&key) {
            Some(ptx) => Ok(ptx),
            None => {
                let text = (ir, needs_libdevice);
                let ptx = self.compile_text(text, kernels, arch, options, kept_ir)?;
                self.compiled.put(&key, ptx)
            }
        }
    }

    /// Compiles a module, without looking whether that was done before.
    fn compile_text(
        &self,
        (ir, needs_libdevice): (&str, bool),
        kernels: &[KernelEntry],
        arch: NvvmArch,
        options: &[&str],
        kept_ir: &Path,
    ) -> Result<String, CudaBuilderError> {
        let libdevice = self.libdevice(needs_libdevice)?;
        let compiled = self
            .compiler
            .compile(&modules(ir, &libdevice), arch, options);
        match compiled {
            Err(nvvm::Error::Rejected { log, .. }) => {
                write_atomically(kept_ir, ir.as_bytes())?;
                Err(rejected(&log, ir, kept_ir))
            }
            Err(nvvm::Error::TooLong { arch, seconds, .. }) => {
                let copied = kernels
                    .iter()
                    .filter_map(|kernel| kernel.most_copied.clone());
                Err(CudaBuilderError::TooLong {
                    kernels: kernels.iter().map(|it| format!("`{}`", it.name)).collect(),
                    arch,
                    seconds,
                    most_copied: copied.max_by_key(|(_, count)| *count),
                })
            }
            compiled => Ok(compiled?),
        }
    }

    fn key(
        &self,
        ir: &str,
        needs_libdevice: bool,
        arch: NvvmArch,
        options: &[&str],
    ) -> Result<String, CudaBuilderError> {
        let libdevice = self.libdevice(needs_libdevice)?;
        let modules = modules(ir, &libdevice);
        Ok(PtxCache::key(&self.toolkit, &modules, arch, options))
    }

    /// libdevice, if it is needed.
    fn libdevice(&self, is_needed: bool) -> Result<Option<Vec<u8>>, CudaBuilderError> {
        is_needed.then(|| read_libdevice(&self.toolkit)).transpose()
    }
}

/// What libNVVM wrote, as drivers and ptxas take it, with what panics say.
fn finished(ptx: &str, module: &NvvmModule) -> String {
    let mut ptx = ptx_version::lower(device_codegen::avoid_ptxas_errors(ptx));
    for (number, said) in module.panics.iter().enumerate() {
        // Comments are ASCII, and end with the line.
        ptx.push_str(&format!("// panic {number}: {}\n", said.escape_default()));
    }
    ptx
}

/// The line `.version 8.0`.
fn version_line(ptx: &str) -> Option<&str> {
    ptx.lines().find(|line| line.starts_with(".version "))
}

fn numbers(version: &str) -> Vec<u32> {
    let parts = version.split(|letter: char| !letter.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

/// What libNVVM compiles together.
fn modules<'a>(ir: &'a str, libdevice: &'a Option<Vec<u8>>) -> Vec<(&'a str, &'a [u8])> {
    let mut modules = vec![(MODULE_NAME, ir.as_bytes())];
    modules.extend(libdevice.as_deref().map(|bitcode| ("libdevice", bitcode)));
    modules
}

/// Links the crates into one module, in the dialect of NVVM IR that libNVVM reads for `arch`; and,
/// if `opencl` says how to contract them, its kernels in OpenCL C.
pub(crate) fn lower(
    crates: &[DeviceCrate],
    arch: NvvmArch,
    debug: DebugInfo,
    panic_messages: bool,
    opencl: Option<Contraction>,
) -> Result<(NvvmModule, OpenClKernels), CudaBuilderError> {
    let names = names(crates);
    let sources = sources(crates, &names);
    let dialect = if arch.has_opaque_pointers() {
        Dialect::OpaquePointers
    } else {
        Dialect::TypedPointers
    };
    let options = Options {
        line_tables: debug == DebugInfo::LineTables,
        panic_messages,
        rounds_to_bf16: arch >= NvvmArch::Compute80,
    };
    Ok(match opencl {
        Some(contraction) => device_codegen::compile_both(&sources, dialect, options, contraction)?,
        None => (
            device_codegen::compile_with(&sources, dialect, options)?,
            OpenClKernels::new(),
        ),
    })
}

/// The kernels in OpenCL C alone, for which libNVVM is not needed.
pub(crate) fn lower_opencl(
    crates: &[DeviceCrate],
    contraction: Contraction,
) -> Result<OpenClKernels, CudaBuilderError> {
    let names = names(crates);
    Ok(device_codegen::compile_opencl(
        &sources(crates, &names),
        contraction,
    )?)
}

/// What errors call the crates' IR.
fn names(crates: &[DeviceCrate]) -> Vec<String> {
    crates
        .iter()
        .map(|device_crate| device_crate.ir_path.display().to_string())
        .collect()
}

fn sources<'a>(crates: &'a [DeviceCrate], names: &'a [String]) -> Vec<Source<'a>> {
    let named = crates.iter().zip(names);
    named
        .map(|(device_crate, name)| Source {
            name,
            text: &device_crate.ir,
        })
        .collect()
}

/// What the module is called in libNVVM's log.
const MODULE_NAME: &str = "kernels";

fn read_libdevice(toolkit: &Toolkit) -> Result<Vec<u8>, CudaBuilderError> {
    toolkit
        .libdevice
        .as_ref()
        .and_then(|path| std::fs::read(path).ok())
        .ok_or_else(|| CudaBuilderError::NoLibdevice {
            origin: toolkit.origin.clone(),
        })
}

/// The error for rejected IR: libNVVM says `kernels (212, 9): parse expected type`, but a user
/// needs to know in which kernel that is.
fn rejected(log: &str, ir: &str, kept_ir: &Path) -> CudaBuilderError {
    let located = log
        .trim()
        .strip_prefix(MODULE_NAME)
        .and_then(|rest| rest.trim_start().strip_prefix('('))
        .and_then(|rest| {
            let (position, problem) = rest.split_once("):")?;
            let (line, _column) = position.split_once(',')?;
            Some((line.trim().parse::<usize>().ok()?, problem.trim()))
        });
    let (place, log) = match located {
        Some((line, problem)) => {
            let place = match function_around(ir, line) {
                Some(function) => format!("`{function}`"),
                None => "the kernels".to_owned(),
            };
            (place, format!("line {line}: {problem}"))
        }
        None => ("the kernels".to_owned(), log.trim().to_owned()),
    };
    CudaBuilderError::IrRejected {
        place,
        log,
        ir: kept_ir.to_owned(),
    }
}

/// The function whose definition contains a line of the IR, counted from 1.
fn function_around(ir: &str, line: usize) -> Option<&str> {
    let before: Vec<&str> = ir.lines().take(line).collect();
    let definition = before
        .iter()
        .rposition(|line| line.starts_with("define "))?;
    // A `}` of an earlier line has ended that function.
    let inside = &before[definition..before.len().saturating_sub(1).max(definition)];
    if inside.contains(&"}") {
        return None;
    }
    let (_, name) = before[definition].split_once('@')?;
    name.split('(').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IR: &str = "\
@tile = global i32 0
define void @first(i8* %p) {
  ret void
}
declare void @other()
define void @second() {
  store gibberish
}
";

    /// A text with something unknown keeps its version, which few drivers accept.
    #[test]
    fn what_replaces_an_instruction_needs_no_newer_ptx() {
        for instruction in [
            "neg.s16 %rs2, %rs1",
            "abs.s16 %rs2, %rs1",
            "sub.s16 %rs2, %rs1, %rs3",
        ]
        .into_iter()
        .chain(["neg.s32 %r2, %r1", "abs.s32 %r2, %r1", "abs.s64 %rd2, %rd1"])
        .chain(["call.uni kernel$1, ()"])
        {
            let ptx = format!(
                ".version 8.8\n.target sm_75\n.address_size 64\n.func kernel$1()\n{{\n\
                 \t{instruction};\n\tret;\n}}\n"
            );
            let replaced = device_codegen::avoid_ptxas_errors(&ptx);
            assert_ne!(replaced, ptx);
            let needed = ptx_version::needed(&replaced).map(|version| version.to_string());
            assert_eq!(needed.as_deref(), Ok("6.3"), "{replaced}");
        }
    }

    #[test]
    fn rejected_ir_is_told_by_kernel_line_and_file() {
        let error = rejected(
            "kernels (7, 9): parse expected type\n",
            IR,
            Path::new("target/k.ll"),
        );
        assert_eq!(
            error.to_string(),
            "libNVVM rejected `second` (line 7: parse expected type). The IR is kept in target/k.ll. This is a bug \
             in device_codegen: please report it with that file."
        );
    }

    #[test]
    fn a_line_outside_of_every_function_names_none() {
        assert_eq!(function_around(IR, 1), None);
        assert_eq!(function_around(IR, 3), Some("first"));
        assert_eq!(function_around(IR, 5), None);
        assert_eq!(function_around(IR, 6), Some("second"));
    }
}
