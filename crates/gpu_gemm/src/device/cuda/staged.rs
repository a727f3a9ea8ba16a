//! Copies between a GPU and memory of the host that is not page-locked, by several threads.
//!
//! A GPU reads and writes only page-locked memory at the speed of the bus. Other memory the driver
//! copies to page-locked memory itself, on one thread, several times slower than the bus.
//! [`Stage::copy`] uses several threads.
//!
//! ```text
//!     host memory            page-locked                  GPU
//!       row 0 .. 7   thread 0 | buffer 0 | on its way -->
//!                             | buffer 1 | <-- being filled
//!       row 8 .. 15  thread 1 | buffer 0 | <-- being filled
//!                             | buffer 1 | on its way -->
//! ```
//!
//! Each thread has two buffers, and takes the next rows that no thread has taken. All copies of a
//! GPU are on one stream. An event tells when a buffer's copy is done: until then its thread does
//! not touch the buffer. Only these threads read and write the caller's memory, so that nothing
//! uses it after a call has returned.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use cust::event::{Event, EventFlags};
use cust::memory::LockedBuffer;
use cust::stream::Stream;

use super::current::InContext;
use super::device::CudaDevice;
use super::rectangle::{Side, copy_on};
use super::status::during;
use crate::backend::Way;
use crate::error::DeviceError;

/// How copies are staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staging {
    /// Threads of each device; at least one.
    pub threads: usize,
    /// Bytes of a page-locked buffer; each thread has two. With much smaller buffers the driver
    /// calls, some microseconds each, cost as much as the copies; much larger ones are evicted
    /// from the processor's caches before the GPU reads them.
    pub buffer_bytes: usize,
    /// The driver makes copies of fewer bytes.
    pub least_bytes: usize,
    /// A product of matrices in host memory begins when this many rows of A and columns of B have
    /// arrived, or all of them.
    pub least_lines: usize,
}

impl Staging {
    /// The staging for `devices` devices that copy at the same time on this machine: together they
    /// have as many threads as it has cores, up to eight each, which fill a bus of 50 GB/s.
    pub fn of(devices: usize) -> Staging {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        Staging {
            threads: (cores / devices.max(1)).clamp(1, 8),
            buffer_bytes: 2 << 20,
            least_bytes: 4 << 20,
            least_lines: 2048,
        }
    }
}

/// The page-locked buffers of a device, for copies between its memory and ordinary host memory.
/// They are allocated for the first copy that needs them.
///
/// ```no_run
/// use cust::stream::{Stream, StreamFlags};
/// use gpu_gemm::device::cuda::{Side, Stage, Staging, Transfer};
/// use gpu_gemm::{CudaDevice, Way};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gpu = CudaDevice::open(0)?;
/// let _entered = gpu.enter()?;
/// let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
/// let (rows, columns, pitch) = (8192, 4096, 4 * 4096);
/// let a = vec![1.0f32; rows * columns];
/// let on_gpu = gpu.allocate::<f32>(rows * columns)?;
/// let mut stage = Stage::new(Staging::of(1));
/// let transfer = Transfer {
///     way: Way::ToDevice,
///     host: Side { start: a.as_ptr().cast_mut().cast(), pitch },
///     device: Side { start: on_gpu.as_device_ptr().as_mut_ptr().cast(), pitch },
///     width: pitch,
///     height: rows,
/// };
/// // SAFETY: both sides have these rows, and nothing else uses them until the stream is done.
/// unsafe { stage.copy((&gpu, &stream), transfer)? };
/// stream.synchronize()?;
/// # Ok(())
/// # }
/// ```
pub struct Stage {
    staging: Staging,
    /// The buffers of each thread; none before the first copy.
    lanes: Vec<InContext<Lane>>,
}

/// The buffers of a thread.
struct Lane([Slot; 2]);

struct Slot {
    memory: LockedBuffer<u8>,
    copied: Event,
    /// Whether `copied` has been recorded, but not waited for.
    is_travelling: bool,
}

/// A copy of rows between host and device. The caller of [`Stage::copy`] guarantees that both
/// sides have these rows.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// To the device, or to the host.
    pub way: Way,
    pub host: Side,
    pub device: Side,
    /// Bytes of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

// SAFETY: the pointers are addresses; `Stage::copy` states the requirements of their uses.
unsafe impl Send for Transfer {}
// SAFETY: as above.
unsafe impl Sync for Transfer {}

/// Rows of a copy, or a part of one row, that fit into a buffer: the first row and byte, and the
/// numbers of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rows {
    first: (usize, usize),
    height: usize,
    width: usize,
}

/// A copy by several threads.
struct Job<'a> {
    gpu: &'a CudaDevice,
    stream: &'a Stream,
    transfer: Transfer,
    buffer_bytes: usize,
    /// The first part that no thread has taken.
    next: AtomicUsize,
    error: Mutex<Option<DeviceError>>,
}

impl Stage {
    /// A stage without buffers yet.
    pub fn new(staging: Staging) -> Stage {
        Stage {
            staging,
            lanes: Vec::new(),
        }
    }

