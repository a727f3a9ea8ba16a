//! Calls ptxas, which compiles PTX to machine code and reports the resources that each kernel
//! needs.

use std::{
    fs, io,
    path::Path,
    process::{Command, Stdio},
};

use crate::{Error, NvvmArch, Toolkit};

/// Machine code, and what its kernels need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// The real architecture that it is for, such as `sm_90`.
    pub sm: String,
    /// The machine code: an ELF file for this one architecture.
    pub cubin: Vec<u8>,
    /// One for each kernel, in the order of ptxas's report.
    pub kernels: Vec<Resources>,
    /// What it changed or warns of: a `wgmma` that waits for the one before it, since their sums
    /// are used between them, say.
    pub remarks: Vec<String>,
}

/// What one kernel needs of the GPU, as `ptxas --verbose` reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// The kernel's name in the PTX.
    pub entry: String,
    /// 32-bit registers of each thread.
    pub registers: u32,
    /// Named barriers of a block.
    pub barriers: u32,
    /// Static shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// Stack frame of a thread, in bytes; it is in local memory, which is slow.
    pub stack_bytes: u32,
    /// Bytes that a thread spills to local memory because it has too few registers.
    pub spill_store_bytes: u32,
    /// Bytes of spills that a thread loads back.
    pub spill_load_bytes: u32,
}

/// Assembles PTX for the real architecture of the same number as `arch`.
///
/// # Errors
///
/// [`Error::NoPtxas`] if the toolkit has none; [`Error::PtxasRejected`] with its words if it does
/// not accept the PTX.
pub fn assemble(toolkit: &Toolkit, ptx: &str, arch: NvvmArch) -> Result<Assembled, Error> {
    assemble_for(toolkit, ptx, &arch.sm())
}

/// Assembles PTX for a real architecture, such as `sm_86`, of as many kernels at a time as there
/// are processors. PTX for `sm_90a` can become code for that alone, so this is what `sm_90` means
/// then; likewise of all names that end in a letter.
///
/// # Errors
///
/// As for [`assemble`].
pub fn assemble_for(toolkit: &Toolkit, ptx: &str, sm: &str) -> Result<Assembled, Error> {
    let ptxas = toolkit.ptxas.as_deref().ok_or_else(|| Error::NoPtxas {
        origin: toolkit.origin.clone(),
    })?;
    let sm = exactly(ptx, sm);
    let (output, cubin) = run(ptxas, ptx, sm).map_err(|source| Error::PtxasNotRun {
        program: ptxas.to_owned(),
        source,
    })?;
    match cubin {
        Some(cubin) => Ok(Assembled {
            sm: sm.to_owned(),
            cubin,
            kernels: parse_report(&output),
            remarks: remarks(&output),
        }),
        None => Err(Error::PtxasRejected {
            sm: sm.to_owned(),
            log: output.trim().to_owned(),
        }),
    }
}

/// The target of the PTX, if that is `sm` and a letter.
fn exactly<'a>(ptx: &'a str, sm: &'a str) -> &'a str {
    let targets = ptx.lines().find_map(|line| line.strip_prefix(".target "));
    let target = targets.and_then(|targets| targets.split([' ', ',']).next());
    target
        .filter(|target| target.strip_suffix(['a', 'f']) == Some(sm))
        .unwrap_or(sm)
}

/// What ptxas wrote, and the machine code if it took the PTX.
fn run(ptxas: &Path, ptx: &str, sm: &str) -> io::Result<(String, Option<Vec<u8>>)> {
    let folder = tempfile::tempdir()?;
    let source = folder.path().join("kernels.ptx");
    let target = folder.path().join("kernels.cubin");
    fs::write(&source, ptx)?;
    let output = Command::new(ptxas)
        .arg("--verbose")
        .arg(format!("--gpu-name={sm}"))
        .arg("--split-compile=0")
        .arg("--output-file")
        .args([&target, &source])
        .stdin(Stdio::null())
        .output()?;
    let text = [output.stdout, output.stderr].concat();
    let mut text = String::from_utf8_lossy(&text).into_owned();
    if output.status.code().is_none() {
        // It says nothing itself.
        text += &format!("It ended by a signal: {}.", output.status);
    }
    let cubin = match output.status.success() {
        true => Some(fs::read(&target)?),
        false => None,
    };
    Ok((text, cubin))
}

