//! `cuTensorMapEncodeTiled`, by which the driver describes a matrix to the copy engine (TMA);
//! `cust` lacks it.

use std::ffi::{c_int, c_void};

use cuda_std::tma::{Planes, Swizzle, TensorMap, Tiles};
use cust::error::CudaError;

use super::driver::Driver;
use super::status::checked;

/// The driver's function.
#[derive(Clone, Copy)]
pub(super) struct EncodeMap(
    unsafe extern "C" fn(
        map: *mut TensorMap,
        data_type: c_int,
        rank: u32,
        global: *mut c_void,
        sizes: *const u64,
        strides: *const u64,
        box_sizes: *const u32,
        element_strides: *const u32,
        interleave: c_int,
        swizzle: c_int,
        l2_promotion: c_int,
        out_of_bounds: c_int,
    ) -> u32,
);

/// `CU_TENSOR_MAP_L2_PROMOTION_L2_128B`: a miss loads 128 bytes.
const L2_128_BYTES: c_int = 2;

impl EncodeMap {
    /// `None` if the driver lacks it: drivers have it since CUDA 12.0.
    pub fn find(driver: &Driver) -> Option<EncodeMap> {
        // SAFETY: the type is that of the driver API since CUDA 12.0.
        unsafe { driver.symbol(b"cuTensorMapEncodeTiled\0") }.map(EncodeMap)
    }

    /// The map for tiles without a [`Tiles::problem`].
    ///
    /// # Errors
    ///
    /// The driver refuses them.
    pub fn map(&self, tiles: &Tiles) -> Result<TensorMap, CudaError> {
        // `CU_TENSOR_MAP_DATA_TYPE_UINT8` and the next ones copy bits, and zero-fill;
        // `CU_TENSOR_MAP_DATA_TYPE_TFLOAT32` is the type that rounds.
        let data_type = match tiles.element_bytes {
            4 if tiles.rounds_to_tf32 => 11,
            1 => 0,
            2 => 1,
            4 => 2,
            _ => 4,
        };
        let swizzle = match tiles.swizzle {
            Swizzle::None => 0,
            Swizzle::Bytes32 => 1,
            Swizzle::Bytes64 => 2,
            Swizzle::Bytes128 => 3,
        };
        // Without planes the third dimension is not read.
        let (rank, planes) = match tiles.planes {
            Some(planes) => (3, planes),
            None => (2, Planes { count: 1, bytes: 0 }),
        };
        let mut map = TensorMap([0; 16]);
        // SAFETY: each pointer is to as many numbers as the function reads for three dimensions;
        // `strides` has those of rows and of planes; the map is 128 bytes at a multiple of 64.
        checked(unsafe {
            (self.0)(
                &mut map,
                data_type,
                rank,
                tiles.global.cast_mut().cast(),
                [tiles.width, tiles.height, planes.count]
                    .map(|size| size as u64)
                    .as_ptr(),
                [tiles.row_bytes, planes.bytes]
                    .map(|bytes| bytes as u64)
                    .as_ptr(),
                [tiles.box_width as u32, tiles.box_height as u32, 1].as_ptr(),
                [1; 3].as_ptr(),
                0,
                swizzle,
                L2_128_BYTES,
                0,
            )
        })?;
        Ok(map)
    }
}
