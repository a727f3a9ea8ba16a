//! Compares what PTX computes with what the host does.

use std::collections::HashSet;
use std::panic::resume_unwind;
use std::thread::ScopedJoinHandle;

use anyhow::Result;

use crate::compile::{Batch, Config};
use crate::generate::{self, Function};
use crate::ptx::{Approximate, Module, run_words};

/// What an error says that one of the functions is the cause of.
const BLAMES_LIBNVVM: [&str; 2] = ["libNVVM rejected", "libNVVM gave no answer"];

/// A function that returns something else on the device.
#[derive(Clone, Debug)]
pub struct Difference {
    pub name: String,
    pub config: Config,
    pub input: [u64; 8],
    pub expected: u64,
    /// `None` if the PTX could not be run; see `problem`.
    pub found: Option<u64>,
    pub problem: String,
}

/// The results of comparing some functions.
#[derive(Debug, Default)]
pub struct Outcome {
    pub compared: usize,
    pub differences: Vec<Difference>,
    /// Functions that were refused, with the reason.
    pub refused: Vec<(String, String)>,
}

/// Generates functions and runs their PTX on this CPU.
pub fn random(seed: u64, numbers: std::ops::Range<u64>, configs: &[Config]) -> Result<Outcome> {
    functions_on_cpu(
        &generate::functions(seed, numbers),
        &generate::inputs(seed),
        configs,
    )
}

/// Compares functions, each a name and its Rust, on these inputs.
pub fn functions_on_cpu(
    functions: &[(String, String)],
    inputs: &[[u64; 8]],
    configs: &[Config],
) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut left = functions.to_vec();
    match compile(&mut left, configs, &mut outcome.refused) {
        Ok(None) => {}
        Ok(Some((batch, ptx))) => {
            let on_host = batch.on_host()?;
            let parsed = ptx.iter().map(|ptx| Module::parse(ptx));
            let modules: Vec<Module> = parsed.collect::<Result<_>>()?;
            for name in batch.names() {
                let expected = on_host.expected(name, inputs)?;
                for (config, module) in configs.iter().zip(&modules) {
                    let of = (*config, module);
                    let difference = compare(name, (inputs, &expected), of, Approximate(0));
                    outcome.differences.extend(difference);
                }
            }
            outcome.compared = left.len();
        }
        Err(error) => {
            let text = format!("{error:#}");
            if !BLAMES_LIBNVVM.iter().any(|words| text.contains(words)) {
                return Err(error);
            }
            if let [(name, _)] = left.as_slice() {
                outcome.refused.push((name.clone(), text));
                return Ok(outcome);
            }
            // The error names none: one of either half is the cause.
            for half in left.chunks(left.len().div_ceil(2)) {
                let other = functions_on_cpu(half, inputs, configs)?;
                outcome.compared += other.compared;
                outcome.differences.extend(other.differences);
                outcome.refused.extend(other.refused);
            }
        }
    }
    Ok(outcome)
}

/// Compiles functions for each configuration; `None` if none is left. A function that an error
/// names prevents the others from being compiled, so it moves from `left` to `refused`, with the
/// error.
pub fn compile(
    left: &mut Vec<(String, String)>,
    configs: &[Config],
    refused: &mut Vec<(String, String)>,
) -> Result<Option<(Batch, Vec<String>)>> {
    while !left.is_empty() {
        let batch = Batch::new(left)?;
        let ptx: Result<Vec<String>> = std::thread::scope(|scope| {
            let ptx_for = |config: &Config| {
                let (batch, config) = (&batch, *config);
                scope.spawn(move || batch.ptx(config))
            };
            let compiling: Vec<_> = configs.iter().map(ptx_for).collect();
            let ptx_of = |one: ScopedJoinHandle<'_, _>| {
                one.join().unwrap_or_else(|panic| resume_unwind(panic))
            };
            compiling.into_iter().map(ptx_of).collect()
        });
        let error = match ptx {
            Ok(ptx) => return Ok(Some((batch, ptx))),
            Err(error) => error,
        };
        let text = format!("{error:#}");
        let is_named = |(name, _): &mut (String, String)| {
            let quoted = [
                format!("k_{name}`"),
                format!("::{name}`"),
                format!("`{name}`"),
            ];
            quoted.iter().any(|quoted| text.contains(quoted.as_str()))
        };
        let named: Vec<_> = left.extract_if(.., is_named).collect();
        if named.is_empty() {
            return Err(error);
        }
        refused.extend(named.into_iter().map(|(name, _)| (name, text.clone())));
    }
    Ok(None)
}

/// Runs the PTX of a function, and compares what it gives with what the host gave.
pub fn compare(
    name: &str,
    (inputs, expected): (&[[u64; 8]], &[u64]),
    (config, module): (Config, &Module),
    approximate: Approximate,
) -> Option<Difference> {
    let difference = |at: usize, found: Option<u64>, problem: String| Difference {
        name: name.to_owned(),
        config,
        input: inputs[at],
        expected: expected[at],
        found,
        problem,
    };
    match run_words(module, &format!("k_{name}"), inputs, approximate) {
        Err(error) => Some(difference(0, None, format!("{error:#}"))),
        Ok(found) => {
            let at = (0..found.len()).find(|at| found[*at] != expected[*at])?;
            Some(difference(at, Some(found[at]), String::new()))
        }
    }
}

/// What is wrong with a function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// It returns something else on the device.
    Differs,
    /// It is not compiled.
    IsRefused,
}

/// Whether each of these versions of a function has the fault for the configuration.
pub fn have(
    fault: Fault,
    functions: &[Function],
    inputs: &[[u64; 8]],
    configs: &[Config],
) -> Result<Vec<bool>> {
    let named: Vec<(String, String)> = functions
        .iter()
        .enumerate()
        .map(|(at, function)| (format!("f{at}"), function.rust(&format!("f{at}"))))
        .collect();
    let outcome = functions_on_cpu(&named, inputs, configs)?;
    let with_fault: HashSet<&String> = match fault {
        Fault::Differs => {
            let different = outcome.differences.iter();
            let different = different.filter(|difference| difference.found.is_some());
            different.map(|difference| &difference.name).collect()
        }
        Fault::IsRefused => outcome.refused.iter().map(|(name, _)| name).collect(),
    };
    Ok(named
        .iter()
        .map(|(name, _)| with_fault.contains(name))
        .collect())
}
