//! An OpenCL device. Its kernels are compiled when they are first needed.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_TYPE_ALL, CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT, Device};
use opencl3::error_codes::{CL_PLATFORM_NOT_FOUND_KHR, ClError, DLOPEN_RUNTIME_LOAD_FAILED};
use opencl3::kernel::Kernel;
use opencl3::platform::get_platforms;
use opencl3::program::Program;
use opencl3::types::cl_context;

use gpu_kernels::spec::Variant;

use super::source::{self, Absent};
use crate::error::DeviceError;

/// The name of PoCL's platform.
const POCL: &str = "Portable Computing Language";

/// A kernel with a barrier in only one side of a branch, followed by a return of some work-items.
/// PoCL 3.1 makes all work-items of a group take the first one's side, so that it writes outside
/// of C. No plan for PoCL has this kernel ([`OpenClDevice::facts`]).
const MISCOMPILED_BY_POCL: &str = "fix_up";

/// The properties of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenClProperties {
    pub name: String,
    /// The OpenCL implementation, such as `Portable Computing Language`.
    pub platform: String,
    /// The version of OpenCL, as the device reports it: `OpenCL 3.0 PoCL ...`.
    pub version: String,
    pub compute_units: u32,
    pub memory_bytes: usize,
    /// The cache of that memory, as the device reports it; 0 if it has none.
    pub cache_bytes: usize,
    /// Local memory of a work-group.
    pub local_bytes: usize,
    /// The largest number of work-items in a work-group.
    pub work_group: usize,
    pub has_doubles: bool,
    /// Whether f32 division can be rounded correctly.
    pub divides_correctly: bool,
    /// Whether kernels and the host share addresses (SVM).
    pub shares_addresses: bool,
}

impl fmt::Display for OpenClProperties {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let doubles = if self.has_doubles { "f64" } else { "no f64" };
        write!(
            formatter,
            "{} ({}, {}, {} compute units, {} KiB of local memory, {doubles})",
            self.name,
            self.platform,
            self.version,
            self.compute_units,
            self.local_bytes / 1024
        )
    }
}

impl OpenClProperties {
    fn of(device: &Device, platform: &str) -> Result<OpenClProperties, ClError> {
        let extensions = device.extensions()?;
        let rounding = device.single_fp_config()?;
        Ok(OpenClProperties {
            name: device.name()?.trim().to_owned(),
            platform: platform.trim().to_owned(),
            // The text after the number tells how it was built.
            version: device
                .version()?
                .split(' ')
                .take(2)
                .collect::<Vec<_>>()
                .join(" "),
            compute_units: device.max_compute_units()?,
            memory_bytes: usize::try_from(device.global_mem_size()?).unwrap_or(usize::MAX),
            cache_bytes: usize::try_from(device.global_mem_cache_size()?).unwrap_or(usize::MAX),
            local_bytes: usize::try_from(device.local_mem_size()?).unwrap_or(usize::MAX),
            work_group: device.max_work_group_size()?,
            has_doubles: extensions
                .split_whitespace()
                .any(|name| name == "cl_khr_fp64"),
            divides_correctly: rounding & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT != 0,
            shares_addresses: device.svm_mem_capability() != 0,
        })
    }
}

/// The resources of a kernel's work-group.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkGroup {
    pub(super) threads: usize,
    pub(super) local_bytes: usize,
}

impl OpenClProperties {
    /// The error for a program on a device without a feature that it needs.
    fn lacks(&self, entry: &str, source: &str) -> Option<DeviceError> {
        let needs_division = source::options(source).contains("correctly-rounded");
        let device = &self.name;
        let reason = if source::needs_doubles(source) && !self.has_doubles {
            format!(
                "it computes with f64, which the OpenCL device {device} does not have \
                 (cl_khr_fp64). Use a kernel for f32, or another device"
            )
        } else if needs_division && !self.divides_correctly {
            format!(
                "it divides, which the OpenCL device {device} does not round correctly in f32. \
                 Use another device"
            )
        } else {
            return None;
        };
        Some(DeviceError::not_in_opencl(entry, reason))
    }

