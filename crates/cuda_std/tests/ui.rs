//! Kernels of all kinds compile, and code that must not is rejected, with a message at the right
//! place.
//!
//! To accept a changed message: `TRYBUILD=overwrite cargo test -p stable_cuda_std --test ui`, then
//! read the diff.

// Here, and not among those of trybuild, which would then generate code for all that `cuda_std`
// uses.
#[path = "ui/kernels.rs"]
#[rustfmt::skip]
mod kernels;

#[test]
fn wrong_kernels_and_prints_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/fail_*.rs");
}
