//! Complete builds: a crate of kernels in a temporary folder, compiled as from a build script.
//!
//! A build script is this very program, started again under the environment that cargo gives one,
//! by the test or by the build script of a real package. If libNVVM is not available, the tests
//! that need it are reported as ignored, by name.

use std::{
    collections::BTreeMap,
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Output, Stdio},
    sync::{LazyLock, OnceLock},
    time::{Duration, SystemTime},
};

use cuda_builder::{CudaBuilder, DebugInfo, NvvmArch};
use libtest_mimic::{Arguments, Failed, Trial};
use tempfile::TempDir;

/// Set for a process that plays a build script, to the folder of the kernels' crate.
const PLAYS_BUILD_SCRIPT: &str = "CUDA_BUILDER_TEST_CRATE";

fn main() -> ExitCode {
    match env::var_os(PLAYS_BUILD_SCRIPT) {
        Some(crate_folder) => play_build_script(Path::new(&crate_folder)),
        None => run_tests(),
    }
}

fn play_build_script(crate_folder: &Path) -> ExitCode {
    let is_set = |name| env::var_os(name).is_some();
    let arch = env::var("ARCH").unwrap_or_else(|_| "compute_75".to_owned());
    let arch: NvvmArch = arch
        .parse()
        .expect("the tests name architectures that exist");
    let debug = match is_set("LINES") {
        true => DebugInfo::LineTables,
        false => DebugInfo::None,
    };
    let builder = CudaBuilder::new(crate_folder)
        .arch(arch)
        .ftz(is_set("FTZ"))
        .debug(debug)
        .emit_llvm_ir(is_set("EMIT_IR"))
        .libnvvm_optional(is_set("OPTIONAL"));
    let builder = match env::var("CFG") {
        Ok(cfg) => builder.cfg(cfg),
        Err(_) => builder,
    };
    let builder = match is_set("APART") {
        true => builder
            .kernels_to(Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("apart")),
        false => builder,
    };
    // As `fn main() -> Result<..>` does.
    match builder.build() {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error:?}");
            ExitCode::FAILURE
        }
    }
}

/// Tests by a prefix and their names, ignored or not.
macro_rules! trials {
    ($prefix:literal, $ignored:expr; $($test:ident),* $(,)?) => {
        vec![$(Trial::test(concat!($prefix, stringify!($test)), $test).with_ignored_flag($ignored)),*]
    };
}

/// The `target` of the build scripts whose kernels use `cuda_std`: the first compiles what its
/// macros are made of, and the others find it there.
static TARGET: OnceLock<PathBuf> = OnceLock::new();

fn run_tests() -> ExitCode {
    let arguments = Arguments::from_args();
    let missing = nvvm::Toolkit::find_or_fetch().err();
    if let Some(error) = &missing {
        eprintln!("The tests that need libNVVM are ignored. {error}");
    }
    let mut all = trials![
        "", missing.is_some();
        a_kernel_becomes_ptx_for_every_dialect,
        a_barrier_between_setting_and_testing_a_flag_stands_once,
        a_copied_call_of_a_function_with_a_barrier_is_an_error,
        setters_reach_libnvvm,
        a_cfg_reaches_dependencies_and_their_build_scripts,
        line_tables_change_no_instruction,
        line_tables_name_no_folder_of_this_machine,
        cargo_watches_every_file_the_kernels_come_from_and_nothing_else,
        device_code_knows_the_architecture_it_is_compiled_for,
        an_error_with_an_untested_rust_names_the_tested_one,
        the_ptx_is_the_same_on_every_host,
        each_build_compiles_what_has_changed_and_nothing_else,
        warnings_are_shown_by_every_build,
        a_changed_kernel_replaces_the_old_one,
        kernels_are_compiled_apart_if_they_share_nothing_and_together_otherwise,
        only_the_changed_kernel_is_compiled,
        a_kernels_file_has_what_it_reaches,
        a_crate_without_kernels_is_an_error,
        a_type_error_is_shown_exactly_once,
        a_broken_manifest_is_shown_in_cargos_words,
        builds_at_the_same_time_give_identical_bytes,
        nothing_of_the_outer_build_leaks_in,
        the_profile_of_the_kernels_workspace_does_not_matter,
        an_unstable_f16_is_an_error_that_names_the_feature_half,
        every_build_looks_for_a_missing_libnvvm_again,
    ];
    all.extend(trials![
        "", false;
        a_missing_libnvvm_is_an_error,
        a_missing_libnvvm_that_is_optional_makes_an_empty_file_and_says_why,
        ptx_that_is_not_wanted_makes_an_empty_file_without_a_warning,
        a_folder_without_a_crate_is_an_error,
    ]);
    // Those that take long. `cargo test -- --ignored exhaustive` runs them.
    if missing.is_none() {
        let exhaustive = trials![
            "exhaustive::", true;
            a_loop_that_takes_libnvvm_too_long_is_named,
            what_rusts_libraries_do_not_offer_has_a_place_and_a_way_round,
            kernels_may_use_the_types_of_half_and_glam,
            device_code_knows_every_architecture,
            kernels_of_every_kind_are_compiled_apart_or_together,
        ];
        all.extend(exhaustive);
    }
    let target = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(error) => {
            eprintln!("There is no temporary folder: {error}");
            return ExitCode::FAILURE;
        }
    };
    TARGET.get_or_init(|| target.path().to_owned());
    libtest_mimic::run(&arguments, all).exit_code()
}

/// A crate of kernels in a folder of its own, and the `OUT_DIR` of a build script that compiles
/// it.
struct Kernels {
    folder: TempDir,
}

const MANIFEST: &str = r#"
[package]
name = "kernels"
version = "0.1.0"
edition = "2024"

[dependencies]
scaling = { path = "scaling" }

[workspace]
"#;

/// One kernel; the function that it calls, and a file that it includes, are those of another
/// crate.
const KERNEL: &str = r#"
#![cfg_attr(cuda_device, no_std)]

#[cfg(cuda_device)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".nvvm.kernel")]
pub unsafe fn scale(x: &[f32], y: *mut f32, n: u32) {
    if let Some(first) = x.first() {
        unsafe { *y = scaling::scaled(*first) + (n + 1) as f32 };
    }
}
"#;

/// All files of both crates, and the file that cargo adds.
const FILES: [&str; 6] = [
    "kernels/Cargo.toml",
    "kernels/Cargo.lock",
    "kernels/src/lib.rs",
    "kernels/scaling/Cargo.toml",
    "kernels/scaling/src/lib.rs",
    "kernels/scaling/factor.bin",
];

const SCALING: &str = r#"
#![no_std]
const BY: &[u8] = include_bytes!("../factor.bin");
const _: Option<&str> = option_env!("SCALING_VARIABLE");

