//! Memory of a GPU that another process of the same host reads: CUDA's inter-process communication.
//!
//! ```text
//! process 0    export: a handle  --- any message --->    process 1    open: a pointer
//! ```
//!
//! Copies from such a pointer are done by copy engines, over NVLink or PCIe, if the two GPUs have
//! peer access to each other. They take no SM from a product that runs on either GPU.

use cust::sys::{
    CUdeviceptr, CUipcMem_flags, CUipcMemHandle, cuIpcCloseMemHandle, cuIpcGetMemHandle,
    cuIpcOpenMemHandle_v2, cuMemGetAddressRange_v2,
};

use super::status::{checked, during};
use crate::device::error::DeviceError;

/// What another process needs to open memory: the driver's handle of an allocation, and where in it
/// the memory begins, as numbers that can be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    handle: [u64; WORDS - 1],
    offset: u64,
}

/// Numbers of an [`Exported`].
pub const WORDS: usize = 9;

impl Exported {
    /// Lets other processes open memory that begins here. The context of its GPU is current.
    ///
    /// # Errors
    ///
    /// It is no GPU's memory, or the driver cannot share it.
    pub fn of(start: *const u8) -> Result<Exported, DeviceError> {
        let failed = during("Sharing the GPU's memory with another process");
        let start = start as CUdeviceptr;
        let (mut base, mut bytes): (CUdeviceptr, usize) = (0, 0);
        // SAFETY: both can be written.
        let status = unsafe { cuMemGetAddressRange_v2(&mut base, &mut bytes, start) };
        checked(status as u32).map_err(&failed)?;
        let mut handle = CUipcMemHandle { reserved: [0; 64] };
        // SAFETY: the handle can be written.
        let status = unsafe { cuIpcGetMemHandle(&mut handle, base) };
        checked(status as u32).map_err(&failed)?;
        let (words, _) = handle.reserved.as_chunks::<8>();
        let word = |index: usize| u64::from_le_bytes(words[index].map(|byte| byte as u8));
        Ok(Exported {
            handle: std::array::from_fn(word),
            offset: start - base,
        })
    }

    /// The numbers to send.
    pub fn words(&self) -> [u64; WORDS] {
        let mut words = [self.offset; WORDS];
        words[..WORDS - 1].copy_from_slice(&self.handle);
        words
    }

    /// From the numbers that were sent.
    pub fn from_words(words: &[u64; WORDS]) -> Exported {
        let [handle @ .., offset] = *words;
        Exported { handle, offset }
    }
}

/// An allocation of another process. It is closed when this is dropped, and must be before the other
/// process frees it.
#[derive(Debug)]
pub struct Opened {
    base: CUdeviceptr,
    handle: [u64; WORDS - 1],
}

impl Opened {
    /// Opens the allocation that this memory is part of in the current context.
    ///
    /// # Errors
    ///
    /// The driver cannot: the process is on another host or this one itself, or the GPUs have no
    /// peer access to each other.
    pub fn open(exported: &Exported) -> Result<Opened, DeviceError> {
        let mut handle = CUipcMemHandle { reserved: [0; 64] };
        let bytes = exported.handle.iter().flat_map(|word| word.to_le_bytes());
        for (place, byte) in handle.reserved.iter_mut().zip(bytes) {
            *place = byte as _;
        }
        let mut base = 0;
        let flag = CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;
        // SAFETY: the pointer can be written, and whatever the handle says, the driver checks it.
        let status = unsafe { cuIpcOpenMemHandle_v2(&mut base, handle, flag as u32) };
        checked(status as u32).map_err(during("Opening another process's memory of a GPU"))?;
        Ok(Opened {
            base,
            handle: exported.handle,
        })
    }

    /// Where memory begins that was exported, for copies of this process; `None` if it is not part
    /// of this allocation.
    pub fn start_of(&self, exported: &Exported) -> Option<*mut u8> {
        let is_here = self.handle == exported.handle;
        is_here.then_some((self.base + exported.offset) as *mut u8)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: it was opened and not closed. If the context is lost, nothing is left to close.
        let _ = unsafe { cuIpcCloseMemHandle(self.base) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_exported_is_the_same_after_it_was_sent() {
        let exported = Exported {
            handle: [1, u64::MAX, 3, 4, 5, 6, 7, 8],
            offset: 256,
        };
        assert_eq!(Exported::from_words(&exported.words()), exported);
    }
}
