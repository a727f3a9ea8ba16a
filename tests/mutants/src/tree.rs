//! A copy of the workspace with every mutant in it, switched off, and its test programs.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::mutant::Mutant;
use crate::operators::{self, mutate};
use crate::scope::{LEFT_OUT, Scope};

/// What is appended to the root of a mutated crate. `MUTANT`, the id of the mutant that is on, is
/// read before `main`. If it is `u32::MAX`, none is, and the entries of all functions that were
/// called are written, at the end, to the file that `MUTANT_TRACE` names.
pub const SWITCH: &str = r#"
#[allow(warnings, clippy::all)]
#[cfg(not(cuda_device))]
pub mod mutation {
    use std::sync::atomic::{AtomicBool, Ordering};
    static mut ON: u32 = 0;
    static CALLED: [AtomicBool; 1 << 16] = [const { AtomicBool::new(false) }; 1 << 16];
    #[inline(always)]
    pub fn on(function: u32) -> u32 {
        let on = unsafe { ON };
        if on == u32::MAX {
            CALLED[function as usize].store(true, Ordering::Relaxed);
        }
        on
    }
    extern "C" fn read() {
        let id = std::env::var("MUTANT").ok().and_then(|id| id.parse().ok());
        unsafe { ON = id.unwrap_or(0) };
    }
    extern "C" fn write() {
        let Some(path) = std::env::var_os("MUTANT_TRACE") else { return };
        let called = CALLED.iter().enumerate().filter(|(_, called)| called.load(Ordering::Relaxed));
        let text: String = called.map(|(function, _)| format!("{function}\n")).collect();
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        let _ = file.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
    }
    #[used]
    #[unsafe(link_section = ".init_array")]
    static READ: extern "C" fn() = read;
    #[used]
    #[unsafe(link_section = ".fini_array")]
    static WRITE: extern "C" fn() = write;
}
#[allow(warnings, clippy::all)]
#[cfg(cuda_device)]
mod mutation {
    pub const fn on(_: u32) -> u32 {
        0
    }
}
"#;

/// Mutants that were built, and how to test them.
#[derive(Serialize, Deserialize)]
pub struct Built {
    pub mutants: Vec<Mutant>,
    /// Found, but the program would not compile with them.
    pub not_compiled: Vec<Mutant>,
    /// In the order of the scope's.
    pub programs: Vec<Program>,
}

/// A test program, and which of its tests are run: those whose names begin with `begin`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Program {
    pub package: String,
    pub target: String,
    pub begin: String,
    pub executable: PathBuf,
    /// Where it is run: the folder of its package.
    pub folder: PathBuf,
}

/// The sources of `scope`, relative to `root`, in order.
fn sources(root: &Path, scope: &Scope) -> Result<Vec<String>> {
    let mut sources = Vec::new();
    for folder in scope.sources {
        for file in files(&root.join(folder))? {
            let file = file.strip_prefix(root)?.to_str();
            let file = file.context("a file's name is not UTF-8")?;
            if file.ends_with(".rs") && !LEFT_OUT.contains(&file) {
                sources.push(file.to_owned());
            }
        }
    }
    sources.sort();
    Ok(sources)
}

