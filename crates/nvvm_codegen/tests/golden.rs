//! One readable file per rewrite: `golden/CLAIM.ll` goes in, `golden/CLAIM.expected` must come
//! out, in both dialects. `errors/CLAIM.ll` must be refused with the message in
//! `errors/CLAIM.expected`.
//!
//! After an intended change: `BLESS=1 cargo test -p nvvm_codegen --test golden`, then read the
//! diff.

mod common;

use std::fs;
use std::path::Path;

use common::{Case, DIALECTS, cases};
use libtest_mimic::{Arguments, Failed, Trial};
use nvvm_codegen::Dialect;

const BLESS: &str = "BLESS=1 cargo test -p nvvm_codegen --test golden";

fn main() {
    let arguments = Arguments::from_args();
    let rewrites = cases("golden").into_iter().map(|case| {
        Trial::test(format!("golden::{}", case.claim), move || {
            check_output(&case)
        })
    });
    let errors = cases("errors").into_iter().map(|case| {
        Trial::test(format!("errors::{}", case.claim), move || {
            check_error(&case)
        })
    });
    let mut trials: Vec<Trial> = rewrites.chain(errors).collect();
    trials.push(Trial::test("no_expectation_is_left_over", || {
        for folder in ["golden", "errors"] {
            no_expectation_is_left_over(folder)?;
        }
        Ok(())
    }));
    libtest_mimic::run(&arguments, trials).exit();
}

fn check_output(case: &Case) -> Result<(), Failed> {
    let mut found = String::new();
    for (dialect, name) in DIALECTS {
        let module = case.compile(dialect).map_err(|error| error.to_string())?;
        found.push_str(&format!("; ---- {name} ----\n"));
        found.push_str(without_target(&module.ir));
        found.push('\n');
    }
    found.truncate(found.trim_end().len() + 1);
    compare(&case.path.with_extension("expected"), &found)
}

/// The target lines, which are the same in all modules, are another test's.
fn without_target(ir: &str) -> &str {
    ir.split_once("\n\n").map_or(ir, |(_, rest)| rest)
}

fn check_error(case: &Case) -> Result<(), Failed> {
    match case.compile(Dialect::TypedPointers) {
        Ok(_) => Err("it was accepted".into()),
        Err(error) => compare(&case.path.with_extension("expected"), &format!("{error}\n")),
    }
}

fn compare(path: &Path, found: &str) -> Result<(), Failed> {
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        fs::write(path, found)?;
        return Ok(());
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    if expected == found {
        return Ok(());
    }
    let name = path.display();
    Err(format!(
        "{name} is not what came out. If the change is meant: {BLESS}\n{}",
        difference(&expected, found)
    )
    .into())
}

/// The lines from the first that differs to the last, `-` expected and `+` found.
fn difference(expected: &str, found: &str) -> String {
    let expected: Vec<&str> = expected.lines().collect();
    let found: Vec<&str> = found.lines().collect();
    let same_at_start = expected
        .iter()
        .zip(&found)
        .take_while(|(a, b)| a == b)
        .count();
    let rest = expected.len().min(found.len()) - same_at_start;
    let same_at_end = expected
        .iter()
        .rev()
        .zip(found.iter().rev())
        .take(rest)
        .take_while(|(a, b)| a == b)
        .count();
    let mut text = format!("from line {}:\n", same_at_start + 1);
    for line in &expected[same_at_start..expected.len() - same_at_end] {
        text.push_str(&format!("- {line}\n"));
    }
    for line in &found[same_at_start..found.len() - same_at_end] {
        text.push_str(&format!("+ {line}\n"));
    }
    text
}

fn no_expectation_is_left_over(folder: &str) -> Result<(), Failed> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(folder);
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "expected")
            && !path.with_extension("ll").exists()
        {
            return Err(format!("{} has no input", path.display()).into());
        }
    }
    Ok(())
}
