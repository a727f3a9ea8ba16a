//! Compares what PTX computes with what the host does.

use anyhow::Result;

use crate::compile::{Batch, Config};
use crate::generate::{self, Function};
use crate::ptx::{Approximate, Module, run};

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
///
/// # Errors
///
/// If the required tools are not available.
pub fn random(seed: u64, numbers: std::ops::Range<u64>, configs: &[Config]) -> Result<Outcome> {
    let functions: Vec<(String, String)> = numbers
        .map(|number| {
            let name = format!("f{number}");
            let rust = generate::function(seed, number).rust(&name);
            (name, rust)
        })
        .collect();
    functions_on_cpu(
        &functions,
        &generate::inputs(seed),
        configs,
        &[Approximate(0)],
    )
}

/// Compares functions, each a name and its Rust, on these inputs.
///
/// # Errors
///
/// If the required tools are not available.
pub fn functions_on_cpu(
    functions: &[(String, String)],
    inputs: &[[u64; 8]],
    configs: &[Config],
    approximations: &[Approximate],
) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut left = functions.to_vec();
    // A rejected function prevents the others from being compiled, so compile again without it.
    while !left.is_empty() {
        let batch = Batch::new(&left)?;
        let ptx: Result<Vec<String>> = configs.iter().map(|config| batch.ptx(*config)).collect();
        match ptx {
            Ok(ptx) => {
                let expected = batch.expected(inputs)?;
                for (config, ptx) in configs.iter().zip(&ptx) {
                    for approximate in approximations {
                        compare(
                            &batch,
                            &expected,
                            inputs,
                            *config,
                            ptx,
                            *approximate,
                            &mut outcome.differences,
                        )?;
                    }
                }
                outcome.compared = left.len();
                break;
            }
            Err(error) => {
                let text = format!("{error:#}");
                let before = left.len();
                left.retain(|(name, _)| {
                    let is_named = [
                        format!("`k_{name}`"),
                        format!("::{name}`"),
                        format!("`{name}`"),
                    ];
                    let is_refused = is_named.iter().any(|quoted| text.contains(quoted.as_str()));
                    if is_refused {
                        outcome.refused.push((name.clone(), text.clone()));
                    }
                    !is_refused
                });
                if left.len() == before {
                    return Err(error);
                }
            }
        }
    }
    Ok(outcome)
}

fn compare(
    batch: &Batch,
    expected: &[Vec<u64>],
    inputs: &[[u64; 8]],
    config: Config,
    ptx: &str,
    approximate: Approximate,
    differences: &mut Vec<Difference>,
) -> Result<()> {
    let module = Module::parse(ptx)?;
    let bytes: Vec<u8> = inputs
        .iter()
        .flatten()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    for (name, expected) in batch.names().iter().zip(expected) {
        let difference = |at: usize, found: Option<u64>, problem: String| Difference {
            name: name.clone(),
            config,
            input: inputs[at],
            expected: expected[at],
            found,
            problem,
        };
        let threads = inputs.len();
        match run(
            &module,
            &format!("k_{name}"),
            &bytes,
            8 * threads,
            threads as u32,
            approximate,
        ) {
            Err(error) => differences.push(difference(0, None, format!("{error:#}"))),
            Ok(output) => {
                let found = output.chunks_exact(8).map(|word| {
                    word.iter()
                        .rev()
                        .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
                });
                let wrong = found
                    .zip(expected)
                    .enumerate()
                    .find(|(_, (found, expected))| found != *expected);
                if let Some((at, (found, _))) = wrong {
                    differences.push(difference(at, Some(found), String::new()));
                }
            }
        }
    }
    Ok(())
}

/// Whether this version of a function differs for the configuration.
///
/// # Errors
///
/// As for [`random`].
pub fn differ(functions: &[Function], inputs: &[[u64; 8]], config: Config) -> Result<Vec<bool>> {
    let named: Vec<(String, String)> = functions
        .iter()
        .enumerate()
        .map(|(at, function)| (format!("f{at}"), function.rust(&format!("f{at}"))))
        .collect();
    let outcome = functions_on_cpu(&named, inputs, &[config], &[Approximate(0)])?;
    Ok(named
        .iter()
        .map(|(name, _)| {
            outcome
                .differences
                .iter()
                .any(|difference| difference.name == *name && difference.found.is_some())
        })
        .collect())
}
