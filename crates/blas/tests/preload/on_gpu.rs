//! On the fake GPU of `host`'s tests, whose kernels do nothing here.

use std::ffi::{c_int, c_void};
use std::fs;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::Once;

use gpu_gemm::CudaDevice;
use gpu_gemm::cust::memory::DeviceBuffer;
use gpu_gemm::cust::stream::{Stream, StreamFlags};
use gpu_gemm::cust::sys::{
    CUstreamCaptureMode, cuCtxSetCurrent, cuStreamBeginCapture_v2, cuStreamEndCapture,
};
use gpu_gemm::device::compiled;
use libtest_mimic::Arguments;

use crate::{Description, HANDLE, Handle, again, built, call, calls_of_cublas, counts, is_child};

/// The kernels that the tests here launch.
const KERNELS: [&str; 4] = [
    "async_pipeline_16x128_nn",
    "few_rows_4x64",
    "fix_up",
    "bias_gelu_bf16_persistent_nt_bf16",
];

/// Compiles them together, which takes less time than one by one; none if tests are selected by
/// name. One that does not compile fails in its test.
fn prepare() {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| {
        if Arguments::from_args().filter.is_none() {
            let _ = compiled::module_for(90).and_then(|module| module.prepare(&KERNELS));
        }
    });
}

/// Runs a test with a fake driver, and returns its log.
fn again_on_gpu(test: &str, settings: &[(&str, &str)]) -> Vec<String> {
    prepare();
    let folder = built::folder("../../host/tests/devices/library");
    let folder = folder.display().to_string();
    let log = tempfile::NamedTempFile::new().unwrap();
    let gpu = format!("waits=0 any_kernel=1 log={}", log.path().display());
    let mut all = vec![
        ("LD_LIBRARY_PATH", &*folder),
        ("FAKE_GPU", &gpu),
        ("GEMM_BLAS_DEVICE", "cuda"),
    ];
    all.extend(settings);
    again(test, &all);
    let log = fs::read_to_string(log.path()).unwrap();
    log.lines().map(str::to_owned).collect()
}

/// Multiplies matrices of this shape, and says whether the call was passed on.
fn is_passed_on(stream: &Stream, shape: [c_int; 3], memory: &DeviceBuffer<f32>) -> bool {
    is_passed_on_by(stream.as_inner().addr(), shape, memory)
}

fn is_passed_on_by(stream: usize, [m, n, k]: [c_int; 3], memory: &DeviceBuffer<f32>) -> bool {
    let handle = Handle { stream, ..HANDLE };
    let start = memory.as_device_ptr().as_raw() as *mut c_void;
    let scalars = [1.0_f32, 0.0];
    let status = call!("cublasSgemm_v2"; &handle => *const Handle, 0 => c_int, 0 => c_int,
        m => c_int, n => c_int, k => c_int, &scalars[0] => *const f32, start => *mut c_void,
        m => c_int, start => *mut c_void, k => c_int, &scalars[1] => *const f32,
        start => *mut c_void, m => c_int);
    assert_eq!(status, 0);
    !calls_of_cublas().is_empty()
}

/// Two streams. The fake's have small numbers, of which 2 would be that of a stream of each thread.
fn two_streams() -> [Stream; 2] {
    let [_, _, one, other] =
        [(); 4].map(|()| Stream::new(StreamFlags::NON_BLOCKING, None).unwrap());
    [one, other]
}

const SMALL: [c_int; 3] = [64; 3];

/// The streams of the launches.
fn streams(log: &[String]) -> Vec<&str> {
    let launches = log.iter().filter(|line| line.starts_with("launch "));
    let words = launches.map(|line| {
        line.split(' ')
            .find_map(|word| word.strip_prefix("stream="))
    });
    words.map(Option::unwrap).collect()
}

pub fn calls_run_on_the_handles_stream() {
    if !is_child() {
        let log = again_on_gpu("on_gpu::calls_run_on_the_handles_stream", &[]);
        let streams = streams(&log);
        assert_eq!(streams.len(), 3, "{log:?}");
        assert_eq!(streams[0], streams[2]);
        assert_ne!(streams[0], streams[1]);
        return;
    }
    let device = CudaDevice::open(0).unwrap();
    let entered = device.enter().unwrap();
    let [one, other] = two_streams();
    let memory = DeviceBuffer::from_slice(&vec![0.0_f32; 64 * 64]).unwrap();
    for stream in [&one, &other, &one] {
        assert!(!is_passed_on(stream, SMALL, &memory));
    }
    let set_current = |context| {
        // SAFETY: the fake takes any number.
        let status = unsafe { cuCtxSetCurrent(without_provenance_mut(context)) };
        assert_eq!(status as u32, 0);
    };
    // Another library's context, and none.
    for context in [77, 0] {
        set_current(context);
        assert!(is_passed_on(&one, SMALL, &memory));
    }
    set_current(1);
    drop(entered);
    assert_eq!(counts(), [3, 2]);
}

