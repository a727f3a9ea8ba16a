//! Runs cargo on the kernels' crate, so that it and all its dependencies emit their LLVM IR.
//!
//! It is `cargo check`, with IR as a by-product: no machine code is ever generated for the host,
//! so its assembler never sees inline PTX, and dependencies are compiled only as far as needed.
//! Procedural macros and build scripts are built for the host as always, since `--target` is
//! given.

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use nvvm::NvvmArch;

use crate::{
    CudaBuilderError,
    build_script::BuildScript,
    cargo_messages::{Artifact, Messages},
    dep_info::DepInfo,
    nested_cargo, record, shared,
};

/// A crate of device code, compiled.
#[derive(Debug)]
pub(crate) struct DeviceCrate {
    /// The file of its LLVM IR.
    pub(crate) ir_path: PathBuf,
    /// The IR.
    pub(crate) ir: String,
}

/// The passes that rustc's LLVM runs. They optimise within the control flow of the source.
/// libNVVM's LLVM 7 does the remaining optimisations, but it cannot do all of them: alone it
/// splits a 16-byte copy into bytes.
///
/// No pass copies a call into two branches: an operation that threads execute together, such as a
/// barrier, would then occur in two places, and threads would wait for others that wait
/// elsewhere. Inlining, unrolling and rotating a loop copy code too, but in them each thread
/// passes the same copies in the same order. `simplifycfg` is the one pass that would, and a flag
/// below prevents it. rustc's own MIR passes have no such flag; `cuda_std` prevents them (see its
/// `device.rs`), and `device_codegen` checks the result.
///
/// `no-verify-fixpoint` is how LLVM's own pipelines run `instcombine`: without it, code that one
/// iteration does not combine fully is a fatal error.
const PASSES: &str = "cgscc(inline),\
    function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,loop-simplify,lcssa,\
    loop(loop-rotate,indvars,loop-unroll-full),\
    sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,gvn,instcombine<no-verify-fixpoint>,dce,adce)";

/// The architectures that introduced instructions which device code may test for. For each one up
/// to the architecture being built, `cfg(cuda_arch_at_least = "80")` or its like holds.
const LEVELS: [(NvvmArch, &str); 2] = [(NvvmArch::Compute80, "80"), (NvvmArch::Compute90, "90")];

/// The levels that an architecture has reached.
fn levels_of(arch: NvvmArch) -> impl Iterator<Item = &'static str> {
    let reached = LEVELS.into_iter().filter(move |(from, _)| arch >= *from);
    reached.map(|(_, name)| name)
}

/// Compute capabilities older than those that libNVVM accepts today: code that tests for them is
/// old, and may run.
const OLDER: &str = "35 37 50 52 53 60 61 62 70 72";

/// Whether `cfg(target_feature = "compute_80")` holds, as rust-cuda has it: for each architecture
/// up to the one being built. One with the instructions of a single GPU (`compute_90a`) holds only
/// in its own build, and one with those of a family (`compute_100f`) only in builds for GPUs of the
/// family, by their own instructions or the family's.
fn has_feature(arch: NvvmArch, feature: NvvmArch) -> bool {
    let [built, named] = [arch, feature].map(|one| one.to_string());
    match named.strip_suffix('f') {
        _ if arch == feature => true,
        _ if named.ends_with('a') => false,
        Some(first) => {
            let is_specific = built.ends_with(['a', 'f']);
            let same = built.starts_with(first);
            let later = FAMILIES.contains(&(first, built.trim_end_matches(['a', 'f'])));
            is_specific && (same || later)
        }
        None => feature < arch,
    }
}

/// The first GPU of a family, and another one of it.
const FAMILIES: [(&str, &str); 2] = [
    ("compute_100", "compute_103"),
    ("compute_120", "compute_121"),
];

