//! Runs packed functions on the GPU.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use cust::context::{CurrentContext, ResourceLimit};
use cust::memory::{CopyDestination, DeviceBuffer};
use cust::module::Module;
use cust::stream::{Stream, StreamFlags};

use crate::alone;
use crate::generate;
use crate::pack::{self, Packed};

/// What was run, for the last line of the log.
#[derive(Debug, Default)]
pub struct Total {
    pub functions: usize,
    pub inputs: usize,
    pub configs: Vec<String>,
    pub differences: usize,
}

/// Runs the functions of a file until it ends or the time is over, and prints each difference.
pub fn run(path: &Path, limit: Duration) -> Result<Total> {
    let start = Instant::now();
    let _context = cust::quick_init().context("no GPU")?;
    // The driver knows how much stack a kernel itself takes, not what functions add that it calls
    // through pointers.
    CurrentContext::set_resource_limit(ResourceLimit::StackSize, 16 << 10)?;
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    let mut total = Total::default();
    pack::read(path, |packed| {
        run_batch(&packed, &stream, &mut total)?;
        Ok(start.elapsed() < limit)
    })?;
    Ok(total)
}

fn run_batch(packed: &Packed, stream: &Stream, total: &mut Total) -> Result<()> {
    let inputs = generate::inputs(packed.seed);
    let words: Vec<u64> = inputs.iter().flatten().copied().collect();
    let input = DeviceBuffer::from_slice(&words)?;
    for (config, ptx) in &packed.ptx {
        // The other dialect of NVVM IR is that of newer GPUs; these functions use nothing that is
        // new with them.
        let ptx = ptx.replacen(".target sm_100", ".target sm_90", 1);
        let alone = alone::Module::of(&ptx);
        for ((name, rust), expected) in packed.functions.iter().zip(&packed.expected) {
            let module = Module::from_ptx(alone.kernel(&format!("k_{name}")), &[])
                .with_context(|| format!("the driver does not take {name} for {config}"))?;
            let mut found = vec![0_u64; inputs.len()];
            let output = DeviceBuffer::from_slice(&found)?;
            let kernel = module.get_function(format!("k_{name}"))?;
            // SAFETY: the kernel reads eight words a thread and writes one.
            unsafe {
                cust::launch!(kernel<<<1, inputs.len() as u32, 0, stream>>>(input.as_device_ptr(), output.as_device_ptr()))?;
            }
            let crashes = || format!("seed {}, {name}, {config}\n{rust}", packed.seed);
            stream.synchronize().with_context(crashes)?;
            output.copy_to(&mut found)?;
            let wrong: Vec<usize> = (0..inputs.len())
                .filter(|at| found[*at] != expected[*at])
                .collect();
            if let Some(at) = wrong.first() {
                total.differences += 1;
                println!(
                    "DIFFERENT: seed {}, {name}, {config}, {} of {} inputs; for {:x?} the GPU says {:#x}, the host {:#x}\n{rust}",
                    packed.seed,
                    wrong.len(),
                    inputs.len(),
                    inputs[*at],
                    found[*at],
                    expected[*at]
                );
            }
        }
        if !total.configs.contains(config) {
            total.configs.push(config.clone());
        }
    }
    total.functions += packed.functions.len();
    total.inputs = inputs.len();
    Ok(())
}