#[inline(always)]
pub fn scaled(x: f32) -> f32 {
    x * BY[0] as f32
}
"#;

impl Kernels {
    fn new() -> Result<Self, Failed> {
        let kernels = Kernels {
            folder: tempfile::tempdir()?,
        };
        let manifest = "[package]\nname = \"scaling\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
        kernels.write("kernels/Cargo.toml", MANIFEST)?;
        kernels.write("kernels/src/lib.rs", KERNEL)?;
        kernels.write("kernels/scaling/Cargo.toml", manifest)?;
        kernels.write("kernels/scaling/src/lib.rs", SCALING)?;
        kernels.write("kernels/scaling/factor.bin", "A")?;
        Ok(kernels)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn read(&self, path: &str) -> Result<String, Failed> {
        Ok(fs::read_to_string(self.path(path))?)
    }

    fn write(&self, path: &str, text: &str) -> Result<(), Failed> {
        let path = self.path(path);
        fs::create_dir_all(path.parent().ok_or("a file is in a folder")?)?;
        Ok(fs::write(path, text)?)
    }

    fn replace(&self, path: &str, from: &str, to: &str) -> Result<(), Failed> {
        let text = self.read(path)?;
        assert_has(&text, &[from]);
        self.write(path, &text.replace(from, to))
    }

    /// Adds an item to the kernels' crate.
    fn add(&self, item: &str) -> Result<(), Failed> {
        let path = "kernels/src/lib.rs";
        self.write(path, &format!("{}\n{item}\n", self.read(path)?))
    }

    /// A build script that compiles the crate, to be run.
    fn build_script(&self, variables: &[(&str, &str)]) -> Result<Command, Failed> {
        let out_dir = self.path("out");
        fs::create_dir_all(&out_dir)?;
        let mut command = Command::new(env::current_exe()?);
        command
            .env(PLAYS_BUILD_SCRIPT, self.path("kernels"))
            .env("OUT_DIR", out_dir.canonicalize()?)
            .env("HOST", host()?)
            .env("TARGET", host()?)
            .env("CARGO", env!("CARGO"))
            .env("CARGO_PKG_NAME", "outer")
            .envs(variables.iter().copied())
            .stdin(Stdio::null());
        Ok(command)
    }

    /// What a build script that succeeds tells cargo.
    fn build(&self, variables: &[(&str, &str)]) -> Result<String, Failed> {
        let output = self.build_script(variables)?.output()?;
        assert!(output.status.success(), "{}", text_of(&output));
        let stdout = String::from_utf8(output.stdout)?;
        for line in stdout.lines() {
            assert!(line.starts_with("cargo::"), "no instruction: {line}");
        }
        Ok(stdout)
    }

    /// What a build script that fails writes: an error, and no instructions among it.
    fn build_to_failure(&self, variables: &[(&str, &str)]) -> Result<String, Failed> {
        let output = self.build_script(variables)?.output()?;
        assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
        assert!(output.stdout.is_empty(), "noise: {}", text_of(&output));
        Ok(text_of(&output))
    }

    fn ptx(&self) -> Result<String, Failed> {
        self.read("out/kernels.compute_75.ptx")
    }

    /// Builds for an architecture, and returns the PTX.
    fn ptx_for(&self, arch: &str) -> Result<String, Failed> {
        self.build(&[("ARCH", arch)])?;
        self.read(&format!("out/kernels.{arch}.ptx"))
    }

    /// The same with line tables.
    fn ptx_with_lines(&self, arch: &str) -> Result<String, Failed> {
        self.build(&[("ARCH", arch), ("LINES", "1")])?;
        self.read(&format!("out/kernels.{arch}.ptx"))
    }

    /// Gives a file of the crate this time.
    fn set_time(&self, path: &str, time: SystemTime) -> Result<(), Failed> {
        let file = fs::File::options().append(true).open(self.path(path))?;
        Ok(file.set_modified(time)?)
    }

    /// A crate that was compiled, and has not changed since.
    fn compiled() -> Result<Self, Failed> {
        let kernels = Kernels::new()?;
        // The first build writes Cargo.lock.
        kernels.build(&[])?;
        kernels.build(&[])?;
        Ok(kernels)
    }

    /// When each file of LLVM IR was written.
    fn ir_times(&self) -> Result<BTreeMap<PathBuf, SystemTime>, Failed> {
        let mut times = BTreeMap::new();
        for entry in fs::read_dir(self.path(&format!("out/cuda_builder/{}/debug/deps", host()?)))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "ll") {
                times.insert(path.clone(), path.metadata()?.modified()?);
            }
        }
        Ok(times)
    }
}

/// The target of the host.
fn host() -> Result<&'static str, Failed> {
    static HOST: LazyLock<Option<String>> = LazyLock::new(|| {
        let rustc = Command::new("rustc")
            .args(["--print", "host-tuple"])
            .output();
        Some(
            String::from_utf8(rustc.ok()?.stdout)
                .ok()?
                .trim()
                .to_owned(),
        )
    });
    Ok(HOST.as_deref().ok_or("rustc names no host")?)
}

fn text_of(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

#[track_caller]
fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[track_caller]
fn assert_lacks(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(!text.contains(part), "{part:?} is in {text}");
    }
}

/// A number as PTX writes it.
fn literal(number: f32) -> String {
    format!("0f{:08X}", number.to_bits())
}

fn a_kernel_becomes_ptx_for_every_dialect() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    // The version is the lowest for the target.
    for (arch, head) in [
        ("compute_75", ".version 6.3\n.target sm_75\n"),
        ("compute_90a", ".version 8.0\n.target sm_90a\n"),
        ("compute_100", ".version 8.6\n.target sm_100\n"),
    ] {
        // The other crate has included the number.
        let factor = literal(65.0);
        assert_has(
            &kernels.ptx_for(arch)?,
            &[head, ".visible .entry scale(", &factor],
        );
    }
    Ok(())
}

/// A crate that depends on this workspace's `cuda_std`, with these kernels.
fn with_cuda_std(source: &str) -> Result<Kernels, Failed> {
    with_features("", source)
}

/// The same with some of its features, each in quotes.
fn with_features(features: &str, source: &str) -> Result<Kernels, Failed> {
    let kernels = Kernels::new()?;
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let crates = crates.canonicalize()?;
    let manifest = format!(
        r#"
[package]
name = "kernels"
version = "0.1.0"
edition = "2021"
[dependencies]
stable_cuda_std = {{ path = "{crates}/cuda_std", features = [{features}] }}
[workspace]
"#,
        crates = crates.display()
    );
    kernels.write("kernels/Cargo.toml", &manifest)?;
    let name = kernels.folder.path().file_name();
    let script = TARGET.get().ok_or("no target")?.join("debug/build");
    let out_dir = script.join(name.ok_or("no name")?).join("out");
    fs::create_dir_all(&out_dir)?;
    std::os::unix::fs::symlink(out_dir, kernels.path("out"))?;
    let prelude = "#![cfg_attr(cuda_device, no_std)]\nuse cuda_std::prelude::*;\n";
    kernels.write("kernels/src/lib.rs", &format!("{prelude}{source}"))?;
    // The versions that this workspace uses: they are on this machine.
    fs::copy(
        crates.join("../Cargo.lock"),
        kernels.path("kernels/Cargo.lock"),
    )?;
    Ok(kernels)
}

