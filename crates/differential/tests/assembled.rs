//! `ptxas` takes what it crashed on, and that PTX, run on this CPU, returns what the host returns.
//! It takes the module of one kernel, too.
//!
//! Where no `ptxas` is found the tests are shown as ignored.

use std::process::ExitCode;

use cuda_builder::NvvmArch;
use differential::alone::Module;
use differential::check;
use differential::compile::{Config, play_build_script};
use differential::ptx::{self, Approximate};
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
    let is_ignored = toolkit.is_none();
    let assemble = move || assemble(&toolkit.ok_or("no ptxas")?);
    let recursion = "recursion_that_is_not_reached_assembles";
    let alone = "a_kernel_comes_with_what_it_reaches_alone";
    let tests = vec![
        Trial::test(recursion, assemble).with_ignored_flag(is_ignored),
        Trial::test(alone, comes_with_what_it_reaches_alone),
    ];
    libtest_mimic::run(&arguments, tests).exit_code()
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
        fn of_odd(x: &[u64; 8], n: u64) -> u64 { if n % 8 == 7 { odd(x, n) } else { x[1] ^ n } }
        pub fn mutual_recursion_that_is_not_reached(x: &[u64; 8]) -> u64 { of_odd(x, 3) }",
    ),
];

fn assemble(toolkit: &Toolkit) -> Result<(), Failed> {
    let mut functions = FUNCTIONS
        .map(|(name, rust)| (name.to_owned(), rust.to_owned()))
        .to_vec();
    let configs = [NvvmArch::Compute75, NvvmArch::Compute100].map(|arch| Config {
        arch,
        optimized: false,
    });
    let mut refused = Vec::new();
    let compiled = check::compile(&mut functions, &configs, &mut refused)?;
    assert_eq!(refused, []);
    let (batch, ptx) = compiled.ok_or("none is compiled")?;
    let inputs = differential::generate::inputs(1);
    let on_host = batch.on_host()?;
    for (config, ptx) in configs.into_iter().zip(&ptx) {
        let module = ptx::Module::parse(ptx)?;
        let machines = match config.arch {
            NvvmArch::Compute75 => &["sm_75", "sm_90", "sm_100"][..],
            _ => &["sm_100"],
        };
        for name in batch.names() {
            let expected = on_host.expected(name, &inputs)?;
            let both = (&inputs[..], &expected[..]);
            let difference = check::compare(name, both, (config, &module), Approximate(0));
            assert!(difference.is_none(), "{difference:?}");
            let alone = Module::of(ptx).kernel(&format!("k_{name}"));
            for sm in machines {
                ptxas::assemble_for(toolkit, &alone, sm)?;
            }
        }
        for sm in machines {
            ptxas::assemble_for(toolkit, ptx, sm)?;
        }
    }
    Ok(())
}

fn comes_with_what_it_reaches_alone() -> Result<(), Failed> {
    let function = |head: &str, body: &str| format!("{head}\n{{\n\t{body}\n\tret;\n\n}}\n");
    let head = ".version 7.8\n.target sm_75\n.address_size 64\n";
    let declared = ".func  (.param .b32 func_retval0) leaf\n(\n\t.param .b32 leaf_param_0\n)\n;\n";
    let table = ".global .align 8 .u64 table[1] = {held};\n";
    let leaf = function(
        ".func  (.param .b32 func_retval0) leaf(\n\t.param .b32 leaf_param_0\n)",
        "add.s32 %r1, %r1, 1;",
    );
    let caller = function(
        ".func caller(\n\n)",
        "call.uni (retval0), \n\tleaf, \n\t(\n\tparam0\n\t);",
    );
    let held = function(".func held()", "");
    let one = function(
        ".visible .entry k_one(\n\t.param .u64 k_one_param_0\n)",
        "call.uni \n\tcaller;",
    );
    let two = function(".visible .entry k_two(\n\t.param .u64 k_two_param_0\n)", "");
    let parts = [head, declared, table, &leaf, &caller, &held, &one, &two];
    let ptx = parts.concat();
    let module = Module::of(&ptx);
    let alone = |kernel| {
        let text = module.kernel(kernel);
        assert!(text.starts_with(head) && text.contains(table), "{text}");
        assert_eq!(text.contains(declared), text.contains(&leaf), "{text}");
        [&leaf, &caller, &held, &one, &two].map(|part| text.matches(part.as_str()).count())
    };
    assert_eq!(alone("k_one"), [1, 1, 1, 1, 0]);
    assert_eq!(alone("k_two"), [0, 0, 1, 0, 1]);
    assert!(!module.kernel("k_none").contains(".entry"));
    Ok(())
}
