//! Outside of the workspace, in an empty folder: a program that depends on its crates as the book
//! says, and the template.
//!
//! Each is compiled by a separate cargo, in the workspace's target folder, where its dependencies
//! are already compiled.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use libtest_mimic::{Failed, Trial};
use tests::devices::{self, Backend};
use tests::{Tier, exhaustive};

#[path = "../outside/empty_folder.rs"]
mod empty_folder;

use empty_folder::{EmptyFolder, text_of, workspace};

fn main() -> ExitCode {
    let multiplies = "a_program_outside_the_workspace_multiplies_with_the_library";
    let on_gpu = |name: &str, test: fn() -> Result<(), Failed>| {
        tests::trial(Tier::Exhaustive, Backend::Gpu, name, test)
    };
    let mut trials = vec![
        Trial::test(
            "a_missing_patch_entry_is_an_error_that_names_it",
            patch_is_missing,
        ),
        Trial::test(
            "the_template_leads_to_a_git_repository_or_a_registry",
            template_by_url,
        ),
        Trial::test(
            "what_cargo_generate_calls_makes_the_program_that_the_script_makes",
            template_by_its_hook,
        ),
        // These compile what no other test does, some for minutes.
        exhaustive(
            "kernels_type_check_against_the_published_cuda_std",
            published_cuda_std,
        ),
        exhaustive(format!("simulator::{multiplies}"), || multiplies_on("sim")),
        exhaustive("the_template_passes_its_tests_and_runs", template_runs),
        exhaustive("the_template_with_cudarc_needs_no_patch", || {
            cudarc("build").map(drop)
        }),
        exhaustive("the_template_with_an_epilogue_is_right", fused),
    ];
    trials.extend(on_gpu(multiplies, || multiplies_on("cuda")));
    let launches = "the_template_with_cudarc_launches_the_kernel";
    trials.extend(on_gpu(launches, || {
        assert_eq!(cudarc("run")?, "y[9999] = 19999 on the GPU\n");
        Ok(())
    }));
    // All write to the same target folder.
    tests::run_in_turn(trials)
}

/// The program without `[patch.crates-io]`: cargo compiles nothing.
fn patch_is_missing() -> Result<(), Failed> {
    let folder = EmptyFolder::new()?;
    folder.write_program()?;
    let manifest = fs::read_to_string(folder.path("Cargo.toml"))?;
    let parts = manifest.split_once("[patch.crates-io]\n");
    let (before, after) = parts.ok_or("the book has no [patch]")?;
    let (_entry, after) = after.split_once('\n').ok_or("the [patch] has no entry")?;
    fs::write(folder.path("Cargo.toml"), [before, after].concat())?;

    let output = folder.cargo("", &["check"], &[])?;
    let said = String::from_utf8_lossy(&output.stderr);
    let names_it = said.contains("needs-the-entry-in-patch.crates-io-see-README");
    assert!(names_it && !said.contains("Compiling"), "{said}");
    Ok(())
}

/// The template as a user copies it: its tests, in the simulator, and its program, on a GPU if
/// there is one.
fn template_runs() -> Result<(), Failed> {
    let folder = EmptyFolder::new()?;
    folder.copy_template("started", &[])?;
    folder.take_profiles("started")?;
    let passed = text_of(folder.cargo("started", &["test", "--quiet"], &[])?)?;
    assert!(passed.contains("2 passed"), "{passed}");
    let said = text_of(folder.cargo("started", &["run", "--quiet"], &[])?)?;
    let place = match devices::why_no_gpu() {
        Some(_) => "the simulator",
        None => "the GPU",
    };
    let last = format!("The sum of y is 100000000.\ny[9999] = 19999 on {place}\n");
    assert!(said.ends_with(&last), "{said}");
    folder.clean("started", &["started", "kernels"])
}

/// `cargo generate` itself is not run: it copies the folder except for its own two files, asks for
/// the values that `cargo-generate.toml` names, and runs the hook there.
fn template_by_its_hook() -> Result<(), Failed> {
    const OWN: [&str; 2] = ["cargo-generate.toml", "set-paths.rhai"];
    let (source, name) = ("https://example.org/gemm.git", "named");
    let template = workspace().join("template");
    let [placeholders, hook] = OWN.map(|file| fs::read_to_string(template.join(file)));
    assert!(placeholders?.contains("[placeholders]\nsource = "));
    let hook = hook?;
    let words = hook
        .strip_prefix("system::command(\"sh\", [")
        .and_then(|rest| rest.trim_end().strip_suffix("]);"))
        .ok_or("the hook is no command of sh")?;
    let words = words.split(", ").map(|word| match word {
        "variable::get(\"source\")" => source,
        "variable::get(\"project-name\")" => name,
        word => word.trim_matches('"'),
    });
    let folder = EmptyFolder::new()?;
    let generated = folder.path(name);
    let copy = Command::new("cp")
        .arg("-r")
        .args([&template, &generated])
        .output();
    text_of(copy?)?;
    for file in OWN {
        fs::remove_file(generated.join(file))?;
    }
    let mut hook = Command::new("sh");
    text_of(hook.args(words).current_dir(&generated).output()?)?;
    folder.copy_template("by_script", &[source, name])?;
    let by_script = folder.path("by_script");
    let differ = Command::new("diff")
        .args(["-r", "--exclude=target"])
        .args([&by_script, &generated])
        .output()?;
    let differences = String::from_utf8_lossy(&differ.stdout);
    assert!(differ.status.success(), "{differences}");
    let manifest = fs::read_to_string(generated.join("Cargo.toml"))?;
    assert!(
        manifest.contains(&format!("git = {source:?}")),
        "{manifest}"
    );
    Ok(())
}

