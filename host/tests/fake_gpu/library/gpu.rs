//! The GPU: what it has been told, its memory, its streams and events, and its log.

use std::alloc::{self, Layout};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::env;
use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::Duration;

/// Errors of the driver (`CUresult`).
pub const INVALID_VALUE: u32 = 1;
pub const OUT_OF_MEMORY: u32 = 2;
pub const INVALID_IMAGE: u32 = 200;
pub const NOT_FOUND: u32 = 500;
pub const NOT_READY: u32 = 600;
pub const LAUNCH_FAILED: u32 = 719;

/// A call's result: an error is a number of the library that was called.
pub type Outcome = Result<(), u32>;

/// What `FAKE_GPU` may set, as `name=number` with blanks between, and what holds otherwise. With
/// `log=path` it names a file that lines are appended to.
const SETTINGS: [(&str, u64); 25] = [
    // Nanoseconds of a launch.
    ("kernel_ns", 125_000),
    ("cublas_ns", 62_500),
    ("cublaslt_ns", 93_750),
    ("tf32_ns", 31_250),
    // Whether a wait for a stream lasts as long as its launches, by the clock on the wall.
    ("waits", 1),
    // GPUs, and whether they have peer access to each other.
    ("gpus", 1),
    ("peers", 1),
    // 0: whatever a stream gets is done at once. Else it is done only when something waits for it.
    // What waits for all streams lets them go on as far as events let them, the stream that was
    // made first (1) or last (2) before others: what runs too early, because no event holds it
    // back, finds its operands unwritten, and what runs too late finds them overwritten.
    // 3: launches are done as soon as events let them, and copies only when something waits for
    // them: a launch that does not wait for a copy finds its operands unwritten.
    // 4: the other way round: a copy that does not wait for a launch overwrites its operands.
    ("deferred", 0),
    ("memory_bytes", 139 << 30),
    ("l2_bytes", 50 << 20),
    // What NVML reads; 0 is not supported.
    ("sm_mhz", 1755),
    ("memory_mhz", 3201),
    ("power_mw", 689_500),
    ("celsius", 62),
    // Joules a second of the counter of energy, and whether cublasLt proposes algorithms.
    ("energy_w", 500),
    ("algorithms", 1),
    // What calls return: nvmlInit_v2 (by default that there is no driver for it), cuInit,
    // cuModuleLoadDataEx, launches, cuBLAS's products.
    ("nvml", 9),
    ("init", 0),
    ("module", 0),
    ("launch", 0),
    ("cublas", 0),
    // The first allocation that fails, and the first launch that loses the context; the first
    // launches of a kernel and of cuBLAS that leave C wrong. Counted from 1; 0 for none.
    ("no_memory_at", 0),
    ("crash_at", 0),
    ("wrong_kernel_from", 0),
    ("wrong_cublas_from", 0),
];

/// Nanoseconds that the first launch of anything takes in addition: it loads code.
const LOADING_NS: u64 = 2_000_000;

/// Bytes that every allocation begins at a multiple of.
const ALIGNMENT: usize = 256;

#[derive(Default)]
pub struct Gpu {
    settings: BTreeMap<String, u64>,
    log: Option<File>,
    /// Allocations: where each begins, its bytes, and the context of its GPU.
    memory: BTreeMap<usize, (usize, usize)>,
    /// Page-locked memory of the host: where each allocation begins, and its bytes.
    pub locked: BTreeMap<usize, usize>,
    /// The current context of the thread that calls: a GPU's number plus 1.
    pub current: usize,
    /// While a stream works, the context whose memory alone it may use.
    only: Option<usize>,
    /// Contexts that may read the other's memory.
    pub peers: BTreeSet<(usize, usize)>,
    allocations: u64,
    /// By handle; 0 is the default stream.
    streams: BTreeMap<usize, Stream>,
    /// By handle; `None` before it is recorded.
    events: BTreeMap<usize, Option<Moment>>,
    /// Recordings of events, and those of them that their streams have reached.
    recordings: u64,
    reached: BTreeSet<u64>,
    /// The kernels of each module, by handle.
    pub modules: BTreeMap<usize, Vec<String>>,
    /// A function's handle is its index plus 1.
    pub functions: Vec<Function>,
    pub kernel_launches: u64,
    pub cublas_launches: u64,
    pub cublas_handles: BTreeMap<usize, crate::cublas::Handle>,
    /// The context in which a kernel has crashed: while it is current, every call fails.
    pub lost: Option<usize>,
    handles: usize,
}