/// The flags that tell device code which instructions it may use.
fn level_flags(arch: NvvmArch) -> impl Iterator<Item = String> {
    let names = LEVELS.map(|(_, name)| format!("{name:?}")).join(",");
    let known = format!("--check-cfg=cfg(cuda_arch_at_least,values({names}))");
    let reached = levels_of(arch).map(|name| format!("--cfg=cuda_arch_at_least={name:?}"));
    let older = OLDER
        .split(' ')
        .map(|number| (format!("compute_{number}"), true));
    let newer = NvvmArch::ALL.map(|feature| (feature.to_string(), has_feature(arch, feature)));
    let features = older.chain(newer);
    let features = features.flat_map(|(name, holds)| {
        let known = format!("--check-cfg=cfg(target_feature,values({name:?}))");
        let holds = holds.then(|| format!("--cfg=target_feature={name:?}"));
        [Some(known), holds].into_iter().flatten()
    });
    // rustc rejects a cfg that states what the target already has.
    let allowed = "-Aexplicit_builtin_cfgs_in_flags".to_owned();
    [known, allowed].into_iter().chain(reached).chain(features)
}

/// Flags for the kernels' own crate, and what is inlined into it. A call costs more than the code
/// it saves: an array that is passed to a call cannot stay in registers. A loop over a tile is
/// fully unrolled, however long, for the same reason.
///
/// Other crates keep LLVM's thresholds: with these a large one, such as curve25519-dalek, does not
/// compile in half an hour. What kernels take from other crates is mostly `#[inline]` or generic,
/// and so part of the kernels' own.
const INLINE_AND_UNROLL: [&str; 2] = [
    "-Cllvm-args=-inline-threshold=100000",
    "-Cllvm-args=-unroll-threshold=20000",
];

/// Profiles by which cargo tells architectures apart.
const OPT_LEVELS: [&str; 6] = ["0", "1", "2", "3", "s", "z"];
const DEBUG: [&str; 5] = ["0", "line-directives-only", "line-tables-only", "1", "2"];
const _: () = assert!(NvvmArch::ALL.len() < OPT_LEVELS.len() * DEBUG.len());

/// What the builder's setters say about the build.
pub(crate) struct Options<'b> {
    pub(crate) arch: NvvmArch,
    /// For cargo.
    pub(crate) build_args: &'b [String],
    /// For rustc, in each crate.
    pub(crate) rustflags: &'b [String],
    /// The kernels to compile; all if there are none.
    pub(crate) only: &'b [String],
}

/// The flags that every crate of device code is compiled with.
fn rustc_flags(options: &Options<'_>, workspace: &Path, script: &BuildScript) -> String {
    let passes = format!("-Cpasses={PASSES}");
    let mut flags = [
        "--cfg=cuda_device",
        // The conversions of F16C are a GPU's `cvt`; without them the crate `half` has software.
        "--cfg=target_feature=\"f16c\"",
        "--check-cfg=cfg(cuda_device)",
        "--check-cfg=cfg(cuda_kernels_named)",
        "--check-cfg=cfg(cuda_kernel,values(any()))",
        "--emit=llvm-ir",
        "-Copt-level=3",
        "-Cpanic=abort",
        "-Ccodegen-units=1",
        "-Cdebug-assertions=off",
        "-Coverflow-checks=off",
        "-Cno-prepopulate-passes",
        &passes,
        // `simplifycfg` copies no block that contains an instruction, however small.
        "-Cllvm-args=-simplifycfg-max-small-block-size=0",
        // Also if the PTX gets no lines: `device_codegen` needs them to tell a call from a copy of
        // another call.
        "-Cdebuginfo=line-tables-only",
        "--remap-path-scope=debuginfo",
    ]
    .map(str::to_owned)
    .to_vec();
    flags.extend(level_flags(options.arch));
    flags.extend(shorter_paths(workspace, script));
    flags.extend(options.rustflags.iter().cloned());
    flags.join("\x1f")
}

/// The flags that keep this machine's folders out of line tables; if several match a path, the
/// last one applies.
fn shorter_paths(workspace: &Path, script: &BuildScript) -> Vec<String> {
    let variable = |name: &str| script.variables.get(OsStr::new(name)).map(PathBuf::from);
    let cargo_home = variable("CARGO_HOME").or_else(|| Some(variable("HOME")?.join(".cargo")));
    // TOOLCHAIN/bin/cargo. If the sources of `core` are installed, they are below the toolchain.
    let rust_sources = script
        .cargo
        .ancestors()
        .nth(2)
        .map(|toolchain| toolchain.join("lib/rustlib/src/rust"));
    [
        (cargo_home, "cargo"),
        (rust_sources, "rust"),
        (workspace.parent().map(Path::to_owned), ""),
    ]
    .into_iter()
    .filter_map(|(from, to)| Some(format!("--remap-path-prefix={}={to}", from?.to_str()?)))
    .collect()
}

