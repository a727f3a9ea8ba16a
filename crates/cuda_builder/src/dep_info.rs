//! Reads which files and variables a crate was compiled from, out of the `.d` file that rustc
//! writes.

use std::path::PathBuf;

/// What a crate was compiled from.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DepInfo {
    /// Its files, relative to the folder that rustc ran in.
    pub(crate) files: Vec<PathBuf>,
    /// The variables that `env!` and `option_env!` have read.
    pub(crate) variables: Vec<String>,
}

impl DepInfo {
    /// Reads a makefile such as
    ///
    /// ```text
    /// target/deps/kernels-12ab.d: src/lib.rs src/a\ b.rs
    ///
    /// src/lib.rs:
    /// src/a\ b.rs:
    ///
    /// # env-dep:TILE=16
    /// ```
    pub(crate) fn parse(text: &str) -> DepInfo {
        // Every prerequisite of a rule has an empty rule of its own.
        let files = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.strip_suffix(':'))
            .map(|file| PathBuf::from(file.replace("\\ ", " ")))
            .collect();
        let variables = text
            .lines()
            .filter_map(|line| line.strip_prefix("# env-dep:"))
            .map(|rest| rest.split_once('=').map_or(rest, |(name, _)| name))
            .map(str::to_owned)
            .collect();
        DepInfo { files, variables }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_variables_are_read() {
        let text = "\
/t/deps/k-1.d: src/lib.rs src/a\\ b.rs /elsewhere/table.bin

/t/deps/libk-1.rmeta: src/lib.rs src/a\\ b.rs /elsewhere/table.bin

src/lib.rs:
src/a\\ b.rs:
/elsewhere/table.bin:

# env-dep:TILE=16
# env-dep:UNSET
";
        let expected = DepInfo {
            files: vec![
                "src/lib.rs".into(),
                "src/a b.rs".into(),
                "/elsewhere/table.bin".into(),
            ],
            variables: vec!["TILE".to_owned(), "UNSET".to_owned()],
        };
        assert_eq!(DepInfo::parse(text), expected);
    }
}
