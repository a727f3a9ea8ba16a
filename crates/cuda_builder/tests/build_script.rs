//! Complete builds: a crate of kernels in a temporary folder, compiled as from a build script.
//!
//! A build script is this very program, started again under the environment that cargo gives one,
//! by the test or by the build script of a real package. If libNVVM is not available, the tests
//! that need it are reported as ignored, by name.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Output, Stdio},
    time::SystemTime,
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
    // As `fn main() -> Result<..>` does.
    match builder.build() {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error:?}");
            ExitCode::FAILURE
        }
    }
}

type Test = fn() -> Result<(), Failed>;

macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        [$((stringify!($name), $name as Test)),*]
    };
}

fn run_tests() -> ExitCode {
    let arguments = Arguments::from_args();
    let missing = nvvm::Toolkit::find_or_fetch().err();
    if let Some(error) = &missing {
        eprintln!("The tests that need libNVVM are ignored. {error}");
    }
    let with_libnvvm = tests![
        a_kernel_becomes_ptx_for_every_dialect,
        a_kernel_that_uses_cuda_std_becomes_ptx,
        a_barrier_between_setting_and_testing_a_flag_stands_once,
        a_copied_call_of_a_function_with_a_barrier_is_an_error,
        setters_reach_libnvvm,
        line_tables_name_lines_of_rust_and_calls_that_were_inlined,
        line_tables_change_no_instruction,
        line_tables_name_no_folder_of_this_machine,
        cargo_watches_every_file_the_kernels_come_from_and_nothing_else,
        device_code_knows_the_architecture_it_is_compiled_for,
        device_code_knows_the_features_of_rust_cuda,
        x86_code_of_a_dependency_is_an_error_that_names_it,
        unchanged_kernels_are_not_compiled_again,
        a_changed_kernel_replaces_the_old_one,
        a_crate_without_kernels_is_an_error,
        a_type_error_is_shown_exactly_once,
        a_broken_manifest_is_shown_in_cargos_words,
        builds_at_the_same_time_give_identical_bytes,
        nothing_of_the_outer_build_leaks_in,
        the_profile_of_the_kernels_workspace_does_not_matter,
        an_error_that_shows_natively_too_is_shown_once,
        an_error_that_is_left_to_the_outer_cargo_leaves_no_old_ptx,
        an_error_of_the_device_build_alone_is_shown_once,
        among_errors_of_both_builds_only_those_of_the_device_are_shown,
        an_error_that_shows_nowhere_else_is_shown_once,
        every_build_looks_for_a_missing_libnvvm_again,
    ];
    let without_libnvvm = tests![
        a_missing_libnvvm_is_an_error,
        a_missing_libnvvm_that_is_optional_makes_an_empty_file_and_says_why,
        a_folder_without_a_crate_is_an_error,
    ];
    let trials = with_libnvvm
        .into_iter()
        .map(|(name, test)| Trial::test(name, test).with_ignored_flag(missing.is_some()))
        .chain(
            without_libnvvm
                .into_iter()
                .map(|(name, test)| Trial::test(name, test)),
        )
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
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

    fn write(&self, path: &str, text: &str) -> Result<(), Failed> {
        let path = self.path(path);
        fs::create_dir_all(path.parent().ok_or("a file lies in a folder")?)?;
        Ok(fs::write(path, text)?)
    }

    fn replace(&self, path: &str, from: &str, to: &str) -> Result<(), Failed> {
        let text = fs::read_to_string(self.path(path))?;
        assert!(text.contains(from), "there is no `{from}` in {path}");
        self.write(path, &text.replace(from, to))
    }

    /// A build script that compiles the crate, to be run.
    fn build_script(&self) -> Result<Command, Failed> {
        let out_dir = self.path("out");
        fs::create_dir_all(&out_dir)?;
        let mut command = Command::new(env::current_exe()?);
        command
            .env(PLAYS_BUILD_SCRIPT, self.path("kernels"))
            .env("OUT_DIR", out_dir)
            .env("HOST", host()?)
            .env("TARGET", host()?)
            .env("CARGO", env!("CARGO"))
            .env("CARGO_PKG_NAME", "outer")
            .stdin(Stdio::null());
        Ok(command)
    }

    fn build(&self) -> Result<String, Failed> {
        run_to_success(&mut self.build_script()?)
    }

    fn ptx(&self) -> Result<String, Failed> {
        Ok(fs::read_to_string(self.path("out/kernels.compute_75.ptx"))?)
    }

    /// When each file of LLVM IR was written.
    fn ir_times(&self) -> Result<Vec<(PathBuf, SystemTime)>, Failed> {
        let folder = self
            .path("out/cuda_builder")
            .join(host()?)
            .join("debug/deps");
        let mut times = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "ll") {
                let time = path.metadata()?.modified()?;
                times.push((path, time));
            }
        }
        times.sort();
        Ok(times)
    }
}

