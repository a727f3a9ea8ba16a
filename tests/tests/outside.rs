//! Outside of the workspace: a program that depends on the library as the book says, and a copy
//! of the workspace in which a kernel is added.
//!
//! Both are compiled by a cargo of their own, in the workspace's target folder, where the crates
//! that they depend on lie compiled already.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use libtest_mimic::{Failed, Trial};
use tests::{on_gpu, on_simulator};

fn main() -> ExitCode {
    let multiplies = "a_program_outside_the_workspace_multiplies_with_the_library";
    let added = "a_kernel_is_added_by_one_file_and_one_line";
    tests::run(vec![
        on_simulator(multiplies, || multiplies_on("sim")),
        on_gpu(multiplies, || multiplies_on("cuda")),
        Trial::test(added, kernel_is_added),
    ])
}

/// The root of this workspace.
fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("/"))
}

/// The program, in an empty folder.
fn multiplies_on(device: &str) -> Result<(), Failed> {
    let said = run(workspace(), "program.rs", device)?;
    assert!(said.starts_with("right on "), "{said}");
    Ok(())
}

/// A copy of the library and the kernels, one file and one line more.
fn kernel_is_added() -> Result<(), Failed> {
    const MEMBERS: [&str; 8] = [
        "gpu-kernels",
        "crates/cuda_builder",
        "crates/cuda_std",
        "crates/cuda_std_macros",
        "crates/find_cuda_helper",
        "crates/gpu_gemm",
        "crates/nvvm",
        "crates/nvvm_codegen",
    ];
    let root = workspace();
    // The same folder each time, so that what is compiled takes the place of the last.
    let copy = &Path::new(env!("CARGO_TARGET_TMPDIR")).join("added");
    if copy.exists() {
        fs::remove_dir_all(copy)?;
    }
    for member in MEMBERS {
        copy_folder(&root.join(member), &copy.join(member))?;
    }
    fs::copy(root.join("Cargo.lock"), copy.join("Cargo.lock"))?;
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let (_, rest) = manifest.split_once("\n]\n").ok_or("no members")?;
    let manifest = format!("[workspace]\nresolver = \"3\"\nmembers = {MEMBERS:?}\n{rest}");
    fs::write(copy.join("Cargo.toml"), manifest)?;
    // One file,
    let kernels = copy.join("gpu-kernels/src");
    fs::copy(
        root.join("tests/outside/two_rows.rs"),
        kernels.join("two_rows.rs"),
    )?;
    // and one line.
    let ladder = kernels.join("lib.rs");
    let text = fs::read_to_string(&ladder)?;
    let with_line = text.replace("    few_rows,\n", "    few_rows,\n    two_rows,\n");
    assert_eq!(with_line.lines().count(), text.lines().count() + 1);
    fs::write(&ladder, with_line)?;

    let said = run(copy, "by_name.rs", "two-rows")?;
    assert!(said.starts_with("two-rows: one thread"), "{said}");
    Ok(())
}

/// What a program of `tests/outside` prints: alone in an empty folder, with the lines of a
/// manifest that the book gives, it depends on the library of the workspace in `root`.
fn run(root: &Path, program: &str, argument: &str) -> Result<String, Failed> {
    let chapter = fs::read_to_string(workspace().join("docs/src/library.md"))?;
    let dependencies = chapter
        .split_once("```toml\n")
        .and_then(|(_, rest)| rest.split_once("[profile"))
        .ok_or("library.md has no manifest")?
        .0
        .replace("../gemm/", &format!("{}/", root.display()));
    // With the profiles of the workspace, what it has compiled serves here too.
    let manifest = fs::read_to_string(workspace().join("Cargo.toml"))?;
    let profiles = manifest.find("[profile.").ok_or("no profiles")?;
    let package = "[package]\nname = \"program\"\nedition = \"2024\"\n";
    let manifest = format!("{package}\n{dependencies}{}", &manifest[profiles..]);

    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("src"))?;
    fs::copy(
        workspace().join("tests/outside").join(program),
        path("src/main.rs"),
    )?;
    fs::write(path("Cargo.toml"), manifest)?;
    // The versions that the workspace has, so that nothing is fetched.
    fs::copy(workspace().join("Cargo.lock"), path("Cargo.lock"))?;

    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..");
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command
            .args(arguments)
            .current_dir(folder.path())
            .env("CARGO_TARGET_DIR", &target);
        if root != workspace() {
            // Not compiled for the GPU, which takes minutes.
            command
                .env("GEMM_CACHE_DIR", root)
                .env("GEMM_NO_FETCH", "1");
        }
        command.output()
    };
    let output = cargo(&["run", "--quiet", "--", argument])?;
    // Each folder is another package to cargo, and its files would accumulate.
    cargo(&["clean", "--quiet", "-p", "program"])?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), Failed> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
