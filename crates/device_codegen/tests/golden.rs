//! One readable file per rewrite: `golden/CLAIM.ll` goes in, `golden/CLAIM.expected` must come
//! out, in both dialects. `errors/CLAIM.ll` must be refused with the message in
//! `errors/CLAIM.expected`. `ptxas/CLAIM.ptx` holds instructions that some ptxas compiles wrong,
//! one example after another behind lines `// ---- `, and `ptxas/CLAIM.expected` what replaces
//! them.
//!
//! After an intended change: `UPDATE_EXPECT=1 cargo test -p device_codegen --test golden`, then
//! read the diff.

mod common;

use std::fs;
use std::path::Path;

use common::{Case, DIALECTS, cases};
use device_codegen::{Dialect, avoid_ptxas_errors};
use expect_test::expect_file;
use libtest_mimic::{Arguments, Failed, Trial};

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
    let corrections = cases("ptxas").into_iter().map(|case| {
        Trial::test(format!("ptxas::{}", case.claim), move || {
            compare(&case, &corrected(&case.text));
            Ok(())
        })
    });
    let mut trials: Vec<Trial> = rewrites.chain(errors).chain(corrections).collect();
    trials.push(Trial::test("no_expectation_is_left_over", || {
        for folder in ["golden", "errors", "ptxas"] {
            no_expectation_is_left_over(folder)?;
        }
        Ok(())
    }));
    libtest_mimic::run(&arguments, trials).exit();
}

fn check_output(case: &Case) -> Result<(), Failed> {
    let mut found = String::new();
    let mut said = Vec::new();
    for (dialect, name) in DIALECTS {
        let module = case
            .compile(dialect, true)
            .map_err(|error| error.to_string())?;
        found.push_str(&format!("; ---- {name} ----\n"));
        found.push_str(without_target(&module.ir));
        found.push('\n');
        said = module.panics;
    }
    found.truncate(found.trim_end().len() + 1);
    for (number, said) in said.iter().enumerate() {
        found.push_str(&format!("\n; panic {number}: {said}"));
    }
    compare(case, &found);
    Ok(())
}

/// Without the target lines, which are the same in all modules: libNVVM would refuse others.
fn without_target(ir: &str) -> &str {
    ir.split_once("\n\n").map_or(ir, |(_, rest)| rest)
}

fn check_error(case: &Case) -> Result<(), Failed> {
    match case.compile(Dialect::TypedPointers, true) {
        Ok(_) => Err("it was accepted".into()),
        Err(error) => {
            compare(case, &format!("{error}\n"));
            Ok(())
        }
    }
}

/// The examples of a file, each corrected for itself.
fn corrected(text: &str) -> String {
    let mut found = String::new();
    let mut example = String::new();
    for line in text.lines() {
        let begins_another = line.starts_with("// ---- ");
        if begins_another {
            found.push_str(&avoid_ptxas_errors(&std::mem::take(&mut example)));
        }
        let text = if begins_another {
            &mut found
        } else {
            &mut example
        };
        text.push_str(line);
        text.push('\n');
    }
    found + &avoid_ptxas_errors(&example)
}

fn compare(case: &Case, found: &str) {
    expect_file![case.path.with_extension("expected")].assert_eq(found);
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
            && !["ll", "ptx"]
                .iter()
                .any(|ending| path.with_extension(ending).exists())
        {
            return Err(format!("{} has no input", path.display()).into());
        }
    }
    Ok(())
}