fn host() -> Result<String, Failed> {
    let output = Command::new("rustc").arg("-vV").output()?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("rustc names no host")?.to_owned())
}

/// Runs a build script that succeeds, and returns what it tells cargo.
fn run_to_success(script: &mut Command) -> Result<String, Failed> {
    let output = script.output()?;
    if !output.status.success() {
        return Err(text_of(&output).into());
    }
    let stdout = String::from_utf8(output.stdout)?;
    for line in stdout.lines() {
        assert!(line.starts_with("cargo::"), "no instruction: {line}");
    }
    Ok(stdout)
}

/// Runs a build script that fails, and returns what it writes: an error, and no instructions
/// among it.
fn run_to_failure(script: &mut Command) -> Result<String, Failed> {
    let output = script.output()?;
    assert_eq!(output.status.code(), Some(1), "{}", text_of(&output));
    assert!(output.stdout.is_empty(), "noise: {}", text_of(&output));
    Ok(text_of(&output))
}

fn text_of(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

fn a_kernel_becomes_ptx_for_every_dialect() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    // The version is the lowest for the target.
    for (arch, head) in [
        ("compute_75", ".version 6.3\n.target sm_75\n"),
        ("compute_90a", ".version 8.0\n.target sm_90a\n"),
        ("compute_100", ".version 8.6\n.target sm_100\n"),
    ] {
        run_to_success(kernels.build_script()?.env("ARCH", arch))?;
        let ptx = fs::read_to_string(kernels.path(&format!("out/kernels.{arch}.ptx")))?;
        assert!(ptx.contains(head), "{ptx}");
        assert!(ptx.contains(".visible .entry scale("), "{ptx}");
        // 65, which the other crate has included, as an f32.
        assert!(ptx.contains("0f42820000"), "{ptx}");
    }
    Ok(())
}

/// A crate that depends on this workspace's `cuda_std`, with these kernels.
fn with_cuda_std(source: &str) -> Result<Kernels, Failed> {
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
cuda_std = "0.2"
[patch.crates-io]
cuda_std = {{ path = "{crates}/cuda_std" }}
cuda_std_macros = {{ path = "{crates}/cuda_std_macros" }}
[workspace]
"#,
        crates = crates.display()
    );
    kernels.write("kernels/Cargo.toml", &manifest)?;
    let prelude = "#![cfg_attr(cuda_device, no_std)]\nuse cuda_std::prelude::*;\n";
    kernels.write("kernels/src/lib.rs", &format!("{prelude}{source}"))?;
    // The versions that this workspace uses: they are on this machine.
    fs::copy(
        crates.join("../Cargo.lock"),
        kernels.path("kernels/Cargo.lock"),
    )?;
    Ok(kernels)
}

