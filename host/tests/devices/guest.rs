//! The library in a program that has contexts, streams and memory of its own: on the fake GPU.

use std::ptr;

use cust::sys::{CUcontext, cuCtxGetCurrent, cuCtxSetCurrent};
use gpu_gemm::gpu_kernels::naive;
use gpu_gemm::{
    Choice, Context, CudaDevice, Device, DeviceChoice, Devices, ElementType, Shape, Transpose, gemm,
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