fn kernels_may_use_the_types_of_half_and_glam() -> Result<(), Failed> {
    let kernels = with_features(
        r#""half", "glam""#,
        "use cuda_std::{bf16, f16, glam::Vec3, warp};
#[kernel]
pub unsafe fn lengths(x: *const f16, y: *mut bf16) {
    let first = unsafe { *x.add(thread::index_1d() as usize) };
    let second = unsafe { warp::warp_shuffle_xor(u32::MAX, first, 1, 32).0 };
    let vector = Vec3::new(first.to_f32(), second.to_f32(), 1.0);
    unsafe { *y.add(thread::index_1d() as usize) = bf16::from_f32(vector.length()) };
}
",
    )?;
    let ptx = kernels.ptx_for("compute_75")?;
    let both_are_moved = [".visible .entry lengths(", "shfl.sync.bfly", "cvt.f32.f16"];
    assert_has(&ptx, &both_are_moved);
    assert_has(&ptx, &["sqrt.rn.f32", "st.global.u16"]);
    Ok(())
}

/// A kernel in which `SET` sets a flag in some threads, all threads reach `TOGETHER`, and
/// `TESTED` tests the flag.
const FLAG: &str = "#[kernel]
pub unsafe fn NAME(x: *const f32, y: *mut f32) {
    let t = thread::thread_idx_x() as usize;
    unsafe {
        let mut memory = [0_u32; 2];
        let flag = if *x.add(t) > 3.0 {
            *y.add(t) = 1.0;
            (*(&raw mut memory))[1] = 1;
            true
        } else {
            false
        };
        TOGETHER;
        if TESTED {
            *y.add(t) += *y.add(t + 1);
        } else {
            *y.add(t) *= 7.0;
        }
        let _ = flag;
    }
}
";

/// A function with a barrier.
const SYNCHRONISED: &str =
    "fn synchronised(y: *mut f32) { unsafe { *y += 1.0 }; thread::sync_threads() }\n";

/// rustc's jump threading sees a flag in a local variable; only LLVM's `simplifycfg` sees one in
/// memory.
const TESTS: [(&str, &str); 2] = [
    ("local", "flag"),
    ("memory", "(*(&raw mut memory))[1] == 1"),
];

fn a_barrier_between_setting_and_testing_a_flag_stands_once() -> Result<(), Failed> {
    // Instructions of PTX, and what becomes them.
    let together = [
        "bar.sync: thread::sync_threads()",
        "bar.red: *y = thread::sync_threads_count(1) as f32",
        "shfl.sync: *y = cuda_std::warp::warp_shuffle_xor(!0, *y, 1, 32).0",
        "vote.sync: *y = cuda_std::warp::warp_vote_ballot(!0, *y > 1.0) as f32",
        "barrier.sync: core::arch::asm!(\"barrier.sync 5;\", options(nostack))",
        "bar.sync: synchronised(y)",
    ];
    let together = together.map(|line| line.split_once(": ").unwrap_or_default());
    let mut source = format!("#[inline(always)]\n{SYNCHRONISED}");
    for (index, (_, call)) in together.iter().enumerate() {
        for (place, test) in TESTS {
            let kernel = FLAG.replace("NAME", &format!("{place}_{index}"));
            source += &kernel.replace("TOGETHER", call).replace("TESTED", test);
        }
    }
    let kernels = with_cuda_std(&source)?;
    for arch in DIALECTS {
        let ptx = kernels.ptx_for(arch)?;
        for (index, (instruction, _)) in together.iter().enumerate() {
            for (place, _) in TESTS {
                let entry = format!(".entry {place}_{index}(");
                let (_, text) = ptx.split_once(&entry).ok_or("the kernel is missing")?;
                let text = text.split(".entry").next().unwrap_or_default();
                let count = text.matches(instruction).count();
                assert_eq!(count, 1, "{arch}: {entry} {text}");
            }
        }
    }
    Ok(())
}

/// The call of a function that rustc does not inline before its jump threading is still copied.
fn a_copied_call_of_a_function_with_a_barrier_is_an_error() -> Result<(), Failed> {
    let kernel = FLAG.replace("NAME", "k").replace("TESTED", "flag");
    let kernel = kernel.replace("TOGETHER", "synchronised(y)");
    let kernels = with_cuda_std(&format!("#[inline(never)]\n{SYNCHRONISED}{kernel}"))?;
    assert_has(
        &kernels.build_to_failure(&[])?,
        &[
            "in function `k`",
            "the call of `kernels::synchronised`",
            "copied into two branches",
            "src/lib.rs:17:9",
            "core::arch::asm!",
        ],
    );
    let cure = "core::arch::asm!(\"\", options(nomem, nostack, preserves_flags))";
    let from = "synchronised(y);\n";
    kernels.replace("kernels/src/lib.rs", from, &format!("{from}{cure};\n"))?;
    kernels.build(&[])?;
    Ok(())
}

fn device_code_knows_the_architecture_it_is_compiled_for() -> Result<(), Failed> {
    know_the_architecture(&ARCHITECTURES[..4])
}

fn device_code_knows_every_architecture() -> Result<(), Failed> {
    know_the_architecture(&ARCHITECTURES)
}

/// Architectures, and which of the conditions in the test below hold.
const ARCHITECTURES: [(&str, u16); 11] = [
    ("compute_75", 0b00_0000_0011),
    ("compute_80", 0b01_0000_0011),
    ("compute_90a", 0b11_0001_1111),
    ("compute_100f", 0b11_0110_1111),
    ("compute_89", 0b01_0000_0111),
    ("compute_90", 0b11_0000_1111),
    ("compute_100", 0b11_0010_1111),
    ("compute_100a", 0b11_1110_1111),
    ("compute_103", 0b11_0010_1111),
    ("compute_103a", 0b11_0110_1111),
    ("compute_120a", 0b11_0010_1111),
];