fn a_kernel_that_uses_cuda_std_becomes_ptx() -> Result<(), Failed> {
    let kernels = with_cuda_std(
        "#[kernel]
pub unsafe fn fill(y: *mut f32, value: f32) {
    unsafe { *y.add(thread::index_1d() as usize) = value };
}
",
    )?;
    kernels.build()?;
    let ptx = kernels.ptx()?;
    assert!(ptx.contains(".visible .entry fill("), "{ptx}");
    assert!(ptx.contains("%tid.x") && ptx.contains("%ctaid.x"), "{ptx}");
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

/// rustc's jump threading sees a flag in a local variable; only LLVM's `simplifycfg` sees one in
/// memory.
const TESTS: [(&str, &str); 2] = [
    ("local", "flag"),
    ("memory", "(*(&raw mut memory))[1] == 1"),
];

fn a_barrier_between_setting_and_testing_a_flag_stands_once() -> Result<(), Failed> {
    let together = [
        ("barrier", "thread::sync_threads()", "bar.sync"),
        (
            "count",
            "*y = thread::sync_threads_count(1) as f32",
            "bar.red",
        ),
        (
            "shuffle",
            "*y = cuda_std::warp::warp_shuffle_xor(!0, *y, 1, 32).0",
            "shfl.sync",
        ),
        (
            "vote",
            "*y = cuda_std::warp::warp_vote_ballot(!0, *y > 1.0) as f32",
            "vote.sync",
        ),
        (
            "assembly",
            "core::arch::asm!(\"barrier.sync 5;\", options(nostack))",
            "barrier.sync",
        ),
        ("inlined", "synchronised(y)", "bar.sync"),
    ];
    let mut source =
        "#[inline(always)]\nfn synchronised(y: *mut f32) { unsafe { *y += 1.0 }; thread::sync_threads() }\n"
            .to_owned();
    for (name, call, _) in together {
        for (place, test) in TESTS {
            let kernel = FLAG.replace("NAME", &format!("{name}_{place}"));
            source += &kernel.replace("TOGETHER", call).replace("TESTED", test);
        }
    }
    let kernels = with_cuda_std(&source)?;
    for arch in DIALECTS {
        let ptx = ptx_for(&kernels, arch, false)?;
        for (name, _, instruction) in together {
            for (place, _) in TESTS {
                let entry = format!(".entry {name}_{place}(");
                let (_, text) = ptx.split_once(&entry).ok_or("the kernel is missing")?;
                let text = text.split(".entry").next().unwrap_or_default();
                let count = text.matches(instruction).count();
                assert_eq!(count, 1, "{arch}: {name}_{place}: {text}");
            }
        }
    }
    Ok(())
}

/// The call of a function that rustc does not inline before its jump threading is still copied.
fn a_copied_call_of_a_function_with_a_barrier_is_an_error() -> Result<(), Failed> {
    let kernel = FLAG.replace("NAME", "k").replace("TESTED", "flag");
    let kernel = kernel.replace("TOGETHER", "synchronised(y)");
    let function =
        "fn synchronised(y: *mut f32) { unsafe { *y += 1.0 }; thread::sync_threads() }\n";
    let kernels = with_cuda_std(&format!("#[inline(never)]\n{function}{kernel}"))?;
    let text = run_to_failure(&mut kernels.build_script()?)?;
    for part in [
        "in function `k`",
        "the call of `kernels::synchronised`",
        "copied into two branches",
        "src/lib.rs:17:9",
        "core::arch::asm!",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let cure = "core::arch::asm!(\"\", options(nomem, nostack, preserves_flags))";
    let from = "synchronised(y);\n";
    kernels.replace("kernels/src/lib.rs", from, &format!("{from}{cure};\n"))?;
    kernels.build()?;
    Ok(())
}

fn device_code_knows_the_architecture_it_is_compiled_for() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    kernels.replace(
        "kernels/src/lib.rs",
        "(n + 1) as f32",
        "if cfg!(cuda_arch_at_least = \"90\") { 90.0 } else if cfg!(cuda_arch_at_least = \"80\") { 80.0 } else { 75.0 }",
    )?;
    for (arch, number) in [
        ("compute_75", 75_f32),
        ("compute_80", 80.0),
        ("compute_89", 80.0),
        ("compute_90", 90.0),
        ("compute_90a", 90.0),
        ("compute_100", 90.0),
        ("compute_75", 75.0),
    ] {
        let mut script = kernels.build_script()?;
        run_to_success(script.env("ARCH", arch).env("LINES", "1"))?;
        let ptx = fs::read_to_string(kernels.path(&format!("out/kernels.{arch}.ptx")))?;
        let bits = format!("0f{:08X}", number.to_bits());
        assert!(ptx.contains(&bits), "{arch} has no {number}: {ptx}");
    }
    // Two crates, six architectures: none has replaced another.
    assert_eq!(kernels.ir_times()?.len(), 12);
    Ok(())
}

fn device_code_knows_the_features_of_rust_cuda() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    let names = ["70", "75", "86", "90", "90a", "100"];
    let sum = names.iter().zip(0..).map(|(name, bit)| {
        format!(
            "if cfg!(target_feature = \"compute_{name}\") {{ {}.0 }} else {{ 0.0 }}",
            1 << bit
        )
    });
    let sum: Vec<String> = sum.map(|term| format!("({term})")).collect();
    kernels.replace(
        "kernels/src/lib.rs",
        "(n + 1) as f32",
        &format!("({})", sum.join(" + ")),
    )?;
    for (arch, features) in [
        ("compute_75", 0b00_0011_u8),
        ("compute_89", 0b00_0111),
        ("compute_90", 0b00_1111),
        ("compute_90a", 0b01_1111),
        ("compute_100", 0b10_1111),
    ] {
        let ptx = ptx_for(&kernels, arch, false)?;
        let bits = format!("0f{:08X}", f32::from(features).to_bits());
        assert!(ptx.contains(&bits), "{arch} has no {features:#b}: {ptx}");
    }
    Ok(())
}