/// Reads the report of `ptxas --verbose`, which has, for each kernel:
///
/// ```text
/// ptxas info    : Compiling entry function 'gemm' for 'sm_90'
/// ptxas info    : Function properties for gemm
///     8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
/// ptxas info    : Used 128 registers, used 1 barriers, 33280 bytes smem, 448 bytes cmem[0]
/// ```
///
/// Between a kernel and the next come the properties of functions that it calls, each with a
/// stack frame of its own that is not part of the kernel's.
fn parse_report(report: &str) -> Vec<Resources> {
    let mut kernels: Vec<Resources> = Vec::new();
    let mut properties_of = "";
    for line in report.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let (entry, _) = rest.split_once('\'').unwrap_or((rest, ""));
            kernels.push(Resources {
                entry: entry.to_owned(),
                ..Resources::default()
            });
        } else if let Some((_, name)) = line.split_once("Function properties for ") {
            properties_of = name.trim();
        } else if let Some(kernel) = kernels.last_mut() {
            if line.contains("bytes stack frame") && properties_of == kernel.entry {
                kernel.stack_bytes = number_before(line, "bytes stack frame");
                kernel.spill_store_bytes = number_before(line, "bytes spill stores");
                kernel.spill_load_bytes = number_before(line, "bytes spill loads");
            } else if line.contains(" Used ") {
                kernel.registers = number_before(line, "registers");
                kernel.barriers = number_before(line, "barriers");
                kernel.shared_bytes = number_before(line, "bytes smem");
            }
        }
    }
    kernels
}

/// Lines such as `ptxas info : (C7519) warpgroup.arrive is injected in around line 466`, and
/// warnings.
fn remarks(report: &str) -> Vec<String> {
    let said = report
        .lines()
        .filter_map(|line| line.strip_prefix("ptxas "));
    let remarks = said.filter_map(|line| {
        let (kind, text) = line.split_once(':')?;
        let text = text.trim();
        (kind.trim() == "warning" || text.starts_with("(C")).then(|| text.to_owned())
    });
    remarks.collect()
}

/// The number before `unit` in a line such as `Used 128 registers, 33280 bytes smem`; 0 where the
/// unit does not occur, since ptxas leaves out what a kernel does not use.
fn number_before(line: &str, unit: &str) -> u32 {
    line.split_once(&format!(" {unit}"))
        .and_then(|(before, _)| before.split_whitespace().next_back()?.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn ptx_for_one_gpu_is_assembled_for_exactly_that() {
        let module = |target: &str| format!(".version 8.0\n.target {target}\n.address_size 64\n");
        for (target, sm, expected) in [
            ("sm_90a", "sm_90", "sm_90a"),
            ("sm_90a, debug", "sm_90", "sm_90a"),
            ("sm_100f", "sm_100", "sm_100f"),
            ("sm_90", "sm_90", "sm_90"),
            ("sm_80", "sm_90", "sm_90"),
            ("sm_90a", "sm_100", "sm_100"),
            ("sm_90a", "sm_90a", "sm_90a"),
        ] {
            assert_eq!(exactly(&module(target), sm), expected, "{target} for {sm}");
        }
    }

    #[test]
    fn a_crash_is_told_from_a_refusal() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("ptxas");
        fs::write(&program, "#!/bin/sh\nkill -SEGV $$\n").unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        let (text, cubin) = run(&program, "", "sm_90").unwrap();
        assert!(text.contains("signal: 11"), "{text}");
        assert_eq!(cubin, None);
    }

    #[test]
    fn a_remark_is_a_warning_or_has_a_code() {
        let report = "\
ptxas info    : (C7519) warpgroup.arrive is injected in around line 466
ptxas info    : 0 bytes gmem
ptxas warning : Unresolved extern variable
ptxas info    : Used 6 registers, used 0 barriers
";
        let expected = [
            "(C7519) warpgroup.arrive is injected in around line 466",
            "Unresolved extern variable",
        ];
        assert_eq!(remarks(report), expected);
    }

    #[test]
    fn the_report_of_each_kernel_is_read_and_that_of_called_functions_is_not() {
        let report = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'gemm' for 'sm_90'
ptxas info    : Function properties for gemm
    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Function properties for helper
    99 bytes stack frame, 98 bytes spill stores, 97 bytes spill loads
ptxas info    : Used 128 registers, used 1 barriers, 33280 bytes smem, 448 bytes cmem[0]
ptxas info    : Compile time = 4.7 ms
ptxas info    : Compiling entry function 'zero' for 'sm_90'
ptxas info    : Function properties for zero
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 6 registers, used 0 barriers
";
        let gemm = Resources {
            entry: "gemm".to_owned(),
            registers: 128,
            barriers: 1,
            shared_bytes: 33280,
            stack_bytes: 8,
            spill_store_bytes: 4,
            spill_load_bytes: 12,
        };
        let zero = Resources {
            entry: "zero".to_owned(),
            registers: 6,
            ..Resources::default()
        };
        assert_eq!(parse_report(report), [gemm, zero]);
    }
}
