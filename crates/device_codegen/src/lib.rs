//! Converts the LLVM IR that rustc prints to the NVVM IR that libNVVM reads, or to OpenCL C.
//!
//! ```text
//!  gpu_kernels.ll, core bits, ...        LLVM 22 text, made for the host
//!        |
//!     parser          every construct known, or an error with its line
//!        |
//!     runtime         memcmp and its like, defined
//!      link           one module; of it what kernels reach
//!    libdevice        the C library's mathematical functions become libdevice's
//!        |
//!     panics          core::panicking::* tell the host, and trap
//!   host_code         asm! and intrinsics of x86 are errors
//!   convergence       what threads do together is there once, or an error
//!    read_only        loads of memory that nothing writes are marked
//!   intrinsics        __nvvm_* become llvm.nvvm.*, inline PTX, kernel properties, unrolling
//!   inline_ptx        asm! operands: x86's become PTX's
//!      bf16           roundings to bf16 become an instruction
//!  address_space      statics go to global, shared or constant memory
//!        |
//!    legalize         what the dialect lacks is said in what it has
//!     verify          well-formed, or an error here rather than in libNVVM
//!        |
//!      print          typed pointers (LLVM 7) or opaque ones      opencl    OpenCL C
//!        |                                                           |
//!     NVVM IR  ->  libNVVM  ->  PTX  ->  avoid_ptxas_errors      one file a kernel
//! ```
//!
//! If the IR has line tables, they are kept to the end, and the replacement of an instruction has
//! that instruction's line; all other debug information is dropped.
//!
//! No LLVM is linked: parser, passes and printers are plain Rust.
//!
//! ```
//! use device_codegen::{Dialect, Source, compile};
//!
//! let text = "define void @noop() section \".nvvm.kernel\" {\n  ret void\n}\n";
//! let source = Source { name: "noop.ll", text };
//! let module = compile(&[source], Dialect::OpaquePointers)?;
//! assert_eq!(module.kernels[0].name, "noop");
//! # Ok::<(), device_codegen::Error>(())
//! ```

mod address_space;
mod bf16;
mod convergence;
mod dead_code;
mod dialect;
mod error;
mod host_code;
mod inline_ptx;
mod intrinsics;
mod ir;
mod kernel_properties;
mod legalize;
mod lexer;
mod libdevice;
mod link;
mod loops;
mod opencl;
mod panics;
mod parameter_memory;
mod parser;
mod pointers;
mod print;
mod ptxas;
mod read_only;
mod runtime;
mod source_place;
mod unroll;
mod verify;

use std::collections::BTreeMap;

use ir::Module;

pub use dialect::Dialect;
pub use error::Error;
pub use opencl::{Contraction, OpenClKernel, OpenClVersion};
pub use ptxas::avoid_ptxas_errors;

/// One module of LLVM 22 IR, as `rustc --emit=llvm-ir` writes it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// What errors call it, such as `gpu_kernels.ll`.
    pub name: &'a str,
    /// Its contents.
    pub text: &'a str,
}

/// A module that libNVVM accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NvvmModule {
    /// NVVM IR as text.
    pub ir: String,
    /// Its entry points, by name.
    pub kernels: Vec<KernelEntry>,
    /// What each panic says, by its number: `src/lib.rs:5:9: index out of bounds: the len is {1}
    /// but the index is {0}`. `{0}` to `{2}` stand for the numbers that it writes, and a brace of
    /// the message is doubled. Where the place is not known, the text begins with the colon.
    ///
    /// The module has a variable `__nvvm_panic_record` if this is not empty. If the host puts an
    /// address there, the first thread that panics writes to it, before the trap, 64 bytes: its
    /// panic's number plus 1, its block's and its own index, each x, y and z, all as `u32`; and
    /// from byte 32 on three numbers as `u64`.
    pub panics: Vec<String>,
    /// Whether libdevice must be added to the program: a kernel calls one of its functions
    /// (`__nv_*`).
    pub needs_libdevice: bool,
}

/// An entry point of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelEntry {
    /// The name to launch it by.
    pub name: String,
    /// The most threads that a block may have, if the kernel says so.
    pub max_threads: Option<u32>,
    /// The number of blocks that a streaming multiprocessor (SM) should be able to hold at a
    /// time, if the kernel says so.
    pub min_blocks: Option<u32>,
    /// The place in the source, such as `src/lib.rs:5:9`, from which most instructions come, and how
    /// many: of a loop that has been unrolled, if there is one. `None` without line tables.
    pub most_copied: Option<(String, usize)>,
}

/// What a module contains beside its instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether line tables go into the module; errors have their lines in any case.
    pub line_tables: bool,
    /// Whether a panic says what and where, to a host that listens (see
    /// [`NvvmModule::panics`]); otherwise it is only a trap.
    pub panic_messages: bool,
    /// Whether the device rounds an f32 to a bf16 by one instruction, as NVIDIA's do from compute
    /// capability 8.0 on.
    pub rounds_to_bf16: bool,
}