fn x86_code_of_a_dependency_is_an_error_that_names_it() -> Result<(), Failed> {
    for (code, what) in [
        (
            "core::arch::asm!(\"sqrtss {0}, {0}\", inout(xmm_reg) x => _)",
            "`sqrtss",
        ),
        ("x = core::arch::x86_64::__cpuid(0).eax as f32", "`mov"),
        (
            "x = core::arch::x86_64::_mm_cvtss_f32(core::arch::x86_64::_mm_rcp_ss(core::arch::x86_64::_mm_set_ss(x)))",
            "`llvm.x86.sse.rcp.ss`",
        ),
    ] {
        let kernels = Kernels::new()?;
        let scaled =
            format!("let mut x = x;\n    #[allow(unused_unsafe)] unsafe {{ {code} }};\n    x *");
        kernels.replace("kernels/scaling/src/lib.rs", "x *", &scaled)?;
        let text = run_to_failure(&mut kernels.build_script()?)?;
        for part in [what, "`scaling::scaled`", "scaling/src/lib.rs:", "x86"] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
    }
    Ok(())
}

fn setters_reach_libnvvm() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    kernels.build()?;
    assert!(kernels.ptx()?.contains("fma.rn.f32"), "{}", kernels.ptx()?);
    let ir = kernels.path("out/kernels.compute_75.ll");
    assert!(!ir.exists(), "IR is kept that nobody asked for");

    run_to_success(kernels.build_script()?.env("FTZ", "1").env("EMIT_IR", "1"))?;
    assert!(
        kernels.ptx()?.contains("fma.rn.ftz.f32"),
        "{}",
        kernels.ptx()?
    );
    let ir = fs::read_to_string(ir)?;
    assert!(ir.contains("@scale("), "{ir}");
    Ok(())
}

/// The architectures whose dialects differ.
const DIALECTS: [&str; 2] = ["compute_75", "compute_100"];

/// The PTX of the kernels, with line tables or without.
fn ptx_for(kernels: &Kernels, arch: &str, lines: bool) -> Result<String, Failed> {
    let mut script = kernels.build_script()?;
    script.env("ARCH", arch);
    if lines {
        script.env("LINES", "1");
    }
    run_to_success(&mut script)?;
    Ok(fs::read_to_string(
        kernels.path(&format!("out/kernels.{arch}.ptx")),
    )?)
}

/// `file:line` of the first instruction that starts with `opcode`, and that of the call it was
/// inlined through.
fn place_of(ptx: &str, opcode: &str) -> Result<(String, Option<String>), Failed> {
    let file = |number: &str| {
        ptx.lines()
            .filter_map(|line| line.trim().strip_prefix(".file")?.trim().split_once(' '))
            .find(|(known, _)| *known == number)
            .map(|(_, name)| name.trim_matches('"').to_owned())
    };
    let place = |text: &str| {
        let mut words = text.split_whitespace();
        Some(format!("{}:{}", file(words.next()?)?, words.next()?))
    };
    let mut location = None;
    for line in ptx.lines().map(str::trim) {
        location = line.strip_prefix(".loc").or(location);
        if line.starts_with(opcode) {
            let location = location.ok_or("no line before the instruction")?;
            let (inner, call) = match location.split_once("inlined_at") {
                Some((inner, call)) => (inner, place(call)),
                None => (location, None),
            };
            return Ok((place(inner).ok_or("no such file")?, call));
        }
    }
    Err(format!("no `{opcode}` in {ptx}").into())
}

/// The line of a text that holds `what`, counted from 1.
fn line_with(text: &str, what: &str) -> Result<usize, Failed> {
    let line = text.lines().position(|line| line.contains(what));
    Ok(line.ok_or("the text is in no line")? + 1)
}