    /// The error for a kernel on a device without room for one of its work-groups.
    pub(super) fn no_room(&self, entry: &str, group: WorkGroup) -> Option<DeviceError> {
        let device = &self.name;
        let [needs, has, smaller] = if group.threads > self.work_group {
            let [needs, has] = [group.threads, self.work_group].map(|count| count.to_string());
            [
                needs + " work-items in a work-group",
                has,
                "blocks".to_owned(),
            ]
        } else if group.local_bytes > self.local_bytes {
            let [needs, has] = [group.local_bytes, self.local_bytes].map(|bytes| bytes.to_string());
            let of = " bytes of local memory for a work-group";
            [needs + of, has, "tiles".to_owned()]
        } else {
            return None;
        };
        let reason = format!(
            "it needs {needs}, of which the OpenCL device {device} has at most {has}. Use a kernel \
             with smaller {smaller}"
        );
        Some(DeviceError::not_in_opencl(entry, reason))
    }
}

/// All devices of all platforms, in the order in which OpenCL lists them.
///
/// # Errors
///
/// There is no OpenCL, or no device.
pub fn probe() -> Result<Vec<OpenClProperties>, DeviceError> {
    Ok(devices()?
        .into_iter()
        .map(|(_, properties)| properties)
        .collect())
}

fn devices() -> Result<Vec<(Device, OpenClProperties)>, DeviceError> {
    let platforms = get_platforms().map_err(without_platforms)?;
    let mut found = Vec::new();
    for platform in platforms {
        let name = platform.name().unwrap_or_default();
        // A platform without devices returns an error.
        for id in platform.get_devices(CL_DEVICE_TYPE_ALL).unwrap_or_default() {
            let device = Device::new(id);
            let properties = OpenClProperties::of(&device, &name);
            let doing = "Querying an OpenCL device";
            let properties = properties.map_err(|error| DeviceError::opencl(doing, error))?;
            found.push((device, properties));
        }
    }
    match found.is_empty() {
        true => Err(DeviceError::NoOpenClDevice),
        false => Ok(found),
    }
}

/// Why there are no platforms.
fn without_platforms(error: ClError) -> DeviceError {
    match error.0 {
        DLOPEN_RUNTIME_LOAD_FAILED => DeviceError::NoOpenCl,
        CL_PLATFORM_NOT_FOUND_KHR => DeviceError::NoOpenClDevice,
        _ => DeviceError::opencl("Listing the platforms of OpenCL", error),
    }
}

/// A kernel of a device. Its arguments are its state, so only one launch at a time may set them.
pub(super) struct Compiled {
    pub(super) kernel: Mutex<Kernel>,
    pub(super) source: &'static str,
    /// Its first parameters: the fields of the argument block that it reads.
    pub(super) fields: Vec<Field>,
    /// The parameters after those.
    pub(super) has_dynamic_local: bool,
    pub(super) has_panic_record: bool,
    /// Local memory that is declared in the kernel.
    pub(super) local_bytes: usize,
    /// The largest number of work-items in a work-group that runs it.
    pub(super) work_group: usize,
}

/// A parameter that is a field of the argument block.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// Its offset in the block.
    pub(super) byte: usize,
    /// The size of a number; `None` for a pointer.
    pub(super) bytes: Option<usize>,
}

impl Field {
    /// The field that a parameter's type and name give, such as `ulong gemm_at_16`.
    fn of(name: &str, ty: &str) -> Option<Field> {
        let (_, place) = name.rsplit_once("_at_")?;
        let digits = place.split('_').next()?;
        let bytes = match ty {
            pointer if pointer.ends_with('*') => None,
            "uchar" | "char" => Some(1),
            "ushort" | "short" | "half" => Some(2),
            "uint" | "int" | "float" => Some(4),
            _ => Some(8),
        };
        Some(Field {
            byte: digits.parse().ok()?,
            bytes,
        })
    }
}

/// The context, to which memory belongs, and the queue, which orders operations.
pub(super) struct Session {
    context: Context,
    queue: CommandQueue,
}

impl Session {
    pub(super) fn context(&self) -> cl_context {
        self.context.get()
    }

    pub(super) fn queue(&self) -> &CommandQueue {
        &self.queue
    }
}

/// An OpenCL device.
pub struct OpenClDevice {
    device: Device,
    properties: OpenClProperties,
    /// Buffers also hold it, so that they may outlive the device.
    session: Arc<Session>,
    kernels: Mutex<HashMap<&'static str, Arc<Compiled>>>,
}

