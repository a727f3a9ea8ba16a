//! The GPU: its settings, memory, streams and events, and its log.

use std::alloc::{self, Layout};
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::sync::{LazyLock, Mutex};

use crate::streams::{Moment, Stream};

/// Errors of the driver (`CUresult`).
pub const INVALID_VALUE: u32 = 1;
pub const OUT_OF_MEMORY: u32 = 2;
pub const INVALID_IMAGE: u32 = 200;
pub const INVALID_CONTEXT: u32 = 201;
pub const NOT_FOUND: u32 = 500;
pub const NOT_READY: u32 = 600;
pub const LAUNCH_FAILED: u32 = 719;
pub const STREAM_CAPTURE_UNSUPPORTED: u32 = 900;

/// A call's result: an error is a number of the library that was called.
pub type Outcome = Result<(), u32>;

/// The settings in `FAKE_GPU`, as `name=number` separated by blanks, and their defaults.
/// `log=path` names a file to which lines are appended.
const SETTINGS: [(&str, u64); 27] = [
    // Whether the log has each call of the driver, too.
    ("calls", 0),
    // Whether kernels that the fake does not know do nothing.
    ("any_kernel", 0),
    // Nanoseconds of a launch.
    ("kernel_ns", 125_000),
    ("cublas_ns", 62_500),
    ("cublaslt_ns", 93_750),
    ("tf32_ns", 31_250),
    // Whether a wait for a stream lasts as long as its launches, by the wall clock.
    ("waits", 1),
    // 0: work is done at once. Else it is done only when something waits for it. A wait for all
    // streams runs each as far as events allow, first the stream that was created first (1) or
    // last (2): work that runs too early, because no event holds it back, finds its operands
    // unwritten, and work that runs too late finds them overwritten. 3: launches are done as soon
    // as events allow, and copies only when something waits for them: a launch that does not wait
    // for a copy finds its operands unwritten. 4: the other way round: a copy that does not wait
    // for a launch overwrites its operands.
    ("deferred", 0),
    ("memory_bytes", 139 << 30),
    ("l2_bytes", 50 << 20),
    // The values that NVML returns; 0 means not supported.
    ("sm_mhz", 1755),
    ("memory_mhz", 3201),
    ("power_mw", 689_500),
    ("celsius", 62),
    // Joules a second of the energy counter, and whether cublasLt proposes algorithms.
    ("energy_w", 500),
    ("algorithms", 1),
    // The status of calls: nvmlInit_v2 (by default, that it finds no driver), cuInit,
    // cuModuleLoadDataEx, launches, cuBLAS's products, those without cublasLt.
    ("nvml", 9),
    ("init", 0),
    ("module", 0),
    ("launch", 0),
    ("cublas", 0),
    ("gemm_ex", 0),
    // The first allocation that fails, and the first launch that loses the context; the first
    // launches of a kernel and of cuBLAS with a wrong C, and of a kernel that writes into A.
    // Counted from 1; 0 for none.
    ("no_memory_at", 0),
    ("crash_at", 0),
    ("wrong_kernel_from", 0),
    ("wrong_cublas_from", 0),
    ("wrong_a_from", 0),
];

/// The alignment of allocations in bytes.
const ALIGNMENT: usize = 256;

#[derive(Default)]
pub struct Gpu {
    settings: BTreeMap<String, u64>,
    log: Option<File>,
    /// Allocations: the address and the bytes of each.
    memory: BTreeMap<usize, usize>,
    /// Page-locked host memory: the address and the bytes of each allocation.
    pub locked: BTreeMap<usize, usize>,
    allocations: u64,
    /// By handle; 0 is the default stream.
    pub streams: BTreeMap<usize, Stream>,
    /// The stream that is captured.
    pub captured: Option<usize>,
    /// By handle; `None` before it is recorded.
    pub events: BTreeMap<usize, Option<Moment>>,
    /// The number of recordings of events, and the recordings that their streams have reached.
    pub recordings: u64,
    pub reached: BTreeSet<u64>,
    /// The kernels of each module, by handle.
    pub modules: BTreeMap<usize, Vec<String>>,
    /// A function's handle is its index plus 1.
    pub functions: Vec<Function>,
    pub kernel_launches: u64,
    pub cublas_launches: u64,
    pub cublas_handles: BTreeMap<usize, crate::cublas::Handle>,
    /// Whether a kernel has crashed, after which every call fails.
    pub is_lost: bool,
    handles: usize,
}

pub struct Function {
    pub name: String,
    pub has_run: bool,
    /// The dynamic shared memory that it may have, in bytes. By default, a driver allows 48 KiB
    /// less the static arrays; this one, which knows no static arrays, allows none.
    pub dynamic_shared: u32,
}

