//! What multiplies on a rank, by what was asked for.

use host::rung::{Asked, Rung};

use super::native::Native;
use super::on_device::OnDevice;
use super::{LocalError, LocalProduct, Place};
use crate::Element;

/// What multiplies at a place.
///
/// # Errors
///
/// It does not multiply the type, or the device fails.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, Phase};
    use gpu_gemm::{Choice, Device, gpu_kernels};
    use verification::cpu::{self, Team, view::View, view::ViewMut};

    fn place() -> Place {
        Place {
            device: Device::simulator(),
            team: Team::new(cpu::Settings::default()).unwrap(),
            ranks_on_these_cores: 1,
        }
    }

    /// Two products are added up, of factors that are parts of larger matrices.
    fn sums(local: &dyn LocalProduct<f32>) -> [f32; 6] {
        let (a, b) = ([1.0, 2.0, 9.0, 3.0, 4.0], [5.0, 6.0, 9.0, 7.0, 8.0]);
        let factors = (View::new(&a, 2, 2, 3), View::new(&b, 2, 2, 3));
        let mut c = [0.0, 0.0, 10.0, 0.0, 0.0, 10.0];
        let clock = Clock::default();
        local.begin(2, 2).unwrap();
        for _ in 0..2 {
            let c = ViewMut::new(&mut c, 2, 2, 3);
            local.add(&clock, Phase::Wait, factors, c, None).unwrap();
        }
        local.fetch(&clock, ViewMut::new(&mut c, 2, 2, 3)).unwrap();
        c
    }

    #[test]
    fn every_kind_adds_to_the_block_of_c_and_to_nothing_else_and_begins_a_new_one() {
        let naive = Choice::even(&gpu_kernels::naive::KERNEL.variants[0]);
        for asked in [Rung::Cpu(&cpu::ikj::RUNG), Rung::Gpu(naive), Rung::Auto(())] {
            let place = place();
            let local = local_product::<f32>(asked, &place).unwrap();
            for _ in 0..2 {
                let found = sums(&*local);
                assert_eq!(found, [38.0, 44.0, 10.0, 86.0, 100.0, 10.0], "{asked:?}");
            }
        }
    }

    #[test]
    fn a_rung_that_does_not_multiply_the_type_has_no_product() {
        let library = Rung::Cpu(&cpu::library::RUNG);
        let none = local_product::<i32>(library, &place()).err();
        assert!(matches!(none, Some(LocalError::WrongType)));
    }
}