/// In rust-cuda's features, and in our own `cfg`.
fn know_the_architecture(architectures: &[(&str, u16)]) -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    let features = ["70", "75", "86", "90", "90a", "100", "100f", "100a"];
    let features = features.map(|name| format!("target_feature = \"compute_{name}\""));
    let least = ["80", "90"].map(|number| format!("cuda_arch_at_least = \"{number}\""));
    let bits = features.iter().chain(&least).zip(0..);
    let bits = bits.map(|(cfg, bit)| format!("cfg!({cfg}) as u32 as f32 * {}.0", 1 << bit));
    let sum = Vec::from_iter(bits).join(" + ");
    kernels.replace("kernels/src/lib.rs", "(n + 1) as f32", &format!("({sum})"))?;
    // And then the first once more.
    for (arch, bits) in architectures.iter().chain(&architectures[..1]) {
        assert_has(&kernels.ptx_with_lines(arch)?, &[&literal((*bits).into())]);
    }
    // Two crates: none has replaced another.
    assert_eq!(kernels.ir_times()?.len(), 2 * architectures.len());
    Ok(())
}

/// Kernels with a call in line 6 that a GPU has not: the place is the user's, also where the
/// function of Rust's libraries is not inlined.
fn what_rusts_libraries_do_not_offer_has_a_place_and_a_way_round() -> Result<(), Failed> {
    for (call, column, way_round) in [
        ("v.sort(); v[0]", 11, "`sort_unstable`"),
        (
            r#"write!(Text, "{}", v[0]).is_ok()"#,
            9,
            "`cuda_std::println!`",
        ),
        (r#"text.find("ab").is_some()"#, 14, "windows(n)"),
        ("text.trim().len()", 14, "`trim_ascii`"),
        ("text.parse::<f64>().is_ok()", 14, "on the host"),
        (
            "str::from_utf8(text.as_bytes()).is_ok()",
            9,
            "`from_utf8_unchecked`",
        ),
    ] {
        let kernels = Kernels::new()?;
        let source = format!(
            "#![allow(warnings)] extern crate alloc; use core::fmt::Write; struct Text;
impl Write for Text {{ fn write_str(&mut self, _: &str) -> core::fmt::Result {{ Ok(()) }} }}
#[unsafe(no_mangle)]
#[unsafe(link_section = \".nvvm.kernel\")]
pub unsafe fn kernel(v: &mut [u32], text: &str, out: *mut u32) {{ let value = {{
        {call}
    }}; unsafe {{ *out = value as u32 }};
}}
"
        );
        kernels.write("kernels/src/lib.rs", &format!("#![no_std] {source}"))?;
        let error = kernels.build_to_failure(&[])?;
        assert_has(&error, &[&format!("src/lib.rs:6:{column}"), way_round]);
    }
    Ok(())
}

/// A rustc that compiles as the installed one does, and says that it is another.
fn an_error_with_an_untested_rust_names_the_tested_one() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    let tested = env!("CARGO_PKG_RUST_VERSION");
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = -vV ]; then rustc -vV | sed 's/^release: .*/release: {tested}0.0/'\n\
         else exec rustc \"$@\"; fi\n"
    );
    kernels.write("rustc", &script)?;
    fs::set_permissions(kernels.path("rustc"), fs::Permissions::from_mode(0o755))?;
    let other = kernels.path("rustc").display().to_string();
    let used = format!("compiled by rustc {tested}0.0 (LLVM ");
    let parts = [&used, &format!("tested is Rust {tested} (LLVM 22)")];
    // It works,
    kernels.build(&[("RUSTC", &other)])?;
    // an error in the source is not its fault,
    let right = kernels.read("kernels/src/lib.rs")?;
    kernels.add(ERROR)?;
    assert_lacks(&kernels.build_to_failure(&[("RUSTC", &other)])?, &[&used]);
    // and one in the IR may be.
    kernels.write("kernels/src/lib.rs", &right)?;
    kernels.add(UNKNOWN_TO_NVVM)?;
    let text = kernels.build_to_failure(&[("RUSTC", &other)])?;
    assert_has(&text, &parts.map(String::as_str));
    assert_lacks(&kernels.build_to_failure(&[])?, &["compiled by rustc"]);
    Ok(())
}

/// Hosts whose own target is not installed here: the kernels are compiled for x86-64 Linux.
fn the_ptx_is_the_same_on_every_host() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    let here = kernels.ptx_for("compute_75")?;
    for host in ["aarch64-unknown-linux-gnu", "x86_64-pc-windows-msvc"] {
        fs::remove_file(kernels.path("out/kernels.compute_75.ptx"))?;
        kernels.build(&[("HOST", host)])?;
        assert_eq!(kernels.ptx()?, here, "{host}");
    }
    Ok(())
}

/// A kernel with an instruction of x86.
const UNKNOWN_TO_NVVM: &str = r#"#[cfg(cuda_device)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".nvvm.kernel")]
pub unsafe fn pause() { unsafe { core::arch::asm!("pause") } }"#;

/// 1500 sines, each of the one before, take it far longer than a second.
fn a_loop_that_takes_libnvvm_too_long_is_named() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    kernels.add(
        "
#[cfg(cuda_device)]
unsafe extern \"C\" {
    fn __nv_sin(x: f64) -> f64;
}
#[cfg(cuda_device)]
#[unsafe(no_mangle)]
#[unsafe(link_section = \".nvvm.kernel\")]
pub unsafe fn step(mut x: f64, out: *mut f64) {
    for _ in 0..1500 {
        x = unsafe { __nv_sin(x) };
    }
    unsafe { *out = x };
}",
    )?;
    let source = kernels.read("kernels/src/lib.rs")?;
    let line = source.lines().position(|line| line.contains("x = unsafe"));
    let variables = [("ARCH", "compute_90"), ("LIBNVVM_TIME_LIMIT", "1")];
    let said = kernels.build_to_failure(&variables)?;
    let place = format!(
        "instructions come from src/lib.rs:{}:",
        line.ok_or("no line")? + 1
    );
    assert_has(
        &said,
        &["had not compiled `step` for compute_90 after 1 s", &place],
    );
    Ok(())
}

fn setters_reach_libnvvm() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    assert_has(&kernels.ptx_for("compute_75")?, &["fma.rn.f32"]);
    let (ir, rustc_ir) = (
        "out/kernels.compute_75.ll",
        "out/kernels.compute_75.rustc.ll",
    );
    assert!(
        !kernels.path(ir).exists(),
        "IR is kept without `emit_llvm_ir`"
    );

    kernels.build(&[("FTZ", "1"), ("EMIT_IR", "1")])?;
    assert_has(&kernels.ptx()?, &["fma.rn.ftz.f32"]);
    assert_has(&kernels.read(ir)?, &["@scale("]);
    assert_has(&kernels.read(rustc_ir)?, &["@scale("]);
    Ok(())
}

