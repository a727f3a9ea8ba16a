//! Everything that this crate prints is accepted: by libNVVM's verifier and compiler and, as PTX,
//! by ptxas, for each architecture that the project builds.
//!
//! Where no libNVVM is found the tests are shown as ignored, with the reason in their names.

mod common;

use std::sync::Arc;

use common::{Case, DIALECTS, cases};
use device_codegen::Dialect;
use libtest_mimic::{Arguments, Failed, Trial};
use nvvm::{Compiler, NvvmArch, Toolkit, ptxas};

/// What the PTX of a file says, from an architecture on: what no other test reads.
const DIRECTIVES: &str = "\
roundings_to_bf16_are_an_instruction, compute_80: cvt.rn.bf16.f32
parameters_by_value_have_their_size_and_alignment, compute_75: .param .align 8 .b8 kernel_param_0[24]
parameters_by_value_have_their_size_and_alignment, compute_75: .param .align 2 .b8 kernel_param_1[6]
grid_constants_have_an_address, compute_75: cvta.param.u64
clusters_and_register_limits_become_annotations, compute_75: .maxnreg 128
clusters_and_register_limits_become_annotations, compute_90: .explicitcluster
clusters_and_register_limits_become_annotations, compute_90: .reqnctapercluster 4, 2, 1
dynamic_shared_memory_has_the_greatest_alignment, compute_75: .extern .shared .align 1024 .b8
dynamic_shared_memory_is_an_external_array, compute_75: .extern .shared .align 16 .b8";

struct Tools {
    toolkit: Toolkit,
    compiler: Compiler,
}

/// Why a libNVVM was found or not, as text.
fn tools() -> Result<Tools, String> {
    let toolkit = Toolkit::find().ok_or("no libNVVM is installed")?;
    // SAFETY: what was found is a libNVVM.
    let compiler = unsafe { Compiler::load(&toolkit) }.map_err(|error| error.to_string())?;
    Ok(Tools { toolkit, compiler })
}

fn architectures(dialect: Dialect) -> &'static [NvvmArch] {
    match dialect {
        Dialect::TypedPointers => &[
            NvvmArch::Compute75,
            NvvmArch::Compute80,
            NvvmArch::Compute90a,
        ],
        Dialect::OpaquePointers => &[NvvmArch::Compute100],
    }
}

fn main() {
    let arguments = Arguments::from_args();
    let tools = tools().map(Arc::new);
    let mut trials = Vec::new();
    for folder in ["golden", "fixtures"] {
        for case in cases(folder).into_iter().map(Arc::new) {
            for (dialect, _) in DIALECTS {
                for arch in architectures(dialect) {
                    let name = format!("{folder}::{}::{arch}", case.claim);
                    // The dialects differ in every line, architectures only in what they offer.
                    let is_quick = *arch == architectures(dialect)[0];
                    let name = match is_quick {
                        true => name,
                        false => format!("exhaustive::{name}"),
                    };
                    trials.push(match &tools {
                        Ok(tools) => {
                            let (tools, case) = (tools.clone(), case.clone());
                            Trial::test(name, move || accepts(&tools, &case, dialect, *arch))
                                .with_ignored_flag(!is_quick)
                        }
                        Err(why) => Trial::test(format!("{name} (SKIPPED: {why})"), || Ok(()))
                            .with_ignored_flag(true),
                    });
                }
            }
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn accepts(tools: &Tools, case: &Case, dialect: Dialect, arch: NvvmArch) -> Result<(), Failed> {
    let module = case
        .compile(dialect, arch >= NvvmArch::Compute80)
        .map_err(|error| error.to_string())?;
    let libdevice = match (&tools.toolkit.libdevice, module.needs_libdevice) {
        (Some(path), true) => Some(std::fs::read(path)?),
        (None, true) => return Err("the toolkit has no libdevice".into()),
        (_, false) => None,
    };
    let mut parts = vec![("kernel.ll", module.ir.as_bytes())];
    if let Some(libdevice) = &libdevice {
        parts.push(("libdevice.bc", libdevice));
    }
    let ptx = tools
        .compiler
        .compile(&parts, arch, &[])
        .map_err(|error| format!("{error}\n{}", module.ir))?;
    for kernel in &module.kernels {
        if !ptx.contains(&format!(".entry {}(", kernel.name)) {
            return Err(format!("the kernel `{}` is not in the PTX", kernel.name).into());
        }
    }
    for line in DIRECTIVES.lines() {
        let of_case = line
            .strip_prefix(&*case.claim)
            .and_then(|rest| rest.strip_prefix(", "));
        let Some((since, directive)) = of_case.and_then(|rest| rest.split_once(": ")) else {
            continue;
        };
        if arch >= since.parse()? && !ptx.contains(directive) {
            return Err(format!("no `{directive}` in: {ptx}").into());
        }
    }
    if tools.toolkit.ptxas.is_some() {
        ptxas::assemble(&tools.toolkit, &ptx, arch).map_err(|error| format!("{error}\n{ptx}"))?;
    }
    Ok(())
}
