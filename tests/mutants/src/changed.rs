//! Which lines a change touches.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The lines, counted from 1, that are new or other than at `commit`, for each file.
pub fn since(root: &Path, commit: &str) -> Result<HashMap<String, Vec<Range<usize>>>> {
    let output = Command::new("git")
        .current_dir(root)
        .args([
            "diff",
            "--unified=0",
            "--no-color",
            "--no-ext-diff",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            commit,
            "--",
            "*.rs",
        ])
        .output()
        .context("git cannot be started")?;
    if !output.status.success() {
        bail!(
            "git diff {commit} failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(lines_of(&String::from_utf8_lossy(&output.stdout)))
}

/// Reads a diff without context.
fn lines_of(diff: &str) -> HashMap<String, Vec<Range<usize>>> {
    let mut changed: HashMap<String, Vec<Range<usize>>> = HashMap::new();
    let mut file = "";
    for line in diff.lines() {
        if let Some(name) = line.strip_prefix("+++ b/") {
            file = name;
        } else if let Some(range) = line.strip_prefix("@@ ").and_then(added) {
            changed.entry(file.to_owned()).or_default().push(range);
        }
    }
    changed
}

/// `-1,2 +3,4 @@`: lines 3 to 6.
fn added(hunk: &str) -> Option<Range<usize>> {
    let added = hunk.split(' ').nth(1)?.strip_prefix('+')?;
    let (first, count) = added.split_once(',').unwrap_or((added, "1"));
    let first: usize = first.parse().ok()?;
    Some(first..first + count.parse::<usize>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_and_changed_lines_are_found_and_removed_ones_are_not() {
        let diff = "diff --git a/x.rs b/x.rs\n--- a/x.rs\n+++ b/x.rs\n@@ -3 +3,2 @@ fn f()\n-a\n+b\n+c\n@@ -9,2 +9,0 @@\n-d\n-e\n";
        let changed = lines_of(diff);
        assert_eq!(changed["x.rs"], [3..5, 9..9]);
    }
}
