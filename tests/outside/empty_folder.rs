//! An initially empty folder: the files that are written there, and the cargo that runs there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use libtest_mimic::Failed;
use tempfile::TempDir;

/// The root of this workspace.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("/"))
}

/// Libraries with the same features as for this workspace's program, so that they are not compiled
/// again.
const FEATURES: &str = r#"
[dependencies.approx]
version = "0.5"

[dependencies.libc]
version = "0.2"
features = ["extra_traits"]

[dependencies.num-traits]
version = "0.2"
"#;

/// A folder outside of the workspace.
pub struct EmptyFolder {
    folder: TempDir,
}

impl EmptyFolder {
    pub fn new() -> Result<EmptyFolder, Failed> {
        let folder = tempfile::tempdir()?;
        Ok(EmptyFolder { folder })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes it a package: a program that depends on the library, with the manifest lines from the
    /// book.
    pub fn write_program(&self) -> Result<(), Failed> {
        let chapter = fs::read_to_string(workspace().join("docs/src/library.md"))?;
        let dependencies = chapter
            .split_once("```toml\n")
            .and_then(|(_, rest)| rest.split_once("[profile"))
            .ok_or("library.md has no manifest")?
            .0
            .replace("../gemm/", &format!("{}/", workspace().display()));
        let package = "[package]\nname = \"program\"\nedition = \"2024\"\n";
        let manifest = format!("{package}\n{dependencies}\n{FEATURES}");
        fs::write(self.path("Cargo.toml"), manifest)?;
        self.take_profiles("")?;
        fs::create_dir(self.path("src"))?;
        fs::copy(
            workspace().join("tests/outside/program.rs"),
            self.path("src/main.rs"),
        )?;
        // The workspace's versions, so that nothing is downloaded.
        fs::copy(workspace().join("Cargo.lock"), self.path("Cargo.lock"))?;
        Ok(())
    }

    /// Makes a program from the template in a subfolder, as the book says.
    pub fn copy_template(&self, name: &str, arguments: &[&str]) -> Result<(), Failed> {
        let mut command = Command::new("sh");
        command
            .arg(workspace().join("template/new.sh"))
            .arg(self.path(name))
            .args(arguments);
        text_of(command.output()?).map(drop)
    }

    /// Gives a package the profiles of the workspace instead of its own, so that the workspace's
    /// compiled crates are reused.
    pub fn take_profiles(&self, below: &str) -> Result<(), Failed> {
        let path = self.path(below).join("Cargo.toml");
        let of_workspace = fs::read_to_string(workspace().join("Cargo.toml"))?;
        let profiles = of_workspace.find("[profile.").ok_or("no profiles")?;
        let manifest = fs::read_to_string(&path)?;
        let own = manifest.find("[profile.").unwrap_or(manifest.len());
        let parts = [&manifest[..own], "\n", &of_workspace[profiles..]];
        fs::write(path, parts.concat())?;
        Ok(())
    }

    /// Runs cargo in a subfolder, with the target folder of this workspace.
    pub fn cargo(
        &self,
        below: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Output, Failed> {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..");
        let mut command = Command::new(env!("CARGO"));
        command
            .args(arguments)
            .current_dir(self.path(below))
            .env("CARGO_TARGET_DIR", target)
            .envs(variables.iter().copied());
        Ok(command.output()?)
    }

    /// Deletes the compiled files of these packages: cargo treats each folder as another package,
    /// and the files would accumulate.
    pub fn clean(&self, below: &str, packages: &[&str]) -> Result<(), Failed> {
        for package in packages {
            text_of(self.cargo(below, &["clean", "--quiet", "-p", package], &[])?)?;
        }
        Ok(())
    }
}

/// The output of a command, if it succeeded.
pub fn text_of(output: Output) -> Result<String, Failed> {
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
