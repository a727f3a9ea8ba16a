//! Errors on a real GPU, and their reports. Without one, each test is reported as ignored.

use std::mem::offset_of;
use std::process::ExitCode;

use cust::memory::{DeviceBuffer, mem_get_info};
use gpu_gemm::device::compiled::Module;
use gpu_gemm::device::driver;
use gpu_gemm::gpu_kernels::gemm::Gemm;
use gpu_gemm::gpu_kernels::naive::KERNEL;
use gpu_gemm::{Choice, CudaDevice, Device, DeviceChoice, DeviceError, Shape};
use verification::data::{Data, Problem, Storage};
use verification::run::{Run, RunError};

/// Makes tests from functions, with their names.
macro_rules! on_gpu {
    ($($test:ident),* $(,)?) => {
        vec![$(tests::on_gpu(stringify!($test), || {
            $test();
            Ok(())
        })),*]
    };
}

fn main() -> ExitCode {
    // They run in this order, one at a time: one fills the memory, and the last one loses the
    // process's context.
    tests::run(on_gpu![
        each_kind_of_unusable_ptx_is_told_apart,
        a_gpu_that_is_not_there_is_refused_by_number,
        out_of_memory_at_any_allocation_reports_sizes_and_leaks_nothing,
        writes_outside_of_c_are_caught,
        a_panic_says_what_where_and_in_which_thread_and_every_later_call_fails_as_clearly,
    ])
}

/// The argument block of the ladder's kernels in f32.
type Arguments = Gemm<'static, f32>;

const NEEDS_GPU: &str = "this test needs an NVIDIA GPU";

fn problem(size: usize) -> Problem<f32> {
    let shape = Shape::cube(size);
    Problem::random(shape, Storage::COMPACT, Data::Uniform, 1, 1.0, 1.0).expect("a problem")
}

/// A module of one kernel with the name and the argument block of `naive` and this body.
fn naive(isa: &str, target: &str, body: &str) -> String {
    let bytes = size_of::<Arguments>();
    format!(
        ".version {isa}\n.target {target}\n.address_size 64\n\
         .visible .entry naive(.param .align 8 .b8 gemm[{bytes}])\n{{\n{body}\nret;\n}}\n"
    )
}

fn load(isa: &str, target: &str, body: &str) -> Result<CudaDevice, DeviceError> {
    loaded(naive(isa, target, body))
}

fn loaded(ptx: String) -> Result<CudaDevice, DeviceError> {
    let gpu = driver::probe().expect(NEEDS_GPU).swap_remove(0);
    // SAFETY: it has one kernel, `naive`, with the parameter of the ladder's kernel; each test
    // vouches for its accesses.
    let device = unsafe { CudaDevice::open_with(gpu, Module::of_text(ptx.leak()))? };
    // The driver compiles the kernel only now.
    let _entered = device.enter()?;
    device.function("naive")?;
    Ok(device)
}

fn run(device: &Device, problem: &Problem<f32>) -> Result<Run<f32>, RunError> {
    verification::run::run(device, Choice::even(&KERNEL.variants[0]), problem, &|| ())
}

fn refused(isa: &str, target: &str, body: &str) -> DeviceError {
    match load(isa, target, body) {
        Ok(_) => panic!("the driver took it"),
        Err(error) => error,
    }
}

fn each_kind_of_unusable_ptx_is_told_apart() {
    load("7.0", "sm_50", "").expect("the module without a fault loads");
    let newer = refused("99.0", "sm_50", "");
    assert!(matches!(newer, DeviceError::DriverTooOld { .. }), "{newer}");
    let invalid = refused("7.0", "sm_50", "frobnicate.u32 %r1;");
    assert!(
        matches!(&invalid, DeviceError::InvalidPtx { code: 218, log } if log.contains("frobnicate")),
        "{invalid}"
    );
    // No existing GPU runs this.
    let gpu = driver::probe().expect(NEEDS_GPU).swap_remove(0);
    if gpu.capability < (10, 0) {
        let foreign = refused("8.6", "sm_100", "");
        assert!(
            matches!(foreign, DeviceError::NoCodeForGpu { .. }),
            "{foreign}"
        );
    }
}

