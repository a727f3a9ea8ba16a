//! The tables of `ptx_version` against the real ptxas: it accepts each entry at the version that
//! they give, and rejects it one version lower.
//!
//! If ptxas is not available, the tests that need it are reported as ignored, by name.

mod common;

use std::collections::BTreeMap;

use common::trial;
use libtest_mimic::{Arguments, Failed, Trial};
use nvvm::ptx_version::{DIRECTIVES, INLINED_LOC, LARGE_PARAMETERS, OLDEST, examples, needed};
use nvvm::{Error, NvvmArch, Toolkit, Version, ptxas};

fn main() {
    let arguments = Arguments::from_args();
    let toolkit = Toolkit::find_or_fetch().ok();
    let toolkit = toolkit.filter(|found| found.ptxas.is_some());
    if toolkit.is_none() {
        eprintln!("The tests of ptxas are ignored: no CUDA toolkit or wheel with it was found.");
    }
    let mut trials = vec![
        Trial::test(
            "an_example_needs_the_version_that_the_table_gives",
            examples_need_their_version,
        ),
        Trial::test(
            "every_directive_of_the_table_is_in_the_modules",
            directives_are_in_the_modules,
        ),
    ];
    for (since, instructions) in instructions_by_version() {
        let name = format!("ptxas_takes_what_needs_{since}_from_there_on");
        trials.push(trial(&name, &toolkit, move |toolkit| {
            instructions_assemble(toolkit, since, &instructions)
        }));
    }
    for arch in NvvmArch::ALL {
        let name = format!("ptxas_takes_{}_from_{}_on", arch.sm(), arch.since());
        trials.push(trial(&name, &toolkit, move |toolkit| {
            target_assembles(toolkit, arch)
        }));
    }
    for (name, text, since, refused_at) in CONSTRUCTS {
        let name = format!("ptxas_takes_{name}_from_{since}_on");
        trials.push(trial(&name, &toolkit, move |toolkit| {
            construct_assembles(toolkit, text, since, refused_at)
        }));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// The examples of each version, as statements.
fn instructions_by_version() -> BTreeMap<Version, Vec<String>> {
    let mut by_version: BTreeMap<Version, Vec<String>> = BTreeMap::new();
    for (since, example) in examples() {
        by_version.entry(since).or_default().push(typed(&example));
    }
    by_version
}

/// An example with registers of its last type for `T1`, `T2` and so on.
fn typed(example: &str) -> String {
    let (opcode, operands) = example.split_once(' ').unwrap_or((example, ""));
    let register = match opcode.rsplit('.').next() {
        Some("pred") => "%p",
        Some("b8" | "u8" | "s8" | "b16" | "u16" | "s16" | "f16") => "%rs",
        Some("b64" | "u64" | "s64" | "f64") => "%rd",
        _ => "%r",
    };
    let operands = (1..=4).fold(operands.to_owned(), |operands, number| {
        operands.replace(&format!("T{number}"), &format!("{register}{number}"))
    });
    format!("{opcode} {operands};\n")
}

/// The text before the first instruction of a module, with all directives of the table, and how
/// many lines that is.
const HEAD: &str = r#".address_size 64
.extern .func (.param .b32 out) vprintf (.param .b64 a, .param .b64 b) ;
.func sink(.param .b64 x) { ret; }
.func (.reg .b32 out) function(.param .b64 x) { ret; }
.weak .global .align 4 .b8 bytes[8] = {1, 2};
.const .s8 s8 = 1; .global .u8 u8; .global .b16 b16; .global .u16 u16; .global .s16 s16;
.global .u32 u32; .global .s32 s32 = -1; .global .f32 f32; .global .s64 s64; .global .f64 f64;
.extern .shared .align 16 .b8 dynamic[];
.entry other() .reqntid 32, 1, 1 .maxnreg 64 { ret; }
.visible .entry kernel(.param .u64 .ptr .global .align 4 p, .param .align 8 .b8 q[4000])
.maxntid 128, 1, 1
.minnctapersm 2
{
.pragma "nounroll";
.local .align 4 .b8 depot[16];
.reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
.reg .b64 %SP; .reg .b64 %SPL; .reg .b32 %temp;
PROTOTYPE: .callprototype (.param .b32 _) _ (.param .b64 _);
TARGETS: .branchtargets END, OTHER;
"#;
const HEAD_LINES: usize = 21;

/// A module with these instructions, one a line.
fn module(version: Version, target: &str, instructions: &str) -> String {
    format!(
        ".version {version}\n.target {target}\n{HEAD}{instructions}OTHER: ret;\nEND: ret;\n}}\n"
    )
}

fn directives_are_in_the_modules() -> Result<(), Failed> {
    for (since, names) in DIRECTIVES {
        let constructs = CONSTRUCTS.iter().filter(|(_, _, of, _)| *of == since);
        let mut texts: Vec<&str> = constructs.map(|(_, text, _, _)| *text).collect();
        if since == OLDEST {
            texts.push(HEAD);
        }
        let text = texts.concat();
        if let Some(name) = names
            .split(' ')
            .find(|name| !text.contains(&format!("{name} ")))
        {
            return Err(format!("no module of {since} has {name}").into());
        }
    }
    Ok(())
}

fn examples_need_their_version() -> Result<(), Failed> {
    for (since, instructions) in instructions_by_version() {
        for instruction in instructions {
            // The oldest target, which needs no more than the oldest version itself.
            let needed = needed(&module(version(8, 8), "sm_75", &instruction));
            if needed != Ok(since) {
                return Err(format!("{instruction} needs {needed:?}").into());
            }
        }
    }
    Ok(())
}

fn instructions_assemble(
    toolkit: &Toolkit,
    since: Version,
    instructions: &[String],
) -> Result<(), Failed> {
    // The newest target that the version has: it has all the instructions.
    let newest = NvvmArch::ALL
        .into_iter()
        .rfind(|arch| arch.since() <= since);
    let target = &newest.ok_or("no target")?.sm();
    // ptxas needs far longer for one long kernel.
    for some in instructions.chunks(500) {
        assemble(toolkit, target, &module(since, target, &some.concat()))?;
    }
    if since == OLDEST {
        // Its target needs it: see `target_assembles`.
        return Ok(());
    }
    let older = module(before(since), "sm_75", &instructions.concat());
    let log = refusal(toolkit, "sm_75", &older)?;
    for (index, instruction) in instructions.iter().enumerate() {
        let line = format!("line {};", HEAD_LINES + index + 1);
        let mut errors = log.lines().filter(|error| error.contains(&line));
        let needs = format!("requires PTX ISA .version {since} or later");
        if !errors.any(|error| error.contains(&needs)) {
            return Err(format!("{instruction} is not refused for its version: {log}").into());
        }
    }
    Ok(())
}

fn target_assembles(toolkit: &Toolkit, arch: NvvmArch) -> Result<(), Failed> {
    let target = &arch.sm();
    assemble(toolkit, target, &module(arch.since(), target, ""))?;
    let older = before(arch.since());
    let log = refusal(toolkit, target, &module(older, target, ""))?;
    match log.contains(&format!(
        "PTX .version {older} does not support .target {target}"
    )) {
        true => Ok(()),
        false => Err(format!("not refused for its version: {log}").into()),
    }
}

/// What else needs a version: a name, the end of a kernel and what follows it, the version, and an
/// older one at which ptxas rejects it.
const CONSTRUCTS: [(&str, &str, Version, Version); 4] = [
    (
        "clusters",
        "OTHER: END: ret; }\n.entry k() .explicitcluster .reqnctapercluster 2, 1, 1 {\n",
        version(7, 8),
        version(7, 7),
    ),
    (
        "large_parameters",
        "OTHER: END: ret; }\n.entry k(.param .align 8 .b8 x[4400]) {\n",
        LARGE_PARAMETERS,
        version(8, 0),
    ),
    (
        "noreturn",
        "OTHER: END: ret; }\n.func f() .noreturn {\n",
        version(6, 4),
        version(6, 3),
    ),
    (
        "inlined_calls",
        "\
	.loc	1 1 1
	.loc	1 2 3, function_name NAMES, inlined_at 1 1 1
OTHER: END: ret;
}
	.file	1 \"kernels.rs\"
	.section	.debug_str
	{
NAMES:
.b8 95
.b8 0
	}
.func last() {
",
        INLINED_LOC,
        version(6, 5),
    ),
];

fn construct_assembles(
    toolkit: &Toolkit,
    text: &str,
    since: Version,
    refused_at: Version,
) -> Result<(), Failed> {
    assert_eq!(needed(&module(version(8, 8), "sm_75", text)), Ok(since));
    // The oldest GPU that has it.
    let target = if text.contains("cluster") {
        "sm_90"
    } else {
        "sm_75"
    };
    assemble(toolkit, target, &module(since, target, text))?;
    let log = refusal(toolkit, target, &module(refused_at, target, text))?;
    says(&log, "version")
}

/// The version before one of those in the tables.
fn before(Version { major, minor }: Version) -> Version {
    match (major, minor) {
        (7, 0) => version(6, 5),
        (8, 0) => version(7, 8),
        _ => version(major, minor - 1),
    }
}

const fn version(major: u32, minor: u32) -> Version {
    Version { major, minor }
}

fn assemble(toolkit: &Toolkit, target: &str, ptx: &str) -> Result<(), Failed> {
    let arch: NvvmArch = target.replace("sm_", "compute_").parse()?;
    ptxas::assemble(toolkit, ptx, arch)?;
    Ok(())
}

/// What ptxas says about a module that it rejects.
fn refusal(toolkit: &Toolkit, target: &str, ptx: &str) -> Result<String, Failed> {
    let arch: NvvmArch = target.replace("sm_", "compute_").parse()?;
    match ptxas::assemble(toolkit, ptx, arch) {
        Err(Error::PtxasRejected { log, .. }) => Ok(log),
        Err(error) => Err(error.into()),
        Ok(_) => Err(format!("ptxas takes it: {}", ptx.lines().next().unwrap_or_default()).into()),
    }
}

fn says(log: &str, words: &str) -> Result<(), Failed> {
    match log.contains(words) {
        true => Ok(()),
        false => Err(format!("not refused for its version: {log}").into()),
    }
}
