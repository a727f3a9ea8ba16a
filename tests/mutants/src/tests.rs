//! A program with mutants in it is itself while none is on, and another with each.

use std::collections::HashMap;
use std::fs;
use std::process::Command;

use crate::operators::mutate;
use crate::tree::SWITCH;

/// Every operator at least once; each function's value is printed, and depends on all that is in
/// it.
const PROGRAM: &str = r#"
fn arithmetic(a: i32, b: i32) -> i32 { (a + b) * 3 - a / b % 7 }
fn bits(a: u32) -> u32 { a << 3 | (a & 12) ^ a >> 1 }
fn compares(a: i32) -> [bool; 6] { [a < 5, a <= 4, a > 5, a >= 6, a == 5, a != 5] }
fn logic(a: bool, b: bool) -> [bool; 3] { [a && b, a || b, !a] }
fn assigns(mut a: i32) -> i32 { a += 4; a *= 3; a -= 1; a }
fn decides(a: i32) -> &'static str { if a > 3 { "more" } else { "less" } }
fn clamps(a: i32) -> i32 { a.min(9).max(2) }
fn negates(a: f32) -> f32 { -a + 0.5 }
fn sums(values: &[i32]) -> i32 {
    let mut sum = 0;
    for value in values { if *value == 3 { continue; } sum += *value; }
    sum
}
fn leaves(values: &mut Vec<i32>) { values.push(1); values[0] = 7; }
const fn known(a: usize) -> usize { a + 1 }
const KNOWN: [u8; known(2) + 1] = [0; 4];
#[cfg(test)]
fn never_compiled() -> i32 { 1 + 1 }
"#;

/// Prints what the functions return.
const MAIN: &str = r#"
fn main() {
    println!("{} {}", arithmetic(40, 3), arithmetic(-7, 5));
    println!("{} {}", bits(5), bits(14));
    println!("{:?} {:?} {:?}", compares(4), compares(5), compares(6));
    println!("{:?} {:?} {:?}", logic(true, false), logic(false, true), logic(true, true));
    println!("{} {} {}", assigns(2), decides(3), decides(4));
    println!("{} {} {}", clamps(1), clamps(5), clamps(12));
    println!("{} {}", negates(2.0), sums(&[1, 3, 5]));
    let mut values = vec![4];
    leaves(&mut values);
    println!("{values:?} {}", KNOWN.len());
}
"#;

#[test]
fn each_mutant_changes_what_the_program_does_and_without_one_it_is_the_same() {
    let mutated = mutate("program.rs", PROGRAM, 1, &|_| true).expect("it is Rust");
    let folder = tempfile::tempdir().unwrap();
    let compile = |name: &str, text: String| {
        let (source, program) = (
            folder.path().join(format!("{name}.rs")),
            folder.path().join(name),
        );
        fs::write(&source, text).unwrap();
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        rustc.args(["--edition=2024", "-Adead_code", "-Aunused", "-o"]);
        let compiled = rustc.arg(&program).arg(&source).output().unwrap();
        assert!(
            compiled.status.success(),
            "{}",
            String::from_utf8_lossy(&compiled.stderr)
        );
        program
    };
    let original = compile("original", format!("{PROGRAM}{MAIN}"));
    let switched = compile("switched", format!("{}{MAIN}{SWITCH}", mutated.source));
    let run = |program, id: u32| {
        let ran = Command::new(program)
            .env("MUTANT", id.to_string())
            .output()
            .unwrap();
        (ran.status.code(), ran.stdout)
    };
    let right = run(&original, 0);
    let without = run(&switched, 0);
    let changed: HashMap<_, _> = mutated
        .mutants
        .iter()
        .map(|mutant| (mutant.name(), run(&switched, mutant.id) != right))
        .collect();

    assert_eq!(without, right);
    let unchanged: Vec<_> = changed
        .iter()
        .filter(|(_, changed)| !**changed)
        .map(|(name, _)| name)
        .collect();
    assert!(unchanged.is_empty(), "{unchanged:#?}");
    assert_eq!(
        changed.len(),
        mutated.mutants.len(),
        "two mutants have one name"
    );
    assert!(
        !changed
            .keys()
            .any(|name| name.contains("known") || name.contains("never_compiled"))
    );
}
