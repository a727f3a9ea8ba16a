//! The library in a program that has contexts, streams and memory of its own: on the fake GPU.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::thread;

use gpu_gemm::cust::memory::{CopyDestination, DeviceBuffer};
use gpu_gemm::cust::stream::{Stream, StreamFlags};
use gpu_gemm::cust::sys::{
    CUcontext, CUstreamCaptureMode, cuCtxGetCurrent, cuCtxSetCurrent, cuStreamBeginCapture_v2,
    cuStreamEndCapture,
};
use gpu_gemm::gpu_kernels::epilogue::{self, Compiled, Relu, Then};
use gpu_gemm::gpu_kernels::naive;
use gpu_gemm::{
    Buffer, Choice, Context, CudaDevice, Device, DeviceChoice, Devices, ElementType, GemmError,
    Input, Nested, Output, Shape, Transpose, gemm, gemm_fused, gemm_strided_batched,
};

use crate::common::assert_contains;
use crate::fake::{again, is_loaded};

/// The context that is current in this thread.
fn current() -> CUcontext {
    let mut context = ptr::null_mut();
    // SAFETY: the pointer outlives the call.
    assert_eq!(unsafe { cuCtxGetCurrent(&mut context) } as u32, 0);
    context
}

/// None, another library's, and the GPU's own: the fake opens it as number 1, and refuses nearly
/// all calls where it is not current.
const CONTEXTS: [usize; 3] = [0, 77, 1];

pub fn each_call_and_each_drop_leaves_the_context_that_was_current() {
    if !is_loaded() {
        let log = again(
            "waits=0 calls=1",
            "guest::each_call_and_each_drop_leaves_the_context_that_was_current",
        );
        // No call was made, and nothing was freed, in another context.
        let calls = log.iter().filter(|line| line.kind == "call");
        let failed = calls.filter(|line| line.number("status") != 0);
        let failed: Vec<&str> = failed.map(|line| line.text("name")).collect();
        assert_eq!(failed, ["cuMemAlloc_v2"; CONTEXTS.len()]);
        return;
    }
    for context in CONTEXTS {
        let mine = ptr::without_provenance_mut(context);
        // SAFETY: the fake takes any number.
        let set = || assert_eq!(unsafe { cuCtxSetCurrent(mine) } as u32, 0);
        set();
        macro_rules! leaves_it {
            ($call:expr) => {{
                let result = $call;
                assert_eq!(current(), mine, "{}", stringify!($call));
                result
            }};
        }
        let opened = leaves_it!(Device::open(DeviceChoice::Cuda(0)).unwrap());
        let device = opened.device;
        let made = leaves_it!(Context::new(&device, 0).unwrap());
        leaves_it!(drop(device)); // the context keeps it open
        let mut made = made.with_kernel(Choice::even(&naive::KERNEL.variants[0]));
        let [no, _] = Transpose::ALL;
        leaves_it!(
            made.prepare(ElementType::F32, Shape::cube(2), no, no)
                .unwrap()
        );
        let a = leaves_it!(made.upload(&[1.0f32, 2.0, 3.0, 4.0]).unwrap());
        let mut c = leaves_it!(made.allocate(4).unwrap());
        let start = leaves_it!(made.mark().unwrap());
        // SAFETY: the buffers live until `download` has waited.
        leaves_it!(unsafe { gemm(&made, 1.0, &a, 2, &a, 2, 0.0, &mut c, 2, 2, 2, 2).unwrap() });
        let end = leaves_it!(made.mark().unwrap());
        leaves_it!(end.wait().unwrap());
        assert!(leaves_it!(end.is_reached().unwrap()));
        assert!(leaves_it!(end.seconds_since(&start).unwrap()) > 0.0);
        let product = leaves_it!(made.download(&c).unwrap());
        assert_eq!(product, [7.0, 10.0, 15.0, 22.0]);
        leaves_it!(made.upload_into(&[1.0, 2.0], &mut c).unwrap());
        let mut first = [0.0; 3];
        leaves_it!(made.download_into(&c, &mut first).unwrap());
        assert_eq!(first, [1.0, 2.0, 15.0]);
        let zeros = leaves_it!(made.zeros::<f64>(2).unwrap());
        assert_eq!(leaves_it!(made.download(&zeros).unwrap()), [0.0; 2]);
        leaves_it!(drop(zeros));
        leaves_it!(made.synchronize().unwrap());
        let too_much = leaves_it!(made.allocate::<f64>(1 << 60));
        assert!(too_much.is_err());
        leaves_it!(drop((start, end)));
        leaves_it!(drop(a));
        // In a thread where no context is current, and before memory of it.
        leaves_it!(thread::spawn(|| drop(made)).join().unwrap());
        leaves_it!(drop(c));
        let gpus = || (0..2).map(|_| CudaDevice::open(0).unwrap().into());
        let devices = leaves_it!(Devices::of(gpus().collect()).unwrap());
        leaves_it!(drop(devices));
    }
}