static GPU: LazyLock<Mutex<Gpu>> = LazyLock::new(|| Mutex::new(Gpu::from_environment()));

/// Carries out a call, unless the context is lost, and returns its status.
pub fn call(body: impl FnOnce(&mut Gpu) -> Outcome) -> u32 {
    let mut gpu = GPU.lock().expect("nothing panics and goes on");
    let outcome = match gpu.is_lost {
        true => Err(LAUNCH_FAILED),
        false => body(&mut gpu),
    };
    outcome.err().unwrap_or(0)
}

/// Writes a value to the caller's pointer.
pub fn put<T>(target: *mut T, value: T) -> Outcome {
    // SAFETY: every function requires a pointer to writable memory.
    unsafe { target.write(value) };
    Ok(())
}

impl Gpu {
    fn from_environment() -> Gpu {
        let mut gpu = Gpu {
            settings: SETTINGS.map(|(name, value)| (name.into(), value)).into(),
            streams: [(0, Stream::default())].into(),
            ..Gpu::default()
        };
        for word in env::var("FAKE_GPU").unwrap_or_default().split_whitespace() {
            let (name, value) = word.split_once('=').expect("name=value");
            if name == "log" {
                let file = File::options().append(true).create(true).open(value);
                gpu.log = Some(file.expect("a log that can be written"));
                continue;
            }
            let value = value.parse().expect("a number");
            let known = gpu.settings.insert(name.into(), value);
            assert!(known.is_some(), "FAKE_GPU has no setting `{name}`");
        }
        gpu
    }

    pub fn setting(&self, name: &str) -> u64 {
        self.settings[name]
    }

    /// The result of a call that this setting can make fail.
    pub fn status(&self, name: &str) -> Outcome {
        match self.setting(name) {
            0 => Ok(()),
            error => Err(error as u32),
        }
    }

    /// Whether launch number `count` is wrong in this way.
    pub fn is_wrong(&self, name: &str, count: u64) -> bool {
        let from = self.setting(name);
        from > 0 && count >= from
    }

    pub fn log(&mut self, line: impl Display) {
        if let Some(log) = &mut self.log {
            // In one write: other processes may write to the log, too.
            let written = log.write_all(format!("{line}\n").as_bytes());
            written.expect("the log can be written");
        }
    }

    /// A new handle, different from all others.
    pub fn new_handle(&mut self) -> usize {
        self.handles += 1;
        self.handles
    }

    /// Free and total memory in bytes.
    pub fn free_and_total(&self) -> (usize, usize) {
        let total = self.setting("memory_bytes") as usize;
        (total - self.memory.values().sum::<usize>(), total)
    }

    /// Allocates memory filled with NaNs.
    pub fn allocate(&mut self, bytes: usize) -> Result<u64, u32> {
        self.allocations += 1;
        let (free, total) = self.free_and_total();
        if bytes > free || self.allocations == self.setting("no_memory_at") {
            self.log(format_args!(
                "no-memory bytes={bytes} free={free} total={total}"
            ));
            return Err(OUT_OF_MEMORY);
        }
        if bytes == 0 {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the size is not zero.
        let start = unsafe { alloc::alloc(layout(bytes)) };
        assert!(!start.is_null(), "the host has no {bytes} bytes");
        // SAFETY: the allocation has `bytes` bytes.
        unsafe { start.write_bytes(0xff, bytes) };
        self.memory.insert(start.expose_provenance(), bytes);
        self.log(format_args!("allocate start={} bytes={bytes}", start.addr()));
        Ok(start.addr() as u64)
    }

    pub fn free(&mut self, start: u64) -> Outcome {
        self.run_pending();
        let freed = self.memory.remove(&(start as usize));
        let bytes = freed.unwrap_or_else(|| panic!("freed, and not allocated: {start:#x}"));
        // SAFETY: `allocate` returned it, and it was removed from the list.
        unsafe { alloc::dealloc(pointer(start), layout(bytes)) };
        Ok(())
    }

    /// A pointer to memory of the GPU.
    ///
    /// # Panics
    ///
    /// If these bytes are not inside one allocation.
    pub fn memory(&self, start: u64, bytes: usize) -> *mut u8 {
        let end = start as usize + bytes;
        let around = self.memory.range(..=start as usize).next_back();
        let is_inside = around.is_some_and(|(begin, length)| end <= begin + length);
        assert!(is_inside, "{bytes} bytes at {start:#x} are no allocation's");
        pointer(start)
    }

    /// Whether a host address is page-locked.
    pub fn is_locked(&self, address: usize) -> bool {
        let before = self.locked.range(..=address).next_back();
        before.is_some_and(|(start, bytes)| address < start + bytes)
    }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, ALIGNMENT).expect("a size that memory can have")
}

fn pointer(address: u64) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address as usize)
}