fn a_cfg_reaches_dependencies_and_their_build_scripts() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    kernels.replace(
        "kernels/scaling/src/lib.rs",
        "BY[0] as f32",
        "if cfg!(chosen_by_script) { 3.0 } else { BY[0] as f32 }",
    )?;
    kernels.write(
        "kernels/scaling/build.rs",
        r#"fn main() {
    println!("cargo::rustc-check-cfg=cfg(chosen_by_script)");
    if std::env::var("CARGO_CFG_BACKEND").as_deref() == Ok("serial") {
        println!("cargo::rustc-cfg=chosen_by_script");
    }
}"#,
    )?;
    // `RUSTFLAGS` are for the host.
    let flags = "--cfg=backend=\"serial\"";
    for (variables, factor) in [
        (&[("RUSTFLAGS", flags)][..], 65.0),
        (&[("CFG", "backend=\"serial\"")], 3.0),
        (&[("CFG", "backend=\"other\"")], 65.0),
    ] {
        kernels.build(variables)?;
        assert_has(&kernels.ptx()?, &[&literal(factor)]);
    }
    Ok(())
}

/// The architectures whose dialects differ.
const DIALECTS: [&str; 2] = ["compute_75", "compute_100"];

/// The file of the first instruction that starts with `opcode`.
fn file_of(ptx: &str, opcode: &str) -> Result<String, Failed> {
    let (before, _) = ptx
        .split_once(&format!("\t{opcode}"))
        .ok_or("no such instruction")?;
    let (_, location) = before.rsplit_once(".loc").ok_or("no line before it")?;
    let number = location.split_whitespace().next().unwrap_or_default();
    let mut files = ptx
        .lines()
        .filter_map(|line| line.trim().strip_prefix(".file"));
    let file = files.find_map(|file| file.trim().strip_prefix(&format!("{number} ")));
    Ok(file.ok_or("no such file")?.to_owned())
}

fn line_tables_change_no_instruction() -> Result<(), Failed> {
    // Line tables need a later ISA than the code.
    fn instructions(ptx: &str) -> Vec<&str> {
        let lines = ptx.lines().map(str::trim);
        lines
            .filter(|line| !line.is_empty())
            .filter(|line| {
                ![".loc", ".version", "$L__tmp"]
                    .iter()
                    .any(|start| line.starts_with(start))
            })
            .collect()
    }
    let kernels = Kernels::new()?;
    for arch in DIALECTS {
        let plain = kernels.ptx_for(arch)?;
        assert_lacks(&plain, &[".loc"]);
        let ptx = kernels.ptx_with_lines(arch)?;
        let (code, _tables) = ptx.split_once("\t.file\t").ok_or("no table of files")?;
        assert_eq!(instructions(&plain), instructions(code));
    }
    Ok(())
}

fn line_tables_name_no_folder_of_this_machine() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    // A package of a registry is in cargo's folder.
    fs::create_dir_all(kernels.path("home/registry"))?;
    fs::rename(
        kernels.path("kernels/scaling"),
        kernels.path("home/registry/scaling"),
    )?;
    kernels.replace(
        "kernels/Cargo.toml",
        "path = \"scaling\"",
        "path = \"../home/registry/scaling\"",
    )?;
    kernels.replace("home/registry/scaling/src/lib.rs", "x * BY", "x / BY")?;
    let home = kernels.path("home").display().to_string();
    kernels.build(&[("LINES", "1"), ("CARGO_HOME", &home)])?;
    let ptx = kernels.ptx()?;
    let file = file_of(&ptx, "div.rn.f32")?;
    assert_eq!(file, "\"cargo/registry/scaling/src/lib.rs\"");
    for path in [kernels.path(""), env::temp_dir()] {
        assert_lacks(&ptx, &[&path.display().to_string()]);
    }
    Ok(())
}

fn cargo_watches_every_file_the_kernels_come_from_and_nothing_else() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    let instructions = kernels.build(&[])?;
    let crate_folder = kernels.path("kernels").canonicalize()?;
    let watched = instructions
        .lines()
        .filter_map(|line| line.strip_prefix("cargo::rerun-if-changed="));
    let mut own = Vec::new();
    for path in watched.map(Path::new) {
        // Cargo treats a missing file as changed every time.
        assert!(path.is_file(), "{path:?} is not a file");
        if let Ok(path) = path.strip_prefix(&crate_folder) {
            // `scaling/src/../factor.bin` is how rustc names the included file.
            own.push(path.display().to_string().replace("src/../", ""));
        }
    }
    own.sort();
    let expected = [
        "Cargo.lock",
        "Cargo.toml",
        "scaling/Cargo.toml",
        "scaling/factor.bin",
        "scaling/src/lib.rs",
        "src/lib.rs",
    ];
    assert_eq!(own, expected);
    assert_has(
        &instructions,
        &[
            "/libnvvm.so",
            "cargo::rerun-if-env-changed=LIBNVVM_PATH\n",
            "cargo::rerun-if-env-changed=CUDA_HOME\n",
            "cargo::rerun-if-env-changed=GEMM_NO_FETCH\n",
            "cargo::rerun-if-env-changed=SCALING_VARIABLE\n",
        ],
    );
    Ok(())
}

/// The source of the kernels.
const SOURCE: &str = "kernels/src/lib.rs";

/// What the next build makes of a change: whether it compiles the kernels, and whether their PTX is
/// another.
fn next_build(kernels: &Kernels, variables: &[(&str, &str)]) -> Result<[bool; 2], Failed> {
    let (times, ptx) = (kernels.ir_times()?, kernels.ptx()?);
    kernels.build(variables)?;
    Ok([kernels.ir_times()? != times, kernels.ptx()? != ptx])
}

fn each_build_compiles_what_has_changed_and_nothing_else() -> Result<(), Failed> {
    let kernels = Kernels::compiled()?;
    let built = |variables| next_build(&kernels, variables);
    let change = |from, to, time| {
        kernels.replace(SOURCE, from, to)?;
        kernels.set_time(SOURCE, time)
    };
    let (nothing, both) = ([false; 2], [true; 2]);
    for file in FILES {
        kernels.set_time(file, SystemTime::now())?;
        assert_eq!(built(&[])?, nothing, "{file}");
    }
    // A change that was undone, though the kernels did not compile in between.
    kernels.replace(SOURCE, "*y = scaling", "*y = \"a\"; scaling")?;
    kernels.build_to_failure(&[])?;
    kernels.replace(SOURCE, "*y = \"a\"; scaling", "*y = scaling")?;
    assert_eq!(built(&[])?, nothing);
    // A text that is as long as the old one.
    change("(n + 1)", "(n + 2)", SystemTime::now())?;
    assert_eq!(built(&[])?, both);
    // Cargo goes by times, so it takes an older file for the one that it has compiled. When it gets
    // a new time, cargo compiles it.
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    change("(n + 2)", "(n + 3)", long_ago)?;
    assert_eq!(built(&[])?, nothing, "cargo goes by contents now");
    kernels.set_time(SOURCE, SystemTime::now())?;
    assert_eq!(built(&[])?, both);
    // An output that is damaged, or lost.
    let (ptx, path) = (kernels.ptx()?, "out/kernels.compute_75.ptx");
    kernels.write(path, "// damaged")?;
    kernels.build(&[])?;
    assert_eq!(kernels.ptx()?, ptx);
    fs::remove_file(kernels.path(path))?;
    kernels.build(&[])?;
    assert_eq!(kernels.ptx()?, ptx);
    // A variable that the kernels read, and a setting of the builder.
    let [compiled, _] = built(&[("SCALING_VARIABLE", "1")])?;
    assert!(compiled);
    kernels.build(&[("FTZ", "1")])?;
    assert_has(&kernels.ptx()?, &["fma.rn.ftz.f32"]);
    // The time of a file that changes while it is compiled is not older than the build. So which
    // text was compiled is not known, and the same text later shows nothing.
    let soon = SystemTime::now() + Duration::from_secs(3600);
    change("(n + 3)", "(n + 4)", soon)?;
    kernels.build(&[])?;
    kernels.set_time(SOURCE, soon + Duration::from_secs(1))?;
    let [compiled, _] = built(&[])?;
    assert!(compiled);
    Ok(())
}

