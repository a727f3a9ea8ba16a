//! The library in a program that has contexts, streams and memory of its own: on the fake GPU.

use std::ffi::c_void;
use std::ptr;

use gpu_gemm::cust::memory::{CopyDestination, DeviceBuffer};
use gpu_gemm::cust::stream::{Stream, StreamFlags};
use gpu_gemm::cust::sys::{CUcontext, cuCtxGetCurrent, cuCtxSetCurrent};
use gpu_gemm::gpu_kernels::naive;
use gpu_gemm::{
    Choice, Context, CudaDevice, Device, DeviceChoice, Devices, ElementType, Input, Output, Shape,
    Transpose, gemm,
};

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
        leaves_it!(made.synchronize().unwrap());
        let too_much = leaves_it!(made.allocate::<f64>(1 << 60));
        assert!(too_much.is_err());
        leaves_it!(drop((start, end)));
        leaves_it!(drop((a, c)));
        leaves_it!(drop(made));
        leaves_it!(drop(device));
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
    // SAFETY: the stream outlives the context.
    let on = |handle| unsafe { Context::on_raw_stream(&device, handle, 0).unwrap() };
    let same = Context::on_stream(&device, &stream, 0).unwrap();
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
