//! Tests that are reported as ignored where they cannot run.

use std::fmt::Display;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// Makes tests from functions, named by a prefix and the function's name.
macro_rules! trials {
    ($prefix:literal: $($test:path),* $(,)?) => {
        vec![$(libtest_mimic::Trial::test(concat!($prefix, stringify!($test)), || {
            $test();
            Ok(())
        })),*]
    };
}

/// Runs them, unless there is a reason why they cannot run here.
pub fn run(why_not: Option<impl Display>, trials: Vec<Trial>) -> ExitCode {
    if let Some(reason) = &why_not {
        println!("these tests are ignored here: {reason}");
    }
    let trials = trials.into_iter();
    let trials = trials.map(|trial| trial.with_ignored_flag(why_not.is_some()));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