fn a_gpu_that_is_not_there_is_refused_by_number() {
    let error = Device::open(DeviceChoice::Cuda(1000))
        .err()
        .expect("no machine has 1000 GPUs");
    assert!(
        matches!(error, DeviceError::NoSuchDevice { ordinal: 1000, .. }),
        "{error}"
    );
}

fn out_of_memory_at_any_allocation_reports_sizes_and_leaks_nothing() {
    let device = Device::open(DeviceChoice::Cuda(0)).expect(NEEDS_GPU).device;
    let gpu = device.one_gpu().expect("a GPU");
    let _entered = gpu.enter().expect("its context");
    // Three matrices of 256 MiB; the driver allocates memory in units of 2 MiB.
    let problem = problem(8192);
    const MATRIX: usize = 256 << 20;
    for matrices in 0..3 {
        let (free, _) = mem_get_info().expect("free memory");
        let leave = matrices * MATRIX + MATRIX / 2;
        // SAFETY: nothing reads it.
        let filler = unsafe { DeviceBuffer::<u8>::uninitialized(free - leave) }.expect("a filler");
        let (before, _) = mem_get_info().expect("free memory");
        let error = run(&device, &problem).expect_err("there is room for fewer matrices");
        let RunError::Device(DeviceError::OutOfMemory { bytes, free, total }) = error else {
            panic!("not out of memory: {error}");
        };
        assert!(bytes > MATRIX && free < bytes && total > free, "{error}");
        let (after, _) = mem_get_info().expect("free memory");
        assert_eq!(
            before, after,
            "something leaked with room for {matrices} matrices"
        );
        drop(filler);
    }
    // The device is still usable.
    run(&device, &problem).expect("there is memory again");
}

fn writes_outside_of_c_are_caught() {
    // A single thread stores 64 bytes before C, into the guard band.
    let body = format!(
        "
        .reg .u64 %c; .reg .f32 %x;
        ld.param.u64 %c, [gemm+{}];
        cvta.to.global.u64 %c, %c;
        mov.f32 %x, 0f3F800000;
        st.global.f32 [%c+-64], %x;",
        offset_of!(Arguments, c)
    );
    let device = Device::from(load("7.0", "sm_50", &body).expect(NEEDS_GPU));
    let error = run(&device, &problem(4)).expect_err("a trespass");
    assert_eq!(
        error.to_string(),
        "Kernel `naive` wrote 16 elements before the start of C's buffer."
    );
}

/// The code that `cuda_builder` writes, by hand: a thread writes the record's words, the panic's
/// number plus 1 last, and traps.
fn a_panic_says_what_where_and_in_which_thread_and_every_later_call_fails_as_clearly() {
    let body = "
        .reg .u64 %record; .reg .u32 %word;
        ld.global.u64 %record, [__nvvm_panic_record];
        mov.u32 %word, %ctaid.x;
        st.volatile.u32 [%record+4], %word;
        mov.u32 %word, %tid.x;
        st.volatile.u32 [%record+16], %word;
        st.volatile.u64 [%record+32], 9;
        membar.sys;
        st.volatile.u32 [%record], 4;
        membar.sys;
        trap;";
    let ptx = naive("7.0", "sm_50", body).replace(
        ".address_size 64\n",
        ".address_size 64\n.visible .global .align 8 .u64 __nvvm_panic_record;\n",
    ) + "// panic 3: src/lib.rs:5:9: the index is {0}\n";
    let device = Device::from(loaded(ptx).expect(NEEDS_GPU));
    let problem = problem(4);
    let first = run(&device, &problem).expect_err("a crash");
    let RunError::Device(DeviceError::Crashed { panic: Some(_), .. }) = &first else {
        panic!("no panic: {first}");
    };
    let said = "panicked at src/lib.rs:5:9: the index is 9.";
    assert!(first.to_string().contains(said), "{first}");
    let second = run(&device, &problem).expect_err("the context is lost");
    assert!(
        matches!(second, RunError::Device(DeviceError::ContextLost(_))),
        "{second}"
    );
}