/// What a stream has yet to do.
pub enum Pending {
    Work(Box<dyn FnOnce(&mut Gpu) + Send>),
    Copy(Box<dyn FnOnce(&mut Gpu) + Send>),
    /// Reach a recording of an event; wait until another stream has reached one.
    Reach(u64),
    Wait(u64),
}

#[derive(Default)]
struct Stream {
    context: usize,
    pending: VecDeque<Pending>,
    now_ns: u64,
    waited_ns: u64,
    /// Events that were recorded, and those of them that have been waited for.
    recorded: u64,
    waited: u64,
}

/// A recorded event.
#[derive(Clone, Copy)]
struct Moment {
    stream: usize,
    recording: u64,
    ns: u64,
    /// Its number on the stream.
    number: u64,
}

pub struct Function {
    pub name: String,
    pub has_run: bool,
    /// Bytes of dynamic shared memory that it may have. A driver allows 48 KiB unasked, less what
    /// static arrays take; this one, which knows no static arrays, none.
    pub dynamic_shared: u32,
}

thread_local! {
    /// Each thread has its own current context, and none at first.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

static GPU: LazyLock<Mutex<Gpu>> = LazyLock::new(|| Mutex::new(Gpu::from_environment()));

/// Carries out a call, unless the context is lost, and returns its status.
pub fn call(body: impl FnOnce(&mut Gpu) -> Outcome) -> u32 {
    let mut gpu = GPU.lock().expect("nothing panics and goes on");
    gpu.current = CURRENT.get();
    let outcome = match gpu.lost == Some(gpu.current) {
        true => Err(LAUNCH_FAILED),
        false => body(&mut gpu),
    };
    outcome.err().unwrap_or(0)
}

/// Makes a context current; an error if it is lost.
pub fn enter(context: usize) -> u32 {
    CURRENT.set(context);
    call(|_| Ok(()))
}

/// Logs a call that may come when the context is lost.
pub fn log_even_if_lost(line: impl Display) {
    GPU.lock().expect("nothing panics and goes on").log(line);
}

/// Writes what a caller asked for.
pub fn put<T>(target: *mut T, value: T) -> Outcome {
    // SAFETY: each function's documentation asks for a place that can be written.
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

    /// The result of a call that this setting may let fail.
    pub fn status(&self, name: &str) -> Outcome {
        match self.setting(name) {
            0 => Ok(()),
            error => Err(error as u32),
        }
    }

    /// Whether launch number `count` leaves C wrong.
    pub fn is_wrong(&self, name: &str, count: u64) -> bool {
        let from = self.setting(name);
        from > 0 && count >= from
    }

    pub fn log(&mut self, line: impl Display) {
        if let Some(log) = &mut self.log {
            // At once: other processes may write to it, too.
            let written = log.write_all(format!("{line}\n").as_bytes());
            written.expect("the log can be written");
        }
    }

    /// A number that is no other handle.
    pub fn new_handle(&mut self) -> usize {
        self.handles += 1;
        self.handles
    }

    /// Free and total bytes.
    pub fn free_and_total(&self) -> (usize, usize) {
        let total = self.setting("memory_bytes") as usize;
        let here = self
            .memory
            .values()
            .filter(|(_, context)| *context == self.current);
        (total - here.map(|(bytes, _)| bytes).sum::<usize>(), total)
    }

    /// Allocates memory that holds nothing meaningful: NaNs.
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
        // SAFETY: it has a size.
        let start = unsafe { alloc::alloc(layout(bytes)) };
        assert!(!start.is_null(), "the host has no {bytes} bytes");
        // SAFETY: it has so many bytes.
        unsafe { start.write_bytes(0xff, bytes) };
        self.memory
            .insert(start.expose_provenance(), (bytes, self.current));
        let context = self.current;
        self.log(format_args!(
            "allocate start={} bytes={bytes} context={context}",
            start.addr()
        ));
        Ok(start.addr() as u64)
    }

    pub fn free(&mut self, start: u64) -> Outcome {
        self.run_pending();
        let freed = self.memory.remove(&(start as usize));
        let (bytes, context) =
            freed.unwrap_or_else(|| panic!("freed, and not allocated: {start:#x}"));
        assert_eq!(context, self.current, "freed while another GPU is current");
        // SAFETY: `allocate` made it, and it is gone from the list.
        unsafe { alloc::dealloc(pointer(start), layout(bytes)) };
        Ok(())
    }

    /// Memory of the GPU.
    ///
    /// # Panics
    ///
    /// If these bytes do not lie in one allocation, or not on the GPU that uses them.
    pub fn memory(&self, start: u64, bytes: usize) -> *mut u8 {
        let end = start as usize + bytes;
        let around = self.memory.range(..=start as usize).next_back();
        let is_inside = around.is_some_and(|(begin, (length, context))| {
            end <= begin + length && self.only.is_none_or(|only| only == *context)
        });
        assert!(
            is_inside,
            "{bytes} bytes at {start:#x} are no allocation's of this GPU"
        );
        pointer(start)
    }

    /// Whether an address of the host's is page-locked.
    pub fn is_locked(&self, address: usize) -> bool {
        let before = self.locked.range(..=address).next_back();
        before.is_some_and(|(start, bytes)| address < start + bytes)
    }

    pub fn new_stream(&mut self) -> usize {
        let handle = self.new_handle();
        let context = self.current;
        let stream = Stream {
            context,
            ..Stream::default()
        };
        self.streams.insert(handle, stream);
        handle
    }

    pub fn remove_stream(&mut self, stream: usize) {
        self.run_pending();
        assert!(stream != 0 && self.streams.remove(&stream).is_some());
    }

    fn stream(&mut self, stream: usize) -> &mut Stream {
        let known = self.streams.get_mut(&stream);
        known.unwrap_or_else(|| panic!("no stream {stream}"))
    }

    /// A stream is busy for so long, and longer if it is the first time.
    pub fn work(&mut self, stream: usize, ns: u64, is_first: bool) {
        self.stream(stream).now_ns += if is_first { ns + LOADING_NS } else { ns };
    }

    /// Gives a stream something to do with memory of its GPU.
    pub fn enqueue(&mut self, stream: usize, work: impl FnOnce(&mut Gpu) + Send + 'static) {
        self.push(stream, Pending::Work(Box::new(work)));
    }

    /// The same of a copy or a message.
    pub fn enqueue_copy(&mut self, stream: usize, copy: impl FnOnce(&mut Gpu) + Send + 'static) {
        self.push(stream, Pending::Copy(Box::new(copy)));
    }

    /// Lets a stream wait for what an event has recorded so far.
    pub fn hold_back(&mut self, stream: usize, event: usize) {
        let moment = self.events[&event].expect("an event that was recorded");
        self.push(stream, Pending::Wait(moment.recording));
    }

    fn push(&mut self, stream: usize, pending: Pending) {
        self.stream(stream).pending.push_back(pending);
        match self.setting("deferred") {
            0 => self.run_pending(),
            3 => self.run_all_but(|next| matches!(next, Pending::Copy(_))),
            4 => self.run_all_but(|next| matches!(next, Pending::Work(_))),
            _ => {}
        }
    }

    fn run_all_but(&mut self, is_late: impl Fn(&Pending) -> bool) {
        let is_held = |stream: &Stream| stream.pending.front().is_some_and(&is_late);
        let order: Vec<usize> = self.streams.keys().copied().collect();
        let next = |gpu: &Gpu| {
            let mut order = order.iter();
            let can = |&&stream: &&usize| gpu.can_go_on(stream) && !is_held(&gpu.streams[&stream]);
            order.find(can).copied()
        };
        while let Some(stream) = next(self) {
            self.go_on(stream);
        }
    }

    /// Does everything that streams have yet to do, as `deferred` says.
    pub fn run_pending(&mut self) {
        let mut order: Vec<usize> = self.streams.keys().copied().collect();
        if self.setting("deferred") == 2 {
            order.reverse();
        }
        while let Some(&stream) = order.iter().find(|&&stream| self.can_go_on(stream)) {
            self.go_on(stream);
        }
        let is_idle = |stream: &Stream| stream.pending.is_empty();
        assert!(
            self.streams.values().all(is_idle),
            "streams wait for each other"
        );
    }

    /// Does the next thing that a stream has to do.
    fn go_on(&mut self, stream: usize) {
        let on = self.stream(stream);
        let (next, context) = (on.pending.pop_front(), on.context);
        match next {
            Some(Pending::Work(work) | Pending::Copy(work)) => {
                self.only = Some(context);
                work(self);
                self.only = None;
            }
            Some(Pending::Reach(recording)) => {
                self.reached.insert(recording);
            }
            Some(Pending::Wait(_)) | None => {}
        }
    }

    /// Does what a stream has to do, to the end or until it reaches a recording, and of other
    /// streams only what it waits for.
    fn run_stream(&mut self, stream: usize, until: Option<u64>) {
        while until.is_none_or(|recording| !self.reached.contains(&recording)) {
            match self.streams[&stream].pending.front() {
                None => return,
                Some(&Pending::Wait(recording)) if !self.reached.contains(&recording) => {
                    let reaches = |pending: &Pending| matches!(pending, Pending::Reach(at) if *at == recording);
                    let mut streams = self.streams.iter();
                    let other = streams.find(|(_, other)| other.pending.iter().any(reaches));
                    let other = *other.expect("an event that was recorded").0;
                    assert_ne!(other, stream, "a stream waits for itself");
                    self.run_stream(other, Some(recording));
                }
                Some(_) => self.go_on(stream),
            }
        }
    }

    fn can_go_on(&self, stream: usize) -> bool {
        match self.streams[&stream].pending.front() {
            None => false,
            Some(Pending::Wait(recording)) => self.reached.contains(recording),
            Some(_) => true,
        }
    }

    /// The context of a stream.
    pub fn context_of(&self, stream: usize) -> usize {
        self.streams[&stream].context
    }

    /// Memory of the GPU with this context, which another one may copy.
    pub fn memory_of(&mut self, context: usize, start: u64, bytes: usize) -> *mut u8 {
        let only = self.only.replace(context);
        let memory = self.memory(start, bytes);
        self.only = only;
        memory
    }

    /// Waits for all streams of the current context.
    pub fn wait_for_all(&mut self) {
        let here = |stream: &Stream| stream.context == self.current;
        let streams = self.streams.iter().filter(|(_, stream)| here(stream));
        let streams: Vec<usize> = streams.map(|(handle, _)| *handle).collect();
        streams.into_iter().for_each(|stream| self.wait(stream));
    }

    pub fn wait(&mut self, stream: usize) {
        let context = self.current;
        self.log(format_args!("wait context={context}"));
        self.run_stream(stream, None);
        let waits = self.setting("waits") == 1;
        let stream = self.stream(stream);
        stream.waited = stream.recorded;
        if waits {
            thread::sleep(Duration::from_nanos(stream.now_ns - stream.waited_ns));
            stream.waited_ns = stream.now_ns;
        }
    }

    pub fn wait_for_event(&mut self, event: usize) {
        let context = self.current;
        self.log(format_args!("wait context={context}"));
        let moment = self.events[&event].expect("an event that was recorded");
        self.run_stream(moment.stream, Some(moment.recording));
    }

    /// Waits for an event as [`Gpu::wait`] for a stream, as long as its launches last.
    pub fn wait_for_time_of(&mut self, event: usize) {
        self.wait_for_event(event);
        let moment = self.events[&event].expect("an event that was recorded");
        let waits = self.setting("waits") == 1;
        let stream = self.stream(moment.stream);
        stream.waited = stream.waited.max(moment.number);
        if waits && moment.ns > stream.waited_ns {
            thread::sleep(Duration::from_nanos(moment.ns - stream.waited_ns));
            stream.waited_ns = moment.ns;
        }
    }

    pub fn new_event(&mut self) -> usize {
        let handle = self.new_handle();
        self.events.insert(handle, None);
        handle
    }

    pub fn remove_event(&mut self, event: usize) {
        assert!(self.events.remove(&event).is_some(), "no event {event}");
    }

    pub fn record(&mut self, event: usize, stream: usize) {
        let on = self.stream(stream);
        on.recorded += 1;
        let (ns, number) = (on.now_ns, on.recorded);
        self.recordings += 1;
        let recording = self.recordings;
        let moment = Moment {
            stream,
            recording,
            ns,
            number,
        };
        self.push(stream, Pending::Reach(recording));
        let known = self.events.insert(event, Some(moment));
        assert!(known.is_some(), "no event {event}");
        self.log(format_args!("record stream={stream} ns={ns}"));
    }

    pub fn milliseconds_between(&self, start: usize, end: usize) -> Result<f32, u32> {
        let [start, end] = [start, end].map(|event| self.events[&event]);
        let (start, end) = start.zip(end).ok_or(INVALID_VALUE)?;
        let has_ended = |event: Moment| event.number <= self.streams[&event.stream].waited;
        match has_ended(start) && has_ended(end) {
            true => Ok(((end.ns as f64 - start.ns as f64) / 1e6) as f32),
            false => Err(NOT_READY),
        }
    }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, ALIGNMENT).expect("a size that memory can have")
}

fn pointer(address: u64) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address as usize)
}