/// No manifest of the template depends on the folder that it was copied from.
fn template_by_url() -> Result<(), Failed> {
    let folder = EmptyFolder::new()?;
    let url = "https://example.org/gemm.git";
    folder.copy_template("by_git", &[url])?;
    folder.copy_template("by_registry", &["registry", "named"])?;
    for (manifest, ours) in [
        ("Cargo.toml", 3),
        ("kernels/Cargo.toml", 1),
        ("cudarc/Cargo.toml", 1),
        ("fused/Cargo.toml", 3),
        ("fused/kernels/Cargo.toml", 2),
    ] {
        let read = |name| fs::read_to_string(folder.path(name).join(manifest));
        let (by_git, by_registry) = (read("by_git")?, read("by_registry")?);
        assert_eq!(
            by_git.matches(&format!("git = {url:?}")).count(),
            ours,
            "{by_git}"
        );
        let is_ours = |path: &str| by_git.contains(path);
        assert!(
            !["/crates/", "/gpu-kernels"].into_iter().any(is_ours),
            "{by_git}"
        );
        // A [patch] of crates.io cannot point to crates.io.
        let patch = "find_cuda_helper = { path";
        let paths = by_registry.matches("/crates/").count();
        assert_eq!(paths, by_registry.matches(patch).count(), "{by_registry}");
        assert_eq!(
            by_registry.contains("name = \"named\""),
            !manifest.ends_with("kernels/Cargo.toml")
        );
    }
    Ok(())
}

/// The same kernels, and the program that launches them with cudarc: no manifest has a `[patch]`.
fn cudarc(command: &str) -> Result<String, Failed> {
    let folder = EmptyFolder::new()?;
    folder.copy_template("started", &[])?;
    let below = "started/cudarc";
    folder.take_profiles(below)?;
    let manifest = fs::read_to_string(folder.path(below).join("Cargo.toml"))?;
    let has_patch = manifest.lines().any(|line| line.starts_with("[patch"));
    assert!(!has_patch, "{manifest}");
    let said = text_of(folder.cargo(below, &[command, "--quiet"], &[])?)?;
    folder.clean(below, &["started"])?;
    Ok(said)
}

/// The program with an epilogue of its own, on a GPU if there is one. It fails where it is wrong.
fn fused() -> Result<(), Failed> {
    let folder = EmptyFolder::new()?;
    folder.copy_template("started", &[])?;
    let below = "started/fused";
    folder.take_profiles(below)?;
    let said = text_of(folder.cargo(below, &["run", "--quiet"], &[("GEMM_PTX", "none")])?)?;
    assert!(said.contains("tanh((A * B^T + bias) / 30)"), "{said}");
    folder.clean(below, &["started", "kernels"])
}

/// The program of the book.
fn multiplies_on(device: &str) -> Result<(), Failed> {
    let folder = EmptyFolder::new()?;
    folder.write_program()?;
    // Compiling PTX takes a minute.
    let variables = match devices::why_no_gpu() {
        None => &[][..],
        Some(_) => &[("GEMM_PTX", "none")],
    };
    let said = text_of(folder.cargo("", &["run", "--quiet", "--", device], variables)?)?;
    assert!(said.starts_with("right on "), "{said}");
    folder.clean("", &["program"])
}

/// A package around the kernels' sources, outside of the workspace and so without its `[patch]`.
fn manifest(sources: &Path) -> String {
    format!(
        r#"
[package]
name = "gpu-kernels"
version = "0.1.0"
edition = "2021"

[lib]
path = {library:?}

[dependencies]
cuda_std = "=0.2.2"

[workspace]
"#,
        library = sources.join("src/lib.rs")
    )
}

/// The ladder is written with rust-cuda: its kernels type-check unchanged against the published
/// `cuda_std` 0.2.2 instead of ours.
fn published_cuda_std() -> Result<(), Failed> {
    let sources = workspace().join("gpu-kernels");
    let package = tempfile::tempdir()?;
    fs::write(package.path().join("Cargo.toml"), manifest(&sources))?;
    let output = Command::new(env!("CARGO"))
        .args(["check", "--quiet"])
        .current_dir(package.path())
        .env("RUSTFLAGS", "--cfg published_cuda_std -A warnings")
        .env(
            "CARGO_TARGET_DIR",
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("published"),
        )
        .output()?;
    text_of(output)?;
    Ok(())
}