fn line_tables_name_lines_of_rust_and_calls_that_were_inlined() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    // Not an operation that is fused, which has one line for two.
    kernels.replace("kernels/scaling/src/lib.rs", "x * BY", "x / BY")?;
    let outer = format!("src/lib.rs:{}", line_with(KERNEL, "(n + 1) as f32")?);
    let inner = format!("scaling/src/lib.rs:{}", line_with(SCALING, "x * BY")?);
    for arch in DIALECTS {
        let ptx = ptx_for(&kernels, arch, true)?;
        assert_eq!(
            place_of(&ptx, "cvt.rn.f32")?,
            (outer.clone(), None),
            "{ptx}"
        );
        let expected = (inner.clone(), Some(outer.clone()));
        assert_eq!(place_of(&ptx, "div.rn.f32")?, expected, "{ptx}");
    }
    Ok(())
}

fn line_tables_change_no_instruction() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    for arch in DIALECTS {
        let plain = ptx_for(&kernels, arch, false)?;
        assert!(!plain.contains(".loc"), "{plain}");
        let ptx = ptx_for(&kernels, arch, true)?;
        let (code, _tables) = ptx.split_once("\t.file\t").ok_or("no table of files")?;
        let without: Vec<&str> = code
            .lines()
            .filter(|line| !line.trim().starts_with(".loc"))
            .collect();
        let of_code = |text: &[&str]| -> Vec<String> {
            text.iter()
                .map(|line| line.trim().to_owned())
                .filter(|line| !line.is_empty() && !line.starts_with("$L__tmp"))
                // Line tables need a later ISA than the code.
                .filter(|line| !line.starts_with(".version"))
                .collect()
        };
        let plain: Vec<&str> = plain.lines().collect();
        assert_eq!(of_code(&plain), of_code(&without));
    }
    Ok(())
}

fn line_tables_name_no_folder_of_this_machine() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    // A package of a registry lies in cargo's folder.
    fs::create_dir_all(kernels.path("home/registry"))?;
    fs::rename(
        kernels.path("kernels/scaling"),
        kernels.path("home/registry/scaling"),
    )?;
    let dependency = "../home/registry/scaling";
    kernels.replace(
        "kernels/Cargo.toml",
        "path = \"scaling\"",
        &format!("path = {dependency:?}"),
    )?;
    kernels.replace("home/registry/scaling/src/lib.rs", "x * BY", "x / BY")?;
    let mut script = kernels.build_script()?;
    run_to_success(
        script
            .env("LINES", "1")
            .env("CARGO_HOME", kernels.path("home")),
    )?;
    let ptx = kernels.ptx()?;
    let (inner, _) = place_of(&ptx, "div.rn.f32")?;
    assert!(
        inner.starts_with("cargo/registry/scaling/src/lib.rs:"),
        "{inner}"
    );
    for path in [kernels.path(""), env::temp_dir()] {
        let path = path.display().to_string();
        assert!(!ptx.contains(&path), "{path} is in {ptx}");
    }
    Ok(())
}

fn cargo_watches_every_file_the_kernels_come_from_and_nothing_else() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    let instructions = kernels.build()?;
    let crate_folder = kernels.path("kernels").canonicalize()?;
    let mut watched: Vec<&Path> = instructions
        .lines()
        .filter_map(|line| line.strip_prefix("cargo::rerun-if-changed="))
        .map(Path::new)
        .filter_map(|path| path.strip_prefix(&crate_folder).ok())
        .collect();
    watched.sort();
    let expected = [
        "Cargo.lock",
        "Cargo.toml",
        "scaling/Cargo.toml",
        "scaling/factor.bin",
        "scaling/src/lib.rs",
        "src/lib.rs",
    ];
    // `scaling/src/../factor.bin` is how rustc names the included file.
    let watched: Vec<String> = watched
        .iter()
        .map(|path| path.display().to_string().replace("src/../", ""))
        .collect();
    let mut sorted = watched.clone();
    sorted.sort();
    assert_eq!(sorted, expected);

    for line in instructions.lines() {
        if let Some(path) = line.strip_prefix("cargo::rerun-if-changed=") {
            // Cargo treats a missing file as changed every time.
            assert!(Path::new(path).is_file(), "{path} is not a file");
        }
    }
    for variable in [
        "LIBNVVM_PATH",
        "CUDA_HOME",
        "GEMM_NO_FETCH",
        "SCALING_VARIABLE",
    ] {
        let line = format!("cargo::rerun-if-env-changed={variable}\n");
        assert!(instructions.contains(&line), "{instructions}");
    }
    assert!(instructions.contains("/libnvvm.so"), "{instructions}");
    Ok(())
}