/// The target that device code is compiled for: the host's own, whose `core` is installed, or what
/// is closest to it. Where a host's ABI or object format differs from that of x86-64 Linux, so
/// would its IR; the IR of the kernels is the same for all hosts.
fn device_target(host: &str) -> &str {
    if host.starts_with("x86_64-") && host.contains("-linux-") {
        host
    } else {
        "x86_64-unknown-linux-gnu"
    }
}

/// Compiles the crate in `folder` and what it depends on, and tells cargo what to watch.
pub(crate) fn build(
    folder: &Path,
    options: Options<'_>,
    script: &mut BuildScript,
) -> Result<Vec<DeviceCrate>, CudaBuilderError> {
    let workspace = workspace_manifest(folder, script)?;
    let target_dir = nested_cargo::target_dir(script);
    let host = script.host.clone();
    let target = device_target(&host);
    let mut command = nested_cargo::cargo(folder, script);
    let level = NvvmArch::ALL
        .iter()
        .take_while(|other| **other <= options.arch)
        .count();
    command
        .env(
            "CARGO_ENCODED_RUSTFLAGS",
            rustc_flags(&options, &workspace, script),
        )
        // One architecture's files must not replace another's, and what a build script said for
        // one must not be made out of date by another. If only the flags differ, cargo gives both
        // the same names; with another profile it does not. Of the profile, only these two also
        // name what build scripts said. The `-Copt-level` and `-Cdebuginfo` in the flags come later
        // on rustc's command line, so they win.
        .env(
            "CARGO_PROFILE_DEV_OPT_LEVEL",
            OPT_LEVELS[level % OPT_LEVELS.len()],
        )
        .env("CARGO_PROFILE_DEV_DEBUG", DEBUG[level / OPT_LEVELS.len()])
        // Procedural macros and build scripts are the same for all architectures.
        .env("CARGO_PROFILE_DEV_BUILD_OVERRIDE_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_DEV_BUILD_OVERRIDE_DEBUG", "0")
        .args(["rustc", "--lib", "--crate-type=rlib", "--profile=check"])
        .args(nested_cargo::REPORTING)
        .arg(format!("--target={target}"))
        .args(options.build_args);
    // Users, too, may have arguments for the kernels' own crate.
    if !options.build_args.iter().any(|argument| argument == "--") {
        command.arg("--");
    }
    command.args(INLINE_AND_UNROLL);
    if !options.only.is_empty() {
        // What only other kernels use is unused.
        command.args(["--cfg=cuda_kernels_named", "--cap-lints=allow"]);
        let only = options.only.iter();
        command.args(only.map(|name| format!("--cfg=cuda_kernel={name:?}")));
    }
    // Until the IR is read.
    let _lock = shared::lock(&target_dir)?;
    let output = nested_cargo::run(&mut command)?;
    let messages = Messages::parse(&output.stdout);
    if !output.status.success() {
        return Err(failure(&messages, &output));
    }
    for warning in &messages.warnings {
        eprintln!("{warning}");
        script.keeps_no_record = true;
    }

    script.rerun_if_changed(&workspace);
    script.rerun_if_changed(&workspace.with_file_name("Cargo.lock"));

    let device_files = target_dir.join(target);
    let mut crates = Vec::new();
    for artifact in &messages.artifacts {
        // Procedural macros and build scripts are elsewhere.
        let Some(ir_path) = ir_path(artifact, &device_files) else {
            continue;
        };
        let unreadable = |path: &Path| {
            let (path, folder) = (path.to_owned(), target_dir.clone());
            move |source| CudaBuilderError::NoIr {
                path,
                folder,
                source,
            }
        };
        if artifact.is_local {
            let path = ir_path.with_extension("d");
            let dep_info = fs::read_to_string(&path).map_err(unreadable(&path))?;
            watch(
                artifact,
                &DepInfo::parse(&dep_info),
                &ir_path,
                &workspace,
                script,
            );
        }
        crates.push(DeviceCrate {
            ir: fs::read_to_string(&ir_path).map_err(unreadable(&ir_path))?,
            ir_path,
        });
    }
    Ok(crates)
}

