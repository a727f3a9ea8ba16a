//! The driver's functions, as `cuda.h` documents them.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;

use crate::launch::{Launch, launch};
use crate::gpu::{Gpu, INVALID_CONTEXT, INVALID_IMAGE, INVALID_VALUE, NOT_FOUND, Outcome, STREAM_CAPTURE_UNSUPPORTED, call, put};

/// The GPU's context.
const PRIMARY: usize = 1;

thread_local! {
    /// The thread's current context, or 0.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
    /// How the thread treats captures: 2 is relaxed.
    static CAPTURE_MODE: Cell<u32> = const { Cell::new(0) };
}

/// Exports functions with their effect on the GPU: those that work anywhere, and those that fail
/// unless its context is current in the calling thread, an error that the manual lists for nearly
/// all.
macro_rules! driver {
    ($place:ident: $(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $type),*) -> u32 {
            $place(stringify!($name), $body)
        }
    )*};
}

fn anywhere(name: &str, body: impl FnOnce(&mut Gpu) -> Outcome) -> u32 {
    call(|gpu| {
        let outcome = body(gpu);
        if gpu.setting("calls") == 1 {
            gpu.log(format_args!("call name={name} status={}", outcome.err().unwrap_or(0)));
        }
        outcome
    })
}

fn in_context(name: &str, body: impl FnOnce(&mut Gpu) -> Outcome) -> u32 {
    // Of what a capture allows the library needs these.
    let is_captured = |name: &str| name.contains("Launch") || name.contains("Capt") || name == "cuFuncSetAttribute";
    anywhere(name, |gpu| match CURRENT.get() {
        PRIMARY if gpu.captured.is_some() && CAPTURE_MODE.get() != 2 && !is_captured(name) => Err(STREAM_CAPTURE_UNSUPPORTED),
        PRIMARY => body(gpu),
        _ => Err(INVALID_CONTEXT),
    })
}

// The GPU and its context.
driver! { anywhere:
    fn cuInit(_flags: u32) |gpu| gpu.status("init");
    fn cuDriverGetVersion(version: *mut i32) |_| put(version, 13_000);
    fn cuDeviceGetCount(count: *mut i32) |_| put(count, 1);
    fn cuDeviceGet(device: *mut i32, ordinal: i32) |_| put(device, ordinal);
    fn cuDeviceGetName(name: *mut [u8; 9], length: i32, _device: i32) |_| {
        assert!(length >= 9);
        put(name, *b"Fake GPU\0")
    };
    fn cuDeviceTotalMem_v2(bytes: *mut usize, _device: i32) |gpu| put(bytes, gpu.free_and_total().1);
    fn cuDeviceGetAttribute(value: *mut i32, attribute: i32, _device: i32) |gpu| {
        // The values of an H200, except for the L2.
        put(value, match attribute {
            13 => 1_980_000, // the SMs' clock in kHz
            16 => 132,       // SMs
            36 => 3_201_000, // the memory's clock in kHz
            33 => 0x4f,      // the bus, the device there, and the domain
            34 => 0,
            50 => 1,
            37 => 6144,      // the memory's width in bits
            38 => gpu.setting("l2_bytes") as i32,
            75 => 9, // the compute capability
            76 => 0,
            other => panic!("attribute {other} is not known"),
        })
    };
    fn cuDevicePrimaryCtxRetain(context: *mut usize, _device: i32) |_| put(context, PRIMARY);
    fn cuDevicePrimaryCtxRelease_v2(_device: i32) |_| Ok(());
    fn cuCtxGetCurrent(context: *mut usize) |_| put(context, CURRENT.get());
    fn cuCtxSetCurrent(context: usize) |_| {
        CURRENT.set(context);
        Ok(())
    };
    fn cuCtxGetDevice(device: *mut i32) |_| put(device, 0);
    fn cuThreadExchangeStreamCaptureMode(mode: *mut u32) |_| {
        // SAFETY: the driver requires a mode that can be read.
        let new = unsafe { mode.read() };
        put(mode, CAPTURE_MODE.replace(new))
    };
}