fn unchanged_kernels_are_not_compiled_again() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    let first = kernels.build()?;
    let times = kernels.ir_times()?;
    assert_eq!(times.len(), 2, "{times:?}");
    let ptx = kernels.ptx()?;
    // Each architecture is a `cfg` and so has files of its own; those of the others stay.
    run_to_success(kernels.build_script()?.env("ARCH", "compute_80"))?;
    assert_eq!(kernels.ir_times()?.len(), 4);
    run_to_success(kernels.build_script()?.env("ARCH", "compute_89"))?;
    let of_all = kernels.ir_times()?;
    assert_eq!(of_all.len(), 6, "one file is not the other: {of_all:?}");
    let second = kernels.build()?;
    assert_eq!(kernels.ir_times()?, of_all);
    assert!(times.iter().all(|time| of_all.contains(time)), "{times:?}");
    assert_eq!(first, second);
    assert_eq!(kernels.ptx()?, ptx);
    Ok(())
}

fn a_changed_kernel_replaces_the_old_one() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    kernels.build()?;
    kernels.replace("kernels/src/lib.rs", "fn scale(", "fn scale_anew(")?;
    // A change of the version changes the names of the files that cargo makes; the old ones stay.
    kernels.replace("kernels/Cargo.toml", "0.1.0", "0.2.0")?;
    kernels.build()?;
    assert_eq!(kernels.ir_times()?.len(), 3, "no stale IR to be taken in");
    let ptx = kernels.ptx()?;
    assert!(ptx.contains(".entry scale_anew("), "{ptx}");
    assert!(!ptx.contains(".entry scale("), "{ptx}");
    Ok(())
}

fn a_crate_without_kernels_is_an_error() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    kernels.write("kernels/src/lib.rs", "#![no_std]\npub fn f() {}\n")?;
    let text = run_to_failure(&mut kernels.build_script()?)?;
    assert!(
        text.contains("kernels has no kernels; mark a function"),
        "{text}"
    );
    Ok(())
}

fn a_type_error_is_shown_exactly_once() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    kernels.replace("kernels/src/lib.rs", "*y = scaling", "*y = \"a\"; scaling")?;
    let text = run_to_failure(&mut kernels.build_script()?)?;
    assert_eq!(
        text.matches("error[E0308]: mismatched types").count(),
        1,
        "{text}"
    );
    assert_eq!(text.matches("error").count(), 1, "noise: {text}");
    assert!(text.contains("--> src/lib.rs:9:23"), "{text}");
    assert!(
        text.contains("Error: The kernels do not compile for the GPU:\n"),
        "{text}"
    );
    assert!(
        !text.contains("\x1b["),
        "colours where there is no terminal: {text}"
    );
    Ok(())
}

fn a_broken_manifest_is_shown_in_cargos_words() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    kernels.replace("kernels/Cargo.toml", "\"scaling\"", "\"nowhere\"")?;
    let mut script = kernels.build_script()?;
    let text = run_to_failure(script.env("CARGO_TERM_COLOR", "always"))?;
    assert!(!text.contains("\x1b["), "colours, and no terminal: {text}");
    assert!(text.contains("Cargo could not build the kernels"), "{text}");
    assert!(text.contains("nowhere/Cargo.toml"), "{text}");
    Ok(())
}

fn builds_at_the_same_time_give_identical_bytes() -> Result<(), Failed> {
    // Both in one `OUT_DIR`, and one in its own.
    let kernels = Kernels::new()?;
    let elsewhere = Kernels::new()?;
    let running: Vec<_> = [&kernels, &kernels, &elsewhere]
        .into_iter()
        .map(|kernels| -> Result<_, Failed> {
            let mut script = kernels.build_script()?;
            Ok(script
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()?)
        })
        .collect::<Result<_, _>>()?;
    for script in running {
        let output = script.wait_with_output()?;
        assert!(output.status.success(), "{}", text_of(&output));
    }
    assert_eq!(kernels.ptx()?, elsewhere.ptx()?);
    Ok(())
}

