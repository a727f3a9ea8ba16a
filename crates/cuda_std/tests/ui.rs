//! What must not compile does not, and says why at the right place.
//!
//! To accept a changed message: `TRYBUILD=overwrite cargo test -p cuda_std --test ui`, then read the difference.

#[test]
fn wrong_kernels_and_prints_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass_*.rs");
    cases.compile_fail("tests/ui/fail_*.rs");
}
