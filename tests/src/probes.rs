//! Runs a probe: one small kernel from words to words.

use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use cuda_std::panic_record;
use cuda_std::simulator::{self, Fault};
use cust::context::Context;
use cust::error::CudaResult;
use cust::launch;
use cust::memory::{CopyDestination, DeviceBuffer, LockedBuffer};
use cust::module::Module;
use cust::stream::{Stream, StreamFlags};
use device_kernels::probe::{Launch, Probe, ProbeFn, UNWRITTEN};
use gpu_gemm::device::{driver, ptx};

use crate::built;
use crate::devices::Backend;

/// A probe's launch.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    pub entry: &'a str,
    pub function: ProbeFn,
    pub launch: &'a Launch,
    pub input: &'a [u32],
    /// The number of output words.
    pub length: usize,
    /// Whether every word of the output is [`UNWRITTEN`] before the launch; uninitialized if not.
    pub fill: bool,
}

impl<'a> Job<'a> {
    /// A probe, on its input, with `length` words of output.
    pub fn of(probe: &'a Probe, input: &'a [u32], length: usize) -> Job<'a> {
        Job {
            entry: probe.entry,
            function: probe.function,
            launch: &probe.launch,
            input,
            length,
            fill: true,
        }
    }

    /// Runs the kernel and returns its output; on a GPU, from the module for the newest
    /// architecture that it supports.
    pub fn run(self, backend: Backend) -> Result<Vec<u32>, String> {
        match backend {
            Backend::Simulator => self.simulate().map_err(|fault| fault.to_string()),
            Backend::Gpu => {
                let found = driver::probe().map_err(|error| error.to_string())?;
                let gpu = found.first().ok_or("no GPU")?;
                let version = ptx::version(&gpu.driver);
                let module = built::newest_probes(gpu.architecture(), version);
                self.run_on_gpu(module)
            }
            Backend::OpenCl => Err("the probes are not compiled to OpenCL C".to_owned()),
        }
    }

    /// Runs the kernel of this module on the GPU and returns its output.
    pub fn run_on_gpu(self, module: &str) -> Result<Vec<u32>, String> {
        let mut panic = None;
        self.launch(module, &mut panic).map_err(|error| {
            let panic = panic.map_or_else(String::new, |panic| format!(". {panic}"));
            format!("{} fails: {error}{panic}", self.entry)
        })
    }

    /// Runs the kernel in the simulator, in all orders of its threads, and returns its output.
    pub fn run_in_all_orders(self) -> Result<Vec<u32>, String> {
        let mut output = vec![UNWRITTEN; self.length];
        let run = self.simulated().run_in_all_orders(&mut output, |words| {
            // SAFETY: the launch and the length of the output are those that the probe requires,
            // whose threads write different words, or the same one atomically.
            unsafe { (self.function)(self.input, words) }
        });
        run.map_err(|fault| fault.to_string())?;
        Ok(output)
    }

    fn simulate(self) -> Result<Vec<u32>, simulator::Fault> {
        let mut output = vec![UNWRITTEN; self.length];
        let words = AtomicPtr::new(output.as_mut_ptr());
        // SAFETY: as above.
        let kernel = || unsafe { (self.function)(self.input, words.load(Relaxed)) };
        self.simulated().run(kernel)?;
        Ok(output)
    }

    fn simulated(&self) -> simulator::Launch {
        let [grid, block] = [self.launch.grid, self.launch.block].map(|[x, y, z]| (x, y, z));
        simulator::Launch::new(grid, block)
            .cluster(self.launch.cluster)
            .dynamic_shared_bytes(self.launch.dynamic_shared_bytes as usize)
    }

    /// Launches with `cust` alone.
    fn launch(self, ptx: &str, panic: &mut Option<Fault>) -> CudaResult<Vec<u32>> {
        cust::init(cust::CudaFlags::empty())?;
        let _context = Context::new(cust::device::Device::get_device(0)?)?;
        let module = Module::from_ptx(ptx, &[])?;
        let record = LockedBuffer::new(&0u32, panic_record::WORDS)?;
        let mut address = module.get_global::<u64>(panic_record::ADDRESS)?;
        address.copy_from(&(record.as_ptr() as u64))?;
        let function = module.get_function(self.entry)?;
        let stream = Stream::new(StreamFlags::DEFAULT, None)?;
        let input = DeviceBuffer::from_slice(self.input)?;
        // SAFETY: filled below, or left uninitialised on purpose for a checker to find.
        let mut output = unsafe { DeviceBuffer::<u32>::uninitialized(self.length)? };
        if self.fill {
            output.copy_from(&vec![UNWRITTEN; self.length])?;
        }
        let [grid, block] = [self.launch.grid, self.launch.block].map(|[x, y, z]| (x, y, z));
        let bytes = self.launch.dynamic_shared_bytes;
        // SAFETY: these are a probe's parameters; the buffers outlive the launch, since this waits
        // for it.
        unsafe {
            launch!(function<<<grid, block, bytes, stream>>>(
                input.as_device_ptr(),
                input.len(),
                output.as_device_ptr()
            ))?;
        }
        if let Err(error) = stream.synchronize() {
            *panic = panic_record::read(ptx, &record);
            return Err(error);
        }
        let mut words = vec![0; self.length];
        output.copy_to(&mut words)?;
        Ok(words)
    }
}
