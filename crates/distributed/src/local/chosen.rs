//! What multiplies on a rank, by what was asked for.

use host::rung::{Asked, Rung};

use super::native::Native;
use super::on_device::OnDevice;
use super::{LocalError, LocalProduct, Place};
use crate::Element;

/// What multiplies at a place.
pub fn local_product<T: Element>(
    asked: Asked,
    place: &Place,
) -> Result<Box<dyn LocalProduct<T> + '_>, LocalError> {
    if let Rung::Cpu(algorithm) = asked {
        let multiply = T::multiply_natively(&algorithm.functions);
        return Ok(Box::new(Native {
            multiply: multiply.ok_or(LocalError::WrongType)?,
            team: &place.team,
        }));
    }
    Ok(Box::new(OnDevice::new(place, asked.fixed_choice())?))
}