/// `CU_STREAM_PER_THREAD` is another stream in each thread, with a workspace of its own.
pub fn each_thread_has_its_stream() {
    if !is_child() {
        let settings = [("GEMM_BLAS_WORKSPACE", "3")];
        let log = again_on_gpu("on_gpu::each_thread_has_its_stream", &settings);
        assert_eq!(streams(&log), ["2"; 3], "{log:?}");
        let is_workspace = |line: &&String| line.ends_with(" bytes=3145728");
        assert_eq!(log.iter().filter(is_workspace).count(), 2, "{log:?}");
        return;
    }
    let device = CudaDevice::open(0).unwrap();
    let _entered = device.enter().unwrap();
    let memory = DeviceBuffer::from_slice(&vec![0.0_f32; 64 * 64]).unwrap();
    let multiplies = || assert!(!is_passed_on_by(2, SMALL, &memory));
    multiplies();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let _entered = device.enter().unwrap();
            multiplies();
        });
        other.join().unwrap();
    });
    multiplies();
}

pub fn captures_take_what_has_run_before() {
    let name = "on_gpu::captures_take_what_has_run_before";
    if !is_child() {
        let launches = |capture| {
            let log = again_on_gpu(name, &[("GEMM_BLAS_CAPTURE", capture)]);
            streams(&log).len()
        };
        assert_eq!((launches("safe"), launches("all")), (5, 7));
        return;
    }
    let takes_all = std::env::var("GEMM_BLAS_CAPTURE").as_deref() == Ok("all");
    let device = CudaDevice::open(0).unwrap();
    let _entered = device.enter().unwrap();
    let [one, other] = two_streams();
    let memory = DeviceBuffer::from_slice(&vec![0.0_f32; 1 << 20]).unwrap();
    let captured = |stream: &Stream, shape| {
        let mut graph = null_mut();
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
        // SAFETY: the stream exists, and the pointer outlives the call.
        unsafe {
            assert_eq!(cuStreamBeginCapture_v2(stream.as_inner(), mode) as u32, 0);
            let passed_on = is_passed_on(stream, shape, &memory);
            assert_eq!(cuStreamEndCapture(stream.as_inner(), &mut graph) as u32, 0);
            passed_on
        }
    };
    // Nothing has run.
    assert!(captured(&one, SMALL));
    assert!(!is_passed_on(&one, SMALL, &memory));
    assert!(!captured(&one, SMALL));
    // On a stream that is new, with a kernel that has been loaded.
    assert!(!captured(&other, SMALL));
    // Another kernel.
    assert!(captured(&one, [1; 3]));
    // One whose sums are split along K: two launches, and workspace.
    let deep = [64, 16, 16_384];
    assert!(!is_passed_on(&one, deep, &memory));
    assert_eq!(captured(&one, deep), !takes_all);
}

/// A linear layer of bf16 with a bias and gelu, as PyTorch calls cublasLt.
pub fn an_epilogue_is_one_launch_and_captured() {
    let name = "on_gpu::an_epilogue_is_one_launch_and_captured";
    if !is_child() {
        let log = again_on_gpu(name, &[]);
        let launches: Vec<&str> = log
            .iter()
            .filter_map(|line| line.strip_prefix("launch name=")?.split(' ').next())
            .collect();
        assert_eq!(
            launches, ["bias_gelu_bf16_persistent_nt_bf16"; 2],
            "{log:?}"
        );
        return;
    }
    let device = CudaDevice::open(0).unwrap();
    let _entered = device.enter().unwrap();
    let [stream, _] = two_streams();
    let memory = DeviceBuffer::from_slice(&vec![0.0_f32; 3 << 18]).unwrap();
    let at = |mib: u64| (memory.as_device_ptr().as_raw() + (mib << 20)) as *mut c_void;
    // A sum of 64 products is not split, which would take workspace.
    let layout = |rows| {
        let layout = Description::new()
            .with(0, 14, 4)
            .with(1, 0, 4)
            .with(5, 1, 4);
        let sizes = [(2, rows), (3, 512), (4, rows), (6, 0)];
        sizes
            .iter()
            .fold(layout, |all, (size, value)| all.with(*size, *value, 8))
    };
    let (factor, c) = (&layout(64), &layout(512));
    let bias = at(2).addr() as i64 + (512 << 10);
    let operation = &Description::operation([1, 0])
        .with(7, 36, 4)
        .with(8, bias, 8);
    let scalars = [1.0_f32, 0.0];
    let multiply = || {
        type D = *const Description;
        let status = call!("cublasLtMatmul"; null_mut() => *mut c_void, operation => D,
            &scalars[0] => *const f32, at(0) => *mut c_void, factor => D, at(1) => *mut c_void, factor => D,
            &scalars[1] => *const f32, at(2) => *mut c_void, c => D, at(2) => *mut c_void, c => D,
            null_mut() => *mut c_void, null_mut() => *mut c_void, 0 => usize, stream.as_inner().cast() => *mut c_void);
        assert_eq!(status, 0);
        calls_of_cublas().is_empty()
    };
    assert!(multiply());
    let mut graph = null_mut();
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    // SAFETY: the stream exists, and the pointer outlives the call.
    unsafe {
        assert_eq!(cuStreamBeginCapture_v2(stream.as_inner(), mode) as u32, 0);
        assert!(multiply());
        assert_eq!(cuStreamEndCapture(stream.as_inner(), &mut graph) as u32, 0);
    }
    assert_eq!(counts(), [2, 0]);
}
