//! Copies of rectangles: rows of one width at a fixed stride in bytes, between host and GPU,
//! within a GPU, and from one GPU to another. `cust` lacks these, so this calls the driver itself.

use cust::device::Device;
use cust::stream::Stream;
use cust::sys::{
    CUDA_MEMCPY2D_st, CUDA_MEMCPY3D_PEER_st, CUcontext, CUdeviceptr,
    CUmemorytype_enum as MemoryType, cuCtxEnablePeerAccess, cuDeviceCanAccessPeer,
    cuMemcpy2DAsync_v2, cuMemcpy3DPeerAsync, cuMemcpyDtoDAsync_v2, cuMemcpyPeerAsync,
};

use super::device::CudaDevice;
use super::status::{checked, during};
use crate::backend::Way;
use crate::error::DeviceError;

/// Rows in the memory of the host or of a device, one side of a copy: where the first begins, and
/// the bytes from there to the next.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    pub start: *mut u8,
    pub pitch: usize,
}

impl Side {
    /// Its part from this byte of this row on.
    pub(crate) fn from(self, (row, byte): (usize, usize)) -> Side {
        Side {
            start: self.start.wrapping_add(row * self.pitch + byte),
            ..self
        }
    }
}

/// Starts to copy `height` rows of `width` bytes on a stream. From or to memory of the host that is
/// not page-locked, it returns when the copy is done or staged.
///
/// # Errors
///
/// The driver fails.
///
/// # Safety
///
/// Both sides have these rows until the stream has copied them, until then nothing writes the
/// source or touches the target, and the context of the device and the stream is current.
pub unsafe fn copy_on(
    stream: &Stream,
    from: Side,
    to: Side,
    way: Way,
    (width, height): (usize, usize),
) -> Result<(), DeviceError> {
    if width == 0 || height == 0 {
        return Ok(());
    }
    let is_contiguous = height == 1 || (from.pitch == width && to.pitch == width);
    let status = match way {
        // A plain copy uses a copy engine; for rectangles that is the driver's choice. SAFETY: the
        // caller vouches for both sides.
        Way::Within if is_contiguous => unsafe {
            let (from, to) = (from.start as CUdeviceptr, to.start as CUdeviceptr);
            cuMemcpyDtoDAsync_v2(to, from, width * height, stream.as_inner())
        },
        _ => {
            let rectangle = rectangle(from, to, way, (width, height));
            // SAFETY: as above.
            unsafe { cuMemcpy2DAsync_v2(&rectangle, stream.as_inner()) }
        }
    };
    checked(status as u32).map_err(during("Copying rows from, to or within the GPU"))
}

/// Starts to copy `height` rows of `width` bytes from one GPU's memory to another's, or within one
/// GPU's, on a stream of the target.
///
/// # Errors
///
/// The driver fails.
///
/// # Safety
///
/// Both sides have these rows until they are copied, and the target's context is current.
pub(crate) unsafe fn copy_between(
    (from, source): (&CudaDevice, Side),
    (to, target): (&CudaDevice, Side),
    (width, height): (usize, usize),
    stream: &Stream,
) -> Result<(), DeviceError> {
    if width == 0 || height == 0 {
        return Ok(());
    }
    let contexts = (from.raw_context(), to.raw_context());
    if contexts.0 == contexts.1 {
        // SAFETY: the caller vouches for both sides.
        return unsafe { copy_on(stream, source, target, Way::Within, (width, height)) };
    }
    let stream = stream.as_inner();
    let is_contiguous = height == 1 || (source.pitch == width && target.pitch == width);
    let status = match is_contiguous {
        // SAFETY: as above.
        true => unsafe {
            cuMemcpyPeerAsync(
                target.start as CUdeviceptr,
                contexts.1,
                source.start as CUdeviceptr,
                contexts.0,
                width * height,
                stream,
            )
        },
        false => {
            let block = block(contexts, source, target, (width, height));
            // SAFETY: as above.
            unsafe { cuMemcpy3DPeerAsync(&block, stream) }
        }
    };
    checked(status as u32).map_err(during("Copying from one GPU to another"))
}

