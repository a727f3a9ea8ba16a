//! The Rust files that this build's PTX came from.

use gpu_gemm::device::compiled;

/// A line of a file, counted from 1, without the blanks around it.
pub fn line(file: &str, line: u32) -> Option<&'static str> {
    let text = compiled::source(file)?;
    let index = usize::try_from(line).ok()?.checked_sub(1)?;
    text.lines().nth(index).map(str::trim)
}

/// A file's name for people: a file of Rust's own libraries is shortened to `core/src/cmp.rs`.
pub fn short_name(file: &str) -> &str {
    let rust = ["/rustc/", "rust/"]
        .iter()
        .any(|root| file.starts_with(root));
    match file.split_once("library/") {
        Some((_, name)) if rust => name,
        _ => file,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_1_and_there_is_none_past_the_end() {
        let name = "gpu-kernels/src/tiled.rs";
        let Some(text) = compiled::source(name) else {
            return; // no PTX in this build, which `gpu_gemm` has a test for
        };
        assert_eq!(line(name, 1), text.lines().next().map(str::trim));
        assert_eq!(line(name, 0), None);
        assert_eq!(line(name, u32::MAX), None);
        assert_eq!(line("no/such/file.rs", 1), None);
    }

    #[test]
    fn names_of_rusts_own_files_are_cut() {
        let long = "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/core/src/cmp.rs";
        assert_eq!(short_name(long), "core/src/cmp.rs");
        assert_eq!(
            short_name("gpu-kernels/src/library/x.rs"),
            "gpu-kernels/src/library/x.rs"
        );
    }
}