    /// Copies rows on a stream of the device. The driver makes small copies, several threads make
    /// others. A copy to the host is done when this returns; one to the device when the stream
    /// reaches it.
    ///
    /// # Errors
    ///
    /// There is no memory for the buffers, or the driver fails.
    ///
    /// # Safety
    ///
    /// Both sides have these rows until the stream has copied them, and until then nothing writes
    /// the source or touches the target. The buffers were not used for another device.
    pub unsafe fn copy(
        &mut self,
        (gpu, stream): (&CudaDevice, &Stream),
        transfer: Transfer,
    ) -> Result<(), DeviceError> {
        if transfer.width * transfer.height >= self.staging.least_bytes {
            return self.copy_by_threads((gpu, stream), transfer);
        }
        let _entered = gpu.enter()?;
        let (from, to) = transfer.sides();
        let size = (transfer.width, transfer.height);
        // SAFETY: as the caller vouches; the context is current.
        unsafe { copy_on(stream, from, to, transfer.way, size)? };
        match transfer.way == Way::ToHost {
            false => Ok(()),
            true => stream.synchronize().map_err(during("Waiting for a copy")),
        }
    }

    fn copy_by_threads(
        &mut self,
        (gpu, stream): (&CudaDevice, &Stream),
        transfer: Transfer,
    ) -> Result<(), DeviceError> {
        self.prepare(gpu)?;
        let job = Job {
            gpu,
            stream,
            transfer,
            buffer_bytes: self.buffer_bytes(),
            next: AtomicUsize::new(0),
            error: Mutex::new(None),
        };
        thread::scope(|scope| {
            // More threads than parts would be idle.
            let mut lanes = self.lanes.iter_mut().take(transfer.parts(job.buffer_bytes));
            let own = lanes.next();
            for lane in lanes {
                // If a thread cannot be started, the others do the work.
                let _ = thread::Builder::new().spawn_scoped(scope, || job.work(lane));
            }
            if let Some(lane) = own {
                job.work(lane);
            }
        });
        let error = job
            .error
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        error.map_or(Ok(()), Err)
    }

    /// Allocates the buffers, unless they exist.
    fn prepare(&mut self, gpu: &CudaDevice) -> Result<(), DeviceError> {
        if !self.lanes.is_empty() {
            return Ok(());
        }
        let _entered = gpu.enter()?;
        let slot = || -> Result<Slot, DeviceError> {
            // SAFETY: any memory is valid bytes, and these are written before they are read.
            let memory = unsafe { LockedBuffer::uninitialized(self.buffer_bytes()) };
            Ok(Slot {
                memory: memory.map_err(during("Allocating page-locked memory"))?,
                copied: Event::new(EventFlags::DISABLE_TIMING)
                    .map_err(during("Making an event"))?,
                is_travelling: false,
            })
        };
        let lanes = (0..self.staging.threads.max(1)).map(|_| Ok(gpu.own(Lane([slot()?, slot()?]))));
        self.lanes = lanes.collect::<Result<_, DeviceError>>()?;
        Ok(())
    }

    fn buffer_bytes(&self) -> usize {
        self.staging.buffer_bytes.max(1)
    }
}

impl Transfer {
    /// The source and the target.
    pub(crate) fn sides(&self) -> (Side, Side) {
        match self.way == Way::ToHost {
            false => (self.host, self.device),
            true => (self.device, self.host),
        }
    }

    /// The size of a part in a buffer: bytes of a row, or of a part of it, and rows.
    fn in_buffer(&self, buffer_bytes: usize) -> (usize, usize) {
        let width = self.width.min(buffer_bytes).max(1);
        (width, (buffer_bytes / width).clamp(1, self.height.max(1)))
    }

    /// The number of buffers that it fills.
    fn parts(&self, buffer_bytes: usize) -> usize {
        let (width, height) = self.in_buffer(buffer_bytes);
        self.width.div_ceil(width) * self.height.div_ceil(height)
    }

    /// The rows for one of these buffers; `None` after the last.
    fn part(&self, index: usize, buffer_bytes: usize) -> Option<Rows> {
        if index >= self.parts(buffer_bytes) {
            return None;
        }
        let (width, height) = self.in_buffer(buffer_bytes);
        let across = self.width.div_ceil(width);
        let first = (index / across * height, index % across * width);
        Some(Rows {
            first,
            height: height.min(self.height - first.0),
            width: width.min(self.width - first.1),
        })
    }
}

