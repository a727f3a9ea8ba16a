//! A test that needs a toolkit, and is reported as ignored where there is none.

use libtest_mimic::{Failed, Trial};
use nvvm::Toolkit;

pub fn trial(
    name: &str,
    toolkit: &Option<Toolkit>,
    test: impl FnOnce(&Toolkit) -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let toolkit = toolkit.clone();
    let ignored = toolkit.is_none();
    Trial::test(name, move || test(&toolkit.ok_or("there is no toolkit")?))
        .with_ignored_flag(ignored)
}