/// As a program does that has nothing but numbers, such as cudarc's handles.
pub fn streams_and_memory_are_taken_by_their_handles() {
    if !is_loaded() {
        let log = again(
            "waits=0",
            "guest::streams_and_memory_are_taken_by_their_handles",
        );
        let launches = log.iter().filter(|line| line.kind == "launch");
        let streams: Vec<&str> = launches.map(|line| line.text("stream")).collect();
        // On the default stream, and on the caller's, which is not the device's.
        assert_eq!(streams[0], "0");
        assert_eq!(streams[1], streams[2]);
        let first_stream = "1";
        assert!(!["0", first_stream].contains(&streams[1]), "{streams:?}");
        return;
    }
    let device = CudaDevice::open(0).unwrap();
    let _entered = device.enter().unwrap();
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None).unwrap();
    let handle: *mut c_void = stream.as_inner().cast();
    // SAFETY: the last context owns the stream.
    let on = |handle| unsafe { Context::on_raw_stream(&device, handle, 0).unwrap() };
    let same = Context::on_stream(&device, stream, 0).unwrap();
    for context in [on(ptr::null_mut()), on(handle), same] {
        let context = context.with_kernel(Choice::even(&naive::KERNEL.variants[0]));
        let a = DeviceBuffer::from_slice(&[1.0f32, 2.0, 3.0, 4.0]).unwrap();
        let c = DeviceBuffer::from_slice(&[f32::NAN; 4]).unwrap();
        let [a_address, c_address] = [&a, &c].map(|one| one.as_device_ptr().as_raw());
        let input = Input::<f32>::at(a_address, 4);
        let output = Output::at(c_address, 4);
        // SAFETY: the buffers live until `synchronize` has waited.
        unsafe {
            gemm(
                &context, 1.0f32, input, 2, input, 2, 0.0, output, 2, 2, 2, 2,
            )
            .unwrap()
        };
        context.synchronize().unwrap();
        let mut product = [0.0; 4];
        c.copy_to(&mut product).unwrap();
        assert_eq!(product, [7.0, 10.0, 15.0, 22.0]);
    }
}

/// The calls of the driver that a product may make once it is prepared.
const OF_A_CALL: [&str; 4] = [
    "cuCtxGetCurrent",
    "cuFuncSetAttribute",
    "cuLaunchKernel",
    "cuTensorMapEncodeTiled",
];