fn warnings_are_shown_by_every_build() -> Result<(), Failed> {
    let kernels = Kernels::compiled()?;
    kernels.add("fn nobody_calls_this() {}")?;
    for _ in 0..3 {
        kernels.set_time("kernels/src/lib.rs", SystemTime::now())?;
        let output = kernels.build_script(&[])?.output()?;
        assert_has(&text_of(&output), &["`nobody_calls_this` is never used"]);
    }
    Ok(())
}

fn a_changed_kernel_replaces_the_old_one() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    kernels.build(&[])?;
    kernels.replace("kernels/src/lib.rs", "fn scale(", "fn scale_anew(")?;
    // A change of the version changes the names of the files that cargo makes; the old ones stay.
    kernels.replace("kernels/Cargo.toml", "0.1.0", "0.2.0")?;
    kernels.build(&[])?;
    assert_eq!(kernels.ir_times()?.len(), 3, "no stale IR to be taken in");
    assert_has(&kernels.ptx()?, &[".entry scale_anew("]);
    assert_lacks(&kernels.ptx()?, &[".entry scale("]);
    Ok(())
}

/// Three kernels with loops, memory of their blocks, functions of libdevice, and functions of
/// `core` and of their own that are inlined into several of them.
const APART: &str = r#"
unsafe fn sum_of(x: &[f32], by: usize) -> f32 {
    let mut sum = 0.0;
    for element in x.iter().copied().skip(by) {
        sum = element.mul_add(sum, 0.5);
    }
    sum
}

#[kernel]
pub unsafe fn first(x: &[f32], y: *mut f32) {
    let tile = cuda_std::shared_array![f32; 32];
    let thread = thread::thread_idx_x() as usize;
    *tile.add(thread) = sum_of(x, thread);
    thread::sync_threads();
    *y.add(thread) = *tile.add(31 - thread);
}

#[kernel]
pub unsafe fn second(x: &[f64], y: *mut f64) {
    let all = cuda_std::shared::dynamic_shared_mem::<f64>();
    let thread = thread::thread_idx_x() as usize;
    for element in x {
        *all.add(thread) = element.exp();
        thread::sync_threads();
        *y.add(thread) += *all.add(thread ^ 1) / 3.0;
    }
}

#[kernel]
pub unsafe fn third(x: &[f32], y: *mut f32) {
    let tile = cuda_std::shared_array![f32; 16];
    let all = cuda_std::shared::dynamic_shared_mem::<f32>();
    for index in 0..x.len() / 2 {
        *tile.add(index) = sum_of(x, index).sqrt();
        thread::sync_threads();
        *y = *tile + *all;
    }
}
"#;

/// Builds a crate with a name of its own, and tells whether each kernel was compiled for itself.
/// The PTX is that of the whole module in any case.
fn is_compiled_apart(source: &str, name: &str, arch: &str, lines: bool) -> Result<bool, Failed> {
    let kernels = with_cuda_std(&format!("use cuda_std::GpuFloat;\n{source}"))?;
    let folder = kernels.path(name);
    fs::rename(kernels.path("kernels"), &folder)?;
    let folder = folder.display().to_string();
    let mut variables = vec![("ARCH", arch), ("EMIT_IR", "1")];
    variables.push((PLAYS_BUILD_SCRIPT, &folder));
    variables.extend(lines.then_some(("LINES", "1")));
    kernels.build(&variables)?;
    let ir = kernels.read(&format!("out/{name}.{arch}.ll"))?;

    let toolkit = nvvm::Toolkit::find_or_fetch()?;
    // SAFETY: what was found is a libNVVM.
    let compiler = unsafe { nvvm::Compiler::load(&toolkit)? };
    let libdevice = fs::read(toolkit.libdevice.ok_or("no libdevice")?)?;
    let mut modules = vec![("kernels", ir.as_bytes())];
    if ir.contains("@__nv_") {
        modules.push(("libdevice", &libdevice));
    }
    let mut options = vec!["-opt=3"];
    options.extend(lines.then_some("-generate-line-info"));
    let raw = compiler.compile(&modules, arch.parse()?, &options)?;
    let whole = nvvm::ptx_version::lower(device_codegen::avoid_ptxas_errors(&raw));
    // Not `assert_eq`, as it would print both.
    let ptx = kernels.read(&format!("out/{name}.{arch}.ptx"))?;
    let mut lines = whole.lines().zip(ptx.lines());
    assert_eq!(lines.find(|(one, other)| one != other), None);
    assert_eq!(whole.len(), ptx.len());

    let kept = TARGET.get().ok_or("no target")?.join("cuda_builder/ptx");
    let is_whole = |file: &fs::DirEntry| fs::read_to_string(file.path()).is_ok_and(|it| it == raw);
    let together = fs::read_dir(kept)?.flatten().any(|file| is_whole(&file));
    Ok(!together)
}

fn kernels_are_compiled_apart_if_they_share_nothing_and_together_otherwise() -> Result<(), Failed> {
    are_compiled_apart(2)
}

fn kernels_of_every_kind_are_compiled_apart_or_together() -> Result<(), Failed> {
    are_compiled_apart(usize::MAX)
}

