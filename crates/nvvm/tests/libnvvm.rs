//! The real libNVVM and ptxas: what they accept, and what they say about what they reject.
//!
//! If libNVVM is not available, every test is reported as ignored, by name.

mod common;

use common::trial;
use libtest_mimic::{Arguments, Failed, Trial};
use nvvm::{Compiler, Error, NvvmArch, Toolkit, ptx_version, ptxas};

type Test = fn(&Toolkit) -> Result<(), Failed>;

macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        [$((stringify!($name), $name as Test)),*]
    };
}

fn main() {
    let arguments = Arguments::from_args();
    let toolkit = Toolkit::find_or_fetch();
    if let Err(error) = &toolkit {
        eprintln!("The tests of libNVVM are ignored. {error}");
    }
    let toolkit = toolkit.ok();

    let mut trials: Vec<Trial> = NvvmArch::ALL
        .into_iter()
        .map(|arch| {
            let name = format!("a_module_compiles_and_assembles_for_{arch}");
            trial(&name, &toolkit, move |toolkit| compiles_for(toolkit, arch))
        })
        .collect();
    let tests = tests![
        what_is_fetched_has_libdevice_and_ptxas,
        bad_ir_is_rejected_with_the_log_of_libnvvm,
        only_what_is_used_of_libdevice_goes_into_the_ptx,
        the_ptx_does_not_depend_on_what_was_compiled_before,
        an_unknown_option_is_rejected_by_name,
        shared_memory_and_registers_are_reported,
        bad_ptx_is_rejected_with_the_words_of_ptxas,
    ];
    trials.extend(
        tests
            .into_iter()
            .map(|(name, test)| trial(name, &toolkit, test)),
    );
    libtest_mimic::run(&arguments, trials).exit();
}

/// A module with one kernel, whose instructions are `body`, in the dialect of the architecture.
fn module(arch: NvvmArch, globals: &str, body: &str) -> String {
    let (parameter, pointer, kernel) = if arch.has_opaque_pointers() {
        ("ptr %p", "ptr", "ptr @kernel")
    } else {
        ("float* %p", "float*", "void (float*)* @kernel")
    };
    let body = body.replace("FLOAT_POINTER", pointer);
    let globals = globals.replace("FLOAT_POINTER", pointer);
    format!(
        r#"target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
{globals}
define void @kernel({parameter}) {{
{body}
  ret void
}}
!nvvm.annotations = !{{!0}}
!0 = !{{{kernel}, !"kernel", i32 1}}
!nvvmir.version = !{{!1}}
!1 = !{{i32 2, i32 0}}
"#
    )
}

const STORE_ZERO: &str = "  store float 0.0, FLOAT_POINTER %p, align 4";

fn load(toolkit: &Toolkit) -> Result<Compiler, Error> {
    // SAFETY: what was found is a libNVVM.
    unsafe { Compiler::load(toolkit) }
}

fn compiles_for(toolkit: &Toolkit, arch: NvvmArch) -> Result<(), Failed> {
    let ir = module(arch, "", STORE_ZERO);
    let ptx = load(toolkit)?.compile(&[("m.ll", ir.as_bytes())], arch, &["-opt=3"])?;
    assert!(ptx.contains(&format!(".target {}\n", arch.sm())), "{ptx}");
    assert!(ptx.contains(".visible .entry kernel("), "{ptx}");
    assert!(ptx.ends_with("}\n\n") || ptx.ends_with("}\n"), "{ptx:?}");

    // It needs no newer version than its target.
    let lowered = ptx_version::lower(ptx.clone());
    assert_eq!(ptx_version::needed(&ptx), Ok(arch.since()), "{ptx}");

    let assembled = ptxas::assemble(toolkit, &lowered, arch)?;
    assert_eq!(&assembled.cubin[..4], b"\x7fELF");
    let [kernel] = &assembled.kernels[..] else {
        return Err(format!("not one kernel: {:?}", assembled.kernels).into());
    };
    assert_eq!(kernel.entry, "kernel");
    assert!(kernel.registers > 0, "{kernel:?}");
    assert_eq!((kernel.stack_bytes, kernel.spill_store_bytes), (0, 0));
    Ok(())
}

fn what_is_fetched_has_libdevice_and_ptxas(toolkit: &Toolkit) -> Result<(), Failed> {
    for path in [&toolkit.libdevice, &toolkit.ptxas] {
        assert!(path.as_ref().is_some_and(|path| path.is_file()), "{path:?}");
    }
    let compiler = load(toolkit)?;
    assert_eq!(compiler.version().to_string(), "2.0");
    Ok(())
}

fn bad_ir_is_rejected_with_the_log_of_libnvvm(toolkit: &Toolkit) -> Result<(), Failed> {
    let compiler = load(toolkit)?;
    let arch = NvvmArch::Compute75;
    let ir = module(arch, "", "  store float 0.0, gibberish %p");
    match compiler.compile(&[("bad.ll", ir.as_bytes())], arch, &[]) {
        Err(Error::Rejected { module, log, .. }) => {
            assert_eq!(module, "bad.ll");
            assert!(log.contains("bad.ll (5, 19): parse expected type"), "{log}");
        }
        other => return Err(format!("not rejected: {other:?}").into()),
    }
    // Parses, but is of no version of NVVM IR that exists.
    let ir = module(arch, "", STORE_ZERO).replace("i32 2, i32 0", "i32 99, i32 0");
    let error = compiler
        .compile(&[("new.ll", ir.as_bytes())], arch, &[])
        .expect_err("the IR version is not one that exists")
        .to_string();
    assert!(
        error.starts_with("libNVVM rejected new.ll for compute_75:\n"),
        "{error}"
    );
    assert!(error.contains("version"), "{error}");
    Ok(())
}

