//! `ptxas` takes what it crashed on, and that PTX, run on this CPU, returns what the host returns.
//!
//! Where no `ptxas` is found the tests are shown as ignored.

use std::process::ExitCode;

use cuda_builder::NvvmArch;
use differential::check;
use differential::compile::{Batch, Config, play_build_script};
use differential::ptx::Approximate;
use libtest_mimic::{Arguments, Failed, Trial};
use nvvm::{Toolkit, ptxas};

fn main() -> ExitCode {
    if let Some(code) = play_build_script() {
        return code;
    }
    let arguments = Arguments::from_args();
    let toolkit = Toolkit::find_or_fetch().ok();
    let toolkit = toolkit.filter(|found| found.ptxas.is_some());
    if toolkit.is_none() {
        eprintln!("The tests of ptxas are ignored: no CUDA toolkit or wheel with it was found.");
    }
    let tests = FUNCTIONS.map(|(name, rust)| {
        let is_ignored = toolkit.is_none();
        let toolkit = toolkit.clone();
        let assembles = move || match &toolkit {
            Some(toolkit) => assembles(toolkit, name, rust),
            None => Err("no ptxas".into()),
        };
        Trial::test(format!("{name}_assembles"), assembles).with_ignored_flag(is_ignored)
    });
    libtest_mimic::run(&arguments, tests.into()).exit_code()
}

/// Functions that call themselves, in kernels that never reach them: `ptxas` finds that out, as it
/// sees with which constant the only call of the function between is made.
const FUNCTIONS: [(&str, &str); 3] = [
    (
        "quicksort_in_a_kernel_that_sorts_four",
        "#[inline(never)]
        fn sort(numbers: &mut [u64]) { numbers.sort_unstable(); }
        pub fn quicksort_in_a_kernel_that_sorts_four(x: &[u64; 8]) -> u64 {
            let mut four = [x[0], x[1], x[2], x[3]];
            sort(&mut four);
            four[1]
        }",
    ),
    (
        "recursion_that_is_not_reached",
        "fn sum(x: &[u64; 8], n: u64) -> u64 {
            if n == 0 { x[0] } else { sum(x, n - 1).wrapping_mul(3) ^ n }
        }
        #[inline(never)]
        fn of(x: &[u64; 8], n: u64) -> u64 { if n % 8 == 7 { sum(x, n) } else { x[1] ^ n } }
        pub fn recursion_that_is_not_reached(x: &[u64; 8]) -> u64 { of(x, 3) }",
    ),
    (
        "mutual_recursion_that_is_not_reached",
        "#[inline(never)]
        fn even(x: &[u64; 8], n: u64) -> u64 {
            if n == 0 { x[0] } else { odd(x, n - 1).wrapping_mul(3) ^ n }
        }
        #[inline(never)]
        fn odd(x: &[u64; 8], n: u64) -> u64 {
            if n == 0 { x[1] } else { even(x, n - 1).wrapping_mul(5) ^ n }
        }
        #[inline(never)]
        fn of(x: &[u64; 8], n: u64) -> u64 { if n % 8 == 7 { odd(x, n) } else { x[1] ^ n } }
        pub fn mutual_recursion_that_is_not_reached(x: &[u64; 8]) -> u64 { of(x, 3) }",
    ),
];

fn assembles(toolkit: &Toolkit, name: &str, rust: &str) -> Result<(), Failed> {
    let functions = [(name.to_owned(), rust.to_owned())];
    let configs = [NvvmArch::Compute75, NvvmArch::Compute100].map(|arch| Config {
        arch,
        optimized: false,
    });
    let inputs = differential::generate::inputs(1);
    let outcome = check::functions_on_cpu(&functions, &inputs, &configs, &[Approximate(0)])?;
    assert_eq!((outcome.compared, outcome.differences.len()), (1, 0));
    let batch = Batch::new(&functions)?;
    for (config, on) in [(0, "sm_75"), (0, "sm_90"), (0, "sm_100"), (1, "sm_100")] {
        let ptx = batch.ptx(configs[config])?;
        ptxas::assemble_for(toolkit, &ptx, on)?;
    }
    Ok(())
}