/// The fake refuses in a capture what the driver does: to wait, to allocate and to load.
pub fn a_prepared_call_only_launches_and_so_can_be_captured() {
    if !is_loaded() {
        let log = again(
            "waits=0 calls=1 any_kernel=1",
            "guest::a_prepared_call_only_launches_and_so_can_be_captured",
        );
        let calls = log.iter().filter(|line| line.kind == "call");
        let calls: Vec<&str> = calls.map(|line| line.text("name")).collect();
        let captures = calls.split(|name| *name == "cuStreamBeginCapture_v2");
        let captures = captures.skip(1).map(|after| {
            let captured = after.split(|name| *name == "cuStreamEndCapture");
            captured.into_iter().next().unwrap()
        });
        let captures: Vec<&[&str]> = captures.collect();
        assert_eq!(captures.len(), 6);
        let count = |calls: &[&str], name| calls.iter().filter(|call| **call == name).count();
        for calls in &captures[1..] {
            assert!(
                calls.iter().all(|name| OF_A_CALL.contains(name)),
                "{calls:?}"
            );
        }
        let counts = |name| {
            captures
                .iter()
                .map(|calls| count(calls, name))
                .collect::<Vec<_>>()
        };
        let launches = counts("cuLaunchKernel");
        // Not prepared; a product; stream-K and its fix-up; a batch; two that share A; stream-K with
        // an epilogue.
        assert_eq!(launches, [0, 1, 2, 1, 2, 2]);
        assert_eq!(counts("cuCtxGetCurrent")[1..], [1, 1, 1, 2, 1]);
        return;
    }
    let device = CudaDevice::open(0).unwrap();
    let _entered = device.enter().unwrap();
    let stream = Arc::new(Stream::new(StreamFlags::NON_BLOCKING, None).unwrap());
    let mut context = Context::on_stream(&device, Arc::clone(&stream), 0).unwrap();
    let [no, _] = Transpose::ALL;
    const ELEMENTS: usize = 1 << 20;
    let a = context.zeros::<f32>(ELEMENTS).unwrap();
    let mut c = context.zeros::<f32>(ELEMENTS).unwrap();
    let captured = |call: &mut dyn FnMut() -> Result<(), GemmError>| {
        let mut graph = ptr::null_mut();
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
        // SAFETY: the stream exists, and the pointer outlives the call.
        unsafe {
            assert_eq!(cuStreamBeginCapture_v2(stream.as_inner(), mode) as u32, 0);
            let result = call();
            assert_eq!(cuStreamEndCapture(stream.as_inner(), &mut graph) as u32, 0);
            result
        }
    };
    let multiply = |context: &Context, c: &mut Buffer<f32>, shape: Shape, batch: Nested| {
        let Shape { m, n, k } = shape;
        let (of_a, of_b, of_c) = ((0, m * k), k * n, m * n);
        // SAFETY: the buffers live until the stream is done.
        captured(&mut || unsafe {
            gemm_strided_batched(
                context, 1.0, &a, k, of_a, &a, n, of_b, 0.0, &mut *c, n, of_c, m, n, k, batch,
            )
        })
    };
    let small = Shape::cube(64);
    let error = multiply(&context, &mut c, small, 1.into()).unwrap_err();
    assert_contains(
        &error.to_string(),
        &["while the stream is captured", "`Context::prepare`"],
    );
    // Its sums are split along K.
    let deep = Shape::new(16, 64, 16_384);
    let batches = [(small, 1.into()), (deep, 1.into()), (small, 100.into())];
    for (shape, batch) in batches.into_iter().chain([(small, (2, 100).into())]) {
        context
            .prepare_batch(ElementType::F32, shape, no, no, batch)
            .unwrap();
        multiply(&context, &mut c, shape, batch).unwrap();
    }
    let bias = context.zeros::<f32>(64).unwrap();
    let epilogue = Then(epilogue::Bias(bias.start()), Relu);
    // SAFETY: as above.
    let mut fused = || unsafe {
        let kernels = Compiled::kernels();
        gemm_fused(
            &context, kernels, epilogue, 1.0, &a, 64, 0, &a, 64, 0, 0.0, &mut c, 64, 0, 64, 64, 64,
            1,
        )
    };
    // There is no other way to prepare it.
    fused().unwrap();
    captured(&mut fused).unwrap();
}