fn only_what_is_used_of_libdevice_goes_into_the_ptx(toolkit: &Toolkit) -> Result<(), Failed> {
    let compiler = load(toolkit)?;
    let libdevice = std::fs::read(toolkit.libdevice.as_ref().ok_or("no libdevice")?)?;
    for arch in [
        NvvmArch::Compute75,
        NvvmArch::Compute90a,
        NvvmArch::Compute100,
    ] {
        let body = "  %x = load float, FLOAT_POINTER %p, align 4
  %y = call float @__nv_erff(float %x)
  store float %y, FLOAT_POINTER %p, align 4";
        let ir = module(arch, "declare float @__nv_erff(float)", body);
        let modules = [("m.ll", ir.as_bytes()), ("libdevice", &libdevice[..])];
        let ptx = compiler.compile(&modules, arch, &["-opt=3"])?;
        assert!(ptx.contains("ex2.approx"), "erff is not there: {ptx}");
        assert!(!ptx.contains("__nv_"), "libdevice is left over: {ptx}");
        ptxas::assemble(toolkit, &ptx_version::lower(ptx), arch)?;
    }
    Ok(())
}

/// libNVVM keeps its optimisation level for the LLVM 7 dialect: after `-opt=0` it copied
/// parameters by value to local memory at `-opt=3` too.
fn the_ptx_does_not_depend_on_what_was_compiled_before(toolkit: &Toolkit) -> Result<(), Failed> {
    let compiler = load(toolkit)?;
    let arch = NvvmArch::Compute75;
    let body = "  %bytes = bitcast [24 x i8]* %by_value to i8*
  %place = getelementptr inbounds i8, i8* %bytes, i64 16
  %field = bitcast i8* %place to float*
  %value = load float, float* %field, align 8
  store float %value, float* %p, align 4";
    let ir = module(arch, "", body)
        .replace(
            "(float* %p)",
            "([24 x i8]* byval align 8 %by_value, float* %p)",
        )
        .replace("(float*)*", "([24 x i8]*, float*)*");
    let compile = |option| compiler.compile(&[("m.ll", ir.as_bytes())], arch, &[option]);
    let first = compile("-opt=3")?;
    assert_ne!(compile("-opt=0")?, first);
    assert_eq!(compile("-opt=3")?, first);
    Ok(())
}

fn an_unknown_option_is_rejected_by_name(toolkit: &Toolkit) -> Result<(), Failed> {
    let arch = NvvmArch::Compute80;
    let ir = module(arch, "", STORE_ZERO);
    match load(toolkit)?.compile(&[("m.ll", ir.as_bytes())], arch, &["-no-such"]) {
        Err(Error::Rejected { log, .. }) => assert!(log.contains("-no-such"), "{log}"),
        other => return Err(format!("not rejected: {other:?}").into()),
    }
    Ok(())
}

fn shared_memory_and_registers_are_reported(toolkit: &Toolkit) -> Result<(), Failed> {
    let arch = NvvmArch::Compute80;
    let globals = "@tile = internal addrspace(3) global [256 x float] undef, align 16
declare void @llvm.nvvm.barrier0() #0
attributes #0 = { convergent nounwind }";
    let body = "  %at = ptrtoint FLOAT_POINTER %p to i64
  %index = and i64 %at, 255
  %slot = getelementptr [256 x float], [256 x float] addrspace(3)* @tile, i64 0, i64 %index
  store volatile float 1.0, float addrspace(3)* %slot, align 4
  call void @llvm.nvvm.barrier0()
  %value = load volatile float, float addrspace(3)* %slot, align 4
  store float %value, FLOAT_POINTER %p, align 4";
    let ir = module(arch, globals, body);
    let ptx = load(toolkit)?.compile(&[("m.ll", ir.as_bytes())], arch, &["-opt=3"])?;
    let kernel = ptxas::assemble(toolkit, &ptx, arch)?.kernels.remove(0);
    assert_eq!(kernel.shared_bytes, 1024, "{kernel:?}");
    assert_eq!(kernel.barriers, 1, "{kernel:?}");
    Ok(())
}

fn bad_ptx_is_rejected_with_the_words_of_ptxas(toolkit: &Toolkit) -> Result<(), Failed> {
    let ptx =
        ".version 8.0\n.target sm_80\n.address_size 64\n.entry kernel() { no.such.instruction; }\n";
    match ptxas::assemble(toolkit, ptx, NvvmArch::Compute80) {
        Err(Error::PtxasRejected { sm, log }) => {
            assert_eq!(sm, "sm_80");
            assert!(log.contains("line 4"), "{log}");
        }
        other => return Err(format!("not rejected: {other:?}").into()),
    }
    Ok(())
}
