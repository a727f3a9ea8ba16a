//! The meaning of the driver's error numbers: some lose the context, after others a caller can
//! continue.

use cust::error::CudaError;

use crate::error::DeviceError;

/// Adds to an error what was being done when the driver failed.
pub fn during(doing: &'static str) -> impl Fn(CudaError) -> DeviceError {
    move |error| match is_sticky(error) {
        true => DeviceError::ContextLost(error),
        false => DeviceError::Cuda { doing, error },
    }
}

/// Errors that leave the context unusable, so that every later call returns them too.
const STICKY: [CudaError; 10] = [
    CudaError::IllegalAddress,
    CudaError::LaunchTimeout,
    CudaError::AssertError,
    CudaError::HardwareStackError,
    CudaError::IllegalInstruction,
    CudaError::MisalignedAddress,
    CudaError::InvalidAddressSpace,
    CudaError::InvalidProgramCounter,
    CudaError::LaunchFailed,
    CudaError::EccUncorrectable,
];

/// Errors of a launch, an allocation, or memory shared between processes that leave the context
/// intact.
const OTHERS: [CudaError; 12] = [
    CudaError::InvalidValue,
    CudaError::OutOfMemory,
    CudaError::InvalidImage,
    CudaError::NotFound,
    CudaError::LaunchOutOfResources,
    CudaError::InvalidContext,
    CudaError::MapFailed,
    CudaError::AlreadyMapped,
    CudaError::PeerAccessUnsupported,
    CudaError::InvalidHandle,
    CudaError::TooManyPeers,
    CudaError::NotSupported,
];

pub(super) fn is_sticky(error: CudaError) -> bool {
    STICKY.contains(&error)
}

/// The error for a number that the driver returned; `None` for success. `cust` does not expose
/// its own translation.
pub fn checked(code: u32) -> Result<(), CudaError> {
    if code == 0 {
        return Ok(());
    }
    let known = STICKY.iter().chain(&OTHERS);
    let error = known.copied().find(|error| *error as u32 == code);
    Err(error.unwrap_or(CudaError::UnknownError))
}
