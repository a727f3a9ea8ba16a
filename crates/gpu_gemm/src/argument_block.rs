//! The argument block of a launch: its fields as words, with addresses and scalars filled in.

use std::mem::MaybeUninit;

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
        let word = MaybeUninit::<u64>::new;
        let is_map = |argument: &Argument| matches!(argument, Argument::Map(_));
        let has_maps = self.arguments.iter().any(is_map);
        let wrong = DeviceError::WrongArguments {
            kernel: self.kernel.name,
        };
        for argument in &self.arguments {
            match argument {
                Argument::Count(count) => words.push(word(*count as u64)),
                Argument::Alpha => words.push(word(bindings.alpha.bits())),
                Argument::Beta => words.push(word(bindings.beta.bits())),
                Argument::Slice(address, length) => {
                    let start = match bindings.pointer(*address) {
                        // A slice is never at null, not even an empty one.
                        null if null.is_null() => std::ptr::dangling_mut::<u64>().cast(),
                        start => start,
                    };
                    words.extend([start.expose_provenance() as u64, *length as u64].map(word));
                }
                Argument::Pointer(address) => {
                    words.push(word(bindings.pointer(*address).expose_provenance() as u64));
                }
                Argument::Map(of) => {
                    words.extend(map(of, bindings.pointer(of.address))?.0.map(word));
                }
                Argument::Epilogue { first, bytes } => {
                    // Of another size, it is another kernel's.
                    if *bytes != bindings.epilogue.bytes() {
                        return Err(wrong);
                    }
                    let places = first.iter().zip(bindings.first);
                    words.extend(places.map(|(one, other)| word((one + other) as u64)));
                    words.extend(bindings.epilogue.words());
                }
            }
        }
        // Blocks with tensor maps are multiples of a line, others of a word.
        let bytes = words.len() * size_of::<u64>();
        let needed = self.kernel.argument_bytes;
        let is_complete = needed == bytes
            || has_maps && needed == bytes.next_multiple_of(align_of::<ArgumentLine>());
        if !is_complete {
            return Err(wrong);
        }
        let lines = words.chunks(8).map(|words| {
            let mut line = [word(0); 8];
            line[..words.len()].copy_from_slice(words);
            ArgumentLine(line)
        });
        Ok(ArgumentBlock(lines.collect()))
    }
}

/// The argument block of a launch, as its kernel reads it: each field is a word of 8 bytes, a
/// slice is two, an address and a length, and a tensor map is 16. Hosts of NVIDIA's GPUs are
/// little-endian, so a shorter number is at the start of its word.
#[derive(Debug)]
pub struct ArgumentBlock(Vec<ArgumentLine>);

/// Tensor maps begin at multiples of 64 bytes.
#[derive(Debug)]
#[repr(C, align(64))]
struct ArgumentLine([MaybeUninit<u64>; 8]);

impl ArgumentBlock {
    /// Its address, a multiple of 64 bytes.
    pub fn as_ptr(&self) -> *const u8 {
        self.0.as_ptr().cast()
    }

    /// Its words, and zeros after them.
    ///
    /// # Safety
    ///
    /// The launch has no epilogue, whose padding bytes are uninitialized.
    pub unsafe fn words(&self) -> impl Iterator<Item = u64> {
        let words = self.0.iter().flat_map(|line| line.0);
        // SAFETY: all other words are complete.
        words.map(|word| unsafe { word.assume_init() })
    }
}