driver! { in_context:
    fn cuCtxSynchronize() |gpu| {
        gpu.wait_for_all();
        Ok(())
    };
}

// Memory. Copies between the host and the GPU are done at once.
driver! { in_context:
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) |gpu| {
        let (bytes, all) = gpu.free_and_total();
        put(free, bytes)?;
        put(total, all)
    };
    fn cuMemAlloc_v2(start: *mut u64, bytes: usize) |gpu| put(start, gpu.allocate(bytes)?);
    fn cuMemFree_v2(start: u64) |gpu| gpu.free(start);
    fn cuMemAllocHost_v2(start: *mut *mut u8, bytes: usize) |gpu| {
        // The allocation is small, and lives as long as the program.
        let memory: *mut u8 = vec![0_u64; bytes.div_ceil(8)].leak().as_mut_ptr().cast();
        gpu.locked.insert(memory.addr(), bytes);
        put(start, memory)
    };
    fn cuMemFreeHost(start: *mut u8) |gpu| {
        assert!(gpu.locked.remove(&start.addr()).is_some(), "freed, and not page-locked");
        Ok(())
    };
    fn cuMemcpyHtoD_v2(to: u64, from: *const u8, bytes: usize) |gpu| {
        gpu.run_pending();
        copy(from, gpu.memory(to, bytes), bytes)
    };
    fn cuMemcpyDtoH_v2(to: *mut u8, from: u64, bytes: usize) |gpu| {
        gpu.run_pending();
        copy(gpu.memory(from, bytes), to, bytes)
    };
    fn cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize) |gpu| {
        gpu.run_pending();
        copy(gpu.memory(from, bytes), gpu.memory(to, bytes), bytes)
    };
    fn cuMemcpy2D_v2(rectangle: *const Rectangle) |gpu| {
        // SAFETY: the driver requires a valid description.
        let Rectangle { from, to, width, height } = unsafe { rectangle.read() };
        gpu.run_pending();
        for row in 0..height {
            copy(from.row(gpu, row, width), to.row(gpu, row, width), width)?;
        }
        Ok(())
    };
    fn cuMemcpy2DAsync_v2(rectangle: *const Rectangle, stream: usize) |gpu| {
        // SAFETY: the driver requires a valid description.
        copy_rows(gpu, unsafe { rectangle.read() }, stream)
    };
    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: usize) |gpu| {
        let side = |device| Side { memory: DEVICE, device, pitch: bytes, ..Side::default() };
        copy_rows(gpu, Rectangle { from: side(from), to: side(to), width: bytes, height: 1 }, stream)
    };
}

pub fn copy(from: *const u8, to: *mut u8, bytes: usize) -> Outcome {
    // SAFETY: the GPU's side has been checked; the driver requires valid host memory.
    unsafe { ptr::copy(from, to, bytes) };
    Ok(())
}

