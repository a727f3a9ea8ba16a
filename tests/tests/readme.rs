//! What the README says of the ladder is what the table of kernels says, and its figures are those that were measured.
//!
//! After a new run of `host --kernel all --size SIZE --format json` into `results/`, `BLESS=1 cargo test --test readme`
//! writes its figures into the README.

use std::fs;
use std::path::PathBuf;

use gpu_kernels::KERNELS;
use serde_json::Value;

const SIZES: [u32; 3] = [2048, 4096, 8192];

fn at_root(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(path)
}

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
    let (readme, table) = (readme(), table());
    let head = table.lines().next().expect("a first line");
    let start = readme
        .find(head)
        .unwrap_or_else(|| panic!("README.md has no row {head}"));
    let end = start + readme[start..].find("\n\n").expect("the end of the table") + 1;
    if readme[start..end] == table {
        return;
    }
    if std::env::var_os("BLESS").is_some() {
        let blessed = format!("{}{table}{}", &readme[..start], &readme[end..]);
        fs::write(at_root("README.md"), blessed).expect("README.md can be written");
        return;
    }
    panic!(
        "README.md says\n{}\nbut results/ say\n{table}\nBLESS=1 cargo test --test readme writes them",
        &readme[start..end]
    );
}

/// TFLOP/s of each kernel at each size, and its share of cuBLAS.
fn table() -> String {
    let runs = SIZES.map(|size| {
        let path = at_root(&format!("results/h200-{size}.json"));
        let text = fs::read_to_string(&path).expect("a results file");
        let run: Value = serde_json::from_str(&text).expect("JSON");
        run["results"].as_array().expect("results").clone()
    });
    let head = SIZES.map(|size| format!(" {size} |")).concat();
    let mut table = format!("| kernel |{head}\n| --- | --- | --- | --- |\n");
    for (index, record) in runs[0].iter().enumerate() {
        let name = record["kernel"].as_str().expect("a kernel");
        let cells = runs.each_ref().map(|run| {
            let record = &run[index];
            assert_eq!(record["kernel"], name, "the runs are of different kernels");
            assert_eq!(record["proven"], true, "{name} was not proven right");
            let number = |key: &str| record[key].as_f64().expect(key);
            let (speed, ratio) = (
                number("flops_per_s") / 1e12,
                number("ratio_to_cublas") * 100.0,
            );
            format!(" {speed:.1} ({ratio:.0} %) |")
        });
        table += &format!("| `{name}` |{}\n", cells.concat());
    }
    let cublas = runs.each_ref().map(|run| {
        let number = |key: &str| run[0][key].as_f64().expect(key);
        let flops = 2.0 * number("m") * number("n") * number("k");
        format!(" {:.1} |", flops / number("cublas_time_median_s") / 1e12)
    });
    table + &format!("| cuBLAS fp32 |{}\n", cublas.concat())
}
