//! The first device of OpenCL, to compile and run what was printed.

use std::ptr;

use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, Device};
use opencl3::kernel::Kernel;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE, ClMem};
use opencl3::platform::get_platforms;
use opencl3::program::Program;
use opencl3::types::CL_BLOCKING;

/// A device that is ready.
pub struct OpenCl {
    device: Device,
    context: Context,
    queue: CommandQueue,
}

impl OpenCl {
    /// The first device, or why there is none.
    pub fn open() -> Result<OpenCl, String> {
        let platforms = get_platforms().map_err(|error| format!("no OpenCL: {error}"))?;
        let ids = platforms
            .iter()
            .find_map(|platform| platform.get_devices(CL_DEVICE_TYPE_ALL).ok());
        let id = ids.and_then(|ids| ids.first().copied());
        let device = Device::new(id.ok_or("no device of OpenCL")?);
        let context = Context::from_device(&device).map_err(|error| error.to_string())?;
        // SAFETY: the device is the context's, and the properties are none.
        let queue = unsafe { CommandQueue::create_with_properties(&context, device.id(), 0, 0) };
        Ok(OpenCl {
            queue: queue.map_err(|error| error.to_string())?,
            device,
            context,
        })
    }

    /// Whether the device multiplies and adds in one instruction, as all do but older CPUs.
    pub fn has_fma(&self) -> bool {
        #[cfg(target_arch = "x86_64")]
        let host_has_fma = std::arch::is_x86_feature_detected!("fma");
        #[cfg(not(target_arch = "x86_64"))]
        let host_has_fma = true;
        let is_cpu = self
            .device
            .dev_type()
            .is_ok_and(|kind| kind & CL_DEVICE_TYPE_CPU != 0);
        host_has_fma || !is_cpu
    }

    /// Compiles a program as its second line says.
    pub fn compile(&self, source: &str) -> Result<Program, String> {
        let options = source
            .lines()
            .find_map(|line| line.strip_prefix("// options: "))
            .ok_or("the text has no options")?;
        let program = Program::create_from_source(&self.context, source);
        let mut program = program.map_err(|error| error.to_string())?;
        match program.build(&[self.device.id()], &format!("{options} -Werror")) {
            Ok(()) => Ok(program),
            Err(_) => {
                let log = program.get_build_log(self.device.id());
                Err(format!("{}\n{source}", log.unwrap_or_default()))
            }
        }
    }

    /// Runs a kernel whose only parameter of its own is a pointer to `words`, in groups of this
    /// many work-items, and returns the words. Behind it, the kernel may have local memory and a
    /// record of panics, whose words come back too.
    pub fn run(
        &self,
        kernel: &device_codegen::OpenClKernel,
        words: &[u32],
        groups: usize,
        items: usize,
    ) -> Result<(Vec<u32>, Vec<u32>), String> {
        let program = self.compile(&kernel.source)?;
        let text = |error: opencl3::error_codes::ClError| error.to_string();
        let made = Kernel::create(&program, &kernel.name).map_err(text)?;
        let out = self.buffer(words)?;
        let record = self.buffer(&[0; 16])?;
        let mut next = 1;
        let (global, local) = ([groups * items], [items]);
        // SAFETY: the parameters are those that the kernel says it has, and their memory lives
        // until it has ended.
        unsafe {
            made.set_arg(0, &out.get()).map_err(text)?;
            if kernel.has_dynamic_local {
                made.set_arg_local_buffer(next, 1024).map_err(text)?;
                next += 1;
            }
            if kernel.has_panic_record {
                made.set_arg(next, &record.get()).map_err(text)?;
            }
            let launched = self.queue.enqueue_nd_range_kernel(
                made.get(),
                1,
                ptr::null(),
                global.as_ptr(),
                local.as_ptr(),
                &[],
            );
            launched.map_err(text)?;
        }
        self.queue.finish().map_err(text)?;
        Ok((self.read(&out, words.len())?, self.read(&record, 16)?))
    }

    fn buffer(&self, words: &[u32]) -> Result<Buffer<u32>, String> {
        let text = |error: opencl3::error_codes::ClError| error.to_string();
        // SAFETY: the memory is OpenCL's own, and the call returns when it has been written.
        unsafe {
            let length = words.len();
            let mut buffer =
                Buffer::create(&self.context, CL_MEM_READ_WRITE, length, ptr::null_mut())
                    .map_err(text)?;
            let written = self
                .queue
                .enqueue_write_buffer(&mut buffer, CL_BLOCKING, 0, words, &[]);
            written.map_err(text)?;
            Ok(buffer)
        }
    }

    fn read(&self, buffer: &Buffer<u32>, length: usize) -> Result<Vec<u32>, String> {
        let mut words = vec![0; length];
        // SAFETY: the buffer has these words, and the call returns when they have been read.
        let read = unsafe {
            self.queue
                .enqueue_read_buffer(buffer, CL_BLOCKING, 0, &mut words, &[])
        };
        read.map_err(|error| error.to_string())?;
        Ok(words)
    }
}
