//! Code that must not compile is rejected, with a message at the right place.
//!
//! To accept a changed message: `TRYBUILD=overwrite cargo test -p stable_cuda_std --test ui`, then
//! read the diff.

#[test]
fn wrong_kernels_and_prints_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass_*.rs");
    cases.compile_fail("tests/ui/fail_*.rs");
}