/// Copies rows when the stream reaches the copy. Until then host memory, if it is one side, must
/// live and must not be accessed.
fn copy_rows(gpu: &mut Gpu, rectangle: Rectangle, stream: usize) -> Outcome {
    let Rectangle { from, to, width, height } = rectangle;
    let bytes = width * height;
    let host = [&from, &to].into_iter().find(|side| side.memory == HOST).map(|side| side.host);
    let is_locked = host.is_some_and(|host| gpu.is_locked(host));
    gpu.log(match host {
        None => format!("copy bytes={bytes} stream={stream}"),
        Some(_) => {
            let (to, locked) = (u32::from(to.memory == HOST), u32::from(is_locked));
            format!("host to={to} bytes={bytes} stream={stream} locked={locked}")
        }
    });
    gpu.enqueue_copy(stream, move |gpu| {
        let is_still_locked = host.is_some_and(|host| gpu.is_locked(host));
        assert_eq!(is_still_locked, is_locked, "freed before the copy");
        for row in 0..height {
            let copied = copy(from.row(gpu, row, width), to.row(gpu, row, width), width);
            copied.expect("a copy does not fail");
        }
    });
    Ok(())
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
struct Rectangle {
    from: Side,
    to: Side,
    width: usize,
    height: usize,
}

#[repr(C)]
#[derive(Default)]
struct Side {
    x_bytes: usize,
    y: usize,
    memory: u32,
    /// The address as a number, which may be sent to the thread that runs the stream.
    host: usize,
    device: u64,
    array: usize,
    pitch: usize,
}

/// `CU_MEMORYTYPE_HOST` and `CU_MEMORYTYPE_DEVICE`.
const HOST: u32 = 1;
const DEVICE: u32 = 2;

impl Side {
    fn row(&self, gpu: &Gpu, row: usize, width: usize) -> *mut u8 {
        assert!((self.x_bytes, self.y, self.array) == (0, 0, 0));
        let offset = row * self.pitch;
        match self.memory {
            HOST => ptr::with_exposed_provenance_mut(self.host + offset),
            DEVICE => gpu.memory(self.device + offset as u64, width),
            other => panic!("memory of type {other} is not known"),
        }
    }
}

// Streams and events.
driver! { in_context:
    fn cuStreamCreateWithPriority(stream: *mut usize, _flags: u32, _priority: i32) |gpu| put(stream, gpu.new_stream());
    fn cuStreamSynchronize(stream: usize) |gpu| {
        gpu.wait(stream);
        Ok(())
    };
    fn cuStreamDestroy_v2(stream: usize) |gpu| {
        gpu.remove_stream(stream);
        Ok(())
    };
    // A launch in a capture is done at once, and no graph is made.
    fn cuStreamBeginCapture_v2(stream: usize, _mode: u32) |gpu| {
        gpu.captured = Some(stream);
        Ok(())
    };
    fn cuStreamIsCapturing(stream: usize, status: *mut u32) |gpu| put(status, u32::from(gpu.captured == Some(stream)));
    fn cuStreamEndCapture(_stream: usize, graph: *mut usize) |gpu| {
        gpu.captured = None;
        put(graph, 0)
    };
    fn cuEventCreate(event: *mut usize, _flags: u32) |gpu| put(event, gpu.new_event());
    fn cuEventRecord(event: usize, stream: usize) |gpu| {
        gpu.record(event, stream);
        Ok(())
    };
    fn cuStreamWaitEvent(stream: usize, event: usize, _flags: u32) |gpu| {
        gpu.hold_back(stream, event);
        Ok(())
    };
    fn cuEventSynchronize(event: usize) |gpu| {
        gpu.wait_for_event(event);
        Ok(())
    };
    // The fake does not queue this but does it at once, so a wait for the host cannot block.
    fn cuLaunchHostFunc(_stream: usize, function: extern "C" fn(usize), data: usize) |_| {
        std::thread::spawn(move || function(data));
        Ok(())
    };
    fn cuEventQuery(event: usize) |gpu| {
        gpu.wait_for_time_of(event);
        Ok(())
    };
    fn cuEventElapsedTime(milliseconds: *mut f32, start: usize, end: usize) |gpu| {
        put(milliseconds, gpu.milliseconds_between(start, end)?)
    };
    fn cuEventDestroy_v2(event: usize) |gpu| {
        gpu.remove_event(event);
        Ok(())
    };
}

// Modules and launches.
driver! { in_context:
    fn cuModuleLoadDataEx(
        module: *mut usize, image: *const c_char, count: u32, options: *const u32, values: *const *mut c_void,
    ) |gpu| {
        // SAFETY: the driver requires text that ends with 0, or machine code, which begins with
        // text and a 0.
        let image = unsafe { CStr::from_ptr(image) };
        if image.to_bytes().starts_with(b"\x7fELF") {
            return Err(INVALID_IMAGE); // a build with machine code has the PTX, too
        }
        for index in 0..count as usize {
            const ERROR_LOG_BUFFER: u32 = 5;
            // SAFETY: the caller passes as many options and values, and a log with enough room.
            unsafe {
                if *options.add(index) == ERROR_LOG_BUFFER {
                    put((*values.add(index)).cast(), *b"the fake driver's log\0")?;
                }
            }
        }
        gpu.status("module")?;
        let text = image.to_str().expect("PTX is text");
        let names = text.lines().filter_map(|line| line.split_once(".entry "));
        let names = names.map(|(_, name)| name.split('(').next().unwrap_or(name).trim().to_owned());
        let handle = gpu.new_handle();
        gpu.modules.insert(handle, names.collect());
        put(module, handle)
    };
    fn cuModuleUnload(module: usize) |gpu| {
        assert!(gpu.modules.remove(&module).is_some(), "no module {module}");
        Ok(())
    };
    fn cuModuleGetFunction(function: *mut usize, module: usize, name: *const c_char) |gpu| {
        // SAFETY: the driver requires text that ends with 0.
        let name = unsafe { CStr::from_ptr(name) }.to_str().expect("a name is text").to_owned();
        if !gpu.modules[&module].contains(&name) {
            return Err(NOT_FOUND);
        }
        gpu.functions.push(crate::gpu::Function { name, has_run: false, dynamic_shared: 0 });
        put(function, gpu.functions.len())
    };
    fn cuFuncSetAttribute(function: usize, attribute: u32, value: i32) |gpu| {
        const MAX_DYNAMIC_SHARED_SIZE_BYTES: u32 = 8;
        assert_eq!(attribute, MAX_DYNAMIC_SHARED_SIZE_BYTES);
        gpu.functions[function - 1].dynamic_shared = value as u32;
        Ok(())
    };
    fn cuLaunchKernel(
        function: usize, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, _block_z: u32,
        shared_bytes: u32, stream: usize, parameters: *const *const u8, _extra: usize,
    ) |gpu| {
        if shared_bytes > gpu.functions[function - 1].dynamic_shared {
            return Err(INVALID_VALUE);
        }
        let (grid, block) = ((grid_x, grid_y, grid_z), (block_x, block_y));
        launch(gpu, Launch { function, grid, block, stream, parameters })
    };
}

/// A tensor map, in this library's own format: the address of the first matrix, the bytes from a
/// row to the next and from a matrix to the next, and the numbers of elements of a row, rows and
/// matrices.
pub type TensorMap = [u64; 16];

fn map_of(global: u64, sizes: [u64; 3], strides: [u64; 2]) -> TensorMap {
    let mut map = [0; 16];
    map[0] = global;
    map[1..3].copy_from_slice(&strides);
    map[3..6].copy_from_slice(&sizes);
    map
}

driver! { anywhere:
    fn cuTensorMapEncodeTiled(
        map: *mut TensorMap, _data_type: i32, rank: u32, global: u64, sizes: *const [u64; 3],
        strides: *const [u64; 2], box_sizes: *const [u32; 3], _element_strides: *const [u32; 3],
        _interleave: i32, _swizzle: i32, _l2_promotion: i32, _out_of_bounds: i32,
    ) |_| {
        assert_eq!(rank, 3);
        // SAFETY: the driver requires a number for each dimension, and the strides of rows and of
        // matrices.
        let (sizes, strides, box_sizes) = unsafe { (sizes.read(), strides.read(), box_sizes.read()) };
        let is_right = global % 16 == 0
            && strides.iter().all(|bytes| bytes % 16 == 0)
            && sizes.iter().all(|size| (1..=1 << 32).contains(size))
            && box_sizes.iter().all(|size| (1..=256).contains(size));
        match is_right {
            true => put(map, map_of(global, sizes, strides)),
            false => Err(INVALID_VALUE),
        }
    };
}
