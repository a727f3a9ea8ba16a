//! Errors of a device, each with advice.

use cuda_std::simulator::Fault;
use cust::error::CudaError;
use gpu_kernels::spec::{Unit, Variant};
use thiserror::Error;

use crate::gpu::DeviceFacts;
use crate::plan::PlanError;
use crate::text::plural;

/// The advice at the end of a GPU's errors that the simulator would avoid.
const OR_SIMULATE: &str = ", or use `--device sim`";

/// `CUDA_ERROR_UNSUPPORTED_PTX_VERSION`.
pub(crate) const UNSUPPORTED_PTX_VERSION: u32 = 222;

/// Why a device could not be opened, or why a kernel could not run on it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DeviceError {
    #[error(
        "There is no NVIDIA driver on this machine (no libcuda.so.1). Install one{OR_SIMULATE}."
    )]
    NoDriver,
    #[error(
        "The NVIDIA driver finds no GPU (CUDA error 100). Look at `nvidia-smi` and CUDA_VISIBLE_DEVICES{OR_SIMULATE}."
    )]
    NoDevice,
    #[error(
        "There is no GPU {ordinal}: the driver finds {count}, counted from 0. Look at `nvidia-smi` and CUDA_VISIBLE_DEVICES."
    )]
    NoSuchDevice { ordinal: u32, count: u32 },
    #[error("The NVIDIA driver does not start: CUDA error {}. `nvidia-smi` may say more.", code(*.0))]
    DriverFails(CudaError),
    #[error("This build holds no PTX, so it cannot use a GPU: {reason}")]
    NoPtx { reason: String },
    #[error(
        "The driver (CUDA {driver}) is too old for this build's PTX ISA {isa} (CUDA error 222): it needs driver {needed} or newer. Update it{OR_SIMULATE}."
    )]
    DriverTooOld {
        driver: String,
        isa: String,
        needed: String,
    },
    #[error(
        "The GPU has compute capability {capability}, but this build's PTX is for {target} and newer (CUDA error {code}). Use a newer GPU{OR_SIMULATE}."
    )]
    NoCodeForGpu {
        code: u32,
        capability: String,
        target: String,
    },
    #[error(
        "The driver refuses this build's PTX (CUDA error {code}). This is a bug in how it was compiled: please report it with what the driver says:\n{log}"
    )]
    InvalidPtx { code: u32, log: String },
    #[error(
        "None of your own kernels' PTX is for this GPU: compile them for {target}, too (`CudaBuilder::arch`). Without libNVVM their PTX is empty."
    )]
    NoPtxOfKernels { target: String },
    #[error(
        "Your own kernels have one named `{entry}`, and so does this device already. Name the static of `fused!` otherwise; if it is a kernel of the library, turn off the feature `entry-points` of gpu-kernels."
    )]
    KernelTwice { entry: String },
    #[error(
        "This device has no kernel `{entry}`: give it the PTX of your own kernels by `Device::with_kernels`."
    )]
    NotGiven { entry: String },
    #[error(
        "Kernel `{kernel}` cannot be compiled while the stream is captured. Before the capture, call `Context::prepare` for the product, or multiply once."
    )]
    NotPrepared { kernel: &'static str },
    #[error("{reason}")]
    NotCompiled { reason: String },
    #[error(
        "The PTX of this build has no kernel `{entry}`. Build again; if that does not help, please report it."
    )]
    NoSuchEntry { entry: String },
    #[error(
        "The GPU is out of memory: there is no room for {}, since only {free} of {total} are free. Choose a smaller shape, or wait for other programs on the GPU.",
        plural(.bytes, "byte")
    )]
    OutOfMemory {
        bytes: usize,
        free: usize,
        total: usize,
    },
    #[error(
        "Kernel `{kernel}` crashed on the GPU: {}. {} The GPU's context is lost: nothing more can run in this process.",
        code(*.error), cause(.panic)
    )]
    Crashed {
        kernel: String,
        error: CudaError,
        /// The record of the kernel's panic, if there was one.
        panic: Option<Box<Fault>>,
    },
    #[error(
        "The GPU's context was lost when an earlier kernel crashed: {}. Nothing more can run in this process.",
        code(*.0)
    )]
    ContextLost(CudaError),
    #[error(
        "Kernel `{kernel}` cannot be launched with {} a CTA on this GPU: CUDA error {}.",
        plural(.threads, "thread"), code(*.error)
    )]
    Launch {
        kernel: String,
        threads: u32,
        error: CudaError,
    },
    #[error("{doing} failed: CUDA error {}.", code(*.error))]
    Cuda {
        doing: &'static str,
        error: CudaError,
    },
    #[error("Device {index} ({name}) of several, counted from 0: {error}")]
    OfDevice {
        index: usize,
        name: String,
        error: Box<DeviceError>,
    },
    #[error(
        "Only devices of one kind can be joined: GPUs as in `cuda:0+1`, or simulators as in `sim+sim`."
    )]
    NotJoined,
    #[error(
        "A context multiplies on one device, and these are several: multiply with `Devices::gemm`."
    )]
    SeveralForOne,
    #[error(
        "There is no OpenCL on this machine (no libOpenCL.so.1). Install its loader and a driver, such as the packages ocl-icd-libopencl1 and pocl-opencl-icd{OR_SIMULATE}."
    )]
    NoOpenCl,
    #[error(
        "OpenCL finds no device on this machine. Install a driver for one, such as the package pocl-opencl-icd for the CPU{OR_SIMULATE}."
    )]
    NoOpenClDevice,
    #[error(
        "There is no OpenCL device {ordinal}: there are {count}, counted from 0. `rust-gemm doctor` lists them."
    )]
    NoSuchOpenClDevice { ordinal: u32, count: usize },
    #[error("This build holds no OpenCL C, so it cannot use an OpenCL device: {reason}")]
    NoOpenClSource { reason: String },
    #[error(
        "The OpenCL device {device} has no shared virtual memory (OpenCL 2.0), in which kernels take addresses from the host. Use another device{OR_SIMULATE}."
    )]
    NoSharedAddresses { device: String },
    #[error(
        "Kernel `{kernel}` needs tensor cores of compute capability {needed}, which this device does not have. Choose another kernel{OR_SIMULATE}."
    )]
    NoTensorCores { kernel: String, needed: String },
    #[error("Kernel `{kernel}` does not run with OpenCL: {reason}.")]
    NotInOpenCl { kernel: String, reason: String },
    #[error(
        "OpenCL does not compile kernel `{kernel}`. This is a bug in how it was written, or of the device's compiler: please report it with what that says:\n{log}"
    )]
    OpenClBuild { kernel: String, log: String },
    #[error("Kernel `{kernel}` cannot be launched with OpenCL: {error}.")]
    OpenClLaunch { kernel: String, error: String },
    #[error("Kernel `{kernel}` with OpenCL: {panic}.")]
    OpenClPanic { kernel: String, panic: Box<Fault> },
    #[error(
        "The OpenCL device is out of memory: there is no room for {} of {total}. Choose a smaller shape.",
        plural(.bytes, "byte")
    )]
    OpenClOutOfMemory { bytes: usize, total: usize },
    #[error("{doing} failed: OpenCL error {error}.")]
    OpenCl { doing: &'static str, error: String },
    #[error("Kernel `{kernel}` on the simulator: {fault}")]
    Simulator { kernel: String, fault: Box<Fault> },
    #[error(
        "Kernel `{kernel}` does not take the arguments of its launch. This is a bug: please report it."
    )]
    WrongArguments { kernel: &'static str },
    #[error(transparent)]
    Plan(#[from] PlanError),
}

impl DeviceError {
    /// The error for a kernel for tensor cores on a device without them.
    pub(crate) fn lacks_tensor_cores(facts: &DeviceFacts, variant: &Variant) -> Option<Self> {
        let needs_them = variant.unit != Unit::CudaCores;
        let lacks_them = needs_them && !facts.runs(variant);
        lacks_them.then(|| DeviceError::NoTensorCores {
            kernel: variant.name.to_owned(),
            needed: DeviceFacts::needed_capability(variant),
        })
    }

    /// Adds to an error which of several devices failed.
    pub(super) fn of_device(index: usize, name: String, error: DeviceError) -> DeviceError {
        let error = Box::new(error);
        DeviceError::OfDevice { index, name, error }
    }

    /// The error for a kernel that a device of OpenCL does not run.
    #[cfg(feature = "opencl")]
    pub(super) fn not_in_opencl(kernel: &str, reason: impl Into<String>) -> DeviceError {
        let (kernel, reason) = (kernel.to_owned(), reason.into());
        DeviceError::NotInOpenCl { kernel, reason }
    }

    /// Adds to an error what was being done when OpenCL failed.
    #[cfg(feature = "opencl")]
    pub(super) fn opencl(doing: &'static str, error: opencl3::error_codes::ClError) -> DeviceError {
        let error = format!("{} ({error})", error.0);
        DeviceError::OpenCl { doing, error }
    }

    /// The message `text` of an error without the advice to use the simulator.
    pub fn without_simulator(text: &str) -> String {
        text.replace(OR_SIMULATE, "")
    }

    /// The number of the CUDA driver's error (a `CUresult`), if that is the reason. 999 is also one
    /// that `cust` does not know.
    pub fn cuda_code(&self) -> Option<u32> {
        match self {
            DeviceError::NoDevice => Some(CudaError::NoDevice as u32),
            DeviceError::DriverFails(error)
            | DeviceError::ContextLost(error)
            | DeviceError::Crashed { error, .. }
            | DeviceError::Launch { error, .. }
            | DeviceError::Cuda { error, .. } => Some(*error as u32),
            DeviceError::DriverTooOld { .. } => Some(UNSUPPORTED_PTX_VERSION),
            DeviceError::NoCodeForGpu { code, .. } | DeviceError::InvalidPtx { code, .. } => {
                Some(*code)
            }
            DeviceError::OutOfMemory { .. } => Some(CudaError::OutOfMemory as u32),
            DeviceError::OfDevice { error, .. } => error.cuda_code(),
            _ => None,
        }
    }

    /// Whether the error only means that there is no usable GPU here, so that another device may
    /// be used instead.
    pub fn means_no_usable_gpu(&self) -> bool {
        matches!(
            self,
            DeviceError::NoDriver
                | DeviceError::NoDevice
                | DeviceError::NoPtx { .. }
                | DeviceError::DriverTooOld { .. }
                | DeviceError::NoCodeForGpu { .. }
        )
    }
}

/// An error's number and name. The driver's own text is not used, because without a driver there
/// is none.
fn code(error: CudaError) -> String {
    format!("{} ({error:?})", error as u32)
}

/// Why a kernel crashed, as a sentence.
fn cause(panic: &Option<Box<Fault>>) -> String {
    match panic {
        Some(panic) => format!("{panic}."),
        None => "It recorded no panic; `--device sim` runs the same kernel and may say which thread and which line.".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuda_std::simulator::Dim3;

    use gpu_kernels::spec::ElementType;

    use crate::tests::{h200, t4, variant};

    #[test]
    fn a_kernel_says_which_tensor_cores_it_needs() {
        let said = |facts: &DeviceFacts, variant| {
            DeviceError::lacks_tensor_cores(facts, variant).map(|error| error.to_string())
        };
        let doubles = variant("fp64-tensor");
        let mut of_halves = gpu_kernels::variants().filter(|one| one.types.c == ElementType::Bf16);
        let halves = of_halves.find(|one| one.one_capability).unwrap();
        let older = said(&t4(), doubles).unwrap();
        assert!(
            older.contains("compute capability 8.0 or newer, which"),
            "{older}"
        );
        let older = said(&t4(), halves).unwrap();
        assert!(older.contains("compute capability 9.0, which"), "{older}");
        let newer = DeviceFacts {
            capability: 100,
            ..h200()
        };
        let no_longer = said(&newer, halves).unwrap();
        assert!(
            no_longer.contains("compute capability 9.0, which"),
            "{no_longer}"
        );
        assert_eq!(said(&newer, doubles), None);
        assert_eq!(said(&h200(), halves), None);
        assert_eq!(said(&t4(), variant("tiled-32")), None);
    }

    #[test]
    fn an_error_goes_to_another_thread_and_has_the_drivers_code_whichever_device_failed() {
        fn is_sent<T: Send + Sync + 'static>(_: &T) {}
        let lost = DeviceError::ContextLost(CudaError::LaunchFailed);
        let error = DeviceError::of_device(1, "cuda:1".into(), lost);
        is_sent(&error);
        assert_eq!(error.cuda_code(), Some(719));
        assert_eq!(DeviceError::NoDriver.cuda_code(), None);
    }

    #[test]
    fn a_crash_says_what_panicked_and_that_the_context_is_lost() {
        let crash = |panic| DeviceError::Crashed {
            kernel: "tiled-16".into(),
            error: CudaError::LaunchFailed,
            panic,
        };
        let at = |x, y, z| Dim3 { x, y, z };
        let panic = Fault::Panic {
            block: at(1, 2, 3),
            thread: at(4, 5, 6),
            message: "attempt to divide by zero".into(),
            location: Some("src/tiled.rs:7:8".into()),
        };
        let message = crash(Some(Box::new(panic))).to_string();
        for part in [
            "`tiled-16`",
            "719 (LaunchFailed)",
            "Thread (4, 5, 6) of block (1, 2, 3) panicked at src/tiled.rs:7:8: attempt to divide by zero.",
            "context is lost",
        ] {
            assert!(message.contains(part), "{message}");
        }
        let message = crash(None).to_string();
        assert!(message.contains("no panic"), "{message}");
        assert!(!crash(None).means_no_usable_gpu());
    }
}