/// The first `cases` are right.
fn are_compiled_apart(cases: usize) -> Result<(), Failed> {
    let function = APART.replace("unsafe fn sum_of", "#[inline(never)]\nunsafe fn sum_of");
    let own = "let tile = cuda_std::shared_array![f32; 16];";
    let arrays = format!("{own}\n*cuda_std::shared_array![f32; 8].add(x.len()) = 1.0;");
    let arrays = APART.replace(own, &arrays);
    let table = "static TABLE: [f32; 5] = [1.0, 2.0, 4.0, 8.0, 9.0];\n";
    let from_table = "let mut sum = *TABLE.as_ptr().add(by % 5)";
    let variable = table.to_owned() + &APART.replace("let mut sum = 0.0", from_table);
    let all = [
        (APART, "apart", "compute_90", true, true),
        (&function, "function", "compute_75", true, false),
        (APART, "apart", "compute_75", false, true),
        (APART, "apart", "compute_100", true, true),
        (&arrays, "arrays", "compute_90", true, true),
        (&arrays, "arrays", "compute_100", true, false),
        (&variable, "variable", "compute_75", true, false),
    ];
    for (source, name, arch, lines, expected) in all.into_iter().take(cases) {
        let is_apart = is_compiled_apart(source, name, arch, lines)?;
        assert_eq!(is_apart, expected, "{name} {arch} {lines}");
    }
    Ok(())
}

/// Files of kernels have what each reaches: functions, also by pointers in constants, and copies of
/// what several use; but all kernels, if they share memory that they can write.
fn a_kernels_file_has_what_it_reaches() -> Result<(), Failed> {
    const SHARED: &str = r#"
#[inline(never)]
fn twice(x: u32) -> u32 { x.wrapping_mul(2) }

#[inline(never)]
fn half(x: u32) -> u32 { twice(x) / 4 }

static TABLE: [fn(u32) -> u32; 2] = [twice, half];
static COUNT: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(0);

#[kernel]
pub unsafe fn by_table(y: *mut u32) { *y = TABLE[(*y & 1) as usize](*y); }

#[kernel]
pub unsafe fn doubled(y: *mut u32) { *y = twice(*y); }

#[kernel]
pub unsafe fn alone(y: *mut u32) { *y = 1; }
"#;
    let kernels = with_cuda_std(SHARED)?;
    kernels.build(&[("APART", "1")])?;
    let count = |name: &str, text: &str| -> Result<usize, Failed> {
        Ok(kernels
            .read(&format!("out/apart/{name}.ptx"))?
            .matches(text)
            .count())
    };
    for (name, reaches) in [
        ("by_table", [true, true, true]),
        ("doubled", [true, false, false]),
        ("alone", [false, false, false]),
    ] {
        assert_eq!(count(name, ".entry ")?, 1, "{name}");
        for (text, is_reached) in ["5twice", "4half", ".global "].into_iter().zip(reaches) {
            assert_eq!(count(name, text)? > 0, is_reached, "{text} in {name}");
        }
    }
    kernels.add(
        "#[kernel]\npub unsafe fn counted(y: *mut u32) {\n    \
         *y = COUNT.fetch_add(1, core::sync::atomic::Ordering::Relaxed);\n}\n",
    )?;
    kernels.build(&[("APART", "1")])?;
    for name in ["by_table", "doubled", "alone", "counted"] {
        assert_eq!(count(name, ".entry ")?, 4, "{name}");
    }
    Ok(())
}

fn only_the_changed_kernel_is_compiled() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    kernels.add(
        "#[cfg(cuda_device)]\n#[unsafe(no_mangle)]\n#[unsafe(link_section = \".nvvm.kernel\")]\n\
         pub unsafe fn other(y: *mut f32) { unsafe { *y = 1.0 } }",
    )?;
    kernels.build(&[])?;
    // The kernels as the last build left them, of which these shall be known again.
    for file in fs::read_dir(kernels.path("out/cuda_builder/ptx"))? {
        let path = file?.path();
        fs::write(
            &path,
            fs::read_to_string(&path)?.replace("\tret;", "\texit"),
        )?;
    }
    kernels.replace("kernels/src/lib.rs", "(n + 1)", "(n + 2)")?;
    kernels.build(&[])?;
    let ptx = kernels.ptx()?;
    let (other, scale) = ptx.split_once("entry scale(").ok_or("no kernel `scale`")?;
    assert_has(other, &["entry other(", "\texit"]);
    assert_has(scale, &["\tret;"]);
    Ok(())
}

fn a_crate_without_kernels_is_an_error() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    kernels.write("kernels/src/lib.rs", "#![no_std]\npub fn f() {}\n")?;
    let text = kernels.build_to_failure(&[])?;
    assert_has(&text, &["kernels has no kernels; mark a function"]);
    Ok(())
}

fn a_type_error_is_shown_exactly_once() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    kernels.replace("kernels/src/lib.rs", "*y = scaling", "*y = \"a\"; scaling")?;
    let text = kernels.build_to_failure(&[])?;
    assert_eq!(text.matches("error").count(), 1, "noise: {text}");
    let parts = [
        "error[E0308]: mismatched types",
        "--> src/lib.rs:9:23",
        "Error: The kernels do not compile for the GPU:\n",
    ];
    assert_has(&text, &parts);
    // Colours, where there is no terminal.
    assert_lacks(&text, &["\x1b["]);
    Ok(())
}

fn a_broken_manifest_is_shown_in_cargos_words() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    kernels.replace("kernels/Cargo.toml", "\"scaling\"", "\"nowhere\"")?;
    let text = kernels.build_to_failure(&[("CARGO_TERM_COLOR", "always")])?;
    assert_has(
        &text,
        &["Cargo could not build the kernels", "nowhere/Cargo.toml"],
    );
    assert_lacks(&text, &["\x1b["]);
    Ok(())
}

fn builds_at_the_same_time_give_identical_bytes() -> Result<(), Failed> {
    // Both in one `OUT_DIR`, and one in its own.
    let kernels = Kernels::new()?;
    let elsewhere = Kernels::new()?;
    let mut running = Vec::new();
    for kernels in [&kernels, &kernels, &elsewhere] {
        let mut script = kernels.build_script(&[])?;
        script.stdout(Stdio::piped()).stderr(Stdio::piped());
        running.push(script.spawn()?);
    }
    for script in running {
        let output = script.wait_with_output()?;
        assert!(output.status.success(), "{}", text_of(&output));
    }
    assert_eq!(kernels.ptx()?, elsewhere.ptx()?);
    Ok(())
}

