//! `ptxas` takes what it crashed on, in the module of one kernel, and that PTX, run on this CPU,
//! returns what the host returns.
//!
//! Where no `ptxas` is found its test is shown as ignored.

use cuda_builder::NvvmArch;
use differential::alone::Module;
use libtest_mimic::{Failed, Trial};
use nvvm::{Toolkit, ptxas};

use super::{Claim, EXHAUSTIVE, QUICK, Tier, claim};

pub fn trials() -> Vec<Trial> {
    let toolkit = Toolkit::find_or_fetch().ok();
    let toolkit = toolkit.filter(|found| found.ptxas.is_some());
    if toolkit.is_none() {
        eprintln!("The test of ptxas is ignored: no CUDA toolkit or wheel with it was found.");
    }
    let is_ignored = toolkit.is_none();
    let assembles = |tier: &'static Tier| {
        let name = format!("{}recursion_that_is_not_reached_assembles", tier.prefix());
        let toolkit = toolkit.clone();
        let test = move || assemble(&toolkit.ok_or("no ptxas")?, tier);
        Trial::test(name, test).with_ignored_flag(is_ignored || !tier.is_quick)
    };
    let alone = "a_kernel_comes_with_what_it_reaches_alone";
    vec![
        assembles(&QUICK),
        assembles(&EXHAUSTIVE),
        Trial::test(alone, comes_with_what_it_reaches_alone),
    ]
}

/// They return what they return on the host.
pub fn recursion() -> Claim {
    let functions = FUNCTIONS.map(|(name, rust)| (name.to_owned(), rust.to_owned()));
    let inputs = differential::generate::inputs(1);
    claim("recursion_that_is_not_reached_is_right", functions, inputs)
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

fn assemble(toolkit: &Toolkit, tier: &Tier) -> Result<(), Failed> {
    let modules = tier.compiled()?.modules.iter();
    for (config, ptx, _) in modules.filter(|(config, ..)| !config.optimized) {
        let machines = match config.arch {
            NvvmArch::Compute75 => &["sm_75", "sm_90", "sm_100"][..],
            _ => &["sm_100"],
        };
        let module = Module::of(ptx);
        for (name, _) in FUNCTIONS {
            let alone = module.kernel(&format!("k_{name}"));
            for sm in machines {
                ptxas::assemble_for(toolkit, &alone, sm)?;
            }
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