impl OpenClDevice {
    /// Opens the device with this number.
    ///
    /// # Errors
    ///
    /// There is no OpenCL, no such device, or it lacks a feature that all kernels need.
    pub fn open(ordinal: u32) -> Result<OpenClDevice, DeviceError> {
        let found = devices()?;
        let count = found.len();
        let chosen = found.into_iter().nth(ordinal as usize);
        let Some((device, properties)) = chosen else {
            return Err(DeviceError::NoSuchOpenClDevice { ordinal, count });
        };
        if source::count() == Some(0) {
            let reason = crate::device::compiled::why_absent();
            let reason = reason.unwrap_or("The build script left none.").to_owned();
            return Err(DeviceError::NoOpenClSource { reason });
        }
        if !properties.shares_addresses {
            return Err(DeviceError::NoSharedAddresses {
                device: properties.name,
            });
        }
        let failed = |error| DeviceError::opencl("Opening the OpenCL device", error);
        let context = Context::from_device(&device).map_err(failed)?;
        // SAFETY: the device belongs to the context, and there are no properties.
        let queue = unsafe { CommandQueue::create_with_properties(&context, device.id(), 0, 0) }
            .map_err(failed)?;
        Ok(OpenClDevice {
            device,
            properties,
            session: Arc::new(Session { context, queue }),
            kernels: Mutex::default(),
        })
    }

    pub fn properties(&self) -> &OpenClProperties {
        &self.properties
    }

    pub(super) fn is_pocl(&self) -> bool {
        self.properties.platform == POCL
    }

    pub(super) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    pub(super) fn queue(&self) -> &CommandQueue {
        self.session.queue()
    }

    /// Why a kernel cannot run on this device, as far as that is known before it is compiled.
    pub fn why_not(&self, variant: &Variant) -> Option<DeviceError> {
        let remainder = gpu_kernels::remainder_variant(variant);
        for of in [Some(variant), remainder].into_iter().flatten() {
            if let Err(error) = self.source(of.entry.name) {
                return Some(error);
            }
        }
        let group = WorkGroup {
            threads: variant.block.threads() as usize,
            local_bytes: variant.static_shared_bytes as usize,
        };
        self.properties.no_room(variant.entry.name, group)
    }