/// What went wrong, reported once: rustc's errors if there are any, otherwise cargo's own
/// message.
fn failure(messages: &Messages, output: &Output) -> CudaBuilderError {
    if messages.errors.is_empty() {
        return CudaBuilderError::CargoFailed {
            output: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
    }
    let mut diagnostics = without_repetitions(&messages.errors);
    let is_f16 = |error: &&mut String| error.contains("the type `f16` is unstable");
    if let Some(error) = diagnostics.iter_mut().find(is_f16) {
        error.push_str(
            "help: cuda_std has a stable `f16` with its feature `half`: write `features = [\"half\"]` in the \
             dependency of the kernels, and `use cuda_std::f16`\n\n",
        );
    }
    CudaBuilderError::KernelsDoNotCompile { diagnostics }
}

/// Of errors that say the same about the same place, the first. An entry point mentions the type
/// of a parameter several times, and if there is no such type, rustc says so with different help.
fn without_repetitions(errors: &[String]) -> Vec<String> {
    let mut seen = HashSet::new();
    let errors = errors.iter();
    let first = errors.filter(|error| seen.insert(up_to_the_place(error)));
    first.cloned().collect()
}

/// The lines of an error before its help, which differs from place to place.
fn up_to_the_place(error: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = error.lines().map(str::trim).collect();
    if let Some(place) = lines.iter().position(|line| line.starts_with("-->")) {
        lines.truncate(place + 1);
    }
    lines
}

/// The manifest at the root of the crate's workspace.
fn workspace_manifest(folder: &Path, script: &BuildScript) -> Result<PathBuf, CudaBuilderError> {
    let mut command = nested_cargo::cargo(folder, script);
    command.args(["locate-project", "--workspace", "--message-format=plain"]);
    let output = nested_cargo::run(&mut command)?;
    if !output.status.success() {
        return Err(failure(&Messages::default(), &output));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().into())
}

/// The IR of a crate that was compiled for the device: the IR of `libNAME-HASH.rmeta` is in
/// `NAME-HASH.ll`.
fn ir_path(artifact: &Artifact, device_files: &Path) -> Option<PathBuf> {
    let metadata = artifact.files.iter().find(|file| {
        file.starts_with(device_files) && file.extension() == Some(OsStr::new("rmeta"))
    })?;
    let name = metadata.file_stem()?.to_str()?.strip_prefix("lib")?;
    Some(metadata.with_file_name(format!("{name}.ll")))
}

/// Tells cargo to repeat the build script when something that a local crate was compiled from
/// changes.
fn watch(
    artifact: &Artifact,
    dep_info: &DepInfo,
    ir_path: &Path,
    workspace: &Path,
    script: &mut BuildScript,
) {
    script.rerun_if_changed(&artifact.manifest);
    // Cargo runs rustc in the root of the workspace for crates below it, and gives absolute paths
    // for all others.
    let root = workspace.parent().unwrap_or(workspace);
    for file in &dep_info.files {
        let file = root.join(file);
        script.keeps_no_record |= !record::is_older(&file, ir_path);
        script.rerun_if_changed(&file);
    }
    for variable in &dep_info.variables {
        // Cargo sets these for each crate, and compiles the crate again when they change.
        if !variable.starts_with("CARGO_") {
            script.instruct(format!("rerun-if-env-changed={variable}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_shown_once_for_each_place() {
        let error = "error[E0425]: cannot find type `Usize`\n --> src/lib.rs:5:27\n  |\n";
        let with_help = format!("{error}help: you might be missing a type parameter\n");
        let elsewhere = error.replace("5:27", "6:27");
        let errors = [error.to_owned(), elsewhere.clone(), with_help];
        assert_eq!(without_repetitions(&errors), [error.to_owned(), elsewhere]);
    }
}