impl Job<'_> {
    /// Copies parts until there are no more, or one fails, with the buffers of a thread.
    fn work(&self, lane: &mut Lane) {
        let worked = self
            .gpu
            .enter()
            .and_then(|_entered| match self.transfer.way == Way::ToHost {
                false => self.send(lane),
                true => self.receive(lane),
            });
        if let Err(error) = worked {
            // Makes the other threads end, too.
            self.next.store(usize::MAX / 2, Ordering::Relaxed);
            let mut first = self.error.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(error);
        }
    }

    fn take(&self) -> Option<Rows> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        self.transfer.part(index, self.buffer_bytes)
    }

    fn send(&self, Lane(slots): &mut Lane) -> Result<(), DeviceError> {
        let mut index = 0;
        while let Some(rows) = self.take() {
            let slot = &mut slots[index];
            slot.wait()?; // the buffer's last copy is done
            for row in 0..rows.height {
                let source = self.host(rows, row);
                let target = slot.memory[row * rows.width..][..rows.width].as_mut_ptr();
                // SAFETY: the caller of `copy` vouches for the source.
                unsafe { std::ptr::copy_nonoverlapping(source, target, rows.width) };
            }
            let (from, to) = (slot.side(rows), self.device(rows));
            let size = (rows.width, rows.height);
            // SAFETY: the buffer is not touched until its event, and lives as long as the device;
            // the caller vouches for the target; the context is current.
            unsafe { copy_on(self.stream, from, to, Way::ToDevice, size)? };
            slot.record(self.stream)?;
            index = 1 - index;
        }
        Ok(())
    }

    fn receive(&self, Lane(slots): &mut Lane) -> Result<(), DeviceError> {
        let mut arriving: [Option<Rows>; 2] = [None; 2];
        let mut index = 0;
        loop {
            let slot = &mut slots[index];
            slot.wait()?; // the buffer's last copy is done
            if let Some(rows) = arriving[index].take() {
                for row in 0..rows.height {
                    let source = slot.memory[row * rows.width..][..rows.width].as_ptr();
                    let target = self.host(rows, row);
                    // SAFETY: the caller of `copy` vouches for the target, and each of its rows
                    // belongs to one thread.
                    unsafe { std::ptr::copy_nonoverlapping(source, target, rows.width) };
                }
            }
            if let Some(rows) = self.take() {
                let (from, to) = (self.device(rows), slot.side(rows));
                let size = (rows.width, rows.height);
                // SAFETY: as in `send`, with the sides exchanged.
                unsafe { copy_on(self.stream, from, to, Way::ToHost, size)? };
                slot.record(self.stream)?;
                arriving[index] = Some(rows);
            }
            index = 1 - index;
            if arriving == [None; 2] {
                return Ok(());
            }
        }
    }

    /// The address of a row in host memory.
    fn host(&self, rows: Rows, row: usize) -> *mut u8 {
        self.transfer.host.from(rows.first).from((row, 0)).start
    }

    /// The address of rows in the device's memory.
    fn device(&self, rows: Rows) -> Side {
        self.transfer.device.from(rows.first)
    }
}

impl Slot {
    /// The address of rows in the buffer: one after the other.
    fn side(&mut self, rows: Rows) -> Side {
        Side {
            start: self.memory.as_mut_ptr(),
            pitch: rows.width,
        }
    }

    /// The copy that was started last uses this buffer until the event.
    fn record(&mut self, stream: &Stream) -> Result<(), DeviceError> {
        let recorded = self.copied.record(stream);
        recorded.map_err(during("Recording an event"))?;
        self.is_travelling = true;
        Ok(())
    }

    /// Waits for the copy that uses this buffer.
    fn wait(&mut self) -> Result<(), DeviceError> {
        if std::mem::take(&mut self.is_travelling) {
            let waited = self.copied.synchronize();
            waited.map_err(during("Waiting for a copy"))?;
        }
        Ok(())
    }
}

impl Drop for Slot {
    /// The GPU may still be copying from the buffer.
    fn drop(&mut self) {
        // A failed GPU copies nothing.
        let _ = self.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_copy_are_its_bytes_once_and_each_fits_into_a_buffer() {
        for (width, height, buffer) in [
            (10, 7, 100),
            (10, 7, 35),
            (10, 7, 10),
            (10, 7, 4),
            (10, 7, 1),
            (1, 1, 8),
            (0, 7, 8),
            (7, 0, 8),
        ] {
            let nowhere = Side {
                start: std::ptr::null_mut(),
                pitch: width,
            };
            let transfer = Transfer {
                way: Way::ToDevice,
                host: nowhere,
                device: nowhere,
                width,
                height,
            };
            let mut copied = vec![0; width * height];
            let mut index = 0;
            while let Some(rows) = transfer.part(index, buffer) {
                assert!((1..=buffer).contains(&(rows.width * rows.height)));
                for row in rows.first.0..rows.first.0 + rows.height {
                    let first = row * width + rows.first.1;
                    for byte in &mut copied[first..first + rows.width] {
                        *byte += 1;
                    }
                }
                index += 1;
            }
            assert_eq!(index, transfer.parts(buffer));
            assert!(copied.iter().all(|times| *times == 1), "{width} {height}");
        }
    }

    #[test]
    fn devices_share_the_cores_and_have_at_least_one_thread_each() {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        for devices in [0, 1, 2, 3, 1000] {
            let threads = Staging::of(devices).threads;
            assert!((1..=8).contains(&threads));
            assert!(threads == 1 || threads * devices <= cores);
        }
    }
}