fn nothing_of_the_outer_build_leaks_in() -> Result<(), Failed> {
    let plain = Kernels::new()?;
    plain.build()?;
    let kernels = Kernels::new()?;
    let locked = kernels.path("locked");
    let mut script = kernels.build_script()?;
    // As under clippy, with a caching wrapper, flags for the host, another target and other
    // folders.
    script
        .env("RUSTC_WORKSPACE_WRAPPER", "/no/such/clippy-driver")
        .env("RUSTC_WRAPPER", "/no/such/sccache")
        .env("RUSTFLAGS", "--no-such-flag")
        .env("CARGO_ENCODED_RUSTFLAGS", "--no-such-flag")
        .env("CARGO_BUILD_TARGET", "no-such-target")
        .env("CARGO_BUILD_BUILD_DIR", &locked)
        .env("CARGO_TARGET_DIR", &locked)
        .env("CARGO_TERM_COLOR", "always")
        .env("CARGO_TERM_VERBOSE", "false")
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "no-such-level")
        .env("OPT_LEVEL", "0")
        .env("DEBUG", "true")
        .env("PROFILE", "debug");
    run_to_success(&mut script)?;
    assert_eq!(kernels.ptx()?, plain.ptx()?);
    assert!(!locked.exists(), "the outer build's folder was used");
    Ok(())
}

fn the_profile_of_the_kernels_workspace_does_not_matter() -> Result<(), Failed> {
    let plain = Kernels::new()?;
    plain.build()?;
    let kernels = Kernels::new()?;
    let profile = "\n[profile.dev]\nopt-level = 0\nlto = \"fat\"\ndebug = 2\ncodegen-units = 16\n\
                   incremental = true\noverflow-checks = true\ndebug-assertions = false\n[profile.dev.package.scaling]\ndebug = 1\n";
    kernels.write("kernels/Cargo.toml", &format!("{MANIFEST}{profile}"))?;
    kernels.build()?;
    assert_eq!(kernels.ptx()?, plain.ptx()?);
    Ok(())
}

fn a_missing_libnvvm_is_an_error() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    let mut script = kernels.build_script()?;
    let text = run_to_failure(script.env("LIBNVVM_PATH", "/no/such/folder"))?;
    assert!(
        text.contains("Error: LIBNVVM_PATH is set to /no/such/folder, but"),
        "{text}"
    );
    Ok(())
}

fn a_missing_libnvvm_that_is_optional_makes_an_empty_file_and_says_why() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    let mut script = kernels.build_script()?;
    script
        .env("LIBNVVM_PATH", "/no/such/folder")
        .env("OPTIONAL", "1");
    let instructions = run_to_success(&mut script)?;
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

fn a_folder_without_a_crate_is_an_error() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    fs::remove_file(kernels.path("kernels/Cargo.toml"))?;
    let text = run_to_failure(&mut kernels.build_script()?)?;
    assert!(text.contains("has no Cargo.toml"), "{text}");
    Ok(())
}

/// A package that embeds the PTX of the kernels, which its build script compiles.
struct Outer<'a> {
    kernels: &'a Kernels,
}

impl<'a> Outer<'a> {
    /// `dependency` is the complete table `[dependencies]` of the package.
    fn new(kernels: &'a Kernels, dependencies: &str) -> Result<Self, Failed> {
        let manifest = format!(
            "[package]\nname = \"outer\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
             [dependencies]\n{dependencies}\n[workspace]\n"
        );
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
        kernels.write("outer/Cargo.toml", &manifest)?;
        kernels.write("outer/build.rs", &build_script)?;
        kernels.write("outer/src/lib.rs", library)?;
        Ok(Outer { kernels })
    }

    /// `cargo build`, with this many jobs at the same time.
    fn build(&self, jobs: u32) -> Command {
        let mut command = Command::new(env!("CARGO"));
        command
            .current_dir(self.kernels.path("outer"))
            .args(["build", "--offline", &format!("--jobs={jobs}")])
            .env("CARGO_TARGET_DIR", self.kernels.path("outer/target"))
            .stdin(Stdio::null());
        command
    }

    /// What a build that fails writes.
    fn build_to_failure(&self, jobs: u32) -> Result<String, Failed> {
        let output = self.build(jobs).output()?;
        assert_eq!(output.status.code(), Some(101), "{}", text_of(&output));
        Ok(text_of(&output))
    }

