//! The product that one rank computes of what it was given: by a rung of the CPU's ladder, in the
//! simulator or on a GPU.
//!
//! | file | where the parts of A, B and C lie |
//! | --- | --- |
//! | `in_host_memory.rs` | in the host's memory; a device gets copies for each product |
//! | `gpu.rs` | C in the GPU's memory, from one product to the next; A and B in the host's |

pub mod gpu;
mod in_host_memory;

use std::sync::Arc;

use gpu_gemm::{Chooser, Device, DeviceError, Shape};
use host::cpu::Team;
use host::cpu::view::{View, ViewMut};
use host::data::ProblemError;
use host::run::RunError;
use host::rung::Rung;
use host::select::Asked;
use thiserror::Error;

use crate::Element;
use in_host_memory::{Native, OnDevice};

/// Why a rank has no product.
#[derive(Debug, Error)]
pub enum LocalError {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Problem(#[from] ProblemError),
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error("No kernel multiplies a part of {0} on this device.")]
    NoKernel(Shape),
}

/// What multiplies on one rank.
pub trait LocalProduct<T: Element> {
    /// Adds `A * B` to C, which is of sums. The three fit each other, and none is empty.
    ///
    /// # Errors
    ///
    /// The device fails, or there is no memory.
    fn add_product(
        &self,
        a: View<'_, T>,
        b: View<'_, T>,
        c: ViewMut<'_, T::Sum>,
    ) -> Result<(), LocalError>;

    /// The fewest rows of C that it multiplies about as well as many. A layout that lets MPI
    /// work between products may cut C so; `None` if it must not.
    fn rows_of_a_strip(&self) -> Option<usize>;
}

/// Where products are computed.
#[derive(Clone)]
pub struct Place {
    pub device: Arc<Device>,
    pub chooser: Arc<Chooser>,
    pub team: Arc<Team>,
}

/// What computes products of parts in the host's memory; `None` if it does not multiply the type.
/// (A rank with a GPU uses that instead: [`gpu::Gpu`].)
pub fn local_product<T: Element>(asked: Asked, place: &Place) -> Option<Box<dyn LocalProduct<T>>> {
    match asked {
        Asked::Rung(Rung::Cpu(algorithm)) => {
            let multiply = T::multiply_natively(&algorithm.functions)?;
            Some(Box::new(Native {
                multiply,
                team: place.team.clone(),
            }))
        }
        Asked::Rung(_) | Asked::Auto => Some(Box::new(OnDevice {
            device: place.device.clone(),
            asked,
            chooser: place.chooser.clone(),
            team: place.team.clone(),
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_gemm::Choice;
    use gpu_gemm::{DeviceChoice, gpu_kernels};
    use host::cpu;

    fn place() -> Place {
        let device = Device::open(DeviceChoice::Simulator).unwrap().device;
        Place {
            chooser: Arc::new(Chooser::of(&device).0),
            device: Arc::new(device),
            team: Arc::new(Team::new(cpu::Settings::default()).unwrap()),
        }
    }

    #[test]
    fn every_kind_adds_to_the_part_of_c_and_to_nothing_else() {
        let naive = Choice::even(&gpu_kernels::naive::KERNEL.variants[0]);
        for asked in [
            Asked::Rung(Rung::Cpu(&cpu::ikj::RUNG)),
            Asked::Rung(Rung::Gpu(naive)),
            Asked::Auto,
        ] {
            let local = local_product::<f32>(asked, &place()).unwrap();
            let (a, b) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
            let mut c = [10.0; 6];
            let (a, b) = (View::new(&a, 2, 2, 2), View::new(&b, 2, 2, 2));
            local
                .add_product(a, b, ViewMut::new(&mut c, 2, 2, 3))
                .unwrap();
            assert_eq!(c, [29.0, 32.0, 10.0, 53.0, 60.0, 10.0], "{asked:?}");
        }
    }

    #[test]
    fn a_rung_that_does_not_multiply_the_type_has_no_product() {
        let library = Asked::Rung(Rung::Cpu(&cpu::library::RUNG));
        assert!(local_product::<i32>(library, &place()).is_none());
    }
}
