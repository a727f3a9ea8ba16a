//! Launches on a stream of a GPU.

use std::ffi::c_void;

use cuda_std::tma::TensorMap;

use cust::error::CudaError;
use cust::stream::Stream;
use cust::sys::{CUfunction, CUfunction_attribute, CUstream, cuFuncSetAttribute, cuLaunchKernel};

use super::device::CudaDevice;
use super::extended::{Attribute, Config};
use super::status::{checked, during, is_sticky};
use crate::backend::Backend;
use crate::device::error::DeviceError;
use crate::launch::{Argument, Bindings, Launch, Map, NO_MAP, Scalar, Waits};

/// The first architecture on which a launch may begin early: ten times the compute capability.
const FIRST_WITH_EARLY_LAUNCHES: i32 = 90;

/// A stream of a GPU.
#[derive(Clone, Copy)]
pub struct CudaStream<'a> {
    pub device: &'a CudaDevice,
    pub stream: &'a Stream,
}

impl<'a> CudaStream<'a> {
    /// A device's own stream.
    pub fn of(device: &'a CudaDevice) -> CudaStream<'a> {
        CudaStream {
            device,
            stream: device.stream(),
        }
    }
}

impl Backend for CudaStream<'_> {
    unsafe fn launch(&self, launch: &Launch, bindings: &Bindings) -> Result<(), DeviceError> {
        let function = self.device.function(launch.kernel.name)?;
        let values = self.values(launch, bindings)?;
        let mut parameters: Vec<*mut c_void> = values.iter().map(Value::address).collect();
        // Beyond 48 KiB, of which static arrays are a part, a kernel has to ask.
        if launch.dynamic_shared_bytes > 0 {
            let bytes = launch.dynamic_shared_bytes.cast_signed();
            let most = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function is one of a module that the device keeps.
            checked(unsafe { cuFuncSetAttribute(function, most, bytes) as u32 })
                .map_err(during("Asking for shared memory"))?;
        }
        let stream = self.stream.as_inner();
        // SAFETY: these are the kernel's parameters, in order and each at its address; the caller
        // vouches for the memory.
        let launched = unsafe { self.start(launch, function, stream, &mut parameters) };
        launched.map_err(|error| match is_sticky(error) {
            true => DeviceError::ContextLost(error),
            false => DeviceError::Launch {
                kernel: launch.kernel.name.to_string(),
                threads: launch.block.0 * launch.block.1,
                error,
            },
        })
    }
}

impl CudaStream<'_> {
    fn values(&self, launch: &Launch, bindings: &Bindings) -> Result<Vec<Value>, DeviceError> {
        values(launch, bindings, |map, address| {
            let Some(tiles) = map.tiles(address) else {
                return Ok(NO_MAP);
            };
            let Some(encode) = &self.device.encode_map else {
                return Err(DeviceError::NoSuchEntry {
                    entry: "cuTensorMapEncodeTiled".to_owned(),
                });
            };
            encode.map(&tiles).map_err(during("Describing a matrix"))
        })
    }

    /// # Safety
    ///
    /// As for [`Backend::launch`]; `parameters` point to the kernel's parameters, in order and
    /// type.
    unsafe fn start(
        &self,
        launch: &Launch,
        function: CUfunction,
        stream: CUstream,
        parameters: &mut [*mut c_void],
    ) -> Result<(), CudaError> {
        let early = launch.waits == Waits::InTheKernel
            && self.device.properties().architecture() >= FIRST_WITH_EARLY_LAUNCHES;
        match &self.device.extended {
            Some(extended) if early => {
                let mut attribute = Attribute::programmatic_stream_serialization();
                let config = Config {
                    grid: [launch.grid.0, launch.grid.1, launch.products],
                    block: [launch.block.0, launch.block.1, 1],
                    shared_bytes: launch.dynamic_shared_bytes,
                    stream: stream.cast(),
                    attributes: &raw mut attribute,
                    attribute_count: 1,
                };
                // SAFETY: all pointers outlive the call; the caller vouches for the kernel and
                // its parameters. A kernel that begins early itself waits for the one before it.
                checked(unsafe {
                    (extended.0)(
                        &config,
                        function.cast(),
                        parameters.as_mut_ptr(),
                        std::ptr::null_mut(),
                    )
                })
            }
            // SAFETY: as above.
            _ => checked(unsafe {
                cuLaunchKernel(
                    function,
                    launch.grid.0,
                    launch.grid.1,
                    launch.products,
                    launch.block.0,
                    launch.block.1,
                    1,
                    launch.dynamic_shared_bytes,
                    stream,
                    parameters.as_mut_ptr(),
                    std::ptr::null_mut(),
                ) as u32
            }),
        }
    }
}

/// A parameter in the form that the driver expects. Hosts of NVIDIA's GPUs are little-endian, so
/// that a shorter number begins where its word begins.
#[derive(Debug, PartialEq)]
enum Value {
    Word(u64),
    Map([u64; 16]),
}

impl Value {
    fn address(&self) -> *mut c_void {
        match self {
            Value::Word(word) => std::ptr::from_ref(word).cast_mut().cast(),
            Value::Map(map) => std::ptr::from_ref(map).cast_mut().cast(),
        }
    }
}

/// The parameters of a launch; a slice is two words, an address and a length.
fn values(
    launch: &Launch,
    bindings: &Bindings,
    encode: impl Fn(&Map, *mut u8) -> Result<TensorMap, DeviceError>,
) -> Result<Vec<Value>, DeviceError> {
    let mut values = Vec::with_capacity(2 * launch.arguments.len());
    for argument in &launch.arguments {
        let value = match argument {
            Argument::Count(count) => Value::Word(*count as u64),
            Argument::Alpha => Value::Word(bits(bindings.alpha)),
            Argument::Beta => Value::Word(bits(bindings.beta)),
            Argument::Slice(address, length) => {
                values.push(Value::Word(bindings.pointer(*address) as u64));
                Value::Word(*length as u64)
            }
            Argument::Pointer(address) => Value::Word(bindings.pointer(*address) as u64),
            Argument::Map(map) => Value::Map(encode(map, bindings.pointer(map.address))?.0),
        };
        values.push(value);
    }
    Ok(values)
}

fn bits(scalar: Scalar) -> u64 {
    match scalar {
        Scalar::F32(value) => value.to_bits().into(),
        Scalar::F64(value) => value.to_bits(),
        Scalar::I32(value) => value.cast_unsigned().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Memory;
    use gpu_kernels::fix_up::FIX_UP;

    #[test]
    fn a_slice_is_an_address_and_a_length_and_a_short_number_begins_its_word() {
        let at = |address: usize| std::ptr::without_provenance_mut(address);
        let bindings = Bindings {
            alpha: Scalar::F32(1.5),
            beta: Scalar::I32(-1),
            a: at(0x100),
            b: at(0x200),
            c: at(0x300),
            workspace: at(0x400),
        };
        let launch = Launch {
            kernel: FIX_UP,
            grid: (1, 1),
            products: 1,
            block: (1, 1),
            dynamic_shared_bytes: 0,
            arguments: vec![
                Argument::Slice(Memory::B.start().after(8), 5),
                Argument::Alpha,
                Argument::Beta,
                Argument::Count(7),
                Argument::Pointer(Memory::C.start()),
            ],
            waits: Waits::ForTheStream,
        };
        let alpha = u64::from(1.5f32.to_bits());
        let expected = [0x208, 5, alpha, 0xffff_ffff, 7, 0x300].map(Value::Word);
        let found = values(&launch, &bindings, |_, _| Ok(NO_MAP)).unwrap();
        assert_eq!(found, expected);
    }
}
