//! Streams that are captured into CUDA graphs.

use std::ffi::c_void;

use cust::sys::{
    CUstreamCaptureMode, CUstreamCaptureStatus, cuStreamIsCapturing,
    cuThreadExchangeStreamCaptureMode,
};

/// Whether a stream is captured. The default stream has no answer while another one is captured,
/// and counts as captured then.
///
/// # Safety
///
/// The stream exists, and its context is current.
pub unsafe fn is_captured(stream: *mut c_void) -> bool {
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: the caller vouches for the stream, and the pointer outlives the call.
    let asked = unsafe { cuStreamIsCapturing(stream.cast(), &mut status) };
    (asked as u32, status) != (0, CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
}

/// As long as it exists, this thread may allocate and load while any stream is captured. Without
/// it, that would make a capture invalid, although it does nothing on the stream.
pub struct Relaxed(CUstreamCaptureMode);

impl Relaxed {
    /// `None` if the driver is too old for it.
    pub fn begin() -> Option<Relaxed> {
        exchanged(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED).map(Relaxed)
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        exchanged(self.0);
    }
}

/// Sets the mode of this thread, and returns the one before.
fn exchanged(mut mode: CUstreamCaptureMode) -> Option<CUstreamCaptureMode> {
    // SAFETY: the pointer outlives the call.
    let status = unsafe { cuThreadExchangeStreamCaptureMode(&mut mode) } as u32;
    (status == 0).then_some(mode)
}
