//! `cargo run -p book`: writes every generated part of the book and of the README.

use std::collections::BTreeSet;
use std::process::ExitCode;

use book::generated;
use clap::Parser;

/// Writes every generated part of the book and of the README, and says which files changed.
#[derive(Parser)]
#[command(name = "book")]
struct Arguments {}

fn main() -> ExitCode {
    let Arguments {} = Arguments::parse();
    let generated = match generated::all() {
        Ok(generated) => generated,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut files = BTreeSet::new();
    let mut changed = BTreeSet::new();
    let mut status = ExitCode::SUCCESS;
    for one in &generated {
        files.insert(&one.path);
        match one.write() {
            Ok(true) if changed.insert(&one.path) => println!("wrote {}", &one.path),
            Ok(_) => (),
            Err(error) => {
                eprintln!("error: {error}");
                status = ExitCode::FAILURE;
            }
        }
    }
    println!("{} of {} files changed", changed.len(), files.len());
    if let Some(reason) = book::why_absent() {
        println!("listings of compiled kernels were left as they are: {reason}");
    }
    status
}
