//! The README's tables are what they claim to be: the ladder is the kernels' own table, and the figures come from
//! `results/h200.json`, which `host bench` wrote. `BLESS=1 cargo test --test readme` writes the figures into the README.

use std::fs;

use gpu_kernels::KERNELS;
use host::bench::{markdown, preset};
use tests::results::{at_root, h200};

fn readme() -> String {
    fs::read_to_string(at_root("README.md")).expect("README.md")
}

#[test]
fn the_readme_lists_every_kernel_with_its_idea_in_order() {
    let readme = readme();
    let mut rest = readme.as_str();
    for kernel in KERNELS {
        let row = format!(
            "| [`{}`]({}) | {} |\n",
            kernel.name, kernel.source, kernel.idea
        );
        let at = rest
            .find(&row)
            .unwrap_or_else(|| panic!("README.md has no such row, or not in this order:\n{row}"));
        rest = &rest[at + row.len()..];
    }
}

#[test]
fn the_figures_of_the_readme_are_those_of_the_results() {
    let results = h200().expect("results");
    let old = readme();
    let mut new = old.clone();
    replace(&mut new, "| kernel | 1024 |", &markdown::overview(&results));
    replace(&mut new, "| the report's name |", &preset::table(&results));
    if new == old {
        return;
    }
    if std::env::var_os("BLESS").is_some() {
        fs::write(at_root("README.md"), new).expect("README.md can be written");
        return;
    }
    let differs = |(old, new): &(&str, &str)| old != new;
    let (old, new) = old
        .lines()
        .zip(new.lines())
        .find(differs)
        .unwrap_or_default();
    panic!(
        "README.md says\n{old}\nbut results/h200.json says\n{new}\nBLESS=1 cargo test --test readme writes it"
    );
}

/// Puts `table` in the place of the one that begins with `head`.
fn replace(readme: &mut String, head: &str, table: &str) {
    let start = readme
        .find(head)
        .unwrap_or_else(|| panic!("README.md has no table that begins with {head}"));
    let end = start + readme[start..].find("\n\n").expect("the end of the table") + 1;
    readme.replace_range(start..end, table);
}
