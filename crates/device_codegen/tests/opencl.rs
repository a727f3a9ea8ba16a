//! Kernels as OpenCL C. `opencl/CLAIM.ll` goes in, `opencl/CLAIM.expected` must come out, and,
//! where there is a device of OpenCL, it must compile and store what the first lines of the `.ll`
//! say, which is worked out by hand:
//!
//! ```text
//! ; run 2 groups of 4
//! ; with 5 6 7
//! ; gives 5 6 7 0 1
//! ; panics 1
//! ```
//!
//! The kernel gets a pointer to these words and zeros behind them. A line `; contraction forbidden`
//! keeps products and sums from being fused; `; needs fma` says that the words tell whether they
//! were, so that the device must have an instruction for both. `opencl_errors/CLAIM.ll` must be
//! refused with the message in `opencl_errors/CLAIM.expected`.
//!
//! After an intended change: `UPDATE_EXPECT=1 cargo test -p device_codegen --test opencl`, then
//! read the diff. What runs is in the exhaustive tier.

mod common;
#[path = "common/opencl.rs"]
mod device;

use common::{Case, cases};
use device::OpenCl;
use device_codegen::{Contraction, OpenClKernel, OpenClKernels, Source, compile_opencl};
use expect_test::expect_file;
use libtest_mimic::{Arguments, Failed, Trial};

/// The words that a kernel gets at least.
const WORDS: usize = 64;

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for case in cases("opencl") {
        trials.push(Trial::test(format!("prints::{}", case.claim), move || {
            check_text(&case)
        }));
    }
    for case in cases("opencl_errors") {
        trials.push(Trial::test(format!("refuses::{}", case.claim), move || {
            check_error(&case)
        }));
    }
    match OpenCl::open() {
        Ok(device) => trials.extend(on_device(&device)),
        Err(why_not) => println!("nothing runs or is compiled by OpenCL here: {why_not}"),
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// The tests of the exhaustive tier: a device takes a second to compile a kernel. In the quick tier
/// the text is that which was run.
fn on_device(device: &OpenCl) -> Vec<Trial> {
    let has_fma = device.has_fma();
    let mut trials = Vec::new();
    for case in cases("opencl") {
        let name = format!("exhaustive::runs::{}", case.claim);
        if has_fma || !needs_fma(&case.text) {
            trials.push(Trial::test(name, move || {
                check_run(&case.claim, &case.text)
            }));
        }
    }
    // Whatever can be printed of what PTX is made of must be OpenCL C.
    for case in cases("golden") {
        let name = format!("exhaustive::compiles::{}", case.claim);
        trials.push(Trial::test(name, move || check_compiles(&case)));
    }
    let trials = trials.into_iter();
    trials.map(|trial| trial.with_ignored_flag(true)).collect()
}

fn needs_fma(text: &str) -> bool {
    text.lines().any(|line| line == "; needs fma")
}

fn compile(claim: &str, text: &str) -> Result<OpenClKernels, String> {
    let name = format!("{claim}.ll");
    let source = Source { name: &name, text };
    let contraction = match text.lines().any(|line| line == "; contraction forbidden") {
        true => Contraction::Forbidden,
        false => Contraction::Allowed,
    };
    compile_opencl(&[source], contraction).map_err(|error| error.to_string())
}

fn only(kernels: OpenClKernels) -> Result<OpenClKernel, String> {
    let [(_, kernel)] = <[_; 1]>::try_from(kernels).map_err(|_| "there is not one kernel")?;
    kernel.map_err(|error| error.to_string())
}

fn check_text(case: &Case) -> Result<(), Failed> {
    let kernel = only(compile(&case.claim, &case.text)?)?;
    expect_file![case.path.with_extension("expected")].assert_eq(&kernel.source);
    Ok(())
}

fn check_error(case: &Case) -> Result<(), Failed> {
    let message = match compile(&case.claim, &case.text).and_then(only) {
        Ok(_) => return Err("it was accepted".into()),
        Err(message) => message,
    };
    expect_file![case.path.with_extension("expected")].assert_eq(&format!("{message}\n"));
    Ok(())
}

fn check_compiles(case: &Case) -> Result<(), Failed> {
    // What is wrong for PTX too is another test's.
    let Ok(kernels) = compile(&case.claim, &case.text) else {
        return Ok(());
    };
    let opencl = OpenCl::open()?;
    for kernel in kernels.into_iter().filter_map(|(_, kernel)| kernel.ok()) {
        // OpenCL 3.0 makes optional what 2.0 has.
        if kernel.version == device_codegen::OpenClVersion::V1_2 {
            opencl.compile(&kernel.source)?;
        }
    }
    Ok(())
}

fn check_run(claim: &str, text: &str) -> Result<(), Failed> {
    let line = |key: &str| {
        let prefix = format!("; {key} ");
        text.lines()
            .find_map(move |line| line.strip_prefix(&prefix).map(str::to_owned))
    };
    let numbers = |text: String| -> Result<Vec<u32>, Failed> {
        text.split_whitespace()
            .map(|word| match word.strip_prefix("0x") {
                Some(digits) => Ok(u32::from_str_radix(digits, 16)?),
                None => Ok(word.parse()?),
            })
            .collect()
    };
    let sizes = numbers(line("run").ok_or("no `; run`")?.replace("groups of", ""))?;
    let [groups, items] = sizes[..] else {
        return Err("`; run` has two numbers".into());
    };
    let mut words = numbers(line("with").unwrap_or_default())?;
    let expected = numbers(line("gives").ok_or("no `; gives`")?)?;
    words.resize(WORDS, 0);
    let kernel = only(compile(claim, text)?)?;
    let (after, record) = OpenCl::open()?.run(&kernel, &words, groups as usize, items as usize)?;
    if after[..expected.len()] != expected[..] {
        return Err(format!(
            "it gives {:?}, not {expected:?}\n{}",
            &after[..expected.len()],
            kernel.source
        )
        .into());
    }
    let panicked = numbers(line("panics").unwrap_or_else(|| "0".to_owned()))?;
    if record[..1] != panicked[..] {
        return Err(format!("the record begins with {}, not {panicked:?}", record[0]).into());
    }
    Ok(())
}