/// Compiles the modules of a kernel crate, and of the crates that it calls, into one module of
/// NVVM IR for any GPU, with line tables and without messages of panics.
///
/// Kernels are the functions in the section `.nvvm.kernel`; what no kernel reaches is omitted.
///
/// # Errors
///
/// If the IR holds something that has no meaning on a GPU, that this compiler does not know, or
/// that is not defined. The error has the function, the line of the IR and, if the IR has line
/// tables, the file and line of the Rust source.
pub fn compile(sources: &[Source<'_>], dialect: Dialect) -> Result<NvvmModule, Error> {
    let options = Options {
        line_tables: true,
        panic_messages: false,
        rounds_to_bf16: false,
    };
    compile_with(sources, dialect, options)
}

/// [`compile`] with other options.
///
/// # Errors
///
/// As for [`compile`].
pub fn compile_with(
    sources: &[Source<'_>],
    dialect: Dialect,
    options: Options,
) -> Result<NvvmModule, Error> {
    let result = read(sources).and_then(|module| lower(module, dialect, options));
    result.map_err(|error| with_places(sources, error))
}

/// The kernels of a module in OpenCL C, by name: each, or why it has no meaning there.
pub type OpenClKernels = Vec<(String, Result<OpenClKernel, Error>)>;

/// Compiles the modules of a kernel crate to OpenCL C: the same kernels that [`compile`] compiles,
/// of the same IR. A panic says what and where.
///
/// # Errors
///
/// As for [`compile`]. What a GPU has and OpenCL C lacks is only an error of the kernels that use
/// it.
pub fn compile_opencl(
    sources: &[Source<'_>],
    contraction: Contraction,
) -> Result<OpenClKernels, Error> {
    let result = read(sources).and_then(|module| lower_opencl(module, contraction));
    result.map_err(|error| with_places(sources, error))
}

/// [`compile_with`] and [`compile_opencl`], of sources that are read once.
///
/// # Errors
///
/// As for [`compile`].
pub fn compile_both(
    sources: &[Source<'_>],
    dialect: Dialect,
    options: Options,
    contraction: Contraction,
) -> Result<(NvvmModule, OpenClKernels), Error> {
    let result = read(sources).and_then(|module| {
        let kernels = lower_opencl(module.clone(), contraction)?;
        Ok((lower(module, dialect, options)?, kernels))
    });
    result.map_err(|error| with_places(sources, error))
}

fn with_places(sources: &[Source<'_>], error: Error) -> Error {
    let mut places = Vec::new();
    for location in error.locations() {
        if let Some(source) = sources.iter().find(|source| source.name == &*location.file) {
            places.extend(source_place::places_of_line(source.text, location.line));
        }
    }
    error.with_places(places)
}

/// One module of all sources, with what its kernels reach.
fn read(sources: &[Source<'_>]) -> Result<Module, Error> {
    let mut modules = sources
        .iter()
        .map(|source| parser::parse(source.name, source.text))
        .collect::<Result<Vec<_>, _>>()?;
    runtime::append(&mut modules)?;
    let mut module = link::link(modules)?;
    libdevice::rename_c_functions(&mut module);
    link::keep_reachable(&mut module);
    Ok(module)
}

/// Makes panics what a device has, and checks what is left.
fn check(module: &mut Module, panic_messages: bool) -> Result<Vec<String>, Error> {
    let panics = panics::lower(module, panic_messages)?;
    dead_code::remove_dead_code(module);
    link::keep_reachable(module);
    link::check_defined(module)?;
    verify::verify(module)?;
    host_code::check(module)?;
    convergence::check(module)?;
    Ok(panics)
}

/// Rewrites the module's constructs as those that the target has.
fn translate(module: &mut Module, dialect: Dialect, rounds_to_bf16: bool) -> Result<(), Error> {
    read_only::mark_loads(module);
    intrinsics::lower_intrinsics(module)?;
    parameter_memory::make_loads_plain(module);
    unroll::apply_marks(module)?;
    inline_ptx::translate(module)?;
    if rounds_to_bf16 {
        bf16::round_by_hardware(module);
    }
    address_space::assign(module)?;
    link::export_variables(module);
    legalize::legalize(module, dialect)?;
    dead_code::remove_dead_code(module);
    link::keep_reachable(module);
    verify::verify(module)
}

fn lower(mut module: Module, dialect: Dialect, options: Options) -> Result<NvvmModule, Error> {
    let panics = check(&mut module, options.panic_messages)?;
    let functions = module.functions.iter();
    let mut most_copied: BTreeMap<_, _> = functions
        .map(|(symbol, function)| {
            (
                symbol.clone(),
                source_place::most_copied(&module.lines, function),
            )
        })
        .collect();
    if !options.line_tables {
        module.forget_lines();
    }
    translate(&mut module, dialect, options.rounds_to_bf16)?;
    let kernels = module
        .functions
        .iter()
        .filter_map(|(symbol, function)| {
            let kernel = function.kernel.as_ref()?;
            Some(KernelEntry {
                name: symbol.to_string(),
                max_threads: kernel.max_threads,
                min_blocks: kernel.min_blocks,
                most_copied: most_copied.remove(symbol).flatten(),
            })
        })
        .collect();
    Ok(NvvmModule {
        ir: print::print(&module, dialect),
        kernels,
        panics,
        needs_libdevice: module.functions.keys().any(intrinsics::is_libdevice),
    })
}

/// OpenCL C has names for more than LLVM 7 has, so that the modern dialect is nearer to it.
fn lower_opencl(mut module: Module, contraction: Contraction) -> Result<OpenClKernels, Error> {
    let panics = check(&mut module, true)?;
    translate(&mut module, Dialect::OpaquePointers, false)?;
    opencl::fields::become_parameters(&mut module);
    Ok(opencl::print(&module, &panics, contraction))
}