/// The files in `folder` and the folders in it, without what is hidden or built.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let at = || folder.display().to_string();
    for entry in fs::read_dir(folder).with_context(at)? {
        let entry = entry.with_context(at)?;
        let name = entry.file_name();
        if name == "target" || name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if entry.file_type().with_context(at)?.is_dir() {
            found.extend(files(&entry.path())?);
        } else {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// All mutants of `scope` that `keep` keeps; they are written to `tree`, if there is one.
pub fn find(
    root: &Path,
    scope: &Scope,
    tree: Option<&Path>,
    keep: &dyn Fn(&Mutant) -> bool,
) -> Result<Vec<Mutant>> {
    let mut mutants = Vec::new();
    let mut next_id = 1;
    for file in sources(root, scope)? {
        let text = fs::read_to_string(root.join(&file)).with_context(|| file.clone())?;
        let mutated = mutate(&file, &text, next_id, keep).with_context(|| file.clone())?;
        next_id += mutated.found;
        if let Some(tree) = tree {
            fs::write(tree.join(&file), mutated.source)?;
        }
        mutants.extend(mutated.mutants);
    }
    Ok(mutants)
}

/// Builds the tests of `scope` with all of `mutants` in `folder`, except those that do not
/// compile.
pub fn build(root: &Path, folder: &Path, scope: &Scope, all: Vec<Mutant>) -> Result<Built> {
    let tree = folder.join("tree");
    copy(root, &tree)?;
    let mut wanted: HashSet<u32> = all.iter().map(|mutant| mutant.id).collect();
    let mut lines_at_fault = HashSet::new();
    loop {
        find(root, scope, Some(&tree), &|mutant| {
            wanted.contains(&mutant.id)
        })?;
        let library = tree.join(folder_of(scope.package)).join("src/lib.rs");
        let text = fs::read_to_string(&library)?;
        // Written again above, or never: then there is a switch in it.
        if !text.contains("pub mod mutation") {
            fs::write(&library, text + SWITCH)?;
        }
        eprintln!(
            "checking that {} mutants of {} compile",
            wanted.len(),
            scope.name
        );
        let errors = errors(&tree, folder, scope)?;
        if errors.is_empty() {
            break;
        }
        let before = wanted.len();
        for error in &errors {
            let text = fs::read_to_string(tree.join(&error.file)).unwrap_or_default();
            let again = !lines_at_fault.insert((error.file.clone(), error.line));
            for id in at_fault(&text, error, again) {
                wanted.remove(&id);
            }
        }
        if wanted.len() == before {
            bail!(
                "the mutated sources do not compile, and no mutant is at fault: {}",
                errors[0].rendered
            );
        }
    }
    let programs = programs(&tree, folder, scope)?;
    let (mutants, not_compiled) = all
        .into_iter()
        .partition(|mutant| wanted.contains(&mutant.id));
    Ok(Built {
        mutants,
        not_compiled,
        programs,
    })
}

/// A package's folder in the repository.
fn folder_of(package: &str) -> &str {
    match package {
        "gpu_gemm" => "crates/gpu_gemm",
        package => package,
    }
}

/// An error of the compiler's, and where.
struct Error {
    /// Relative to the tree.
    file: String,
    line: usize,
    bytes: (usize, usize),
    rendered: String,
}

/// The ids of the mutants that an error is put down to: those within it and the one before it on
/// its line; if that did not help, all of the line's.
fn at_fault(text: &str, error: &Error, again: bool) -> Vec<u32> {
    let (begins, ends) = error.bytes;
    let (Some(before), Some(within), Some(after)) =
        (text.get(..begins), text.get(begins..ends), text.get(ends..))
    else {
        return Vec::new(); // in another file, such as one of the standard library's
    };
    let begin = before.rfind('\n').map_or(0, |at| at + 1);
    let end = after.find('\n').map_or(text.len(), |at| ends + at);
    let ids = |text: &str| -> Vec<u32> {
        let behind = text
            .match_indices(operators::SWITCH)
            .map(|(at, _)| &text[at + operators::SWITCH.len()..]);
        behind
            .filter_map(|rest| rest.split(')').next()?.parse().ok())
            .collect()
    };
    if again {
        return ids(&text[begin..end]);
    }
    let mut found = ids(within);
    found.extend(ids(&text[begin..begins]).pop());
    if found.is_empty() {
        ids(&text[begin..end])
    } else {
        found
    }
}

/// Each copy of the workspace is built in a folder of its own: build scripts keep the paths of the
/// copy that they were built in.
fn cargo(tree: &Path, folder: &Path, scope: &Scope, command: &[&str]) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(tree)
        .args(command)
        .arg("--message-format=json")
        .arg("--target-dir")
        .arg(folder.join("target"))
        .envs(scope.environment.iter().copied())
        .env("CARGO_INCREMENTAL", "0")
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("MUTANT")
        .stdout(Stdio::piped());
    cargo
}

/// What the compiler has against the mutated package.
fn errors(tree: &Path, folder: &Path, scope: &Scope) -> Result<Vec<Error>> {
    let checked = cargo(
        tree,
        folder,
        scope,
        &["check", "--quiet", "--lib", "-p", scope.package],
    )
    .output()
    .context("cargo cannot be started")?;
    let mut errors = Vec::new();
    for message in messages(&checked.stdout) {
        let message = &message["message"];
        if message["level"] != "error" {
            continue;
        }
        for span in message["spans"].as_array().into_iter().flatten() {
            // A closure cannot borrow which mutant is on if it outlives the function.
            let borrows = span["label"] == "`mutation__` is borrowed here";
            if span["is_primary"] == true || borrows {
                errors.push(Error {
                    file: span["file_name"].as_str().unwrap_or_default().to_owned(),
                    line: number(&span["line_start"]),
                    bytes: (number(&span["byte_start"]), number(&span["byte_end"])),
                    rendered: message["rendered"].as_str().unwrap_or_default().to_owned(),
                });
            }
        }
    }
    if errors.is_empty() && !checked.status.success() {
        bail!(
            "cargo check failed: {}",
            String::from_utf8_lossy(&checked.stderr)
        );
    }
    Ok(errors)
}

/// Builds the test programs, and says where they are.
fn programs(tree: &Path, folder: &Path, scope: &Scope) -> Result<Vec<Program>> {
    let packages: BTreeSet<&str> = scope.tests.iter().map(|program| program.package).collect();
    let packages: Vec<&str> = packages.into_iter().collect();
    eprintln!("building the tests of {}", packages.join(", "));
    let mut arguments = vec!["test", "--no-run"];
    for package in packages {
        arguments.extend(["-p", package]);
    }
    let built = cargo(tree, folder, scope, &arguments)
        .output()
        .context("cargo cannot be started")?;
    if !built.status.success() {
        let rendered = messages(&built.stdout)
            .filter_map(|message| Some(message["message"]["rendered"].as_str()?.to_owned()));
        bail!(
            "the tests do not compile: {}{}",
            rendered.collect::<String>(),
            String::from_utf8_lossy(&built.stderr)
        );
    }
    // By package and target: the program, and where it is run.
    let executables: HashMap<(String, String), (PathBuf, PathBuf)> = messages(&built.stdout)
        .filter_map(|message| {
            let executable = message["executable"].as_str()?;
            if message["profile"]["test"] != true {
                return None;
            }
            let manifest = Path::new(message["manifest_path"].as_str()?);
            let package = message["package_id"].as_str()?;
            // path+file:///folder#name@version, or #version where the folder has the package's
            // name.
            let (path, name) = package.rsplit_once('#')?;
            let name = match name.split_once('@') {
                Some((name, _)) => name,
                None => path.rsplit('/').next()?,
            };
            let target = message["target"]["name"].as_str()?;
            let folder = manifest.parent()?.to_owned();
            Some(((name.into(), target.into()), (executable.into(), folder)))
        })
        .collect();
    let wanted = scope.tests.iter().map(|program| {
        let (package, target) = (program.package.to_owned(), program.target.to_owned());
        let Some((executable, folder)) = executables.get(&(package.clone(), target.clone())) else {
            bail!("no test program `{target}` of the package `{package}` was built");
        };
        Ok(Program {
            package,
            target,
            begin: program.begin.to_owned(),
            executable: executable.clone(),
            folder: folder.clone(),
        })
    });
    wanted.collect()
}

fn messages(output: &[u8]) -> impl Iterator<Item = serde_json::Value> + '_ {
    output
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
}

fn number(value: &serde_json::Value) -> usize {
    value.as_u64().unwrap_or(0) as usize
}

/// Makes `tree` a copy of the workspace at `root`: files that are the same stay as they are, so
/// that Cargo does not build them again, and those that are no longer in the workspace go.
fn copy(root: &Path, tree: &Path) -> Result<()> {
    fs::create_dir_all(tree)?;
    for there in files(tree)? {
        if !root.join(there.strip_prefix(tree)?).exists() {
            fs::remove_file(&there).with_context(|| there.display().to_string())?;
        }
    }
    for from in files(root)? {
        let to = tree.join(from.strip_prefix(root)?);
        let text = fs::read(&from).with_context(|| from.display().to_string())?;
        if fs::read(&to).is_ok_and(|there| there == text) {
            continue;
        }
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::copy(&from, &to).with_context(|| from.display().to_string())?;
    }
    Ok(())
}
