//! What the README says of the ladder is what the table of kernels says.

use std::path::Path;

use gpu_kernels::KERNELS;

#[test]
fn the_readme_lists_every_kernel_with_its_idea_in_order() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let readme = std::fs::read_to_string(path).expect("README.md");
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
