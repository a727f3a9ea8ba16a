//! Kernels of all kinds compile, and code that must not is rejected, with a message at the right
//! place.
//!
//! To accept a changed message, and then read the diff:
//!
//!     TRYBUILD=overwrite cargo test -p stable_cuda_std --test ui -- --ignored

// Here, and not among those of trybuild, which would then generate code for all that `cuda_std`
// uses.
#[path = "ui/kernels.rs"]
#[rustfmt::skip]
mod kernels;

mod exhaustive {
    /// Cargo checks `cuda_std` and what it depends on once more for it.
    #[test]
    #[ignore = "takes a quarter of a minute"]
    fn wrong_kernels_and_prints_do_not_compile() {
        let cases = trybuild::TestCases::new();
        cases.compile_fail("tests/ui/fail_*.rs");
    }
}