    fn build_to_success(&self) -> Result<String, Failed> {
        let output = self.build(2).output()?;
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

/// The dependencies of a package that also runs its kernels natively.
const NATIVELY: &str = r#"kernels = { path = "../kernels" }"#;

fn add_to_kernels(kernels: &Kernels, text: &str) -> Result<(), Failed> {
    let path = "kernels/src/lib.rs";
    let before = fs::read_to_string(kernels.path(path))?;
    kernels.write(path, &format!("{before}\n{text}\n"))
}

const ERROR: &str = "const WRONG: u32 = \"a\";";
const DEVICE_ERROR: &str = "#[cfg(cuda_device)] const DEVICE_WRONG: f32 = 'c';";

fn an_error_that_shows_natively_too_is_shown_once() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    let outer = Outer::new(&kernels, NATIVELY)?;
    outer.build_to_success()?;
    assert!(outer.ptx()?.is_some());

    let right = fs::read_to_string(kernels.path("kernels/src/lib.rs"))?;
    // rustc proposes `std::time::Duration` for the CPU and `core::time::Duration` for the GPU.
    add_to_kernels(&kernels, "pub fn wait(_: Duration) {}")?;
    // One job at a time, so that nothing else is ever shown if the build script fails first.
    for jobs in [1, 2, 1] {
        let text = outer.build_to_failure(jobs)?;
        assert_eq!(text.matches("cannot find type").count(), 1, "{text}");
        assert!(text.contains("could not compile `kernels`"), "{text}");
        assert!(!text.contains("custom build command"), "{text}");
    }

    kernels.write("kernels/src/lib.rs", &right)?;
    outer.build_to_success()?;
    assert!(
        outer
            .ptx()?
            .is_some_and(|ptx| ptx.contains(".entry scale("))
    );
    Ok(())
}

fn an_error_that_is_left_to_the_outer_cargo_leaves_no_old_ptx() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    Outer::new(&kernels, NATIVELY)?;
    kernels.build()?;
    assert!(kernels.ptx().is_ok());
    add_to_kernels(&kernels, ERROR)?;
    let mut script = kernels.build_script()?;
    run_to_success(script.env("CARGO_MANIFEST_DIR", kernels.path("outer")))?;
    assert!(kernels.ptx().is_err(), "the package could embed it");
    Ok(())
}

fn an_error_of_the_device_build_alone_is_shown_once() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    let outer = Outer::new(&kernels, NATIVELY)?;
    add_to_kernels(&kernels, DEVICE_ERROR)?;
    for jobs in [1, 2] {
        let text = outer.build_to_failure(jobs)?;
        assert_eq!(text.matches("mismatched types").count(), 1, "{text}");
        assert!(text.contains("custom build command for `outer "), "{text}");
        assert!(text.contains("--> src/lib.rs:"), "{text}");
    }
    Ok(())
}

fn among_errors_of_both_builds_only_those_of_the_device_are_shown() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    Outer::new(&kernels, NATIVELY)?;
    add_to_kernels(&kernels, DEVICE_ERROR)?;
    add_to_kernels(&kernels, ERROR)?;
    let mut script = kernels.build_script()?;
    let text = run_to_failure(script.env("CARGO_MANIFEST_DIR", kernels.path("outer")))?;
    assert_eq!(text.matches("found `char`").count(), 1, "{text}");
    assert_eq!(text.matches("found `&str`").count(), 0, "{text}");
    Ok(())
}

fn an_error_that_shows_nowhere_else_is_shown_once() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    add_to_kernels(&kernels, ERROR)?;
    let optional = r#"kernels = { path = "../kernels", optional = true }"#;
    for dependencies in ["", optional] {
        let text = Outer::new(&kernels, dependencies)?.build_to_failure(2)?;
        assert_eq!(text.matches("mismatched types").count(), 1, "{text}");
        assert!(text.contains("custom build command for `outer "), "{text}");
    }
    Ok(())
}

fn every_build_looks_for_a_missing_libnvvm_again() -> Result<(), Failed> {
    let kernels = Kernels::new()?;
    // Writes the Cargo.lock, a new one of which would be a reason of its own to build again.
    kernels.build()?;
    let outer = Outer::new(&kernels, "")?;
    let later = kernels.path("libnvvm.so");
    let build = || -> Result<String, Failed> {
        let mut command = outer.build(2);
        let output = command
            .env("LIBNVVM_PATH", &later)
            .env("OPTIONAL", "1")
            .output()?;
        assert!(output.status.success(), "{}", text_of(&output));
        Ok(text_of(&output))
    };
    for _ in 0..2 {
        let text = build()?;
        assert!(text.contains("Compiling outer"), "not tried: {text}");
        assert_eq!(outer.ptx()?, Some(String::new()));
    }
    let libnvvm = nvvm::Toolkit::find_or_fetch()?.libnvvm;
    std::os::unix::fs::symlink(libnvvm, &later)?;
    build()?;
    let ptx = outer.ptx()?.unwrap_or_default();
    assert!(ptx.contains(".entry scale("), "{ptx}");
    // And then no more.
    let text = build()?;
    assert!(!text.contains("Compiling"), "{text}");
    Ok(())
}
