//! How many copies of the matrices launches take in turn.

use gpu_gemm::{Device, DeviceError};

/// The limits on the number of copies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Bytes of the cache that all launches share.
    cache: usize,
    /// Bytes of memory that are free.
    free: usize,
    /// Copies at most.
    most: usize,
}

impl Room {
    /// The limits of a GPU or a device of OpenCL.
    pub fn of(device: &Device) -> Result<Room, DeviceError> {
        match device {
            Device::Cuda(gpu) => Ok(Room {
                cache: gpu.properties().l2_bytes,
                free: gpu.memory()?.0,
                most: 1024,
            }),
            Device::OpenCl(device) => Ok(Room {
                cache: device.properties().cache_bytes,
                free: device.properties().memory_bytes,
                // Some CPUs share a cache of hundreds of megabytes.
                most: 8,
            }),
            Device::Simulator(_) | Device::Several(_) => Err(DeviceError::SeveralForOne),
        }
    }

    /// Enough copies for twice the bytes of the cache, if a quarter of the free memory holds them:
    /// launches read `read` bytes of a copy that takes `allocated`.
    pub fn copies(self, read: usize, allocated: usize) -> usize {
        let enough = (2 * self.cache).div_ceil(read.max(1)) + 1;
        enough
            .min(self.free / 4 / allocated.max(1))
            .clamp(1, self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_exceed_the_cache_and_fit_into_memory() {
        let (kib, mib) = (1 << 10, 1 << 20);
        let copies = |cache, free, read, allocated| {
            let most = 1024;
            Room { cache, free, most }.copies(read, allocated)
        };
        assert_eq!(copies(50 * mib, 1 << 36, 48 * mib, 48 * mib), 4);
        assert_eq!(copies(50 * mib, 1 << 36, 1 << 34, 1 << 34), 1);
        // Half a MiB of columns that take 64 MiB each: memory decides.
        assert_eq!(copies(50 * mib, 1 << 30, 512 * kib, 64 * mib), 4);
        // Bytes, of which the cache or the memory decides.
        assert_eq!(copies(100, 1 << 30, 1, 1), 201);
        assert_eq!(copies(100, 400, 1, 1), 100);
        assert_eq!(copies(mib, 1 << 30, 1, 1), 1024);
    }
}
