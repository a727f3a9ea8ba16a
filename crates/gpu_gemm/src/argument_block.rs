//! The argument block of a launch: its fields as words, with addresses and scalars filled in.

use cuda_std::tma::TensorMap;

use crate::error::DeviceError;
use crate::launch::{Argument, Bindings, Launch, Map};

impl Launch {
    /// The kernel's argument block. `map` encodes tensor maps.
    ///
    /// # Errors
    ///
    /// Those of `map`, and [`DeviceError::WrongArguments`].
    pub fn block(
        &self,
        bindings: &Bindings,
        map: impl Fn(&Map, *mut u8) -> Result<TensorMap, DeviceError>,
    ) -> Result<ArgumentBlock, DeviceError> {
        let mut words = Vec::with_capacity(self.kernel.argument_bytes / size_of::<u64>());
        for argument in &self.arguments {
            match argument {
                Argument::Count(count) => words.push(*count as u64),
                Argument::Alpha => words.push(bindings.alpha.bits()),
                Argument::Beta => words.push(bindings.beta.bits()),
                Argument::Slice(address, length) => {
                    let start = match bindings.pointer(*address) {
                        // A slice is never at null, not even an empty one.
                        null if null.is_null() => std::ptr::dangling_mut::<u64>().cast(),
                        start => start,
                    };
                    words.extend([start.expose_provenance() as u64, *length as u64]);
                }
                Argument::Pointer(address) => {
                    words.push(bindings.pointer(*address).expose_provenance() as u64);
                }
                Argument::Map(of) => words.extend(map(of, bindings.pointer(of.address))?.0),
            }
        }
        let bytes = words.len() * size_of::<u64>();
        let unused = self.kernel.argument_bytes.checked_sub(bytes);
        if unused.is_none_or(|unused| unused >= align_of::<ArgumentLine>()) {
            let kernel = self.kernel.name;
            return Err(DeviceError::WrongArguments { kernel });
        }
        let lines = words.chunks(8).map(|words| {
            let mut line = [0; 8];
            line[..words.len()].copy_from_slice(words);
            ArgumentLine(line)
        });
        Ok(ArgumentBlock(lines.collect()))
    }
}

/// The argument block of a launch, as its kernel reads it: each field is a word of 8 bytes, a
/// slice is two, an address and a length, and a tensor map is 16. Hosts of NVIDIA's GPUs are
/// little-endian, so a shorter number is at the start of its word.
#[derive(Debug, PartialEq, Eq)]
pub struct ArgumentBlock(Vec<ArgumentLine>);

/// Tensor maps begin at multiples of 64 bytes.
#[derive(Debug, PartialEq, Eq)]
#[repr(C, align(64))]
struct ArgumentLine([u64; 8]);

impl ArgumentBlock {
    /// Its address, a multiple of 64 bytes.
    pub fn as_ptr(&self) -> *const u8 {
        self.0.as_ptr().cast()
    }

    /// Its words, and zeros after them.
    pub fn words(&self) -> impl Iterator<Item = u64> {
        self.0.iter().flat_map(|line| line.0)
    }
}
