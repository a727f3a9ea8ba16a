//! Memory that ranks of a host read of each other's GPUs. It stays open from one product to the next:
//! to open 1 GiB takes the driver 18 ms, six times as long as to copy it over NVLink.
//!
//! ```text
//! rank 0    export -- what to open it by --> ...                     barrier   may free it
//! rank 1                                     open   read, read, ...  close     barrier
//! ```

use std::cell::RefCell;
use std::ops::Range;

use gpu_gemm::DeviceError;
use gpu_gemm::device::cuda::ipc::{Exported, Opened};

use crate::comm::Ranks;

/// What this rank and others share, until [`PeerMemory::close`].
#[derive(Default)]
pub struct PeerMemory {
    /// Where memory of this rank begins that others may have open.
    exported: RefCell<Vec<usize>>,
    opened: RefCell<Vec<Opened>>,
}

impl PeerMemory {
    /// Lets other ranks read memory of this rank's GPU that begins here.
    ///
    /// # Errors
    ///
    /// The driver cannot share it.
    pub fn export<T>(&self, start: *const T) -> Result<Exported, DeviceError> {
        let exported = Exported::of(start.cast())?;
        let mut all = self.exported.borrow_mut();
        if !all.contains(&start.addr()) {
            all.push(start.addr());
        }
        Ok(exported)
    }

    /// Where memory of another rank begins, for copies of this one. The driver opens it if it is not
    /// open yet.
    ///
    /// # Errors
    ///
    /// The driver cannot open it.
    pub fn open<T>(&self, exported: &Exported) -> Result<*mut T, DeviceError> {
        let mut opened = self.opened.borrow_mut();
        let known = opened.iter().find_map(|one| one.start_of(exported));
        if let Some(start) = known {
            return Ok(start.cast());
        }
        let new = Opened::open(exported)?;
        let start = new.start_of(exported);
        opened.push(new);
        Ok(start.expect("opened as this").cast())
    }

    /// Whether others may have part of this memory open.
    pub fn is_shared(&self, addresses: Range<usize>) -> bool {
        let exported = self.exported.borrow();
        exported.iter().any(|start| addresses.contains(start))
    }

    /// Closes what this rank has opened, and waits until others have closed what is this rank's: it
    /// may be freed from then on. All ranks call it that have shared memory; no copy is under way.
    pub fn close(&self, ranks: &Ranks) {
        self.opened.take();
        ranks.barrier();
        self.exported.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_shared_if_any_of_it_was_exported() {
        let peers = PeerMemory::default();
        assert!(!peers.is_shared(0..usize::MAX));
        peers.exported.borrow_mut().extend([1000, 3000]);
        for (addresses, expected) in [
            (1000..1001, true),
            (900..1001, true),
            (900..1000, false),
            (1001..3000, false),
            (2000..4000, true),
        ] {
            assert_eq!(
                peers.is_shared(addresses.clone()),
                expected,
                "{addresses:?}"
            );
        }
    }
}