fn nothing_of_the_outer_build_leaks_in() -> Result<(), Failed> {
    let plain = Kernels::new()?;
    plain.build(&[])?;
    let kernels = Kernels::new()?;
    let locked = kernels.path("locked").display().to_string();
    // As under clippy, with a caching wrapper, flags for the host, another target and other
    // folders.
    kernels.build(&[
        ("RUSTC_WORKSPACE_WRAPPER", "/no/such/clippy-driver"),
        ("RUSTC_WRAPPER", "/no/such/sccache"),
        ("RUSTFLAGS", "--no-such-flag"),
        ("CARGO_ENCODED_RUSTFLAGS", "--no-such-flag"),
        ("CARGO_BUILD_TARGET", "no-such-target"),
        ("CARGO_BUILD_BUILD_DIR", &locked),
        ("CARGO_TARGET_DIR", &locked),
        ("CARGO_TERM_COLOR", "always"),
        ("CARGO_TERM_VERBOSE", "false"),
        ("CARGO_PROFILE_DEV_OPT_LEVEL", "no-such-level"),
        ("OPT_LEVEL", "0"),
        ("DEBUG", "true"),
        ("PROFILE", "debug"),
    ])?;
    assert_eq!(kernels.ptx()?, plain.ptx()?);
    assert!(
        !Path::new(&locked).exists(),
        "the outer build's folder was used"
    );

    Ok(())
}

fn the_profile_of_the_kernels_workspace_does_not_matter() -> Result<(), Failed> {
    let plain = Kernels::new()?;
    plain.build(&[])?;
    let kernels = Kernels::new()?;
    let profile = "\n[profile.dev]\nopt-level = 0\nlto = \"fat\"\ndebug = 2\ncodegen-units = 16\n\
                   incremental = true\noverflow-checks = true\ndebug-assertions = false\n[profile.dev.package.scaling]\ndebug = 1\n";
    kernels.write("kernels/Cargo.toml", &format!("{MANIFEST}{profile}"))?;
    kernels.build(&[])?;
    assert_eq!(kernels.ptx()?, plain.ptx()?);
    Ok(())
}

const NO_LIBNVVM: (&str, &str) = ("LIBNVVM_PATH", "/no/such/folder");

fn a_missing_libnvvm_is_an_error() -> Result<(), Failed> {
    let text = Kernels::new()?.build_to_failure(&[NO_LIBNVVM])?;
    assert_has(
        &text,
        &["Error: LIBNVVM_PATH is set to /no/such/folder, but"],
    );
    Ok(())
}

fn a_missing_libnvvm_that_is_optional_makes_an_empty_file_and_says_why() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    let instructions = kernels.build(&[NO_LIBNVVM, ("OPTIONAL", "1")])?;
    assert_eq!(kernels.ptx()?, "");
    let reason = "The kernels were not compiled for the GPU; every build tries again, and GEMM_NO_FETCH=1 keeps it \
                  from fetching. LIBNVVM_PATH is set to /no/such/folder, but ";
    for instruction in ["warning=", "rustc-env=CUDA_BUILDER_NO_PTX="] {
        let line = format!("cargo::{instruction}{reason}");
        assert_eq!(instructions.matches(&line).count(), 1, "{instructions}");
    }
    // The kernels are not compiled for nothing.
    assert!(!kernels.path("out/cuda_builder").exists());
    Ok(())
}

fn ptx_that_is_not_wanted_makes_an_empty_file_without_a_warning() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    let instructions = kernels.build(&[("GEMM_PTX", "none"), ("OPTIONAL", "1")])?;
    assert_eq!(kernels.ptx()?, "");
    let reason = "cargo::rustc-env=CUDA_BUILDER_NO_PTX=GEMM_PTX is none; unset it to have PTX.";
    assert_has(&instructions, &[reason]);
    assert!(!instructions.contains("warning="), "{instructions}");
    assert!(!kernels.path("out/cuda_builder").exists());
    Ok(())
}

fn a_folder_without_a_crate_is_an_error() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    fs::remove_file(kernels.path("kernels/Cargo.toml"))?;
    assert_has(&kernels.build_to_failure(&[])?, &["has no Cargo.toml"]);
    Ok(())
}

/// A package that embeds the PTX of the kernels, which its build script compiles.
struct Outer<'a> {
    kernels: &'a Kernels,
}

impl<'a> Outer<'a> {
    fn new(kernels: &'a Kernels) -> Result<Self, Failed> {
        let manifest =
            "[package]\nname = \"outer\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
        let build_script = format!(
            r#"
use std::process::{{Command, exit}};
fn main() {{
    let status = Command::new({program:?}).env({PLAYS_BUILD_SCRIPT:?}, "../kernels").status();
    exit(status.unwrap().code().unwrap());
}}
"#,
            program = env::current_exe()?
        );
        let library = r#"
pub const PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/kernels.compute_75.ptx"));
pub const NO_PTX: Option<&str> = option_env!("CUDA_BUILDER_NO_PTX");
"#;
        kernels.write("outer/Cargo.toml", manifest)?;
        kernels.write("outer/build.rs", &build_script)?;
        kernels.write("outer/src/lib.rs", library)?;
        Ok(Outer { kernels })
    }

    /// What `cargo build` writes.
    fn build(&self, variables: &[(&str, &str)]) -> Result<String, Failed> {
        let output = Command::new(env!("CARGO"))
            .current_dir(self.kernels.path("outer"))
            .args(["build", "--offline"])
            .env("CARGO_TARGET_DIR", self.kernels.path("outer/target"))
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .output()?;
        assert!(output.status.success(), "{}", text_of(&output));
        Ok(text_of(&output))
    }

    /// The PTX, if its file exists.
    fn ptx(&self) -> Result<Option<String>, Failed> {
        for entry in fs::read_dir(self.kernels.path("outer/target/debug/build"))? {
            let path = entry?.path().join("out/kernels.compute_75.ptx");
            if path.is_file() {
                return Ok(Some(fs::read_to_string(path)?));
            }
        }
        Ok(None)
    }
}

const ERROR: &str = "const WRONG: u32 = \"a\";";

fn an_unstable_f16_is_an_error_that_names_the_feature_half() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    kernels.add("pub fn same(x: f16) -> f16 { x }")?;
    let text = kernels.build_to_failure(&[])?;
    assert_eq!(text.matches("its feature `half`").count(), 1, "{text}");
    Ok(())
}

fn every_build_looks_for_a_missing_libnvvm_again() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    // Writes the Cargo.lock, a new one of which would be a reason of its own to build again.
    kernels.build(&[])?;
    let outer = Outer::new(&kernels)?;
    let later = kernels.path("libnvvm.so").display().to_string();
    let variables = [("LIBNVVM_PATH", &*later), ("OPTIONAL", "1")];
    for _ in 0..2 {
        assert_has(&outer.build(&variables)?, &["Compiling outer"]);
        assert_eq!(outer.ptx()?, Some(String::new()));
    }
    let libnvvm = nvvm::Toolkit::find_or_fetch()?.libnvvm;
    std::os::unix::fs::symlink(libnvvm, &later)?;
    outer.build(&variables)?;
    assert_has(&outer.ptx()?.unwrap_or_default(), &[".entry scale("]);
    // And then no more.
    assert_lacks(&outer.build(&variables)?, &["Compiling"]);
    Ok(())
}