    pub(super) fn compiled(&self, entry: &'static str) -> Result<Arc<Compiled>, DeviceError> {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = kernels.get(entry) {
            return Ok(compiled.clone());
        }
        let compiled = Arc::new(self.build(entry)?);
        kernels.insert(entry, compiled.clone());
        Ok(compiled)
    }

    /// The program of a kernel, if the device has the features that it needs.
    fn source(&self, entry: &str) -> Result<&'static str, DeviceError> {
        let source = source::of(entry).map_err(|absent| match absent {
            Absent::Refused(reason) => DeviceError::not_in_opencl(entry, reason),
            Absent::NotBuilt => DeviceError::NoSuchEntry {
                entry: entry.to_owned(),
            },
            Absent::Failed(error) => error,
        })?;
        match self.properties.lacks(entry, source) {
            Some(error) => Err(error),
            None => Ok(source),
        }
    }

    /// The program of a kernel, compiled.
    fn program(&self, entry: &'static str) -> Result<Program, DeviceError> {
        if self.is_pocl() && entry == MISCOMPILED_BY_POCL {
            let reason = "PoCL miscompiles its barrier, which is inside a branch";
            return Err(DeviceError::not_in_opencl(entry, reason));
        }
        let source = self.source(entry)?;
        let options = source::options(source);
        let failed = |error| DeviceError::opencl("Compiling a kernel by OpenCL", error);
        // The LLVM of PoCL 3.1 vectorises fused products over work-items badly: 2 to 3 times
        // slower.
        let text = match self.is_pocl() {
            true => source::without_contraction(source),
            false => source.to_owned(),
        };
        let text = source::with_work_group(&text, entry);
        let mut program =
            Program::create_from_source(&self.session.context, &text).map_err(failed)?;
        let options = format!("{options} -cl-kernel-arg-info");
        if program
            .build(self.session.context.devices(), &options)
            .is_err()
        {
            let log = program.get_build_log(self.device.id()).unwrap_or_default();
            return Err(DeviceError::OpenClBuild {
                kernel: entry.to_owned(),
                log: log.trim().to_owned(),
            });
        }
        Ok(program)
    }

    fn build(&self, entry: &'static str) -> Result<Compiled, DeviceError> {
        let program = self.program(entry)?;
        let source = self.source(entry)?;
        let failed = |error| DeviceError::opencl("Compiling a kernel by OpenCL", error);
        let made = Kernel::create(&program, entry).map_err(failed)?;
        let count = made.num_args().map_err(failed)?;
        let parameters: Result<Vec<(String, String)>, ClError> = (0..count)
            .map(|index| Ok((made.get_arg_name(index)?, made.get_arg_type_name(index)?)))
            .collect();
        let parameters = parameters.map_err(failed)?;
        let parameters = parameters
            .iter()
            .map(|(name, ty)| (name.trim_end_matches('\0'), ty.trim_end_matches('\0')));
        let has = |wanted: &str| parameters.clone().any(|(name, _)| name == wanted);
        let fields = parameters
            .clone()
            .filter_map(|(name, ty)| Field::of(name, ty));
        let local = made.get_local_mem_size(self.device.id()).map_err(failed)?;
        // A kernel with a required size allows that: NVIDIA's compiler reports 256 otherwise.
        let required = made.get_compile_work_group_size(self.device.id());
        let required: usize = required.map_err(failed)?.iter().product();
        let most = made.get_work_group_size(self.device.id()).map_err(failed)?;
        Ok(Compiled {
            source,
            fields: fields.collect(),
            has_dynamic_local: has("dynamic_local"),
            has_panic_record: has("panic_record"),
            local_bytes: usize::try_from(local).unwrap_or(usize::MAX),
            work_group: most.max(required),
            kernel: Mutex::new(made),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device with everything that kernels need.
    fn able() -> OpenClProperties {
        OpenClProperties {
            name: "small".into(),
            platform: "test".into(),
            version: "OpenCL 3.0".into(),
            compute_units: 1,
            memory_bytes: 1 << 30,
            cache_bytes: 0,
            local_bytes: 1 << 15,
            work_group: 256,
            has_doubles: true,
            divides_correctly: true,
            shares_addresses: true,
        }
    }

    #[test]
    fn a_machine_without_a_loader_and_one_without_a_driver_say_what_to_install() {
        let said = |code| without_platforms(ClError(code)).to_string();
        let loader = said(DLOPEN_RUNTIME_LOAD_FAILED);
        assert!(loader.starts_with("There is no OpenCL on this machine (no libOpenCL.so.1)."));
        let driver = said(CL_PLATFORM_NOT_FOUND_KHR);
        assert!(driver.starts_with("OpenCL finds no device on this machine."));
        assert!(said(-5).starts_with("Listing the platforms of OpenCL failed: OpenCL error -5"));
    }

    #[test]
    fn a_device_says_what_it_lacks_for_a_kernel() {
        let doubles = "// k\n// options: x\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
        let divides = "// k\n// options: -cl-fp32-correctly-rounded-divide-sqrt\n";
        let floats = "// k\n// options: -cl-std=CL1.2\n";
        let unable = OpenClProperties {
            has_doubles: false,
            divides_correctly: false,
            ..able()
        };
        let lacks = |of: &OpenClProperties, source| {
            of.lacks("k", source)
                .map_or(String::new(), |error| error.to_string())
        };
        assert!(lacks(&unable, doubles).contains("computes with f64"));
        assert!(lacks(&unable, divides).contains("divides"));
        assert_eq!(lacks(&unable, floats), "");
        assert_eq!(
            [doubles, divides, floats].map(|source| lacks(&able(), source)),
            [""; 3]
        );
        let said = |threads, local_bytes| {
            let group = WorkGroup {
                threads,
                local_bytes,
            };
            able().no_room("k", group).map(|error| error.to_string())
        };
        assert_eq!(said(256, 1 << 15), None);
        let local = said(256, (1 << 15) + 4).unwrap();
        assert!(local.contains("needs 32772 bytes of local memory"));
        assert!(said(257, 0).unwrap().contains("needs 257 work-items"));
    }
}