fn rectangle(from: Side, to: Side, way: Way, (width, height): (usize, usize)) -> CUDA_MEMCPY2D_st {
    let memory = |is_host| match is_host {
        true => MemoryType::CU_MEMORYTYPE_HOST,
        false => MemoryType::CU_MEMORYTYPE_DEVICE,
    };
    CUDA_MEMCPY2D_st {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: memory(way == Way::ToDevice),
        srcHost: from.start.cast(),
        srcDevice: from.start as CUdeviceptr,
        srcArray: std::ptr::null_mut(),
        srcPitch: from.pitch,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: memory(way == Way::ToHost),
        dstHost: to.start.cast(),
        dstDevice: to.start as CUdeviceptr,
        dstArray: std::ptr::null_mut(),
        dstPitch: to.pitch,
        WidthInBytes: width,
        Height: height,
    }
}

/// A rectangle as a block of depth 1, the only form that the driver copies between two contexts.
fn block(
    contexts: (CUcontext, CUcontext),
    source: Side,
    target: Side,
    (width, height): (usize, usize),
) -> CUDA_MEMCPY3D_PEER_st {
    CUDA_MEMCPY3D_PEER_st {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: MemoryType::CU_MEMORYTYPE_DEVICE,
        srcHost: std::ptr::null(),
        srcDevice: source.start as CUdeviceptr,
        srcArray: std::ptr::null_mut(),
        srcContext: contexts.0,
        srcPitch: source.pitch,
        srcHeight: height,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: MemoryType::CU_MEMORYTYPE_DEVICE,
        dstHost: std::ptr::null_mut(),
        dstDevice: target.start as CUdeviceptr,
        dstArray: std::ptr::null_mut(),
        dstContext: contexts.1,
        dstPitch: target.pitch,
        dstHeight: height,
        WidthInBytes: width,
        Height: height,
        Depth: 1,
    }
}

/// How matrices are copied from one GPU to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Link {
    /// Both are the same GPU.
    Within,
    /// Each reads the other's memory itself, over NVLink or PCIe.
    PeerToPeer,
    /// They cannot: the driver copies through page-locked host memory.
    ThroughHost,
}

impl Link {
    /// Lets two GPUs read each other's memory, if they can. Returns how copies are made.
    ///
    /// # Errors
    ///
    /// The driver fails.
    pub(crate) fn connect(one: &CudaDevice, other: &CudaDevice) -> Result<Link, DeviceError> {
        if one.raw_context() == other.raw_context() {
            return Ok(Link::Within);
        }
        let both = enable(one, other)? & enable(other, one)?;
        Ok(match both {
            true => Link::PeerToPeer,
            false => Link::ThroughHost,
        })
    }
}

/// Lets `device` read the memory of `peer`; false if it cannot.
fn enable(device: &CudaDevice, peer: &CudaDevice) -> Result<bool, DeviceError> {
    /// `CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED` and `CUDA_ERROR_TOO_MANY_PEERS`.
    const ALREADY_ENABLED: u32 = 704;
    const TOO_MANY_PEERS: u32 = 711;
    let handle = |device: &CudaDevice| {
        let found = Device::get_device(device.properties().ordinal);
        Ok::<_, DeviceError>(found.map_err(DeviceError::DriverFails)?.as_raw())
    };
    let (from, to) = (handle(device)?, handle(peer)?);
    let mut can = 0;
    // SAFETY: `can` outlives the call.
    let status = unsafe { cuDeviceCanAccessPeer(&mut can, from, to) };
    checked(status as u32).map_err(during("Checking peer access between GPUs"))?;
    if can == 0 {
        return Ok(false);
    }
    let _entered = device.enter()?;
    // SAFETY: the devices keep their contexts.
    match unsafe { cuCtxEnablePeerAccess(peer.raw_context(), 0) } as u32 {
        ALREADY_ENABLED => Ok(true),
        TOO_MANY_PEERS => Ok(false),
        status => {
            checked(status).map_err(during("Enabling peer access between GPUs"))?;
            Ok(true)
        }
    }
}
