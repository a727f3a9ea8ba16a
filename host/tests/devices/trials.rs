//! Tests that are reported as ignored where they cannot run.

use std::fmt::Display;

use libtest_mimic::Trial;

/// Makes tests from functions, named by a prefix and the function's name.
macro_rules! trials {
    ($prefix:literal: $($test:path),* $(,)?) => {
        vec![$(libtest_mimic::Trial::test(concat!($prefix, stringify!($test)), || {
            $test();
            Ok(())
        })),*]
    };
}

/// The tests, ignored if there is a reason why they cannot run here.
pub fn ignored_if(why_not: Option<impl Display>, trials: Vec<Trial>) -> Vec<Trial> {
    if let Some(reason) = &why_not {
        println!("some tests are ignored here: {reason}");
    }
    let trials = trials.into_iter();
    let trials = trials.map(|trial| trial.with_ignored_flag(why_not.is_some()));
    trials.collect()
}
